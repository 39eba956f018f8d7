//! Admission control of a listener; sans-I/O.
//!
//! A connection is half open until its hello exchange is done (with TLS, until its handshake is done
//! too). A few hundred may be half open. One more does not turn the newcomer away; it evicts the
//! oldest half-open connection of the address that holds the most, which is the address that floods.
//! So a peer that says hello as every real one does gets in, however many are silent. A connection
//! that has only just come is not evicted: when a thousand real peers come at once they are served
//! one after the other, and those behind wait in the system's queue.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A half-open connection may be evicted after this time.
const SILENT_GRACE: Duration = Duration::from_millis(500);

/// A half-open connection may be evicted this long after it has begun a TLS handshake.
const HANDSHAKE_GRACE: Duration = Duration::from_secs(3);

/// Where a connection comes from: the unit of fairness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An address.
    Address(IpAddr),
    /// A Unix socket.
    Local,
}

/// The most connections that a listener serves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Connections whose hello exchange is not done.
    pub half_open: usize,
    /// Connections that are up.
    pub up: usize,
}

/// The id of an admitted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdmissionId(u64);

/// The listener serves as many connections as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} connections are up, which is the limit")]
pub struct ListenerFull(pub usize);

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// It is admitted. The half-open connection named second, if any, must be closed for it.
    Now(AdmissionId, Option<AdmissionId>),
    /// Every half-open place is held by a connection that has only just come: ask again at this
    /// time, or when one of them has gone.
    Later(Instant),
}

/// The connections of a listener.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    next: u64,
    /// In order of arrival.
    half_open: BTreeMap<AdmissionId, HalfOpen>,
    /// The number of half-open connections of each source.
    held: HashMap<Source, usize>,
    up: usize,
}

#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    source: Source,
    /// It may be evicted from this time on.
    evictable_from: Instant,
}

