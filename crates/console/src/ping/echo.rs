//! Echo requests and what comes back of them, without input and output: a test decides the time.
//!
//! A request is numbered from 1; its sequence number in the packet is the lower 16 bits. What was
//! sent is remembered for the last 65,536 requests, which is how far a sequence number tells them
//! apart.

use std::net::IpAddr;

use openflow::MacAddr;
use packet::build::{FrameBuilder, Ipv4, Ipv6};
use packet::header::{be16, icmpv4, icmpv6, ipv4, ipv6};
use packet::{Layout, Network, Transport};

/// Requests that a sequence number tells apart.
const REMEMBERED: u64 = 1 << 16;

/// Addresses and identifier of a run's requests.
#[derive(Clone, Debug)]
pub(super) struct EchoPath {
    /// The asker's Ethernet address.
    pub(super) src_mac: MacAddr,
    /// The Ethernet address of the next hop.
    pub(super) dst_mac: MacAddr,
    /// The asker.
    pub(super) src: IpAddr,
    /// The asked; of the same version.
    pub(super) dst: IpAddr,
    /// The VLAN of the requests, if any.
    pub(super) vlan: Option<u16>,
    /// The identifier of this run's requests.
    pub(super) id: u16,
    /// Bytes of data in a request.
    pub(super) data_len: usize,
    /// TTL or hop limit.
    pub(super) ttl: u8,
}

impl EchoPath {
    /// The frame of a request, without FCS.
    pub(super) fn request(&self, number: u64) -> Vec<u8> {
        let mut builder = FrameBuilder::ethernet(self.dst_mac, self.src_mac);
        if let Some(vid) = self.vlan {
            builder = builder.vlan(0, vid);
        }
        let builder = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                builder.ipv4(Ipv4 { ttl: self.ttl, ..Ipv4::new(src, dst) })
            }
            (src, dst) => {
                let (src, dst) = (as_v6(src), as_v6(dst));
                builder.ipv6(Ipv6 { hop_limit: self.ttl, ..Ipv6::new(src, dst) })
            }
        };
        let data: Vec<u8> = (0..self.data_len).map(|index| index as u8).collect();
        builder.echo_request(self.id, number as u16).payload(&data).build()
    }
}

fn as_v6(address: IpAddr) -> std::net::Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// A reply that belongs to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EchoReply {
    /// The number of the request.
    pub(super) number: u64,
    /// Bytes of the ICMP message.
    pub(super) len: usize,
    /// TTL or hop limit as it arrived.
    pub(super) ttl: u8,
    /// From the departure of the request to the arrival of the reply.
    pub(super) rtt_ns: u64,
    /// Whether the request had been answered before.
    pub(super) is_duplicate: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentRequest {
    number: u64,
    at_ns: u64,
    is_answered: bool,
}

/// Requests that were sent, and the sums of `ping`.
#[derive(Debug)]
pub(super) struct EchoCount {
    sent: Vec<Option<SentRequest>>,
    pub(super) transmitted: u64,
    /// Requests that the port did not take: no loss of the network.
    pub(super) unsent: u64,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    rtt_ns_min: u64,
    rtt_ns_max: u64,
    rtt_ns_sum: f64,
    rtt_ns_square_sum: f64,
}

impl EchoCount {
    pub(super) fn new() -> Self {
        Self {
            sent: Vec::new(),
            transmitted: 0,
            unsent: 0,
            received: 0,
            duplicates: 0,
            rtt_ns_min: u64::MAX,
            rtt_ns_max: 0,
            rtt_ns_sum: 0.0,
            rtt_ns_square_sum: 0.0,
        }
    }

    /// Request `number` left at `at_ns`.
    pub(super) fn left(&mut self, number: u64, at_ns: u64) {
        let place = (number % REMEMBERED) as usize;
        if self.sent.len() <= place {
            self.sent.resize(place + 1, None);
        }
        self.sent[place] = Some(SentRequest { number, at_ns, is_answered: false });
        self.transmitted += 1;
    }

    /// A request did not leave.
    pub(super) fn not_left(&mut self) {
        self.unsent += 1;
    }

    /// Whether every request that left has been answered.
    pub(super) fn is_complete(&self) -> bool {
        self.received == self.transmitted
    }

    /// Counts a frame that arrived at `at_ns`; none where it is no reply to a request of `path`.
    pub(super) fn take(&mut self, path: &EchoPath, frame: &[u8], at_ns: u64) -> Option<EchoReply> {
        let (seq, len, ttl) = reply_of(path, frame)?;
        let sent = self.sent.get_mut(usize::from(seq))?.as_mut()?;
        let rtt_ns = at_ns.saturating_sub(sent.at_ns);
        let is_duplicate = sent.is_answered;
        sent.is_answered = true;
        let number = sent.number;
        if is_duplicate {
            self.duplicates += 1;
        } else {
            self.received += 1;
            self.rtt_ns_min = self.rtt_ns_min.min(rtt_ns);
            self.rtt_ns_max = self.rtt_ns_max.max(rtt_ns);
            self.rtt_ns_sum += rtt_ns as f64;
            self.rtt_ns_square_sum += (rtt_ns as f64).powi(2);
        }
        Some(EchoReply { number, len, ttl, rtt_ns, is_duplicate })
    }

    /// Share of requests without an answer, in percent.
    pub(super) fn loss_percent(&self) -> f64 {
        let lost = self.transmitted.saturating_sub(self.received);
        if self.transmitted == 0 { 0.0 } else { 100.0 * lost as f64 / self.transmitted as f64 }
    }

