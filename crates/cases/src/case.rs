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
    /// Another change of flows, groups or meters in text syntax.
    Change {
        /// One of [`CHANGES`].
        what: String,
        /// Its form in `ovs-ofctl`.
        text: String,
    },
    /// The command or packet-out above must be refused with this protocol error.
    Error(String),
    /// From here on commands come in this version of the protocol, such as `1.0`.
    Version(String),
    /// A setting of the switch: `miss=controller`.
    Setting(String),
    /// A port gets these settings and states, and no others.
    Port {
        /// OpenFlow port number.
        port: u32,
        /// Words such as `no_flood`, `link_down`, `gone`; none for a port that is up.
        words: Vec<String>,
    },
    /// Time passes, and what expires by then goes.
    Wait {
        /// Nanoseconds.
        ns: u64,
    },
    /// Time passes, but what expires by then is not taken away yet.
    Late {
        /// Nanoseconds.
        ns: u64,
    },
    /// A flow-removed message must have come for this reason, in this order.
    Removed(String),
    /// The controller sends a packet.
    PacketOut {
        /// Port number or reserved name.
        in_port: String,
        /// The whole frame, without FCS.
        frame: Vec<u8>,
        /// Actions in text syntax; may be empty.
        actions: String,
    },
    /// A frame arrives on this OpenFlow port.
    In {
        /// OpenFlow port number.
        port: u32,
        /// The whole frame, without FCS.
        frame: Vec<u8>,
    },
    /// A frame must leave by this OpenFlow port: `out: PORT HEX`, or `out: PORT:QUEUE HEX`.
    Out {
        /// OpenFlow port number.
        port: u32,
        /// The queue of the port that was chosen for it, if one was.
        queue: Option<u32>,
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
    /// A controller sends or receives something; only over a connection.
    Talk {
        /// One of [`TALKS`].
        what: String,
        /// The controller, by a name of the case's own.
        who: String,
        /// The message to send or to come, in words.
        text: String,
    },
    /// A counter must have this value now.
    Counter {
        /// The counter, such as `flow 0 packets`.
        what: String,
        /// The value after all steps above.
        value: u64,
    },
}

impl Step {
    /// Whether it does something, rather than name what was done.
    #[must_use]
    pub fn acts(&self) -> bool {
        match self {
            Self::Flow(_)
            | Self::Group(_)
            | Self::Meter(_)
            | Self::Change { .. }
            | Self::Version(_)
            | Self::Setting(_)
            | Self::Port { .. }
            | Self::Wait { .. }
            | Self::Late { .. }
            | Self::Talk { .. }
            | Self::PacketOut { .. }
            | Self::In { .. } => true,
            Self::Error(_)
            | Self::Removed(_)
            | Self::Out { .. }
            | Self::PacketIn { .. }
            | Self::Drop(_)
            | Self::Counter { .. } => false,
        }
    }
}

/// Keys of changes beside `flow`, `group` and `meter`, which add.
pub const CHANGES: &[&str] = &[
    "mod_flows",
    "mod_flows_strict",
    "del_flows",
    "del_flows_strict",
    "mod_group",
    "del_groups",
    "mod_meter",
    "del_meters",
];

/// Keys of what controllers do.
pub const TALKS: &[&str] = &["connect", "disconnect", "send", "receive", "silent", "closed"];

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name, unique in its file.
    pub name: String,
    /// Source of the expectation.
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

