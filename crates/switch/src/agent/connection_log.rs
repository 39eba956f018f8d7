//! Rate limits of the log lines that a peer can cause by connecting, failing or complaining.
//!
//! However many peers come and go, each kind of line of a bridge is written at most once in ten
//! seconds after a first few, with the number of those left out. Connections that succeed have a
//! burst, so that the log of a switch with some controllers is complete.

use std::cell::RefCell;
use std::time::Duration;

use channel::LogThrottle;
use channel::driver::now;

/// Interval of the lines of one kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// Connects, and disconnects, that are written at once.
const BURST: u32 = 10;

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// The hello exchange of a connection is done.
    Connected,
    /// A connection that was up has ended.
    Disconnected,
    /// A connection has ended before its hello exchange was done.
    Failed,
    /// The listener is full.
    TurnedAway,
    /// A half-open connection was closed for another.
    Evicted,
    /// The system could not accept.
    NotAccepted,
    /// A controller has sent an error message.
    Complaint,
}

/// The rate limits of a bridge.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    connected: RefCell<LogThrottle>,
    disconnected: RefCell<LogThrottle>,
    failed: RefCell<LogThrottle>,
    turned_away: RefCell<LogThrottle>,
    evicted: RefCell<LogThrottle>,
    not_accepted: RefCell<LogThrottle>,
    complaint: RefCell<LogThrottle>,
}

impl Default for ConnectionLog {
    fn default() -> Self {
        let burst = || RefCell::new(LogThrottle::with_burst(INTERVAL, BURST));
        let single = || RefCell::new(LogThrottle::new(INTERVAL));
        Self {
            connected: burst(),
            disconnected: burst(),
            failed: single(),
            turned_away: single(),
            evicted: single(),
            not_accepted: single(),
            complaint: single(),
        }
    }
}

/// A line may be written.
pub(super) struct Pass {
    /// How many of its kind were left out before it, if any.
    pub(super) suppressed: Option<u64>,
}

impl ConnectionLog {
    /// Whether a line may be written now.
    pub(super) fn pass(&self, line: LogLine) -> Option<Pass> {
        let throttle = match line {
            LogLine::Connected => &self.connected,
            LogLine::Disconnected => &self.disconnected,
            LogLine::Failed => &self.failed,
            LogLine::TurnedAway => &self.turned_away,
            LogLine::Evicted => &self.evicted,
            LogLine::NotAccepted => &self.not_accepted,
            LogLine::Complaint => &self.complaint,
        };
        let suppressed = throttle.borrow_mut().pass(now())?;
        Some(Pass { suppressed: (suppressed > 0).then_some(suppressed) })
    }
}
