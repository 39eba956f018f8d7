//! Resubmits where no text of a case reaches: the action that names no table, and what is cached of
//! a way through many tables.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Nanos, Out, Reference, Verdict};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::text::parse_flow_mod;
use openflow::{Action, Instruction, MacAddr, PortNo, ShortPort, Version};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

/// With ports 1 to 4 and these entries.
fn with<D: Datapath>(mut datapath: D, entries: &[String]) -> D {
    for number in 1..=4 {
        let state = PortState::LIVE;
        let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
        datapath.port_set(desc, Nanos(0));
    }
    for entry in entries {
        let flow_mod = parse_flow_mod(entry, FlowModCommand::Add).unwrap();
        datapath.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
    }
    datapath
}

fn frame(number: u32) -> PacketBuf {
    let ip = Ipv4::new([10, 0, 0, 1].into(), (0x0a00_0100 + number).to_be_bytes().into());
    let built = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1)).ipv4(ip);
    PacketBuf::from_slice(&built.udp(1, 2).fill_to(60).build())
}

/// The ports that a frame from port 1 leaves by.
fn ports(datapath: &mut dyn Datapath, frame: PacketBuf) -> Vec<u32> {
    let mut out = Out::new();
    datapath.process(frame, PortNo(1), Nanos(1), &mut out);
    let port = |verdict: &Verdict| match verdict {
        Verdict::Output { port, .. } => port.0,
        Verdict::PacketIn { .. } | Verdict::Held | Verdict::Drop { .. } => panic!("{verdict:?}"),
    };
    out.verdicts().iter().map(port).collect()
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
    let mut reference = with(Reference::new(DatapathConfig::default()), &entries);
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), &entries);
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
    let lead = |table: u32| {
        let next = table + 1;
        format!("table={table},reg0={table},actions=load:{next}->reg0[],resubmit(,{next})")
    };
    let end = |number: u32| format!("table=19,reg0=19,ip,nw_dst=10.0.1.{number},actions=output:2");
    let entries: Vec<String> = (0..19).map(lead).chain((0..50).map(end)).collect();
    let mut fast = with(Fast::new(DatapathConfig::default(), 1), &entries);
    for number in (0..50).cycle().take(500) {
        assert_eq!(ports(&mut fast, frame(number)), [2]);
    }
    let figures = fast.forwarder().figures();
    assert_eq!((figures.frame_hits, figures.frame_misses, figures.walked), (450, 50, 0));
    // All of them have one, beside that of packets that go step by step.
    assert_eq!(figures.programs, 2);
    let tables = fast.table_stats();
    assert!(tables[..20].iter().all(|table| table.matched_count == 500));
}
