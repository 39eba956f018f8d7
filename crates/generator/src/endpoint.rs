//! Traffic endpoints: the trait that sends and receives UDP payloads, and its implementation over
//! kernel sockets.
//!
//! Sending never waits, because a sender that waits would close the open loop: a full socket or
//! port refuses the payload, and the refusal is counted. It must never hide a refusal.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

/// The result of sending one payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The kernel or the port took it.
    Taken,
    /// The queue below was full.
    Refused,
}

/// Sends and receives UDP payloads. Two endpoints of one host can share a socket.
pub trait TrafficEndpoint: Send {
    /// Sends one payload without waiting.
    ///
    /// # Errors
    /// Of the socket or port; a full queue is [`SendOutcome::Refused`] and no error.
    fn send(&mut self, payload: &[u8]) -> io::Result<SendOutcome>;

    /// Waits up to the endpoint's own wait (tens of milliseconds) for one payload, writes it to
    /// `buffer` and returns its length; `None` when none came.
    ///
    /// # Errors
    /// Of the socket or port.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;
}

/// How long [`UdpEndpoint::receive`] waits.
pub const RECEIVE_WAIT: Duration = Duration::from_millis(20);

/// Bytes of socket buffer asked for on the receiving side: at 64-byte frames the kernel charges
/// about 768 B each, so this holds some 20,000 frames, more than a stalled machine piles up.
const RECEIVE_BUFFER: usize = 16 << 20;

/// A connected kernel UDP socket. It stays in the network namespace of the thread that made it.
#[derive(Debug)]
pub struct UdpEndpoint {
    socket: UdpSocket,
}

impl UdpEndpoint {
    /// Binds to `local` and connects to `remote`.
    ///
    /// # Errors
    /// Of the socket calls, for example an address that no interface has.
    pub fn connect(local: SocketAddrV4, remote: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        // Without privilege the larger buffer is refused and the system's limit holds.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
        }
        socket.set_read_timeout(Some(RECEIVE_WAIT))?;
        socket.connect(remote)?;
        Ok(Self { socket })
    }

    /// Two endpoints on the loopback interface, connected to each other.
    ///
    /// # Errors
    /// Of the socket calls.
    pub fn loopback_pair() -> io::Result<(Self, Self)> {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let make = || -> io::Result<(UdpSocket, std::net::SocketAddr)> {
            let socket = UdpSocket::bind(any)?;
            socket.set_read_timeout(Some(RECEIVE_WAIT))?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let ((a, a_address), (b, b_address)) = (make()?, make()?);
        a.connect(b_address)?;
        b.connect(a_address)?;
        Ok((Self { socket: a }, Self { socket: b }))
    }

    /// A second handle to the same socket, for another thread.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn share(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()? })
    }
}

impl TrafficEndpoint for UdpEndpoint {
    fn send(&mut self, payload: &[u8]) -> io::Result<SendOutcome> {
        loop {
            match rustix::net::send(&self.socket, payload, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(SendOutcome::Taken),
                Err(Errno::INTR) => {}
                // A port unreachable that arrived earlier is reported here as "refused".
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => {
                    return Ok(SendOutcome::Refused);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) => {
                let is_passing = matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionRefused
                );
                if is_passing { Ok(None) } else { Err(error) }
            }
        }
    }
}
