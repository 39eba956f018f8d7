//! A kernel host's UDP socket as a port of the generator: what it sends leaves as datagrams of the
//! host's own kernel, through its addresses, its queues and its shaped link.
//!
//! Frames have the headers of a datagram in front, which are taken off before the socket and put on
//! behind it, so that a session sees whole frames on each of the lab's testbeds. Sending never
//! waits: a full socket takes no more frames, and the generator counts what it could not send. It
//! must never hide a refusal.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
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

use crate::hosts::HEADERS_LEN;

/// The longest frame: a datagram that fits the MTU of Ethernet.
const FRAME_MAX: usize = 1514;

/// Bytes of socket buffer asked for on the receiving side: at 64-byte frames the kernel charges
/// about 768 B each, so this holds some 20,000 frames, more than a stalled machine piles up.
const RECEIVE_BUFFER: usize = 16 << 20;

/// An error of an earlier datagram ("port unreachable") is told in place of the next call's result;
/// more of them than this in a row are not passed over.
const OLD_ERRORS_MAX: usize = 4;

/// One end of a conversation of datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct UdpEnd {
    pub(super) mac: [u8; 6],
    pub(super) address: SocketAddrV4,
}

/// A port over a socket that is bound to `own` and connected to `other`. The socket stays in the
/// network namespace of the thread that makes it.
///
/// # Errors
/// Of the socket calls, for example an address that no interface has.
pub(super) fn open(own: UdpEnd, other: UdpEnd) -> io::Result<Port> {
    let socket = UdpSocket::bind(own.address)?;
    // Without privilege the larger buffer is refused and the system's limit holds.
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    }
    socket.connect(other.address)?;
    let addresses = Ipv4::new(*other.address.ip(), *own.address.ip());
    let headers = FrameBuilder::ethernet(MacAddr(own.mac), MacAddr(other.mac))
        .ipv4(addresses)
        .udp(other.address.port(), own.address.port())
        .build();
    let mut frame = vec![0; FRAME_MAX];
    let known = headers.len().min(HEADERS_LEN);
    frame[..known].copy_from_slice(&headers[..known]);
    let counts = Arc::new(UdpCounts::default());
    let rx = UdpRx { socket: socket.try_clone()?, frame, counts: Arc::clone(&counts) };
    let tx = UdpTx { socket, counts: Arc::clone(&counts) };
    let device = UdpDevice { mac: own.mac, name: own.address.to_string(), counts };
    let (device, rx, tx) = (Box::new(device), Box::new(rx), Box::new(tx));
    Ok(Port { device, rx, tx, more: Vec::new(), claim: None, place: None })
}

/// Counters of the port.
#[derive(Debug, Default)]
struct UdpCounts {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
    tx_errors: AtomicU64,
}

struct UdpDevice {
    mac: [u8; 6],
    name: String,
    counts: Arc<UdpCounts>,
}

impl PortDevice for UdpDevice {
    fn info(&mut self) -> PortInfo {
        PortInfo {
            mac: self.mac,
            mtu: 1500,
            full_duplex: None,
            ..PortInfo::without_device("udp", &self.name, &self.name)
        }
    }

    fn counters(&mut self) -> PortCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PortCounters {
            rx_packets: read(&self.counts.rx_packets),
            rx_bytes: read(&self.counts.rx_bytes),
            tx_packets: read(&self.counts.tx_packets),
            tx_bytes: read(&self.counts.tx_bytes),
            tx_errors: read(&self.counts.tx_errors),
            ..PortCounters::default()
        }
    }
}

struct UdpTx {
    socket: UdpSocket,
    counts: Arc<UdpCounts>,
}

impl UdpTx {
    /// Sends one payload; false when the socket is full.
    fn send(&self, payload: &[u8]) -> Result<bool, PortError> {
        let mut old_errors = 0;
        loop {
            match rustix::net::send(&self.socket, payload, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::CONNREFUSED) if old_errors < OLD_ERRORS_MAX => old_errors += 1,
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => return Ok(false),
                Err(Errno::MSGSIZE) => {
                    self.counts.tx_errors.fetch_add(1, Ordering::Relaxed);
                    return Ok(true);
                }
                Err(error) => return Err(failed("sending a datagram", error)),
            }
        }
    }
}

impl TxQueue for UdpTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        for (taken, frame) in frames.iter().enumerate() {
            let Some(payload) = frame.bytes().get(HEADERS_LEN..) else {
                self.counts.tx_errors.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            if !self.send(payload)? {
                return Ok(taken);
            }
            self.counts.tx_packets.fetch_add(1, Ordering::Relaxed);
            self.counts.tx_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        }
        Ok(frames.len())
    }
}

struct UdpRx {
    socket: UdpSocket,
    /// The headers, and room for a payload.
    frame: Vec<u8>,
    counts: Arc<UdpCounts>,
}

impl UdpRx {
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

impl RxQueue for UdpRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        for taken in 0..max {
            let Some(len) = self.receive()? else { return Ok(taken) };
            batch.push_slice(&self.frame[..len]);
            self.counts.rx_packets.fetch_add(1, Ordering::Relaxed);
            self.counts.rx_bytes.fetch_add(len as u64, Ordering::Relaxed);
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
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
    use std::time::{Duration, Instant};

    use netdev::Port;
    use packet::{Batch, PacketBuf};

    use super::{HEADERS_LEN, UdpEnd, open};

    fn end(last: u8, address: SocketAddrV4) -> UdpEnd {
        UdpEnd { mac: [2, 0, 0, 0, 0, last], address }
    }

    /// Two free addresses of the loopback interface.
    fn addresses() -> [SocketAddrV4; 2] {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let sockets = [UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap()];
        sockets.map(|socket| match socket.local_addr().unwrap() {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(address) => panic!("{address}"),
        })
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
        let [here, there] = addresses();
        let mut a = open(end(1, here), end(2, there)).unwrap();
        let mut b = open(end(2, there), end(1, here)).unwrap();
        let mut frame = vec![0xee; HEADERS_LEN];
        frame.extend_from_slice(b"the payload of it");
        assert_eq!(a.tx(&[PacketBuf::from_slice(&frame)]).unwrap(), 1);
        let came = next(&mut b);
        packet::verify(&came).unwrap();
        assert_eq!(&came[HEADERS_LEN..], b"the payload of it");
        assert_eq!((&came[0..6], &came[6..12]), (&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0, 1][..]));
        assert_eq!(came[34..36], here.port().to_be_bytes());
        assert_eq!(came[36..38], there.port().to_be_bytes());
        assert_eq!((a.counters().tx_packets, b.counters().rx_packets), (1, 1));
    }

    #[test]
    fn a_frame_that_is_no_datagram_is_taken_and_counted() {
        let [here, there] = addresses();
        let mut a = open(end(1, here), end(2, there)).unwrap();
        let frames = [PacketBuf::from_slice(&[0; 20]), PacketBuf::from_slice(&[0; 70_000])];
        assert_eq!(a.tx(&frames).unwrap(), 2);
        assert_eq!(a.counters().tx_errors, 2);
    }

    #[test]
    fn nobody_at_the_other_end_is_no_error() {
        let [here, there] = addresses();
        let mut a = open(end(1, here), end(2, there)).unwrap();
        let frame = PacketBuf::from_slice(&[0; 60]);
        // Each is answered by "port unreachable", which the next call is told.
        for _ in 0..20 {
            assert!(a.tx(std::slice::from_ref(&frame)).unwrap() <= 1);
            assert_eq!(a.rx(&mut Batch::default(), 4).unwrap(), 0);
        }
    }
}
