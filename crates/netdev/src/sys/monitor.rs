//! `LinkMonitor`: devices of a namespace that appear, disappear, or change name, state, address,
//! MTU or speed, or get and lose addresses of the host.
//!
//! The kernel reports changes by netlink. When it had to drop messages, the devices are listed
//! anew, until a list was read whole: no change of state is missed, though steps between may be. It
//! must never report a state that the kernel has not reported.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;

use super::host_use::addressed_device;
use super::link::{LinkError, LinkInfo, Rtnl, link_of};
use super::link_modes::LinkModes;
use super::netlink::NetlinkSocket;
use super::netns::Namespace;
use super::watch::Watch;

const RTMGRP_LINK: u32 = 0x1;
const RTMGRP_IPV4_IFADDR: u32 = 0x10;
const RTMGRP_IPV6_IFADDR: u32 = 0x100;

/// A change of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// The interface index; no later device of the namespace has the same.
    pub index: u32,
    /// Its name (the last one, if it has disappeared).
    pub name: String,
    /// False once it has disappeared from this namespace.
    pub exists: bool,
    /// Administratively up (`IFF_UP`).
    pub up: bool,
    /// Has carrier.
    pub carrier: bool,
    /// Operational (`IFF_RUNNING`). The kernel sets it after the carrier, up to a second later.
    pub running: bool,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its MTU.
    pub mtu: u32,
}

impl LinkChange {
    fn of(link: LinkInfo) -> Self {
        let LinkInfo { index, name, up, carrier, running, mac, mtu, .. } = link;
        Self { index, name, exists: true, up, carrier, running, mac, mtu }
    }

    fn gone(self) -> Self {
        Self { exists: false, up: false, carrier: false, running: false, ..self }
    }

    /// Whether frames can pass. The condition is that of [`crate::PortInfo::link_up`]: the device
    /// exists, is up and is operational.
    #[must_use]
    pub fn link_up(&self) -> bool {
        self.exists && self.up && self.running
    }
}

/// The kernel's side of a monitor; the unit tests have a script in its place.
trait LinkSource {
    /// The messages that are queued; none when the queue is empty. `ENOBUFS` when the kernel had to
    /// drop messages.
    fn pending(&mut self) -> io::Result<Vec<LinkMessage>>;

    /// All devices.
    fn list(&mut self) -> Result<Vec<LinkInfo>, LinkError>;
}

/// A message about one device.
#[derive(Debug, Clone)]
enum LinkMessage {
    /// It exists, and is so.
    New(LinkInfo),
    /// It has disappeared.
    Deleted(LinkInfo),
    /// The host has an address more or less on the device of this number.
    Addressed(u32),
    /// Nothing about a device.
    Other,
}

/// Route netlink of one namespace.
#[derive(Debug)]
struct KernelLinks {
    socket: NetlinkSocket,
    rtnl: Rtnl,
}

impl LinkSource for KernelLinks {
    fn pending(&mut self) -> io::Result<Vec<LinkMessage>> {
        let messages = self.socket.pending_messages()?;
        let message = |message| match link_of(&message) {
            Some(link) if message.kind == libc::RTM_DELLINK => LinkMessage::Deleted(link),
            Some(link) => LinkMessage::New(link),
            None => addressed_device(&message).map_or(LinkMessage::Other, LinkMessage::Addressed),
        };
        Ok(messages.into_iter().map(message).collect())
    }

    fn list(&mut self) -> Result<Vec<LinkInfo>, LinkError> {
        self.rtnl.links()
    }
}

/// The devices as last known, and the changes that have not been reported yet.
#[derive(Debug, Default)]
struct LinkTable {
    known: BTreeMap<u32, LinkChange>,
    unreported: Vec<LinkChange>,
    /// Devices on which the host has other addresses than before, perhaps.
    addressed: BTreeSet<u32>,
    /// Messages were dropped, and no list was read whole since.
    is_stale: bool,
}

impl LinkTable {
    /// Reads all messages, and the list of devices where that is needed. After an error
    /// `unreported` has what was learnt so far, and `is_stale` says whether the list is missing.
    fn update(&mut self, source: &mut impl LinkSource) -> Result<(), LinkError> {
        if self.is_stale {
            self.relist(source)?;
        }
        loop {
            match source.pending() {
                Ok(messages) if messages.is_empty() => return Ok(()),
                Ok(messages) => {
                    for message in messages {
                        match message {
                            LinkMessage::New(link) => self.learn(LinkChange::of(link)),
                            LinkMessage::Deleted(link) => self.learn(LinkChange::of(link).gone()),
                            LinkMessage::Addressed(index) => {
                                self.addressed.insert(index);
                            }
                            LinkMessage::Other => {}
                        }
                    }
                }
                Err(error) if is_overflow(&error) => self.relist(source)?,
                Err(source) => return Err(receiving(source)),
            }
        }
    }

