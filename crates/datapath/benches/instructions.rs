//! Number of instructions that the classifier and a forwarder with its caches execute: a count, so
//! that it is the same on a loaded machine as on a quiet one.
//!
//! `cargo xtask instructions` runs it under Callgrind and compares with the committed figures.
//! Entries, packets and keys come from fixed numbers. It must never count what prepares a case.
#![allow(missing_docs, reason = "the macros make public items that nobody sees")]

use std::hint::black_box;
use std::net::Ipv4Addr;

use datapath::fast::testing::{BURST, Classifier, CompiledMatch, EntryId, Masks};
use datapath::fast::{Caches, Fast, Sink};
use datapath::{Datapath, DatapathConfig, DropReason, Nanos};
use gungraun::{library_benchmark, library_benchmark_group, main};
use openflow::flow::FlowModCommand;
use openflow::message::PacketIn;
use openflow::port::{PortDesc, PortState};
use openflow::text::parse_flow_mod;
use openflow::{Field, MacAddr, Match, PortNo, QueueId, Version};
use packet::build::{FrameBuilder, Ipv4};
use packet::{FlowKey, PacketBuf};

/// Entries of a table in the classifier's cases.
const ENTRIES: u32 = 2048;
/// Packets of a pass through a forwarder, and keys of one through the classifier.
const PACKETS: u32 = 1024;
/// Frames that a worker hands over together.
const BATCH: usize = 32;

/// One exact match on a pair of addresses for each entry: one mask.
fn pairs(number: u32) -> Match {
    Match::any()
        .with(Field::EthType, 0x0800)
        .with(Field::Ipv4Src, u128::from(0x0a00_0000 + number))
        .with(Field::Ipv4Dst, u128::from(0x6400_0000 ^ number.reverse_bits()))
}

/// Prefixes of 17 lengths, as a routing table has them.
fn prefixes(number: u32) -> Match {
    let length = 16 + number % 17;
    let mask = u32::MAX << (32 - length);
    let address = number.wrapping_mul(0x9e37_79b1) & mask;
    Match::any().with(Field::EthType, 0x0800).with_masked(
        Field::Ipv4Dst,
        address.into(),
        mask.into(),
    )
}

/// Prefixes of two addresses, a protocol and a port in eight shapes, as an access list has them.
fn access_list(number: u32) -> Match {
    let shape = number % 8;
    let mask = |bits: u32| u32::MAX << (32 - bits);
    let (src, dst) = (mask(8 + shape * 2), mask(32 - shape * 2));
    let spread = number.wrapping_mul(0x9e37_79b1);
    let list = Match::any()
        .with(Field::EthType, 0x0800)
        .with(Field::IpProto, 6)
        .with_masked(Field::Ipv4Src, (spread & src).into(), src.into())
        .with_masked(Field::Ipv4Dst, (spread.reverse_bits() & dst).into(), dst.into());
    if shape < 4 { list.with(Field::TcpDst, u128::from(number & 0xffff)) } else { list }
}

/// A table, what was put into it, and a key for each of [`PACKETS`] packets that it matches.
struct Table {
    classifier: Classifier,
    entries: Vec<CompiledMatch>,
    keys: Vec<FlowKey>,
}

fn table(matching: fn(u32) -> Match) -> Table {
    let mut empty = entries(matching);
    for (number, entry) in (0..).zip(&empty.entries) {
        empty.classifier.insert(entry, 1.into(), number, EntryId(number as u32));
    }
    empty
}

/// As [`table`], and nothing in it yet.
fn entries(matching: fn(u32) -> Match) -> Table {
    let mut masks = Masks::default();
    let entries = (0..ENTRIES).map(|number| CompiledMatch::of(&matching(number), &mut masks));
    let entries = entries.collect();
    let keys = (0..PACKETS).map(|number| {
        let mut key = FlowKey::default();
        for held in matching(number.wrapping_mul(733) % ENTRIES).fields() {
            key.set(held.field, held.value);
        }
        key
    });
    Table { classifier: Classifier::new(0x5eed), entries, keys: keys.collect() }
}

#[library_benchmark(setup = table)]
#[bench::pairs(pairs)]
#[bench::prefixes(prefixes)]
#[bench::access_list(access_list)]
fn lookup(table: Table) -> Table {
    let mut out = [None; BURST];
    for keys in table.keys.chunks(BURST) {
        table.classifier.lookup_burst(black_box(keys), &mut out[..keys.len()]);
        assert!(black_box(&out)[0].is_some(), "the keys are those of entries");
    }
    table
}

#[library_benchmark(setup = entries)]
#[bench::pairs(pairs)]
#[bench::prefixes(prefixes)]
#[bench::access_list(access_list)]
fn insert(mut table: Table) -> Table {
    for (number, entry) in (0..).zip(&table.entries) {
        table.classifier.insert(black_box(entry), 1.into(), number, EntryId(number as u32));
    }
    table
}

