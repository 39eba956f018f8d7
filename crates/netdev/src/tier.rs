//! The kernel tier: decisions about frames that a program at the devices' TCX hooks carries out, so
//! that a frame between two kernel ports never comes to this process.
//!
//! The program alone decides about every frame of its device: a packet socket would see the frames
//! too, so the port gives its ring up and receives what the program hands over through a TAP
//! device. GSO frames and checksums stay as they are on both ways. Entries hold in one generation
//! only. [`KernelTier::stop`] ends it and waits for the programs that may have read it, so that no
//! frame is decided, and nothing is counted, by what was before. TAP devices go with the process,
//! and so do programs and maps unless a [`TierKeeper`] keeps them. What entries there are is not
//! decided here.

mod assembler;
mod choice;
mod handover;
mod keep;
mod layout;
mod patches;
mod place;
mod program;
mod programs;
mod rewrite;
mod skb;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use packet::{MaskedRewrite, Shape};
use rustix::time::{ClockId, clock_gettime};

use crate::error::PortError;
use crate::sys::bpf::Map;
use crate::sys::shm::Mapping;
use crate::tier_port::TierPort;

pub use self::handover::{Entering, TierQueues, TierQueuesBeside};
pub use self::keep::{EarlierCounts, KEPT_FOR, KEPT_TIERS, TierKeeper};
pub(crate) use self::layout::PATCH_OUTPUT;
pub use self::layout::{
    BYTES as TIER_BYTES, OUTPUTS_MAX as TIER_OUTPUTS_MAX, OWNERS_MAX as TIER_OWNERS_MAX,
};
pub(crate) use self::patches::{KERNEL_HOPS_MAX, PatchNumber};
pub use self::place::HandoverPlace;
pub use self::programs::TierPrograms;

use self::keep::KeptMaps;
use self::layout::{
    CELL_BYTES, CELL_LEN, CELL_LOST, CELL_PACKETS, CELL_SENT_BYTES, CELL_SENT_PACKETS, CELL_USED,
    ENTRY_GENERATION, ENTRY_LEN, ENTRY_LEN_MAX, ENTRY_OUTPUT, ENTRY_OUTPUTS, ENTRY_PEER,
    ENTRY_SLOT, ENTRY_TOKEN, KEY_LEN, OWNERS_BYTES, OWNERS_COUNT, OWNERS_LEN, OWNERS_LIST,
    OWNERS_MAX, OWNERS_PACKETS, RUNS_HANDED_OVER, SLOT_LEN, SLOT_TOKEN, SLOT_UNSENT, SLOT_UNTIL,
    SLOT_WORDS, STATE_GENERATION, STATE_MASKS, STATE_RUNS, STRAIGHT, UNSENT_BYTES, UNSENT_LEN,
    UNSENT_PACKETS, state_len,
};
use self::programs::TierMaps;

/// Cells of counts that are read at once: 50 ns each where nothing is in the processor's caches.
const CELLS_AT_ONCE: usize = 4_096;

/// Entries that leave the map at once, with each that is made.
const LEAVE_AT_ONCE: usize = 4;

/// The most memory for the cells of all processors: on a machine with many there is room for fewer
/// entries.
const CELLS_BYTES_MAX: usize = 64 << 20;

/// Devices of one tier at most.
const DEVICES_MAX: usize = 4_096;

const FIX: &str = "give the program CAP_BPF, CAP_PERFMON, CAP_NET_RAW and CAP_NET_ADMIN";

/// Bytes of an Ethernet header, which an MTU does not count.
const HEADER_LEN: u32 = 14;

/// Frames that the programs of a tier have got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierFrames {
    /// All of them; a super-frame is one.
    pub seen: u64,
    /// Those that were handed over, whether there was room for them or not, or that the ring of a
    /// device had that was on its way into the tier.
    pub handed_over: u64,
}

