//! A learning switch in the kernel tier, on real veths: what it forwards and counts, stations that
//! move between ports and workers, VLANs, settings of ports, and a switch without the tier beside
//! one with it.
//!
//! A few rounds by default; `WEIR_TIER_ROUNDS` and `WEIR_TIER_SEED` ask for more and for others.

use netdev::sys::link::Rtnl;
use openflow::flow::FlowModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::text::parse_flow_mod;
use openflow::{MacAddr, Message, PortNo, Version};
use packet::build::{FrameBuilder, Ipv4};
use testkit::Random;

use crate::harness::{Controller, Host, Switch, until};
use crate::kernel_tier::{kernel_hits, shown};
use crate::kernel_tier_same::{PORTS, Side, number};
use crate::veth::{add_veth, in_namespace};

/// A learning switch between three hosts, with these lines of TOML.
fn learning(toml: &str, test: impl FnOnce(&Switch, &mut [Host; 3], &Rtnl) + Send) {
    in_namespace(|rtnl| {
        for number in 1..=3 {
            add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
        }
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\", \"3=af_packet:sw3\"";
        let toml = format!("fail-mode = \"standalone\"\n{toml}");
        let switch = Switch::with_ports(ports, Vec::new(), &toml);
        let (_, shown, _) = switch.ctl(&["ports"]);
        assert!(!shown.contains("no kernel tier"), "{shown}");
        let mut hosts = [1, 2, 3].map(|number| Host::open(&format!("af_packet:host{number}")));
        test(&switch, &mut hosts, rtnl);
        switch.stop();
        assert!(rtnl.links().unwrap().iter().all(|link| link.kind != "tun"));
    });
}

fn station(number: u8) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | u64::from(number))
}

/// A frame from one station to another, with a number.
fn between(src: u8, dst: u8, number: u8) -> Vec<u8> {
    let builder = FrameBuilder::ethernet(station(dst), station(src));
    builder.ether_type(0x88b5).payload(&[number]).fill_to(60).build()
}

/// Waits until the station is learnt at the host's port: others get what it sends to all.
fn announce(hosts: &mut [Host; 3], at: usize, src: u8) {
    let bytes = between(src, 0xff, src);
    hosts[at].send(&bytes);
    for other in (0..3).filter(|other| *other != at) {
        assert_eq!(hosts[other].receive(), bytes);
    }
}

/// Sends from one host to the other's station until the kernel decides; how many.
fn until_switched(
    switch: &Switch,
    hosts: &mut [Host; 3],
    (from, src): (usize, u8),
    (to, dst): (usize, u8),
) -> u64 {
    let before = kernel_hits(switch);
    let mut sent = 0;
    until("a decision of the kernel", || {
        let bytes = between(src, dst, sent as u8);
        hosts[from].send(&bytes);
        sent += 1;
        assert_eq!(hosts[to].receive(), bytes);
        (kernel_hits(switch) > before).then_some(sent)
    })
}

/// Packets and bytes that ports have received and sent.
fn port_counts(controller: &mut Controller) -> Vec<[u64; 4]> {
    let body = controller.multipart(MultipartRequestBody::PortStats(PortNo::ANY));
    let MultipartReplyBody::PortStats(ports) = body else { panic!("{body:?}") };
    ports.iter().map(|it| [it.rx_packets, it.rx_bytes, it.tx_packets, it.tx_bytes]).collect()
}

#[test]
#[ignore = "needs root"]
fn known_stations_are_switched_in_the_kernel_and_in_every_count() {
    learning("", |switch, hosts, _| {
        announce(hosts, 0, 1);
        announce(hosts, 1, 2);
        let mut sent = until_switched(switch, hosts, (0, 1), (1, 2));
        let mut back = until_switched(switch, hosts, (1, 2), (0, 1));
        let before = kernel_hits(switch);
        for number in 0..200 {
            let [one, two, three] = &mut *hosts;
            one.send(&between(1, 2, number));
            assert_eq!(two.receive(), between(1, 2, number));
            two.send(&between(2, 1, number));
            assert_eq!(one.receive(), between(2, 1, number));
            assert_eq!(three.received(), 0);
        }
        (sent, back) = (sent + 200, back + 200);
        assert_eq!(kernel_hits(switch), before + 400, "all of them");
        let mut controller = switch.controller(Version::V1_3);
        // With what announced them.
        let all = sent + back + 2;
        let body = controller.multipart(MultipartRequestBody::Table);
        let MultipartReplyBody::Table(tables) = body else { panic!("{body:?}") };
        assert_eq!((tables[0].lookup_count, tables[0].matched_count), (all, all));
        let body = controller
            .multipart(MultipartRequestBody::Flow(openflow::flow::FlowStatsRequest::all()));
        let MultipartReplyBody::Flow(entries) = body else { panic!("{body:?}") };
        assert_eq!((entries[0].packet_count, entries[0].byte_count), (all, 60 * all));
        let both = |rx: u64, tx: u64| [rx, 60 * rx, tx, 60 * tx];
        let expected = [both(sent + 1, back + 1), both(back + 1, sent + 1), both(0, 2)];
        assert_eq!(port_counts(&mut controller), expected);
    });
}

