//! Behaviour that no case can express: errors that the text syntax refuses first, the contents of
//! packet-ins, announced features against what runs, select groups, limits, traces.

use std::cell::Cell;
use std::collections::BTreeMap;

use datapath::fast::Fast;
use datapath::{
    Counter, Datapath, DatapathConfig, DropReason, Miss, Nanos, Out, Reference, Settings, Verdict,
};
use openflow::action::ACTIONS;
use openflow::field::{FIELDS, Prereq};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{PacketIn, PacketInReason, PacketOut};
use openflow::port::{PortDesc, PortState};
use openflow::table::{OnPacket, TableMod, TableProperty, TypeId};
use openflow::text::{parse_flow_mod, parse_group_mod};
use openflow::{
    Action, ActionKind, BufferId, Cookie, Error, Field, GroupId, Instruction, MacAddr, Match,
    PortNo, QueueId, TableId, Version,
};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

thread_local! {
    /// Whether [`with_ports`] makes fast datapaths.
    static IS_FAST: Cell<bool> = const { Cell::new(false) };
}

fn with_ports(config: DatapathConfig) -> Box<dyn Datapath> {
    let mut dp: Box<dyn Datapath> = if IS_FAST.get() {
        Box::new(Fast::new(config, 1))
    } else {
        Box::new(Reference::new(config))
    };
    for number in 1..=4 {
        let state = PortState::LIVE;
        let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
        dp.port_set(desc, Nanos(0));
    }
    dp
}

fn datapath() -> Box<dyn Datapath> {
    with_ports(DatapathConfig::default())
}

fn add(dp: &mut dyn Datapath, text: &str) {
    let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
    dp.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
}

fn group(dp: &mut dyn Datapath, text: &str) {
    let group_mod = parse_group_mod(text, GroupModCommand::Add).unwrap();
    dp.group_mod(&group_mod, Nanos(0)).unwrap();
}

fn udp(src_port: u16) -> Vec<u8> {
    let ip = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
    frame.ipv4(ip).udp(src_port, 53).fill_to(64).build()
}

fn send(dp: &mut dyn Datapath, frame: &[u8]) -> Vec<Verdict> {
    let mut out = Out::new();
    dp.process(PacketBuf::from_slice(frame), PortNo(1), Nanos(0), &mut out);
    out.drain().collect()
}

fn packet_in(verdicts: &[Verdict]) -> (&PacketIn, u16) {
    match verdicts {
        [Verdict::PacketIn { message, max_len }] => (message, *max_len),
        other => panic!("{other:?}"),
    }
}

fn refused(change: impl Fn(&mut FlowMod), version: Version) -> Error {
    let mut flow_mod = FlowMod::new(FlowModCommand::Add);
    change(&mut flow_mod);
    let mut dp = datapath();
    let error = dp.flow_mod(&flow_mod, version, Nanos(0)).unwrap_err();
    assert!(dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap().is_empty());
    error
}

#[test]
fn flow_mods_that_no_text_can_say_are_refused() {
    let v13 = Version::V1_3;
    let unknown = FlowModCommand::Unknown(9);
    assert_eq!(refused(|f| f.command = unknown, v13), Error::FlowModBadCommand);
    let odd = FlowModFlags::from_bits_retain(1 << 7);
    assert_eq!(refused(|f| f.flags = odd, v13), Error::FlowModBadFlags);
    let buffer = Some(BufferId(1));
    assert_eq!(refused(|f| f.buffer_id = buffer, v13), Error::BadRequestBufferUnknown);
    let orphan = Match::any().with(Field::TcpDst, 80);
    assert_eq!(refused(|f| f.matching = orphan.clone(), v13), Error::BadMatchBadPrereq);
    let foreign = Instruction::Experimenter { experimenter: 1, data: Vec::new() };
    let error = refused(|f| f.instructions = vec![foreign.clone()], v13);
    assert_eq!(error, Error::BadInstructionBadExperimenter);
    let twice = vec![Instruction::ClearActions; 2];
    let error = refused(|f| f.instructions = twice.clone(), v13);
    assert_eq!(error, Error::BadInstructionDupInst);
    let in_port = Action::set_field(Field::InPort, 1);
    let instructions = vec![Instruction::ApplyActions(vec![in_port])];
    let error = refused(|f| f.instructions = instructions.clone(), v13);
    assert_eq!(error, Error::BadActionBadSetType);
}

