//! What the controller does on one connection: ask who the switch is, then hand its messages to the
//! app and the app's messages to the switch.
//!
//! Without input and output, like the connection itself: the runtime gives events and time, a
//! simulation does the same. It must never let one switch's fault reach another's session.

use crate::app::App;
use crate::stats::Stats;
use crate::switch::Switch;
use channel::{Connection, DownReason, Event, Paired, Pending, SendError, Unanswered};
use openflow::message::{
    Features, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    SwitchConfig,
};
use openflow::{DatapathId, Message, Version, Xid};
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

/// A switch must have said who it is and which ports it has within this time.
const READY_DEADLINE: Duration = Duration::from_secs(15);
/// How often [`App::tick`] is called for each switch.
const TICK: Duration = Duration::from_secs(1);

/// An app with the switches that it serves.
pub struct Controller {
    app: Box<dyn App>,
    started: Instant,
    /// Which session speaks for a switch: the latest that named it.
    owners: HashMap<DatapathId, SessionId>,
    next_session: u64,
    stats: Stats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SessionId(u64);

/// One connection's part of the controller.
pub struct Session {
    id: SessionId,
    opened: Instant,
    next_tick: Option<Instant>,
    /// The session of the main connection, when this is an auxiliary one (clause 6.3.6).
    beside: Option<SessionId>,
    phase: Phase,
    pending: Pending<Question>,
    outcomes: Vec<Outcome>,
}

enum Phase {
    /// The hello exchange or the features are awaited.
    Unknown,
    /// The ports of a 1.3 switch are awaited.
    Ports(Box<Switch>),
    /// The app knows it.
    Ready(Box<Switch>),
    /// The session has ended.
    Over,
}

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Features,
    Ports,
    App,
}

/// What has become of a session, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The switch is ready.
    Ready {
        /// Who it is.
        dpid: DatapathId,
        /// The version spoken.
        version: Version,
        /// How many ports it has.
        ports: usize,
    },
    /// An auxiliary connection of a switch that is ready.
    Auxiliary {
        /// Whose it is.
        dpid: DatapathId,
        /// Which.
        id: u8,
    },
    /// The connection is over.
    Down {
        /// Who it was, if it was ready.
        dpid: Option<DatapathId>,
        /// Why.
        reason: DownReason,
    },
    /// We end it, for this reason.
    Refused(String),
}

impl Controller {
    /// A controller that runs `app`.
    #[must_use]
    pub fn new(app: Box<dyn App>, now: Instant) -> Self {
        let stats = Stats::default();
        Self { app, started: now, owners: HashMap::new(), next_session: 0, stats }
    }

    /// What has been counted over all sessions.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The session of a new connection.
    pub fn session(&mut self, now: Instant) -> Session {
        self.next_session += 1;
        Session {
            id: SessionId(self.next_session),
            opened: now,
            next_tick: None,
            beside: None,
            phase: Phase::Unknown,
            pending: Pending::default(),
            outcomes: Vec::new(),
        }
    }

    /// Takes an event of the session's connection.
    pub fn take_event(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        event: Event,
        now: Instant,
    ) {
        match event {
            Event::Up { .. } => session.ask(connection, Question::Features),
            Event::Message { xid, message } => {
                self.take_message(session, connection, xid, message, now);
            }
            Event::Refused { .. } => self.stats.refused += 1,
            Event::Down(reason) => {
                let dpid = self.end(session);
                // A session that we end has said why.
                if reason != DownReason::Closed {
                    session.outcomes.push(Outcome::Down { dpid, reason });
                }
            }
        }
    }

    fn take_message(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        xid: Xid,
        message: Message,
        now: Instant,
    ) {
        let (question, answer) = match session.pending.pair(xid, message) {
            Paired::Part => return,
            Paired::Other(message) => {
                return self.hand_over(session, connection, xid, &message, now);
            }
            Paired::Done { context, answer } => (context, answer),
        };
        match (question, answer) {
            (Question::Features, Ok(Message::FeaturesReply(features))) => {
                self.take_features(session, connection, features, now);
            }
            (Question::Ports, answer) => self.take_ports(session, connection, answer, now),
            (Question::App, Ok(message)) => {
                self.hand_over(session, connection, xid, &message, now);
            }
            (Question::App, Err(Unanswered::Error(error))) => {
                self.hand_over(session, connection, xid, &Message::Error(error), now);
            }
            (Question::App, Err(unanswered)) => {
                tracing::warn!(xid = xid.0, %unanswered, "the app's request has no answer");
            }
            (Question::Features, answer) => {
                let why = answer.err().map_or_else(String::new, |why| format!(": {why}"));
                session.refuse(connection, format!("it does not send its features{why}"));
            }
        }
    }

