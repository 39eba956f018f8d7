//! A kernel host's UDP socket as a port of the generator: what it sends leaves as datagrams of the
//! host's own kernel, through its addresses, its queues and its shaped link.
//!
//! Frames have the headers of a datagram in front, which are taken off before the socket and put on
//! behind it, so that a session sees whole frames on each of the lab's testbeds. Sending never
//! waits: a full socket takes no more frames, and the generator counts what it could not send. It
//! must never hide a refusal.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netdev::{Port, PortCounters, PortDevice, PortError, PortInfo, RxQueue, TxQueue};
use openflow::MacAddr;
use packet::build::{FrameBuilder, Ipv4};
use packet::checksum::ones_complement;
use packet::{Batch, PacketBuf};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use crate::hosts::{HEADERS_LEN, HostAddress};

/// The longest frame: a datagram that fits the MTU of Ethernet.
const FRAME_MAX: usize = 1514;

/// Bytes of socket buffer asked for on the receiving side: at 64-byte frames the kernel charges
/// about 768 B each, so this holds some 20,000 frames, more than a stalled machine piles up.
const RECEIVE_BUFFER: usize = 16 << 20;

/// An error of an earlier datagram ("port unreachable") is told in place of the next call's result;
/// more of them than this in a row are not passed over.
const OLD_ERRORS_MAX: usize = 4;

/// The socket, which is each of the three parts of its port.
#[derive(Clone)]
struct Datagrams {
    socket: Arc<UdpSocket>,
    mac: [u8; 6],
    /// The headers of what is received, and room for a payload.
    frame: Vec<u8>,
    /// Frames that can never be sent.
    tx_errors: Arc<AtomicU64>,
}

/// A port at these UDP ports of both hosts, in the network namespace of the calling thread.
pub(super) fn open(
    [own, other]: [HostAddress; 2],
    [own_port, other_port]: [u16; 2],
) -> io::Result<Port> {
    let socket = UdpSocket::bind((own.ip, own_port))?;
    // Without privilege the larger buffer is refused and the system's limit holds.
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    }
    socket.connect((other.ip, other_port))?;
    let mut frame = FrameBuilder::ethernet(MacAddr(own.mac), MacAddr(other.mac))
        .ipv4(Ipv4::new(other.ip, own.ip))
        .udp(other_port, own_port)
        .build();
    frame.resize(FRAME_MAX, 0);
    let (socket, mac, tx_errors) = (Arc::new(socket), own.mac, Arc::default());
    let part = Datagrams { socket, mac, frame, tx_errors };
    let (device, rx, tx) = (Box::new(part.clone()), Box::new(part.clone()), Box::new(part));
    Ok(Port { device, rx, tx, more: Vec::new(), claim: None, place: None })
}

impl Datagrams {
    /// Sends one payload; false when the socket is full.
    fn send(&self, payload: &[u8]) -> Result<bool, PortError> {
        for _ in 0..=OLD_ERRORS_MAX {
            match rustix::net::send(&self.socket, payload, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
                Err(Errno::MSGSIZE) => {
                    self.tx_errors.fetch_add(1, Ordering::Relaxed);
                    return Ok(true);
                }
                Err(error) => return Err(failed("sending a datagram", error)),
            }
        }
        Ok(false)
    }

    /// The length of the next frame; `None` when none waits.
    fn receive(&mut self) -> Result<Option<usize>, PortError> {
        let payload = &mut self.frame[HEADERS_LEN..];
        for _ in 0..=OLD_ERRORS_MAX {
            match rustix::net::recv(&self.socket, &mut *payload, RecvFlags::DONTWAIT) {
                Ok((received, _)) => {
                    let len = HEADERS_LEN + received.min(payload.len());
                    write_lengths(&mut self.frame[..len]);
                    return Ok(Some(len));
                }
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(failed("receiving a datagram", error)),
            }
        }
        Ok(None)
    }
}

impl PortDevice for Datagrams {
    fn info(&mut self) -> PortInfo {
        let name = self.socket.local_addr().map_or_else(|_| "udp".to_owned(), |at| at.to_string());
        PortInfo {
            mac: self.mac,
            mtu: 1500,
            full_duplex: None,
            ..PortInfo::without_device("udp", &name, &name)
        }
    }

