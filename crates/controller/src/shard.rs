//! The apps of one thread with the switches that they serve: asks each for its features, then hands
//! its messages to the apps and the messages of apps and handles to the switch.
//!
//! Without input and output, like the connections themselves: the runtime gives events and time, a
//! simulation does the same. It must never let one switch's fault reach another's session.

mod raised;
mod roles;
mod standby;

use crate::answers::{Answer, Asker};
use crate::app::App;
use crate::commands::{Queued, SwitchEntry, fail};
use crate::dispatch::Apps;
use crate::error::HandleError;
use crate::events::{ControllerEvent, RoleReason};
use crate::handle::Handle;
use crate::info::SwitchInfo;
use crate::options::Options;
use crate::session::{
    Counted, Outcome, PORTS_SHOWN_EVERY, Phase, READY_DEADLINE, Session, may_show_ports,
};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::switch::Switch;
use crate::xid::{self, XidOwner};
use channel::{Connection, DownReason, Event, SendError, Unanswered};
use openflow::message::{Features, MultipartReply, MultipartReplyBody, SwitchConfig};
use openflow::{DatapathId, Message, Version, Xid};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two calls of [`App::tick`] for a switch.
const TICK: Duration = Duration::from_secs(1);

/// The apps of one thread, with the switches at home there.
pub struct Shard {
    apps: Apps,
    shared: Arc<Shared>,
    index: usize,
    started: Instant,
    stats: Stats,
}

impl Shard {
    /// The only shard of a controller that a simulation drives.
    #[must_use]
    pub fn new(apps: Vec<Box<dyn App>>, options: &Options, now: Instant) -> Self {
        let (shared, _) = Shared::new(&Options { shards: 1, ..options.clone() });
        Self::of(shared, 0, apps, now)
    }

    /// One of a controller's shards; its apps get `started`.
    pub(crate) fn of(
        shared: Arc<Shared>,
        index: usize,
        apps: Vec<Box<dyn App>>,
        now: Instant,
    ) -> Self {
        let mut apps = Apps::new(apps, shared.progress(index));
        let handle = Handle::new(Arc::clone(&shared));
        apps.all(|app| app.started(&handle));
        Self { apps, shared, index, started: now, stats: Stats::default() }
    }

