//! A trace: the steps of one packet through the datapath, for people.
//!
//! A trace is written by the interpreter that forwards, not by a second one, so it can never say
//! something else than what happens. It must never change a counter or use up a meter.

use std::fmt;

use crate::verdict::Verdict;

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Depth: 0 for the pipeline, one more inside of each group.
    pub depth: usize,
    /// The event, in one line.
    pub text: String,
}

/// One packet's way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The steps, in order.
    pub steps: Vec<TraceStep>,
    /// The verdicts that the packet would have got.
    pub verdicts: Vec<Verdict>,
}

impl Trace {
    /// Whether the last entry on the way has no actions, as one with `actions=drop`: then the
    /// packet is dropped on purpose, and not for want of an output.
    #[must_use]
    pub fn ends_in_drop_entry(&self) -> bool {
        let mut entries = self.steps.iter().filter(|step| step.text.starts_with("table "));
        let ends = |step: &TraceStep| {
            [" drop", " clear_actions"].iter().any(|end| step.text.ends_with(end))
        };
        entries.next_back().is_some_and(ends)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{:indent$}{}", "", step.text, indent = 2 * step.depth)?;
        }
        Ok(())
    }
}
