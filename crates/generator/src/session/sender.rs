//! The thread that sends on one port: it waits for due times and for commands.
//!
//! Far from the next due time it sleeps, near to it the core is left to others, and just before it
//! the clock is polled: Linux wakes a sleeper 50 us late and more. It must never sleep past a due
//! time on purpose, and never let a command wait for a frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use netdev::{PortError, TxQueue};
use packet::PacketBuf;

use super::{SessionError, Waiting, joined, spawn_on};
use crate::clock::RunClock;
use crate::probe::StreamId;
use crate::statistics::{GapStatistics, PortStop};
use crate::transmit::{
    PortStream, SendCounts, StreamCounts, TransmitLimits, TransmitStep, Transmitter,
};

/// A due time this far away is worth a sleep, which ends this long before it.
const SLEEP_MARGIN_NS: u64 = 200_000;

/// The same of a thread in real time, whose timers have no slack.
const REAL_TIME_MARGIN_NS: u64 = 60_000;

/// Nearer than this the clock is polled without a break.
const SPIN_NS: u64 = 5_000;

/// Answers that wait for a sender, at most: a flood of requests must not fill memory.
const ANSWERS_MAX: usize = 64;

/// The shortest sleep of a sleeping thread: below it the timer's slack dominates.
const NAP_NS: u64 = 50_000;

/// The longest sleep of a thread without work, or of a paused one.
const IDLE: Duration = Duration::from_secs(3600);

/// A command for a sender.
#[derive(Debug)]
pub(super) enum SendCommand {
    Load(Vec<PortStream>),
    /// By [`PortSender::start_streams`].
    Start {
        at_ns: u64,
        end_ns: u64,
        factor: f64,
    },
    /// With the reason, where it is not the user's wish.
    Stop(Option<PortStop>),
    Pause,
    Resume,
    Update(f64),
    /// At most this number of frames at once.
    Burst(usize),
    /// A frame beside the streams, at once.
    Answer(Vec<u8>),
    /// Count from zero; answered as [`SendCommand::Numbers`].
    Clear(Sender<Vec<(StreamId, u64)>>),
    /// Each stream and the number of its next frame.
    Numbers(Sender<Vec<(StreamId, u64)>>),
    Report(Sender<SendReportSoFar>),
}

/// The counts of a sender.
#[derive(Clone, Debug, Default)]
pub(super) struct SendReportSoFar {
    pub(super) counts: SendCounts,
    pub(super) streams: Vec<(StreamCounts, bool)>,
    pub(super) gaps: GapStatistics,
    pub(super) unanswered: u64,
    pub(super) stopped: Option<PortStop>,
    pub(super) is_paused: bool,
}

/// State that the session shares with the thread.
#[derive(Debug, Default)]
pub(super) struct SenderFlags {
    /// A command waits.
    has_command: AtomicBool,
    /// Starts that were sent to the thread and that it has not taken.
    starts: AtomicUsize,
    /// Answers that wait in the thread's inbox.
    answers: AtomicUsize,
    /// Answers that were not sent.
    unanswered: AtomicU64,
    /// The port has something to send, as far as the thread knows.
    is_transmitting: AtomicBool,
    /// Whether the streams go on while the port is down.
    pub(super) outlasts_down: AtomicBool,
    /// Whether it was down when it was last looked at.
    pub(super) is_down: AtomicBool,
}

impl SenderFlags {
    /// Whether the port has something to send, from the call that starts it on: what the thread
    /// says between that call and its next look at its commands is about the streams before.
    pub(super) fn is_transmitting(&self) -> bool {
        self.starts.load(Ordering::Acquire) > 0 || self.is_transmitting.load(Ordering::Acquire)
    }
}

/// The thread, as the session holds it. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct PortSender {
    commands: Option<Sender<SendCommand>>,
    pub(super) flags: Arc<SenderFlags>,
    thread: Option<JoinHandle<Box<dyn TxQueue>>>,
}

