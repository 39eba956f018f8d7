//! A bridge's branch on one worker: its ports there and a forwarder of its own.
//!
//! Nothing of it is shared with the branches of other bridges but the thread that serves them in
//! turns and the buffers that it lends. What one turn takes is bounded, so that no bridge holds up
//! another one for longer than a batch of frames or of commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use datapath::Nanos;
use datapath::fast::{Caches, Forwarder};
use netdev::PortCounters;
use openflow::PortNo;
use packet::Batch;

use super::figures::{PortPlace, Seat, Timer, WorkerState};
use super::ports::Exit;
use super::wire::partner;
use super::{Command, Inbox, Mark, Outbox, Ports, Slot, Upcall, Waiting};
use crate::config::Wire;
use crate::counters::{Counter, Counters};

/// Frames taken from one port before the next has its turn: long enough to share the cost of a
/// system call, short enough that a busy port delays the others by microseconds.
pub(super) const RX_BATCH: usize = 64;

/// Full batches taken from one port without a system call before the next has its turn. The clock
/// and the look at commands and other ports took 1 ns a frame when they came with every batch.
const FULL_BATCHES: usize = 4;

/// Commands carried out before the ports have their turn. A change of the tables takes less than a
/// microsecond, so that packets wait for some ten, for which the smallest of rings has room.
pub(super) const COMMAND_BATCH: usize = 32;

/// Counts moved to the shared counters before the ports have their turn.
const FLUSH_BATCH: usize = 256;

/// What forwards.
pub(crate) enum Forwarding {
    /// Flow tables.
    Tables(Box<Forwarder>),
    /// Pairs of ports.
    Wire(Wire),
}

/// What a branch is made of.
pub(crate) struct BranchParts {
    /// The bridge's name in the log, where there are several.
    pub(crate) bridge: Option<Arc<str>>,
    /// What forwards.
    pub(crate) forwarding: Forwarding,
    /// Its ports.
    pub(crate) ports: Ports,
    /// The way to it.
    pub(crate) inbox: Arc<Inbox>,
    /// The way from it.
    pub(crate) outbox: Arc<Outbox>,
    /// The bridge's counters.
    pub(crate) counters: Arc<Counters>,
}

/// See the module.
pub(crate) struct Branch {
    pub(super) bridge: Option<Arc<str>>,
    seat: Arc<Seat>,
    forwarding: Forwarding,
    pub(super) ports: Ports,
    pub(super) counters: Arc<Counters>,
    pub(super) inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    pub(super) up: Waiting,
    /// Commands may have come that were not taken.
    has_mail: bool,
    commands: VecDeque<Command>,
    /// Who waits for the flush that is being done.
    flushing: Vec<Mark>,
    /// On the worker's lists, see there.
    pub(super) is_attended: bool,
    pub(super) is_held: bool,
    pub(super) is_troubled: bool,
    /// The worker is to end.
    pub(super) stops: bool,
}

impl Branch {
    /// On the worker of this seat.
    pub(super) fn new(parts: BranchParts, seat: Arc<Seat>) -> Self {
        Self {
            bridge: parts.bridge,
            seat,
            forwarding: parts.forwarding,
            ports: parts.ports,
            counters: parts.counters,
            inbox: parts.inbox,
            outbox: parts.outbox,
            up: Waiting::default(),
            has_mail: false,
            commands: VecDeque::new(),
            flushing: Vec::new(),
            is_attended: false,
            is_held: false,
            is_troubled: false,
            stops: false,
        }
    }

    /// How bridge and worker are doing.
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
            index: self.seat.index,
            cpu: self.seat.cpu,
            poll: self.seat.poll,
            ports: slots.iter().enumerate().map(place).collect(),
            figures: self.seat.figures.read(),
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

    fn flush(&mut self) {
        self.seat.figures.sent.add(self.ports.flush() as u64);
    }

    /// Somebody has called: takes at once what other workers hand over; whether they did.
    pub(super) fn called(&mut self, buffers: &mut Batch, time: Nanos) -> bool {
        self.inbox.answer();
        self.has_mail = true;
        self.ports.set_time(time);
        self.ports.lend(buffers);
        let handed = self.ports.accept();
        if handed {
            self.flush();
        }
        self.ports.lend(buffers);
        handed
    }

    /// Sends what the queues of its ports let go by now; whether there was anything.
    pub(super) fn release(&mut self, buffers: &mut Batch, time: Nanos) -> bool {
        self.ports.set_time(time);
        self.ports.lend(buffers);
        let released = self.ports.release();
        self.ports.lend(buffers);
        self.seat.figures.sent.add(released as u64);
        released > 0
    }

