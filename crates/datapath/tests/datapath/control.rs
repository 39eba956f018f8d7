//! Control with several forwarders: what the seam cannot show, as it has one thread.
//!
//! Ops are handed to each forwarder by itself here, so that one can be late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use datapath::fast::testing::flushed;
use datapath::fast::{Applied, Control, Forwarder, Op, RemovalReport, Sink};
use datapath::{Counter, DatapathConfig, DropReason, FlowTable, MemoryBudget, MemoryNeed, Nanos};
use openflow::flow::{
    AggregateStats, FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStatsRequest,
};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::PacketIn;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::text::{parse_flow_mod, parse_group_mod, parse_subfield};
use openflow::{
    Action, Cookie, Error, Field, GroupId, Instruction, MacAddr, Match, MeterId, PortNo, QueueId,
    TableId, Version,
};
use packet::PacketBuf;
use packet::build::FrameBuilder;

const NOW: Nanos = Nanos(0);

/// Takes everything and keeps nothing.
pub(crate) struct Nowhere;

impl Sink for Nowhere {
    fn output(&mut self, _port: PortNo, _queue: Option<QueueId>, _frame: PacketBuf) {}

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

/// A control and its forwarders, each with the ops that it has not applied yet.
struct Rig {
    control: Control,
    forwarders: Vec<(Forwarder, Vec<Op>)>,
}

/// Without a kernel there is nothing to wait for.
fn apply_all(forwarder: &mut Forwarder, waiting: &mut Vec<Op>) {
    for op in waiting.drain(..) {
        assert!(matches!(forwarder.apply(op, NOW), Applied::Done));
    }
}

impl Rig {
    fn new(forwarders: usize, removal_report: RemovalReport) -> Self {
        let config = DatapathConfig { n_tables: 4, ..DatapathConfig::default() };
        let mut control = Control::new(config, forwarders, removal_report);
        for number in 1..=2 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            control.port_set(desc, NOW);
        }
        let forwarder = |number| (control.forwarder(number, 7), Vec::new());
        let forwarders = (0..forwarders).map(forwarder).collect();
        let mut rig = Self { control, forwarders };
        rig.catch_up_all();
        rig
    }

    fn hand_out(&mut self) {
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        for (_, waiting) in &mut self.forwarders {
            waiting.extend(ops.iter().cloned());
        }
    }

    /// Lets one forwarder apply all that there is, and flush.
    fn catch_up(&mut self, number: usize) {
        self.hand_out();
        let (forwarder, waiting) = &mut self.forwarders[number];
        apply_all(forwarder, waiting);
        while forwarder.flush_some(16, NOW) {}
    }

    fn catch_up_all(&mut self) {
        (0..self.forwarders.len()).for_each(|number| self.catch_up(number));
    }

    fn flow_mod(&mut self, command: FlowModCommand, text: &str) {
        let flow_mod = parse_flow_mod(text, command).unwrap();
        self.control.flow_mod(&flow_mod, Version::V1_3, NOW).unwrap();
    }

    fn send(&mut self, number: usize, packets: usize) {
        let (here, there) = (MacAddr::from_u64(2), MacAddr::from_u64(1));
        let frame = FrameBuilder::ethernet(here, there).fill_to(60).build();
        let mut frames = vec![PacketBuf::from_slice(&frame); packets];
        self.forwarders[number].0.process_batch(&mut frames, PortNo(1), NOW, &mut Nowhere);
    }

    /// Sends a packet of each of these flows by the first forwarder.
    fn send_flows(&mut self, flows: std::ops::Range<u64>) {
        let frame = |flow| {
            let here = MacAddr::from_u64(0x0200_0000_0000 + flow);
            let built = FrameBuilder::ethernet(here, MacAddr::from_u64(1)).fill_to(60).build();
            PacketBuf::from_slice(&built)
        };
        let mut frames = flows.map(frame).collect();
        self.forwarders[0].0.process_batch(&mut frames, PortNo(1), NOW, &mut Nowhere);
    }

    /// Gives control the entries that a forwarder's packets have taught; their number.
    fn learn(&mut self, number: usize) -> usize {
        let taught = self.forwarders[number].0.take_taught();
        taught.iter().for_each(|taught| self.control.learn(taught));
        taught.len()
    }