/// A sender's port and core.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderPlace {
    pub(super) port: usize,
    pub(super) core: Option<usize>,
    /// The way in which it waits for due times.
    pub(super) waiting: Waiting,
}

impl PortSender {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(
        place: &SenderPlace,
        queue: Box<dyn TxQueue>,
        limits: TransmitLimits,
        clock: RunClock,
    ) -> Result<Self, SessionError> {
        let SenderPlace { port, core, waiting } = *place;
        let (commands, inbox) = channel();
        let flags = Arc::new(SenderFlags::default());
        let mut sending = Sending {
            transmitter: Transmitter::new(limits),
            queue,
            inbox,
            flags: Arc::clone(&flags),
            clock,
            waiting,
            stopped: None,
            is_paused: false,
        };
        let run = move || {
            sending.run();
            sending.queue
        };
        let (cpus, name) = (core.into_iter().collect(), format!("gen-tx-{port}"));
        let thread = spawn_on(cpus, name, waiting, run).map_err(|source| SessionError::Thread {
            what: format!("starting the thread that sends on port {port}"),
            source,
        })?;
        Ok(Self { commands: Some(commands), flags, thread: Some(thread) })
    }

    /// Ends the thread and gives its queue back.
    pub(super) fn end(mut self) -> Box<dyn TxQueue> {
        self.hang_up();
        joined(self.thread.take())
    }

    fn hang_up(&mut self) {
        self.commands = None;
        self.flags.has_command.store(true, Ordering::Release);
    }

    /// Tells the thread.
    pub(super) fn send(&self, command: SendCommand) {
        // A thread that has ended, by a panic, is met again when it is joined.
        let _ = self.commands.as_ref().map(|commands| commands.send(command));
        self.flags.has_command.store(true, Ordering::Release);
    }

    /// Tells the thread to start its streams.
    pub(super) fn start_streams(&self, at_ns: u64, end_ns: u64, factor: f64) {
        self.flags.starts.fetch_add(1, Ordering::AcqRel);
        self.send(SendCommand::Start { at_ns, end_ns, factor });
    }

    /// A second handle for commands, for the watcher.
    pub(super) fn handle(&self) -> Option<SenderHandle> {
        let commands = self.commands.clone()?;
        Some(SenderHandle { commands, flags: Arc::clone(&self.flags) })
    }

    /// Asks the thread for something; `None` when it has ended.
    pub(super) fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> SendCommand) -> Option<T> {
        let (answer, inbox) = channel();
        self.send(question(answer));
        inbox.recv().ok()
    }
}

impl Drop for PortSender {
    fn drop(&mut self) {
        self.hang_up();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread; there is nobody to hand it to.
            let _ = thread.join();
        }
    }
}

/// Tells a sender what others than the session's owner have to say.
#[derive(Debug)]
pub(super) struct SenderHandle {
    commands: Sender<SendCommand>,
    pub(super) flags: Arc<SenderFlags>,
}

