//! The task of one connection: bytes in and commands to the bridge; replies and asynchronous
//! messages out.
//!
//! The changes of all messages of one read go to the workers as one batch, and the send queue
//! leaves with one write. No input ends more than its own connection. Replies leave in the order of
//! their requests, though some take longer than others.
//!
//! A multipart reply may be as long as the flow tables, and a delete may affect all entries. A
//! connection has one of them at a time: later requests wait until the reply is sent or the entries
//! are gone, and when many wait nothing more is read, so that a peer which asks a thousand times
//! does not cause a thousand copies. Echo requests are answered between the parts.

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use channel::driver::now;
use channel::{
    AcceptedConnection, Connection, DownReason, Endpoint, Event, Link, LogLine, Pass, SendError,
    Stream,
};
use datapath::fast::Sweep;
use openflow::flow::FlowForm;
use openflow::flow_monitor::FlowMonitorRequest;
use openflow::message::{MultipartReply, MultipartReplyBody, MultipartRequestBody, Sender};
use openflow::{Error, Message, MessageKind, Version, Xid};
use tokio::net::UnixStream;
use wire::Forms;

use super::bundles::{BundleMessage, Bundles};
use super::controllers::begin_auxiliaries;
use super::peer::Reply;
use super::reassembly::Reassembly;
use super::replies::Replies;
use super::reply_stream::{ReplyStream, Sent};
use super::request::{Handling, dispatch};
use super::{Agent, Peer};
use crate::bridge::{Applied, BridgeCommand, StatisticsReply, Task};
use crate::counters::Counter;
use crate::request::{ConnectionId, ErrorData, ReplyPosition, RequestContext};

/// With more commands pending at a worker, nothing more is read from controllers.
const PENDING_MAX: usize = 8_192;

/// With more requests waiting behind a long one, nothing more is read: echo requests would wait
/// with it.
const WAITING_MAX: usize = 16;

/// The interval of checks whether the workers have caught up, or a controller that was paused.
const PENDING_LOOK: Duration = Duration::from_millis(1);

/// Messages of one read, and frames of a long reply, after which other tasks run.
const MESSAGES_MAX: usize = 256;
const FRAMES_MAX: usize = 8;

/// The kind of a connection.
#[derive(Clone)]
pub(super) enum ConnectionKind {
    /// The main connection to a controller that we connect to.
    Main(Rc<Endpoint>),
    /// An auxiliary connection of this number beside a main one.
    Auxiliary(u8, Rc<Peer>),
    /// A controller has connected to a listener.
    Accepted(Rc<AcceptedConnection>),
    /// A tool on this machine, by the control socket; no controller.
    ControlSocket,
}

/// The state of the task.
struct ConnectionTask {
    agent: Rc<Agent>,
    link: Link,
    name: String,
    kind: ConnectionKind,
    /// Set while the connection is up.
    peer: Option<Registration>,
    up_since: Option<Instant>,
    was_used: bool,
    /// The workers have too many commands pending.
    is_congested: bool,
    /// The peer sends much: other tasks run before more is read.
    is_greedy: bool,
    /// There is more to send at once; other tasks run first.
    is_unfinished: bool,
    /// The reply to a multipart request is awaited or being sent, or a command of many entries is
    /// under way.
    long_request: Option<ReplyPosition>,
    /// Requests that wait for its end.
    waiting: VecDeque<(RequestContext, BridgeCommand)>,
    reassembly: Reassembly,
    bundles: Bundles,
    replies: Replies,
    reply_stream: Option<ReplyStream>,
    /// The entries that new flow monitors find are being sent; reports of changes wait.
    is_listing: bool,
}

/// The course of a connection that is over.
pub(super) struct Served {
    /// Why it ended.
    pub(super) reason: DownReason,
    /// When its hello exchange was done, if ever.
    pub(super) up_since: Option<Instant>,
    /// Whether the controller used the switch: flow-mod, packet-out, statistics, barrier, role.
    pub(super) was_used: bool,
}

/// Messages that set a connection up; every other request of a controller uses the switch.
const SETUP: [MessageKind; 5] = [
    MessageKind::FeaturesRequest,
    MessageKind::GetConfigRequest,
    MessageKind::SetConfig,
    MessageKind::GetAsyncRequest,
    MessageKind::SetAsync,
];

