//! Completion: shells call the program itself, so that they know values too, also those that only a
//! running switch has: that of `--control`, or of the usual control socket.
//!
//! An argument whose values are an enum has them from there; the others have a row here.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use lab::catalogue;
use openflow::Version;
use switch::config::{CachesArg, FailMode, Forward, Poll};

/// Variable by which a shell's script asks for completions.
const VARIABLE: &str = "_WEIR_COMPLETE";

/// Arguments of `weir completions`.
#[derive(Args)]
#[command(after_help = "Examples:
  weir completions bash > /usr/share/bash-completion/completions/weir
  weir completions zsh > ~/.zfunc/_weir")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

/// Gives values for an argument.
type Values = fn() -> Vec<String>;

/// Arguments by the command, the name of the option or of the value, and their values.
const ROWS: &[(&str, &str, Values)] = &[
    ("ctl", "bridge", bridges),
    ("ctl", "protocols", versions),
    ("ctl", "BRIDGE", bridges),
    ("ctl add-port", "PORT", port_kinds),
    ("ctl", "PORT", ports),
    ("ctl set-frags", "MODE", || strings(ctl::FRAGMENT_MODES)),
    ("ctl set-config", "frags", || strings(ctl::FRAGMENT_MODES)),
    ("ctl mod-port", "SETTING", ctl::port_settings),
    ("ctl caches", "SET", caches),
    ("switch", "port", port_kinds),
    ("switch", "local", port_kinds),
    ("switch", "caches", caches),
    ("switch", "fail-mode", || names(FailMode::NAMES)),
    ("switch", "forward", || names(Forward::NAMES)),
    ("switch", "poll", || names(Poll::NAMES)),
    ("switch", "protocols", versions),
    ("controller", "protocols", versions),
    ("gen", "port", port_kinds),
    ("lab", "SCENARIO", scenarios),
    ("lab", "dut", duts),
];

