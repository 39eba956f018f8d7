//! The commands of `weir ctl`, in the order of the help: a row each.
//!
//! A row names a type in the file of its family. The type's documentation is the command's help,
//! its fields are the arguments, and its `execute` is what the command does; nothing else is to be
//! done for a new command.

use clap::Subcommand;

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::{
    echo, flow_sets, flows, groups, meters, monitor, own, packet, ports, replug, settings, tables,
};

macro_rules! commands {
    ($($family:ident::$name:ident,)+) => {
        /// The commands.
        #[derive(Clone, Debug, Subcommand)]
        pub(super) enum Command {
            $($name($family::$name),)+
        }

        impl Command {
            /// Carries the command out.
            pub(super) async fn execute(
                self,
                context: &mut CommandContext<'_>,
            ) -> Result<(), Failure> {
                match self {
                    $(Self::$name(command) => command.execute(context).await,)+
                }
            }
        }
    };
}

commands! {
    own::ListBridges,
    own::Show,
    settings::DumpDesc,
    tables::DumpTables,
    tables::DumpTableFeatures,
    tables::ModTable,
    tables::ModTableFeatures,
    ports::DumpPorts,
    ports::DumpPortsDesc,
    ports::ModPort,
    replug::AddBridge,
    replug::DelBridge,
    replug::Ports,
    replug::AddPort,
    replug::SetPort,
    replug::DelPort,
    replug::Reload,
    ports::QueueStats,
    ports::QueueGetConfig,
    settings::GetFrags,
    settings::SetFrags,
    settings::GetConfig,
    settings::SetConfig,
    settings::GetAsync,
    flows::DumpFlows,
    flows::DumpAggregate,
    flows::AddFlow,
    flows::AddFlows,
    flows::ModFlows,
    flows::DelFlows,
    flow_sets::ReplaceFlows,
    flow_sets::DiffFlows,
    packet::PacketOut,
    monitor::Monitor,
    groups::DumpGroups,
    groups::DumpGroupStats,
    groups::DumpGroupFeatures,
    groups::AddGroup,
    groups::AddGroups,
    groups::ModGroup,
    groups::DelGroups,
    meters::DumpMeters,
    meters::MeterStats,
    meters::MeterFeatures,
    meters::AddMeter,
    meters::AddMeters,
    meters::ModMeter,
    meters::DelMeters,
    echo::Probe,
    echo::Ping,
    echo::Benchmark,
    own::Trace,
    own::Workers,
    own::Caches,
    own::Counters,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::CtlArgs;

    #[derive(Parser)]
    struct Parsed {
        #[command(flatten)]
        ctl: CtlArgs,
    }

    #[test]
    fn every_command_has_examples_that_are_taken() {
        Parsed::command().debug_assert();
        for command in Parsed::command().get_subcommands() {
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
                if let Err(error) = Parsed::try_parse_from(words) {
                    panic!("{name}: weir {call}: {error}");
                }
                let names = |word| word == name || command.get_all_aliases().any(|a| a == word);
                assert!(call.split_whitespace().any(names), "{name}: {call}");
            }
        }
    }
}
