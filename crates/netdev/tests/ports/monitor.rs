//! The link monitor: up, down, carrier, gone, and more changes than the kernel can queue.

use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::{LinkChange, LinkMonitor, LinkNotification, Port, open_text};
use packet::{Batch, PacketBuf};

use crate::testbed::{Host, until};

fn gather(monitor: &mut LinkMonitor, all: &mut Vec<LinkChange>) {
    netdev::sys::event::wait(&[monitor.fd()], Some(std::time::Duration::from_millis(50))).unwrap();
    all.extend(monitor.changes().unwrap());
}

fn add_pair(host: &Host) {
    let (here, there) = (VethEnd::new("x0"), VethEnd::new("x1"));
    host.rtnl.add_veth(&VethPair { here, there, there_in: None }).unwrap();
}

#[test]
#[ignore = "needs root"]
fn every_state_of_a_device_is_reported() {
    let host = Host::new();
    let mut monitor = LinkMonitor::open_in(&host.ns).unwrap();
    assert!(monitor.known().any(|link| link.name == "lo"));
    assert_eq!(monitor.changes().unwrap(), []);
    let mut all = Vec::new();
    add_pair(&host);
    host.rtnl.set_up("x0", true).unwrap();
    host.rtnl.set_up("x1", true).unwrap();
    until("x0 up", || {
        gather(&mut monitor, &mut all);
        all.iter().any(|c| c.name == "x0" && c.link_up())
    });
    all.clear();
    host.rtnl.set_up("x1", false).unwrap();
    until("x0 without carrier", || {
        gather(&mut monitor, &mut all);
        all.iter().any(|c| c.name == "x0" && c.up && !c.carrier)
    });
    all.clear();
    host.rtnl.delete("x0").unwrap();
    until("both gone", || {
        gather(&mut monitor, &mut all);
        all.iter().filter(|c| !c.exists && !c.link_up()).count() == 2
    });
    assert!(monitor.known().all(|link| link.name == "lo"));
}

#[test]
#[ignore = "needs root"]
fn a_port_whose_link_was_just_set_up_is_waited_for() {
    let host = Host::new();
    add_pair(&host);
    let check = || {
        let rtnl = Rtnl::open().unwrap();
        let set = |is_up| ["x0", "x1"].map(|name| rtnl.set_up(name, is_up).unwrap());
        let mut port = open_text("af_packet:x0").unwrap();
        // The kernel lets some devices a second send at once, and has the next ones wait.
        for _ in 0..4 {
            set(false);
            port.wait_for_link();
            assert!(!port.info().link_up);
            set(true);
            port.wait_for_link();
            assert!(port.info().link_up);
        }
    };
    host.ns.enter(check).unwrap();
}

#[test]
#[ignore = "needs root"]
fn devices_with_addresses_are_known_from_the_first() {
    let host = Host::new();
    add_pair(&host);
    host.rtnl.add_address("x0", "192.0.2.1".parse().unwrap(), 24).unwrap();
    let index = |name: &str| host.rtnl.link(name).unwrap().index;
    let mut monitor = LinkMonitor::open_in(&host.ns).unwrap();
    assert_eq!(monitor.take_addressed(), [index("lo"), index("x0")].into());
    assert_eq!(monitor.take_addressed(), [].into());
    host.rtnl.add_address("x1", "2001:db8::1".parse().unwrap(), 64).unwrap();
    until("the address", || {
        monitor.changes().unwrap();
        monitor.take_addressed() == [index("x1")].into()
    });
}

#[test]
#[ignore = "needs root"]
fn an_overflow_loses_no_state() {
    let host = Host::new();
    let mut monitor = LinkMonitor::open_in(&host.ns).unwrap();
    add_pair(&host);
    host.rtnl.set_up("x1", true).unwrap();
    // Far more messages than the socket's queue holds.
    for _ in 0..600 {
        host.rtnl.set_up("x0", false).unwrap();
        host.rtnl.set_up("x0", true).unwrap();
    }
    let mut all = Vec::new();
    until("the last state", || {
        gather(&mut monitor, &mut all);
        monitor.known().any(|c| c.name == "x0" && c.link_up())
    });
}

/// Two fresh namespaces joined by the first veth of each: both ends have the same interface index,
/// and the kernel then reports `IFF_RUNNING` up to a second after the carrier.
fn twins() -> [Host; 2] {
    let hosts = [Host::new(), Host::new()];
    for host in &hosts {
        host.ns.enter(|| disable_ipv6("default")).unwrap().unwrap();
    }
    let (here, there) = (VethEnd::new("x0"), VethEnd::new("x0"));
    let pair = VethPair { here, there, there_in: Some(&hosts[1].ns) };
    hosts[0].rtnl.add_veth(&pair).unwrap();
    let index = |host: &Host| host.rtnl.link("x0").unwrap().index;
    assert_eq!(index(&hosts[0]), index(&hosts[1]));
    hosts
}

/// A port whose link state is read only when it is opened and when its monitor reports a change, as
/// a worker does.
struct Watched {
    port: Port,
    monitor: LinkMonitor,
    link_up: bool,
}

impl Watched {
    fn open(host: &Host) -> Self {
        let monitor = LinkMonitor::open_in(&host.ns).unwrap();
        let mut port = host.ns.enter(|| open_text("af_packet:x0").unwrap()).unwrap();
        let link_up = port.info().link_up;
        Self { port, monitor, link_up }
    }

    fn poll(&mut self) -> bool {
        for change in self.monitor.changes().unwrap() {
            if self.port.link_notification() == LinkNotification::Netlink(change.index) {
                self.link_up = self.port.info().link_up;
            }
        }
        self.link_up
    }
}

fn send_through(ports: &mut [Watched; 2], number: u8) {
    let frame = [PacketBuf::from_slice(&[number; 60])];
    for (from, to) in [(0, 1), (1, 0)] {
        assert_eq!(ports[from].port.tx(&frame).unwrap(), 1);
        let mut batch = Batch::default();
        until("the frame", || ports[to].port.rx(&mut batch, 1).unwrap() == 1);
        assert_eq!(batch.frames(), frame);
    }
}

#[test]
#[ignore = "needs root"]
fn a_port_opened_as_its_link_comes_up_learns_that_it_is_up() {
    let hosts: Vec<[Host; 2]> = (0..10).map(|_| twins()).collect();
    let open = |pair: &[Host; 2]| {
        pair[1].rtnl.set_up("x0", true).unwrap();
        pair[0].rtnl.set_up("x0", true).unwrap();
        [Watched::open(&pair[0]), Watched::open(&pair[1])]
    };
    let mut pairs: Vec<[Watched; 2]> = hosts.iter().map(open).collect();
    for round in 0..2 {
        for (ports, number) in pairs.iter_mut().zip(round..) {
            until("both links", || ports.iter_mut().all(Watched::poll));
            send_through(ports, number);
        }
        // Down and up again, faster than the kernel reports it.
        for (ports, pair) in pairs.iter_mut().zip(&hosts) {
            pair[0].rtnl.set_up("x0", false).unwrap();
            until("the link down", || !ports[0].poll());
            pair[0].rtnl.set_up("x0", true).unwrap();
        }
    }
    until("all links", || pairs.iter_mut().flatten().all(Watched::poll));
}
