//! The thread that receives on one port, by all of its queues, and accounts for what came.
//!
//! While the session sends, the port is polled, so that a delay does not contain a wake-up; else
//! the thread sleeps until the port has something. A report is made stream by stream between two
//! polls, because making one takes as long as some hundred frames. It must never let a frame wait
//! for a report of many streams.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Inbox, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use netdev::RxQueue;
use netdev::sys::event::{WakeEvent, wait};
use packet::Batch;

use super::sender::{SenderFlags, SenderHandle};
use super::{SessionError, Waiting, joined, spawn_on};
use crate::clock::RunClock;
use crate::probe::StreamId;
use crate::receiver::{Receiver, ReceiverCounts, ReceiverOptions, StreamReport};
use crate::responder::Responder;

/// Frames taken from the port at once.
const BURST: usize = 64;

/// Time that a thread sleeps before it looks whether anybody sends.
const NAP: Duration = Duration::from_millis(5);

/// Time between two looks at a port without a descriptor.
const SHORT_NAP: Duration = Duration::from_micros(100);

/// The port is polled this long after the last frame or the end of sending.
const AWAKE_NS: u64 = 50_000_000;

/// Time between the reports of two streams, so that frames come in between.
const REPORT_EVERY_NS: u64 = 200_000;

/// The wall clock, nanoseconds since 1970. Only differences of some microseconds are taken of it.
fn wall_clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A stream that is to be accounted for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedStream {
    pub(super) id: StreamId,
    /// The number of its next frame.
    pub(super) first: u64,
    pub(super) options: ReceiverOptions,
}

/// A command for the thread that receives.
#[derive(Debug)]
pub(super) enum ReceiveCommand {
    /// Account for these streams; answered when it is done.
    Streams(Vec<ExpectedStream>, Sender<bool>),
    /// Count from zero, with these streams.
    Clear(Vec<ExpectedStream>, Sender<bool>),
    /// Report on these streams, with how many frames of each were sent, if that is known.
    Report(Vec<(StreamId, Option<u64>)>, Sender<ReceiveReport>),
}

/// The counts of the thread that receives.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveReport {
    pub(super) counts: ReceiverCounts,
    /// Of the streams of which anything came.
    pub(super) streams: Vec<StreamReport>,
    /// Why nothing can be received any more.
    pub(super) error: Option<String>,
}

/// The thread, as the session holds it. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct PortReceiver {
    handle: Option<ReceiverHandle>,
    thread: Option<JoinHandle<Vec<Box<dyn RxQueue>>>>,
}

/// A way to the thread, which ends when it has no other.
#[derive(Clone, Debug)]
pub(super) struct ReceiverHandle {
    commands: Sender<ReceiveCommand>,
    has_command: Arc<AtomicBool>,
    /// Wakes the thread for a command.
    bell: Arc<WakeEvent>,
}

/// The port of a thread that receives, and the CPUs that it may use.
#[derive(Clone, Debug)]
pub(super) struct ReceiverPlace {
    pub(super) port: usize,
    /// Those that it may use; none stands for any.
    pub(super) cpus: Vec<usize>,
    /// Those that keep it awake while they send.
    pub(super) senders: Vec<Arc<SenderFlags>>,
    /// The way in which it waits for frames.
    pub(super) waiting: Waiting,
}