impl SenderHandle {
    /// Sends a frame beside the streams, unless too many wait for that; whether it will.
    pub(super) fn answer(&self, frame: Vec<u8>) -> bool {
        if self.flags.answers.fetch_add(1, Ordering::AcqRel) >= ANSWERS_MAX {
            self.flags.answers.fetch_sub(1, Ordering::AcqRel);
            self.flags.unanswered.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let is_taken = self.commands.send(SendCommand::Answer(frame)).is_ok();
        self.flags.has_command.store(true, Ordering::Release);
        is_taken
    }

    /// Asks the thread for its counts; `None` when it has ended.
    pub(super) fn request_report(&self) -> Option<Receiver<SendReportSoFar>> {
        let (answer, inbox) = channel();
        self.commands.send(SendCommand::Report(answer)).ok()?;
        self.flags.has_command.store(true, Ordering::Release);
        Some(inbox)
    }

    /// Stops the port's streams for a reason.
    pub(super) fn stop(&self, stop: PortStop) {
        let _ = self.commands.send(SendCommand::Stop(Some(stop)));
        self.flags.has_command.store(true, Ordering::Release);
    }
}

/// The thread's own side.
struct Sending {
    transmitter: Transmitter,
    queue: Box<dyn TxQueue>,
    inbox: Receiver<SendCommand>,
    flags: Arc<SenderFlags>,
    clock: RunClock,
    waiting: Waiting,
    stopped: Option<PortStop>,
    is_paused: bool,
}

impl Sending {
    fn run(&mut self) {
        loop {
            // Looked at before it is taken: an exchange costs as much as a frame.
            if self.flags.has_command.load(Ordering::Relaxed)
                && self.flags.has_command.swap(false, Ordering::Acquire)
                && !self.take_commands()
            {
                return;
            }
            let now_ns = self.clock.now_ns();
            let is_open = match self.transmitter.step(now_ns, self.queue.as_mut()) {
                Ok(TransmitStep::Sent) => true,
                Ok(TransmitStep::Blocked) => self.wait_for_room(),
                Ok(TransmitStep::DueAt(due_ns)) => self.wait(due_ns.saturating_sub(now_ns)),
                Ok(TransmitStep::Over) => {
                    self.flags.is_transmitting.store(false, Ordering::Release);
                    self.sleep(IDLE)
                }
                Err(error) => self.take_error(&error),
            };
            if !is_open {
                return;
            }
        }
    }

    /// Waits until the queue may take something again; false at the end of the session.
    fn wait_for_room(&mut self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let SenderFlags { outlasts_down, is_down, .. } = &*self.flags;
        self.transmitter.set_link_down(is_set(outlasts_down) && is_set(is_down));
        match self.waiting {
            Waiting::Sleeping | Waiting::Precise => self.sleep(Duration::from_nanos(NAP_NS)),
            Waiting::Polling => {
                std::thread::yield_now();
                true
            }
        }
    }

