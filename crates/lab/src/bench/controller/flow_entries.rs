//! The rows `flow-entries`: a controller loads flow entries into many switches, with barriers.
//!
//! Entries that a controller sends by itself are no answer to anything, and what bounds them should
//! be the switches. So these are real ones, bridges of one `weir switch` on the other cores. The
//! controller is `weir flow-load`, a process on the core of `--core`, which awaits a barrier behind
//! each thousand entries; after it the entries are counted in every switch.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use channel::Endpoint;
use client::{Client, ClientSettings};
use netdev::sys::affinity;
use openflow::flow::FlowStatsRequest;
use programs::listening::free_port;
use programs::process::Process;
use serde::Deserialize;

use super::super::common::Run;
use super::super::scratch;
use super::contenders::pin;
use super::cpu::{CpuReading, CpuUse};
use super::trial::{Measured, of_silence};

/// Longest time for programs to start, and for entries to be loaded.
const START_LIMIT: Duration = Duration::from_secs(60);
const LOAD_LIMIT: Duration = Duration::from_secs(600);

/// Output of `weir flow-load`.
#[derive(Debug, Deserialize)]
struct LoadReport {
    entries: u32,
    seconds: f64,
    controller_core: f64,
}

/// Loads `entries` into a number of new switches.
///
/// # Errors
/// A program does not start, a switch refuses an entry or has fewer than it was sent, or the run
/// was interrupted.
pub(super) fn measure(switches: u32, entries: u32, run: &Run) -> Result<Measured> {
    let all = affinity::allowed_cpus().context("asking for the cores")?;
    let others: Vec<usize> = all.into_iter().filter(|core| *core != run.core).collect();
    let folder = scratch()?;
    let port = free_port()?;
    let mut command = Command::new(&run.weir);
    command.args(["flow-load", "--listen", &format!("tcp:127.0.0.1:{port}")]);
    command.args(["--switches", &switches.to_string(), "--entries", &entries.to_string()]);
    let mut controller = Process::start("flow-load", command, None, folder.path())?;
    controller.wait_for_text("listening on", START_LIMIT, &run.cancel)?;
    pin(controller.pid(), &[run.core])?;

    let file = folder.path().join("switches.toml");
    std::fs::write(&file, bridges(switches, port, folder.path())).context("writing bridges")?;
    let mut command = Command::new(&run.weir);
    command.args(["switch", "--config"]).arg(&file);
    command.arg("--control").arg(folder.path().join("ctl"));
    let mut switch = Process::start("switches", command, None, folder.path())?;
    pin(switch.pid(), &others)?;

    controller.wait_for_text("switches are ready", START_LIMIT, &run.cancel)?;
    let before = CpuReading::now(Some(switch.pid()));
    let ended = controller.wait_for_end(LOAD_LIMIT, &run.cancel)?;
    let used = CpuUse::between(&before, &CpuReading::now(Some(switch.pid())));
    ensure!(ended.success(), "weir flow-load: {ended}; its last lines:\n{}", controller.tail());
    let report = report_of(&controller.output())?;
    switch.check()?;
    let counted = count(switches, folder.path())?;
    ensure!(
        counted == u64::from(report.entries),
        "the switches have {counted} entries of {} that were loaded",
        report.entries
    );
    let switch_cores = used.controller.unwrap_or_default();
    let figures = vec![
        of_silence("", f64::from(report.entries) / report.seconds, "entries/s"),
        of_silence("controller-cpu", 100.0 * report.controller_core, "%"),
        of_silence("switches-cpu", 100.0 * switch_cores.all, "%"),
    ];
    // The switches stand where the emulator does in other rows.
    let used = CpuUse { controller: None, emulator: switch_cores };
    Ok(Measured::without_limit(figures, used))
}

/// The file of a number of bridges with one port each, all of one controller.
fn bridges(count: u32, port: u16, folder: &Path) -> String {
    let mut text = format!(
        "controller = [\"tcp:127.0.0.1:{port}\"]\nprotocols = [\"OpenFlow13\"]\nmax-backoff = 1\n"
    );
    for number in 1..=count {
        let socket = folder.join(format!("of{number}"));
        let listen = format!("punix:{}", socket.display());
        text += &format!(
            "\n[[bridge]]\nname = \"s{number}\"\ndpid = \"{number:x}\"\n\
             port = [\"null:s{number}\"]\nlisten = [{listen:?}]\n"
        );
    }
    text
}

/// The line of JSON in what the controller has written.
fn report_of(output: &str) -> Result<LoadReport> {
    let line = output.lines().rev().find(|line| line.starts_with('{'));
    let line = line.context("weir flow-load has reported nothing")?;
    serde_json::from_str(line).with_context(|| format!("weir flow-load reported {line:?}"))
}

/// The flow entries that all switches have, by their own count.
fn count(switches: u32, folder: &Path) -> Result<u64> {
    let mut all = 0;
    for number in 1..=switches {
        let endpoint = Endpoint::Unix(folder.join(format!("of{number}")));
        let mut client = Client::connect(&endpoint, ClientSettings::default())?;
        all += client.count_flows(FlowStatsRequest::all())?.entries;
        client.close();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{bridges, report_of};

    #[test]
    fn every_bridge_has_an_id_a_port_and_a_socket() {
        let text = bridges(20, 7, Path::new("/x"));
        assert_eq!(text.matches("[[bridge]]").count(), 20);
        assert!(
            text.contains("dpid = \"14\"\nport = [\"null:s20\"]\nlisten = [\"punix:/x/of20\"]")
        );
    }

    #[test]
    fn a_report_is_found_among_other_lines() {
        let line = r#"{"entries":10,"switches":2,"seconds":0.5,"controller_core":0.25}"#;
        let report = report_of(&format!("listening on x\n{line}\nbye\n")).unwrap();
        assert_eq!((report.entries, report.seconds), (10, 0.5));
        assert!(report_of("listening on x\n").is_err());
        assert!(report_of("{\"entries\":1}\n").unwrap_err().to_string().contains("entries"));
    }
}
