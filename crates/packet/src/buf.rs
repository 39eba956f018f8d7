//! The buffer a frame lives in, and the batch that carries many of them.
//!
//! A `PacketBuf` keeps room in front of the frame, so that pushing a tag or a label moves no
//! payload. It must never interpret the bytes that it holds: views and extraction do that.

/// Bytes kept free in front of a received frame: room for two VLAN tags, a PBB header and several
/// MPLS labels before a push has to move the frame.
pub const HEADROOM: usize = 128;

/// The room a pooled buffer has for one frame: a jumbo frame of 9,000 bytes with two tags fits.
pub const FRAME_CAPACITY: usize = 9_216;

/// One frame with room in front of it. Lengths are in bytes and never include the FCS.
#[derive(Clone, Default)]
pub struct PacketBuf {
    store: Vec<u8>,
    start: usize,
}

impl PacketBuf {
    /// A copy of `frame` with [`HEADROOM`] in front.
    #[must_use]
    pub fn from_slice(frame: &[u8]) -> Self {
        let mut buf = Self::default();
        buf.assign(frame);
        buf
    }

    /// Replaces the frame, keeping the allocation.
    pub fn assign(&mut self, frame: &[u8]) {
        self.store.clear();
        self.store.resize(HEADROOM, 0);
        self.store.extend_from_slice(frame);
        self.start = HEADROOM;
    }

    /// Makes room for a frame of `len` bytes, zero filled, and returns it to be written.
    /// For receive calls that write into a buffer; finish with [`PacketBuf::truncate`].
    pub fn prepare(&mut self, len: usize) -> &mut [u8] {
        self.store.resize(HEADROOM + len, 0);
        self.start = HEADROOM;
        &mut self.store[HEADROOM..]
    }

    /// Shortens the frame to `len` bytes; longer lengths change nothing.
    pub fn truncate(&mut self, len: usize) {
        self.store.truncate(self.start.saturating_add(len));
    }

    /// Lengthens the frame with zero bytes up to `len`; shorter lengths change nothing.
    pub fn pad_to(&mut self, len: usize) {
        if self.len() < len {
            self.store.resize(self.start + len, 0);
        }
    }

    /// The frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.store[self.start..]
    }

    /// The frame, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..]
    }

    /// Length of the frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len() - self.start
    }

    /// Whether the frame has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens a gap of `len` zero bytes at `offset`, moving the bytes *before* it towards the front
    /// (headers are shorter than payloads). `offset` past the end is clamped to the end.
    pub fn insert(&mut self, offset: usize, len: usize) {
        let offset = offset.min(self.len());
        if self.start < len {
            let grow = HEADROOM + len;
            self.store.splice(0..0, std::iter::repeat_n(0, grow));
            self.start += grow;
        }
        let old = self.start;
        self.start -= len;
        self.store.copy_within(old..old + offset, self.start);
        self.store[self.start + offset..self.start + offset + len].fill(0);
    }

    /// Cuts `len` bytes at `offset` by moving the bytes before them. A range that reaches past the
    /// end is clamped to the end.
    pub fn remove(&mut self, offset: usize, len: usize) {
        let offset = offset.min(self.len());
        let len = len.min(self.len() - offset);
        self.store.copy_within(self.start..self.start + offset, self.start + len);
        self.start += len;
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

/// Frames on their way, with the buffers that are free for the next ones: after the first few
/// rounds no frame costs an allocation.
#[derive(Debug, Default)]
pub struct Batch {
    frames: Vec<PacketBuf>,
    spare: Vec<PacketBuf>,
}

/// Free buffers that a [`Batch`] keeps; more are given back to the allocator.
const SPARE_MAX: usize = 1_024;

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

    /// How many frames the batch holds.
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
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a buffer back for later use.
    pub fn give_spare(&mut self, buf: PacketBuf) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buf);
        }
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
        let count = count.min(self.frames.len());
        let done: Vec<PacketBuf> = self.frames.drain(..count).collect();
        for buf in done {
            self.give_spare(buf);
        }
    }

    /// Empties the batch; its buffers become spare.
    pub fn clear(&mut self) {
        while let Some(buf) = self.frames.pop() {
            self.give_spare(buf);
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
}
