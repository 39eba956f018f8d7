//! Tests of the reassembler alone: whole packets in any order, and every way to lose a fragment.

use openflow::{MacAddr, PortNo};
use packet::build::{FrameBuilder, Ipv4};
use packet::header::{ethernet, ipv4, ipv6};
use packet::{Layout, verify};

use super::{BYTES_MAX, Fate, PACKETS_MAX, Reassembler, TIMEOUT_S};
use crate::counter::DropReason;
use crate::time::Nanos;

const PORT: PortNo = PortNo(1);

fn macs() -> FrameBuilder {
    FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
}

/// A UDP packet with this number of bytes of payload, not fragmented.
fn packet_v4(payload: usize) -> Vec<u8> {
    let ip = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let bytes: Vec<u8> = (0..payload).map(|i| (i * 7 % 251) as u8).collect();
    macs().ipv4(ip).udp(1, 2).payload(&bytes).build()
}

fn checksummed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let sum = packet::checksum::ones_complement(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A fragment of an IPv4 frame without options: these bytes of its data.
fn fragment_v4(whole: &[u8], range: std::ops::Range<usize>, id: u16) -> Vec<u8> {
    let data = &whole[34..];
    let more = range.end < data.len();
    let mut frame = whole[..34].to_vec();
    frame.extend_from_slice(&data[range.clone()]);
    frame[16..18].copy_from_slice(&(20 + range.len() as u16).to_be_bytes());
    frame[18..20].copy_from_slice(&id.to_be_bytes());
    let field = (range.start / 8) as u16 | if more { ipv4::MORE_FRAGMENTS } else { 0 };
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    checksummed(frame)
}

/// As the whole packet comes out: with the identification of its fragments.
fn identified(whole: &[u8], id: u16) -> Vec<u8> {
    let mut frame = whole.to_vec();
    frame[18..20].copy_from_slice(&id.to_be_bytes());
    checksummed(frame)
}

fn give(kept: &mut Reassembler, frame: &[u8]) -> Fate {
    kept.reassemble(frame, PORT, Nanos(0)).fate
}

const REASON: fn(DropReason) -> Fate = Fate::Dropped;

#[test]
fn fragments_in_any_order_make_the_packet() {
    let whole = packet_v4(3000);
    let len = whole.len() - 34;
    let pieces = [0..1480, 1480..2960, 2960..len];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let mut kept = Reassembler::default();
        for piece in &order[..2] {
            let frame = fragment_v4(&whole, pieces[*piece].clone(), 7);
            assert_eq!(give(&mut kept, &frame), Fate::Held);
        }
        let Fate::Whole(found) = give(&mut kept, &fragment_v4(&whole, pieces[order[2]].clone(), 7))
        else {
            panic!("not whole in the order {order:?}");
        };
        assert_eq!(found, identified(&whole, 7));
        assert!(verify(&found).is_ok());
        assert_eq!((kept.bytes, kept.packets.len(), kept.order.len()), (0, 0, 0));
    }
}

#[test]
fn whole_packets_are_not_looked_at() {
    let mut kept = Reassembler::default();
    assert_eq!(give(&mut kept, &packet_v4(100)), Fate::Itself);
    assert_eq!(give(&mut kept, &[0; 14]), Fate::Itself);
}

#[test]
fn packets_are_distinguished_by_id_port_and_tag() {
    let whole = packet_v4(100);
    let mut kept = Reassembler::default();
    let (first, last) = (fragment_v4(&whole, 0..48, 7), fragment_v4(&whole, 48..108, 7));
    assert_eq!(give(&mut kept, &first), Fate::Held);
    assert_eq!(give(&mut kept, &fragment_v4(&whole, 48..108, 8)), Fate::Held);
    assert_eq!(kept.reassemble(&last, PortNo(2), Nanos(0)).fate, Fate::Held);
    let tagged = [&last[..12], &[0x81, 0, 0, 5][..], &last[12..]].concat();
    assert_eq!(give(&mut kept, &tagged), Fate::Held);
    assert!(matches!(give(&mut kept, &last), Fate::Whole(_)));
}

#[test]
fn a_tag_and_padding_are_no_data() {
    let whole = packet_v4(20);
    let tag = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0, 5][..], &frame[12..]].concat();
    let mut kept = Reassembler::default();
    let mut padded = tag(&fragment_v4(&whole, 0..16, 7));
    padded.resize(64, 0xee);
    assert_eq!(give(&mut kept, &padded), Fate::Held);
    let Fate::Whole(found) = give(&mut kept, &tag(&fragment_v4(&whole, 16..28, 7))) else {
        panic!("not whole");
    };
    assert_eq!(found, tag(&identified(&whole, 7)));
}

