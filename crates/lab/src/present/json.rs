//! Results as JSON: every row, trial, command and condition, for other programs.

use super::{Form, View};
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "json",
    about: "Every row, trial and condition, as `weir lab run --json` prints them",
    endings: &["json"],
    draw: |results, _: &View| json(results),
};

/// One line.
pub(crate) fn json(results: &Results) -> String {
    // Results hold nothing that JSON cannot: the only failure would be our own mistake.
    serde_json::to_string(results).expect("results are representable as JSON") + "\n"
}
