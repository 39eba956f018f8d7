//! Share that is left to the packets of port 1 when others come in beside them.
//!
//! Both enter the same forwarding thread, each by a port of its own, both as fast as they are
//! taken. A fair share is what the same packets have beside a second copy of themselves.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::replay::{RUN_IN, Replaying, bed_of, packets_come, run, trial};
use super::{Method, Metric, Trial};

pub(super) const VICTIM: Method = Method {
    id: "victim",
    label: "A trace beside another",
    about: "Packets a second that the switch takes of a trace it replays while another one enters \
            the same forwarding thread by port 3, by the counters of its own ports",
    metrics: &[
        Metric::higher("victim_mpps", "packets taken from port 1", "Mpps", 3),
        Metric::higher("victim_beside_mpps", "packets taken beside them", "Mpps", 3),
        Metric::lower("victim_lost", "packets that did not leave", "packets", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + RUN_IN,
    finds_stalls: true,
    fits: |bed| {
        bed_of(bed).and_then(|bed| {
            packets_come(bed)?;
            match bed.has_beside() {
                true => Ok(()),
                false => Err("nothing stands beside the trace: settings.replay.beside says what"),
            }
        })
    },
    run: |context| run(context, measure),
    ..Method::USUAL
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
