//! A program that is held still by a signal, while another one is measured on its core.
//!
//! A forwarder that polls uses its core whether or not it is being measured. Stopped, it keeps its
//! caches as they are. A stopped process does not end, so this must go before the program's owner.

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::scratch::signal;

/// Holds a forwarder still until this value goes.
#[derive(Debug)]
pub struct Held(u32);

impl Held {
    /// Stops the process.
    pub fn hold(pid: u32) -> Result<Self> {
        signal(pid, Signal::STOP).context("signalling a forwarder")?;
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
