//! The size budget of an answer, shared by its switches: a list that is too long is refused before
//! it is made.
//!
//! All switches of an answer take from the same budget, each for one value at a time. It must never
//! let half a list through: a list that finds none left ends with an error.

use crate::problem::Problem;
use crate::route::Call;
use axum::http::StatusCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Remaining size budget of an answer, shared by its switches.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    bytes_max: usize,
    taken: AtomicUsize,
    /// A smaller request to advise when the budget is used up.
    hint: &'static str,
}

impl ByteBudget {
    /// The budget of a list of one switch.
    pub(crate) fn of_list(call: &Call) -> Self {
        Self::new(call.answer_bytes_max, "a part of it, such as a table or a match")
    }

    /// The budget of the lists of the switches that a path names.
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

    /// Takes bytes.
    ///
    /// # Errors
    /// Fewer are left: half a list is none.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Problem> {
        if self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.bytes_max {
            return Ok(());
        }
        let (max, hint) = (self.bytes_max, self.hint);
        let words = format!("the answer has more than {max} bytes: ask for {hint}");
        Err(Problem::new(StatusCode::BAD_GATEWAY, words))
    }
}
