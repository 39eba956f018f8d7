//! The host's own use of a device: addresses, and devices that receive by way of it.
//!
//! A caller that takes a device's frames from the host asks first. IPv6 addresses that the kernel
//! gives to every device mean nothing. A device that receives by way of it may be in another
//! namespace, as a container's macvlan is, where this process does not list it. While such a
//! macvlan is up, this device has its address in its filter, and that the kernel reports (`bridge
//! fdb` shows it). A VLAN device that was moved away has the address of this one, and leaves no
//! trace here; so may an ipvlan.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use super::link::{
    IFINFOMSG_LEN, IFLA_ADDRESS, IFLA_LINK, IFLA_LINK_NETNSID, IFLA_MASTER, LinkError, Rtnl,
    ifinfomsg, info_kind, refused,
};
use super::netlink::{NetlinkMessage, NetlinkRequest, read_text, read_u32};

const IFLA_IFNAME: u16 = 3;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const NTF_SELF: u8 = 0x02;
const IFADDRMSG_LEN: usize = 8;
const NDMSG_LEN: usize = 12;

/// Kinds of devices that receive by way of another, which they name as their link.
const UPPER_KINDS: [&str; 6] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"];

/// A use of a device by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostUse {
    /// The host can be reached by this address there.
    Address(IpAddr),
    /// It is a port of another device: a bridge, a bond, a VRF.
    PortOf(String),
    /// A device of this name receives by way of it.
    Under(String),
    /// It receives for this address of another device.
    Filter([u8; 6]),
}

impl fmt::Display for HostUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "the host has the address {address} on it"),
            Self::PortOf(name) => write!(f, "it is a port of {name}"),
            Self::Under(name) => write!(f, "{name} receives by way of it"),
            Self::Filter([a, b, c, d, e, g]) => write!(
                f,
                "it receives for {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x} too, as for a \
                 macvlan in another namespace"
            ),
        }
    }
}

impl Rtnl {
    /// The host's use of the device of this number; one thing of several.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn host_use(&self, index: u32) -> Result<Option<HostUse>, LinkError> {
        let addresses = self.addresses()?;
        let own = addresses.iter().find(|(device, _)| *device == index);
        if let Some((_, address)) = own {
            return Ok(Some(HostUse::Address(*address)));
        }
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &[0; IFINFOMSG_LEN]);
        let links = self.socket.dump(request).map_err(refused("listing devices"))?;
        if let Some(found) = use_among(&links, index) {
            return Ok(Some(found));
        }
        let mut header = ifinfomsg(index, 0, 0);
        header[0] = libc::AF_BRIDGE as u8;
        let request = NetlinkRequest::new(libc::RTM_GETNEIGH, 0, &header);
        let replies = self.socket.dump(request).map_err(refused("listing filters"))?;
        let own = links.iter().find(|link| link.header_u32(4) == Some(index));
        let own = own.and_then(|link| link.attributes(IFINFOMSG_LEN).find(IFLA_ADDRESS));
        let filtered = replies.iter().filter_map(|reply| filtered_of(reply, index));
        let mut others = filtered.filter(|address| own != Some(&address[..]));
        Ok(others.next().map(HostUse::Filter))
    }

    /// The devices on which the host has an address.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn addressed_devices(&self) -> Result<BTreeSet<u32>, LinkError> {
        Ok(self.addresses()?.into_iter().map(|(device, _)| device).collect())
    }

    /// Each address of the host after the number of its device.
    fn addresses(&self) -> Result<Vec<(u32, IpAddr)>, LinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETADDR, 0, &[0; IFADDRMSG_LEN]);
        let replies = self.socket.dump(request).map_err(refused("listing addresses"))?;
        Ok(replies.iter().filter_map(address_of).collect())
    }
}

/// The unicast address of such a message, if it is in the filter of this device.
fn filtered_of(reply: &NetlinkMessage, index: u32) -> Option<[u8; 6]> {
    let [low, high, flags, _] = reply.header_u32(8)?.to_ne_bytes();
    let is_filter = u16::from_ne_bytes([low, high]) == NUD_PERMANENT && flags & NTF_SELF != 0;
    let attributes = reply.attributes(NDMSG_LEN);
    // A tunnel's remote ends have a destination.
    let is_own = reply.header_u32(4)? == index && attributes.find(NDA_DST).is_none();
    let address = <[u8; 6]>::try_from(attributes.find(NDA_LLADDR)?).ok()?;
    let is_unicast = address[0] & 1 == 0 && address != [0; 6];
    (reply.kind == libc::RTM_NEWNEIGH && is_filter && is_own && is_unicast).then_some(address)
}