#[test]
fn what_1_0_does_not_have_or_weir_does_not_offer_is_refused() {
    let emergency = |f: &mut FlowMod| f.flags = FlowModFlags::EMERG;
    assert_eq!(refused(emergency, Version::V1_0), Error::FlowModBadFlags);
    let with_timeout = |f: &mut FlowMod| {
        f.flags = FlowModFlags::EMERG;
        f.idle_timeout_s = 5;
    };
    assert_eq!(refused(with_timeout, Version::V1_0), Error::FlowModBadTimeout);
    let goto = |f: &mut FlowMod| f.instructions = vec![Instruction::GotoTable(TableId(1))];
    assert_eq!(refused(goto, Version::V1_0), Error::BadInstructionUnsupInst);
    let later = |f: &mut FlowMod| f.flags = FlowModFlags::RESET_COUNTS;
    assert_eq!(refused(later, Version::V1_0), Error::FlowModBadFlags);
}

/// As Open vSwitch 3.1 shows them: an add of 1.0 resets counters, and a modify that adds does not.
#[test]
fn an_entry_of_1_0_shows_whether_it_has_reset_counts() {
    let mut dp = datapath();
    let mut flow_mod = |command, version, priority| {
        let flow_mod = FlowMod { priority, ..FlowMod::new(command) };
        dp.flow_mod(&flow_mod, version, Nanos(0)).unwrap();
    };
    flow_mod(FlowModCommand::Add, Version::V1_0, 1);
    flow_mod(FlowModCommand::ModifyStrict, Version::V1_0, 2);
    flow_mod(FlowModCommand::Add, Version::V1_3, 3);
    let mut shown = dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap();
    shown.sort_by_key(|entry| entry.priority);
    let flags: Vec<_> = shown.iter().map(|entry| entry.flags).collect();
    assert_eq!(flags, [FlowModFlags::RESET_COUNTS, FlowModFlags::empty(), FlowModFlags::empty()]);
}

#[test]
fn a_full_table_refuses_new_entries_and_takes_replacements() {
    let mut dp = with_ports(DatapathConfig { max_entries: 2, ..DatapathConfig::default() });
    add(&mut *dp, "in_port=1,actions=output:2");
    add(&mut *dp, "in_port=2,actions=output:1");
    add(&mut *dp, "in_port=2,actions=output:3");
    add(&mut *dp, "table=1,in_port=3,actions=output:3");
    let more = parse_flow_mod("in_port=3,actions=output:1", FlowModCommand::Add).unwrap();
    let refused = dp.flow_mod(&more, Version::V1_3, Nanos(0));
    assert_eq!(refused, Err(Error::FlowModTableFull));
}

#[test]
fn a_packet_in_says_where_it_comes_from() {
    let mut dp = datapath();
    add(&mut *dp, "table=0,actions=set_field:0x9->tunnel_id,write_metadata:0x7,goto_table:3");
    add(&mut *dp, "table=3,cookie=0xabc,actions=CONTROLLER:100");
    let frame = udp(1000);
    let verdicts = send(&mut *dp, &frame);
    let (message, max_len) = packet_in(&verdicts);
    assert_eq!((message.reason, message.table_id), (PacketInReason::Action, TableId(3)));
    assert_eq!((message.cookie, max_len), (Cookie(0xabc), 100));
    assert_eq!((message.buffer_id, message.total_len), (None, 64));
    assert_eq!(message.data, frame);
    let context =
        Match::any().with(Field::InPort, 1).with(Field::Metadata, 7).with(Field::TunnelId, 9);
    assert_eq!(message.matching, context);
}

#[test]
fn the_action_set_remembers_who_wrote_an_output() {
    let mut dp = datapath();
    add(&mut *dp, "table=0,cookie=1,actions=write_actions(CONTROLLER),goto_table:1");
    add(&mut *dp, "table=1,priority=0,cookie=2,actions=clear_actions,goto_table:2");
    add(&mut *dp, "table=2,cookie=3,actions=write_actions(CONTROLLER),goto_table:3");
    add(&mut *dp, "table=3,priority=0,cookie=4,actions=");
    let verdicts = send(&mut *dp, &udp(1));
    let (message, _) = packet_in(&verdicts);
    assert_eq!((message.table_id, message.cookie), (TableId(2), Cookie(3)));
}

