//! The worker's loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::{Datapath, Nanos, Out, Verdict};
use netdev::sys::event::wait;
use openflow::message::SwitchDesc;
use openflow::{DatapathId, PortNo};
use packet::PacketBuf;

use super::figures::Figures;
use super::rest::{Rest, Sleep};
use super::upkeep::Upkeep;
use super::wire::partner;
use super::{Command, Inbox, Outbox, PortPlace, Ports, Slot, Upcall, Waiting, WorkerState};
use crate::config::{Forward, Poll, Wire};
use crate::counters::{Counter, Counters};

/// Frames taken from one port before the next has its turn: long enough to share the cost of a
/// system call, short enough that a busy port delays the others by microseconds.
pub(super) const RX_BATCH: usize = 64;

/// Commands carried out before the ports have their turn: a packet-out takes about a microsecond,
/// so that packets wait for a fraction of a millisecond.
const COMMAND_BATCH: usize = 256;

/// Who the switch is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its datapath id.
    pub(crate) dpid: DatapathId,
    /// Its description.
    pub(crate) desc: SwitchDesc,
}

/// The worker's thread: see the module.
pub(crate) struct Worker {
    pub(crate) identity: Identity,
    pub(crate) datapath: Box<dyn Datapath>,
    pub(crate) ports: Ports,
    pub(crate) counters: Arc<Counters>,
    pub(super) inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    pub(super) up: Waiting,
    pub(super) out: Out,
    pub(super) upkeep: Upkeep,
    epoch: Instant,
    received: Vec<PacketBuf>,
    taken: Vec<Command>,
    stopped: bool,
    wire: Option<Wire>,
    cpu: Option<usize>,
    rest: Rest,
    figures: Arc<Figures>,
}

impl Worker {
    pub(crate) fn new(
        identity: Identity,
        mut datapath: Box<dyn Datapath>,
        ports: Ports,
        (inbox, outbox): (Arc<Inbox>, Arc<Outbox>),
        counters: Arc<Counters>,
    ) -> Self {
        let epoch = Instant::now();
        for slot in ports.slots() {
            datapath.port_set(slot.desc(slot.settings), Nanos(0));
        }
        Self {
            identity,
            datapath,
            ports,
            counters,
            inbox,
            outbox,
            up: Waiting::default(),
            out: Out::new(),
            upkeep: Upkeep::new(epoch),
            epoch,
            received: Vec::new(),
            taken: Vec::new(),
            stopped: false,
            wire: None,
            cpu: None,
            rest: Rest::new(Poll::Adaptive),
            figures: Arc::default(),
        }
    }

