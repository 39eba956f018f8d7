//! Two rings of frames in shared memory, one per direction, each with one producer and one
//! consumer: the wire of `memory` ports.
//!
//! Each side keeps a private copy of its own index and trusts nothing that the other side wrote: an
//! impossible index is an error, an impossible length costs that frame. Whatever the shared bytes
//! hold, no access leaves them.
//!
//! Sleeping: a consumer that found nothing sets the doorbell's state to `WANTED` and polls once
//! more. A producer that reads `WANTED` after it has published sets `RUNG` and then rings. The
//! consumer sets `WANTED` anew only after it has drained that ring; until then the ring is under
//! way and ends any sleep, also if the producer is preempted between the two steps. A busy ring
//! thus costs no system call on either side, and neither side ever waits for the other.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use packet::{Batch, PacketBuf};

use crate::counters::Counted;
use crate::sys::shm::Mapping;

const MAGIC: u64 = u64::from_be_bytes(*b"weirmem1");
const SLOTS_AT: usize = 8;
const FRAME_MAX_AT: usize = 16;
const HEADER_LEN: usize = 4_096;
const HEAD_AT: usize = 0;
const TAIL_AT: usize = 128;
const DOORBELL_AT: usize = 256;
const SLOT_AREA_AT: usize = 384;
/// States of the doorbell; 0 is idle.
const WANTED: u64 = 1;
const RUNG: u64 = 2;
/// Empty calls after which the doorbell is drained although no ring is due: a ring meant for an
/// earlier consumer would otherwise end every sleep at once.
const EMPTY_CALLS: u32 = 32;
/// In front of a frame stands its length.
const LENGTH_LEN: usize = 8;

/// Size of a ring: its number of frames, and the longest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Frames per direction.
    pub slots: u32,
    /// Bytes of the longest frame.
    pub frame_max: u32,
}

impl Geometry {
    /// The most slots that a ring may have.
    pub const SLOTS_MAX: u32 = 65_536;
    /// The longest frame that a ring may be made for, in bytes.
    pub const FRAME_MAX: u32 = 65_535;

    fn fits(self) -> bool {
        (1..=Self::SLOTS_MAX).contains(&self.slots)
            && (14..=Self::FRAME_MAX).contains(&self.frame_max)
    }

    fn stride(self) -> usize {
        (self.frame_max as usize + LENGTH_LEN).next_multiple_of(64)
    }

    fn direction_len(self) -> usize {
        (SLOT_AREA_AT + self.slots as usize * self.stride()).next_multiple_of(4_096)
    }

    /// Bytes of the whole mapping.
    pub(crate) fn mapping_len(self) -> usize {
        self.mapping_len_of(1)
    }

    /// The same with `lanes` rings each way.
    pub(crate) fn mapping_len_of(self, lanes: usize) -> usize {
        HEADER_LEN + 2 * lanes * self.direction_len()
    }

    /// Writes what [`Geometry::read`] reads.
    pub(crate) fn write(self, mapping: &Mapping) {
        mapping.number(SLOTS_AT).store(self.slots.into(), Ordering::Relaxed);
        mapping.number(FRAME_MAX_AT).store(self.frame_max.into(), Ordering::Relaxed);
        mapping.number(0).store(MAGIC, Ordering::Release);
    }

    /// The geometry in the first 24 bytes of a file, if they are ours and possible.
    pub(crate) fn read(header: &[u8; 24]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = header.get(at..at + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let slots = u32::try_from(number(SLOTS_AT)?).ok()?;
        let frame_max = u32::try_from(number(FRAME_MAX_AT)?).ok()?;
        let geometry = Self { slots, frame_max };
        (number(0)? == MAGIC && geometry.fits()).then_some(geometry)
    }
}

impl Default for Geometry {
    fn default() -> Self {
        // 2,104 + 8 = 33 * 64: strides that are no power of two spread over the cache's sets.
        Self { slots: 1_024, frame_max: 2_104 }
    }
}

/// The other side wrote an impossible index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CorruptIndex {
    /// Place of the index, in bytes from the start of the mapping.
    pub(crate) offset: usize,
}

/// The state that both ends of a direction share.
#[derive(Debug, Clone)]
struct Direction {
    mapping: Arc<Mapping>,
    base: usize,
    geometry: Geometry,
}

impl Direction {
    fn new(mapping: Arc<Mapping>, geometry: Geometry, number: usize) -> Self {
        assert!(geometry.fits(), "a ring of impossible geometry");
        Self { mapping, base: HEADER_LEN + number * geometry.direction_len(), geometry }
    }