#[test]
fn a_packet_in_names_the_actions_that_sent_it() {
    let send_out = |dp: &mut dyn Datapath, to| -> Vec<Verdict> {
        let (in_port, actions) = (PortNo(1), vec![Action::output(to)]);
        let packet_out = PacketOut { buffer_id: None, in_port, actions, data: udp(1) };
        let mut out = Out::new();
        dp.packet_out(&packet_out, Nanos(0), &mut out).unwrap();
        out.drain().collect()
    };
    for (flow, packet_out, reason) in [
        ("actions=CONTROLLER", None, PacketInReason::Action),
        ("actions=write_actions(CONTROLLER)", None, PacketInReason::ActionSet),
        ("actions=group:1", None, PacketInReason::Group),
        ("actions=write_actions(group:1)", None, PacketInReason::Group),
        ("actions=", Some(PortNo::CONTROLLER), PacketInReason::PacketOut),
        ("actions=CONTROLLER", Some(PortNo::TABLE), PacketInReason::Action),
        ("actions=write_actions(CONTROLLER)", Some(PortNo::TABLE), PacketInReason::ActionSet),
    ] {
        let mut dp = datapath();
        group(&mut *dp, "group_id=1,type=all,bucket=actions=CONTROLLER");
        add(&mut *dp, &format!("in_port=1,{flow}"));
        let verdicts = match packet_out {
            None => send(&mut *dp, &udp(1)),
            Some(port) => send_out(&mut *dp, port),
        };
        assert_eq!(packet_in(&verdicts).0.reason, reason, "{flow}");
    }
}

#[test]
fn a_miss_goes_up_with_an_unknown_cookie() {
    let settings = Settings { miss: Miss::Controller, ..Settings::default() };
    let mut dp = datapath();
    dp.set_settings(settings);
    assert_eq!(dp.settings(), settings);
    let verdicts = send(&mut *dp, &udp(1));
    let (message, max_len) = packet_in(&verdicts);
    assert_eq!((message.reason, message.table_id), (PacketInReason::NoMatch, TableId(0)));
    assert_eq!((message.cookie, max_len), (Cookie(u64::MAX), 128));
}

#[test]
fn a_packet_out_cannot_name_a_buffer() {
    let packet_out = PacketOut {
        buffer_id: Some(BufferId(3)),
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo(1))],
        data: Vec::new(),
    };
    let mut out = Out::new();
    let sent = datapath().packet_out(&packet_out, Nanos(0), &mut out);
    assert_eq!((sent, out.len()), (Err(Error::BadRequestBufferUnknown), 0));
}

