//! The devices of a session, and the thread that sees one go down.
//!
//! Asking a device costs system calls, so it is done beside the threads that send and receive. A
//! port that goes down while it sends is stopped, with the time and the reason; one that is down
//! already is not started. Where the streams are to outlast a link that is down, only a device that
//! has gone stops them, and the senders learn whether it is down. It must never hold a lock while
//! it waits.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use netdev::{PortCounters, PortDevice, PortInfo};

use super::sender::SenderHandle;
use super::{SessionError, joined};
use crate::clock::RunClock;
use crate::statistics::PortStop;

/// Time between two looks at the devices.
const EVERY: Duration = Duration::from_millis(50);

/// The same where a link may go down and up again: what is refused in the meantime is counted by
/// it.
const OUTLASTING_EVERY: Duration = Duration::from_millis(2);

/// The devices, asked by one at a time.
#[derive(Clone)]
pub(super) struct Devices(Arc<Mutex<Vec<Box<dyn PortDevice>>>>);

impl Devices {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<dyn PortDevice>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The properties of a device.
    pub(super) fn info(&self, port: usize) -> Option<PortInfo> {
        self.lock().get_mut(port).map(|device| device.info())
    }

    /// Whether a port carries frames.
    pub(super) fn is_up(&self, port: usize) -> bool {
        self.info(port).is_some_and(|info| is_up(&info))
    }

    /// The counters of a device.
    pub(super) fn counters(&self, port: usize) -> PortCounters {
        self.lock().get_mut(port).map(|device| device.counters()).unwrap_or_default()
    }
}

/// The devices and the thread. Dropping it ends the thread.
pub(super) struct Watcher {
    pub(super) devices: Devices,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

impl Watcher {
    /// Starts to look at the devices, whose ports `handles` stop, each by all of its senders.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(
        devices: Vec<Box<dyn PortDevice>>,
        handles: Vec<Vec<SenderHandle>>,
        clock: RunClock,
    ) -> Result<Self, SessionError> {
        let devices = Devices(Arc::new(Mutex::new(devices)));
        let (end, ended) = channel();
        let watched = devices.clone();
        let thread = std::thread::Builder::new()
            .name("gen-watch".to_owned())
            .spawn(move || watch(&watched, &handles, clock, &ended))
            .map_err(|source| SessionError::Thread {
                what: "starting the thread that watches the ports".to_owned(),
                source,
            })?;
        Ok(Self { devices, end: Some(end), thread: Some(thread) })
    }

    /// Ends the thread and gives the devices back.
    pub(super) fn end(mut self) -> Vec<Box<dyn PortDevice>> {
        self.end = None;
        joined(self.thread.take());
        std::mem::take(&mut *self.devices.lock())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread; there is nobody to hand it to.
            let _ = thread.join();
        }
    }
}

/// Whether a device is there and up.
fn is_up(info: &PortInfo) -> bool {
    info.link_up && info.exists
}

fn watch(devices: &Devices, handles: &[Vec<SenderHandle>], clock: RunClock, ended: &Receiver<()>) {
    let outlasts = |handle: &SenderHandle| handle.flags.outlasts_down.load(Relaxed);
    let is_outlasting =
        |handles: &Vec<SenderHandle>| !handles.is_empty() && handles.iter().all(outlasts);
    // Asked before each wait, so that the first look after a start is not later than the others.
    let every = || if handles.iter().any(is_outlasting) { OUTLASTING_EVERY } else { EVERY };
    while ended.recv_timeout(every()) == Err(RecvTimeoutError::Timeout) {
        for (port, handles) in handles.iter().enumerate() {
            if !handles.iter().any(|handle| handle.flags.is_transmitting()) {
                continue;
            }
            let Some(info) = devices.info(port) else { continue };
            let is_down = !is_up(&info);
            handles.iter().for_each(|handle| handle.flags.is_down.store(is_down, Relaxed));
            if info.exists && is_outlasting(handles) {
                continue;
            }
            if is_down {
                let reason = if info.exists { "the port went down" } else { "the port is gone" };
                let stop = PortStop { at_ns: clock.now_ns(), reason: reason.to_owned() };
                handles.iter().for_each(|handle| handle.stop(stop.clone()));
            }
        }
    }
}
