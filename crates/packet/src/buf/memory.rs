//! The memory behind a frame: its own, or external memory such as a device driver's buffer.
//!
//! Frames of a driver with buffers of its own (DPDK's mbufs) stay in these buffers, without a copy,
//! and the driver gets them back. Both kinds have the same 32 bytes; reading and writing a frame
//! does not depend on the kind. This file holds all unsafe code of the buffers;
//! it must never hand out a byte outside of the room, or one that was never written.
//!
//! Invariants: `base` is valid for `room()` bytes, all of which are initialised and belong to this
//! value alone; `start + len <= room()`.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Block, PacketBuf};
use crate::offload::Offload;

/// Own memory comes in multiples of a cache line and starts at one, so that a frame behind the
/// usual headroom does too, and can be copied by whole lines.
pub(super) const LINE: usize = 64;

/// Bits of an offload in the word of own memory: one that is set when there is one, the
/// length of a segment and that of the payload. No address of external memory has that bit, and
/// the room stands below.
const OFFLOAD: usize = 1 << 63;
const SEGMENT_AT: u32 = 48;
const PAYLOAD_AT: u32 = 32;
const _: () = assert!(usize::BITS == 64, "an offload stands in the upper half of a word");

/// Whether any frame of the process ever had an offload. A receiver of a frame of another thread
/// gets what was written before, this too.
static HAD_OFFLOADS: AtomicBool = AtomicBool::new(false);

/// The functions of an owner of external memory: one constant for each kind of owner.
#[repr(C)]
#[derive(Debug)]
pub struct ExternalOwner {
    /// The bytes that belong to the buffer of this object, from its base on.
    pub room: unsafe extern "C" fn(object: NonNull<c_void>) -> u32,
    /// Takes the buffer of this object back; called once for each.
    pub release: unsafe extern "C" fn(object: NonNull<c_void>),
}

/// A buffer in external memory, with the layout of [`PacketBuf`], so that a driver can write and
/// read arrays of them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExternalBuf {
    /// Start of its memory.
    pub base: NonNull<u8>,
    /// Start of the frame, in bytes from `base`.
    pub start: u32,
    /// The frame's length in bytes.
    pub len: u32,
    /// The owner's handle of the buffer (DPDK: the mbuf).
    pub object: NonNull<c_void>,
    /// The owner; `None` in a `PacketBuf` with memory of its own, which no driver makes.
    pub owner: Option<&'static ExternalOwner>,
}

const _: () = assert!(size_of::<ExternalBuf>() == size_of::<PacketBuf>());

/// Memory with a frame somewhere in it. The fields are those of [`ExternalBuf`].
#[repr(C)]
pub(super) struct BufMemory {
    base: NonNull<u8>,
    start: u32,
    len: u32,
    /// The room of own memory, and in the upper half the frame's offload; the address of the
    /// object of external memory.
    word: *mut c_void,
    /// `None` for own memory.
    owner: Option<&'static ExternalOwner>,
}

// SAFETY: own memory is plain bytes with one owner; external memory is promised to be the same by
// `from_external`, and its owner to take it back on any thread.
unsafe impl Send for BufMemory {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for BufMemory {}

impl BufMemory {
    /// Memory without room.
    pub(super) const fn empty() -> Self {
        Self {
            base: NonNull::dangling(),
            start: 0,
            len: 0,
            word: std::ptr::null_mut(),
            owner: None,
        }
    }

    /// Own memory of at least `room` zero bytes; the frame is empty and stands at the front.
    ///
    /// # Panics
    /// For a room of 2 GiB or more, which no frame has.
    pub(super) fn with_room(room: usize) -> Self {
        let room = room.next_multiple_of(LINE).max(LINE);
        assert!(room <= i32::MAX as usize, "a frame of {room} bytes");
        let layout = layout(room);
        // SAFETY: the layout's size is not zero.
        let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let word = std::ptr::without_provenance_mut(room);
        Self { base, start: 0, len: 0, word, owner: None }
    }

    /// Takes over a buffer in external memory.
    ///
    /// # Safety
    /// There is an owner. Until its `release` is called for the object, the `room` bytes from
    /// `base` on are initialised and read and written by nobody else; `start + len` is not more
    /// than the room; `release` may be called on any thread.
    pub(super) unsafe fn from_external(external: ExternalBuf) -> Self {
        let ExternalBuf { base, start, len, object, owner } = external;
        Self { base, start, len, word: object.as_ptr(), owner }
    }

