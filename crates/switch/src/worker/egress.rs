//! The transmit side of a bridge's shard: frames that wait for its ports, and frames for the ports
//! of other workers.
//!
//! Frames for a port of the same worker wait in that port's queue until the end of the batch; those
//! for a port of another worker go there by a lane ([`super::handoff`]). A port of several queues
//! is of the same worker wherever that has one of them. A batch that is copied to many ports goes
//! in pieces. The receive side ([`Ports`]) and the buffers are apart from it, so that a batch is
//! read where it was received while its verdicts are queued here.

use std::sync::Arc;

use datapath::fast::Sink;
use datapath::{DropReason, Nanos};
use netdev::DummyPort;
use openflow::message::PacketIn;
use openflow::{PortNo, QueueId};
use packet::header::ethernet::FRAME_MIN_LEN;
use packet::offload::finish;
use packet::{PacketBuf, Pool};

use super::command::PendingUpcalls;
use super::handoff::{HandedFrame, Handoff};
use super::port_map::{PortLocation, PortMap};
use super::{CommandQueue, Ports, Shaper, ShardCommand, Slots};
use crate::counters::{Counter, Counters};

/// Bytes of memory that wait to be sent, about. A batch of 64 super-frames that is flooded to 100
/// ports took 420 MB while all of its copies waited for its end. Short frames seldom come to so
/// much: more calls for each port would cost them more than their memory does.
const WAITING_BYTES: usize = 16 << 20;

/// Bytes that a short frame takes: a page.
const SHORT_BYTES: usize = 4_096;

/// The link to a worker of the bridge: its commands and the lanes to it.
#[derive(Debug)]
pub(super) struct WorkerLink {
    commands: Arc<CommandQueue>,
    handoff: Handoff,
}

impl WorkerLink {
    /// The link to the worker with this command queue, from as many workers.
    pub(super) fn new(commands: Arc<CommandQueue>, workers: usize) -> Self {
        Self { commands, handoff: Handoff::new(workers) }
    }
}

/// The frames that wait for a port.
#[derive(Debug)]
struct EgressQueue {
    /// Frames to send at the end of the batch.
    frames: Vec<PacketBuf>,
    /// The port's queues, where any are configured.
    shaper: Option<Shaper>,
    /// The most patch ports that any frame in these queues has passed.
    hops: u8,
}

/// The transmit side of a shard.
pub(crate) struct Egress {
    /// By the index of the port in [`Ports`].
    queues: Slots<EgressQueue>,
    map: Arc<PortMap>,
    me: usize,
    links: Arc<[WorkerLink]>,
    /// Ports that have frames to send.
    waiting: Vec<usize>,
    /// Bytes of single frames that were queued or handed over since the last flush.
    queued_bytes: usize,
    /// Frames that ports accepted in the middle of a batch.
    sent_early: usize,
    /// Ports whose queues hold frames back.
    holding: Vec<usize>,
    /// Frames for the ports of other workers, by worker.
    handed: Vec<Vec<HandedFrame>>,
    /// Frames from other workers, while they are queued.
    arrived: Vec<HandedFrame>,
    /// The time of this round, for the ports' queues.
    time: Nanos,
    counters: Arc<Counters>,
}

