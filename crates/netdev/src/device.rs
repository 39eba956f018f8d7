//! A Linux network device behind a port: its facts, and whether it still exists.
//!
//! Kept by the device's number, which stays when it is renamed; asked through a socket that stays
//! in the namespace where the port was opened, whatever thread asks. It must never change a device.

use std::io;

use crate::error::PortError;
use crate::port::PortInfo;
use crate::sys::ethtool::link_settings;
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::Rtnl;

const ARPHRD_ETHER: u16 = libc::ARPHRD_ETHER;
const ARPHRD_LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;

/// The device of a port.
#[derive(Debug)]
pub(crate) struct KernelDevice {
    kind: &'static str,
    name: String,
    index: u32,
    control: IoctlSocket,
    mac: [u8; 6],
    mtu: u32,
    gone: bool,
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
        let mtu = control.mtu(name).map_err(failed)?;
        Ok(Self { kind, name: name.to_owned(), index, control, mac, mtu, gone: false })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// [`PortError::Gone`] if the device was found to be gone before.
    pub(crate) fn check(&self) -> Result<(), PortError> {
        if self.gone { Err(PortError::Gone(self.name.clone())) } else { Ok(()) }
    }

    /// Asks the kernel whether the device exists: [`PortError::Gone`] if not, for now and ever.
    pub(crate) fn ask(&mut self) -> Result<(), PortError> {
        match self.control.name(self.index) {
            Err(error) if is_gone(&error) => {
                self.gone = true;
                self.check()
            }
            _ => self.check(),
        }
    }

    /// The facts as they are now; those last known once the device is gone.
    pub(crate) fn info(&mut self, notes: &[String]) -> PortInfo {
        let flags = self.read().unwrap_or_else(|error| {
            self.gone |= is_gone(&error);
            0
        });
        let settings = link_settings(&self.control, &self.name).unwrap_or_default();
        PortInfo {
            name: self.name.clone(),
            kind: self.kind,
            mac: self.mac,
            mtu: self.mtu,
            link_up: !self.gone && flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0,
            speed_bps: settings.speed_bps,
            full_duplex: settings.full_duplex,
            exists: !self.gone,
            notes: notes.to_vec(),
        }
    }

    fn read(&mut self) -> io::Result<i32> {
        self.name = self.control.name(self.index)?;
        self.mac = self.control.hardware(&self.name)?.1;
        self.mtu = self.control.mtu(&self.name)?;
        self.control.flags(&self.name)
    }
}

/// Whether an error of a system call may mean that the device has disappeared.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::EBADFD))
}

/// The names of the devices in the calling thread's namespace; empty if not even that is told.
fn present() -> Vec<String> {
    let links = Rtnl::open().and_then(|rtnl| rtnl.links());
    links.map(|links| links.into_iter().map(|link| link.name).collect()).unwrap_or_default()
}
