//! Counters of a switch beside OpenFlow, where it has them.
//!
//! Weir has its control socket, by which `weir ctl --json` asks too, and Open vSwitch its own; a
//! question takes some tens of microseconds. Nothing may be changed this way.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use control::{ControlCommand, ControlLine, ControlRequest};
use programs::cancel::Cancel;
use programs::process;
use programs::tools::Tool;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
    sockopt,
};
use serde_json::Value;

use crate::testbed::replay::Counts;

/// Longest time for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Longest time for an answer of the telemetry socket, and its most bytes.
const TELEMETRY_LIMIT: Duration = Duration::from_secs(5);
const TELEMETRY_MAX: usize = 16 * 1024;

/// Names of Open vSwitch's cache counters; those that count a miss begin with `miss`.
const CACHE_COUNTERS: [&str; 3] =
    ["packets received", "miss with success upcall", "miss with failed upcall"];

/// Access to a switch's counters.
#[derive(Debug)]
pub enum DutCounters {
    /// Weir's control socket.
    Control(PathBuf),
    /// The control socket of Open vSwitch's daemon, in the folder of its run.
    OvsControl(PathBuf),
    /// testpmd's telemetry, which says too what a switch says over OpenFlow.
    Testpmd(OwnedFd),
}

/// The values that the switch at `socket` answers.
pub(crate) fn ask(socket: &Path, command: ControlCommand) -> Result<Vec<Value>> {
    let request = ControlRequest { json: true, bridge: None, command };
    let lines = control::ask(socket, &request)
        .with_context(|| format!("asking for {:?}", request.command))?;
    let values = lines.into_iter().filter_map(|line| match line {
        ControlLine::Value(value) => Some(value),
        ControlLine::Text(_) | ControlLine::Done | ControlLine::Refused(_) => None,
    });
    Ok(values.collect())
}

impl DutCounters {
    /// The forwarding threads' own reports; null where there are none.
    pub(crate) fn workers(&self) -> Result<Value> {
        match self {
            Self::Control(socket) => ask(socket, ControlCommand::Workers).map(Value::Array),
            Self::OvsControl(_) | Self::Testpmd(_) => Ok(Value::Null),
        }
    }

    /// Counts of the first pair of ports, where OpenFlow does not give them.
    pub(crate) fn counts(&self) -> Result<Option<Counts>> {
        match self {
            Self::Testpmd(telemetry) => telemetry_counts(telemetry).map(Some),
            Self::Control(_) | Self::OvsControl(_) => Ok(None),
        }
    }

    /// Waits until fewer than one packet in a thousand misses the caches for three seconds, or
    /// until `limit`, of a switch that fills its caches packet by packet; the seconds that it took.
    pub(crate) fn warm_up(&self, limit: Duration, cancel: &Cancel) -> Result<Option<f64>> {
        let Self::OvsControl(socket) = self else { return Ok(None) };
        let (start, mut quiet_s) = (Instant::now(), 0);
        let mut last = misses(socket, cancel)?;
        while quiet_s < 3 && start.elapsed() < limit {
            cancel.sleep(Duration::from_secs(1))?;
            let now = misses(socket, cancel)?;
            let (packets, missed) = (now.0.saturating_sub(last.0), now.1.saturating_sub(last.1));
            let is_quiet = packets > 0 && missed < packets / 1000;
            quiet_s = if is_quiet { quiet_s + 1 } else { 0 };
            last = now;
        }
        Ok(Some(start.elapsed().as_secs_f64()))
    }
}

/// Packets, and those of them that missed all caches.
fn misses(socket: &Path, cancel: &Cancel) -> Result<(u64, u64)> {
    let folder = tempfile::tempdir().context("making a scratch folder")?;
    let mut command = Command::new(Tool::OVS_APPCTL.find()?);
    command.arg("-t").arg(socket).arg("dpif-netdev/pmd-stats-show");
    let output = process::run("ovs-appctl", command, None, folder.path(), ANSWER_LIMIT, cancel)?;
    ensure!(output.success, "pmd-stats-show failed: {}", output.text.trim_end());
    let [packets, missed, failed] = CACHE_COUNTERS.map(|key| sum_of(&output.text, key));
    Ok((packets, missed + failed))
}

/// The sum over all forwarding threads of the counter `key`.
fn sum_of(text: &str, key: &str) -> u64 {
    let values = text.lines().filter_map(|line| {
        let value = line.trim().strip_prefix(key)?.trim_start().strip_prefix(':')?;
        value.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    values.sum()
}

/// Connects to testpmd's telemetry: DPDK's socket, which has the counters of its ports.
pub(super) fn open_telemetry(path: &Path) -> Result<OwnedFd> {
    let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(TELEMETRY_LIMIT))?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    let mut greeting = vec![0; TELEMETRY_MAX];
    recv(&fd, &mut greeting[..], RecvFlags::empty())?;
    Ok(fd)
}

/// Counts of the ports where packets come in and go out.
pub(super) fn telemetry_counts(telemetry: &OwnedFd) -> Result<Counts> {
    let received = ask_telemetry(telemetry, 0, "ipackets")?;
    let before = Instant::now();
    let sent = ask_telemetry(telemetry, 1, "opackets")?;
    Ok(Counts { at: before + before.elapsed() / 2, received, sent })
}

fn ask_telemetry(telemetry: &OwnedFd, port: u16, counter: &str) -> Result<u64> {
    let question = format!("/ethdev/stats,{port}");
    send(telemetry, question.as_bytes(), SendFlags::empty())?;
    let mut buffer = vec![0; TELEMETRY_MAX];
    let (count, _) = recv(telemetry, &mut buffer[..], RecvFlags::empty())?;
    let answer: Value = serde_json::from_slice(buffer.get(..count).unwrap_or_default())?;
    let Some(value) = answer["/ethdev/stats"][counter].as_u64() else {
        bail!("testpmd shows no {counter} of port {port}: {answer}")
    };
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{CACHE_COUNTERS, sum_of};

    #[test]
    fn counters_of_all_threads_are_summed() {
        let text = "pmd thread numa_id 0 core_id 1:\n  packets received: 12\n  emc hits: 5\n  \
                    megaflow hits: 6\n  miss with success upcall: 1\nmain thread:\n  \
                    packets received: 3\n";
        assert_eq!(CACHE_COUNTERS.map(|key| sum_of(text, key)), [15, 1, 0]);
    }
}
