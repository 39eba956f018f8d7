//! The places of a server's connections: who gets one, and whose is taken for a newcomer.
//!
//! When all are taken, a newcomer gets the place of another connection, which ends. The address
//! that holds the most loses its oldest one of the first kind that there is:
//! 1. a connection without a request, after half a second;
//! 2. a reader of a stream of events;
//! 3. a connection whose request takes longer than the server's patience.
//!
//! If there is none, the newcomer waits. Streams have a bound of their own: a further one gets
//! the place of a stream of an address that holds more of them. An IPv6 address counts by its first
//! 64 bits, of which one host may use the rest freely.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// A connection keeps its place for this time, whatever it does: a crowd that comes at once is
/// served one after the other.
const GRACE: Duration = Duration::from_millis(500);

/// The present use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It has no request.
    Idle,
    /// Its answer is a stream of events.
    Streaming,
    /// Its request is being answered.
    Answering,
}

/// The places of a server.
#[derive(Debug)]
pub(crate) struct Places {
    held: Mutex<Held>,
    /// Notified when a place has become free.
    freed: Notify,
}

#[derive(Debug)]
struct Held {
    most: usize,
    patience: Duration,
    next: u64,
    /// In the order of arrival.
    by_id: BTreeMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    owner: IpAddr,
    is: Use,
    since: Instant,
    lost: Arc<Notify>,
}

/// The place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
    lost: Arc<Notify>,
}

/// The client of a request, among the request's extensions.
#[derive(Clone, Debug)]
pub struct ClientPlace(Arc<Place>);

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Answering(ClientPlace);

impl Places {
    pub(crate) fn new(most: usize, patience: Duration) -> Arc<Self> {
        let held = Mutex::new(Held { most, patience, next: 0, by_id: BTreeMap::new() });
        Arc::new(Self { held, freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // What it guards is whole after every statement, so a panic elsewhere spoils nothing.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a connection from `peer`, as soon as it gets one.
    pub(crate) async fn take(self: &Arc<Self>, peer: IpAddr) -> Place {
        loop {
            let taken = self.lock().take(owner(peer), Instant::now());
            if let Some((id, lost)) = taken {
                return Place { places: Arc::clone(self), id, lost };
            }
            tokio::select! {
                () = self.freed.notified() => {}
                () = tokio::time::sleep(GRACE / 5) => {}
            }
        }
    }
}

impl Held {
    /// A place, if there is one for the newcomer.
    fn take(&mut self, owner: IpAddr, now: Instant) -> Option<(u64, Arc<Notify>)> {
        if self.by_id.len() >= self.most {
            let loser = self.loser(now)?;
            self.end(loser);
        }
        let (id, lost) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        let holder = Holder { owner, is: Use::Idle, since: now, lost: Arc::clone(&lost) };
        self.by_id.insert(id, holder);
        Some((id, lost))
    }

    fn end(&mut self, id: u64) {
        if let Some(holder) = self.by_id.remove(&id) {
            holder.lost.notify_one();
        }
    }

    /// The connection whose place is taken for a newcomer; the module says which.
    fn loser(&self, now: Instant) -> Option<u64> {
        let counts = counts(self.by_id.values());
        let may_lose = self.by_id.iter().filter(|(_, holder)| {
            let keeps = if holder.is == Use::Answering { self.patience } else { GRACE };
            now.duration_since(holder.since) >= keeps
        });
        let order = |holder: &Holder| {
            (holder.is, Reverse(counts.get(&holder.owner).copied()), holder.since)
        };
        may_lose.min_by_key(|(_, holder)| order(holder)).map(|(id, _)| *id)
    }

    /// A connection is to be a stream, of which there are `most`; whether it may.
    fn stream(&mut self, id: u64, most: usize, now: Instant) -> bool {
        let Some(owner) = self.by_id.get(&id).map(|holder| holder.owner) else { return false };
        let streams = || self.by_id.iter().filter(|(_, holder)| holder.is == Use::Streaming);
        if streams().count() >= most {
            let counts = counts(streams().map(|(_, holder)| holder));
            let of = |owner: IpAddr| counts.get(&owner).copied().unwrap_or(0);
            let greedy = streams().filter(|(_, holder)| of(holder.owner) > of(owner) + 1);
            let order = |holder: &Holder| (Reverse(of(holder.owner)), holder.since);
            let loser = greedy.min_by_key(|(_, holder)| order(holder)).map(|(id, _)| *id);
            let Some(loser) = loser else { return false };
            self.end(loser);
        }
        self.mark(id, Use::Streaming, now);
        true
    }

    fn mark(&mut self, id: u64, is: Use, now: Instant) {
        if let Some(holder) = self.by_id.get_mut(&id) {
            (holder.is, holder.since) = (is, now);
        }
    }
}

/// The number of connections of each address.
fn counts<'a>(holders: impl Iterator<Item = &'a Holder>) -> HashMap<IpAddr, usize> {
    let mut counts = HashMap::new();
    for holder in holders {
        *counts.entry(holder.owner).or_default() += 1;
    }
    counts
}

impl Place {
    /// Done when another connection has got the place: its owner must close it.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().by_id.remove(&self.id);
        self.places.freed.notify_one();
    }
}

impl ClientPlace {
    pub(crate) fn new(place: &Arc<Place>) -> Self {
        Self(Arc::clone(place))
    }