    fn counters(&mut self) -> PortCounters {
        let tx_errors = self.tx_errors.load(Ordering::Relaxed);
        PortCounters { tx_errors, ..PortCounters::default() }
    }
}

impl TxQueue for Datagrams {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        for (taken, frame) in frames.iter().enumerate() {
            let Some(payload) = frame.bytes().get(HEADERS_LEN..) else {
                self.tx_errors.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            if !self.send(payload)? {
                return Ok(taken);
            }
        }
        Ok(frames.len())
    }
}

impl RxQueue for Datagrams {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        for taken in 0..max {
            let Some(len) = self.receive()? else { return Ok(taken) };
            batch.push_slice(&self.frame[..len]);
        }
        Ok(max)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// Writes the lengths and the header checksum of a frame; a UDP checksum of zero is none (RFC 768).
fn write_lengths(frame: &mut [u8]) {
    let Some((headers, payload)) = frame.split_first_chunk_mut::<HEADERS_LEN>() else { return };
    let udp_len = (8 + payload.len()) as u16;
    headers[16..18].copy_from_slice(&(20 + udp_len).to_be_bytes());
    headers[24..26].fill(0);
    let sum = ones_complement(&headers[14..34]).to_be_bytes();
    headers[24..26].copy_from_slice(&sum);
    headers[38..40].copy_from_slice(&udp_len.to_be_bytes());
    headers[40..42].fill(0);
}

fn failed(what: &'static str, error: Errno) -> PortError {
    PortError::Io { what: what.into(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    use netdev::Port;
    use packet::{Batch, PacketBuf};

    use super::{HEADERS_LEN, open};
    use crate::hosts::HostAddress;

    /// Hosts that are joined by the loopback interface, at free ports: of each its port.
    fn pair() -> ([Port; 2], [u16; 2]) {
        let [here, there] =
            [1, 2].map(|last| HostAddress { ip: Ipv4Addr::LOCALHOST, mac: [2, 0, 0, 0, 0, last] });
        let free = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [near, far] = free.map(|socket| socket.local_addr().unwrap().port());
        let ports = [open([here, there], [near, far]), open([there, here], [far, near])];
        (ports.map(Result::unwrap), [near, far])
    }

    fn next(port: &mut Port) -> Vec<u8> {
        let (mut batch, begun) = (Batch::default(), Instant::now());
        while port.rx(&mut batch, 1).unwrap() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "no frame");
            std::thread::sleep(Duration::from_millis(1));
        }
        batch.frames()[0].bytes().to_vec()
    }

    #[test]
    fn a_frame_crosses_the_kernel_whole_with_right_headers() {
        let ([mut a, mut b], [here, there]) = pair();
        let mut frame = vec![0xee; HEADERS_LEN];
        frame.extend_from_slice(b"the payload of it");
        assert_eq!(a.tx(&[PacketBuf::from_slice(&frame)]).unwrap(), 1);
        let came = next(&mut b);
        packet::verify(&came).unwrap();
        assert_eq!(&came[HEADERS_LEN..], b"the payload of it");
        assert_eq!((&came[0..6], &came[6..12]), (&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0, 1][..]));
        assert_eq!(came[34..36], here.to_be_bytes());
        assert_eq!(came[36..38], there.to_be_bytes());
    }

    #[test]
    fn a_frame_that_is_no_datagram_is_taken_and_counted() {
        let ([mut a, _b], _) = pair();
        let frames = [PacketBuf::from_slice(&[0; 20]), PacketBuf::from_slice(&[0; 70_000])];
        assert_eq!(a.tx(&frames).unwrap(), 2);
        assert_eq!(a.counters().tx_errors, 2);
    }

    #[test]
    fn nobody_at_the_other_end_is_no_error() {
        let ([mut a, b], _) = pair();
        drop(b);
        let frame = PacketBuf::from_slice(&[0; 60]);
        // Each is answered by "port unreachable", which the next call is told.
        for _ in 0..20 {
            assert!(a.tx(std::slice::from_ref(&frame)).unwrap() <= 1);
            assert_eq!(a.rx(&mut Batch::default(), 4).unwrap(), 0);
        }
    }
}
