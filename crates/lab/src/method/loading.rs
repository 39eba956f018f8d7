//! Rate at which an idle switch takes flow entries, and the time in which it deletes them.
//!
//! The entries are those of the cell, added one by one, without bundles, as the switch was started.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::replay::{Replaying, bed_of, run, trial};
use super::{Method, Metric, Trial};

pub(super) const LOADING: Method = Method {
    id: "replay-loading",
    label: "Flow entries without packets",
    about: "The cell's flow entries added one by one while port 1 is down, up to the barrier \
            reply; then all deleted by one flow-mod. The cell's switch is not used again",
    metrics: &[
        Metric::higher("loading_ps", "flow entries added", "entries/s", 0),
        Metric::lower("loading_delete_s", "all deleted at once", "s", 3),
    ],
    cost: |_| Duration::from_millis(100),
    spends_setup: true,
    fits: |bed| {
        bed_of(bed).and_then(|bed| match bed.is_down() {
            true => Ok(()),
            false => Err("packets come meanwhile: settings.replay.is_down sets port 1 down"),
        })
    },
    run: |context| run(context, measure),
    ..Method::USUAL
};

fn measure(replaying: &Replaying<'_>) -> Result<Trial> {
    let setup = replaying.setup;
    let loaded = setup.loaded().context("the switch has no flow entries")?;
    // They were loaded before the run watched for stalls.
    replaying.bed.report_stall(loaded.stall_ms);
    let mut client = setup.client().context("the switch has no OpenFlow channel")?;
    let begun = Instant::now();
    client.delete_flows()?;
    let delete_s = begun.elapsed().as_secs_f64();
    let left = client.list_flows()?.entries;
    ensure!(left == 0, "{left} flow entries are left behind the deletion of all");
    let values = vec![
        ("loading_ps", loaded.entries as f64 / loaded.seconds.max(1e-9)),
        ("loading_delete_s", delete_s),
    ];
    Ok(trial(values, Value::Null))
}