impl Egress {
    /// The transmit side of worker `me`, without ports.
    pub(super) fn new(
        me: usize,
        map: &Arc<PortMap>,
        links: &Arc<[WorkerLink]>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            queues: Slots::default(),
            map: Arc::clone(map),
            me,
            links: Arc::clone(links),
            waiting: Vec::new(),
            queued_bytes: 0,
            sent_early: 0,
            holding: Vec::new(),
            handed: links.iter().map(|_| Vec::new()).collect(),
            arrived: Vec::new(),
            time: Nanos(0),
            counters,
        }
    }

    /// Adds the queue of the port at this index.
    pub(super) fn add(&mut self, index: usize, shaper: Option<Shaper>) {
        self.queues.put(index, EgressQueue { frames: Vec::new(), shaper, hops: 0 });
    }

    /// Gives up the queue of the port at this index; the frames that wait for it are dropped and
    /// counted.
    pub(super) fn remove(&mut self, index: usize, pool: &mut Pool) {
        let Some(EgressQueue { mut frames, shaper, .. }) = self.queues.take(index) else { return };
        self.waiting.retain(|waiting| *waiting != index);
        self.holding.retain(|holding| *holding != index);
        let held = shaper.map_or(0, |shaper| shaper.len());
        // Queues hold frames of a wire only.
        self.counters.add(Counter::TxPortGone, on_wire(&frames) + held as u64);
        let count = frames.len();
        pool.give_front(&mut frames, count);
    }

    /// Gives the port at this index other queues, or none. Frames that wait keep their order and go
    /// on as frames of no queue.
    pub(super) fn reshape(&mut self, index: usize, shaper: Option<Shaper>, pool: &mut Pool) {
        let Some(queue) = self.queues.get_mut(index) else { return };
        let earlier = std::mem::replace(&mut queue.shaper, shaper);
        self.holding.retain(|holding| *holding != index);
        for frame in earlier.map(Shaper::into_frames).unwrap_or_default() {
            self.queue(index, None, frame, pool);
        }
    }

    /// Sets the places of ports.
    pub(super) fn set_map(&mut self, map: Arc<PortMap>) {
        self.map = map;
    }

    /// Sends a command to the shard on another worker of the bridge, or this one.
    pub(super) fn command(&self, worker: usize, command: ShardCommand) {
        if let Some(link) = self.links.get(worker) {
            link.commands.send(&mut vec![command]);
        }
    }

    /// Sends a command to the shards on all workers of the bridge.
    pub(super) fn command_all(&self, command: impl Fn() -> ShardCommand) {
        for link in self.links.iter() {
            link.commands.send(&mut vec![command()]);
        }
    }

    /// Has the shards on all other workers of the bridge look at what they share.
    pub(super) fn ring_others(&self) {
        for (_, link) in self.links.iter().enumerate().filter(|(worker, _)| *worker != self.me) {
            link.commands.ring();
        }
    }

    /// The index of this worker among those of the bridge.
    pub(super) fn me(&self) -> usize {
        self.me
    }

    /// Whether queues of ports hold frames back.
    pub(super) fn is_holding(&self) -> bool {
        !self.holding.is_empty()
    }

    /// Queues the frames that other workers have handed over; whether there were any.
    pub(super) fn accept(&mut self, ports: &mut Ports, pool: &mut Pool) -> bool {
        let Some(own) = self.links.get(self.me) else { return false };
        let hops = own.handoff.take(&mut self.arrived, pool);
        if self.arrived.is_empty() {
            return false;
        }
        ports.set_hops(hops);
        let mut arrived = std::mem::take(&mut self.arrived);
        for ((index, queue), frame) in arrived.drain(..) {
            self.queue(index, queue, frame, pool);
        }
        self.arrived = arrived;
        true
    }

    /// Sets the time of the ports' queues, until the next call.
    pub(super) fn set_time(&mut self, time: Nanos) {
        self.time = time;
    }

    /// The time of the ports' queues.
    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    /// Sends the frames that the ports' queues release by now; how many the ports accepted.
    pub(super) fn release(&mut self, ports: &mut Ports, pool: &mut Pool) -> usize {
        self.waiting.append(&mut self.holding);
        if self.waiting.is_empty() { 0 } else { self.flush(ports, pool) }
    }

    /// When a queue releases its next frame, if one waits.
    pub(super) fn next_release(&self) -> Option<Nanos> {
        let held = self.holding.iter().filter_map(|index| self.queues.get(*index));
        held.filter_map(|queue| queue.shaper.as_ref()?.next_at()).min()
    }

    fn queue(
        &mut self,
        index: usize,
        queue_id: Option<QueueId>,
        frame: PacketBuf,
        pool: &mut Pool,
    ) {
        let Some(queue) = self.queues.get_mut(index) else {
            self.counters.add(Counter::TxPortGone, frame.on_wire().0);
            return pool.give(frame);
        };
        if queue.shaper.is_some() && frame.has_offload() {
            return self.queue_finished(index, queue_id, frame, pool);
        }
        if let Some(shaper) = &mut queue.shaper {
            if !self.waiting.contains(&index) {
                self.waiting.push(index);
            }
            if !shaper.has_room(queue_id) {
                // Others of the batch may go first.
                shaper.release(self.time, &mut queue.frames);
            }
            if let Err(frame) = shaper.offer(queue_id, frame, self.time) {
                self.counters.bump(Counter::QueueOverrun);
                pool.give(frame);
            }
            return;
        }
        if queue.frames.is_empty() {
            self.waiting.push(index);
        }
        queue.frames.push(frame);
    }

    /// Queues what a wire carries for a frame to which something is left to do: queues have rates.
    fn queue_finished(
        &mut self,
        index: usize,
        queue_id: Option<QueueId>,
        frame: PacketBuf,
        pool: &mut Pool,
    ) {
        let mut parts = Vec::new();
        match finish(frame, || pool.take(), |part| parts.push(part)) {
            Ok(None) => {}
            Ok(Some(whole)) => pool.give(whole),
            Err(frame) => {
                self.counters.add(Counter::PortError, frame.on_wire().0);
                pool.give(frame);
            }
        }
        for mut part in parts {
            part.pad_to(FRAME_MIN_LEN);
            self.queue(index, queue_id, part, pool);
        }
    }

    /// Queues all frames at a port of this worker.
    pub(super) fn queue_all(
        &mut self,
        index: usize,
        queue_id: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) {
        let Some(queue) = self.queues.get_mut(index) else {
            self.counters.add(Counter::TxPortGone, on_wire(frames));
            let count = frames.len();
            return pool.give_front(frames, count);
        };
        if queue.shaper.is_some() {
            for frame in frames.drain(..) {
                self.queue(index, queue_id, frame, pool);
            }
            return;
        }
        if queue.frames.is_empty() {
            self.waiting.push(index);
            std::mem::swap(&mut queue.frames, frames);
        } else {
            queue.frames.append(frames);
        }
    }

    /// Notes a single frame that was queued or handed over, and sends all that wait once they take
    /// much memory. Frames that leave by one port together are those that came: they are as many as
    /// a batch.
    fn note_queued(&mut self, len: usize, ports: &mut Ports, pool: &mut Pool) {
        self.queued_bytes += len.max(SHORT_BYTES);
        if self.queued_bytes >= WAITING_BYTES {
            self.sent_early = self.flush(ports, pool);
        }
    }

    /// Sends the queued frames; how many the ports accepted, with those that were sent since the
    /// last call because much waited.
    pub(super) fn flush(&mut self, ports: &mut Ports, pool: &mut Pool) -> usize {
        self.queued_bytes = 0;
        let mut sent = std::mem::take(&mut self.sent_early);
        while let Some(index) = self.waiting.pop() {
            let Some(queue) = self.queues.get_mut(index) else { continue };
            let EgressQueue { frames, shaper, hops } = queue;
            let Some(shaper) = shaper else {
                sent += ports.transmit(index, frames, pool);
                continue;
            };
            // Frames of earlier batches may be released now, and some of this one later.
            let of_batch = ports.hops();
            *hops = of_batch.max(*hops);
            ports.set_hops(*hops);
            shaper.release(self.time, frames);
            if shaper.is_empty() {
                *hops = 0;
            } else if !self.holding.contains(&index) {
                self.holding.push(index);
            }
            sent += ports.transmit(index, frames, pool);
            ports.set_hops(of_batch);
        }
        for (frames, link) in self.handed.iter_mut().zip(&*self.links) {
            if !frames.is_empty() {
                let refused = link.handoff.send((self.me, ports.hops()), frames, pool);
                self.counters.add(Counter::HandoffFull, refused as u64);
                link.commands.ring();
            }
        }
        sent
    }
}