    /// Carries out a batch of the commands that wait, and goes on with a flush; how many commands
    /// that was, a piece of a flush counting as a batch.
    pub(super) fn attend(&mut self, buffers: &mut Batch, time: Nanos) -> usize {
        self.ports.set_time(time);
        self.ports.lend(buffers);
        let mut done = self.carry_out(time);
        self.ports.lend(buffers);
        if self.flush_counters() {
            done += COMMAND_BATCH;
        }
        done
    }

    /// Whether [`Branch::attend`] has more to do.
    pub(super) fn waits(&self) -> bool {
        self.has_mail || !self.commands.is_empty() || !self.flushing.is_empty()
    }

    fn carry_out(&mut self, time: Nanos) -> usize {
        if self.commands.is_empty() && std::mem::take(&mut self.has_mail) {
            self.inbox.take(&mut self.commands);
        }
        let count = self.commands.len().min(COMMAND_BATCH);
        if count == 0 {
            return 0;
        }
        let mut is_to_send = false;
        for _ in 0..count {
            let Some(command) = self.commands.pop_front() else { break };
            is_to_send |= matches!(command, Command::PacketOut(_));
            self.carry_out_one(command, time);
        }
        if is_to_send {
            self.flush();
        }
        self.inbox.done(count);
        self.seat.figures.commands.add(count as u64);
        count
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
            (Command::FlushCounters(mark), _) => self.flushing.push(mark),
            (Command::Reach(mark), _) => {
                self.flush();
                self.up.upcalls.push(Upcall::Reached(mark));
            }
            (Command::Ask(question), _) => question(self),
            (Command::Stop, _) => self.stops = true,
            // The agent of a wire has no tables and sends no such commands.
            (Command::Op(_) | Command::PacketOut(_), Forwarding::Wire(_)) => {}
        }
    }

    /// Takes a batch from a port and forwards it, or some of a port that is polled; how many
    /// frames.
    pub(super) fn forward(
        &mut self,
        index: usize,
        buffers: &mut Batch,
        (now, time): (Instant, Nanos),
    ) -> usize {
        self.ports.lend(buffers);
        // What waits for a flush or for commands waits for no more than a batch: a flush ends only
        // where it takes more counts than packets bring.
        let is_alone = !self.waits() && self.ports.is_polled(index);
        let batches = if is_alone { FULL_BATCHES } else { 1 };
        let mut frames = 0;
        for _ in 0..batches {
            let count = self.forward_batch(index, now, time);
            frames += count;
            if count < RX_BATCH {
                break;
            }
        }
        self.ports.lend(buffers);
        frames
    }

    fn forward_batch(&mut self, index: usize, now: Instant, time: Nanos) -> usize {
        let timer = Timer::begin(&self.seat.figures);
        if let Forwarding::Wire(Wire::Io) = self.forwarding
            && let Some(count) = self.ports.relay(index)
        {
            self.seat.figures.passed(count, &timer);
            return count;
        }
        let Some((in_port, mut frames)) = self.ports.receive(index, now) else { return 0 };
        let count = frames.len();
        let received = timer.lap();
        self.ports.set_time(time);
        match &mut self.forwarding {
            Forwarding::Tables(forwarder) => {
                let mut exit = Exit { ports: &mut self.ports, up: &mut self.up };
                forwarder.process_batch(&mut frames, in_port, time, &mut exit);
            }
            Forwarding::Wire(wire) => self.ports.carry(index, *wire, &mut frames),
        }
        self.ports.take_back(frames);
        let decided = timer.lap();
        self.seat.figures.sent.add(self.ports.flush() as u64);
        timer.end(count, received, decided);
        self.seat.figures.batches.add(1);
        self.seat.figures.packets.add(count as u64);
        count
    }

    /// Goes on with a flush; whether there is one.
    fn flush_counters(&mut self) -> bool {
        if self.flushing.is_empty() {
            return false;
        }
        let is_done = match &mut self.forwarding {
            Forwarding::Tables(forwarder) => !forwarder.flush_some(FLUSH_BATCH),
            Forwarding::Wire(_) => true,
        };
        if is_done {
            self.up.upcalls.extend(self.flushing.drain(..).map(Upcall::Reached));
        }
        true
    }

    /// Hands packet-ins and upcalls to the agent; what finds no room is dropped and counted.
    pub(super) fn hand_up(&mut self) {
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
}
