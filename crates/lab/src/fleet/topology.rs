//! Time in which a controller knows a network, and notices that it has changed (RFC 8456, 5.1.1,
//! 5.1.8 and 5.2.2).
//!
//! Switches in a ring carry the controller's LLDP. What it knows is asked of its REST, of the
//! endpoint that Ryu's `rest_topology` has, again and again: a time ends with the answer that shows
//! it all. It must never take a part for the whole: the links that are shown are compared with
//! those that there are.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};
use programs::cancel::Cancel;
use serde_json::Value;

use super::http::HttpClient;
use super::ring::{RingLink, RingTopology};
use super::{FleetPlan, Values};

/// The path of the links that the controller shows.
const LINKS: &str = "/v1.0/topology/links";
/// The first size of a search for the largest one, which grows four times as large with each step.
const SIZE_FIRST: u32 = 16;

/// Measures one ring: discovery, a link that goes down, and one that comes up.
pub(crate) fn measure(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan, cancel)?;
    rest.until_empty(LINKS)?;
    let ring = RingTopology::start(plan)?;
    let all = ring.links();
    let known = until_shown(&mut rest, &ring, &all)?;
    let first = ring.seen.first_lldp.get();
    let first = first.context("links are shown, and no LLDP came: is it this ring?")?;
    let cut = ring.both_ways(0);
    let others = all.iter().copied().filter(|link| !cut.contains(link)).collect();
    let went = ring.set_link(0, false);
    let gone = until_shown(&mut rest, &ring, &others)?;
    let came = ring.set_link(0, true);
    let back = until_shown(&mut rest, &ring, &all)?;
    let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    Ok(vec![
        ("topology_s", seconds(*first, known)),
        ("topology_connect_s", seconds(ring.begun, known)),
        ("topology_down_ms", 1e3 * seconds(went, gone)),
        ("topology_up_ms", 1e3 * seconds(came, back)),
    ])
}

/// The largest ring that the controller discovers in time, up to that of the plan; an error where
/// it does not discover the smallest.
pub(crate) fn measure_size(plan: &FleetPlan, cancel: &Cancel) -> Result<Values> {
    let mut rest = rest_of(plan, cancel)?;
    let mut found: Option<(u32, f64)> = None;
    rest.until_empty(LINKS)?;
    for size in sizes(plan.switches) {
        let ring = RingTopology::start(&FleetPlan { switches: size, ..plan.clone() })?;
        match until_shown(&mut rest, &ring, &ring.links()) {
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
pub(super) fn rest_of(plan: &FleetPlan, cancel: &Cancel) -> Result<HttpClient> {
    let address = plan.rest.as_deref();
    let address = address.context(
        "this asks the controller's REST (Ryu's endpoints): --dut weir, {rest} in the command of \
         another, or --set fleet.rest=HOST:PORT for one that runs already",
    )?;
    HttpClient::new(address, plan.ready_limit, cancel)
}

/// Waits until the controller shows these links and no others; when it did.
fn until_shown(
    rest: &mut HttpClient,
    ring: &RingTopology,
    expected: &BTreeSet<RingLink>,
) -> Result<Instant> {
    let after_s = rest.limit.as_secs();
    rest.until(LINKS, |list| {
        let shown = links(list)?;
        ring.check()?;
        let right = shown.intersection(expected).count();
        let (all, others) = (expected.len(), shown.len() - right);
        let (described, switches) = (ring.seen.described.load(Ordering::Relaxed), ring.switches);
        let missing = format!(
            "the controller shows {right} of {all} links, and {others} that there are not, after \
             {after_s} s; {described} of {switches} switches have told who they are"
        );
        Ok((right < all || others > 0).then_some(missing))
    })
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

    use super::{links, sizes};

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
