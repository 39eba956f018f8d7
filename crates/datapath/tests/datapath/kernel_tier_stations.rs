//! `NORMAL` in the kernel tier, over a table that decides as the kernel does: two shards of a
//! learning switch whose stations talk, move and fall silent, on a clock that the test turns. Every
//! frame must leave by the ports by which the reference sends it, whether the kernel or the worker
//! decides.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use datapath::fast::{
    Caches, Control, Forwarder, KernelTable, RemovalReport, Sink, TIER_BYTES, TierFlow,
    TierSlotCounts, TierVerdict,
};
use datapath::{Datapath, DatapathConfig, DropReason, Nanos, Out, PortVlans, Reference, Verdict};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::message::PacketIn;
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod, PortState};
use openflow::text::parse_flow_mod;
use openflow::{MacAddr, PortNo, QueueId, Version};
use packet::build::FrameBuilder;
use packet::{MaskedRewrite, PacketBuf, Shape};
use testkit::Random;

const AGE_S: u16 = 10;
const MS: u64 = 1_000_000;
const PORTS: u32 = 4;

/// Notes by which ports frames leave.
#[derive(Default)]
struct Ports(Vec<PortNo>);

impl Sink for Ports {
    fn output(&mut self, port: PortNo, _queue: Option<QueueId>, _frame: PacketBuf) {
        self.0.push(port);
    }

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

/// A slot's decision.
struct Entry {
    verdict: TierVerdict,
    until: Nanos,
    holds: bool,
}

/// A table that decides by its entries, and counts.
struct Kernel {
    masks: Vec<[u8; TIER_BYTES]>,
    known: HashMap<TierFlow, u32>,
    entries: HashMap<u32, Entry>,
    counts: Vec<TierSlotCounts>,
}

impl Kernel {
    fn new() -> Self {
        let counts = vec![TierSlotCounts::default(); 256];
        Self { masks: Vec::new(), known: HashMap::new(), entries: HashMap::new(), counts }
    }

    /// Decision about a frame, if an entry has one.
    fn decide(&mut self, in_port: PortNo, frame: &[u8], now: Nanos) -> Option<TierVerdict> {
        let shape = Shape::of(frame);
        let mut bytes = [0; TIER_BYTES];
        let masked =
            frame.iter().zip(self.masks.get(shape.index())?).map(|(byte, mask)| byte & mask);
        bytes.iter_mut().zip(masked).for_each(|(place, byte)| *place = byte);
        let slot = *self.known.get(&TierFlow { in_port, shape, bytes })?;
        let entry = self.entries.get(&slot).filter(|it| it.holds && now < it.until)?;
        let counts = &mut self.counts[slot as usize];
        let sends = !entry.verdict.outputs.is_empty();
        counts.packets += 1;
        counts.bytes += frame.len() as u64;
        counts.sent_packets += u64::from(sends);
        counts.sent_bytes += if sends { frame.len() as u64 } else { 0 };
        counts.last_used = now;
        Some(entry.verdict.clone())
    }
}

/// The table of one shard, which the forwarder has and the rig looks into.
#[derive(Clone)]
struct SharedKernel(Rc<RefCell<Kernel>>);

impl KernelTable for SharedKernel {
    fn slots(&self) -> usize {
        self.0.borrow().counts.len()
    }

