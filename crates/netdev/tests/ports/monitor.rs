//! The link monitor: up, down, carrier, gone, and more changes than the kernel can queue.

use netdev::sys::link::{VethEnd, VethPair};
use netdev::{LinkChange, LinkMonitor};

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
fn every_state_of_a_device_is_told() {
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