    fn entries(&self) -> u32 {
        self.control.aggregate_stats(&FlowStatsRequest::all()).unwrap().flow_count
    }

    fn packets(&self) -> u64 {
        self.control.aggregate_stats(&FlowStatsRequest::all()).unwrap().packet_count
    }
}

#[test]
fn counts_of_all_forwarders_add_up_when_they_are_folded() {
    let mut rig = Rig::new(2, RemovalReport::Asked);
    rig.flow_mod(FlowModCommand::Add, "actions=output:2");
    rig.catch_up_all();
    rig.send(0, 3);
    rig.send(1, 4);
    let ticket = rig.control.flush();
    rig.catch_up(0);
    assert!(flushed(&rig.control) < ticket);
    rig.catch_up(1);
    assert_eq!(flushed(&rig.control), ticket);
    assert_eq!(rig.packets(), 7);
    assert_eq!(rig.control.port_stats(PortNo(2), NOW).unwrap()[0].tx_packets, 7);
    assert_eq!(rig.control.table_stats()[0].matched_count, 7);
}

#[test]
fn a_removed_entry_is_reported_once_all_forwarders_have_counted() {
    let mut rig = Rig::new(2, RemovalReport::Asked);
    rig.flow_mod(FlowModCommand::Add, "cookie=5,send_flow_rem,actions=output:2");
    rig.flow_mod(FlowModCommand::Add, "cookie=6,in_port=9,actions=output:2");
    rig.catch_up_all();
    rig.send(0, 2);
    rig.flow_mod(FlowModCommand::Delete, "");
    assert!(rig.control.reap().is_empty() && !rig.control.is_reaped());
    // The late one still forwards by the entry, and that counts.
    rig.send(1, 5);
    rig.catch_up(0);
    assert!(rig.control.reap().is_empty() && !rig.control.is_reaped());
    rig.send(1, 1);
    rig.catch_up(1);
    let removed = rig.control.reap();
    assert!(rig.control.is_reaped());
    let gone = &removed[0].flow;
    assert_eq!((removed.len(), gone.cookie, gone.packet_count), (1, Cookie(5), 8), "one asked");
    assert_eq!(gone.reason, FlowRemovedReason::Delete);
    rig.flow_mod(FlowModCommand::Add, "actions=output:2");
    rig.catch_up_all();
    assert_eq!(rig.packets(), 0, "an entry's number comes without the counts of another one");
}

#[test]
fn a_flush_ends_while_packets_bring_more_counts_than_it_takes() {
    const FLOWS: u64 = 1_000;
    const PIECE: u64 = 16;
    let mut rig = Rig::new(1, RemovalReport::Asked);
    // Each source and each destination is a decision of its own.
    let text = "priority=9,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:01,actions=output:2";
    rig.flow_mod(FlowModCommand::Add, text);
    rig.flow_mod(FlowModCommand::Add, "actions=output:2");
    rig.catch_up_all();
    rig.send_flows(0..FLOWS);
    let apply = |rig: &mut Rig| {
        rig.hand_out();
        let (forwarder, waiting) = &mut rig.forwarders[0];
        apply_all(forwarder, waiting);
    };
    let asked = rig.control.flush();
    apply(&mut rig);
    let mut asked_later = asked;
    let mut sent = FLOWS;
    for piece in 0..FLOWS.div_ceil(PIECE) {
        assert!(flushed(&rig.control) < asked, "not before its last piece");
        rig.forwarders[0].0.flush_some(PIECE as usize, NOW);
        let first = piece * 2 * PIECE % FLOWS;
        rig.send_flows(first..first + 2 * PIECE);
        sent += 2 * PIECE;
        if piece == 3 {
            asked_later = rig.control.flush();
            apply(&mut rig);
        }
    }
    assert_eq!(flushed(&rig.control), asked, "the second flush was asked for after it began");
    assert!(rig.packets() >= FLOWS);
    rig.catch_up(0);
    assert_eq!(flushed(&rig.control), asked_later);
    assert_eq!(rig.packets(), sent);
}

#[test]
fn counts_that_are_reset_begin_anew_for_every_forwarder() {
    let mut rig = Rig::new(2, RemovalReport::Asked);
    rig.flow_mod(FlowModCommand::Add, "actions=output:2");
    rig.catch_up_all();
    rig.send(0, 2);
    rig.send(1, 2);
    rig.flow_mod(FlowModCommand::Modify, "reset_counts,actions=output:2");
    rig.send(1, 1);
    rig.catch_up_all();
    rig.send(0, 1);
    rig.control.flush();
    rig.catch_up_all();
    assert_eq!(rig.packets(), 1, "what met the entry as it was is not counted");
}