/// Serves a connection until it is over.
pub(super) async fn serve(
    agent: Rc<Agent>,
    stream: Stream,
    name: &str,
    kind: ConnectionKind,
) -> Served {
    let settings = match &kind {
        ConnectionKind::Main(_) | ConnectionKind::Accepted(_) => agent.connection_config(),
        ConnectionKind::Auxiliary(_, main) => {
            agent.connection_config().with_versions(&[main.version])
        }
        // Whatever controllers are offered.
        ConnectionKind::ControlSocket => agent.connection_config().with_versions(Version::ALL),
    };
    let link = Link::new(stream, settings);
    let mut task = ConnectionTask {
        agent,
        link,
        name: name.to_owned(),
        kind,
        peer: None,
        up_since: None,
        was_used: false,
        is_congested: false,
        is_greedy: false,
        is_unfinished: false,
        long_request: None,
        waiting: VecDeque::new(),
        reassembly: Reassembly::default(),
        bundles: Bundles::default(),
        replies: Replies::default(),
        reply_stream: None,
        is_listing: false,
    };
    let reason = task.run().await;
    task.copy_to_snoopers();
    if task.up_since.is_none() {
        task.agent.counters.bump(Counter::ChannelFailed);
    }
    let (up_since, was_used) = (task.up_since, task.was_used);
    task.leave();
    task.link.finish().await;
    Served { reason, up_since, was_used }
}

/// Serves OpenFlow on a connection of the control socket until it is over.
pub(crate) async fn serve_tool(agent: Rc<Agent>, stream: UnixStream) {
    let stream = Stream::Unix(stream);
    let reason = serve(agent, stream, "control socket", ConnectionKind::ControlSocket).await.reason;
    tracing::debug!(%reason, "a connection of the control socket ended");
}

/// The agent's registration of a connection, which ends with it, also when the task is dropped.
struct Registration {
    agent: Rc<Agent>,
    peer: Rc<Peer>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.agent.leave(&self.peer);
    }
}

impl ConnectionKind {
    fn auxiliary_id(&self) -> u8 {
        match self {
            Self::Main(_) | Self::Accepted(_) | Self::ControlSocket => 0,
            Self::Auxiliary(id, _) => *id,
        }
    }
}

impl ConnectionTask {
    async fn run(&mut self) -> DownReason {
        let agent = Rc::clone(&self.agent);
        let mut going = pin!(agent.going());
        let mut is_going = false;
        loop {
            self.copy_to_snoopers();
            // Nobody notifies of an output that is empty.
            let is_paused =
                self.peer.as_ref().is_some_and(|it| it.peer.monitors.borrow().is_paused());
            let looks = self.is_congested || is_paused;
            let (has_bundles, expire_in) =
                (!self.bundles.is_empty(), self.bundles.expire_in(now()));
            match &self.peer {
                Some(Registration { peer, .. }) => tokio::select! {
                    () = self.link.turn() => {}
                    () = peer.queued() => {}
                    () = tokio::time::sleep(PENDING_LOOK), if looks => {}
                    () = tokio::time::sleep(expire_in), if has_bundles => {}
                    () = tokio::task::yield_now(), if self.is_unfinished => {}
                    () = &mut going, if !is_going => is_going = true,
                },
                None => tokio::select! {
                    () = self.link.turn() => {}
                    () = &mut going, if !is_going => is_going = true,
                },
            }
            let (probe_after, probe_deadline) = agent.probe();
            self.link.connection().set_probe(probe_after, probe_deadline);
            if is_going {
                self.link.connection().close();
            }
            if let Some(reason) = self.take_events() {
                return reason;
            }
            self.expire_bundles();
            self.is_unfinished = self.send_queued();
            if self.is_greedy {
                tokio::task::yield_now().await;
            }
            self.is_congested = self.agent.bridge.pending() > PENDING_MAX;
            let hold = self.is_congested || self.waiting.len() > WAITING_MAX;
            self.link.connection().hold_input(hold, now());
            // Behind that, since a peer that is held back keeps its place at a full listener.
            if let ConnectionKind::Accepted(accepted) = &self.kind {
                accepted.report(self.link.connection(), self.was_used, 0);
            }
        }
    }

