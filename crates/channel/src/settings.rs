//! What a connection may be told: role, versions, deadlines, limits.
//!
//! Plain values with sound defaults; nothing here acts.

use openflow::{Version, VersionBitmap};
use std::time::Duration;

/// Which side of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The peer is a switch.
    Controller,
    /// The peer is a controller.
    Switch,
}

/// The settings of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Which side we are.
    pub side: Side,
    /// The versions offered in the hello, not empty.
    pub versions: VersionBitmap,
    /// The peer's hello must be here within this time.
    pub hello_deadline: Duration,
    /// A message that has begun must be whole within this time.
    pub frame_deadline: Duration,
    /// Send an echo request after this time without a byte from the peer; `None` never asks.
    pub probe_after: Option<Duration>,
    /// Give the peer up when nothing has come this long after the echo request.
    pub probe_deadline: Duration,
    /// With this many bytes waiting for the peer the output is full: [`crate::Connection::offer`]
    /// drops, and a switch takes no further requests while its replies fill it.
    pub output_limit_bytes: usize,
    /// With more bytes waiting the connection is given up: the peer does not read.
    pub output_max_bytes: usize,
}

impl ConnectionSettings {
    /// Every version that Weir speaks, and the defaults: 10 s for the hello, 30 s for a message,
    /// echo after 5 s of silence with 10 s to answer, full at 1 MiB, given up at 64 MiB.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            versions: VersionBitmap::of(Version::ALL),
            hello_deadline: Duration::from_secs(10),
            frame_deadline: Duration::from_secs(30),
            probe_after: Some(Duration::from_secs(5)),
            probe_deadline: Duration::from_secs(10),
            output_limit_bytes: 1 << 20,
            output_max_bytes: 64 << 20,
        }
    }

    /// These settings with other versions.
    #[must_use]
    pub fn with_versions(mut self, versions: &[Version]) -> Self {
        self.versions = VersionBitmap::of(versions);
        self
    }
}
