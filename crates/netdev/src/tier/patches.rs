//! Patch ports in the kernel tier: the way of a frame from the program of one bridge to that of the
//! next.
//!
//! Each end of a wire has a number. Under it stands the program that receives at the other end, and
//! a decision that sends by the end goes on at that program; what finds none there is counted under
//! the number, as an end without a peer counts it. A program must have counted and left its own
//! tier's entries before it goes on: nothing waits for it any more then.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::sys::bpf::{Map, Program};
use crate::sys::shm::Mapping;

/// Ends that have a number at one time; a power of two. Frames by others are the worker's.
pub(super) const ENDS_MAX: usize = 4_096;

/// Counts of an end: packets, and their bytes.
pub(super) const LOST_PACKETS: i32 = 0;
pub(super) const LOST_BYTES: i32 = 8;
pub(super) const LOST_LEN: usize = 16;
pub(super) const LOST_SHIFT: i32 = LOST_LEN.trailing_zeros() as i32;

/// The most patch ports that a frame passes in the kernel; then it is handed over.
pub(crate) const KERNEL_HOPS_MAX: u8 = 8;

/// The maps, which all tiers of the process have in common.
#[derive(Debug)]
pub(super) struct Patches {
    next: Map,
    lost: Map,
    lost_at: Mapping,
}

static PATCHES: OnceLock<Patches> = OnceLock::new();

impl Patches {
    /// The maps, which are made for the first tier.
    pub(super) fn get() -> io::Result<&'static Self> {
        if let Some(made) = PATCHES.get() {
            return Ok(made);
        }
        let next = Map::program_array(ENDS_MAX)?;
        let lost = Map::array(LOST_LEN * ENDS_MAX, 1)?;
        let lost_at = lost.map()?;
        Ok(PATCHES.get_or_init(|| Self { next, lost, lost_at }))
    }

    /// The descriptors of the programs and of the counts.
    pub(super) fn descriptors(&self) -> [i32; 2] {
        [&self.next, &self.lost].map(|map| map.as_fd().as_raw_fd())
    }
}

/// The numbers that are taken, and the lowest that was never.
#[derive(Debug, Default)]
struct Numbers {
    free: Vec<u32>,
    next: u32,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { free: Vec::new(), next: 0 });

/// The number of an end, for as long as it is open.
#[derive(Debug)]
pub(crate) struct PatchNumber {
    number: u32,
    /// The counts of ends that had the number before.
    before: [u64; 2],
}

impl PatchNumber {
    /// A free number; none while too many ends are open.
    pub(crate) fn take() -> Option<Self> {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.free.pop().or_else(|| {
            let next = numbers.next;
            numbers.next += u32::from((next as usize) < ENDS_MAX);
            ((next as usize) < ENDS_MAX).then_some(next)
        })?;
        let before = counted(number);
        Some(Self { number, before })
    }

    pub(crate) fn get(&self) -> u32 {
        self.number
    }

    /// Packets, and their bytes, that the kernel has counted as sent by the end and that found no
    /// program at the other one.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let [packets, bytes] = counted(self.number);
        let [packets_before, bytes_before] = self.before;
        (packets.wrapping_sub(packets_before), bytes.wrapping_sub(bytes_before))
    }

    /// Frames that leave by the end go on at this program, or nowhere; whether they go on.
    pub(crate) fn set_next(&self, program: Option<&Program>) -> bool {
        let Some(patches) = PATCHES.get() else { return false };
        let key = self.number.to_ne_bytes();
        let set = match program {
            Some(program) => patches.next.put_program(&key, program),
            None => patches.next.delete(&key),
        };
        // Where there was none nothing is to be taken away.
        if let (Err(error), Some(_)) = (&set, program) {
            tracing::debug!(%error, "a patch port goes on in the worker");
        }
        set.is_ok() && program.is_some()
    }
}

impl Drop for PatchNumber {
    fn drop(&mut self) {
        self.set_next(None);
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.free.push(self.number);
    }
}

fn counted(number: u32) -> [u64; 2] {
    let Some(patches) = PATCHES.get() else { return [0; 2] };
    let at = LOST_LEN * number as usize;
    [LOST_PACKETS, LOST_BYTES]
        .map(|count| patches.lost_at.number(at + count as usize).load(Ordering::Relaxed))
}
