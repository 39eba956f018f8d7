//! The buffer a frame lives in, and the batch that carries many of them.
//!
//! A `PacketBuf` keeps room in front of the frame, so that pushing a tag or a label moves no
//! payload. Its memory is its own, or external memory that is returned to its driver when the
//! buffer is dropped; users do not see the difference. It must never interpret the bytes that it
//! holds: views and extraction do that.

mod memory;

pub use memory::{ExternalBuf, ExternalOwner};

use memory::{BufMemory, LINE};

use crate::offload::Offload;

/// Bytes kept free in front of a received frame: room for two VLAN tags, a PBB header and several
/// MPLS labels before a push has to move the frame.
pub const HEADROOM: usize = 128;

/// The room a pooled buffer has for one frame: a jumbo frame of 9,000 bytes with two tags fits.
pub const FRAME_CAPACITY: usize = 9_216;

/// A piece of a frame that is copied at once; see [`PacketBuf::assign_blocks`].
pub type Block = [u8; LINE];

/// One frame with room in front of it: a handle of 32 bytes. Lengths are in bytes and never include
/// the FCS.
#[repr(transparent)]
pub struct PacketBuf {
    memory: BufMemory,
}

impl PacketBuf {
    /// A copy of `frame` with [`HEADROOM`] in front.
    #[must_use]
    pub fn from_slice(frame: &[u8]) -> Self {
        let mut buf = Self::default();
        buf.assign(frame);
        buf
    }

    /// The external buffer, if it is this owner's, who releases it from now on.
    ///
    /// # Errors
    /// Memory of its own, or another owner's: the buffer as it was.
    #[inline]
    pub fn into_external(self, owner: &'static ExternalOwner) -> Result<ExternalBuf, Self> {
        self.memory.into_external(owner).map_err(|memory| Self { memory })
    }

    /// Whether the memory is this owner's.
    #[must_use]
    #[inline]
    pub fn is_external(&self, owner: &'static ExternalOwner) -> bool {
        self.memory.is_external(owner)
    }

    /// Whether the memory is the buffer's own, so that it is worth keeping for another frame.
    #[must_use]
    #[inline]
    pub fn is_own(&self) -> bool {
        self.memory.is_own()
    }

    /// Whether a pool keeps the buffer among the usual ones.
    #[inline]
    fn is_usual(&self) -> bool {
        BufMemory::all_own_below(std::slice::from_ref(self), USUAL_BELOW)
    }

    /// Replaces the frame, keeping the allocation.
    #[inline]
    pub fn assign(&mut self, frame: &[u8]) {
        self.prepare(frame.len()).copy_from_slice(frame);
    }

    /// Replaces the frame by the first `len` bytes of `blocks`, keeping the allocation. Whole
    /// blocks of a known size are copied without asking for the length first.
    ///
    /// # Panics
    /// When the blocks are shorter than `len`.
    #[inline]
    pub fn assign_blocks(&mut self, blocks: &[Block], len: usize) {
        assert!(len <= blocks.len() * LINE, "{len} bytes in {} blocks", blocks.len());
        if !self.copy_blocks(HEADROOM, blocks, len) {
            self.assign_elsewhere(&blocks.as_flattened()[..len]);
        }
    }

    /// As [`PacketBuf::assign`], out of the way of loops that nearly never need it.
    #[cold]
    #[inline(never)]
    fn assign_elsewhere(&mut self, frame: &[u8]) {
        self.assign(frame);
    }

    /// Makes room for a frame of `len` bytes, whose content is not specified, and returns it to be
    /// written. For receive calls that write into a buffer; finish with [`PacketBuf::truncate`].
    #[inline]
    pub fn prepare(&mut self, len: usize) -> &mut [u8] {
        if !self.memory.has_clean_room(HEADROOM + len) {
            self.make_room(HEADROOM + len);
        }
        self.memory.place(HEADROOM, len);
        self.memory.bytes_mut()
    }

    /// Makes clean room: the offload was that of the frame before.
    #[cold]
    fn make_room(&mut self, room: usize) {
        if !self.memory.set_offload(None) || self.memory.room() < room {
            self.memory = BufMemory::with_room(room);
        }
    }

