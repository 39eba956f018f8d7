//! `weir bench` of earlier versions: it measures nothing, and its words are answered with the
//! scenarios of the lab that ask the same.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::names;

/// Refuses what was typed behind `weir bench`.
///
/// # Errors
/// Always, with what to use.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let word = words.first().map_or("", String::as_str);
    let whole = || "weir bench is gone: use weir lab run SCENARIO --format lines".to_owned();
    bail!(names::gone(&format!("bench {word}")).unwrap_or_else(whole));
}
