//! The programs of a tier: what loads them, and puts them at the devices of ports.
//!
//! Loading takes milliseconds, which no worker may wait for; so the maps that programs name are
//! shared, and any thread can put a program at a port. Nothing here may read or write an entry.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::keep::{KeptMaps, KeptPlace, TierKeeper};
use super::layout::TAKES_OVER;
use super::patches::Patches;
use super::program::{Entrance, Facts};
use super::{choice, program};
use crate::patch_end::PatchEnd;
use crate::sys::bpf::{Hook, Link, Map, Program, wait_for_frames};

/// The maps of a tier, and their measures.
#[derive(Debug)]
pub(super) struct TierMaps {
    pub(super) entries: Map,
    pub(super) state: Map,
    pub(super) slot_map: Map,
    pub(super) counts: Map,
    /// The TAP devices by which the program at devices hands over.
    pub(super) taps: Map,
    pub(super) at_devices: Mutex<AtDevices>,
    pub(super) cpus: usize,
    pub(super) slots: usize,
    /// Of a tier that outlives the process.
    pub(super) keeper: Option<Arc<TierKeeper>>,
}

/// The program at devices, once it is loaded, and the TAP devices as their map has them.
#[derive(Debug, Default)]
pub(super) struct AtDevices {
    program: Option<Program>,
    taps: BTreeMap<u32, u32>,
}

impl TierMaps {
    fn at_devices(&self) -> MutexGuard<'_, AtDevices> {
        self.at_devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle that puts the program of one tier at ports, from any thread.
#[derive(Debug, Clone)]
pub struct TierPrograms(pub(super) Arc<TierMaps>);

/// The programs at a port's device.
#[derive(Debug)]
pub(super) struct PlacedPrograms {
    /// Of a patch port there is none.
    _link: Option<PlacedLink>,
    /// The decisions of several queues.
    _decisions: Option<(Map, Option<KeptMaps>)>,
    /// The tier whose program it is, the device, and its TAP device.
    tap: Option<(Arc<TierMaps>, u32, u32)>,
    /// The patch port that is received from, and the number of its TAP device.
    patch: Option<(Arc<PatchEnd>, u32)>,
}

/// A program at a device, as long as this is there.
#[derive(Debug)]
struct PlacedLink {
    _link: Option<Link>,
    /// Of a tier that outlives the process.
    _kept: Option<KeptPlace>,
}

impl PlacedLink {
    fn new(keeper: Option<&Arc<TierKeeper>>, program: &Program, device: u32) -> io::Result<Self> {
        Ok(match keeper {
            Some(keeper) => Self { _link: None, _kept: Some(keeper.place(program, device)?) },
            None => Self { _link: Some(program.attach(device)?), _kept: None },
        })
    }
}

impl Drop for PlacedPrograms {
    fn drop(&mut self) {
        if let Some((maps, device, tap)) = &self.tap {
            let mut at_devices = maps.at_devices();
            // The device may have entered anew meanwhile.
            if at_devices.taps.get(device) == Some(tap) {
                at_devices.taps.remove(device);
                // One that is not there has gone before.
                let _ = maps.taps.delete(&device.to_ne_bytes());
            }
        }
        if let Some((end, tap)) = &self.patch {
            end.leave_tier(*tap);
        }
    }
}

impl TierPrograms {
    /// Puts the programs at a device of several queues that hands over to this TAP device; they
    /// come first. Each of the queues is decided about by its tier.
    pub(super) fn place(queues: &[&Self], device: u32, tap: u32) -> io::Result<PlacedPrograms> {
        let (program, decisions) = Self::choose(queues, device, tap)?;
        let keeper = queues.first().and_then(|queue| queue.0.keeper.as_ref());
        let kept = keeper.map(|keeper| keeper.keep_map(&decisions, "queues")).transpose()?;
        let link = Some(PlacedLink::new(keeper, &program, device)?);
        let decisions = Some((decisions, kept));
        Ok(PlacedPrograms { _link: link, _decisions: decisions, tap: None, patch: None })
    }

