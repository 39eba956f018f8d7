//! `weir lab report`: results that were measured before, drawn anew.
//!
//! It must never measure, and never write into the results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::campaign::ledger;
use crate::campaign::record::results_of;
use crate::names::gone;
use crate::present::{FORMS, Form, form};

const REPORT_EXAMPLES: &str = "\
Examples:
  weir lab report /tmp/e5
  weir lab report /tmp/e5 --format html --out report.html
  weir lab report /tmp/e5 --format lines | head
  weir lab report /tmp/e5 --out verdict.svg
  weir lab report trials.jsonl.gz --format json";

/// Draw results as tables, lines for programs, or a page.
#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub(super) struct ReportArgs {
    /// The folder of a run, at its end or not, or its trials.jsonl, compressed by gzip or not.
    run: PathBuf,
    /// The form. Default: that of the ending of --out, without one terminal.
    #[arg(long, value_parser = forms())]
    format: Option<Form>,
    /// Print every figure on the terminal, not only the headlines.
    #[arg(long)]
    all: bool,
    /// Write here instead of on standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Every form by its name; one that is gone is answered with what to use.
pub(super) fn forms() -> impl TypedValueParser<Value = Form> {
    let names = FORMS.iter().map(|form| PossibleValue::new(form.name).help(form.about));
    let names = names.chain([PossibleValue::new("csv").hide(true)]);
    PossibleValuesParser::new(names)
        .try_map(|name| form(&name).copied().ok_or_else(|| gone(&name).unwrap_or_default()))
}

impl ReportArgs {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let results = results_of(&self.run)?;
        if let Some(out) = self.out.as_ref().filter(|out| holds(&self.run, out)) {
            bail!("{} has the results and would be replaced: name another file", out.display());
        }
        let form = match self.format {
            Some(form) => form,
            None => form_of(self.out.as_deref()).map_err(anyhow::Error::msg)?,
        };
        let mut view = super::view(self.all);
        view.has_bold &= self.out.is_none();
        let text = form.render(&results, &view);
        match &self.out {
            None => files::print(&text)?,
            Some(path) => super::write_whole(path, &text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a run's results are in that file.
fn holds(run: &Path, file: &Path) -> bool {
    let Ok(file) = file.canonicalize() else { return false };
    let known = [run.to_owned(), run.join(ledger::NAME), run.join(ledger::COMPRESSED)];
    known.iter().any(|known| known.canonicalize().is_ok_and(|known| known == file))
}

/// The form that a file's name asks for; the refusal of an ending that asks for none.
fn form_of(out: Option<&Path>) -> Result<Form, String> {
    let ending = out.and_then(Path::extension).map(|ending| ending.to_string_lossy());
    let Some(ending) = ending else { return Ok(FORMS[0]) };
    let asked = FORMS.iter().find(|form| form.endings.contains(&&*ending));
    asked.copied().ok_or_else(|| {
        gone(&ending).unwrap_or_else(|| {
            let known = FORMS.iter().flat_map(|form| form.endings).copied();
            let known = known.collect::<Vec<_>>().join(", ");
            format!("no form has the ending {ending:?}: there is {known}; or name a --format")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{form_of, holds, results_of};
    use crate::campaign::fake::{self, TWO_POINTS, play};
    use crate::campaign::ledger;
    use crate::campaign::run::execute;
    use crate::cli::write_whole;
    use crate::results::Results;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use programs::cancel::Cancel;
    use std::io::Write as _;
    use std::path::Path;

    #[test]
    fn the_file_name_chooses_the_form() {
        let form = |name| form_of(Some(Path::new(name))).unwrap().name;
        let names = ["a/report.html", "report.md", "a.svg", "report"].map(form);
        assert_eq!(names, ["html", "markdown", "svg", "terminal"]);
        assert_eq!(form_of(None).unwrap().name, "terminal");
        for (name, why) in [
            ("a.csv", "csv is gone: use --format lines"),
            (
                "a.pdf",
                "no form has the ending \"pdf\": there is txt, md, json, html, htm, svg; or ",
            ),
        ] {
            let refused = form_of(Some(Path::new(name))).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link) = (folder.path().join("own"), folder.path().join("report.svg"));
        std::fs::write(&own, "mine").unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        write_whole(&link, "a picture").unwrap();
        let texts = [own, link].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(texts, ["mine", "a picture"]);
        assert!(write_whole(Path::new("/dev/null"), "").is_err(), "a device stays one");
    }

    #[test]
    fn a_file_that_has_the_results_is_known_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let (run, file) = (folder.path(), folder.path().join(ledger::COMPRESSED));
        assert!(!holds(run, &file));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, run.join("link")).unwrap();
        assert!(holds(run, &file) && holds(&file, &run.join("link")));
        assert!(!holds(&file, &run.join("report.html")));
    }

    fn load(path: &Path) -> Result<Results, String> {
        results_of(path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_ledger_is_read_compressed_or_not_and_one_cut_off_is_named() {
        let folder = tempfile::tempdir().unwrap();
        play(&[]);
        let campaign = fake::campaign(TWO_POINTS, folder.path());
        let (results, _) = execute(&campaign, &Cancel::default(), &|_, _| {}).unwrap();
        assert!(load(folder.path()).unwrap() == results);
        let ledger = folder.path().join(ledger::NAME);
        let text = std::fs::read(&ledger).unwrap();
        std::fs::write(&ledger, [text.as_slice(), b"{\"at_s\":1.0,\"li"].concat()).unwrap();
        assert!(load(&ledger).unwrap() == results, "an incomplete last line");
        std::fs::write(&ledger, [text.as_slice(), b"{\"line\":\"rial\"}\n"].concat()).unwrap();
        let line = text.iter().filter(|byte| **byte == b'\n').count() + 1;
        let reason = load(&ledger).unwrap_err();
        assert!(reason.contains(&format!("trials.jsonl, line {line}: ")), "{reason}");
        std::fs::remove_file(&ledger).unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text).unwrap();
        let bytes = encoder.finish().unwrap();
        let file = folder.path().join("trials.jsonl.gz");
        std::fs::write(&file, &bytes).unwrap();
        assert!(load(folder.path()).unwrap() == results);
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let reason = load(&file).unwrap_err();
        assert!(reason.contains("it is no whole gzip file"), "{reason}");
        let none = tempfile::tempdir().unwrap();
        let reason = load(none.path()).unwrap_err();
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
            ("{}\n", "line 1: is no first line of a campaign: there is no number `format`"),
            ("{\"line\":\"head\",\"format\":4}\n", "form 4, and this one reads 5"),
            ("{\"format\":5}\n", "missing field"),
        ] {
            std::fs::write(&file, text).unwrap();
            let reason = load(folder.path()).unwrap_err();
            assert!(reason.contains(word) && reason.contains(ledger::NAME), "{reason}");
        }
        let none = load(Path::new("/nowhere/trials.jsonl")).unwrap_err();
        assert!(none.contains("/nowhere/trials.jsonl: "), "{none}");
    }
}
