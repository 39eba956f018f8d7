//! ICMP echo of our own over a raw kernel socket, for where `ping` is not installed.
//!
//! One request after the other, as `ping` does it, from inside host 1's namespace; the answer
//! comes from host 2's kernel.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};

use super::{MethodContext, TrialError};
use crate::host_program::ECHO_INTERVAL;
use crate::settings::Settings;

const HEADER: usize = 8;
const PAYLOAD: usize = 56;
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// Echo requests, where the cell does not count them.
const REQUESTS: u32 = 100;

/// Outcome of one run of echo requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EchoReplies {
    /// Requests sent.
    pub(super) sent: u32,
    /// Round-trip times of those that were answered, milliseconds.
    pub(super) rtt_ms: Vec<f64>,
}

/// Number of echo requests.
pub(super) fn requests(settings: &Settings) -> u32 {
    settings.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(REQUESTS).max(1)
}

/// Sends the cell's echo requests to `target`.
pub(super) fn run(
    context: &MethodContext<'_>,
    target: Ipv4Addr,
) -> Result<EchoReplies, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let open = || -> std::io::Result<OwnedFd> {
        let protocol = Some(ipproto::ICMP);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::RAW, protocol)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_WAIT))?;
        Ok(socket)
    };
    let socket = bed.host(0).enter(open).and_then(|socket| socket).map_err(io("a raw socket"))?;
    let identifier = std::process::id().to_le_bytes();
    let identifier = [identifier[0], identifier[1]];
    let mut rtt_ms = Vec::new();
    let requests = requests(context.settings);
    for sequence in 0..requests {
        context.cancel.check()?;
        let [.., high, low] = sequence.to_be_bytes();
        let request = request(identifier, [high, low]);
        let start = Instant::now();
        let to = SocketAddrV4::new(target, 0);
        rustix::net::sendto(&socket, &request, SendFlags::empty(), &to)
            .map_err(|error| io("sending an echo request")(error.into()))?;
        if answered(&socket, &request, start)? {
            rtt_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
        context.cancel.sleep(ECHO_INTERVAL.saturating_sub(start.elapsed()))?;
    }
    Ok(EchoReplies { sent: requests, rtt_ms })
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> TrialError {
    move |source| TrialError::Io { what, source }
}

fn request(identifier: [u8; 2], sequence: [u8; 2]) -> [u8; HEADER + PAYLOAD] {
    let mut request = [0; HEADER + PAYLOAD];
    request[0] = 8;
    request[4..6].copy_from_slice(&identifier);
    request[6..8].copy_from_slice(&sequence);
    for (index, byte) in request[HEADER..].iter_mut().enumerate() {
        *byte = index as u8;
    }
    let sum = packet::checksum::ones_complement(&request);
    request[2..4].copy_from_slice(&sum.to_be_bytes());
    request
}

/// Whether the answer to `request` came; other ICMP packets are passed over.
fn answered(socket: &OwnedFd, request: &[u8], start: Instant) -> Result<bool, TrialError> {
    let mut buffer = [0; 256];
    while start.elapsed() < ANSWER_WAIT {
        match rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) if is_answer(&buffer[..length.min(256)], request) => return Ok(true),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(io("waiting for an echo reply")(error.into())),
        }
    }
    Ok(false)
}

/// A raw socket delivers the IPv4 header too.
fn is_answer(packet: &[u8], request: &[u8]) -> bool {
    let header = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    packet
        .get(header..)
        .is_some_and(|icmp| icmp.first() == Some(&0) && icmp.get(4..) == request.get(4..))
}

#[cfg(test)]
mod tests {
    use super::{is_answer, request};

    #[test]
    fn a_request_has_a_right_checksum() {
        let request = request([1, 2], [0, 9]);
        assert_eq!(packet::checksum::ones_complement(&request), 0);
        assert_eq!((request[0], &request[4..8]), (8, &[1, 2, 0, 9][..]));
    }

    #[test]
    fn only_the_answer_is_taken() {
        let request = request([1, 2], [0, 9]);
        let mut packet = vec![0x45; 20];
        packet.extend_from_slice(&request);
        assert!(!is_answer(&packet, &request), "that is the request itself");
        packet[20] = 0;
        assert!(is_answer(&packet, &request));
        packet[26] ^= 1;
        assert!(!is_answer(&packet, &request), "another sequence number");
        assert!(!is_answer(&[], &request) && !is_answer(&[0x4f], &request));
    }
}
