//! The instructions of a flow entry: one row each (clause 7.2.4).

use crate::action::Action;
use crate::id::{MeterId, TableId};
use crate::version::Version;

/// An instruction with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Go on in a later table.
    GotoTable(TableId),
    /// Write the masked bits of the metadata.
    WriteMetadata {
        /// The bits to write.
        metadata: u64,
        /// Which bits are written.
        mask: u64,
    },
    /// Merge actions into the action set.
    WriteActions(Vec<Action>),
    /// Run actions at once, in their order.
    ApplyActions(Vec<Action>),
    /// Empty the action set.
    ClearActions,
    /// Meter the packet; it may be dropped.
    Meter(MeterId),
    /// An instruction of somebody's own. Weir runs none and refuses them.
    Experimenter {
        /// Whose.
        experimenter: u32,
        /// The body behind the experimenter id.
        data: Vec<u8>,
    },
}

/// One instruction's row.
#[derive(Clone, Copy, Debug)]
pub struct InstructionRow {
    /// The instruction.
    pub kind: InstructionKind,
    /// The name in `ovs-ofctl`'s syntax; apply-actions has none, its actions stand alone.
    pub text: &'static str,
    /// Type number on the wire.
    pub number: u16,
    /// The first version that has it.
    pub since: Version,
}

/// An instruction without its arguments: the row's key. The order is the order of execution
/// (clause 5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum InstructionKind {
    /// See [`Instruction::Meter`].
    Meter,
    /// See [`Instruction::ApplyActions`].
    ApplyActions,
    /// See [`Instruction::ClearActions`].
    ClearActions,
    /// See [`Instruction::WriteActions`].
    WriteActions,
    /// See [`Instruction::WriteMetadata`].
    WriteMetadata,
    /// See [`Instruction::GotoTable`].
    GotoTable,
    /// See [`Instruction::Experimenter`].
    Experimenter,
}

const fn row(kind: InstructionKind, text: &'static str, number: u16) -> InstructionRow {
    InstructionRow { kind, text, number, since: Version::V1_3 }
}

/// Every row, in the order of [`InstructionKind`].
pub const INSTRUCTIONS: &[InstructionRow] = &[
    row(InstructionKind::Meter, "meter", 6),
    row(InstructionKind::ApplyActions, "apply_actions", 4),
    row(InstructionKind::ClearActions, "clear_actions", 5),
    row(InstructionKind::WriteActions, "write_actions", 3),
    row(InstructionKind::WriteMetadata, "write_metadata", 2),
    row(InstructionKind::GotoTable, "goto_table", 1),
    row(InstructionKind::Experimenter, "experimenter", 0xffff),
];

impl InstructionKind {
    /// The instruction's row.
    #[must_use]
    pub const fn row(self) -> &'static InstructionRow {
        &INSTRUCTIONS[self as usize]
    }

    /// The instruction of a type number, if the version has it.
    #[must_use]
    pub fn from_number(version: Version, number: u16) -> Option<Self> {
        let row = INSTRUCTIONS.iter().find(|row| row.number == number)?;
        (row.since <= version).then_some(row.kind)
    }
}

impl Instruction {
    /// The instruction's row key.
    #[must_use]
    pub fn kind(&self) -> InstructionKind {
        match self {
            Self::GotoTable(_) => InstructionKind::GotoTable,
            Self::WriteMetadata { .. } => InstructionKind::WriteMetadata,
            Self::WriteActions(_) => InstructionKind::WriteActions,
            Self::ApplyActions(_) => InstructionKind::ApplyActions,
            Self::ClearActions => InstructionKind::ClearActions,
            Self::Meter(_) => InstructionKind::Meter,
            Self::Experimenter { .. } => InstructionKind::Experimenter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{INSTRUCTIONS, InstructionKind};

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_numbers_lead_back() {
        for (index, row) in INSTRUCTIONS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(InstructionKind::from_number(row.since, row.number), Some(row.kind));
        }
    }
}
