//! The outlet of real connections: messages go to the controller's handle, in batches, and answers
//! come back into the queue.
//!
//! While the apps' thread works on a batch of events, what its handlers send is gathered and goes
//! at the batch's end; from any other thread, and between batches, it goes at once.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use controller::{Handle, HandleError};
use openflow::{DatapathId, Message};
use pyo3::{Py, PyAny};

use crate::answer::{Answer, Answered, Failure};
use crate::outlet::{Connected, Outlet, Question, lock};
use crate::queue::Queue;

/// Answers that may be waited for at a time.
const ASKED_MAX: usize = 65_536;

/// Messages gathered before they go, batch or not.
const GATHERED_MAX: usize = 4_096;

thread_local! {
    /// Whether this thread is that of the apps and works on a batch.
    static IN_BATCH: Cell<bool> = const { Cell::new(false) };
}

/// What becomes of a question.
type Outcome = Result<Answer, Failure>;

/// The way to the controller.
pub(crate) struct Live {
    pub(crate) queue: Queue,
    handle: OnceLock<Handle>,
    /// Where answers are awaited.
    runtime: tokio::runtime::Handle,
    gathered: Mutex<Vec<(DatapathId, Message)>>,
    asked: AtomicUsize,
    unsent: AtomicU64,
    is_over: AtomicBool,
    /// Itself, for what outlives a call.
    this: std::sync::Weak<Self>,
}

impl Live {
    pub(crate) fn new(queue: Queue, runtime: tokio::runtime::Handle) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            queue,
            handle: OnceLock::new(),
            runtime,
            gathered: Mutex::default(),
            asked: AtomicUsize::new(0),
            unsent: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// The controller runs; all its shards give the same handle.
    pub(crate) fn set_handle(&self, handle: &Handle) {
        // It is there already where another shard was first.
        let _ = self.handle.set(handle.clone());
    }

    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.handle.get()
    }

    /// Nothing is sent any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        lock(&self.gathered).clear();
    }

    /// Messages that could not be sent: the switch was gone or does not take them.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// The calling thread works on a batch from now until [`Live::flush`].
    pub(crate) fn begin_batch(&self) {
        IN_BATCH.set(true);
    }

    /// Sends what was gathered.
    pub(crate) fn flush(&self) {
        IN_BATCH.set(false);
        self.send_gathered();
    }

    fn send_gathered(&self) {
        let mut gathered = std::mem::take(&mut *lock(&self.gathered));
        let mut rest = gathered.drain(..).peekable();
        while let Some((dpid, message)) = rest.next() {
            let mut messages = vec![message];
            while let Some((_, message)) = rest.next_if(|(next, _)| *next == dpid) {
                messages.push(message);
            }
            self.send_all(dpid, &messages);
        }
        drop(rest);
        let mut kept = lock(&self.gathered);
        if kept.is_empty() {
            // The room is used again.
            *kept = gathered;
        }
    }

    fn send_all(&self, dpid: DatapathId, messages: &[Message]) {
        let Some(handle) = self.handle.get() else { return };
        // What a version cannot say was refused when it was queued.
        let sent = handle.send_all(dpid, messages).unwrap_or(0);
        self.unsent.fetch_add((messages.len() - sent) as u64, Ordering::Relaxed);
    }

    fn answer(&self, future: Py<PyAny>, outcome: Outcome) {
        self.asked.fetch_sub(1, Ordering::Relaxed);
        self.queue.answer(Answered { future, outcome });
    }
}

impl Outlet for Live {
    fn send(&self, to: &Connected, message: Message) {
        if to.is_over() || self.is_over.load(Ordering::Relaxed) {
            self.unsent.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if !IN_BATCH.get() {
            return self.send_all(to.dpid, &[message]);
        }
        let mut gathered = lock(&self.gathered);
        gathered.push((to.dpid, message));
        let is_much = gathered.len() >= GATHERED_MAX;
        drop(gathered);
        if is_much {
            self.send_gathered();
        }
    }

    fn ask(&self, to: &Arc<Connected>, question: Question, future: Py<PyAny>) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let (Some(handle), false) = (self.handle.get(), to.is_over()) else {
            let what = format!("switch {} is not connected", to.dpid);
            return self.answer(future, Err(Failure::NotConnected(what)));
        };
        if asked >= ASKED_MAX {
            let what = format!("{ASKED_MAX} answers are waited for already");
            return self.answer(future, Err(Failure::QueueFull(what)));
        }
        // What was sent before goes first.
        self.send_gathered();
        let mut answering: Pin<Box<dyn Future<Output = Outcome> + Send>> =
            Box::pin(asking(handle.clone(), Arc::clone(to), question));
        // The first step sends the request, here and now, so that the order is that of the calls.
        match answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => self.answer(future, outcome),
            Poll::Pending => {
                let Some(this) = self.this.upgrade() else { return };
                self.runtime.spawn(async move {
                    let outcome = answering.await;
                    this.answer(future, outcome);
                });
            }
        }
    }
}

async fn asking(handle: Handle, to: Arc<Connected>, question: Question) -> Outcome {
    let (dpid, version) = (to.dpid, to.version);
    match question {
        Question::One(message) => {
            let answer = handle.request(dpid, message).await;
            answer
                .map(|message| Answer::Message(version, message))
                .map_err(|error| failed(error, false))
        }
        Question::Multipart(body) => {
            let answer = handle.multipart(dpid, body).await;
            answer
                .map(|body| Answer::Multipart(version, body))
                .map_err(|error| failed(error, false))
        }
        Question::Checked(messages) => {
            let is_many = messages.len() > 1;
            let done = handle.apply(dpid, messages).await;
            done.map(|()| Answer::Done).map_err(|error| failed(error, is_many))
        }
    }
}

fn failed(error: HandleError, is_many: bool) -> Failure {
    let what = error.to_string();
    match error {
        HandleError::NoSwitch(_) | HandleError::Gone => Failure::NotConnected(what),
        HandleError::Full(_) => Failure::QueueFull(what),
        HandleError::Silent(_) => Failure::Silent(what),
        HandleError::Unsaid { .. } => Failure::Unsaid(what),
        HandleError::Refused { index, version, error } => {
            Failure::Refused { index: is_many.then_some(index), version, error }
        }
        HandleError::Blocked(_)
        | HandleError::NoReply(_)
        | HandleError::Unanswered(_)
        | HandleError::Unexpected(_)
        | HandleError::EventsFull(_)
        | HandleError::NoCluster
        | HandleError::WouldBlock => Failure::Other(what),
    }
}