    fn set_tap(&self, device: u32, tap: u32) -> io::Result<()> {
        self.0.taps.update(&device.to_ne_bytes(), &tap.to_ne_bytes())
    }

    /// Puts the program for all devices of the tier at one: in the place of a ring that receives
    /// from it, which goes on doing so until [`TierPrograms::take_over`], or at once.
    pub(super) fn place_at(
        &self,
        device: u32,
        tap: u32,
        ring: Option<BorrowedFd<'_>>,
    ) -> io::Result<PlacedPrograms> {
        let mut at_devices = self.0.at_devices();
        let AtDevices { program, taps } = &mut *at_devices;
        let another;
        let program = match program.take() {
            // A port that gets another number has it there until it has this one: the kernel takes
            // none twice.
            loaded if taps.contains_key(&device) => {
                *program = loaded;
                another = self.load(device, tap, Entrance::Device)?;
                &another
            }
            Some(loaded) => program.insert(loaded),
            None => program.insert(self.load(device, tap, Entrance::Device)?),
        };
        if let Some(ring) = ring {
            // One of an earlier device of this number, or of the loading.
            let _ = self.0.taps.delete(&device.to_ne_bytes());
            let filter = program::ring_filter(&self.facts(device, tap, Entrance::Device)?);
            Program::load(&filter, Hook::Socket)?.attach_to_socket(ring)?;
        } else {
            self.set_tap(device, tap)?;
        }
        let link = PlacedLink::new(self.0.keeper.as_ref(), program, device).inspect_err(|_| {
            // It goes on as it was, and a ring has all frames.
            if let (None, Some(earlier)) = (ring, taps.get(&device)) {
                let _ = self.set_tap(device, *earlier);
            }
        });
        let link = Some(link?);
        taps.insert(device, tap);
        let tap = Some((Arc::clone(&self.0), device, tap));
        Ok(PlacedPrograms { _link: link, _decisions: None, tap, patch: None })
    }

    /// The program hands the frames of a device over from now on, whose ring gets none any more and
    /// is whole afterwards. It waits for the kernel.
    pub(super) fn take_over(&self, device: u32, tap: u32) -> io::Result<()> {
        let at_devices = self.0.at_devices();
        if at_devices.taps.get(&device) != Some(&tap) {
            // It has gone meanwhile.
            return Ok(());
        }
        self.set_tap(device, tap | TAKES_OVER)?;
        wait_for_frames();
        self.set_tap(device, tap)
    }

    /// Has the program receive what leaves by the other end of a patch port; its frames' device is
    /// the TAP device by which it hands over.
    pub(super) fn place_at_patch(
        &self,
        end: &Arc<PatchEnd>,
        tap: u32,
    ) -> io::Result<PlacedPrograms> {
        end.enter_tier(tap, self.load(tap, tap, Entrance::Patch)?);
        let patch = Some((Arc::clone(end), tap));
        Ok(PlacedPrograms { _link: None, _decisions: None, tap: None, patch })
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
        if entrance == Entrance::Device {
            self.set_tap(device, tap)?;
        }
        let facts = self.facts(device, tap, entrance)?;
        Program::load(&program::decision(&facts), Hook::Ingress)
    }

    /// The facts for which a program is made.
    pub(super) fn facts(&self, device: u32, tap: u32, entrance: Entrance) -> io::Result<Facts> {
        let [next, lost] = Patches::get()?.descriptors();
        let TierMaps { entries, state, slot_map, counts, taps, cpus, slots, keeper, .. } = &*self.0;
        let word = |number: &usize| u32::try_from(*number).unwrap_or(u32::MAX);
        Ok(Facts {
            entries: entries.as_fd().as_raw_fd(),
            state: state.as_fd().as_raw_fd(),
            slot_map: slot_map.as_fd().as_raw_fd(),
            counts: counts.as_fd().as_raw_fd(),
            taps: taps.as_fd().as_raw_fd(),
            cpus: word(cpus),
            slots: word(slots),
            next,
            lost,
            device,
            tap,
            entrance,
            is_kept: keeper.is_some(),
        })
    }
}
