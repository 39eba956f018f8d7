//! `PortError`: failures of a port, in words that name the remedy.
//!
//! It must never carry a guess: where the kernel gives only a number, the number's text is kept.

use std::io;

use crate::spec_error::SpecError;

/// Reasons why a port fails.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The spec text is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The device behind the port has disappeared; the port will not work again.
    #[error("port {0}: the device has disappeared")]
    Gone(String),
    /// There is no device of that name in this network namespace.
    #[error("no network device {name:?}; there are: {}", list(.present))]
    NoSuchDevice {
        /// The name asked for.
        name: String,
        /// The devices that exist, in the kernel's order.
        present: Vec<String>,
    },
    /// The kernel refused for want of a right.
    #[error("{what}: permission denied; run as root, or {fix}")]
    Permission {
        /// The attempt.
        what: String,
        /// The right that would help besides being root.
        fix: &'static str,
    },
    /// Somebody else holds what the port needs for itself alone.
    #[error("{0} is in use already")]
    InUse(String),
    /// A device can be a port of one switch only.
    #[error("{port} is a port of another switch, {process}: end that one, or take another device")]
    OtherSwitch {
        /// The port's spec.
        port: String,
        /// The other switch's process.
        process: String,
    },
    /// A file or a ring does not hold what it should.
    #[error("{name}: {reason} (at byte {offset})")]
    Format {
        /// The file or ring.
        name: String,
        /// Place of the trouble, in bytes from the start.
        offset: u64,
        /// The trouble found there.
        reason: String,
    },
    /// This program was built without what the kind needs.
    #[error(
        "port {name}: this weir was built without the cargo feature {feature}; build it with \
         `cargo build --release --features {feature}`"
    )]
    NotBuilt {
        /// The port's spec.
        name: String,
        /// The cargo feature.
        feature: &'static str,
    },
    /// The kernel tier cannot stand at a port of this kind.
    #[error("the kernel tier works with ports of the kind af_packet, not {0}")]
    NoTier(&'static str),
    /// The host itself uses the device, and the kernel tier would take it away.
    #[error("{0}, which the kernel tier would take away")]
    HostUses(String),
    /// A driver outside of the kernel refuses.
    #[error("port {name}: {source}")]
    Driver {
        /// The port's spec.
        name: String,
        /// The driver's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A driver has panicked: a defect of it, or of a library under it.
    #[error("port {name}: its driver has panicked: {reason}")]
    Panicked {
        /// The port's spec.
        name: String,
        /// The message of the panic.
        reason: String,
    },
    /// Any other failure of a system call.
    #[error("{what}: {source}")]
    Io {
        /// The attempt.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl PortError {
    /// An error of a system call, sorted: permission apart from the rest.
    pub(crate) fn from_io(what: impl Into<String>, fix: &'static str, source: io::Error) -> Self {
        let what = what.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission { what, fix }
        } else {
            Self::Io { what, source }
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
