//! The bytes that an answer may still get: what is long is refused before it is made.
//!
//! All switches of an answer take from the same room, each for one value at a time. It must never
//! let half a list through: who finds no room ends with an error.

use crate::ofctl::stats::too_long;
use crate::problem::Problem;
use crate::route::Call;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The room of an answer, for all its switches together.
#[derive(Debug)]
pub(crate) struct Room {
    bytes_max: usize,
    taken: AtomicUsize,
    /// What to ask for when there is none.
    hint: &'static str,
}

impl Room {
    /// The room of a list of one switch.
    pub(crate) fn of_list(call: &Call) -> Self {
        Self::new(call.answer_bytes_max, "a part of it, such as a table or a match")
    }

    /// The room of the lists of the switches that a path names.
    pub(crate) fn of_switches(call: &Call) -> Self {
        Self::new(call.answer_bytes_max, "one switch")
    }

    /// The same of lists that a path may narrow to a VLAN.
    pub(crate) fn of_vlans(call: &Call) -> Self {
        Self::new(call.answer_bytes_max, "one switch, or a VLAN")
    }

    pub(crate) fn new(bytes_max: usize, hint: &'static str) -> Self {
        Self { bytes_max, taken: AtomicUsize::new(0), hint }
    }

    /// Takes room.
    ///
    /// # Errors
    /// There is less: half a list is none.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Problem> {
        if self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.bytes_max {
            return Ok(());
        }
        Err(too_long(self.bytes_max, self.hint))
    }
}