/// Key of an entry: the frames of a device, of a shape, with these masked bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TierKey {
    /// Number of the device.
    pub device: u32,
    /// The frames' shape.
    pub shape: Shape,
    /// The first bytes, without those that make no difference.
    pub bytes: [u8; TIER_BYTES],
}

impl TierKey {
    fn encode(&self) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        key[..4].copy_from_slice(&self.device.to_ne_bytes());
        key[4..8].copy_from_slice(&(self.shape.index() as u32).to_ne_bytes());
        key[8..].copy_from_slice(&self.bytes);
        key
    }
}

/// Packets of a wire, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Packets; a GSO frame counts as its segments.
    pub packets: u64,
    /// Bytes of frames without FCS.
    pub bytes: u64,
    /// When the last one came, by [`KernelTier::now_ns`]; zero for an entry that always holds.
    pub last_used_ns: u64,
    /// Packets that were sent on, by each output.
    pub sent_packets: u64,
    /// Their bytes, as they left.
    pub sent_bytes: u64,
    /// Packets that the kernel had no memory to change.
    pub lost: u64,
}

/// The tier of one forwarder: its entries, and the programs at the devices that it receives from.
#[derive(Debug)]
pub struct KernelTier {
    programs: TierPrograms,
    state: Arc<Mapping>,
    slot_words: Mapping,
    counts: Mapping,
    /// Of a tier that outlives the process.
    owners: Option<(Mapping, KeptMaps)>,
    cpus: usize,
    slots: usize,
    /// The last generation that was begun.
    generation: u64,
    /// The last token that was given to an entry.
    token: u64,
    is_running: bool,
    /// Whether a program that runs may still read what was removed or overwritten.
    has_garbage: bool,
    /// Keys of entries that have ended, and leave the map with the next ones that are made: those
    /// of the list that are in the set.
    leaving: HashSet<TierKey>,
    leaving_next: Vec<TierKey>,
}

impl KernelTier {
    /// A tier with room for `slots` entries, stopped; for fewer on a machine of more than some
    /// eighty processors, each of which has counts of its own.
    ///
    /// # Errors
    /// When the kernel refuses maps: for want of a right, of memory, or of BPF.
    pub fn new(slots: usize) -> Result<Self, PortError> {
        Self::make(slots, None)
    }

    /// A tier of the bridge of this name that outlives the process. The name has bytes that a file
    /// of a BPF file system may have in its name.
    ///
    /// # Errors
    /// As [`KernelTier::new`], or nothing can be pinned.
    pub fn kept(slots: usize, keeper: &Arc<TierKeeper>, bridge: &str) -> Result<Self, PortError> {
        Self::make(slots, Some((keeper, bridge)))
    }

    fn make(slots: usize, kept: Option<(&Arc<TierKeeper>, &str)>) -> Result<Self, PortError> {
        let failed = |source| PortError::from_io("making the kernel tier's maps", FIX, source);
        let cpus = possible_cpus().map_err(failed)?;
        let slots = slots.min(CELLS_BYTES_MAX / (CELL_LEN * cpus)).max(1);
        // More than slots: a hash map of the kernel may refuse keys before it is full.
        let entries = Map::hash(KEY_LEN, ENTRY_LEN, 2 * slots).map_err(failed)?;
        let state_map = Map::array(state_len(cpus), 1).map_err(failed)?;
        let state = Arc::new(state_map.map().map_err(failed)?);
        let counts_map = Map::array(CELL_LEN, cpus * slots).map_err(failed)?;
        let counts = counts_map.map().map_err(failed)?;
        let slot_map = Map::array(SLOT_LEN, slots).map_err(failed)?;
        let slot_words = slot_map.map().map_err(failed)?;
        let taps = Map::growing_hash(4, 4, DEVICES_MAX).map_err(failed)?;
        let maps = TierMaps {
            entries,
            state: state_map,
            slot_map,
            counts: counts_map,
            taps,
            at_devices: Mutex::default(),
            cpus,
            slots,
            keeper: kept.map(|(keeper, _)| Arc::clone(keeper)),
        };
        let owners = |(keeper, bridge): (&Arc<TierKeeper>, &str)| {
            let owners = Map::array(OWNERS_LEN, slots)?;
            let parts = [&maps.state, &maps.counts, &owners];
            let pinned = keeper.keep_tier(bridge, parts, (&state, slots))?;
            Ok((owners.map()?, pinned))
        };
        let owners = kept.map(owners).transpose().map_err(failed)?;
        Ok(Self {
            programs: TierPrograms(Arc::new(maps)),
            state,
            slot_words,
            counts,
            owners,
            cpus,
            slots,
            generation: 0,
            token: 0,
            is_running: false,
            has_garbage: false,
            leaving: HashSet::new(),
            leaving_next: Vec::new(),
        })
    }