impl PortReceiver {
    /// Starts the thread. `answers` are given by the port's own sender.
    ///
    /// # Errors
    /// When no thread can be started, or no descriptor is left.
    pub(super) fn start(
        place: ReceiverPlace,
        queues: Vec<Box<dyn RxQueue>>,
        clock: RunClock,
        answers: Option<(Responder, SenderHandle)>,
    ) -> Result<Self, SessionError> {
        let ReceiverPlace { port, cpus, senders, waiting } = place;
        let failed = |source| SessionError::Thread {
            what: format!("starting the thread that receives on port {port}"),
            source,
        };
        let (commands, inbox) = channel();
        let has_command = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(WakeEvent::new().map_err(failed)?);
        let descriptors = queues
            .iter()
            .map(|queue| queue.fd().map(|fd| fd.try_clone_to_owned()).transpose().map_err(failed));
        let descriptors: Result<Vec<Option<OwnedFd>>, SessionError> = descriptors.collect();
        let mut queues = queues;
        if waiting == Waiting::Precise {
            for queue in &mut queues {
                queue.keep_arrivals();
            }
        }
        let mut rx_thread = RxThread {
            queues,
            descriptors: descriptors?.into_iter().collect(),
            batch: Batch::default(),
            receiver: Receiver::new(ReceiverOptions::default()),
            inbox,
            has_command: Arc::clone(&has_command),
            bell: Arc::clone(&bell),
            clock,
            senders,
            waiting,
            arrivals: Vec::new(),
            answers,
            awake_until_ns: 0,
            report: None,
            error: None,
        };
        let run = move || {
            rx_thread.run();
            rx_thread.queues
        };
        let name = format!("gen-rx-{port}");
        let thread = spawn_on(cpus, name, waiting, run).map_err(failed)?;
        let handle = ReceiverHandle { commands, has_command, bell };
        Ok(Self { handle: Some(handle), thread: Some(thread) })
    }

    /// Ends the thread and gives its queues back.
    pub(super) fn end(mut self) -> Vec<Box<dyn RxQueue>> {
        self.hang_up();
        joined(self.thread.take())
    }

    fn hang_up(&mut self) {
        let Some(ReceiverHandle { commands, has_command, bell }) = self.handle.take() else {
            return;
        };
        drop(commands);
        has_command.store(true, Ordering::Release);
        bell.ring();
    }

    /// A second handle.
    pub(super) fn handle(&self) -> Option<ReceiverHandle> {
        self.handle.clone()
    }

    /// Asks the thread for something; `None` when it has ended.
    pub(super) fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> ReceiveCommand) -> Option<T> {
        self.request(question)?.recv().ok()
    }

    /// As [`PortReceiver::ask`], without waiting for the answer.
    pub(super) fn request<T>(
        &self,
        question: impl FnOnce(Sender<T>) -> ReceiveCommand,
    ) -> Option<Inbox<T>> {
        self.handle.as_ref()?.request(question)
    }
}

impl ReceiverHandle {
    /// Asks the thread for something; `None` when it has ended.
    pub(super) fn request<T>(
        &self,
        question: impl FnOnce(Sender<T>) -> ReceiveCommand,
    ) -> Option<Inbox<T>> {
        let (answer, inbox) = channel();
        self.commands.send(question(answer)).ok()?;
        self.has_command.store(true, Ordering::Release);
        self.bell.ring();
        Some(inbox)
    }
}

impl Drop for PortReceiver {
    fn drop(&mut self) {
        self.hang_up();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread; there is nobody to hand it to.
            let _ = thread.join();
        }
    }
}

/// A report in the making.
struct ReportInMaking {
    asked: Vec<(StreamId, Option<u64>)>,
    next: usize,
    made: ReceiveReport,
    answer: Sender<ReceiveReport>,
    next_ns: u64,
}

/// The thread's own side.
struct RxThread {
    queues: Vec<Box<dyn RxQueue>>,
    /// Those of all queues; `None` where one has none.
    descriptors: Option<Vec<OwnedFd>>,
    batch: Batch,
    receiver: Receiver,
    inbox: Inbox<ReceiveCommand>,
    has_command: Arc<AtomicBool>,
    bell: Arc<WakeEvent>,
    clock: RunClock,
    senders: Vec<Arc<SenderFlags>>,
    waiting: Waiting,
    /// When the frames of the batch arrived by the port's own word, in wall-clock nanoseconds.
    arrivals: Vec<u64>,
    answers: Option<(Responder, SenderHandle)>,
    awake_until_ns: u64,
    report: Option<ReportInMaking>,
    error: Option<String>,
}

