//! Hosts: their addresses, a namespace for each, and one that reflects what it gets.
//!
//! A namespace has no name: a descriptor of this process holds it, so that it is gone with it
//! whatever ends it, with every device in it. A host here knows nothing of the testbed that it is
//! a part of: the lab's own and those of agents are the same.

mod reflector;

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{LinkError, Rtnl, disable_ipv6};
use netdev::sys::netns::Namespace;
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

/// The hosts, one behind each port of the switch.
pub(crate) const HOSTS: [HostAddress; 2] = [
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 1), mac: [2, 0, 0, 0, 0, 1] },
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 2), mac: [2, 0, 0, 0, 0, 2] },
];

/// The address of a host, which is counted from 0: the first two are [`HOSTS`].
#[must_use]
pub(crate) fn host_address(host: usize) -> HostAddress {
    let number = u8::try_from(host + 1).unwrap_or(u8::MAX);
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, number), mac: [2, 0, 0, 0, 0, number] }
}

/// The name of a host's interface.
pub(crate) const HOST_DEVICE: &str = "eth0";

/// A namespace and the way to give orders in it.
#[derive(Debug)]
pub(crate) struct NamespaceContext {
    pub(crate) ns: Namespace,
    pub(crate) rtnl: Rtnl,
}

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A namespace could not be made or set up.
    #[error("cannot make a network namespace: {0}")]
    Namespace(#[from] io::Error),
    /// The kernel refused a device, an address or a rate.
    #[error("cannot make the testbed: {0}")]
    Link(#[from] LinkError),
}

impl NamespaceContext {
    /// A namespace without IPv6, with its loopback device up and TCP as in every run.
    ///
    /// # Errors
    /// Without root.
    pub(crate) fn new() -> Result<Self, HostError> {
        let ns = Namespace::new()?;
        ns.enter(|| {
            disable_ipv6("all")?;
            disable_ipv6("default")?;
            set_tcp()
        })??;
        let rtnl = Rtnl::open_in(&ns)?;
        rtnl.set_up("lo", true)?;
        Ok(Self { ns, rtnl })
    }

    /// Switches the offloads of a device off: a frame leaves it as it would cross a cable.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn offloads_off(&self, device: &str) -> Result<(), HostError> {
        Ethtool::open_in(&self.ns)?.switch_off_offloads(device)?;
        Ok(())
    }

    /// Sets a device up, with an address in a network of 24 bits.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn bring_up(
        &self,
        device: &str,
        address: Option<Ipv4Addr>,
    ) -> Result<(), HostError> {
        if let Some(address) = address {
            self.rtnl.add_address(device, IpAddr::V4(address), 24)?;
        }
        Ok(self.rtnl.set_up(device, true)?)
    }
}

/// Makes TCP behave alike in every run: the first of these congestion controls that the kernel
/// lets a namespace have, and nothing remembered from the run before. Runs inside the namespace.
///
/// # Errors
/// When `/proc/sys` is not writable.
fn set_tcp() -> io::Result<()> {
    let ipv4 = "/proc/sys/net/ipv4";
    let refused = |algorithm: &&str| {
        std::fs::write(format!("{ipv4}/tcp_congestion_control"), algorithm).is_err()
    };
    // Where all are refused the system's default stays; the report reads back which it is.
    let _ = TCP_ALGORITHMS.iter().find(|algorithm| !refused(algorithm));
    std::fs::write(format!("{ipv4}/tcp_no_metrics_save"), "1")
}

const TCP_ALGORITHMS: [&str; 2] = ["cubic", "reno"];
