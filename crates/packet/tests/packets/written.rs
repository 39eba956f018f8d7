//! Frames that other programs made, with the fields that people expect of them
//! (`vectors/packets`).

use openflow::field::FIELDS;
use openflow::{Field, MacAddr};
use packet::{FlowKey, Meta, extract, verify};
use std::net::{Ipv4Addr, Ipv6Addr};
use testkit::vectors::{self, Vector};

/// The number of a value as it stands in the text syntax of a match.
pub(crate) fn number(text: &str) -> u128 {
    if let Ok(mac) = text.parse::<MacAddr>() {
        return mac.to_u64().into();
    }
    if let Ok(addr) = text.parse::<Ipv4Addr>() {
        return addr.to_bits().into();
    }
    if let Ok(addr) = text.parse::<Ipv6Addr>() {
        return addr.to_bits();
    }
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

fn expected(vector: &Vector) -> FlowKey {
    let mut key = extract(&[], &Meta::default());
    let text = vector.text.as_deref().unwrap();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        key.set(Field::from_name(name).unwrap(), number(value));
    }
    key
}

#[test]
fn written_frames_have_the_fields_that_are_expected() {
    let vectors = vectors::load_dir(&testkit::vectors_dir("packets")).unwrap();
    assert!(vectors.len() >= 40);
    for vector in &vectors {
        let (key, wanted) = (extract(&vector.bytes, &Meta::default()), expected(vector));
        for row in FIELDS {
            // A record names all of a frame's fields of 1.3, and some of later versions.
            if row.field > Field::Ipv6Exthdr && !wanted.has(row.field) {
                continue;
            }
            let held = |key: &FlowKey| key.has(row.field).then(|| key.get(row.field));
            assert_eq!(held(&key), held(&wanted), "{}: {}", vector.place(), row.name);
        }
    }
}

#[test]
fn checksums_of_written_frames_are_right() {
    for vector in vectors::load_dir(&testkit::vectors_dir("packets")).unwrap() {
        verify(&vector.bytes).unwrap_or_else(|wrong| panic!("{}: {wrong}", vector.place()));
    }
}
