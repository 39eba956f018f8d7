//! The kernel tier changes nothing but speed: two switches on real veths, one with it and one
//! without, are given the same random entries, groups and packets, and must send the same frames
//! and count the same.
//!
//! A few rounds by default; `WEIR_TIER_ROUNDS` and `WEIR_TIER_SEED` ask for more and for others.

use netdev::{Port, open_text};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::{parse_flow_mod, parse_group_mod};
use openflow::{GroupId, MacAddr, Message, PortNo, Version};
use packet::build::{FrameBuilder, Ipv4, Ipv6};
use packet::{Batch, PacketBuf};
use testkit::Random;

use crate::harness::{Controller, Switch, until};
use crate::kernel_tier::shown;
use crate::veth::{add_veth, in_namespace};

pub(crate) const PORTS: usize = 3;

/// A switch, its controller, and the other ends of its ports.
pub(crate) struct Side {
    pub(crate) switch: Switch,
    pub(crate) controller: Controller,
    hosts: Vec<Port>,
    /// What has come out of each port.
    pub(crate) frames: Vec<Vec<Vec<u8>>>,
}

/// Packets, bytes and more of everything that counts, by name.
pub(crate) type Counts = Vec<(String, Vec<u64>)>;

impl Side {
    pub(crate) fn new(rtnl: &netdev::sys::link::Rtnl, letter: char, caches: &str) -> Self {
        let mut specs = Vec::new();
        for number in 1..=PORTS {
            add_veth(rtnl, &format!("{letter}{number}"), &format!("{letter}h{number}"));
            specs.push(format!("\"{number}=af_packet:{letter}{number}\""));
        }
        let toml = format!("caches = \"{caches}\"\n");
        let switch = Switch::with_ports(&specs.join(","), Vec::new(), &toml);
        let controller = switch.controller(Version::V1_3);
        let host = |number| open_text(&format!("af_packet:{letter}h{number}")).unwrap();
        let hosts = (1..=PORTS).map(host).collect();
        Self { switch, controller, hosts, frames: vec![Vec::new(); PORTS] }
    }

    pub(crate) fn send(&mut self, port: usize, frame: &[u8]) {
        let frames = [PacketBuf::from_slice(frame)];
        until("room", || (self.hosts[port].tx(&frames).unwrap() == 1).then_some(()));
    }

    /// Waits until all that was sent is decided and has come out.
    pub(crate) fn settle(&mut self, sent: u64) {
        until("the decisions", || (self.looked_up() == sent).then_some(()));
        let stats = self.ports();
        let mut batch = Batch::default();
        let frames = self.hosts.iter_mut().zip(&mut self.frames).zip(stats);
        for ((host, frames), (_, counts)) in frames {
            until("the frames", || {
                batch.clear();
                host.rx(&mut batch, 32).unwrap();
                frames.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
                (frames.len() as u64 >= counts[1]).then_some(())
            });
        }
    }

    fn looked_up(&mut self) -> u64 {
        match self.controller.multipart(MultipartRequestBody::Table) {
            MultipartReplyBody::Table(tables) => tables[0].lookup_count,
            other => panic!("{other:?}"),
        }
    }

    /// Packets and bytes in and out, and what was dropped.
    fn ports(&mut self) -> Counts {
        let body = MultipartRequestBody::PortStats(PortNo::ANY);
        let MultipartReplyBody::PortStats(all) = self.controller.multipart(body) else { panic!() };
        let counts = all.iter().map(|it| {
            let counts = vec![it.rx_packets, it.tx_packets, it.rx_bytes, it.tx_bytes];
            (format!("port {}", it.port_no), [counts, vec![it.rx_dropped, it.tx_dropped]].concat())
        });
        counts.collect()
    }

