//! Command lines in the manner of `ovs-ofctl`: the bridge, or the address of a switch, as the first
//! word of a command, and a command's options in front of it.
//!
//! Words are moved and never made up: where the first word is no bridge of the running switch, the
//! line stays as it is, and a tip goes with it, for the case that it is refused.

use std::time::Duration;

use channel::Endpoint;
use clap::{Arg, ArgAction, Command};
use control::{ControlCommand, ControlLine, ControlRequest};
use serde_json::Value;

/// Longest wait for the switch that is asked for its bridges.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Words of `ovs-ofctl` and `dpctl` that `weir ctl` does not have, and why.
const ABSENT: &[(&str, &str)] = &[
    ("snoop", "`weir ctl monitor` shows what the switch sends"),
    ("set-async", "the masks end with the connection; `weir ctl monitor` sets its own"),
    ("dump-tlv-map", NICIRA),
    ("add-tlv-map", NICIRA),
    ("del-tlv-map", NICIRA),
    ("dump-ipfix-bridge", NICIRA),
    ("dump-ipfix-flow", NICIRA),
    ("ct-flush", NICIRA),
    ("ct-flush-zone", NICIRA),
    ("ofp-parse", "it speaks to no switch"),
    ("ofp-parse-pcap", "it speaks to no switch"),
    ("ofp-print", "it speaks to no switch"),
    ("queue-mod", QUEUES),
    ("queue-del", QUEUES),
    ("set-desc", "an extension; `weir switch --dp-desc` and its like set texts"),
    ("--flow-format", "leave it out: -O OpenFlow13 and later have all fields in their one form"),
    ("-F", "leave it out: -O OpenFlow13 and later have all fields in their one form"),
];

const NICIRA: &str = "it is Nicira's, and in no version of OpenFlow";
const QUEUES: &str = "it is an extension of one switch; `weir ctl set-port --queue` sets queues";

/// Reason why `weir ctl` lacks a word of `ovs-ofctl`.
#[must_use]
pub fn absent(word: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(name, _)| *name == word).map(|(_, why)| *why)
}

/// A command line, and a tip for the case that it is refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CtlLine {
    /// The words behind `weir ctl`.
    pub words: Vec<String>,
    /// The first word of the command, and why it was not taken for a bridge.
    pub tip: Option<CtlTip>,
}

/// Why a word was not taken for a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtlTip {
    /// The word.
    pub word: String,
    /// The reason, and what helps.
    pub text: String,
}

/// The line that is meant by the words behind `weir ctl`; `ctl` is that command, with its options.
#[must_use]
pub fn as_meant(words: Vec<String>, ctl: &Command) -> CtlLine {
    as_meant_by(words, ctl, &bridges)
}

fn as_meant_by(words: Vec<String>, ctl: &Command, bridges: &AskBridges<'_>) -> CtlLine {
    let as_it_is = |words| CtlLine { words, tip: None };
    let Some(at) = first_word(&words, 0, ctl, None) else { return as_it_is(words) };
    let Some(command) = ctl.find_subcommand(&words[at]) else { return as_it_is(words) };
    // Options of the command that stand in front of it go behind it.
    let is_own = |word: &String| {
        find(ctl, word).is_none() && find(command, word).is_some() && word.starts_with("--")
    };
    let (moved, mut line): (Vec<String>, Vec<String>) =
        words[..at].iter().cloned().partition(is_own);
    line.push(words[at].clone());
    let behind = line.len();
    line.extend(moved);
    line.extend_from_slice(&words[at + 1..]);
    let first = first_word(&line, behind, ctl, Some(command));
    let takes = |name: &str| {
        let mut values = command.get_positionals().filter_map(Arg::get_value_names).flatten();
        values.any(|value| value == name)
    };
    let Some(first) = first.filter(|_| !takes("BRIDGE")) else { return as_it_is(line) };
    let given = |name: &str| value_of(&line, ctl, name);
    let word = line[first].clone();
    let (switch, is_named) = (given("switch"), given("bridge").is_some());
    if word.parse().is_ok_and(|place: Endpoint| !place.is_passive()) {
        if switch.is_none() && !is_named && given("control").is_none() && !takes("SOURCE") {
            line.remove(first);
            line.insert(0, format!("--switch={word}"));
        }
        return as_it_is(line);
    }
    if !is_name(&word) || is_named || asks_for_help(&line) {
        return as_it_is(line);
    }
    let text = match switch {
        Some(_) => format!("--switch names the switch; leave `{word}` out"),
        None => match bridges(given("control")) {
            Ok(bridges) if bridges.contains(&word) => {
                line.remove(first);
                line.insert(0, format!("--bridge={word}"));
                return as_it_is(line);
            }
            Ok(bridges) => format!(
                "the switch has no bridge `{word}`; --bridge NAME names one of {}",
                bridges.join(", ")
            ),
            Err(why) => format!("if `{word}` is a bridge, as in --bridge {word}: {why}"),
        },
    };
    CtlLine { words: line, tip: Some(CtlTip { word, text }) }
}

