//! The programs of a tier: what loads them, and puts them at the devices of ports.
//!
//! Loading takes milliseconds, which no worker may wait for; so the maps that programs name are
//! shared, and any thread can put a program at a port. Nothing here may read or write an entry.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use super::program;
use crate::sys::bpf::{Hook, Link, Map, Program};

/// The maps of a tier, and their measures.
#[derive(Debug)]
pub(super) struct TierMaps {
    pub(super) entries: Map,
    pub(super) state: Map,
    pub(super) slot_map: Map,
    pub(super) counts: Map,
    pub(super) cpus: usize,
    pub(super) slots: usize,
}

/// A handle that puts the program of one tier at ports, from any thread.
#[derive(Debug, Clone)]
pub struct TierPrograms(pub(super) Arc<TierMaps>);

impl TierPrograms {
    /// Puts the program at a device that hands over to this TAP device; it comes first.
    pub(crate) fn place(&self, device: u32, tap: u32) -> io::Result<[Link; 3]> {
        let guard = |hook| Program::load(&program::guard(), hook)?.attach(tap);
        let (inwards, outwards) = (guard(Hook::Ingress)?, guard(Hook::Egress)?);
        Ok([self.load(device, tap)?.attach(device)?, inwards, outwards])
    }

    pub(super) fn load(&self, device: u32, tap: u32) -> io::Result<Program> {
        let TierMaps { entries, state, slot_map, counts, cpus, slots } = &*self.0;
        let word = |number: &usize| u32::try_from(*number).unwrap_or(u32::MAX);
        let facts = program::Facts {
            entries: entries.as_fd().as_raw_fd(),
            state: state.as_fd().as_raw_fd(),
            slot_map: slot_map.as_fd().as_raw_fd(),
            counts: counts.as_fd().as_raw_fd(),
            cpus: word(cpus),
            slots: word(slots),
            device,
            tap,
        };
        Program::load(&program::decision(&facts), Hook::Ingress)
    }
}
