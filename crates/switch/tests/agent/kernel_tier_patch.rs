//! Frames that go from bridge to bridge in the kernel: they come out as with workers alone, and
//! both ends of each wire count them.

use std::collections::BTreeMap;

use netdev::sys::link::Rtnl;
use openflow::flow::FlowModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{GroupId, MacAddr, PortNo, Version};
use packet::build::{FrameBuilder, Ipv4};
use testkit::Random;

use crate::harness::{Controller, Host, Switch, until};
use crate::tier_rig::{flow, handovers, kernel_hits_of, no_flows, number};
use crate::veth::{add_veth, in_namespace};

/// Bridges in a row, each with a host, and joined to the one before and the one after.
const BRIDGES: usize = 3;

/// Ports of a bridge: its host's, and the patch ports down and up.
const HOST: u32 = 1;
const DOWN: u32 = 2;
const UP: u32 = 3;

struct Row {
    switch: Switch,
    controllers: Vec<Controller>,
    hosts: Vec<Host>,
    frames: Vec<Vec<Vec<u8>>>,
}

impl Row {
    fn new(rtnl: &Rtnl, letter: char, caches: &str, workers: usize) -> Self {
        for bridge in 1..=BRIDGES {
            add_veth(rtnl, &format!("{letter}{bridge}"), &format!("{letter}h{bridge}"));
        }
        let options = format!("workers = {workers}\ncaches = \"{caches}\"\n");
        let (switch, _) = Switch::of_tables(0, &options, |folder, _| {
            let bridge = |nth: usize| {
                let (down, up) = (nth - 1, nth + 1);
                format!(
                    "[[bridge]]\nname = \"b{nth}\"\ndpid = \"{nth}\"\n\
                     listen = [\"punix:{folder}/of{nth}\"]\n\
                     port = [\"{HOST}=af_packet:{letter}{nth}\", \
                     \"{DOWN}=patch:{letter}{nth}d?peer={letter}{down}u\", \
                     \"{UP}=patch:{letter}{nth}u?peer={letter}{up}d\"]\n"
                )
            };
            (1..=BRIDGES).map(bridge).collect()
        });
        let host = |nth| Host::open(&format!("af_packet:{letter}h{nth}"));
        let hosts = (1..=BRIDGES).map(host).collect();
        let mut row =
            Self { switch, controllers: Vec::new(), hosts, frames: vec![Vec::new(); BRIDGES] };
        until("the links", || {
            let are_up = |bridge| row.is_up(bridge, UP) && row.is_up(bridge + 1, DOWN);
            (1..BRIDGES).all(are_up).then_some(())
        });
        row.connect();
        row
    }

    /// Connects controllers, to which no earlier change of a port is reported.
    fn connect(&mut self) {
        let controller = |nth| self.switch.controller_at(&format!("of{nth}"), Version::V1_3);
        self.controllers = (1..=BRIDGES).map(controller).collect();
    }

    fn is_up(&self, bridge: usize, port: u32) -> bool {
        let ports = self.switch.records(&["--bridge", &format!("b{bridge}"), "ports"]);
        ports.iter().any(|found| found["port_no"] == port && found["link_up"] == true)
    }

    /// Frames out of each port, and counts of all bridges.
    fn counts(&mut self) -> BTreeMap<String, Vec<u64>> {
        let mut all = BTreeMap::new();
        for (nth, controller) in (1..).zip(&mut self.controllers) {
            for it in controller.port_stats(PortNo::ANY) {
                let counts = [it.rx_packets, it.tx_packets, it.rx_bytes, it.tx_bytes];
                let lost = [it.rx_dropped, it.tx_dropped];
                all.insert(format!("b{nth} port {}", it.port_no), [&counts[..], &lost].concat());
            }
            for it in controller.flow_stats() {
                let name = format!("b{nth} {} {:?}", it.priority, it.matching);
                all.insert(name, vec![it.packet_count, it.byte_count]);
            }
            let tables = &controller.table_stats()[0];
            let counts = vec![tables.lookup_count, tables.matched_count];
            all.insert(format!("b{nth} table"), counts);
            let body = MultipartRequestBody::Group(GroupId::ALL);
            let MultipartReplyBody::Group(groups) = controller.multipart(body) else { panic!() };
            assert!(groups.is_empty());
        }
        all
    }

    fn lookups(&mut self) -> Vec<u64> {
        let lookups = |controller: &mut Controller| controller.table_stats()[0].lookup_count;
        self.controllers.iter_mut().map(lookups).collect()
    }

    fn collect(&mut self) {
        for (nth, (host, frames)) in self.hosts.iter_mut().zip(&mut self.frames).enumerate() {
            let sent = self.controllers[nth].port_stats(PortNo(HOST))[0].tx_packets;
            while (frames.len() as u64) < sent {
                frames.push(host.receive());
            }
            frames.extend(std::iter::from_fn(|| host.poll()));
        }
    }

