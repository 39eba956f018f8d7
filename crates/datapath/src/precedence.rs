//! Precedence among entries of a table, as the version that set an entry up defines it.
//!
//! In 1.3 that is the priority. In 1.0 an entry without wildcards comes before all others, whatever
//! its priority, which is then no part of its identity: two such entries with one match are one
//! (clause 3.4 of 1.0). Statistics give back the priority that was sent.

use openflow::flow::FlowMod;
use openflow::{Match, Version};

/// The place of an entry above others of its table; higher wins, older ones among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence(u32);

/// Above every priority.
const EXACT: u32 = 0x1_0000;

impl Precedence {
    /// Bits of [`Self::order`].
    pub const BITS: u32 = 17;

    /// Whether a match has no wildcards in the eyes of a version; always false in 1.3.
    pub(crate) fn is_exact(matching: &Match, version: Version) -> bool {
        version.ranks_exact_first() && matching.form().is_some_and(|form| form.is_exact)
    }

    /// That of an entry of a priority.
    pub(crate) fn of(priority: u16, is_exact: bool) -> Self {
        Self(if is_exact { EXACT } else { priority.into() })
    }

    /// That of the entry that a flow-mod adds.
    pub(crate) fn of_flow_mod(flow_mod: &FlowMod, version: Version) -> Self {
        Self::of(flow_mod.priority, Self::is_exact(&flow_mod.matching, version))
    }

    /// A number of [`Self::BITS`] bits, lower for the entry that comes first.
    #[must_use]
    pub fn order(self) -> u32 {
        EXACT - self.0
    }
}

impl From<u16> for Precedence {
    fn from(priority: u16) -> Self {
        Self::of(priority, false)
    }
}

/// Whether an entry is its table's table-miss entry (clause 5.4): of priority 0 *and* without match
/// fields. 1.0 has none.
pub(crate) fn is_table_miss(priority: u16, matching: &Match, version: Version) -> bool {
    version.has_table_miss_entry() && priority == 0 && matching.is_any()
}

/// The entries that a strict command selects, beside their match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strict {
    precedence: Precedence,
    /// The priority by which a version that knows no exact entries names one.
    priority: Option<u16>,
    /// 1.0 names an exact entry by fields that leave no wildcard by themselves. One with the same
    /// fields that 1.3 has set up is exact too in the eyes of 1.0, whatever its priority.
    all_fields: bool,
}

/// The part of an entry that a strict command compares, beside its match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRank {
    /// Its place in the table.
    pub(crate) precedence: Precedence,
    /// The priority that was sent.
    pub(crate) priority: u16,
    /// Whether the version that has set it up ranks exact entries first.
    pub(crate) ranks_exact_first: bool,
}

impl Strict {
    /// The selection of a strict flow-mod. 1.3 names an exact entry of 1.0 by the priority that
    /// statistics show.
    pub(crate) fn of(flow_mod: &FlowMod, version: Version) -> Self {
        let priority = (!version.ranks_exact_first()).then_some(flow_mod.priority);
        let all_fields = Precedence::is_exact(&flow_mod.matching, version)
            && flow_mod.matching.form().is_some_and(|form| form.difference.wildcards == 0);
        Self { precedence: Precedence::of_flow_mod(flow_mod, version), priority, all_fields }
    }

    /// Whether it selects an entry of its match.
    pub(crate) fn takes(self, entry: EntryRank) -> bool {
        self.precedence == entry.precedence
            || self.priority == Some(entry.priority)
            || self.all_fields && !entry.ranks_exact_first
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryRank, Precedence, Strict};
    use openflow::flow::{FlowMod, FlowModCommand};
    use openflow::{Match, TupleForm, TwelveTuple, Version};

    #[test]
    fn an_exact_entry_comes_before_every_priority() {
        let highest = Precedence::from(u16::MAX);
        assert!(Precedence::of(0, true) > highest && highest > Precedence::from(0));
        assert_eq!(Precedence::of(0, true), Precedence::of(7, true));
        assert!(Precedence::of(0, true).order() < highest.order());
        assert!(Precedence::from(0).order() < 1 << Precedence::BITS);
    }

    #[test]
    fn only_1_0_has_exact_entries_and_1_3_names_them_by_priority() {
        let form = TupleForm { is_exact: true, ..TupleForm::default() };
        let mut flow_mod = FlowMod::new(FlowModCommand::DeleteStrict);
        flow_mod.matching = Match::any().in_form(form);
        flow_mod.priority = 3;
        let exact = Precedence::of_flow_mod(&flow_mod, Version::V1_0);
        assert_eq!(exact, Precedence::of(9, true));
        assert_eq!(Precedence::of_flow_mod(&flow_mod, Version::V1_3), Precedence::from(3));
        let of_1_0 =
            |precedence, priority| EntryRank { precedence, priority, ranks_exact_first: true };
        let strict = Strict::of(&flow_mod, Version::V1_0);
        assert!(strict.takes(of_1_0(exact, 9)) && !strict.takes(of_1_0(Precedence::from(3), 3)));
        let strict = Strict::of(&flow_mod, Version::V1_3);
        assert!(strict.takes(of_1_0(exact, 3)) && !strict.takes(of_1_0(exact, 9)));
        assert!(strict.takes(of_1_0(Precedence::from(3), 3)));
    }

    #[test]
    fn exact_fields_name_an_entry_of_1_3_whatever_its_priority() {
        let strict = |wildcards| {
            let difference = TwelveTuple { wildcards, ..TwelveTuple::default() };
            let mut flow_mod = FlowMod::new(FlowModCommand::DeleteStrict);
            flow_mod.matching = Match::any().in_form(TupleForm { is_exact: true, difference });
            Strict::of(&flow_mod, Version::V1_0)
        };
        let entry = |ranks_exact_first| EntryRank {
            precedence: Precedence::from(7),
            priority: 7,
            ranks_exact_first,
        };
        assert!(strict(0).takes(entry(false)) && !strict(0).takes(entry(true)));
        // The fields alone leave a wildcard: 1.0 sees an entry of 1.3 with it.
        assert!(!strict(1).takes(entry(false)));
    }
}
