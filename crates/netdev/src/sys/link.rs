//! Network devices: read, make, change, delete; addresses, routes and neighbours.
//!
//! An [`Rtnl`] belongs to the namespace in which it was opened and works from any thread. It must
//! never change a device that the caller has not named.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::netlink::{
    Attributes, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NetlinkMessage, NetlinkRequest,
    NetlinkSocket, read_text, read_u32, read_u64,
};
use super::netns::Namespace;

pub(super) const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
pub(super) const IFLA_LINK: u16 = 5;
pub(super) const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_CARRIER: u16 = 33;
pub(super) const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 0x02;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const IFF_UP: u32 = 0x1;
const IFF_RUNNING: u32 = 0x40;

/// The kernel looks after carriers once a second; a busy one comes later.
const RUNNING_WITHIN: Duration = Duration::from_secs(10);

/// Time between two looks at a device that becomes operational.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// `linux/if_link.h`.
const IFLA_MACVLAN_MODE: u16 = 1;
const MACVLAN_MODE_PRIVATE: u32 = 1;
pub(super) const IFINFOMSG_LEN: usize = 16;

/// A request that the kernel refused, with what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct LinkError {
    /// The request.
    pub what: String,
    /// The kernel's error.
    pub source: io::Error,
}

impl From<LinkError> for io::Error {
    fn from(error: LinkError) -> Self {
        Self::new(error.source.kind(), error.to_string())
    }
}

/// A device as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInfo {
    /// The kernel's number of the device in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address; zero for devices without one.
    pub mac: [u8; 6],
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it is administratively up (`IFF_UP`).
    pub up: bool,
    /// Whether it has carrier.
    pub carrier: bool,
    /// Whether it is operational (`IFF_RUNNING`), which follows the carrier by up to a second.
    pub running: bool,
    /// RFC 2863 operational state: 6 is up, 2 down, 7 lower layer down, 0 unknown.
    pub operstate: u8,
    /// The kind of a virtual device (`veth`, `tun`, `bridge`, ...); empty for others.
    pub kind: String,
    /// The kernel's counters.
    pub stats: LinkStats,
}

/// The kernel's counters of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets dropped on their way out.
    pub tx_dropped: u64,
}

/// A pair of veth devices to be made, one in the namespace of the [`Rtnl`].
#[derive(Debug)]
pub struct VethPair<'a> {
    /// The end here.
    pub here: VethEnd<'a>,
    /// The other end.
    pub there: VethEnd<'a>,
    /// Namespace of the other end; this one when `None`.
    pub there_in: Option<&'a Namespace>,
}

/// One end of a pair.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The device's name, at most 15 bytes.
    pub name: &'a str,
    /// Its address; random when `None`.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes; 1,500 when `None`.
    pub mtu: Option<u32>,
    /// The number of queues each way; 1 when `None`.
    pub queues: Option<u32>,
}

impl<'a> VethEnd<'a> {
    /// An end of that name, all else by default.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        Self { name, mac: None, mtu: None, queues: None }
    }
}

/// A device with an Ethernet address of its own at the line of another one.
#[derive(Debug, Clone, Copy)]
pub struct Macvlan<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address.
    pub mac: [u8; 6],
    /// The device whose line it has.
    pub on: &'a str,
    /// Namespace of the device.
    pub inside: &'a Namespace,
}

/// Orders to the kernel about the devices of one namespace.
#[derive(Debug)]
pub struct Rtnl {
    pub(super) socket: NetlinkSocket,
}

