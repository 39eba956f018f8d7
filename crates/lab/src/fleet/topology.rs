//! Time in which a controller knows a network, and notices that it has changed (RFC 8456, 5.1.1,
//! 5.1.8 and 5.2.2).
//!
//! Switches in a ring carry the controller's LLDP. What it knows is asked of its REST, of the
//! endpoint that Ryu's `rest_topology` has, again and again: a time ends with the answer that shows
//! it all. It must never take a part for the whole: the links that are shown are compared with
//! those that there are.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use programs::cancel::Cancel;
use serde_json::Value;

use super::http::HttpClient;
use super::ring::{RingLink, RingTopology};
use super::{FleetPlan, Values};

/// Between two questions, besides what the answer takes.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// The path of the links that the controller shows.
const LINKS: &str = "/v1.0/topology/links";
/// The first size of a search for the largest one, which grows four times as large with each step.
const SIZE_FIRST: u32 = 16;

/// Measures one ring: discovery, a link that goes down, and one that comes up.
pub(crate) fn measure(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan)?;
    until_empty(&mut rest, LINKS, plan.ready_limit, cancel)?;
    let ring = RingTopology::start(plan)?;
    let all = ring.links();
    let known = until_shown(&mut rest, &ring, &all, plan, cancel)?;
    let first = ring.first_lldp().context("links are shown, and no LLDP came: is it this ring?")?;
    let cut = ring.both_ways(0);
    let others = all.iter().copied().filter(|link| !cut.contains(link)).collect();
    let went = ring.set_link(0, false);
    let gone = until_shown(&mut rest, &ring, &others, plan, cancel)?;
    let came = ring.set_link(0, true);
    let back = until_shown(&mut rest, &ring, &all, plan, cancel)?;
    let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    Ok(vec![
        ("topology_s", seconds(first, known)),
        ("topology_connect_s", seconds(ring.begun, known)),
        ("topology_down_ms", 1e3 * seconds(went, gone)),
        ("topology_up_ms", 1e3 * seconds(came, back)),
    ])
}

/// The largest ring that the controller discovers in time, up to that of the plan; an error where
/// it does not discover the smallest.
pub(crate) fn measure_size(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan)?;
    let mut found: Option<(u32, f64)> = None;
    until_empty(&mut rest, LINKS, plan.ready_limit, cancel)?;
    for size in sizes(plan.switches) {
        let plan = FleetPlan { switches: size, ..plan.clone() };
        let ring = RingTopology::start(&plan)?;
        match until_shown(&mut rest, &ring, &ring.links(), &plan, cancel) {
            Ok(known) => found = Some((size, (known - ring.begun).as_secs_f64())),
            // Who is interrupted, or has not discovered the smallest, has no figure.
            Err(error) if cancel.check().is_err() || found.is_none() => return Err(error),
            Err(error) => {
                tracing::info!(size, %error, "the controller does not discover this many");
                break;
            }
        }
    }
    let (largest, seconds) = found.context("no size was measured")?;
    Ok(vec![("discovery_switches", f64::from(largest)), ("discovery_s", seconds)])
}

/// The sizes that are tried, the last of which is the one that was asked for.
fn sizes(largest: u32) -> Vec<u32> {
    let grown = std::iter::successors(Some(SIZE_FIRST), |size| size.checked_mul(4));
    grown.take_while(|size| *size < largest).chain([largest]).collect()
}

/// The client of the controller's REST.
pub(super) fn rest_of(plan: &FleetPlan) -> Result<HttpClient> {
    let address = plan.rest.as_deref();
    let address = address.context(
        "this asks the controller's REST (Ryu's endpoints): --dut weir, {rest} in the command of \
         another, or --set fleet.rest=HOST:PORT for one that runs already",
    )?;
    HttpClient::new(address)
}