#[test]
fn an_idle_timeout_counts_from_the_last_use_by_any_forwarder() {
    let mut rig = Rig::new(2, RemovalReport::All);
    rig.flow_mod(FlowModCommand::Add, "idle_timeout=1,actions=output:2");
    rig.catch_up_all();
    let later = Nanos(900_000_000);
    let mut frames = vec![PacketBuf::from_slice(&[0; 60])];
    rig.forwarders[1].0.process_batch(&mut frames, PortNo(1), later, &mut Nowhere);
    assert_eq!(rig.control.expire(Nanos(1_500_000_000), 9).removed, 0);
    assert_eq!(rig.control.next_expiry(), Some(Nanos(1_900_000_000)));
    assert_eq!(rig.control.expire(Nanos(1_900_000_000), 9).removed, 1);
}

#[test]
fn expiry_in_pieces_takes_the_earliest_first() {
    let mut rig = Rig::new(1, RemovalReport::All);
    for (port, timeout) in [(1, 3), (2, 1), (3, 2), (4, 9)] {
        let text = format!("in_port={port},hard_timeout={timeout},actions=drop");
        rig.flow_mod(FlowModCommand::Add, &text);
    }
    let now = Nanos::from_s(5);
    assert_eq!(rig.control.expire(now, 2).removed, 2);
    let left = rig.control.flow_stats(&FlowStatsRequest::all(), now).unwrap();
    assert_eq!(left.iter().map(|flow| flow.hard_timeout_s).collect::<Vec<_>>(), [3, 9]);
    assert_eq!((rig.control.expire(now, 2).removed, rig.control.expire(now, 2).removed), (1, 0));
}

#[test]
fn a_group_takes_its_entries_along_and_no_others() {
    let mut rig = Rig::new(1, RemovalReport::All);
    let add = |text| parse_group_mod(text, openflow::group::GroupModCommand::Add).unwrap();
    for text in ["group_id=1,type=all,bucket=output:1", "group_id=2,type=all,bucket=output:2"] {
        rig.control.group_mod(&add(text), NOW).unwrap();
    }
    for (port, group) in [(1, 1), (2, 2), (3, 1)] {
        let text = format!("in_port={port},actions=group:{group}");
        rig.flow_mod(FlowModCommand::Add, &text);
    }
    rig.flow_mod(FlowModCommand::ModifyStrict, "in_port=3,actions=output:1");
    assert_eq!(rig.control.group_stats(GroupId(1), NOW)[0].ref_count, 1);
    let delete = parse_group_mod("group_id=1", openflow::group::GroupModCommand::Delete).unwrap();
    assert_eq!(rig.control.group_mod(&delete, NOW).unwrap().removed, 1);
    assert_eq!(rig.control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap().len(), 2);
}

fn host(index: u32) -> FlowMod {
    let mut add = FlowMod::new(FlowModCommand::Add);
    add.matching = Match::any().with(Field::EthType, 0x0800).with(Field::Ipv4Dst, index.into());
    add.cookie = Cookie(index.into());
    add
}