    /// A handle of the controller.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Counts of all sessions of this shard.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The session of a new connection; `peer` is its other end, for people.
    #[must_use]
    pub fn session(&self, peer: &str, now: Instant) -> Session {
        Session::new(peer, &self.shared.bounds, now)
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
            Event::Up { .. } => session.ask(connection, Asker::Features),
            Event::Message { xid, message } => {
                self.take_message(session, connection, xid, message, now);
            }
            Event::Refused { .. } => self.stats.refused += 1,
            Event::Down(reason) => {
                let dpid = self.end(session);
                // A session that we end has reported why.
                if reason != DownReason::Closed {
                    session.report(Outcome::Down { dpid, reason });
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
        let Some(version) = connection.version() else { return };
        let bytes = connection.last_message_len();
        let evidence = roles::role_evidence(&message, version);
        match session.answers.take(xid, message, bytes, version, now) {
            Answer::Taken => {}
            Answer::Other(message) => self.hand_over(session, connection, xid, message, now),
            Answer::To(Asker::Features, Ok(Message::FeaturesReply(features))) => {
                self.take_features(session, connection, features, now);
            }
            Answer::To(Asker::Features, answer) => {
                let why = answer.err().map_or_else(String::new, |why| format!(": {why}"));
                session.refuse(connection, format!("it does not send its features{why}"));
            }
            Answer::To(Asker::Role, answer) => {
                self.take_role_answer(session, connection, &answer, now);
            }
            Answer::To(Asker::RoleCheck, answer) => {
                return self.take_checked_role(session, connection, &answer, now);
            }
            Answer::To(Asker::Ports, answer) => self.take_ports(session, connection, answer, now),
            Answer::To(Asker::App | Asker::Handle, Ok(message)) => {
                self.hand_over(session, connection, xid, message, now);
            }
            Answer::To(Asker::App | Asker::Handle, Err(Unanswered::Error(error))) => {
                self.hand_over(session, connection, xid, Message::Error(error), now);
            }
            Answer::To(Asker::App | Asker::Handle, Err(unanswered)) => {
                self.stats.unanswered += 1;
                tracing::debug!(xid = xid.0, %unanswered, "the app's request has no answer");
            }
        }
        if let Some(evidence) = evidence {
            self.apply_role_evidence(session, connection, evidence, now);
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
        if self.shared.shard_of(features.datapath_id) != self.index {
            session.phase = Phase::Migrating(Box::new(features));
            return;
        }
        if features.auxiliary_id != 0 {
            return self.take_auxiliary(session, connection, version, features);
        }
        // Whole packets, and in 1.3 kept in no buffer.
        let config = SwitchConfig { flags: 0, miss_send_len: 0xffff };
        let xid = connection.allocate_xid();
        send(connection, xid, &Message::SetConfig(config), &mut self.stats);
        let switch = Box::new(Switch::new(version, features));
        if version.has_port_desc() {
            session.phase = Phase::Ports(switch);
            session.ask(connection, Asker::Ports);
        } else {
            self.known(session, connection, switch, now);
        }
    }

    /// Goes on with the session of a switch that is at home here, where another shard has left off.
    pub(crate) fn adopt(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
    ) {
        match std::mem::replace(&mut session.phase, Phase::Unknown) {
            Phase::Migrating(features) => self.take_features(session, connection, *features, now),
            other @ (Phase::Unknown
            | Phase::Ports(_)
            | Phase::Standby(_)
            | Phase::Ready(_)
            | Phase::Over) => session.phase = other,
        }
    }

    /// An auxiliary connection has named its switch: the apps get what comes by it as they get what
    /// comes by the main one, and their answers go back by the same way.
    fn take_auxiliary(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        version: Version,
        features: Features,
    ) {
        let (dpid, id) = (features.datapath_id, features.auxiliary_id);
        let Some(main) = self.shared.entry(dpid) else {
            let what =
                format!("auxiliary connection {id} of switch {dpid} comes before the main one");
            return session.refuse(connection, what);
        };
        session.entry = Some(main);
        session.is_auxiliary = true;
        session.report(Outcome::Auxiliary { dpid, id });
        session.phase = Phase::Ports(Box::new(Switch::new(version, features)));
        session.ask(connection, Asker::Ports);
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
            other => tracing::debug!(dpid = %switch.dpid(), ?other, "switch names no ports"),
        }
        if session.is_auxiliary {
            session.phase = Phase::Ready(switch);
            session.next_tick = Some(now + TICK);
            return;
        }
        self.known(session, connection, switch, now);
    }

    fn ready(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        mut switch: Box<Switch>,
        now: Instant,
    ) {
        let (dpid, version) = (switch.dpid(), switch.version());
        switch.take_has_new_ports();
        let info = SwitchInfo {
            dpid,
            version,
            features: switch.shared_features(),
            ports: switch.shared_ports(),
            peer: Arc::clone(&session.peer),
            ready_since: now,
            shard: self.index,
        };
        let event = ControllerEvent::SwitchReady(info.clone());
        let entry = Arc::new(SwitchEntry::new(info, self.shared.bounds.queue_max_bytes));
        session.entry = Some(Arc::clone(&entry));
        if let Some(before) = self.shared.insert(entry) {
            // The old connection is dead or about to be: a switch that comes again has lost it.
            fail(before.close(), &HandleError::NoSwitch(dpid));
            self.apps.all(|app| app.event(None, &ControllerEvent::SwitchDown(dpid)));
        } else {
            self.stats.switches += 1;
        }
        session.report(Outcome::Ready { dpid, version, ports: switch.ports().len() });
        session.phase = Phase::Ready(switch);
        session.next_tick = Some(now + TICK);
        self.handle_with(session, connection, now, |apps, sw| {
            apps.each(sw, |app, sw| app.event(Some(sw), &event));
        });
    }

    /// Hands a message to the handlers of the apps.
    fn hand_over(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        xid: Xid,
        message: Message,
        now: Instant,
    ) {
        if let Message::PacketIn(_) = message {
            self.stats.packet_ins += 1;
            if let Phase::Standby(_) = session.phase {
                self.stats.held_back += 1;
                return;
            }
            if connection.is_full() {
                // The switch does not take what we send as fast as it asks for it.
                self.stats.packet_ins_dropped += 1;
                return;
            }
        } else if let Message::PortStatus(status) = &message {
            self.note_port(session, status);
        } else if let Message::Error(error) = &message {
            self.stats.errors += 1;
            tracing::debug!(peer = %session.peer, xid = xid.0, ?error,
                "the switch refuses a message");
        }
        if let (Phase::Ready(_), Some(entry)) = (&session.phase, &session.entry) {
            let event = ControllerEvent::of_message(entry.dpid, xid, message);
            self.deliver(session, connection, &event, now);
        }
    }

    /// Delivers an event of a switch that is ready to watchers, and to the apps that get it.
    fn deliver(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        event: &ControllerEvent,
        now: Instant,
    ) {
        let Phase::Ready(_) = session.phase else { return };
        self.shared.watchers.broadcast(event);
        if let ControllerEvent::SwitchDown(_) = event {
            return self.deliver_to_all(event);
        }
        let owner = xid::owner(event.xid());
        if let ControllerEvent::Error { xid, error, .. } = event
            && let (XidOwner::Handle, Some(version)) = (owner, connection.version())
            && session.answers.refuse(*xid, version, error)
        {
            return;
        }
        self.handle_with(session, connection, now, |apps, sw| {
            if let ControllerEvent::PortStatus { status, .. } = event {
                sw.take_port_status(status);
            }
            match (owner, event) {
                (XidOwner::App(place), _) => {
                    apps.one(place, sw, |app, sw| app.event(Some(sw), event));
                }
                (XidOwner::Handle, ControllerEvent::Message { .. }) => {}
                (XidOwner::Handle | XidOwner::Other, _) => {
                    apps.each(sw, |app, sw| app.event(Some(sw), event));
                }
            }
        });
    }

    /// Delivers an event that is of no switch's session to all apps.
    pub fn deliver_to_all(&mut self, event: &ControllerEvent) {
        self.apps.all(|app| app.event(None, event));
    }

    /// Runs handlers, if the switch is ready and this session speaks for it, and sends what they
    /// have queued.
    #[inline]
    fn handle_with(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
        run: impl FnOnce(&mut Apps, &mut Switch),
    ) {
        let Phase::Ready(switch) = &mut session.phase else { return };
        if session.entry.as_ref().is_none_or(|entry| entry.is_over()) {
            let what = connected_again(switch.dpid());
            if !connection.is_over() {
                session.refuse(connection, what);
            }
            return;
        }
        switch.set_now(now.saturating_duration_since(self.started));
        run(&mut self.apps, switch);
        for (xid, message) in switch.drain() {
            self.stats.count_sent(&message);
            if let Err(why) = session.answers.expect_of_app(xid, &message, now) {
                tracing::debug!(%why, "the answer will come in parts, if in parts");
            }
            send(connection, xid, &message, &mut self.stats);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
    ) {
        match &session.phase {
            Phase::Over | Phase::Migrating(_) | Phase::Standby(_) => {}
            Phase::Unknown | Phase::Ports(_) => {
                if session.opened + READY_DEADLINE <= now {
                    session.refuse(connection, "it does not say who it is in time".into());
                }
            }
            Phase::Ready(_) => self.run_timers(session, connection, now),
        }
    }

    fn run_timers(&mut self, session: &mut Session, connection: &mut Connection, now: Instant) {
        if session.next_tick.is_some_and(|due| due <= now) {
            session.next_tick = Some(now + TICK);
            self.expire(session, now);
            if session.is_auxiliary {
                return;
            }
            self.handle_with(session, connection, now, |apps, sw| {
                apps.each(sw, |app, sw| app.tick(sw));
            });
        }
        let Phase::Ready(switch) = &session.phase else { return };
        if switch.next_timer().is_some_and(|due| self.started + due <= now) {
            self.handle_with(session, connection, now, |apps, sw| {
                for (timer, place) in sw.take_due_timers() {
                    apps.one(place, sw, |app, sw| app.timer(sw, timer));
                }
            });
        }
    }

    /// Gives up requests, and commands for a switch that takes nothing, after their time.
    fn expire(&mut self, session: &mut Session, now: Instant) {
        let deadline = self.shared.bounds.answer_deadline;
        self.stats.unanswered += session.answers.expire(now, deadline);
        if let Some(entry) = session.entry.as_ref().filter(|_| !session.is_auxiliary)
            && session.stalled_since.is_some_and(|since| since + deadline <= now)
        {
            session.stalled_since = None;
            fail(entry.take_all(), &HandleError::Silent(deadline));
        }
    }

    /// When [`Shard::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self, session: &Session) -> Option<Instant> {
        match &session.phase {
            Phase::Unknown | Phase::Ports(_) => Some(session.opened + READY_DEADLINE),
            Phase::Ready(switch) => {
                let timer = switch.next_timer().map(|due| self.started + due);
                // Those of an auxiliary connection are not shown.
                let has_new_ports = switch.has_new_ports() && !session.is_auxiliary;
                let ports = has_new_ports.then(|| session.ports_shown + PORTS_SHOWN_EVERY);
                [session.next_tick, timer, ports].into_iter().flatten().min()
            }
            Phase::Migrating(_) | Phase::Standby(_) | Phase::Over => None,
        }
    }

    /// To be called after a turn of events: sends what handles have for the switch, as far as there
    /// is room, and shows other threads what has changed.
    pub fn finish_turn(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
    ) {
        self.take_order(session, connection, now);
        if let Phase::Ready(switch) = &mut session.phase
            && let Some(entry) = &session.entry
        {
            if entry.is_over() && !connection.is_over() {
                let what = connected_again(entry.dpid);
                return session.refuse(connection, what);
            }
            let counted = Counted {
                not_forwarded: switch.not_forwarded(),
                beyond_bounds: switch.beyond_bounds(),
            };
            self.stats.not_forwarded += counted.not_forwarded - session.counted.not_forwarded;
            self.stats.beyond_bounds += counted.beyond_bounds - session.counted.beyond_bounds;
            session.counted = counted;
            if !session.is_auxiliary {
                if switch.has_new_ports()
                    && may_show_ports(&mut session.ports_shown, switch.ports().len(), now)
                {
                    switch.take_has_new_ports();
                    entry.update_info(|info| info.ports = switch.shared_ports());
                }
                if entry.has_commands() {
                    self.run_commands(session, connection, now);
                }
            }
        }
        self.shared.publish(self.index, &self.stats);
    }

    fn run_commands(&mut self, session: &mut Session, connection: &mut Connection, now: Instant) {
        let Some(entry) = session.entry.clone() else { return };
        while !connection.is_full() {
            session.stalled_since = None;
            let command = match entry.pop() {
                Some(Queued::Command(command)) => command,
                Some(Queued::Raised(event)) => {
                    self.take_raised(session, connection, event, now);
                    continue;
                }
                None => return,
            };
            let sent = command.sent;
            let Some(bytes) = session.answers.expect_of_handle(entry.dpid, command, now) else {
                continue;
            };
            match connection.send_frame(&bytes) {
                Ok(()) => self.stats += sent,
                Err(_) => self.stats.unsent += 1,
            }
        }
        session.stalled_since.get_or_insert(now);
    }

    /// Ends a session: the switch that it spoke for. Does nothing when it has ended.
    pub fn end(&mut self, session: &mut Session) -> Option<DatapathId> {
        let phase = std::mem::replace(&mut session.phase, Phase::Over);
        // The cluster hears of it.
        session.standby = None;
        if let Phase::Standby(switch) = &phase {
            return Some(switch.dpid());
        }
        let Phase::Ready(switch) = phase else { return None };
        let entry = session.entry.take()?;
        if session.is_auxiliary {
            return None;
        }
        let dpid = switch.dpid();
        let gone = HandleError::NoSwitch(dpid);
        fail(entry.close(), &gone);
        session.answers.fail_all(&gone);
        if self.shared.remove(&entry) {
            self.stats.switches -= 1;
            self.apps.all(|app| app.event(None, &ControllerEvent::SwitchDown(dpid)));
        }
        self.shared.publish(self.index, &self.stats);
        Some(dpid)
    }
}

/// The reason to end a connection for whose switch another one speaks.
fn connected_again(dpid: DatapathId) -> String {
    format!("switch {dpid} has connected again, or its main connection has gone")
}

/// Sends a message of an app; one that the version cannot encode is the app's fault and is logged.
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