    fn start(&mut self, masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {
        self.0.borrow_mut().masks = masks.to_vec();
    }

    fn stop(&mut self) {
        self.0.borrow_mut().entries.clear();
    }

    fn put(&mut self, slot: u32, flow: &TierFlow, does: &TierVerdict, until: Nanos) -> bool {
        let mut kernel = self.0.borrow_mut();
        kernel.known.insert(*flow, slot);
        kernel.entries.insert(slot, Entry { verdict: does.clone(), until, holds: true });
        true
    }

    fn extend(&mut self, slot: u32, until: Nanos) {
        self.0.borrow_mut().entries.get_mut(&slot).unwrap().until = until;
    }

    fn end(&mut self, slots: &[u32]) {
        let entries = &mut self.0.borrow_mut().entries;
        slots.iter().for_each(|slot| entries.get_mut(slot).unwrap().holds = false);
    }

    fn remove(&mut self, flow: &TierFlow) {
        let mut kernel = self.0.borrow_mut();
        let slot = kernel.known.remove(flow).unwrap();
        kernel.entries.remove(&slot);
    }

    fn leave(&mut self, flows: &[TierFlow]) {
        self.0.borrow_mut().known.retain(|flow, _| !flows.contains(flow));
    }

    fn slots_at_once(&self) -> usize {
        16
    }

    fn counts(&self, slot: u32) -> TierSlotCounts {
        self.0.borrow().counts[slot as usize]
    }

    fn credit(&mut self, _in_port: PortNo, _outputs: &[PortNo], _counts: &TierSlotCounts) {}

    fn take_back_unsent(&mut self, _slot: u32, _outputs: &[PortNo]) {}
}

/// A shard: its forwarder, and the kernel below it.
struct Shard {
    forwarder: Forwarder<SharedKernel>,
    kernel: SharedKernel,
}

/// A learning switch of two shards, which have every other port each, and its reference.
struct Rig {
    control: Control,
    shards: Vec<Shard>,
    reference: Reference,
    now: Nanos,
    in_kernel: u64,
    sent: u64,
}

fn desc(number: u32) -> PortDesc {
    PortDesc { port_no: PortNo(number), state: PortState::LIVE, ..PortDesc::default() }
}

fn station(number: u64) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | number)
}

fn frame(dst: MacAddr, src: MacAddr, vlan: Option<u16>) -> Vec<u8> {
    let builder = FrameBuilder::ethernet(dst, src);
    let builder = match vlan {
        Some(vid) => builder.vlan(3, vid),
        None => builder,
    };
    builder.fill_to(60).build()
}

fn frame_of_two_tags(dst: MacAddr, src: MacAddr, [outer, inner]: [u16; 2]) -> Vec<u8> {
    FrameBuilder::ethernet(dst, src).vlan(1, outer).vlan(2, inner).fill_to(60).build()
}

impl Rig {
    fn new() -> Self {
        Self::with_kernels([true; 2])
    }

    /// A rig in which only these shards have a kernel's table.
    fn with_kernels(kernels: [bool; 2]) -> Self {
        let config =
            DatapathConfig { n_tables: 2, mac_age_s: AGE_S, max_macs: 64, ..Default::default() };
        let control = Control::new(config.clone(), 2, RemovalReport::Asked);
        let shards = kernels.into_iter().enumerate().map(|(number, has_kernel)| {
            let mut forwarder = control.forwarder(number, 7);
            let kernel = SharedKernel(Rc::new(RefCell::new(Kernel::new())));
            forwarder.set_caches(Caches { kernel: true, ..Caches::default() }, Nanos(0));
            if has_kernel {
                forwarder.set_kernel(kernel.clone());
                for port in (1..=PORTS).filter(|port| (port % 2) as usize == number) {
                    forwarder.enter_tier(PortNo(port));
                }
            }
            forwarder.set_tier_outputs((1..=PORTS).map(PortNo).collect::<BTreeSet<_>>());
            Shard { forwarder, kernel }
        });
        let (shards, reference) = (shards.collect(), Reference::new(config));
        let now = Nanos(10 * MS);
        let mut rig = Self { control, shards, reference, now, in_kernel: 0, sent: 0 };
        (1..=PORTS).for_each(|number| rig.set_port(number));
        rig.flow("priority=0,actions=NORMAL");
        rig
    }

    /// Applies what there is.
    fn apply(&mut self) {
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        for shard in &mut self.shards {
            for op in &ops {
                let mut op = op.clone();
                while let Some(again) = shard.forwarder.apply(op, self.now).again() {
                    op = again;
                }
            }
        }
    }

    fn flow(&mut self, text: &str) {
        let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        self.control.flow_mod(&flow_mod, Version::V1_3, self.now).unwrap();
        self.reference.flow_mod(&flow_mod, Version::V1_3, self.now).unwrap();
        self.apply();
    }

    fn set_port(&mut self, number: u32) {
        self.control.port_set(desc(number), self.now);
        self.reference.port_set(desc(number), self.now);
        self.apply();
    }

    fn remove_port(&mut self, number: u32) {
        self.control.port_remove(PortNo(number));
        self.reference.port_remove(PortNo(number));
        self.apply();
    }

