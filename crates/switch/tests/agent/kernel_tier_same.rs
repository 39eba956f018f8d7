//! The kernel tier changes nothing but speed: a switch with it and one without get the same
//! entries, groups and frames, and must send the same frames and count the same.

use netdev::sys::link::Rtnl;
use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::{MacAddr, Message};
use packet::build::{FrameBuilder, Ipv4, Ipv6};
use testkit::Random;

use crate::kernel_tier_normal::{between, station};
use crate::tier_rig::{PORTS, TierPair, Way, flow, group, no_flows};
use crate::veth::in_namespace;

type Packet = (usize, Vec<u8>);

/// Entries, and frames that pass again and again.
struct Row {
    name: &'static str,
    /// VLANs of the ports; trunks where there are none.
    vlans: &'static [&'static str],
    flows: &'static [&'static str],
    /// Frames before, in this order.
    first: Vec<Packet>,
    frames: Vec<Packet>,
    /// The number of the frames that the kernel decides about, in the end.
    in_kernel: u64,
}

/// A frame of UDP from an Ethernet address, an address of IPv4 and a port, with a TTL.
fn udp(mac: u64, last: u8, port: u16, ttl: u8) -> Vec<u8> {
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(mac + 1), MacAddr::from_u64(mac));
    let mut addresses = Ipv4::new([10, 0, 0, last].into(), [10, 0, 0, 99].into());
    addresses.ttl = ttl;
    frame.ipv4(addresses).udp(port, 2).payload(&[7; 40]).build()
}

/// A frame that may be shorter than a wire allows.
fn of_length(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x12, 0x34]);
    bytes[len - 1] = 9;
    bytes
}

fn tagged(tci: u16, mut frame: Vec<u8>) -> Vec<u8> {
    let [high, low] = tci.to_be_bytes();
    frame.splice(12..12, [0x81, 0, high, low]);
    frame
}

fn row(name: &'static str, flows: &'static [&'static str], frames: Vec<Packet>) -> Row {
    let in_kernel = frames.len() as u64;
    Row { name, vlans: &[], flows, first: Vec::new(), frames, in_kernel }
}

fn rows() -> Vec<Row> {
    const FULL: usize = 1_514;
    let rewrite: &'static [&'static str] =
        &["in_port=1,eth_type=0x800,ip_proto=17,actions=dec_nw_ttl,\
         set_field:02:00:00:00:00:10->eth_src,set_field:02:00:00:00:00:11->eth_dst,\
         set_field:10.0.0.77->ip_src,set_field:4242->udp_src,output:2"];
    let mut without_sum = udp(2, 1, 1, 64);
    without_sum[40..42].fill(0);
    let lengths = [of_length(42), of_length(59), tagged(7, of_length(42))];
    let full = [of_length(FULL), tagged(7, of_length(FULL))];
    vec![
        row(
            "one output, two, and none",
            &[
                "in_port=1,actions=output:2",
                "in_port=2,actions=output:1,output:3",
                "in_port=3,actions=drop",
            ],
            (0..3).map(|port| (port, of_length(60))).collect(),
        ),
        row("headers with their checksums", rewrite, vec![(0, udp(2, 1, 1, 64))]),
        row("no checksum stays none", rewrite, vec![(0, without_sum)]),
        // The worker's business.
        Row { in_kernel: 0, ..row("a TTL that is used up", rewrite, vec![(0, udp(2, 1, 1, 1))]) },
        row(
            "short and full frames",
            &["in_port=1,actions=output:2"],
            lengths.into_iter().chain(full).map(|frame| (0, frame)).collect(),
        ),
        // The tag that a pop leaves does not count for the MTU.
        row(
            "a pop of two tags",
            &["in_port=1,vlan_vid=0x1009,actions=pop_vlan,output:2"],
            vec![(0, tagged(9, tagged(7, of_length(FULL))))],
        ),
        row(
            "tags come and go",
            &[
                "in_port=1,vlan_vid=0,eth_type=0x800,actions=dec_nw_ttl,push_vlan:0x8100,\
                 set_field:0x1123->vlan_vid,set_field:6->vlan_pcp,output:2",
                "in_port=1,vlan_vid=0x1005,actions=pop_vlan,output:3",
                "in_port=1,vlan_vid=0x1006,eth_type=0x800,actions=set_field:0x1007->vlan_vid,\
                 set_field:10.0.0.44->ip_dst,output:2",
            ],
            vec![
                (0, udp(2, 1, 1, 9)),
                (0, tagged(5, udp(2, 1, 1, 9))),
                (0, tagged(3 << 13 | 6, udp(2, 1, 1, 64))),
            ],
        ),
    ]
}