/// Small dumps are in order, large ones as they are stored; the rule is the same for both.
#[test]
fn a_dump_lists_what_stays_from_its_beginning_to_its_end_once() {
    for count in [100_u32, 3_000] {
        let mut rig = Rig::new(1, RemovalReport::Asked);
        let add = |rig: &mut Rig, index| {
            rig.control.flow_mod(&host(index), Version::V1_3, NOW).unwrap();
        };
        (0..count).for_each(|index| add(&mut rig, index));
        let request = FlowStatsRequest { table_id: TableId(0), ..FlowStatsRequest::all() };
        let mut dump = rig.control.dump(&request).unwrap();
        let mut listed = Vec::new();
        let (mut complete, mut next) = (false, 0);
        while !complete {
            let (flows, is_last) = rig.control.dump_next(&mut dump, 10, NOW);
            assert!(flows.len() <= 10);
            listed.extend(flows.iter().map(|flow| flow.cookie.0));
            complete = is_last;
            // Some go, some come, some are replaced, and numbers are used again.
            let gone = FlowMod { command: FlowModCommand::DeleteStrict, ..host(next % count) };
            rig.control.flow_mod(&gone, Version::V1_3, NOW).unwrap();
            add(&mut rig, count + next);
            let resets = FlowMod { flags: FlowModFlags::RESET_COUNTS, ..host((next + 1) % count) };
            rig.control.flow_mod(&resets, Version::V1_3, NOW).unwrap();
            drop(rig.control.reap());
            rig.catch_up_all();
            drop(rig.control.reap());
            next += 2;
        }
        let once: BTreeSet<u64> = listed.iter().copied().collect();
        assert_eq!(once.len(), listed.len(), "nothing twice");
        assert!(once.iter().all(|cookie| *cookie < count.into()), "nothing that came later");
        let stayed = (0..u64::from(count)).filter(|n| n % 2 == 1 && *n > u64::from(next));
        for cookie in stayed {
            assert!(once.contains(&cookie), "{cookie} of {count} is missing");
        }
        let mut sums = AggregateStats::default();
        let mut dump = rig.control.dump(&FlowStatsRequest::all()).unwrap();
        while !rig.control.dump_sum(&mut dump, 64, &mut sums) {}
        assert_eq!(sums.flow_count, rig.control.table_stats()[0].active_count);
    }
}

/// Allows a number of new ones, and those that there were, until it is used up.
#[derive(Debug)]
struct Allowance(AtomicU32);

impl MemoryBudget for Allowance {
    fn allows(&self, need: MemoryNeed, _bytes: usize) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        match need {
            MemoryNeed::Reused => true,
            MemoryNeed::New => {
                self.0.store(left.saturating_sub(1), Ordering::Relaxed);
                left > 0
            }
        }
    }
}

#[test]
fn without_memory_nothing_is_added_but_old_entries_can_return() {
    let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::Asked);
    control.set_memory_budget(Arc::new(Allowance(AtomicU32::new(4))));
    let flow = |control: &mut Control, command, priority| {
        let flow_mod = FlowMod { priority, ..FlowMod::new(command) };
        control.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).map(|_| ())
    };
    assert_eq!(flow(&mut control, FlowModCommand::Add, 1), Ok(()));
    assert_eq!(flow(&mut control, FlowModCommand::Add, 2), Ok(()));
    let group = |control: &mut Control, id, command| {
        let group_mod = GroupMod {
            command,
            group_type: GroupType::All,
            group_id: GroupId(id),
            buckets: Vec::new(),
            ..GroupMod::default()
        };
        control.group_mod(&group_mod, Nanos(0)).map(|_| ())
    };
    assert_eq!(group(&mut control, 1, GroupModCommand::Add), Ok(()));
    let meter = |control: &mut Control, id| {
        let meter_mod = MeterMod {
            command: MeterModCommand::Add,
            flags: MeterFlags::KBPS,
            meter_id: MeterId(id),
            bands: vec![Band { kind: BandKind::Drop, rate: 1, burst_size: 0 }],
        };
        control.meter_mod(&meter_mod, Nanos(0)).map(|_| ())
    };
    assert_eq!(meter(&mut control, 1), Ok(()));
    // All is used up.
    assert_eq!(flow(&mut control, FlowModCommand::Add, 3), Err(Error::FlowModTableFull));
    assert_eq!(group(&mut control, 2, GroupModCommand::Add), Err(Error::GroupModOutOfGroups));
    assert_eq!(meter(&mut control, 2), Err(Error::MeterModOutOfMeters));
    // An entry that replaces another needs none.
    assert_eq!(flow(&mut control, FlowModCommand::Add, 2), Ok(()));
    assert_eq!(group(&mut control, 1, GroupModCommand::Modify), Ok(()));
    assert_eq!(group(&mut control, 1, GroupModCommand::AddOrModify), Ok(()));
    let full = Err(Error::GroupModOutOfGroups);
    assert_eq!(group(&mut control, 2, GroupModCommand::AddOrModify), full);
    assert_eq!(group(&mut control, 1, GroupModCommand::Delete), Ok(()));
    assert_eq!(group(&mut control, 2, GroupModCommand::AddOrModify), Ok(()));
    assert_eq!(group(&mut control, 2, GroupModCommand::Add), Err(Error::GroupModGroupExists));
}

