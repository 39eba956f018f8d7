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
///
/// # Errors
/// The controller does not show all links in time, has no such REST, or the run is interrupted.
pub(crate) fn measure(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan)?;
    until_empty(&mut rest, LINKS, plan.ready_limit, cancel)?;
    let ring = RingTopology::start(plan)?;
    let all = ring.links();
    let known = until_shown(&mut rest, &ring, &all, plan, cancel)?;
    let first = ring.first_lldp().context("links are shown, and no LLDP came: is it this ring?")?;
    let rest_of_links = |number| {
        let gone = ring.both_ways(number);
        all.iter().copied().filter(|link| !gone.contains(link)).collect::<BTreeSet<_>>()
    };
    let went = ring.set_link(0, false);
    let gone = until_shown(&mut rest, &ring, &rest_of_links(0), plan, cancel)?;
    let came = ring.set_link(0, true);
    let back = until_shown(&mut rest, &ring, &all, plan, cancel)?;
    let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    Ok(vec![
        ("topology_s", seconds(first, known)),
        ("topology_connect_s", seconds(ring.begun(), known)),
        ("topology_down_ms", 1e3 * seconds(went, gone)),
        ("topology_up_ms", 1e3 * seconds(came, back)),
    ])
}

/// The largest ring that the controller discovers in time, up to that of the plan.
///
/// # Errors
/// It does not discover the smallest, has no such REST, or the run is interrupted.
pub(crate) fn measure_size(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan)?;
    let mut found: Option<(u32, f64)> = None;
    until_empty(&mut rest, LINKS, plan.ready_limit, cancel)?;
    for size in sizes(plan.switches) {
        let plan = FleetPlan { switches: size, ..plan.clone() };
        let ring = RingTopology::start(&plan)?;
        match until_shown(&mut rest, &ring, &ring.links(), &plan, cancel) {
            Ok(known) => {
                let seconds = known.saturating_duration_since(ring.begun()).as_secs_f64();
                found = Some((size, seconds));
            }
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
///
/// # Errors
/// The controller is not said to have one.
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
        let (status, body) = rest.ask("GET", path, "")?;
        let text = String::from_utf8_lossy(&body);
        ensure!(status == 200, "GET {path}: {status}: {text}");
        let list: Vec<Value> =
            serde_json::from_slice(&body).with_context(|| format!("GET {path}: {text:.200}"))?;
        if list.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > limit {
            let (count, limit) = (list.len(), limit.as_secs());
            bail!("before any switch connects, GET {path} still has {count} rows after {limit} s");
        }
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
        let shown = links(rest)?;
        let at = Instant::now();
        if shown == *expected {
            ring.check()?;
            return Ok(at);
        }
        ring.check()?;
        if at.saturating_duration_since(begun) > plan.ready_limit {
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
fn links(rest: &mut HttpClient) -> Result<BTreeSet<RingLink>> {
    let (status, body) = rest.ask("GET", LINKS, "")?;
    let text = String::from_utf8_lossy(&body);
    ensure!(status == 200, "GET {LINKS}: {status}: {text}");
    links_of(&body).with_context(|| format!("GET {LINKS}: {text:.200}"))
}

fn links_of(body: &[u8]) -> Result<BTreeSet<RingLink>> {
    let links: Vec<Value> = serde_json::from_slice(body)?;
    let end = |end: &Value| -> Option<(u64, u32)> {
        let dpid = u64::from_str_radix(end["dpid"].as_str()?, 16).ok()?;
        let port = u32::from_str_radix(end["port_no"].as_str()?, 16).ok()?;
        Some((dpid, port))
    };
    let link = |link: &Value| {
        let ((from, out), (to, arrives)) = (end(&link["src"])?, end(&link["dst"])?);
        Some((from, out, to, arrives))
    };
    let read = links.iter().map(|it| link(it).with_context(|| format!("no link: {it}")));
    read.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    use programs::cancel::Cancel;

    use super::super::http::HttpClient;
    use super::{links_of, sizes, until_empty};

    #[test]
    fn an_earlier_fleet_is_gone_before_the_next_one_connects() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut rest = HttpClient::new(&listener.local_addr().unwrap().to_string()).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for list in ["[1,2]", "[1]", "[]", "[1]"] {
                assert!(stream.read(&mut [0; 1024]).unwrap() > 0, "it asks again");
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", list.len());
                stream.write_all(format!("{head}{list}").as_bytes()).unwrap();
            }
        });
        let cancel = Cancel::default();
        until_empty(&mut rest, "/stats/switches", Duration::from_secs(60), &cancel).unwrap();
        let error = until_empty(&mut rest, "/stats/switches", Duration::ZERO, &cancel);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("/stats/switches still has 1 rows"), "{error}");
        server.join().unwrap();
    }

    #[test]
    fn links_are_read_as_ryu_writes_them() {
        let one = r#"[{"src": {"dpid": "000000000000000a", "port_no": "00000001", "name": "p"},
            "dst": {"dpid": "0000000000000002", "port_no": "00000010"}}]"#;
        assert_eq!(links_of(one.as_bytes()).unwrap(), BTreeSet::from([(10, 1, 2, 16)]));
        assert!(links_of(b"[]").unwrap().is_empty());
        for wrong in ["", "{}", r#"[{"src": {}}]"#, r#"[{"src": {"dpid": 1}}]"#] {
            assert!(links_of(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_sizes_end_with_the_one_that_was_asked_for() {
        assert_eq!(sizes(2), [2]);
        assert_eq!(sizes(16), [16]);
        assert_eq!(sizes(1_000), [16, 64, 256, 1_000]);
    }
}
