//! Differences of OpenFlow 1.0 from 1.3, on both datapaths: no table-miss entry, entries
//! without wildcards above all others, matches given back as they were set up.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Miss, Nanos, Out, Reference, Settings, Verdict};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest};
use openflow::message::PacketInReason;
use openflow::port::{PortDesc, PortState};
use openflow::{
    Action, Cookie, Error, Field, Instruction, MacAddr, Match, PortNo, TableId, TupleForm,
    TwelveTuple, Version,
};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};

/// Both datapaths, each with a port.
fn datapaths() -> [Box<dyn Datapath>; 2] {
    let settings = Settings { miss: Miss::Controller, ..Settings::default() };
    let config = DatapathConfig { settings, ..DatapathConfig::default() };
    let mut both: [Box<dyn Datapath>; 2] =
        [Box::new(Reference::new(config.clone())), Box::new(Fast::new(config, 1))];
    for dp in &mut both {
        let state = PortState::LIVE;
        let desc = PortDesc { port_no: PortNo(1), state, ..PortDesc::default() };
        dp.port_set(desc, Nanos(0));
    }
    both
}

/// The match that the packet meets, in a form without wildcards where its fields alone have some.
fn exact(form: u8) -> Match {
    let difference = TwelveTuple { wildcards: 1, nw_tos: form, ..TwelveTuple::default() };
    wild(1).in_form(TupleForm { is_exact: true, difference })
}

/// A match of the port alone.
fn wild(port: u32) -> Match {
    Match::any().with(Field::InPort, port.into())
}

/// A command whose entry sends the packet up with the cookie.
fn command(command: FlowModCommand, priority: u16, cookie: u64, matching: Match) -> FlowMod {
    let mut flow_mod = FlowMod::new(command);
    flow_mod.priority = priority;
    flow_mod.cookie = Cookie(cookie);
    flow_mod.matching = matching;
    flow_mod.instructions =
        vec![Instruction::ApplyActions(vec![Action::output(PortNo::CONTROLLER)])];
    flow_mod
}

fn run(dp: &mut dyn Datapath, flow_mod: &FlowMod, version: Version) {
    dp.flow_mod(flow_mod, version, Nanos(0)).unwrap();
}

/// Why the packet goes up, and by which entry.
fn reason(dp: &mut dyn Datapath) -> (PacketInReason, Cookie) {
    let ip = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
    let frame = frame.ipv4(ip).udp(1, 53).fill_to(64).build();
    let mut out = Out::new();
    dp.process(PacketBuf::from_slice(&frame), PortNo(1), Nanos(0), &mut out);
    let verdicts: Vec<Verdict> = out.drain().collect();
    match verdicts.as_slice() {
        [Verdict::PacketIn { message, .. }] => (message.reason, message.cookie),
        other => panic!("{other:?}"),
    }
}

fn flows(dp: &dyn Datapath) -> Vec<FlowStats> {
    dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap()
}

fn shown(dp: &dyn Datapath) -> Vec<(u16, u64)> {
    flows(dp).iter().map(|flow| (flow.priority, flow.cookie.0)).collect()
}

#[test]
fn an_entry_of_1_0_sends_up_by_its_action_whatever_it_matches() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        assert_eq!(reason(dp), (PacketInReason::NoMatch, Cookie(u64::MAX)));
        let any = |cookie| command(Add, 0, cookie, Match::any());
        run(dp, &any(1), Version::V1_0);
        assert_eq!(reason(dp), (PacketInReason::Action, Cookie(1)));
        // The same entry, set up anew by a controller of 1.3, is the table-miss entry.
        run(dp, &any(2), Version::V1_3);
        assert_eq!(reason(dp), (PacketInReason::NoMatch, Cookie(2)));
        run(dp, &any(3), Version::V1_0);
        assert_eq!(reason(dp), (PacketInReason::Action, Cookie(3)));
        // A modify changes what an entry does, not what it is.
        run(dp, &command(Modify, 0, 3, Match::any()), Version::V1_3);
        assert_eq!(reason(dp).0, PacketInReason::Action);
        run(dp, &command(Delete, 0, 0, Match::any()), Version::V1_0);
        assert_eq!(reason(dp).0, PacketInReason::NoMatch);
    }
}