    fn take_features(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        features: Features,
        now: Instant,
    ) {
        let Some(version) = connection.version() else { return };
        if features.auxiliary_id != 0 {
            return self.take_auxiliary(session, connection, version, features);
        }
        // Whole packets, and in 1.3 kept in no buffer.
        let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
        session.send(connection, &Message::SetConfig(config), &mut self.stats);
        let switch = Box::new(Switch::new(version, features));
        if version.has_port_desc() {
            session.phase = Phase::Ports(switch);
            session.ask(connection, Question::Ports);
        } else {
            self.ready(session, connection, switch, now);
        }
    }

    /// An auxiliary connection has said whose it is: the app gets what comes by it as it gets what
    /// comes by the main one, and its answers go back by the same way.
    fn take_auxiliary(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        version: Version,
        features: Features,
    ) {
        let (dpid, id) = (features.datapath_id, features.auxiliary_id);
        let Some(main) = self.owners.get(&dpid) else {
            let what =
                format!("auxiliary connection {id} of switch {dpid} comes before the main one");
            return session.refuse(connection, what);
        };
        session.beside = Some(*main);
        session.outcomes.push(Outcome::Auxiliary { dpid, id });
        session.phase = Phase::Ports(Box::new(Switch::new(version, features)));
        session.ask(connection, Question::Ports);
    }

    fn take_ports(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        answer: Result<Message, Unanswered>,
        now: Instant,
    ) {
        let Phase::Ports(mut switch) = std::mem::replace(&mut session.phase, Phase::Unknown) else {
            return;
        };
        match answer {
            Ok(Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::PortDesc(ports),
                ..
            })) => switch.set_ports(ports),
            other => tracing::warn!(dpid = %switch.dpid(), ?other, "switch names no ports"),
        }
        if session.beside.is_some() {
            session.phase = Phase::Ready(switch);
            return;
        }
        self.ready(session, connection, switch, now);
    }

    fn ready(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        switch: Box<Switch>,
        now: Instant,
    ) {
        let dpid = switch.dpid();
        if self.owners.insert(dpid, session.id).is_some() {
            // The old connection is dead or about to be: a switch that comes again has lost it.
            self.app.switch_down(dpid);
        } else {
            self.stats.switches += 1;
        }
        let (version, ports) = (switch.version(), switch.ports().len());
        session.outcomes.push(Outcome::Ready { dpid, version, ports });
        session.phase = Phase::Ready(switch);
        session.next_tick = Some(now + TICK);
        self.handle(session, connection, now, |app, sw| app.switch_ready(sw));
    }

    /// Hands a message to the app's handler.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a message without a handler of its own goes to `App::message`"
    )]
    fn hand_over(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        xid: Xid,
        message: &Message,
        now: Instant,
    ) {
        if let Message::PacketIn(_) = message {
            self.stats.packet_ins += 1;
            if connection.is_full() {
                // The switch does not take what we send as fast as it asks for it.
                self.stats.packet_ins_dropped += 1;
                return;
            }
        }
        self.handle(session, connection, now, |app, sw| match message {
            Message::PacketIn(packet_in) => app.packet_in(sw, packet_in),
            Message::PortStatus(status) => {
                sw.take_port_status(status);
                app.port_status(sw, status);
            }
            Message::FlowRemoved(removed) => app.flow_removed(sw, removed),
            Message::Error(error) => {
                tracing::debug!(dpid = %sw.dpid(), ?error, "the switch refuses a message");
                app.error(sw, xid, error);
            }
            other => app.message(sw, xid, other),
        });
    }

    /// Runs a handler, if the switch is ready and this session speaks for it, and sends what it has
    /// queued.
    fn handle(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
        handler: impl FnOnce(&mut dyn App, &mut Switch),
    ) {
        let Phase::Ready(switch) = &mut session.phase else { return };
        if self.owners.get(&switch.dpid()) != Some(&session.beside.unwrap_or(session.id)) {
            let what = format!("switch {} has connected again", switch.dpid());
            return session.refuse(connection, what);
        }
        switch.set_now(now.saturating_duration_since(self.started));
        let not_forwarded = switch.not_forwarded();
        handler(self.app.as_mut(), switch);
        self.stats.not_forwarded += switch.not_forwarded() - not_forwarded;
        for (xid, message) in switch.drain() {
            self.stats.count_sent(&message);
            if message.kind().row().reply.is_some()
                && let Err(why) = session.pending.expect(xid, &message, Question::App)
            {
                tracing::warn!(%why, "the answer will come in parts, if in parts");
            }
            send(connection, xid, &message, &mut self.stats);
        }
    }

    /// Ends a session: the switch that it spoke for.
    fn end(&mut self, session: &mut Session) -> Option<DatapathId> {
        let Phase::Ready(switch) = std::mem::replace(&mut session.phase, Phase::Over) else {
            return None;
        };
        let dpid = switch.dpid();
        if session.beside.is_some() {
            return None;
        }
        if self.owners.get(&dpid) == Some(&session.id) {
            self.owners.remove(&dpid);
            self.stats.switches -= 1;
            self.app.switch_down(dpid);
        }
        Some(dpid)
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
    ) {
        match (&session.phase, session.next_tick) {
            (Phase::Over, _) => {}
            (Phase::Ready(_), Some(due)) if due <= now => {
                session.next_tick = Some(now + TICK);
                self.handle(session, connection, now, |app, sw| app.tick(sw));
            }
            (Phase::Unknown | Phase::Ports(_), _) if session.opened + READY_DEADLINE <= now => {
                session.refuse(connection, "it does not say who it is in time".into());
            }
            (Phase::Unknown | Phase::Ports(_) | Phase::Ready(_), _) => {}
        }
    }
}

