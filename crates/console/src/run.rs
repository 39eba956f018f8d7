//! `weir gen run`: a profile from a file, sent and reported.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use generator::profile::Profile;
use openflow::text::decimal_where;

use crate::load::{Load, LoadArgs};
use crate::usage::usage;

const RUN_EXAMPLES: &str = "\
Examples:
  weir gen run contrib/generator/imix.toml --port null: --duration 10
  weir gen run contrib/generator/range.toml --port af_packet:veth1 --line-rate 1G --json
  weir gen run contrib/generator/streams-100.toml --port memory:cable?end=a \\
      --port memory:cable?end=b --duration 2 --max-loss 0

A profile is a list of streams, in TOML or, where the name of the file ends in .json, in JSON.
docs/generator.md explains its words.

Exit codes:
  0    done
  1    more loss than --max-loss, or a port that failed
  2    wrong usage, or a profile that is wrong; nothing was sent
  130  interrupted; the report up to then is printed";

/// A profile, from a file.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct ProfileRunArgs {
    /// The profile
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    load: LoadArgs,
    /// All rates of the profile times this
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    mult: f64,
    /// The loss in per cent of the numbered frames above which the exit code is 1
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_loss: Option<f64>,
}

/// Reads a percentage: a comparison with what is no number would always pass.
fn percent(text: &str) -> Result<f64, String> {
    let is_allowed = |percent: &f64| (0.0..=100.0).contains(percent);
    decimal_where(text, is_allowed, "per cent are a number from 0 to 100")
}

impl ProfileRunArgs {
    /// Reads the profile, sends it and prints the report.
    ///
    /// # Errors
    /// Ports that cannot be opened, and standard output.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let profile = match self.profile() {
            Ok(profile) => profile,
            Err(why) => return Ok(usage(&why)),
        };
        let (multiplier, loss_percent_max) = (self.mult, self.max_loss);
        let file = Some(self.file.as_path());
        self.load.carry_out(&Load { profile: &profile, file, multiplier, loss_percent_max })
    }

    fn profile(&self) -> Result<Profile, String> {
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", self.file.display());
        let text = files::read_text(&self.file, files::CONFIG_MAX);
        let text = text.map_err(|error| named(&error))?;
        let is_json = self.file.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
        let profile = if is_json { Profile::from_json(&text) } else { Profile::from_toml(&text) };
        profile.map_err(|error| named(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_loss_that_is_no_number_is_refused() {
        assert_eq!(percent("0.5"), Ok(0.5));
        for text in ["NaN", "inf", "-1", "101", "x", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