#[library_benchmark(setup = table)]
#[bench::pairs(pairs)]
#[bench::prefixes(prefixes)]
#[bench::access_list(access_list)]
fn remove(mut table: Table) -> Table {
    for (number, entry) in (0..).zip(&table.entries) {
        assert!(
            table.classifier.remove(black_box(entry), 1.into(), EntryId(number)),
            "it was put in"
        );
    }
    table
}

/// Takes everything and gives buffers out again. A batch is taken as one, as the switch does it, so
/// that what is counted is the forwarder.
#[derive(Default)]
struct Discard {
    pool: Vec<PacketBuf>,
    outputs: usize,
}

impl Sink for Discard {
    fn output(&mut self, _port: PortNo, _queue: Option<QueueId>, frame: PacketBuf) {
        self.outputs += 1;
        self.pool.push(frame);
    }

    fn output_all(
        &mut self,
        _port: PortNo,
        _queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        _shortest: usize,
    ) {
        self.outputs += frames.len();
        self.pool.append(frames);
    }

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, frame: PacketBuf) {
        self.pool.push(frame);
    }

    fn spare(&mut self) -> PacketBuf {
        self.pool.pop().unwrap_or_default()
    }
}

/// A datapath that has seen the packets once, and the packets.
struct Forwarding {
    datapath: Fast,
    batches: Vec<Vec<PacketBuf>>,
    sink: Discard,
}

/// Port 1 to port 2 by one entry for each of 256 addresses.
const BY_ADDRESS: &str = "ip,nw_dst=100.0.0.NUMBER,actions=output:2";
/// The same with what a router does to the packet.
const ROUTE: &str = "ip,nw_dst=100.0.0.NUMBER,\
    actions=dec_ttl,set_field:02:00:00:00:00:09->eth_dst,output:2";
/// All packets of a port alike.
const BY_PORT: &str = "in_port=1,actions=output:2";
/// Tables of [`resubmitting`].
const TABLES: u32 = 20;
/// Policies of [`conjunctive`].
const POLICIES: u32 = 13;

const FRAME: Caches = Caches { frame: true, key: true, kernel: false };
const KEY: Caches = Caches { frame: false, key: true, kernel: false };
const NONE: Caches = Caches { frame: false, key: false, kernel: false };

/// An entry for each of 256 addresses where the line says so.
fn entries_of(line: &str) -> Vec<String> {
    let lines = if line.contains("NUMBER") { 256 } else { 1 };
    (0..lines).map(|number| line.replace("NUMBER", &number.to_string())).collect()
}

/// The decisions of [`BY_ADDRESS`] in the last of many tables, each of which writes a register and
/// resubmits to the next one.
fn resubmitting(caches: Caches) -> Forwarding {
    let last = TABLES - 1;
    let lead = |table: u32| {
        let next = table + 1;
        format!("table={table},reg0={table},actions=load:{next}->reg0[],resubmit(,{next})")
    };
    let ends = entries_of(&format!("table={last},reg0={last},{BY_ADDRESS}"));
    forwarding_by(&(0..last).map(lead).chain(ends).collect::<Vec<_>>(), frame, caches)
}

/// Addresses and port of a packet, each one of 100 that its policy has.
fn addresses(number: u32) -> [u32; 3] {
    let policy = number % POLICIES;
    let src = number / POLICIES % 100;
    let (dst, port) = ((number / (POLICIES * 100) + number * 7) % 100, number * 31 % 100);
    let net = policy << 16;
    [0x0a00_0000 | net | src, 0x6400_0000 | net | dst, 1_000 + policy * 100 + port]
}

fn dotted(address: u32) -> Ipv4Addr {
    address.into()
}

/// Policies of 100 sources, 100 destinations and 100 ports each, as conjunctive matches.
fn conjunctive(caches: Caches) -> Forwarding {
    let policy = |policy: u32| {
        let (id, net, port) = (policy + 1, policy << 16, 1_000 + policy * 100);
        let part = move |at: u32| {
            let (src, dst) = (dotted(0x0a00_0000 | net | at), dotted(0x6400_0000 | net | at));
            [
                format!("udp,nw_src={src},actions=conjunction({id},1/3)"),
                format!("udp,nw_dst={dst},actions=conjunction({id},2/3)"),
                format!("udp,tp_dst={},actions=conjunction({id},3/3)", port + at),
            ]
        };
        (0..100).flat_map(part).chain([format!("udp,conj_id={id},actions=output:2")])
    };
    forwarding_by(&(0..POLICIES).flat_map(policy).collect::<Vec<_>>(), policy_frame, caches)
}