    fn config(&mut self, number: u32, config: PortConfig) {
        let desc = desc(number);
        let port_mod = PortMod {
            port_no: desc.port_no,
            hw_addr: desc.hw_addr,
            config,
            mask: PortConfig::PORT_DOWN | PortConfig::NO_FWD | PortConfig::NO_FLOOD,
            advertise: PortFeatures::empty(),
        };
        self.control.port_mod(&port_mod).unwrap();
        self.reference.port_mod(&port_mod).unwrap();
        self.apply();
    }

    fn vlans(&mut self, number: u32, text: &str) {
        let vlans: PortVlans = text.parse().unwrap();
        self.control.port_vlans(PortNo(number), vlans.clone());
        self.reference.port_vlans(PortNo(number), vlans);
        self.apply();
    }

    /// Lets time pass, in which the workers wake when they have to.
    fn wait(&mut self, ns: u64) {
        let end = Nanos(self.now.0 + ns);
        for _ in 0..100_000 {
            let due = |shard: &Shard| shard.forwarder.due();
            let Some(due) = self.shards.iter().filter_map(due).min().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            for shard in &mut self.shards {
                if shard.forwarder.due().is_some_and(|due| due <= self.now) {
                    shard.forwarder.turn(self.now);
                }
            }
        }
        panic!("the workers never rest");
    }

    /// Sends a frame in at a port: the ports that it leaves by, and what the kernel did with it if
    /// it decided.
    fn send(&mut self, port: u32, bytes: &[u8]) -> (Vec<u32>, Option<MaskedRewrite>) {
        let (in_port, now) = (PortNo(port), self.now);
        self.sent += 1;
        self.wait(0);
        let shard = &mut self.shards[(port % 2) as usize];
        let decided = shard.kernel.0.borrow_mut().decide(in_port, bytes, now);
        let (mut ports, rewrite) = match decided {
            Some(verdict) => {
                self.in_kernel += 1;
                (verdict.outputs.to_vec(), Some(verdict.rewrite))
            }
            None => {
                let mut sink = Ports::default();
                let mut frames = vec![PacketBuf::from_slice(bytes)];
                shard.forwarder.process_batch(&mut frames, in_port, now, &mut sink);
                shard.forwarder.make_entries(now);
                let has_moved = shard.forwarder.has_seen_moves();
                let is_behind = |shard: &Shard| shard.forwarder.due() == Some(Nanos(0));
                assert!(has_moved || !self.shards.iter().any(is_behind), "no shard is rung");
                (sink.0, None)
            }
        };
        // Those that were rung.
        self.wait(0);
        let mut out = Out::new();
        self.reference.process(PacketBuf::from_slice(bytes), in_port, now, &mut out);
        let mut expected: Vec<PortNo> = Vec::new();
        expected.extend(out.drain().filter_map(|verdict| match verdict {
            Verdict::Output { port, .. } => Some(port),
            Verdict::PacketIn { .. } | Verdict::Drop { .. } | Verdict::Held => None,
        }));
        ports.sort();
        expected.sort();
        let by = if rewrite.is_some() { "the kernel" } else { "the worker" };
        assert_eq!(ports, expected, "by {by} at {now:?}, port {port}: {bytes:02x?}");
        (ports.iter().map(|port| port.0).collect(), rewrite)
    }

    fn talk(&mut self, port: u32, src: u64, dst: u64) -> (Vec<u32>, bool) {
        let (ports, rewrite) = self.send(port, &frame(station(dst), station(src), None));
        (ports, rewrite.is_some())
    }

    /// Has two stations talk until the kernel decides.
    fn until_in_kernel(&mut self, one: (u32, u64), other: (u32, u64)) {
        for _ in 0..10 {
            self.wait(2 * MS);
            let there = self.talk(one.0, one.1, other.1);
            let back = self.talk(other.0, other.1, one.1);
            if there == (vec![other.0], true) && back == (vec![one.0], true) {
                return;
            }
        }
        panic!("the kernel does not decide");
    }

    fn entries(&self) -> usize {
        let holding =
            |shard: &Shard| shard.kernel.0.borrow().entries.values().filter(|it| it.holds).count();
        self.shards.iter().map(holding).sum()
    }