/// Those of a learning switch.
fn learning_rows() -> Vec<Row> {
    vec![
        Row {
            first: vec![(0, between(1, 0xff, 1)), (1, between(2, 0xff, 2))],
            ..row(
                "known stations",
                &["actions=NORMAL"],
                vec![(0, between(1, 2, 3)), (1, between(2, 1, 4))],
            )
        },
        // The first station is in both VLANs, at two ports.
        Row {
            vlans: &["access:10", "trunk:10,20", "access:20"],
            first: vec![(0, between(11, 0xff, 1)), (2, between(11, 0xff, 1))],
            ..row(
                "VLANs are apart, and tags change",
                &["actions=NORMAL"],
                vec![
                    (1, tagged(5 << 13 | 10, between(12, 11, 3))),
                    (1, tagged(5 << 13 | 20, between(12, 11, 3))),
                    (0, between(11, 12, 4)),
                    (2, between(11, 12, 5)),
                ],
            )
        },
    ]
}

/// Runs a test with the kernel handing frames straight to the hosts, and without, at ports of one
/// queue and of two.
fn each_way(test: impl Fn(&Rtnl, Way) + Sync) {
    for queues in [1, 2] {
        for is_straight in [true, false] {
            in_namespace(|rtnl| test(rtnl, Way { is_straight, queues }));
        }
    }
}

#[test]
#[ignore = "needs root"]
fn the_kernel_tier_does_what_the_worker_does() {
    const PASSES: u64 = 5;
    each_way(|rtnl, way| {
        let mut pair = TierPair::new(rtnl, way);
        for row in rows().into_iter().chain(learning_rows()) {
            for port in 1..=PORTS {
                pair.set_vlans(port, row.vlans.get(port - 1).unwrap_or(&"trunk"));
            }
            let mut flows = vec![no_flows()];
            flows.extend(row.flows.iter().map(|text| flow(text, FlowModCommand::Add)));
            pair.change(&flows);
            row.first.iter().for_each(|packet| pair.pass(std::slice::from_ref(packet), true));
            let hits = |pair: &mut TierPair, passes| {
                let before = pair.hits().0;
                (0..passes).for_each(|_| pair.pass(&row.frames, true));
                pair.hits().0 - before
            };
            // Until the kernel knows them.
            let learnt = (0..20).find(|_| hits(&mut pair, 1) == row.in_kernel);
            assert!(learnt.is_some(), "{}", row.name);
            assert_eq!(hits(&mut pair, PASSES), PASSES * row.in_kernel, "{}", row.name);
            pair.compare(row.name);
        }
        pair.stop();
    });
}

/// The text of a random match.
fn matching(random: &mut Random) -> String {
    let mut text = String::new();
    let mut add = |part: String| text += &format!(",{part}");
    if random.percent(40) {
        add(format!("in_port={}", 1 + random.below(3)));
    }
    if random.percent(30) {
        add(format!("eth_dst=02:00:00:00:00:0{}", random.below(4)));
    }
    match random.below(6) {
        0 => add(format!("eth_type=0x800,ipv4_dst=10.0.0.{}", random.below(4))),
        1 => add("eth_type=0x800,ipv4_dst=10.0.0.0/255.255.255.254".to_owned()),
        2 => add(format!("eth_type=0x800,ip_proto=17,udp_dst={}", 1 + random.below(3))),
        3 => add(format!("eth_type=0x86dd,ipv6_dst=fd00::{}", random.below(3))),
        4 => add(format!("vlan_vid={}", 0x1000 + 1 + random.below(2))),
        _ => {}
    }
    text
}

