//! The way in which entries were set up, in four bytes each: whether by a version that has a
//! table-miss entry or ranks exact entries first, whether without wildcards, and a trait of its
//! version: the form of 1.0's match, or the importance of 1.4.
//!
//! Entries of one controller mostly have the same trait, so each stands once and is counted.

use std::collections::HashMap;

use openflow::{Match, TupleForm, Version};

use crate::precedence::Precedence;

/// The way in which an entry was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Setup(u32);

/// Set up by a version that has no table-miss entry.
const NO_TABLE_MISS: u32 = 1;
const EXACT: u32 = 1 << 1;
/// Set up by a version that ranks exact entries first.
const RANKS_EXACT_FIRST: u32 = 1 << 2;
/// Above the bits: zero for no trait of its own, or the number of the trait and one.
const TRAIT_SHIFT: u32 = 3;

impl Setup {
    /// That of an entry of 1.3.
    pub(super) const NONE: Self = Self(0);

    /// Whether the entry may be the table-miss entry.
    pub(super) fn may_be_table_miss(self) -> bool {
        self.0 & NO_TABLE_MISS == 0
    }

    /// Whether it comes before all priorities.
    pub(super) fn is_exact(self) -> bool {
        self.0 & EXACT != 0
    }

    /// Whether the version that has set it up ranks exact entries first.
    pub(super) fn ranks_exact_first(self) -> bool {
        self.0 & RANKS_EXACT_FIRST != 0
    }

    /// A version whose entries are set up like this one.
    pub(super) fn version(self) -> Version {
        let is_alike = |version: &&Version| {
            version.has_table_miss_entry() == self.may_be_table_miss()
                && version.ranks_exact_first() == self.ranks_exact_first()
        };
        Version::ALL.iter().rev().find(is_alike).copied().unwrap_or(Version::NEWEST)
    }

    fn number(self) -> Option<u32> {
        (self.0 >> TRAIT_SHIFT).checked_sub(1)
    }
}

/// A trait that entries of one version only have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum VersionTrait {
    /// The form of 1.0's match, where the fields do not give it.
    Form(TupleForm),
    /// An importance other than zero.
    Importance(u16),
}

/// The traits that entries have.
#[derive(Clone, Debug, Default)]
pub(super) struct Setups {
    /// Each with the number of its entries; none where that is zero.
    traits: Vec<(VersionTrait, u32)>,
    known: HashMap<VersionTrait, u32>,
    free: Vec<u32>,
}

impl Setups {
    /// The setup of an entry of this match and importance by a message of a version. One entry may
    /// have it until it is given back.
    pub(super) fn take(&mut self, matching: &Match, importance: u16, version: Version) -> Setup {
        let mut bits = if version.has_table_miss_entry() { 0 } else { NO_TABLE_MISS };
        if version.ranks_exact_first() {
            bits |= RANKS_EXACT_FIRST;
        }
        if Precedence::is_exact(matching, version) {
            bits |= EXACT;
        }
        let own = match (matching.form(), importance) {
            (Some(form), _) => Some(VersionTrait::Form(*form)),
            (None, 0) => None,
            (None, importance) => Some(VersionTrait::Importance(importance)),
        };
        self.with_trait(bits, own)
    }

    /// The setup that an entry had whose trait was this, for an entry that is to have it.
    pub(super) fn take_again(&mut self, setup: Setup, own: Option<VersionTrait>) -> Setup {
        self.with_trait(setup.0 & ((1 << TRAIT_SHIFT) - 1), own)
    }

    fn with_trait(&mut self, bits: u32, own: Option<VersionTrait>) -> Setup {
        let Some(own) = own else { return Setup(bits) };
        let number = match self.known.get(&own) {
            Some(number) => *number,
            None => self.add(own),
        };
        if let Some((_, users)) = self.traits.get_mut(number as usize) {
            *users += 1;
        }
        Setup(bits | (number + 1) << TRAIT_SHIFT)
    }

    fn add(&mut self, own: VersionTrait) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                self.traits[number as usize] = (own, 0);
                number
            }
            None => {
                self.traits.push((own, 0));
                (self.traits.len() - 1) as u32
            }
        };
        self.known.insert(own, number);
        number
    }

    /// Lets one more entry have it.
    pub(super) fn share(&mut self, setup: Setup) {
        let number = setup.number().map(|number| number as usize);
        if let Some((_, users)) = number.and_then(|number| self.traits.get_mut(number)) {
            *users += 1;
        }
    }

    /// Takes it back from an entry.
    pub(super) fn give_back(&mut self, setup: Setup) {
        let Some(number) = setup.number() else { return };
        if let Some((own, users)) = self.traits.get_mut(number as usize) {
            *users -= 1;
            if *users == 0 {
                self.known.remove(own);
                self.free.push(number);
            }
        }
    }

    /// A match in the form in which it was set up.
    pub(super) fn dressed(&self, matching: Match, setup: Setup) -> Match {
        match self.form(setup) {
            Some(form) => matching.in_form(form),
            None => matching,
        }
    }

    /// The form in which it was.
    pub(super) fn form(&self, setup: Setup) -> Option<TupleForm> {
        match self.own(setup)? {
            VersionTrait::Form(form) => Some(form),
            VersionTrait::Importance(_) => None,
        }
    }

    /// Its importance.
    pub(super) fn importance(&self, setup: Setup) -> u16 {
        match self.own(setup) {
            Some(VersionTrait::Importance(importance)) => importance,
            Some(VersionTrait::Form(_)) | None => 0,
        }
    }

    /// The trait that is its own.
    pub(super) fn own(&self, setup: Setup) -> Option<VersionTrait> {
        let (own, _) = self.traits.get(setup.number()? as usize)?;
        Some(*own)
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_TABLE_MISS, RANKS_EXACT_FIRST, Setup, Setups};
    use openflow::{Match, TupleForm, TwelveTuple, Version};

    #[test]
    fn forms_stand_once_and_go_with_their_last_entry() {
        let mut setups = Setups::default();
        let in_form = |tp_src, is_exact| {
            let difference = TwelveTuple { tp_src, ..TwelveTuple::default() };
            Match::any().in_form(TupleForm { is_exact, difference })
        };
        assert_eq!(setups.take(&Match::any(), 0, Version::V1_3), Setup::default());
        let one = setups.take(&in_form(1, false), 0, Version::V1_0);
        assert_eq!(setups.take(&in_form(1, false), 0, Version::V1_0), one);
        assert!(!one.may_be_table_miss() && !one.is_exact());
        let exact = setups.take(&in_form(2, true), 0, Version::V1_0);
        assert!(exact.is_exact() && exact.ranks_exact_first());
        assert!(!setups.take(&in_form(2, true), 0, Version::V1_3).is_exact());
        setups.share(exact);
        let shown = setups.dressed(Match::any(), exact);
        assert_eq!(shown.form(), in_form(2, true).form());
        setups.give_back(one);
        assert_eq!(setups.dressed(Match::any(), one).form(), in_form(1, false).form());
        setups.give_back(one);
        assert_eq!(setups.known.len(), 1);
        let important = setups.take(&Match::any(), 7, Version::V1_4);
        assert_eq!(
            important.0,
            one.0 & !(NO_TABLE_MISS | RANKS_EXACT_FIRST),
            "the place is used again"
        );
        assert_eq!((setups.importance(important), setups.importance(exact)), (7, 0));
        assert_eq!(setups.dressed(Match::any(), important).form(), None);
    }
}