    /// The number of entries that there is room for.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The handle that puts the tier's program at ports.
    #[must_use]
    pub fn programs(&self) -> &TierPrograms {
        &self.programs
    }

    fn entries(&self) -> &Map {
        &self.programs.0.entries
    }

    /// Whether entries hold.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Begins a generation, with these masks; all entries from before hold no longer.
    pub fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {
        self.stop();
        for (shape, mask) in masks.iter().enumerate() {
            self.state.write(STATE_MASKS + TIER_BYTES * shape, mask);
        }
        self.generation += 1;
        self.is_running = true;
        // The masks are visible before the generation is.
        self.state.number(STATE_GENERATION).store(self.generation, Ordering::Release);
    }

    /// Ends the generation. When this returns, no program decides or counts by an entry any more.
    pub fn stop(&mut self) {
        if std::mem::take(&mut self.is_running) {
            self.state.number(STATE_GENERATION).store(0, Ordering::SeqCst);
            self.wait_for_programs();
        }
    }

    /// The frames that the programs have got so far.
    #[must_use]
    pub fn frames(&self) -> TierFrames {
        let mut frames = TierFrames::default();
        for cpu in 0..self.cpus {
            let number = |at| self.state.number(STATE_RUNS + 64 * cpu + at).load(Ordering::Relaxed);
            // What began, and did not end yet, may be handed over already.
            frames.seen += u64::div_ceil(number(0), 2);
            frames.handed_over += number(RUNS_HANDED_OVER);
        }
        frames
    }

    /// Waits for the programs that run at this moment: a microsecond, or as long as a processor
    /// that runs one has been taken away.
    fn wait_for_programs(&mut self) {
        self.has_garbage = false;
        wait_for_runs(&self.state, self.cpus);
    }

