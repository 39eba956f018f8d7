//! Ctrl-C: a flag that SIGINT, SIGTERM and SIGHUP set, and that every loop of `weir gen` asks at
//! least every [`ASK_EVERY`], so that what was measured until then is printed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// No loop waits longer than this without asking.
pub(crate) const ASK_EVERY: Duration = Duration::from_millis(20);

/// The flag; copies are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// A flag that the signals set.
    ///
    /// # Errors
    /// When the signals cannot be caught.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.flag))?;
        }
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Whether a signal came; it is forgotten, so that the next one is seen too.
    pub(crate) fn take(&self) -> bool {
        self.flag.swap(false, Ordering::Relaxed)
    }

    /// As a signal does.
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}