impl Admission {
    /// No connections.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self { limits, next: 0, half_open: BTreeMap::new(), held: HashMap::new(), up: 0 }
    }

    /// Decides about a new connection.
    ///
    /// # Errors
    /// When the limit of connections that are up is reached.
    pub fn admit(
        &mut self,
        source: Source,
        now: Instant,
    ) -> Result<AdmissionDecision, ListenerFull> {
        if self.up >= self.limits.up {
            return Err(ListenerFull(self.up));
        }
        let mut evicted = None;
        if self.half_open.len() >= self.limits.half_open {
            evicted = self.evict(now);
            let soonest = self.half_open.values().map(|peer| peer.evictable_from).min();
            if let (None, Some(soonest)) = (evicted, soonest) {
                return Ok(AdmissionDecision::Later(soonest));
            }
        }
        let id = AdmissionId(self.next);
        self.next += 1;
        self.half_open.insert(id, HalfOpen { source, evictable_from: now + SILENT_GRACE });
        *self.held.entry(source).or_default() += 1;
        Ok(AdmissionDecision::Now(id, evicted))
    }

    /// Removes the oldest evictable half-open connection of the source that holds the most.
    fn evict(&mut self, now: Instant) -> Option<AdmissionId> {
        let held = |peer: &HalfOpen| self.held.get(&peer.source).copied().unwrap_or(0);
        let evictable = self.half_open.iter().filter(|(_, peer)| peer.evictable_from <= now);
        // Of equal ones `max_by_key` takes the last, which is the oldest here.
        let id = evictable.rev().max_by_key(|(_, peer)| held(peer)).map(|(id, _)| *id)?;
        self.forget(id);
        Some(id)
    }

    /// A half-open connection has begun a TLS handshake at `now`.
    pub fn handshake_begun(&mut self, id: AdmissionId, now: Instant) {
        if let Some(peer) = self.half_open.get_mut(&id) {
            peer.evictable_from = now + HANDSHAKE_GRACE;
        }
    }

    /// The hello exchange of a connection is done; false when it has been evicted meanwhile.
    pub fn mark_up(&mut self, id: AdmissionId) -> bool {
        let admitted = self.forget(id);
        self.up += usize::from(admitted);
        admitted
    }

    /// A half-open connection has ended. Does nothing for one that was evicted.
    pub fn remove_half_open(&mut self, id: AdmissionId) {
        self.forget(id);
    }

    /// A connection that was up has ended.
    pub fn remove_up(&mut self) {
        self.up = self.up.saturating_sub(1);
    }

    /// The numbers of half-open connections and of those that are up.
    #[must_use]
    pub fn open(&self) -> (usize, usize) {
        (self.half_open.len(), self.up)
    }

    fn forget(&mut self, id: AdmissionId) -> bool {
        let Some(HalfOpen { source, .. }) = self.half_open.remove(&id) else { return false };
        if let Some(held) = self.held.get_mut(&source) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&source);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Admission, AdmissionDecision, AdmissionId, AdmissionLimits, HANDSHAKE_GRACE, ListenerFull,
        SILENT_GRACE, Source,
    };
    use std::time::{Duration, Instant};

    fn source(number: u8) -> Source {
        Source::Address([10, 0, 0, number].into())
    }

    fn now(
        admitted: Result<AdmissionDecision, ListenerFull>,
    ) -> (AdmissionId, Option<AdmissionId>) {
        match admitted {
            Ok(AdmissionDecision::Now(id, ended)) => (id, ended),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flooding_source_is_evicted_for_newcomers() {
        let start = Instant::now();
        let mut admission = Admission::new(AdmissionLimits { half_open: 4, up: 9 });
        let (quiet, _) = now(admission.admit(source(1), start));
        let flood: Vec<_> = (0..3).map(|_| now(admission.admit(source(2), start)).0).collect();
        let later = start + SILENT_GRACE;
        let (newcomer, ended) = now(admission.admit(source(3), later));
        assert_eq!(ended, Some(flood[0]), "the oldest of whom holds the most");
        assert!(!admission.mark_up(flood[0]));
        let (_, ended) = now(admission.admit(source(2), later));
        assert_eq!(ended, Some(flood[1]));
        assert!(admission.mark_up(quiet) && admission.mark_up(newcomer));
        assert_eq!(admission.open(), (2, 2));
        admission.remove_half_open(flood[0]);
        admission.remove_half_open(flood[2]);
        admission.remove_up();
        assert_eq!(admission.open(), (1, 1));
    }

    #[test]
    fn newcomers_wait_while_all_half_open_connections_are_fresh() {
        let start = Instant::now();
        let mut admission = Admission::new(AdmissionLimits { half_open: 2, up: 9 });
        let (first, _) = now(admission.admit(source(1), start));
        let (second, _) = now(admission.admit(source(1), start));
        let asked = admission.admit(source(1), start + Duration::from_millis(1));
        assert_eq!(asked, Ok(AdmissionDecision::Later(start + SILENT_GRACE)));
        admission.handshake_begun(first, start);
        admission.handshake_begun(second, start);
        let asked = admission.admit(source(1), start + SILENT_GRACE);
        assert_eq!(asked, Ok(AdmissionDecision::Later(start + HANDSHAKE_GRACE)));
        assert!(admission.mark_up(first));
        let (_, ended) = now(admission.admit(source(1), start + SILENT_GRACE));
        assert_eq!(ended, None, "there is room");
        let (_, ended) = now(admission.admit(source(1), start + HANDSHAKE_GRACE));
        assert_eq!(ended, Some(second));
    }

    #[test]
    fn connections_that_are_up_are_bounded() {
        let start = Instant::now();
        let mut admission = Admission::new(AdmissionLimits { half_open: 2, up: 3 });
        for _ in 0..3 {
            let (id, ended) = now(admission.admit(Source::Local, start));
            assert_eq!(ended, None);
            assert!(admission.mark_up(id));
        }
        assert_eq!(admission.admit(Source::Local, start), Err(ListenerFull(3)));
        admission.remove_up();
        assert!(admission.admit(Source::Local, start).is_ok());
    }
}