    /// Work left to do to the frame before a wire carries it.
    #[must_use]
    pub fn offload(&self) -> Option<Offload> {
        self.memory.offload()
    }

    /// Whether anything is left to do.
    #[must_use]
    #[inline]
    pub fn has_offload(&self) -> bool {
        self.memory.has_offload()
    }

    /// Whether anything is left to do to any frame: without a look at them where the process never
    /// had such a frame, and without a branch for each otherwise.
    #[must_use]
    #[inline]
    pub fn any_has_offload(frames: &[Self]) -> bool {
        BufMemory::had_offloads()
            && frames.iter().fold(false, |any, frame| any | frame.has_offload())
    }

    /// Notes what is left to do to the frame; false, and nothing is noted, where the memory is
    /// external. Another frame in the buffer begins without.
    #[must_use]
    pub fn set_offload(&mut self, offload: Option<Offload>) -> bool {
        self.memory.set_offload(offload)
    }

    /// Number of packets that a wire would carry for this frame, and their bytes.
    #[must_use]
    #[inline]
    pub fn on_wire(&self) -> (u64, u64) {
        let len = self.len();
        match self.offload() {
            None => (1, len as u64),
            Some(offload) => offload.on_wire(len),
        }
    }

    /// Shortens the frame to `len` bytes; longer lengths change nothing.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.memory.truncate(len);
    }

    /// Lengthens the frame with zero bytes up to `len`; shorter lengths change nothing.
    #[inline]
    pub fn pad_to(&mut self, len: usize) {
        if self.len() < len {
            self.grow_back(len);
        }
    }

    #[cold]
    fn grow_back(&mut self, len: usize) {
        let old = self.len();
        if self.memory.room() - self.memory.start() < len {
            self.move_to(HEADROOM, len);
        }
        self.memory.place(self.memory.start(), len);
        self.bytes_mut()[old..].fill(0);
    }

    /// Moves the frame into new memory, `headroom` bytes from its front, with room for `len`.
    fn move_to(&mut self, headroom: usize, len: usize) {
        let mut memory = BufMemory::with_room(headroom + len);
        memory.place(headroom, self.len());
        memory.bytes_mut().copy_from_slice(self.bytes());
        memory.set_offload(self.offload());
        self.memory = memory;
    }

    /// The frame.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// The frame, writable.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    /// Length of the frame.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether the frame has no byte.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens a gap of `len` zero bytes at `offset`, moving the bytes *before* it towards the front
    /// (headers are shorter than payloads). `offset` past the end is clamped to the end.
    #[inline]
    pub fn insert(&mut self, offset: usize, len: usize) {
        let offset = offset.min(self.len());
        if self.memory.start() < len {
            self.move_to(self.memory.start() + HEADROOM + len, self.len());
        }
        self.memory.grow_front(len);
        let bytes = self.memory.bytes_mut();
        bytes.copy_within(len..len + offset, 0);
        bytes[offset..offset + len].fill(0);
    }

    /// Cuts `len` bytes at `offset` by moving the bytes before them. A range that reaches past the
    /// end is clamped to the end.
    #[inline]
    pub fn remove(&mut self, offset: usize, len: usize) {
        let offset = offset.min(self.len());
        let len = len.min(self.len() - offset);
        self.memory.bytes_mut().copy_within(..offset, len);
        self.memory.cut_front(len);
    }
}

impl Default for PacketBuf {
    /// An empty frame, without memory yet.
    #[inline]
    fn default() -> Self {
        Self { memory: BufMemory::empty() }
    }
}

impl Clone for PacketBuf {
    /// A copy in memory of its own, with [`HEADROOM`] in front.
    fn clone(&self) -> Self {
        let mut copy = Self::from_slice(self.bytes());
        copy.memory.set_offload(self.offload());
        copy
    }
}

impl std::fmt::Debug for PacketBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PacketBuf({} B: ", self.len())?;
        for byte in self.bytes().iter().take(64) {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(if self.len() > 64 { "...)" } else { ")" })
    }
}

