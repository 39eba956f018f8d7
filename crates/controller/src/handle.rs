//! The way to a controller from any thread and any runtime: send, ask, watch, raise events.
//!
//! A call never waits for a shard's thread but for what its answer needs. It must never block: the
//! variants that do are named so, and refuse to on a thread that serves switches.

use crate::batch::{MessageBatch, batches_of, encode_one};
use crate::blocking::{block_on, is_on_shard};
use crate::commands::{Asks, Command, NotQueued, Queued, RaisedEvent, SwitchEntry};
use crate::error::HandleError;
use crate::events::ControllerEvent;
use crate::handler_progress::HandlerProgress;
use crate::info::SwitchInfo;
use crate::shared::Shared;
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

/// Batches of one call whose outcome is awaited.
const BATCHES_MAX: usize = 4;

/// A controller as other threads see it. Clones are the same; it outlives the controller, whose end
/// its calls report.
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
    /// There is no such switch, its queue is full, or its version cannot encode the message.
    pub fn send(&self, dpid: DatapathId, message: Message) -> Result<(), HandleError> {
        let entry = self.entry(dpid)?;
        if message.is_for_each_table(entry.version) {
            let each = message.in_each_table(entry.version, entry.info().features.n_tables);
            let mut batch = MessageBatch::new(entry.version);
            let pushed = each.iter().try_for_each(|message| batch.push(message));
            pushed.map_err(|error| HandleError::NotEncodable { index: 0, error })?;
            return self.send_batch(dpid, batch);
        }
        let xid = Xid(entry.allocate_xids(1));
        let command = encode_one(&entry, xid, &message, Asks::Nothing)?;
        self.push(&entry, command, 1)
    }

    /// Sends a batch in one piece without waiting: one push into the switch's queue, and one wake
    /// of its shard at most.
    ///
    /// # Errors
    /// There is no such switch, it speaks another version now, or its queue is full; nothing was
    /// sent.
    pub fn send_batch(&self, dpid: DatapathId, batch: MessageBatch) -> Result<(), HandleError> {
        let entry = self.entry(dpid)?;
        if batch.version() != entry.version {
            // It has connected anew since.
            return Err(HandleError::NoSwitch(dpid));
        }
        let count = batch.len() as u64;
        self.push(&entry, batch.command(&entry), count)
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
        self.push(&entry, command, 1)?;
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
    /// The first refusal, with the place of its message; or [`HandleError::NotEncodable`], and
    /// nothing was sent; or what ended the connection.
    pub async fn apply(&self, dpid: DatapathId, messages: Vec<Message>) -> Result<(), HandleError> {
        let entry = self.entry(dpid)?;
        if messages.iter().any(|message| message.is_for_each_table(entry.version)) {
            return self.apply_to_each_table(&entry, messages).await;
        }
        self.apply_list(&entry, &messages).await
    }

    /// The same where some are for all tables, and the version has no number for these.
    async fn apply_to_each_table(
        &self,
        entry: &SwitchEntry,
        messages: Vec<Message>,
    ) -> Result<(), HandleError> {
        let n_tables = entry.info().features.n_tables;
        let (mut each, mut places) = (Vec::new(), Vec::new());
        for (place, message) in messages.into_iter().enumerate() {
            each.extend(message.in_each_table(entry.version, n_tables));
            places.resize(each.len(), place);
        }
        let mut done = self.apply_list(entry, &each).await;
        if let Err(HandleError::Refused { index, .. } | HandleError::NotEncodable { index, .. }) =
            &mut done
        {
            *index = places.get(*index).copied().unwrap_or(*index);
        }
        done
    }

    async fn apply_list(
        &self,
        entry: &SwitchEntry,
        messages: &[Message],
    ) -> Result<(), HandleError> {
        let batches = batches_of(entry.version, messages)?;
        self.unless_blocked(entry, self.apply_batches(entry, batches)).await
    }

    async fn apply_batches(
        &self,
        entry: &SwitchEntry,
        batches: Vec<MessageBatch>,
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
            let command = batch.asking(entry, outcome)?;
            entry.push_later(command).await?;
            outcomes.push_back(done);
        }
        for outcome in outcomes {
            self.take_outcome(dpid, outcome, &mut refused).await?;
        }
        refused
    }

    /// The outcome of a call that waits for a switch, unless an app blocks the switch's shard.
    async fn unless_blocked<T>(
        &self,
        entry: &SwitchEntry,
        call: impl Future<Output = Result<T, HandleError>>,
    ) -> Result<T, HandleError> {
        let progress = self.shared.progress(entry.shard);
        tokio::select! {
            biased;
            outcome = call => outcome,
            () = progress.blocked() => Err(HandleError::Blocked(entry.dpid)),
        }
    }

    /// Whether the watchdog has reported that a handler does not return.
    pub(crate) fn has_slow_handler(&self) -> bool {
        self.shared.progresses().any(HandlerProgress::is_slow)
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

    /// The state that the app of this name keeps for all controllers of the cluster.
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

    /// Raises any event that apps can get: they and all watchers get it as if it had come from the
    /// switch. An event of a switch waits in that switch's queue and passes the codec of its
    /// version; the apps of its shard get it in the order of the calls. One of a link or a host
    /// goes to all apps of all shards.
    ///
    /// An event is delivered, not made true: a switch that is raised as gone stays connected, and
    /// one that is raised as ready must be. Of a port's status and of a role the controller itself
    /// takes note too. An answer or an error goes to the app that its xid names.
    ///
    /// ```
    /// use controller::testing::{TestNetwork, TestSwitch};
    /// use controller::{AppList, ControllerEvent, apps::Hub};
    /// use openflow::Message;
    /// use std::time::Duration;
    ///
    /// let mut network = TestNetwork::new(AppList::one(|| Hub));
    /// let dpid = network.add_switch(TestSwitch::new(1, 4));
    /// network.take_messages(dpid);
    /// let handle = network.handle();
    /// // The hub sets the switch up anew.
    /// handle.raise(ControllerEvent::SwitchReady(handle.switch(dpid).unwrap()))?;
    /// network.advance(Duration::ZERO);
    /// assert!(matches!(network.take_messages(dpid)[..], [Message::FlowMod(_), ..]));
    /// # Ok::<(), controller::HandleError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such switch, its queue or a shard's is full, its version cannot encode the
    /// message, or the controller has ended.
    pub fn raise(&self, event: ControllerEvent) -> Result<(), HandleError> {
        let Some(dpid) = event.dpid() else { return self.shared.send_to_all(&event) };
        let entry = self.entry(dpid)?;
        let xid = event.xid();
        let raised = match event.into_message() {
            Ok(message) => RaisedEvent::Message(
                wire::encode(entry.version, xid, &message)
                    .map_err(|error| HandleError::NotEncodable { index: 0, error })?,
            ),
            Err(event) => RaisedEvent::Other(event),
        };
        self.queue(&entry, Queued::Raised(raised), 1)
    }

    fn entry(&self, dpid: DatapathId) -> Result<Arc<SwitchEntry>, HandleError> {
        self.shared.entry(dpid).ok_or_else(|| self.gone(dpid))
    }

    /// The reason why there is no such switch.
    fn gone(&self, dpid: DatapathId) -> HandleError {
        if self.shared.is_over() { HandleError::Gone } else { HandleError::NoSwitch(dpid) }
    }

    /// Queues a command of `count` messages.
    fn push(&self, entry: &SwitchEntry, command: Command, count: u64) -> Result<(), HandleError> {
        self.queue(entry, Queued::Command(command), count)
    }

    fn queue(&self, entry: &SwitchEntry, queued: Queued, count: u64) -> Result<(), HandleError> {
        entry.push(queued).map_err(|why| match why {
            NotQueued::Full(_) => {
                self.shared.count_full(count);
                HandleError::Full(entry.dpid)
            }
            NotQueued::Over => self.gone(entry.dpid),
        })
    }
}

fn wait<T>(future: impl Future<Output = Result<T, HandleError>>) -> Result<T, HandleError> {
    if is_on_shard() { Err(HandleError::WouldBlock) } else { block_on(future) }
}
