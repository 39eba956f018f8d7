//! testpmd's telemetry: DPDK's socket, which has the counters of its ports.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
    sockopt,
};
use serde_json::Value;

use crate::testbed::replay::Counts;

const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Longest answer of the telemetry socket.
const ANSWER_MAX: usize = 16 * 1024;

/// Testpmd's telemetry, which has the counts of its ports.
#[derive(Debug)]
pub struct PortTelemetry {
    pub(super) socket: OwnedFd,
    /// The ports where packets come in and go out.
    pub(super) ports: (u16, u16),
}

impl PortTelemetry {
    /// Counts of both ports.
    ///
    /// # Errors
    /// testpmd does not answer.
    pub(crate) fn counts(&self) -> Result<Counts> {
        let received = self.ask(self.ports.0, "ipackets")?;
        let before = Instant::now();
        let sent = self.ask(self.ports.1, "opackets")?;
        Ok(Counts { at: before + before.elapsed() / 2, received, sent })
    }

    fn ask(&self, port: u16, counter: &str) -> Result<u64> {
        let question = format!("/ethdev/stats,{port}");
        send(&self.socket, question.as_bytes(), SendFlags::empty())?;
        let mut buffer = vec![0; ANSWER_MAX];
        let (count, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
        let answer: Value = serde_json::from_slice(buffer.get(..count).unwrap_or_default())?;
        let Some(value) = answer["/ethdev/stats"][counter].as_u64() else {
            bail!("testpmd shows no {counter} of port {port}: {answer}")
        };
        Ok(value)
    }
}

pub(super) fn open_telemetry(path: &Path) -> Result<OwnedFd> {
    let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(ANSWER_LIMIT))?;
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    let mut greeting = vec![0; ANSWER_MAX];
    recv(&fd, &mut greeting[..], RecvFlags::empty())?;
    Ok(fd)
}
