//! Hosts: their addresses, a namespace for each, and one that reflects what it gets.
//!
//! A namespace has no name: a descriptor of this process holds it, so that it is gone with it
//! whatever ends it, with every device in it. A host here knows nothing of the testbed that it is
//! a part of: the lab's own and those of agents are the same.

mod reflector;

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netdev::sys::link::{Rtnl, disable_ipv6};
use netdev::sys::netns::Namespace;
use openflow::MacAddr;
use serde::{Deserialize, Serialize};

pub(crate) use reflector::reflect;

/// Bytes before the payload of a datagram: Ethernet 14, IPv4 20, UDP 8.
pub(crate) const HEADERS_LEN: usize = 42;

/// The addresses of a host, in a network of 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostAddress {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Ethernet address.
    pub mac: [u8; 6],
}

/// The hosts that most traffic is between, one behind each port of the switch.
pub(crate) const HOSTS: [HostAddress; 2] = [host_address(0), host_address(1)];

/// The address of a host, which is counted from 0.
pub(crate) const fn host_address(host: usize) -> HostAddress {
    let number = if host < 254 { host as u8 + 1 } else { u8::MAX };
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, number), mac: [2, 0, 0, 0, 0, number] }
}

/// The headers of datagrams from the first host to the second, between these UDP ports.
pub(crate) fn headers(from: u16, to: u16) -> String {
    let ([src, dst], [near, far]) = (HOSTS.map(|at| at.ip), HOSTS.map(|at| MacAddr(at.mac)));
    format!("eth(src={near},dst={far})/ipv4(src={src},dst={dst})/udp(src={from},dst={to})")
}

/// The addresses of the others of so many hosts.
pub(crate) fn other_hosts(host: usize, count: usize) -> impl Iterator<Item = HostAddress> {
    (0..count).filter(move |other| *other != host).map(host_address)
}

/// The name of a host's interface.
pub(crate) const HOST_DEVICE: &str = "eth0";

/// A namespace and the way to give orders in it.
#[derive(Debug)]
pub(crate) struct NamespaceContext {
    pub(crate) ns: Namespace,
    pub(crate) rtnl: Rtnl,
}

impl NamespaceContext {
    /// A namespace without IPv6, with its loopback device up and TCP as in every run; needs root.
    pub(crate) fn new() -> io::Result<Self> {
        let what = |error: io::Error| format!("a network namespace: {error}");
        let ns = Namespace::new().map_err(|error| io::Error::new(error.kind(), what(error)))?;
        ns.enter(|| {
            disable_ipv6("all")?;
            disable_ipv6("default")?;
            set_tcp()
        })??;
        let rtnl = Rtnl::open_in(&ns)?;
        rtnl.set_up("lo", true)?;
        Ok(Self { ns, rtnl })
    }

    /// Sets a device up, with an address in a network of 24 bits.
    pub(crate) fn bring_up(&self, device: &str, address: Ipv4Addr) -> io::Result<()> {
        self.rtnl.add_address(device, IpAddr::V4(address), 24)?;
        Ok(self.rtnl.set_up(device, true)?)
    }

    /// Sets a host's device up, with the others as its neighbours.
    pub(crate) fn bring_host_up(
        &self,
        host: HostAddress,
        others: impl IntoIterator<Item = HostAddress>,
    ) -> io::Result<()> {
        self.bring_up(HOST_DEVICE, host.ip)?;
        for HostAddress { ip, mac } in others {
            self.rtnl.add_neighbour(HOST_DEVICE, IpAddr::V4(ip), mac)?;
        }
        Ok(())
    }
}

/// Makes TCP behave alike in every run: the first of these congestion controls that the kernel
/// lets a namespace have, and nothing remembered from the run before. Runs inside the namespace.
fn set_tcp() -> io::Result<()> {
    let set = |key: &str, value: &str| std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value);
    // Where both are refused the system's default stays; the report reads back which it is.
    let _ = ["cubic", "reno"].iter().find(|name| set("tcp_congestion_control", name).is_ok());
    set("tcp_no_metrics_save", "1")
}
