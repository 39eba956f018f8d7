//! Case files: what is installed, what arrives, what must leave, which counters must have moved.
//!
//! One format for the reference datapath, for a fast one, and for any switch in the lab. The steps
//! keep their order and their text; this file must never know what a flow entry means.

use std::path::{Path, PathBuf};

use crate::block::{self, Entry, Error};
use crate::hex;

/// One step of a case, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A flow entry in text syntax.
    Flow(String),
    /// A group in text syntax.
    Group(String),
    /// A meter in text syntax.
    Meter(String),
    /// A frame arrives on this OpenFlow port.
    In {
        /// OpenFlow port number.
        port: u32,
        /// The whole frame, without FCS.
        frame: Vec<u8>,
    },
    /// A frame must leave by this OpenFlow port.
    Out {
        /// OpenFlow port number.
        port: u32,
        /// The whole frame, without FCS.
        frame: Vec<u8>,
    },
    /// A frame must go to the controller for this reason.
    PacketIn {
        /// `no_match`, `action` or `invalid_ttl`.
        reason: String,
        /// The whole frame, without FCS.
        frame: Vec<u8>,
    },
    /// The frame above must be dropped for this named reason.
    Drop(String),
    /// A counter must have this value now.
    Counter {
        /// What is counted, such as `flow 0 packets`.
        what: String,
        /// The value after all steps above.
        value: u64,
    },
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name, unique in its file.
    pub name: String,
    /// Where the expectation comes from.
    pub source: Option<String>,
    /// Why the case is here.
    pub note: Option<String>,
    /// Steps with their line numbers.
    pub steps: Vec<(usize, Step)>,
    /// The file it was read from.
    pub file: PathBuf,
    /// The line of `case:`, counted from 1.
    pub line: usize,
}

/// The cases in `text`; `file` is only used in messages and in [`Case::file`].
///
/// # Errors
/// File, line and what is allowed, at the first step that is not understood.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Case>, Error> {
    let mut cases: Vec<Case> = Vec::new();
    for entry in block::parse(file, text)?.into_iter().flatten() {
        if entry.key == "case" {
            if entry.value.is_empty() || cases.iter().any(|case| case.name == entry.value) {
                let what = format!("the name `{}` is empty or stands twice", entry.value);
                return Err(Error::new(file, entry.line, what));
            }
            cases.push(Case {
                name: entry.value,
                source: None,
                note: None,
                steps: Vec::new(),
                file: file.to_path_buf(),
                line: entry.line,
            });
            continue;
        }
        let Some(case) = cases.last_mut() else {
            return Err(Error::new(file, entry.line, "a step stands before the first `case:`"));
        };
        match entry.key.as_str() {
            "source" => case.source = Some(entry.value),
            "note" => case.note = Some(entry.value),
            _ => case.steps.push((entry.line, step(file, &entry)?)),
        }
    }
    Ok(cases)
}

/// The cases of every `*.case` below `dir`, in the order of their paths.
///
/// # Errors
/// As [`parse`]; line 0 when a file cannot be read or `dir` does not exist.
pub fn load_dir(dir: &Path) -> Result<Vec<Case>, Error> {
    let mut all = Vec::new();
    for file in block::files(dir, "case")? {
        all.extend(parse(&file, &block::read(&file)?)?);
    }
    Ok(all)
}

fn step(file: &Path, entry: &Entry) -> Result<Step, Error> {
    let fail = |what: String| Error::new(file, entry.line, what);
    let value = entry.value.replace('\n', " ");
    Ok(match entry.key.as_str() {
        "flow" => Step::Flow(value),
        "group" => Step::Group(value),
        "meter" => Step::Meter(value),
        "in" | "out" => {
            let (port, frame) = word_and_hex(&entry.value).map_err(fail)?;
            let port = port.parse().map_err(|_| fail(format!("`{port}` is not a port number")))?;
            if entry.key == "in" { Step::In { port, frame } } else { Step::Out { port, frame } }
        }
        "packet_in" => {
            let (reason, frame) = word_and_hex(&entry.value).map_err(fail)?;
            Step::PacketIn { reason, frame }
        }
        "drop" => Step::Drop(value),
        "counter" => {
            let expected = || fail(format!("expected `WHAT = NUMBER`, found `{value}`"));
            let (what, number) = value.split_once('=').ok_or_else(expected)?;
            let number = number.trim().parse().map_err(|_| expected())?;
            Step::Counter { what: what.trim().into(), value: number }
        }
        other => {
            let allowed =
                "case, source, note, flow, group, meter, in, out, packet_in, drop, counter";
            return Err(fail(format!("unknown key `{other}`; allowed: {allowed}")));
        }
    })
}

fn word_and_hex(value: &str) -> Result<(String, Vec<u8>), String> {
    let (word, digits) = value
        .split_once(char::is_whitespace)
        .ok_or_else(|| format!("expected a word and hex, found `{value}`"))?;
    Ok((word.to_owned(), hex::parse(digits)?))
}

#[cfg(test)]
mod tests {
    use super::{Step, load_dir, parse};
    use std::path::Path;

    fn error(text: &str) -> String {
        parse(Path::new("x.case"), text).unwrap_err().to_string()
    }

    #[test]
    fn steps_keep_their_order() {
        let text = "case: a\nsource: 5.1\nflow: actions=output:2\nin: 1 00 01\n\nout: 2 0001\n\
                    counter: flow 0 packets = 1\ndrop: no_match\n\ncase: b\npacket_in: action 0a\n";
        let cases = parse(Path::new("x.case"), text).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].steps.len(), 5);
        assert_eq!(cases[0].steps[1], (4, Step::In { port: 1, frame: vec![0, 1] }));
        let counter = Step::Counter { what: "flow 0 packets".into(), value: 1 };
        assert_eq!(cases[0].steps[3], (7, counter));
        assert_eq!(cases[1].line, 10);
    }

    #[test]
    fn refuses_with_place_and_remedy() {
        assert_eq!(error("flow: x\n"), "x.case:1: a step stands before the first `case:`");
        assert_eq!(error("case: a\nin: x 00\n"), "x.case:2: `x` is not a port number");
        assert_eq!(error("case: a\nin: 1\n"), "x.case:2: expected a word and hex, found `1`");
        assert_eq!(error("case: a\ncase: a\n"), "x.case:2: the name `a` is empty or stands twice");
        let counter = "case: a\ncounter: flow 0 = x\n";
        assert_eq!(error(counter), "x.case:2: expected `WHAT = NUMBER`, found `flow 0 = x`");
        assert!(error("case: a\nfrob: 1\n").contains("unknown key `frob`; allowed: case"));
    }

    #[test]
    fn the_cases_of_the_workspace_are_well_formed() {
        if crate::cases_dir("").is_dir() {
            load_dir(&crate::cases_dir("")).unwrap();
        }
    }
}
