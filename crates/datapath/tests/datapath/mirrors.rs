//! Mirrors and protected ports on both datapaths: who gets a copy of what, once.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, DropReason, Nanos, Out, Reference, Verdict};
use openflow::flow::FlowModCommand;
use openflow::port::{PortDesc, PortState};
use openflow::text::parse_flow_mod;
use openflow::{PortNo, Version};
use packet::PacketBuf;

/// A datapath with ports 1 to 6 of these VLANs, entries and mirrors.
fn datapaths(vlans: &[(u32, &str)], flows: &[&str], mirrors: &[&str]) -> [Box<dyn Datapath>; 2] {
    let config = DatapathConfig::default;
    let mut both: [Box<dyn Datapath>; 2] =
        [Box::new(Reference::new(config())), Box::new(Fast::new(config(), 1))];
    for dp in &mut both {
        for number in 1..=6 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            dp.port_set(desc, Nanos(0));
        }
        for (port, vlans) in vlans {
            dp.port_vlans(PortNo(*port), vlans.parse().unwrap());
        }
        for flow in flows {
            let flow = parse_flow_mod(flow, FlowModCommand::Add).unwrap();
            dp.flow_mod(&flow, Version::V1_3, Nanos(0)).unwrap();
        }
        dp.set_mirrors(mirrors.iter().map(|mirror| mirror.parse().unwrap()).collect());
    }
    both
}

/// A frame of 100 bytes between hosts of these numbers, with this tag; 0 is everybody.
fn frame(from: u8, to: u8, tag: Option<u16>) -> PacketBuf {
    let mut bytes = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from];
    if to == 0 {
        bytes[..6].fill(0xff);
    }
    if let Some(vid) = tag {
        bytes.extend([0x81, 0x00]);
        bytes.extend(vid.to_be_bytes());
    }
    bytes.extend([0x88, 0xb5]);
    bytes.resize(100, 7);
    PacketBuf::from_slice(&bytes)
}

/// A way out: the port, the tag, the length.
type Left = (u32, Option<u16>, usize);

fn left(dp: &mut dyn Datapath, frame: PacketBuf, port: u32) -> (Vec<Left>, Vec<DropReason>) {
    let mut out = Out::new();
    let trace = dp.trace(frame.clone(), PortNo(port), Nanos(1));
    dp.process(frame, PortNo(port), Nanos(1), &mut out);
    assert_eq!(trace.verdicts, out.verdicts(), "a trace is what happens");
    let (mut left, mut dropped) = (Vec::new(), Vec::new());
    for verdict in out.verdicts() {
        match verdict {
            Verdict::Output { port, frame, .. } => {
                let tag = (frame.bytes()[12..14] == [0x81, 0])
                    .then(|| u16::from_be_bytes(frame.bytes()[14..16].try_into().unwrap()));
                left.push((port.0, tag, frame.len()));
            }
            Verdict::Drop { reason } => dropped.push(*reason),
            other => panic!("{other:?}"),
        }
    }
    left.sort_unstable();
    (left, dropped)
}

/// The ways out of a frame, the same each time that it comes.
fn check(
    row: &str,
    both: &mut [Box<dyn Datapath>; 2],
    (frame, port): (PacketBuf, u32),
    expected: &[Left],
) {
    for (dp, which) in both.iter_mut().zip(["reference", "fast"]) {
        for time in 0..3 {
            let (found, _) = left(&mut **dp, frame.clone(), port);
            assert_eq!(found, expected, "{row}: {which}, time {time}");
        }
    }
}

#[test]
fn a_packet_is_mirrored_once_where_it_is_selected() {
    let to_two = ["in_port=1,actions=2", "in_port=3,actions=drop"];
    let rows: [(&str, &[&str], u32, &[Left]); 10] = [
        ("none", &[], 1, &[(2, None, 100)]),
        ("all, once", &["m,all,output=6"], 1, &[(2, None, 100), (6, None, 100)]),
        ("by source", &["m,src=1,output=6"], 1, &[(2, None, 100), (6, None, 100)]),
        ("by destination", &["m,dst=2,output=6"], 1, &[(2, None, 100), (6, None, 100)]),
        ("of others", &["m,src=2,dst=1,output=6"], 1, &[(2, None, 100)]),
        (
            "two mirrors with one output",
            &["m,src=1,output=6", "n,dst=2,output=6"],
            1,
            &[(2, None, 100), (6, None, 100)],
        ),
        (
            "two outputs",
            &["m,src=1,output=6", "n,dst=2,output=5,snaplen=64"],
            1,
            &[(2, None, 100), (5, None, 64), (6, None, 100)],
        ),
        ("what is dropped", &["m,src=3,output=6"], 3, &[(6, None, 100)]),
        ("another VLAN", &["m,all,vlan=5,output=6"], 1, &[(2, None, 100)]),
        ("no such port", &["m,all,output=99"], 1, &[(2, None, 100)]),
    ];
    for (row, mirrors, port, expected) in rows {
        let mut both = datapaths(&[], &to_two, mirrors);
        check(row, &mut both, (frame(1, 2, None), port), expected);
    }
    // Nobody gets it because of its mirror alone.
    let mut both = datapaths(&[], &to_two, &["m,src=3,output=6"]);
    for dp in &mut both {
        assert_eq!(left(&mut **dp, frame(1, 2, None), 3).1, [DropReason::NoOutput]);
    }
}