    /// The buffer of this owner, which from now on has to release it; else the memory again.
    pub(super) fn into_external(self, owner: &'static ExternalOwner) -> Result<ExternalBuf, Self> {
        let ours = self.is_external(owner);
        let Some(object) = NonNull::new(self.word).filter(|_| ours) else { return Err(self) };
        let Self { base, start, len, owner, .. } = self;
        let external = ExternalBuf { base, start, len, object, owner };
        std::mem::forget(self);
        Ok(external)
    }

    /// Whether the memory is this owner's.
    #[inline]
    pub(super) fn is_external(&self, owner: &'static ExternalOwner) -> bool {
        self.owner.is_some_and(|held| std::ptr::eq(held, owner))
    }

    /// Whether the memory is the buffer's own.
    #[inline]
    pub(super) fn is_own(&self) -> bool {
        self.owner.is_none()
    }

    /// Bytes from the base to the end.
    #[inline]
    pub(super) fn room(&self) -> usize {
        match self.owner {
            None => own_room(self.word),
            // SAFETY: the object has not been released, since this value still holds it.
            Some(owner) => unsafe { (owner.room)(NonNull::new_unchecked(self.word)) as usize },
        }
    }

    /// Whether own memory of this room can be had without a look at anything else; no where there
    /// is an offload, which belongs to the frame before.
    #[inline]
    pub(super) fn has_clean_room(&self, room: usize) -> bool {
        match self.owner {
            None => self.has_own_clean_room(room),
            Some(_) => room <= self.room(),
        }
    }

    /// The same where the memory is the buffer's own.
    #[inline]
    fn has_own_clean_room(&self, room: usize) -> bool {
        self.owner.is_none() && room as isize <= self.word.addr() as isize
    }

    /// Whether each of these buffers has memory of its own with a room of less than this power of
    /// two, and none an offload: without a branch for each.
    #[inline]
    pub(super) fn all_own_below(bufs: &[PacketBuf], room: usize) -> bool {
        debug_assert!(room.is_power_of_two(), "a room of {room} bytes");
        let (words, owners) = bufs.iter().fold((0, 0), |(words, owners), buf| {
            let owner = buf.memory.owner.map_or(0, |owner| std::ptr::from_ref(owner).addr());
            (words | buf.memory.word.addr(), owners | owner)
        });
        words < room && owners == 0
    }

    /// Whether there was ever a frame with an offload.
    #[inline]
    pub(super) fn had_offloads() -> bool {
        HAD_OFFLOADS.load(Ordering::Relaxed)
    }

    /// Whether the frame has an offload.
    #[inline]
    pub(super) fn has_offload(&self) -> bool {
        self.word.addr() & OFFLOAD != 0
    }

    /// The frame's offload.
    pub(super) fn offload(&self) -> Option<Offload> {
        let word = self.word.addr();
        self.has_offload().then_some(Offload {
            segment_len: (word >> SEGMENT_AT) as u16 & Offload::SEGMENT_MAX,
            payload_len: (word >> PAYLOAD_AT) as u16,
        })
    }

    /// Notes an offload, or that there is none; false for external memory, which has no place for
    /// one.
    pub(super) fn set_offload(&mut self, offload: Option<Offload>) -> bool {
        if self.owner.is_some() {
            return offload.is_none();
        }
        if offload.is_some() && !Self::had_offloads() {
            HAD_OFFLOADS.store(true, Ordering::Relaxed);
        }
        let bits = offload.map_or(0, |Offload { segment_len, payload_len }| {
            debug_assert!(segment_len <= Offload::SEGMENT_MAX, "a segment of {segment_len} bytes");
            OFFLOAD
                | usize::from(segment_len & Offload::SEGMENT_MAX) << SEGMENT_AT
                | usize::from(payload_len) << PAYLOAD_AT
        });
        self.word = std::ptr::without_provenance_mut(own_room(self.word) | bits);
        true
    }

    /// Start of the frame.
    #[inline]
    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    /// The frame's length.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The frame.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: by the invariants the frame lies in initialised memory of this value.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(self.start()), self.len()) }
    }

