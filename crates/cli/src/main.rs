//! The one binary: arguments in, exit code out. No logic lives here.
//!
//! Each program is a crate that offers its arguments and a function to run them; this file only
//! sends the arguments there.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod completion;
mod flow_language;
mod help;
mod log;
mod metrics;
mod numbers;
mod pki;
mod python;
mod shell;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use ctl::CtlLine;

/// An OpenFlow switch, a controller framework, a generator and a lab in one program.
#[derive(Parser)]
#[command(name = "weir", version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Arguments {
    /// The filter of what is logged on standard error, for example info or switch=debug [default:
    /// RUST_LOG or info]
    #[arg(long, value_name = "FILTER", global = true)]
    log: Option<String>,

    #[command(subcommand)]
    program: Program,
}

#[derive(Subcommand)]
enum Program {
    /// Run an OpenFlow switch
    #[command(after_help = format!("{SWITCH_EXAMPLES}\n\n{}", switch::config::help()))]
    Switch(Box<switch::SwitchArgs>),
    /// Run the switch in place of ovs-vswitchd: configured by ovs-vsctl, by Open vSwitch's database
    #[command(after_help = VSWITCHD_EXAMPLES, disable_version_flag = true)]
    Vswitchd(Box<switch::vswitchd::VswitchdArgs>),
    /// Ask a running switch, or change its flow entries: the commands of ovs-ofctl and some more
    #[command(after_help = CTL_EXAMPLES)]
    #[command(after_long_help = format!("{}\n\n{CTL_EXAMPLES}", ctl::EXIT_CODES))]
    Ctl(ctl::CtlArgs),
    /// Run a controller: an app that decides what switches do with packets
    Controller(Box<ControllerCommand>),
    /// Run a controller whose apps are in a file of Python
    #[command(after_help = python::EXAMPLES, override_usage = python::USAGE)]
    Run(python::PythonArgs),
    /// Run apps of Ryu or os-ken as they are
    #[command(name = "ryu-manager")]
    #[command(after_help = python::RYU_EXAMPLES, override_usage = python::RYU_USAGE)]
    RyuManager(python::RyuArgs),
    /// Make networks of hosts and switches to run apps on, and work in them
    #[command(after_help = network::EXAMPLES)]
    Net(network::NetArgs),
    /// Make certificates for TLS between switches and controllers
    #[command(after_help = pki::EXAMPLES)]
    Pki(pki::PkiArgs),
    /// Generate traffic: a console with Pktgen's words
    #[command(after_help = console::EXAMPLES)]
    Gen(Box<console::GenArgs>),
    /// Measure any OpenFlow switch
    Lab(Box<lab::cli::LabArgs>),
    /// The answer to the words of earlier versions
    #[command(hide = true, disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Show it: hub and learning switch beside each other, measured in under two minutes
    Demo(lab::cli::DemoArgs),
    /// List the metrics that --metrics of a program serves to Prometheus
    #[command(after_help = self::metrics::EXAMPLES)]
    Metrics(self::metrics::MetricsArgs),
    /// Print what makes a shell complete the commands and options of weir
    Completions(completion::CompletionsArgs),
    /// Print the manual page of weir, or write those of all commands
    Man(shell::ManArgs),
    /// Print version and build
    Version,
}

/// The controller, and what is served beside it.
#[derive(clap::Args)]
struct ControllerCommand {
    #[command(flatten)]
    controller: controller::cli::ControllerArgs,

    #[command(flatten)]
    rest: rest::cli::RestArgs,
}

impl ControllerCommand {
    fn run(&self) -> anyhow::Result<()> {
        let routers = std::sync::Arc::default();
        let before = self.rest.app(&routers);
        controller::cli::run_beside(&self.controller, before, |handle, topology| {
            let server = self.rest.start(handle, topology, Some(routers))?;
            if let Some(server) = &server {
                files::log_line(&format!("REST on http://{}", server.address()));
            }
            anyhow::Ok(server)
        })
    }
}

/// The exit code of wrong usage.
const EXIT_USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  weir demo
  weir controller hub
  weir switch --port af_packet:veth0 --port af_packet:veth1 --controller tcp:127.0.0.1:6653
  weir ctl dump-flows";

const SWITCH_EXAMPLES: &str = "\
Examples:
  weir switch --port 1=af_packet:veth0 --port 2=af_packet:veth1 --controller tcp:127.0.0.1
  weir switch --port tap:left --port tap:right --listen ptcp:6634:127.0.0.1 --protocols OpenFlow10
  weir switch --config switch.toml --check-config";

