//! Conjunctive matches: what a lookup ends with when entries with `conjunction` actions match (Open
//! vSwitch, ovs-fields(7)).
//!
//! Such an entry is a part of a match and no answer. The lookup of a classifier knows nothing of
//! this: where the best entry that it finds has parts, the entries before the best one without are
//! gathered, and the rule is here, once for forwarders and for traces. Tables without conjunctions
//! pay nothing.

use openflow::{Action, Instruction};

/// An entry's part in a conjunctive match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    id: u32,
    /// 2 to 64.
    n_dimensions: u8,
    dimension: u8,
}

/// The parts of an entry with these instructions.
pub(super) fn parts(instructions: &[Instruction]) -> impl Iterator<Item = Part> {
    let actions = instructions.iter().flat_map(Instruction::actions);
    actions.filter_map(|action| {
        let Action::Conjunction { dimension, n_dimensions, id } = *action else { return None };
        Some(Part { id, n_dimensions, dimension })
    })
}

/// The answer of a lookup, with its order of precedence.
///
/// `matched` has the parts of the entries that the packet matches, each with the order of its
/// entry; `single` is the best entry without parts. The parts of one order make up a conjunction
/// when they have all of its dimensions: then the answer is what `with_id` finds for its id, if
/// that finds anything. Entries without parts come before those of the same order.
pub(super) fn resolve<T>(
    mut matched: Vec<(u32, Part)>,
    single: Option<(u32, T)>,
    mut with_id: impl FnMut(u32) -> Option<(u32, T)>,
) -> Option<(u32, T)> {
    let end = single.as_ref().map_or(u32::MAX, |(order, _)| *order);
    matched.retain(|(order, _)| *order < end);
    matched.sort_unstable();
    let conjunctions = matched
        .chunk_by(|(order, a), (other, b)| order == other && a.conjunction() == b.conjunction());
    let mut met = conjunctions.filter(|parts| {
        let dimensions = parts.iter().fold(0, |all, (_, part)| all | 1_u64 << part.dimension);
        let n_dimensions = parts.first().map_or(0, |(_, part)| part.n_dimensions);
        dimensions.count_ones() == u32::from(n_dimensions)
    });
    met.find_map(|parts| with_id(parts.first()?.1.id)).or(single)
}

impl Part {
    fn conjunction(self) -> (u32, u8) {
        (self.id, self.n_dimensions)
    }
}
