//! The words of the flow language, for a reference of it: forms of actions and instructions, their
//! other names. They come from the rows by which texts are read.

use super::action::{ALIASES, written};
use crate::action::{ActionKind, ArgumentKey, Syntax};
use crate::instruction::InstructionKind;

/// Form of an action: `push_vlan:ETHERTYPE`. `None` where it has no text.
#[must_use]
pub fn action_form(kind: ActionKind) -> Option<String> {
    let row = kind.row();
    (kind != ActionKind::Experimenter).then(|| form(row.text, row.syntax, row.keys))
}

/// Form of an instruction: `goto_table:TABLE_ID`. `None` where it has no text.
#[must_use]
pub fn instruction_form(kind: InstructionKind) -> Option<String> {
    let row = kind.row();
    (kind != InstructionKind::Experimenter).then(|| form(row.text, row.syntax, row.keys))
}

/// Further names of an action, which are read and not printed.
pub fn other_names(kind: ActionKind) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, of)| *of == kind).map(|(alias, _)| *alias)
}

fn form<T>(name: &str, syntax: Syntax<T>, keys: &[ArgumentKey]) -> String {
    let words: Vec<String> = keys.iter().map(|key| key.name.to_uppercase()).collect();
    match syntax {
        Syntax::Nameless => format!("{name}({})", words.join(",")),
        Syntax::EthType => format!("{name}:{}", words.join(":")),
        Syntax::Value | Syntax::Parenthesized | Syntax::Own { .. } => {
            written(name, syntax, &words, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{action_form, instruction_form, other_names};
    use crate::action::ActionKind;
    use crate::instruction::InstructionKind;

    #[test]
    fn forms_are_those_of_the_printed_text() {
        for (kind, form) in [
            (ActionKind::Output, "output:PORT"),
            (ActionKind::PushVlan, "push_vlan:ETHERTYPE"),
            (ActionKind::SetMplsTtl, "set_mpls_ttl(MPLS_TTL)"),
            (ActionKind::SetField, "set_field:VALUE->FIELD"),
            (ActionKind::DecNwTtl, "dec_ttl"),
        ] {
            assert_eq!(action_form(kind).as_deref(), Some(form));
        }
        let form = |kind| instruction_form(kind).unwrap();
        assert_eq!(form(InstructionKind::GotoTable), "goto_table:TABLE_ID");
        assert_eq!(form(InstructionKind::WriteMetadata), "write_metadata:METADATA/METADATA_MASK");
        assert_eq!(form(InstructionKind::ApplyActions), "apply_actions(ACTIONS)");
        assert!(other_names(ActionKind::DecNwTtl).eq(["dec_nw_ttl"]));
    }
}
