//! Hosts around one switch: each a network namespace, joined by veth to that of the switch.
//!
//! Unlike the testbed of `weir lab` no link is shaped, and devices keep the offloads that the
//! kernel gives them: super-frames are what is measured. The namespaces have no names, so that they
//! are gone with this value, or with the process, and every device with them. It must never touch a
//! device of the namespace that the bench was started in.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};
use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{LinkStats, VethEnd, VethPair};
use netdev::sys::netns::Namespace;

use crate::testbed::HostAddress;
use crate::testbed::netns::{HOST_DEVICE, NamespaceContext, Offloads};

/// The hosts and the namespace of the switch.
#[derive(Debug)]
pub(super) struct PortsTestbed {
    switch: NamespaceContext,
    hosts: Vec<NamespaceContext>,
}

/// The addresses of a host, counted from 0.
pub(super) fn address(host: usize) -> HostAddress {
    let number = u8::try_from(host + 1).unwrap_or(u8::MAX);
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, number), mac: [2, 0, 0, 0, 0, number] }
}

/// An Ethernet address that no host has.
pub(super) const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0xff];

/// The name of the switch's device towards a host.
fn port_name(host: usize) -> String {
    format!("sw{}", host + 1)
}

impl PortsTestbed {
    /// So many hosts, each of which knows the addresses of all others.
    ///
    /// # Errors
    /// Without root, or where the kernel has no veth.
    pub(super) fn new(count: usize, offloads: Offloads) -> Result<Self> {
        let namespace = || {
            NamespaceContext::new()
                .context("kernel ports are measured in network namespaces, which need root")
        };
        let hosts = (0..count).map(|_| namespace()).collect::<Result<Vec<_>>>()?;
        let bed = Self { switch: namespace()?, hosts };
        for host in 0..count {
            bed.join(host, offloads)?;
        }
        Ok(bed)
    }

    fn join(&self, host: usize, offloads: Offloads) -> Result<()> {
        let (at_host, own, port) = (&self.hosts[host], address(host), port_name(host));
        let there = VethEnd { mac: Some(own.mac), ..VethEnd::new(HOST_DEVICE) };
        let pair = VethPair { here: VethEnd::new(&port), there, there_in: Some(&at_host.ns) };
        self.switch.rtnl.add_veth(&pair)?;
        if offloads == Offloads::Off {
            Ethtool::open_in(&self.switch.ns)?.switch_off_offloads(&port)?;
            Ethtool::open_in(&at_host.ns)?.switch_off_offloads(HOST_DEVICE)?;
        }
        self.switch.rtnl.set_up(&port, true)?;
        at_host.rtnl.add_address(HOST_DEVICE, IpAddr::V4(own.ip), 24)?;
        at_host.rtnl.set_up(HOST_DEVICE, true)?;
        for other in (0..self.hosts.len()).filter(|other| *other != host) {
            let other = address(other);
            at_host.rtnl.add_neighbour(HOST_DEVICE, IpAddr::V4(other.ip), other.mac)?;
        }
        Ok(())
    }

    /// The switch's devices: that of host 0 is port 1.
    pub(super) fn ports(&self) -> Vec<String> {
        (0..self.hosts.len()).map(port_name).collect()
    }

    /// The namespace of the switch.
    pub(super) fn switch(&self) -> &Namespace {
        &self.switch.ns
    }

    /// The namespace of a host.
    pub(super) fn host(&self, host: usize) -> &Namespace {
        &self.hosts[host].ns
    }

    /// What the device of a host has counted.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn host_stats(&self, host: usize) -> Result<LinkStats> {
        Ok(self.hosts[host].rtnl.link(HOST_DEVICE)?.stats)
    }

    /// Joins the ports by a bridge of the kernel.
    ///
    /// # Errors
    /// The kernel has no bridges.
    pub(super) fn add_bridge(&self) -> Result<()> {
        const BRIDGE: &str = "br0";
        self.switch.rtnl.add_bridge(BRIDGE)?;
        for port in self.ports() {
            self.switch.rtnl.add_to_bridge(&port, BRIDGE)?;
        }
        Ok(self.switch.rtnl.set_up(BRIDGE, true)?)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::{PortsTestbed, address};
    use crate::testbed::netns::Offloads;

    #[test]
    #[ignore = "needs root"]
    fn hosts_reach_each_other_through_a_bridge_and_are_counted() {
        for offloads in [Offloads::Kept, Offloads::Off] {
            let bed = PortsTestbed::new(3, offloads).expect("needs root");
            bed.add_bridge().unwrap();
            assert_eq!(bed.ports(), ["sw1", "sw2", "sw3"]);
            let open = |host: usize| {
                bed.host(host).enter(|| UdpSocket::bind((address(host).ip, 5_000)).unwrap())
            };
            let (near, far) = (open(0).unwrap(), open(2).unwrap());
            let mut bytes = [0; 16];
            near.send_to(b"through", (address(2).ip, 5_000)).unwrap();
            far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            assert_eq!(far.recv_from(&mut bytes).unwrap().0, 7, "{offloads:?}");
            assert!(bed.host_stats(2).unwrap().rx_packets > 0);
        }
    }
}