impl PartialEq for PacketBuf {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for PacketBuf {}

/// Free buffers, last in first out, since the memory used last is still in the CPU's cache. Only
/// buffers with memory of their own are kept: a driver needs its own back at once. Those of
/// super-frames are kept apart and are few, so that the memory of a pool is bounded.
#[derive(Debug, Default)]
pub struct Pool {
    spare: Vec<PacketBuf>,
    large: Vec<PacketBuf>,
}

/// Free buffers that a [`Pool`] keeps; more are given back to the allocator.
const SPARE_MAX: usize = 1_024;

/// The same of those for super-frames: a batch of them, 4.2 MiB.
const LARGE_MAX: usize = 64;

/// The room of a usual buffer is below; one with more is for super-frames.
const USUAL_BELOW: usize = (HEADROOM + FRAME_CAPACITY).next_power_of_two();

impl Pool {
    /// A buffer to be filled: a used one where there is one.
    #[inline]
    pub fn take(&mut self) -> PacketBuf {
        self.spare.pop().unwrap_or_default()
    }

    /// Appends `count` buffers to `frames`, to be filled there: a whole batch by one move.
    pub fn take_into(&mut self, frames: &mut Vec<PacketBuf>, count: usize) {
        let found = PacketBuf::move_last(&mut self.spare, frames, count);
        frames.extend(std::iter::repeat_with(PacketBuf::default).take(count - found));
    }

    /// A buffer for a super-frame: a used one where there is one. It has the room that it had.
    #[must_use]
    pub fn take_large(&mut self) -> PacketBuf {
        self.large.pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn give(&mut self, buf: PacketBuf) {
        if !buf.is_usual() {
            self.give_unusual(buf);
        } else if self.spare.len() < SPARE_MAX {
            self.spare.push(buf);
        }
    }

    #[cold]
    fn give_unusual(&mut self, mut buf: PacketBuf) {
        if !buf.is_own() || !buf.set_offload(None) {
            return;
        }
        if buf.is_usual() {
            self.give(buf);
        } else if self.large.len() < LARGE_MAX {
            self.large.push(buf);
        }
    }

    /// Returns the first `count` buffers of `frames` to the pool and removes them from `frames`. A
    /// whole batch of own memory moves at once, in 0.3 ns a buffer.
    pub fn give_front(&mut self, frames: &mut Vec<PacketBuf>, count: usize) {
        let count = count.min(frames.len());
        let whole = count == frames.len() && self.spare.len() + count <= SPARE_MAX;
        if whole && BufMemory::all_own_below(frames, USUAL_BELOW) {
            PacketBuf::move_last(frames, &mut self.spare, count);
            return;
        }
        for buf in frames.drain(..count) {
            self.give(buf);
        }
    }

    /// Number of free buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spare.len()
    }

    /// Whether no buffer is free.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spare.is_empty()
    }
}

/// A batch of frames and a pool of free buffers: after the first few rounds no frame costs an
/// allocation.
#[derive(Debug, Default)]
pub struct Batch {
    frames: Vec<PacketBuf>,
    pool: Pool,
}

impl Batch {
    /// The frames of the batch, in order of arrival.
    #[must_use]
    pub fn frames(&self) -> &[PacketBuf] {
        &self.frames
    }

    /// The frames, writable.
    pub fn frames_mut(&mut self) -> &mut [PacketBuf] {
        &mut self.frames
    }

    /// The vector of frames and the pool: to take all frames out by one move, and to give their
    /// buffers back.
    pub fn parts_mut(&mut self) -> (&mut Vec<PacketBuf>, &mut Pool) {
        (&mut self.frames, &mut self.pool)
    }

    /// Number of frames in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether the batch holds no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// A buffer to be filled: a used one where there is one.
    pub fn take_spare(&mut self) -> PacketBuf {
        self.pool.take()
    }

    /// A buffer for a super-frame; see [`Pool::take_large`].
    #[must_use]
    pub fn take_large(&mut self) -> PacketBuf {
        self.pool.take_large()
    }

    /// Returns a buffer to the pool.
    pub fn give_spare(&mut self, buf: PacketBuf) {
        self.pool.give(buf);
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: PacketBuf) {
        self.frames.push(frame);
    }

    /// Appends a copy of `frame` in a spare buffer.
    pub fn push_slice(&mut self, frame: &[u8]) {
        let mut buf = self.take_spare();
        buf.assign(frame);
        self.frames.push(buf);
    }