/// The sink of a forwarder's verdicts: the transmit side, and the packet-ins of the batch.
pub(super) struct TxSink<'a> {
    pub(super) egress: &'a mut Egress,
    pub(super) ports: &'a mut Ports,
    pub(super) pool: &'a mut Pool,
    pub(super) pending: &'a mut PendingUpcalls,
}

impl TxSink<'_> {
    /// The place of the port that these frames go to.
    fn location(&mut self, port: PortNo, frames: &[PacketBuf]) -> Option<PortLocation> {
        let location = self.egress.map.location(port);
        if location.is_none() {
            // The datapath knows no other ports than these.
            self.egress.counters.add(Counter::TxPortGone, on_wire(frames));
        }
        location
    }
}

/// The packets that a wire would carry for frames.
fn on_wire(frames: &[PacketBuf]) -> u64 {
    frames.iter().map(|frame| frame.on_wire().0).sum()
}

/// Pads a frame that a pop made too short for Ethernet. What a super-frame is cut into is padded
/// behind the cut: here the padding would become payload.
fn pad(frame: &mut PacketBuf) {
    let is_due = frame.len() < FRAME_MIN_LEN && !DummyPort::is_used();
    if is_due && frame.offload().is_none_or(|offload| offload.segment_len == 0) {
        frame.pad_to(FRAME_MIN_LEN);
    }
}

