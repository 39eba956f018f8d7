//! A Linux network device behind a port: its properties, and whether it still exists.
//!
//! It is identified by its interface index, which survives a renaming, and queried through a socket
//! that stays in the namespace where the port was opened, whatever thread asks. A TAP device lives
//! as long as the port's own descriptor, which leads to it in any namespace: there it is asked by a
//! socket that is closed at once, since one that stayed would keep the namespace alive. The parts
//! of a port share it. It must never change a device.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::PortError;
use crate::port_info::PortInfo;
use crate::sys::ethtool::{LinkSettings, link_settings};
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::Rtnl;
use crate::sys::netns::Namespace;
use crate::sys::tun::Tun;

const ARPHRD_ETHER: u16 = libc::ARPHRD_ETHER;
const ARPHRD_LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;

/// The device of a port.
#[derive(Debug)]
pub(crate) struct KernelDevice {
    kind: &'static str,
    index: u32,
    control: IoctlSocket,
    /// The descriptor of a TAP device, and the number of the namespace where it was opened.
    tun: Option<(Arc<Tun>, u64)>,
    /// As last read, it is not what the index stands for in that namespace.
    has_moved: AtomicBool,
    mtu: AtomicU32,
    gone: AtomicBool,
    last: Mutex<Identity>,
}

/// Name and address as last read.
#[derive(Debug, Clone)]
struct Identity {
    name: String,
    mac: [u8; 6],
}

impl KernelDevice {
    /// Finds the device `name` in the calling thread's namespace.
    pub(crate) fn find(kind: &'static str, name: &str) -> Result<Self, PortError> {
        let failed = |source| PortError::Io { what: format!("{kind}:{name}"), source };
        let control = IoctlSocket::open().map_err(failed)?;
        let index = match control.index(name) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Err(PortError::NoSuchDevice { name: name.to_owned(), present: present() });
            }
            other => other.map_err(failed)?,
        };
        let (hardware, mac) = control.hardware(name).map_err(failed)?;
        if hardware != ARPHRD_ETHER && hardware != ARPHRD_LOOPBACK {
            let source = io::Error::other("the device carries no Ethernet frames");
            return Err(failed(source));
        }
        let mtu = AtomicU32::new(control.mtu(name).map_err(failed)?);
        let last = Mutex::new(Identity { name: name.to_owned(), mac });
        let (has_moved, gone) = <(AtomicBool, AtomicBool)>::default();
        Ok(Self { kind, index, control, tun: None, has_moved, mtu, gone, last })
    }

    /// The device of a TAP descriptor, which goes on when it comes to another namespace, if the
    /// kernel says where a device is (since Linux 5.7, and to a process with CAP_NET_ADMIN there).
    pub(crate) fn of_tun(mut self, tun: &Arc<Tun>) -> Self {
        let home = tun.namespace().and_then(|namespace| namespace.id());
        self.tun = home.ok().map(|home| (Arc::clone(tun), home));
        self
    }

    pub(crate) fn name(&self) -> String {
        self.last().name
    }

    /// Its number in the namespace where the port was opened.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Whether the device has left the namespace where the port was opened, as last read by
    /// [`KernelDevice::info`].
    pub(crate) fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }

    /// The name that the device has now, and the namespace that it has gone to; none where it is
    /// still the device of its index. The index alone does not say so: another device may have it
    /// by now.
    pub(crate) fn place(&self) -> io::Result<(String, Option<Namespace>)> {
        let Some((tun, home)) = &self.tun else {
            return Ok((self.control.name(self.index)?, None));
        };
        let (namespace, name) = (tun.namespace()?, tun.name()?);
        let is_here = namespace.id()? == *home && self.control.index(&name)? == self.index;
        Ok((name, (!is_here).then_some(namespace)))
    }

    /// As last read by [`KernelDevice::info`].
    pub(crate) fn mtu(&self) -> u32 {
        self.mtu.load(Ordering::Relaxed)
    }

    /// [`PortError::Gone`] if the device was found to be gone before.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), PortError> {
        if self.gone.load(Ordering::Relaxed) { Err(PortError::Gone(self.name())) } else { Ok(()) }
    }

    /// Asks the kernel whether the device exists: [`PortError::Gone`] if not, for good.
    pub(crate) fn ask(&self) -> Result<(), PortError> {
        let found = match &self.tun {
            None => self.control.name(self.index),
            Some((tun, _)) => tun.name(),
        };
        if found.is_err_and(|error| is_gone(&error)) {
            self.gone.store(true, Ordering::Relaxed);
        }
        self.check()
    }

    /// The current properties; once the device is gone, those last known.
    pub(crate) fn info(&self, notes: &[String]) -> PortInfo {
        let (flags, settings) = self.read_whole().unwrap_or_default();
        let exists = !self.gone.load(Ordering::Relaxed);
        let Identity { name, mac } = self.last();
        PortInfo {
            name,
            kind: self.kind,
            mac,
            mtu: self.mtu(),
            link_up: exists && flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0,
            is_set_down: None,
            speed_bps: settings.speed_bps,
            full_duplex: settings.full_duplex,
            exists,
            receives: true,
            has_line_rate: true,
            peer: None,
            notes: notes.to_vec(),
        }
    }

    /// Reads the properties, and again where the device was renamed in the middle: what is asked by
    /// the old name then finds no device, though there is one.
    fn read_whole(&self) -> io::Result<(i32, LinkSettings)> {
        const TRIES: usize = 8;
        let mut read = self.read();
        for _ in 0..TRIES {
            match &read {
                Err(error) if is_gone(error) && self.ask().is_ok() => read = self.read(),
                Ok(_) | Err(_) => break,
            }
        }
        read
    }

    fn read(&self) -> io::Result<(i32, LinkSettings)> {
        let (name, elsewhere) = self.place()?;
        self.has_moved.store(elsewhere.is_some(), Ordering::Relaxed);
        match elsewhere {
            None => self.read_by(&self.control, name),
            Some(namespace) => namespace.enter(|| self.read_by(&IoctlSocket::open()?, name))?,
        }
    }

    fn read_by(&self, control: &IoctlSocket, name: String) -> io::Result<(i32, LinkSettings)> {
        let mac = control.hardware(&name)?.1;
        self.mtu.store(control.mtu(&name)?, Ordering::Relaxed);
        let flags = control.flags(&name);
        let settings = link_settings(control, &name).unwrap_or_default();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Identity { name, mac };
        Ok((flags?, settings))
    }

    fn last(&self) -> Identity {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether an error of a system call may mean that the device has disappeared.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::EBADFD))
}

/// The names of the devices in the calling thread's namespace; empty if they cannot be listed.
fn present() -> Vec<String> {
    let links = Rtnl::open().and_then(|rtnl| rtnl.links());
    links.map(|links| links.into_iter().map(|link| link.name).collect()).unwrap_or_default()
}