/// The text of random actions that fit a match.
fn actions(random: &mut Random, matching: &str) -> String {
    let is_v4 = matching.contains("0x800");
    let is_udp = matching.contains("ip_proto=17");
    let mut parts = Vec::new();
    let output = |random: &mut Random| format!("output:{}", 1 + random.below(3));
    let is_v6 = matching.contains("0x86dd");
    let is_tagged = matching.contains("vlan_vid");
    match random.below(27) {
        0 => return "drop".to_owned(),
        12 if is_v4 => parts.push(format!("set_field:10.0.0.{}->ip_dst", random.below(250))),
        13 if is_v4 => parts.push("dec_nw_ttl,set_field:10.1.2.3->ip_src".to_owned()),
        14 if is_udp => parts.push(format!("set_field:{}->udp_dst", random.below(0x1_0000))),
        15 => parts.push("set_field:02:01:02:03:04:05->eth_src,dec_nw_ttl".to_owned()),
        16 if is_udp => parts.push("set_field:7->ip_dscp,set_field:99->udp_src".to_owned()),
        17 if is_tagged => parts.push("pop_vlan".to_owned()),
        18 if is_tagged => {
            let (vid, pcp) = (0x1000 + random.below(9), random.below(8));
            parts.push(format!("set_field:{vid}->vlan_vid,set_field:{pcp}->vlan_pcp"));
        }
        19 if is_tagged => {
            parts.push("dec_nw_ttl,pop_vlan,set_field:02:01:02:03:04:06->eth_src".to_owned());
        }
        20 if is_tagged => parts.push("set_field:0x1003->vlan_vid,dec_nw_ttl".to_owned()),
        21 => parts.push(format!(
            "push_vlan:{:#x},set_field:{}->vlan_vid,set_field:5->vlan_pcp,dec_nw_ttl",
            [0x8100, 0x88a8][random.index(2)],
            0x1000 + random.below(4_096)
        )),
        22 if is_v6 => parts.push(format!("set_field:fd01::{:x}->ipv6_dst", random.below(999))),
        23 if is_v6 => parts.push(
            "dec_nw_ttl,set_field:fd02::7:8->ipv6_src,set_field:9->ip_dscp,\
             set_field:02:01:02:03:04:07->eth_dst"
                .to_owned(),
        ),
        24 if is_v6 => parts.push("set_field:0x12345->ipv6_flabel".to_owned()),
        25 if is_v4 => {
            parts.push("set_field:02:00:00:00:00:01->eth_dst,dec_nw_ttl,pop_vlan".to_owned())
        }
        26 if is_v4 => parts.push("pop_vlan,set_field:10.0.0.77->ip_dst,dec_nw_ttl".to_owned()),
        1 => parts.push("set_field:02:00:00:00:00:09->eth_dst".to_owned()),
        2 => parts.push("dec_nw_ttl".to_owned()),
        3 => parts.push("push_vlan:0x8100,set_field:0x1007->vlan_vid".to_owned()),
        4 => return format!("group:{}", 1 + random.below(3)),
        5 => parts.extend([output(random), output(random)]),
        6 => parts.push("in_port".to_owned()),
        _ => {}
    }
    parts.push(output(random));
    parts.join(",")
}

fn random_change(random: &mut Random) -> Message {
    let priority = random.below(4);
    let table = random.below(2);
    let matching = matching(random);
    let kind = random.below(12);
    if kind == 0 {
        let buckets: String = (0..1 + random.below(3))
            .map(|_| format!(",bucket=output:{}", 1 + random.below(3)))
            .collect();
        let text = format!("group_id={},type=all{buckets}", 1 + random.below(3));
        return group(&text, GroupModCommand::Modify);
    }
    let (text, command) = match kind {
        1 | 2 => {
            (format!("table={table},priority={priority}{matching}"), FlowModCommand::DeleteStrict)
        }
        3 => (format!("table={table}{matching}"), FlowModCommand::Delete),
        4 => {
            let actions = actions(random, &matching);
            (format!("table={table}{matching},actions={actions}"), FlowModCommand::Modify)
        }
        _ => {
            let goto = if table == 0 && random.percent(30) { ",goto_table:1" } else { "" };
            let actions = if goto.is_empty() { actions(random, &matching) } else { String::new() };
            let actions = format!("{actions}{goto}");
            let actions = actions.trim_start_matches(',');
            let text = format!("table={table},priority={priority}{matching},actions={actions}");
            (text, FlowModCommand::Add)
        }
    };
    flow(&text, command)
}

fn random_frame(random: &mut Random) -> Vec<u8> {
    let (dst, src) = (random.below(4), random.below(4));
    let mac = |last| MacAddr::from_u64(0x0200_0000_0000 | last);
    let builder = FrameBuilder::ethernet(mac(dst), mac(src));
    let builder = match random.below(5) {
        0 => builder.vlan(0, 1 + random.below(2) as u16),
        1 => builder
            .tag([0x88a8, 0x8100][random.index(2)], 3, 1 + random.below(2) as u16)
            .vlan(0, 1 + random.below(2) as u16),
        _ => builder,
    };
    // Some are shorter than a wire allows, and are filled up on their way out.
    let len = if random.percent(20) { 0 } else { 60 + random.below(60) as usize };
    if random.percent(30) {
        let to = u128::from(random.below(3)) | 0xfd00 << 112;
        return builder.ipv6(Ipv6::new(1.into(), to.into())).udp(1, 2).fill_to(len).build();
    }
    let v4 = Ipv4::new([10, 0, 1, 1].into(), [10, 0, 0, random.below(4) as u8].into());
    let ports = (1 + random.below(3) as u16, 1 + random.below(3) as u16);
    builder.ipv4(v4).udp(ports.0, ports.1).fill_to(len).build()
}