fn strings(words: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

fn names<T, const N: usize>(rows: [(&'static str, T); N]) -> Vec<String> {
    strings(rows.map(|(name, _)| name))
}

fn bridges() -> Vec<String> {
    of_line(ctl::running_bridges)
}

fn ports() -> Vec<String> {
    of_line(ctl::running_ports)
}

/// The values that depend on the words of the line that is completed.
fn of_line(values: fn(&[String], &Command) -> Vec<String>) -> Vec<String> {
    // The shell gives the line after `--`.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let ctl = ctl::CtlArgs::augment_args(Command::new("ctl"));
    values(&words, &ctl)
}

fn versions() -> Vec<String> {
    strings(Version::ALL.iter().map(|version| version.name()))
}

fn caches() -> Vec<String> {
    CachesArg::all().map(|set| set.to_string()).collect()
}

fn port_kinds() -> Vec<String> {
    netdev::KINDS.iter().map(|kind| format!("{}:", kind.word)).collect()
}

fn scenarios() -> Vec<String> {
    let all = catalogue::all();
    let evaluations = all.iter().filter_map(|scenario| scenario.evaluation.clone());
    let words = evaluations.chain(strings(catalogue::FAMILIES));
    let mut names: Vec<String> = words.chain(all.iter().map(|one| one.id.clone())).collect();
    names.sort();
    names.dedup();
    names
}

fn duts() -> Vec<String> {
    strings(lab::dut::ALL.iter().map(|dut| dut.name))
}

/// Answers a shell that asks for completions. It is done then.
pub(crate) fn answer(command: fn() -> Command) -> bool {
    let words = std::env::args_os();
    let folder = std::env::current_dir().ok();
    let engine = CompleteEnv::with_factory(|| with_values(command(), "")).var(VARIABLE);
    // A shell shows nothing of an error.
    engine.try_complete(words, folder.as_deref()).unwrap_or(true)
}

/// Writes what makes a shell ask for completions.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn script(arguments: &CompletionsArgs, out: &mut dyn Write) -> io::Result<()> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&arguments.shell) else {
        return Err(io::Error::other(format!("unknown shell {}", arguments.shell)));
    };
    shell.write_registration(VARIABLE, "weir", "weir", "weir", &mut script)?;
    out.write_all(&script)
}

/// The tree of commands below these words, whose arguments know their values.
fn with_values(command: Command, words: &str) -> Command {
    let command = command.mut_args(|arg| match row_of(&arg, words) {
        Some(row) => {
            let (_, _, values) = ROWS[row];
            let found =
                move || values().into_iter().map(CompletionCandidate::new).collect::<Vec<_>>();
            arg.add(ArgValueCandidates::new(found))
        }
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let words = format!("{words} {}", sub.get_name());
        with_values(sub, words.trim_start())
    })
}

/// The row of an argument of the command of these words.
fn row_of(arg: &Arg, words: &str) -> Option<usize> {
    let is_of =
        |of: &str| words == of || words.strip_prefix(of).is_some_and(|w| w.starts_with(' '));
    let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
    let is_named = |name: &str| match arg.get_long() {
        Some(long) => long == name,
        None => value.map_or_else(|| arg.get_id().as_str().to_uppercase(), str::to_owned) == name,
    };
    ROWS.iter().position(|(of, name, _)| is_of(of) && is_named(name))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::io::Write;
    use std::process::{Command as Process, Stdio};

    use clap::{Command, CommandFactory, Parser};

    use super::{CompletionsArgs, ROWS, row_of, script, with_values};
    use crate::Arguments;

    /// The candidates behind a line, the last word of which is begun.
    fn candidates(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (at, mut command) = (words.len() - 1, with_values(Arguments::command(), ""));
        let found = clap_complete::engine::complete(&mut command, words, at, None).unwrap();
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn values_are_completed_beside_commands_and_options() {
        for (line, expected) in [
            ("weir ctl dump-fl", "dump-flows"),
            ("weir ctl --js", "--json"),
            ("weir lab run cached-f", "cached-forwarding"),
            ("weir lab show ports-t", "ports-tcp"),
            ("weir lab run E", "E4"),
            ("weir lab run E4 --dut linux-b", "linux-bridge"),
            ("weir switch --port af_", "af_packet:"),
            ("weir gen --port pc", "pcap:"),
            ("weir switch --fail-mode st", "standalone"),
            ("weir ctl set-frags re", "reassemble"),
            ("weir ctl -O OpenFlow1", "OpenFlow13"),
            ("weir ctl mod-port 1 no-fl", "no-flood"),
            ("weir controller rou", "router"),
            ("weir completions ba", "bash"),
            ("weir lab run E4 --testbed mem", "memory"),
        ] {
            let found = candidates(line);
            assert!(found.iter().any(|one| one == expected), "{line}: {found:?}");
        }
    }

    #[test]
    fn every_row_is_of_an_argument() {
        fn walk(command: &Command, words: &str, found: &mut Vec<usize>) {
            let rows = command.get_arguments().filter_map(|arg| row_of(arg, words));
            found.extend(rows);
            for sub in command.get_subcommands() {
                walk(sub, format!("{words} {}", sub.get_name()).trim_start(), found);
            }
        }
        let mut found = Vec::new();
        walk(&Arguments::command(), "", &mut found);
        let missing = ROWS.iter().enumerate().filter(|(row, _)| !found.contains(row));
        let missing: Vec<_> = missing.map(|(_, (of, name, _))| format!("{of} {name}")).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn values_of_options_are_taken() {
        // Bridges and ports are those of a switch that runs.
        let is_fixed = |of: &str, name: &str| {
            ["switch", "ctl"].contains(&of)
                && name != "bridge"
                && name.bytes().all(|byte| !byte.is_ascii_uppercase())
        };
        for (of, name, values) in ROWS.iter().filter(|(of, name, _)| is_fixed(of, name)) {
            let is_begun = |value: &String| value.ends_with(':');
            for value in values().into_iter().filter(|value| !is_begun(value)) {
                let line = ["weir", of, &format!("--{name}"), &value, "show"].map(str::to_owned);
                let behind = if *of == "ctl" { 5 } else { 4 };
                let outcome = Arguments::try_parse_from(&line[..behind]);
                assert!(outcome.is_ok(), "{line:?}: {:?}", outcome.err());
            }
        }
    }

    #[test]
    fn bash_reads_the_script_and_every_shell_has_one() {
        for shell in super::Shells::builtins().names() {
            let mut text = Vec::new();
            script(&CompletionsArgs { shell: shell.to_owned() }, &mut text).unwrap();
            assert!(String::from_utf8_lossy(&text).contains("_WEIR_COMPLETE"), "{shell}");
            if shell == "bash" {
                let mut bash =
                    Process::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
                bash.stdin.take().unwrap().write_all(&text).unwrap();
                assert!(bash.wait().unwrap().success(), "bash does not read the script");
            }
        }
    }
}