    /// The answer is a stream without end. Whether it may be: there are at most `most` at a time,
    /// and one of a client that has more of them ends for another client's.
    #[must_use]
    pub fn may_stream(&self, most: usize) -> bool {
        self.0.places.lock().stream(self.0.id, most, Instant::now())
    }

    fn is_now(&self, is: Use) {
        self.0.places.lock().mark(self.0.id, is, Instant::now());
    }
}

impl Answering {
    pub(crate) fn new(client: ClientPlace) -> Self {
        client.is_now(Use::Answering);
        Self(client)
    }

    /// A part of the answer is sent. It is called for the sake of what it keeps alive.
    pub(crate) fn goes_on(&self) {}
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_now(Use::Idle);
    }
}

/// The unit of fairness.
fn owner(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::Use::{Answering, Idle, Streaming};
    use super::{GRACE, Held, Use, owner};
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(10);

    fn from(host: u8) -> IpAddr {
        [192, 0, 2, host].into()
    }

    /// Connections of these hosts, a millisecond after each other.
    fn held(uses: &[(u8, Use)], begin: Instant) -> Held {
        let most = uses.len();
        let mut held = Held { most, patience: PATIENCE, next: 0, by_id: BTreeMap::new() };
        for ((host, is), ms) in uses.iter().zip(0..) {
            let at = begin + Duration::from_millis(ms);
            let (id, _) = held.take(from(*host), at).unwrap();
            held.mark(id, *is, at);
        }
        held
    }

    #[test]
    fn a_newcomer_gets_the_place_of_the_least_useful() {
        let uses =
            [(1, Answering), (1, Streaming), (2, Idle), (3, Idle), (3, Streaming), (3, Idle)];
        // Idle ones of the address that holds the most, then of others, then streams.
        for (after, expected) in [
            (GRACE / 2, &[][..]),
            (2 * GRACE, &[3, 5, 2, 1, 4]),
            (2 * PATIENCE, &[3, 5, 2, 1, 4, 0]),
        ] {
            let begin = Instant::now();
            let mut held = held(&uses, begin);
            let (now, mut losers) = (begin + after, Vec::<u64>::new());
            loop {
                let before: Vec<u64> = held.by_id.keys().copied().collect();
                let Some((newcomer, _)) = held.take(from(99), now) else { break };
                held.mark(newcomer, Answering, now);
                losers.extend(before.iter().filter(|id| !held.by_id.contains_key(id)));
                assert_eq!(held.by_id.len(), uses.len());
            }
            assert_eq!(losers, expected, "{after:?}");
        }
    }

    #[test]
    fn streams_are_shared_by_the_addresses_that_want_them() {
        let begin = Instant::now();
        let uses =
            [(1, Streaming), (1, Streaming), (1, Streaming), (2, Idle), (1, Idle), (2, Idle)];
        let mut held = held(&uses, begin);
        assert!(!held.stream(4, 3, begin), "of the address that has them all");
        assert!(held.stream(3, 3, begin), "of another address");
        assert!(!held.by_id.contains_key(&0), "its oldest");
        assert!(!held.stream(5, 3, begin), "as many as the other would have");
        assert!(held.stream(4, 4, begin), "there is room");
        assert!(!held.stream(0, 9, begin), "it has lost its place");
    }

    #[test]
    fn addresses_of_one_ipv6_subnet_are_one_owner() {
        let of = |text: &str| owner(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_eq!(of("::ffff:192.0.2.7"), from(7), "as a socket of both families gives it");
    }
}
