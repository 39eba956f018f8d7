//! TAP devices: making one, and reading and writing its frames.
//!
//! The device lives as long as the descriptor, unless somebody made it persistent before; nothing
//! is left behind.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::ifreq::{byte, named};
use super::netns::Namespace;
use crate::offload::VNET_LEN;

/// Makes TAP devices.
const DEVICE: &str = "/dev/net/tun";

/// The descriptor of a TAP device, by which its frames are read and written.
#[derive(Debug)]
pub(crate) struct Tun {
    fd: OwnedFd,
    vnet: bool,
}

impl Tun {
    /// Makes the TAP device `name` (`%d` in it becomes a free number) in the calling thread's
    /// namespace and returns its true name. With `vnet` the kernel leaves checksums and
    /// segmentation to us; without, each frame comes complete.
    pub(crate) fn open(name: &str, vnet: bool) -> io::Result<(Self, String)> {
        Self::attach(name, vnet, 0)
    }

    /// As [`Tun::open`], but each call adds a queue to the device, which the first one makes.
    pub(crate) fn open_queue(name: &str, vnet: bool) -> io::Result<(Self, String)> {
        Self::attach(name, vnet, libc::IFF_MULTI_QUEUE)
    }

    fn attach(name: &str, vnet: bool, queues_flag: libc::c_int) -> io::Result<(Self, String)> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("{DEVICE}: {error}"))
        })?;
        let mut request = named(name)?;
        let vnet_flag = if vnet { libc::IFF_VNET_HDR } else { 0 };
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | vnet_flag | queues_flag;
        // All of them are below 2^15.
        request.ifr_ifru.ifru_flags = flags as i16;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, valid for the call.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let tun = Self { fd, vnet };
        if vnet {
            tun.leave_offloads_open()?;
        }
        Ok((tun, name_in(&request)))
    }

    /// Has the device stay when its descriptors are closed, or go with them.
    pub(crate) fn set_persistent(&self, stays: bool) -> io::Result<()> {
        // SAFETY: TUNSETPERSIST takes a number.
        let done = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETPERSIST, libc::c_ulong::from(stays))
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Has the device drop whatever the kernel sends by it, of which a reader gets nothing.
    pub(crate) fn drop_sent(&self) -> io::Result<()> {
        // `struct tun_filter`: flags, the number of addresses, and these. Frames for them alone
        // pass, and none is for address zero.
        const NONE: [u16; 5] = [0, 1, 0, 0, 0];
        // SAFETY: TUNSETTXFILTER reads a filter of one address, valid for the call.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETTXFILTER, NONE.as_ptr()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The name that the device has now, in whatever namespace; `EBADFD` once it was deleted.
    pub(crate) fn name(&self) -> io::Result<String> {
        let mut request = named("")?;
        // SAFETY: TUNGETIFF writes one `ifreq`, valid for the call.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNGETIFF, &raw mut request) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(name_in(&request)) }
    }

    /// The namespace that the device is in now; `EBADFD` once it was deleted.
    pub(crate) fn namespace(&self) -> io::Result<Namespace> {
        // SAFETY: TUNGETDEVNETNS takes nothing, and gives a descriptor.
        let fd = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNGETDEVNETNS) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is fresh and nobody else's.
        Ok(Namespace::of_fd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn leave_offloads_open(&self) -> io::Result<()> {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let set = |flags: libc::c_uint| {
            // SAFETY: TUNSETOFFLOAD takes a number.
            unsafe {
                libc::ioctl(self.fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags))
            }
        };
        // UDP segmentation came with Linux 6.2 and is refused as a whole before.
        if set(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6) < 0 && set(tcp) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Reads a virtio-net header (zero when the device has none) and a frame; returns the length of
    /// both together.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        if self.vnet {
            return Ok(rustix::io::read(&self.fd, into)?);
        }
        let Some((header, frame)) = into.split_first_chunk_mut::<VNET_LEN>() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        *header = [0; VNET_LEN];
        Ok(VNET_LEN + rustix::io::readv(&self.fd, &mut [IoSliceMut::new(frame)])?)
    }

    /// Whether frames have a virtio-net header.
    pub(crate) fn has_vnet(&self) -> bool {
        self.vnet
    }

    /// Writes one frame, with its virtio-net header where the device has such.
    pub(crate) fn write(&self, header: &[u8; VNET_LEN], frame: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(header), IoSlice::new(frame)];
        let parts = if self.vnet { &parts[..] } else { &parts[1..] };
        Ok(rustix::io::writev(&self.fd, parts).map(drop)?)
    }
}

fn name_in(request: &libc::ifreq) -> String {
    let bytes: Vec<u8> = request.ifr_name.iter().map(|&c| byte(c)).collect();
    super::netlink::read_text(&bytes)
}
