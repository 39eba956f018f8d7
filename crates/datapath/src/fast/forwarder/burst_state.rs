//! The state of one burst in a forwarder: memory that is allocated once and used for every burst.
//!
//! It says nothing about the burst before.

use packet::{FlowKey, Meta, PacketBuf, Shape};

use super::compile::Recording;
use super::matched::MatchedRows;
use super::path::PathStep;
use super::program_cache::ProgramKey;
use crate::fast::classifier::BURST;
use crate::fast::ids::EntryId;

/// A packet that no cache decided about: the tables do.
#[derive(Debug, Default)]
pub(super) struct MissedPacket {
    /// Its number in the burst.
    pub(super) at: usize,
    pub(super) meta: Meta,
    /// The frame with the changes of actions that were applied, once there were any.
    pub(super) changed: Option<PacketBuf>,
    /// Length of that less the length of the frame, in bytes.
    pub(super) len_delta: i32,
    /// The number of actions that its changes count as.
    pub(super) weight: usize,
    /// Whether the result holds for this packet only.
    pub(super) is_uncacheable: bool,
    /// The key of its program.
    pub(super) program_key: ProgramKey,
    /// Whether some entry has an idle timeout, and when the first of them is over.
    pub(super) is_timed: bool,
    pub(super) until: u64,
    /// Whether an entry with a meter was matched.
    pub(super) is_metered: bool,
    /// Whether its way is found by a walk that records it, since an entry resubmits.
    pub(super) is_recorded: bool,
    /// Then the entries that it has matched.
    pub(super) steps: Vec<PathStep>,
}

/// Room for what is found out about a burst.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) shapes: [Shape; BURST],
    pub(super) digests: [u128; BURST],
    /// The packets that no cache decided about.
    pub(super) missed: Vec<MissedPacket>,
    pub(super) keys: Vec<FlowKey>,
    /// The numbers in the burst of the packets that the keys are of, until the key cache has been
    /// asked.
    pub(super) asked: [u8; BURST],
    pub(super) found: [Option<EntryId>; BURST],
    /// Missed packets that wait for each table.
    pub(super) waiting: Vec<u64>,
    /// The entries that the missed packets matched, and the packets' lengths in bytes.
    pub(super) matched: MatchedRows,
    pub(super) lens: [u32; BURST],
    /// The entries that one of them matched.
    pub(super) steps: Vec<PathStep>,
    /// The walk that finds out what one of them matches.
    pub(super) recording: Recording,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            shapes: [Shape::RARE; BURST],
            digests: [0; BURST],
            missed: Vec::new(),
            keys: Vec::new(),
            asked: [0; BURST],
            found: [None; BURST],
            waiting: vec![0; 256],
            matched: MatchedRows::default(),
            lens: [0; BURST],
            steps: Vec::new(),
            recording: Recording::default(),
        }
    }

    /// Lists what one of the missed packets matched.
    pub(super) fn take_steps(&mut self, index: usize) {
        if self.missed[index].is_recorded {
            self.steps.clone_from(&self.missed[index].steps);
        } else {
            self.matched.steps(index, &mut self.steps);
        }
    }
}
