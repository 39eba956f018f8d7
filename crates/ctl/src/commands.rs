//! The commands of `weir ctl`, in the groups and the order of the help: a row each.
//!
//! A row names a type in the file of its family. The type's documentation is the command's help,
//! its fields are the arguments, and its `execute` is what the command does; nothing else is to be
//! done for a new command.

use clap::Subcommand;

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::{
    counters, echo, flow_sets, flows, groups, meters, monitor, own, packet, ports, replug,
    settings, tables, top,
};

macro_rules! commands {
    ($($title:literal: $($family:ident::$name:ident),+;)+) => {
        /// The commands.
        #[derive(Clone, Debug, Subcommand)]
        pub(super) enum Command {
            $($($name($family::$name),)+)+
        }

        /// The groups of the help, with the number of their commands.
        const GROUPS: &[(&str, usize)] = &[$(($title, [$(stringify!($name)),+].len()),)+];

        impl Command {
            /// Carries the command out.
            pub(super) async fn execute(
                self,
                context: &mut CommandContext<'_>,
            ) -> Result<(), Failure> {
                match self {
                    $($(Self::$name(command) => command.execute(context).await,)+)+
                }
            }
        }
    };
}

commands! {
    "Switch":
    own::Show,
    own::ListBridges,
    settings::DumpDesc,
    settings::GetConfig,
    settings::SetConfig,
    settings::GetFrags,
    settings::SetFrags,
    settings::GetAsync,
    tables::DumpTables,
    tables::DumpTableFeatures,
    tables::DumpTableDesc,
    tables::ModTable,
    tables::ModTableFeatures;

    "Flow entries":
    flows::DumpFlows,
    flows::DumpAggregate,
    flows::AddFlow,
    flows::AddFlows,
    flows::ModFlows,
    flows::DelFlows,
    flow_sets::ReplaceFlows,
    flow_sets::DiffFlows;

    "Groups":
    groups::DumpGroups,
    groups::DumpGroupStats,
    groups::DumpGroupFeatures,
    groups::AddGroup,
    groups::AddGroups,
    groups::ModGroup,
    groups::InsertBuckets,
    groups::RemoveBuckets,
    groups::DelGroups;

    "Meters":
    meters::DumpMeters,
    meters::MeterStats,
    meters::MeterFeatures,
    meters::AddMeter,
    meters::AddMeters,
    meters::ModMeter,
    meters::DelMeters;

    "Ports and queues":
    ports::DumpPorts,
    ports::DumpPortsDesc,
    ports::ModPort,
    ports::QueueStats,
    ports::QueueGetConfig;

    "Packets and connection":
    packet::PacketOut,
    monitor::Monitor,
    echo::Probe,
    echo::Ping,
    echo::Benchmark;

    "Weir's own switch":
    own::Trace,
    own::DumpMacs,
    counters::Counters,
    top::Top,
    own::Workers,
    own::Caches,
    replug::Ports,
    replug::AddPort,
    replug::SetPort,
    replug::DelPort,
    replug::AddBridge,
    replug::DelBridge,
    replug::Reload;
}

/// The template of the help: the commands by their groups, which clap does not know.
pub(super) fn help_template() -> String {
    let all = Command::augment_subcommands(clap::Command::new("ctl"));
    let mut commands = all.get_subcommands();
    let mut text = String::new();
    for (title, count) in GROUPS {
        text += &format!("\n{title}:\n");
        for command in commands.by_ref().take(*count) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {:20} {about}\n", command.get_name());
        }
    }
    let head = "{about-with-newline}\n{usage-heading} {usage}\n";
    format!("{head}{text}\nOptions, of every command:\n{{options}}{{after-help}}")
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use crate::CtlArgs;

    #[test]
    fn every_command_has_examples_that_are_taken() {
        let ctl = CtlArgs::augment_args(Command::new("ctl"));
        ctl.clone().debug_assert();
        for command in ctl.get_subcommands() {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "{name} says nothing");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains("Example"), "{name} has no example");
            let calls: Vec<&str> =
                examples.lines().filter_map(|line| line.trim().strip_prefix("weir ")).collect();
            assert!(!calls.is_empty(), "{name}: {examples}");
            for call in calls {
                // The words after a redirection are the shell's.
                let words = call.split(" < ").next().unwrap().split_whitespace();
                if let Err(error) = ctl.clone().try_get_matches_from(words) {
                    panic!("{name}: weir {call}: {error}");
                }
                let names = |word| word == name || command.get_all_aliases().any(|a| a == word);
                assert!(call.split_whitespace().any(names), "{name}: {call}");
            }
        }
    }
}
