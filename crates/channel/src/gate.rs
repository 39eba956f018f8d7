//! The connection gate of a listener: [`Admission`] for tasks that each serve one connection.
//!
//! Its tasks may run on several threads. An [`AcceptedConnection`] gives its place back when it is
//! dropped, however its task ends, so that no place is lost. What a peer has done is noted in its
//! own place and read only when the listener is full, so that a turn of a connection never waits
//! for another connection. All connections together take a bounded amount of memory: above it the
//! largest one of the address that takes the most ends.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::admission::{
    Admission, AdmissionDecision, AdmissionId, AdmissionLimits, NotServed, PeerProgress, Source,
};
use crate::connection::Connection;
use crate::driver::now;
use crate::transport::Incoming;

/// Decides which connections a listener serves.
#[derive(Debug)]
pub struct ConnectionGate {
    limits: AdmissionLimits,
    /// Memory of all connections, at most.
    bytes_max: usize,
    /// Their memory, as of their latest reports; less than nothing between two threads' changes.
    bytes: AtomicIsize,
    places: Mutex<Places>,
    evicted_count: AtomicU64,
    /// Notified when a half-open place has become free.
    freed: Notify,
}

#[derive(Debug)]
struct Places {
    admission: Admission,
    by_id: HashMap<AdmissionId, Arc<Place>>,
}

/// State that a connection shares with the gate.
#[derive(Debug)]
struct Place {
    source: Source,
    bytes: AtomicUsize,
    is_evicted: AtomicBool,
    evicted: Notify,
    /// As of the latest report.
    progress: Mutex<Option<PeerProgress>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole after every statement, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An admitted connection: one that was accepted, or whose memory is bounded together with others'.
#[derive(Debug)]
pub struct AcceptedConnection {
    gate: Arc<ConnectionGate>,
    id: AdmissionId,
    place: Arc<Place>,
    was_up: Cell<bool>,
    /// Messages received at the latest report, and when the latest of them was seen.
    last_message: Cell<Option<(u64, Instant)>>,
    /// Since when its bytes are read without a break, as of the latest report.
    read_since: Cell<Option<Instant>>,
}

impl ConnectionGate {
    /// No connections; all together may take `bytes_max` bytes of memory.
    #[must_use]
    pub fn new(limits: AdmissionLimits, bytes_max: usize) -> Arc<Self> {
        let places = Places { admission: Admission::new(limits), by_id: HashMap::new() };
        Arc::new(Self {
            limits,
            bytes_max,
            bytes: AtomicIsize::new(0),
            places: Mutex::new(places),
            evicted_count: AtomicU64::new(0),
            freed: Notify::new(),
        })
    }

    /// Admits a connection, at once or as soon as there is room; a half-open one may be evicted
    /// for it. While descriptors are scarce, no more are served at once than are served now.
    pub async fn admit(self: &Arc<Self>, incoming: &Incoming) -> AcceptedConnection {
        self.admit_from(incoming.source(), incoming.is_last_descriptor()).await
    }

    /// Admits a connection of a source; the same for one that this side has opened.
    pub async fn admit_from(
        self: &Arc<Self>,
        source: Source,
        is_scarce: bool,
    ) -> AcceptedConnection {
        self.set_limits(is_scarce);
        loop {
            let decision = lock(&self.places).admission.admit(source, now());
            match decision {
                AdmissionDecision::Now(id, evicted) => return self.accept(id, source, evicted),
                AdmissionDecision::Later(at) => tokio::select! {
                    () = self.freed.notified() => {}
                    () = tokio::time::sleep_until(tokio::time::Instant::from_std(at)) => {}
                },
            }
        }
    }

    /// Bounds the listener to its limits, or to what it serves now.
    fn set_limits(&self, is_scarce: bool) {
        let AdmissionLimits { half_open, up } = self.limits;
        let admission = &mut lock(&self.places).admission;
        let now = if is_scarce { admission.open() } else { (half_open, up) };
        let bound = |now: usize, most: usize| now.max(1).min(most);
        let (half_open, up) = (bound(now.0, half_open), bound(now.1, up));
        admission.set_limits(AdmissionLimits { half_open, up });
    }

    fn accept(
        self: &Arc<Self>,
        id: AdmissionId,
        source: Source,
        evicted: Option<AdmissionId>,
    ) -> AcceptedConnection {
        self.evict(evicted);
        let place = Arc::new(Place {
            source,
            bytes: AtomicUsize::new(0),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
            progress: Mutex::new(None),
        });
        lock(&self.places).by_id.insert(id, Arc::clone(&place));
        AcceptedConnection {
            gate: Arc::clone(self),
            id,
            place,
            was_up: Cell::new(false),
            last_message: Cell::new(None),
            read_since: Cell::new(None),
        }
    }