impl Case {
    /// `file:line (name)`, for messages.
    #[must_use]
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line} ({})", self.file.display(), self.name)
    }
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
        "in" => {
            let (port, frame) = word_and_hex(&entry.value).map_err(fail)?;
            let port = port.parse().map_err(|_| fail(format!("`{port}` is not a port number")))?;
            Step::In { port, frame }
        }
        "out" => {
            let (place, frame) = word_and_hex(&entry.value).map_err(fail)?;
            let (port, queue) = match place.split_once(':') {
                Some((port, queue)) => (port, Some(queue.parse())),
                None => (place.as_str(), None),
            };
            let port = port.parse().map_err(|_| fail(format!("`{port}` is not a port number")))?;
            let queue = queue.transpose();
            let queue = queue.map_err(|_| fail(format!("`{place}` is not `PORT:QUEUE`")))?;
            Step::Out { port, queue, frame }
        }
        "packet_in" => {
            let (reason, frame) = word_and_hex(&entry.value).map_err(fail)?;
            Step::PacketIn { reason, frame }
        }
        what if CHANGES.contains(&what) => Step::Change { what: what.into(), text: value },
        what if TALKS.contains(&what) => {
            let (who, text) = value.split_once(' ').unwrap_or((&value, ""));
            if who.is_empty() {
                return Err(fail("expected the name of a controller".into()));
            }
            Step::Talk { what: what.into(), who: who.into(), text: text.trim().into() }
        }
        "error" => Step::Error(value),
        "version" => Step::Version(value),
        "setting" => Step::Setting(value),
        "removed" => Step::Removed(value),
        "wait" => Step::Wait { ns: nanoseconds(&value).map_err(fail)? },
        "late" => Step::Late { ns: nanoseconds(&value).map_err(fail)? },
        "port" => {
            let mut words = value.split_whitespace();
            let port = words.next().unwrap_or_default();
            let port = port.parse().map_err(|_| fail(format!("`{port}` is not a port number")))?;
            Step::Port { port, words: words.map(str::to_owned).collect() }
        }
        "packet_out" => {
            let expected = || fail(format!("expected `PORT HEX actions=...`, found `{value}`"));
            let (left, actions) = value.split_once("actions=").ok_or_else(expected)?;
            let (in_port, frame) = word_and_hex(left).map_err(fail)?;
            Step::PacketOut { in_port, frame, actions: actions.trim().into() }
        }
        "drop" => Step::Drop(value),
        "counter" => {
            let expected = || fail(format!("expected `WHAT = NUMBER`, found `{value}`"));
            let (what, number) = value.split_once('=').ok_or_else(expected)?;
            let number = number.trim().parse().map_err(|_| expected())?;
            Step::Counter { what: what.trim().into(), value: number }
        }
        other => {
            let others = "error, version, setting, removed, wait, late, port, packet_out, in, \
                          out, packet_in, drop, counter";
            let changes = [CHANGES, TALKS].concat().join(", ");
            let allowed = format!("case, source, note, flow, group, meter, {changes}, {others}");
            return Err(fail(format!("unknown key `{other}`; allowed: {allowed}")));
        }
    })
}

/// Seconds with at most nine digits behind the point.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction:0<9}");
    let is_number = fraction.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten();
    number.ok_or_else(|| format!("`{text}` is not a number of seconds"))
}

fn word_and_hex(value: &str) -> Result<(String, Vec<u8>), String> {
    let (word, digits) = value
        .split_once(char::is_whitespace)
        .ok_or_else(|| format!("expected a word and hex, found `{value}`"))?;
    Ok((word.to_owned(), hex::parse(digits)?))
}

#[cfg(test)]
mod tests {
    use super::{Step, parse};
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
    fn outputs_may_name_a_queue() {
        let cases = parse(Path::new("x.case"), "case: a\nout: 2 00\nout: 2:7 00\n").unwrap();
        let out = |queue| Step::Out { port: 2, queue, frame: vec![0] };
        let steps: Vec<&Step> = cases[0].steps.iter().map(|(_, step)| step).collect();
        assert_eq!(steps, [&out(None), &out(Some(7))]);
        assert_eq!(error("case: a\nout: 2:x 00\n"), "x.case:2: `2:x` is not `PORT:QUEUE`");
    }

    #[test]
    fn commands_of_all_kinds_are_read() {
        let text = "case: a\nversion: 1.0\nmod_flows: ip actions=drop\nerror: OFPBMC_BAD_FIELD\n\
                    port: 3 no_flood link_down\nwait: 1.5\nremoved: idle\nsetting: miss=drop\n\
                    packet_out: controller 00 01 actions=output:1\n";
        let cases = parse(Path::new("x.case"), text).unwrap();
        let steps: Vec<&Step> = cases[0].steps.iter().map(|(_, step)| step).collect();
        let change = Step::Change { what: "mod_flows".into(), text: "ip actions=drop".into() };
        let words = vec!["no_flood".to_owned(), "link_down".to_owned()];
        assert_eq!(steps[1], &change);
        assert_eq!(steps[3], &Step::Port { port: 3, words });
        assert_eq!(steps[4], &Step::Wait { ns: 1_500_000_000 });
        let frame = vec![0, 1];
        let out =
            Step::PacketOut { in_port: "controller".into(), frame, actions: "output:1".into() };
        assert_eq!(steps[7], &out);
        assert_eq!(error("case: a\nwait: x\n"), "x.case:2: `x` is not a number of seconds");
    }

    #[test]
    fn controllers_have_names() {
        let text = "case: a\nconnect: c 1.3\nsend: c role master 5\nsilent: c\n";
        let cases = parse(Path::new("x.case"), text).unwrap();
        let talk = |what: &str, text: &str| Step::Talk {
            what: what.into(),
            who: "c".into(),
            text: text.into(),
        };
        let steps: Vec<&Step> = cases[0].steps.iter().map(|(_, step)| step).collect();
        let wanted = [talk("connect", "1.3"), talk("send", "role master 5"), talk("silent", "")];
        assert_eq!(steps, wanted.iter().collect::<Vec<_>>());
        assert_eq!(error("case: a\nsend:\n"), "x.case:2: expected the name of a controller");
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
}
