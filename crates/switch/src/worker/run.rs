//! The worker's loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::Nanos;
use datapath::fast::{Caches, Forwarder};
use netdev::PortCounters;
use netdev::sys::event::wait;
use openflow::PortNo;

use super::figures::{Figures, PortPlace, Timer, WorkerState};
use super::ports::Exit;
use super::rest::{Rest, Sleep};
use super::upkeep::Upkeep;
use super::wire::partner;
use super::{Clock, Command, Inbox, Mark, Outbox, Ports, Slot, Upcall, Waiting};
use crate::config::{Poll, Wire};
use crate::counters::{Counter, Counters};

/// Frames taken from one port before the next has its turn: long enough to share the cost of a
/// system call, short enough that a busy port delays the others by microseconds.
pub(super) const RX_BATCH: usize = 64;

/// Full batches taken from one port without a system call before the next has its turn. The clock
/// and the look at commands and other ports took 1 ns a frame when they came with every batch.
const FULL_BATCHES: usize = 4;

/// Commands carried out before the ports have their turn. A change of the tables takes less than a
/// microsecond, so that packets wait for some ten, for which the smallest of rings has room.
const COMMAND_BATCH: usize = 32;

/// Counts moved to the shared counters before the ports have their turn.
const FOLD_BATCH: usize = 256;

/// What forwards.
pub(crate) enum Forwarding {
    /// Flow tables.
    Tables(Box<Forwarder>),
    /// Pairs of ports.
    Wire(Wire),
}

/// What a worker is made of.
pub(crate) struct Parts {
    /// Which, from 0.
    pub(crate) index: usize,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
    /// How it waits.
    pub(crate) poll: Poll,
    /// The time of the whole switch.
    pub(crate) clock: Clock,
    /// What forwards.
    pub(crate) forwarding: Forwarding,
    /// Its ports.
    pub(crate) ports: Ports,
    /// The way to it.
    pub(crate) inbox: Arc<Inbox>,
    /// The way from it.
    pub(crate) outbox: Arc<Outbox>,
    /// The switch's counters.
    pub(crate) counters: Arc<Counters>,
}

/// A forwarding thread: see the module.
pub(crate) struct Worker {
    index: usize,
    cpu: Option<usize>,
    clock: Clock,
    forwarding: Forwarding,
    pub(crate) ports: Ports,
    pub(super) counters: Arc<Counters>,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    pub(super) up: Waiting,
    pub(super) upkeep: Upkeep,
    rest: Rest,
    figures: Figures,
    commands: VecDeque<Command>,
    /// Who waits for the fold that is being done.
    folding: Vec<Mark>,
    stopped: bool,
}

