//! Conjunctive matches: what a lookup ends with when entries with `conjunction` actions match (Open
//! vSwitch, ovs-fields(7)).
//!
//! Such an entry is a part of a match and no answer. The lookup of a classifier knows nothing of
//! this: where the best entry that it finds has parts, the entries before the best one without are
//! gathered, and the rule is here, once for forwarders and for traces. Tables without conjunctions
//! pay nothing.

use openflow::{Action, Instruction};

/// An entry's part in a conjunctive match.
#[derive(Clone, Copy, Debug)]
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

/// Parts of one conjunction that a packet matches.
///
/// Entries that are found one after the other are mostly of one conjunction, whose parts are put
/// together at once: then nothing is left to sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Matched {
    /// The order of precedence of their entries.
    order: u32,
    id: u32,
    n_dimensions: u8,
    /// One bit for each.
    dimensions: u64,
}

impl Matched {
    fn conjunction(&self) -> (u32, u32, u8) {
        (self.order, self.id, self.n_dimensions)
    }
}

/// Adds the parts of an entry that the packet matches, with its order of precedence.
#[inline]
pub(super) fn add(matched: &mut Vec<Matched>, order: u32, parts: impl Iterator<Item = Part>) {
    for Part { id, n_dimensions, dimension } in parts {
        let part = Matched { order, id, n_dimensions, dimensions: 1 << dimension };
        match matched.last_mut() {
            Some(last) if last.conjunction() == part.conjunction() => {
                last.dimensions |= part.dimensions;
            }
            Some(_) | None => matched.push(part),
        }
    }
}

/// The answer of a lookup that a conjunction leads to.
///
/// `matched` has the parts of the entries that the packet matches; `end` is the order of precedence
/// of the best entry without parts, which comes before those of the same order. The parts of one
/// order make up a conjunction when they have all of its dimensions: then the answer is what
/// `with_id` finds for its id, if that finds anything.
pub(super) fn resolve<T>(
    matched: &mut [Matched],
    end: Option<u32>,
    mut with_id: impl FnMut(u32) -> Option<T>,
) -> Option<T> {
    matched.sort_unstable();
    let conjunctions = matched.chunk_by(|a, b| a.conjunction() == b.conjunction());
    for parts in conjunctions {
        let Matched { order, id, n_dimensions, .. } = *parts.first()?;
        if end.is_some_and(|end| order >= end) {
            return None;
        }
        let dimensions = parts.iter().fold(0, |all, part| all | part.dimensions);
        if dimensions == u64::MAX >> (64 - n_dimensions)
            && let Some(answer) = with_id(id)
        {
            return Some(answer);
        }
    }
    None
}
