//! The cargo feature `dpdk`: linted, built into the program, and its ports tested over DPDK's
//! virtual devices.
//!
//! The default build needs no DPDK, so this is a step of its own, which leaves itself out where
//! libdpdk neither is nor may be installed. The tests use no huge pages.

use anyhow::Result;

use super::nextest::{self, Selection};
use super::{Context, Tally, peers};
use crate::shell;

/// Debian's packages that the feature is built with.
const PACKAGES: &[&str] = &["libdpdk-dev", "pkg-config"];

/// Lints everything that the feature changes, runs the contract of ports over DPDK's, and a switch
/// with such ports.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !has_libdpdk(context) {
        if !(context.is_root && context.install) {
            return Ok(Tally::left_out("libdpdk is missing (Debian's package libdpdk-dev)"));
        }
        println!("installing {}", PACKAGES.join(", "));
        peers::apt(context, PACKAGES)?;
    }
    // With all of the workspace, so that dependencies have the features that they have elsewhere.
    let words =
        ["--workspace", "--features", "weir-cli/dpdk", "--test", "ports", "--test", "agent"];
    shell::run(context.cargo().arg("clippy").args(words).args(["--", "-D", "warnings"]))?;
    let words = [&words[..], &["dpdk"]].concat();
    let selection = Selection { profile: "default", words: &words, environment: &[] };
    nextest::run(context, &selection)
}

fn has_libdpdk(context: &Context) -> bool {
    let asked = ["--exists", "libdpdk"];
    shell::capture(context.command("pkg-config").args(asked)).is_ok()
}
