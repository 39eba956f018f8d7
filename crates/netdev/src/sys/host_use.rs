//! What the host itself does with a device: addresses, and devices that receive by way of it.
//!
//! Whoever takes a device's frames from the host asks first. IPv6 addresses that the kernel gives
//! to every device say nothing.

use std::fmt;
use std::net::IpAddr;

use super::link::{IFLA_LINK, IFLA_MASTER, LinkError, Rtnl, info_kind, refused};
use super::netlink::{NetlinkMessage, NetlinkRequest, read_text, read_u32};

const IFLA_IFNAME: u16 = 3;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFADDRMSG_LEN: usize = 8;
const IFINFOMSG_LEN: usize = 16;

/// Kinds of devices that receive by way of another, which they name as their link.
const UPPER_KINDS: [&str; 6] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"];

/// What a device is used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostUse {
    /// The host can be reached by this address there.
    Address(IpAddr),
    /// It is a port of another device: a bridge, a bond, a VRF.
    PortOf(String),
    /// A device of this name receives by way of it.
    Under(String),
}

impl fmt::Display for HostUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "the host has the address {address} on it"),
            Self::PortOf(name) => write!(f, "it is a port of {name}"),
            Self::Under(name) => write!(f, "{name} receives by way of it"),
        }
    }
}

impl Rtnl {
    /// What the host uses the device of this number for; one thing of several.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn host_use(&self, index: u32) -> Result<Option<HostUse>, LinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETADDR, 0, &[0; IFADDRMSG_LEN]);
        let replies = self.socket.dump(request).map_err(refused("listing addresses"))?;
        let address = replies.iter().find_map(|reply| address_of(reply, index));
        if let Some(address) = address {
            return Ok(Some(HostUse::Address(address)));
        }
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &[0; IFINFOMSG_LEN]);
        let replies = self.socket.dump(request).map_err(refused("listing devices"))?;
        Ok(use_among(&replies, index))
    }
}

/// The address of such a message, if it is of this device and more than the kernel's own.
fn address_of(reply: &NetlinkMessage, index: u32) -> Option<IpAddr> {
    let [_, _, _, scope] = reply.header_u32(0)?.to_ne_bytes();
    if reply.kind != libc::RTM_NEWADDR || reply.header_u32(4)? != index {
        return None;
    }
    let attributes = reply.attributes(IFADDRMSG_LEN);
    let bytes = attributes.find(IFA_LOCAL).or_else(|| attributes.find(IFA_ADDRESS))?;
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 if scope == libc::RT_SCOPE_LINK => None,
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}

/// What the links say of the device of this number.
fn use_among(links: &[NetlinkMessage], index: u32) -> Option<HostUse> {
    let number = |link: &NetlinkMessage, key: u16| {
        let attributes = link.attributes(IFINFOMSG_LEN);
        attributes.find(key).and_then(|value| read_u32(value, 0))
    };
    let name = |link: &NetlinkMessage| {
        let attributes = link.attributes(IFINFOMSG_LEN);
        attributes.find(IFLA_IFNAME).map(read_text).unwrap_or_default()
    };
    let own = links.iter().find(|link| link.header_u32(4) == Some(index));
    if let Some(master) = own.and_then(|link| number(link, IFLA_MASTER)) {
        let found = links.iter().find(|link| link.header_u32(4) == Some(master));
        return Some(HostUse::PortOf(found.map_or_else(|| format!("device {master}"), name)));
    }
    let is_upper = |link: &&NetlinkMessage| {
        number(link, IFLA_LINK) == Some(index) && UPPER_KINDS.contains(&&*info_kind(link))
    };
    links.iter().find(is_upper).map(|upper| HostUse::Under(name(upper)))
}