/// Asks the switch of a control socket for the names of its bridges.
type AskBridges<'a> = dyn Fn(Option<String>) -> Result<Vec<String>, String> + 'a;

fn bridges(control: Option<String>) -> Result<Vec<String>, String> {
    Ok(listed(control)?.iter().filter_map(name).collect())
}

/// The switch's bridges as it lists them.
fn listed(control: Option<String>) -> Result<Vec<Value>, String> {
    let path = control.map_or_else(control::default_path, Into::into);
    let command = ControlCommand::ListBridges;
    let request = ControlRequest { json: true, bridge: None, command };
    let records = control::ask_within(ANSWER_MAX, &path, &request);
    let value = |record| match record {
        ControlLine::Value(value) => Some(value),
        ControlLine::Text(_) | ControlLine::Done | ControlLine::Refused(_) => None,
    };
    Ok(records.map_err(|error| error.to_string())?.into_iter().filter_map(value).collect())
}

fn name(record: &Value) -> Option<String> {
    record["name"].as_str().map(str::to_owned)
}

/// The names of the bridges of the switch that a line of `weir ctl` asks; none where none answers.
#[must_use]
pub fn running_bridges(words: &[String], ctl: &Command) -> Vec<String> {
    bridges(value_of(words, ctl, "control")).unwrap_or_default()
}

/// The names of the ports of the switch that a line of `weir ctl` asks; none where none answers.
#[must_use]
pub fn running_ports(words: &[String], ctl: &Command) -> Vec<String> {
    let bridges = listed(value_of(words, ctl, "control")).unwrap_or_default();
    let ports = bridges.iter().filter_map(|bridge| bridge["ports"].as_array()).flatten();
    ports.filter_map(name).collect()
}

/// Whether a word may be the name of a bridge, and no flow, number or path.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

fn asks_for_help(words: &[String]) -> bool {
    words.iter().any(|word| word == "-h" || word == "--help")
}

/// The option that a word names.
fn find<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    command.get_arguments().find(|arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => {
            let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
            letters.next().is_some_and(|letter| arg.get_short() == Some(letter))
        }
    })
}

/// Whether the word behind an option is its value.
fn takes_next(arg: &Arg, word: &str) -> bool {
    let is_short = !word.starts_with("--");
    let has_own = word.contains('=') || is_short && word.len() > 2;
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    takes && !has_own && !arg.is_require_equals_set()
}

/// Place of the first word from `from` on that is neither an option nor its value.
fn first_word(
    words: &[String],
    from: usize,
    ctl: &Command,
    command: Option<&Command>,
) -> Option<usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        if word == "--" || !word.starts_with('-') || word == "-" {
            return (word != "--").then_some(at);
        }
        let arg = find(ctl, word).or_else(|| command.and_then(|command| find(command, word)));
        at += 1 + usize::from(arg.is_some_and(|arg| takes_next(arg, word)));
    }
    None
}

