//! The settings of a client: versions, deadlines, limits, certificates.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use channel::{ConnectionSettings, Side, Tls};
use openflow::Version;

/// Bytes that wait before a stream of messages is written: enough for a thousand flow-mods in one
/// write, and little enough to stay in the processor's cache.
const OUTPUT_BYTES: usize = 1 << 17;

/// Says whether to go on; asked while a blocking client waits.
type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// The settings of a client.
#[derive(Clone)]
pub struct ClientSettings {
    /// The connection's: versions, hello deadline, echo probes.
    pub connection: ConnectionSettings,
    /// The longest wait for an answer, or for its next part.
    pub answer_deadline: Duration,
    /// The longest that closing takes: until what waits is sent and the peer has ended the stream.
    pub close_deadline: Duration,
    /// Entries that an answer may have.
    pub entries_max: usize,
    /// Messages that are kept for [`crate::Client::next_message`] while others are waited for; the
    /// oldest beyond that are dropped and counted.
    pub unclaimed_max: usize,
    /// The xid of the first message; those of the next ones follow.
    pub first_xid: u32,
    /// Our key and certificate, and the CA that we trust, for `ssl:`.
    pub tls: Option<Tls>,
    goes_on: Option<GoesOn>,
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("connection", &self.connection)
            .field("answer_deadline", &self.answer_deadline)
            .field("close_deadline", &self.close_deadline)
            .field("entries_max", &self.entries_max)
            .field("unclaimed_max", &self.unclaimed_max)
            .finish_non_exhaustive()
    }
}

impl Default for ClientSettings {
    /// The usual versions ([`Version::USUAL`]); 5 s for the hello, 60 s for an answer, 1 s to
    /// close, 4,000,000 entries in an answer.
    fn default() -> Self {
        let mut connection = ConnectionSettings::new(Side::Controller);
        connection.hello_deadline = Duration::from_secs(5);
        connection.output_limit_bytes = OUTPUT_BYTES;
        Self {
            connection,
            answer_deadline: Duration::from_secs(60),
            close_deadline: Duration::from_secs(1),
            entries_max: 4_000_000,
            unclaimed_max: 10_000,
            first_xid: 1,
            tls: None,
            goes_on: None,
        }
    }
}

impl ClientSettings {
    /// The defaults, for these versions only.
    ///
    /// # Panics
    /// Later, when a client is made of them and there is no version.
    #[must_use]
    pub fn of(versions: &[Version]) -> Self {
        let mut settings = Self::default();
        settings.connection = settings.connection.with_versions(versions);
        settings
    }

    /// With another time for an answer, or its next part.
    #[must_use]
    pub fn with_answer_deadline(mut self, deadline: Duration) -> Self {
        self.answer_deadline = deadline;
        self
    }

    /// With certificates, for `ssl:`.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// With a hook that a blocking client asks every 20 ms of a wait: once it says no, the wait
    /// ends with [`crate::ClientError::Cancelled`]. An async client is cancelled by dropping the
    /// future.
    #[must_use]
    pub fn while_true(mut self, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.goes_on = Some(Arc::new(goes_on));
        self
    }

    /// The hook's answer; `None` without a hook.
    pub(crate) fn goes_on(&self) -> Option<bool> {
        self.goes_on.as_ref().map(|goes_on| goes_on())
    }
}
