//! ICMP echo over a raw socket, for where the program `ping` is not.
//!
//! A socket stays in the network namespace of the thread that opens it, and asks and answers with
//! that kernel's addresses.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};

/// Bytes of a request: those that `ping` sends.
const REQUEST_LEN: usize = 64;

/// Bytes of a packet that are looked at.
const PACKET_MAX: usize = 512;

/// A socket for echo requests, whose answers it tells from those of other processes.
#[derive(Debug)]
pub struct EchoSocket {
    socket: OwnedFd,
    identifier: [u8; 2],
}

impl EchoSocket {
    /// A socket that waits for each packet so long.
    ///
    /// # Errors
    /// Without the right to raw sockets.
    pub fn open(wait: Duration) -> io::Result<Self> {
        let protocol = Some(ipproto::ICMP);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(wait))?;
        let [low, high, ..] = std::process::id().to_le_bytes();
        Ok(Self { socket, identifier: [low, high] })
    }

    /// Sends a request of that number.
    ///
    /// # Errors
    /// The kernel's: there may be no way to the host.
    pub fn send(&self, to: Ipv4Addr, sequence: u16) -> io::Result<()> {
        let request = request(self.identifier, sequence);
        let to = SocketAddrV4::new(to, 0);
        rustix::net::sendto(&self.socket, &request, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// Waits for the next packet: the sender of an answer to a request of that number; none where
    /// nothing came in time, or another packet.
    ///
    /// # Errors
    /// The kernel's, but what it learned of an earlier request.
    pub fn receive(&self, sequence: u16) -> io::Result<Option<Ipv4Addr>> {
        let mut packet = [0; PACKET_MAX];
        match rustix::net::recv(&self.socket, &mut packet[..], RecvFlags::empty()) {
            Ok((length, _)) => {
                Ok(reply(&packet[..length.min(PACKET_MAX)], self.identifier, sequence))
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn request(identifier: [u8; 2], sequence: u16) -> [u8; REQUEST_LEN] {
    let mut request = [0; REQUEST_LEN];
    request[0] = 8;
    request[4..6].copy_from_slice(&identifier);
    request[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = packet::checksum::ones_complement(&request);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
    request
}

/// Sender of the answer to the request, if the packet is such an answer. A raw socket delivers the
/// IPv4 header too.
fn reply(packet: &[u8], identifier: [u8; 2], sequence: u16) -> Option<Ipv4Addr> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let icmp = packet.get(header..)?;
    let is_reply = icmp.first() == Some(&0)
        && icmp.get(4..6) == Some(&identifier[..])
        && icmp.get(6..8) == Some(&sequence.to_be_bytes()[..]);
    is_reply.then(|| Ipv4Addr::from(from))
}

#[cfg(test)]
mod tests {
    use super::{reply, request};

    #[test]
    fn only_the_answer_of_its_round_is_taken() {
        let sent = request([1, 2], 9);
        assert_eq!(packet::checksum::ones_complement(&sent), 0);
        let mut packet = vec![0x45; 20];
        packet[12..16].copy_from_slice(&[10, 0, 0, 7]);
        packet.extend_from_slice(&sent);
        assert_eq!(reply(&packet, [1, 2], 9), None, "that is the request itself");
        packet[20] = 0;
        assert_eq!(reply(&packet, [1, 2], 9), Some([10, 0, 0, 7].into()));
        assert_eq!(reply(&packet, [1, 2], 8), None);
        assert_eq!(reply(&packet, [1, 3], 9), None);
        for cut in 0..28 {
            assert_eq!(reply(&packet[..cut], [1, 2], 9), None, "{cut}");
        }
        assert_eq!(reply(&[0x4f; 20], [1, 2], 9), None);
    }
}
