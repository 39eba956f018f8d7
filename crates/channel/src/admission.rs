//! Whom a listener serves of those who come: a value without input and output.
//!
//! A connection is half open until its hello exchange is done (with TLS also before its handshake
//! is). Of those there may be a few hundred; one more does not turn the newcomer away but ends the
//! oldest of the address that holds the most, which is who floods. So a peer that says hello as
//! every real one does gets in, however many are silent. It must never end a connection that is up.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

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

/// The connections of a listener.
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    next: u64,
    /// In the order of their coming.
    half_open: BTreeMap<Ticket, Source>,
    /// How many of them each source holds.
    held: HashMap<Source, usize>,
    up: usize,
}

impl Admission {
    /// Nobody is there yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, next: 0, half_open: BTreeMap::new(), held: HashMap::new(), up: 0 }
    }

    /// A connection has come: its ticket, and the half-open connection that must be ended for it.
    ///
    /// # Errors
    /// When as many are up as may be.
    pub fn admit(&mut self, source: Source) -> Result<(Ticket, Option<Ticket>), Refused> {
        if self.up >= self.limits.up {
            return Err(Refused(self.up));
        }
        let ended = if self.half_open.len() >= self.limits.half_open { self.evict() } else { None };
        let ticket = Ticket(self.next);
        self.next += 1;
        self.half_open.insert(ticket, source);
        *self.held.entry(source).or_default() += 1;
        Ok((ticket, ended))
    }

    /// Forgets the oldest half-open connection of the source that holds the most.
    fn evict(&mut self) -> Option<Ticket> {
        let most = self.held.values().copied().max()?;
        let oldest = self.half_open.iter().find(|(_, source)| self.held.get(source) == Some(&most));
        let ticket = *oldest?.0;
        self.forget(ticket);
        Some(ticket)
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
        let Some(source) = self.half_open.remove(&ticket) else { return false };
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
    use super::{Admission, Limits, Refused, Source};

    fn source(number: u8) -> Source {
        Source::Address([10, 0, 0, number].into())
    }

    #[test]
    fn who_floods_pays_for_those_who_come() {
        let mut admission = Admission::new(Limits { half_open: 4, up: 9 });
        let (quiet, _) = admission.admit(source(1)).unwrap();
        let flood: Vec<_> = (0..3).map(|_| admission.admit(source(2)).unwrap().0).collect();
        let (guest, ended) = admission.admit(source(3)).unwrap();
        assert_eq!(ended, Some(flood[0]), "the oldest of whom holds the most");
        assert!(!admission.is_up(flood[0]));
        let (_, ended) = admission.admit(source(2)).unwrap();
        assert_eq!(ended, Some(flood[1]));
        assert!(admission.is_up(quiet) && admission.is_up(guest));
        assert_eq!(admission.open(), (2, 2));
        admission.half_open_gone(flood[0]);
        admission.half_open_gone(flood[2]);
        admission.up_gone();
        assert_eq!(admission.open(), (1, 1));
    }

    #[test]
    fn those_that_are_up_are_never_ended_but_bounded() {
        let mut admission = Admission::new(Limits { half_open: 2, up: 3 });
        for _ in 0..3 {
            let (ticket, ended) = admission.admit(Source::Local).unwrap();
            assert_eq!(ended, None);
            assert!(admission.is_up(ticket));
        }
        assert_eq!(admission.admit(Source::Local), Err(Refused(3)));
        admission.up_gone();
        assert!(admission.admit(Source::Local).is_ok());
    }
}
