//! `weir lab report`: results that were measured before, drawn anew.
//!
//! It must never measure, and never write into the results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::campaign::ledger;
use crate::campaign::record::results_of;
use crate::names::gone;
use crate::present::{FORMS, Form, form};
use crate::results::Results;

const REPORT_EXAMPLES: &str = "\
Examples:
  weir lab report /tmp/e5
  weir lab report /tmp/e5 --format html --out report.html
  weir lab report /tmp/e5 --format lines | head
  weir lab report /tmp/e5 --out verdict.svg
  weir lab report trials.jsonl.gz --format json";

/// The file of a run in its folder.
const NAMES: [&str; 2] = [ledger::NAME, "trials.jsonl.gz"];

/// Draw results as tables, lines for programs, or a page.
#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub(super) struct ReportArgs {
    /// The folder of a run, at its end or not, or its trials.jsonl, compressed by gzip or not.
    run: PathBuf,
    /// The form. Default: that of the file name of --out, else terminal.
    #[arg(long, value_parser = forms())]
    format: Option<Form>,
    /// Print every figure on the terminal, not only the headlines.
    #[arg(long)]
    all: bool,
    /// Write here instead of on standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A form of earlier versions.
const CSV: &str = "csv";

/// Every form by its name.
pub(super) fn forms() -> impl TypedValueParser<Value = Form> {
    let names = FORMS.iter().map(|form| PossibleValue::new(form.name).help(form.about));
    let names = names.chain([PossibleValue::new(CSV).hide(true)]);
    PossibleValuesParser::new(names)
        .try_map(|name| form(&name).copied().ok_or_else(|| gone(&name).unwrap_or_default()))
}

impl ReportArgs {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let results = load(&self.run)?;
        let is_csv = |path: &Path| path.extension().is_some_and(|ending| ending == CSV);
        if self.format.is_none() && self.out.as_deref().is_some_and(is_csv) {
            bail!(gone(CSV).unwrap_or_default());
        }
        let form = self.format.unwrap_or_else(|| form_of(self.out.as_deref()));
        let text = form.render(&results, &super::view(self.all));
        match &self.out {
            None => files::print(&text)?,
            Some(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.with_context(|| format!("{} names no file", path.display()))?;
                super::write_whole(folder.unwrap_or_else(|| Path::new(".")), name, &text)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The form that a file's name asks for.
fn form_of(out: Option<&Path>) -> Form {
    let ending = out.and_then(Path::extension).and_then(|extension| extension.to_str());
    let asked = |form: &&Form| ending.is_some_and(|ending| form.endings.contains(&ending));
    *FORMS.iter().find(asked).unwrap_or(&FORMS[0])
}

/// Reads results, from a ledger (compressed by gzip or not) or from the folder of a run.
///
/// # Errors
/// There is no such file, or it holds something else; the message says what.
pub(super) fn load(path: &Path) -> anyhow::Result<Results> {
    let mut file = path.to_owned();
    if path.is_dir() {
        let files = NAMES.map(|name| path.join(name));
        let found = files.into_iter().find(|file| file.exists());
        file = found.with_context(|| format!("{}: no {} in it", path.display(), ledger::NAME))?;
    }
    let results = results_of(&file, &ledger::read_bytes(&file)?)?;
    results.with_context(|| format!("{}: the run has not begun to measure", file.display()))
}

#[cfg(test)]
mod tests {
    use super::{form_of, load};
    use crate::campaign::fake::{self, TWO_POINTS, play};
    use crate::campaign::ledger;
    use crate::campaign::run::execute;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use programs::cancel::Cancel;
    use std::io::Write as _;
    use std::path::Path;

    #[test]
    fn the_file_name_chooses_the_form() {
        let form = |name| form_of(Some(Path::new(name))).name;
        let names = ["a/report.html", "report.md", "a.svg", "report"].map(form);
        assert_eq!(names, ["html", "markdown", "svg", "terminal"]);
        assert_eq!(form_of(None).name, "terminal");
    }

    #[test]
    fn a_ledger_is_read_compressed_or_not_and_one_cut_off_is_named() {
        let folder = tempfile::tempdir().unwrap();
        play(&[]);
        let campaign = fake::campaign(TWO_POINTS, folder.path());
        let results = execute(&campaign, &Cancel::default(), &|_, _| {}).unwrap();
        assert!(load(folder.path()).unwrap() == results);
        let ledger = folder.path().join(ledger::NAME);
        let text = std::fs::read(&ledger).unwrap();
        std::fs::write(&ledger, [text.as_slice(), b"{\"at_s\":1.0,\"li"].concat()).unwrap();
        assert!(load(&ledger).unwrap() == results, "an incomplete last line");
        std::fs::remove_file(&ledger).unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text).unwrap();
        let bytes = encoder.finish().unwrap();
        let file = folder.path().join("trials.jsonl.gz");
        std::fs::write(&file, &bytes).unwrap();
        assert!(load(folder.path()).unwrap() == results);
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let reason = format!("{:#}", load(&file).unwrap_err());
        assert!(reason.contains("it is no whole gzip file"), "{reason}");
        let none = tempfile::tempdir().unwrap();
        let reason = format!("{:#}", load(none.path()).unwrap_err());
        assert!(reason.contains("no trials.jsonl in it"), "{reason}");
    }

    #[test]
    fn the_committed_results_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let results = load(&folder).unwrap();
        assert!(results.scenarios.len() > 10 && results.is_whole());
    }

    #[test]
    fn what_is_no_result_is_named_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(ledger::NAME);
        for (text, word) in [
            ("", "the run has not begun to measure"),
            ("{\n", "line 1: EOF"),
            ("{}\n", "there is no number `format`"),
            ("{\"line\":\"head\",\"format\":4}\n", "form 4, and this one reads 5"),
            ("{\"format\":5}\n", "missing field"),
        ] {
            std::fs::write(&file, text).unwrap();
            let reason = format!("{:#}", load(folder.path()).unwrap_err());
            assert!(reason.contains(word) && reason.contains(ledger::NAME), "{reason}");
        }
        let none = format!("{:#}", load(Path::new("/nowhere/trials.jsonl")).unwrap_err());
        assert!(none.contains("/nowhere/trials.jsonl: "), "{none}");
    }
}
