//! Resubmits where no text of a case reaches: the action that names no table, and what is cached of
//! a way through many tables.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, DropReason, Nanos, Out, Reference, Verdict};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;
use openflow::{Action, Instruction, MacAddr, PortNo, ShortPort, Version};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

use crate::support::with;

fn frame(number: u32) -> PacketBuf {
    let ip = Ipv4::new([10, 0, 0, 1].into(), (0x0a00_0100 + number).to_be_bytes().into());
    let built = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1)).ipv4(ip);
    PacketBuf::from_slice(&built.udp(1, 2).fill_to(60).build())
}

/// The verdicts about a frame from port 1: the ports that it leaves by, or why it is dropped.
fn verdicts(datapath: &mut dyn Datapath, frame: PacketBuf) -> Vec<Result<u32, DropReason>> {
    let mut out = Out::new();
    datapath.process(frame, PortNo(1), Nanos(1), &mut out);
    let verdict = |verdict: &Verdict| match verdict {
        Verdict::Output { port, .. } => Ok(port.0),
        Verdict::Drop { reason } => Err(*reason),
        Verdict::PacketIn { .. } | Verdict::Held => panic!("{verdict:?}"),
    };
    out.verdicts().iter().map(verdict).collect()
}

/// The ports that a frame from port 1 leaves by.
fn ports(datapath: &mut dyn Datapath, frame: PacketBuf) -> Vec<u32> {
    verdicts(datapath, frame).into_iter().map(Result::unwrap).collect()
}

/// The verdicts of both datapaths about a frame from port 1, which are the same, cached or not.
fn both(entries: &[String]) -> Vec<Result<u32, DropReason>> {
    let mut reference = with(Reference::new(DatapathConfig::default()), 4, entries);
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), 4, entries);
    let expected = verdicts(&mut reference, frame(0));
    for _ in 0..3 {
        assert_eq!(verdicts(&mut fast, frame(0)), expected);
    }
    expected
}

/// An action so many times.
fn times(action: &str, count: usize) -> String {
    vec![action; count].join(",")
}

#[test]
fn without_a_table_the_present_one_is_searched() {
    let entries = ["in_port=3,actions=output:3", "table=1,in_port=3,actions=output:4"];
    let entries = entries.map(str::to_owned);
    let mut begin = parse_flow_mod("in_port=1,actions=goto_table:1", FlowModCommand::Add).unwrap();
    let port = ShortPort::new(PortNo(3)).unwrap();
    let list = vec![Action::Resubmit(port), Action::output(PortNo(2))];
    let mut again = FlowMod { table_id: openflow::TableId(1), ..begin.clone() };
    again.instructions = vec![Instruction::ApplyActions(list)];
    begin.priority = 1;
    let mut reference = with(Reference::new(DatapathConfig::default()), 4, &entries);
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), 4, &entries);
    let datapaths: [&mut dyn Datapath; 2] = [&mut reference, &mut fast];
    for datapath in datapaths {
        for flow_mod in [&begin, &again] {
            datapath.flow_mod(flow_mod, Version::V1_3, Nanos(0)).unwrap();
        }
        assert_eq!(ports(datapath, frame(0)), [4, 2]);
        assert_eq!(ports(datapath, frame(0)), [4, 2]);
    }
}

#[test]
fn a_way_through_twenty_tables_is_cached() {
    // At the end of a list, and where something comes after it.
    for then in ["", ",load:7->reg1[]"] {
        is_cached_with(then);
    }
}

fn is_cached_with(then: &str) {
    let lead = |table: u32| {
        let next = table + 1;
        format!("table={table},reg0={table},actions=load:{next}->reg0[],resubmit(,{next}){then}")
    };
    let end = |number: u32| format!("table=19,reg0=19,ip,nw_dst=10.0.1.{number},actions=output:2");
    let entries: Vec<String> = (0..19).map(lead).chain((0..50).map(end)).collect();
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), 4, &entries);
    for number in (0..50).cycle().take(500) {
        assert_eq!(ports(&mut fast, frame(number)), [2]);
    }
    let figures = fast.forwarder().figures();
    assert_eq!((figures.frame_hits, figures.frame_misses, figures.walked), (450, 50, 0));
    // All of them have one, beside that of packets that go step by step.
    assert_eq!((figures.programs, figures.compiled), (2, 1), "{then}");
    let tables = fast.table_stats();
    assert!(tables[..20].iter().all(|table| table.matched_count == 500));
}

#[test]
fn a_goto_leads_on_64_deep_no_more_than_a_resubmit() {
    let again = |at: u32| format!("table=1,reg0={at},actions=load:{}->reg0[],resubmit(,1)", at + 1);
    let ending_with = |last: &str| -> Vec<String> {
        let ends = ["actions=output:2,resubmit(,1)", "table=2,actions=output:3"];
        let last = format!("table=1,reg0=64,actions={last}");
        (0..64).map(again).chain(ends.map(str::to_owned)).chain([last]).collect()
    };
    assert_eq!(both(&ending_with("output:4")), [Ok(2), Ok(4)]);
    assert_eq!(both(&ending_with("goto_table:2")), [Err(DropReason::TooManyResubmits)]);
}

#[test]
fn a_packet_of_more_than_65536_actions_is_dropped_whole() {
    let entries = |resubmits: usize, action: &str, count: usize| {
        let first = format!("actions=output:2,{}", times("resubmit(,1)", resubmits));
        [first, format!("table=1,actions={}", times(action, count))]
    };
    assert_eq!(both(&entries(32, "load:1->reg0[]", 2_046)), [Ok(2)]);
    assert_eq!(both(&entries(32, "load:1->reg0[]", 2_047)), [Err(DropReason::TooManyActions)]);
    // A flood by four ports is five.
    assert_eq!(both(&entries(8, "output:ALL", 1_638)).len(), 1 + 8 * 1_638 * 3);
    assert_eq!(both(&entries(8, "output:ALL", 1_639)), [Err(DropReason::TooManyActions)]);
    // Without resubmits too.
    let list = |table: u32| {
        format!("table={table},actions={},goto_table:{}", times("output:3", 3_900), table + 1)
    };
    let end = "table=17,actions=output:4".to_owned();
    let entries: Vec<String> = (0..17).map(list).chain([end]).collect();
    assert_eq!(both(&entries), [Err(DropReason::TooManyActions)]);
}

#[test]
fn a_way_through_more_tables_than_there_are_is_not_cached() {
    let entries = [
        format!("actions={},output:2", times("resubmit(,1)", 256)),
        "table=1,ip,actions=load:1->reg0[]".to_owned(),
    ];
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), 4, &entries);
    for _ in 0..10 {
        assert_eq!(ports(&mut fast, frame(0)), [2]);
    }
    assert_eq!(fast.forwarder().figures().walked, 10);
    assert_eq!(fast.table_stats()[1].matched_count, 2_560);
}
