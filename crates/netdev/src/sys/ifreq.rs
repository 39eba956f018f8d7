//! The old device ioctls (`SIOCGIF...`, `SIOCETHTOOL`): one call for one fact, with no message to
//! build, on a socket that stays in the namespace where it was opened.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// A socket that serves only for ioctls.
#[derive(Debug)]
pub(crate) struct IoctlSocket {
    fd: OwnedFd,
}

impl IoctlSocket {
    /// A socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let open = |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let fd = open(AddressFamily::INET).or_else(|_| open(AddressFamily::UNIX))?;
        Ok(Self { fd })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The device's number; `ENODEV` when there is none of that name.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        let request = ioctl(self.fd(), libc::SIOCGIFINDEX, named(name)?)?;
        // SAFETY: SIOCGIFINDEX has filled the number.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        u32::try_from(index).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The name that the device of that number has now; `ENODEV` once it has disappeared.
    pub(crate) fn name(&self, index: u32) -> io::Result<String> {
        name(self.fd(), index)
    }

    /// `IFF_*` flags.
    pub(crate) fn flags(&self, name: &str) -> io::Result<i32> {
        let request = ioctl(self.fd(), libc::SIOCGIFFLAGS, named(name)?)?;
        // SAFETY: SIOCGIFFLAGS has filled the flags.
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }))
    }

    /// Sets the device administratively up.
    pub(crate) fn set_up(&self, name: &str) -> io::Result<()> {
        let mut request = ioctl(self.fd(), libc::SIOCGIFFLAGS, named(name)?)?;
        // SAFETY: SIOCGIFFLAGS has filled the flags.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        // IFF_UP is 1 and fits.
        request.ifr_ifru.ifru_flags = flags | 1;
        ioctl(self.fd(), libc::SIOCSIFFLAGS, request).map(drop)
    }

    /// The hardware type (`ARPHRD_*`) and address.
    pub(crate) fn hardware(&self, name: &str) -> io::Result<(u16, [u8; 6])> {
        let request = ioctl(self.fd(), libc::SIOCGIFHWADDR, named(name)?)?;
        // SAFETY: SIOCGIFHWADDR has filled the address.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = byte(from);
        }
        Ok((address.sa_family, mac))
    }

    /// The MTU in bytes.
    pub(crate) fn mtu(&self, name: &str) -> io::Result<u32> {
        let request = ioctl(self.fd(), libc::SIOCGIFMTU, named(name)?)?;
        // SAFETY: SIOCGIFMTU has filled the MTU.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Sets the MTU in bytes.
    pub(crate) fn set_mtu(&self, name: &str, mtu: u32) -> io::Result<()> {
        let mut request = named(name)?;
        request.ifr_ifru.ifru_mtu =
            i32::try_from(mtu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        ioctl(self.fd(), libc::SIOCSIFMTU, request).map(drop)
    }

    /// `SIOCETHTOOL` with a command of whole words, which the kernel changes in place. The command
    /// must be as long as the kernel believes it to be from its own length fields; the functions
    /// of `ethtool.rs`, the only callers, see to that. Returns the ioctl's own result.
    pub(super) fn ethtool(&self, name: &str, command: &mut [u32]) -> io::Result<i32> {
        let mut request = named(name)?;
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: the pointer is valid and writable for the whole command during the call.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
    }
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The name that the device of number `index` has in the namespace of the socket `fd`.
pub(crate) fn name(fd: BorrowedFd<'_>, index: u32) -> io::Result<String> {
    let mut request = named("")?;
    request.ifr_ifru.ifru_ifindex =
        i32::try_from(index).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let request = ioctl(fd, libc::SIOCGIFNAME, request)?;
    let bytes: Vec<u8> =
        request.ifr_name.iter().map(|&c| byte(c)).take_while(|&c| c != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A character of C, which has a sign on some machines only.
pub(super) fn byte(character: libc::c_char) -> u8 {
    let [byte] = character.to_ne_bytes();
    byte
}

/// A request about the device `name`; an error when no device can have that name.
pub(super) fn named(name: &str) -> io::Result<libc::ifreq> {
    let bytes = name.as_bytes();
    if bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: all-zero bytes are a valid `ifreq`: numbers, arrays of them and null pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    Ok(request)
}

/// Carries out an ioctl that reads and writes nothing but the `ifreq` itself.
fn ioctl(
    fd: BorrowedFd<'_>,
    number: libc::Ioctl,
    mut request: libc::ifreq,
) -> io::Result<libc::ifreq> {
    // SAFETY: the requests used here take a pointer to one `ifreq`, valid for the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), number, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
}
