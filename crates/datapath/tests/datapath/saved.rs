//! Entries, groups, meters and addresses that are saved and restored: another datapath has them as
//! they were, with their beginnings and counts.

use datapath::fast::{Control, EntryId, Forwarder, RemovalReport, Saved, SavedEntry};
use datapath::{DatapathConfig, Nanos};
use openflow::flow::{FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::meter::MeterModCommand;
use openflow::port::{PortDesc, PortState};
use openflow::table::TableMod;
use openflow::text::{parse_flow_mod, parse_group_mod, parse_meter_mod};
use openflow::{
    Error, GroupId, MacAddr, MeterId, PortNo, TableId, TupleForm, TwelveTuple, Version,
};
use packet::PacketBuf;
use packet::build::FrameBuilder;

use crate::control::Nowhere;

const BEGUN: Nanos = Nanos::from_s(100);
const USED: Nanos = Nanos::from_s(104);
const SAVED: Nanos = Nanos::from_s(105);
const LATER: Nanos = Nanos::from_s(107);

/// Without wildcards in the eyes of 1.0, by its form.
const EXACT: &str = "priority=7,in_port=1,dl_type=0x806,actions=output:2";

struct Rig {
    control: Control,
    forwarder: Forwarder,
}

impl Rig {
    fn new(n_tables: u8) -> Self {
        Self::with(DatapathConfig { n_tables, ..DatapathConfig::default() })
    }

    fn with(config: DatapathConfig) -> Self {
        let mut control = Control::new(config, 1, RemovalReport::Asked);
        for number in 1..=2 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            control.port_set(desc, BEGUN);
        }
        let forwarder = control.forwarder(0, 7);
        Self { control, forwarder }
    }

    /// Applies and flushes what there is.
    fn catch_up(&mut self) {
        self.control.flush();
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        for mut op in ops {
            while let Some(again) = self.forwarder.apply(op, USED).again() {
                op = again;
            }
        }
        while self.forwarder.flush_some(16, USED) {}
    }

    fn add_flow(&mut self, text: &str, version: Version) {
        let mut add = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        if text == EXACT {
            let difference = TwelveTuple { nw_tos: 3, ..TwelveTuple::default() };
            add.matching = add.matching.in_form(TupleForm { is_exact: true, difference });
        }
        self.control.flow_mod(&add, version, BEGUN).unwrap();
    }

    fn add_group(&mut self, text: &str) {
        let add = parse_group_mod(text, GroupModCommand::Add).unwrap();
        self.control.group_mod(&add, BEGUN).unwrap();
    }

    fn send(&mut self, packets: usize) {
        let (here, there) = (MacAddr::from_u64(0x0200_0000_0002), MacAddr::from_u64(1));
        let frame = FrameBuilder::ethernet(here, there).fill_to(60).build();
        let mut frames = vec![PacketBuf::from_slice(&frame); packets];
        self.forwarder.process_batch(&mut frames, PortNo(1), USED, &mut Nowhere);
        self.catch_up();
    }

    fn saved(&self) -> Saved {
        let Self { control, .. } = self;
        let entries = (0..control.entries_end().0).map(EntryId);
        let meters = control.meter_config(MeterId::ALL).unwrap();
        Saved {
            entries: entries.filter_map(|id| whole(control, id)).collect(),
            groups: control
                .group_desc()
                .iter()
                .filter_map(|group| control.saved_group(group.group_id))
                .collect(),
            meters: meters.iter().filter_map(|it| control.saved_meter(it.meter_id)).collect(),
            addresses: control.learnt_addresses(SAVED),
            tables: control.saved_tables(),
        }
    }

    /// Everything that a controller can see of them.
    fn shown(&mut self) -> Vec<String> {
        let control = &mut self.control;
        vec![
            format!("{:#?}", control.flow_stats(&FlowStatsRequest::all(), LATER).unwrap()),
            format!("{:#?}", control.group_desc()),
            format!("{:#?}", control.group_stats(GroupId::ALL, LATER)),
            format!("{:#?}", control.meter_config(MeterId::ALL).unwrap()),
            format!("{:#?}", control.meter_stats(MeterId::ALL, LATER).unwrap()),
            format!("{:?}", control.next_expiry()),
            format!("{:?}", control.table_desc()),
            format!("{:?}", control.learnt_addresses(LATER).len()),
        ]
    }
}

/// An entry with its instructions.
fn whole(control: &Control, id: EntryId) -> Option<SavedEntry> {
    let (mut entry, number) = control.saved_entry(id)?;
    let list = control.saved_instructions(number, None).unwrap();
    assert!(control.saved_instructions(number, Some(&list)).is_none());
    entry.add.instructions = list.list().to_vec();
    Some(entry)
}

