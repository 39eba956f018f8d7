//! A learning switch in the kernel tier, on real veths: stations that move between ports and
//! workers, and ports that go.

use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::{MacAddr, Message, PortNo, Version};
use packet::build::FrameBuilder;

use crate::harness::{Controller, Host, Switch, until};
use crate::tier_rig::{at_veths, kernel_hits, number, until_hits};

pub(crate) fn station(number: u8) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 | u64::from(number))
}

/// A learning switch between three hosts.
fn learning(workers: usize, test: impl FnOnce(&Switch, &mut [Host; 3]) + Send) {
    let toml = format!("fail-mode = \"standalone\"\nworkers = {workers}\n");
    at_veths(&toml, |switch, hosts, _| {
        let shown = switch.ctl(&["ports"]);
        assert!(!shown.contains("no kernel tier"), "{shown}");
        test(switch, hosts);
    });
}

/// A frame from one station to another, with a number.
pub(crate) fn between(src: u8, dst: u8, number: u8) -> Vec<u8> {
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

/// Sends from one host to the other's station until the kernel decides.
fn until_switched(
    switch: &Switch,
    hosts: &mut [Host; 3],
    (from, src): (usize, u8),
    (to, dst): (usize, u8),
) {
    until_hits(switch, 0, || {
        let bytes = between(src, dst, 0);
        hosts[from].send(&bytes);
        assert_eq!(hosts[to].receive(), bytes);
    });
}

/// On one worker, and where each port has another.
#[test]
#[ignore = "needs root"]
fn no_frame_goes_to_the_port_that_a_station_was_seen_to_leave() {
    for workers in [1, 3] {
        learning(workers, |switch, hosts| {
            announce(hosts, 0, 1);
            announce(hosts, 1, 2);
            let begun = kernel_hits(switch);
            for round in 0..number("WEIR_TIER_ROUNDS", 20) {
                let (at, left) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
                // The others have got it, so the move was seen.
                announce(hosts, at, 2);
                switch.ctl(&["dump-flows"]);
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
    learning(1, |switch, hosts| {
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
        switch.ctl(&["del-port", "br0", "2"]);
        for number in 0..20 {
            hosts[0].send(&between(1, 2, number));
            assert_eq!(hosts[2].receive(), between(1, 2, number), "it is sought");
        }
        assert_eq!(hosts[1].received(), 0);
        switch.ctl(&["add-port", "br0", "2=af_packet:sw2"]);
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
    let descs = controller.port_descs();
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

/// The number of frames that port 2 could not send.
fn tx_dropped(controller: &mut Controller) -> u64 {
    controller.port_stats(PortNo(2))[0].tx_dropped
}