    /// Packets of the only flow entry, and all that came and left.
    fn counts(&mut self) -> (u64, u64, u64) {
        self.control.flush();
        self.apply();
        for shard in &mut self.shards {
            while shard.forwarder.flush_some(64, self.now) {}
        }
        let flows = self.control.aggregate_stats(&FlowStatsRequest::all()).unwrap();
        let ports = self.control.port_stats(PortNo::ANY, self.now).unwrap();
        let sum = |of: fn(&openflow::port::PortStats) -> u64| ports.iter().map(of).sum();
        (flows.packet_count, sum(|port| port.rx_packets), sum(|port| port.tx_packets))
    }

    fn reference_counts(&self) -> (u64, u64, u64) {
        let flows = self.reference.aggregate_stats(&FlowStatsRequest::all()).unwrap();
        let ports = self.reference.port_stats(PortNo::ANY, self.now).unwrap();
        let sum = |of: fn(&openflow::port::PortStats) -> u64| ports.iter().map(of).sum();
        (flows.packet_count, sum(|port| port.rx_packets), sum(|port| port.tx_packets))
    }
}

#[test]
fn two_stations_talk_in_the_kernel_and_count_as_ever() {
    let mut rig = Rig::new();
    rig.until_in_kernel((1, 1), (2, 2));
    // In one shard too.
    rig.until_in_kernel((1, 1), (3, 3));
    for _ in 0..100 {
        assert_eq!(rig.talk(1, 1, 2), (vec![2], true));
        assert_eq!(rig.talk(3, 3, 1), (vec![1], true));
    }
    // To the port that it came from, to many, and to the next bridge only.
    for (dst, ports) in [
        (MacAddr([0xff; 6]), vec![2, 3, 4]),
        (MacAddr([1, 0x80, 0xc2, 0, 0, 2]), vec![]),
        (station(1), vec![]),
    ] {
        for round in 0..4 {
            let sent = rig.send(1, &frame(dst, station(1), None));
            assert_eq!((&sent.0, sent.1.is_some()), (&ports, round > 1), "{dst} {round}");
        }
    }
    assert_eq!(rig.counts(), rig.reference_counts());
    assert!(rig.in_kernel > 200, "{}", rig.in_kernel);
}

#[test]
fn a_station_that_moves_takes_its_entries_along_in_every_shard() {
    let mut rig = Rig::new();
    rig.until_in_kernel((1, 1), (2, 2));
    rig.until_in_kernel((3, 3), (2, 2));
    rig.until_in_kernel((3, 3), (4, 4));
    // From one shard's port to the other's.
    assert_eq!(rig.talk(3, 2, 9).0, [1, 2, 4], "nobody knows the ninth");
    for (port, src) in [(1, 1), (4, 4)] {
        assert_eq!(rig.talk(port, src, 2).0, [3]);
    }
    assert_eq!(rig.talk(3, 3, 2), (vec![], false), "it is where it comes from");
    assert_eq!(rig.talk(3, 3, 4), (vec![4], true), "the others' entries stay");
    // And back, by its own frame to a station that it spoke with.
    assert_eq!(rig.talk(2, 2, 1), (vec![1], false));
    assert_eq!(rig.talk(1, 1, 2).0, [2]);
    rig.until_in_kernel((1, 1), (2, 2));
    assert_eq!(rig.counts(), rig.reference_counts());
}

/// The ports of a shard may all be of kinds without a kernel device, or left to the host.
#[test]
fn a_shard_without_a_kernel_reports_moves_to_the_other() {
    let mut rig = Rig::with_kernels([false, true]);
    rig.until_in_kernel((1, 1), (3, 3));
    assert_eq!(rig.talk(2, 3, 1), (vec![1], false), "to the port of the shard without one");
    assert_eq!(rig.talk(1, 1, 3).0, [2]);
    assert_eq!(rig.counts(), rig.reference_counts());
}

