//! The door of a listener: [`Admission`] for tasks that each serve one who came.
//!
//! Single-threaded like the tasks. A [`Guest`] is given back by being dropped, however its task
//! ends, so that no place is lost.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::admission::{Admission, Admitted, Limits, Refused, Source, Ticket};
use crate::driver::now;

/// Whom a listener serves.
#[derive(Debug)]
pub struct Door {
    admission: RefCell<Admission>,
    half_open: RefCell<HashMap<Ticket, Rc<Notify>>>,
    ended: Cell<u64>,
    /// A place has become free.
    freed: Notify,
}

/// One who came and was let in.
#[derive(Debug)]
pub struct Guest {
    door: Rc<Door>,
    ticket: Ticket,
    is_up: Cell<bool>,
    end: Rc<Notify>,
}

impl Door {
    /// Nobody is there yet.
    #[must_use]
    pub fn new(limits: Limits) -> Rc<Self> {
        Rc::new(Self {
            admission: RefCell::new(Admission::new(limits)),
            half_open: RefCell::default(),
            ended: Cell::new(0),
            freed: Notify::new(),
        })
    }

    /// Lets one in, at once or as soon as there is room; another who has not said hello may be
    /// ended for it.
    ///
    /// # Errors
    /// When as many are up as may be.
    pub async fn admit(self: &Rc<Self>, source: Source) -> Result<Guest, Refused> {
        loop {
            let admitted = self.admission.borrow_mut().admit(source, now())?;
            match admitted {
                Admitted::Now(ticket, ended) => return Ok(self.let_in(ticket, ended)),
                Admitted::Later(at) => tokio::select! {
                    () = self.freed.notified() => {}
                    () = tokio::time::sleep_until(tokio::time::Instant::from_std(at)) => {}
                },
            }
        }
    }

    fn let_in(self: &Rc<Self>, ticket: Ticket, ended: Option<Ticket>) -> Guest {
        let mut half_open = self.half_open.borrow_mut();
        if let Some(end) = ended.and_then(|ended| half_open.remove(&ended)) {
            self.ended.set(self.ended.get() + 1);
            end.notify_one();
        }
        let end = Rc::new(Notify::new());
        half_open.insert(ticket, Rc::clone(&end));
        Guest { door: Rc::clone(self), ticket, is_up: Cell::new(false), end }
    }

    /// How many were ended for others who came, so far.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.get()
    }
}

impl Guest {
    /// It has begun a TLS handshake.
    pub fn has_begun(&self) {
        self.door.admission.borrow_mut().has_begun(self.ticket, now());
    }

    /// Its hello exchange is done.
    pub fn up(&self) {
        self.is_up.set(self.door.admission.borrow_mut().is_up(self.ticket));
        self.door.half_open.borrow_mut().remove(&self.ticket);
        self.door.freed.notify_one();
    }

    /// Done when it must end, which never comes to who is up.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut admission = self.door.admission.borrow_mut();
        if self.is_up.get() {
            admission.up_gone();
        } else {
            admission.half_open_gone(self.ticket);
            self.door.half_open.borrow_mut().remove(&self.ticket);
            self.door.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Door;
    use crate::admission::{Limits, Source};

    #[test]
    fn places_come_back_however_a_guest_goes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let door = Door::new(Limits { half_open: 2, up: 2 });
            for _ in 0..3 {
                let up = door.admit(Source::Local).await.unwrap();
                up.up();
                let _silent = door.admit(Source::Local).await.unwrap();
                let _another = door.admit(Source::Local).await.unwrap();
                let _waits_for_the_silent = door.admit(Source::Local).await.unwrap();
            }
            assert_eq!((door.admission.borrow().open(), door.ended()), ((0, 0), 3));
            assert!(door.half_open.borrow().is_empty());
        });
    }
}
