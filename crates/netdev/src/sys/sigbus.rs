//! Mapped files that others may shorten, or whose file system has no room for their pages.
//!
//! The kernel answers an access to a page that is not there by SIGBUS, which ends the process. A
//! mapping that is watched here gets zero bytes in its place, all of it, and is marked as lost; its
//! user looks at the mark after each use. Every other SIGBUS does what it did before.
//!
//! The handler may run at any moment in any thread: it reads atomics and calls the kernel, no more.
#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// A mapping that is watched. These live for ever and are used again, so that the handler may read
/// their list at any time.
#[derive(Debug)]
pub(crate) struct Watched {
    /// 0 while it is no mapping's.
    base: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
    next: Option<&'static Watched>,
}

static ALL: AtomicPtr<Watched> = AtomicPtr::new(null_mut());

/// The action of before.
static EARLIER: OnceLock<sigaction> = OnceLock::new();

impl Watched {
    /// Watches a mapping of `len` bytes at `base`.
    pub(crate) fn begin(base: usize, len: usize) -> &'static Self {
        static CHANGE: Mutex<()> = Mutex::new(());
        let _alone = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
        catch();
        let watched = all().find(|watched| watched.base.load(Ordering::Acquire) == 0);
        let watched = watched.unwrap_or_else(|| {
            let fresh = Box::leak(Box::new(Self {
                base: AtomicUsize::new(0),
                len: AtomicUsize::new(0),
                is_lost: AtomicBool::new(false),
                next: first(),
            }));
            ALL.store(fresh, Ordering::Release);
            fresh
        });
        watched.is_lost.store(false, Ordering::Release);
        watched.len.store(len, Ordering::Release);
        watched.base.store(base, Ordering::Release);
        watched
    }

    /// The mapping goes.
    pub(crate) fn end(&self) {
        self.base.store(0, Ordering::Release);
    }

    /// Whether a page was missing, and zero bytes stand in place of the file.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Puts zero bytes in place of the file, where the address is one of it.
    fn replace(&self, address: usize) -> bool {
        let base = self.base.load(Ordering::Acquire);
        let len = self.len.load(Ordering::Acquire);
        if base == 0 || address.wrapping_sub(base) >= len {
            return false;
        }
        // Before the bytes are there: another thread must not take them for frames.
        self.is_lost.store(true, Ordering::Release);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the range is that of a mapping of ours, which stays while a thread reads or
        // writes in it, as the one that was interrupted here does. No byte is invalid as `u8`.
        let replaced = unsafe { libc::mmap(base as *mut c_void, len, access, flags, -1, 0) };
        replaced != libc::MAP_FAILED
    }
}

fn first() -> Option<&'static Watched> {
    // SAFETY: the pointer is null or leads to a value that lives for ever.
    unsafe { ALL.load(Ordering::Acquire).as_ref() }
}

fn all() -> impl Iterator<Item = &'static Watched> {
    std::iter::successors(first(), |watched| watched.next)
}

/// Installs the handler, once.
fn catch() {
    if EARLIER.get().is_some() {
        return;
    }
    // SAFETY: all zero bytes are a valid action: the default one, without flags and masks.
    let (mut ours, mut earlier) = unsafe { std::mem::zeroed::<(sigaction, sigaction)>() };
    ours.sa_sigaction = on_sigbus as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both lead to actions of this stack, and the handler lives for ever.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut earlier) };
    // Callers come one after the other.
    let _ = EARLIER.set(earlier);
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler of this kind the description of the signal.
    let address = unsafe { (*info).si_addr() } as usize;
    if all().any(|watched| watched.replace(address)) {
        return;
    }
    // It is not about one of these: the access is tried again, and then handled as before.
    let earlier = EARLIER.get().map_or(null_mut(), |earlier| (&raw const *earlier).cast_mut());
    // SAFETY: the action is null, which changes nothing, or one that the kernel gave us.
    unsafe { libc::sigaction(signal, earlier, null_mut()) };
}
