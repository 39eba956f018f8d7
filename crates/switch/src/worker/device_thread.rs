//! Opening, closing and looking at devices off the worker, on a thread of its own.
//!
//! Opening a kernel port maps its ring (9 ms), and closing one waits for the kernel (25 and 16 ms);
//! on the worker's thread all its other ports would stand still meanwhile. A look at the far end of
//! a veth waits for whoever else changes devices, such as a namespace that goes. The worker posts
//! jobs to a bounded queue and never waits; an open device comes back with a ring of the doorbell.
//! Jobs are done in order, so a device is closed before one of the same name is opened. A driver's
//! panic must never end the thread: later jobs would wait for ever.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle};

use netdev::{FarEndSockets, LinkNotification, Port, PortError, PortInfo, PortSpec, TierPort};

use super::maintain::PortIndex;
use super::tier::{TierEntry, TierRefusal};
use super::{Doorbell, PortSerial};

/// The doorbell's entry for opened devices; no shard has this index.
pub(super) const DEVICES: usize = usize::MAX;

/// Threads that close devices when the worker ends.
const CLOSING_THREADS: usize = 32;

/// Jobs that find room beside those of the ports at the start.
const SPARE_JOBS: usize = 256;

/// The function that opens a device; tests have their own.
pub(super) type Open = fn(&PortSpec) -> Result<Port, PortError>;

/// An open device, with its state when it was opened.
pub(super) struct OpenDevice {
    pub(super) device: Port,
    pub(super) info: PortInfo,
    pub(super) notification: LinkNotification,
    /// Whether the kernel tier's program could be put at it, where it was to be.
    pub(super) tier: Option<Result<(), TierRefusal>>,
}

impl OpenDevice {
    /// Reads the state of a device, which hands super-frames over whole from now on.
    pub(super) fn new(mut device: Port) -> Self {
        device.rx.keep_offloads();
        for queue in &mut device.more {
            queue.rx.keep_offloads();
        }
        let (info, notification) = (device.info(), device.link_notification());
        Self { device, info, notification, tier: None }
    }
}

/// The end of an opening.
pub(super) struct Opened {
    pub(super) port: PortIndex,
    pub(super) serial: PortSerial,
    pub(super) result: Result<OpenDevice, PortError>,
}

enum Job {
    Open(PortIndex, PortSerial, PortSpec, Option<TierEntry>),
    Close(Port),
    Look(Vec<(PortIndex, TierPort)>),
}

/// Results of the thread.
#[derive(Default)]
struct Done {
    opened: Mutex<Vec<Opened>>,
    /// The ports with another far end than before.
    changed: Mutex<Vec<PortIndex>>,
    /// A look waits, or is under way.
    is_looking: AtomicBool,
}

/// The thread.
pub(super) struct DeviceThread {
    /// `None` only while it ends.
    jobs: Option<SyncSender<Job>>,
    done: Arc<Done>,
    thread: Option<JoinHandle<()>>,
}

