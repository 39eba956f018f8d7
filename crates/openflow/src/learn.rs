//! `learn`: a flow entry that a packet adds or changes (Nicira's `NXAST_LEARN`).
//!
//! The action says what the entry consists of; `Learn::flow_mod` makes the entry for one packet.
//! The text and the bytes of it stand in `text::learn` and in the crate `wire`.

use crate::field::Field;
use crate::id::{Cookie, TableId};
use crate::subfield::BitRange;

bitflags::bitflags! {
    /// Flags of a learn action (`NX_LEARN_F_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct LearnFlags: u16 {
        /// A flow-removed message is sent when the learnt entry goes.
        const SEND_FLOW_REM = 1;
        /// All entries of the table that have the cookie go with the last entry that learns such.
        const DELETE_LEARNED = 1 << 1;
        const _ = !0;
    }
}

/// The entry that a packet adds, or whose actions and cookie it changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Learn {
    /// Seconds without a packet until the entry expires; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds without a packet that learns it until the entry expires; 0 for never.
    pub hard_timeout_s: u16,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: Cookie,
    /// Consequences of its end, and of the end of the entry that learns it.
    pub flags: LearnFlags,
    /// Its table.
    pub table: TableId,
    /// The timeouts in seconds that the entry has at most when a packet of it ends its TCP
    /// connection, idle and hard; 0 leaves that one.
    pub fin_timeouts_s: [u16; 2],
    /// Its match and its actions, part by part.
    pub specs: Vec<LearnSpec>,
}

/// A part of a learnt entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LearnSpec {
    /// Number of its bits.
    pub n_bits: u16,
    /// Their value.
    pub source: LearnSource,
    /// The use of the value.
    pub target: LearnTarget,
}

/// The value of a part of a learnt entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnSource {
    /// A field of the packet, from this bit on.
    Field(Field, u16),
    /// This value.
    Immediate(u128),
}

/// The use of a value in a learnt entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LearnTarget {
    /// Bits of a field that packets must have, from this one on.
    Match(Field, u16),
    /// Bits of a field that are written, from this one on.
    Load(Field, u16),
    /// The port that packets leave by.
    Output,
}

impl LearnSpec {
    /// The bits of a field from this one on.
    pub(crate) const fn bits(&self, offset: u16) -> BitRange {
        BitRange { offset, n_bits: self.n_bits }
    }

    /// The part of the packet that is read.
    #[must_use]
    pub const fn read(&self) -> Option<(Field, BitRange)> {
        match self.source {
            LearnSource::Field(field, offset) => Some((field, self.bits(offset))),
            LearnSource::Immediate(_) => None,
        }
    }

    /// The part that the entry matches.
    #[must_use]
    pub const fn matched(&self) -> Option<(Field, BitRange)> {
        match self.target {
            LearnTarget::Match(field, offset) => Some((field, self.bits(offset))),
            LearnTarget::Load(..) | LearnTarget::Output => None,
        }
    }

    /// The part that the entry writes.
    #[must_use]
    pub const fn written(&self) -> Option<(Field, BitRange)> {
        match self.target {
            LearnTarget::Load(field, offset) => Some((field, self.bits(offset))),
            LearnTarget::Match(..) | LearnTarget::Output => None,
        }
    }
}

impl Learn {
    /// The fields of the packet that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Field> {
        self.specs.iter().filter_map(|spec| spec.read().map(|(field, _)| field))
    }
}