    pub(crate) fn counts(&mut self) -> Counts {
        let mut all = self.ports();
        let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
        let MultipartReplyBody::Flow(entries) = self.controller.multipart(body) else { panic!() };
        all.extend(entries.iter().map(|it| {
            let name = format!("{:?} {} {:?}", it.table_id, it.priority, it.matching);
            (name, vec![it.packet_count, it.byte_count])
        }));
        let body = MultipartRequestBody::Table;
        let MultipartReplyBody::Table(tables) = self.controller.multipart(body) else { panic!() };
        all.extend(tables.iter().filter(|it| it.lookup_count > 0).map(|it| {
            (format!("table {:?}", it.table_id), vec![it.lookup_count, it.matched_count])
        }));
        let body = MultipartRequestBody::Group(GroupId::ALL);
        let MultipartReplyBody::Group(groups) = self.controller.multipart(body) else { panic!() };
        all.extend(groups.iter().map(|it| {
            let mut counts = vec![it.packet_count, it.byte_count];
            counts.extend(it.buckets.iter().flat_map(|it| [it.packet_count, it.byte_count]));
            (format!("group {:?}", it.group_id), counts)
        }));
        all.sort();
        all
    }
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

fn change(random: &mut Random) -> Message {
    let priority = random.below(4);
    let table = random.below(2);
    let matching = matching(random);
    let kind = random.below(12);
    if kind == 0 {
        let buckets: String = (0..1 + random.below(3))
            .map(|_| format!(",bucket=output:{}", 1 + random.below(3)))
            .collect();
        let text = format!("group_id={},type=all{buckets}", 1 + random.below(3));
        return Message::GroupMod(parse_group_mod(&text, GroupModCommand::Modify).unwrap());
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
    let parsed = parse_flow_mod(&text, command);
    Message::FlowMod(parsed.unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn frame(random: &mut Random) -> Vec<u8> {
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

pub(crate) fn number(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    // `x20` is twenty times the usual number, which differs between tests.
    text.strip_prefix('x')
        .map_or_else(|| text.parse().unwrap(), |times| usual * times.parse::<u64>().unwrap())
}

#[test]
#[ignore = "needs root"]
fn the_kernel_tier_changes_nothing_but_speed() {
    in_namespace(|rtnl| {
        let caches = [('a', "frame,key,kernel"), ('b', "frame,key")];
        let mut sides = caches.map(|(letter, caches)| Side::new(rtnl, letter, caches));
        let seed = number("WEIR_TIER_SEED", 1);
        let mut random = Random::new(seed);
        for group in 1..=3 {
            let text = format!("group_id={group},type=all,bucket=output:{group}");
            let group = Message::GroupMod(parse_group_mod(&text, GroupModCommand::Add).unwrap());
            for side in &mut sides {
                side.controller.send(&group);
            }
        }
        let mut sent = 0;
        for round in 0..number("WEIR_TIER_ROUNDS", 60) {
            // One change at a time ends only what it concerns; more at the start of a table.
            for _ in 0..if round % 20 == 0 { 12 } else { 1 + random.below(2) } {
                let change = change(&mut random);
                for side in &mut sides {
                    side.controller.send(&change);
                }
            }
            sides.iter_mut().for_each(|side| side.controller.barrier());
            let packets: Vec<(usize, Vec<u8>)> =
                (0..8).map(|_| (random.index(PORTS), frame(&mut random))).collect();
            // Again and again, so that the kernel comes to know them.
            for _ in 0..6 {
                for (port, frame) in &packets {
                    sides.iter_mut().for_each(|side| side.send(*port, frame));
                    sent += 1;
                }
                sides.iter_mut().for_each(|side| side.settle(sent));
            }
            let place = format!("round {round} of seed {seed}");
            let [a, b] = &mut sides;
            for (port, (one, other)) in a.frames.iter_mut().zip(&mut b.frames).enumerate() {
                one.sort();
                other.sort();
                assert!(one == other, "{place}: other frames out of port {}", port + 1);
            }
            assert_eq!(a.counts(), b.counts(), "{place}");
        }
        let [hits, none] = sides.each_ref().map(|side| shown(&side.switch, "kernel_hits"));
        assert!(hits > sent / 10 && none == 0, "{hits} of {sent} in the kernel, {none} without");
        for side in sides {
            side.switch.stop();
        }
    });
}
