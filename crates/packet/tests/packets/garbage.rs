//! Any bytes: nothing panics, and what is refused is left as it was.

use crate::frames;
use openflow::Field;
use openflow::field::FIELDS;
use packet::{Meta, PacketBuf, extract, fill_checksums, rewrite, verify};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

/// Noise, frames with some bytes changed, and both cut off anywhere.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (frames::all(), vec((any::<usize>(), any::<u8>()), 0..6)).prop_map(
        |(mut frame, changes)| {
            for (at, byte) in changes {
                let at = at % frame.len();
                frame[at] = byte;
            }
            frame
        },
    );
    let starts = proptest::sample::select(vec![
        0x8100_u16, 0x88a8, 0x0800, 0x86dd, 0x0806, 0x8847, 0x88e7, 0x0005, 0x0040,
    ]);
    let typed = (starts, vec(any::<u8>(), 0..120)).prop_map(|(ether_type, rest)| {
        [vec![0; 12], ether_type.to_be_bytes().to_vec(), rest].concat()
    });
    prop_oneof![vec(any::<u8>(), 0..100), typed, damaged]
        .prop_flat_map(|bytes| (0..=bytes.len(), Just(bytes)))
        .prop_map(|(cut, bytes)| bytes[..cut].to_vec())
}

fn run(frame: &[u8], name: &str, act: impl FnOnce(&mut PacketBuf) -> bool) {
    let mut buf = PacketBuf::from_slice(frame);
    if !act(&mut buf) {
        assert_eq!(buf.bytes(), frame, "{name} did nothing but changed the frame");
    }
    let _ = extract(buf.bytes(), &Meta::default());
}

/// A jumbo frame has room for more extension headers than a byte can count.
#[test]
fn a_thousand_extension_headers_are_walked() {
    let (count, dest) = (1_000, 60);
    let mut frame = [vec![0; 12], vec![0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    let payload_len = u16::try_from(8 * count).unwrap();
    frame.extend(payload_len.to_be_bytes());
    frame.extend([dest, 64]);
    frame.extend([0; 32]);
    for left in (0..count).rev() {
        frame.extend([if left == 0 { 59 } else { dest }, 0, 0, 0, 0, 0, 0, 0]);
    }
    let key = extract(&frame, &Meta::default());
    // Destination options, no next header, and an unexpected repetition.
    assert_eq!(key.get(Field::Ipv6Exthdr), 0b0_1000_1001);
    assert_eq!(key.get(Field::IpProto), 59);
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn no_bytes_panic(frame in bytes(), value in any::<u128>(), small in any::<u16>()) {
        let _ = extract(&frame, &Meta::default());
        let _ = verify(&frame);
        fill_checksums(&mut frame.clone());
        for row in FIELDS {
            run(&frame, row.name, |buf| rewrite::set_field(buf, row.field, value));
        }
        run(&frame, "push_vlan", |buf| rewrite::push_vlan(buf, small));
        run(&frame, "pop_vlan", rewrite::pop_vlan);
        run(&frame, "push_mpls", |buf| rewrite::push_mpls(buf, small));
        run(&frame, "pop_mpls", |buf| rewrite::pop_mpls(buf, small));
        run(&frame, "push_pbb", |buf| rewrite::push_pbb(buf, small));
        run(&frame, "pop_pbb", rewrite::pop_pbb);
        run(&frame, "set_nw_ttl", |buf| rewrite::set_nw_ttl(buf, small as u8));
        run(&frame, "dec_nw_ttl", |buf| rewrite::dec_nw_ttl(buf).unwrap_or(false));
        run(&frame, "set_mpls_ttl", |buf| rewrite::set_mpls_ttl(buf, small as u8));
        run(&frame, "dec_mpls_ttl", |buf| rewrite::dec_mpls_ttl(buf).unwrap_or(false));
        run(&frame, "copy_ttl_out", rewrite::copy_ttl_out);
        run(&frame, "copy_ttl_in", rewrite::copy_ttl_in);
        run(&frame, "set_vlan_vid", |buf| rewrite::set_vlan_vid(buf, small));
        run(&frame, "set_vlan_pcp", |buf| rewrite::set_vlan_pcp(buf, small as u8));
        run(&frame, "set_tp_src", |buf| rewrite::set_tp_src(buf, small));
        run(&frame, "set_tp_dst", |buf| rewrite::set_tp_dst(buf, small));
        run(&frame, "set_nw_tos", |buf| rewrite::set_nw_tos(buf, small as u8));
    }
}
