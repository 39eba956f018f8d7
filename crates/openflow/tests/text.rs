//! The text syntax against what `ovs-ofctl` prints, and against itself both ways.

use openflow::field::FIELDS;
use openflow::flow::{FlowModCommand, FlowModFlags, FlowStats};
use openflow::group::GroupModCommand;
use openflow::meter::MeterModCommand;
use openflow::text::{
    format_actions, format_flow_mod, format_flow_stats, format_group, format_instructions,
    format_match, format_meter, format_value, parse_actions, parse_flow_filter, parse_flow_mod,
    parse_group_mod, parse_match, parse_meter_mod, parse_value,
};
use openflow::{Cookie, Field, GroupId, Match, MeterId, PortNo, TableId};
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

const FLOWS: &str = include_str!("data/ovs-ofctl-flows.txt");

fn flow_lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    FLOWS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

#[test]
fn flows_print_as_ovs_ofctl_prints_them() {
    for (given, printed) in flow_lines() {
        let flow = parse_flow_mod(given, FlowModCommand::Add)
            .unwrap_or_else(|error| panic!("{given}: {error}"));
        // The command's own words (table:1 idle:10 ...) are a flow-mod's; match and actions stand
        // behind them, just as in a dump.
        let tail = printed.rsplit_once("actions=").unwrap();
        assert_eq!(format_instructions(&flow.instructions), tail.1, "{given}");
        let words: Vec<&str> = tail.0.split(' ').filter(|word| !word.is_empty()).collect();
        let rule = format_match(&flow.matching);
        let rule = match (flow.priority, rule.is_empty()) {
            (0x8000, _) => rule,
            (priority, true) => format!("priority={priority}"),
            (priority, false) => format!("priority={priority},{rule}"),
        };
        assert!(rule.is_empty() || words.contains(&rule.as_str()), "{given}: {rule} in {words:?}");
    }
    assert!(flow_lines().count() > 60);
}

#[test]
fn every_flow_reads_back_from_its_own_text() {
    for (given, _) in flow_lines() {
        let flow = parse_flow_mod(given, FlowModCommand::Add).unwrap();
        let text = format_flow_mod(&flow);
        assert_eq!(parse_flow_mod(&text, FlowModCommand::Add).as_ref(), Ok(&flow), "{text}");
    }
}

#[test]
fn metadata_of_all_ones_are_printed() {
    let ones = "write_metadata:0xffffffffffffffff";
    for text in [ones.to_owned(), format!("{ones}/0xff"), "write_metadata:0x1".to_owned()] {
        let flow = parse_flow_mod(&format!("actions={text}"), FlowModCommand::Add).unwrap();
        assert_eq!(format_instructions(&flow.instructions), text);
    }
}

