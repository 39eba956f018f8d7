//! Two rings of frames in shared memory, one per direction, each with one producer and one
//! consumer: the wire of `memory` ports.
//!
//! Each side keeps its own index to itself and believes nothing that the other side wrote: an index
//! that is impossible is an error, a length that is impossible costs that frame. Whatever stands in
//! the shared bytes, nothing outside them is touched.
//!
//! Sleeping: a consumer that found nothing sets `wanted` and looks once more. A producer that finds
//! `wanted` set after it has published rings the bell and then clears it, in this order: so when
//! the consumer sees it cleared, the ring of the bell is there to be drained, and only the consumer
//! sets and only the producer clears. A busy ring thus costs no system call on either side.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use packet::{Batch, PacketBuf};

use crate::port::PortCounters;
use crate::sys::shm::Mapping;

const MAGIC: u64 = u64::from_be_bytes(*b"weirmem1");
const SLOTS_AT: usize = 8;
const FRAME_MAX_AT: usize = 16;
const HEADER_LEN: usize = 4_096;
const HEAD_AT: usize = 0;
const TAIL_AT: usize = 128;
const WANTED_AT: usize = 256;
const SLOT_AREA_AT: usize = 384;
/// In front of a frame stands its length.
const LENGTH_LEN: usize = 8;

/// How many frames a ring holds, and how long a frame may be.
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
        HEADER_LEN + 2 * self.direction_len()
    }

    /// Writes what [`Geometry::read`] reads.
    pub(crate) fn write(self, mapping: &Mapping) {
        mapping.number(SLOTS_AT).store(self.slots.into(), Ordering::Relaxed);
        mapping.number(FRAME_MAX_AT).store(self.frame_max.into(), Ordering::Relaxed);
        mapping.number(0).store(MAGIC, Ordering::Release);
    }

    /// The geometry that the first 24 bytes of a file tell, if they are ours and possible.
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

/// The other side wrote an index that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// Where, in bytes from the start of the mapping.
    pub(crate) offset: usize,
}

/// What both ends of a direction know.
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

    /// How many frames stand between `tail` and `head`; one of the two came from the other side.
    fn used(&self, head: u64, tail: u64, at: usize) -> Result<u64, Corrupt> {
        let used = head.wrapping_sub(tail);
        let possible = used <= u64::from(self.geometry.slots);
        if possible { Ok(used) } else { Err(Corrupt { offset: self.base + at }) }
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
    /// Goes on where the index in the mapping stands.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        number: usize,
    ) -> Result<Self, Corrupt> {
        let ring = Direction::new(mapping, geometry, number);
        let head = ring.load(HEAD_AT);
        ring.used(head, ring.load(TAIL_AT), HEAD_AT)?;
        Ok(Self { ring, head })
    }

    /// Sends a prefix of `frames`; returns how many were taken and whether the bell must be rung,
    /// after which [`Producer::rung`] must be called.
    pub(crate) fn send(
        &mut self,
        frames: &[PacketBuf],
        counters: &mut PortCounters,
    ) -> Result<(usize, bool), Corrupt> {
        let used = self.ring.used(self.head, self.ring.load(TAIL_AT), TAIL_AT)?;
        let mut free = u64::from(self.ring.geometry.slots) - used;
        let mut taken = 0;
        for frame in frames {
            let len = frame.len();
            if len == 0 || len > self.ring.geometry.frame_max as usize {
                counters.tx_errors += 1;
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
            counters.count_tx(len);
        }
        self.ring.store(HEAD_AT, self.head);
        fence(Ordering::SeqCst);
        Ok((taken, self.ring.load(WANTED_AT) == 1))
    }

    /// To be called after the bell was rung.
    pub(crate) fn rung(&mut self) {
        self.ring.store(WANTED_AT, 0);
    }
}

/// The end that receives.
#[derive(Debug)]
pub(crate) struct Consumer {
    ring: Direction,
    tail: u64,
    waiting: bool,
}

