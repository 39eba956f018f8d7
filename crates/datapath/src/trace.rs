//! A trace: the steps of one packet through the datapath, for people.
//!
//! A trace is written by the interpreter that forwards, not by a second one, so it can never say
//! something else than what happens. It must never change a counter or use up a meter.

use std::fmt;

use openflow::Instruction;

use crate::verdict::Verdict;

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Depth: 0 for the pipeline, one more inside of each group.
    pub depth: usize,
    /// The event, in one line.
    pub text: String,
    /// Of the match of an entry: whether it has no actions, so that a drop is meant.
    pub is_drop_entry: Option<bool>,
}

impl TraceStep {
    /// The match of an entry with these instructions.
    pub(crate) fn entry(depth: usize, text: String, instructions: &[Instruction]) -> Self {
        let is_nothing = |one: &Instruction| matches!(one, Instruction::ClearActions);
        Self { depth, text, is_drop_entry: Some(instructions.iter().all(is_nothing)) }
    }
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
        self.steps.iter().rev().find_map(|step| step.is_drop_entry) == Some(true)
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