    /// Least, mean and greatest round-trip time and `ping`'s mdev, the root of the mean square
    /// minus the square of the mean, all in milliseconds; none without an answer.
    pub(super) fn rtt_ms(&self) -> Option<[f64; 4]> {
        if self.received == 0 {
            return None;
        }
        let count = self.received as f64;
        let mean = self.rtt_ns_sum / count;
        let mdev = (self.rtt_ns_square_sum / count - mean * mean).max(0.0).sqrt();
        let ms = |ns: f64| ns / 1e6;
        Some([ms(self.rtt_ns_min as f64), ms(mean), ms(self.rtt_ns_max as f64), ms(mdev)])
    }
}

/// Sequence number, length of the ICMP message and TTL of an echo reply that is for `path`.
fn reply_of(path: &EchoPath, frame: &[u8]) -> Option<(u16, usize, u8)> {
    let layout = Layout::of(frame)?;
    let (expected, ttl_at, src, dst) = match (layout.network, layout.transport) {
        (Network::Ipv4, Transport::Icmpv4) => {
            let at = |field: std::ops::Range<usize>| {
                packet::header::chunk::<4>(frame, layout.l3 + field.start).map(|o| IpAddr::from(*o))
            };
            (icmpv4::ECHO_REPLY, ipv4::TTL, at(ipv4::SRC)?, at(ipv4::DST)?)
        }
        (Network::Ipv6, Transport::Icmpv6) => {
            let at = |field: std::ops::Range<usize>| {
                packet::header::chunk::<16>(frame, layout.l3 + field.start)
                    .map(|o| IpAddr::from(*o))
            };
            (icmpv6::ECHO_REPLY, ipv6::HOP_LIMIT, at(ipv6::SRC)?, at(ipv6::DST)?)
        }
        (
            Network::Other
            | Network::Mpls
            | Network::Pbb
            | Network::Arp
            | Network::Ipv4
            | Network::Ipv6,
            _,
        ) => return None,
    };
    let is_ours = *frame.get(layout.l4)? == expected
        && (src, dst) == (path.dst, path.src)
        && be16(frame, layout.l4 + 4)? == path.id
        && packet::verify(frame).is_ok();
    if !is_ours {
        return None;
    }
    let seq = be16(frame, layout.l4 + 6)?;
    Some((seq, layout.end.checked_sub(layout.l4)?, *frame.get(layout.l3 + ttl_at)?))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use generator::responder::Responder;
    use openflow::MacAddr;

    use super::{EchoCount, EchoPath};

    fn path(src: &str, dst: &str) -> EchoPath {
        EchoPath {
            src_mac: MacAddr::from_u64(0x0200_0000_0001),
            dst_mac: MacAddr::from_u64(0x0200_0000_0002),
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            vlan: Some(5),
            id: 77,
            data_len: 56,
            ttl: 64,
        }
    }

    fn answered(path: &EchoPath, number: u64) -> Vec<u8> {
        let there: Vec<IpAddr> = vec![path.dst];
        Responder::new(path.dst_mac, there).reply(&path.request(number)).unwrap()
    }

    #[test]
    fn replies_are_counted_with_delay_loss_and_duplicates() {
        for path in [path("10.0.0.1", "10.0.0.2"), path("fd00::1", "fd00::2")] {
            let mut count = EchoCount::new();
            for number in 1..=4 {
                count.left(number, number * 1_000_000_000);
            }
            let reply = count.take(&path, &answered(&path, 1), 1_001_000_000).unwrap();
            assert_eq!((reply.number, reply.len, reply.ttl), (1, 64, 64));
            assert_eq!((reply.rtt_ns, reply.is_duplicate), (1_000_000, false));
            assert!(count.take(&path, &answered(&path, 1), 1_002_000_000).unwrap().is_duplicate);
            // Out of order, and after the next one has left.
            count.take(&path, &answered(&path, 3), 4_003_000_000).unwrap();
            assert_eq!(count.take(&path, &answered(&path, 9), 5_000_000_000), None);
            assert_eq!((count.transmitted, count.received, count.duplicates), (4, 2, 1));
            assert_eq!(count.loss_percent(), 50.0);
            assert!(!count.is_complete());
            // 1 ms and 1,003 ms: mean 502, deviation 501.
            let [min, mean, max, mdev] = count.rtt_ms().unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
            assert!(near(min, 1.0) && near(mean, 502.0) && near(max, 1003.0) && near(mdev, 501.0));
        }
    }

    #[test]
    fn what_is_no_reply_of_ours_is_passed_over() {
        let ours = path("10.0.0.1", "10.0.0.2");
        let mut count = EchoCount::new();
        count.left(1, 0);
        let other = EchoPath { id: 78, ..ours.clone() };
        assert_eq!(count.take(&ours, &answered(&other, 1), 5), None);
        assert_eq!(count.take(&ours, &ours.request(1), 5), None);
        let mut damaged = answered(&ours, 1);
        damaged[60] ^= 1;
        assert_eq!(count.take(&ours, &damaged, 5), None);
        assert_eq!(count.take(&ours, &[], 5), None);
        assert_eq!(count.rtt_ms(), None);
        assert_eq!(count.loss_percent(), 100.0);
    }

    #[test]
    fn numbers_beyond_the_sequence_numbers_are_distinct() {
        let path = path("10.0.0.1", "10.0.0.2");
        let mut count = EchoCount::new();
        count.left(5, 0);
        count.left(5 + 65_536, 1_000);
        let reply = count.take(&path, &answered(&path, 5 + 65_536), 1_500).unwrap();
        assert_eq!((reply.number, reply.rtt_ns), (65_541, 500));
    }
}