#[test]
fn a_full_table_that_evicts_gives_up_what_expires_first() {
    let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::Asked);
    let limit = |control: &mut Control, most| {
        let table = FlowTable { max_entries: Some(most), evicts: true, ..FlowTable::default() };
        control.set_flow_tables([(TableId(0), table)].into(), Nanos::from_s(5));
    };
    limit(&mut control, 3);
    let add = |control: &mut Control, text: &str, s| {
        let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        control.flow_mod(&flow_mod, Version::V1_3, Nanos::from_s(s)).map(|done| done.removed)
    };
    let priorities = |control: &Control| {
        let stats = control.flow_stats(&FlowStatsRequest::all(), Nanos::from_s(5)).unwrap();
        stats.iter().map(|stats| stats.priority).collect::<Vec<_>>()
    };
    for (text, removed) in [
        ("priority=9,actions=drop", 0),
        ("priority=8,hard_timeout=100,actions=drop", 0),
        ("priority=7,idle_timeout=20,actions=drop", 0),
        // Of another table, and before all of these.
        ("table=1,hard_timeout=1,actions=drop", 0),
        ("priority=6,idle_timeout=50,actions=drop", 1),
        ("priority=5,hard_timeout=60,actions=drop", 1),
        // It takes the place of its like.
        ("priority=5,hard_timeout=60,actions=drop", 0),
    ] {
        assert_eq!(add(&mut control, text, 0), Ok(removed), "{text}");
    }
    assert_eq!(priorities(&control)[..3], [9, 8, 5]);
    // Fewer are allowed than there are.
    limit(&mut control, 2);
    assert_eq!(priorities(&control)[..2], [9, 8]);
    assert_eq!(add(&mut control, "priority=4,actions=drop", 5), Ok(1));
    assert_eq!(priorities(&control)[..2], [9, 4]);
    let full = add(&mut control, "priority=3,actions=drop", 5);
    assert_eq!(full, Err(Error::FlowModTableFull), "none has a timeout");
}

#[test]
fn of_the_largest_group_an_entry_makes_room() {
    let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::Asked);
    let limit = |control: &mut Control, most| {
        let eviction_groups = vec![parse_subfield("NXM_OF_IN_PORT[0..3]").unwrap()];
        let name = String::new();
        let table = FlowTable { name, max_entries: Some(most), evicts: true, eviction_groups };
        control.set_flow_tables([(TableId(0), table)].into(), Nanos(0));
    };
    limit(&mut control, 6);
    let add = |control: &mut Control, text: &str| {
        let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        control.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).map(|done| done.removed)
    };
    let held = |control: &Control| {
        let stats = control.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap();
        stats.iter().map(|stats| stats.priority).collect::<Vec<_>>()
    };
    for (text, removed) in [
        ("priority=9,in_port=2,hard_timeout=1,actions=drop", 0),
        ("priority=8,in_port=1,hard_timeout=5,actions=drop", 0),
        ("priority=7,in_port=17,hard_timeout=4,actions=drop", 0),
        ("priority=6,in_port=1,actions=drop", 0),
        ("priority=5,in_port=1,actions=drop", 0),
        ("priority=4,dl_type=0x800,hard_timeout=3,actions=drop", 0),
        // Ports 1 and 17 have the same low bits.
        ("priority=3,in_port=2,hard_timeout=9,actions=drop", 1),
    ] {
        assert_eq!(add(&mut control, text), Ok(removed), "{text}");
    }
    assert_eq!(held(&control), [9, 8, 6, 5, 4, 3]);
    // The group of port 2 has two, and then there is one in each: the soonest goes.
    limit(&mut control, 4);
    assert_eq!(held(&control), [8, 6, 5, 3]);
    // Of those without a timeout none goes.
    limit(&mut control, 1);
    assert_eq!(held(&control), [6, 5]);
}

/// Allows what takes no more bytes than this at once.
#[derive(Debug)]
struct SizeLimit(usize);

impl MemoryBudget for SizeLimit {
    fn allows(&self, _need: MemoryNeed, bytes: usize) -> bool {
        bytes <= self.0
    }
}

