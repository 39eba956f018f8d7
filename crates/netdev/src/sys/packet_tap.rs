//! A socket that sees every packet of a network namespace, those that are sent too.
//!
//! For counting, not for forwarding: it copies what it is asked for, and what does not fit into its
//! buffer is dropped for the tap alone, and counted. It must never hold a packet up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, sockopt};

use super::packet_socket::RxRingDrops;

/// The tap.
#[derive(Debug)]
pub struct PacketTap {
    fd: Arc<OwnedFd>,
    drops: RxRingDrops,
}

impl PacketTap {
    /// Sees the packets of all devices of the calling thread's namespace from now on, and holds
    /// some `buffer_max` bytes of them.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`.
    pub fn open(buffer_max: usize) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let all = Some(eth::ALL);
        let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, all)?;
        // Without the right to more the system's limit holds, and more is dropped and counted.
        if sockopt::set_socket_recv_buffer_size_force(&fd, buffer_max).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, buffer_max)?;
        }
        let fd = Arc::new(fd);
        Ok(Self { drops: RxRingDrops::of(Arc::clone(&fd)), fd })
    }

    /// The beginning of the next packet: how many bytes `into` has of it, and its length. `None`
    /// when none waits.
    ///
    /// # Errors
    /// `ENETDOWN` once after a device went down.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<Option<(usize, usize)>> {
        let room = into.len();
        match rustix::net::recv(&self.fd, into, RecvFlags::TRUNC) {
            Ok((held, len)) => Ok(Some((held.min(room), len))),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Packets that did not fit since the tap was opened.
    pub fn drops(&mut self) -> u64 {
        self.drops.total()
    }
}

impl AsFd for PacketTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::PacketTap;
    use crate::sys::link::Rtnl;
    use crate::sys::netns::Namespace;

    #[test]
    #[ignore = "needs root"]
    fn a_packet_that_is_sent_is_seen_and_cut_to_the_room() {
        let ns = Namespace::new().expect("needs root");
        Rtnl::open_in(&ns).unwrap().set_up("lo", true).unwrap();
        let mut tap = ns.enter(|| PacketTap::open(1 << 20)).unwrap().unwrap();
        let send = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.send_to(&[7; 100], (Ipv4Addr::LOCALHOST, 9)).unwrap()
        };
        assert_eq!(ns.enter(send).unwrap(), 100);
        let mut headers = [0; 64];
        // Once on its way out of the loopback device, and once on its way in.
        assert_eq!(tap.receive(&mut headers).unwrap(), Some((64, 142)));
        assert_eq!(headers[63], 7);
        assert_eq!(tap.drops(), 0);
    }
}