impl RxThread {
    fn run(&mut self) {
        loop {
            if self.has_command.swap(false, Ordering::Acquire) && !self.take_commands() {
                return;
            }
            let mut taken = 0;
            for queue in &mut self.queues {
                match queue.rx(&mut self.batch, BURST) {
                    Ok(more) => taken += more,
                    Err(error) => self.error = Some(error.to_string()),
                }
                self.arrivals.extend_from_slice(queue.arrivals());
            }
            let now_ns = self.clock.now_ns();
            if taken > 0 {
                self.account(taken, now_ns);
                self.answer();
                self.batch.recycle_front(taken);
                self.awake_until_ns = now_ns + AWAKE_NS;
            }
            if self.report.is_some() {
                self.report_next(now_ns, taken == 0);
            } else if taken == 0 {
                self.rest(now_ns);
            }
        }
    }

    /// Accounts for the batch: by the times at which the port says that the frames arrived, or else
    /// by this moment.
    fn account(&mut self, taken: usize, now_ns: u64) {
        if self.arrivals.len() == taken {
            let wall_ns = wall_clock_ns();
            for arrived in &mut self.arrivals {
                *arrived = now_ns.saturating_sub(wall_ns.saturating_sub(*arrived));
            }
            self.receiver.take_arrived(&self.batch, &self.arrivals);
        } else {
            self.receiver.take_batch(&self.batch, now_ns);
        }
        self.arrivals.clear();
    }

    /// Answers what asks for a claimed address.
    fn answer(&self) {
        let Some((responder, sender)) = &self.answers else { return };
        let replies = self.batch.frames().iter().filter_map(|frame| responder.reply(frame.bytes()));
        // What is not taken is counted as unanswered.
        for reply in replies {
            let _ = sender.answer(reply);
        }
    }

    /// Nothing came: lets others have the core, or sleeps.
    fn rest(&mut self, now_ns: u64) {
        if self.error.is_some() {
            std::thread::sleep(NAP);
            return;
        }
        if self.senders.iter().any(|sender| sender.is_transmitting()) {
            self.awake_until_ns = now_ns + AWAKE_NS;
        }
        if now_ns < self.awake_until_ns && !self.waiting.is_asleep() {
            std::thread::yield_now();
            return;
        }
        match &self.descriptors {
            // An error of poll(2) shows in the next call of the queue.
            Some(descriptors) => {
                let descriptors = descriptors.iter().map(AsFd::as_fd);
                let all: Vec<_> = descriptors.chain([self.bell.fd()]).collect();
                drop(wait(&all, Some(NAP)));
                self.bell.drain();
            }
            None => std::thread::sleep(SHORT_NAP),
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

    fn take(&mut self, command: ReceiveCommand) {
        match command {
            ReceiveCommand::Streams(streams, answer) => {
                let _ = answer.send(self.start_streams(&streams));
            }
            ReceiveCommand::Clear(streams, answer) => {
                self.receiver.clear();
                let _ = answer.send(self.start_streams(&streams));
            }
            ReceiveCommand::Report(asked, answer) => {
                let made = ReceiveReport {
                    counts: self.receiver.counts(),
                    streams: Vec::new(),
                    error: self.error.clone(),
                };
                if asked.is_empty() {
                    // At once, whatever report of streams is being made for another.
                    let _ = answer.send(made);
                } else {
                    self.report = Some(ReportInMaking { asked, next: 0, made, answer, next_ns: 0 });
                }
            }
        }
    }

    fn start_streams(&mut self, streams: &[ExpectedStream]) -> bool {
        let start = |stream: &ExpectedStream| {
            self.receiver.start_stream_with(stream.id, stream.first, stream.options)
        };
        streams.iter().all(start)
    }

    /// Reports on one more stream, if it is time or if there is nothing else to do.
    fn report_next(&mut self, now_ns: u64, is_idle: bool) {
        let Some(report) = &mut self.report else { return };
        if now_ns < report.next_ns && !is_idle {
            return;
        }
        while let Some((stream, sent)) = report.asked.get(report.next) {
            report.next += 1;
            let Some(account) = self.receiver.stream(*stream) else { continue };
            if account.has_come() {
                report.made.streams.push(account.report(*sent));
                report.next_ns = now_ns + REPORT_EVERY_NS;
                return;
            }
        }
        if let Some(ReportInMaking { made, answer, .. }) = self.report.take() {
            // A caller that did not wait for the answer does not need it.
            let _ = answer.send(made);
        }
    }
}