    fn evict(&self, evicted: Option<AdmissionId>) {
        let Some(evicted) = evicted else { return };
        let place = lock(&self.places).by_id.remove(&evicted);
        if let Some(place) = place {
            self.evicted_count.fetch_add(1, Ordering::Relaxed);
            place.is_evicted.store(true, Ordering::Release);
            place.evicted.notify_one();
            // It ends soon; until then nobody else is to end for it.
            self.note_bytes(&place, 0);
        }
    }

    /// The memory of all connections in bytes, as of their latest reports.
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Takes note of the memory of a connection.
    fn note_bytes(&self, place: &Place, bytes: usize) {
        let before = place.bytes.swap(bytes, Ordering::Relaxed);
        let change = bytes.cast_signed().wrapping_sub(before.cast_signed());
        self.bytes.fetch_add(change, Ordering::Relaxed);
    }

    /// Ends the largest connection of the address whose connections take the most memory.
    fn evict_largest(&self) {
        let largest = {
            let mut places = lock(&self.places);
            if self.bytes() <= self.bytes_max {
                return;
            }
            let of = |place: &Place| place.bytes.load(Ordering::Relaxed);
            let mut by_source: HashMap<Source, usize> = HashMap::new();
            for place in places.by_id.values() {
                *by_source.entry(place.source).or_default() += of(place);
            }
            let order = |place: &Place| (by_source.get(&place.source).copied(), of(place));
            let largest = places.by_id.iter().max_by_key(|(_, place)| order(place));
            let largest = largest.map(|(id, _)| *id);
            if let Some(id) = largest {
                places.admission.remove(id);
            }
            largest
        };
        self.evict(largest);
    }

    /// The number of connections evicted so far.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted_count.load(Ordering::Relaxed)
    }

    /// A connection's hello exchange is done; which connection is evicted for it.
    fn mark_up(&self, id: AdmissionId, at: Instant) -> Result<Option<AdmissionId>, NotServed> {
        let mut places = lock(&self.places);
        let Places { admission, by_id } = &mut *places;
        if admission.is_full() {
            for (id, place) in by_id {
                if let Some(progress) = *lock(&place.progress) {
                    admission.report(*id, progress);
                }
            }
        }
        admission.mark_up(id, at)
    }
}

impl AcceptedConnection {
    /// Its TLS handshake has begun.
    pub fn handshake_begun(&self) {
        lock(&self.gate.places).admission.handshake_begun(self.id, now());
    }

    /// Its hello exchange is done. Another connection may be evicted for it.
    ///
    /// # Errors
    /// When it must be closed itself.
    pub fn mark_up(&self) -> Result<(), NotServed> {
        let evicted = self.gate.mark_up(self.id, now());
        self.gate.freed.notify_one();
        self.gate.evict(evicted?);
        self.was_up.set(true);
        Ok(())
    }

    /// Whether its hello exchange was ever done, and it was served.
    #[must_use]
    pub fn was_up(&self) -> bool {
        self.was_up.get()
    }

    /// Takes note of what the peer has done; to be called whenever bytes have been received, and
    /// whenever reading stops or goes on. `is_used` is explained at [`PeerProgress`];
    /// `bytes_beside` is the memory that its owner keeps for it, beside the connection's buffers.
    pub fn report(&self, connection: &Connection, is_used: bool, bytes_beside: usize) {
        if self.is_evicted() {
            return;
        }
        let bytes = connection.buffer_bytes().saturating_add(bytes_beside);
        self.gate.note_bytes(&self.place, bytes);
        if self.gate.bytes() > self.gate.bytes_max {
            self.gate.evict_largest();
        }
        let count = connection.counters().messages_received;
        let last_message = match self.last_message.get() {
            Some((before, at)) if before == count => at,
            Some(_) | None => now(),
        };
        self.last_message.set(Some((count, last_message)));
        let unfinished_since = connection.unfinished_since();
        let was_read_since = || self.read_since.get().unwrap_or_else(now);
        let read_since = connection.wants_input().then(was_read_since);
        self.read_since.set(read_since);
        let progress = PeerProgress { is_used, unfinished_since, last_message, read_since };
        *lock(&self.place.progress) = Some(progress);
    }

    /// Done when it has been evicted: its owner must close it.
    pub async fn evicted(&self) {
        self.place.evicted.notified().await;
    }

    /// Whether it has been evicted, for an owner that is too busy to wait for it.
    #[must_use]
    pub fn is_evicted(&self) -> bool {
        self.place.is_evicted.load(Ordering::Acquire)
    }
}

