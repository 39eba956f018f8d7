//! Whom a listener serves of those who come: a value without input and output.
//!
//! A connection is half open until its hello exchange is done (with TLS also before its handshake
//! is). Of those there may be a few hundred. One more does not turn the newcomer away, but ends the
//! oldest of the address that holds the most, which is who floods; so a peer that says hello as
//! every real one does gets in, however many are silent. Who has only just come is not ended:
//! when a thousand real peers come at once they are served one after the other, and those behind
//! wait in the system's queue. It must never end a connection that is up.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Who has said nothing for so long may be ended.
const SILENT: Duration = Duration::from_millis(500);

/// Who has begun a TLS handshake has so long to end it before it may be ended.
const BEGUN: Duration = Duration::from_secs(3);

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An address.
    Address(IpAddr),
    /// A Unix socket.
    Local,
}

/// How many connections a listener serves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections whose hello exchange is not done.
    pub half_open: usize,
    /// Connections that are up.
    pub up: usize,
}

/// An admitted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Nobody can be admitted: as many connections are up as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} connections are up, which is the most")]
pub struct Refused(pub usize);

/// What becomes of one who comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is let in; another that was half open must be ended for it, if one is named.
    Now(Ticket, Option<Ticket>),
    /// All places are taken by those who have only just come: ask again then, or when one has gone.
    Later(Instant),
}

/// The connections of a listener.
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    next: u64,
    /// In the order of their coming.
    half_open: BTreeMap<Ticket, HalfOpen>,
    /// How many of them each source holds.
    held: HashMap<Source, usize>,
    up: usize,
}

#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    source: Source,
    /// From when on it may be ended for another.
    ends_from: Instant,
}

impl Admission {
    /// Nobody is there yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, next: 0, half_open: BTreeMap::new(), held: HashMap::new(), up: 0 }
    }

    /// A connection has come.
    ///
    /// # Errors
    /// When as many are up as may be.
    pub fn admit(&mut self, source: Source, now: Instant) -> Result<Admitted, Refused> {
        if self.up >= self.limits.up {
            return Err(Refused(self.up));
        }
        let mut ended = None;
        if self.half_open.len() >= self.limits.half_open {
            ended = self.evict(now);
            let soonest = self.half_open.values().map(|peer| peer.ends_from).min();
            if let (None, Some(soonest)) = (ended, soonest) {
                return Ok(Admitted::Later(soonest));
            }
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.half_open.insert(ticket, HalfOpen { source, ends_from: now + SILENT });
        *self.held.entry(source).or_default() += 1;
        Ok(Admitted::Now(ticket, ended))
    }

    /// Forgets the oldest half-open connection that may be ended, of the source that holds most.
    fn evict(&mut self, now: Instant) -> Option<Ticket> {
        let held = |peer: &HalfOpen| self.held.get(&peer.source).copied().unwrap_or(0);
        let may_end = self.half_open.iter().filter(|(_, peer)| peer.ends_from <= now);
        // The first of those that are equal: the oldest.
        let ticket = may_end.rev().max_by_key(|(_, peer)| held(peer)).map(|(ticket, _)| *ticket)?;
        self.forget(ticket);
        Some(ticket)
    }

    /// A half-open connection has begun a TLS handshake at `now`.
    pub fn has_begun(&mut self, ticket: Ticket, now: Instant) {
        if let Some(peer) = self.half_open.get_mut(&ticket) {
            peer.ends_from = now + BEGUN;
        }
    }

    /// The hello exchange of a connection is done; false when it has been ended meanwhile.
    pub fn is_up(&mut self, ticket: Ticket) -> bool {
        let admitted = self.forget(ticket);
        self.up += usize::from(admitted);
        admitted
    }

    /// A connection that was half open has ended. One that [`Admission::admit`] has ended is known
    /// to be gone already.
    pub fn half_open_gone(&mut self, ticket: Ticket) {
        self.forget(ticket);
    }

    /// A connection that was up has ended.
    pub fn up_gone(&mut self) {
        self.up = self.up.saturating_sub(1);
    }

    /// How many are half open, and how many up.
    #[must_use]
    pub fn open(&self) -> (usize, usize) {
        (self.half_open.len(), self.up)
    }

    fn forget(&mut self, ticket: Ticket) -> bool {
        let Some(HalfOpen { source, .. }) = self.half_open.remove(&ticket) else { return false };
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
    use super::{Admission, Admitted, BEGUN, Limits, Refused, SILENT, Source, Ticket};
    use std::time::{Duration, Instant};

    fn source(number: u8) -> Source {
        Source::Address([10, 0, 0, number].into())
    }

    fn now(admitted: Result<Admitted, Refused>) -> (Ticket, Option<Ticket>) {
        match admitted {
            Ok(Admitted::Now(ticket, ended)) => (ticket, ended),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_floods_pays_for_those_who_come() {
        let start = Instant::now();
        let mut admission = Admission::new(Limits { half_open: 4, up: 9 });
        let (quiet, _) = now(admission.admit(source(1), start));
        let flood: Vec<_> = (0..3).map(|_| now(admission.admit(source(2), start)).0).collect();
        let later = start + SILENT;
        let (guest, ended) = now(admission.admit(source(3), later));
        assert_eq!(ended, Some(flood[0]), "the oldest of whom holds the most");
        assert!(!admission.is_up(flood[0]));
        let (_, ended) = now(admission.admit(source(2), later));
        assert_eq!(ended, Some(flood[1]));
        assert!(admission.is_up(quiet) && admission.is_up(guest));
        assert_eq!(admission.open(), (2, 2));
        admission.half_open_gone(flood[0]);
        admission.half_open_gone(flood[2]);
        admission.up_gone();
        assert_eq!(admission.open(), (1, 1));
    }

    #[test]
    fn who_has_just_come_or_begun_is_waited_for() {
        let start = Instant::now();
        let mut admission = Admission::new(Limits { half_open: 2, up: 9 });
        let (first, _) = now(admission.admit(source(1), start));
        let (second, _) = now(admission.admit(source(1), start));
        let asked = admission.admit(source(1), start + Duration::from_millis(1));
        assert_eq!(asked, Ok(Admitted::Later(start + SILENT)));
        admission.has_begun(first, start);
        admission.has_begun(second, start);
        let asked = admission.admit(source(1), start + SILENT);
        assert_eq!(asked, Ok(Admitted::Later(start + BEGUN)));
        assert!(admission.is_up(first));
        let (_, ended) = now(admission.admit(source(1), start + SILENT));
        assert_eq!(ended, None, "there is room");
        let (_, ended) = now(admission.admit(source(1), start + BEGUN));
        assert_eq!(ended, Some(second));
    }

    #[test]
    fn those_that_are_up_are_never_ended_but_bounded() {
        let start = Instant::now();
        let mut admission = Admission::new(Limits { half_open: 2, up: 3 });
        for _ in 0..3 {
            let (ticket, ended) = now(admission.admit(Source::Local, start));
            assert_eq!(ended, None);
            assert!(admission.is_up(ticket));
        }
        assert_eq!(admission.admit(Source::Local, start), Err(Refused(3)));
        admission.up_gone();
        assert!(admission.admit(Source::Local, start).is_ok());
    }
}
