//! The instructions of a flow entry: one row each (clause 7.2.4).
//!
//! A row defines the whole instruction except its behaviour: that is one arm in the datapath's
//! interpreter and one in its reference, both demanded by the compiler.

use crate::action::Action;
use crate::action::argument::{Argument, ArgumentSummary, ArgumentType, bind, elements};
use crate::action::{ArgumentKey, Nested, Syntax, argument_keys, nested};
use crate::id::{MeterId, TableId};
use crate::text::action as text;
use crate::version::{Numbers, Version, numbers};

/// One instruction's row.
#[derive(Clone, Copy, Debug)]
pub struct InstructionRow {
    /// The instruction.
    pub kind: InstructionKind,
    /// The first paragraph of its documentation.
    pub doc: &'static str,
    /// The name in `ovs-ofctl`'s syntax; apply-actions are printed without it.
    pub text: &'static str,
    /// Ryu's name of it (`ofctl_rest`); empty where Ryu has none.
    pub ryu: &'static str,
    /// Ryu's keys for its arguments, in their order.
    pub keys: &'static [ArgumentKey],
    /// The types of its arguments.
    pub arguments: &'static [ArgumentType],
    /// Their documentation where they have names; a single one is what the instruction says.
    pub argument_docs: &'static [&'static str],
    /// Type numbers.
    pub numbers: Numbers<u16>,
    /// The time at which its actions run.
    pub actions: ActionsRun,
    /// The form of its arguments in text.
    pub(crate) syntax: Syntax<Instruction>,
}

/// The time at which an instruction's actions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionsRun {
    /// It has no actions.
    Never,
    /// At once, in their order.
    AtOnce,
    /// At the pipeline's end, as parts of the action set.
    InSet,
}