    /// Discards the queue and reads the list: what was queued before the loss is older than the
    /// list, and must not come after it.
    fn relist(&mut self, source: &mut impl LinkSource) -> Result<(), LinkError> {
        self.is_stale = true;
        loop {
            match source.pending() {
                Ok(messages) if messages.is_empty() => break,
                Ok(_) => {}
                Err(error) if is_overflow(&error) => {}
                Err(source) => return Err(receiving(source)),
            }
        }
        let links = source.list()?;
        let listed: BTreeSet<u32> = links.iter().map(|link| link.index).collect();
        let lost: Vec<LinkChange> =
            self.known.values().filter(|old| !listed.contains(&old.index)).cloned().collect();
        for change in lost {
            self.learn(change.gone());
        }
        self.addressed.extend(listed);
        for link in links {
            self.learn(LinkChange::of(link));
        }
        self.is_stale = false;
        Ok(())
    }

    /// Reports the devices of these indices again.
    fn report_again(&mut self, is_meant: impl Fn(u32) -> bool) {
        let meant = self.known.values().filter(|known| is_meant(known.index));
        self.unreported.extend(meant.cloned());
    }

    fn learn(&mut self, change: LinkChange) {
        let old = if change.exists {
            self.known.insert(change.index, change.clone())
        } else {
            // The end of a device that was never reported is no change.
            let Some(old) = self.known.remove(&change.index) else { return };
            Some(old)
        };
        if old.as_ref() != Some(&change) {
            self.unreported.push(change);
        }
    }
}

/// Monitors the devices of one namespace.
#[derive(Debug)]
pub struct LinkMonitor {
    source: KernelLinks,
    table: LinkTable,
    /// `None` where the kernel does not notify of link modes.
    modes: Option<LinkModes>,
    /// Over both sockets, so that one descriptor stands for them.
    watch: Watch,
}

impl LinkMonitor {
    /// For the namespace of the calling thread. Its present devices are known and not reported as
    /// changes; see [`LinkMonitor::known`].
    ///
    /// # Errors
    /// When there is no socket left, or the devices cannot be listed.
    pub fn open() -> Result<Self, LinkError> {
        // Listen first, list second: a change between the two is then received.
        let socket = NetlinkSocket::open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
            .map_err(|source| LinkError { what: "opening a netlink socket".into(), source })?;
        let mut source = KernelLinks { socket, rtnl: Rtnl::open()? };
        let mut table = LinkTable::default();
        for link in source.list()? {
            table.learn(LinkChange::of(link));
        }
        table.unreported.clear();
        table.addressed = source.rtnl.addressed_devices()?;
        let watching = |source| LinkError { what: "watching netlink sockets".into(), source };
        let watch = Watch::new().map_err(watching)?;
        watch.add(source.socket.fd(), 0).map_err(watching)?;
        // Kernels before 5.6 have none.
        let modes = LinkModes::open().ok();
        if let Some(modes) = &modes {
            watch.add(modes.fd(), 1).map_err(watching)?;
        }
        Ok(Self { source, table, modes, watch })
    }

    /// For the namespace `ns`.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or as [`LinkMonitor::open`].
    pub fn open_in(ns: &Namespace) -> Result<Self, LinkError> {
        ns.enter(Self::open)
            .map_err(|source| LinkError { what: "entering a network namespace".into(), source })?
    }

    /// The descriptor that is readable when [`LinkMonitor::changes`] has something to report.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// The devices as last reported.
    pub fn known(&self) -> impl Iterator<Item = &LinkChange> {
        self.table.known.values()
    }

    /// The last report about the device with this interface index.
    #[must_use]
    pub fn device(&self, index: u32) -> Option<&LinkChange> {
        self.table.known.get(&index)
    }

    /// The changes since the last call, in order; empty when there are none. Never waits. A device
    /// that has another speed or duplex is reported as it is, though nothing else has changed.
    ///
    /// # Errors
    /// Those of the socket. No change is lost by an error: a later call reports it. While
    /// [`LinkMonitor::is_stale`], call again after a while, since the descriptor may stay silent.
    pub fn changes(&mut self) -> Result<Vec<LinkChange>, LinkError> {
        self.table.update(&mut self.source)?;
        match self.modes.as_ref().map(LinkModes::changed) {
            Some(Ok(indices)) => self.table.report_again(|index| indices.contains(&index)),
            Some(Err(error)) if is_overflow(&error) => self.table.report_again(|_| true),
            Some(Err(error)) => return Err(receiving(error)),
            None => {}
        }
        Ok(std::mem::take(&mut self.table.unreported))
    }

    /// The devices on which addresses of the host have come or gone since the last call, as far as
    /// [`LinkMonitor::changes`] has read; after an overflow all devices. At first those that have
    /// an address.
    pub fn take_addressed(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.table.addressed)
    }

    /// Whether messages were dropped and the devices could not be listed since.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.table.is_stale
    }
}

