//! Hosts and a switch in network namespaces, joined by veth pairs with all offloads on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netdev::sys::event::wait;
use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6, quiet_ipv6};
use netdev::sys::netns::Namespace;
use netdev::{Port, PortCounters, open_text};
use packet::Batch;

pub(crate) const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
pub(crate) const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

/// Longer than any stall of a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, last).into()
}

pub(crate) fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, last).into()
}

pub(crate) fn namespace() -> Namespace {
    Namespace::new().expect("making a network namespace: run this test as root")
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A host with one device that has an address of both families.
pub(crate) struct Host {
    pub(crate) ns: Namespace,
    pub(crate) rtnl: Rtnl,
}

impl Host {
    pub(crate) fn new() -> Self {
        let ns = namespace();
        let rtnl = Rtnl::open_in(&ns).unwrap();
        rtnl.set_up("lo", true).unwrap();
        Self { ns, rtnl }
    }

    pub(crate) fn configure(&self, name: &str, last: u8) {
        self.ns.enter(|| quiet_ipv6(name)).unwrap().unwrap();
        self.rtnl.set_up(name, true).unwrap();
        self.rtnl.add_address(name, v4(last), 24).unwrap();
        self.rtnl.add_address(name, v6(u16::from(last)), 64).unwrap();
    }
}

/// Two hosts joined by `va` - `vb`.
pub(crate) fn pair() -> (Host, Host) {
    let (a, b) = (Host::new(), Host::new());
    let here = VethEnd { mac: Some(MAC_A), mtu: Some(1_600), ..VethEnd::new("va") };
    let there = VethEnd { mac: Some(MAC_B), mtu: Some(1_600), ..VethEnd::new("vb") };
    a.rtnl.add_veth(&VethPair { here, there, there_in: Some(&b.ns) }).unwrap();
    a.configure("va", 1);
    b.configure("vb", 2);
    (a, b)
}

/// Hosts a and b, and between them a namespace with `sa` and `sb` for a switch.
pub(crate) struct Line {
    pub(crate) a: Host,
    pub(crate) b: Host,
    pub(crate) switch: Host,
}

pub(crate) fn line(mtu: u32) -> Line {
    let line = Line { a: Host::new(), b: Host::new(), switch: Host::new() };
    line.switch.ns.enter(|| disable_ipv6("default")).unwrap().unwrap();
    let ends = [("sa", "va", MAC_A, &line.a, 1), ("sb", "vb", MAC_B, &line.b, 2)];
    for (here, there, mac, host, last) in ends {
        let here = VethEnd { mtu: Some(mtu), ..VethEnd::new(here) };
        let there = VethEnd { mac: Some(mac), mtu: Some(mtu), ..VethEnd::new(there) };
        let pair = VethPair { here, there, there_in: Some(&host.ns) };
        line.switch.rtnl.add_veth(&pair).unwrap();
        line.switch.rtnl.set_up(here.name, true).unwrap();
        host.configure(there.name, last);
    }
    line.a.rtnl.add_neighbour("va", v4(2), MAC_B).unwrap();
    line.b.rtnl.add_neighbour("vb", v4(1), MAC_A).unwrap();
    line.a.rtnl.add_neighbour("va", v6(2), MAC_B).unwrap();
    line.b.rtnl.add_neighbour("vb", v6(1), MAC_A).unwrap();
    until("carrier", || {
        ["sa", "sb"].iter().all(|name| line.switch.rtnl.link(name).unwrap().carrier)
    });
    line
}

/// Joins two ports on a thread until dropped or stopped.
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<[PortCounters; 2]>>,
}

impl Forwarder {
    pub(crate) fn start(ns: &Namespace, specs: [&str; 2]) -> Self {
        Self::join(ns.enter(|| specs.map(|spec| open_text(spec).unwrap())).unwrap())
    }

    pub(crate) fn join(ports: [Port; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || forward(ports, &stopped));
        Self { stop, thread: Some(thread) }
    }

    /// Ends the forwarding and returns the ports' counters.
    pub(crate) fn stop(mut self) -> [PortCounters; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward([mut a, mut b]: [Port; 2], stop: &AtomicBool) -> [PortCounters; 2] {
    let mut batch = Batch::default();
    while !stop.load(Ordering::Relaxed) {
        let mut moved = 0;
        let mut pass = |from: &mut Port, to: &mut Port| {
            moved += from.rx(&mut batch, 64).unwrap();
            to.tx(batch.frames()).unwrap();
            batch.clear();
        };
        pass(&mut a, &mut b);
        pass(&mut b, &mut a);
        if moved == 0 {
            let fds: Vec<_> = [&a, &b].iter().filter_map(|port| port.fd()).collect();
            wait(&fds, Some(Duration::from_millis(100))).unwrap();
        }
    }
    [a.counters(), b.counters()]
}