    /// What forwards, and how it waits.
    pub(crate) fn with_policy(mut self, forward: Forward, poll: Poll, cpu: Option<usize>) -> Self {
        self.cpu = cpu;
        self.wire = match forward {
            Forward::Openflow => None,
            Forward::Wire(wire) => Some(wire),
        };
        self.rest = Rest::new(poll);
        self
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> WorkerState {
        let slots = self.ports.slots();
        let place = |(index, slot): (usize, &Slot)| PortPlace {
            number: slot.number,
            spec: slot.spec.to_string(),
            leaves_by: self
                .wire
                .and_then(|_| slots.get(partner(index, slots.len())))
                .map(|other| other.number),
        };
        let ports = slots.iter().enumerate().map(place).collect();
        WorkerState { index: 0, cpu: self.cpu, ports, figures: self.figures.read() }
    }

    /// The time for the datapath.
    pub(crate) fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Forwards until it is told to stop, then closes the ports.
    pub(crate) fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.outbox));
        let mut commands = VecDeque::new();
        let mut before = Instant::now();
        while !self.stopped {
            let mut worked = self.carry_out(&mut commands);
            let now = Instant::now();
            worked |= self.forward(now);
            worked |= self.upkeep(now);
            self.hand_up();
            self.figures.rounds.add(1);
            if worked {
                self.rest.worked();
            } else {
                self.figures.idle_ns.add(now.duration_since(before).as_nanos() as u64);
                match self.rest.idle(self.ports.all_wake()) {
                    Sleep::No => {}
                    Sleep::UntilWoken => self.sleep(now, Duration::MAX),
                    Sleep::Nap(nap) => self.sleep(now, nap),
                }
            }
            before = now;
            self.figures.lived_ns.set(self.now().0);
        }
    }

    /// Carries out a batch of the commands that wait; whether there were any.
    fn carry_out(&mut self, commands: &mut VecDeque<Command>) -> bool {
        if commands.is_empty() {
            self.inbox.take(&mut self.taken);
            commands.extend(self.taken.drain(..));
        }
        let count = commands.len().min(COMMAND_BATCH);
        if count == 0 {
            return false;
        }
        for command in commands.drain(..count) {
            match command {
                Command::Message(request, message) => self.answer(request, message),
                Command::Treat(treatment) => {
                    let mut settings = self.datapath.settings();
                    settings.miss = treatment.miss;
                    settings.invalid_ttl_to_controller = treatment.invalid_ttl;
                    self.datapath.set_settings(settings);
                }
                Command::Ask(question) => question(self),
                Command::Stop => self.stopped = true,
            }
        }
        self.inbox.done(count);
        self.figures.commands.add(count as u64);
        self.ports.flush();
        true
    }

    /// Takes a batch from every port and forwards it; whether there was any frame.
    fn forward(&mut self, now: Instant) -> bool {
        let time = self.now();
        let mut worked = false;
        for index in 0..self.ports.slots().len() {
            if let Some(wire) = self.wire {
                worked |= self.ports.carry(index, wire, now, &self.figures);
                continue;
            }
            let Some(in_port) = self.receive(index, now) else { continue };
            worked = true;
            self.figures.batches.add(1);
            self.figures.packets.add(self.received.len() as u64);
            let mut received = std::mem::take(&mut self.received);
            for frame in received.drain(..) {
                self.datapath.process(frame, in_port, time, &mut self.out);
                self.carry_verdicts();
            }
            self.received = received;
            self.ports.flush();
        }
        worked
    }

    /// Takes a batch from one port into `received`; the port's number when there is any frame.
    fn receive(&mut self, index: usize, now: Instant) -> Option<PortNo> {
        let slot = self.ports.slots.get_mut(index)?;
        if slot.receive(&mut self.ports.batch, now, &self.counters) == 0 {
            return None;
        }
        self.received.extend(self.ports.batch.drain());
        Some(slot.number)
    }

    /// Does what the datapath's verdicts say.
    pub(super) fn carry_verdicts(&mut self) {
        for verdict in self.out.drain() {
            match verdict {
                Verdict::Output { port, queue: _, frame } => self.ports.queue(port, frame),
                Verdict::PacketIn { message, max_len: _ } => self.up.packets.push(message),
                // The datapath has counted it under its reason.
                Verdict::Drop { reason: _ } => {}
            }
        }
    }

    /// Hands packet-ins and upcalls to the agent; what finds no room is dropped and counted.
    fn hand_up(&mut self) {
        if self.up.is_empty() {
            return;
        }
        self.outbox.send(&mut self.up);
        let dropped = self.up.packets.len() as u64;
        if dropped > 0 {
            self.counters.add(Counter::PacketInQueueFull, dropped);
            self.up.packets.clear();
        }
    }

    /// Sleeps until a port has something, a command comes, or something is due, and no longer than
    /// `most`.
    fn sleep(&mut self, now: Instant, most: Duration) {
        let timeout = self.next_due().saturating_duration_since(now).min(most);
        if timeout.is_zero() || !self.inbox.may_sleep() {
            return;
        }
        let mut fds = Vec::with_capacity(self.ports.slots().len() + 1);
        fds.push(self.inbox.fd());
        for slot in self.ports.slots() {
            if let (Some(port), None) = (&slot.port, slot.quiet_until) {
                fds.extend(port.fd());
            }
        }
        let begun = Instant::now();
        if let Err(error) = wait(&fds, Some(timeout)) {
            tracing::warn!(%error, "sleeping on the ports failed");
            self.counters.bump(Counter::PortError);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.inbox.awake();
        self.figures.sleeps.add(1);
        self.figures.asleep_ns.add(begun.elapsed().as_nanos() as u64);
    }
}

/// Tells the agent that the worker has ended, however it ended.
struct Ended(Arc<Outbox>);

impl Drop for Ended {
    fn drop(&mut self) {
        let upcalls = vec![Upcall::Stopped];
        self.0.send(&mut Waiting { packets: Vec::new(), upcalls });
    }
}
