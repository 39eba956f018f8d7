//! What is left to the packets of port 1 when others come in beside them.
//!
//! Both enter the same forwarding thread, each by a port of its own, both as fast as they are
//! taken. A fair share is what the same packets have beside a second copy of themselves.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::replay::{RUN_IN, Replaying, bed_of, with_replay};
use super::{Better, Method, MethodContext, Metric, Trial, TrialError};
use crate::settings::Settings;
use crate::testbed::Testbed;

/// The method.
pub(super) struct Victim;

const METRICS: &[Metric] = &[
    Metric::new("victim_mpps", "packets taken from port 1", "Mpps", Better::Higher, 3),
    Metric::new("victim_beside_mpps", "packets taken beside them", "Mpps", Better::Higher, 3),
    Metric::lower("victim_lost", "packets that did not leave", "packets", 0),
];

impl Method for Victim {
    fn id(&self) -> &'static str {
        "victim"
    }

    fn label(&self) -> &'static str {
        "A trace beside another"
    }

    fn about(&self) -> &'static str {
        "Packets a second that the switch takes of a trace it replays while another one enters the \
         same forwarding thread by port 3, by the counters of its own ports"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        false
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(settings.duration_s()) + RUN_IN
    }

    fn finds_stalls(&self) -> bool {
        true
    }

    fn fits(&self, bed: &Testbed) -> Result<(), &'static str> {
        match bed_of(bed)?.has_beside() {
            true => Ok(()),
            false => Err("nothing stands beside the trace: settings.replay.beside says what"),
        }
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        with_replay(context, measure)
    }
}

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
    Ok(Replaying::trial(values, json!({ "again": again })))
}
