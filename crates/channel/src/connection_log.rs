//! Rate limits of the log lines that a peer can cause by connecting, failing or complaining.
//!
//! However many peers come and go, each kind of line is written by a switch (whatever the number of
//! its bridges) or a controller (whatever the number of its threads) at most once in ten seconds
//! after a first few, with the number of those left out and of the bridges that they were about.
//! Connections that succeed have a burst, so that the log of a small network is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::log_throttle::LogThrottle;

/// Interval of the lines of one kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// Connects, disconnects and failed connects that are written at once.
const BURST: u32 = 10;

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLine {
    /// A connection is up; at a controller, its switch is ready.
    Connected,
    /// A connection that was up has ended.
    Disconnected,
    /// The other side cannot be connected to.
    NotConnected,
    /// A connection has ended before it was of use.
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

impl LogLine {
    fn throttle(self) -> LogThrottle {
        match self {
            Self::Connected | Self::Disconnected | Self::NotConnected => {
                LogThrottle::with_burst(INTERVAL, BURST)
            }
            Self::Failed
            | Self::TurnedAway
            | Self::Evicted
            | Self::NotAccepted
            | Self::Complaint => LogThrottle::new(INTERVAL),
        }
    }
}

/// The rate limit of a kind of line.
#[derive(Debug)]
struct LineLimit {
    throttle: LogThrottle,
    /// The bridges of the lines left out since the last one, where there are several.
    bridges: BTreeSet<Arc<str>>,
}

/// The rate limits of a switch, for all its bridges, or of a controller.
#[derive(Debug, Default)]
pub struct ConnectionLog {
    limits: Mutex<BTreeMap<LogLine, LineLimit>>,
}

/// A line may be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Pass {
    /// The number of its kind that were left out before it, if any.
    pub suppressed: Option<u64>,
    /// The number of bridges that these were about, where there are several.
    pub bridges: Option<usize>,
}

impl ConnectionLog {
    /// Whether a line about a bridge may be written at `now`; the bridge has a name where there
    /// are several.
    pub fn pass(&self, line: LogLine, bridge: Option<&Arc<str>>, now: Instant) -> Option<Pass> {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = limits
            .entry(line)
            .or_insert_with(|| LineLimit { throttle: line.throttle(), bridges: BTreeSet::new() });
        let Some(suppressed) = limit.throttle.pass(now) else {
            limit.bridges.extend(bridge.cloned());
            return None;
        };
        let bridges = std::mem::take(&mut limit.bridges).len();
        Some(Pass {
            suppressed: (suppressed > 0).then_some(suppressed),
            bridges: (bridges > 0).then_some(bridges),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_over_a_thousand_bridges_is_one_line_in_ten_seconds() {
        let (log, begin) = (ConnectionLog::default(), Instant::now());
        let bridges: Vec<Arc<str>> = (0..1_000).map(|n| format!("br{n}").into()).collect();
        let mut passed = Vec::new();
        for second in 0..20 {
            for bridge in &bridges {
                let now = begin + Duration::from_secs(second);
                passed.extend(log.pass(LogLine::Failed, Some(bridge), now));
            }
        }
        let pass = |suppressed, bridges| Pass { suppressed, bridges };
        assert_eq!(passed, [pass(None, None), pass(Some(9_999), Some(1_000))]);
        // Other kinds of line have limits of their own; a single bridge has no name.
        let now = begin;
        assert_eq!(log.pass(LogLine::Complaint, None, now), Some(pass(None, None)));
        assert_eq!(log.pass(LogLine::Complaint, None, now), None);
        let later = now + INTERVAL;
        assert_eq!(log.pass(LogLine::Complaint, None, later), Some(pass(Some(1), None)));
    }

    #[test]
    fn the_first_connections_are_all_in_the_log() {
        let (log, now) = (ConnectionLog::default(), Instant::now());
        let passes = (0..100).filter(|_| log.pass(LogLine::Connected, None, now).is_some());
        assert_eq!(passes.count(), 10);
    }
}