    /// The frame, writable.
    #[inline]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(self.start()), self.len()) }
    }

    /// Places the frame elsewhere in the room; its bytes are what stands there.
    ///
    /// # Panics
    /// When the room is too small.
    #[inline]
    pub(super) fn place(&mut self, start: usize, len: usize) {
        let end = start.checked_add(len).filter(|end| *end <= self.room());
        assert!(end.is_some(), "a frame of {len} bytes at {start} is outside of its buffer");
        self.set(start, len);
    }

    /// Moves the frame's beginning `count` bytes towards the front.
    ///
    /// # Panics
    /// When there is less in front of the frame.
    #[inline]
    pub(super) fn grow_front(&mut self, count: usize) {
        assert!(count <= self.start(), "{count} bytes in front of {}", self.start);
        self.set(self.start() - count, self.len() + count);
    }

    /// Cuts `count` bytes off the frame's front.
    ///
    /// # Panics
    /// When the frame is shorter.
    #[inline]
    pub(super) fn cut_front(&mut self, count: usize) {
        assert!(count <= self.len(), "{count} bytes of {}", self.len);
        self.set(self.start() + count, self.len() - count);
    }

    /// Shortens the frame to `len` bytes, if it is longer.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.set(self.start(), len.min(self.len()));
    }

    /// Both numbers are at most the room, which is below 2 GiB for own memory and a `u32` for
    /// external memory.
    #[inline]
    fn set(&mut self, start: usize, len: usize) {
        self.start = start as u32;
        self.len = len as u32;
    }
}

impl Drop for BufMemory {
    #[inline]
    fn drop(&mut self) {
        match self.owner {
            None if own_room(self.word) == 0 => {}
            // SAFETY: allocated by `with_room` with this layout, and released only here.
            None => unsafe { dealloc(self.base.as_ptr(), layout(own_room(self.word))) },
            // SAFETY: the object is held by this value alone and released only here.
            Some(owner) => unsafe { (owner.release)(NonNull::new_unchecked(self.word)) },
        }
    }
}

impl PacketBuf {
    /// A frame in external memory, which is used in place and returned to its owner when the buffer
    /// is dropped or when the frame outgrows it.
    ///
    /// # Safety
    /// There is an owner. Until its `release` is called for the object, the `room` bytes from
    /// `base` on are initialised and read and written by nobody else; `start + len` is not more
    /// than the room; `release` may be called on any thread.
    #[must_use]
    #[inline]
    pub unsafe fn from_external(external: ExternalBuf) -> Self {
        // SAFETY: the caller promises the same.
        Self { memory: unsafe { BufMemory::from_external(external) } }
    }

    /// Appends the frames that `fill` writes: it gets room for `max` of them and returns how many
    /// it has written from the front on.
    ///
    /// # Safety
    /// The conditions of [`PacketBuf::from_external`] hold for each of them, and there are at most
    /// `max`.
    #[inline]
    pub unsafe fn extend_external(
        frames: &mut Vec<Self>,
        max: usize,
        fill: impl FnOnce(*mut ExternalBuf) -> usize,
    ) {
        frames.reserve(max);
        let len = frames.len();
        // SAFETY: the room behind the last frame was reserved.
        let count = fill(unsafe { frames.as_mut_ptr().add(len) }.cast());
        debug_assert!(count <= max, "{count} frames in the room for {max}");
        // SAFETY: the caller has written `count` frames in the layout of a `PacketBuf`.
        unsafe { frames.set_len(len + count) };
    }

