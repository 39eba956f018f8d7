//! `weir bench`: the words of earlier versions for what scenarios of the lab ask.
//!
//! It translates and measures nothing. A word that nothing stands for any more is refused with what
//! to use in its place.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::cli::LabArgs;
use crate::names;

const HELP: &str = "\
Nothing is kept of a run unless --out names a folder. What each measures: docs/bench.md.

Questions about a switch: `weir bench ports OPTIONS` is `weir lab run ports-tcp ports-ping .. \
--format lines OPTIONS`, and so are datapath, new-flows, cold-start, updates, dump, growth, idle, \
victim and tiers.

Questions about a controller: `weir bench controller --mode MODE --vs weir,ovs-testcontroller` is \
`weir lab run controller-MODE --format lines --dut weir,ovs-testcontroller`, with the option of \
`weir lab run` for each of its own: --switches N is --set fleet.switches=N.";

/// The words of earlier versions for scenarios of the lab.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    #[command(external_subcommand)]
    Scenarios(Vec<String>),
}

/// Scenarios by the words of `weir bench` that stood for them.
const SCENARIOS: [(&str, &[&str]); 10] = [
    ("datapath", &["datapath-rate"]),
    ("new-flows", &["datapath-new-flows"]),
    ("cold-start", &["datapath-cold-start"]),
    ("updates", &["datapath-loading", "datapath-updates"]),
    ("dump", &["datapath-dump"]),
    ("growth", &["datapath-growth"]),
    ("idle", &["datapath-idle"]),
    ("victim", &["datapath-victim"]),
    ("tiers", &["datapath-tiers"]),
    (
        "ports",
        &[
            "ports-tcp",
            "ports-ping",
            "ports-datagrams",
            "ports-flows",
            "ports-fair-share",
            "ports-changes",
            "ports-idle",
        ],
    ),
];

/// The scenario of each mode of `weir bench controller`, and the number of its switches.
const MODES: [(&str, &str, u32); 7] = [
    ("throughput", "controller-throughput", 16),
    ("latency", "controller-latency", 1),
    (OPEN_LOOP, "controller-latency", 16),
    ("storm", "controller-storm", 16),
    ("topology", "controller-topology", 16),
    ("discovery-size", "controller-discovery", 16),
    ("proactive", "controller-proactive", 16),
];
const OPEN_LOOP: &str = "open-loop";

/// Options of `weir bench controller` that `weir lab run` has by another name, and that name: the
/// value follows those that end in `=`.
const OPTIONS: [(&str, &str); 26] = [
    ("--json", "--format=lines"),
    ("--seconds", "--set=duration_s="),
    ("--repeats", "--starts="),
    ("--core", "--set=core="),
    ("--of", "--set=version="),
    ("--app", "--set=app="),
    ("--tls", "--set=transport=tls"),
    ("--rate", RATE),
    ("--switches", "--set=fleet.switches="),
    ("--hosts", "--set=fleet.hosts="),
    ("--ports", "--set=fleet.ports="),
    ("--whole", "--set=fleet.is_whole=true"),
    ("--window", "--set=fleet.window="),
    ("--invalid", "--set=fleet.invalid_pct="),
    ("--hostile", "--set=fleet.hostile_ps="),
    ("--warm-up", "--set=fleet.warm_up_s="),
    ("--ready-limit", "--set=fleet.ready_limit_s="),
    ("--at-once", "--set=fleet.at_once="),
    ("--threads", "--set=fleet.threads="),
    ("--pid", "--set=fleet.pid="),
    ("--rest", "--set=fleet.rest="),
    ("--private-key", "--set=fleet.private_key="),
    ("--certificate", "--set=fleet.certificate="),
    ("--ca-cert", "--set=fleet.ca_cert="),
    ("--help", "--help"),
    ("-h", "--help"),
];
const RATE: &str = "--set=rate_pps=";

/// The command line of `weir lab`.
#[derive(Parser)]
#[command(name = "weir lab")]
struct LabLine {
    #[command(flatten)]
    lab: LabArgs,
}

impl BenchArgs {
    /// Does what was asked.
    ///
    /// # Errors
    /// A word that is none or is gone; those of `weir lab run`.
    pub fn run(self) -> Result<ExitCode> {
        let BenchCommand::Scenarios(words) = self.command;
        let line = lab_line(&words)?;
        LabLine::parse_from(line).lab.run()
    }
}

/// The line of `weir lab run` that words of `weir bench` stand for. It keeps no file unless the
/// words name a folder.
fn lab_line(words: &[String]) -> Result<Vec<String>> {
    let (name, options) = words.split_first().context("a word is missing")?;
    let found = SCENARIOS.iter().find(|(known, _)| known == name);
    let (scenarios, options) = match found {
        Some((_, scenarios)) => (scenarios.to_vec(), options.to_vec()),
        None if name == "controller" => {
            let (scenario, options) = of_controller(options)?;
            (vec![scenario], options)
        }
        None => {
            let known = ["controller"].into_iter().chain(SCENARIOS.map(|(name, _)| name));
            bail!(names::unknown("bench", name, known));
        }
    };
    let line = ["weir lab", "run"].into_iter().chain(scenarios);
    let line = line.chain(["--format", "lines", "--scratch"]);
    Ok(line.map(str::to_owned).chain(options).collect())
}

/// An option of `weir lab run`, with `=` behind one that takes a value.
fn option_of_run(word: &str) -> Option<String> {
    let (line, name) = (LabLine::command(), word.strip_prefix("--")?);
    let mut arguments = line.find_subcommand("run")?.get_arguments();
    let found = arguments.find(|argument| argument.get_long() == Some(name))?;
    Some(format!("{word}{}", if found.get_action().takes_values() { "=" } else { "" }))
}