    /// Sends copies of what came and was queued to the snoopers.
    fn copy_to_snoopers(&mut self) {
        let ConnectionKind::Main(_) = self.kind else { return };
        let (connection, snoopers) = (self.link.connection(), &self.agent.snoopers);
        snoopers.send(&connection.take_copies());
        connection.copy_messages(snoopers.are_there());
    }

    /// Handles the received messages; the reason when the connection has ended.
    fn take_events(&mut self) -> Option<DownReason> {
        let mut over = None;
        let mut count = 0;
        while let Some(event) = self.link.connection().poll_event() {
            match event {
                Event::Up { version } => self.up(version),
                Event::Message { xid, message } => {
                    self.take_message(xid, message);
                    count += 1;
                }
                Event::Refused { xid, error } => {
                    self.agent.counters.bump(Counter::ErrorSent);
                    let (xid, error) = (xid.0, error.name());
                    let bridge = self.agent.log_name();
                    tracing::debug!(bridge, controller = self.name, xid, error, "bad message");
                }
                Event::Down(reason) => over = Some(reason),
            }
        }
        self.agent.send_ops();
        self.is_greedy = count > MESSAGES_MAX;
        over
    }

    /// The hello exchange is done: joins the agent, unless the listener is full.
    fn up(&mut self, version: Version) {
        let accepted = match &self.kind {
            ConnectionKind::Accepted(accepted) => accepted.mark_up(),
            ConnectionKind::Main(_)
            | ConnectionKind::Auxiliary(..)
            | ConnectionKind::ControlSocket => Ok(()),
        };
        let Err(reason) = accepted else { return self.join(version) };
        self.agent.counters.bump(Counter::ChannelTurnedAway);
        if let Some(Pass { suppressed, bridges }) = self.agent.log_pass(LogLine::TurnedAway) {
            let bridge = self.agent.log_name();
            tracing::warn!(bridge, peer = self.name, %reason, suppressed, bridges, "turned away");
        }
        self.link.connection().close();
    }

    fn join(&mut self, version: Version) {
        let agent = Rc::clone(&self.agent);
        match &self.kind {
            ConnectionKind::Main(_) | ConnectionKind::Auxiliary(..) => {
                if let Some(Pass { suppressed, bridges }) = agent.log_pass(LogLine::Connected) {
                    let (bridge, controller) = (agent.log_name(), &self.name);
                    tracing::info!(bridge, controller, %version, suppressed, bridges, "connected");
                }
            }
            // Mostly tools that ask once: controllers are those that the switch connects to.
            ConnectionKind::Accepted(_) => {
                let (bridge, client) = (agent.log_name(), &self.name);
                tracing::debug!(bridge, client, %version, "connected");
            }
            ConnectionKind::ControlSocket => {}
        }
        let peer = match &self.kind {
            ConnectionKind::Main(endpoint) => {
                let peer = agent.join(&self.name, version, true);
                begin_auxiliaries(&agent, endpoint, &peer);
                peer
            }
            ConnectionKind::Auxiliary(id, main) => agent.join_auxiliary(&self.name, *id, main),
            ConnectionKind::Accepted(_) => agent.join(&self.name, version, false),
            ConnectionKind::ControlSocket => agent.join_tool(&self.name, version),
        };
        self.peer = Some(Registration { agent, peer });
        self.up_since = Some(now());
    }

    /// The agent forgets the connection.
    fn leave(&mut self) {
        self.peer = None;
    }

    fn take_message(&mut self, xid: Xid, message: Message) {
        let Some(Registration { peer, .. }) = &self.peer else { return };
        let kind = message.kind();
        self.was_used |= kind.row().sender == Sender::Controller && !SETUP.contains(&kind);
        let connection = self.link.connection();
        let by = || BundleMessage {
            version: peer.version,
            xid,
            error_data: ErrorData::new(connection.quote()),
            now: now(),
        };
        let handling = match self.reassembly.take(xid, message) {
            Ok(Some(message)) => dispatch(&self.agent, peer, &mut self.bundles, message, by),
            Ok(None) => Handling::Nothing,
            Err(error) => Handling::Refused(error),
        };
        match handling {
            Handling::Bridge(command) if self.long_request.is_some() => {
                let request = self.context(xid);
                self.waiting.extend(request.map(|request| (request, command)));
            }
            Handling::Bridge(command) => self.carry_out(xid, None, command),
            Handling::Reply(message) => self.reply(xid, None, Ok(message)),
            Handling::Refused(error) => self.reply(xid, None, Err(error)),
            Handling::TableIds(has_table_ids) => {
                self.change_forms(|forms| Forms { has_table_ids, ..forms });
            }
            Handling::FlowForm(flows) => self.change_forms(|forms| Forms { flows, ..forms }),
            Handling::PacketInForm(packet_ins) => {
                self.change_forms(|forms| Forms { packet_ins, ..forms });
            }
            Handling::Nothing => {}
        }
    }

