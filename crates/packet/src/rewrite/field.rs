//! Set-field: writing one match field where the packet has it.
//!
//! Fields at a fixed place of a header come from the rows; only the fields that have to be found
//! by parsing have a line here.

use super::patch::patch;
use crate::buf::PacketBuf;
use crate::extract::{Meta, extract};
use crate::header::{number, vlan};
use crate::layout::Layout;
use openflow::field::Place;
use openflow::{BitRange, Field};

/// The bits of a field in a frame.
struct Bits {
    /// First byte.
    at: usize,
    /// Bits of that byte before the field.
    skip: usize,
    /// Width.
    width: usize,
}

impl Bits {
    fn whole(at: usize, width: usize) -> Option<Self> {
        Some(Self { at, skip: 0, width })
    }
}

/// Writes a field, cut to its width, and corrects the checksums. False, with nothing changed, when
/// the packet does not have the field or the field is none of the packet's (a register). The value
/// of `VLAN_VID` may have `OFPVID_PRESENT` or not; a tag is never pushed.
pub fn set_field(buf: &mut PacketBuf, field: Field, value: u128) -> bool {
    let frame = buf.bytes_mut();
    let Some(layout) = Layout::of(frame) else { return false };
    let Some(bits) = locate(frame, &layout, field) else { return false };
    let len = (bits.skip + bits.width).div_ceil(8);
    let Some(held) = frame.get(bits.at..bits.at + len) else { return false };
    let mask = u128::MAX >> (128 - bits.width);
    let shift = len * 8 - bits.skip - bits.width;
    let written = number(held) & !(mask << shift) | (value & mask) << shift;
    let bytes = written.to_be_bytes();
    let Some(new) = bytes.get(bytes.len() - len..) else { return false };
    patch(frame, &layout, bits.at, new)
}

/// Writes the bits of `mask` of a field, in the frame or beside it; the value has no others. False,
/// with nothing changed, when the packet does not have the field.
pub fn write_bits(
    buf: &mut PacketBuf,
    meta: &mut Meta,
    field: Field,
    mask: u128,
    value: u128,
) -> bool {
    let value = if mask == field.full_mask() {
        value
    } else {
        let key = extract(buf.bytes(), meta);
        if !key.has(field) {
            return false;
        }
        key.get(field) & !mask | value
    };
    if field.row().place.is_beside_packet() {
        meta.write(field, value)
    } else {
        set_field(buf, field, value)
    }
}

/// Copies bits of one field to as many of another, each in the frame or beside it. False, with
/// nothing changed, when the packet does not have both.
pub fn move_bits(
    buf: &mut PacketBuf,
    meta: &mut Meta,
    (src, from): (Field, BitRange),
    (dst, to): (Field, BitRange),
) -> bool {
    let key = extract(buf.bytes(), meta);
    key.has(src) && write_bits(buf, meta, dst, to.mask(), to.place(from.of(key.get(src))))
}

/// Finds a field that has no fixed place.
type Find = fn(&Layout, &[u8]) -> Option<Bits>;

/// The settable fields that have to be looked for. The neighbour discovery target has a fixed
/// place, but only in two kinds of message.
const FOUND: &[(Field, Find)] = &[
    (Field::EthType, |layout, _| Bits::whole(layout.eth_type_at?, 16)),
    (Field::VlanVid, |layout, _| {
        (layout.tags > 0).then_some(Bits { at: vlan::OUTERMOST_TCI, skip: 4, width: 12 })
    }),
    (Field::IpProto, |layout, _| layout.ip_proto.and_then(|_| Bits::whole(layout.ip_proto_at, 8))),
    (Field::Ipv6NdTarget, |layout, frame| Bits::whole(layout.nd_target_at(frame)?, 128)),
    (Field::Ipv6NdSll, |layout, frame| Bits::whole(layout.nd_sll_at(frame)?, 48)),
    (Field::Ipv6NdTll, |layout, frame| Bits::whole(layout.nd_tll_at(frame)?, 48)),
];

fn locate(frame: &[u8], layout: &Layout, field: Field) -> Option<Bits> {
    let row = field.row();
    if !row.settable {
        return None;
    }
    if let Some((_, find)) = FOUND.iter().find(|(found, _)| *found == field) {
        return find(layout, frame);
    }
    match row.place {
        Place::Meta | Place::Register(_) | Place::Registers(..) | Place::Parsed => None,
        Place::At(places) => places.iter().find_map(|(header, offset)| {
            let (start, offset) = (layout.at(*header)?, usize::from(*offset));
            Some(Bits { at: start + offset / 8, skip: offset % 8, width: usize::from(row.bits) })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::FOUND;
    use openflow::field::{FIELDS, Place};

    #[test]
    fn every_settable_field_without_a_fixed_place_can_be_found() {
        for row in FIELDS.iter().filter(|row| row.settable && matches!(row.place, Place::Parsed)) {
            assert!(FOUND.iter().any(|(field, _)| *field == row.field), "{}", row.name);
        }
    }
}
