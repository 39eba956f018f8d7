//! The row of a command of the console.

use crate::effect::Act;

/// A command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordRow {
    /// Its form (see [`crate::form`]).
    pub(crate) form: &'static str,
    /// Its help, in a few words.
    pub(crate) help: &'static str,
    /// Its act.
    pub(crate) act: Act,
}

pub(super) const fn row(form: &'static str, help: &'static str, act: Act) -> WordRow {
    WordRow { form, help, act }
}
