//! Admission control of a listener; sans-I/O.
//!
//! A connection is half open until its hello exchange is done (with TLS, until its handshake is
//! done too). A few hundred may be half open. One more does not turn the newcomer away; it evicts
//! the oldest half-open connection of the address that holds the most, which is the address that
//! floods. So a peer that says hello as every real one does gets in, however many are silent. A
//! connection that has only just come is not evicted: when a thousand real peers come at once they
//! are served one after the other, and those behind wait in the system's queue.
//!
//! The number of connections that are up is limited too. A newcomer that has said hello evicts, in
//! this order:
//! 1. a connection whose peer does not finish a message that it has begun;
//! 2. of the address that holds more than its share, the connection with the least progress;
//! 3. a connection whose peer has said nothing of use for long.
//!
//! Without any of these the newcomer is turned away. While we hold a peer back, by not reading what
//! it sends, it neither stalls a message nor is idle.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// A half-open connection may be evicted after this time.
const SILENT_GRACE: Duration = Duration::from_millis(500);

/// A half-open connection may be evicted this long after it has begun a TLS handshake.
const HANDSHAKE_GRACE: Duration = Duration::from_secs(3);

/// A peer may take this long over one message before its connection may be evicted.
const MESSAGE_GRACE: Duration = Duration::from_secs(2);

/// A peer may be without use for this long before its connection may be evicted.
const IDLE_GRACE: Duration = Duration::from_secs(10);

/// Source of a connection: the unit of fairness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An IPv4 address, or the first 64 bits of an IPv6 address: one host may use the rest freely.
    Address(IpAddr),
    /// A Unix socket, or this side itself.
    Local,
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }
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

/// Why a connection whose hello exchange is done is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// It was evicted while it was half open.
    #[error("it took too long to say hello while others came")]
    Evicted,
    /// As many connections are up as may be, and none may be evicted for it.
    #[error("{0} connections are up, which is the limit")]
    Full(usize),
}

/// The decision about a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// It is admitted. The half-open connection named second, if any, must be closed for it.
    Now(AdmissionId, Option<AdmissionId>),
    /// Every half-open place is held by a connection that has only just come: ask again at this
    /// time, or when one of them has gone.
    Later(Instant),
}

/// Progress of the peer of a connection that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProgress {
    /// Whether it has used the connection: for a switch, a controller has done more than set the
    /// connection up.
    pub is_used: bool,
    /// When it began the message that is not whole yet, if any.
    pub unfinished_since: Option<Instant>,
    /// When its latest message was whole; its hello counts.
    pub last_message: Instant,
    /// Since when its bytes are read without a break; `None` while we hold it back (see
    /// [`crate::Connection::wants_input`]).
    pub read_since: Option<Instant>,
}

/// The connections of a listener.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    next: u64,
    /// In order of arrival, as are those that are up.
    half_open: BTreeMap<AdmissionId, HalfOpen>,
    half_open_by_source: Count,
    up: BTreeMap<AdmissionId, Up>,
    up_by_source: Count,
}

#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    source: Source,
    /// It may be evicted from this time on.
    evictable_from: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Up {
    source: Source,
    since: Instant,
    progress: PeerProgress,
}

impl Up {
    /// Since when the peer has left a message unfinished that we were reading.
    fn stalled_since(&self) -> Option<Instant> {
        Some(self.progress.unfinished_since?.max(self.progress.read_since?))
    }

    /// Since when the peer has sent no whole message, though we were reading.
    fn silent_since(&self, now: Instant) -> Instant {
        self.progress.read_since.map_or(now, |read| read.max(self.progress.last_message))
    }

    /// Since when the peer could have made use of the connection, and has not.
    fn idle_since(&self) -> Option<Instant> {
        let since = self.since.max(self.progress.read_since?);
        (!self.progress.is_used).then_some(since)
    }
}

/// The number of connections of each source.
#[derive(Debug, Default)]
struct Count(HashMap<Source, usize>);

impl Count {
    fn of(&self, source: Source) -> usize {
        self.0.get(&source).copied().unwrap_or(0)
    }

    fn add(&mut self, source: Source) {
        *self.0.entry(source).or_default() += 1;
    }

    fn remove(&mut self, source: Source) {
        if let Some(count) = self.0.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&source);
            }
        }
    }
}