    /// The forms of messages, of both sides, as the controller chooses them.
    fn change_forms(&mut self, change: impl FnOnce(Forms) -> Forms) {
        let connection = self.link.connection();
        connection.set_forms(change(connection.forms()));
    }

    /// The context of the message that was received last.
    fn context(&mut self, xid: Xid) -> Option<RequestContext> {
        let Registration { peer, .. } = self.peer.as_ref()?;
        Some(context(self.link.connection(), peer, xid, self.replies.next(), None))
    }

    /// Carries out a command. `held` is its context when it has waited, so that it is not the
    /// message that was received last.
    fn carry_out(&mut self, xid: Xid, held: Option<RequestContext>, mut command: BridgeCommand) {
        if let BridgeCommand::Multipart(request) = &mut command
            && let MultipartRequestBody::FlowMonitor(asked) = &mut request.body
            && !request.more
        {
            let asked = std::mem::take(asked);
            return self.monitor(xid, held.as_ref(), asked);
        }
        let Some(Registration { peer, .. }) = &self.peer else { return };
        let is_at_barrier = matches!(command, BridgeCommand::Barrier | BridgeCommand::Bundle(_));
        let position = if is_at_barrier { self.replies.reserve() } else { self.replies.next() };
        let connection = self.link.connection();
        let form = command.form();
        let context = |position| {
            let context = context(connection, peer, xid, position, held.as_ref());
            RequestContext { form, ..context }
        };
        let applied = self.agent.bridge.apply(peer.version, command, || context(position));
        self.agent.report_changes(Some((peer.id, xid)));
        match applied {
            Ok(Applied::Reply(message)) => self.reply(xid, held, Ok(message)),
            Ok(Applied::PortStatus(status)) => self.agent.send_port_status(status),
            Ok(Applied::Nothing | Applied::AtBarrier) => {}
            Ok(Applied::Bundle(statuses)) => {
                statuses.into_iter().for_each(|status| self.agent.send_port_status(status));
            }
            Ok(Applied::BundleRefused(refused)) => {
                let commit = context(position);
                self.replies.fill_both(refused, commit);
            }
            Ok(Applied::Later(task)) => {
                let position = self.replies.reserve();
                self.long_request = Some(position);
                let (agent, request) = (Rc::clone(&self.agent), context(position));
                tokio::task::spawn_local(finish_task(agent, request, task));
            }
            Err(error) if is_at_barrier => {
                let request = context(position);
                self.replies.fill(Reply::Refused(request, error));
            }
            Err(error) => self.reply(xid, held, Err(error)),
        }
    }

    /// Carries out requests about flow monitors, and replies with the entries to begin with.
    fn monitor(&mut self, xid: Xid, held: Option<&RequestContext>, asked: Vec<FlowMonitorRequest>) {
        let Some(Registration { peer, .. }) = &self.peer else { return };
        let position = self.replies.reserve();
        self.long_request = Some(position);
        let context = context(self.link.connection(), peer, xid, position, held);
        let request = RequestContext { form: FlowForm::Nicira, ..context };
        let reply = match self.agent.monitor(peer, asked) {
            Ok(Some(entries)) => {
                self.is_listing = true;
                Reply::Monitored(request, entries)
            }
            Ok(None) => {
                let body = MultipartReplyBody::FlowMonitor(Vec::new());
                let reply = MultipartReply { more: false, body };
                Reply::Message(request, Message::MultipartReply(reply))
            }
            Err(error) => Reply::Refused(request, error),
        };
        self.replies.fill(reply);
    }

    /// Forgets the bundles for which nothing has come for too long.
    fn expire_bundles(&mut self) {
        if self.bundles.is_empty() {
            return;
        }
        for (xid, error_data) in self.bundles.expire(now()) {
            let Some(Registration { peer, .. }) = &self.peer else { return };
            let (from, version) = (peer.id, peer.version);
            let (position, form) = (self.replies.next(), FlowForm::Standard);
            let request = RequestContext { from, version, xid, position, form, error_data };
            self.replies.push(Reply::Refused(request, Error::BundleTimeout));
        }
    }

