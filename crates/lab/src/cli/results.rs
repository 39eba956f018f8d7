//! `weir lab report`: results that were measured before, drawn anew.
//!
//! It must never measure, and never write into the results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::campaign::ledger::{self, LedgerError};
use crate::campaign::record::results_of;
use crate::campaign::scenario::Scenario;
use crate::method::{self, Method};
use crate::present::{FORMS, Form, form};
use crate::results::{FORMAT, Results};

const REPORT_EXAMPLES: &str = "\
Examples:
  weir lab report /tmp/e5
  weir lab report /tmp/e5 --format html --out report.html
  weir lab report /tmp/e5 --format csv | head
  weir lab report /tmp/e5 --out verdict.svg
  weir lab report trials.jsonl.gz --format json";

/// The file of a run in its folder; the latter two are of earlier versions of Weir.
const NAMES: [&str; 4] = [ledger::NAME, "trials.jsonl.gz", "results.json", "results.json.gz"];

/// The form of results of the version before that.
const OLD_FORMAT: u32 = 2;

/// Draw results as tables, CSV or a page.
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

/// Every form by its name.
pub(super) fn forms() -> impl TypedValueParser<Value = Form> {
    let names = FORMS.iter().map(|form| PossibleValue::new(form.name).help(form.about));
    PossibleValuesParser::new(names).try_map(|name| form(&name).copied().ok_or("no such form"))
}

impl ReportArgs {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let results = load(&self.run)?;
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
    if !path.is_dir() {
        return load_file(path);
    }
    let mut outcome = Err(anyhow::anyhow!("{}: no {} in it", path.display(), ledger::NAME));
    for file in NAMES.iter().map(|name| path.join(name)).filter(|file| file.exists()) {
        outcome = load_file(&file);
        // Beside the ledger of an earlier version are its results.
        let is_old = |error: &anyhow::Error| {
            matches!(error.downcast_ref::<LedgerError>(), Some(LedgerError::Form { .. }))
        };
        if !outcome.as_ref().is_err_and(is_old) {
            break;
        }
    }
    outcome
}

fn load_file(file: &Path) -> anyhow::Result<Results> {
    let text = ledger::read_bytes(file)?;
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
    if first.get("line").is_none() {
        return load_old(file, &text);
    }
    let results = results_of(file, &text)?;
    results.with_context(|| format!("{}: the run has not begun to measure", file.display()))
}

/// Reads the `results.json` that earlier versions of Weir wrote beside the ledger. The next version
/// does not.
fn load_old(file: &Path, text: &[u8]) -> anyhow::Result<Results> {
    let name = file.display();
    let json: serde_json::Value =
        serde_json::from_slice(text).with_context(|| format!("{name} is no ledger and no JSON"))?;
    match json.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if [FORMAT, OLD_FORMAT].map(u64::from).contains(&format) => {}
        Some(format) => bail!(
            "{name} has the form {format} and this program reads {FORMAT}: use the weir that wrote \
             it, or measure again"
        ),
        None => bail!("{name} holds no results of weir lab: there is no number `format` in it"),
    }
    files::eprint_line(format_args!(
        "{name} is of an earlier version of weir; the next one reads trials.jsonl only"
    ));
    // Read from the text again, whose errors have a line and a column.
    let mut results: Results =
        serde_json::from_slice(text).with_context(|| format!("{name} holds no whole results"))?;
    if results.format == OLD_FORMAT {
        renew(&mut results);
    }
    Ok(results)
}

