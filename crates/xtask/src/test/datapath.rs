//! What the fast datapath must prove beside its tests: that it is the reference, over many random
//! packets, and that its counters are published in order.
//!
//! Both build apart from the other steps: the first needs speed, the second another set of atomics.

use anyhow::Result;

use super::{Context, Tally, cargo};

/// The differential test with as many packets as the run asks for, optimised.
pub(super) fn sameness(context: &Context) -> Result<Tally> {
    let mut command = context.cargo();
    command.args(["test", "--release", "-p", "weir-datapath", "--test", "differential"]);
    command.args(["--", "--nocapture"]);
    command.env("WEIR_DIFFERENTIAL_PACKETS", context.differential_packets.to_string());
    cargo::counted(&mut command)
}

/// The model checker over the counters that control and forwarders share.
pub(super) fn model(context: &Context) -> Result<Tally> {
    let mut command = context.cargo();
    command.args(["test", "-p", "weir-datapath", "--lib", "shared::model"]);
    // Its own folder, as everything is built anew for other flags.
    command.arg("--target-dir").arg(context.target().join("loom"));
    command.env("RUSTFLAGS", "--cfg loom");
    cargo::counted(&mut command)
}
