//! Extraction and rewriting: any bytes give a flow key whose values fit their fields; a rewrite
//! that says it did nothing changed nothing, and one that set a field is seen by extraction.
#![no_main]

use openflow::Field;
use openflow::field::{FIELDS, VID_PRESENT};
use packet::{FlowKey, Layout, Meta, PacketBuf, extract, fill_checksums, rewrite, verify};

/// Bytes of the input that give a value; the rest is the frame.
const VALUE_LEN: usize = 16;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (value, frame) = match input.split_first_chunk::<VALUE_LEN>() {
        Some((value, frame)) => (u128::from_be_bytes(*value), frame),
        None => (0, input),
    };
    check_key(&key(frame));
    if let Some(layout) = Layout::of(frame) {
        assert!(layout.end <= frame.len(), "the headers claim more bytes than there are");
    }
    let _ = verify(frame);
    fill_checksums(&mut frame.to_vec());
    for row in FIELDS {
        set(frame, row.field, value);
    }
    let (short, byte) = (value as u16, value as u8);
    change(frame, |buf| rewrite::push_vlan(buf, short));
    change(frame, |buf| rewrite::push_mpls(buf, short));
    change(frame, |buf| rewrite::push_pbb(buf, short));
    change(frame, |buf| rewrite::pop_mpls(buf, short));
    change(frame, rewrite::pop_vlan);
    change(frame, rewrite::pop_pbb);
    change(frame, rewrite::copy_ttl_in);
    change(frame, rewrite::copy_ttl_out);
    change(frame, |buf| rewrite::set_nw_ttl(buf, byte));
    change(frame, |buf| rewrite::dec_nw_ttl(buf).unwrap_or(false));
    change(frame, |buf| rewrite::dec_mpls_ttl(buf).unwrap_or(false));
});

fn key(frame: &[u8]) -> FlowKey {
    extract(frame, &Meta::port(openflow::PortNo(1)))
}

fn check_key(key: &FlowKey) {
    for row in FIELDS {
        let value = key.get(row.field);
        assert_eq!(value & !row.field.full_mask(), 0, "{} is wider than its row", row.name);
        assert!(key.has(row.field) || value == 0, "{} is absent but has a value", row.name);
    }
}

/// Runs a rewrite; when it says that it did nothing, nothing may have changed.
fn change(frame: &[u8], act: impl Fn(&mut PacketBuf) -> bool) -> Option<PacketBuf> {
    let mut buf = PacketBuf::from_slice(frame);
    if act(&mut buf) {
        check_key(&key(buf.bytes()));
        Some(buf)
    } else {
        assert_eq!(buf.bytes(), frame, "nothing was done, but the frame changed");
        None
    }
}

fn set(frame: &[u8], field: Field, value: u128) {
    let Some(buf) = change(frame, |buf| rewrite::set_field(buf, field, value)) else { return };
    let expected = match field {
        // Set-field writes the VLAN id; that there is a tag is not its to say.
        Field::VlanVid => VID_PRESENT | value & (VID_PRESENT - 1),
        _ => value & field.full_mask(),
    };
    // These say what the bytes behind them are, so they may hide themselves.
    let hides = matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type);
    if !hides {
        assert_eq!(key(buf.bytes()).get(field), expected, "{field:?} was set");
    }
}