#[test]
fn a_dumped_line_is_the_one_of_ovs_ofctl_and_can_be_fed_back() {
    let flow =
        parse_flow_mod("priority=10,ip,nw_dst=10.0.0.1,actions=output:2", FlowModCommand::Add);
    let flow = flow.unwrap();
    let stats = FlowStats {
        table_id: TableId(0),
        duration_s: 0,
        duration_ns: 18_900_000,
        priority: 10,
        idle_timeout_s: 30,
        hard_timeout_s: 60,
        flags: FlowModFlags::SEND_FLOW_REM,
        cookie: Cookie(5),
        packet_count: 0,
        byte_count: 0,
        matching: flow.matching.clone(),
        instructions: flow.instructions,
    };
    let line = format_flow_stats(openflow::Version::V1_3, &stats);
    assert_eq!(
        line,
        "cookie=0x5, duration=0.0189s, table=0, n_packets=0, n_bytes=0, idle_timeout=30, \
         hard_timeout=60, send_flow_rem priority=10,ip,nw_dst=10.0.0.1 actions=output:2"
    );
    let back = parse_flow_mod(&line, FlowModCommand::Add).unwrap();
    assert_eq!(back.matching, flow.matching);
    assert_eq!((back.idle_timeout_s, back.hard_timeout_s, back.cookie), (30, 60, Cookie(5)));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        ("bogus=1,actions=drop", 0, "unknown word `bogus`"),
        ("nw_dts=10.0.0.1,actions=drop", 0, "did you mean `nw_dst`"),
        ("ip,nw_src=10.0.0.300,actions=drop", 10, "not an IPv4 address"),
        ("actions=bogus", 8, "unknown action `bogus`"),
        ("in_port=1", 9, "actions are missing"),
        ("nw_dst=10.0.0.1,actions=drop", 0, "add ip or arp"),
        ("tp_dst=80,actions=drop", 0, "add tcp, udp"),
        ("tcp,udp,actions=drop", 4, "given twice"),
        ("actions=set_field:6->eth_bogus", 21, "unknown word `eth_bogus`"),
        ("actions=set_field:1->in_port", 21, "read-only"),
        ("actions=output:1,drop", 17, "must stand alone"),
        ("actions=goto_table:1,goto_table:2", 21, "given twice"),
        ("actions=write_actions(goto_table:1)", 22, "is an instruction"),
        ("priority=70000,actions=drop", 9, "too large"),
        ("vlan_pcp=9,actions=drop", 9, "too large"),
        ("dl_type=0x800/0xff00,actions=drop", 14, "takes no mask"),
        ("in_port=1,actions=output:1(", 25, "`(` without `)`"),
        ("icmp6,nd_sll=00:11:22:33:44:55,actions=drop", 0, "needs icmpv6_type"),
    ];
    for (text, at, what) in cases {
        let error = parse_flow_mod(text, FlowModCommand::Add).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
    let error = parse_flow_mod("in_port=1,actions=drop", FlowModCommand::Delete).unwrap_err();
    assert!(error.what.contains("takes no actions"), "{error}");
    let error = parse_flow_filter("priority=5,ip").unwrap_err();
    assert!(error.what.contains("does not filter"), "{error}");
}

#[test]
fn deletes_and_filters_default_to_everything() {
    let flow = parse_flow_mod("", FlowModCommand::Delete).unwrap();
    assert_eq!((flow.table_id, flow.out_port, flow.cookie_mask), (TableId::ALL, PortNo::ANY, 0));
    let flow = parse_flow_mod("cookie=5,out_group=3", FlowModCommand::Delete).unwrap();
    assert_eq!((flow.cookie_mask, flow.out_group), (u64::MAX, GroupId(3)));
    let filter = parse_flow_filter("table=2,cookie=0x10/0xf0,ip").unwrap();
    assert_eq!((filter.table_id, filter.cookie_mask), (TableId(2), 0xf0));
}

#[test]
fn groups_print_as_ovs_ofctl_prints_them() {
    let cases = [
        "group_id=1,type=all,bucket=actions=output:1,bucket=actions=output:2",
        "group_id=2,type=select,bucket=weight:5,actions=output:1,bucket=weight:10,actions=output:2",
        "group_id=3,type=indirect,bucket=actions=push_vlan:0x8100,output:1",
        "group_id=4,type=ff,bucket=watch_port:1,actions=output:1,\
         bucket=watch_port:2,watch_group:3,actions=output:2",
        "group_id=6,type=all",
    ];
    for text in cases {
        let group = parse_group_mod(text, GroupModCommand::Add).unwrap();
        let desc = openflow::group::GroupDesc {
            group_type: group.group_type,
            group_id: group.group_id,
            buckets: group.buckets,
        };
        assert_eq!(format_group(&desc), text);
    }
    let bare =
        parse_group_mod("group_id=5,type=all,bucket=output:1,bucket=2", GroupModCommand::Add);
    assert_eq!(bare.unwrap().buckets.len(), 2);
    assert_eq!(parse_group_mod("", GroupModCommand::Delete).unwrap().group_id, GroupId::ALL);
    for text in ["type=all", "group_id=1", "group_id=1,type=x", "group_id=1,type=all,bucket=foo"] {
        assert!(parse_group_mod(text, GroupModCommand::Add).is_err(), "{text}");
    }
}