/// Waits until the list of that path is empty: a controller that ran before still shows an earlier
/// fleet for a moment, whose rings and switches look like those of the next.
pub(super) fn until_empty(
    rest: &mut HttpClient,
    path: &str,
    limit: Duration,
    cancel: &Cancel,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let count = rest.get::<Vec<Value>>(path)?.len();
        if count == 0 {
            return Ok(());
        }
        ensure!(
            begun.elapsed() <= limit,
            "before any switch connects, GET {path} still has {count} rows after {} s",
            limit.as_secs()
        );
        cancel.sleep(ASK_EVERY)?;
    }
}

/// Waits until the controller shows these links and no others; when it did.
fn until_shown(
    rest: &mut HttpClient,
    ring: &RingTopology,
    expected: &BTreeSet<RingLink>,
    plan: &FleetPlan,
    cancel: &Cancel,
) -> Result<Instant> {
    let begun = Instant::now();
    loop {
        let shown = links(&rest.get::<Vec<Value>>(LINKS)?)?;
        let at = Instant::now();
        ring.check()?;
        if shown == *expected {
            return Ok(at);
        }
        if at - begun > plan.ready_limit {
            let right = shown.intersection(expected).count();
            bail!(
                "the controller shows {right} of {} links, and {} that there are not, after {} s; \
                 {} of {} switches have told who they are",
                expected.len(),
                shown.len() - right,
                plan.ready_limit.as_secs(),
                ring.described(),
                plan.switches
            );
        }
        cancel.sleep(ASK_EVERY)?;
    }
}

/// The links that the controller shows.
fn links(shown: &[Value]) -> Result<BTreeSet<RingLink>> {
    let hex = |digits: &Value| u64::from_str_radix(digits.as_str()?, 16).ok();
    let end = |end: &Value| Some((hex(&end["dpid"])?, u32::try_from(hex(&end["port_no"])?).ok()?));
    let link = |link: &Value| {
        let ((from, out), (to, arrives)) = (end(&link["src"])?, end(&link["dst"])?);
        Some((from, out, to, arrives))
    };
    let no_link = |it: &Value| format!("GET {LINKS}: no link: {it}");
    shown.iter().map(|it| link(it).with_context(|| no_link(it))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use programs::cancel::Cancel;

    use super::super::http::{HttpClient, tests::serve};
    use super::{links, sizes, until_empty};

    #[test]
    fn an_earlier_fleet_is_gone_before_the_next_one_connects() {
        let (address, server) = serve(&[&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        ]]);
        let mut rest = HttpClient::new(&address).unwrap();
        let cancel = Cancel::default();
        until_empty(&mut rest, "/stats/switches", Duration::from_secs(60), &cancel).unwrap();
        let error = until_empty(&mut rest, "/stats/switches", Duration::ZERO, &cancel);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/stats/switches still has 1 rows"), "{error}");
        for text in ["", "{}"] {
            let error = until_empty(&mut rest, "/no/list", Duration::from_secs(60), &cancel);
            assert_eq!(error.unwrap_err().to_string(), format!("GET /no/list: {text}"));
        }
        server.join().unwrap();
    }

    #[test]
    fn links_are_read_as_ryu_writes_them() {
        let links =
            |text: &str| links(&serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap());
        let one = r#"[{"src": {"dpid": "000000000000000a", "port_no": "00000001", "name": "p"},
            "dst": {"dpid": "0000000000000002", "port_no": "00000010"}}]"#;
        assert_eq!(links(one).unwrap(), BTreeSet::from([(10, 1, 2, 16)]));
        assert!(links("[]").unwrap().is_empty());
        for wrong in [r#"[{"src": {}}]"#, r#"[{"src": {"dpid": 1}}]"#] {
            assert!(links(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_sizes_end_with_the_one_that_was_asked_for() {
        assert_eq!(sizes(2), [2]);
        assert_eq!(sizes(16), [16]);
        assert_eq!(sizes(1_000), [16, 64, 256, 1_000]);
    }
}