    /// Makes an entry in a slot: frames go out by all of these ports, rewritten, or nowhere if
    /// there is none. A patch port is the last of them, and its other end in a tier. No entry may
    /// hold in the slot.
    /// It holds until that time by [`KernelTier::now_ns`], `u64::MAX` for always, but no longer
    /// than the generation.
    ///
    /// # Errors
    /// When there are more outputs, or words to rewrite, than an entry has room for, the kernel
    /// does not go on at a patch port, or its map refuses.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn put(
        &mut self,
        slot: u32,
        key: &TierKey,
        outputs: &[&TierPort],
        (until_ns, rewrite): (u64, &MaskedRewrite),
    ) -> io::Result<()> {
        let rewrite = rewrite::encode(rewrite);
        let Some(rewrite) = rewrite.filter(|_| outputs.len() <= TIER_OUTPUTS_MAX) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let others = outputs.split_last().map_or(&[][..], |(_, others)| others);
        if others.iter().any(|port| port.is_patch()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut entry = [0; ENTRY_LEN];
        let mut put = |at: usize, value: &[u8]| entry[at..at + value.len()].copy_from_slice(value);
        let len_max = outputs.iter().map(|port| port.mtu().saturating_add(HEADER_LEN)).min();
        put(ENTRY_GENERATION, &self.generation.to_ne_bytes());
        put(ENTRY_TOKEN, &(self.token + 1).to_ne_bytes());
        put(ENTRY_SLOT, &slot.to_ne_bytes());
        put(ENTRY_OUTPUTS, &(outputs.len() as u32).to_ne_bytes());
        put(ENTRY_LEN_MAX, &len_max.unwrap_or(u32::MAX).to_ne_bytes());
        for (nth, port) in outputs.iter().enumerate() {
            let output = port.output().ok_or(io::ErrorKind::NotFound)?;
            put(ENTRY_OUTPUT + 4 * nth, &output.to_ne_bytes());
        }
        if let [only] = outputs
            && let Some(peer) = only.far_end()
        {
            put(ENTRY_PEER, &straight_to(peer).to_ne_bytes());
        }
        self.leaving.remove(key);
        self.take_leaving();
        // The map gives the memory of removed entries to new ones while programs may read it.
        if self.has_garbage {
            self.wait_for_programs();
        }
        self.entries().update(&key.encode(), &entry)?;
        self.has_garbage = true;
        self.token += 1;
        self.slot_words.write(SLOT_LEN * slot as usize + SLOT_WORDS, &rewrite);
        self.extend(slot, until_ns);
        self.slot_word(slot, SLOT_TOKEN).store(self.token, Ordering::Release);
        Ok(())
    }

    /// The entry of a slot holds until then.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn extend(&self, slot: u32, until_ns: u64) {
        self.slot_word(slot, SLOT_UNTIL).store(until_ns, Ordering::Release);
    }

    /// Ends the entries of slots. When this returns, no program decides or counts by them any more.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn end(&mut self, slots: &[u32]) {
        for slot in slots {
            self.slot_word(*slot, SLOT_TOKEN).store(0, Ordering::SeqCst);
        }
        if !slots.is_empty() {
            self.wait_for_programs();
        }
    }

    fn slot_word(&self, slot: u32, at: usize) -> &AtomicU64 {
        assert!((slot as usize) < self.slots, "a slot beyond the last");
        self.slot_words.number(SLOT_LEN * slot as usize + at)
    }

    /// The time by which entries hold.
    #[must_use]
    pub fn now_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        number(now.tv_sec) * 1_000_000_000 + number(now.tv_nsec)
    }

    /// Removes an entry. When this returns, no program counts by it any more.
    pub fn remove(&mut self, key: &TierKey) {
        // One that is not there is no entry either.
        let _ = self.entries().delete(&key.encode());
        self.wait_for_programs();
    }

    /// Entries of these keys, which have ended, leave the map with those that are made next: each
    /// costs a system call.
    pub fn leave(&mut self, keys: impl IntoIterator<Item = TierKey>) {
        for key in keys {
            if self.leaving.insert(key) {
                self.leaving_next.push(key);
            }
        }
    }

    fn take_leaving(&mut self) {
        for _ in 0..LEAVE_AT_ONCE {
            let Some(key) = self.leaving_next.pop() else { break };
            if !self.leaving.remove(&key) {
                continue;
            }
            // One that is not there is no entry either.
            let _ = self.entries().delete(&key.encode());
            self.has_garbage = true;
        }
    }

    /// The number of slots whose counts are read in a fraction of a millisecond.
    #[must_use]
    pub fn slots_at_once(&self) -> usize {
        (CELLS_AT_ONCE / self.cpus).max(1)
    }

    /// Whether the process that comes after this one reads whose counts those of a slot are.
    #[must_use]
    pub fn keeps_owners(&self) -> bool {
        self.owners.is_some()
    }

    /// The counts of a slot are those of these owners from now on; whether there is room for all.
    /// No entry may hold in the slot.
    ///
    /// # Panics
    /// When there is no such slot.
    #[must_use]
    pub fn note_owners(&self, slot: u32, owners: &[u64]) -> bool {
        let Some((mapping, _)) = &self.owners else { return true };
        let number = |at| mapping.number(OWNERS_LEN * slot as usize + at);
        // The process may be killed between any two of these.
        number(OWNERS_COUNT).store(0, Ordering::Release);
        if owners.len() > OWNERS_MAX {
            return false;
        }
        let TierCounts { packets, bytes, .. } = self.counts(slot);
        self.note_credited(slot, packets, bytes);
        for (nth, owner) in owners.iter().enumerate() {
            number(OWNERS_LIST + 8 * nth).store(*owner, Ordering::Relaxed);
        }
        number(OWNERS_COUNT).store(owners.len() as u64, Ordering::Release);
        true
    }

    /// The owners of a slot have got these counts, of all since the tier was made.
    ///
    /// # Panics
    /// When there is no such slot.
    pub fn note_credited(&self, slot: u32, packets: u64, bytes: u64) {
        if let Some((mapping, _)) = &self.owners {
            let number = |at| mapping.number(OWNERS_LEN * slot as usize + at);
            number(OWNERS_PACKETS).store(packets, Ordering::Relaxed);
            number(OWNERS_BYTES).store(bytes, Ordering::Relaxed);
        }
    }

    /// Packets, and their bytes, that did not come to an output of a slot, by its place in the
    /// entry, since the last call. Of the last output nothing is known.
    ///
    /// # Panics
    /// When there is no such slot.
    #[must_use]
    pub fn take_unsent(&self, slot: u32, output: usize) -> (u64, u64) {
        if output + 1 >= TIER_OUTPUTS_MAX {
            return (0, 0);
        }
        let at = SLOT_UNSENT + UNSENT_LEN * output;
        let take = |at| {
            let count = self.slot_word(slot, at);
            // Nothing is written to where nobody else writes.
            if count.load(Ordering::Relaxed) == 0 { 0 } else { count.swap(0, Ordering::Relaxed) }
        };
        (take(at + UNSENT_PACKETS), take(at + UNSENT_BYTES))
    }

    /// Counts of a slot since the tier was made.
    ///
    /// # Panics
    /// When there is no such slot.
    #[must_use]
    pub fn counts(&self, slot: u32) -> TierCounts {
        assert!((slot as usize) < self.slots, "a slot beyond the last");
        (0..self.cpus).fold(TierCounts::default(), |sum, cpu| {
            let cell = CELL_LEN * (self.slots * cpu + slot as usize);
            let read = |at| self.counts.number(at).load(Ordering::Relaxed);
            TierCounts {
                packets: sum.packets.wrapping_add(read(cell + CELL_PACKETS)),
                bytes: sum.bytes.wrapping_add(read(cell + CELL_BYTES)),
                last_used_ns: sum.last_used_ns.max(read(cell + CELL_USED)),
                sent_packets: sum.sent_packets.wrapping_add(read(cell + CELL_SENT_PACKETS)),
                sent_bytes: sum.sent_bytes.wrapping_add(read(cell + CELL_SENT_BYTES)),
                lost: sum.lost.wrapping_add(read(cell + CELL_LOST)),
            }
        })
    }
}

/// Waits for the programs of a state that run at this moment.
fn wait_for_runs(state: &Mapping, cpus: usize) {
    fence(Ordering::SeqCst);
    for cpu in 0..cpus {
        let runs = state.number(STATE_RUNS + 64 * cpu);
        let begun = runs.load(Ordering::SeqCst);
        if begun.is_multiple_of(2) {
            continue;
        }
        let mut turns = 0_u32;
        while runs.load(Ordering::SeqCst) == begun {
            turns += 1;
            if turns.is_multiple_of(256) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// The destination of frames as the program reads it, and the bit that says that they go straight.
fn straight_to([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    let (low, high) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
    u64::from(low) | u64::from(high) << 32 | 1 << STRAIGHT
}

/// The number of processors that there may ever be.
fn possible_cpus() -> io::Result<usize> {
    let text = files::read_text(Path::new("/sys/devices/system/cpu/possible"), 4_096)
        .map_err(io::Error::other)?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("possible processors: {text:?}"))
    })
}

#[cfg(test)]
mod tests;