#[test]
fn addresses_in_the_kernel_stay_and_silent_ones_go_on_time() {
    let mut rig = Rig::new();
    rig.until_in_kernel((1, 1), (2, 2));
    let begun = rig.in_kernel;
    // The second answers so seldom that its own entry's lease ends in between.
    for second in 0..100 {
        rig.wait(1_000 * MS);
        assert_eq!(rig.talk(1, 1, 2).0, [2], "{second}");
        if second % 7 == 0 {
            assert_eq!(rig.talk(2, 2, 1).0, [1], "{second}");
        }
    }
    assert!(rig.in_kernel > begun + 85, "{}", rig.in_kernel - begun);
    // Now the second is silent. It was heard last at some time below; the reference knows when.
    for _ in 0..2 * u64::from(AGE_S) {
        rig.wait(700 * MS);
        rig.talk(1, 1, 2);
    }
    assert_eq!(rig.talk(1, 1, 2), (vec![2, 3, 4], false), "it was forgotten");
    rig.wait(u64::from(AGE_S) * 1_000 * MS);
    assert_eq!(rig.talk(2, 2, 1), (vec![1, 3, 4], false));
    rig.until_in_kernel((1, 1), (2, 2));
}

#[test]
fn a_flood_of_addresses_makes_no_entries() {
    let mut rig = Rig::new();
    rig.until_in_kernel((1, 1), (2, 2));
    let before = rig.entries();
    for number in 1_000..6_000 {
        rig.talk(1, number, 2);
        rig.talk(1, number, number + 7);
    }
    assert!(rig.entries() <= before + 2, "{} entries", rig.entries());
    assert_eq!(rig.talk(2, 2, 1), (vec![1], true), "those who talk go on");
}

/// The table of addresses is full, so that it drops those that are too old: nothing has moved then.
#[test]
fn a_station_that_was_forgotten_may_come_back_anywhere() {
    let mut rig = Rig::new();
    rig.until_in_kernel((1, 1), (2, 2));
    rig.wait(u64::from(AGE_S) * 2_000 * MS);
    (100..200).for_each(|number| drop(rig.talk(4, number, 5)));
    rig.wait(u64::from(AGE_S) * 2_000 * MS);
    for _ in 0..6 {
        rig.wait(2 * MS);
        rig.talk(3, 2, 1);
        rig.talk(1, 1, 2);
    }
    assert_eq!(rig.talk(1, 1, 2), (vec![3], true));
    assert_eq!(rig.counts(), rig.reference_counts());
}

#[test]
fn tags_change_in_the_kernel_as_the_ports_vlans_ask() {
    let mut rig = Rig::new();
    for (port, vlans) in [(1, "access:10"), (2, "trunk:10,20"), (3, "access:20"), (4, "access:10")]
    {
        rig.vlans(port, vlans);
    }
    let (one, two) = (station(1), station(2));
    let tagged = |vid| frame(one, two, Some(vid));
    for round in 0..9 {
        rig.wait(2 * MS);
        let (there, pushed) = rig.send(1, &frame(two, one, None));
        let (back, popped) = rig.send(2, &tagged(10));
        assert!(round == 0 || (&*there, &*back) == (&[2], &[1]), "{round}");
        let other = rig.send(2, &tagged(20)).0;
        assert_eq!(other, [3], "a station of another VLAN");
        if round == 8 {
            let none = MaskedRewrite::default();
            assert!(pushed.is_some_and(|it| it.tag != none.tag), "pushed");
            assert!(popped.is_some_and(|it| it.tag != none.tag), "popped");
        }
    }
    rig.until_in_kernel((1, 1), (4, 4));
    // The VLAN of a port changes: what was known there is not any more.
    rig.vlans(4, "access:20");
    assert_eq!(rig.talk(1, 1, 4).0, [2]);
    assert_eq!(rig.counts(), rig.reference_counts());
}

#[test]
fn entries_beside_normal_come_first_and_rewrites_are_made() {
    let mut rig = Rig::new();
    rig.flow("priority=5,in_port=1,eth_dst=02:00:00:00:00:07,actions=output:4");
    rig.flow("priority=5,in_port=3,actions=set_field:02:00:00:00:00:01->eth_dst,NORMAL");
    rig.until_in_kernel((1, 1), (2, 2));
    for _ in 0..3 {
        assert_eq!(rig.talk(1, 1, 7).0, [4]);
        assert_eq!(rig.talk(3, 3, 5).0, [1], "to where the other address is");
    }
    assert!(rig.talk(1, 1, 7).1 && rig.talk(3, 3, 5).1);
    // The station that the entry writes moves.
    assert_eq!(rig.talk(4, 1, 2), (vec![2], false));
    assert_eq!(rig.talk(3, 3, 5), (vec![4], false));
}