impl Sink for TxSink<'_> {
    /// Queues a frame, padded where a pop made it too short for Ethernet.
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, mut frame: PacketBuf) {
        let location = self.location(port, std::slice::from_ref(&frame));
        let Some(location) = location else { return self.done(frame) };
        pad(&mut frame);
        let len = frame.len();
        if location.worker == self.egress.me {
            self.egress.queue(location.index, queue, frame, self.pool);
        } else if let Some(handed) = self.egress.handed.get_mut(location.worker) {
            handed.push(((location.index, queue), frame));
        }
        self.egress.note_queued(len, self.ports, self.pool);
    }

    fn output_all(
        &mut self,
        port: PortNo,
        queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        shortest: usize,
    ) {
        let location = self.location(port, frames);
        let Some(location) = location else { return self.done_all(frames) };
        if shortest < FRAME_MIN_LEN {
            frames.iter_mut().for_each(pad);
        }
        if location.worker == self.egress.me {
            self.egress.queue_all(location.index, queue, frames, self.pool);
        } else if let Some(handed) = self.egress.handed.get_mut(location.worker) {
            handed.extend(frames.drain(..).map(|frame| ((location.index, queue), frame)));
        }
    }

    fn packet_in(&mut self, message: PacketIn, _max_len: u16) {
        self.pending.packets.push(message);
    }

    /// The datapath has counted it under its reason.
    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, frame: PacketBuf) {
        self.pool.give(frame);
    }

    fn done_all(&mut self, frames: &mut Vec<PacketBuf>) {
        let count = frames.len();
        self.pool.give_front(frames, count);
    }

    fn spare(&mut self) -> PacketBuf {
        self.pool.take()
    }

    fn spare_large(&mut self) -> PacketBuf {
        self.pool.take_large()
    }
}

#[cfg(test)]
mod tests {
    use datapath::fast::Fast;
    use datapath::{Datapath, DatapathConfig};
    use openflow::Version;
    use openflow::flow::FlowModCommand;
    use openflow::port::{PortDesc, PortState};
    use openflow::text::parse_flow_mod;
    use packet::offload::Offload;

    use super::super::{Doorbell, PortSerial, WorkerPort, distribute_ports};
    use super::*;

    #[test]
    fn what_is_dropped_counts_as_a_wire_would_carry_it() {
        let counters = Arc::new(Counters::default());
        let map = Arc::new(PortMap::new(&[(PortNo(1), 1)], 1));
        let links: Arc<[WorkerLink]> = Arc::from(Vec::new());
        let mut egress = Egress::new(0, &map, &links, Arc::clone(&counters));
        let mut pool = Pool::default();
        let whole = || {
            let mut frame = PacketBuf::from_slice(&[0; 2_554]);
            assert!(frame.set_offload(Some(Offload { segment_len: 1_000, payload_len: 2_500 })));
            frame
        };
        let gone = || counters.get(Counter::TxPortGone);
        // A port that went while the frame was on its way, and with frames that wait for it.
        egress.queue(0, None, whole(), &mut pool);
        assert_eq!(gone(), 3);
        egress.queue_all(0, None, &mut vec![whole(), PacketBuf::from_slice(&[0; 60])], &mut pool);
        assert_eq!(gone(), 7);
        egress.add(0, None);
        egress.queue(0, None, whole(), &mut pool);
        egress.remove(0, &mut pool);
        assert_eq!(gone(), 10);
        let (mut ports, mut pending) = (Ports::new(Arc::clone(&counters)), Default::default());
        let (egress, ports) = (&mut egress, &mut ports);
        let mut sink = TxSink { egress, ports, pool: &mut pool, pending: &mut pending };
        sink.output(PortNo(9), None, whole());
        sink.output_all(PortNo(9), None, &mut vec![whole(), whole()], 2_554);
        assert_eq!(gone(), 19);
    }
    /// A sink that notes how much memory waits at most.
    struct Watched<'a>(TxSink<'a>, &'a mut usize);

