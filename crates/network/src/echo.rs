//! ICMP echo from every host to every other, without the program `ping`.
//!
//! Each host has a raw socket of its own kernel and a thread; the requests of a round leave
//! together and are waited for together, so that a network that loses everything costs one timeout
//! a round and not one a pair.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};

use crate::error::Error;
use crate::state::LivingHost;

const REQUEST_LEN: usize = 64;
/// Longest wait of a socket before the thread looks at its clock.
const STEP: Duration = Duration::from_millis(100);

/// Count of the answers between two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EchoCount {
    pub(crate) sent: u32,
    pub(crate) received: u32,
    /// Of the fastest, in milliseconds.
    pub(crate) rtt_ms: Option<f64>,
}

/// Sends `count` requests from each of `hosts` to each other; the rows are the senders.
pub(crate) fn ping_all(
    hosts: &[LivingHost<'_>],
    count: u16,
    timeout: Duration,
) -> Result<Vec<Vec<Option<EchoCount>>>, Error> {
    let targets: Vec<Ipv4Addr> = hosts.iter().map(|host| host.plan.ip).collect();
    std::thread::scope(|scope| {
        let senders: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(own, host)| {
                let targets = &targets;
                scope.spawn(move || Sender::open(host)?.rounds(own, targets, count, timeout))
            })
            .collect();
        let joined = senders
            .into_iter()
            .map(|sender| sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect()
    })
}

/// The requests of one host.
struct Sender {
    socket: OwnedFd,
    name: String,
    identifier: [u8; 2],
}

impl Sender {
    fn open(host: &LivingHost<'_>) -> Result<Self, Error> {
        let open = || -> std::io::Result<OwnedFd> {
            let protocol = Some(ipproto::ICMP);
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol)?;
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(STEP))?;
            Ok(socket)
        };
        let name = host.plan.name.clone();
        let socket = host.namespace()?.enter(open).and_then(|socket| socket);
        let socket = socket.map_err(Error::io(format!("a raw socket of {name}")))?;
        let [low, high, ..] = std::process::id().to_le_bytes();
        Ok(Self { socket, name, identifier: [low, high] })
    }

    fn rounds(
        &self,
        own: usize,
        targets: &[Ipv4Addr],
        count: u16,
        timeout: Duration,
    ) -> Result<Vec<Option<EchoCount>>, Error> {
        let mut row: Vec<Option<EchoCount>> =
            (0..targets.len()).map(|at| (at != own).then(EchoCount::default)).collect();
        for round in 0..count {
            self.round(round, targets, &mut row, timeout)?;
        }
        Ok(row)
    }

    /// One request to each target, and the wait for what comes back.
    fn round(
        &self,
        round: u16,
        targets: &[Ipv4Addr],
        row: &mut [Option<EchoCount>],
        timeout: Duration,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let mut waiting = Vec::with_capacity(targets.len());
        for (at, target) in targets.iter().enumerate() {
            let Some(Some(cell)) = row.get_mut(at) else { continue };
            cell.sent += 1;
            let request = request(self.identifier, round);
            let to = SocketAddrV4::new(*target, 0);
            match rustix::net::sendto(&self.socket, &request, SendFlags::empty(), &to) {
                Ok(_) => waiting.push((at, *target, Instant::now())),
                // No way there, or its neighbour did not answer: lost, as the row says.
                Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => {}
                Err(error) => {
                    let what = format!("an echo request from {} to {target}", self.name);
                    return Err(Error::io(what)(error.into()));
                }
            }
        }
        let mut packet = [0; 512];
        while !waiting.is_empty() && begun.elapsed() < timeout {
            let length = match rustix::net::recv(&self.socket, &mut packet[..], RecvFlags::empty())
            {
                Ok((length, _)) => length.min(packet.len()),
                // What the kernel learned of an earlier request; the row has it as lost.
                Err(Errno::AGAIN | Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH) => {
                    continue;
                }
                Err(error) => {
                    let what = format!("waiting for echo replies at {}", self.name);
                    return Err(Error::io(what)(error.into()));
                }
            };
            let Some(from) = reply(&packet[..length], self.identifier, round) else { continue };
            let Some(place) = waiting.iter().position(|(_, target, _)| *target == from) else {
                continue;
            };
            let (at, _, sent) = waiting.swap_remove(place);
            if let Some(Some(cell)) = row.get_mut(at) {
                cell.received += 1;
                let rtt_ms = sent.elapsed().as_secs_f64() * 1e3;
                cell.rtt_ms = Some(cell.rtt_ms.map_or(rtt_ms, |least| least.min(rtt_ms)));
            }
        }
        Ok(())
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
