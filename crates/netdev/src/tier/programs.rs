//! The programs of a tier: what loads them, and puts them at the devices of ports.
//!
//! Loading takes milliseconds, which no worker may wait for; so the maps that programs name are
//! shared, and any thread can put a program at a port. Nothing here may read or write an entry.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use super::patches::Patches;
use super::program::Entrance;
use super::{choice, program};
use crate::patch_end::PatchEnd;
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

/// The programs at a port's device and at the TAP device by which they hand over.
#[derive(Debug)]
pub(super) struct PlacedPrograms {
    _links: Vec<Link>,
    /// The decisions of several queues.
    _decisions: Option<Map>,
    /// The patch port that is received from, and the number of its TAP device.
    patch: Option<(Arc<PatchEnd>, u32)>,
}

impl Drop for PlacedPrograms {
    fn drop(&mut self) {
        if let Some((end, tap)) = &self.patch {
            end.leave_tier(*tap);
        }
    }
}

/// The programs of a TAP device, which let no frame pass.
fn guards(tap: u32) -> io::Result<Vec<Link>> {
    let guard = |hook| Program::load(&program::guard(), hook)?.attach(tap);
    Ok(vec![guard(Hook::Ingress)?, guard(Hook::Egress)?])
}

impl TierPrograms {
    /// Puts the programs at a device that hands over to this TAP device; they come first. Each of
    /// the queues is decided about by its tier.
    pub(super) fn place(queues: &[&Self], device: u32, tap: u32) -> io::Result<PlacedPrograms> {
        let mut links = guards(tap)?;
        let (program, decisions) = match queues {
            [only] => (only.load(device, tap, Entrance::Device)?, None),
            _ => Self::choose(queues, device, tap).map(|(program, map)| (program, Some(map)))?,
        };
        links.push(program.attach(device)?);
        Ok(PlacedPrograms { _links: links, _decisions: decisions, patch: None })
    }

    /// Has the program receive what leaves by the other end of a patch port; its frames' device is
    /// the TAP device by which it hands over.
    pub(super) fn place_at_patch(
        &self,
        end: &Arc<PatchEnd>,
        tap: u32,
    ) -> io::Result<PlacedPrograms> {
        let links = guards(tap)?;
        end.enter_tier(tap, self.load(tap, tap, Entrance::Patch)?);
        let patch = Some((Arc::clone(end), tap));
        Ok(PlacedPrograms { _links: links, _decisions: None, patch })
    }

    /// The program that chooses one of several queues, and their decisions.
    pub(super) fn choose(queues: &[&Self], device: u32, tap: u32) -> io::Result<(Program, Map)> {
        // Queues of one worker have one tier, and so one program.
        let mut programs: Vec<(&Self, Program)> = Vec::new();
        for queue in queues {
            if !programs.iter().any(|(tier, _)| tier.is(queue)) {
                programs.push((*queue, queue.load(device, tap, Entrance::Queues)?));
            }
        }
        let of = |queue: &&Self| programs.iter().find(|(tier, _)| tier.is(queue));
        let decisions: Vec<&Program> =
            queues.iter().filter_map(of).map(|(_, program)| program).collect();
        let count = u32::try_from(decisions.len()).unwrap_or(u32::MAX);
        let decisions = Map::programs(&decisions)?;
        let choice = choice::choice(decisions.as_fd().as_raw_fd(), count, tap);
        Ok((Program::load(&choice, Hook::Ingress)?, decisions))
    }

    /// Whether nobody but the tier itself has them.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn load(&self, device: u32, tap: u32, entrance: Entrance) -> io::Result<Program> {
        let [next, lost] = Patches::get()?.descriptors();
        let TierMaps { entries, state, slot_map, counts, cpus, slots } = &*self.0;
        let word = |number: &usize| u32::try_from(*number).unwrap_or(u32::MAX);
        let facts = program::Facts {
            entries: entries.as_fd().as_raw_fd(),
            state: state.as_fd().as_raw_fd(),
            slot_map: slot_map.as_fd().as_raw_fd(),
            counts: counts.as_fd().as_raw_fd(),
            cpus: word(cpus),
            slots: word(slots),
            next,
            lost,
            device,
            tap,
            entrance,
        };
        Program::load(&program::decision(&facts), Hook::Ingress)
    }
}
