//! `weir bench` of earlier versions: it measures nothing, and its words are answered with the
//! scenarios of the lab that ask the same.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use crate::names;

/// What was typed behind `weir bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl BenchArgs {
    /// Refuses what was asked.
    ///
    /// # Errors
    /// Always, with what to use.
    pub fn run(self) -> Result<ExitCode> {
        let word = self.words.first().map_or("", String::as_str);
        let whole = || "weir bench is gone: use weir lab run SCENARIO --format lines".to_owned();
        bail!(names::gone(&format!("bench {word}")).unwrap_or_else(whole));
    }
}
