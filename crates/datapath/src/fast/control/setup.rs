//! The way in which entries were set up, in four bytes each: whether by a version that has a
//! table-miss entry or ranks exact entries first, whether without wildcards, and in which form of
//! 1.0's match.
//!
//! Entries of one controller mostly have the same form, so each form stands once and is counted.

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
/// Above the bits: zero for no form of its own, or the number of the form and one.
const FORM_SHIFT: u32 = 3;

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

    fn form(self) -> Option<u32> {
        (self.0 >> FORM_SHIFT).checked_sub(1)
    }
}

/// The forms that entries have.
#[derive(Clone, Debug, Default)]
pub(super) struct Setups {
    /// Each with the number of its entries; none where that is zero.
    forms: Vec<(TupleForm, u32)>,
    known: HashMap<TupleForm, u32>,
    free: Vec<u32>,
}

impl Setups {
    /// The setup of an entry of this match by a message of a version. One entry may have it until
    /// it is given back.
    pub(super) fn take(&mut self, matching: &Match, version: Version) -> Setup {
        let mut bits = if version.has_table_miss_entry() { 0 } else { NO_TABLE_MISS };
        if version.ranks_exact_first() {
            bits |= RANKS_EXACT_FIRST;
        }
        if Precedence::is_exact(matching, version) {
            bits |= EXACT;
        }
        self.with_form(bits, matching.form())
    }

    /// The setup that an entry had whose form was this, for an entry that is to have it.
    pub(super) fn take_again(&mut self, setup: Setup, form: Option<TupleForm>) -> Setup {
        self.with_form(setup.0 & ((1 << FORM_SHIFT) - 1), form.as_ref())
    }

    fn with_form(&mut self, bits: u32, form: Option<&TupleForm>) -> Setup {
        let Some(form) = form else { return Setup(bits) };
        let number = match self.known.get(form) {
            Some(number) => *number,
            None => self.add(*form),
        };
        if let Some((_, users)) = self.forms.get_mut(number as usize) {
            *users += 1;
        }
        Setup(bits | (number + 1) << FORM_SHIFT)
    }

    fn add(&mut self, form: TupleForm) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                self.forms[number as usize] = (form, 0);
                number
            }
            None => {
                self.forms.push((form, 0));
                (self.forms.len() - 1) as u32
            }
        };
        self.known.insert(form, number);
        number
    }

    /// Lets one more entry have it.
    pub(super) fn share(&mut self, setup: Setup) {
        let number = setup.form().map(|number| number as usize);
        if let Some((_, users)) = number.and_then(|number| self.forms.get_mut(number)) {
            *users += 1;
        }
    }

    /// Takes it back from an entry.
    pub(super) fn give_back(&mut self, setup: Setup) {
        let Some(number) = setup.form() else { return };
        if let Some((form, users)) = self.forms.get_mut(number as usize) {
            *users -= 1;
            if *users == 0 {
                self.known.remove(form);
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
        let (form, _) = self.forms.get(setup.form()? as usize)?;
        Some(*form)
    }
}

#[cfg(test)]
mod tests {
    use super::{Setup, Setups};
    use openflow::{Match, TupleForm, TwelveTuple, Version};

    #[test]
    fn forms_stand_once_and_go_with_their_last_entry() {
        let mut setups = Setups::default();
        let in_form = |tp_src, is_exact| {
            let difference = TwelveTuple { tp_src, ..TwelveTuple::default() };
            Match::any().in_form(TupleForm { is_exact, difference })
        };
        assert_eq!(setups.take(&Match::any(), Version::V1_3), Setup::default());
        let one = setups.take(&in_form(1, false), Version::V1_0);
        assert_eq!(setups.take(&in_form(1, false), Version::V1_0), one);
        assert!(!one.may_be_table_miss() && !one.is_exact());
        let exact = setups.take(&in_form(2, true), Version::V1_0);
        assert!(exact.is_exact() && exact.ranks_exact_first());
        assert!(!setups.take(&in_form(2, true), Version::V1_3).is_exact());
        setups.share(exact);
        let shown = setups.dressed(Match::any(), exact);
        assert_eq!(shown.form(), in_form(2, true).form());
        setups.give_back(one);
        assert_eq!(setups.dressed(Match::any(), one).form(), in_form(1, false).form());
        setups.give_back(one);
        assert_eq!(setups.known.len(), 1);
        assert_eq!(setups.take(&in_form(3, false), Version::V1_0), one, "the place is used again");
    }
}