    /// Replies to a message: at once, unless earlier replies are outstanding.
    fn reply(&mut self, xid: Xid, held: Option<RequestContext>, reply: Result<Message, Error>) {
        if !self.replies.is_empty() || self.reply_stream.is_some() || held.is_some() {
            let Some(request) = held.or_else(|| self.context(xid)) else { return };
            self.replies.push(match reply {
                Ok(message) => Reply::Message(request, message),
                Err(error) => Reply::Refused(request, error),
            });
            return;
        }
        let sent = match reply {
            Ok(message) => {
                let message = self.of_this_connection(message);
                self.link.connection().send_as(xid, &message)
            }
            Err(error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                self.link.connection().refuse(xid, error)
            }
        };
        self.count_unsent(sent);
    }

    /// The long request is done: the waiting requests go on.
    fn go_on(&mut self) {
        self.long_request = None;
        while self.long_request.is_none() {
            let Some((request, command)) = self.waiting.pop_front() else { break };
            self.carry_out(request.xid, Some(request), command);
        }
        self.agent.send_ops();
    }

    /// Sends the queue, and the parts of a long reply while the output has room. All else goes to
    /// the output at once, which the connection bounds. Whether there is more to send at once.
    fn send_queued(&mut self) -> bool {
        let Some(Registration { peer, .. }) = &self.peer else { return false };
        let peer = Rc::clone(peer);
        self.send_reports(&peer);
        let queue = peer.take_queue();
        for reply in queue.replies {
            self.replies.fill(reply);
        }
        // They have no position among the replies, which may wait for a long one.
        for message in &queue.messages {
            let sent = self.link.connection().send_as(Xid(0), message);
            self.count_unsent(sent);
        }
        for packet in &queue.packets {
            match self.link.connection().offer(Xid(0), packet) {
                Ok(true) => self.agent.counters.bump(Counter::PacketIn),
                Ok(false) => self.agent.counters.bump(Counter::PacketInControllerBusy),
                Err(error) => self.count_unsent(Err(error)),
            }
        }
        self.send_replies()
    }

    /// New flow monitors have what they begin with: the reports that have waited go on.
    fn end_listing(&mut self) {
        if std::mem::take(&mut self.is_listing)
            && let Some(Registration { peer, .. }) = &self.peer
        {
            peer.refresh();
        }
    }

    /// Sends the reports of flow monitors, and goes on after a pause when all is sent.
    fn send_reports(&mut self, peer: &Peer) {
        let mut monitors = peer.monitors.borrow_mut();
        if self.is_listing || monitors.is_idle() {
            return;
        }
        let connection = self.link.connection();
        let mut unsayable = 0;
        for resumes in [false, true] {
            if resumes && connection.transmit().is_empty() {
                monitors.resume(peer.version, &self.agent.bridge);
            }
            let (frames, count) = monitors.take();
            unsayable += count;
            // Nothing is lost where the connection has ended.
            frames.iter().for_each(|frame| drop(connection.send_frame(frame)));
        }
        monitors.set_unsent(connection.transmit().len());
        self.agent.counters.add(Counter::Unsayable, unsayable);
    }

    /// Sends the replies that are ready; whether there is more to send at once.
    fn send_replies(&mut self) -> bool {
        let mut frames = 0;
        loop {
            if let Some(stream) = &mut self.reply_stream {
                if self.link.connection().is_full() {
                    return false;
                }
                if frames == FRAMES_MAX {
                    return true;
                }
                frames += 1;
                let mut unsayable = 0;
                let (connection, bridge) = (self.link.connection(), &self.agent.bridge);
                let sent = stream.send_next(connection, bridge, &mut unsayable);
                self.agent.counters.add(Counter::Unsayable, unsayable);
                if let Ok(Sent::More) = sent {
                    continue;
                }
                self.reply_stream = None;
                self.end_listing();
                self.count_unsent(sent.map(|_| ()));
                self.go_on();
                continue;
            }
            let Some(reply) = self.replies.pop() else { return false };
            self.send_one(reply);
        }
    }

