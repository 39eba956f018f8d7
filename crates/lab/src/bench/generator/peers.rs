//! The generators of others beside Weir's: DPDK's testpmd, making packets for a device that takes
//! all of them.
//!
//! Each measurement of ours has one of the peer before or behind it, on the same core, in the order
//! A B B A; the peer is stopped by a signal while it is not measured, since it polls. Pktgen would
//! be another peer; Debian has no package of it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netdev::sys::affinity::allowed_cpus;
use programs::cancel::Cancel;
use programs::held::Held;
use programs::process::Process;
use programs::tools::Tool;
use tempfile::TempDir;

use super::super::measure::Pairs;
use super::super::scratch;
use crate::dut::telemetry::PortTelemetry;
use crate::dut::testpmd::start_sender;
use crate::method::replay::{ForwardingSample, RUN_IN, Window};
use crate::testbed::replay::await_steady_rate;

/// Longest time until its rate is steady.
const STEADY_LIMIT: Duration = Duration::from_secs(20);

/// Mode of testpmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerMode {
    /// Sends one packet again and again.
    Txonly,
    /// Goes through 1,024 flows by their destination address, and makes the checksum of each.
    Flowgen,
}

impl PeerMode {
    fn word(self) -> &'static str {
        match self {
            Self::Txonly => "txonly",
            Self::Flowgen => "flowgen",
        }
    }

    /// Its name in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Txonly => "testpmd txonly",
            Self::Flowgen => "testpmd flowgen",
        }
    }
}

/// A running peer, held still.
#[derive(Debug)]
pub(super) struct Peer {
    mode: PeerMode,
    // Dropped in this order: a stopped process does not end, and the folder is its own.
    held: Option<Held>,
    testpmd: Process,
    telemetry: PortTelemetry,
    _folder: TempDir,
}

/// The peers that were asked for so far; they end with this value.
#[derive(Debug)]
pub(super) struct Peers {
    cores: (usize, usize),
    running: Vec<Peer>,
}

impl Peers {
    /// Peers that will send from `core`, with all else on another core.
    ///
    /// # Errors
    /// testpmd is not installed, or there is no other core.
    pub(super) fn new(core: usize) -> Result<Self> {
        Tool::Testpmd.find()?;
        let cores = allowed_cpus().context("asking for the cores")?;
        let other = cores.iter().find(|other| **other != core);
        let other = other.context("one core is not enough: one sends, one does everything else")?;
        Ok(Self { cores: (*other, core), running: Vec::new() })
    }

    /// The peer of this mode, started where it does not run yet.
    ///
    /// # Errors
    /// testpmd does not start; the run was interrupted.
    pub(super) fn peer(&mut self, mode: PeerMode, cancel: &Cancel) -> Result<&mut Peer> {
        let at = match self.running.iter().position(|peer| peer.mode == mode) {
            Some(at) => at,
            None => {
                let folder = scratch()?;
                let (testpmd, telemetry) =
                    start_sender(mode.word(), self.cores, folder.path(), cancel)?;
                await_steady_rate(|| telemetry.counts(), STEADY_LIMIT, cancel)?;
                let held = Some(Held::hold(testpmd.pid())?);
                self.running.push(Peer { mode, held, testpmd, telemetry, _folder: folder });
                self.running.len() - 1
            }
        };
        Ok(&mut self.running[at])
    }
}

impl Peer {
    /// Measures `ours` in turns with this peer, both in millions of frames a second.
    ///
    /// # Errors
    /// testpmd ends; of `ours`; the run was interrupted.
    pub(super) fn beside(
        &mut self,
        (count, seconds): (usize, f64),
        cancel: &Cancel,
        mut ours: impl FnMut() -> Result<f64>,
    ) -> Result<Pairs> {
        let window = Window { seconds, is_core_time: false };
        let mut pairs = Pairs::default();
        let mut again = 0;
        for round in 0..count {
            let mut theirs = || loop {
                let sample = self.measure(window, cancel)?;
                if !sample.is_stalled || again >= 2 * count {
                    return anyhow::Ok(sample.mpps);
                }
                again += 1;
            };
            let (our_mpps, their_mpps) = if round % 2 == 0 {
                let first = ours()?;
                (first, theirs()?)
            } else {
                let first = theirs()?;
                (ours()?, first)
            };
            ensure!(their_mpps > 0.0, "{} sent nothing", self.mode.name());
            pairs.ours.push(our_mpps);
            pairs.theirs.push(their_mpps);
            cancel.check()?;
        }
        Ok(pairs)
    }

    /// Lets it go on for one measurement.
    fn measure(&mut self, window: Window, cancel: &Cancel) -> Result<ForwardingSample> {
        self.held = None;
        cancel.sleep(RUN_IN)?;
        self.testpmd.check()?;
        let telemetry = &self.telemetry;
        let sample = window.measure(&[self.testpmd.pid()], || telemetry.counts(), cancel)?;
        self.held = Some(Held::hold(self.testpmd.pid())?);
        Ok(sample)
    }
}
