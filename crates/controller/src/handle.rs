//! The way to a controller from any thread and any runtime: send, ask, watch, raise events.
//!
//! A call never waits for a shard's thread but for what its answer needs. It must never block: the
//! variants that do are named so, and refuse to on a thread that serves switches.

use crate::blocking::{block_on, is_on_shard};
use crate::commands::{Asks, BatchAsked, Command, NotQueued, SwitchEntry};
use crate::error::HandleError;
use crate::events::{ControllerEvent, HostEvent, LinkEvent};
use crate::shared::{ShardEvent, Shared, SwitchInfo};
use crate::stats::Stats;
use crate::watchers::EventReceiver;
use cluster::{ClusterState, KeyName};
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{DatapathId, Message, Xid};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Bytes of messages of one batch of [`Handle::apply`], each with a barrier request behind it.
const BATCH_BYTES: usize = 1 << 16;

/// Batches of one call whose outcome is awaited.
const BATCHES_MAX: usize = 4;

/// A controller as other threads see it. Clones are the same; it outlives the controller, whose end
/// its calls tell.
///
/// ```
/// use controller::{AppList, Controller, Options, apps::Hub};
/// use openflow::message::MultipartRequestBody;
///
/// let listen = vec!["ptcp:0:127.0.0.1".parse()?];
/// let options = Options { listen, ..Options::default() };
/// let running = Controller::new(AppList::one(|| Hub), options)?.start(|line| println!("{line}"))?;
/// let handle = running.handle().clone();
/// for switch in handle.switches() {
///     let tables = handle.multipart_blocking(switch.dpid, MultipartRequestBody::Table)?;
///     println!("{}: {tables:?}", switch.dpid);
/// }
/// let stats = running.stop()?;
/// assert_eq!(stats.switches, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The switches that are ready, by datapath id.
    #[must_use]
    pub fn switches(&self) -> Vec<SwitchInfo> {
        self.shared.infos()
    }

    /// A switch, if it is ready.
    #[must_use]
    pub fn switch(&self, dpid: DatapathId) -> Option<SwitchInfo> {
        self.shared.entry(dpid).map(|entry| entry.info())
    }

    /// The counts of the whole controller. A shard's are those of its latest turn.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Sends a message without waiting; whether the switch takes it nobody says (see
    /// [`Handle::apply`]).
    ///
    /// # Errors
    /// There is no such switch, its queue is full, or its version cannot say the message.
    pub fn send(&self, dpid: DatapathId, message: Message) -> Result<(), HandleError> {
        let entry = self.entry(dpid)?;
        let xid = Xid(entry.allocate_xids(1));
        let command = encode_one(&entry, xid, &message, Asks::Nothing)?;
        self.push(&entry, command)
    }

    /// Sends messages in their order without waiting, by few pushes into the switch's queue and few
    /// wakes of its shard; how many of them the queue had room for. Those behind them are not sent,
    /// and counted as full.
    ///
    /// # Errors
    /// There is no such switch, or its version cannot say one of the messages; nothing was sent.
    pub fn send_all(&self, dpid: DatapathId, messages: &[Message]) -> Result<usize, HandleError> {
        let entry = self.entry(dpid)?;
        let mut sent = 0;
        for mut batch in encode_batches(&entry, messages)? {
            number(&mut batch.bytes, entry.allocate_xids(batch.count));
            let command = Command { bytes: batch.bytes, sent: batch.sent, asks: Asks::Nothing };
            match self.push(&entry, command) {
                Ok(()) => sent += batch.count as usize,
                Err(HandleError::Full(_)) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(sent)
    }

    /// Sends a request and waits for its answer; a multipart answer comes whole.
    ///
    /// # Errors
    /// The switch's error, no answer in time, or what [`Handle::send`] says.
    pub async fn request(
        &self,
        dpid: DatapathId,
        request: Message,
    ) -> Result<Message, HandleError> {
        let entry = self.entry(dpid)?;
        let kind = request.kind();
        if kind.row().reply.is_none() {
            return Err(HandleError::NoReply(kind.row().name));
        }
        let xid = Xid(entry.allocate_xids(1));
        let (answer, answered) = oneshot::channel();
        let asks = Asks::Reply { xid, request: kind, answer };
        let command = encode_one(&entry, xid, &request, asks)?;
        self.push(&entry, command)?;
        let answer = async { answered.await.unwrap_or_else(|_| Err(self.gone(dpid))) };
        self.unless_blocked(&entry, answer).await
    }

    /// Asks for a description or statistics, and waits for the whole of it.
    ///
    /// # Errors
    /// As [`Handle::request`].
    pub async fn multipart(
        &self,
        dpid: DatapathId,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, HandleError> {
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        let answer = self.request(dpid, request).await?;
        let Message::MultipartReply(MultipartReply { body, .. }) = answer else {
            return Err(HandleError::Unexpected(answer.kind().row().name));
        };
        Ok(body)
    }

    /// Waits until the switch has done what was sent to it before.
    ///
    /// # Errors
    /// As [`Handle::request`].
    pub async fn barrier(&self, dpid: DatapathId) -> Result<(), HandleError> {
        self.request(dpid, Message::BarrierRequest).await.map(drop)
    }

    /// Has the switch carry out messages in their order, and waits until it has. All of them are
    /// sent, also behind one that is refused. Long lists wait for room in the switch's queue.
    ///
    /// # Errors
    /// The first refusal, with the place of its message; or [`HandleError::Unsaid`], and nothing
    /// was sent; or what ended the connection.
    pub async fn apply(&self, dpid: DatapathId, messages: Vec<Message>) -> Result<(), HandleError> {
        let entry = self.entry(dpid)?;
        let batches = encode_batches(&entry, &messages)?;
        self.unless_blocked(&entry, self.apply_batches(&entry, batches)).await
    }

    async fn apply_batches(
        &self,
        entry: &SwitchEntry,
        batches: Vec<Encoded>,
    ) -> Result<(), HandleError> {
        let dpid = entry.dpid;
        let mut refused = Ok(());
        let mut outcomes = VecDeque::new();
        for batch in batches {
            if outcomes.len() >= BATCHES_MAX
                && let Some(oldest) = outcomes.pop_front()
            {
                self.take_outcome(dpid, oldest, &mut refused).await?;
            }
            let (outcome, done) = oneshot::channel();
            let command = batch.command(entry, outcome)?;
            entry.push_later(command).await?;
            outcomes.push_back(done);
        }
        for outcome in outcomes {
            self.take_outcome(dpid, outcome, &mut refused).await?;
        }
        refused
    }

    /// What comes of a call that waits for a switch, unless an app blocks the switch's shard.
    async fn unless_blocked<T>(
        &self,
        entry: &SwitchEntry,
        call: impl Future<Output = Result<T, HandleError>>,
    ) -> Result<T, HandleError> {
        let beat = self.shared.beat(entry.shard);
        tokio::select! {
            biased;
            outcome = call => outcome,
            () = beat.blocked() => Err(HandleError::Blocked(entry.dpid)),
        }
    }

    /// Whether the watchdog has told that a handler does not return.
    pub(crate) fn has_slow_handler(&self) -> bool {
        self.shared.beats().any(crate::beat::Beat::is_slow)
    }

    /// Keeps the first refusal; anything else that is wrong ends the call.
    async fn take_outcome(
        &self,
        dpid: DatapathId,
        outcome: oneshot::Receiver<Result<(), HandleError>>,
        refused: &mut Result<(), HandleError>,
    ) -> Result<(), HandleError> {
        let outcome = outcome.await.unwrap_or_else(|_| Err(self.gone(dpid)));
        if let Err(HandleError::Refused { .. }) = &outcome {
            if refused.is_ok() {
                *refused = outcome;
            }
            return Ok(());
        }
        outcome
    }

    /// What the app of this name keeps for all controllers of the cluster.
    ///
    /// # Errors
    /// [`HandleError::NoCluster`] when this controller is in none, or does not run yet.
    pub fn state(&self, app: &KeyName) -> Result<ClusterState, HandleError> {
        let mastership = self.shared.mastership().ok_or(HandleError::NoCluster)?;
        Ok(mastership.link().state(app))
    }

    /// [`Handle::request`] for a plain thread.
    ///
    /// # Errors
    /// As there; [`HandleError::WouldBlock`] on a thread that serves switches.
    pub fn request_blocking(
        &self,
        dpid: DatapathId,
        request: Message,
    ) -> Result<Message, HandleError> {
        wait(self.request(dpid, request))
    }

    /// [`Handle::multipart`] for a plain thread.
    ///
    /// # Errors
    /// As [`Handle::request_blocking`].
    pub fn multipart_blocking(
        &self,
        dpid: DatapathId,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, HandleError> {
        wait(self.multipart(dpid, body))
    }

    /// [`Handle::barrier`] for a plain thread.
    ///
    /// # Errors
    /// As [`Handle::request_blocking`].
    pub fn barrier_blocking(&self, dpid: DatapathId) -> Result<(), HandleError> {
        wait(self.barrier(dpid))
    }

    /// [`Handle::apply`] for a plain thread.
    ///
    /// # Errors
    /// As there; [`HandleError::WouldBlock`] on a thread that serves switches.
    pub fn apply_blocking(
        &self,
        dpid: DatapathId,
        messages: Vec<Message>,
    ) -> Result<(), HandleError> {
        wait(self.apply(dpid, messages))
    }

    /// Every event from now on, packet-ins among them, which costs a copy of each.
    #[must_use]
    pub fn events(&self) -> EventReceiver {
        self.shared.watchers.watch(true)
    }

    /// Every event from now on but packet-ins.
    #[must_use]
    pub fn events_but_packet_ins(&self) -> EventReceiver {
        self.shared.watchers.watch(false)
    }

    /// Tells all apps of all shards, and all watchers, what has become of a link.
    ///
    /// # Errors
    /// A shard has no room for it, or the controller has ended.
    pub fn raise_link(&self, event: LinkEvent) -> Result<(), HandleError> {
        self.shared.watchers.tell(|| ControllerEvent::Link(event));
        self.raise(|| ShardEvent::Link(event))
    }

    /// Tells all apps of all shards, and all watchers, what has become of a host.
    ///
    /// # Errors
    /// A shard has no room for it, or the controller has ended.
    pub fn raise_host(&self, event: HostEvent) -> Result<(), HandleError> {
        self.shared.watchers.tell(|| ControllerEvent::Host(event.clone()));
        self.raise(|| ShardEvent::Host(event.clone()))
    }

    fn raise(
        &self,
        event: impl Fn() -> ShardEvent<crate::shared::Moved>,
    ) -> Result<(), HandleError> {
        // Every shard is told, also behind one that has no room.
        let told = (0..self.shared.shard_count()).map(|at| self.shared.tell_shard(at, event()));
        told.fold(Ok(()), Result::and)
    }

    fn entry(&self, dpid: DatapathId) -> Result<Arc<SwitchEntry>, HandleError> {
        self.shared.entry(dpid).ok_or_else(|| self.gone(dpid))
    }

    /// Why there is no such switch.
    fn gone(&self, dpid: DatapathId) -> HandleError {
        if self.shared.is_over() { HandleError::Gone } else { HandleError::NoSwitch(dpid) }
    }

    fn push(&self, entry: &SwitchEntry, command: Command) -> Result<(), HandleError> {
        entry.push(command).map_err(|why| match why {
            NotQueued::Full(_) => {
                self.shared.count_full();
                HandleError::Full(entry.dpid)
            }
            NotQueued::Over => self.gone(entry.dpid),
        })
    }
}

fn wait<T>(future: impl Future<Output = Result<T, HandleError>>) -> Result<T, HandleError> {
    if is_on_shard() { Err(HandleError::WouldBlock) } else { block_on(future) }
}

fn encode_one(
    entry: &SwitchEntry,
    xid: Xid,
    message: &Message,
    asks: Asks,
) -> Result<Command, HandleError> {
    let bytes = wire::encode(entry.version, xid, message)
        .map_err(|error| HandleError::Unsaid { index: 0, error })?;
    let mut sent = Stats::default();
    sent.count_sent(message);
    Ok(Command { bytes, sent, asks })
}

/// Encoded messages whose xids are still to be filled in.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    sent: Stats,
    count: u32,
    first_index: usize,
}

impl Encoded {
    /// With the barrier request behind it and all xids.
    fn command(
        mut self,
        entry: &SwitchEntry,
        outcome: crate::commands::OutcomeSender,
    ) -> Result<Command, HandleError> {
        let first = entry.allocate_xids(self.count + 1);
        number(&mut self.bytes, first);
        let batch = BatchAsked { first, count: self.count, first_index: self.first_index, outcome };
        wire::encode_into(
            &mut self.bytes,
            entry.version,
            batch.barrier(),
            &Message::BarrierRequest,
        )
        .map_err(|error| HandleError::Unsaid { index: self.first_index, error })?;
        Ok(Command { bytes: self.bytes, sent: self.sent, asks: Asks::Batch(batch) })
    }
}

/// Gives the messages in `bytes` the xids from `first` on.
fn number(mut bytes: &mut [u8], first: u32) {
    let mut xid = first;
    while let [_, _, high, low, at @ ..] = bytes
        && let Some((field, rest)) = at.split_first_chunk_mut::<4>()
    {
        *field = xid.to_be_bytes();
        xid += 1;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        bytes = rest.get_mut(length.saturating_sub(wire::HEADER_LEN)..).unwrap_or_default();
    }
}

/// The messages in batches; at least one, which may be empty.
fn encode_batches(entry: &SwitchEntry, messages: &[Message]) -> Result<Vec<Encoded>, HandleError> {
    let (mut batches, mut batch) = (Vec::new(), Encoded::default());
    for (index, message) in messages.iter().enumerate() {
        wire::encode_into(&mut batch.bytes, entry.version, Xid(0), message)
            .map_err(|error| HandleError::Unsaid { index, error })?;
        batch.sent.count_sent(message);
        batch.count += 1;
        if batch.bytes.len() >= BATCH_BYTES {
            let next = Encoded { first_index: index + 1, ..Encoded::default() };
            batches.push(std::mem::replace(&mut batch, next));
        }
    }
    if batch.count > 0 || batches.is_empty() {
        batches.push(batch);
    }
    Ok(batches)
}