#[test]
fn queues_go_with_the_outputs_behind_them() {
    let mut dp = datapath();
    add(&mut *dp, "actions=output:2,set_queue:7,output:3,write_actions(output:4)");
    let queues: Vec<Option<QueueId>> = send(&mut *dp, &udp(1))
        .into_iter()
        .map(|verdict| match verdict {
            Verdict::Output { queue, .. } => queue,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(queues, [None, Some(QueueId(7)), Some(QueueId(7))]);
    let stats = dp.queue_stats(PortNo::ANY, QueueId(7), Nanos(0)).unwrap();
    assert_eq!(stats.iter().map(|queue| queue.port_no.0).collect::<Vec<_>>(), [3, 4]);
}

/// The port that each of many flows leaves by.
fn spread(dp: &mut dyn Datapath) -> BTreeMap<u16, PortNo> {
    let one = |src_port: u16| match send(dp, &udp(src_port)).as_slice() {
        [Verdict::Output { port, .. }] => (src_port, *port),
        other => panic!("{other:?}"),
    };
    (0..600).map(one).collect()
}

#[test]
fn a_select_group_keeps_flows_and_follows_weights_and_liveness() {
    let mut dp = datapath();
    let buckets = "bucket=weight:1,watch_port:2,actions=output:2,\
                   bucket=weight:2,watch_port:3,actions=output:3,\
                   bucket=weight:0,actions=output:4";
    group(&mut *dp, &format!("group_id=1,type=select,{buckets}"));
    add(&mut *dp, "actions=group:1");
    let before = spread(&mut *dp);
    assert_eq!(before, spread(&mut *dp), "a flow has changed its bucket");
    let share = before.values().filter(|port| port.0 == 2).count();
    assert!((160..240).contains(&share), "{share} of 600 by port 2, expected about 200");
    assert!(before.values().all(|port| port.0 != 4), "a bucket of weight 0 was chosen");

    let down = PortDesc { port_no: PortNo(2), state: PortState::LINK_DOWN, ..PortDesc::default() };
    dp.port_set(down, Nanos(0));
    assert!(spread(&mut *dp).values().all(|port| port.0 == 3));
    let up = PortDesc { port_no: PortNo(2), state: PortState::LIVE, ..PortDesc::default() };
    dp.port_set(up, Nanos(0));
    assert_eq!(before, spread(&mut *dp));

    // A new bucket at the front takes flows to itself and moves none between the others.
    let wider = format!("group_id=1,type=select,bucket=weight:1,actions=output:4,{buckets}");
    let modify = parse_group_mod(&wider, GroupModCommand::Modify).unwrap();
    dp.group_mod(&modify, Nanos(0)).unwrap();
    for (flow, port) in spread(&mut *dp) {
        assert!(port.0 == 4 || port == before[&flow]);
    }
}

#[test]
fn group_mods_that_no_text_can_say_are_refused() {
    let mut dp =
        with_ports(DatapathConfig { max_groups: 1, max_buckets: 1, ..DatapathConfig::default() });
    let asked = |change: &dyn Fn(&mut GroupMod)| {
        let mut group_mod = GroupMod {
            command: GroupModCommand::Add,
            group_type: GroupType::All,
            group_id: GroupId(1),
            buckets: Vec::new(),
            ..GroupMod::default()
        };
        change(&mut group_mod);
        group_mod
    };
    let mut run = |change: &dyn Fn(&mut GroupMod)| dp.group_mod(&asked(change), Nanos(0));
    let unknown = GroupType::Unknown(9);
    assert_eq!(run(&|g| g.group_type = unknown), Err(Error::GroupModBadType));
    let command = GroupModCommand::Unknown(9);
    assert_eq!(run(&|g| g.command = command), Err(Error::GroupModBadCommand));
    for id in [GroupId::ALL, GroupId::ANY, GroupId(0xffff_ff01)] {
        assert_eq!(run(&|g| g.group_id = id), Err(Error::GroupModInvalidGroup));
    }
    let bucket = |watch_port| Bucket {
        bucket_id: None,
        weight: 0,
        watch_port,
        watch_group: GroupId::ANY,
        actions: Vec::new(),
    };
    let two = || vec![bucket(PortNo::ANY), bucket(PortNo::ANY)];
    assert_eq!(run(&|g| g.buckets = two()), Err(Error::GroupModOutOfBuckets));
    let odd = || vec![bucket(PortNo::FLOOD)];
    assert_eq!(run(&|g| g.buckets = odd()), Err(Error::GroupModBadWatch));
    assert!(run(&|_| {}).is_ok());
    assert_eq!(run(&|g| g.group_id = GroupId(2)), Err(Error::GroupModOutOfGroups));
}

#[test]
fn chained_groups_cannot_ask_for_endless_copies() {
    let mut dp = datapath();
    group(&mut *dp, "group_id=1,type=all,bucket=output:2,bucket=output:2");
    for id in 2..=20 {
        let below = id - 1;
        group(
            &mut *dp,
            &format!("group_id={id},type=all,bucket=group:{below},bucket=group:{below}"),
        );
    }
    add(&mut *dp, "actions=group:20");
    let verdicts = send(&mut *dp, &udp(1));
    assert!(verdicts.len() < 10_000, "{}", verdicts.len());
    assert!(dp.counters().drops(DropReason::TooManyCopies) > 0);
}

#[test]
fn buckets_are_copies_and_their_number_is_bounded() {
    let mut dp = datapath();
    group(&mut *dp, &format!("group_id=1,type=all{}", ",bucket=output:2".repeat(1_000)));
    let buckets = ",bucket=group:1".repeat(1_000);
    group(&mut *dp, &format!("group_id=2,type=all{buckets}"));
    add(&mut *dp, "actions=group:2");
    let verdicts = send(&mut *dp, &udp(1));
    assert!(verdicts.len() < 10_000, "{}", verdicts.len());
    assert!(dp.counters().drops(DropReason::TooManyCopies) > 0);
}

/// An IPv4 header that says it is shorter than 20 bytes is none.
#[test]
fn a_frame_with_a_short_ip_header_has_its_ether_type_alone() {
    for (first, entry, expected) in [
        (0x44, "priority=1,ip,nw_src=10.0.0.1,actions=output:3", 2),
        (0x40, "priority=1,ip,nw_tos=0,actions=output:3", 2),
        (0x65, "priority=1,udp,actions=output:3", 2),
        (0x44, "priority=1,ip,nw_proto=17,actions=output:3", 2),
        (0x45, "priority=1,ip,nw_src=10.0.0.1,actions=output:3", 3),
    ] {
        let mut dp = datapath();
        let changes = "set_field:9.9.9.9->ip_dst,dec_ttl";
        add(&mut *dp, &format!("priority=0,ip,actions={changes},output:2"));
        add(&mut *dp, entry);
        let mut frame = udp(1);
        frame[14] = first;
        let verdicts = send(&mut *dp, &frame);
        let [Verdict::Output { port, frame: sent, .. }] = verdicts.as_slice() else {
            panic!("{verdicts:?}");
        };
        assert_eq!(*port, PortNo(expected), "{entry}");
        assert_eq!(sent.bytes(), frame.as_slice(), "{entry}");
        // The set-field and the decrement are counted, since they did nothing.
        let skipped = dp.counters().get(Counter::ActionsWithoutEffect);
        assert_eq!(skipped, if expected == 2 { 2 } else { 0 }, "{entry}");
    }
}

/// A chain of groups, each leading to the one before it by the text of its bucket.
fn chain(dp: &mut dyn Datapath, length: u32, bucket: impl Fn(u32) -> String) {
    group(dp, "group_id=1,type=all,bucket=output:2");
    for id in 2..=length {
        group(dp, &format!("group_id={id},{}", bucket(id - 1)));
    }
}

#[test]
fn a_chain_of_groups_is_as_long_as_packets_follow_it() {
    let mut dp = datapath();
    chain(&mut *dp, 64, |below| format!("type=indirect,bucket=group:{below}"));
    add(&mut *dp, "in_port=1,actions=group:64");
    assert!(matches!(send(&mut *dp, &udp(1)).as_slice(), [Verdict::Output { .. }]));
    let mut change = |text: &str, command| {
        dp.group_mod(&parse_group_mod(text, command).unwrap(), Nanos(0)).err()
    };
    let (adds, modifies) = (GroupModCommand::Add, GroupModCommand::Modify);
    let refused = Some(Error::GroupModChainingUnsupported);
    assert_eq!(change("group_id=65,type=all,bucket=group:64", adds), refused);
    assert_eq!(change("group_id=65,type=all,bucket=group:63", adds), None);
    // What is at the other end may not make it longer.
    assert_eq!(change("group_id=100,type=all,bucket=output:2", adds), None);
    assert_eq!(change("group_id=1,type=all,bucket=group:100", modifies), refused);
    assert_eq!(change("group_id=1,type=all,bucket=group:64", modifies), Some(Error::GroupModLoop));
    // A shorter chain has room at both ends.
    assert_eq!(change("group_id=3,type=all,bucket=group:1", modifies), None);
    assert_eq!(change("group_id=1,type=all,bucket=group:100", modifies), None);
    assert_eq!(change("group_id=66,type=all,bucket=group:64", adds), refused);
    assert_eq!(change("group_id=1,type=all,bucket=output:2", modifies), None);
    assert_eq!(change("group_id=66,type=all,bucket=group:64", adds), None);
    assert_eq!(change("group_id=66", GroupModCommand::Delete), None);
    assert_eq!(change("group_id=all", GroupModCommand::Delete), None);
    assert_eq!(change("group_id=1,type=all,bucket=output:2", adds), None);
    assert_eq!(change("group_id=1", GroupModCommand::Delete), None);
}

#[test]
fn a_trace_knows_weight_0_from_not_live() {
    let mut dp = datapath();
    let select = "type=select,bucket=weight:0,output:2,bucket=watch_port:9,output:3";
    group(&mut *dp, &format!("group_id=1,{select}"));
    group(&mut *dp, "group_id=2,type=ff,bucket=output:2,bucket=watch_port:9,output:3");
    add(&mut *dp, "udp,actions=group:1,group:2");
    let text = dp.trace(PacketBuf::from_slice(&udp(1)), PortNo(1), Nanos(0)).to_string();
    for line in [
        "group 1 (select): bucket 0 has weight 0, bucket 1 is not live",
        "group 2 (fast_failover): bucket 0 watches nothing, bucket 1 is not live",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn liveness_is_found_however_groups_watch_each_other() {
    let mut dp = datapath();
    let twice = |below| {
        let bucket = format!("bucket=watch_group:{below},output:3");
        format!("type=ff,{bucket},{bucket}")
    };
    // Nothing of the chain is live as long as port 9 is not there.
    group(&mut *dp, "group_id=1,type=ff,bucket=watch_port:9,output:2");
    for id in 2..=300 {
        group(&mut *dp, &format!("group_id={id},{}", twice(id - 1)));
    }
    add(&mut *dp, "actions=group:300");
    assert_eq!(send(&mut *dp, &udp(1)), [Verdict::Drop { reason: DropReason::NoLiveBucket }]);
    let state = PortState::LIVE;
    dp.port_set(PortDesc { port_no: PortNo(9), state, ..PortDesc::default() }, Nanos(0));
    assert!(matches!(send(&mut *dp, &udp(1)).as_slice(), [Verdict::Output { .. }]));
}

#[test]
fn reference_counts_have_entries_and_groups_before_a_group() {
    let mut dp = datapath();
    chain(&mut *dp, 3, |_| "type=all,bucket=group:1,bucket=group:1".to_owned());
    add(&mut *dp, "in_port=1,actions=group:1,group:1,group:2");
    add(&mut *dp, "in_port=2,actions=group:1");
    let counts = |id| -> Vec<u32> {
        dp.group_stats(id, Nanos(0)).iter().map(|stats| stats.ref_count).collect()
    };
    assert_eq!(counts(GroupId::ALL), [4, 1, 0]);
    assert_eq!(counts(GroupId(1)), [4]);
}

#[test]
fn removed_entries_carry_their_last_counters() {
    let mut dp = datapath();
    add(&mut *dp, "in_port=1,cookie=5,idle_timeout=7,send_flow_rem,actions=output:2");
    send(&mut *dp, &udp(1));
    let removed = dp.expire(Nanos(7_500_000_000));
    let [gone] = removed.as_slice() else { panic!("{removed:?}") };
    assert!(gone.notify);
    assert_eq!((gone.flow.packet_count, gone.flow.byte_count), (1, 64));
    assert_eq!((gone.flow.duration_s, gone.flow.duration_ns), (7, 500_000_000));
    assert_eq!((gone.flow.reason, gone.flow.cookie), (FlowRemovedReason::IdleTimeout, Cookie(5)));
    assert_eq!(dp.counters().get(Counter::FlowsExpired), 1);
}

#[test]
fn table_mods_are_accepted_without_an_effect() {
    let mut dp = datapath();
    let run = |dp: &mut dyn Datapath, table_id, config| {
        dp.table_mod(&TableMod::new(table_id, config), Version::V1_3)
    };
    assert_eq!(run(&mut *dp, TableId::ALL, 0), Ok(()));
    assert_eq!(run(&mut *dp, TableId(7), 3), Ok(()));
    assert_eq!(run(&mut *dp, TableId(7), 4), Err(Error::TableModBadConfig));
    let mut small = with_ports(DatapathConfig { n_tables: 2, ..DatapathConfig::default() });
    assert_eq!(run(&mut *small, TableId(2), 0), Err(Error::TableModBadTable));
}

#[test]
fn requests_for_tables_that_are_not_there_are_refused() {
    let dp = with_ports(DatapathConfig { n_tables: 2, ..DatapathConfig::default() });
    let request = FlowStatsRequest { table_id: TableId(2), ..FlowStatsRequest::all() };
    assert_eq!(dp.flow_stats(&request, Nanos(0)), Err(Error::BadRequestBadTableId));
    assert_eq!(dp.aggregate_stats(&request), Err(Error::BadRequestBadTableId));
    assert_eq!((dp.table_stats().len(), dp.table_features(Version::V1_3).len()), (2, 2));
}

/// A match that guarantees what a field needs.
fn prerequisite(field: Field, matching: Match) -> Match {
    match field.row().prereq {
        Prereq::None => matching,
        Prereq::Present(other) => matching.with(other, 1),
        Prereq::VlanTag => matching.with(Field::VlanVid, 0x1001),
        Prereq::OneOf(other, values) => {
            let value = values.first().copied().unwrap();
            // ICMPv6 needs IPv6, but what it needs first names IPv4 as well.
            let matching = prerequisite(other, matching).with(other, value);
            if other == Field::IpProto && value == 58 {
                matching.with(Field::EthType, 0x86dd)
            } else {
                matching
            }
        }
    }
}

#[test]
fn what_is_announced_is_accepted() {
    let mut dp = datapath();
    group(&mut *dp, "group_id=1,type=all,bucket=output:2");
    let mut accept = |matching: Match, actions: Vec<Action>| {
        let mut flow_mod = FlowMod::new(FlowModCommand::Add);
        flow_mod.matching = matching;
        flow_mod.instructions = vec![Instruction::ApplyActions(actions.clone())];
        let done = dp.flow_mod(&flow_mod, Version::V1_3, Nanos(0));
        assert!(done.is_ok(), "{actions:?}: {done:?}");
    };
    for row in FIELDS {
        let matching = prerequisite(row.field, Match::any());
        let value = if row.field == Field::VlanVid { 0x1001 } else { 1 };
        accept(matching.clone().with(row.field, value), Vec::new());
        if row.settable {
            let matching = if row.field == Field::VlanVid {
                matching.with(Field::VlanVid, 0x1001)
            } else {
                matching
            };
            accept(matching, vec![Action::set_field(row.field, value)]);
        }
    }
    let features = dp.table_features(Version::V1_3);
    let property = &features[0].properties;
    let applied = property.iter().find_map(|property| match property {
        TableProperty::ApplyActions(_, list) => Some(list),
        _ => None,
    });
    let kinds: Vec<ActionKind> = applied
        .unwrap()
        .iter()
        .map(|id| match id {
            TypeId::Known(kind) => *kind,
            other => panic!("{other:?}"),
        })
        .collect();
    let known = ACTIONS.iter().map(|row| row.kind);
    let known = known.filter(|kind| kind.number(Version::V1_3).is_some());
    let all_but_experimenter: Vec<_> =
        known.filter(|kind| *kind != ActionKind::Experimenter).collect();
    assert_eq!(kinds, all_but_experimenter);
    let bits = kinds.iter().filter_map(|kind| kind.number(Version::V1_3));
    let bits = bits.fold(0, |bits, number| bits | 1 << number);
    assert_eq!(dp.group_features(Version::V1_3).actions, [bits; 4]);
}

#[test]
fn a_trace_shows_the_way_and_changes_nothing() {
    let mut dp = datapath();
    group(&mut *dp, "group_id=1,type=indirect,bucket=output:3");
    add(&mut *dp, "table=0,priority=5,ip,actions=dec_ttl,pop_vlan,goto_table:1");
    add(&mut *dp, "table=1,cookie=0x7,actions=output:2,write_actions(group:1)");
    let trace = dp.trace(PacketBuf::from_slice(&udp(1)), PortNo(1), Nanos(0));
    let text = trace.to_string();
    let expected = [
        "table 0: priority=5,ip",
        "dec_ttl",
        "skipped",
        "table 1: priority=32768",
        "cookie=0x7",
        "leaves by port 2",
        "action set",
        "group 1 (indirect): bucket 0",
        "leaves by port 3",
    ];
    let mut rest = text.as_str();
    for word in expected {
        let at = rest.find(word).unwrap_or_else(|| panic!("no `{word}` in order in\n{text}"));
        rest = &rest[at..];
    }
    assert_eq!(trace.verdicts.len(), 2);
    let flows = dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap();
    assert!(flows.iter().all(|flow| flow.packet_count == 0));
    assert_eq!(dp.table_stats()[0].lookup_count, 0);
}

/// Both datapaths, with four ports, three tables and room for two entries in each.
fn both() -> [Box<dyn Datapath>; 2] {
    let config = DatapathConfig { n_tables: 3, max_entries: 2, ..DatapathConfig::default() };
    let both: [Box<dyn Datapath>; 2] =
        [Box::new(Reference::new(config.clone())), Box::new(Fast::new(config, 1))];
    both.map(|mut dp| {
        for number in 1..=4 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            dp.port_set(desc, Nanos(0));
        }
        dp
    })
}

fn flow(dp: &mut dyn Datapath, text: &str, now: Nanos) -> Result<Vec<FlowRemovedReason>, Error> {
    let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
    let outcome = dp.flow_mod(&flow_mod, Version::V1_3, now)?;
    Ok(outcome.removed.iter().map(|gone| gone.flow.reason).collect())
}

#[test]
fn entries_whose_timeout_has_passed_fill_no_table() {
    for mut dp in both() {
        let dp = dp.as_mut();
        let mut add = |text, s| flow(dp, text, Nanos::from_s(s));
        assert_eq!(add("in_port=1,hard_timeout=5,actions=drop", 0), Ok(vec![]));
        assert_eq!(add("in_port=2,idle_timeout=5,actions=drop", 0), Ok(vec![]));
        assert_eq!(add("in_port=3,actions=drop", 4), Err(Error::FlowModTableFull));
        let both = vec![FlowRemovedReason::HardTimeout, FlowRemovedReason::IdleTimeout];
        assert_eq!(add("in_port=3,actions=drop", 5), Ok(both));
        assert_eq!(add("in_port=4,actions=drop", 5), Ok(vec![]));
        assert_eq!(add("in_port=1,actions=drop", 5), Err(Error::FlowModTableFull));
        assert_eq!(dp.counters().get(Counter::FlowsExpired), 2);
        assert_eq!(dp.expire(Nanos::from_s(9)), vec![]);
    }
}

#[test]
fn another_pipeline_removes_entries_without_a_flow_removed() {
    for mut dp in both() {
        let dp = dp.as_mut();
        let kept = "table=0,send_flow_rem,actions=goto_table:1";
        let lost = "table=1,send_flow_rem,dl_vlan=5,actions=output:2";
        flow(dp, kept, Nanos(0)).unwrap();
        flow(dp, lost, Nanos(0)).unwrap();
        let mut asked = dp.table_features(Version::V1_3);
        asked[0].name = "first".into();
        asked[1].max_entries = 1;
        let outcome = dp.set_table_features(&asked, Version::V1_3, Nanos(0)).unwrap();
        assert_eq!(outcome.removed.len(), 1);
        assert!(outcome.removed.iter().all(|gone| !gone.notify));
        assert_eq!(dp.table_features(Version::V1_3), asked);
        let stats = dp.table_stats();
        assert_eq!((stats[0].name.as_str(), stats[0].active_count), ("first", 1));
        assert_eq!((stats[1].max_entries, stats[1].active_count), (1, 0));
        flow(dp, lost, Nanos(0)).unwrap();
        let full = flow(dp, "table=1,dl_vlan=6,actions=output:2", Nanos(0));
        assert_eq!(full, Err(Error::FlowModTableFull));
        asked[1].metadata_write = 0;
        let refused = dp.set_table_features(&asked, Version::V1_3, Nanos(0));
        assert_eq!(refused, Err(Error::TableFeaturesBadMetadata));
        assert_eq!(dp.table_stats()[1].active_count, 1);
    }
}

#[test]
fn a_table_that_is_gone_is_no_table() {
    for mut dp in both() {
        let dp = dp.as_mut();
        let mut asked = dp.table_features(Version::V1_3);
        asked.truncate(1);
        let next = |property: &TableProperty| matches!(property, TableProperty::NextTables(..));
        asked[0].properties.retain(|property| !next(property));
        asked[0].properties.push(TableProperty::NextTables(OnPacket::Hit, vec![]));
        flow(dp, "table=1,actions=output:2", Nanos(0)).unwrap();
        assert_eq!(
            dp.set_table_features(&asked, Version::V1_3, Nanos(0)).unwrap().removed.len(),
            1
        );
        assert_eq!((dp.table_stats().len(), dp.table_features(Version::V1_3).len()), (1, 1));
        let gone = flow(dp, "table=1,actions=output:2", Nanos(0));
        assert_eq!(gone, Err(Error::FlowModBadTableId));
        let goto = flow(dp, "actions=goto_table:1", Nanos(0));
        assert_eq!(goto, Err(Error::BadInstructionBadTableId));
        let request = FlowStatsRequest { table_id: TableId(1), ..FlowStatsRequest::all() };
        assert_eq!(dp.flow_stats(&request, Nanos(0)), Err(Error::BadRequestBadTableId));
        let table_mod = TableMod::new(TableId(1), 0);
        assert_eq!(dp.table_mod(&table_mod, Version::V1_3), Err(Error::TableModBadTable));
    }
}

macro_rules! fast_too {
    ($($test:ident)+) => {
        /// The same tests on the fast datapath.
        mod fast {
            $(#[test]
            fn $test() {
                super::IS_FAST.set(true);
                super::$test();
                super::IS_FAST.set(false);
            })+
        }
    };
}

fast_too! {
    flow_mods_that_no_text_can_say_are_refused
    what_1_0_does_not_have_or_weir_does_not_offer_is_refused
    a_full_table_refuses_new_entries_and_takes_replacements
    a_packet_in_says_where_it_comes_from
    the_action_set_remembers_who_wrote_an_output
    a_miss_goes_up_with_an_unknown_cookie
    a_packet_out_cannot_name_a_buffer
    queues_go_with_the_outputs_behind_them
    a_select_group_keeps_flows_and_follows_weights_and_liveness
    group_mods_that_no_text_can_say_are_refused
    chained_groups_cannot_ask_for_endless_copies
    buckets_are_copies_and_their_number_is_bounded
    a_chain_of_groups_is_as_long_as_packets_follow_it
    a_frame_with_a_short_ip_header_has_its_ether_type_alone
    liveness_is_found_however_groups_watch_each_other
    reference_counts_have_entries_and_groups_before_a_group
    removed_entries_carry_their_last_counters
    table_mods_are_accepted_without_an_effect
    requests_for_tables_that_are_not_there_are_refused
    what_is_announced_is_accepted
    a_trace_shows_the_way_and_changes_nothing
}
