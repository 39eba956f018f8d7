//! The settings of a connection: side, versions, deadlines, limits.
//!
//! Plain values with sound defaults; nothing here acts.

use openflow::{Version, VersionBitmap};
use std::time::Duration;

/// The two sides of a connection.
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
    /// Our side.
    pub side: Side,
    /// The versions offered in the hello, not empty.
    pub versions: VersionBitmap,
    /// Deadline of the peer's hello, from the opening of the stream.
    pub hello_deadline: Duration,
    /// Deadline of a whole message, from its first byte.
    pub frame_deadline: Duration,
    /// An echo request is sent after this time without a byte from the peer; `None` for never.
    pub probe_after: Option<Duration>,
    /// The connection ends when no byte has come this long after the echo request.
    pub probe_deadline: Duration,
    /// The output is full at this many bytes: [`crate::Connection::offer`] drops, and a switch
    /// reads no further requests while its replies alone fill it.
    pub output_limit_bytes: usize,
    /// The connection ends when more bytes wait: the peer does not read.
    pub output_max_bytes: usize,
}

impl ConnectionSettings {
    /// The usual versions ([`Version::USUAL`]), and the defaults: 10 s for the hello, 10 s for a
    /// message, echo after 5 s of silence with 10 s to answer, full at 1 MiB, given up at 64 MiB.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            versions: VersionBitmap::of(Version::USUAL),
            hello_deadline: Duration::from_secs(10),
            frame_deadline: Duration::from_secs(10),
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
