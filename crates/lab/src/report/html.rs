//! The report as a page.

use super::Report;

/// The page.
#[must_use]
pub fn render(_report: &Report) -> String {
    String::new()
}