impl Worker {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            index: parts.index,
            cpu: parts.cpu,
            clock: parts.clock,
            forwarding: parts.forwarding,
            ports: parts.ports,
            counters: parts.counters,
            inbox: parts.inbox,
            outbox: parts.outbox,
            up: Waiting::default(),
            upkeep: Upkeep::new(Instant::now()),
            rest: Rest::new(parts.poll),
            figures: Figures::default(),
            commands: VecDeque::new(),
            folding: Vec::new(),
            stopped: false,
        }
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> WorkerState {
        let slots = self.ports.slots();
        let is_wire = matches!(self.forwarding, Forwarding::Wire(_));
        let place = |(index, slot): (usize, &Slot)| PortPlace {
            number: slot.number,
            spec: slot.spec.to_string(),
            leaves_by: slots
                .get(partner(index, slots.len()))
                .filter(|_| is_wire)
                .map(|other| other.number),
        };
        WorkerState {
            index: self.index,
            cpu: self.cpu,
            ports: slots.iter().enumerate().map(place).collect(),
            figures: self.figures.read(),
            forwarder: match &self.forwarding {
                Forwarding::Tables(forwarder) => Some((forwarder.caches(), forwarder.figures())),
                Forwarding::Wire(_) => None,
            },
        }
    }

    /// Says which caches are to be used from now on.
    pub(crate) fn set_caches(&mut self, caches: Caches) {
        match &mut self.forwarding {
            Forwarding::Tables(forwarder) => forwarder.set_caches(caches),
            Forwarding::Wire(_) => {}
        }
    }

    /// What its ports' devices have counted, and the frames that found no room at them.
    pub(crate) fn port_counters(&mut self) -> Vec<(PortNo, PortCounters, u64)> {
        let slots = self.ports.slots_mut().iter_mut();
        slots.map(|slot| (slot.number, slot.counters(), slot.tx_refused)).collect()
    }

    /// Forwards until it is told to stop, then closes the ports.
    pub(crate) fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.outbox));
        let begun = Instant::now();
        let mut before = begun;
        while !self.stopped {
            let now = Instant::now();
            let time = self.clock.at(now);
            let released = self.ports.release(time);
            self.figures.sent.add(released as u64);
            let mut worked = released > 0;
            worked |= self.carry_out(time);
            worked |= self.forward(now, time);
            worked |= self.fold();
            worked |= self.upkeep(now);
            self.hand_up();
            self.figures.rounds.add(1);
            if worked {
                self.rest.worked();
            } else {
                self.figures.idle_ns.add(nanos(now.duration_since(before)));
                match self.rest.idle(self.ports.all_wake()) {
                    Sleep::No => {}
                    Sleep::UntilWoken => self.sleep(now, Duration::MAX),
                    Sleep::Nap(nap) => self.sleep(now, nap),
                }
            }
            before = now;
            self.figures.lived_ns.set(nanos(now.duration_since(begun)));
        }
    }

    /// Carries out a batch of the commands that wait; whether there were any.
    fn carry_out(&mut self, time: Nanos) -> bool {
        if self.commands.is_empty() {
            self.inbox.take(&mut self.commands);
        }
        let count = self.commands.len().min(COMMAND_BATCH);
        if count == 0 {
            return false;
        }
        let mut is_to_send = false;
        for _ in 0..count {
            let Some(command) = self.commands.pop_front() else { break };
            is_to_send |= matches!(command, Command::PacketOut(_));
            self.carry_out_one(command, time);
        }
        if is_to_send {
            self.figures.sent.add(self.ports.flush() as u64);
        }
        self.inbox.done(count);
        self.figures.commands.add(count as u64);
        true
    }

    fn carry_out_one(&mut self, command: Command, time: Nanos) {
        match (command, &mut self.forwarding) {
            (Command::Op(op), Forwarding::Tables(forwarder)) => forwarder.apply(op, time),
            (Command::PacketOut(packet), Forwarding::Tables(forwarder)) => {
                let (request, packet_out) = *packet;
                let mut exit = Exit { ports: &mut self.ports, up: &mut self.up };
                if let Err(error) = forwarder.packet_out(&packet_out, time, &mut exit) {
                    self.up.upcalls.push(Upcall::Refused(request, error));
                }
            }
            (Command::Fold(mark), _) => self.folding.push(mark),
            (Command::Reach(mark), _) => {
                self.figures.sent.add(self.ports.flush() as u64);
                self.up.upcalls.push(Upcall::Reached(mark));
            }
            (Command::Ask(question), _) => question(self),
            (Command::Stop, _) => self.stopped = true,
            // The agent of a wire has no tables and sends no such commands.
            (Command::Op(_) | Command::PacketOut(_), Forwarding::Wire(_)) => {}
        }
    }

    /// Takes a batch from every port and forwards it; whether there was any frame.
    fn forward(&mut self, now: Instant, time: Nanos) -> bool {
        let mut worked = self.ports.accept();
        if worked {
            self.figures.sent.add(self.ports.flush() as u64);
        }
        // What waits for a fold or for commands waits for no more than a batch: a fold ends only
        // where it takes more counts than packets bring.
        let is_asked = !self.folding.is_empty() || !self.commands.is_empty();
        for index in 0..self.ports.slots().len() {
            let is_alone = !is_asked && self.ports.is_polled(index);
            let batches = if is_alone { FULL_BATCHES } else { 1 };
            for _ in 0..batches {
                let count = self.forward_batch(index, now, time);
                worked |= count > 0;
                if count < RX_BATCH {
                    break;
                }
            }
        }
        worked
    }

    /// Takes a batch from a port and forwards it; how many frames.
    #[inline]
    fn forward_batch(&mut self, index: usize, now: Instant, time: Nanos) -> usize {
        let timer = Timer::begin(&self.figures);
        if let Forwarding::Wire(Wire::Io) = self.forwarding
            && let Some(count) = self.ports.relay(index)
        {
            self.figures.passed(count, &timer);
            return count;
        }
        let Some((in_port, mut frames)) = self.ports.receive(index, now) else { return 0 };
        let count = frames.len();
        let received = timer.lap();
        match &mut self.forwarding {
            Forwarding::Tables(forwarder) => {
                let mut exit = Exit { ports: &mut self.ports, up: &mut self.up };
                forwarder.process_batch(&mut frames, in_port, time, &mut exit);
            }
            Forwarding::Wire(wire) => self.ports.carry(index, *wire, &mut frames),
        }
        self.ports.take_back(frames);
        let decided = timer.lap();
        self.figures.sent.add(self.ports.flush() as u64);
        timer.end(count, received, decided);
        self.figures.batches.add(1);
        self.figures.packets.add(count as u64);
        count
    }

    /// Goes on with a fold; whether there is one.
    fn fold(&mut self) -> bool {
        if self.folding.is_empty() {
            return false;
        }
        let is_done = match &mut self.forwarding {
            Forwarding::Tables(forwarder) => !forwarder.fold_some(FOLD_BATCH),
            Forwarding::Wire(_) => true,
        };
        if is_done {
            self.up.upcalls.extend(self.folding.drain(..).map(Upcall::Reached));
        }
        true
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

    /// Sleeps until a port has something, a command or another worker's frames come, or something
    /// is due, and no longer than `most`.
    fn sleep(&mut self, now: Instant, most: Duration) {
        let release = self.ports.next_release().map(|at| self.clock.moment(at));
        let due = self.next_due();
        let due = release.map_or(due, |release| release.min(due));
        let timeout = due.saturating_duration_since(now).min(most);
        if timeout.is_zero() || !self.inbox.may_sleep() {
            return;
        }
        if self.ports.is_handed() {
            self.inbox.awake();
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
        self.figures.asleep_ns.add(nanos(begun.elapsed()));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the agent that the worker has ended, however it ended.
struct Ended(Arc<Outbox>);

impl Drop for Ended {
    fn drop(&mut self) {
        let upcalls = vec![Upcall::Stopped];
        self.0.send(&mut Waiting { packets: Vec::new(), upcalls });
    }
}
