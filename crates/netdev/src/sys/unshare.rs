//! `unshare(2)` for the network namespace: the one call that rustix leaves unsafe.
#![allow(unsafe_code)]

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves the calling thread into a new network namespace.
pub(super) fn unshare_network() -> io::Result<()> {
    // SAFETY: only sharing of the descriptor table can break what other code relies on; of the
    // network namespace nothing in memory depends.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(Into::into)
}
