//! Why the switch did not start, or did not run to its end, in words that say what helps.

use std::io;

use channel::{TlsError, TransportError};
use netdev::PortError;

use crate::config::ConfigError;
use crate::control::SocketError;

/// Why the switch did not start, or did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A port cannot be opened.
    #[error("port {number}: {source}")]
    Port {
        /// Its number.
        number: openflow::PortNo,
        /// Why.
        source: PortError,
    },
    /// A port has queues but no rate.
    #[error("port {0} has queues, and its device tells no speed: give it one, as --rate {0}=100M")]
    NoRate(openflow::PortNo),
    /// A listener cannot be opened.
    #[error("listen: {0}")]
    Listen(#[from] TransportError),
    /// Key or certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The control socket cannot be opened.
    #[error("{0}")]
    Control(#[from] SocketError),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A CPU that a worker should have is not there.
    #[error("worker-cores: there is no CPU {cpu} for this process; it has {allowed:?}")]
    NoCpu {
        /// The CPU.
        cpu: usize,
        /// What the process may use.
        allowed: Vec<usize>,
    },
    /// Something of one bridge, where there are several.
    #[error("bridge {name}: {source}")]
    Bridge {
        /// Its name.
        name: String,
        /// What.
        source: Box<SwitchError>,
    },
    /// Two bridges would have the same datapath id.
    #[error(
        "the datapath id {dpid}, made of a port's address, is bridge {other}'s too: give a dpid"
    )]
    SameDpid {
        /// The id.
        dpid: openflow::DatapathId,
        /// Who has it.
        other: String,
    },
    /// A worker ended by a fault of ours.
    #[error("a forwarding thread has ended unexpectedly")]
    WorkerEnded,
}

pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> SwitchError {
    move |source| SwitchError::Io { what, source }
}