    impl Sink for Watched<'_> {
        fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf) {
            self.0.output(port, queue, frame);
            let egress = &self.0.egress;
            let queues = egress.waiting.iter().filter_map(|index| egress.queues.get(*index));
            let queued = queues.flat_map(|queue| &queue.frames);
            let handed = egress.handed.iter().flatten().map(|(_, frame)| frame);
            let bytes = queued.chain(handed).map(|frame| frame.len().max(SHORT_BYTES));
            *self.1 = bytes.sum::<usize>().max(*self.1);
        }

        fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

        fn dropped(&mut self, _reason: DropReason) {}

        fn done(&mut self, frame: PacketBuf) {
            self.0.done(frame);
        }

        fn spare(&mut self) -> PacketBuf {
            self.0.spare()
        }

        fn spare_large(&mut self) -> PacketBuf {
            self.0.spare_large()
        }
    }

    #[test]
    fn a_flood_of_super_frames_goes_in_pieces() {
        const PORTS: u32 = 100;
        let counters = Arc::new(Counters::default());
        let numbers: Vec<PortNo> = (1..=PORTS).map(PortNo).collect();
        let open = |number: &PortNo| {
            let spec = format!("null:{number}").parse().unwrap();
            WorkerPort::open(*number, PortSerial(0), spec).unwrap()
        };
        let queues: Vec<_> = numbers.iter().map(|number| (*number, 1)).collect();
        let map = Arc::new(PortMap::new(&queues, 1));
        let queue = Arc::new(CommandQueue::new(Arc::new(Doorbell::new().unwrap()), 0));
        let opened = numbers.iter().map(open).collect();
        let (mut ports, mut egress) =
            distribute_ports(opened, &map, std::slice::from_ref(&queue), &counters).remove(0);
        let mut datapath = Fast::new(DatapathConfig::default(), 1);
        for number in &numbers {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: *number, state, ..PortDesc::default() };
            datapath.port_set(desc, Nanos(0));
        }
        let flood = parse_flow_mod("actions=flood", FlowModCommand::Add).unwrap();
        datapath.flow_mod(&flood, Version::V1_3, Nanos(0)).unwrap();
        let (mut pool, mut pending) = (Pool::default(), PendingUpcalls::default());
        let mut batch = |payload_len: u16, segment_len: u16| {
            let mut frame = PacketBuf::from_slice(&vec![0; 54 + usize::from(payload_len)]);
            let offload = (segment_len != 0).then_some(Offload { segment_len, payload_len });
            assert!(frame.set_offload(offload));
            let mut most = 0;
            let (egress, ports, pool) = (&mut egress, &mut ports, &mut pool);
            let mut sink =
                Watched(TxSink { egress, ports, pool, pending: &mut pending }, &mut most);
            let mut frames = vec![frame; 64];
            datapath.process_batch(&mut frames, PortNo(1), Nanos(0), &mut sink);
            let TxSink { egress, ports, pool, .. } = sink.0;
            let sent = egress.flush(ports, pool);
            (most, sent)
        };
        let copies = 64 * (PORTS as usize - 1);
        let (most, sent) = batch(60_000, 1_448);
        assert_eq!(sent, copies, "every copy is sent once");
        assert!(most < WAITING_BYTES, "{most} bytes wait");
        // Short frames wait for each other: a call for a port sends many.
        let (most, sent) = batch(10, 0);
        assert_eq!(sent, copies);
        assert!((WAITING_BYTES / 2..WAITING_BYTES).contains(&most), "{most} bytes wait");
        for port in ports.all_mut().iter_mut().filter(|port| port.number != PortNo(1)) {
            let counted = port.device_mut().unwrap().device.counters();
            assert_eq!(counted.tx_packets, 2 * 64, "{}", port.number);
        }
    }
}