impl Rtnl {
    /// For the namespace of the calling thread.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn open() -> Result<Self, LinkError> {
        let socket = NetlinkSocket::open(0)
            .map_err(|source| LinkError { what: "opening a netlink socket".into(), source })?;
        Ok(Self { socket })
    }

    /// For the namespace `ns`.
    ///
    /// # Errors
    /// When the namespace cannot be entered or no socket can be had.
    pub fn open_in(ns: &Namespace) -> Result<Self, LinkError> {
        ns.enter(Self::open)
            .map_err(|source| LinkError { what: "entering a network namespace".into(), source })?
    }

    /// All devices.
    ///
    /// # Errors
    /// The kernel's error; so it is for all orders below.
    pub fn links(&self) -> Result<Vec<LinkInfo>, LinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &ifinfomsg(0, 0, 0));
        let replies = self.socket.dump(request).map_err(refused("listing devices"))?;
        Ok(replies.iter().filter_map(link_of).collect())
    }

    /// The device of that name.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn link(&self, name: &str) -> Result<LinkInfo, LinkError> {
        let mut request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &ifinfomsg(0, 0, 0));
        request.attr_text(IFLA_IFNAME, name);
        self.one_link(request, || format!("device {name}"))
    }

    /// The device of that number.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn link_at(&self, index: u32) -> Result<LinkInfo, LinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &ifinfomsg(index, 0, 0));
        self.one_link(request, || format!("device number {index}"))
    }

    /// Waits for a device that is up and has carrier until it is operational (`IFF_RUNNING`), at
    /// most ten seconds, and says whether it is. Before that the kernel drops what it is to send.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device.
    pub fn wait_until_running(&self, index: u32) -> Result<bool, LinkError> {
        let start = Instant::now();
        loop {
            let link = self.link_at(index)?;
            let is_becoming = link.up && link.carrier && !link.running;
            if !is_becoming || start.elapsed() > RUNNING_WITHIN {
                return Ok(link.running);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn one_link(
        &self,
        request: NetlinkRequest,
        what: impl Fn() -> String,
    ) -> Result<LinkInfo, LinkError> {
        let found = self.socket.get(request).and_then(|reply| {
            link_of(&reply).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        });
        found.map_err(|source| LinkError { what: what(), source })
    }

    /// Makes a veth pair; both ends are down. The other end appears at once in its namespace.
    ///
    /// # Errors
    /// `EEXIST` when a name is taken.
    pub fn add_veth(&self, pair: &VethPair<'_>) -> Result<(), LinkError> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &ifinfomsg(0, 0, 0));
        put_end(&mut request, &pair.here);
        request.nested(IFLA_LINKINFO, &[], |info| {
            info.attr_text(IFLA_INFO_KIND, "veth");
            info.nested(IFLA_INFO_DATA, &[], |data| {
                data.nested(VETH_INFO_PEER, &ifinfomsg(0, 0, 0), |peer| {
                    put_end(peer, &pair.there);
                    if let Some(ns) = pair.there_in {
                        let fd = ns.fd().as_raw_fd();
                        peer.attr(IFLA_NET_NS_FD, &fd.to_ne_bytes());
                    }
                });
            });
        });
        let what = || format!("making the veth pair {} - {}", pair.here.name, pair.there.name);
        self.socket.act(request).map_err(|source| LinkError { what: what(), source })
    }

    /// Makes a macvlan, which is down and appears at once in its namespace. Frames between two of
    /// one line do not stay in this machine (private mode).
    ///
    /// # Errors
    /// `ENODEV` when there is no such line, `EOPNOTSUPP` when the kernel has no macvlan.
    pub fn add_macvlan(&self, device: &Macvlan<'_>) -> Result<(), LinkError> {
        let on = self.link(device.on)?.index;
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &ifinfomsg(0, 0, 0));
        request.attr_text(IFLA_IFNAME, device.name);
        request.attr(IFLA_ADDRESS, &device.mac);
        request.attr_u32(IFLA_LINK, on);
        let fd = device.inside.fd().as_raw_fd();
        request.attr(IFLA_NET_NS_FD, &fd.to_ne_bytes());
        request.nested(IFLA_LINKINFO, &[], |info| {
            info.attr_text(IFLA_INFO_KIND, "macvlan");
            info.nested(IFLA_INFO_DATA, &[], |data| {
                data.attr_u32(IFLA_MACVLAN_MODE, MACVLAN_MODE_PRIVATE);
            });
        });
        self.socket.act(request).map_err(refused(&format!("making a macvlan on {}", device.on)))
    }

    /// Makes a bridge of the kernel; it is down.
    ///
    /// # Errors
    /// `EEXIST` when the name is taken.
    pub fn add_bridge(&self, name: &str) -> Result<(), LinkError> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &ifinfomsg(0, 0, 0));
        request.attr_text(IFLA_IFNAME, name);
        request.nested(IFLA_LINKINFO, &[], |info| info.attr_text(IFLA_INFO_KIND, "bridge"));
        self.socket.act(request).map_err(refused(&format!("making the bridge {name}")))
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device or bridge, `EBUSY` when it is another's port.
    pub fn add_to_bridge(&self, name: &str, bridge: &str) -> Result<(), LinkError> {
        let index = self.link(bridge)?.index;
        let what = format!("adding to the bridge {bridge}");
        self.change(name, 0, 0, &what, |r| r.attr_u32(IFLA_MASTER, index))
    }

    /// Deletes a device (of a veth pair, both ends).
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn delete(&self, name: &str) -> Result<(), LinkError> {
        self.delete_at(self.link(name)?.index)
    }

    /// The same for the device of this number.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub(crate) fn delete_at(&self, index: u32) -> Result<(), LinkError> {
        let request = NetlinkRequest::new(libc::RTM_DELLINK, 0, &ifinfomsg(index, 0, 0));
        self.socket.act(request).map_err(refused(&format!("deleting device number {index}")))
    }

    /// Sets a device administratively up or down.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn set_up(&self, name: &str, up: bool) -> Result<(), LinkError> {
        let flags = if up { IFF_UP } else { 0 };
        self.change(name, flags, IFF_UP, "setting up or down", |_| {})
    }

    /// Gives a device another name. Some kernels refuse that while it is up.
    ///
    /// # Errors
    /// `EEXIST` when the name is taken, `EBUSY` when the device is up.
    pub fn rename(&self, name: &str, other: &str) -> Result<(), LinkError> {
        self.change(name, 0, 0, "renaming", |r| r.attr_text(IFLA_IFNAME, other))
    }

    /// Sets the Ethernet address.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` for a multicast address.
    pub fn set_mac(&self, name: &str, mac: [u8; 6]) -> Result<(), LinkError> {
        self.change(name, 0, 0, "setting the address", |r| r.attr(IFLA_ADDRESS, &mac))
    }

    /// Sets the MTU in bytes.
    ///
    /// # Errors
    /// `EINVAL` when the device cannot carry it.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), LinkError> {
        self.change(name, 0, 0, "setting the MTU", |r| r.attr_u32(IFLA_MTU, mtu))
    }

    /// Moves a device into another namespace.
    ///
    /// # Errors
    /// `EEXIST` when the name is taken there.
    pub fn move_to(&self, name: &str, ns: &Namespace) -> Result<(), LinkError> {
        let fd = ns.fd().as_raw_fd();
        self.change(name, 0, 0, "moving", |r| r.attr(IFLA_NET_NS_FD, &fd.to_ne_bytes()))
    }

    fn change(
        &self,
        name: &str,
        flags: u32,
        mask: u32,
        what: &str,
        fill: impl FnOnce(&mut NetlinkRequest),
    ) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, 0, &ifinfomsg(index, flags, mask));
        fill(&mut request);
        self.socket.act(request).map_err(refused(&format!("{what} of {name}")))
    }

    /// Adds an address with a prefix length to a device. An IPv6 address is usable at once (no
    /// duplicate address detection).
    ///
    /// # Errors
    /// `EEXIST` when the device has it.
    pub fn add_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let [i0, i1, i2, i3] = index.to_ne_bytes();
        let header = [family(address), prefix, 0, 0, i0, i1, i2, i3];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWADDR, flags, &header);
        let bytes = octets(address);
        request.attr(IFA_LOCAL, &bytes);
        request.attr(IFA_ADDRESS, &bytes);
        if address.is_ipv6() {
            request.attr_u32(IFA_FLAGS, IFA_F_NODAD);
        }
        self.socket.act(request).map_err(refused(&format!("adding {address}/{prefix} to {name}")))
    }

    /// Takes an address of this prefix length away from a device.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` when the device has no such address.
    pub fn delete_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let [i0, i1, i2, i3] = index.to_ne_bytes();
        let header = [family(address), prefix, 0, 0, i0, i1, i2, i3];
        let mut request = NetlinkRequest::new(libc::RTM_DELADDR, 0, &header);
        request.attr(IFA_LOCAL, &octets(address));
        let what = format!("removing {address}/{prefix} from {name}");
        self.socket.act(request).map_err(refused(&what))
    }

    /// Adds a route to `destination` (address and prefix length; `0.0.0.0/0` or `::/0` is the
    /// default route) out of device `name`, by way of `gateway` if one is given.
    ///
    /// # Errors
    /// `ENETUNREACH` when the gateway is not on a connected network.
    pub fn add_route(
        &self,
        name: &str,
        destination: (IpAddr, u8),
        gateway: Option<IpAddr>,
    ) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let (address, prefix) = destination;
        let scope = if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        let mut header = [0; 12];
        header[0] = family(address);
        header[1] = prefix;
        header[4] = libc::RT_TABLE_MAIN;
        header[5] = libc::RTPROT_STATIC;
        header[6] = scope;
        header[7] = libc::RTN_UNICAST;
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        let mut request = NetlinkRequest::new(libc::RTM_NEWROUTE, flags, &header);
        if prefix > 0 {
            request.attr(RTA_DST, &octets(address));
        }
        if let Some(gateway) = gateway {
            request.attr(RTA_GATEWAY, &octets(gateway));
        }
        request.attr_u32(RTA_OIF, index);
        self.socket.act(request).map_err(refused(&format!("route to {address}/{prefix} by {name}")))
    }

    /// Enters a neighbour's Ethernet address for good, so that none is asked for.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device.
    pub fn add_neighbour(
        &self,
        name: &str,
        address: IpAddr,
        mac: [u8; 6],
    ) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let mut header = [0; 12];
        header[0] = family(address);
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        header[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        let mut request = NetlinkRequest::new(libc::RTM_NEWNEIGH, flags, &header);
        request.attr(NDA_DST, &octets(address));
        request.attr(NDA_LLADDR, &mac);
        self.socket.act(request).map_err(refused(&format!("neighbour {address} on {name}")))
    }
}