impl Consumer {
    /// Goes on where the index in the mapping stands.
    pub(crate) fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        number: usize,
    ) -> Result<Self, Corrupt> {
        let ring = Direction::new(mapping, geometry, number);
        let tail = ring.load(TAIL_AT);
        ring.used(ring.load(HEAD_AT), tail, TAIL_AT)?;
        // One that was here before us may have left the wish set.
        let waiting = ring.load(WANTED_AT) == 1;
        Ok(Self { ring, tail, waiting })
    }

    /// How many frames wait.
    pub(crate) fn waiting(&self) -> Result<u64, Corrupt> {
        self.ring.used(self.ring.load(HEAD_AT), self.tail, HEAD_AT)
    }

    /// Receives up to `max` frames.
    pub(crate) fn receive(
        &mut self,
        batch: &mut Batch,
        max: usize,
        counters: &mut PortCounters,
    ) -> Result<usize, Corrupt> {
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
                counters.count_rx(len);
                received += 1;
            } else {
                counters.rx_errors += 1;
            }
            self.tail = self.tail.wrapping_add(1);
            waiting -= 1;
        }
        self.ring.store(TAIL_AT, self.tail);
        Ok(received)
    }

    /// Makes known that the bell should be rung for the next frame. `drain` takes back the last
    /// ring of the bell. True when frames have come meanwhile, and there is no cause to sleep.
    pub(crate) fn want(&mut self, drain: impl FnOnce()) -> Result<bool, Corrupt> {
        if self.waiting {
            if self.ring.load(WANTED_AT) == 1 {
                return Ok(false);
            }
            drain();
        }
        self.waiting = true;
        self.ring.store(WANTED_AT, 1);
        fence(Ordering::SeqCst);
        Ok(self.waiting()? > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: Geometry = Geometry { slots: 4, frame_max: 64 };

    fn ends(geometry: Geometry) -> (Arc<Mapping>, Producer, Consumer) {
        let mapping = Arc::new(Mapping::anonymous(geometry.mapping_len()).unwrap());
        let producer = Producer::new(mapping.clone(), geometry, 0).unwrap();
        let consumer = Consumer::new(mapping.clone(), geometry, 0).unwrap();
        (mapping, producer, consumer)
    }

    #[test]
    fn the_bell_is_wanted_once_per_sleep() {
        let (_, mut producer, mut consumer) = ends(SMALL);
        let mut counters = PortCounters::default();
        let frame = [PacketBuf::from_slice(&[1; 20])];
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, false)));
        assert_eq!(consumer.want(|| panic!("not rung")), Ok(true));
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, true)));
        producer.rung();
        assert_eq!(producer.send(&frame, &mut counters), Ok((1, false)));
        let mut drained = 0;
        assert_eq!(consumer.want(|| drained += 1), Ok(true));
        assert_eq!(drained, 1);
        assert_eq!(consumer.receive(&mut Batch::default(), 9, &mut counters), Ok(3));
        assert_eq!(consumer.want(|| panic!("not rung")), Ok(false));
    }

    #[test]
    fn an_impossible_index_is_an_error_for_both_sides() {
        let (mapping, mut producer, consumer) = ends(SMALL);
        mapping.number(HEADER_LEN + HEAD_AT).store(5, Ordering::Relaxed);
        assert_eq!(consumer.waiting(), Err(Corrupt { offset: HEADER_LEN + HEAD_AT }));
        mapping.number(HEADER_LEN + TAIL_AT).store(u64::MAX - 9, Ordering::Relaxed);
        assert!(producer.send(&[], &mut PortCounters::default()).is_err());
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
            let mut counters = PortCounters::default();
            let frame = [PacketBuf::from_slice(&[1; 20])];
            let mut batch = Batch::default();
            for (place, value) in writes {
                // Small values reach the lengths and indices that are nearly possible.
                let value = if value & 1 == 0 { value >> 56 } else { value };
                mapping.number(HEADER_LEN + place * 16).store(value, Ordering::Relaxed);
                let _ = producer.send(&frame, &mut counters);
                let _ = consumer.receive(&mut batch, 8, &mut counters);
                let _ = consumer.want(|| {});
                for received in batch.frames() {
                    prop_assert!(received.len() <= SMALL.frame_max as usize);
                }
                batch.clear();
            }
        }
    }
}