/// The device and the address of such a message, if it is more than the kernel's own.
fn address_of(reply: &NetlinkMessage) -> Option<(u32, IpAddr)> {
    let [_, _, _, scope] = reply.header_u32(0)?.to_ne_bytes();
    if reply.kind != libc::RTM_NEWADDR {
        return None;
    }
    let attributes = reply.attributes(IFADDRMSG_LEN);
    let bytes = attributes.find(IFA_LOCAL).or_else(|| attributes.find(IFA_ADDRESS))?;
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 if scope == libc::RT_SCOPE_LINK => return None,
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some((reply.header_u32(4)?, address))
}

/// The device of a message that an address has come or gone, but for the kernel's own.
pub(super) fn addressed_device(message: &NetlinkMessage) -> Option<u32> {
    let [_, _, _, scope] = message.header_u32(0)?.to_ne_bytes();
    let is_meant = message.kind == libc::RTM_NEWADDR || message.kind == libc::RTM_DELADDR;
    let is_own = message.family() == Some(libc::AF_INET6 as u8) && scope == libc::RT_SCOPE_LINK;
    message.header_u32(4).filter(|_| is_meant && !is_own)
}

/// The use of the device of this number that a list of links shows.
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
    // The link of one that came from another namespace has its number there.
    let is_upper = |link: &&NetlinkMessage| {
        link.attributes(IFINFOMSG_LEN).find(IFLA_LINK_NETNSID).is_none()
            && number(link, IFLA_LINK) == Some(index)
            && UPPER_KINDS.contains(&&*info_kind(link))
    };
    links.iter().find(is_upper).map(|upper| HostUse::Under(name(upper)))
}

#[cfg(test)]
mod tests {
    use super::super::link::{IFLA_LINK, Rtnl, VethEnd, VethPair, ifinfomsg, quiet_ipv6};
    use super::super::netlink::{NLM_F_CREATE, NLM_F_EXCL, NetlinkRequest};
    use super::super::netns::Namespace;
    use super::{HostUse, IFLA_IFNAME};

    const IFLA_LINKINFO: u16 = 18;
    const IFLA_INFO_KIND: u16 = 1;

    /// A namespace with the devices `low` and `high`; the number of `low`.
    fn with_veth() -> (Namespace, Rtnl, u32) {
        let namespace = Namespace::new().expect("needs root: run by `cargo xtask test`");
        let rtnl = Rtnl::open_in(&namespace).unwrap();
        let (here, there) = (VethEnd::new("low"), VethEnd::new("high"));
        rtnl.add_veth(&VethPair { here, there, there_in: None }).unwrap();
        for name in ["low", "high"] {
            namespace.enter(|| quiet_ipv6(name)).unwrap().unwrap();
            rtnl.set_up(name, true).unwrap();
        }
        let low = rtnl.link("low").unwrap().index;
        (namespace, rtnl, low)
    }

    fn add_macvlan(rtnl: &Rtnl, name: &str, low: u32) {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &ifinfomsg(0, 0, 0));
        request.attr_text(IFLA_IFNAME, name);
        request.attr_u32(IFLA_LINK, low);
        request.nested(IFLA_LINKINFO, &[], |info| info.attr_text(IFLA_INFO_KIND, "macvlan"));
        rtnl.socket.act(request).unwrap();
    }

    #[test]
    #[ignore = "needs root"]
    fn a_macvlan_of_another_namespace_is_a_use_of_ours_only() {
        let (_here, rtnl, low) = with_veth();
        let (there, far, far_low) = with_veth();
        assert_eq!(low, far_low, "both have the number that is its link");
        assert_eq!(rtnl.host_use(low).unwrap(), None);
        add_macvlan(&rtnl, "upper", low);
        assert_eq!(rtnl.host_use(low).unwrap(), Some(HostUse::Under("upper".to_owned())));
        rtnl.move_to("upper", &there).unwrap();
        far.set_up("upper", true).unwrap();
        let upper = far.link("upper").unwrap();
        assert_eq!(rtnl.host_use(low).unwrap(), Some(HostUse::Filter(upper.mac)));
        let text = HostUse::Filter([2, 0, 0, 0, 0, 0xab]).to_string();
        let wanted = "it receives for 02:00:00:00:00:ab too, as for a macvlan in another namespace";
        assert_eq!(text, wanted);
        assert_eq!(far.host_use(far_low).unwrap(), None, "it belongs to the other one's");
        far.delete("upper").unwrap();
        assert_eq!(rtnl.host_use(low).unwrap(), None);
    }
}
