//! Relaxation: the bits of a mask that its group uses.
//!
//! Addresses separate entries best, so the first try is the address prefixes rounded down to a
//! coarse grid, and nothing else: many masks then share one group. Where too many entries share
//! those bits the next try keeps more, up to the whole mask. (The idea of relaxing masks until
//! tuples merge is TupleMerge's, IEEE/ACM Transactions on Networking 2019.) It must only ever drop
//! bits.

use openflow::Field;
use openflow::field::{FIELDS, Format};
use packet::{FlowKey, WORDS};

use super::group::Bits;
use crate::fast::compiled_match::{Mask, MaskWord};

/// The levels, in the order in which they are tried.
pub(super) const RELAXATIONS: [Relaxation; 3] =
    [Relaxation::Coarse, Relaxation::Fine, Relaxation::Narrow];

/// Part of a mask that is kept, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relaxation {
    /// Addresses on a coarse grid. Of a mask without addresses, the fields of many values.
    Coarse,
    /// Addresses on a fine grid.
    Fine,
    /// Addresses on a fine grid, and all other fields.
    Narrow,
}

/// Bits from which on a field has many values.
const MANY_BITS: u16 = 12;

const COARSE_32: &[u32] = &[24, 16];
const FINE_32: &[u32] = &[32, 28, 24, 20, 16, 12, 8];
const COARSE_48: &[u32] = &[48, 24];
const FINE_48: &[u32] = &[48, 40, 32, 24, 16];
const COARSE_128: &[u32] = &[64, 48, 32];
const FINE_128: &[u32] = &[128, 112, 96, 80, 64, 56, 48, 44, 40, 36, 32, 28, 24, 20, 16];

/// The grids of prefix lengths of an address field, coarse and fine.
fn grids(field: Field) -> Option<(&'static [u32], &'static [u32])> {
    match FIELDS[field as usize].format {
        Format::Ipv4 => Some((COARSE_32, FINE_32)),
        Format::Mac => Some((COARSE_48, FINE_48)),
        Format::Ipv6 => Some((COARSE_128, FINE_128)),
        Format::Dec | Format::Hex | Format::Port | Format::TcpFlags | Format::Fragment => None,
    }
}

/// The part of an address mask that lies on the grid; zero when it is no prefix or a shorter one
/// than all on the grid.
fn on_grid(field: Field, mask: u128, grid: &[u32]) -> u128 {
    let width = u32::from(FIELDS[field as usize].bits);
    let prefix = |length: u32| field.full_mask() & !(field.full_mask() >> (length % 128));
    let prefix = |length: u32| if length == width { field.full_mask() } else { prefix(length) };
    grid.iter().map(|length| prefix(*length)).find(|kept| kept & mask == *kept).unwrap_or(0)
}

/// The bits that a level keeps of a mask. `None` when these separate little: no address is left
/// of a mask that has some, or no field of many values.
pub(super) fn relax(mask: &Mask, level: Relaxation) -> Option<Bits> {
    let addresses = |field: Field, bits: u128| match (level, grids(field)) {
        (_, None) => 0,
        (Relaxation::Coarse, Some((coarse, _))) => on_grid(field, bits, coarse),
        (Relaxation::Fine | Relaxation::Narrow, Some((_, fine))) => on_grid(field, bits, fine),
    };
    let many =
        |field: Field| FIELDS[field as usize].bits >= MANY_BITS && !matches!(field, Field::EthType);
    let has_address = mask.fields().iter().any(|(field, _)| grids(*field).is_some());
    let kept = |field: Field, bits: u128| match (has_address, level) {
        (true, Relaxation::Coarse | Relaxation::Fine) => addresses(field, bits),
        (true, Relaxation::Narrow) if grids(field).is_none() => bits,
        (true, Relaxation::Narrow) => addresses(field, bits),
        (false, Relaxation::Coarse) if many(field) => bits,
        (false, Relaxation::Coarse | Relaxation::Fine | Relaxation::Narrow) => 0,
    };
    let separates = |(field, bits): &(Field, u128)| match has_address {
        true => addresses(*field, *bits) != 0,
        false => kept(*field, *bits) != 0,
    };
    let parts = mask.fields().iter().map(|(field, bits)| (*field, kept(*field, *bits)));
    mask.fields().iter().any(separates).then(|| bits_of(parts))
}

fn bits_of(parts: impl Iterator<Item = (Field, u128)>) -> Bits {
    let mut all = [0; WORDS];
    let mut present = 0;
    for (field, bits) in parts.filter(|(_, bits)| *bits != 0) {
        let slot = FlowKey::slot(field);
        if slot.bits > 64 {
            all[slot.word] |= bits as u64;
            all[slot.word + 1] |= (bits >> 64) as u64;
        } else {
            all[slot.word] |= (bits as u64) << slot.shift;
        }
        // The same exception as in `Mask`: an absent tag is a value.
        if !matches!(field, Field::VlanVid) {
            present |= 1 << field as u32;
        }
    }
    let words = all.iter().zip(0_u8..).filter(|(bits, _)| **bits != 0);
    let words = words.map(|(bits, index)| MaskWord { index, bits: *bits }).collect();
    Bits { words, present }
}

#[cfg(test)]
mod tests {
    use super::{RELAXATIONS, relax};
    use crate::fast::compiled_match::{CompiledMatch, Masks};
    use openflow::{Field, Match};

    #[test]
    fn every_level_only_drops_bits() {
        let mut masks = Masks::default();
        for (src, dst) in (0..=32_u32).flat_map(|src| (0..=128_u32).map(move |dst| (src, dst))) {
            let prefix = |length: u32, width: u32| {
                let ones = u128::MAX >> (128 - width);
                if length == width { ones } else { ones & !(ones >> length) }
            };
            let matching = Match::any()
                .with(Field::EthType, 0x0800)
                .with(Field::TcpDst, 80)
                .with_masked(Field::Ipv4Src, 0, prefix(src, 32))
                .with_masked(Field::Ipv6Dst, 0, prefix(dst, 128));
            let mask = std::sync::Arc::clone(CompiledMatch::of(&matching, &mut masks).mask());
            for level in RELAXATIONS {
                let Some(bits) = relax(&mask, level) else { continue };
                assert!(bits.is_within(mask.words()), "{src} {dst} {level:?}");
                assert_eq!(bits.present & !mask.present(), 0, "{src} {dst} {level:?}");
            }
        }
    }
}
