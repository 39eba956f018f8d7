//! Errors of starting and running the switch; each text names the remedy.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use channel::{TlsError, TransportError};
use control::SocketError;
use netdev::PortError;

use crate::config::ConfigError;

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
    #[error(
        "port {0} has queues, and its device has no known speed: give it one, as --rate {0}=100M"
    )]
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
    /// Metrics cannot be served.
    #[error("{0}")]
    Metrics(#[from] metrics::MetricsError),
    /// The state cannot be kept.
    #[error(
        "{}: the state cannot be kept here: {source}; give --state a folder that this user may \
         write to",
        path.display()
    )]
    State {
        /// The folder or the file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process uses the folder of the state.
    #[error("{}: another switch keeps its state here; give each a folder of its own", .0.display())]
    StateInUse(PathBuf),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The act that failed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The process may not open as many files as the switch needs.
    #[error(
        "{source}; this configuration needs about {wanted} open files, and the limit is {limit}: \
         raise it by `ulimit -n {wanted}` (LimitNOFILE={wanted} in a unit of systemd)"
    )]
    OpenFiles {
        /// About how many the switch needs.
        wanted: u64,
        /// The number that it may have.
        limit: u64,
        /// The error of what could not be opened.
        source: Box<SwitchError>,
    },
    /// A CPU that a worker should have is not there.
    #[error("worker-cores: there is no CPU {cpu} for this process; it has {allowed:?}")]
    NoCpu {
        /// The CPU.
        cpu: usize,
        /// The CPUs that the process may use.
        allowed: Vec<usize>,
    },
    /// Something of one bridge, where there are several.
    #[error("bridge {name}: {source}")]
    Bridge {
        /// Its name.
        name: String,
        /// Its error.
        source: Box<SwitchError>,
    },
    /// Two bridges would have the same datapath id.
    #[error(
        "the datapath id {dpid}, made of a port's address, is bridge {other}'s too: give a dpid"
    )]
    SameDpid {
        /// The id.
        dpid: openflow::DatapathId,
        /// The other bridge with the id.
        other: String,
    },
    /// A worker ended by a fault of ours.
    #[error("a forwarding thread has ended unexpectedly")]
    WorkerEnded,
}

impl SwitchError {
    /// The error with what helps, where it is that no more files may be open.
    pub(crate) fn name_open_files(self, limit: Option<u64>, needed: u64) -> Self {
        let mut cause: Option<&dyn Error> = Some(&self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|error| error.raw_os_error() == Some(EMFILE)) {
                let limit = limit.unwrap_or(u64::MAX);
                // What did not suffice is not enough, whatever was reckoned.
                let wanted = needed.max(limit.saturating_mul(2)).next_multiple_of(1_024);
                return Self::OpenFiles { wanted, limit, source: Box::new(self) };
            }
            cause = error.source();
        }
        self
    }
}

/// The kernel's "too many open files" of a process.
const EMFILE: i32 = 24;

pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> SwitchError {
    move |source| SwitchError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use std::io;

    use netdev::PortError;
    use openflow::PortNo;

    use super::{EMFILE, SwitchError};

    fn of_port(code: i32) -> SwitchError {
        let source = io::Error::from_raw_os_error(code);
        let source = PortError::Io { what: "opening veth0".into(), source };
        let port = SwitchError::Port { number: PortNo(1), source };
        SwitchError::Bridge { name: "b".into(), source: Box::new(port) }
    }

    #[test]
    fn out_of_files_names_the_limit_and_what_is_wanted() {
        let message = of_port(EMFILE).name_open_files(Some(1_024), 30_100).to_string();
        assert!(message.starts_with("bridge b: port 1: opening veth0: "), "{message}");
        assert!(message.contains("30720 open files, and the limit is 1024"), "{message}");
        assert!(message.contains("`ulimit -n 30720`"), "{message}");
        let message = of_port(EMFILE).name_open_files(Some(1_024), 5).to_string();
        assert!(message.contains("`ulimit -n 2048`"), "{message}");
        let other = of_port(1).name_open_files(Some(1_024), 5);
        assert!(matches!(other, SwitchError::Bridge { .. }));
    }
}
