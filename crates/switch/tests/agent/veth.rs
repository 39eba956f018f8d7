//! Real devices in a network namespace of the test's own, which goes with the test: a port that
//! disappears while the switch runs, and comes back; a link that goes down; names that are wrong.

use netdev::sys::link::{Rtnl, VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use openflow::port::{PortReason, PortState};
use openflow::{Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, frame, from_to, until};

/// Runs a test in a namespace of its own.
pub(crate) fn in_namespace(test: impl FnOnce(&Rtnl) + Send) {
    let namespace = Namespace::new().expect("needs root: run by `cargo xtask test`");
    namespace.enter(|| test(&Rtnl::open().unwrap())).unwrap();
}

/// A veth whose other end, with this address, is in a namespace of its own.
pub(crate) fn add_veth_into(
    rtnl: &Rtnl,
    (one, other): (&str, &str),
    mac: [u8; 6],
    namespace: &Namespace,
) {
    let there = VethEnd { mac: Some(mac), ..VethEnd::new(other) };
    let pair = VethPair { here: VethEnd::new(one), there, there_in: Some(namespace) };
    rtnl.add_veth(&pair).unwrap();
    netdev::sys::link::quiet_ipv6(one).unwrap();
    rtnl.set_up(one, true).unwrap();
    namespace.enter(|| netdev::sys::link::quiet_ipv6(other).unwrap()).unwrap();
    Rtnl::open_in(namespace).unwrap().set_up(other, true).unwrap();
}

pub(crate) fn add_veth(rtnl: &Rtnl, one: &str, other: &str) {
    let pair = VethPair { here: VethEnd::new(one), there: VethEnd::new(other), there_in: None };
    rtnl.add_veth(&pair).unwrap();
    for name in [one, other] {
        netdev::sys::link::quiet_ipv6(name).unwrap();
        rtnl.set_up(name, true).unwrap();
    }
}

/// The state of port 1 in the next port-status message.
fn reported_state(controller: &mut Controller) -> PortState {
    loop {
        match controller.next() {
            (_, Message::PortStatus(status)) if status.desc.port_no == PortNo(1) => {
                assert_eq!(status.reason, PortReason::Modify);
                return status.desc.state;
            }
            (_, Message::PortStatus(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
#[ignore = "needs root"]
fn a_port_that_disappears_stays_configured_and_comes_back() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(2, 1));
        controller.barrier();
        rtnl.delete("sw1").unwrap();
        assert!(reported_state(&mut controller).contains(PortState::LINK_DOWN));
        let descs = controller.port_descs();
        assert_eq!(descs.len(), 2);
        assert!(!descs[1].state.contains(PortState::LINK_DOWN));
        add_veth(rtnl, "sw1", "host1");
        while reported_state(&mut controller).contains(PortState::LINK_DOWN) {}
        let mut far = Host::open("af_packet:host1");
        let mut near = Host::open("af_packet:host2");
        near.send(&frame(7));
        assert_eq!(far.receive(), frame(7));
        assert_eq!(switch.counter("port_gone"), 1);
        assert_eq!(switch.counter("port_reopened"), 1);
        switch.stop();
    });
}

/// The kernel reports such links last: both ends of the veth have the same interface index, as the
/// first veths of two namespaces have.
#[test]
#[ignore = "needs root"]
fn a_port_whose_link_is_just_coming_up_forwards_soon() {
    in_namespace(|rtnl| {
        let far_side = Namespace::new().unwrap();
        let (here, there) = (VethEnd::new("sw1"), VethEnd::new("host1"));
        rtnl.add_veth(&VethPair { here, there, there_in: Some(&far_side) }).unwrap();
        let far_rtnl = Rtnl::open_in(&far_side).unwrap();
        assert_eq!(rtnl.link("sw1").unwrap().index, far_rtnl.link("host1").unwrap().index);
        far_side.enter(|| netdev::sys::link::disable_ipv6("host1").unwrap()).unwrap();
        far_rtnl.set_up("host1", true).unwrap();
        netdev::sys::link::disable_ipv6("sw1").unwrap();
        rtnl.set_up("sw1", true).unwrap();
        let mut near = Host::open("memory:just-coming-up?end=b");
        let ports = "\"1=af_packet:sw1\", \"2=memory:just-coming-up\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(2, 1));
        controller.send(&Message::BarrierRequest);
        // The link may come up before the reply does.
        until("the barrier", || (controller.next().1 == Message::BarrierReply).then_some(()));
        let mut far = far_side.enter(|| Host::open("af_packet:host1")).unwrap();
        for number in 0..3 {
            until("a frame through the link", || {
                near.send(&frame(number));
                (far.received() > 0).then_some(())
            });
            rtnl.set_up("sw1", false).unwrap();
            rtnl.set_up("sw1", true).unwrap();
        }
        switch.stop();
    });
}

#[test]
#[ignore = "needs root"]
fn a_link_that_goes_down_is_reported() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let switch = Switch::with_ports("\"1=af_packet:sw1\"", Vec::new(), "");
        let mut controller = switch.controller(Version::V1_0);
        controller.barrier();
        rtnl.set_up("host1", false).unwrap();
        assert!(reported_state(&mut controller).contains(PortState::LINK_DOWN));
        rtnl.set_up("host1", true).unwrap();
        while reported_state(&mut controller).contains(PortState::LINK_DOWN) {}
    });
}

