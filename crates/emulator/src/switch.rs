//! One emulated switch, without input and output: what it answers, what it asks, what it counts.
//!
//! Answers to packet-ins are not decoded: the number that says which packet-in it answers is read
//! where it stands, so that the emulator does less for a packet than the fastest controller. Of
//! every kind the first answers of a connection are decoded all the same, and then one of a few
//! hundred: a flow-mod that does not parse is answered with the protocol's error and counted. The
//! clock is an argument. It must never wait for an answer for ever.

use std::collections::VecDeque;
use std::rc::Rc;

use channel::{Connection, Event};
use openflow::message::MultipartReplyBody;
use openflow::{Message, MessageKind, Version};
use wire::MessageHeader;

use crate::hosts::Hosts;
use crate::layout::{Answer, AnswerLayout, PacketIns};
use crate::outstanding::Outstanding;
use crate::replies::{Identity, Reply};
use crate::tally::{Progress, Tally};

/// A controller that has not asked for the ports by then will not.
const PORTS_WAIT_NS: u64 = 300_000_000;
/// A first packet-in is sent again after this time: it may have come before the app was told of the
/// switch.
const GREET_AGAIN_NS: u64 = 500_000_000;
/// A packet-in has no answer when none has come to any for this time.
const GIVE_UP_NS: u64 = 2_000_000_000;

/// Number of the first answers that are all decoded; of the later ones, one in this many.
const CHECKED_FIRST: u64 = 64;
const CHECKED_EVERY: u64 = 256;

/// Common phase of all switches; nanoseconds since a beginning that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connect, tell who they are, and wait for the answer to a first packet-in.
    Greet,
    /// Announce their hosts.
    Learn,
    /// Send packet-ins; those between both times are measured.
    Load {
        /// The first moment that counts.
        from_ns: u64,
        /// The first that does not count any more; nothing is sent from then on.
        until_ns: u64,
    },
    /// Wait for what is not answered yet.
    Drain,
    /// Go.
    Stop,
}

/// When packet-ins are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as fewer than this number wait for an answer, at each switch.
    Window(u32),
    /// So many a second over all switches, whether or not there are answers.
    Rate(f64),
}

/// Common state of the switches of a thread.
#[derive(Debug)]
pub struct EmulationPlan {
    /// The version that they speak.
    pub version: Version,
    /// Reads answers.
    pub layout: AnswerLayout,
    /// Makes packet-ins.
    pub packet_ins: PacketIns,
    /// Hosts behind each.
    pub hosts: u32,
    /// Ports of each.
    pub ports: u32,
    /// When packet-ins are sent.
    pub pace: Pace,
    /// Packet-ins that may wait for an answer while hosts are announced.
    pub learn_window: u32,
    /// Room for those that wait, of each.
    pub room: u32,
    /// Whether the time to each answer is kept.
    pub keeps_times: bool,
}

/// Stage of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Its features were not asked for.
    New,
    /// They were told.
    Described,
    /// A packet-in was answered.
    Served,
    /// All hosts were announced.
    Learned,
}

/// One switch.
#[derive(Debug)]
pub(crate) struct EmulatedSwitch {
    common: Rc<EmulationPlan>,
    identity: Identity,
    hosts: Hosts,
    outstanding: Outstanding,
    stage: Stage,
    phase: Phase,
    /// Window of the measurement, once its ends are known.
    window_ns: std::ops::Range<u64>,
    /// When it first began to connect.
    began_ns: u64,
    features_ns: Option<u64>,
    knows_ports: bool,
    greeted_ns: Option<u64>,
    /// When an answer came last, or what is awaited was sent.
    moved_ns: u64,
    next_host: u32,
    announced: u32,
    answers: u64,
    has_drained: bool,
    frame: Vec<u8>,
}

impl EmulatedSwitch {
    /// The switch of this number, from 0, which began to connect then.
    pub(crate) fn new(common: Rc<EmulationPlan>, number: u32, began_ns: u64) -> Self {
        let hosts = Hosts { switch: number, count: common.hosts, ports: common.ports };
        Self {
            identity: Identity::new(common.version, number, common.ports),
            hosts,
            outstanding: Outstanding::new(common.room),
            stage: Stage::New,
            phase: Phase::Greet,
            window_ns: 0..0,
            began_ns,
            features_ns: None,
            knows_ports: !common.version.has_port_desc(),
            greeted_ns: None,
            moved_ns: began_ns,
            next_host: 0,
            announced: 0,
            answers: 0,
            has_drained: false,
            frame: Vec::new(),
            common,
        }
    }

    /// All switches do this now.
    pub(crate) fn enter(&mut self, phase: Phase, now_ns: u64) {
        self.phase = phase;
        self.moved_ns = now_ns;
        if let Phase::Load { from_ns, until_ns } = phase {
            self.window_ns = from_ns..until_ns;
        }
    }