#[test]
fn an_entry_without_wildcards_comes_first() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        run(dp, &command(Add, u16::MAX, 1, wild(1)), Version::V1_0);
        run(dp, &command(Add, u16::MAX, 2, Match::any()), Version::V1_3);
        assert_eq!(reason(dp).1, Cookie(1));
        run(dp, &command(Add, 0, 3, exact(0)), Version::V1_0);
        assert_eq!(reason(dp).1, Cookie(3));
        assert_eq!(shown(dp), [(0, 3), (u16::MAX, 1), (u16::MAX, 2)]);
        // For 1.3 the match has a wildcard like any other.
        run(dp, &command(Add, 7, 4, exact(0)), Version::V1_3);
        assert_eq!(reason(dp).1, Cookie(3));
        run(dp, &command(DeleteStrict, 0, 0, exact(0)), Version::V1_0);
        assert_eq!(reason(dp).1, Cookie(1));
        assert_eq!(shown(dp), [(u16::MAX, 1), (u16::MAX, 2), (7, 4)]);
    }
}

#[test]
fn the_priority_of_an_entry_without_wildcards_is_no_part_of_it() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        run(dp, &command(Add, 10, 1, exact(0)), Version::V1_0);
        run(dp, &command(Add, 20, 2, exact(1)), Version::V1_0);
        assert_eq!(shown(dp), [(20, 2)]);
        assert_eq!(flows(dp)[0].matching.form(), exact(1).form());
        run(dp, &command(ModifyStrict, 30, 3, exact(0)), Version::V1_0);
        assert_eq!(shown(dp), [(20, 3)]);
        // It is none of the entries that have wildcards.
        run(dp, &command(DeleteStrict, 20, 0, wild(1)), Version::V1_0);
        assert_eq!(shown(dp), [(20, 3)]);
        run(dp, &command(DeleteStrict, 40, 0, exact(0)), Version::V1_0);
        assert_eq!(shown(dp), []);
    }
}

#[test]
fn a_controller_of_1_3_names_it_by_the_priority_of_statistics() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        run(dp, &command(Add, 10, 1, exact(0)), Version::V1_0);
        run(dp, &command(DeleteStrict, 11, 0, wild(1)), Version::V1_3);
        assert_eq!(shown(dp), [(10, 1)]);
        run(dp, &command(DeleteStrict, 10, 0, wild(1)), Version::V1_3);
        assert_eq!(shown(dp), []);
    }
}

/// All twelve fields, as 1.3 and as 1.0 without wildcards say them.
fn twelve_fields(wildcards: u32) -> Match {
    let fields = [
        (Field::InPort, 1),
        (Field::EthDst, 2),
        (Field::EthSrc, 1),
        (Field::EthType, 0x0800),
        (Field::VlanVid, 0),
        (Field::IpDscp, 0),
        (Field::IpProto, 17),
        (Field::Ipv4Src, 0x0a00_0001),
        (Field::Ipv4Dst, 0x0a00_0002),
        (Field::UdpSrc, 1),
        (Field::UdpDst, 53),
    ];
    let add = |matching: Match, (field, value)| matching.with(field, value);
    let difference = TwelveTuple { wildcards, ..TwelveTuple::default() };
    let form = TupleForm { is_exact: wildcards == 0, difference };
    fields.into_iter().fold(Match::any(), add).in_form(form)
}

#[test]
fn a_controller_of_1_0_names_entries_of_1_3_by_twelve_fields() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        run(dp, &command(Add, 10, 1, twelve_fields(0)), Version::V1_3);
        run(dp, &command(ModifyStrict, 0, 2, twelve_fields(0)), Version::V1_0);
        assert_eq!(shown(dp), [(10, 2)]);
        // The priority of the tag is wildcarded here, so that the priority counts.
        const VLAN_PCP: u32 = 1 << 20;
        run(dp, &command(Add, 7, 3, twelve_fields(VLAN_PCP)), Version::V1_0);
        run(dp, &command(DeleteStrict, 0, 0, twelve_fields(VLAN_PCP)), Version::V1_0);
        assert_eq!(shown(dp), [(10, 2), (7, 3)]);
        run(dp, &command(DeleteStrict, 0, 0, twelve_fields(0)), Version::V1_0);
        assert_eq!(shown(dp), [(7, 3)]);
    }
}