/// Results of the form before that: a trial has two numbers instead of one, and a value its start.
fn renew(results: &mut Results) {
    results.format = FORMAT;
    for scenario in &mut results.scenarios {
        // One that this program does not know any more has the usual trials.
        let known = Scenario::from_toml(&scenario.source).ok();
        let trials = |method: &str| {
            let found = known.as_ref().zip(method::find(method));
            found.map_or(1, |(known, method)| known.trials(method, results.is_quick))
        };
        for cell in &mut scenario.cells {
            for one in &mut cell.distributions {
                let is_its = |of: &&&Method| of.metrics.iter().any(|m| m.id == one.metric);
                let method = method::ALL.iter().find(is_its);
                one.start /= method.map_or(1, |method| trials(method.id));
            }
            for trial in &mut cell.trials {
                let of = trials(&trial.method);
                (trial.start, trial.trial) = (trial.start / of, trial.start % of);
            }
            for row in &mut cell.rows {
                let good = cell.trials.iter().filter(|trial| trial.error.is_none());
                let starts = good.filter(|trial| trial.values.contains_key(&row.metric));
                // The values are in the order of the starts, the trials in that of time.
                let starts: BTreeSet<usize> = starts.map(|trial| trial.start).collect();
                row.starts = starts.into_iter().collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{form_of, load};
    use crate::campaign::fake::{self, TWO_POINTS, play};
    use crate::campaign::ledger;
    use crate::campaign::run::execute;
    use crate::present::sample;
    use crate::results::MeasuredDistribution;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use programs::cancel::Cancel;
    use std::io::Write as _;
    use std::path::Path;

    #[test]
    fn the_file_name_chooses_the_form() {
        let form = |name| form_of(Some(Path::new(name))).name;
        let names = ["a/report.html", "report.md", "report.csv", "a.svg", "report"].map(form);
        assert_eq!(names, ["html", "markdown", "csv", "svg", "terminal"]);
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
        // Beside the ledger of an earlier version.
        let old = tempfile::tempdir().unwrap();
        std::fs::write(old.path().join(ledger::NAME), "{\"line\":\"head\",\"format\":4}\n")
            .unwrap();
        let reason = format!("{:#}", load(old.path()).unwrap_err());
        assert!(reason.contains("form 4, and this one reads 5"), "{reason}");
        let text = serde_json::to_string(&sample::results()).unwrap();
        std::fs::write(old.path().join("results.json"), text).unwrap();
        assert!(load(old.path()).unwrap() == sample::results());
    }

    #[test]
    fn results_of_the_form_before_are_renewed() {
        let mut results = sample::results();
        // Its trials had one number; this scenario has three of them in a start. The second start
        // was measured again, after the third.
        let demo = crate::demo::scenario().unwrap().source;
        let of_demo = demo.replace("[method.ping]", "[method.ping]\ntrials = 3");
        let hub = &mut results.scenarios[0];
        hub.source = of_demo;
        let cell = &mut hub.cells[0];
        (cell.trials, cell.rows) = (Vec::new(), Vec::new());
        sample::add(cell, "ping_avg_ms", None, &[0.0, 0.1, 0.2, 2.0, 2.1, 2.2, 1.0, 1.1, 1.2]);
        let numbers = [0, 1, 2, 6, 7, 8, 3, 4, 5];
        for (trial, number) in cell.trials.iter_mut().zip(numbers) {
            (trial.method, trial.start) = ("ping".to_owned(), number);
        }
        (cell.rows[0].samples, cell.rows[0].starts) = (vec![0.1, 1.1, 2.1], Vec::new());
        let (metric, quantiles) = ("ping_avg_ms".to_owned(), vec![(0.5, 2.1)]);
        cell.distributions.push(MeasuredDistribution { metric, start: 7, count: 40, quantiles });
        let mut old = serde_json::to_value(&results).unwrap();
        old["format"] = 2.into();
        let text = serde_json::to_string(&old).unwrap();
        let text = text.replace("\"start\":", "\"repeat\":").replace("\"trial\":0,", "");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.json");
        std::fs::write(&file, text).unwrap();
        let read = load(&file).unwrap();
        assert_eq!(read.scenarios[1..], results.scenarios[1..]);
        let cell = &read.scenarios[0].cells[0];
        let numbers = cell.trials.iter().map(|one| (one.start, one.trial));
        assert_eq!(numbers.take(5).collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]);
        assert_eq!((&cell.rows[0].starts, cell.distributions[0].start), (&vec![0, 1, 2], 2));
        assert_eq!(read.format, results.format);
    }

    #[test]
    fn what_is_no_result_is_named_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.json");
        let refusal = |text: &str| {
            std::fs::write(&file, text).unwrap();
            format!("{:#}", load(folder.path()).unwrap_err())
        };
        for (text, word) in [
            ("{", "is no ledger and no JSON"),
            ("{}", "there is no number `format`"),
            ("{\"format\": 1}", "has the form 1 and this program reads 3"),
            ("{\"format\": 2}", "missing field"),
        ] {
            let reason = refusal(text);
            assert!(reason.contains(word) && reason.contains("results.json"), "{reason}");
        }
        let none = format!("{:#}", load(Path::new("/nowhere/results.json")).unwrap_err());
        assert!(none.contains("/nowhere/results.json: "), "{none}");
    }
}