/// The value of an option of `weir ctl`.
fn value_of(words: &[String], ctl: &Command, name: &str) -> Option<String> {
    let is_it = |arg: &&Arg| arg.get_long() == Some(name);
    let at = words.iter().position(|word| find(ctl, word).filter(is_it).is_some())?;
    match words[at].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => words.get(at + 1).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::{ABSENT, as_meant_by};
    use crate::CtlArgs;

    fn ctl() -> Command {
        CtlArgs::augment_args(Command::new("ctl"))
    }

    fn meant(line: &str) -> (String, Option<String>) {
        let words = line.split_whitespace().map(str::to_owned).collect();
        let asked = |control: Option<String>| match control.as_deref() {
            None => Ok(vec!["br0".to_owned(), "ip".to_owned()]),
            Some(other) => Err(format!("nobody at {other}")),
        };
        let line = as_meant_by(words, &ctl(), &asked);
        (line.words.join(" "), line.tip.map(|tip| tip.text))
    }

    #[test]
    fn lines_of_ovs_ofctl_are_taken_as_they_are_meant() {
        for (line, expected) in [
            ("show br0", "--bridge=br0 show"),
            ("dump-flows br0", "--bridge=br0 dump-flows"),
            ("dump-flows br0 table=0,ip", "--bridge=br0 dump-flows table=0,ip"),
            ("-O OpenFlow10 dump-flows br0", "--bridge=br0 -O OpenFlow10 dump-flows"),
            ("-OOpenFlow13 del-flows br0", "--bridge=br0 -OOpenFlow13 del-flows"),
            ("add-flow br0 in_port=1,actions=drop", "--bridge=br0 add-flow in_port=1,actions=drop"),
            ("--strict del-flows br0 in_port=1", "--bridge=br0 del-flows --strict in_port=1"),
            ("--sort=priority dump-flows br0", "--bridge=br0 dump-flows --sort=priority"),
            ("--no-stats dump-flows", "dump-flows --no-stats"),
            ("--json --names dump-flows", "--json dump-flows --names"),
            ("fdb/show br0", "--bridge=br0 fdb/show"),
            ("dump-flows ip", "--bridge=ip dump-flows"),
            ("dump-ports tcp:192.0.2.1:6634 2", "--switch=tcp:192.0.2.1:6634 dump-ports 2"),
            ("diff-flows br0 flows.txt", "--bridge=br0 diff-flows flows.txt"),
            ("show unix:/run/s", "--switch=unix:/run/s show"),
            // What has a bridge in its own syntax, or is no name, stays.
            ("add-port br0 tap:x", "add-port br0 tap:x"),
            ("del-bridge br0", "del-bridge br0"),
            ("diff-flows tcp:192.0.2.1 tcp:192.0.2.2", "diff-flows tcp:192.0.2.1 tcp:192.0.2.2"),
            ("--bridge br1 dump-flows br0", "--bridge br1 dump-flows br0"),
            ("dump-flows --sort=priority", "dump-flows --sort=priority"),
            ("set-config --frags drop", "set-config --frags drop"),
            ("-t 3 dump-flows", "-t 3 dump-flows"),
            ("add-flow -", "add-flow -"),
            ("dump-flows br0 --help", "dump-flows br0 --help"),
            ("nonsense br0", "nonsense br0"),
        ] {
            assert_eq!(meant(line), (expected.to_owned(), None), "{line}");
        }
    }

    #[test]
    fn a_word_that_is_no_bridge_stays_with_a_tip() {
        for (line, tip) in [
            ("dump-flows br7", "has no bridge `br7`; --bridge NAME names one of br0, ip"),
            ("--control /x dump-groups br0", "as in --bridge br0: nobody at /x"),
            ("--switch tcp:192.0.2.1 del-flows br0", "leave `br0` out"),
        ] {
            let (words, found) = meant(line);
            assert_eq!(words, line);
            assert!(found.as_deref().is_some_and(|text| text.ends_with(tip)), "{line}: {found:?}");
        }
    }

    #[test]
    fn words_that_are_absent_are_in_the_guide() {
        let guide = include_str!("../../../docs/switch.md");
        let command = ctl();
        for (word, _) in ABSENT {
            assert!(command.find_subcommand(word).is_none(), "{word}");
            assert!(guide.contains(&format!("`{word}`")), "{word} is missing in docs/switch.md");
        }
    }
}