#[test]
fn every_new_list_of_instructions_is_asked_for() {
    let small = vec![Action::Output { port: PortNo(1), max_len: 0 }; 2];
    let large = vec![Action::Output { port: PortNo(1), max_len: 0 }; 1_000];
    let flow_mod = |command, actions: &[Action], flags| FlowMod {
        instructions: vec![Instruction::ApplyActions(actions.to_vec())],
        flags,
        ..FlowMod::new(command)
    };
    let commands = [
        (FlowModCommand::Add, FlowModFlags::empty()),
        (FlowModCommand::Add, FlowModFlags::RESET_COUNTS),
        (FlowModCommand::Modify, FlowModFlags::empty()),
        (FlowModCommand::Modify, FlowModFlags::RESET_COUNTS),
        (FlowModCommand::ModifyStrict, FlowModFlags::empty()),
    ];
    for (command, flags) in commands {
        let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::Asked);
        control.set_memory_budget(Arc::new(SizeLimit(4_096)));
        let mut send = |flow_mod| control.flow_mod(&flow_mod, Version::V1_3, NOW).map(|_| ());
        let first = flow_mod(FlowModCommand::Add, &small, FlowModFlags::empty());
        assert_eq!(send(first), Ok(()));
        let refused = send(flow_mod(command, &large, flags));
        assert_eq!(refused, Err(Error::FlowModTableFull), "{command:?} {flags:?}");
        assert_eq!(send(flow_mod(command, &small, flags)), Ok(()), "a list that there is");
        let listed = control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap();
        let expected = vec![Instruction::ApplyActions(small.clone())];
        assert_eq!(listed[0].instructions, expected, "{command:?} {flags:?}");
    }
}

/// Forwarders that have not heard yet that nothing teaches any more are no matter, and neither is
/// what was on its way then.
#[test]
fn what_late_packets_teach_does_not_stay() {
    for (flags, gone) in [("delete_learned,", "table=0"), ("", "")] {
        let teaches = format!(
            "actions=learn(table=1,cookie=5,{flags}NXM_OF_ETH_DST[],output:NXM_OF_IN_PORT[])"
        );
        let mut rig = Rig::new(2, RemovalReport::Asked);
        for _ in 0..2 {
            rig.flow_mod(FlowModCommand::Add, &teaches);
            rig.catch_up_all();
            rig.send(0, 1);
            assert_eq!((rig.learn(0), rig.entries()), (1, 2));
            rig.catch_up_all();
            rig.send(0, 1);
            assert_eq!(rig.learn(0), 0, "it is known");

            rig.send_flows(5..6);
            rig.flow_mod(FlowModCommand::Delete, gone);
            assert_eq!(rig.learn(0), 1);
            rig.hand_out();
            for late in [0, 1] {
                rig.send(late, 1);
                assert_eq!(rig.learn(late), 1);
            }
            rig.catch_up_all();
            rig.send(0, 1);
            assert_eq!((rig.learn(0), rig.entries()), (0, 0), "{flags}");
        }
        assert_eq!(rig.control.counters().get(Counter::LearnsRefused), 0);
    }
}

/// A learnt entry takes the place of one that teaches: what that one taught goes now, and not at
/// the time of an earlier command.
#[test]
fn what_goes_by_a_learnt_entry_goes_at_its_time() {
    let mut rig = Rig::new(1, RemovalReport::All);
    let learn = "learn(table=1,delete_learned,cookie=5,NXM_OF_ETH_SRC[])";
    rig.flow_mod(FlowModCommand::Add, &format!("priority=2,in_port=1,actions={learn}"));
    let learn = "learn(table=0,priority=2,in_port=1,output:NXM_OF_IN_PORT[])";
    rig.flow_mod(FlowModCommand::Add, &format!("in_port=2,actions={learn}"));
    rig.catch_up_all();
    for (port, s) in [(1, 3), (2, 7)] {
        let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1)).build();
        let (forwarder, mut frames) =
            (&mut rig.forwarders[0].0, vec![PacketBuf::from_slice(&frame)]);
        forwarder.process_batch(&mut frames, PortNo(port), Nanos(s * 1_000_000_000), &mut Nowhere);
        assert_eq!(rig.learn(0), 1);
        rig.catch_up_all();
    }
    drop(rig.control.reap());
    rig.catch_up_all();
    let gone = rig.control.reap();
    assert_eq!(gone.iter().map(|gone| gone.flow.duration_s).collect::<Vec<_>>(), [4]);
}