    /// Takes the frames out, in order. A buffer comes back by [`Batch::give_spare`].
    pub fn drain(&mut self) -> std::vec::Drain<'_, PacketBuf> {
        self.frames.drain(..)
    }

    /// Drops the first `count` frames, whose buffers become spare.
    pub fn recycle_front(&mut self, count: usize) {
        self.pool.give_front(&mut self.frames, count);
    }

    /// Empties the batch; its buffers become spare.
    pub fn clear(&mut self) {
        while let Some(buf) = self.frames.pop() {
            self.pool.give(buf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_and_remove_move_only_what_stands_before() {
        let mut buf = PacketBuf::from_slice(b"headtail");
        buf.insert(4, 2);
        assert_eq!(buf.bytes(), b"head\0\0tail");
        buf.remove(4, 2);
        assert_eq!(buf.bytes(), b"headtail");
        buf.remove(6, 100);
        assert_eq!(buf.bytes(), b"headta");
    }

    #[test]
    fn insert_grows_when_the_headroom_is_used_up() {
        let mut buf = PacketBuf::from_slice(b"ab");
        for _ in 0..100 {
            buf.insert(1, 4);
        }
        assert_eq!(buf.len(), 402);
        assert_eq!(buf.bytes()[0], b'a');
        assert_eq!(buf.bytes()[401], b'b');
    }

    #[test]
    fn a_cleared_batch_reuses_its_buffers() {
        let mut batch = Batch::default();
        batch.push_slice(b"one");
        batch.push_slice(b"two");
        batch.recycle_front(1);
        assert_eq!(batch.frames()[0].bytes(), b"two");
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.take_spare().bytes(), b"two");
        assert_eq!(batch.take_spare().bytes(), b"one");
        assert!(batch.take_spare().is_empty());
    }

    #[test]
    fn blocks_are_copied_whole_and_the_length_is_kept() {
        let mut buf = PacketBuf::from_slice(&[9; 300]);
        buf.assign_blocks(&[[1; 64], [2; 64]], 70);
        assert_eq!(buf.bytes(), [[1; 64].as_slice(), &[2; 6]].concat());
        buf.pad_to(72);
        assert_eq!(buf.bytes()[68..], [2, 2, 0, 0]);
    }

    #[test]
    fn a_frame_grows_out_of_its_memory() {
        let mut buf = PacketBuf::from_slice(b"ab");
        buf.pad_to(5_000);
        assert_eq!((&buf.bytes()[..3], buf.len()), (&b"ab\0"[..], 5_000));
        buf.truncate(2);
        assert_eq!(buf.clone(), buf);
        assert!(buf.is_own());
    }

    #[test]
    fn an_offload_is_of_one_frame_and_moves_with_it() {
        let offload = Offload { segment_len: 1_000, payload_len: 2_500 };
        let mut buf = PacketBuf::from_slice(&[1; 2_554]);
        assert!(buf.set_offload(Some(offload)));
        buf.insert(12, 400);
        assert_eq!(buf.offload(), Some(offload), "in other memory");
        assert_eq!(buf.clone().on_wire(), (3, 2_954 + 2 * 454));
        let mut pool = Pool::default();
        let mut frames = vec![buf, PacketBuf::from_slice(&[1; 70_000])];
        pool.give_front(&mut frames, 2);
        assert_eq!((pool.len(), pool.take_large().len()), (1, 70_000));
        let mut buf = pool.take();
        assert_eq!(buf.on_wire(), (1, 2_954), "a free buffer has none");
        assert!(buf.set_offload(Some(offload)));
        buf.assign_blocks(&[[1; 64]], 60);
        assert_eq!((buf.offload(), buf.len()), (None, 60), "another frame has none");
    }

    #[test]
    fn a_pool_takes_a_whole_batch_back() {
        let mut batch = Batch::default();
        batch.push_slice(b"one");
        batch.push_slice(b"two");
        let (frames, pool) = batch.parts_mut();
        pool.give_front(frames, 9);
        assert_eq!((frames.len(), pool.len()), (0, 2));
        assert_eq!(pool.take().bytes(), b"two");
        pool.take_into(frames, 3);
        let lengths: Vec<usize> = frames.iter().map(PacketBuf::len).collect();
        assert_eq!((lengths, pool.is_empty()), (vec![3, 0, 0], true));
    }
}