fn filled() -> Rig {
    let mut rig = Rig::new(4);
    let meter = "meter=3,pktps,stats,band=type=drop,rate=5";
    let meter = parse_meter_mod(meter, MeterModCommand::Add).unwrap();
    rig.control.meter_mod(&meter, BEGUN).unwrap();
    rig.add_group("group_id=9,type=indirect,bucket=actions=NORMAL");
    rig.add_group("group_id=1,type=all,bucket=actions=group:9,bucket=actions=output:2");
    for flow in [
        "table=0,priority=5,in_port=1,cookie=0x5,check_overlap,send_flow_rem,actions=meter:3,\
         group:1,goto_table:2",
        "table=2,priority=0,hard_timeout=60,actions=output:2",
        "table=2,priority=4,in_port=1,idle_timeout=20,no_packet_counts,actions=output:2",
        "table=2,priority=4,in_port=2,dl_type=0x800,actions=drop",
        "table=1,priority=0,actions=CONTROLLER:100",
    ] {
        rig.add_flow(flow, Version::V1_3);
    }
    rig.add_flow(EXACT, Version::V1_0);
    rig.add_flow("priority=0,actions=output:2", Version::V1_0);
    rig.catch_up();
    rig.send(8);
    rig
}

#[test]
fn a_restored_datapath_is_the_one_that_was_saved() {
    let mut before = filled();
    let evicts = TableMod::new(TableId(2), TableMod::EVICTION);
    before.control.table_mod(&evicts, Version::V1_4).unwrap();
    let saved = before.saved();
    let counts = (saved.entries.len(), saved.groups.len(), saved.meters.len());
    let mut after = Rig::new(4);
    // In any order.
    let mut entries = saved.entries.clone();
    entries.reverse();
    let restored = after.control.restore(Saved { entries, ..saved.clone() }, SAVED);
    assert_eq!((restored.entries, restored.groups, restored.meters), counts);
    assert_eq!(restored.refused, None);
    assert_eq!(after.shown(), before.shown());
    assert!(after.shown()[0].contains("packet_count: 8"), "{}", after.shown()[0]);
    after.catch_up();
    assert_eq!(after.shown(), before.shown());
    // Packets find what they found, and counts go on.
    after.send(5);
    assert!(after.shown()[0].contains("packet_count: 13"), "{}", after.shown()[0]);
    // A second time it is the same.
    let mut again = Rig::new(4);
    again.control.restore(after.saved(), SAVED);
    assert_eq!(again.shown(), after.shown());
}

#[test]
fn what_a_smaller_datapath_refuses_is_counted() {
    let mut small = Rig::new(1);
    let saved = filled().saved();
    let all = saved.entries.len();
    let restored = small.control.restore(saved, SAVED);
    let (refused, error) = restored.refused.unwrap();
    // One leads to a table that there is not.
    assert_eq!((restored.entries, refused), (2, all - 2));
    assert!(matches!(error, Error::BadInstructionBadTableId | Error::FlowModBadTableId));
}

#[test]
fn nothing_is_left_of_a_group_that_is_refused() {
    let mut before = Rig::new(1);
    for group in [
        "group_id=2,type=all,bucket=actions=output:1,bucket=actions=output:2",
        "group_id=1,type=indirect,bucket=actions=group:2",
        "group_id=3,type=all,bucket=actions=group:1",
        "group_id=4,type=all,bucket=actions=output:1",
        "group_id=6,type=all",
        "group_id=5,type=ff,bucket=watch_group:6,actions=output:1",
    ] {
        before.add_group(group);
    }
    let delete = parse_group_mod("group_id=6", GroupModCommand::Delete).unwrap();
    before.control.group_mod(&delete, BEGUN).unwrap();
    let saved = before.saved();
    let all = |rig: &Rig| -> Vec<u32> {
        rig.control.group_desc().iter().map(|group| group.group_id.0).collect()
    };
    let mut same = Rig::new(1);
    assert_eq!(same.control.restore(saved.clone(), SAVED).refused, None);
    assert_eq!(same.shown(), before.shown());
    // The buckets of one are too many, and two lead to it.
    let mut small = Rig::with(DatapathConfig { max_buckets: 1, ..DatapathConfig::default() });
    let restored = small.control.restore(saved, SAVED);
    assert_eq!((restored.groups, restored.refused.map(|(count, _)| count)), (2, Some(3)));
    assert_eq!(all(&small), [4, 5]);
}

#[test]
fn an_entry_of_before_expires_when_its_time_has_come() {
    let mut after = Rig::new(4);
    let saved = filled().saved();
    let flags = FlowModFlags::SEND_FLOW_REM | FlowModFlags::CHECK_OVERLAP;
    assert!(saved.entries.iter().any(|entry| entry.add.flags == flags));
    // Twenty seconds after its last use.
    let late = Nanos::from_s(124);
    after.control.restore(saved.clone(), late);
    assert_eq!(after.control.expire(Nanos(late.0 - 1), 9).removed, 0);
    assert_eq!(after.control.expire(late, 9).removed, 1);
    // What the kernel has used after it was saved lives on.
    let mut after = Rig::new(4);
    let restored = after.control.restore(saved, late);
    let used = |at| restored.numbers.iter().map(|(_, now)| (*now, at)).collect::<Vec<_>>();
    after.control.note_used(&used(LATER));
    after.control.note_used(&used(BEGUN));
    let late = Nanos(late.0 + LATER.0 - USED.0);
    assert_eq!(after.control.expire(Nanos(late.0 - 1), 9).removed, 0);
    assert_eq!(after.control.expire(late, 9).removed, 1);
}
