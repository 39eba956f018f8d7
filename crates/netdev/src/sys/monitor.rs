//! `LinkMonitor`: which devices of a namespace come, go, or change their state, address
//! or MTU.
//!
//! The kernel tells by netlink; when it had to drop what it would tell, the devices are listed
//! anew, so that no change of state is missed, though steps between may be. It must never report a
//! state that it has not been told.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use super::link::{LinkError, LinkInfo, Rtnl, link_of};
use super::netlink::NetlinkSocket;
use super::netns::Namespace;

const RTMGRP_LINK: u32 = 1;

/// A change of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// The device's number; a device that comes later never has the same.
    pub index: u32,
    /// Its name (the last one, if it has gone).
    pub name: String,
    /// False once it has disappeared from this namespace.
    pub exists: bool,
    /// Administratively up.
    pub up: bool,
    /// Has carrier.
    pub carrier: bool,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its MTU.
    pub mtu: u32,
}

impl LinkChange {
    fn of(link: LinkInfo) -> Self {
        let LinkInfo { index, name, up, carrier, mac, mtu, .. } = link;
        Self { index, name, exists: true, up, carrier, mac, mtu }
    }

    fn gone(self) -> Self {
        Self { exists: false, up: false, carrier: false, ..self }
    }

    /// Whether frames can pass: the device exists, is up and has carrier.
    #[must_use]
    pub fn link_up(&self) -> bool {
        self.exists && self.up && self.carrier
    }
}

/// Watches the devices of one namespace.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: NetlinkSocket,
    rtnl: Rtnl,
    known: BTreeMap<u32, LinkChange>,
}

impl LinkMonitor {
    /// For the namespace of the calling thread. The devices that are there now are known, and not
    /// reported as changes; see [`LinkMonitor::known`].
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn open() -> Result<Self, LinkError> {
        // Listen first, list second: a change between the two is then received.
        let socket = NetlinkSocket::open(RTMGRP_LINK)
            .map_err(|source| LinkError { what: "opening a netlink socket".into(), source })?;
        let mut monitor = Self { socket, rtnl: Rtnl::open()?, known: BTreeMap::new() };
        monitor.list_anew(&mut Vec::new())?;
        Ok(monitor)
    }

    /// For the namespace `ns`.
    ///
    /// # Errors
    /// When the namespace cannot be entered or no socket can be had.
    pub fn open_in(ns: &Namespace) -> Result<Self, LinkError> {
        ns.enter(Self::open)
            .map_err(|source| LinkError { what: "entering a network namespace".into(), source })?
    }

    /// The descriptor that is readable when [`LinkMonitor::changes`] has something to tell.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// The devices as last told.
    pub fn known(&self) -> impl Iterator<Item = &LinkChange> {
        self.known.values()
    }

    /// What has changed since the last call, in order; empty when nothing has. Never waits.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn changes(&mut self) -> Result<Vec<LinkChange>, LinkError> {
        let mut changes = Vec::new();
        loop {
            match self.socket.pending_messages() {
                Ok(pending_messages) if pending_messages.is_empty() => return Ok(changes),
                Ok(pending_messages) => {
                    for message in pending_messages {
                        let Some(link) = link_of(&message) else { continue };
                        let change = LinkChange::of(link);
                        let gone = message.kind == libc::RTM_DELLINK;
                        self.learn(if gone { change.gone() } else { change }, &mut changes);
                    }
                }
                Err(error) if overflowed(&error) => {
                    // What was queued before the loss is older than the list, and must not come
                    // after it.
                    self.forget_queued()?;
                    self.list_anew(&mut changes)?;
                }
                Err(source) => return Err(hearing(source)),
            }
        }
    }

    fn forget_queued(&self) -> Result<(), LinkError> {
        loop {
            match self.socket.pending_messages() {
                Ok(pending_messages) if pending_messages.is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) if overflowed(&error) => {}
                Err(source) => return Err(hearing(source)),
            }
        }
    }

    fn list_anew(&mut self, changes: &mut Vec<LinkChange>) -> Result<(), LinkError> {
        let links = self.rtnl.links()?;
        let lost: Vec<LinkChange> = self
            .known
            .values()
            .filter(|old| !links.iter().any(|link| link.index == old.index))
            .cloned()
            .collect();
        for change in lost {
            self.learn(change.gone(), changes);
        }
        for link in links {
            self.learn(LinkChange::of(link), changes);
        }
        Ok(())
    }

    fn learn(&mut self, change: LinkChange, changes: &mut Vec<LinkChange>) {
        let old = if change.exists {
            self.known.insert(change.index, change.clone())
        } else {
            // Of a device that nobody knew there is nothing to tell.
            let Some(old) = self.known.remove(&change.index) else { return };
            Some(old)
        };
        if old.as_ref() != Some(&change) {
            changes.push(change);
        }
    }
}

fn overflowed(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

fn hearing(source: std::io::Error) -> LinkError {
    LinkError { what: "hearing of devices".into(), source }
}