/// The key has the outer tag, and `NORMAL` looks at the inner.
#[test]
fn behind_a_tag_that_goes_the_next_one_says_where_a_frame_goes() {
    let mut rig = Rig::new();
    rig.flow("priority=5,in_port=1,vlan_vid=0x1003,actions=pop_vlan,NORMAL");
    let (one, two) = (station(1), station(2));
    rig.send(2, &frame(one, two, Some(10)));
    rig.send(3, &frame(one, two, Some(20)));
    for _ in 0..6 {
        rig.wait(2 * MS);
        let to_10 = rig.send(1, &frame_of_two_tags(two, one, [3, 10]));
        let to_20 = rig.send(1, &frame_of_two_tags(two, one, [3, 20]));
        assert_eq!((to_10.0, to_20.0), (vec![2], vec![3]));
    }
    // Without the pop it is the outer that counts, and the kernel's business.
    rig.send(4, &frame(one, two, Some(7)));
    rig.send(1, &frame_of_two_tags(two, one, [7, 10]));
    rig.wait(2 * MS);
    let sent: Vec<_> = (0..6).map(|_| rig.send(1, &frame_of_two_tags(two, one, [7, 10]))).collect();
    assert!(sent.iter().all(|(ports, _)| *ports == [4]) && sent[5].1.is_some());
}

/// All at once, at random; the reference says where each frame goes.
#[test]
fn whatever_happens_frames_go_where_the_reference_sends_them() {
    for seed in 0..8 {
        let mut rig = Rig::new();
        let mut random = Random::new(seed);
        let mut homes: Vec<u32> = (0..8).map(|_| 1 + random.below(PORTS.into()) as u32).collect();
        for _ in 0..3_000 {
            match random.below(402) {
                400 => rig.flow("priority=2,vlan_vid=0x100a,actions=pop_vlan,NORMAL"),
                401 => rig.flow("priority=2,vlan_vid=0x100a,actions=NORMAL"),
                0 => rig.flow("table=0,priority=0,actions=goto_table:1"),
                1 => rig.flow("table=1,priority=0,actions=NORMAL"),
                2 => rig.flow("priority=0,actions=NORMAL"),
                3 => rig.flow("priority=1,eth_src=02:00:00:00:00:03,actions=output:2,NORMAL"),
                4 => {
                    let config = [PortConfig::PORT_DOWN, PortConfig::NO_FWD, PortConfig::NO_FLOOD]
                        [random.index(3)];
                    rig.config(1 + random.below(PORTS.into()) as u32, config);
                }
                5..8 => {
                    (1..=PORTS).for_each(|port| rig.config(port, PortConfig::empty()));
                }
                8 => {
                    let port = 1 + random.below(PORTS.into()) as u32;
                    rig.remove_port(port);
                    rig.set_port(port);
                }
                9 => {
                    let vlans = ["access:10", "trunk", "trunk:10", "native-untagged:10"];
                    let port = 1 + random.below(PORTS.into()) as u32;
                    rig.vlans(port, vlans[random.index(4)]);
                }
                10..20 => rig.wait(random.below(u64::from(AGE_S) * 1_500) * MS),
                20..100 => rig.wait(random.below(2_000) * MS),
                _ => rig.wait(random.below(3) * MS),
            }
            let src = random.index(homes.len());
            if random.percent(2) {
                homes[src] = 1 + random.below(PORTS.into()) as u32;
            }
            let dst = match random.below(12) {
                0 => MacAddr([0xff; 6]),
                1 => station(99),
                _ => station(random.below(homes.len() as u64)),
            };
            let vlan = [None, None, None, Some(10), Some(0)][random.index(5)];
            let src_mac = station(src as u64);
            let bytes = match random.below(6) {
                0 => frame_of_two_tags(dst, src_mac, [10, [10, 20][random.index(2)]]),
                _ => frame(dst, src_mac, vlan),
            };
            for _ in 0..1 + random.below(4) {
                rig.send(homes[src], &bytes);
            }
        }
        assert_eq!(rig.counts().1, rig.reference_counts().1, "seed {seed}");
        assert_eq!(rig.counts(), rig.reference_counts(), "seed {seed}");
        assert!(rig.in_kernel > rig.sent / 5, "{} of {}", rig.in_kernel, rig.sent);
    }
}
