//! Devices of a namespace whose link modes, speed and duplex, may have changed: what ethtool
//! notifies of by generic netlink.
//!
//! Route netlink says nothing of a speed that changes while the link stays up. Linux notifies of it
//! since 5.6; where it does not, the port learns nothing before something else changes.

use std::io;
use std::os::fd::BorrowedFd;

use super::netlink::{Attributes, NetlinkRequest, NetlinkSocket, read_text, read_u32};

/// The family that answers about families, and its question (`linux/genetlink.h`).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

/// `ETHTOOL_MSG_LINKMODES_NTF`, with the device in a header (`linux/ethtool_netlink.h`).
const LINKMODES_NTF: u8 = 5;
const LINKMODES_HEADER: u16 = 1;
const HEADER_DEV_INDEX: u16 = 1;

/// `struct genlmsghdr`: command, version, two bytes unused.
const HEADER_LEN: usize = 4;

/// The notifications of one namespace.
#[derive(Debug)]
pub(crate) struct LinkModes {
    socket: NetlinkSocket,
    family: u16,
}

impl LinkModes {
    /// For the namespace of the calling thread.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such notifications.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = NetlinkSocket::open_generic()?;
        let mut request = NetlinkRequest::new(GENL_ID_CTRL, 0, &[CTRL_CMD_GETFAMILY, 1, 0, 0]);
        request.attr_text(CTRL_ATTR_FAMILY_NAME, "ethtool");
        let reply = socket.get(request)?;
        let attributes = reply.attributes(HEADER_LEN);
        let family = attributes.find(CTRL_ATTR_FAMILY_ID).and_then(|id| id.first_chunk().copied());
        let groups =
            Attributes::inside(attributes.find(CTRL_ATTR_MCAST_GROUPS).unwrap_or_default());
        let group = groups.into_iter().find_map(|(_, group)| {
            let group = Attributes::inside(group);
            let is_monitor = read_text(group.find(CTRL_ATTR_MCAST_GRP_NAME)?) == "monitor";
            read_u32(group.find(CTRL_ATTR_MCAST_GRP_ID)?, 0).filter(|_| is_monitor)
        });
        let (Some(family), Some(group)) = (family, group) else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        socket.join(group)?;
        Ok(Self { socket, family: u16::from_ne_bytes(family) })
    }

    /// Readable when [`LinkModes::changed`] has something to report.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// The interface indices of devices that have other link modes since the last call.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had to drop messages: then it may be any device.
    pub(crate) fn changed(&self) -> io::Result<Vec<u32>> {
        let mut all = Vec::new();
        loop {
            let messages = self.socket.pending_messages()?;
            if messages.is_empty() {
                return Ok(all);
            }
            let ours = messages.iter().filter(|message| {
                message.kind == self.family && message.family() == Some(LINKMODES_NTF)
            });
            all.extend(ours.filter_map(|message| {
                let header = message.attributes(HEADER_LEN).find(LINKMODES_HEADER)?;
                read_u32(Attributes::inside(header).find(HEADER_DEV_INDEX)?, 0)
            }));
        }
    }
}