    /// Whether the controller serves it.
    pub(crate) fn is_served(&self) -> bool {
        self.stage >= Stage::Served
    }

    /// Counts an answer, and says whether that is all that has to be done with it.
    #[inline]
    pub(crate) fn take(
        &mut self,
        header: MessageHeader,
        bytes: &[u8],
        now_ns: u64,
        tally: &mut Tally,
        progress: &Progress,
    ) -> bool {
        let Some(answer) = self.common.layout.read(header, bytes) else { return false };
        let is_measured = self.window_ns.contains(&now_ns);
        let number = match answer {
            Answer::Own => {
                tally.oddities.own += 1;
                return false;
            }
            Answer::PacketOut(number) => {
                tally.packet_outs += u64::from(is_measured);
                number
            }
            Answer::FlowMod(number) => {
                tally.flow_mods += u64::from(is_measured);
                number
            }
        };
        self.answers += 1;
        match number.map(|number| self.outstanding.answer(number)) {
            Some(Some(due_ns)) => {
                tally.answered += u64::from(is_measured);
                self.count_answer(due_ns, now_ns, tally, progress);
            }
            Some(None) => tally.oddities.further += 1,
            None => {}
        }
        self.answers > CHECKED_FIRST && !self.answers.is_multiple_of(CHECKED_EVERY)
    }

    fn count_answer(&mut self, due_ns: u64, now_ns: u64, tally: &mut Tally, progress: &Progress) {
        self.moved_ns = now_ns;
        if self.common.keeps_times && self.window_ns.contains(&due_ns) {
            tally.times.record(now_ns.saturating_sub(due_ns));
        }
        if self.stage == Stage::Described {
            self.stage = Stage::Served;
            tally.served.record(now_ns.saturating_sub(self.began_ns));
            Progress::count(&progress.served);
        }
    }