fn is_overflow(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

fn receiving(source: io::Error) -> LinkError {
    LinkError { what: "receiving netlink messages about devices".into(), source }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn link(index: u32, up: bool, carrier: bool, running: bool) -> LinkInfo {
        LinkInfo {
            index,
            name: format!("veth{index}"),
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1_500,
            up,
            carrier,
            running,
            operstate: 0,
            kind: "veth".into(),
            stats: crate::sys::link::LinkStats::default(),
        }
    }

    /// A socket that answers by a script; with the queue empty and every list the same at its end.
    #[derive(Default)]
    struct Script {
        pending: VecDeque<io::Result<Vec<LinkMessage>>>,
        lists: VecDeque<Result<Vec<LinkInfo>, i32>>,
    }

    impl LinkSource for Script {
        fn pending(&mut self) -> io::Result<Vec<LinkMessage>> {
            self.pending.pop_front().unwrap_or_else(|| Ok(Vec::new()))
        }

        fn list(&mut self) -> Result<Vec<LinkInfo>, LinkError> {
            self.lists.pop_front().expect("a list too many").map_err(|errno| LinkError {
                what: "listing devices".into(),
                source: io::Error::from_raw_os_error(errno),
            })
        }
    }

    fn overflow() -> io::Result<Vec<LinkMessage>> {
        Err(io::Error::from_raw_os_error(libc::ENOBUFS))
    }

    fn reported(table: &mut LinkTable) -> Vec<(u32, bool, bool)> {
        let changes = std::mem::take(&mut table.unreported);
        changes.iter().map(|c| (c.index, c.exists, c.link_up())).collect()
    }

    #[test]
    fn the_carrier_and_the_operational_state_are_two_changes() {
        let (mut table, mut script) = (LinkTable::default(), Script::default());
        let carrier = LinkMessage::New(link(2, true, true, false));
        let running = LinkMessage::New(link(2, true, true, true));
        script.pending = [Ok(vec![carrier.clone()]), Ok(vec![carrier]), Ok(vec![running.clone()])]
            .into_iter()
            .collect();
        table.update(&mut script).unwrap();
        assert_eq!(reported(&mut table), [(2, true, false), (2, true, true)]);
        script.pending.push_back(Ok(vec![running, LinkMessage::Other]));
        table.update(&mut script).unwrap();
        assert_eq!(reported(&mut table), [], "the same again is no change");
    }

    #[test]
    fn an_overflow_lists_devices_until_a_list_is_whole() {
        let (mut table, mut script) = (LinkTable::default(), Script::default());
        for index in [2, 3] {
            table.learn(LinkChange::of(link(index, true, true, true)));
        }
        table.unreported.clear();
        script.pending = [
            Ok(vec![LinkMessage::New(link(4, true, true, true))]),
            overflow(),
            // Older than the list, and dropped with the rest of the queue.
            Ok(vec![LinkMessage::New(link(5, true, true, true))]),
            overflow(),
        ]
        .into_iter()
        .collect();
        script.lists = [Err(libc::EINTR), Err(libc::ENOMEM)].into_iter().collect();
        for _ in 0..2 {
            assert!(table.update(&mut script).is_err());
            assert!(table.is_stale);
        }
        script.lists.push_back(Ok(vec![link(2, true, true, false), link(4, true, true, true)]));
        table.update(&mut script).unwrap();
        assert!(!table.is_stale);
        let expected = [(4, true, true), (3, false, false), (2, true, false)];
        assert_eq!(reported(&mut table), expected, "also what was learnt before the overflow");
        table.update(&mut script).unwrap();
        assert_eq!(reported(&mut table), []);
    }

    #[test]
    fn addresses_may_change_with_a_message_and_with_an_overflow() {
        let (mut table, mut script) = (LinkTable::default(), Script::default());
        script.pending.push_back(Ok(vec![LinkMessage::Addressed(2), LinkMessage::Addressed(2)]));
        table.update(&mut script).unwrap();
        assert_eq!(std::mem::take(&mut table.addressed), [2].into());
        script.pending.push_back(overflow());
        script.lists.push_back(Ok([3, 4].map(|index| link(index, true, true, true)).to_vec()));
        table.update(&mut script).unwrap();
        assert_eq!(table.addressed, [3, 4].into());
    }

    #[test]
    fn a_socket_error_loses_no_change() {
        let (mut table, mut script) = (LinkTable::default(), Script::default());
        let message = LinkMessage::New(link(2, true, true, true));
        script.pending = [Ok(vec![message]), Err(io::Error::from_raw_os_error(libc::ENOMEM))]
            .into_iter()
            .collect();
        assert!(table.update(&mut script).is_err());
        table.update(&mut script).unwrap();
        assert_eq!(reported(&mut table), [(2, true, true)]);
        script.pending.push_back(Ok(vec![
            LinkMessage::Deleted(link(2, true, true, true)),
            LinkMessage::Deleted(link(9, true, true, true)),
        ]));
        table.update(&mut script).unwrap();
        assert_eq!(reported(&mut table), [(2, false, false)], "and no end of a stranger");
    }
}