#[test]
fn meters_print_as_ovs_ofctl_prints_them() {
    let cases = [
        (
            "meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100",
            "meter=1 kbps burst bands=\ntype=drop rate=1000 burst_size=100",
        ),
        (
            "meter=2 pktps stats bands=type=drop rate=1000",
            "meter=2 pktps stats bands=\ntype=drop rate=1000",
        ),
        (
            "meter=3,pktps,stats,bands=type=drop,rate=1000,type=drop,rate=2000",
            "meter=3 pktps stats bands=\ntype=drop rate=1000\ntype=drop rate=2000",
        ),
        (
            "meter=4,kbps,band=type=dscp_remark,rate=5,prec_level=1",
            "meter=4 kbps bands=\ntype=dscp_remark rate=5 prec_level=1",
        ),
    ];
    for (given, printed) in cases {
        let meter = parse_meter_mod(given, MeterModCommand::Add).unwrap();
        let config = openflow::meter::MeterConfig {
            flags: meter.flags,
            meter_id: meter.meter_id,
            bands: meter.bands.clone(),
        };
        assert_eq!(format_meter(&config), printed);
        assert_eq!(parse_meter_mod(printed, MeterModCommand::Add).unwrap(), meter);
    }
    assert_eq!(parse_meter_mod("", MeterModCommand::Delete).unwrap().meter_id, MeterId::ALL);
    for text in ["kbps", "meter=1,band=rate=5", "meter=1,band=type=drop", "meter=1,foo"] {
        assert!(parse_meter_mod(text, MeterModCommand::Add).is_err(), "{text}");
    }
}

#[test]
fn every_settable_field_has_a_set_field_text() {
    for row in FIELDS.iter().filter(|row| row.settable) {
        let value = 1 & row.field.full_mask();
        let text = format!("set_field:{}->{}", format_value(row.field, value), row.set_text);
        let actions = parse_actions(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(format_actions(&actions), text);
    }
}

/// A match of some fields, each with its prerequisites.
fn matches() -> impl Strategy<Value = Match> {
    let picks = proptest::collection::vec((0..FIELDS.len(), any::<u128>(), any::<u128>()), 0..6);
    picks.prop_map(|picks| {
        let mut matching = Match::any();
        for (index, value, mask) in picks {
            let field = FIELDS[index].field;
            let mut candidate = matching.clone();
            if !add_prerequisites(&mut candidate, field) {
                continue;
            }
            let mask = if FIELDS[index].maskable { mask } else { field.full_mask() };
            if candidate.get(field).is_none() {
                candidate.set(field, value, mask);
            }
            if candidate.check_prerequisites().is_ok() {
                matching = candidate;
            }
        }
        matching
    })
}

fn add_prerequisites(matching: &mut Match, field: Field) -> bool {
    use openflow::field::{Prereq, VID_PRESENT};
    match field.row().prereq {
        Prereq::None => true,
        Prereq::Present(needed) => {
            if matching.get(needed).is_none() {
                matching.set(needed, 1, needed.full_mask());
            }
            true
        }
        Prereq::VlanTag => {
            if matching.get(Field::VlanVid).is_none() {
                matching.set(Field::VlanVid, VID_PRESENT, VID_PRESENT);
            }
            true
        }
        Prereq::OneOf(needed, values) => {
            if matching.get(needed).is_none() {
                matching.set(needed, values[0], needed.full_mask());
            }
            add_prerequisites(matching, needed)
        }
    }
}

proptest! {
    #[test]
    fn any_match_reads_back_from_its_text(matching in matches()) {
        let text = format_match(&matching);
        prop_assert_eq!(parse_match(&text), Ok(matching), "{}", text);
    }

    #[test]
    fn any_value_reads_back_from_its_text(index in 0..FIELDS.len(), value in any::<u128>()) {
        let field = FIELDS[index].field;
        let value = value & field.full_mask();
        let text = format_value(field, value);
        prop_assert_eq!(parse_value(field, &text), Ok((value, field.full_mask())), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "[a-z_0-9=:,() /.>-]{0,60}|\\PC{0,40}") {
        let _ = parse_flow_mod(&text, FlowModCommand::Add);
        let _ = parse_flow_mod(&text, FlowModCommand::Delete);
        let _ = parse_group_mod(&text, GroupModCommand::Add);
        let _ = parse_meter_mod(&text, MeterModCommand::Add);
        let _ = parse_actions(&text);
    }
}
