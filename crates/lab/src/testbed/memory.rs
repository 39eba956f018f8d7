//! No namespaces and no root: in-memory ports between the lab and the switch.
//!
//! Each port of the switch is one end of a `memory:` wire over a file that both processes map; the
//! lab holds the other end and sends its own traffic. The control connection is TCP over the
//! loopback interface, unshaped. Only Weir's switch has such ports.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netdev::Port;

use crate::trial_error::TrialError;

/// A note for the reader of a report.
pub(super) const NOTE: &str = "Without root: in-memory ports between the lab and the switch, \
    Weir's own traffic, no kernel hosts, no links and so no link rates. The control connection is \
    TCP over the loopback interface. These figures cannot be set beside those of a run as root.";

/// The testbed; its files are in the folder that it was given.
#[derive(Debug)]
pub struct MemoryTestbed {
    /// The lab's ends of the wires, except while a trial has them.
    ports: Mutex<Vec<Port>>,
    /// The switch's ends, in the text that `weir switch --port` takes.
    pub(crate) texts: [String; 2],
}

impl MemoryTestbed {
    /// Makes both wires in `dir`.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let wire = |number: usize, end: char| {
            format!("memory:{}?end={end}", dir.join(format!("wire-{number}")).display())
        };
        let open = |number| netdev::open_text(&wire(number, 'a')).map_err(io::Error::other);
        Ok(Self {
            ports: Mutex::new(vec![open(1)?, open(2)?]),
            texts: [wire(1, 'b'), wire(2, 'b')],
        })
    }

    /// The ports of both hosts, unless another trial has them. They stay open between trials: the
    /// switch must not see its links go down.
    pub(super) fn take_ports(&self) -> Result<Vec<Port>, TrialError> {
        let taken = std::mem::take(&mut *self.ports());
        match taken.len() {
            2 => Ok(taken),
            _ => Err(TrialError::Unfit("another trial has the in-memory ports")),
        }
    }

    /// Those that no trial has; they are taken back one after the other or both at once.
    pub(super) fn ports(&self) -> MutexGuard<'_, Vec<Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
