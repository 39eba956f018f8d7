//! Errors of a network.

use std::io;
use std::path::{Path, PathBuf};

use netdev::sys::link::LinkError;
use programs::process::ProcessError;

/// Why a network is not made, not found or not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The description contradicts itself.
    #[error("the network's description: {0}")]
    Description(String),
    /// The file of the description.
    #[error("{path}: {why}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The mistake in it.
        why: String,
    },
    /// The right to make namespaces is missing.
    #[error("hosts in network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN): {0}")]
    NotRoot(io::Error),
    /// The kernel refused a namespace, a folder or a socket.
    #[error("{what}: {source}")]
    Io {
        /// The attempt.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused a device, an address or a route.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// `weir switch` does not run.
    #[error(transparent)]
    Switch(#[from] ProcessError),
    /// No network runs.
    #[error("no network runs; `weir run app.py --network` or `weir net up FILE` makes one")]
    NoNetwork,
    /// Several run, and none is named.
    #[error("several networks run: {}; name one by --name", .0.join(", "))]
    Several(Vec<String>),
    /// None has that name.
    #[error("no network {name:?} runs; there is {}", listed(there))]
    Unknown {
        /// The name.
        name: String,
        /// Those that run.
        there: Vec<String>,
    },
    /// A word names nothing of the network.
    #[error("there is no {what} {name:?}; there is {}", listed(there))]
    NoSuch {
        /// Kind of the thing not found.
        what: &'static str,
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
}

impl Error {
    /// An error of a call, with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// An error about a path.
    pub(crate) fn at(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("{what} {}", path.display()))
    }
}

/// Names as a sentence has them.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
