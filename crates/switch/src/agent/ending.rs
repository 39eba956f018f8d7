//! An end that tasks wait for: it comes once, and has come for whoever waits later.

use std::cell::Cell;

use tokio::sync::Notify;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ending {
    has_come: Cell<bool>,
    notify: Notify,
}

impl Ending {
    /// The end is here.
    pub(super) fn begin(&self) {
        self.has_come.set(true);
        self.notify.notify_waiters();
    }

    /// Whether it has come.
    pub(super) fn has_come(&self) -> bool {
        self.has_come.get()
    }

    /// Done when it has come.
    pub(super) async fn come(&self) {
        let notified = self.notify.notified();
        if !self.has_come.get() {
            notified.await;
        }
    }
}
