//! Entries that change at random while frames pass, the kernel's program deciding about most: each
//! entry writes its number into what it forwards, so every frame says by which one it was decided.
//!
//! A few hundred changes by default; `WEIR_TIER_ROUNDS` and `WEIR_TIER_SEED` ask for more and for
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use netdev::{Port, open_text};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::{Action, Field, Instruction, Match, Message, PortNo, Version};
use packet::{Batch, PacketBuf};
use testkit::Random;

use crate::harness::{Controller, Switch, until};
use crate::tier_rig::{self, from_port, kernel_hits, switch_at_veths};
use crate::veth::in_namespace;

const FLOWS: u32 = 16;
const FRAME_LEN: u64 = 60;

/// Frames on their way at once: far fewer than any queue holds, so that none may be lost.
const WINDOW: u32 = 256;

/// The numbers of the entries: the one for all other frames has the first.
const OTHERS: u32 = 0;

/// Place of a frame's number.
const NUMBER: std::ops::Range<usize> = 44..48;

/// A datagram of a flow with its number. Flows have ports of their own, by which the kernel gives
/// them to queues.
fn numbered(number: u32) -> Vec<u8> {
    let [.., high, low] = flow_of(number).to_be_bytes();
    let mut bytes = vec![0; FRAME_LEN as usize];
    bytes[0] = 2;
    bytes[2..6].copy_from_slice(&flow_of(number).to_be_bytes());
    bytes[6..8].copy_from_slice(&[2, 1]);
    bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
    bytes[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    bytes[34..40].copy_from_slice(&[high, low, 0x30, 1, 0, 26]);
    bytes[NUMBER].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn flow_of(number: u32) -> u32 {
    number % FLOWS
}

/// The state that sender and receiver publish of their frames.
#[derive(Default)]
struct Traffic {
    /// The number of the next frame: those from here on are sent later than it was read.
    next: AtomicU32,
    /// All with a smaller number have come.
    come: AtomicU32,
    is_sent: AtomicBool,
    is_over: AtomicBool,
    /// Every frame that came: its number, the port, and the number of the entry.
    seen: Mutex<Vec<(u32, u32, u32)>>,
}

impl Traffic {
    fn send(&self, host: &mut Port) {
        while !self.is_sent.load(Ordering::SeqCst) {
            let number = self.next.load(Ordering::SeqCst);
            if number - self.come.load(Ordering::SeqCst) >= WINDOW {
                std::thread::yield_now();
                continue;
            }
            self.next.store(number + 1, Ordering::SeqCst);
            let frames = [PacketBuf::from_slice(&numbered(number))];
            until("room", || (host.tx(&frames).unwrap() == 1).then_some(()));
        }
    }

    fn receive(&self, hosts: &mut [(u32, Port)]) {
        let mut batch = Batch::default();
        let mut early = BTreeSet::new();
        while !self.is_over.load(Ordering::SeqCst) {
            for (port, host) in hosts.iter_mut() {
                batch.clear();
                host.rx(&mut batch, 32).unwrap();
                let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
                for frame in batch.frames() {
                    let bytes = frame.bytes();
                    let (number, entry) = (word(&bytes[NUMBER]), word(&bytes[8..12]));
                    self.seen.lock().unwrap().push((number, *port, entry));
                    early.insert(number);
                }
            }
            let mut come = self.come.load(Ordering::SeqCst);
            while early.remove(&come) {
                come += 1;
            }
            // A copy of one that came before.
            early = early.split_off(&come);
            self.come.store(come, Ordering::SeqCst);
        }
    }

    fn wait_for(&self, number: u32) {
        until("the frames", || (self.come.load(Ordering::SeqCst) >= number).then_some(()));
    }
}

/// An entry of a flow, one after the other.
struct Entry {
    number: u32,
    outputs: BTreeSet<u32>,
    /// Frames with a smaller number had come before it was sent to the switch.
    first: u32,
    /// Those from here on were sent after the barrier.
    alone_from: u32,
}

/// The controller and what it has done.
struct Changes {
    controller: Controller,
    flows: Vec<Vec<Entry>>,
    /// Packets and bytes of entries that were removed.
    removed: BTreeMap<u32, (u64, u64)>,
    pending_removals: u32,
}

impl Changes {
    /// Waits for a barrier's reply.
    fn barrier(&mut self) {
        let xid = self.controller.send(&Message::BarrierRequest);
        while self.next().is_none_or(|got| got != xid) {}
    }

    /// The xid of the next message; none where it was about an entry that was removed.
    fn next(&mut self) -> Option<openflow::Xid> {
        match self.controller.next() {
            (xid, Message::BarrierReply) => Some(xid),
            (_, Message::FlowRemoved(removed)) => {
                let address = removed.matching.get(Field::EthDst).unwrap().value;
                let counts = self.removed.entry(address as u32).or_default();
                counts.0 += removed.packet_count;
                counts.1 += removed.byte_count;
                self.pending_removals -= 1;
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Changes the entry of a flow at random.
    fn change(&mut self, random: &mut Random, traffic: &Traffic, flow: u32, number: u32) {
        let history = &mut self.flows[flow as usize];
        let has_entry = history.last().is_some_and(|entry| entry.number != OTHERS);
        let command = match random.below(4) {
            0 if has_entry => FlowModCommand::DeleteStrict,
            1 if has_entry => FlowModCommand::ModifyStrict,
            _ => FlowModCommand::Add,
        };
        let is_removal = command == FlowModCommand::DeleteStrict;
        let number = if is_removal { OTHERS } else { number };
        let outputs: BTreeSet<u32> = match random.below(3) {
            _ if is_removal => [2].into(),
            0 => [2].into(),
            1 => [3].into(),
            _ => [2, 3].into(),
        };
        self.pending_removals += u32::from(is_removal);
        let matching = Match::any().with(Field::EthDst, 0x0200_0000_0000 | u128::from(flow));
        let entry = entry(matching, 1, number, &outputs);
        let first = traffic.come.load(Ordering::SeqCst);
        history.push(Entry { number, outputs, first, alone_from: u32::MAX });
        self.controller.send(&Message::FlowMod(FlowMod { command, ..entry }));
    }
}

/// An entry that writes its number into the source address.
fn entry(matching: Match, priority: u16, number: u32, outputs: &BTreeSet<u32>) -> FlowMod {
    let source = u128::from(number) | 0x0201_0000_0000;
    let set = Action::SetField { field: Field::EthSrc, value: source };
    let outputs = outputs.iter().map(|port| Action::output(PortNo(*port)));
    FlowMod {
        matching,
        priority,
        flags: FlowModFlags::SEND_FLOW_REM,
        instructions: vec![Instruction::ApplyActions([set].into_iter().chain(outputs).collect())],
        ..FlowMod::new(FlowModCommand::Add)
    }
}

/// Each frame was decided once, by an entry that held, and came once by each of its outputs.
fn check(flows: &[Vec<Entry>], seen: &[(u32, u32, u32)], sent: u32) {
    let mut copies = BTreeMap::<u32, Vec<(u32, u32)>>::new();
    for (number, port, entry) in seen {
        copies.entry(*number).or_default().push((*port, *entry));
    }
    for number in 0..sent {
        let copies = &copies[&number];
        let history = &flows[flow_of(number) as usize];
        let oldest = history.iter().rposition(|entry| entry.alone_from <= number).unwrap_or(0);
        let held = || history[oldest..].iter().filter(|entry| entry.first <= number);
        let decided = copies[0].1;
        let by = held().find(|entry| entry.number == decided);
        let numbers: Vec<u32> = held().map(|entry| entry.number).collect();
        let by = by.unwrap_or_else(|| {
            panic!("frame {number}: entry {decided} decided, when {numbers:?} held")
        });
        let mut ports: Vec<u32> = copies.iter().map(|copy| copy.0).collect();
        ports.sort_unstable();
        assert!(ports.iter().eq(&by.outputs), "frame {number} left by {ports:?}");
        assert!(copies.iter().all(|copy| copy.1 == decided), "frame {number}: {copies:?}");
    }
}

/// Packets and bytes by flow, that of all others at [`FLOWS`].
fn counts_of(controller: &mut Controller) -> BTreeMap<u32, (u64, u64)> {
    let counts = controller.flow_stats().into_iter().map(|entry| {
        let address = entry.matching.get(Field::EthDst).map(|address| address.value as u32);
        (address.unwrap_or(FLOWS), (entry.packet_count, entry.byte_count))
    });
    counts.collect()
}

fn run(switch: &Switch, host: &mut Port, receivers: &mut [(u32, Port)], random: &mut Random) {
    let traffic = Traffic::default();
    let mut controller = switch.controller(Version::V1_3);
    let others = [2].into();
    controller.send(&Message::FlowMod(entry(from_port(1), 0, OTHERS, &others)));
    controller.barrier();
    let begin = |_| vec![Entry { number: OTHERS, outputs: [2].into(), first: 0, alone_from: 0 }];
    let flows = (0..FLOWS).map(begin).collect();
    let mut changes = Changes { controller, flows, removed: BTreeMap::new(), pending_removals: 0 };
    let rounds = tier_rig::number("WEIR_TIER_ROUNDS", 200) as u32;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| traffic.send(host));
        scope.spawn(|| traffic.receive(receivers));
        // A failure here must end the other two as well.
        let _over = Over(&traffic);
        let mut number = OTHERS;
        for _ in 0..rounds {
            let changed: BTreeSet<u32> =
                (0..1 + random.below(3)).map(|_| random.below(FLOWS.into()) as u32).collect();
            for flow in &changed {
                number += 1;
                changes.change(random, &traffic, *flow, number);
            }
            changes.barrier();
            let next = traffic.next.load(Ordering::SeqCst);
            for flow in changed {
                changes.flows[flow as usize].last_mut().unwrap().alone_from = next;
            }
            // Long enough for the kernel to know the flows anew, mostly.
            traffic.wait_for(next + FLOWS * random.below(30) as u32);
        }
        traffic.is_sent.store(true, Ordering::SeqCst);
        sender.join().unwrap();
        traffic.wait_for(traffic.next.load(Ordering::SeqCst));
        let of_entry: BTreeMap<u32, &BTreeSet<u32>> =
            changes.flows.iter().flatten().map(|entry| (entry.number, &entry.outputs)).collect();
        until("all copies", || {
            let seen = traffic.seen.lock().unwrap();
            let first: BTreeMap<u32, u32> = seen.iter().map(|it| (it.0, it.2)).collect();
            let copies = first.values().filter_map(|by| of_entry.get(by)).map(|it| it.len());
            (copies.sum::<usize>() <= seen.len()).then_some(())
        });
    });
    let sent = traffic.next.load(Ordering::SeqCst);
    let seen = traffic.seen.into_inner().unwrap();
    check(&changes.flows, &seen, sent);
    while changes.pending_removals > 0 {
        changes.next();
    }
    let hits = kernel_hits(switch);
    let mut counts = counts_of(&mut changes.controller);
    for (flow, (packets, bytes)) in changes.removed {
        let of_flow = counts.entry(flow).or_default();
        *of_flow = (of_flow.0 + packets, of_flow.1 + bytes);
    }
    let mut expected = BTreeMap::<u32, u64>::new();
    let decided: BTreeMap<u32, u32> = seen.iter().map(|(number, _, by)| (*number, *by)).collect();
    for (number, by) in decided {
        *expected.entry(if by == OTHERS { FLOWS } else { flow_of(number) }).or_default() += 1;
    }
    counts.retain(|_, counts| counts.0 > 0);
    let expected: BTreeMap<u32, (u64, u64)> = expected
        .into_iter()
        .map(|(flow, packets)| (flow, (packets, FRAME_LEN * packets)))
        .collect();
    assert_eq!(counts, expected);
    check_ports(&mut changes.controller, u64::from(sent), &seen);
    assert!(hits > u64::from(sent) / 4, "{hits} of {sent} in the kernel");
}

/// Ports and tables count each frame once.
fn check_ports(controller: &mut Controller, sent: u64, seen: &[(u32, u32, u32)]) {
    let ports = controller.port_stats(PortNo::ANY);
    let out = |port| seen.iter().filter(|it| it.1 == port).count() as u64;
    let found: Vec<_> = ports.iter().map(|it| (it.rx_packets, it.tx_packets)).collect();
    assert_eq!(found, [(sent, 0), (0, out(2)), (0, out(3))]);
    let tables = controller.table_stats();
    assert_eq!((tables[0].lookup_count, tables[0].matched_count), (sent, sent));
}

/// Ends the traffic, however the test ends.
struct Over<'a>(&'a Traffic);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_sent.store(true, Ordering::SeqCst);
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// No frame is decided by what was before a barrier's reply, none is lost and none comes twice, and
/// all of them are in every count.
#[test]
#[ignore = "needs root"]
fn frames_are_decided_once_while_entries_change() {
    for (workers, queues) in [(1, 1), (2, 1), (2, 2), (1, 3)] {
        in_namespace(|rtnl| {
            let toml =
                format!("caches = \"frame,key,kernel\"\nworkers = {workers}\nqueues = {queues}\n");
            let switch = switch_at_veths(rtnl, 3, &toml);
            let host = |number: u32| open_text(&format!("af_packet:host{number}")).unwrap();
            let seed = tier_rig::number("WEIR_TIER_SEED", 1);
            let mut receivers = [(2, host(2)), (3, host(3))];
            run(&switch, &mut host(1), &mut receivers, &mut Random::new(seed));
            switch.stop();
        });
    }
}
