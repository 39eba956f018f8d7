//! Where a run happens: hosts, a switch and a controller, and the links between them.
//!
//! Two kinds. [`netns`] has kernel hosts in network namespaces joined by veth, with shaped links;
//! it needs root. [`memory`] has no hosts: the lab itself sits at the far end of in-memory ports
//! and sends its own traffic; it needs nothing. Neither leaves anything behind, however it ends.

pub mod memory;
pub mod netns;

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::rate::LinkRate;

/// The port on which the controller listens.
pub const CONTROLLER_PORT: u16 = 6653;

/// The datapath id of every switch under test, sixteen hex digits.
pub const DPID: &str = "0000000000000001";

/// The links' parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Rate of each host's link, both directions.
    pub port_rate: LinkRate,
    /// Rate of the link between switch and controller, both directions.
    pub control_rate: LinkRate,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Ethernet address.
    pub mac: [u8; 6],
}

/// The hosts, one behind each port of the switch.
pub const HOSTS: [HostAddress; 2] = [
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 1), mac: [2, 0, 0, 0, 0, 1] },
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 2), mac: [2, 0, 0, 0, 0, 2] },
];