/// On one worker, and where each port has another.
#[test]
#[ignore = "needs root"]
fn no_frame_goes_to_the_port_that_a_station_was_seen_to_leave() {
    for workers in [1, 3] {
        learning(&format!("workers = {workers}\n"), |switch, hosts, _| {
            announce(hosts, 0, 1);
            announce(hosts, 1, 2);
            let begun = kernel_hits(switch);
            for round in 0..number("WEIR_TIER_ROUNDS", 20) {
                let (at, left) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
                // The others have got it, so the move was seen.
                announce(hosts, at, 2);
                assert!(switch.ctl(&["dump-flows"]).0, "asks all workers");
                for number in 0..8 {
                    hosts[0].send(&between(1, 2, number));
                    assert_eq!(hosts[at].receive(), between(1, 2, number), "round {round}");
                    assert_eq!(hosts[left].received(), 0, "round {round}");
                    hosts[at].send(&between(2, 1, number));
                    assert_eq!(hosts[0].receive(), between(2, 1, number), "round {round}");
                }
            }
            assert!(kernel_hits(switch) > begun + 100, "{}", kernel_hits(switch) - begun);
        });
    }
}

#[test]
#[ignore = "needs root"]
fn a_port_that_goes_down_or_away_is_not_switched_to() {
    learning("", |switch, hosts, _| {
        let mut controller = switch.controller(Version::V1_3);
        announce(hosts, 0, 1);
        announce(hosts, 1, 2);
        for config in [PortConfig::PORT_DOWN, PortConfig::NO_FWD] {
            until_switched(switch, hosts, (0, 1), (1, 2));
            let before = tx_dropped(&mut controller);
            configure(&mut controller, config);
            for number in 0..20 {
                hosts[0].send(&between(1, 2, number));
            }
            until("the drops", || (tx_dropped(&mut controller) == before + 20).then_some(()));
            assert_eq!((hosts[1].received(), hosts[2].received()), (0, 0));
            configure(&mut controller, PortConfig::empty());
            // Of the port's changes, before anything else is asked.
            drop(std::mem::replace(&mut controller, switch.controller(Version::V1_3)));
        }
        until_switched(switch, hosts, (0, 1), (1, 2));
        assert!(switch.ctl(&["del-port", "br0", "2"]).0);
        for number in 0..20 {
            hosts[0].send(&between(1, 2, number));
            assert_eq!(hosts[2].receive(), between(1, 2, number), "it is sought");
        }
        assert_eq!(hosts[1].received(), 0);
        assert!(switch.ctl(&["add-port", "br0", "2=af_packet:sw2"]).0);
        until("the port", || {
            hosts[1].send(&between(2, 1, 9));
            (hosts[0].received() > 0).then_some(())
        });
        while hosts[1].received() + hosts[0].received() > 0 {}
        until_switched(switch, hosts, (0, 1), (1, 2));
    });
}

/// Sets how port 2 is configured.
fn configure(controller: &mut Controller, config: PortConfig) {
    let body = controller.multipart(MultipartRequestBody::PortDesc);
    let MultipartReplyBody::PortDesc(descs) = body else { panic!("{body:?}") };
    let desc = descs.iter().find(|desc| desc.port_no == PortNo(2)).unwrap();
    let mask = PortConfig::PORT_DOWN | PortConfig::NO_FWD;
    controller.send(&Message::PortMod(PortMod {
        port_no: desc.port_no,
        hw_addr: desc.hw_addr,
        config,
        mask,
        advertise: PortFeatures::empty(),
    }));
    let barrier = controller.send(&Message::BarrierRequest);
    // Behind the port-status of the change.
    while controller.next().0 != barrier {}
}

