//! DPDK's testpmd under the bench: forwarding between the same two devices without a look at the
//! packets, or making packets for one that takes all.
//!
//! The first is the bound of what any switch can do with these devices, the second is a peer of the
//! generator. Its counters are read over DPDK's telemetry socket, which lies in the scratch folder
//! with all its other files.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
    sockopt,
};
use serde_json::Value;

use super::settings::{HUGE_MB, Settings};
use super::subject::{Counts, Subject, settle};
use super::workload::Workload;
use crate::cancel::Cancel;
use crate::process::Process;

const START_LIMIT: Duration = Duration::from_secs(60);
const SETTLE_LIMIT: Duration = Duration::from_secs(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Longest answer of the telemetry socket.
const ANSWER_MAX: usize = 16 * 1024;

/// A running testpmd.
#[derive(Debug)]
pub(super) struct Testpmd {
    process: Process,
    telemetry: std::os::fd::OwnedFd,
    /// The ports where packets come in and go out.
    ports: (u16, u16),
}

impl Testpmd {
    /// Starts testpmd with the devices of `workload` in the empty folder.
    ///
    /// # Errors
    /// It is not installed or does not start.
    pub(super) fn start(
        settings: &Settings,
        workload: &Workload,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        let cores = format!("{},{}", settings.control_core(), settings.core);
        let trace = workload.trace.display();
        let mut command = Command::new("nice");
        command.env("RUNTIME_DIRECTORY", folder);
        command.args(["-n", "-20", "dpdk-testpmd", "-l", &cores, "--no-pci", "--in-memory"]);
        command.args(["-m", &HUGE_MB.to_string()]);
        command.arg(format!("--vdev=net_pcap0,rx_pcap={trace},infinite_rx=1"));
        command.args(["--vdev=net_null0,no-rx=1", "--", "--auto-start", "--tx-first"]);
        command.args(["--total-num-mbufs=131072", "--rxd=512", "--txd=512", "--burst=32"]);
        command.arg(format!("--forward-mode={}", settings.wire.name()));
        Self::launch(command, (0, 1), folder, cancel)
    }

    /// Starts a testpmd that makes packets in its forward mode `mode` (`txonly`, `flowgen`) on the
    /// core `core`, for a device that takes all of them. It needs no huge pages.
    ///
    /// # Errors
    /// As [`Testpmd::start`].
    pub(super) fn start_sender(
        mode: &str,
        (control_core, core): (usize, usize),
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut command = Command::new("dpdk-testpmd");
        command.env("RUNTIME_DIRECTORY", folder);
        command.args(["-l", &format!("{control_core},{core}"), "--no-pci", "--no-huge"]);
        command.args(["-m", "512", "--vdev=net_null0,no-rx=1", "--", "--auto-start"]);
        command.args([&format!("--forward-mode={mode}"), "--total-num-mbufs=16384"]);
        Self::launch(command, (0, 0), folder, cancel)
    }

    fn launch(
        mut command: Command,
        ports: (u16, u16),
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        command.args(["--stats-period", "3600"]);
        let mut process = Process::start("testpmd", command, None, folder)
            .context("apt-get install dpdk-dev installs testpmd")?;
        let path = folder.join("dpdk/rte/dpdk_telemetry.v2");
        process.wait_until("open its socket", START_LIMIT, cancel, |_| path.exists())?;
        process.wait_for_text("Port statistics", START_LIMIT, cancel)?;
        let telemetry = open_telemetry(&path).context("connecting to testpmd's telemetry")?;
        Ok(Self { process, telemetry, ports })
    }

    fn ask(&self, port: u16, counter: &str) -> Result<u64> {
        let question = format!("/ethdev/stats,{port}");
        send(&self.telemetry, question.as_bytes(), SendFlags::empty())?;
        let mut buffer = vec![0; ANSWER_MAX];
        let (count, _) = recv(&self.telemetry, &mut buffer[..], RecvFlags::empty())?;
        let answer: Value = serde_json::from_slice(buffer.get(..count).unwrap_or_default())?;
        let Some(value) = answer["/ethdev/stats"][counter].as_u64() else {
            bail!("testpmd shows no {counter} of port {port}: {answer}")
        };
        Ok(value)
    }
}

fn open_telemetry(path: &Path) -> Result<std::os::fd::OwnedFd> {
    let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(ANSWER_LIMIT))?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    let mut greeting = vec![0; ANSWER_MAX];
    recv(&fd, &mut greeting[..], RecvFlags::empty())?;
    Ok(fd)
}

impl Subject for Testpmd {
    fn name(&self) -> &'static str {
        "testpmd"
    }

    fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn counts(&mut self) -> Result<Counts> {
        self.process.check()?;
        let received = self.ask(self.ports.0, "ipackets")?;
        let before = Instant::now();
        let sent = self.ask(self.ports.1, "opackets")?;
        Ok(Counts { at: before + before.elapsed() / 2, received, sent })
    }

    fn warm_up(&mut self, cancel: &Cancel) -> Result<f64> {
        settle(|| self.counts(), SETTLE_LIMIT, cancel)
    }
}
