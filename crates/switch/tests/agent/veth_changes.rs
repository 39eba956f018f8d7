//! Real devices that change under a running switch, in namespaces of the test's own: another name,
//! another speed, a namespace that goes, more changes than the kernel can notify of. The port
//! stays, its counters go on, controllers get a message, and traffic is back by itself.

use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{Rtnl, VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortDesc, PortReason, PortStats};
use openflow::{Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, frame, from_to, until};
use crate::veth::{add_veth, in_namespace, shown};

/// A controller that has had the ports 1 and 2 forward to each other.
fn joined(switch: &Switch) -> Controller {
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.send(&from_to(2, 1));
    controller.barrier();
    controller
}

/// Waits for a port-status of port 1 in which this holds.
fn await_status(controller: &mut Controller, what: &str, is_so: impl Fn(&PortDesc) -> bool) {
    until(what, || match controller.next().1 {
        Message::PortStatus(status) if status.desc.port_no == PortNo(1) => {
            assert_eq!(status.reason, PortReason::Modify);
            is_so(&status.desc).then_some(())
        }
        Message::PortStatus(_) => None,
        other => panic!("{other:?}"),
    });
}

fn stats(controller: &mut Controller) -> PortStats {
    // Statuses of ports may come in between.
    let body = MultipartRequestBody::PortStats(PortNo(1));
    let request = openflow::message::MultipartRequest { more: false, body };
    controller.send(&Message::MultipartRequest(request));
    loop {
        match controller.next().1 {
            Message::PortStatus(_) => {}
            Message::MultipartReply(reply) => match reply.body {
                MultipartReplyBody::PortStats(mut all) => return all.remove(0),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

/// Sends a frame each way, each time anew until it comes, since the way may not be there yet.
fn passes(one: &mut Host, two: &mut Host, number: u8) {
    until("a frame each way", || {
        one.send(&frame(number));
        two.send(&frame(number));
        std::thread::sleep(std::time::Duration::from_millis(20));
        (one.received() > 0 && two.received() > 0).then_some(())
    });
}

#[test]
#[ignore = "needs root"]
fn a_device_that_is_renamed_is_the_same_port() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "workers = 2");
        let mut controller = joined(&switch);
        let (mut one, mut two) = (Host::open("af_packet:host1"), Host::open("af_packet:host2"));
        passes(&mut one, &mut two, 1);
        let before = stats(&mut controller);
        rtnl.set_up("sw1", false).unwrap();
        rtnl.rename("sw1", "other1").unwrap();
        rtnl.set_up("other1", true).unwrap();
        await_status(&mut controller, "the name", |desc| desc.name == "other1");
        passes(&mut one, &mut two, 2);
        let after = stats(&mut controller);
        assert!(after.rx_packets > before.rx_packets && after.tx_packets > before.tx_packets);
        assert_eq!(switch.counter("port_gone"), 0, "it is the same device");
        // By its new name too it goes and comes.
        switch.ctl(&["set-port", "br0", "other1", "--rate", "1G"]);
        // When it is gone, one of the name that the port was given is taken.
        rtnl.delete("other1").unwrap();
        await_status(&mut controller, "gone", |desc| !is_up(desc));
        add_veth(rtnl, "sw1", "host1");
        await_status(&mut controller, "back", |desc| is_up(desc) && desc.name == "sw1");
        passes(&mut Host::open("af_packet:host1"), &mut two, 3);
        let last = stats(&mut controller);
        assert!(last.rx_packets > after.rx_packets && last.tx_packets > after.tx_packets);
        switch.stop();
    });
}

fn is_up(desc: &PortDesc) -> bool {
    !desc.state.contains(openflow::port::PortState::LINK_DOWN)
}

/// The link stays up meanwhile, so that route netlink has nothing to say.
#[test]
#[ignore = "needs root"]
fn a_speed_that_changes_with_the_link_up_is_reported() {
    in_namespace(|_| {
        let switch = Switch::with_ports("\"1=tap:speedy0\"", Vec::new(), "");
        let mut controller = switch.controller(Version::V1_3);
        controller.barrier();
        let ethtool = Ethtool::open().unwrap();
        for mbps in [1_000, 100, 25_000] {
            ethtool.set_speed("speedy0", mbps).unwrap();
            await_status(&mut controller, "the speed", |desc| desc.curr_speed_kbps == mbps * 1_000);
            assert_eq!(shown(&switch, 1)["speed_bps"], u64::from(mbps) * 1_000_000);
        }
        assert_eq!(switch.counter("port_gone"), 0);
        switch.stop();
    });
}