#[test]
fn a_packet_is_mirrored_as_it_is_at_that_moment() {
    let rewrites = ["in_port=1,actions=set_field:02:00:00:00:00:09->eth_dst,2"];
    for (mirror, to) in [("m,src=1,output=6", 2), ("m,dst=2,output=6", 9)] {
        for dp in &mut datapaths(&[], &rewrites, &[mirror]) {
            for _ in 0..3 {
                let mut out = Out::new();
                dp.process(frame(1, 2, None), PortNo(1), Nanos(0), &mut out);
                let copy = out.verdicts().iter().find_map(|verdict| match verdict {
                    Verdict::Output { port: PortNo(6), frame, .. } => Some(frame.bytes()[5]),
                    _ => None,
                });
                assert_eq!(copy, Some(to), "{mirror}");
            }
        }
    }
}

#[test]
fn mirrors_of_a_learning_switch_know_vlans() {
    let vlans = [(1, "access:5"), (2, "access:5"), (3, "trunk:5,7,9"), (4, "access:9")];
    let normal = ["actions=normal"];
    // To everybody in VLAN 5, from its access port.
    let flood: &[Left] = &[(2, None, 100), (3, Some(5), 104), (5, Some(5), 104)];
    let with = |more: &[Left]| {
        let mut all = [flood, more].concat();
        all.sort_unstable();
        all
    };
    let rows: [(&str, Vec<Left>); 6] = [
        // Port 6 is a trunk of all, and takes nothing but what is mirrored.
        ("m,src=1,output=6", with(&[(6, Some(5), 104)])),
        ("m,src=1,vlan=5,output=6,snaplen=60", with(&[(6, Some(5), 60)])),
        ("m,src=1,vlan=7,output=6", with(&[(6, Some(5), 104)])),
        ("m,dst=3,vlan=5,output=6", with(&[(6, Some(5), 104)])),
        // VLAN 9: without a tag at port 4, with it on trunks, port 1 is none of it.
        ("m,src=1,output-vlan=9", with(&[(4, None, 100), (3, Some(9), 104), (5, Some(9), 104)])),
        ("m,src=1,output-vlan=5", with(&[])),
    ];
    for (mirror, mut expected) in rows {
        if mirror.contains("vlan=7") {
            expected.retain(|left| left.0 != 6);
        }
        if mirror.contains("output-vlan") {
            expected.extend([(6, Some(5), 104)]);
            if mirror.contains("=9") {
                expected.extend([(6, Some(9), 104)]);
            }
            expected.sort_unstable();
        }
        let mut both = datapaths(&vlans, &normal, &[mirror]);
        check(mirror, &mut both, (frame(1, 0, None), 1), &expected);
    }
}

#[test]
fn an_output_port_takes_nothing_else() {
    let flows = ["in_port=1,actions=6", "in_port=2,actions=flood", "in_port=6,actions=1"];
    for dp in &mut datapaths(&[], &flows, &["m,src=3,output=6"]) {
        let refused = (vec![], vec![DropReason::MirrorOutput]);
        assert_eq!(left(&mut **dp, frame(1, 2, None), 1), refused);
        assert_eq!(left(&mut **dp, frame(1, 2, None), 6), refused);
        let (flooded, _) = left(&mut **dp, frame(1, 2, None), 2);
        assert!(flooded.iter().all(|left| left.0 != 6) && flooded.len() == 4);
        let stats = dp.port_stats(PortNo(6), Nanos(1)).unwrap();
        assert_eq!((stats[0].rx_dropped, stats[0].tx_dropped), (1, 1));
        // Without the mirror it is a port again.
        dp.set_mirrors(Vec::new());
        assert_eq!(left(&mut **dp, frame(1, 2, None), 1).0, [(6, None, 100)]);
    }
}

#[test]
fn protected_ports_do_not_reach_each_other() {
    let vlans = [(1, "trunk:protected"), (2, "trunk:protected"), (3, "trunk")];
    let apart = vec![DropReason::Protected];
    for dp in &mut datapaths(&vlans, &["actions=normal"], &[]) {
        let mut ports = |from, to, port| {
            let (found, dropped) = left(&mut **dp, frame(from, to, None), port);
            (found.iter().map(|left| left.0).collect::<Vec<_>>(), dropped)
        };
        // Unknown: everywhere but to the other protected one.
        assert_eq!(ports(1, 0, 1).0, [3, 4, 5, 6]);
        assert_eq!(ports(2, 0, 2).0, [3, 4, 5, 6]);
        assert_eq!(ports(3, 0, 3).0, [1, 2, 4, 5, 6]);
        // Known.
        for _ in 0..3 {
            assert_eq!(ports(1, 2, 1), (vec![], apart.clone()));
            assert_eq!((ports(1, 3, 1).0, ports(3, 1, 3).0), (vec![3], vec![1]));
        }
    }
    // Flow entries see no difference.
    for dp in &mut datapaths(&vlans, &["in_port=1,actions=2"], &[]) {
        assert_eq!(left(&mut **dp, frame(1, 2, None), 1).0, [(2, None, 100)]);
    }
}