    /// Sets the auxiliary id in a features reply.
    fn of_this_connection(&self, mut message: Message) -> Message {
        if let Message::FeaturesReply(features) = &mut message {
            features.auxiliary_id = self.kind.auxiliary_id();
        }
        message
    }

    fn send_one(&mut self, reply: Reply) {
        let sent = match reply {
            Reply::Message(request, Message::MultipartReply(reply)) => {
                self.reply_stream = Some(ReplyStream::whole(
                    request.version,
                    request.form,
                    request.xid,
                    reply.body,
                ));
                Ok(())
            }
            Reply::Flows(request, list) => {
                let bridge = &self.agent.bridge;
                self.reply_stream = Some(ReplyStream::of_flows(
                    request.version,
                    request.form,
                    request.xid,
                    list,
                    bridge,
                ));
                Ok(())
            }
            Reply::Monitored(request, entries) => {
                let bridge = &self.agent.bridge;
                self.reply_stream = Some(ReplyStream::of_monitors(
                    request.version,
                    request.form,
                    request.xid,
                    entries,
                    bridge,
                ));
                Ok(())
            }
            Reply::Done(_) => {
                self.go_on();
                Ok(())
            }
            Reply::Message(request, message) => {
                let message = self.of_this_connection(message);
                self.link.connection().send_as(request.xid, &message)
            }
            Reply::Refused(request, error) => {
                self.agent.counters.bump(Counter::ErrorSent);
                let connection = self.link.connection();
                let sent = connection.send_error(request.xid, error, request.error_data.bytes());
                if self.long_request == Some(request.position) {
                    self.go_on();
                }
                sent
            }
        };
        self.count_unsent(sent);
    }

    /// Counts a message that the version cannot express; one for an ended connection needs no
    /// count.
    fn count_unsent(&self, sent: Result<(), SendError>) {
        match sent {
            Ok(()) | Err(SendError::NotUp) => {}
            Err(SendError::Encode(error)) => {
                self.agent.counters.bump(Counter::Unsayable);
                let bridge = self.agent.log_name();
                tracing::debug!(bridge, controller = self.name, %error, "a message was not sent");
            }
        }
    }
}

/// The context of a request on this connection: with the error data of `held`, or else of the
/// message that was received last.
fn context(
    connection: &Connection,
    peer: &Peer,
    xid: Xid,
    position: ReplyPosition,
    held: Option<&RequestContext>,
) -> RequestContext {
    let error_data = || ErrorData::new(connection.quote());
    RequestContext {
        from: peer.id,
        version: peer.version,
        xid,
        position,
        form: FlowForm::Standard,
        error_data: held.map_or_else(error_data, |held| held.error_data.clone()),
    }
}

/// Carries out a command of many entries in pieces, between which other tasks run. When it is
/// dropped, the remaining entries stay. `own` is the request for it, if it is a controller's.
pub(super) async fn sweep_all(
    agent: &Agent,
    mut sweep: Box<Sweep>,
    own: Option<(ConnectionId, Xid)>,
) -> Result<(), Error> {
    let done = loop {
        let done = agent.bridge.sweep(&mut sweep);
        agent.report_changes(own);
        if let Some(done) = done {
            break done;
        }
        agent.send_ops();
        tokio::task::yield_now().await;
        while agent.bridge.pending() > PENDING_MAX {
            tokio::time::sleep(PENDING_LOOK).await;
        }
    };
    agent.send_ops();
    done
}

/// Carries out the rest of a long command, and replies when it is done.
async fn finish_task(agent: Rc<Agent>, request: RequestContext, task: Task) {
    let done = match task {
        Task::Sweep(sweep) => {
            let own = Some((request.from, request.xid));
            sweep_all(&agent, sweep, own).await.map(|()| None)
        }
        Task::Statistics(asked) => agent.bridge.statistics(request.version, asked).await.map(Some),
    };
    let Some(peer) = agent.peer(request.from) else { return };
    peer.send_reply(match done {
        Ok(None) => Reply::Done(request),
        Ok(Some(StatisticsReply::Whole(body))) => {
            let reply = MultipartReply { more: false, body };
            Reply::Message(request, Message::MultipartReply(reply))
        }
        Ok(Some(StatisticsReply::Flows(list))) => Reply::Flows(request, list),
        Err(error) => Reply::Refused(request, error),
    });
}