    fn slot(&self, index: u64) -> usize {
        // Below `slots`, which fits.
        let n = (index % u64::from(self.geometry.slots)) as usize;
        self.base + SLOT_AREA_AT + n * self.geometry.stride()
    }

    /// Frames between `tail` and `head`, one of which the other side wrote.
    fn used(&self, head: u64, tail: u64, at: usize) -> Result<u64, CorruptIndex> {
        let used = head.wrapping_sub(tail);
        let possible = used <= u64::from(self.geometry.slots);
        if possible { Ok(used) } else { Err(CorruptIndex { offset: self.base + at }) }
    }

    fn load(&self, at: usize) -> u64 {
        self.mapping.number(self.base + at).load(Ordering::Acquire)
    }

    fn store(&self, at: usize, value: u64) {
        self.mapping.number(self.base + at).store(value, Ordering::Release);
    }
}

/// The end that sends.
#[derive(Debug)]
pub(crate) struct Producer {
    ring: Direction,
    head: u64,
}

impl Producer {
    /// Continues at the index in the mapping.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        number: usize,
    ) -> Result<Self, CorruptIndex> {
        let ring = Direction::new(mapping, geometry, number);
        let head = ring.load(HEAD_AT);
        ring.used(head, ring.load(TAIL_AT), HEAD_AT)?;
        Ok(Self { ring, head })
    }

    /// Sends a prefix of `frames`; returns how many were taken, and whether to ring the doorbell.
    pub(crate) fn send(
        &mut self,
        frames: &[PacketBuf],
        counted: &mut Counted,
    ) -> Result<(usize, bool), CorruptIndex> {
        let used = self.ring.used(self.head, self.ring.load(TAIL_AT), TAIL_AT)?;
        let mut free = u64::from(self.ring.geometry.slots) - used;
        let mut taken = 0;
        for frame in frames {
            let len = frame.len();
            if len == 0 || len > self.ring.geometry.frame_max as usize {
                counted.errors += 1;
                taken += 1;
                continue;
            }
            if free == 0 {
                break;
            }
            let slot = self.ring.slot(self.head);
            self.ring.mapping.write(slot, &(len as u64).to_ne_bytes());
            self.ring.mapping.write(slot + LENGTH_LEN, frame.bytes());
            self.head = self.head.wrapping_add(1);
            free -= 1;
            taken += 1;
            counted.frame(len);
        }
        self.ring.store(HEAD_AT, self.head);
        fence(Ordering::SeqCst);
        let wanted = self.ring.load(DOORBELL_AT) == WANTED;
        if wanted {
            self.ring.store(DOORBELL_AT, RUNG);
        }
        Ok((taken, wanted))
    }
}

/// The end that receives.
#[derive(Debug)]
pub(crate) struct Consumer {
    ring: Direction,
    tail: u64,
    empty_calls: u32,
}

