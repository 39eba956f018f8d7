//! Cancellation: one token that every wait of the lab asks.
//!
//! A signal sets the token; the code that runs then unwinds by returning [`Stopped`], and every
//! namespace, link and child goes with the value that owns it. A second signal that is clearly
//! another one ends the process at once; the kernel then takes the children (parent-death signal)
//! and namespaces (descriptors).
//! Nothing in the lab may wait longer than a few tens of milliseconds without asking.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code after a signal, as shells report SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;

/// The longest time between two looks at what is waited for, and at the token; the first look comes
/// after a sixteenth of it. A start of a switch is a dozen short waits: looked at every 20 ms from
/// the beginning, each took 10 ms too long on average.
const STEP: Duration = Duration::from_millis(16);

/// A signal that comes so soon after the first is the same wish: `timeout`, for one, signals the
/// process and then its group.
const SAME_WISH: Duration = Duration::from_millis(500);

/// The run was interrupted by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Stopped;

/// A flag that all parts of a run share. Copies are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
}

impl Cancel {
    /// A token that SIGINT, SIGTERM and SIGHUP set.
    pub fn on_signals() -> io::Result<Self> {
        let cancel = Self::default();
        let flag = Arc::clone(&cancel.flag);
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut first: Option<Instant> = None;
            for _ in signals.forever() {
                match first {
                    None => {
                        first = Some(Instant::now());
                        flag.store(true, Ordering::SeqCst);
                        files::eprint_line(format_args!(
                            "\ninterrupted: taking everything down (again to end at once)"
                        ));
                    }
                    Some(at) if at.elapsed() < SAME_WISH => {}
                    Some(_) => std::process::exit(i32::from(EXIT_INTERRUPTED)),
                }
            }
        })?;
        Ok(cancel)
    }

    /// Sets the token.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// The flag itself, for loops that take one.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Goes on unless the token is set.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.flag.load(Ordering::SeqCst) { Err(Stopped) } else { Ok(()) }
    }

    /// Sleeps for `duration` unless the token is set in the meantime.
    pub fn sleep(&self, duration: Duration) -> Result<(), Stopped> {
        self.poll(duration, || false).map(|_| ())
    }

    /// Asks `done` every few milliseconds until it says yes, unless the token is set; `false` when
    /// `limit` passed first.
    pub fn poll(&self, limit: Duration, mut done: impl FnMut() -> bool) -> Result<bool, Stopped> {
        let (start, mut step) = (Instant::now(), STEP / 16);
        loop {
            self.check()?;
            if done() {
                return Ok(true);
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(step));
            step = (2 * step).min(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cancel, Stopped};
    use std::time::Duration;

    #[test]
    fn a_set_token_ends_every_wait() {
        let cancel = Cancel::default();
        assert_eq!(cancel.sleep(Duration::from_millis(1)), Ok(()));
        assert_eq!(cancel.poll(Duration::ZERO, || true), Ok(true));
        assert_eq!(cancel.poll(Duration::ZERO, || false), Ok(false));
        cancel.clone().stop();
        assert_eq!(cancel.sleep(Duration::from_secs(3600)), Err(Stopped));
        assert_eq!(cancel.poll(Duration::from_secs(3600), || true), Err(Stopped));
    }
}