/// What port 2 could not send.
fn tx_dropped(controller: &mut Controller) -> u64 {
    let body = controller.multipart(MultipartRequestBody::PortStats(PortNo(2)));
    let MultipartReplyBody::PortStats(ports) = body else { panic!("{body:?}") };
    ports[0].tx_dropped
}

#[test]
#[ignore = "needs root"]
fn vlans_are_kept_apart_and_tags_change_in_the_kernel() {
    let vlans = "vlan = [\"1=access:10\", \"2=trunk:10,20\", \"3=access:20\"]\n";
    learning(vlans, |switch, [one, two, three], _| {
        let tagged = |vid, src, dst| {
            let builder = FrameBuilder::ethernet(station(dst), station(src)).vlan(5, vid);
            builder.ether_type(0x88b5).fill_to(64).build()
        };
        let plain = |src, dst| {
            let builder = FrameBuilder::ethernet(station(dst), station(src));
            builder.ether_type(0x88b5).fill_to(60).build()
        };
        one.send(&plain(1, 0xff));
        two.receive();
        three.send(&plain(1, 0xff));
        two.receive();
        let before = kernel_hits(switch);
        for round in 0..40 {
            // The first station is in both VLANs, at two ports.
            two.send(&tagged(10, 2, 1));
            assert_eq!(one.receive(), plain(2, 1), "{round}");
            two.send(&tagged(20, 2, 1));
            assert_eq!(three.receive(), plain(2, 1), "{round}");
            one.send(&plain(1, 2));
            let got = two.receive();
            assert_eq!((got[12..16].to_vec(), got.len()), (vec![0x81, 0, 0, 10], 64), "{round}");
            three.send(&plain(1, 2));
            assert_eq!(two.receive()[12..16], [0x81, 0, 0, 20], "{round}");
            assert_eq!((one.received(), three.received()), (0, 0));
        }
        let hits = kernel_hits(switch) - before;
        assert!(hits > 100, "{hits} in the kernel");
    });
}

/// What is sent at which port, in a round.
fn frames(random: &mut Random, homes: &mut [usize]) -> Vec<(usize, Vec<u8>)> {
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

/// A change that both switches get; none most of the time.
fn change(random: &mut Random, sides: &mut [Side; 2]) {
    let port = 1 + random.below(PORTS as u64);
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
            let vlan = vlan[random.index(4)];
            for side in sides {
                let port = port.to_string();
                assert!(side.switch.ctl(&["set-port", "br0", &port, "--vlan", vlan]).0);
            }
            return;
        }
        9 => {
            let request = parse_flow_mod("priority=2", FlowModCommand::Delete).unwrap();
            for side in sides {
                side.controller.send(&Message::FlowMod(request.clone()));
                side.controller.barrier();
            }
            return;
        }
        _ => return,
    };
    let flow_mod = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
    for side in sides {
        side.controller.send(&Message::FlowMod(flow_mod.clone()));
        side.controller.barrier();
    }
}

#[test]
#[ignore = "needs root"]
fn a_learning_switch_with_the_tier_is_the_same_as_one_without() {
    in_namespace(|rtnl| {
        let caches = [('a', "frame,key,kernel"), ('b', "frame,key")];
        let mut sides = caches.map(|(letter, caches)| Side::new(rtnl, letter, caches));
        let seed = number("WEIR_TIER_SEED", 1);
        let mut random = Random::new(seed);
        let group = "group_id=1,type=all,bucket=NORMAL";
        let group =
            openflow::text::parse_group_mod(group, openflow::group::GroupModCommand::Add).unwrap();
        let normal = parse_flow_mod("priority=0,actions=NORMAL", FlowModCommand::Add).unwrap();
        for side in &mut sides {
            side.controller.send(&Message::GroupMod(group.clone()));
            side.controller.send(&Message::FlowMod(normal.clone()));
            side.controller.barrier();
        }
        let mut homes = [0, 1, 2, 0, 1];
        let mut sent = 0;
        for round in 0..number("WEIR_TIER_ROUNDS", 40) {
            change(&mut random, &mut sides);
            let packets = frames(&mut random, &mut homes);
            for _ in 0..4 {
                // One after the other, since the next may go where this one came from.
                for (port, frame) in &packets {
                    sent += 1;
                    for side in &mut sides {
                        side.send(*port, frame);
                        side.settle(sent);
                    }
                }
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
        println!("{hits} of {sent} in the kernel");
        for side in sides {
            side.switch.stop();
        }
    });
}