impl Consumer {
    /// Continues at the index in the mapping.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        number: usize,
    ) -> Result<Self, CorruptIndex> {
        let ring = Direction::new(mapping, geometry, number);
        let tail = ring.load(TAIL_AT);
        ring.used(ring.load(HEAD_AT), tail, TAIL_AT)?;
        // Nothing is known about an earlier consumer's sleep.
        ring.store(DOORBELL_AT, 0);
        Ok(Self { ring, tail, empty_calls: 0 })
    }

    /// The number of frames that wait.
    pub(crate) fn waiting(&self) -> Result<u64, CorruptIndex> {
        self.ring.used(self.ring.load(HEAD_AT), self.tail, HEAD_AT)
    }

    /// Receives up to `max` frames.
    pub(crate) fn receive(
        &mut self,
        batch: &mut Batch,
        max: usize,
        counted: &mut Counted,
    ) -> Result<usize, CorruptIndex> {
        let mut waiting = self.waiting()?;
        let mut received = 0;
        while waiting > 0 && received < max {
            let slot = self.ring.slot(self.tail);
            let mut length = [0; LENGTH_LEN];
            self.ring.mapping.read(slot, &mut length);
            let len = u64::from_ne_bytes(length);
            if (1..=u64::from(self.ring.geometry.frame_max)).contains(&len) {
                // At most `frame_max`, so it fits.
                let len = len as usize;
                let mut frame = batch.take_spare();
                self.ring.mapping.read(slot + LENGTH_LEN, frame.prepare(len));
                batch.push(frame);
                counted.frame(len);
                received += 1;
            } else {
                counted.errors += 1;
            }
            self.tail = self.tail.wrapping_add(1);
            waiting -= 1;
        }
        self.ring.store(TAIL_AT, self.tail);
        Ok(received)
    }

    /// Asks the producer to ring the doorbell for the next frame, unless that is asked already.
    /// `drain` drains the doorbell and returns whether it was rung. True when frames have arrived
    /// meanwhile: then do not sleep.
    pub(crate) fn request_doorbell(
        &mut self,
        drain: impl FnOnce() -> bool,
    ) -> Result<bool, CorruptIndex> {
        let state = self.ring.load(DOORBELL_AT);
        self.empty_calls = self.empty_calls.wrapping_add(1);
        if state == WANTED && !self.empty_calls.is_multiple_of(EMPTY_CALLS) {
            return Ok(false);
        }
        // A ring that is announced and not yet here will end the sleep.
        if !drain() && (state == WANTED || state == RUNG) {
            return Ok(false);
        }
        self.ring.store(DOORBELL_AT, WANTED);
        fence(Ordering::SeqCst);
        Ok(self.waiting()? > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    const SMALL: Geometry = Geometry { slots: 4, frame_max: 64 };

    fn ends(geometry: Geometry) -> (Arc<Mapping>, Producer, Consumer) {
        let mapping = Arc::new(Mapping::anonymous(geometry.mapping_len()).unwrap());
        let producer = Producer::new(mapping.clone(), geometry, 0).unwrap();
        let consumer = Consumer::new(mapping.clone(), geometry, 0).unwrap();
        (mapping, producer, consumer)
    }

    #[test]
    fn the_bell_is_rung_once_per_sleep() {
        let (_, mut producer, mut consumer) = ends(SMALL);
        let mut counters = Counted::default();
        let frame = [PacketBuf::from_slice(&[1; 20])];
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, false)));
        assert_eq!(consumer.request_doorbell(|| false), Ok(true));
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, true)));
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, false)));
        assert_eq!(consumer.receive(&mut Batch::default(), 9, &mut counters), Ok(3));
        // The producer was held up before it rang: nothing to be done but to sleep.
        assert_eq!(consumer.request_doorbell(|| false), Ok(false));
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, false)));
        // Now it has rung.
        assert_eq!(consumer.request_doorbell(|| true), Ok(true));
        assert_eq!(consumer.receive(&mut Batch::default(), 9, &mut counters), Ok(1));
        assert_eq!(consumer.request_doorbell(|| panic!("no ring is due")), Ok(false));
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, true)));
    }

    #[test]
    fn an_impossible_index_is_an_error_for_both_sides() {
        let (mapping, mut producer, consumer) = ends(SMALL);
        mapping.number(HEADER_LEN + HEAD_AT).store(5, Ordering::Relaxed);
        assert_eq!(consumer.waiting(), Err(CorruptIndex { offset: HEADER_LEN + HEAD_AT }));
        mapping.number(HEADER_LEN + TAIL_AT).store(u64::MAX - 9, Ordering::Relaxed);
        assert!(producer.send(&[], &mut Counted::default()).is_err());
        assert!(Producer::new(mapping.clone(), SMALL, 0).is_err());
        assert!(Consumer::new(mapping, SMALL, 0).is_err());
    }

    proptest! {
        /// Whatever a hostile side writes anywhere, receiving and sending end without a panic.
        #[test]
        fn any_content_is_survived(
            writes in proptest::collection::vec((0_usize..64, any::<u64>()), 1..40),
        ) {
            let (mapping, mut producer, mut consumer) = ends(SMALL);
            let mut counters = Counted::default();
            let frame = [PacketBuf::from_slice(&[1; 20])];
            let mut batch = Batch::default();
            for (place, value) in writes {
                // Small values reach the lengths and indices that are nearly possible.
                let value = if value & 1 == 0 { value >> 56 } else { value };
                mapping.number(HEADER_LEN + place * 16).store(value, Ordering::Relaxed);
                let _ = producer.send(&frame, &mut counters);
                let _ = consumer.receive(&mut batch, 8, &mut counters);
                let _ = consumer.request_doorbell(|| value & 2 == 0);
                for received in batch.frames() {
                    prop_assert!(received.len() <= SMALL.frame_max as usize);
                }
                batch.clear();
            }
        }
    }
}
