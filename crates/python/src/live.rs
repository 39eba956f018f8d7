//! The transport of real connections: messages go to the controller's handle, in batches, and
//! answers come back into the queue.
//!
//! While the apps' thread works on a batch of events, what its handlers send is encoded and
//! gathered at the connection, and goes at the batch's end; from any other thread, and between
//! batches, it goes at once. A message that a version cannot encode must be an exception of its
//! sender, never lost here.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use controller::{Handle, HandleError, MessageBatch};
use openflow::Message;
use pyo3::{Py, PyAny};
use wire::EncodeError;

use crate::answer::{Answer, Answered, Failure};
use crate::lock::lock;
use crate::queue::Queue;
use crate::transport::{Connection, Question, Transport};

/// Answers that may be waited for at a time.
const ASKED_MAX: usize = 65_536;

/// Bytes gathered of one switch before they go, batch or not.
const GATHERED_BYTES_MAX: usize = 1 << 16;

thread_local! {
    /// Whether this thread is that of the apps and works on a batch.
    static IN_BATCH: Cell<bool> = const { Cell::new(false) };
}

/// The outcome of a question.
type Outcome = Result<Answer, Failure>;

/// The way to the controller.
pub(crate) struct Live {
    pub(crate) queue: Queue,
    handle: OnceLock<Handle>,
    /// The runtime on which answers are awaited.
    runtime: tokio::runtime::Handle,
    /// Connections for which messages are gathered.
    gathering: Mutex<Vec<Arc<Connection>>>,
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
            gathering: Mutex::default(),
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

    /// Nothing is sent any more; what is gathered counts as unsent.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.send_gathered();
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
        let mut gathering = std::mem::take(&mut *lock(&self.gathering));
        for to in gathering.drain(..) {
            self.send_batch(&to, &mut lock(&to.gathered));
        }
        let mut kept = lock(&self.gathering);
        if kept.is_empty() {
            // The room is used again.
            *kept = gathering;
        }
    }

    /// Keeps what is gathered until the batch's end, or sends it.
    fn gather(&self, to: &Arc<Connection>, gathered: &mut MessageBatch) {
        if !IN_BATCH.get() || gathered.bytes() >= GATHERED_BYTES_MAX {
            self.send_batch(to, gathered);
        } else if gathered.len() == 1 {
            lock(&self.gathering).push(Arc::clone(to));
        }
    }

    /// Hands over what is gathered for a switch. The caller holds it, so that two threads keep the
    /// order in which they have sent.
    fn send_batch(&self, to: &Connection, gathered: &mut MessageBatch) {
        if gathered.is_empty() {
            return;
        }
        let count = gathered.len() as u64;
        let batch = std::mem::replace(gathered, MessageBatch::new(to.version));
        let is_over = to.is_over() || self.is_over.load(Ordering::Relaxed);
        let handle = self.handle.get().filter(|_| !is_over);
        let sent = handle.is_some_and(|handle| handle.send_batch(to.dpid, batch).is_ok());
        if !sent {
            self.unsent.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn answer(&self, future: Py<PyAny>, outcome: Outcome) {
        self.asked.fetch_sub(1, Ordering::Relaxed);
        self.queue.answer(Answered { future, outcome });
    }
}

impl Transport for Live {
    fn send(&self, to: &Arc<Connection>, message: Message) -> Result<(), EncodeError> {
        let mut gathered = lock(&to.gathered);
        gathered.push(&message)?;
        self.gather(to, &mut gathered);
        Ok(())
    }

    fn send_encoded(&self, to: &Arc<Connection>, bytes: &[u8]) {
        let mut gathered = lock(&to.gathered);
        gathered.push_encoded(bytes);
        self.gather(to, &mut gathered);
    }

    fn ask(&self, to: &Arc<Connection>, question: Question, future: Py<PyAny>) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let (Some(handle), false) = (self.handle.get(), to.is_over()) else {
            let what = format!("switch {} is not connected", to.dpid);
            return self.answer(future, Err(Failure::NotConnected(what)));
        };
        if asked >= ASKED_MAX {
            let what = format!("{ASKED_MAX} answers are waited for already");
            return self.answer(future, Err(Failure::QueueFull(what)));
        }
        // Messages sent before go first, to this switch also those that another thread, which has
        // taken the list, has not come to yet.
        self.send_gathered();
        self.send_batch(to, &mut lock(&to.gathered));
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

async fn asking(handle: Handle, to: Arc<Connection>, question: Question) -> Outcome {
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
        HandleError::NotEncodable { .. } => Failure::NotEncodable(what),
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
