//! The text syntax against what `ovs-ofctl` prints, and against itself both ways.

use openflow::field::{FIELDS, VID_PRESENT};
use openflow::flow::{FlowModCommand, FlowModFlags, FlowStats};
use openflow::group::{GroupDesc, GroupMod, GroupModCommand};
use openflow::meter::MeterModCommand;
use openflow::text::{
    decimal_where, format_actions, format_flow_mod, format_flow_stats, format_group,
    format_instructions, format_match, format_meter, format_value, parse_actions,
    parse_flow_filter, parse_flow_mod, parse_group_mod, parse_match, parse_meter_mod, parse_number,
    parse_value,
};
use openflow::{BucketId, Cookie, Field, GroupId, Match, MeterId, PortNo, TableId};
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

const FLOWS: &str = include_str!("data/ovs-ofctl-flows.txt");
const ENTRY_WORDS: &str = include_str!("data/entry-words.tsv");

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
        importance: 0,
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

/// Text, column of the error, and a part of its words.
const WRONG: &[(&str, usize, &str)] = &[
    ("send_flow_rem,send_flow_rem,actions=drop", 14, "`send_flow_rem` is given twice"),
    ("bogus=1,actions=drop", 0, "unknown word `bogus`"),
    ("nw_dts=10.0.0.1,actions=drop", 0, "did you mean `nw_dst`"),
    ("ip,nw_src=10.0.0.300,actions=drop", 10, "not an IPv4 address"),
    ("actions=bogus", 8, "unknown action `bogus`"),
    ("in_port=1", 9, "actions are missing"),
    ("nw_dst=10.0.0.1,actions=drop", 0, "add ip or arp"),
    ("tp_dst=80,actions=drop", 0, "add tcp, tcp6, udp, udp6, sctp, sctp6, icmp or icmp6"),
    ("ip,tp_dst=80,actions=drop", 3, "add tcp, udp, sctp or icmp"),
    ("arp,tp_dst=80,actions=drop", 4, "tp_dst is no field of arp: it goes with tcp, "),
    ("dl_type=0x88cc,ip_dst=1.2.3.4,actions=drop", 15, "no field of eth_type=0x88cc: it goes"),
    ("ip,nw_proto=2,tp_src=1,actions=drop", 14, "tp_src is no field of igmp"),
    ("ip,nw_proto=89,tp_src=1,actions=drop", 15, "no field of ip with nw_proto=89"),
    (
        "priority=5,arp,ipv4_dst=1.2.3.4,actions=drop",
        15,
        "ipv4_dst is no field of arp: it goes with ip",
    ),
    ("ipv4_dst=1.2.3.4,actions=drop", 0, "ipv4_dst needs eth_type=0x0800 beside it: add ip"),
    ("udp,tcp_dst=80,actions=drop", 4, "tcp_dst is no field of udp: it goes with tcp or tcp6"),
    ("arp,nw_tos=4,actions=drop", 4, "nw_tos (ip_dscp) is no field of arp"),
    ("tcp,udp,actions=drop", 4, "udp (ip_proto) is given twice"),
    ("priority=1,priority=1,actions=drop", 11, "`priority` is given twice"),
    ("actions=mod_nw_tos:253", 19, "a multiple of 4"),
    ("actions=set_field:6->eth_bogus", 21, "unknown field `eth_bogus`"),
    ("actions=set_field:1->in_port", 21, "no action sets in_port"),
    ("actions=set_field:5/0x105->reg0", 18, "that stand together"),
    ("actions=set_field:0/0->reg0", 18, "1 to 64 bits"),
    ("actions=goto_table:2,output:1", 21, "must stand before it"),
    ("actions=write_metadata:1,clear_actions", 25, "before `write_metadata`"),
    ("actions=output:1,meter:1", 17, "is carried out before `output`"),
    ("actions=set_field:1->tp_dst", 21, "tp_dst is one of tcp_dst, udp_dst, sctp_dst"),
    ("actions=set_field:100->vlan_vid", 18, "write 4196 (0x1064)"),
    ("vlan_vid=100,actions=drop", 9, "write 4196 (0x1064)"),
    ("actions=output:1,drop", 17, "must stand alone"),
    ("actions=goto_table:1,goto_table:2", 21, "given twice"),
    ("actions=write_actions(goto_table:1)", 22, "is an instruction"),
    ("priority=70000,actions=drop", 9, "too large"),
    ("vlan_pcp=9,actions=drop", 9, "too large"),
    ("dl_type=0x800/0xff00,actions=drop", 14, "takes no mask"),
    ("in_port=1,actions=output:1(", 25, "`(` without `)`"),
    ("icmp6,nd_sll=00:11:22:33:44:55,actions=drop", 6, "nd_sll (ipv6_nd_sll) needs icmpv6_type"),
    ("in_port,actions=drop", 0, "`in_port` needs a value"),
    ("priority,actions=drop", 0, "`priority` needs a value"),
    ("tcp=1,actions=drop", 4, "`tcp` takes no value"),
    ("send_flow_rem=1,actions=drop", 14, "`send_flow_rem` takes no value"),
    ("in_port=1,actions:drop", 10, "write `actions=...`"),
    ("proirity=1,actions=drop", 0, "did you mean `priority`"),
    ("tabel=1,actions=drop", 0, "did you mean `table`"),
    ("idel_timeout=1,actions=drop", 0, "did you mean `idle_timeout`"),
    ("cokie=1,actions=drop", 0, "did you mean `cookie`"),
    ("send_flow_rm,actions=drop", 0, "did you mean `send_flow_rem`"),
    ("in_prot=1,actions=drop", 0, "did you mean `in_port`"),
    ("in_port=1,actoins=output:2", 10, "did you mean `actions`"),
    ("tpc,actions=drop", 0, "did you mean `tcp`"),
    ("actions=ouput:2", 8, "did you mean `output`"),
    ("actions=contoller", 8, "did you mean `controller`"),
    ("actions=mod_dl_scr:00:00:00:00:00:01", 8, "did you mean `mod_dl_src`"),
    ("actions=set_feild:1->metadata", 8, "did you mean `set_field`"),
    ("actions=goto_tabel:1", 8, "did you mean `goto_table`"),
    ("actions=set_field:1->tcp_dts", 21, "did you mean `tcp_dst`"),
    ("actions=resubmit(1,2,ct)", 21, "no tracking of connections"),
    ("actions=resubmit(,)", 17, "needs a port, a table or both"),
    ("actions=resubmit:70000", 17, "port 70000 has no number of 16 bits"),
    ("actions=exit:1", 13, "`exit` takes no argument"),
    ("actions=learn(table=255)", 20, "table 255"),
    ("actions=fin_timeout(idle=1)", 20, "unknown word `idle`"),
    ("actions=note:1g", 13, "pairs of hexadecimal digits"),
    ("actions=controller(reason=why)", 26, "no reason: no_match"),
    ("actions=controller(pause,pause)", 25, "twice"),
    ("actions=controller(ID=1)", 19, "max_len, reason, id"),
    ("actions=dec_ttl(1,65536)", 18, "6553"),
    ("actions=ct(commit)", 8, "no tracking of connections"),
    ("actions=set_tunnel:5", 8, "set_field:VALUE->tun_id"),
    ("actions=set_tunnel64:5", 8, "set_field:VALUE->tun_id"),
    ("actions=set_mpls_label(1048576)", 23, "too large"),
    ("xreg0=1,reg1=2,actions=drop", 8, "given twice"),
    ("tcp,tcp_flags=+syn-sin,actions=drop", 14, "no flag of TCP"),
    ("tcp,tcp_flags=+syn-syn,actions=drop", 14, "given twice"),
    ("ip,ip_frag=maybe,actions=drop", 11, "not_later"),
    ("tcp_flags=syn,actions=drop", 0, "add tcp"),
    ("reg1=0x100000000,actions=drop", 5, "too large"),
    ("actions=load:1->reg0[0..32]", 21, "bits 0 to 31"),
    ("actions=load:1->reg0[3..2]", 21, "FIRST..LAST"),
    ("actions=load:2->reg0[3]", 13, "too large"),
    ("actions=load:1->reg0[3", 21, "`]` is missing"),
    ("actions=load:1->in_port[]", 16, "no action sets in_port"),
    ("actions=conjunction(7)", 20, "(ID,K/N)"),
    ("actions=conjunction(7,1)", 20, "(ID,K/N)"),
    ("actions=conjunction(7,1/1)", 24, "2 to 64 dimensions"),
    ("actions=conjunction(7,1/65)", 24, "2 to 64 dimensions"),
    ("actions=conjunction(7,0/2)", 22, "1 to 2"),
    ("actions=conjunction(7,3/2)", 22, "1 to 2"),
    ("actions=conjunction(-1,1/2)", 20, "not a number"),
    ("conj_id=7/0xff,actions=drop", 10, "takes no mask"),
    ("actions=set_field:7->conj_id", 21, "no action sets conj_id"),
    ("ct_state=+trk,actions=drop", 0, "no tracking of connections"),
    ("nw_ttl=64,actions=drop", 0, "add ip"),
    ("tcp,actions=set_field:2->tcp_flags", 25, "no action sets"),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for &(text, at, what) in WRONG {
        let error = parse_flow_mod(text, FlowModCommand::Add).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
    let error = parse_flow_mod("ip,priority=5", FlowModCommand::Delete).unwrap_err();
    assert!(error.what.contains("--strict") && error.at == 3, "{error}");
    for command in [FlowModCommand::Add, FlowModCommand::Modify] {
        let error = parse_flow_mod("out_prot=1,actions=drop", command).unwrap_err();
        assert_eq!(
            error.what, "unknown word `out_prot`",
            "a word that is possible here is offered"
        );
    }
}

#[test]
fn a_word_without_effect_is_refused_whatever_the_command() {
    let commands = [
        ("add", Some(FlowModCommand::Add)),
        ("modify", Some(FlowModCommand::Modify)),
        ("modify_strict", Some(FlowModCommand::ModifyStrict)),
        ("delete", Some(FlowModCommand::Delete)),
        ("delete_strict", Some(FlowModCommand::DeleteStrict)),
        ("dump", None),
    ];
    let rows = ENTRY_WORDS.lines().filter(|line| !line.starts_with('#'));
    let mut refused = 0;
    for row in rows {
        let [word, _, taken] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        for (name, command) in commands.iter().filter(|_| !word.is_empty()) {
            let writes = name.starts_with("add") || name.starts_with("modify");
            let needs = if writes && !word.starts_with("actions") { " actions=drop" } else { "" };
            let text = format!("ip {word}{needs}");
            let parsed = match command {
                Some(command) => parse_flow_mod(&text, *command).map(drop),
                None => parse_flow_filter(&text).map(drop),
            };
            if taken.split(' ').any(|command| command == *name) {
                assert_eq!(parsed, Ok(()), "{name} {text}");
                continue;
            }
            let error = parsed.expect_err(&format!("{name} {text}"));
            let at = word.find('/').map_or(3, |slash| 3 + slash + 1);
            assert_eq!(error.at, at, "{name} {text}: {error}");
            assert!(error.what.contains("has no effect in a"), "{name} {text}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
}

#[test]
fn numbers_with_leading_zeros_are_refused_with_both_readings() {
    let flows = [
        "dl_type=0800,actions=drop",
        "cookie=010,actions=drop",
        "tcp,tp_dst=0443,actions=drop",
        "tcp,tcp_dst=0443,actions=drop",
        "idle_timeout=060,actions=drop",
        "priority=010,actions=drop",
        "table=01,actions=drop",
        "dl_vlan=010,actions=drop",
        "vlan_tci=010,actions=drop",
        "ip,nw_tos=040,actions=drop",
        "in_port=01,actions=drop",
        "metadata=1/010,actions=drop",
        "ip,nw_src=10.0.0.0/08,actions=drop",
        "actions=01",
        "actions=output:01",
        "actions=group:01",
        "actions=set_queue:07",
        "actions=enqueue:1:07",
        "actions=CONTROLLER:0128",
        "actions=controller(max_len=0128)",
        "actions=push_vlan:08100",
        "actions=mod_nw_ttl:064",
        "actions=mod_vlan_vid:05",
        "actions=set_mpls_ttl(05)",
        "tcp,actions=set_field:080->tcp_dst",
        "actions=meter:01",
        "actions=goto_table:01",
        "actions=write_metadata:01",
        "actions=write_metadata:1/01",
        "actions=00",
    ];
    let errors = flows.map(|text| (text, parse_flow_mod(text, FlowModCommand::Add).unwrap_err()));
    let groups = [
        "group_id=01,type=all,bucket=output:1",
        "group_id=1,type=select,bucket=weight:05,output:1",
        "group_id=1,type=ff,bucket=watch_port:01,output:1",
        "group_id=1,type=ff,bucket=watch_group:01,output:1",
    ];
    let groups =
        groups.map(|text| (text, parse_group_mod(text, GroupModCommand::Add).unwrap_err()));
    let meters = [
        "meter=01,kbps,band=type=drop,rate=5",
        "meter=1,kbps,band=type=drop,rate=05",
        "meter=1,kbps,burst,band=type=drop,rate=5,burst_size=05",
        "meter=1,kbps,band=type=dscp_remark,rate=5,prec_level=01",
    ];
    let meters =
        meters.map(|text| (text, parse_meter_mod(text, MeterModCommand::Add).unwrap_err()));
    for (text, error) in errors.into_iter().chain(groups).chain(meters) {
        let digits: String =
            text[error.at..].chars().take_while(|digit| digit.is_ascii_digit()).collect();
        let short = digits.trim_start_matches('0');
        let short = if short.is_empty() { "0" } else { short };
        let what = format!("`{digits}` begins with a zero: write 0x{digits} or {short}");
        assert_eq!(error.what, what, "{text}");
    }
    assert!(parse_value(Field::EthType, "0800").is_err() && parse_number::<u8>("007").is_err());
    for (text, number) in [("0", 0), ("0x0800", 0x800), ("10", 10), ("0x00", 0)] {
        assert_eq!(parse_number::<u16>(text), Ok(number));
    }
}

#[test]
fn a_decimal_beyond_its_bounds_is_refused_with_these() {
    let read = |text| decimal_where(text, |number: &u16| *number > 0, "1 to 65535");
    assert_eq!((read("1"), read("65535")), (Ok(1), Ok(65_535)));
    for text in ["0", "65536", "-1", "x", ""] {
        assert_eq!(read(text).unwrap_err(), "1 to 65535", "{text}");
    }
    let octal = "1 to 65535; `010` begins with a zero: write 10, or 8 if it is octal";
    assert_eq!(read("010").unwrap_err(), octal);
}

#[test]
fn names_that_fields_share_are_those_of_the_protocol() {
    let cases = [
        ("eth_type=2054,ip_dst=10.0.0.1", "arp,arp_tpa=10.0.0.1"),
        ("arp,ip_src=10.0.0.1,ip_proto=2", "arp,arp_spa=10.0.0.1,arp_op=2"),
        ("ip_dst=10.0.0.1,ip", "ip,nw_dst=10.0.0.1"),
        ("ipv6,ip_proto=6", "tcp6"),
        ("icmp,tp_src=8", "icmp,icmp_type=8"),
        ("ip,nw_proto=1,tp_src=8,tp_dst=0", "icmp,icmp_type=8,icmp_code=0"),
        ("icmp6,tp_src=135", "icmp6,icmp_type=135"),
        ("tp_dst=5,nw_proto=132,ip", "sctp,tp_dst=5"),
    ];
    for (given, printed) in cases {
        assert_eq!(
            parse_match(given).map(|it| format_match(&it)),
            Ok(printed.to_owned()),
            "{given}"
        );
    }
    for protocol in ["tcp", "udp", "sctp", "tcp6"] {
        let text = format!("{protocol},actions=set_field:80->tp_dst");
        let flow = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
        let wanted = format!("set_field:80->{}_dst", protocol.trim_end_matches('6'));
        assert_eq!(format_instructions(&flow.instructions), wanted);
        let text = format!("{protocol},actions=write_actions(set_field:80->tp_dst)");
        let flow = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
        assert_eq!(format_instructions(&flow.instructions), format!("write_actions({wanted})"));
    }
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

/// A group as it is printed, for adding and for modifying.
fn printed(text: &str) -> String {
    let [added, modified] = [GroupModCommand::Add, GroupModCommand::Modify].map(|command| {
        let group = parse_group_mod(text, command).unwrap_or_else(|why| panic!("{text}: {why}"));
        let GroupMod { group_type, group_id, buckets, selection, .. } = group;
        format_group(&GroupDesc { group_type, group_id, buckets, selection })
    });
    assert_eq!(added, modified);
    added
}

/// Each printed as `ovs-ofctl -O OpenFlow15 parse-group` of Open vSwitch 3.1.0 prints it, but for
/// the order of the fields and for numbers in hexadecimal.
#[test]
fn a_select_group_says_by_what_it_chooses() {
    let same = [
        "group_id=1,type=select,selection_method=dp_hash,selection_method_param=7,\
         bucket=actions=output:1",
        "group_id=1,type=select,selection_method=hash,fields=eth_type,bucket=actions=output:1",
        "group_id=1,type=select,selection_method=hash,\
         fields(reg1,eth_dst=00:00:00:00:00:ff,ip_src=255.255.255.0,nw_proto,nw_ttl,tcp_dst=65280)\
         ,bucket=actions=output:1",
    ];
    for text in same {
        assert_eq!(printed(text), text);
    }
    let select = |words: &str| format!("group_id=1,type=select,{words},bucket=output:1");
    for (text, why) in [
        (select("selection_method=wrr"), "hash or dp_hash"),
        (select("fields=ip_src"), "selection_method is missing"),
        (select("selection_method_param=1"), "selection_method is missing"),
        (select("selection_method=dp_hash,fields=ip_src"), "selection_method=hash"),
        (select("selection_method=hash,fields(ip_src,ip_src)"), "given twice"),
        (select("selection_method=hash,fields=ip_scr"), "did you mean `ip_src`"),
        (select("selection_method=hash,fields=ip_src=0.0.0.0"), "no such bits"),
        (select("selection_method=hash,fields=nw_proto=6"), "no such bits"),
        ("group_id=1,type=all,selection_method=hash".to_owned(), "type=select"),
    ] {
        let error = parse_group_mod(&text, GroupModCommand::Add).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let delete = "group_id=1,selection_method=hash";
    assert!(parse_group_mod(delete, GroupModCommand::Delete).is_err());
}

/// Each printed as `ovs-ofctl -O OpenFlow13 parse-group` of Open vSwitch 3.1.0 prints it.
#[test]
fn a_bucket_of_a_select_group_has_weight_1_unless_it_names_one() {
    let cases = [
        (
            "select,bucket=output:2,bucket=output:3",
            "select,bucket=actions=output:2,bucket=actions=output:3",
        ),
        (
            "select,bucket=output:2,bucket=weight:5,output:3,bucket=drop",
            "select,bucket=actions=output:2,bucket=weight:5,actions=output:3,bucket=actions=drop",
        ),
        ("select,bucket=weight:1,output:2", "select,bucket=actions=output:2"),
        ("select,bucket=weight:0,output:2", "select,bucket=weight:0,actions=output:2"),
        ("select,bucket=output:2,weight:5", "select,bucket=weight:5,actions=output:2"),
        (
            "select,bucket=actions=output:2,weight:5,output:3",
            "select,bucket=weight:5,actions=output:2,output:3",
        ),
        (
            "select,bucket=output:2,watch_port:1,bucket=actions=output:3,watch_group:4",
            "select,bucket=watch_port:1,actions=output:2,bucket=watch_group:4,actions=output:3",
        ),
        (
            "select,bucket=actions=output:1,actions=output:2",
            "select,bucket=actions=output:1,output:2",
        ),
        ("select bucket=weight=5,actions=output:1", "select,bucket=weight:5,actions=output:1"),
        (
            "all,bucket=output:2,bucket=weight:0,drop",
            "all,bucket=actions=output:2,bucket=actions=drop",
        ),
        ("all,bucket=actions=", "all,bucket=actions=drop"),
        ("ff,bucket=watch_port:1,output:1", "ff,bucket=watch_port:1,actions=output:1"),
        ("indirect,bucket=output:1", "indirect,bucket=actions=output:1"),
    ];
    for (given, wanted) in cases {
        let [given, wanted] = [given, wanted].map(|text| format!("group_id=1,type={text}"));
        assert_eq!(printed(&given), wanted);
        assert_eq!(printed(&wanted), wanted);
    }
    let errors = [
        ("group_id=1,type=all,bucket=", 27, "a bucket has actions"),
        ("group_id=1,type=select,bucket=weight:5", 30, "a bucket has actions"),
        ("group_id=1,type=select,bucket=output:1,bucket=weight:5", 46, "a bucket has actions"),
        ("group_id=1,type=select,bucket=weight:5,weight:6,output:1", 39, "given twice"),
        ("group_id=1,group_id=2,type=all", 11, "given twice"),
        ("group_id=1,type=all,type=ff", 20, "given twice"),
        ("group_id=1,typ=all", 11, "did you mean `type`"),
        ("group_id=1,type=all,bucket=ouput:1", 27, "did you mean `output`"),
        ("group_id=1,type=all,bucket=bucket_id:4294967041,output:1", 37, "from 0 to 4294967040"),
    ];
    for (text, at, what) in errors {
        let error = parse_group_mod(text, GroupModCommand::Add).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
    for (text, at) in [("group_id=1,type=all", 11), ("group_id=1,bucket=output:1", 11)] {
        let error = parse_group_mod(text, GroupModCommand::Delete).unwrap_err();
        assert!(error.what.contains("has no effect here"), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
}

#[test]
fn buckets_are_inserted_at_a_place_and_removed_by_their_numbers() {
    use GroupModCommand::{InsertBucket, RemoveBucket};
    for (command, text, place) in [
        (InsertBucket, "group_id=1,command_bucket_id=last,bucket=output:3", Some(BucketId::LAST)),
        (InsertBucket, "group_id=1,command_bucket_id=first", Some(BucketId::FIRST)),
        (RemoveBucket, "group_id=1,command_bucket_id=7", Some(BucketId(7))),
        (RemoveBucket, "group_id=1,command_bucket_id=all", None),
        (RemoveBucket, "group_id=1", None),
    ] {
        assert_eq!(parse_group_mod(text, command).unwrap().command_bucket_id, place, "{text}");
    }
    for (command, text, what) in [
        (InsertBucket, "group_id=1,bucket=output:3", "at a command_bucket_id"),
        (
            InsertBucket,
            "group_id=1,command_bucket_id=all,bucket=output:3",
            "at a command_bucket_id",
        ),
        (InsertBucket, "group_id=1,command_bucket_id=last,type=all", "has no effect here"),
        (InsertBucket, "group_id=1,comand_bucket_id=7", "did you mean `command_bucket_id`"),
        (RemoveBucket, "group_id=1,command_bucket_id=4294967041", "from 0 to 4294967040"),
        (RemoveBucket, "group_id=1,bucket=output:3", "has no effect here"),
        (GroupModCommand::Add, "group_id=1,type=all,command_bucket_id=7", "unknown word"),
    ] {
        let error = parse_group_mod(text, command).unwrap_err();
        assert!(error.what.contains(what), "{text}: {error}");
    }
}

#[test]
fn a_set_field_with_a_mask_is_a_load_of_the_bits() {
    for (text, load) in [
        ("set_field:0x5/0xff->reg0", "load:0x5->NXM_NX_REG0[0..7]"),
        ("set_field:10.0.0.0/8->ip_dst", "load:0xa->NXM_OF_IP_DST[24..31]"),
        ("set_field:01:00:00:00:00:00/01:00:00:00:00:00->eth_dst", "load:0x1->NXM_OF_ETH_DST[40]"),
    ] {
        assert_eq!(format_actions(&parse_actions(text).unwrap()), load, "{text}");
    }
    let whole = parse_actions("set_field:0x5/0xffffffff->reg0").unwrap();
    assert_eq!(whole, parse_actions("set_field:5->reg0").unwrap());
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
        "group_id=7,type=select,bucket=actions=output:1,bucket=weight:0,actions=drop",
        "group_id=8,type=all,bucket=weight:1,actions=output:1",
        "group_id=9,type=select,bucket=bucket_id:5,weight:2,actions=output:1,bucket=actions=drop",
    ];
    for text in cases {
        assert_eq!(printed(text), text);
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
    for text in ["meter=1,kbps", "meter=1,band=type=drop,rate=5"] {
        let error = parse_meter_mod(text, MeterModCommand::Delete).unwrap_err();
        assert!(error.what.contains("has no effect here"), "{text}: {error}");
        assert_eq!(error.at, 8, "{text}: {error}");
    }
    let error = parse_meter_mod("meter=1,kpbs", MeterModCommand::Add).unwrap_err();
    assert!(error.what.contains("did you mean `kbps`"), "{error}");
    for text in ["kbps", "meter=1,band=rate=5", "meter=1,band=type=drop", "meter=1,foo"] {
        assert!(parse_meter_mod(text, MeterModCommand::Add).is_err(), "{text}");
    }
}

#[test]
fn no_word_of_a_meter_is_taken_and_lost() {
    let twice = "is given twice";
    let cases = [
        ("meter=1,pktps,burst=100,band=type=drop,rate=5", "`burst` takes no value"),
        ("meter=1,kbps=5", "`kbps` takes no value"),
        ("meter=1,kbps,kbps", twice),
        ("meter=1,meter=2", twice),
        ("meter=1,band=type=drop,rate=5,rate=6", twice),
        ("meter=1,burst,band=type=drop,rate=5,burst_size=1,burst_size=2", twice),
        ("meter=1,band=type=dscp_remark,rate=5,prec_level=1,prec_level=2", twice),
        ("meter=1,band=type=drop,rate=5,burst_size=100", "only with the flag burst"),
        ("meter=1,band=type=drop,rate=5,brust_size=100", "did you mean `burst_size`"),
    ];
    for (text, part) in cases {
        let error = parse_meter_mod(text, MeterModCommand::Add).unwrap_err();
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn every_settable_field_has_a_set_field_text() {
    for row in FIELDS.iter().filter(|row| row.settable) {
        let tag = if row.field == Field::VlanVid { VID_PRESENT } else { 0 };
        let value = 1 & row.field.full_mask() | tag;
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
    use openflow::field::Prereq;
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
