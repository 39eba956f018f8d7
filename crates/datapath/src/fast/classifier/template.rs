//! The templates of a classifier, and forcing one upon tables that others would suit better.
//!
//! A table's template must change nothing but speed. Tables of a test are small and have
//! few masks, so most of them would always be searched in the same way: a test forces each of the
//! ways, and its lookups are counted by what was really done.

use super::Classifier;

/// A way of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Template {
    /// Every entry matches every packet.
    Constant,
    /// Entries are compared one by one.
    Few,
    /// One hash of one mask.
    Exact,
    /// A hash for each group of masks, and perhaps entries beside them.
    General,
    /// The same, where a filter says which groups can have an entry.
    Pruned,
}

impl Template {
    /// Every template, in order.
    pub const ALL: &'static [Self] =
        &[Self::Constant, Self::Few, Self::Exact, Self::General, Self::Pruned];

    /// The template's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Few => "few",
            Self::Exact => "exact",
            Self::General => "general",
            Self::Pruned => "pruned",
        }
    }
}

impl Classifier {
    /// The way of lookups at the moment.
    #[must_use]
    pub fn template(&self) -> Template {
        match (self.groups.len(), self.list.len()) {
            (0, 0) => Template::Constant,
            (0, _) => Template::Few,
            (..) if self.filter.is_active() => Template::Pruned,
            (1, 0) if self.only_exact().is_some() => Template::Exact,
            (..) => Template::General,
        }
    }

    /// Places the entries that come from now on for this template, wherever it can hold them:
    /// [`Template::Few`] lists all, [`Template::Exact`] opens a group for each mask while there is
    /// room for groups, and the others merge masks from the first entry on, with and without a
    /// filter. [`Template::Constant`] can hold nothing that others can, and forces nothing. For
    /// tests: it changes nothing but speed.
    pub(in crate::fast) fn force(&mut self, template: Option<Template>) {
        self.forced = template.filter(|template| *template != Template::Constant);
    }

    /// Says whether plain code is to compare tags. It changes nothing but speed.
    pub(in crate::fast) fn set_plain(&mut self, is_plain: bool) {
        self.is_plain = is_plain;
        self.groups.set_plain(is_plain);
    }
}
