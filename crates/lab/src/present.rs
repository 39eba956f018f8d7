//! The forms of a run's results: terminal, Markdown, CSV, and one HTML page.
//!
//! All of them are drawn from [`Results`] by way of the same sections, so that no two forms say
//! different things. A form must never hold a figure that the results do not, and never leave a
//! cell blank: where there is no figure stands the reason.

mod claims;
mod csv;
mod entry;
mod grid;
mod markdown;
mod number;
mod overview;
mod page;
#[cfg(test)]
pub(crate) mod sample;
mod section;
mod switch_ratio;
mod terminal;

pub(crate) use self::terminal::one_line;
pub(crate) use number::{count, number, times};

use crate::campaign::run::Seen;
use crate::limit::{Limit, Part};
use crate::results::Results;

/// A form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsForm {
    /// The headline figures for a terminal of that many columns; the best in bold where it can.
    Terminal {
        /// Its columns.
        width: usize,
        /// Whether it shows bold letters.
        has_bold: bool,
    },
    /// All tables for a terminal of that many columns.
    Everything(usize),
    /// Tables for a README or an issue.
    Markdown,
    /// A line for each sample, with its conditions.
    Csv,
    /// One page that needs nothing from elsewhere.
    Html,
}

/// The results in a form.
#[must_use]
pub fn render(results: &Results, form: ResultsForm) -> String {
    match form {
        ResultsForm::Terminal { width, has_bold } => terminal::render(results, width, has_bold),
        ResultsForm::Everything(width) => terminal::render_everything(results, width),
        ResultsForm::Markdown => markdown::render(results),
        ResultsForm::Csv => csv::render(results),
        ResultsForm::Html => page::render(results),
    }
}

/// The page of a campaign that somebody serves while it runs: how it stands, its results so far,
/// and a script that follows both at `/events` and `/`.
#[must_use]
pub fn live_page(results: Option<&Results>, seen: &Seen) -> String {
    page::render_live(results, seen)
}

/// The limiting part in a few words; with all cores busy besides, that too.
fn limit_label(limit: &Limit) -> String {
    let is_part = match limit.part {
        Part::Port | Part::ControlLink | Part::Controller | Part::Switch | Part::Host => true,
        Part::Machine | Part::OfferedLoad | Part::None => false,
    };
    let busy = if limit.machine_full && is_part { ", all cores busy" } else { "" };
    format!("{}{busy}", limit.part.label())
}