    /// Removes the first `count` frames without dropping them: another owner has taken them over.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn forget_front(frames: &mut Vec<Self>, count: usize) {
        let left = frames.len().checked_sub(count);
        let Some(left) = left else { panic!("{count} of {} frames", frames.len()) };
        // SAFETY: the frames behind move to the front and are counted once; to forget is safe.
        unsafe {
            let front = frames.as_mut_ptr();
            front.copy_from(front.add(count), left);
            frames.set_len(left);
        }
    }

    /// Moves the last `count` frames of `from`, or all, to the end of `to`; returns how many. One
    /// copy of memory: moving them one by one takes 1 ns each, this 0.2 ns.
    #[inline]
    pub(super) fn move_last(from: &mut Vec<Self>, to: &mut Vec<Self>, count: usize) -> usize {
        let count = count.min(from.len());
        let kept = from.len() - count;
        to.reserve(count);
        // SAFETY: the frames leave `from` before they are counted in `to`, which has room.
        unsafe {
            from.set_len(kept);
            let end = to.as_mut_ptr().add(to.len());
            end.copy_from_nonoverlapping(from.as_ptr().add(kept), count);
            to.set_len(to.len() + count);
        }
        count
    }

    /// As [`PacketBuf::assign_blocks`], where the buffer has memory of its own with room for them;
    /// else false, and nothing has changed.
    #[inline]
    pub(super) fn copy_blocks(&mut self, start: usize, blocks: &[Block], len: usize) -> bool {
        let whole = size_of_val(blocks);
        debug_assert!(len <= whole, "{len} bytes in {} blocks", blocks.len());
        let (Some((first, rest)), true) =
            (blocks.split_first(), self.memory.has_own_clean_room(start + whole))
        else {
            return false;
        };
        // Nearly always there is one block, whose length is known here: no call.
        // SAFETY: own memory with at least `start + whole` bytes, borrowed for writing.
        unsafe {
            let to = self.memory.base.as_ptr().add(start).cast::<Block>();
            to.write(*first);
            if !rest.is_empty() {
                to.add(1).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            }
        }
        self.memory.set(start, len);
        true
    }
}

/// The room of own memory.
#[inline]
fn own_room(word: *mut c_void) -> usize {
    word.addr() as u32 as usize
}