/// A TAP device is the port's own as long as the switch has it, wherever it is: so it goes to a
/// container or a machine's namespace.
#[test]
#[ignore = "needs root"]
fn a_tap_device_goes_on_in_another_namespace() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw2", "host2");
        let ports = "\"1=tap:moving0?vnet_hdr=true\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = joined(&switch);
        let mut two = Host::open("af_packet:host2");
        passes(&mut Host::open("af_packet:moving0"), &mut two, 1);
        let before = stats(&mut controller);
        let elsewhere = Namespace::new().unwrap();
        rtnl.move_to("moving0", &elsewhere).unwrap();
        // The kernel takes the link of a device that moves down.
        await_status(&mut controller, "the move", |desc| !is_up(desc));
        let there = Rtnl::open_in(&elsewhere).unwrap();
        there.rename("moving0", "eth0").unwrap();
        there.set_up("eth0", true).unwrap();
        await_status(&mut controller, "the link", |desc| is_up(desc) && desc.name == "eth0");
        let mut one = elsewhere.enter(|| Host::open("af_packet:eth0")).unwrap();
        passes(&mut one, &mut two, 2);
        let after = stats(&mut controller);
        assert!(after.rx_packets > before.rx_packets && after.tx_packets > before.tx_packets);
        there.set_mtu("eth0", 1_400).unwrap();
        until("the MTU", || (shown(&switch, 1)["mtu"] == 1_400).then_some(()));
        for (word, up) in [("down", false), ("up", true)] {
            switch.ctl(&["mod-port", "1", word]);
            until("the link as it was asked for", || {
                (there.link("eth0").unwrap().up == up).then_some(())
            });
        }
        assert_eq!(switch.counter("port_gone"), 0, "it is the same device");
        // It goes with the namespace, and the switch makes another one where it is itself.
        drop((one, there, elsewhere));
        await_status(&mut controller, "another one", |desc| is_up(desc) && desc.name == "moving0");
        assert_eq!(switch.counter("port_gone"), 1);
        passes(&mut Host::open("af_packet:moving0"), &mut two, 3);
        switch.stop();
    });
}

/// A veth to a namespace, and the host there.
fn far_host(rtnl: &Rtnl) -> (Namespace, Host) {
    let namespace = Namespace::new().unwrap();
    let (here, there) = (VethEnd::new("sw1"), VethEnd::new("host1"));
    rtnl.add_veth(&VethPair { here, there, there_in: Some(&namespace) }).unwrap();
    rtnl.set_up("sw1", true).unwrap();
    let host = namespace.enter(|| {
        Rtnl::open().unwrap().set_up("host1", true).unwrap();
        Host::open("af_packet:host1")
    });
    (namespace, host.unwrap())
}

#[test]
#[ignore = "needs root"]
fn a_device_goes_with_a_namespace_and_comes_with_another() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw2", "host2");
        let (namespace, mut one) = far_host(rtnl);
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = joined(&switch);
        let mut two = Host::open("af_packet:host2");
        passes(&mut one, &mut two, 1);
        let before = stats(&mut controller);
        drop((one, namespace));
        await_status(&mut controller, "gone", |desc| !is_up(desc));
        until("no device", || (shown(&switch, 1)["exists"] == false).then_some(()));
        let (_namespace, mut one) = far_host(rtnl);
        await_status(&mut controller, "back", is_up);
        passes(&mut one, &mut two, 2);
        let after = stats(&mut controller);
        assert!(after.rx_packets > before.rx_packets && after.tx_packets > before.tx_packets);
        // The port's own device goes to another namespace, and is no port's there.
        let elsewhere = Namespace::new().unwrap();
        rtnl.move_to("sw1", &elsewhere).unwrap();
        await_status(&mut controller, "gone", |desc| !is_up(desc));
        Rtnl::open_in(&elsewhere).unwrap().move_to("sw1", &Namespace::current().unwrap()).unwrap();
        rtnl.set_up("sw1", true).unwrap();
        await_status(&mut controller, "back", is_up);
        passes(&mut one, &mut two, 3);
        switch.stop();
    });
}

/// The worker does not read for a while, so that the kernel has to drop notifications: it lists
/// the devices then, and misses nothing.
#[test]
#[ignore = "needs root"]
fn more_changes_than_the_kernel_can_notify_of_lose_no_state() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        add_veth(rtnl, "noise1", "noise2");
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = joined(&switch);
        let (mut one, mut two) = (Host::open("af_packet:host1"), Host::open("af_packet:host2"));
        let noise = |rounds: u32| {
            for _ in 0..rounds {
                rtnl.set_up("noise1", false).unwrap();
                rtnl.set_up("noise1", true).unwrap();
            }
        };
        for round in 0..3 {
            noise(400);
            rtnl.set_mtu("sw1", 1_300 + round).unwrap();
            rtnl.set_up("host2", false).unwrap();
            noise(400);
            until("the MTU", || (shown(&switch, 1)["mtu"] == 1_300 + round).then_some(()));
            until("no link", || (shown(&switch, 2)["link_up"] == false).then_some(()));
            rtnl.set_up("host2", true).unwrap();
            until("a link", || (shown(&switch, 2)["link_up"] == true).then_some(()));
            passes(&mut one, &mut two, round as u8);
        }
        assert!(stats(&mut controller).rx_packets >= 3);
        switch.stop();
    });
}

/// A veth that is made again has another address.
#[test]
#[ignore = "needs root"]
fn frames_on_a_wire_carry_the_address_that_the_port_has_now() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::wired_ports(ports, "forward = \"mac\"");
        let mut near = Host::open("af_packet:host1");
        let mut come_as = |mac: [u8; 6]| {
            let mut far = Host::open("af_packet:host2");
            until("a frame with the address", || {
                near.send(&frame(1));
                let got = far.receive();
                assert_eq!(got[..6], [2, 0, 0, 0, 0, 2]);
                (got[6..12] == mac).then_some(())
            });
        };
        come_as(rtnl.link("sw2").unwrap().mac);
        rtnl.delete("sw2").unwrap();
        add_veth(rtnl, "sw2", "host2");
        until("the port is back", || (switch.counter("port_reopened") == 1).then_some(()));
        until("and its link", || (shown(&switch, 2)["link_up"] == true).then_some(()));
        come_as(rtnl.link("sw2").unwrap().mac);
        switch.stop();
    });
}
