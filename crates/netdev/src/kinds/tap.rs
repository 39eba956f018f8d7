//! `tap`: a TAP device that the port makes, brings up and, when dropped, removes. What the kernel's
//! stack sends to the device is received here, and the other way round.

use std::io;
use std::os::fd::BorrowedFd;

use packet::{Batch, PacketBuf};

use crate::device::{KernelDevice, is_gone};
use crate::error::PortError;
use crate::port::{LinkNotification, Port, PortCounters, PortInfo};
use crate::soft_offload::SoftOffload;
use crate::spec::PortSpec;
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::Rtnl;
use crate::sys::tun::Tun;

const FIX: &str = "give the program CAP_NET_ADMIN";
/// An Ethernet header and one VLAN tag.
const FRAME_OVERHEAD: usize = 18;
const HEADER_LEN: usize = 14;

/// A TAP device.
#[derive(Debug)]
pub struct TapPort {
    device: KernelDevice,
    tun: Tun,
    soft_offload: SoftOffload,
    rtnl: Rtnl,
    /// What the device had dropped before the port was opened, if it was there before.
    drops_before: u64,
    counters: PortCounters,
}

/// The kernel's rule for names of devices: it answers a wrong one with a number that says nothing.
fn check_name(spec: &PortSpec) -> Result<(), PortError> {
    let name = spec.name();
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    if (1..libc::IFNAMSIZ).contains(&name.len())
        && !name.contains(wrong)
        && name != "."
        && name != ".."
    {
        return Ok(());
    }
    let rule = "no device can have this name; use 1 to 15 bytes without slash, colon and blank";
    Err(PortError::Io { what: format!("tap:{name}"), source: io::Error::other(rule) })
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    check_name(spec)?;
    let vnet = spec.flag("vnet_hdr", false)?;
    let mtu = spec.number("mtu", 68..=65_521)?;
    let what = format!("tap:{}", spec.name());
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::EBUSY) => PortError::InUse(what.clone()),
        Some(libc::EINVAL) => PortError::Io {
            what: what.clone(),
            source: io::Error::other("a device of that name exists and is no TAP device like it"),
        },
        _ => PortError::from_io(what.clone(), FIX, source),
    };
    let (tun, name) = Tun::open(spec.name(), vnet).map_err(failed)?;
    let control = IoctlSocket::open().map_err(failed)?;
    if let Some(mtu) = mtu {
        control.set_mtu(&name, mtu).map_err(failed)?;
    }
    control.set_up(&name).map_err(failed)?;
    let device = KernelDevice::find("tap", &name)?;
    let rtnl = Rtnl::open().map_err(|error| failed(error.into()))?;
    let drops_before = drops(&rtnl, &device);
    let counters = PortCounters::default();
    Ok(Box::new(TapPort {
        device,
        tun,
        soft_offload: SoftOffload::new(),
        rtnl,
        drops_before,
        counters,
    }))
}

/// What the kernel dropped because nobody read the device fast enough.
fn drops(rtnl: &Rtnl, device: &KernelDevice) -> u64 {
    rtnl.link_at(device.index()).map(|link| link.stats.tx_dropped).unwrap_or_default()
}

impl Port for TapPort {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.device.check()?;
        let before = batch.len();
        while batch.len() - before < max {
            if self.soft_offload.next_segment(batch, &mut self.counters) {
                continue;
            }
            match self.tun.read(self.soft_offload.buffer()) {
                Ok(end) => self.soft_offload.process(end, None, batch, &mut self.counters),
                Err(error) if is_gone(&error) && batch.len() == before => {
                    self.device.ask()?;
                    break;
                }
                // None waits, or the device is down; what has come is handed over first.
                Err(_) => break,
            }
        }
        Ok(batch.len() - before)
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.device.check()?;
        let longest = self.device.mtu() as usize + FRAME_OVERHEAD;
        let mut taken = 0;
        for frame in frames {
            if frame.len() > longest || frame.len() < HEADER_LEN {
                self.counters.tx_errors += 1;
                taken += 1;
                continue;
            }
            match self.tun.write(frame.bytes()) {
                Ok(()) => self.counters.count_tx(frame.len()),
                Err(error) if is_gone(&error) => {
                    self.device.ask()?;
                    break;
                }
                // The device is down, or the kernel has no memory for it: not taken.
                Err(_) => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tun.fd())
    }

    fn info(&mut self) -> PortInfo {
        self.device.info(&[])
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Netlink(self.device.index())
    }

    fn counters(&mut self) -> PortCounters {
        let drops = drops(&self.rtnl, &self.device).saturating_sub(self.drops_before);
        self.counters.rx_drops = self.counters.rx_drops.max(drops);
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_device_can_have_is_told_with_the_rule() {
        for spec in ["tap:a/b", "tap:sixteen-bytes-xx", "tap:a b"] {
            let spec: PortSpec = spec.parse().unwrap();
            let told = open(&spec).err().unwrap().to_string();
            assert!(told.contains("use 1 to 15 bytes"), "{told}");
        }
        let spec: PortSpec = "tap:fifteen-bytes-x".parse().unwrap();
        assert!(check_name(&spec).is_ok());
    }
}
