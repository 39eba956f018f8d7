//! `weir net up`: makes a network and keeps it.
//!
//! `weir run --network` starts it with `--end-with-input`: then it ends with the program that reads
//! its output, even when that is killed.

use std::io::{BufRead as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use programs::cancel::{Cancel, EXIT_INTERRUPTED};
use serde_json::json;

use crate::description::NetworkDescription;
use crate::error::Error;
use crate::keeper::NetworkKeeper;
use crate::plan::NetworkPlan;

pub(super) const EXAMPLES: &str = r#"A description, net.toml:
  link = [["s1", "h1"], ["s1", "h2"], ["s1", "s2"], ["s2:4", "h3"]]
  [[switch]]
  name = "s1"
  dpid = 0x1
  [[switch]]
  name = "s2"
  protocols = ["OpenFlow13"]
  [[host]]
  name = "h1"
  ip = "10.0.0.1/24"
  [[host]]
  name = "h2"
  mac = "02:00:00:00:00:22"
  [[host]]
  name = "h3"
  gateway = "10.0.0.254"
What is left out is chosen: dpids and addresses by their place, ports by the lowest free number.

Examples:
  weir net up net.toml
      says where its switches look for a controller: weir controller hub --listen punix:PATH
  weir net up net.toml --name second"#;

/// Longest description on standard input, in bytes.
const INPUT_MAX: u64 = 16 << 20;

#[derive(Args, Debug)]
pub(super) struct UpArgs {
    /// The description: TOML, or JSON in a file whose name ends in .json; - is a line of JSON on
    /// standard input
    file: PathBuf,

    /// End when the standard input ends
    #[arg(long)]
    end_with_input: bool,
}

impl UpArgs {
    pub(super) fn run(
        &self,
        root: &Path,
        name: Option<&str>,
        is_json: bool,
    ) -> anyhow::Result<ExitCode> {
        let cancel = Cancel::on_signals().context("catching signals")?;
        let is_input = self.file.as_os_str() == "-";
        let description =
            if is_input { read_line()? } else { NetworkDescription::read(&self.file)? };
        let plan = NetworkPlan::new(&description)?;
        if self.end_with_input {
            end_with_input(cancel.clone())?;
        }
        let name = match (name, self.file.file_stem()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(stem)) if !is_input => stem.to_string_lossy().into_owned(),
            (None, _) => "net".to_owned(),
        };
        let mut keeper = NetworkKeeper::make(root, &name, plan)?;
        print_made(&keeper, is_json)?;
        let program = std::env::current_exe().context("finding the program weir")?;
        match keeper.start_switches(&program, &cancel) {
            Err(_) if cancel.check().is_err() => return Ok(self.interrupted()),
            started => started?,
        }
        print_ready(&keeper, is_json)?;
        let mut ended = Ok(());
        while cancel.sleep(Duration::from_millis(100)).is_ok() {
            ended = keeper.check();
            if ended.is_err() {
                break;
            }
        }
        drop(keeper);
        ended?;
        Ok(self.interrupted())
    }

    /// The end of its input is the usual end where that was asked for.
    fn interrupted(&self) -> ExitCode {
        if self.end_with_input { ExitCode::SUCCESS } else { ExitCode::from(EXIT_INTERRUPTED) }
    }
}

fn read_line() -> Result<NetworkDescription, Error> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(INPUT_MAX).read_line(&mut line);
    read.map_err(Error::io("reading the description from standard input"))?;
    NetworkDescription::parse_json(&line)
}

fn end_with_input(cancel: Cancel) -> anyhow::Result<()> {
    let wait = move || {
        // What comes is of no interest; an error is an end too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        cancel.stop();
    };
    std::thread::Builder::new().name("input".into()).spawn(wait).context("starting a thread")?;
    Ok(())
}

fn print_made(keeper: &NetworkKeeper, is_json: bool) -> anyhow::Result<()> {
    let state = keeper.state();
    let mut out = files::stdout();
    if is_json {
        let cleaned = keeper.cleaned();
        let made = json!({"event": "made", "name": state.name, "cleaned": cleaned,
            "controller": state.controller});
        writeln!(out, "{made}")?;
    } else {
        for name in keeper.cleaned() {
            writeln!(out, "removed what a killed run has left: {name}")?;
        }
        writeln!(
            out,
            "a controller for it: weir controller hub --listen punix:{}",
            state.controller.display()
        )?;
    }
    Ok(out.flush()?)
}

fn print_ready(keeper: &NetworkKeeper, is_json: bool) -> anyhow::Result<()> {
    let state = keeper.state();
    let mut out = files::stdout();
    if is_json {
        writeln!(out, "{}", json!({"event": "ready", "name": state.name}))?;
    } else {
        let (switches, hosts) = (state.plan.switches.len(), state.plan.hosts.len());
        writeln!(
            out,
            "network {}: switches {switches}, hosts {hosts}; Ctrl-C takes it down",
            state.name
        )?;
    }
    Ok(out.flush()?)
}
