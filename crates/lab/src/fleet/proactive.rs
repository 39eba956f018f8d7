//! Time in which a controller sets up a path on request, and the number of paths a second (RFC
//! 8456, 5.1.5 and 5.1.7).
//!
//! A path is one entry at each switch of a ring, asked for by `POST /stats/flowentry/add` of Ryu's
//! `ofctl_rest`. It is set up when the last of its flow-mods has come to its switch, whenever the
//! controller answers. What is never seen at a switch must not count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::sys::affinity;
use programs::cancel::Cancel;
use serde_json::json;

use super::http::HttpClient;
use super::ring::RingTopology;
use super::topology::rest_of;
use super::{FleetPlan, Values};
use emulator::{THREAD_NAME, Times};

/// The path of the switches that the controller knows.
const SWITCHES: &str = "/stats/switches";
/// Clients that ask at the same time for the rate.
const CLIENTS: usize = 8;
/// A flow-mod that has not come by then never will.
const ENTRY_LIMIT: Duration = Duration::from_secs(10);

/// Measures paths one after the other, and then as many at a time as there are clients. An error
/// where the controller refuses a path or an entry does not come.
pub(crate) fn measure(fleet: &FleetPlan, cancel: &Cancel) -> Result<(Values, Times)> {
    let mut rest = rest_of(fleet, cancel)?;
    rest.until_empty(SWITCHES)?;
    let ring = RingTopology::start(fleet)?;
    let (all, after_s) = (fleet.switches, rest.limit.as_secs());
    rest.until(SWITCHES, |known: &[u64]| {
        ring.check()?;
        let known = known.len();
        let what = || format!("the controller knows {known} of {all} switches after {after_s} s");
        Ok((known != all as usize).then(what))
    })?;
    let paths = AtomicU64::new(0);
    let wanted = || paths.load(Ordering::Relaxed) * u64::from(fleet.switches);
    let mut times = Times::default();
    let until = Instant::now() + fleet.window;
    while Instant::now() < until {
        cancel.check()?;
        let begun = Instant::now();
        ask_for_path(&mut rest, fleet, &paths)?;
        let last = until_there(&ring, wanted(), cancel)?;
        times.record(last.saturating_duration_since(begun).as_nanos() as u64);
    }
    let (before, begun) = (wanted(), Instant::now());
    ask_at_once(fleet, &paths, cancel)?;
    until_there(&ring, wanted(), cancel)?;
    let seconds = begun.elapsed().as_secs_f64();
    let ((came, _), wanted) = (ring.entries(), wanted());
    ensure!(came == wanted, "of {wanted} entries {came} came to their switches");
    ring.check()?;
    let entries_ps = (wanted - before) as f64 / seconds;
    let values = vec![
        ("proactive_p50_us", times.at_us(0.5)),
        ("proactive_p99_us", times.at_us(0.99)),
        ("proactive_paths_ps", entries_ps / f64::from(fleet.switches)),
        ("proactive_entries_ps", entries_ps),
    ];
    Ok((values, times))
}

/// Asks for an entry at each switch, a path around the ring: its number, from 1, is the cookie.
fn ask_for_path(rest: &mut HttpClient, fleet: &FleetPlan, paths: &AtomicU64) -> Result<()> {
    let cookie = paths.fetch_add(1, Ordering::Relaxed) + 1;
    // Each path is for another destination, of so many as a cookie counts.
    let bytes = cookie.to_be_bytes();
    let mac = bytes[3..].iter().map(|byte| format!(":{byte:02x}")).collect::<String>();
    for dpid in 1..=fleet.switches {
        let body = json!({
            "dpid": dpid,
            "cookie": cookie,
            "priority": 100,
            "match": {"in_port": 2, "dl_dst": format!("02{mac}")},
            "actions": [{"type": "OUTPUT", "port": 1}],
        });
        rest.ask("POST", "/stats/flowentry/add", &body.to_string())?;
    }
    Ok(())
}

/// Waits until that number of entries has come; when the last one did.
fn until_there(ring: &RingTopology, wanted: u64, cancel: &Cancel) -> Result<Instant> {
    let begun = Instant::now();
    loop {
        let (came, last) = ring.entries();
        if let Some(last) = last.filter(|_| came >= wanted) {
            return Ok(last);
        }
        ring.check()?;
        ensure!(
            begun.elapsed() <= ENTRY_LIMIT,
            "the controller has said that it has added {wanted} entries, and {came} have come \
             within {} s",
            ENTRY_LIMIT.as_secs()
        );
        cancel.check()?;
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Asks for paths with all clients for the time of the plan.
fn ask_at_once(fleet: &FleetPlan, paths: &AtomicU64, cancel: &Cancel) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let client = || -> Result<()> {
        affinity::allow(None, &fleet.cores).context("choosing cores for the emulator")?;
        emulator::prefer(None);
        let mut rest = rest_of(fleet, cancel)?;
        while !is_over.load(Ordering::Relaxed) {
            ask_for_path(&mut rest, fleet, paths)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let named = || std::thread::Builder::new().name(format!("{THREAD_NAME}-client"));
        let clients: Result<Vec<_>, _> =
            (0..CLIENTS).map(|_| named().spawn_scoped(scope, client)).collect();
        let slept = cancel.sleep(fleet.window);
        is_over.store(true, Ordering::Relaxed);
        let clients = clients.context("starting the clients of REST")?;
        for client in clients {
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        slept.map_err(anyhow::Error::from)
    })
}
