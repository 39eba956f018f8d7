//! Memory that two threads or two processes share, reached only by checked copies and atomics.
//!
//! The other side may write anything at any moment. So no reference to shared bytes is ever given
//! out except to atomics: bytes are copied in or out, and what was copied is then judged.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::sigbus::Watched;

/// A shared mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// Of a file that others may shorten.
    watched: Option<&'static Watched>,
}

// SAFETY: the mapping is plain memory, and every access below is an atomic or a copy.
unsafe impl Send for Mapping {}
// SAFETY: as above; two copies at once can mix bytes, which the rings above exclude between honest
// sides and survive from others, since no byte pattern is invalid as `u8`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh zero bytes, shared with nobody but the holder of this value.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose; no memory in use is replaced.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::SHARED) }?;
        Self::at(base.cast(), len)
    }

    /// The first `len` bytes of a file that nobody can shorten, such as a ring of the kernel's: the
    /// kernel would end the process that touches what is gone.
    pub(crate) fn file(file: &impl AsFd, len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as above; the mapping keeps the file alive by itself.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file.as_fd(), 0) }?;
        Self::at(base.cast(), len)
    }

    /// The first `len` bytes of a file that others may shorten; see [`Mapping::is_lost`].
    pub(crate) fn shared_file(file: &impl AsFd, len: usize) -> io::Result<Self> {
        let mut mapping = Self::file(file, len)?;
        mapping.watched = Some(Watched::begin(mapping.base.as_ptr() as usize, len));
        Ok(mapping)
    }

    fn at(base: *mut u8, len: usize) -> io::Result<Self> {
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len, watched: None })
    }

    /// Whether the file was shortened, or has no room for a page, so that bytes were read or
    /// written which are not its own.
    pub(crate) fn is_lost(&self) -> bool {
        self.watched.is_some_and(Watched::is_lost)
    }

    /// The number at `offset`.
    ///
    /// # Panics
    /// When `offset` is outside or not a multiple of 8: our own mistake, never that of the peer.
    pub(crate) fn number(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && self.holds(offset, 8), "a number outside the mapping");
        // SAFETY: in bounds and aligned (the base is page aligned), and alive as long as `self`.
        // Other sides reach these bytes by atomics only; if not, the value is arbitrary, not more.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// The status word at `offset`, of 32 bits as in the ring of a packet socket.
    ///
    /// # Panics
    /// When `offset` is outside or not a multiple of 4.
    pub(crate) fn status(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && self.holds(offset, 4), "a status outside the mapping");
        // SAFETY: as in `number`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// When the range is outside.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(self.holds(offset, into.len()), "a read outside the mapping");
        // SAFETY: in bounds; `into` is ours alone and cannot overlap.
        unsafe {
            let from = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// When the range is outside.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) {
        assert!(self.holds(offset, from.len()), "a write outside the mapping");
        // SAFETY: in bounds; `from` is a Rust slice outside the mapping and cannot overlap.
        unsafe {
            let into = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from.as_ptr(), into, from.len());
        }
    }

    fn holds(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(watched) = self.watched {
            watched.end();
        }
        // SAFETY: the range was mapped by us, whole, and no reference outlives `self`.
        // A failure would mean a broken range; there is nothing to do about it then.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