    fn hits(&self) -> [u64; BRIDGES] {
        std::array::from_fn(|at| kernel_hits_of(&self.switch, &format!("b{}", at + 1)))
    }
}

/// A row with the tier beside one without.
struct Rows([Row; 2]);

impl Rows {
    fn new(rtnl: &Rtnl, letters: [char; 2], workers: usize) -> Self {
        let row = |letter, caches| Row::new(rtnl, letter, caches, workers);
        Self([row(letters[0], "frame,key,kernel"), row(letters[1], "frame,key")])
    }

    /// Gives a bridge these entries, and no others.
    fn set(&mut self, bridge: usize, flows: &[&str]) {
        for row in &mut self.0 {
            let controller = &mut row.controllers[bridge - 1];
            controller.send(&no_flows());
            for text in flows {
                controller.send(&flow(text, FlowModCommand::Add));
            }
            controller.barrier();
        }
    }

    fn pass(&mut self, frames: &[(usize, Vec<u8>)]) {
        for (bridge, frame) in frames {
            self.0.iter_mut().for_each(|row| row.hosts[bridge - 1].send(frame));
        }
        let [with, without] = &mut self.0;
        // Those of the worker may come a moment later than those of the kernel.
        until("the same lookups", || {
            let (a, b) = (with.lookups(), without.lookups());
            (a == b && a == with.lookups() && b == without.lookups()).then_some(())
        });
    }

    fn compare(&mut self, place: &str) {
        self.0.iter_mut().for_each(Row::collect);
        let [with, without] = &mut self.0;
        let mut last = (BTreeMap::new(), BTreeMap::new());
        let begun = std::time::Instant::now();
        while begun.elapsed() < crate::harness::DEADLINE {
            last = (with.counts(), without.counts());
            if last.0 == last.1 {
                break;
            }
        }
        assert_eq!(last.0, last.1, "{place}");
        for (nth, (one, other)) in with.frames.iter_mut().zip(&mut without.frames).enumerate() {
            one.sort();
            other.sort();
            assert!(one == other, "{place}: other frames at host {}", nth + 1);
        }
    }

    fn stop(self) {
        self.0.into_iter().for_each(|row| row.switch.stop());
    }
}

/// A frame of UDP between hosts, of some length.
fn udp(from: u8, to: u8, ttl: u8, len: usize) -> Vec<u8> {
    let mac = |host: u8| MacAddr::from_u64(0x0200_0000_0000 | u64::from(host));
    let frame = FrameBuilder::ethernet(mac(to), mac(from));
    let mut addresses = Ipv4::new([10, 0, 0, from].into(), [10, 0, 0, to].into());
    addresses.ttl = ttl;
    frame.ipv4(addresses).udp(7, 9).payload(&vec![7; len]).build()
}

#[test]
#[ignore = "needs root"]
fn a_frame_through_bridges_is_the_same_and_counted_at_both_ends() {
    for workers in [1, 2] {
        in_namespace(|rtnl| {
            let mut rows = Rows::new(rtnl, ['a', 'b'], workers);
            let on = ["in_port=1,actions=output:3", "in_port=3,actions=output:1"];
            let through = ["in_port=2,actions=output:3", "in_port=3,actions=output:2"];
            let end = ["in_port=1,actions=output:2", "in_port=2,actions=output:1"];
            let frames: Vec<(usize, Vec<u8>)> =
                [(1, udp(1, 3, 64, 10)), (3, udp(3, 1, 64, 1_400)), (1, udp(1, 3, 9, 400))].into();
            let rewriting = [
                "in_port=2,eth_type=0x800,actions=dec_nw_ttl,push_vlan:0x8100,\
                 set_field:0x1005->vlan_vid,set_field:10.0.0.77->ip_src,output:3",
                "in_port=3,vlan_vid=0x1005,actions=pop_vlan,output:2",
                "in_port=3,vlan_vid=0,actions=output:2",
            ];
            let popping = ["in_port=2,vlan_vid=0x1005,actions=pop_vlan,output:1", end[0]];
            // Each with the bridges of which the kernel decides about frames then.
            let steps: [(&str, usize, &[&str], [bool; 3]); 7] = [
                ("the ends", 1, &on, [false; 3]),
                ("a bridge between without entries", 3, &end, [true, true, false]),
                ("all", 2, &through, [true; 3]),
                ("changes on the way", 2, &rewriting, [true; 3]),
                ("and back", 3, &popping, [true; 3]),
                // The first one sends on, and the worker of the second has the rest.
                ("a copy", 2, &["in_port=2,actions=output:3,output:1", through[1]], [true; 3]),
                ("the end of all", 2, &["actions=drop"], [true, true, false]),
            ];
            for (name, bridge, flows, in_kernel) in steps {
                rows.set(bridge, flows);
                let before = rows.0[0].hits();
                let all_are_hit = |rows: &Rows| {
                    let hits = rows.0[0].hits();
                    (0..BRIDGES).all(|at| !in_kernel[at] || hits[at] > before[at] + 2)
                };
                until(name, || {
                    rows.pass(&frames);
                    all_are_hit(&rows).then_some(())
                });
                rows.compare(&format!("{name}, {workers} workers"));
            }
            assert_eq!(rows.0[1].hits(), [0; BRIDGES]);
            // A wire that has gone drops what is sent by it, with and without the kernel.
            for row in &mut rows.0 {
                row.switch.ctl(&["del-port", "b2", &DOWN.to_string()]);
                until("no link", || (!row.is_up(1, UP)).then_some(()));
                row.connect();
            }
            rows.pass(&frames);
            rows.compare("a wire that has gone");
            rows.stop();
            assert_eq!(handovers(rtnl), 0);
        });
    }
}

