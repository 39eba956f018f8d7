//! The connection gate of a listener: [`Admission`] for tasks that each serve one connection.
//!
//! Single-threaded like the tasks. An [`AcceptedConnection`] gives its place back when it is
//! dropped, however its task ends, so that no place is lost.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::admission::{
    Admission, AdmissionDecision, AdmissionId, AdmissionLimits, ListenerFull, Source,
};
use crate::driver::now;

/// Decides which connections a listener serves.
#[derive(Debug)]
pub struct ConnectionGate {
    admission: RefCell<Admission>,
    half_open: RefCell<HashMap<AdmissionId, Rc<Notify>>>,
    evicted_count: Cell<u64>,
    /// Notified when a place has become free.
    freed: Notify,
}

/// An admitted connection.
#[derive(Debug)]
pub struct AcceptedConnection {
    gate: Rc<ConnectionGate>,
    id: AdmissionId,
    is_up: Cell<bool>,
    evicted: Rc<Notify>,
}

impl ConnectionGate {
    /// No connections.
    #[must_use]
    pub fn new(limits: AdmissionLimits) -> Rc<Self> {
        Rc::new(Self {
            admission: RefCell::new(Admission::new(limits)),
            half_open: RefCell::default(),
            evicted_count: Cell::new(0),
            freed: Notify::new(),
        })
    }

    /// Admits a connection, at once or as soon as there is room; a half-open one may be evicted
    /// for it.
    ///
    /// # Errors
    /// When the limit of connections that are up is reached.
    pub async fn admit(
        self: &Rc<Self>,
        source: Source,
    ) -> Result<AcceptedConnection, ListenerFull> {
        loop {
            let admitted = self.admission.borrow_mut().admit(source, now())?;
            match admitted {
                AdmissionDecision::Now(id, evicted) => return Ok(self.accept(id, evicted)),
                AdmissionDecision::Later(at) => tokio::select! {
                    () = self.freed.notified() => {}
                    () = tokio::time::sleep_until(tokio::time::Instant::from_std(at)) => {}
                },
            }
        }
    }

    fn accept(
        self: &Rc<Self>,
        id: AdmissionId,
        evicted: Option<AdmissionId>,
    ) -> AcceptedConnection {
        let mut half_open = self.half_open.borrow_mut();
        if let Some(evicted) = evicted.and_then(|evicted| half_open.remove(&evicted)) {
            self.evicted_count.set(self.evicted_count.get() + 1);
            evicted.notify_one();
        }
        let evicted = Rc::new(Notify::new());
        half_open.insert(id, Rc::clone(&evicted));
        AcceptedConnection { gate: Rc::clone(self), id, is_up: Cell::new(false), evicted }
    }

    /// The number of connections evicted so far.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted_count.get()
    }
}

impl AcceptedConnection {
    /// Its TLS handshake has begun.
    pub fn handshake_begun(&self) {
        self.gate.admission.borrow_mut().handshake_begun(self.id, now());
    }

    /// Its hello exchange is done.
    pub fn mark_up(&self) {
        self.is_up.set(self.gate.admission.borrow_mut().mark_up(self.id));
        self.gate.half_open.borrow_mut().remove(&self.id);
        self.gate.freed.notify_one();
    }

    /// Done when it has been evicted: its owner must close it.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for AcceptedConnection {
    fn drop(&mut self) {
        let mut admission = self.gate.admission.borrow_mut();
        if self.is_up.get() {
            admission.remove_up();
        } else {
            admission.remove_half_open(self.id);
            self.gate.half_open.borrow_mut().remove(&self.id);
            self.gate.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionGate;
    use crate::admission::{AdmissionLimits, Source};

    #[test]
    fn places_come_back_however_a_connection_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let gate = ConnectionGate::new(AdmissionLimits { half_open: 2, up: 2 });
            for _ in 0..3 {
                let up = gate.admit(Source::Local).await.unwrap();
                up.mark_up();
                let _silent = gate.admit(Source::Local).await.unwrap();
                let _another = gate.admit(Source::Local).await.unwrap();
                let _waits_for_the_silent = gate.admit(Source::Local).await.unwrap();
            }
            assert_eq!((gate.admission.borrow().open(), gate.evicted()), ((0, 0), 3));
            assert!(gate.half_open.borrow().is_empty());
        });
    }
}