impl Session {
    /// When [`Controller::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Unknown | Phase::Ports(_) => Some(self.opened + READY_DEADLINE),
            Phase::Ready(_) => self.next_tick,
            Phase::Over => None,
        }
    }

    /// What has become of the session since it was asked last.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    fn ask(&mut self, connection: &mut Connection, question: Question) {
        let message = match question {
            Question::Features | Question::App => Message::FeaturesRequest,
            Question::Ports => {
                let body = MultipartRequestBody::PortDesc;
                Message::MultipartRequest(MultipartRequest { more: false, body })
            }
        };
        let xid = connection.allocate_xid();
        let waits = self.pending.expect(xid, &message, question);
        debug_assert!(waits.is_ok(), "a new session has room for its own questions");
        if let Err(error) = connection.send_as(xid, &message) {
            self.refuse(connection, format!("asking it failed: {error}"));
        }
    }

    fn send(&mut self, connection: &mut Connection, message: &Message, stats: &mut Stats) {
        let xid = connection.allocate_xid();
        send(connection, xid, message, stats);
    }

    fn refuse(&mut self, connection: &mut Connection, reason: String) {
        self.outcomes.push(Outcome::Refused(reason));
        connection.close();
    }
}

/// Sends a message of the app; one that the version cannot say is the app's fault and is logged.
fn send(connection: &mut Connection, xid: Xid, message: &Message, stats: &mut Stats) {
    match connection.send_as(xid, message) {
        Ok(()) => {}
        Err(SendError::NotUp) => stats.unsent += 1,
        Err(SendError::Encode(error)) => {
            stats.unsent += 1;
            let kind = message.kind().row().name;
            tracing::warn!(kind, %error, "the app's message cannot be sent");
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { dpid, version, ports } => {
                write!(f, "switch {dpid} is ready: {version}, {ports} ports")
            }
            Self::Auxiliary { dpid, id } => {
                write!(f, "switch {dpid}: auxiliary connection {id}")
            }
            Self::Down { dpid: Some(dpid), reason } => write!(f, "switch {dpid} is down: {reason}"),
            Self::Down { dpid: None, reason } => write!(f, "dropped: {reason}"),
            Self::Refused(reason) => write!(f, "dropped: {reason}"),
        }
    }
}
