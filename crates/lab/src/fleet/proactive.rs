//! Time in which a controller sets up a path on request, and the number of paths a second (RFC
//! 8456, 5.1.5 and 5.1.7).
//!
//! A path is one entry at each switch of a ring, asked for by `POST /stats/flowentry/add` of Ryu's
//! `ofctl_rest`. It is set up when the last of its flow-mods has come to its switch, whenever the
//! controller answers. What is never seen at a switch must not count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
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

/// Measures paths one after the other, and then as many at a time as there are clients.
///
/// # Errors
/// The controller refuses a path, an entry does not come, or the run is interrupted.
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
        let path = Path { cookie: cookies.fetch_add(1, Ordering::Relaxed), fleet };
        let begun = Instant::now();
        path.ask(&mut rest)?;
        let last = path.until_there(&ring, cancel)?;
        times.record(last.saturating_duration_since(begun).as_nanos() as u64);
    }
    let begun = Instant::now();
    let paths = many(fleet, &cookies, cancel)?;
    let until = Instant::now() + ENTRY_LIMIT;
    let wanted = paths * u64::from(fleet.switches);
    while (ring.entries() as u64) < wanted && Instant::now() < until {
        ring.check()?;
        cancel.sleep(Duration::from_millis(1))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let came = ring.entries() as u64;
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

/// A path around the ring.
struct Path<'a> {
    cookie: u64,
    fleet: &'a FleetPlan,
}

impl Path<'_> {
    /// Asks for an entry at each switch.
    fn ask(&self, rest: &mut HttpClient) -> Result<()> {
        for number in 0..self.fleet.switches {
            let body = self.body(number);
            let (status, answer) = rest.ask("POST", "/stats/flowentry/add", &body)?;
            let answer = String::from_utf8_lossy(&answer);
            ensure!(status == 200, "POST /stats/flowentry/add: {status}: {answer}; asked {body}");
        }
        Ok(())
    }

    fn body(&self, number: u32) -> String {
        // Each path is for another destination, of so many as a cookie counts.
        let bytes = self.cookie.to_be_bytes();
        let mac = bytes[3..].iter().map(|byte| format!(":{byte:02x}")).collect::<String>();
        json!({
            "dpid": u64::from(number) + 1,
            "cookie": self.cookie,
            "priority": 100,
            "match": {"in_port": 2, "dl_dst": format!("02{mac}")},
            "actions": [{"type": "OUTPUT", "port": 1}],
        })
        .to_string()
    }

    /// Waits until all its entries are there; when the last one came.
    fn until_there(&self, ring: &RingTopology, cancel: &Cancel) -> Result<Instant> {
        let begun = Instant::now();
        let count = self.fleet.switches as usize;
        loop {
            if let Some(came) = ring.take_entries(self.cookie, count) {
                return came.into_iter().max().context("a path without an entry");
            }
            ring.check()?;
            if begun.elapsed() > ENTRY_LIMIT {
                bail!(
                    "the controller has said that it has added {count} entries, and not all have \
                     come within {} s",
                    ENTRY_LIMIT.as_secs()
                );
            }
            cancel.check()?;
            std::thread::sleep(Duration::from_micros(50));
        }
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
        let (status, answer) = rest.ask("GET", SWITCHES, "")?;
        ensure!(status == 200, "GET {SWITCHES}: {status}");
        let known: Vec<u64> =
            serde_json::from_slice(&answer).with_context(|| format!("GET {SWITCHES}"))?;
        if known.len() as u64 == u64::from(plan.switches) {
            return Ok(());
        }
        ring.check()?;
        if begun.elapsed() > plan.ready_limit {
            let (known, all, limit) = (known.len(), plan.switches, plan.ready_limit.as_secs());
            bail!("the controller knows {known} of {all} switches after {limit} s");
        }
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
            let path = Path { cookie: cookies.fetch_add(1, Ordering::Relaxed), fleet };
            path.ask(&mut rest)?;
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