impl Drop for AcceptedConnection {
    fn drop(&mut self) {
        let mut places = lock(&self.gate.places);
        places.admission.remove(self.id);
        places.by_id.remove(&self.id);
        self.gate.note_bytes(&self.place, 0);
        drop(places);
        self.gate.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ConnectionGate;
    use crate::admission::{AdmissionDecision, AdmissionLimits, NotServed, Source};
    use crate::connection::Connection;
    use crate::driver::now;
    use crate::settings::{ConnectionSettings, Side};

    /// A connection that is up, with a message that is not whole yet.
    fn half_a_message() -> Connection {
        let mut connection = Connection::new(ConnectionSettings::new(Side::Switch), now());
        connection.receive(&[4, 0, 0, 8, 0, 0, 0, 1, 4, 2, 0, 11], now());
        while connection.poll_event().is_some() {}
        assert!(connection.unfinished_since().is_some());
        connection
    }

    /// Whether a newcomer is served a minute from now.
    fn serves_a_newcomer(gate: &ConnectionGate) -> Result<bool, NotServed> {
        let later = now() + Duration::from_secs(60);
        let decision = super::lock(&gate.places).admission.admit(Source::Local, later);
        let AdmissionDecision::Now(id, None) = decision else {
            panic!("no half-open connection is to be evicted");
        };
        gate.mark_up(id, later).map(|evicted| evicted.is_some())
    }

    #[test]
    fn a_peer_that_is_not_read_keeps_its_place() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let gate = ConnectionGate::new(AdmissionLimits { half_open: 2, up: 1 }, usize::MAX);
            let mut connection = half_a_message();
            let accepted = gate.admit_from(Source::Local, false).await;
            accepted.mark_up().unwrap();
            connection.hold_input(true, now());
            accepted.report(&connection, false, 0);
            assert_eq!(serves_a_newcomer(&gate), Err(NotServed::Full(1)));
            connection.hold_input(false, now());
            accepted.report(&connection, false, 0);
            assert_eq!(serves_a_newcomer(&gate), Ok(true));
        });
    }

    #[test]
    fn memory_is_bounded_over_all_and_the_greediest_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let connection = Connection::new(ConnectionSettings::new(Side::Controller), now());
            let own = connection.buffer_bytes();
            let limits = AdmissionLimits { half_open: 9, up: 9 };
            let gate = ConnectionGate::new(limits, 1_000_000 + 4 * own);
            let mut peers = Vec::new();
            for host in [1, 1, 1, 2] {
                let peer = gate.admit_from(Source::Address([192, 0, 2, host].into()), false).await;
                peer.mark_up().unwrap();
                peers.push(peer);
            }
            let evicted = |peers: &[super::AcceptedConnection]| -> Vec<bool> {
                peers.iter().map(super::AcceptedConnection::is_evicted).collect()
            };
            for (peer, bytes) in peers.iter().zip([200_000, 300_000, 100_000, 400_000]) {
                peer.report(&connection, true, bytes);
            }
            assert_eq!((evicted(&peers), gate.bytes()), (vec![false; 4], 1_000_000 + 4 * own));
            peers[3].report(&connection, true, 450_000);
            let expected = [false, true, false, false];
            assert_eq!(evicted(&peers), expected, "the largest of those that take the most");
            assert_eq!(gate.bytes(), 750_000 + 3 * own);
            peers[1].report(&connection, true, 900_000);
            assert_eq!(gate.bytes(), 750_000 + 3 * own, "it is on its way out");
            peers.pop();
            assert_eq!(gate.bytes(), 300_000 + 2 * own);
            peers.clear();
            assert_eq!(gate.bytes(), 0);
        });
    }

    #[test]
    fn few_descriptors_bound_a_listener_to_those_that_it_has() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let gate = ConnectionGate::new(AdmissionLimits { half_open: 9, up: 9 }, usize::MAX);
            let up = [
                gate.admit_from(Source::Local, false).await,
                gate.admit_from(Source::Local, false).await,
            ];
            up.iter().for_each(|accepted| accepted.mark_up().unwrap());
            let late = gate.admit_from(Source::Local, true).await;
            assert_eq!(late.mark_up(), Err(NotServed::Full(2)), "none of them is idle yet");
            let silent = gate.admit_from(Source::Local, true).await;
            let _next = gate.admit_from(Source::Local, true).await;
            assert!(silent.is_evicted(), "one may be half open");
            assert_eq!(gate.admit_from(Source::Local, false).await.mark_up(), Ok(()));
        });
    }

    #[test]
    fn places_come_back_however_a_connection_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let gate = ConnectionGate::new(AdmissionLimits { half_open: 2, up: 2 }, usize::MAX);
            for _ in 0..3 {
                let up = gate.admit_from(Source::Local, false).await;
                up.mark_up().unwrap();
                let _silent = gate.admit_from(Source::Local, false).await;
                let _another = gate.admit_from(Source::Local, false).await;
                let _waits_for_the_silent = gate.admit_from(Source::Local, false).await;
            }
            let places = super::lock(&gate.places);
            assert_eq!((places.admission.open(), gate.evicted()), ((0, 0), 3));
            assert!(places.by_id.is_empty());
        });
    }
}
