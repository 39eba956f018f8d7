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
use super::topology::{rest_of, until_empty};
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
    let mut rest = rest_of(fleet)?;
    until_empty(&mut rest, SWITCHES, fleet.ready_limit, cancel)?;
    let ring = RingTopology::start(fleet)?;
    until_served(&ring, &mut rest, fleet, cancel)?;
    let cookies = AtomicU64::new(1);
    let mut times = Times::default();
    let until = Instant::now() + fleet.window;
    while Instant::now() < until {
        cancel.check()?;
        let begun = Instant::now();
        let cookie = ask_for_path(&mut rest, fleet, &cookies)?;
        let last = until_there(&ring, cookie, fleet.switches, cancel)?;
        times.record(last.saturating_duration_since(begun).as_nanos() as u64);
    }
    let begun = Instant::now();
    let paths = many(fleet, &cookies, cancel)?;
    let until = Instant::now() + ENTRY_LIMIT;
    let wanted = paths * u64::from(fleet.switches);
    while ring.entries() < wanted && Instant::now() < until {
        ring.check()?;
        cancel.sleep(Duration::from_millis(1))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let came = ring.entries();
    ensure!(came == wanted, "of {wanted} entries {came} came to their switches");
    ring.check()?;
    let values = vec![
        ("proactive_p50_us", times.at_us(0.5)),
        ("proactive_p99_us", times.at_us(0.99)),
        ("proactive_paths_ps", paths as f64 / seconds),
        ("proactive_entries_ps", came as f64 / seconds),
    ];
    Ok((values, times))
}

/// Asks for an entry at each switch, of the next cookie: a path around the ring.
fn ask_for_path(rest: &mut HttpClient, fleet: &FleetPlan, cookies: &AtomicU64) -> Result<u64> {
    let cookie = cookies.fetch_add(1, Ordering::Relaxed);
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
    Ok(cookie)
}

/// Waits until all entries of a path are there; when the last one came.
fn until_there(ring: &RingTopology, cookie: u64, count: u32, cancel: &Cancel) -> Result<Instant> {
    let begun = Instant::now();
    loop {
        if let Some(last) = ring.take_entries(cookie, count) {
            return Ok(last);
        }
        ring.check()?;
        ensure!(
            begun.elapsed() <= ENTRY_LIMIT,
            "the controller has said that it has added {count} entries, and not all have come \
             within {} s",
            ENTRY_LIMIT.as_secs()
        );
        cancel.check()?;
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Waits until the controller knows every switch.
fn until_served(
    ring: &RingTopology,
    rest: &mut HttpClient,
    plan: &FleetPlan,
    cancel: &Cancel,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let known = rest.get::<Vec<u64>>(SWITCHES)?.len();
        if known == plan.switches as usize {
            return Ok(());
        }
        ring.check()?;
        ensure!(
            begun.elapsed() <= plan.ready_limit,
            "the controller knows {known} of {} switches after {} s",
            plan.switches,
            plan.ready_limit.as_secs()
        );
        cancel.sleep(Duration::from_millis(5))?;
    }
}

/// Asks for paths with all clients for the time of the plan; how many.
fn many(fleet: &FleetPlan, cookies: &AtomicU64, cancel: &Cancel) -> Result<u64> {
    let (asked, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let client = || -> Result<()> {
        affinity::allow(None, &fleet.cores).context("choosing cores for the emulator")?;
        emulator::prefer(None);
        let mut rest = rest_of(fleet)?;
        while !is_over.load(Ordering::Relaxed) {
            ask_for_path(&mut rest, fleet, cookies)?;
            asked.fetch_add(1, Ordering::Relaxed);
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
    })?;
    Ok(asked.load(Ordering::Relaxed))
}
