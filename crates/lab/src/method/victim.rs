//! Share that is left to the packets of port 1 when others come in beside them.
//!
//! Both enter the same forwarding thread, each by a port of its own, both as fast as they are
//! taken. A fair share is what the same packets have beside a second copy of themselves.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::replay::{RUN_IN, ReplayMethod, Replaying, packets_come, trial};
use super::{Better, Metric, Trial};

const METRICS: &[Metric] = &[
    Metric::new("victim_mpps", "packets taken from port 1", "Mpps", Better::Higher, 3),
    Metric::new("victim_beside_mpps", "packets taken beside them", "Mpps", Better::Higher, 3),
    Metric::lower("victim_lost", "packets that did not leave", "packets", 0),
];

/// The method.
pub(super) const VICTIM: ReplayMethod = ReplayMethod {
    id: "victim",
    label: "A trace beside another",
    about: "Packets a second that the switch takes of a trace it replays while another one enters \
            the same forwarding thread by port 3, by the counters of its own ports",
    metrics: METRICS,
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + RUN_IN,
    spends_setup: false,
    finds_stalls: true,
    fits: |bed| {
        packets_come(bed)?;
        match bed.has_beside() {
            true => Ok(()),
            false => Err("nothing stands beside the trace: settings.replay.beside says what"),
        }
    },
    measure,
};

fn measure(replaying: &Replaying<'_>) -> Result<Trial> {
    replaying.warm_up()?;
    let first = replaying.counts()?;
    let (sample, again) = replaying.window()?;
    let lost = replaying.counts()?.lost_since(&first);
    let values = vec![
        ("victim_mpps", sample.first_mpps),
        ("victim_beside_mpps", sample.others_mpps),
        ("victim_lost", lost as f64),
    ];
    Ok(trial(values, json!({ "again": again })))
}