/// The patch ports are there before any device.
#[test]
#[ignore = "needs root"]
fn patch_ports_enter_the_tier_with_the_first_device() {
    for workers in [1, 2] {
        in_namespace(|rtnl| {
            for nth in [1, 2] {
                add_veth(rtnl, &format!("e{nth}"), &format!("eh{nth}"));
            }
            let options = format!("workers = {workers}\ncaches = \"frame,key,kernel\"\n");
            let (switch, _) = Switch::of_tables(0, &options, |folder, _| {
                let bridge = |nth: usize| {
                    let peer = 3 - nth;
                    format!(
                        "[[bridge]]\nname = \"b{nth}\"\ndpid = \"{nth}\"\n\
                         listen = [\"punix:{folder}/of{nth}\"]\n\
                         port = [\"2=patch:e{nth}p?peer=e{peer}p\"]\n"
                    )
                };
                [1, 2].map(bridge).concat()
            });
            assert_eq!(handovers(rtnl), 0);
            let mut hosts = Vec::new();
            for nth in [1, 2] {
                switch.ctl(&["add-port", &format!("b{nth}"), &format!("1=af_packet:e{nth}")]);
                assert_eq!(handovers(rtnl), 2 * nth, "the device, and the patch port");
                let mut controller = switch.controller_at(&format!("of{nth}"), Version::V1_3);
                for text in ["in_port=1,actions=output:2", "in_port=2,actions=output:1"] {
                    controller.send(&flow(text, FlowModCommand::Add));
                }
                controller.barrier();
                hosts.push(Host::open(&format!("af_packet:eh{nth}")));
            }
            let frame = udp(1, 2, 64, 100);
            until("hits of both", || {
                hosts[0].send(&frame);
                hosts[1].receive();
                let hits = |nth: usize| kernel_hits_of(&switch, &format!("b{nth}"));
                (hits(1) > 2 && hits(2) > 2).then_some(())
            });
            switch.stop();
            assert_eq!(handovers(rtnl), 0);
        });
    }
}

/// Entries of all bridges change at random while frames pass.
#[test]
#[ignore = "needs root"]
fn random_changes_of_joined_bridges_are_the_same_in_the_kernel() {
    in_namespace(|rtnl| {
        let mut rows = Rows::new(rtnl, ['c', 'd'], 2);
        let seed = number("WEIR_TIER_SEED", 1);
        let mut random = Random::new(seed);
        for round in 0..number("WEIR_TIER_ROUNDS", 12) {
            let bridge = 1 + random.below(BRIDGES as u64) as usize;
            let entry = |random: &mut Random, in_port: u64| {
                let change =
                    ["", "dec_nw_ttl,", "set_field:10.0.0.9->ip_dst,"][random.below(3) as usize];
                let output = match random.below(8) {
                    0 => "drop".to_owned(),
                    1 => "output:1,output:2,output:3".to_owned(),
                    // Not back by the port that it came by.
                    _ => format!("{change}output:{}", 1 + (in_port + random.below(2)) % 3),
                };
                let last = if random.below(2) == 0 { ",ip_dst=10.0.0.3" } else { "" };
                format!("in_port={in_port},eth_type=0x800{last},actions={output}")
            };
            let flows: Vec<String> = (1..=3).map(|port| entry(&mut random, port)).collect();
            rows.set(bridge, &flows.iter().map(String::as_str).collect::<Vec<_>>());
            let frames: Vec<(usize, Vec<u8>)> = (0..6)
                .map(|_| {
                    let (from, to) = (1 + random.below(3) as u8, 1 + random.below(3) as u8);
                    let (ttl, len) = (60 + random.below(4) as u8, random.below(800) as usize);
                    (usize::from(from), udp(from, to, ttl, len))
                })
                .collect();
            for _ in 0..4 {
                rows.pass(&frames);
            }
            rows.compare(&format!("round {round} of seed {seed}"));
        }
        let hits = rows.0[0].hits();
        assert!(hits.iter().all(|hits| *hits > 0), "{hits:?}");
        rows.stop();
    });
}