const VSWITCHD_EXAMPLES: &str = "\
A link of the name ovs-vswitchd to the program is the same command.

Examples:
  weir vswitchd
  weir vswitchd unix:/var/run/openvswitch/db.sock --pidfile --detach --log-file
  weir vswitchd --version";

const CTL_EXAMPLES: &str = "\
Examples:
  weir ctl show
  weir ctl add-flow priority=10,in_port=1,actions=output:2
  weir ctl dump-flows table=0,ip
  weir ctl --switch tcp:192.0.2.1:6634 dump-ports
  weir ctl --json counters";

fn main() -> ExitCode {
    if completion::answer(Arguments::command) {
        return ExitCode::SUCCESS;
    }
    let (words, tip) = as_meant(std::env::args_os().collect());
    let arguments = match parsed(&words) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return help::print(Arguments::command(), &words, error);
        }
        Err(error) => return shell::print(shell::with_tips(error, tip)),
    };
    // Its log has a form of its own.
    if let Program::Vswitchd(arguments) = arguments.program {
        let ended = exited("vswitchd", switch::vswitchd::run(*arguments).map_err(Into::into));
        files::flush_log(log::END_WITHIN);
        return ended;
    }
    let _log = match log::start(arguments.log.as_deref()) {
        Ok(log) => log,
        Err(why) => {
            print_line(format_args!("weir: {why}"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let out = &mut files::stdout();
    match arguments.program {
        Program::Switch(arguments) => ended("switch", switch::run(*arguments)),
        Program::Vswitchd(_) => unreachable!("it was run before the log was started"),
        Program::Ctl(arguments) => {
            let is_terminal = std::io::stdout().is_terminal();
            ctl::run(&arguments, tip.as_ref(), out, is_terminal, &mut std::io::stderr())
        }
        Program::Controller(arguments) => ended("controller", arguments.run()),
        Program::Run(arguments) => ended("run", python::become_python(arguments).map(drop)),
        Program::RyuManager(arguments) => {
            ended("ryu-manager", python::become_ryu_manager(arguments).map(drop))
        }
        Program::Net(arguments) => exited("net", arguments.run()),
        Program::Pki(arguments) => ended("pki", pki::run(arguments, out)),
        Program::Gen(arguments) => exited("gen", console::run(&arguments)),
        Program::Lab(arguments) => exited("lab", arguments.run()),
        Program::Bench { words } => exited("bench", lab::cli::bench(&words)),
        Program::Demo(arguments) => exited("demo", arguments.run()),
        Program::Metrics(arguments) => ended("metrics", self::metrics::list(&arguments, out)),
        Program::Completions(arguments) => {
            ended("completions", completion::script(&arguments, out))
        }
        Program::Man(arguments) => ended("man", shell::man(Arguments::command(), &arguments, out)),
        Program::Version => ended("version", files::print(&format!("{}\n", version()))),
    }
}

/// The arguments of a command line.
fn parsed(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().try_get_matches_from(words)?;
    numbers::check(Arguments::command(), &matches)?;
    Arguments::from_arg_matches(&matches)
}

/// A line on standard error, after those of the log. It waits for its reader for a moment only.
fn print_line(line: std::fmt::Arguments<'_>) {
    files::log_line(&line.to_string());
    files::flush_log(log::END_WITHIN);
}

/// The words as they are meant: those of `weir ctl` may be in the manner of `ovs-ofctl`, and the
/// program may be called by the name of Open vSwitch's daemon.
fn as_meant(mut words: Vec<OsString>) -> (Vec<OsString>, Option<ctl::CtlTip>) {
    let program = words.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
    if program.is_some_and(|name| name == "ovs-vswitchd") {
        words.insert(1, "vswitchd".into());
    }
    if words.get(1).is_some_and(|word| word == "vswitchd") {
        return (switch::vswitchd::as_long_options(words), None);
    }
    let is_ctl = |word: &OsString| word == "ctl";
    let strings = words.iter().skip(2).map(|word| word.to_str().map(str::to_owned)).collect();
    let (true, Some(behind)) = (words.get(1).is_some_and(is_ctl), strings) else {
        return (words, None);
    };
    let command = Arguments::command();
    let Some(ctl) = command.find_subcommand("ctl") else { return (words, None) };
    let ctl = ctl.clone().args(command.get_arguments().cloned());
    let CtlLine { words: meant, tip } = ctl::as_meant(behind, &ctl);
    (words.into_iter().take(2).chain(meant.into_iter().map(OsString::from)).collect(), tip)
}

/// Exit code 0, or that of the error.
fn ended<E: Into<anyhow::Error>>(program: &str, outcome: Result<(), E>) -> ExitCode {
    exited(program, outcome.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}

/// The exit code that the program chose, or the error on standard error and exit code 1. A reader
/// of the output who has gone, as `head` does, is no error to report.
fn exited(program: &str, outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        if files::is_reader_gone(error.as_ref()) {
            return ExitCode::from(files::EXIT_READER_GONE);
        }
        print_line(format_args!("weir {program}: {}", files::with_sources(error.as_ref())));
        ExitCode::FAILURE
    })
}

/// The version and kind of this build, from facts that the compiler knows.
fn version() -> String {
    format!(
        "weir {} ({} build for {} {})",
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};

    #[test]
    fn a_cause_is_printed_once() {
        let cause = anyhow::anyhow!("no such file");
        let error = cause.context("control socket /x: no such file; name another place");
        assert_eq!(files::with_sources(error.as_ref()), error.to_string());
        let error = anyhow::anyhow!("no such file").context("control socket /x");
        assert_eq!(files::with_sources(error.as_ref()), "control socket /x: no such file");
    }

    #[test]
    fn the_arguments_contradict_nowhere() {
        super::Arguments::command().debug_assert();
    }

    /// The lines that a reader would copy: indented or of a shell, and a call of the program, also
    /// in the background. What stands between other fences is output, but for what has a prompt.
    fn commands(text: &str) -> Vec<String> {
        let joined = text.replace("\\\n", " ");
        let mut fence = None;
        let shown = joined.lines().filter(|line| match (line.strip_prefix("```"), fence) {
            (Some(_), Some(_)) => {
                fence = None;
                false
            }
            (Some(kind), None) => {
                fence = Some(kind);
                false
            }
            (None, _) => match fence {
                Some("sh") => true,
                Some(_) => line.starts_with("$ ") || line.starts_with("# weir "),
                None => line.starts_with(' '),
            },
        });
        let calls = shown.map(|line| line.trim_start_matches(['$', '#', ' ']));
        let calls = calls.filter(|line| line.starts_with("weir "));
        calls.map(|line| line.strip_suffix(" &").unwrap_or(line).to_owned()).collect()
    }

    /// The words of a line as a shell has them: what stands between quotes is one word.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in line.chars() {
            match quote {
                Some(open) if letter == open => quote = None,
                None if letter == '\'' || letter == '"' => quote = Some(letter),
                None if letter == ' ' => words.push(String::new()),
                Some(_) | None => words.last_mut().expect("one from the start").push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn commands_of_the_documents_and_of_the_help_are_taken() {
        let texts = [
            include_str!("../../../README.md"),
            include_str!("../../../docs/python.md"),
            include_str!("../../../docs/switch.md"),
            include_str!("../../../docs/ovs.md"),
            include_str!("../../../docs/channel.md"),
            include_str!("../../../docs/lab.md"),
            include_str!("../../../docs/lab-agents.md"),
            include_str!("../../../docs/bench.md"),
            include_str!("../../../docs/speed.md"),
            include_str!("../../../docs/controller.md"),
            include_str!("../../../docs/cluster.md"),
            include_str!("../../../docs/rest.md"),
            include_str!("../../../docs/start/first-hour.md"),
            include_str!("../../../docs/ports.md"),
            include_str!("../../../docs/metrics.md"),
            include_str!("../../../docs/containers.md"),
            include_str!("../../../docs/service.md"),
            include_str!("../../../contrib/workloads/README.md"),
            super::EXAMPLES,
            super::SWITCH_EXAMPLES,
            super::VSWITCHD_EXAMPLES,
            super::CTL_EXAMPLES,
            super::metrics::EXAMPLES,
            super::python::EXAMPLES,
            super::pki::EXAMPLES,
            network::EXAMPLES,
            console::EXAMPLES,
        ];
        let calls: Vec<String> = texts.into_iter().flat_map(commands).collect();
        assert!(calls.len() > 20, "only {calls:?}");
        for call in calls {
            // What stands behind these is the shell's.
            let words = words(&call);
            let own =
                words.iter().take_while(|word| !["&", ">", "<", "|", "#"].contains(&word.as_str()));
            match super::Arguments::try_parse_from(own) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::DisplayHelp => {}
                Err(error) => panic!("{call}: {error}"),
            }
        }
    }
}
