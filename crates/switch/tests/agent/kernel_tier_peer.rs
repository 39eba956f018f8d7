//! Frames of the kernel tier that go straight to the far end of a veth: which do, what counts them,
//! and that they go by way of the device as soon as something there must see them.

use std::time::{Duration, Instant};

use netdev::sys::link::Rtnl;
use netdev::sys::netns::Namespace;
use netdev::sys::qdisc::Tbf;
use openflow::message::AsyncConfig;
use openflow::{Message, PortNo};

use crate::harness::{Controller, Host, Switch, until};
use crate::tier_rig::{forward_first, kernel_hits};
use crate::veth::{add_veth, add_veth_into, in_namespace};

const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 7];
const BROADCAST: [u8; 6] = [0xff; 6];
/// Numbers from this one on are of frames that may come late, or be lost.
const PROBE: u8 = 0xfe;
const DEADLINE: Duration = Duration::from_secs(30);

fn frame_to(to: [u8; 6], number: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..6].copy_from_slice(&to);
    bytes[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x12, 0x34]);
    bytes[20] = number;
    bytes
}

/// Frames for one address from port 1 to port 2, whose host is in another namespace.
struct Rig<'a> {
    switch: Switch,
    controller: Controller,
    one: Host,
    two: Host,
    rtnl: &'a Rtnl,
}

impl<'a> Rig<'a> {
    fn new(rtnl: &'a Rtnl, far: &Namespace, option: &str) -> Self {
        add_veth(rtnl, "sw1", "host1");
        add_veth_into(rtnl, ("sw2", "host2"), FAR, far);
        let ports = format!("\"1=af_packet:sw1\", \"2=af_packet:sw2{option}\"");
        let switch = Switch::with_ports(&ports, Vec::new(), "caches = \"frame,key,kernel\"\n");
        let mut controller = forward_first(&switch, &[2]);
        // Ports that change are no reply.
        let silent = AsyncConfig::new([0; 2], [0; 2], [0; 2]);
        controller.send(&Message::SetAsync(silent));
        let one = Host::open("af_packet:host1");
        let two = far.enter(|| Host::open("af_packet:host2")).unwrap();
        Self { switch, controller, one, two, rtnl }
    }

    /// Frames that the kernel decides about: how many have passed the device of port 2. All have
    /// come and are counted.
    fn pass(&mut self, to: [u8; 6]) -> u64 {
        const FRAMES: u8 = 20;
        let sent = |controller: &mut Controller| controller.port_stats(PortNo(2))[0].tx_packets;
        let begun = Instant::now();
        loop {
            let before = (self.by_device(), sent(&mut self.controller), kernel_hits(&self.switch));
            for number in 0..FRAMES {
                self.one.send(&frame_to(to, number));
                assert_eq!(self.receive(), frame_to(to, number));
            }
            // A probe that comes late counts too: then once more.
            let sent = sent(&mut self.controller) - before.1;
            let decided = kernel_hits(&self.switch) - before.2;
            if [sent, decided] == [u64::from(FRAMES); 2] {
                return self.by_device() - before.0;
            }
            let text = "sent, and decided by the kernel";
            assert!(begun.elapsed() < DEADLINE, "of {FRAMES} {sent} {text} {decided}");
        }
    }

    /// The next frame that is no probe.
    fn receive(&mut self) -> Vec<u8> {
        loop {
            let frame = self.two.receive();
            if frame[20] < PROBE {
                return frame;
            }
        }
    }

    /// Waits until frames come: in the moment of a move some are lost.
    fn until_it_forwards(&mut self) {
        until("a frame", || {
            self.one.send(&frame_to(FAR, PROBE));
            (self.two.received() > 0).then_some(())
        });
    }

    fn by_device(&self) -> u64 {
        self.rtnl.link("sw2").unwrap().stats.tx_packets
    }

