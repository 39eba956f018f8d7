//! The one binary: arguments in, exit code out. No logic lives here.
//!
//! Each program is a crate that offers its arguments and a function to run them; this file only
//! sends the arguments there.
#![forbid(unsafe_code)]

mod log;
mod pki;
mod python;
mod shell;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

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
    /// Ask a running switch, or change its flow entries: the commands of ovs-ofctl and some more
    #[command(after_help = CTL_EXAMPLES)]
    Ctl(ctl::CtlArgs),
    /// Run a controller: an app that decides what switches do with packets
    Controller(Box<ControllerCommand>),
    /// Run a controller whose apps are in a file of Python
    #[command(after_help = python::EXAMPLES, override_usage = python::USAGE)]
    Run(python::PythonArgs),
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
    /// Measure how fast a datapath is
    Bench(lab::bench::BenchArgs),
    /// Show it: hub and learning switch beside each other, measured in under two minutes
    Demo(lab::cli::DemoArgs),
    #[command(hide = true)]
    FlowLoad(controller::cli::flow_load::FlowLoadArgs),
    /// Print what makes a shell complete the commands and options of weir
    Completions(shell::CompletionsArgs),
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
                channel::log_line(&format!("REST on http://{}", server.address()));
            }
            anyhow::Ok(server)
        })
    }
}

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

const CTL_EXAMPLES: &str = "\
Examples:
  weir ctl show
  weir ctl add-flow priority=10,in_port=1,actions=output:2
  weir ctl dump-flows table=0,ip
  weir ctl --switch tcp:192.0.2.1:6634 dump-ports
  weir ctl --json counters";

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| shell::best_first(error).exit());
    let _log = match log::start(arguments.log.as_deref()) {
        Ok(log) => log,
        Err(error) => {
            print_line(format_args!("weir: --log: {error}"));
            return ExitCode::from(2);
        }
    };
    match arguments.program {
        Program::Switch(arguments) => ended("switch", switch::run(*arguments)),
        Program::Ctl(arguments) => {
            let mut out = std::io::stdout().lock();
            let is_terminal = out.is_terminal();
            ctl::run(&arguments, &mut out, is_terminal, &mut std::io::stderr())
        }
        Program::Controller(arguments) => ended("controller", arguments.run()),
        Program::Run(arguments) => ended("run", python::become_python(arguments).map(drop)),
        Program::Net(arguments) => exited("net", arguments.run()),
        Program::Pki(arguments) => ended("pki", pki::run(arguments, &mut std::io::stdout().lock())),
        Program::Gen(arguments) => exited("gen", console::run(&arguments)),
        Program::Lab(arguments) => exited("lab", arguments.run()),
        Program::Bench(arguments) => exited("bench", arguments.run()),
        Program::Demo(arguments) => exited("demo", arguments.run()),
        Program::FlowLoad(arguments) => {
            ended("flow-load", controller::cli::flow_load::run(&arguments))
        }
        Program::Completions(arguments) => {
            let out = &mut std::io::stdout().lock();
            ended("completions", shell::completions(Arguments::command(), &arguments, out))
        }
        Program::Man(arguments) => {
            let out = &mut std::io::stdout().lock();
            ended("man", shell::man(Arguments::command(), &arguments, out))
        }
        Program::Version => {
            // Who does not read it does not miss it.
            let _ = writeln!(std::io::stdout(), "{}", version());
            ExitCode::SUCCESS
        }
    }
}

/// A line on standard error, after those of the log. It waits for its reader for a moment only.
fn print_line(line: std::fmt::Arguments<'_>) {
    channel::log_line(&line.to_string());
    channel::flush_log(log::END_WITHIN);
}

/// Exit code 0, or the error on standard error and exit code 1.
fn ended<E: std::fmt::Display>(program: &str, outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(format_args!("weir {program}: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The exit code that the program chose, or the error on standard error and exit code 1.
fn exited(program: &str, outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        print_line(format_args!("weir {program}: {error:#}"));
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
            include_str!("../../../contrib/workloads/README.md"),
            super::EXAMPLES,
            super::SWITCH_EXAMPLES,
            super::CTL_EXAMPLES,
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
