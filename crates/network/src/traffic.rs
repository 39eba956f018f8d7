//! Datagrams from one host to another, sent at a rate and counted where they arrive.
//!
//! They are sent and received by sockets of the hosts' own kernels, so that addresses are resolved
//! and packets dropped as any program's. What the socket does not take is counted as unsent.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use programs::cancel::Cancel;
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

use crate::error::Error;
use crate::state::LivingHost;

/// Shortest payload: the mark of the run and the datagram's number.
pub(crate) const PAYLOAD_MIN: u16 = 12;
/// Longest payload, that of an Ethernet frame without fragments.
pub(crate) const PAYLOAD_MAX: u16 = 1_472;
/// Time between the receiver's looks at its end.
const STEP: Duration = Duration::from_millis(20);
const RECEIVE_BUFFER: usize = 8 << 20;

/// Plan of the datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrafficPlan {
    pub(crate) count: u64,
    pub(crate) rate_pps: f64,
    pub(crate) payload_len: u16,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    /// Wait for the datagrams on their way when all are sent.
    pub(crate) wait: Duration,
}

/// Outcome of the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrafficOutcome {
    pub(crate) sent: u64,
    /// The socket did not take them.
    pub(crate) unsent: u64,
    pub(crate) received: u64,
    /// Came more than once.
    pub(crate) duplicated: u64,
}

/// Sends, and waits for what arrives.
pub(crate) fn send(
    from: &LivingHost<'_>,
    to: &LivingHost<'_>,
    plan: &TrafficPlan,
    cancel: &Cancel,
) -> Result<TrafficOutcome, Error> {
    let receiver = bind(to, plan.dst_port)?;
    let sender = bind(from, plan.src_port)?;
    let prepare = || -> io::Result<()> {
        // Without the right to more the default stays.
        let _ = sockopt::set_socket_recv_buffer_size_force(&receiver, RECEIVE_BUFFER);
        receiver.set_read_timeout(Some(STEP))?;
        sender.connect(SocketAddrV4::new(to.plan.ip, plan.dst_port))
    };
    prepare().map_err(Error::io(format!("{} to {}", from.plan.name, to.plan.name)))?;
    let mark = u64::from(std::process::id()).to_be_bytes();
    let mark: [u8; 4] = [mark[4], mark[5], mark[6], mark[7]];
    let is_sent = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut seen = Seen::new(plan.count);
            let mut end = None;
            loop {
                if seen.received >= plan.count || cancel.check().is_err() {
                    return Ok(seen);
                }
                if end.is_none() && is_sent.load(order) {
                    end = Some(Instant::now() + plan.wait);
                }
                if end.is_some_and(|end| Instant::now() > end) {
                    return Ok(seen);
                }
                seen.receive(&receiver, mark)?;
            }
        });
        let sent = send_all(&sender, plan, mark, cancel);
        is_sent.store(true, order);
        let seen: io::Result<Seen> =
            receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (sent, unsent) = sent.map_err(Error::io(format!("sending from {}", from.plan.name)))?;
        let seen = seen.map_err(Error::io(format!("receiving at {}", to.plan.name)))?;
        Ok(TrafficOutcome { sent, unsent, received: seen.received, duplicated: seen.duplicated })
    })
}

fn bind(host: &LivingHost<'_>, port: u16) -> Result<UdpSocket, Error> {
    let address = SocketAddrV4::new(host.plan.ip, port);
    let bound = host.namespace()?.enter(|| UdpSocket::bind(address)).and_then(|socket| socket);
    bound.map_err(Error::io(format!("UDP port {port} of {}", host.plan.name)))
}

/// Number of datagrams sent, and of those that the socket did not take.
fn send_all(
    socket: &UdpSocket,
    plan: &TrafficPlan,
    mark: [u8; 4],
    cancel: &Cancel,
) -> io::Result<(u64, u64)> {
    let mut payload = vec![0; plan.payload_len.max(PAYLOAD_MIN).into()];
    payload[..4].copy_from_slice(&mark);
    let (mut sent, mut unsent) = (0, 0);
    let begun = Instant::now();
    for number in 0..plan.count {
        let due = Duration::try_from_secs_f64(number as f64 / plan.rate_pps);
        let left = due.unwrap_or(Duration::MAX).saturating_sub(begun.elapsed());
        if !left.is_zero() && cancel.sleep(left).is_err() || cancel.check().is_err() {
            break;
        }
        payload[4..12].copy_from_slice(&number.to_be_bytes());
        match rustix::net::send(socket, &payload, SendFlags::empty()) {
            Ok(_) => sent += 1,
            // What the kernel learned of an earlier datagram: nobody at that port, no such host.
            Err(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::AGAIN | Errno::NOBUFS) => {
                unsent += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((sent, unsent))
}

/// Set of the datagrams that have come.
struct Seen {
    bits: Vec<u64>,
    count: u64,
    received: u64,
    duplicated: u64,
}

impl Seen {
    fn new(count: u64) -> Self {
        let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
        Self { bits: vec![0; words], count, received: 0, duplicated: 0 }
    }

    fn receive(&mut self, socket: &UdpSocket, mark: [u8; 4]) -> io::Result<()> {
        let mut payload = [0; PAYLOAD_MAX as usize];
        match socket.recv(&mut payload) {
            Ok(len) => {
                self.note(&payload[..len], mark);
                Ok(())
            }
            Err(error) => {
                let nothing = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                if nothing.contains(&error.kind()) { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Counts a datagram of this run.
    fn note(&mut self, payload: &[u8], mark: [u8; 4]) {
        let Some(([m0, m1, m2, m3, number @ ..], _)) = payload.split_first_chunk::<12>() else {
            return;
        };
        let number = u64::from_be_bytes(*number);
        if [*m0, *m1, *m2, *m3] != mark || number >= self.count {
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        let Some(word) = self.bits.get_mut(word) else { return };
        if *word & bit == 0 {
            *word |= bit;
            self.received += 1;
        } else {
            self.duplicated += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn a_datagram_counts_once_and_strangers_never() {
        let mut seen = Seen::new(100);
        let payload = |mark: u8, number: u64| [&[mark; 4][..], &number.to_be_bytes()].concat();
        for number in [0, 64, 99, 99, 100, u64::MAX] {
            seen.note(&payload(7, number), [7; 4]);
        }
        seen.note(&payload(8, 1), [7; 4]);
        seen.note(&payload(7, 2)[..11], [7; 4]);
        assert_eq!((seen.received, seen.duplicated), (3, 1));
    }
}
