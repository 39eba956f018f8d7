//! The kernel tier when things go wrong around it: more flows than it has room for, and devices
//! that leave the switch's namespace.

use netdev::sys::netns::Namespace;
use openflow::{Action, Field, Match, PortNo, Version};

use crate::harness::{Host, add_flow, until};
use crate::tier_rig::{
    at_veths, flow_counts, forward_first, from_port, kernel_hits, sum_shown, until_in_kernel,
    with_tier,
};
use crate::veth::add_veth;

/// A frame from an Ethernet address.
fn from_address(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..8].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0]);
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    bytes[12..14].copy_from_slice(&[0x12, 0x34]);
    bytes
}

#[test]
#[ignore = "needs root"]
fn a_flood_of_flows_costs_the_kernel_no_count_and_no_frame() {
    // More than there are slots.
    const FLOWS: u32 = 18_016;
    with_tier(|switch, [one, two, _], _| {
        let mut controller = forward_first(switch, &[2]);
        // So that the address makes a difference.
        let other = Match::any().with(Field::EthSrc, 0x0e00_0000_0001);
        controller.send(&add_flow(2, other, Vec::new()));
        controller.barrier();
        let mut sent = 0;
        for first in (0..FLOWS).step_by(32) {
            // A flow gets its entry with the twelfth frame at the latest.
            for _ in 0..13 {
                (first..first + 32).for_each(|flow| one.send(&from_address(flow)));
                let mut come: Vec<Vec<u8>> = (0..32).map(|_| two.receive()).collect();
                come.sort();
                let expected: Vec<_> = (first..first + 32).map(from_address).collect();
                assert!(come == expected, "{first}");
                sent += 32;
            }
        }
        // The earlier connection may have been silent for too long.
        let mut controller = switch.controller(Version::V1_3);
        assert!(sum_shown(switch, &["caches"], "kernel_entries") > u64::from(FLOWS / 2));
        assert!(sum_shown(switch, &["caches"], "kernel_evictions") > 0, "no entry was given up");
        assert_eq!(flow_counts(&mut controller)[&1], (sent, 60 * sent));
        // What comes now gets its place all the same.
        sent += until_in_kernel(switch, one, two, &from_address(FLOWS));
        assert_eq!(flow_counts(&mut controller)[&1], (sent, 60 * sent));
        let removed = add_flow(1, from_port(1), Vec::new());
        controller.send(&removed);
        controller.barrier();
        for flow in FLOWS - 64..FLOWS {
            one.send(&from_address(flow));
        }
        // The entry keeps the counts of the one that it takes the place of.
        until("the drops", || {
            (flow_counts(&mut controller)[&1] == (sent + 64, 60 * (sent + 64))).then_some(())
        });
        assert_eq!(two.received(), 0);
    });
}

#[test]
#[ignore = "needs root"]
fn a_device_back_from_another_namespace_is_in_the_tier_again() {
    with_tier(|switch, [one, two, three], rtnl| {
        forward_first(switch, &[2, 3]);
        let mut in_kernel = |two: &mut Host, three: &mut Host| {
            let before = kernel_hits(switch);
            until("a decision of the kernel", || {
                one.send(&from_address(1));
                assert_eq!(three.receive(), from_address(1));
                let back = two.received() > 0;
                (back && kernel_hits(switch) > before).then_some(())
            });
        };
        in_kernel(two, three);
        let elsewhere = Namespace::new().unwrap();
        for round in 1..=2 {
            rtnl.move_to("sw2", &elsewhere).unwrap();
            until("the loss", || (switch.counter("port_gone") == round).then_some(()));
            let home = Namespace::current().unwrap();
            let back = || {
                let rtnl = netdev::sys::link::Rtnl::open().unwrap();
                rtnl.move_to("sw2", &home).unwrap();
            };
            elsewhere.enter(back).unwrap();
            rtnl.set_up("sw2", true).unwrap();
            until("the return", || (switch.counter("port_reopened") == round).then_some(()));
            in_kernel(two, three);
        }
    });
}

/// The kernel's counts of a device are its port's, though nobody asked before it was lost.
#[test]
#[ignore = "needs root"]
fn a_port_keeps_what_the_kernel_counted_for_a_lost_device() {
    const FRAMES: u64 = 300;
    // Without the tier by name, which would keep the host's device.
    at_veths("", |switch, [one, two, _], rtnl| {
        forward_first(switch, &[2]);
        let mut sent = 0;
        let elsewhere = Namespace::new().unwrap();
        for (round, lost) in (1..).zip(["sw2", "sw1", "moved", "the host's"]) {
            sent += until_in_kernel(switch, one, two, &from_address(1));
            for _ in 0..FRAMES {
                one.send(&from_address(1));
                assert_eq!(two.receive(), from_address(1));
            }
            sent += FRAMES;
            match lost {
                "moved" => rtnl.move_to("sw2", &elsewhere).unwrap(),
                "the host's" => rtnl.add_address("sw1", "192.0.2.1".parse().unwrap(), 24).unwrap(),
                device => rtnl.delete(device).unwrap(),
            }
            if round < 4 {
                until("the loss", || (switch.counter("port_gone") == round).then_some(()));
                let number = if lost == "sw1" { 1 } else { 2 };
                add_veth(rtnl, &format!("sw{number}"), &format!("other{round}"));
                let host = if number == 1 { &mut *one } else { &mut *two };
                *host = Host::open(&format!("af_packet:other{round}"));
            }
            until("the return", || (switch.counter("port_reopened") == round).then_some(()));
            until("the counts", || {
                let stats = switch.controller(Version::V1_3).port_stats_amid_changes();
                (stats[0].rx_packets == sent && stats[1].tx_packets == sent).then_some(())
            });
        }
    });
}

/// The kernel's forwarding is not held up by a sender whose frames all go to the worker.
#[test]
#[ignore = "needs root"]
fn a_busy_worker_yields_while_the_kernel_decides_more() {
    with_tier(|switch, [one, two, _], _| {
        let mut controller = forward_first(switch, &[2]);
        // More outputs than the kernel sends one frame by.
        let dear = Match::any().with(Field::EthSrc, 0x0200_0000_0007);
        controller.send(&add_flow(2, dear, vec![Action::output(PortNo(3)); 60]));
        controller.barrier();
        until_in_kernel(switch, one, two, &from_address(1));
        let yielded = || sum_shown(switch, &["workers"], "yielded_ns");
        assert_eq!(yielded(), 0);
        until("the worker yields", || {
            for _ in 0..2_000 {
                one.send(&from_address(7));
                (0..3).for_each(|_| one.send(&from_address(1)));
            }
            (yielded() > 0).then_some(())
        });
        // It is as any other thread again when it has time.
        until("the worker has time", || {
            let before = yielded();
            std::thread::sleep(std::time::Duration::from_millis(200));
            one.send(&from_address(1));
            (yielded() == before).then_some(())
        });
    });
}