/// A fragment of an IPv6 packet behind destination options: these bytes of its data.
fn fragment_v6(data: &[u8], range: std::ops::Range<usize>, id: u32) -> Vec<u8> {
    let more = u16::from(range.end < data.len());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend_from_slice(&(16 + range.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[ipv6::DEST, 64]);
    frame.extend_from_slice(&[0xfd; 16]);
    frame.extend_from_slice(&[0xfe; 16]);
    frame.extend_from_slice(&[ipv6::FRAGMENT, 0, 1, 4, 0, 0, 0, 0]);
    frame.extend_from_slice(&[17, 0]);
    frame.extend_from_slice(&(range.start as u16 | more).to_be_bytes());
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(&data[range]);
    frame
}

#[test]
fn ipv6_loses_its_fragment_header() {
    let data: Vec<u8> = [&[0, 1, 0, 2, 0, 108, 0, 0][..], &[0x55; 100][..]].concat();
    let mut kept = Reassembler::default();
    assert_eq!(give(&mut kept, &fragment_v6(&data, 56..108, 9)), Fate::Held);
    let Fate::Whole(found) = give(&mut kept, &fragment_v6(&data, 0..56, 9)) else {
        panic!("not whole");
    };
    let layout = Layout::of(&found).unwrap();
    assert!(!layout.fragment && !layout.truncated);
    assert_eq!((layout.eth_type, layout.ip_proto), (ethernet::IPV6, Some(17)));
    assert_eq!(found[layout.l4..], data);
    assert_eq!(found.len(), layout.end);
}

#[test]
fn fragments_that_overlap_spoil_their_packet() {
    let whole = packet_v4(300);
    for (start, stop) in [(40, 88), (0, 48), (8, 16), (40, 56)] {
        let mut kept = Reassembler::default();
        assert_eq!(give(&mut kept, &fragment_v4(&whole, 0..48, 7)), Fate::Held);
        assert_eq!(give(&mut kept, &fragment_v4(&whole, 88..136, 7)), Fate::Held);
        let mut other = fragment_v4(&whole, start..stop, 7);
        *other.last_mut().unwrap() ^= 1;
        let reassembled = kept.reassemble(&checksummed(other), PORT, Nanos(0));
        assert_eq!(reassembled.fate, REASON(DropReason::FragmentOverlap), "{start}..{stop}");
        assert_eq!(reassembled.lost, [(DropReason::FragmentOverlap, 2)]);
        // What still comes of it is dropped; another packet is not.
        let rest = give(&mut kept, &fragment_v4(&whole, 48..88, 7));
        assert_eq!(rest, REASON(DropReason::FragmentOverlap));
        assert_eq!(give(&mut kept, &fragment_v4(&whole, 48..88, 8)), Fate::Held);
    }
    let data = [0x55; 108];
    let mut kept = Reassembler::default();
    assert_eq!(give(&mut kept, &fragment_v6(&data, 0..56, 9)), Fate::Held);
    let overlapping = give(&mut kept, &fragment_v6(&data, 48..108, 9));
    assert_eq!(overlapping, REASON(DropReason::FragmentOverlap));
}

#[test]
fn two_ends_spoil_the_packet_too() {
    let whole = packet_v4(300);
    let short = packet_v4(100);
    let mut kept = Reassembler::default();
    assert_eq!(give(&mut kept, &fragment_v4(&short, 48..108, 7)), Fate::Held);
    let beyond = give(&mut kept, &fragment_v4(&whole, 112..120, 7));
    assert_eq!(beyond, REASON(DropReason::FragmentOverlap));
    let mut kept = Reassembler::default();
    assert_eq!(give(&mut kept, &fragment_v4(&whole, 112..160, 7)), Fate::Held);
    let before = give(&mut kept, &fragment_v4(&short, 48..108, 7));
    assert_eq!(before, REASON(DropReason::FragmentOverlap));
}

#[test]
fn a_fragment_that_comes_twice_is_dropped_once() {
    let whole = packet_v4(100);
    let mut kept = Reassembler::default();
    let first = fragment_v4(&whole, 0..48, 7);
    assert_eq!(give(&mut kept, &first), Fate::Held);
    assert_eq!(give(&mut kept, &first), REASON(DropReason::FragmentDuplicate));
    assert!(matches!(give(&mut kept, &fragment_v4(&whole, 48..108, 7)), Fate::Whole(_)));
}

#[test]
fn what_can_be_part_of_no_packet_is_malformed() {
    let whole = packet_v4(100);
    let mut kept = Reassembler::default();
    let uneven = fragment_v4(&whole, 0..47, 7);
    let mut cut = fragment_v4(&whole, 0..48, 7);
    cut.truncate(60);
    let mut far = fragment_v4(&whole, 48..108, 7);
    far[20..22].copy_from_slice(&0x1fff_u16.to_be_bytes());
    for frame in [uneven, cut, checksummed(far), fragment_v6(&[0; 64], 8..8, 1)] {
        assert_eq!(give(&mut kept, &frame), REASON(DropReason::FragmentMalformed));
    }
    assert_eq!(kept.bytes, 0);
}

#[test]
fn congestion_is_marked_unless_the_fragments_contradict() {
    let whole = packet_v4(100);
    let with_ecn = |range, ecn: u8| {
        let mut frame = fragment_v4(&whole, range, 7);
        frame[15] |= ecn;
        checksummed(frame)
    };
    let mut kept = Reassembler::default();
    give(&mut kept, &with_ecn(0..48, 2));
    let Fate::Whole(found) = give(&mut kept, &with_ecn(48..108, 3)) else { panic!("not whole") };
    assert_eq!(found[15], 3);
    assert!(verify(&found).is_ok());
    give(&mut kept, &with_ecn(0..48, 0));
    let reassembled = kept.reassemble(&with_ecn(48..108, 3), PORT, Nanos(0));
    assert_eq!(reassembled.fate, REASON(DropReason::FragmentMalformed));
    assert_eq!(reassembled.lost, [(DropReason::FragmentMalformed, 1)]);
}

#[test]
fn incomplete_packets_are_given_up_in_time() {
    let whole = packet_v4(300);
    let mut kept = Reassembler::default();
    for (id, s) in [(1, 0), (1, 29), (2, 10)] {
        let range = if s == 29 { 48..96 } else { 0..48 };
        kept.reassemble(&fragment_v4(&whole, range, id), PORT, Nanos::from_s(s));
    }
    assert_eq!(kept.expire(Nanos(TIMEOUT_S * 1_000_000_000 - 1)), 0);
    let last = fragment_v4(&whole, 96..308, 1);
    let reassembled = kept.reassemble(&last, PORT, Nanos::from_s(TIMEOUT_S));
    assert_eq!(reassembled.fate, Fate::Held, "the packet begins anew");
    assert_eq!(reassembled.lost, [(DropReason::FragmentTimeout, 2)]);
    assert_eq!(kept.expire(Nanos::from_s(100)), 2);
    assert_eq!((kept.bytes, kept.order.len()), (0, 0));
}

#[test]
fn neither_bytes_nor_packets_grow_without_bound() {
    let whole = packet_v4(60_000);
    let mut kept = Reassembler::default();
    let mut lost = 0;
    for id in 0..200 {
        let reassembled = kept.reassemble(&fragment_v4(&whole, 0..40_000, id), PORT, Nanos(0));
        lost += reassembled.lost.iter().map(|(_, count)| count).sum::<u64>();
        assert!(kept.bytes <= BYTES_MAX);
    }
    assert_eq!(lost + kept.packets.len() as u64, 200);
    let newest = give(&mut kept, &fragment_v4(&whole, 40_000..60_008, 199));
    assert!(matches!(newest, Fate::Whole(_)), "the oldest went");
    let small = packet_v4(100);
    for id in 0..5_000 {
        give(&mut kept, &fragment_v4(&small, 0..48, id));
    }
    assert_eq!(kept.packets.len(), PACKETS_MAX);
    assert_eq!(kept.packets.len(), kept.order.len());
}

#[test]
fn tiny_fragments_are_bounded_for_each_packet() {
    let whole = packet_v4(60_000);
    let mut kept = Reassembler::default();
    let fates: Vec<Fate> =
        (0..300).map(|n| give(&mut kept, &fragment_v4(&whole, n * 16..n * 16 + 8, 7))).collect();
    assert!(fates[..256].iter().all(|fate| *fate == Fate::Held));
    assert!(fates[256..].iter().all(|fate| *fate == REASON(DropReason::FragmentMemory)));
    assert!(kept.bytes < 1_000);
}

#[test]
fn the_longest_packet_can_be_put_together() {
    let whole = packet_v4(65_535 - 28);
    let mut kept = Reassembler::default();
    let len = whole.len() - 34;
    let mut at = 0;
    let mut fate = Fate::Itself;
    while at < len {
        let stop = (at + 1480).min(len);
        fate = give(&mut kept, &fragment_v4(&whole, at..stop, 7));
        at = stop;
    }
    assert_eq!(fate, Fate::Whole(identified(&whole, 7)));
}
