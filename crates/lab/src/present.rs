//! The forms of a run's results: terminal, Markdown, lines, JSON, an HTML page, a picture.
//!
//! All of them are drawn from [`Results`] by way of the same sections, so that no two forms say
//! different things. A form must never hold a figure that the results do not, and never leave a
//! cell blank: where there is no figure stands the reason. A further form is a file and a line in
//! [`FORMS`].

mod chart;
mod entry;
mod findings;
mod grid;
mod lines;
mod markdown;
mod number;
mod overview;
mod page;
mod picture;
mod ratio;
#[cfg(test)]
pub(crate) mod sample;
mod section;
mod terminal;
mod verdict;

pub(crate) use self::page::render as page;
pub(crate) use self::terminal::one_line;
pub(crate) use lines::json;
pub(crate) use number::{count, number, times};
pub(crate) use verdict::{Headline, headlines_of};

use maud::Markup;

use crate::limit::{Limit, Part};
use crate::results::Results;

/// A form of the results.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The endings of file names that ask for it.
    pub endings: &'static [&'static str],
    draw: fn(&Results, &View) -> String,
}

/// Every form; the first is the default.
pub const FORMS: &[Form] =
    &[terminal::FORM, markdown::FORM, lines::FORM, lines::JSON, page::FORM, picture::FORM];

/// The terminal of the reader, and what is wanted there.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its columns.
    pub width: usize,
    /// Whether it shows bold letters.
    pub has_bold: bool,
    /// Whether every figure is wanted, not only the headlines.
    pub is_all: bool,
}

/// The form of that name.
pub fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}

impl Form {
    /// The results in this form.
    pub fn render(&self, results: &Results, view: &View) -> String {
        (self.draw)(results, view)
    }
}

/// The limiting part in a few words; with all cores busy besides, that too.
fn limit_label(limit: &Limit) -> String {
    let is_part = !matches!(limit.part, Part::Machine | Part::OfferedLoad | Part::None);
    let busy = if limit.machine_full && is_part { ", all cores busy" } else { "" };
    format!("{}{busy}", limit.part.label())
}

/// `12 min 5 s, quick`: the duration of a run.
fn took(results: &Results) -> String {
    let quick = if results.is_quick { ", quick" } else { "" };
    format!("{}{quick}", number::duration(results.duration_s))
}

/// `machine with 2 cores (A CPU), Linux 6.1`: the machine of a run.
fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let kind = if machine.virtual_machine { "virtual machine" } else { "machine" };
    let (cores, cpu, kernel) = (machine.cores, &machine.cpu, &machine.kernel);
    format!("{kind} with {cores} cores ({cpu}), {kernel}")
}

/// The text of markup, in which what neither HTML nor XML may hold is replaced.
fn text_of(markup: Markup) -> String {
    let is_bad = |letter: char| letter.is_control() && !letter.is_whitespace();
    markup.into_string().replace(is_bad, "\u{fffd}")
}

/// Values by their keys, in the order in which the keys come first.
fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}
