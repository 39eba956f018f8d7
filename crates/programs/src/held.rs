//! A program that is held still by a signal, while another one is measured on its core.
//!
//! A forwarder that polls uses its core whether or not it is being measured. Stopped, it keeps its
//! caches as they are. A stopped process does not end, so this must go before the program's owner.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// Signals a process; the end of one shows when its counters are asked for.
fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no such process id")?;
    kill_process(pid, signal).context("signalling a forwarder")
}

/// Holds a forwarder still until this value goes.
#[derive(Debug)]
pub struct Held(u32);

impl Held {
    /// Stops the process.
    ///
    /// # Errors
    /// It has ended.
    pub fn hold(pid: u32) -> Result<Self> {
        signal(pid, Signal::STOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = signal(self.0, Signal::CONT) {
            tracing::debug!(pid = self.0, %error, "cannot go on");
        }
    }
}