    /// Waits until all frames go straight, or none does.
    fn until_straight(&mut self, is_straight: bool, place: &str) {
        let begun = Instant::now();
        while (self.pass(FAR) == 0) != is_straight {
            assert!(begun.elapsed() < DEADLINE, "{place}: not noticed");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn frames_for_the_far_end_go_straight_to_it() {
    in_namespace(|rtnl| {
        let far = Namespace::new().unwrap();
        let mut rig = Rig::new(rtnl, &far, "");
        rig.until_straight(true, "at first");
        assert_eq!(rig.pass(OTHER), 20, "a host that it is not for would take it for its own");
        assert_eq!(rig.pass(BROADCAST), 20);
        rig.switch.stop();
    });
    in_namespace(|rtnl| {
        let far = Namespace::new().unwrap();
        let mut rig = Rig::new(rtnl, &far, "?peer=false");
        assert_eq!(rig.pass(FAR), 20);
        rig.switch.stop();
    });
}

#[test]
#[ignore = "needs root"]
fn what_must_see_frames_at_the_device_gets_them_again() {
    in_namespace(|rtnl| {
        let far = Namespace::new().unwrap();
        let far_rtnl = Rtnl::open_in(&far).unwrap();
        let mut rig = Rig::new(rtnl, &far, "");
        rig.until_straight(true, "at first");
        let tbf = Tbf::ethernet(1_000_000_000, 50);
        rtnl.set_tbf("sw2", &tbf).unwrap();
        rig.until_straight(false, "a rate");
        rtnl.reset_qdisc("sw2").unwrap();
        rig.until_straight(true, "no rate");
        far_rtnl.set_mtu("host2", 1_400).unwrap();
        rig.until_straight(false, "a shorter MTU");
        far_rtnl.set_mtu("host2", 1_500).unwrap();
        rig.until_straight(true, "the same MTU");
        far_rtnl.set_mac("host2", OTHER).unwrap();
        rig.until_straight(false, "another address");
        far_rtnl.set_mac("host2", FAR).unwrap();
        rig.until_straight(true, "the same address");
        rig.switch.stop();
    });
}

/// A far end that goes down, comes back, and moves to the switch's own namespace.
#[test]
#[ignore = "needs root"]
fn a_far_end_may_go_down_and_move() {
    in_namespace(|rtnl| {
        let far = Namespace::new().unwrap();
        let far_rtnl = Rtnl::open_in(&far).unwrap();
        let mut rig = Rig::new(rtnl, &far, "");
        let link = |rig: &Rig<'_>, is_up: bool| {
            let text = if is_up { "sw2, up" } else { "sw2, link down" };
            until(text, || rig.switch.ctl(&["ports"]).contains(text).then_some(()));
        };
        for _ in 0..3 {
            rig.until_straight(true, "at first");
            far_rtnl.set_up("host2", false).unwrap();
            link(&rig, false);
            far_rtnl.set_up("host2", true).unwrap();
            link(&rig, true);
            // The socket was reported the link's end.
            rig.two = far.enter(|| Host::open("af_packet:host2")).unwrap();
            rig.until_it_forwards();
        }
        rig.until_straight(true, "up again");
        let here = Namespace::current().unwrap();
        far_rtnl.move_to("host2", &here).unwrap();
        rtnl.set_up("host2", true).unwrap();
        rig.two = Host::open("af_packet:host2");
        rig.until_it_forwards();
        rig.until_straight(false, "in the switch's own namespace");
        rtnl.move_to("host2", &far).unwrap();
        far_rtnl.set_up("host2", true).unwrap();
        rig.two = far.enter(|| Host::open("af_packet:host2")).unwrap();
        rig.until_it_forwards();
        rig.until_straight(true, "in another one again");
        rig.switch.stop();
    });
}

/// Veths that the switch makes for containers: their frames go straight from one to the other, and
/// one whose container ends gets another.
#[test]
#[ignore = "needs root"]
fn veths_that_the_switch_makes_are_in_the_tier() {
    in_namespace(|rtnl| {
        let ports = "\"1=af_packet:sw1?far=vm1\", \"2=af_packet:sw2?far=vm2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "caches = \"frame,key,kernel\"\n");
        forward_first(&switch, &[2]);
        for round in 0..2 {
            let containers = [1, 2].map(|number| {
                let (container, far) = (Namespace::new().unwrap(), format!("vm{number}"));
                let far_rtnl = Rtnl::open_in(&container).unwrap();
                rtnl.move_to(&far, &container).unwrap();
                container.enter(|| netdev::sys::link::quiet_ipv6(&far).unwrap()).unwrap();
                far_rtnl.set_mac(&far, [2, 0, 0, 0, 0, number]).unwrap();
                far_rtnl.set_up(&far, true).unwrap();
                let host = container.enter(|| Host::open(&format!("af_packet:{far}"))).unwrap();
                (container, host)
            });
            let [(_one, mut from), (_two, mut to)] = containers;
            let by_device = || rtnl.link("sw2").unwrap().stats.tx_packets;
            until("frames that go straight", || {
                let before = (kernel_hits(&switch), by_device());
                for number in 0..20 {
                    from.send(&frame_to(FAR, number));
                    to.receive();
                }
                (kernel_hits(&switch) >= before.0 + 20 && by_device() == before.1).then_some(())
            });
            let back = switch.counter("port_reopened") + 2;
            drop((from, to, _one, _two));
            until("other ones", || {
                let there = rtnl.link("vm1").is_ok() && rtnl.link("vm2").is_ok();
                (there && switch.counter("port_reopened") == back).then_some(())
            });
            assert_eq!(back, 2 * (round + 1));
        }
        switch.stop();
        assert!(["sw1", "sw2", "vm1", "vm2"].iter().all(|name| rtnl.link(name).is_err()));
    });
}

/// Machines have the other sides of TAP devices, which are ports of the switch as devices.
#[test]
#[ignore = "needs root"]
fn the_tap_of_a_machine_is_in_the_tier() {
    in_namespace(|_| {
        let [mut one, mut two] = ["tap:vm1", "tap:vm2"].map(Host::open);
        let ports = "\"1=af_packet:vm1\", \"2=af_packet:vm2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "caches = \"frame,key,kernel\"\n");
        let _controller = forward_first(&switch, &[2]);
        until("twenty decisions of the kernel", || {
            let frame = frame_to(FAR, 1);
            one.send(&frame);
            // The kernel sends to its new devices by itself, too.
            while two.receive() != frame {}
            (kernel_hits(&switch) >= 20).then_some(())
        });
        switch.stop();
    });
}