impl DeviceThread {
    /// A thread for a worker with `ports` ports.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn new(doorbell: Arc<Doorbell>, ports: usize, open: Open) -> io::Result<Self> {
        // A port has a device to close and one to open; more ports may come.
        let (jobs, queue) = sync_channel(2 * ports + SPARE_JOBS);
        let done = Arc::<Done>::default();
        let theirs = Arc::clone(&done);
        let thread = Builder::new().name("devices".to_owned());
        let thread = thread.spawn(move || run(&queue, &theirs, &doorbell, open))?;
        Ok(Self { jobs: Some(jobs), done, thread: Some(thread) })
    }

    /// Begins to open a device, and to put a kernel tier's program there; false when the queue is
    /// full.
    pub(super) fn open(
        &self,
        port: PortIndex,
        serial: PortSerial,
        spec: PortSpec,
        tier: Option<TierEntry>,
    ) -> bool {
        self.post(Job::Open(port, serial, spec, tier))
    }

    fn post(&self, job: Job) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok())
    }

    /// Begins to look at the far ends of these ports; false when the queue is full, or the look
    /// before has not ended.
    pub(super) fn look(&self, ports: Vec<(PortIndex, TierPort)>) -> bool {
        if self.done.is_looking.swap(true, Ordering::AcqRel) {
            return false;
        }
        let is_posted = self.post(Job::Look(ports));
        if !is_posted {
            self.done.is_looking.store(false, Ordering::Release);
        }
        is_posted
    }

    /// Closes a device; when the queue is full, at once.
    pub(super) fn close(&self, device: Port) {
        let Some(jobs) = &self.jobs else { return };
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
            jobs.try_send(Job::Close(device))
            && let Job::Close(device) = job
        {
            close_device(device);
        }
    }

    /// The openings that have ended since the last call.
    pub(super) fn take_opened(&self) -> Vec<Opened> {
        std::mem::take(&mut *self.done.opened.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The ports whose far ends were found to be others since the last call.
    pub(super) fn take_changed(&self) -> Vec<PortIndex> {
        std::mem::take(&mut *self.done.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for DeviceThread {
    /// Waits until all devices are closed.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that opens and closes devices has failed");
        }
    }
}

fn run(queue: &Receiver<Job>, done: &Done, doorbell: &Doorbell, open: Open) {
    let mut sockets = FarEndSockets::default();
    for job in queue {
        match job {
            Job::Open(port, serial, spec, tier) => {
                let result = open_device(&spec, open, tier);
                let mut opened = done.opened.lock().unwrap_or_else(PoisonError::into_inner);
                opened.push(Opened { port, serial, result });
                drop(opened);
                doorbell.ring(DEVICES);
            }
            Job::Close(device) => close_device(device),
            Job::Look(mut ports) => {
                ports.retain(|(_, port)| port.look_at_far_end(&mut sockets));
                done.is_looking.store(false, Ordering::Release);
                if !ports.is_empty() {
                    let mut changed = done.changed.lock().unwrap_or_else(PoisonError::into_inner);
                    changed.extend(ports.into_iter().map(|(index, _)| index));
                    drop(changed);
                    doorbell.ring(DEVICES);
                }
            }
        }
    }
}

/// Opens a device and reads its state; a driver's panic is an error like others.
fn open_device(
    spec: &PortSpec,
    open: Open,
    tier: Option<TierEntry>,
) -> Result<OpenDevice, PortError> {
    let open = || {
        let mut opened = OpenDevice::new(open(spec)?);
        if let Some(tier) = tier {
            opened.tier = tier.enter(&mut opened.device);
        }
        Ok(opened)
    };
    // What the driver had begun to make is dropped; nothing else is shared with it.
    let opened = catch_unwind(AssertUnwindSafe(open));
    opened.unwrap_or_else(|panic| {
        let (name, reason) = (spec.to_string(), panic_message(panic.as_ref()).to_owned());
        tracing::error!(port = name, reason, "opening a device has panicked");
        Err(PortError::Panicked { name, reason })
    })
}

fn close_device(device: Port) {
    // The device is gone afterwards, whatever its driver did.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(device))) {
        let reason = panic_message(panic.as_ref());
        tracing::error!(reason, "closing a device has panicked");
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Closes all devices, side by side: in turn, a hundred kernel ports would take four seconds.
pub(crate) fn close_all(devices: Vec<Port>) {
    let share = devices.len().div_ceil(CLOSING_THREADS).max(1);
    let mut devices = devices.into_iter();
    thread::scope(|scope| {
        loop {
            let share: Vec<Port> = devices.by_ref().take(share).collect();
            if share.is_empty() {
                break;
            }
            // Where the system has no thread left, they are closed here.
            let close = move || share.into_iter().for_each(close_device);
            let _ = Builder::new().spawn_scoped(scope, close);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use netdev::{LinkNotification, Port, PortCounters, PortDevice, PortError, PortInfo, PortSpec};

    use super::{DeviceThread, Doorbell, Opened, PortSerial, close_all, thread};

    const DEVICES: usize = 8;
    const DEADLINE: Duration = Duration::from_secs(30);

    /// A device whose closing ends when all are being closed.
    struct Together(Box<dyn PortDevice>, Arc<AtomicUsize>);

    impl PortDevice for Together {
        fn info(&mut self) -> PortInfo {
            self.0.info()
        }

        fn link_notification(&self) -> LinkNotification {
            self.0.link_notification()
        }

        fn counters(&mut self) -> PortCounters {
            self.0.counters()
        }
    }

    impl Drop for Together {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            let begun = Instant::now();
            while self.1.load(Ordering::SeqCst) < DEVICES {
                assert!(begun.elapsed() < DEADLINE, "the others are not being closed");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn devices_are_closed_side_by_side() {
        let closing = Arc::new(AtomicUsize::new(0));
        let device = |_| {
            let port = netdev::open_text("null:x").unwrap();
            Port { device: Box::new(Together(port.device, Arc::clone(&closing))), ..port }
        };
        close_all((0..DEVICES).map(device).collect());
        assert_eq!(closing.load(Ordering::SeqCst), DEVICES);
        close_all(Vec::new());
    }

    /// A device whose driver panics when it is closed.
    struct Brittle(Box<dyn PortDevice>);

    impl PortDevice for Brittle {
        fn info(&mut self) -> PortInfo {
            self.0.info()
        }

        fn counters(&mut self) -> PortCounters {
            self.0.counters()
        }
    }

    impl Drop for Brittle {
        fn drop(&mut self) {
            panic!("cannot be closed");
        }
    }

    fn open_or_panic(spec: &PortSpec) -> Result<Port, PortError> {
        assert!(spec.name() != "broken", "no room in the ring");
        let port = netdev::open(spec)?;
        Ok(Port { device: Box::new(Brittle(port.device)), ..port })
    }

    fn opened_next(devices: &DeviceThread) -> Opened {
        let begun = Instant::now();
        loop {
            if let Some(opened) = devices.take_opened().pop() {
                return opened;
            }
            assert!(begun.elapsed() < DEADLINE, "the thread has ended");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn after_a_driver_s_panic_the_next_device_is_opened() {
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let devices = DeviceThread::new(doorbell, 2, open_or_panic).unwrap();
        for _ in 0..2 {
            assert!(devices.open((0, 1), PortSerial(0), "null:broken".parse().unwrap(), None));
            let Opened { port, result, .. } = opened_next(&devices);
            let error = result.err().unwrap().to_string();
            assert_eq!(port, (0, 1));
            assert_eq!(error, "port null:broken: its driver has panicked: no room in the ring");
            assert!(devices.open((0, 0), PortSerial(0), "null:x".parse().unwrap(), None));
            let opened = opened_next(&devices);
            devices.close(opened.result.unwrap().device);
        }
        let device = || open_or_panic(&"null:x".parse().unwrap()).unwrap();
        close_all(vec![device(), device()]);
    }
}