    /// Handles what is no plain answer.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        connection: &mut Connection,
        now_ns: u64,
        tally: &mut Tally,
        progress: &Progress,
    ) {
        let (xid, message) = match event {
            Event::Message { xid, message } => (xid, message),
            Event::Refused { .. } => {
                tally.oddities.malformed += 1;
                return;
            }
            Event::Up { .. } | Event::Down(_) => return,
        };
        if let Message::Error(error) = &message {
            tally.oddities.errors += 1;
            tracing::debug!(?error, "the controller sends an error");
        }
        let sent = match self.identity.reply(&message) {
            Reply::None => return,
            Reply::Message(reply) => {
                tally.oddities.requests += 1;
                self.note_reply(&reply, now_ns, tally, progress);
                connection.send_as(xid, &reply)
            }
            Reply::Refusal(error) => {
                tally.oddities.requests += 1;
                connection.refuse(xid, error)
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "an answer was not sent");
        }
    }

    /// A reply tells who the switch is.
    fn note_reply(&mut self, reply: &Message, now_ns: u64, tally: &mut Tally, progress: &Progress) {
        if reply.kind() == MessageKind::FeaturesReply && self.features_ns.is_none() {
            self.features_ns = Some(now_ns);
            tally.described.record(now_ns.saturating_sub(self.began_ns));
            Progress::count(&progress.described);
        }
        if let Message::MultipartReply(reply) = reply {
            self.knows_ports |= matches!(reply.body, MultipartReplyBody::PortDesc(_));
        }
    }

    /// Sends what is due, and says how far the switch is. `due` has the times of packet-ins at a
    /// rate; those that find no room among the outstanding ones are counted as not sent.
    pub(crate) fn fill(
        &mut self,
        connection: &mut Connection,
        due: &mut VecDeque<u64>,
        now_ns: u64,
        tally: &mut Tally,
        progress: &Progress,
    ) {
        let may_send = !self.identity.is_slave() && connection.version().is_some();
        match self.phase {
            Phase::Greet if may_send => self.greet(connection, now_ns),
            Phase::Learn if may_send && self.stage == Stage::Served => {
                self.announce(connection, now_ns, tally, progress);
            }
            Phase::Load { until_ns, .. } if may_send && now_ns < until_ns && self.is_served() => {
                match self.common.pace {
                    Pace::Window(window) => self.refill(window, connection, now_ns, tally),
                    Pace::Rate(_) => self.send_due(connection, due, now_ns, tally),
                }
            }
            Phase::Drain if !self.has_drained && self.outstanding.waiting() == 0 => {
                self.has_drained = true;
                Progress::count(&progress.drained);
            }
            Phase::Greet | Phase::Learn | Phase::Load { .. } | Phase::Drain | Phase::Stop => {}
        }
    }

    /// Sends a first packet-in once the controller knows who the switch is, and again and again.
    fn greet(&mut self, connection: &mut Connection, now_ns: u64) {
        let Some(features_ns) = self.features_ns else { return };
        if !self.knows_ports && now_ns < features_ns + PORTS_WAIT_NS {
            return;
        }
        if self.stage == Stage::New {
            self.stage = Stage::Described;
        }
        let is_due = self.greeted_ns.is_none_or(|at| at + GREET_AGAIN_NS <= now_ns);
        if self.stage == Stage::Described && is_due {
            // One that came before the app was told of the switch is the app's to leave out.
            self.outstanding.give_up().for_each(drop);
            self.greeted_ns = Some(now_ns);
            self.send(true, 0, now_ns, connection);
        }
    }

    fn announce(
        &mut self,
        connection: &mut Connection,
        now_ns: u64,
        tally: &mut Tally,
        progress: &Progress,
    ) {
        self.give_up_when_late(now_ns, tally);
        let window = self.common.learn_window;
        while self.announced < self.hosts.count && self.outstanding.waiting() < window {
            if !self.send(true, self.announced, now_ns, connection) {
                return;
            }
            self.announced += 1;
        }
        if self.announced == self.hosts.count && self.outstanding.waiting() == 0 {
            self.stage = Stage::Learned;
            Progress::count(&progress.learned);
        }
    }

    /// Sends until `window` packet-ins wait.
    fn refill(&mut self, window: u32, connection: &mut Connection, now_ns: u64, tally: &mut Tally) {
        self.give_up_when_late(now_ns, tally);
        while self.outstanding.waiting() < window {
            if !self.send(false, self.next_host, now_ns, connection) {
                return;
            }
            self.step();
        }
    }

    /// Sends what the pacer found due.
    fn send_due(
        &mut self,
        connection: &mut Connection,
        due: &mut VecDeque<u64>,
        now_ns: u64,
        tally: &mut Tally,
    ) {
        while let Some(due_ns) = due.pop_front() {
            if !self.send(false, self.next_host, due_ns, connection) {
                tally.oddities.unsent += 1;
                continue;
            }
            self.step();
            if self.window_ns.contains(&due_ns) {
                tally.lateness.record(now_ns.saturating_sub(due_ns));
            }
        }
    }

    fn step(&mut self) {
        self.next_host += 1;
        if self.next_host == self.hosts.count {
            self.next_host = 0;
        }
    }

    /// Sends a packet-in that was due then; `false` when there is no room for it.
    fn send(&mut self, announces: bool, host: u32, due_ns: u64, out: &mut Connection) -> bool {
        let Some(number) = self.outstanding.issue(due_ns) else { return false };
        let (packet_ins, hosts) = (&self.common.packet_ins, &self.hosts);
        if announces {
            packet_ins.announce(&mut self.frame, hosts, host, number);
        } else {
            packet_ins.address(&mut self.frame, hosts, host, number);
        }
        out.send_frame(&self.frame).is_ok()
    }

    /// Waits no longer for what the controller will not answer.
    fn give_up_when_late(&mut self, now_ns: u64, tally: &mut Tally) {
        if self.outstanding.waiting() > 0 && self.moved_ns + GIVE_UP_NS <= now_ns {
            tally.oddities.unanswered += self.outstanding.give_up().count() as u64;
            self.moved_ns = now_ns;
        }
    }

    /// When [`EmulatedSwitch::fill`] has something to do although nothing has come.
    pub(crate) fn wakes_at_ns(&self) -> Option<u64> {
        let waits = self.outstanding.waiting() > 0;
        match (self.phase, self.stage, self.common.pace) {
            (Phase::Greet, Stage::New, _) => Some(self.features_ns? + PORTS_WAIT_NS),
            (Phase::Greet, Stage::Described, _) => Some(self.greeted_ns? + GREET_AGAIN_NS),
            (Phase::Learn, _, _) | (Phase::Load { .. }, _, Pace::Window(_)) => {
                waits.then_some(self.moved_ns + GIVE_UP_NS)
            }
            (Phase::Greet | Phase::Drain | Phase::Stop, _, _)
            | (Phase::Load { .. }, _, Pace::Rate(_)) => None,
        }
    }

    /// The connection is over: what was not answered never will be, and has taken at least until
    /// now, so that a controller does not look faster for what it leaves out.
    pub(crate) fn finish(&mut self, now_ns: u64, tally: &mut Tally) {
        for due_ns in self.outstanding.give_up() {
            tally.oddities.unanswered += 1;
            if self.common.keeps_times && self.window_ns.contains(&due_ns) {
                tally.times.record(now_ns.saturating_sub(due_ns));
            }
        }
    }
}