impl Admission {
    /// No connections.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            next: 0,
            half_open: BTreeMap::new(),
            half_open_by_source: Count::default(),
            up: BTreeMap::new(),
            up_by_source: Count::default(),
        }
    }

    /// Decides about a new connection.
    pub fn admit(&mut self, source: Source, now: Instant) -> AdmissionDecision {
        let mut evicted = None;
        if self.half_open.len() >= self.limits.half_open {
            evicted = self.evict_half_open(now);
            let soonest = self.half_open.values().map(|peer| peer.evictable_from).min();
            if let (None, Some(soonest)) = (evicted, soonest) {
                return AdmissionDecision::Later(soonest);
            }
        }
        let id = AdmissionId(self.next);
        self.next += 1;
        self.half_open.insert(id, HalfOpen { source, evictable_from: now + SILENT_GRACE });
        self.half_open_by_source.add(source);
        AdmissionDecision::Now(id, evicted)
    }

    /// Removes the oldest evictable half-open connection of the source that holds the most.
    fn evict_half_open(&mut self, now: Instant) -> Option<AdmissionId> {
        let held = |peer: &HalfOpen| self.half_open_by_source.of(peer.source);
        let evictable = self.half_open.iter().filter(|(_, peer)| peer.evictable_from <= now);
        // Of equal ones `max_by_key` takes the last, which is the oldest here.
        let id = evictable.rev().max_by_key(|(_, peer)| held(peer)).map(|(id, _)| *id)?;
        self.remove(id);
        Some(id)
    }

    /// A half-open connection has begun a TLS handshake at `now`.
    pub fn handshake_begun(&mut self, id: AdmissionId, now: Instant) {
        if let Some(peer) = self.half_open.get_mut(&id) {
            peer.evictable_from = now + HANDSHAKE_GRACE;
        }
    }

    /// The hello exchange of a connection is done. The connection that is returned, if any, must be
    /// closed for it.
    ///
    /// # Errors
    /// When the connection must be closed itself.
    pub fn mark_up(
        &mut self,
        id: AdmissionId,
        now: Instant,
    ) -> Result<Option<AdmissionId>, NotServed> {
        let HalfOpen { source, .. } = self.half_open.remove(&id).ok_or(NotServed::Evicted)?;
        self.half_open_by_source.remove(source);
        let mut evicted = None;
        if self.is_full() {
            let id = self.evictable_for(source, now).ok_or(NotServed::Full(self.up.len()))?;
            self.remove(id);
            evicted = Some(id);
        }
        let progress = PeerProgress {
            is_used: false,
            unfinished_since: None,
            last_message: now,
            read_since: Some(now),
        };
        self.up.insert(id, Up { source, since: now, progress });
        self.up_by_source.add(source);
        Ok(evicted)
    }

    /// The connection that is evicted for a newcomer from `source`; the module says in which order.
    fn evictable_for(&self, source: Source, now: Instant) -> Option<AdmissionId> {
        let held = |up: &Up| self.up_by_source.of(up.source);
        let is_late = |since: Instant, grace| now.saturating_duration_since(since) >= grace;
        let stalled = self.up.iter().filter_map(|(id, up)| {
            let since = up.stalled_since()?;
            is_late(since, MESSAGE_GRACE).then_some((Reverse(held(up)), since, *id))
        });
        if let Some((_, _, id)) = stalled.min() {
            return Some(id);
        }
        let share = self.up_by_source.of(source) + 1;
        let greedy =
            self.up.iter().filter(|(_, up)| held(up) > share).map(|(id, up)| {
                (Reverse(held(up)), up.progress.is_used, up.silent_since(now), *id)
            });
        if let Some((_, _, _, id)) = greedy.min() {
            return Some(id);
        }
        let idle = self.up.iter().filter_map(|(id, up)| {
            let since = up.idle_since()?;
            is_late(since, IDLE_GRACE).then_some((Reverse(held(up)), since, *id))
        });
        idle.min().map(|(_, _, id)| id)
    }

    /// Reports the progress of a connection's peer. Does nothing for one that is not up.
    pub fn report(&mut self, id: AdmissionId, progress: PeerProgress) {
        if let Some(up) = self.up.get_mut(&id) {
            up.progress = progress;
        }
    }

    /// A connection has ended. Does nothing for one that was evicted.
    pub fn remove(&mut self, id: AdmissionId) {
        if let Some(peer) = self.half_open.remove(&id) {
            self.half_open_by_source.remove(peer.source);
        }
        if let Some(peer) = self.up.remove(&id) {
            self.up_by_source.remove(peer.source);
        }
    }

    /// Sets other limits; connections beyond them stay until others come.
    pub(crate) fn set_limits(&mut self, limits: AdmissionLimits) {
        self.limits = limits;
    }

    /// Whether a newcomer that is up takes the place of another, or none.
    pub(crate) fn is_full(&self) -> bool {
        self.up.len() >= self.limits.up
    }

    /// The numbers of half-open connections and of those that are up.
    #[must_use]
    pub fn open(&self) -> (usize, usize) {
        (self.half_open.len(), self.up.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Admission, AdmissionDecision, AdmissionId, AdmissionLimits, HANDSHAKE_GRACE, IDLE_GRACE,
        MESSAGE_GRACE, NotServed, PeerProgress, SILENT_GRACE, Source,
    };
    use std::time::{Duration, Instant};

    fn source(number: u8) -> Source {
        Source::Address([10, 0, 0, number].into())
    }

    #[test]
    fn addresses_of_one_ipv6_subnet_are_one_source() {
        let of = |text: &str| Source::from(text.parse::<std::net::IpAddr>().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.7"), source(7), "as a socket of both families gives it");
    }

    fn now(decision: AdmissionDecision) -> (AdmissionId, Option<AdmissionId>) {
        match decision {
            AdmissionDecision::Now(id, evicted) => (id, evicted),
            AdmissionDecision::Later(at) => panic!("later: {at:?}"),
        }
    }

    /// A connection that says hello at once.
    fn connect(
        admission: &mut Admission,
        from: u8,
        at: Instant,
    ) -> Result<(AdmissionId, Option<AdmissionId>), NotServed> {
        let (id, evicted) = now(admission.admit(source(from), at));
        assert_eq!(evicted, None);
        admission.mark_up(id, at).map(|evicted| (id, evicted))
    }

    /// The progress of a peer whose latest message was whole at `at`, and that is read since then.
    fn progress(is_used: bool, at: Instant) -> PeerProgress {
        let (last_message, read_since) = (at, Some(at));
        PeerProgress { is_used, unfinished_since: None, last_message, read_since }
    }

    fn full(limits: AdmissionLimits, from: u8, at: Instant) -> (Admission, Vec<AdmissionId>) {
        let mut admission = Admission::new(limits);
        let ids = (0..limits.up)
            .map(|_| connect(&mut admission, from, at).unwrap().0)
            .collect::<Vec<_>>();
        (admission, ids)
    }

    #[test]
    fn a_flooding_source_is_evicted_for_newcomers() {
        let start = Instant::now();
        let mut admission = Admission::new(AdmissionLimits { half_open: 4, up: 9 });
        let (quiet, _) = now(admission.admit(source(1), start));
        let flood: Vec<_> = (0..3).map(|_| now(admission.admit(source(2), start)).0).collect();
        let later = start + SILENT_GRACE;
        let (newcomer, evicted) = now(admission.admit(source(3), later));
        assert_eq!(evicted, Some(flood[0]), "the oldest of the source that holds the most");
        assert_eq!(admission.mark_up(flood[0], later), Err(NotServed::Evicted));
        let (_, evicted) = now(admission.admit(source(2), later));
        assert_eq!(evicted, Some(flood[1]));
        assert_eq!(admission.mark_up(quiet, later), Ok(None));
        assert_eq!(admission.mark_up(newcomer, later), Ok(None));
        assert_eq!(admission.open(), (2, 2));
        admission.remove(flood[0]);
        admission.remove(flood[2]);
        admission.remove(quiet);
        assert_eq!(admission.open(), (1, 1));
    }

    #[test]
    fn newcomers_wait_while_all_half_open_connections_are_fresh() {
        let start = Instant::now();
        let mut admission = Admission::new(AdmissionLimits { half_open: 2, up: 9 });
        let (first, _) = now(admission.admit(source(1), start));
        let (second, _) = now(admission.admit(source(1), start));
        let decision = admission.admit(source(1), start + Duration::from_millis(1));
        assert_eq!(decision, AdmissionDecision::Later(start + SILENT_GRACE));
        admission.handshake_begun(first, start);
        admission.handshake_begun(second, start);
        let decision = admission.admit(source(1), start + SILENT_GRACE);
        assert_eq!(decision, AdmissionDecision::Later(start + HANDSHAKE_GRACE));
        assert_eq!(admission.mark_up(first, start + SILENT_GRACE), Ok(None));
        let (_, evicted) = now(admission.admit(source(1), start + SILENT_GRACE));
        assert_eq!(evicted, None, "there is room");
        let (_, evicted) = now(admission.admit(source(1), start + HANDSHAKE_GRACE));
        assert_eq!(evicted, Some(second));
    }

    #[test]
    fn connections_that_are_up_are_bounded() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 3 }, 1, start);
        assert_eq!(connect(&mut admission, 1, start), Err(NotServed::Full(3)));
        assert_eq!(admission.open(), (0, 3));
        admission.remove(ids[1]);
        assert!(connect(&mut admission, 1, start).is_ok());
    }

    #[test]
    fn an_unfinished_message_is_evicted_for_its_own_address_too() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 4 }, 1, start);
        for (id, begun) in ids.iter().zip([9, 3, 2, 7]) {
            let unfinished_since = Some(start + Duration::from_millis(begun));
            admission.report(*id, PeerProgress { unfinished_since, ..progress(true, start) });
        }
        let late = start + Duration::from_millis(3) + MESSAGE_GRACE;
        assert_eq!(connect(&mut admission, 1, late).unwrap().1, Some(ids[2]), "the slowest");
        assert_eq!(connect(&mut admission, 1, late).unwrap().1, Some(ids[1]));
        assert_eq!(connect(&mut admission, 1, late), Err(NotServed::Full(4)), "time is left");
    }

    #[test]
    fn a_peer_that_we_hold_back_is_neither_stalled_nor_idle() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 1 }, 1, start);
        let unfinished_since = Some(start);
        let held = PeerProgress { unfinished_since, read_since: None, ..progress(false, start) };
        admission.report(ids[0], held);
        let late = start + 9 * IDLE_GRACE;
        assert_eq!(connect(&mut admission, 1, late), Err(NotServed::Full(1)), "held back");
        admission.report(ids[0], PeerProgress { read_since: Some(late), ..held });
        let soon = late + MESSAGE_GRACE / 2;
        assert_eq!(connect(&mut admission, 1, soon), Err(NotServed::Full(1)), "read again");
        let stalled = late + MESSAGE_GRACE;
        assert_eq!(connect(&mut admission, 1, stalled).unwrap().1, Some(ids[0]));
    }

    #[test]
    fn of_a_greedy_address_a_peer_that_we_hold_back_gives_way_last() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 3 }, 1, start);
        let late = start + IDLE_GRACE / 2;
        admission.report(ids[0], PeerProgress { read_since: None, ..progress(false, start) });
        admission.report(ids[1], progress(false, late - MESSAGE_GRACE));
        admission.report(ids[2], progress(false, late - MESSAGE_GRACE / 2));
        assert_eq!(connect(&mut admission, 2, late).unwrap().1, Some(ids[1]));
    }

    #[test]
    fn an_address_above_its_share_is_evicted_for_others() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 6 }, 1, start);
        for (id, number) in ids.iter().zip(0..) {
            let last_message = start + Duration::from_millis(9 - number);
            admission.report(*id, progress(number > 3, last_message));
        }
        let mut others = Vec::new();
        for expected in [3, 2, 1] {
            let (id, evicted) = connect(&mut admission, 2, start).unwrap();
            assert_eq!(evicted, Some(ids[expected]), "of those without use the longest silent");
            others.push(id);
        }
        assert_eq!(connect(&mut admission, 2, start), Err(NotServed::Full(6)), "three for each");
        let (_, evicted) = connect(&mut admission, 3, start).unwrap();
        let evicted = evicted.unwrap();
        assert!(ids.contains(&evicted) || others.contains(&evicted));
        assert_eq!(admission.open(), (0, 6));
    }

    #[test]
    fn an_idle_peer_is_evicted_and_an_active_one_is_not() {
        let start = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 2, up: 2 }, 1, start);
        admission.report(ids[0], progress(true, start));
        assert_eq!(connect(&mut admission, 1, start), Err(NotServed::Full(2)));
        let late = start + IDLE_GRACE;
        assert_eq!(connect(&mut admission, 1, late).unwrap().1, Some(ids[1]));
        assert_eq!(connect(&mut admission, 1, late), Err(NotServed::Full(2)));
    }

    /// A thousand slow peers of one address come again whenever they are evicted; peers of the same
    /// address and of others that use their connection are served, and stay.
    #[test]
    fn a_storm_of_slow_peers_locks_nobody_out() {
        let mut at = Instant::now();
        let (mut admission, ids) = full(AdmissionLimits { half_open: 64, up: 1_024 }, 1, at);
        let slow = |at| PeerProgress { unfinished_since: Some(at), ..progress(false, at) };
        ids.iter().for_each(|id| admission.report(*id, slow(at)));
        let mut served = Vec::new();
        for number in 0..200 {
            at += Duration::from_millis(50);
            let newcomer = connect(&mut admission, 1 + number % 5, at);
            match newcomer {
                Ok((id, evicted)) => {
                    assert!(evicted.is_some_and(|evicted| !served.contains(&evicted)));
                    admission.report(id, progress(true, at));
                    served.push(id);
                }
                // The address of the storm itself waits until the first messages are overdue.
                Err(refused) => {
                    assert_eq!((refused, number % 5), (NotServed::Full(1_024), 0));
                    assert!(number < 40, "two seconds");
                }
            }
            if let Ok((again, evicted)) = connect(&mut admission, 1, at) {
                assert!(evicted.is_none_or(|evicted| !served.contains(&evicted)));
                admission.report(again, slow(at));
            }
        }
        assert!(served.len() >= 190, "{}", served.len());
    }
}
