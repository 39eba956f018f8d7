//! Traffic of the hosts' own programs: `iperf3` and `ping`.
//!
//! Each measurement starts its own server at the far host and ends it. What one of them says that
//! is no result is an error, never a figure of zero.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::bed::address;
use super::dut::RunningDut;
use crate::bench::common::Run;
use crate::method::iperf3::{self, Sums};
use crate::method::ping;
use crate::process::{self, Process};
use crate::stats::summarise;
use crate::tools::Tool;

/// A start on a busy machine, and the exchange of results at the end through a jammed path.
const SLACK: Duration = Duration::from_secs(30);

/// Milliseconds between two echo requests.
const PING_INTERVAL_MS: u32 = 10;

/// Bytes of a datagram whose frame has 64 with its FCS.
const DATAGRAM_LEN: u32 = 18;

/// TCP payload from host 1 to host 2, or the other way, in Gb/s.
///
/// # Errors
/// `iperf3` does not run, or has no result.
pub(super) fn tcp(dut: &RunningDut, run: &Run, streams: u16, is_reverse: bool) -> Result<f64> {
    let streams = streams.to_string();
    let mut words = vec!["-P", streams.as_str()];
    words.extend(is_reverse.then_some("-R"));
    let sums = iperf3(dut, run, &words)?;
    ensure!(sums.received.bytes > 0.0, "no byte of TCP has come");
    Ok(sums.received.bits_per_second / 1e9)
}

/// Datagrams from host 1 to host 2 in frames of 64 bytes, as fast as `iperf3` sends: thousands a
/// second that came, and that were sent.
///
/// # Errors
/// As [`tcp`].
pub(super) fn udp64(dut: &RunningDut, run: &Run) -> Result<[f64; 2]> {
    let len = DATAGRAM_LEN.to_string();
    let sums = iperf3(dut, run, &["-u", "-b", "0", "-l", &len])?;
    let kpps = |bytes: f64, seconds: f64| bytes / f64::from(DATAGRAM_LEN) / seconds / 1e3;
    let came = kpps(sums.received.bytes, sums.received.seconds);
    ensure!(came > 0.0, "no datagram has come");
    Ok([came, kpps(sums.sent.bytes, sums.sent.seconds)])
}

fn iperf3(dut: &RunningDut, run: &Run, words: &[&str]) -> Result<Sums> {
    let path = Tool::Iperf3.find()?;
    let folder = dut.folder.path();
    let mut server = Command::new(&path);
    server.args(["-s", "-1", "--forceflush"]);
    let mut server = Process::start("iperf3-server", server, Some(dut.bed.host(1)), folder)?;
    server.wait_for_text("Server listening", SLACK, &run.cancel)?;
    let mut client = Command::new(&path);
    client.args(["-c", &address(1).ip.to_string(), "-J", "--connect-timeout", "5000"]);
    client.args(["-t", &format!("{:.0}", run.window.seconds)]).args(words);
    let limit = Duration::from_secs_f64(run.window.seconds) + SLACK;
    let host = Some(dut.bed.host(0));
    let output = process::run("iperf3", client, host, folder, limit, &run.cancel)?;
    Ok(iperf3::parse(&output.text)?)
}

/// The mean round-trip time of echo requests from host 1 to host 2 in microseconds, and how many
/// were not answered.
///
/// # Errors
/// `ping` does not run, or none was answered.
pub(super) fn ping(dut: &RunningDut, run: &Run) -> Result<[f64; 2]> {
    let count = (run.window.seconds * 1e3 / f64::from(PING_INTERVAL_MS)).max(1.0);
    let mut command = Command::new(Tool::Ping.find()?);
    command.args(["-n", "-c", &format!("{count:.0}"), "-W", "2"]);
    command.args(["-i", &format!("{:.3}", f64::from(PING_INTERVAL_MS) / 1e3)]);
    command.arg(address(1).ip.to_string());
    let limit = Duration::from_secs_f64(run.window.seconds) * 3 + SLACK;
    let host = Some(dut.bed.host(0));
    let output = process::run("ping", command, host, dut.folder.path(), limit, &run.cancel)?;
    let replies = ping::parse(&output.text)?;
    let summary = summarise(&replies.rtt_ms).context("no echo request was answered")?;
    let lost = f64::from(replies.sent) - replies.rtt_ms.len() as f64;
    Ok([summary.mean * 1e3, lost])
}