/// The scenario of a line of `weir bench controller`, and its options.
fn of_controller(words: &[String]) -> Result<(&'static str, Vec<String>)> {
    let (mut mode, mut subjects) = (&MODES[0], Vec::new());
    let (mut commands, mut options) = (Vec::new(), Vec::new());
    let mut words = words.iter().flat_map(|word| match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => vec![option, value],
        _ => vec![word.as_str()],
    });
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word {
            "--mode" => {
                let name = value()?;
                let unknown = || names::unknown("mode", name, MODES.map(|(known, ..)| known));
                mode = MODES.iter().find(|(known, ..)| *known == name).with_context(unknown)?;
            }
            "--vs" => subjects.extend(value()?.split(',').map(str::to_owned)),
            "--target" => {
                let target = value()?;
                let has_kind = ["tcp:", "ssl:"].iter().any(|kind| target.starts_with(kind));
                subjects.push(if has_kind { target.to_owned() } else { format!("tcp:{target}") });
            }
            "--command" => commands.push(value()?),
            _ => {
                let found = OPTIONS.iter().find(|(option, _)| *option == word);
                let new = found.map(|(_, new)| (*new).to_owned()).or_else(|| option_of_run(word));
                let known = OPTIONS.map(|(option, _)| option);
                let unknown = || names::unknown("option of bench controller", word, known);
                let new = new.with_context(unknown)?;
                let value = if new.ends_with('=') { value()? } else { "" };
                // A number with a point is a text here.
                let quote = if word == "--of" { "\"" } else { "" };
                options.push(format!("{new}{quote}{value}{quote}"));
            }
        }
    }
    let has = |start: &str| options.iter().any(|option| option.starts_with(start));
    if subjects.is_empty() && !has("--help") && !has("--dut=") {
        bail!("name a controller: --vs weir,ovs-testcontroller, or --target HOST:PORT");
    }
    let (name, scenario, switches) = *mode;
    if name == OPEN_LOOP && !has(RATE) {
        bail!("--mode {name} needs --rate");
    }
    let command = |name: &String| {
        let of = |line: &&&str| line.split_once('=').is_some_and(|(known, _)| known == name);
        commands.iter().find(of).map_or_else(|| name.clone(), |line| (*line).to_owned())
    };
    options.extend(subjects.iter().map(|name| format!("--dut={}", command(name))));
    // What the words say comes later, and takes precedence.
    options.insert(0, format!("--set=fleet.switches={switches}"));
    Ok((scenario, options))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{LabLine, MODES, OPTIONS, SCENARIOS, lab_line};
    use crate::campaign::catalogue;
    use crate::names::GONE;

    fn of(line: &str) -> Result<Vec<String>, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        lab_line(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn words_of_earlier_versions_are_scenarios() {
        for (name, scenarios) in SCENARIOS {
            let line = of(&format!("{name} --quick")).unwrap();
            assert!(LabLine::try_parse_from(line).is_ok(), "{name}");
            assert!(scenarios.iter().all(|id| catalogue::find(id).is_ok()), "{name}");
        }
        assert!(MODES.iter().all(|(_, id, _)| catalogue::find(id).is_ok()));
        let error = of("port").unwrap_err();
        assert!(error.contains("did you mean ports?") && error.contains("controller"), "{error}");
    }

    #[test]
    fn options_of_controllers_are_those_of_a_run() {
        let of_run = [("--set", "=core="), ("--dut", "="), ("--quick", ""), ("--out", "=")];
        let options = OPTIONS.iter().filter(|(_, new)| *new != "--help").chain(&of_run);
        for (option, new) in options {
            let value = match new.strip_suffix('=') {
                Some("=core") => " core=1",
                Some(_) => " 1",
                None => "",
            };
            let line = of(&format!("controller --vs weir {option}{value}")).unwrap();
            assert!(LabLine::try_parse_from(line).is_ok(), "{option}");
        }
        let line = of("controller --vs=weir,mine --mode latency --of 1.0 --command mine=m-{port}");
        let words = ["weir lab", "run", "controller-latency", "--format", "lines", "--scratch"];
        let more = ["--set=fleet.switches=1", "--set=version=\"1.0\""];
        let duts = ["--dut=weir", "--dut=mine=m-{port}"];
        assert_eq!(line.unwrap(), [&words[..], &more[..], &duts[..]].concat());
        assert!(
            of("controller --target 127.0.0.1:1")
                .unwrap()
                .contains(&"--dut=tcp:127.0.0.1:1".to_owned())
        );
        for (line, why) in [
            ("controller", "--target HOST:PORT"),
            ("controller --vs", "--vs needs a value"),
            ("controller --vs weir --mode strom", "did you mean storm?"),
            ("controller --vs weir --switch 4", "did you mean --switches?"),
            ("controller --vs weir --mode open-loop", "needs --rate"),
        ] {
            assert!(of(line).unwrap_err().contains(why), "{line}: {:?}", of(line));
        }
    }

    #[test]
    fn words_that_are_gone_name_what_to_use() {
        for (word, instead) in GONE {
            let line = match word {
                _ if word.starts_with("--") => format!("controller --vs weir {word} 1"),
                "reprovisioning" => format!("controller --vs weir --mode {word}"),
                _ => word.to_owned(),
            };
            let error = of(&line).unwrap_err();
            assert!(error.contains("is gone") && error.contains(instead), "{error}");
        }
    }
}