#[test]
fn a_table_that_is_named_is_the_only_one() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        let of = |table_id, command, priority, cookie| FlowMod {
            table_id,
            ..self::command(command, priority, cookie, Match::any())
        };
        let (first, second) = (TableId(0), TableId(1));
        let shown = |dp: &dyn Datapath| -> Vec<(u8, u16, u64)> {
            let one = |flow: &FlowStats| (flow.table_id.0, flow.priority, flow.cookie.0);
            flows(dp).iter().map(one).collect()
        };
        run(dp, &of(TableId::ALL, ModifyStrict, 1, 1), Version::V1_0);
        run(dp, &of(second, ModifyStrict, 2, 1), Version::V1_0);
        run(dp, &of(second, ModifyStrict, 1, 1), Version::V1_0);
        assert_eq!(shown(dp), [(0, 1, 1), (1, 2, 1), (1, 1, 1)]);
        run(dp, &of(second, Modify, 0, 2), Version::V1_0);
        run(dp, &of(first, ModifyStrict, 1, 3), Version::V1_0);
        assert_eq!(shown(dp), [(0, 1, 3), (1, 2, 2), (1, 1, 2)]);
        run(dp, &of(TableId::ALL, ModifyStrict, 1, 4), Version::V1_0);
        assert_eq!(shown(dp), [(0, 1, 4), (1, 2, 2), (1, 1, 4)]);
        run(dp, &of(second, DeleteStrict, 1, 0), Version::V1_0);
        run(dp, &of(TableId(2), Delete, 0, 0), Version::V1_0);
        assert_eq!(shown(dp), [(0, 1, 4), (1, 2, 2)]);
        run(dp, &of(first, Delete, 0, 0), Version::V1_0);
        assert_eq!(shown(dp), [(1, 2, 2)]);
        run(dp, &of(TableId::ALL, Modify, 0, 5), Version::V1_0);
        assert_eq!(shown(dp), [(1, 2, 5)]);
        run(dp, &of(TableId::ALL, Delete, 0, 0), Version::V1_0);
        assert_eq!(shown(dp), []);
        // In 1.3 deletes only may mean all.
        for command in [Add, Modify, ModifyStrict] {
            let all = of(TableId::ALL, command, 1, 1);
            let refused = dp.flow_mod(&all, Version::V1_3, Nanos(0));
            assert_eq!(refused.err(), Some(Error::FlowModBadTableId));
        }
    }
}

#[test]
fn entries_without_wildcards_overlap_with_no_priority() {
    for mut dp in datapaths() {
        let dp = dp.as_mut();
        run(dp, &command(Add, u16::MAX, 1, exact(0)), Version::V1_0);
        let mut flow_mod = command(Add, u16::MAX, 2, Match::any());
        flow_mod.flags = FlowModFlags::CHECK_OVERLAP;
        run(dp, &flow_mod, Version::V1_0);
        flow_mod.matching = exact(0);
        let refused = dp.flow_mod(&flow_mod, Version::V1_0, Nanos(0));
        assert_eq!(refused.err(), Some(Error::FlowModOverlap));
    }
}

#[test]
fn what_is_removed_is_reported_in_its_form() {
    for mut dp in datapaths() {
        let mut flow_mod = command(Add, 10, 1, exact(3));
        flow_mod.flags = FlowModFlags::SEND_FLOW_REM;
        run(dp.as_mut(), &flow_mod, Version::V1_0);
        let delete = command(Delete, 0, 0, Match::any());
        let outcome = dp.flow_mod(&delete, Version::V1_0, Nanos(0)).unwrap();
        let forms: Vec<_> = outcome.removed.iter().map(|gone| gone.flow.matching.form()).collect();
        assert_eq!(forms, [exact(3).form()]);
        assert_eq!(outcome.removed[0].flow.priority, 10);
    }
}

#[test]
fn an_emergency_entry_with_timeouts_is_refused_for_them_first() {
    for mut dp in datapaths() {
        let mut flow_mod = command(Add, 1, 1, exact(0));
        flow_mod.flags = FlowModFlags::EMERG;
        flow_mod.buffer_id = Some(openflow::BufferId(7));
        let mut error = |flow_mod: &FlowMod| dp.flow_mod(flow_mod, Version::V1_0, Nanos(0)).err();
        assert_eq!(error(&flow_mod), Some(Error::FlowModBadFlags));
        flow_mod.idle_timeout_s = 5;
        assert_eq!(error(&flow_mod), Some(Error::FlowModBadTimeout));
    }
}

#[test]
fn an_ingress_port_of_1_0_may_be_none() {
    for mut dp in datapaths() {
        let flow_mod = command(Add, 1, 1, wild(0xffff_fffb));
        let mut add = |version| dp.flow_mod(&flow_mod, version, Nanos(0)).err();
        assert_eq!(add(Version::V1_3), Some(Error::BadMatchBadValue));
        assert_eq!(add(Version::V1_0), None);
    }
}
