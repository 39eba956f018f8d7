//! `weir bench`: how fast a switch's datapath is, or a controller, or the generator.
//!
//! A question about a switch is a view of a scenario of the lab, where there is one. Everything
//! that is started ends with the bench.

mod beside;
mod cold_start;
mod common;
mod controller;
mod datapath;
mod dump;
mod figures;
mod generator;
mod growth;
mod idle;
mod measure;
mod new_flows;
mod outcome;
mod peer;
mod ports;
mod replay;
mod series;
mod tiers;
mod updates;
mod victim;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

/// Measure how fast a datapath is, or a controller.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand, Debug)]
enum BenchCommand {
    /// Forward NAME.pcap by NAME.flows as fast as it goes
    Datapath(Box<datapath::DatapathArgs>),
    /// Forward packets every one of which begins a new flow
    NewFlows(Box<new_flows::NewFlowsArgs>),
    /// Start with cold caches, and see when the rate is steady
    ColdStart(Box<cold_start::ColdStartArgs>),
    /// Change flow entries, alone and while forwarding
    Updates(Box<updates::UpdatesArgs>),
    /// List all flow entries while forwarding
    Dump(Box<dump::DumpArgs>),
    /// Forward the same traffic by ever more flow entries
    Growth(Box<growth::GrowthArgs>),
    /// Send as the generator does, into nothing and over wires in memory
    Generator(Box<generator::GeneratorArgs>),
    /// Measure a controller with emulated switches: rate, latency, storms of connections
    Controller(Box<controller::ControllerBenchArgs>),
    /// Do nothing, and wake up
    Idle(Box<idle::IdleArgs>),
    /// Forward somebody's packets beside an attack
    Victim(Box<victim::VictimArgs>),
    /// Forward between hosts over kernel devices, beside other switches
    Ports(Box<ports::PortsArgs>),
    /// Forward with all caches, with the key cache only, and without
    Tiers(Box<tiers::TiersArgs>),
}

impl BenchArgs {
    /// Does what was asked.
    ///
    /// # Errors
    /// Files, rights, cores or huge pages that are missing; a switch that does not start.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            BenchCommand::Datapath(args) => args.run(),
            BenchCommand::NewFlows(args) => args.run(),
            BenchCommand::ColdStart(args) => args.run(),
            BenchCommand::Updates(args) => args.run(),
            BenchCommand::Dump(args) => args.run(),
            BenchCommand::Growth(args) => args.run(),
            BenchCommand::Generator(args) => args.run(),
            BenchCommand::Controller(args) => args.run(),
            BenchCommand::Idle(args) => args.run(),
            BenchCommand::Victim(args) => args.run(),
            BenchCommand::Ports(args) => args.run(),
            BenchCommand::Tiers(args) => args.run(),
        }
    }
}

/// A scratch folder; its path is short, since a socket's path may have 107 bytes only.
fn scratch() -> Result<tempfile::TempDir> {
    programs::scratch::make(programs::scratch::BENCH).context("making a scratch folder")
}