    /// Waits for a due time that is `ahead_ns` away; false at the end of the session.
    fn wait(&mut self, ahead_ns: u64) -> bool {
        let sleep_ns = match self.waiting {
            Waiting::Sleeping => ahead_ns.max(NAP_NS),
            Waiting::Polling => ahead_ns.saturating_sub(SLEEP_MARGIN_NS),
            Waiting::Precise => ahead_ns.saturating_sub(REAL_TIME_MARGIN_NS),
        };
        if sleep_ns > 0 {
            return self.sleep(Duration::from_nanos(sleep_ns).min(IDLE));
        }
        // A thread in real time leaves its core to nobody by yielding.
        if ahead_ns > SPIN_NS && self.waiting == Waiting::Polling {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
        true
    }

    /// Sleeps until a command comes, or for so long; false at the end of the session.
    fn sleep(&mut self, time: Duration) -> bool {
        match self.inbox.recv_timeout(time) {
            Ok(command) => {
                self.take(command);
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Takes all commands that wait; false at the end of the session.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(command) => self.take(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take_error(&mut self, error: &PortError) -> bool {
        self.stop(Some(PortStop { at_ns: self.clock.now_ns(), reason: error.to_string() }));
        true
    }

    fn stop(&mut self, stop: Option<PortStop>) {
        if !self.transmitter.is_over() && stop.is_some() {
            self.stopped = stop;
        }
        self.transmitter.stop();
        self.is_paused = false;
        self.flags.is_transmitting.store(false, Ordering::Release);
    }

    fn take(&mut self, command: SendCommand) {
        match command {
            SendCommand::Load(streams) => self.transmitter.load(streams),
            SendCommand::Start { at_ns, end_ns, factor } => {
                self.stopped = None;
                self.is_paused = false;
                // Only a port that is up is started; what was last seen was in the run before.
                self.flags.is_down.store(false, Ordering::Relaxed);
                self.flags.is_transmitting.store(true, Ordering::Release);
                // Only after that: one of the two always says that the port sends.
                self.flags.starts.fetch_sub(1, Ordering::AcqRel);
                self.transmitter.start(at_ns, end_ns, factor);
            }
            SendCommand::Stop(stop) => self.stop(stop),
            SendCommand::Pause => {
                self.is_paused = true;
                self.transmitter.pause(self.clock.now_ns());
            }
            SendCommand::Resume => {
                self.is_paused = false;
                self.transmitter.resume(self.clock.now_ns());
            }
            SendCommand::Burst(frames) => self.transmitter.set_burst(frames),
            SendCommand::Update(factor) => self.transmitter.update(self.clock.now_ns(), factor),
            SendCommand::Answer(frame) => {
                self.flags.answers.fetch_sub(1, Ordering::AcqRel);
                // What a full queue refuses is asked for again; a port that has gone says so where
                // a stream sends.
                let taken = self.queue.tx(&[PacketBuf::from_slice(&frame)]).unwrap_or_default();
                let refused = u64::from(taken == 0);
                self.flags.unanswered.fetch_add(refused, Ordering::Relaxed);
            }
            SendCommand::Clear(answer) => {
                self.flags.unanswered.store(0, Ordering::Relaxed);
                // A caller that did not wait for the answer does not need it.
                let _ = answer.send(self.transmitter.clear());
            }
            SendCommand::Numbers(answer) => {
                let _ = answer.send(self.transmitter.numbers());
            }
            SendCommand::Report(answer) => {
                let _ = answer.send(SendReportSoFar {
                    counts: self.transmitter.counts(),
                    streams: self.transmitter.stream_counts(),
                    gaps: self.transmitter.gaps(),
                    unanswered: self.flags.unanswered.load(Ordering::Relaxed),
                    stopped: self.stopped.clone(),
                    is_paused: self.is_paused,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;

    use netdev::open_text;

    use super::{ANSWERS_MAX, SendCommand, SenderFlags, SenderHandle, Sending};
    use crate::clock::RunClock;
    use crate::session::Waiting;
    use crate::template::BURST_MAX;
    use crate::transmit::{LATE_AFTER_NS, TransmitLimits, Transmitter, UNSENT_AFTER_NS};

    /// The defect of a trial that ended with the link down: the next one took what its port
    /// refused for the link's doing.
    #[test]
    fn a_start_forgets_that_the_link_was_down() {
        let (late_after_ns, unsent_after_ns) = (LATE_AFTER_NS, UNSENT_AFTER_NS);
        let limits = TransmitLimits { burst: BURST_MAX, late_after_ns, unsent_after_ns };
        let flags = Arc::new(SenderFlags::default());
        let mut sending = Sending {
            transmitter: Transmitter::new(limits),
            queue: open_text("null:sender-start").unwrap().tx,
            inbox: channel().1,
            flags: Arc::clone(&flags),
            clock: RunClock::start(),
            waiting: Waiting::Polling,
            stopped: None,
            is_paused: false,
        };
        flags.is_down.store(true, Ordering::Relaxed);
        flags.starts.store(1, Ordering::Relaxed);
        sending.take(SendCommand::Start { at_ns: 0, end_ns: 1, factor: 1.0 });
        assert!(!flags.is_down.load(Ordering::Relaxed));
    }

    #[test]
    fn answers_beyond_a_bound_are_left_out_and_counted() {
        let (commands, inbox) = channel();
        let flags = Arc::new(SenderFlags::default());
        let handle = SenderHandle { commands, flags: Arc::clone(&flags) };
        let taken = (0..ANSWERS_MAX + 9).filter(|_| handle.answer(vec![0; 60])).count();
        assert_eq!(taken, ANSWERS_MAX);
        drop(handle);
        assert_eq!(inbox.iter().count(), ANSWERS_MAX);
        assert_eq!(flags.unanswered.load(Ordering::Relaxed), 9);
    }
}
