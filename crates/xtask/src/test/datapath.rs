//! Proofs of the fast datapath beside its tests: that it is the reference, over many random
//! packets, and that its counters are published in order.
//!
//! The first needs speed, the second another set of atomics.

use anyhow::Result;

use super::nextest::{self, Selection};
use super::{Context, Tally, cargo};

/// The differential test with as many packets as the run asks for, optimised.
pub(super) fn sameness(context: &Context) -> Result<Tally> {
    let packets = context.differential_packets.to_string();
    let words = ["--cargo-profile", cargo::RELEASE, "--workspace", "--test", "differential"];
    let environment = [("WEIR_DIFFERENTIAL_PACKETS", packets)];
    nextest::run(context, &Selection { profile: "soak", words: &words, environment: &environment })
}

/// The model checker over the counters that control and forwarders share.
pub(super) fn model(context: &Context) -> Result<Tally> {
    let words = ["-p", "weir-datapath", "--lib", "--features", "loom", "shared::model"];
    nextest::run(context, &Selection { profile: "default", words: &words, environment: &[] })
}
