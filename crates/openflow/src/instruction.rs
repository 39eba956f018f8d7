//! The instructions of a flow entry: one row each (clause 7.2.4).

use crate::action::Action;
use crate::id::{MeterId, TableId};

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

/// Every row, in the order of [`InstructionKind`].
pub const INSTRUCTIONS: &[InstructionRow] = &[
    InstructionRow { kind: InstructionKind::Meter, text: "meter", number: 6 },
    InstructionRow { kind: InstructionKind::ApplyActions, text: "apply_actions", number: 4 },
    InstructionRow { kind: InstructionKind::ClearActions, text: "clear_actions", number: 5 },
    InstructionRow { kind: InstructionKind::WriteActions, text: "write_actions", number: 3 },
    InstructionRow { kind: InstructionKind::WriteMetadata, text: "write_metadata", number: 2 },
    InstructionRow { kind: InstructionKind::GotoTable, text: "goto_table", number: 1 },
    InstructionRow { kind: InstructionKind::Experimenter, text: "experimenter", number: 0xffff },
];

impl InstructionKind {
    /// The instruction's row.
    #[must_use]
    pub const fn row(self) -> &'static InstructionRow {
        &INSTRUCTIONS[self as usize]
    }

    /// The instruction of a type number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        INSTRUCTIONS.iter().find(|row| row.number == number).map(|row| row.kind)
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
            assert_eq!(InstructionKind::from_number(row.number), Some(row.kind));
        }
    }
}