/// Switches IPv6 off on a device of the calling thread's namespace, or for `all` and `default`, so
/// that the kernel sends nothing on it by itself. Call it inside [`Namespace::enter`]. A kernel
/// without IPv6 is quiet already, and no error.
///
/// # Errors
/// When `/proc/sys` is not writable.
pub fn disable_ipv6(device: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
    match std::fs::write(&path, "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Lets a device of the calling thread's namespace keep IPv6, but without router solicitations,
/// autoconfiguration, multicast listener reports and duplicate address detection; for networks
/// that carry IPv6 between addresses set by hand. Set it before the device goes up.
///
/// # Errors
/// When `/proc/sys` is not writable.
pub fn quiet_ipv6(device: &str) -> io::Result<()> {
    let settings = [
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
        ("addr_gen_mode", "1"),
    ];
    for (key, value) in settings {
        match std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/{key}"), value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

pub(super) fn refused(what: &str) -> impl FnOnce(io::Error) -> LinkError {
    let what = what.to_owned();
    move |source| LinkError { what, source }
}

pub(super) fn ifinfomsg(index: u32, flags: u32, mask: u32) -> [u8; IFINFOMSG_LEN] {
    let mut header = [0; IFINFOMSG_LEN];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&mask.to_ne_bytes());
    header
}

fn put_end(request: &mut NetlinkRequest, end: &VethEnd<'_>) {
    request.attr_text(IFLA_IFNAME, end.name);
    if let Some(mac) = end.mac {
        request.attr(IFLA_ADDRESS, &mac);
    }
    if let Some(mtu) = end.mtu {
        request.attr_u32(IFLA_MTU, mtu);
    }
    if let Some(queues) = end.queues {
        request.attr_u32(IFLA_NUM_TX_QUEUES, queues);
        request.attr_u32(IFLA_NUM_RX_QUEUES, queues);
    }
}

/// Reads a link message; `None` for another message, or one without a name. A bridge reports its
/// ports in link messages of its own family, also that one has left it: that is no device's end.
pub(super) fn link_of(reply: &NetlinkMessage) -> Option<LinkInfo> {
    let of_link = reply.kind == libc::RTM_NEWLINK || reply.kind == libc::RTM_DELLINK;
    if !of_link || reply.family() != Some(0) {
        return None;
    }
    let attributes = reply.attributes(IFINFOMSG_LEN);
    let mac = attributes.find(IFLA_ADDRESS).and_then(|m| m.try_into().ok()).unwrap_or_default();
    let flags = reply.header_u32(8)?;
    Some(LinkInfo {
        index: reply.header_u32(4)?,
        name: read_text(attributes.find(IFLA_IFNAME)?),
        mac,
        mtu: attributes.find(IFLA_MTU).and_then(|m| read_u32(m, 0)).unwrap_or_default(),
        up: flags & IFF_UP != 0,
        running: flags & IFF_RUNNING != 0,
        carrier: attributes.find(IFLA_CARRIER).is_some_and(|c| c.first() == Some(&1)),
        operstate: attributes.find(IFLA_OPERSTATE).and_then(|o| o.first().copied()).unwrap_or(0),
        kind: info_kind(reply),
        stats: attributes.find(IFLA_STATS64).map(stats_of).unwrap_or_default(),
    })
}

/// The kind of a virtual device, of its link message.
pub(super) fn info_kind(reply: &NetlinkMessage) -> String {
    let attributes = reply.attributes(IFINFOMSG_LEN);
    let info = Attributes::inside(attributes.find(IFLA_LINKINFO).unwrap_or_default());
    info.find(IFLA_INFO_KIND).map(read_text).unwrap_or_default()
}

/// `struct rtnl_link_stats64` starts with these eight, in this order.
fn stats_of(bytes: &[u8]) -> LinkStats {
    let at = |n: usize| read_u64(bytes, n * 8).unwrap_or_default();
    LinkStats {
        rx_packets: at(0),
        tx_packets: at(1),
        rx_bytes: at(2),
        tx_bytes: at(3),
        rx_errors: at(4),
        tx_errors: at(5),
        rx_dropped: at(6),
        tx_dropped: at(7),
    }
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // Both numbers are below 256.
    family.to_le_bytes()[0]
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::netlink::messages;
    use super::*;

    #[test]
    fn a_bridge_that_lets_a_port_go_is_not_the_port_s_end() {
        let message = |family: u8| {
            let mut header = ifinfomsg(7, IFF_UP, 0);
            header[0] = family;
            let mut request = NetlinkRequest::new(libc::RTM_DELLINK, 0, &header);
            request.attr_text(IFLA_IFNAME, "veth0");
            messages(&request.finish(1, 0)).remove(0)
        };
        let link = link_of(&message(0)).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.up), (7, "veth0", true));
        assert_eq!(link_of(&message(7)), None);
    }
}
