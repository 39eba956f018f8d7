//! Extraction against the rows: a second reader that knows nothing but `Place::At` and takes one
//! bit at a time.

use crate::frames;
use openflow::field::{FIELDS, FieldRow, Place, Prereq};
use openflow::{Field, PortNo};
use packet::{FlowKey, Layout, Meta, extract};
use proptest::prelude::proptest;

fn meta() -> Meta {
    let in_phy_port = PortNo(8);
    let mut meta = Meta {
        in_port: PortNo(7),
        in_phy_port,
        metadata: 0x0123_4567_89ab_cdef,
        tunnel_id: 42,
        ..Meta::default()
    };
    meta.pkt_mark = 43;
    for row in FIELDS.iter().filter(|row| matches!(row.place, Place::Register(_))) {
        assert!(meta.write(row.field, 100 + row.oxm as u128));
    }
    meta
}

/// The bits that the row says; none where the frame has not all of them.
fn read(frame: &[u8], layout: &Layout, row: &FieldRow, places: &[Placed]) -> Option<u128> {
    let (start, offset) =
        places.iter().find_map(|(header, offset)| Some((layout.at(*header)?, *offset)))?;
    let mut value = 0;
    for bit in offset..offset + row.bits {
        let at = start + usize::from(bit / 8);
        let byte = frame[..layout.end].get(at)?;
        value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
    }
    Some(value)
}

type Placed = (openflow::field::Header, u16);

fn allowed(key: &FlowKey, prereq: Prereq) -> bool {
    match prereq {
        Prereq::None => true,
        Prereq::Present(field) => key.has(field),
        Prereq::VlanTag => key.get(Field::VlanVid) != 0,
        Prereq::OneOf(field, values) => key.has(field) && values.contains(&key.get(field)),
    }
}

fn check(frame: &[u8]) -> FlowKey {
    let key = extract(frame, &meta());
    let layout = Layout::of(frame).unwrap();
    for row in FIELDS {
        let Place::At(places) = row.place else { continue };
        let wanted = read(frame, &layout, row, places).filter(|_| allowed(&key, row.prereq));
        let got = key.has(row.field).then(|| key.get(row.field));
        assert_eq!(got, wanted, "{}: extract and its row differ", row.name);
    }
    key
}

#[test]
fn every_row_is_extracted_from_some_frame() {
    let keys: Vec<FlowKey> = frames::samples().iter().map(|(_, frame)| check(frame)).collect();
    // The pipeline alone ever has another `conj_id` than zero.
    for row in FIELDS.iter().filter(|row| row.field != Field::ConjId) {
        let seen = keys.iter().any(|key| key.has(row.field) && key.get(row.field) != 0);
        assert!(seen, "{}: no line in extract, or no sample has it", row.name);
    }
}

#[test]
fn what_is_not_in_the_frame_comes_from_meta() {
    let key = extract(&[], &meta());
    assert_eq!(key.get(Field::InPort), 7);
    assert_eq!(key.get(Field::InPhyPort), 8);
    assert_eq!(key.get(Field::Metadata), 0x0123_4567_89ab_cdef);
    assert_eq!(key.get(Field::TunnelId), 42);
    assert_eq!(key.get(Field::PktMark), 43);
    for row in FIELDS.iter().filter(|row| matches!(row.place, Place::Register(_))) {
        assert_eq!(key.get(row.field), 100 + row.oxm as u128);
    }
    assert_eq!(key.get(Field::Xreg1), 102 << 32 | 103);
    assert_eq!(key.get(Field::Xxreg3), 112 << 96 | 113 << 64 | 114 << 32 | 115);
    assert!(key.has(Field::Xreg7) && key.has(Field::Xxreg0));
    assert!(key.has(Field::ConjId) && key.get(Field::ConjId) == 0);
    assert_eq!(key.present().count_ones(), 5 + 16 + 1);
}

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn random_frames_read_alike(frame in frames::all()) {
        check(&frame);
    }

    #[test]
    fn truncated_frames_read_alike(frame in frames::all(), cut in 14..200_usize) {
        check(&frame[..cut.min(frame.len())]);
    }
}