/// The layout of own memory with that room.
fn layout(room: usize) -> Layout {
    match Layout::from_size_align(room, LINE) {
        Ok(layout) => layout,
        Err(_) => unreachable!("a room of {room} bytes was checked when it was made"),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{BufMemory, ExternalBuf, ExternalOwner, LINE};
    use crate::PacketBuf;
    use crate::offload::Offload;

    /// A buffer as a driver might have it: memory, and how often it was taken back.
    struct Lent {
        memory: [u8; 256],
        released: AtomicUsize,
    }

    const LENDER: ExternalOwner = ExternalOwner { room, release };
    static OURS: ExternalOwner = LENDER;
    static OTHER: ExternalOwner = LENDER;

    unsafe extern "C" fn room(_: NonNull<c_void>) -> u32 {
        256
    }

    unsafe extern "C" fn release(object: NonNull<c_void>) {
        // SAFETY: the tests pass a `Lent` that lives longer than what they lend.
        let lent = unsafe { object.cast::<Lent>().as_ref() };
        lent.released.fetch_add(1, Ordering::Relaxed);
    }

    fn lend(lent: &mut Lent) -> BufMemory {
        let object = NonNull::from(&mut *lent).cast();
        let base = NonNull::from(&mut lent.memory).cast();
        // SAFETY: 256 initialised bytes that the caller does not touch while they are lent.
        unsafe {
            BufMemory::from_external(ExternalBuf {
                base,
                start: 10,
                len: 4,
                object,
                owner: Some(&OURS),
            })
        }
    }

    fn lent() -> Box<Lent> {
        Box::new(Lent { memory: [7; 256], released: AtomicUsize::new(0) })
    }

    #[test]
    fn a_handle_is_half_a_cache_line() {
        assert_eq!(std::mem::size_of::<BufMemory>(), 32);
        assert_eq!(std::mem::size_of::<Option<BufMemory>>(), 32);
    }

    #[test]
    fn own_memory_is_zero_and_starts_at_a_line() {
        let mut memory = BufMemory::with_room(65);
        assert_eq!((memory.room(), memory.len()), (2 * LINE, 0));
        memory.place(0, 2 * LINE);
        assert_eq!(memory.bytes(), [0; 2 * LINE]);
        assert_eq!(memory.bytes().as_ptr().addr() % LINE, 0);
        memory.bytes_mut()[3] = 9;
        memory.cut_front(3);
        memory.truncate(1);
        assert_eq!(memory.bytes(), [9]);
        memory.grow_front(2);
        assert_eq!(memory.bytes(), [0, 0, 9]);
    }

    #[test]
    fn an_offload_stands_beside_the_room_and_only_in_own_memory() {
        let most = Offload { segment_len: Offload::SEGMENT_MAX, payload_len: u16::MAX };
        for offload in [most, Offload { segment_len: 0, payload_len: 0 }] {
            let mut memory = BufMemory::with_room(128);
            assert!(memory.has_clean_room(128) && memory.offload().is_none());
            assert!(memory.set_offload(Some(offload)));
            assert_eq!((memory.offload(), memory.room()), (Some(offload), 128));
            assert!(!memory.has_clean_room(1));
            memory.place(0, 128);
            assert!(memory.set_offload(None) && memory.has_clean_room(128));
            assert!(!memory.has_clean_room(129));
        }
        let mut lent = lent();
        let mut memory = lend(&mut lent);
        assert!(!memory.set_offload(Some(most)) && memory.set_offload(None));
        assert!(!memory.has_offload() && memory.owner.is_some());
    }

    #[test]
    fn one_unusual_buffer_is_found_among_usual_ones() {
        let buf = |room| PacketBuf { memory: BufMemory::with_room(room) };
        let is_usual = |bufs: &[PacketBuf]| BufMemory::all_own_below(bufs, 256);
        assert!(is_usual(&[]) && is_usual(&[PacketBuf::default(), buf(128), buf(192)]));
        assert!(!is_usual(&[buf(128), buf(256)]));
        let mut with_offload = buf(128);
        assert!(with_offload.set_offload(Some(Offload { segment_len: 0, payload_len: 0 })));
        assert!(!is_usual(&[buf(128), with_offload]));
        let mut lent = lent();
        assert!(!is_usual(&[buf(128), PacketBuf { memory: lend(&mut lent) }]));
    }

    #[test]
    #[should_panic(expected = "outside of its buffer")]
    fn a_frame_beyond_the_room_is_our_mistake() {
        BufMemory::with_room(64).place(1, 64);
    }

    #[test]
    fn external_memory_is_used_in_place_and_goes_back_once() {
        let mut lent = lent();
        let mut memory = lend(&mut lent);
        assert!(!memory.is_own());
        assert_eq!((memory.bytes(), memory.room()), (&[7; 4][..], 256));
        memory.place(0, 256);
        memory.bytes_mut()[0] = 1;
        drop(memory);
        assert_eq!((lent.memory[0], lent.released.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn only_its_owner_takes_external_memory_out() {
        let mut lent = lent();
        let memory = lend(&mut lent);
        let Err(memory) = memory.into_external(&OTHER) else { panic!("not theirs") };
        let Ok(external) = memory.into_external(&OURS) else { panic!("ours") };
        assert_eq!((external.start, external.len), (10, 4));
        assert_eq!(lent.released.load(Ordering::Relaxed), 0);
        assert!(BufMemory::with_room(1).into_external(&OURS).is_err());
        assert!(BufMemory::empty().into_external(&OURS).is_err());
    }

    #[test]
    fn external_memory_goes_back_from_another_thread() {
        let mut lent = lent();
        let memory = lend(&mut lent);
        std::thread::spawn(move || drop(memory)).join().unwrap();
        assert_eq!(lent.released.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn frames_move_by_the_batch_and_each_is_dropped_once() {
        let mut all: Vec<Box<Lent>> = (0..5).map(|_| lent()).collect();
        let mut frames: Vec<PacketBuf> = Vec::new();
        for lent in &mut all {
            let Ok(external) = lend(lent).into_external(&OURS) else { panic!("ours") };
            // SAFETY: the buffer was taken out and is whole.
            unsafe {
                PacketBuf::extend_external(&mut frames, 1, |room| {
                    room.write(external);
                    1
                });
            }
        }
        let mut last = vec![PacketBuf::from_slice(b"own")];
        assert_eq!(PacketBuf::move_last(&mut frames, &mut last, 2), 2);
        assert_eq!((frames.len(), last.len()), (3, 3));
        PacketBuf::forget_front(&mut frames, 1);
        assert_eq!(frames[1].bytes(), [7; 4]);
        assert_eq!(PacketBuf::move_last(&mut frames, &mut last, 9), 2);
        drop((frames, last));
        let released: Vec<usize> =
            all.iter().map(|lent| lent.released.load(Ordering::Relaxed)).collect();
        assert_eq!(released, [0, 1, 1, 1, 1], "the first was forgotten");
    }
}