#[test]
#[ignore = "needs root"]
fn the_kernel_tier_changes_nothing_but_speed() {
    each_way(|rtnl, way| {
        let mut pair = TierPair::new(rtnl, way);
        let add = |number| {
            let text = format!("group_id={number},type=all,bucket=output:{number}");
            group(&text, GroupModCommand::Add)
        };
        pair.change(&[1, 2, 3].map(add));
        // Again and again, so that the kernel comes to know the frames.
        pair.run(60, (6, false), |pair, random, round| {
            // One change at a time ends only what it concerns; more at the start of a table.
            let changes = if round % 20 == 0 { 12 } else { 1 + random.below(2) };
            let changes: Vec<Message> = (0..changes).map(|_| random_change(random)).collect();
            pair.change(&changes);
            (0..8).map(|_| (random.index(PORTS), random_frame(random))).collect()
        });
    });
}

/// Frames of stations that move now and then, each with its port.
fn station_frames(random: &mut Random, homes: &mut [usize]) -> Vec<(usize, Vec<u8>)> {
    let one = |random: &mut Random, homes: &mut [usize]| {
        let (src, dst) = (random.index(homes.len()), random.below(homes.len() as u64 + 2));
        if random.percent(4) {
            homes[src] = random.index(PORTS);
        }
        let dst = if random.percent(8) { MacAddr([0xff; 6]) } else { station(dst as u8) };
        let builder = FrameBuilder::ethernet(dst, station(src as u8));
        let builder = match random.below(6) {
            0 => builder.vlan(random.below(8) as u8, [0, 10, 20][random.index(3)]),
            _ => builder,
        };
        let ip = Ipv4::new([10, 0, 0, src as u8].into(), [10, 0, 0, 9].into());
        (homes[src], builder.ipv4(ip).udp(1, 1 + random.below(2) as u16).fill_to(80).build())
    };
    (0..4).map(|_| one(random, homes)).collect()
}

/// A change of a learning switch at random; none most of the time.
fn change_learning(random: &mut Random, pair: &mut TierPair) {
    let port = 1 + random.index(PORTS);
    let text = match random.below(24) {
        0 => "table=0,priority=2,udp,udp_dst=2,actions=drop".to_owned(),
        1 => format!("table=0,priority=2,udp,udp_dst=2,actions=output:{port},NORMAL"),
        2 => format!(
            "table=0,priority=2,in_port={port},ip,actions=dec_nw_ttl,\
             set_field:02:00:00:00:00:01->eth_dst,NORMAL"
        ),
        3 => "table=0,priority=2,udp,udp_dst=1,actions=group:1".to_owned(),
        4 => "table=1,priority=0,actions=NORMAL".to_owned(),
        5 => "table=0,priority=0,actions=goto_table:1".to_owned(),
        6 => "table=0,priority=0,actions=NORMAL".to_owned(),
        7 | 8 => {
            let vlan = ["access:10", "trunk", "trunk:10,20", "native-untagged:10"];
            return pair.set_vlans(port, vlan[random.index(4)]);
        }
        9 => return pair.change(&[flow("", FlowModCommand::Delete)]),
        _ => return,
    };
    pair.change(&[flow(&text, FlowModCommand::Add)]);
}

#[test]
#[ignore = "needs root"]
fn a_learning_switch_with_the_tier_is_the_same_as_one_without() {
    each_way(|rtnl, way| {
        let mut pair = TierPair::new(rtnl, way);
        pair.change(&[
            group("group_id=1,type=all,bucket=NORMAL", GroupModCommand::Add),
            flow("priority=0,actions=NORMAL", FlowModCommand::Add),
        ]);
        // The first three after 0 have the addresses of the hosts at their ports.
        let mut homes = [0, 0, 1, 2, 1];
        // One after the other, since the next may go where this one came from.
        pair.run(40, (4, true), |pair, random, _| {
            change_learning(random, pair);
            station_frames(random, &mut homes)
        });
    });
}