/// As many entries as [`conjunctive`] has, each for one source, destination and port.
fn triples(caches: Caches) -> Forwarding {
    forwarding_by(&entries_of_triples(), policy_frame, caches)
}

/// The same beside a conjunctive match of which no packet matches a part.
fn triples_beside(caches: Caches) -> Forwarding {
    let mut entries = entries_of_triples();
    entries.extend([
        "tcp,nw_src=10.0.0.1,actions=conjunction(1,1/2)".into(),
        "tcp,nw_dst=10.0.0.2,actions=conjunction(1,2/2)".into(),
        "tcp,conj_id=1,actions=output:2".into(),
    ]);
    forwarding_by(&entries, policy_frame, caches)
}

fn entries_of_triples() -> Vec<String> {
    let entry = |number: u32| {
        let [src, dst, port] = addresses(number);
        let (src, dst) = (dotted(src), dotted(dst));
        format!("udp,nw_src={src},nw_dst={dst},tp_dst={port},actions=output:2")
    };
    (0..POLICIES * 301).map(entry).collect()
}

fn policy_frame(number: u32) -> Vec<u8> {
    let [src, dst, port] = addresses(number);
    let start = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
    start.ipv4(Ipv4::new(dotted(src), dotted(dst))).udp(1000, port as u16).fill_to(60).build()
}

fn forwarding(line: &str, caches: Caches) -> Forwarding {
    forwarding_by(&entries_of(line), frame, caches)
}

fn forwarding_by(entries: &[String], frame: fn(u32) -> Vec<u8>, caches: Caches) -> Forwarding {
    let mut datapath = Fast::new(DatapathConfig::default(), 1);
    for number in 1..=2 {
        let state = PortState::LIVE;
        let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
        datapath.port_set(desc, Nanos(0));
    }
    for entry in entries {
        let flow_mod = parse_flow_mod(entry, FlowModCommand::Add).expect("an entry");
        datapath.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).expect("the entry is taken");
    }
    datapath.forwarder().set_caches(caches, Nanos(0));
    let frames: Vec<Vec<u8>> = (0..PACKETS).map(frame).collect();
    let batches = || -> Vec<Vec<PacketBuf>> {
        let batch = |frames: &[Vec<u8>]| frames.iter().map(|frame| buffer(frame)).collect();
        frames.chunks(BATCH).map(batch).collect()
    };
    let sink = Discard { pool: Vec::with_capacity(PACKETS as usize), outputs: 0 };
    let mut forwarding = Forwarding { datapath, batches: batches(), sink };
    pass(&mut forwarding);
    assert_eq!(forwarding.sink.outputs, PACKETS as usize, "every packet leaves");
    forwarding.sink.pool.clear();
    forwarding.batches = batches();
    forwarding
}

fn frame(number: u32) -> Vec<u8> {
    let src = MacAddr::from_u64(0x0200_0000_0001);
    let dst = MacAddr::from_u64(0x0200_0000_0002);
    let to = 0x6400_0000 + number.wrapping_mul(733) % 256;
    let ip = Ipv4::new([10, 0, 0, 1].into(), to.to_be_bytes().into());
    FrameBuilder::ethernet(dst, src).ipv4(ip).udp(1000, 2000).fill_to(60).build()
}

fn buffer(frame: &[u8]) -> PacketBuf {
    let mut buffer = PacketBuf::default();
    buffer.assign(frame);
    buffer
}

fn pass(forwarding: &mut Forwarding) {
    for batch in &mut forwarding.batches {
        let Forwarding { datapath, sink, .. } = forwarding;
        datapath.process_batch(black_box(batch), PortNo(1), Nanos(1), sink);
    }
}

#[library_benchmark(setup = forwarding)]
#[bench::frame_cache(BY_ADDRESS, FRAME)]
#[bench::key_cache(BY_ADDRESS, KEY)]
#[bench::no_cache(BY_ADDRESS, NONE)]
#[bench::per_port(BY_PORT, FRAME)]
#[bench::rewrite(ROUTE, FRAME)]
#[bench::resubmits(args = (FRAME), setup = resubmitting)]
#[bench::resubmits_no_cache(args = (NONE), setup = resubmitting)]
#[bench::conjunctive_no_cache(args = (NONE), setup = conjunctive)]
#[bench::triples_no_cache(args = (NONE), setup = triples)]
#[bench::triples_beside_no_cache(args = (NONE), setup = triples_beside)]
fn forward(mut forwarding: Forwarding) -> Forwarding {
    pass(&mut forwarding);
    forwarding
}

library_benchmark_group!(name = classifier, benchmarks = [lookup, insert, remove]);
library_benchmark_group!(name = caches, benchmarks = forward);
main!(library_benchmark_groups = [classifier, caches]);
