//! The counts of flow entries: a slab that grows in chunks and never moves.
//!
//! Control makes a chunk before the first op that names an entry in it, so a forwarder always finds
//! it. A chunk stays until the datapath ends.

use std::sync::OnceLock;

use openflow::flow::FlowModFlags;

use super::cells::Cell;
use super::sync::{AtomicU64, Ordering};
use crate::fast::ids::EntryId;
use crate::fast::sys::prefetch;
use crate::time::Nanos;

/// Entries in a chunk: 96 KiB, which are allocated in some ten microseconds.
#[cfg(not(feature = "loom"))]
const CHUNK: usize = 4_096;

/// Chunks at most.
#[cfg(not(feature = "loom"))]
const CHUNKS: usize = 8_192;

/// Chunks on a shelf: 3 KiB of places for them.
#[cfg(not(feature = "loom"))]
const SHELF: usize = 128;

/// A model checker looks at every one of them.
#[cfg(feature = "loom")]
const CHUNK: usize = 1;
#[cfg(feature = "loom")]
const CHUNKS: usize = 2;
#[cfg(feature = "loom")]
const SHELF: usize = 1;

/// Entries of one datapath at most.
pub(crate) const MAX_ENTRIES: usize = CHUNK * CHUNKS;

/// Counts of one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Counts {
    /// As statistics show them: all ones where the entry keeps no such count.
    pub(crate) fn shown(self, flags: FlowModFlags) -> Self {
        let has = |flag| flags.contains(flag);
        Self {
            packets: if has(FlowModFlags::NO_PKT_COUNTS) { u64::MAX } else { self.packets },
            bytes: if has(FlowModFlags::NO_BYT_COUNTS) { u64::MAX } else { self.bytes },
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// One entry's counters.
#[derive(Debug, Default)]
struct EntryCell {
    packets: Cell,
    bytes: Cell,
}

/// Counters by entry. When an entry was last used stands apart, as most entries never say it: so
/// four entries' counts lie on one line, and none on two.
#[derive(Debug)]
pub(crate) struct Entries {
    chunks: Chunks<EntryCell>,
    last_used: Chunks<Cell>,
}

/// When packets last taught entries: of those that some have, whichever forwarder they came to.
#[derive(Debug)]
pub(crate) struct TaughtTimes(Chunks<AtomicU64>);

impl TaughtTimes {
    pub(crate) fn new() -> Self {
        Self(Chunks::new())
    }

    /// When a packet last taught the entry; zero if none did.
    #[inline]
    pub(super) fn get(&self, id: EntryId) -> Nanos {
        Nanos(self.0.get(id.index()).map_or(0, |time| time.load(Ordering::Relaxed)))
    }

    /// Notes that a packet has taught the entry.
    pub(super) fn raise(&self, id: EntryId, now: Nanos) {
        if let Some(time) = self.0.make(id.index()) {
            time.fetch_max(now.0, Ordering::Relaxed);
        }
    }

    /// Begins at zero. For control, while no forwarder knows the entry.
    pub(super) fn clear(&self, id: EntryId) {
        if let Some(time) = self.0.get(id.index()) {
            time.store(0, Ordering::Relaxed);
        }
    }
}

/// Chunks of [`CHUNK`] items on shelves of [`SHELF`] chunks, each made when it is needed: a
/// datapath of few entries pays for few, and there may be a thousand of them.
#[derive(Debug)]
struct Chunks<T>(Box<[OnceLock<Shelf<T>>]>);

type Shelf<T> = Box<[OnceLock<Box<[T]>>]>;

impl<T: Default> Chunks<T> {
    fn new() -> Self {
        Self((0..CHUNKS / SHELF).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&T> {
        let shelf = self.0.get(index / CHUNK / SHELF)?.get()?;
        shelf.get(index / CHUNK % SHELF)?.get()?.get(index % CHUNK)
    }

    /// The item, which is made with its chunk where it is missing; `None` beyond the last one.
    fn make(&self, index: usize) -> Option<&T> {
        let shelf = self.0.get(index / CHUNK / SHELF)?;
        let shelf = shelf.get_or_init(|| (0..SHELF).map(|_| OnceLock::new()).collect());
        let chunk = shelf.get(index / CHUNK % SHELF)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| T::default()).collect()).get(index % CHUNK)
    }
}

impl Entries {
    pub(crate) fn new() -> Self {
        Self { chunks: Chunks::new(), last_used: Chunks::new() }
    }

    #[inline]
    fn cell(&self, id: EntryId) -> Option<&EntryCell> {
        self.chunks.get(id.index())
    }

    #[inline]
    fn last_used_cell(&self, id: EntryId) -> Option<&Cell> {
        self.last_used.get(id.index())
    }

    /// Adds packets and bytes. For the one forwarder whose counters these are.
    #[inline]
    pub(crate) fn add(&self, id: EntryId, packets: u64, bytes: u64) {
        if let Some(cell) = self.cell(id) {
            cell.packets.add(packets);
            cell.bytes.add(bytes);
        }
    }

    /// Marks the entry as matched by a packet. Entries with an idle timeout need this at once,
    /// others never. Only the forwarder that owns these counters may call it.
    #[inline]
    pub(crate) fn touch(&self, id: EntryId, now: Nanos) {
        if let Some(cell) = self.last_used_cell(id) {
            cell.raise(now.0);
        }
    }

    /// Asks for an entry's counters, which are to be written in a moment.
    #[inline]
    pub(crate) fn prefetch(&self, id: EntryId) {
        if let Some(cell) = self.cell(id) {
            prefetch(cell);
        }
    }

    /// Packets and bytes.
    pub(super) fn read(&self, id: EntryId) -> Counts {
        self.cell(id).map_or(Counts::default(), |cell| Counts {
            packets: cell.packets.get(),
            bytes: cell.bytes.get(),
        })
    }

    /// When a packet last matched the entry; zero if none did.
    #[inline]
    pub(crate) fn last_used(&self, id: EntryId) -> Nanos {
        Nanos(self.last_used_cell(id).map_or(0, Cell::get))
    }

    /// Begins at zero. For control, while no forwarder knows the entry.
    pub(super) fn clear(&self, id: EntryId, last_used: Nanos) {
        let made = (self.chunks.make(id.index()), self.last_used.make(id.index()));
        if let (Some(cell), Some(used)) = made {
            cell.packets.set(0);
            cell.bytes.set(0);
            used.set(last_used.0);
        }
    }
}