/// One row an instruction, in the order of execution (clause 5.9): its variant with the types of
/// its arguments (see `elements`), its names and Ryu's keys, its numbers, when its actions run, its
/// form in text.
macro_rules! instructions {
    ($($(#[doc = $doc:literal])* $variant:ident $([ $before:literal ])?
        $( ( $arg:ty $(=> $end:literal)? ) )?
        $( { $($(#[doc = $fdoc:literal])* $fname:ident : $fty:ty),+ } )?
        $text:literal $ryu:literal ( $($keys:tt)* ) [$($numbers:tt)+], $actions:ident,
        $syntax:expr;)+) => {
        elements! {
            /// An instruction with its arguments.
            Instruction
            /// An instruction without its arguments: the row's key. The order is the order of
            /// execution (clause 5.9).
            InstructionKind
            $($(#[doc = $doc])* $variant $([ $before ])? $( ( $arg $(=> $end)? ) )?
                $( { $($(#[doc = $fdoc])* $fname : $fty),+ } )?;)+
        }

        /// Every row, in the order of [`InstructionKind`].
        pub const INSTRUCTIONS: &[InstructionRow] = &[$(InstructionRow {
            kind: InstructionKind::$variant,
            doc: concat!($($doc),*),
            text: $text,
            ryu: $ryu,
            keys: argument_keys!($($keys)*),
            arguments: &[$(<$arg as Argument>::TYPE)? $($(<$fty as Argument>::TYPE),+)?],
            argument_docs: &[$($(concat!($($fdoc),*)),+)?],
            numbers: numbers!($($numbers)+),
            actions: ActionsRun::$actions,
            syntax: $syntax,
        },)+];

        impl Instruction {
            /// Its actions, applied or written; not those of groups.
            #[must_use]
            pub fn actions(&self) -> &[Action] {
                match self {
                    $(Self::$variant $( (bind!(argument $arg)) )? $( { $($fname),+ } )? => {
                        let lists: &[&[Action]] = &[
                            $(<$arg as Argument>::actions(argument))?
                            $($(<$fty as Argument>::actions($fname)),+)?
                        ];
                        lists.iter().find(|list| !list.is_empty()).copied().unwrap_or_default()
                    })+
                }
            }

            fn actions_mut(&mut self) -> Option<&mut Vec<Action>> {
                match self {
                    $(Self::$variant $( (bind!(argument $arg)) )? $( { $($fname),+ } )? => {
                        $(if let Some(list) = <$arg as Argument>::actions_mut(argument) {
                            return Some(list);
                        })?
                        $($(if let Some(list) = <$fty as Argument>::actions_mut($fname) {
                            return Some(list);
                        })+)?
                    })+
                }
                None
            }
        }
    };
}

instructions! {
    /// Meter the packet; it may be dropped. Since 1.5 it is the first action that is applied.
    Meter(MeterId) "meter" "METER" (meter_id) [V1_3: 6; V1_4], Never, Syntax::Value;
    /// Run actions at once, in their order.
    ApplyActions [4] (Vec<Action>) "apply_actions" "APPLY_ACTIONS" (actions) [V1_1: 4], AtOnce,
        Syntax::Nameless;
    /// Empty the action set.
    ClearActions [4] "clear_actions" "CLEAR_ACTIONS" () [V1_1: 5], Never, Syntax::Value;
    /// Merge actions into the action set.
    WriteActions [4] (Vec<Action>) "write_actions" "WRITE_ACTIONS" (actions) [V1_1: 3], InSet,
        Syntax::Parenthesized;
    /// Write the masked bits of the metadata.
    WriteMetadata [4] {
        /// The bits to write.
        metadata: u64,
        /// A bit for each one that is written.
        mask: u64
    } "write_metadata" "WRITE_METADATA" (metadata, metadata_mask = u64::MAX) [V1_1: 2], Never,
        Syntax::Own { parse: text::write_metadata, format: text::format_write_metadata };
    /// Go on in a later table.
    GotoTable(TableId => 3) "goto_table" "GOTO_TABLE" (table_id) [V1_1: 1], Never, Syntax::Value;
    /// An instruction of somebody's own. Weir runs none and refuses them.
    Experimenter {
        /// Its owner.
        experimenter: u32,
        /// The body after the experimenter id.
        data: Vec<u8>
    } "experimenter" "" (experimenter, data = 0) [V1_1: 0xffff], Never,
        Syntax::Own { parse: text::experimenter, format: text::format_experimenter };
}

impl InstructionKind {
    /// The instruction's row.
    #[must_use]
    pub const fn row(self) -> &'static InstructionRow {
        &INSTRUCTIONS[self as usize]
    }

    /// The type number on the wire, if the version has the instruction.
    #[must_use]
    pub const fn number(self, version: Version) -> Option<u16> {
        self.row().numbers.of(version)
    }

    /// Whether the version has it, a meter also as an action.
    #[must_use]
    pub fn is_in(self, version: Version) -> bool {
        self.number(version).is_some() || self == Self::Meter && version.has_meter_action()
    }

    /// The instruction of a type number, if the version has it.
    #[must_use]
    pub fn from_number(version: Version, number: u16) -> Option<Self> {
        let row = INSTRUCTIONS.iter().find(|row| row.numbers.of(version) == Some(number))?;
        Some(row.kind)
    }
}

impl Instruction {
    /// Its actions and those inside them.
    pub fn all_actions(&self) -> Nested<'_> {
        nested(self.actions())
    }

    /// The table that it leads to.
    #[must_use]
    pub fn goto_table(&self) -> Option<TableId> {
        if let Self::GotoTable(table) = self { Some(*table) } else { None }
    }

    /// The meter that packets pass.
    #[must_use]
    pub fn meter(&self) -> Option<MeterId> {
        if let Self::Meter(meter) = self { Some(*meter) } else { None }
    }

    /// The bits of the metadata that it writes, and their mask.
    #[must_use]
    pub fn metadata(&self) -> Option<(u64, u64)> {
        if let Self::WriteMetadata { metadata, mask } = self {
            Some((*metadata, *mask))
        } else {
            None
        }
    }

    /// Whether it does no more than choose the next table or write metadata.
    #[must_use]
    pub fn only_leads_on(&self) -> bool {
        let applies_nothing =
            self.kind().row().actions == ActionsRun::AtOnce && self.actions().is_empty();
        self.goto_table().is_some() || self.metadata().is_some() || applies_nothing
    }

    /// Bytes of its lists, which lie outside of the instruction itself.
    #[must_use]
    pub fn list_bytes(&self) -> usize {
        ArgumentSummary::of(|summary| self.write(summary)).list_bytes
    }

    /// The same with its actions replaced by `change`.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn map_actions<E>(
        &self,
        change: impl FnOnce(&[Action]) -> Result<Vec<Action>, E>,
    ) -> Result<Self, E> {
        let mut changed = self.clone();
        if let Some(list) = changed.actions_mut() {
            *list = change(list)?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::{INSTRUCTIONS, Instruction, InstructionKind};
    use crate::action::Action;
    use crate::version::Version;

    #[test]
    fn rows_are_in_the_enum_order_and_numbers_lead_back() {
        for (index, row) in INSTRUCTIONS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(row.keys.len(), row.arguments.len(), "{}", row.text);
            for &version in Version::ALL {
                if let Some(number) = row.kind.number(version) {
                    assert_eq!(InstructionKind::from_number(version, number), Some(row.kind));
                }
            }
        }
    }

    #[test]
    fn actions_are_found_counted_and_replaced() {
        let applied = Instruction::ApplyActions(vec![Action::PopVlan]);
        assert_eq!(applied.actions(), [Action::PopVlan]);
        assert_eq!(applied.list_bytes(), size_of::<Action>());
        let replaced = applied.map_actions(|_| Ok::<_, ()>(Vec::new())).unwrap();
        assert_eq!(replaced, Instruction::ApplyActions(Vec::new()));
        assert!(replaced.only_leads_on() && !applied.only_leads_on());
        let foreign = Instruction::Experimenter { experimenter: 1, data: vec![0; 8] };
        assert_eq!((foreign.actions(), foreign.list_bytes()), (&[][..], 8));
    }
}