#[test]
#[ignore = "needs root"]
fn an_unknown_device_is_refused_with_those_that_exist() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        let config = switch::parse_config("control = \"none\"\nport = [\"af_packet:sw2\"]");
        let config = config.unwrap().resolve().unwrap();
        let error = switch::run_until(config, || Ok(std::future::pending::<()>())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("port 1") && text.contains("sw2"), "{text}");
        assert!(text.contains("sw1") && text.contains("host1"), "{text}");
    });
}

#[test]
#[ignore = "needs root"]
fn a_tap_device_goes_with_the_switch() {
    in_namespace(|rtnl| {
        let switch = Switch::with_ports("\"1=tap:wtap0\"", Vec::new(), "");
        assert!(rtnl.link("wtap0").is_ok());
        switch.stop();
        assert!(rtnl.link("wtap0").is_err());
    });
}

/// `weir ctl --json ports`: the port of this number.
pub(crate) fn shown(switch: &Switch, number: u64) -> serde_json::Value {
    let ports = switch.records(&["ports"]);
    ports.into_iter().find(|port| port["port_no"] == number).unwrap()
}

#[test]
#[ignore = "needs root"]
fn real_devices_come_and_go_by_name() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        // No kernel port at the start: the workers begin to watch devices with the first.
        let switch = Switch::with_ports("", Vec::new(), "workers = 2");
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(2, 1));
        controller.barrier();
        let mut far = Host::open("af_packet:host1");
        let mut near = Host::open("af_packet:host2");
        for round in 0..3 {
            for device in ["af_packet:sw1", "af_packet:sw2"] {
                switch.ctl(&["add-port", "br0", device]);
                let Message::PortStatus(status) = controller.next().1 else { panic!("no status") };
                assert_eq!(status.reason, PortReason::Add);
            }
            near.send(&frame(round));
            assert_eq!(far.receive(), frame(round));
            rtnl.set_mtu("sw1", 1400 - u32::from(round)).unwrap();
            until("the MTU is seen", || {
                (shown(&switch, 1)["mtu"] == 1400 - u32::from(round)).then_some(())
            });
            for device in ["sw1", "sw2"] {
                switch.ctl(&["del-port", "br0", device]);
                while !matches!(controller.next().1,
                    Message::PortStatus(status) if status.reason == PortReason::Delete)
                {
                }
            }
        }
        let (_, err) = switch.ctl_ends(1, &["add-port", "br0", "af_packet:sw9"]);
        assert!(err.contains("sw9") && err.contains("sw1"), "{err}");
        switch.stop();
    });
}

#[test]
#[ignore = "needs root"]
fn set_down_a_tap_loses_its_link_and_another_s_device_does_not() {
    use openflow::port::{PortConfig, PortMod};

    in_namespace(|rtnl| {
        add_veth(rtnl, "sw2", "host2");
        let ports = "\"1=tap:wtap1\", \"2=af_packet:sw2\"";
        let switch = Switch::with_ports(ports, Vec::new(), "");
        let mut controller = switch.controller(Version::V1_3);
        let descs = controller.port_descs();
        let set = |down: bool, port: usize| {
            Message::PortMod(PortMod {
                port_no: descs[port].port_no,
                hw_addr: descs[port].hw_addr,
                config: if down { PortConfig::PORT_DOWN } else { PortConfig::empty() },
                mask: PortConfig::PORT_DOWN,
                advertise: openflow::port::PortFeatures::empty(),
            })
        };
        let is_up = |name: &str| rtnl.link(name).unwrap().up;
        for down in [true, false, true] {
            controller.send(&set(down, 0));
            until("the TAP follows", || (is_up("wtap1") != down).then_some(()));
            until("and its port", || (shown(&switch, 1)["link_up"] == !down).then_some(()));
        }
        controller.send(&set(true, 1));
        until("set down", || (shown(&switch, 2)["port_down"] == true).then_some(()));
        assert!(is_up("sw2"));
        let out = switch.ctl(&["ports"]);
        assert!(out.contains("not the switch's own, and its link stays as it is"), "{out}");
        assert!(out.contains("set down with its device"), "{out}");
        switch.stop();
    });
}
