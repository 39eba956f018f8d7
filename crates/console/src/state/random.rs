//! Pktgen's random bits: up to 32 masks over the bytes of a packet, whose bits are zero, one,
//! random or left as they are.
//!
//! A mask becomes modifiers of bits, so that checksums stay right and no bit is set twice. It must
//! never say anything about bits that a mask leaves alone.

use std::collections::BTreeMap;

use generator::profile::{FieldModifier, FieldValue, Modifier, ModifierOp};

/// Bits of a mask, at most.
const MASK_MAX: usize = 32;

/// Modifiers of a mask, at most: seeds of different masks differ.
const SEEDS: u64 = 64;

/// A mask, and the byte of the packet at which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RandomBits {
    pub(crate) offset: u64,
    /// `0`, `1`, `X` for a random bit and `.` for one that stays, from the highest bit of the first
    /// byte on.
    pub(crate) mask: String,
}

/// The masks of a port, by number.
pub(crate) type RandomMasks = BTreeMap<u64, RandomBits>;

/// A mask as it is typed; `x` is `X`, and `_` between bits is for the eye.
///
/// # Errors
/// Other characters, no bit, or more than 32.
pub(crate) fn mask(text: &str) -> Result<String, String> {
    let mask: String = text.to_ascii_uppercase().chars().filter(|c| *c != '_').collect();
    let is_right = !mask.is_empty() && mask.len() <= MASK_MAX;
    if is_right && mask.chars().all(|c| "01.X".contains(c)) {
        return Ok(mask);
    }
    Err(format!("{text:?} is no mask: 1 to {MASK_MAX} of 0, 1, X (random) and . (as it is)"))
}

/// The modifiers that the masks are.
pub(crate) fn modifiers(masks: &RandomMasks) -> Vec<Modifier> {
    masks.iter().flat_map(|(number, bits)| mask_modifiers(*number, bits)).collect()
}

fn mask_modifiers(number: u64, bits: &RandomBits) -> Vec<Modifier> {
    let symbols: Vec<char> = bits.mask.chars().collect();
    let mut made = Vec::new();
    for (place, byte) in symbols.chunks(8).enumerate() {
        let first_of_byte = 8 * (bits.offset + place as u64);
        let mut at = 0;
        for run in byte.chunk_by(|a, b| (*a == 'X') == (*b == 'X') && (*a == '.') == (*b == '.')) {
            let field = format!("bits.{}+{}", first_of_byte + at, run.len());
            at += run.len() as u64;
            let modifier = match run[0] {
                '.' => continue,
                'X' => FieldModifier {
                    seed: Some(1 + number * SEEDS + made.len() as u64),
                    ..FieldModifier::new(&field, ModifierOp::Random)
                },
                _ => {
                    let value = run.iter().fold(0, |sum, bit| sum << 1 | u64::from(*bit == '1'));
                    let values = vec![FieldValue::Number(value)];
                    FieldModifier { values, ..FieldModifier::new(&field, ModifierOp::List) }
                }
            };
            made.push(Modifier::Field(modifier));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use generator::profile::Modifier;

    use super::{RandomBits, RandomMasks, mask, modifiers};

    #[test]
    fn a_mask_is_the_modifiers_of_its_bits() {
        let bits = RandomBits { offset: 26, mask: mask("..01xxxx_1.......").unwrap() };
        let made = modifiers(&RandomMasks::from([(3, bits)]));
        let texts: Vec<String> = made
            .iter()
            .map(|modifier| {
                let Modifier::Field(field) = modifier else { panic!("{modifier:?}") };
                format!("{} {:?} {:?}", field.field, field.seed, field.values)
            })
            .collect();
        assert_eq!(
            texts,
            [
                "bits.210+2 None [Number(1)]",
                "bits.212+4 Some(194) []",
                "bits.216+1 None [Number(1)]",
            ]
        );
        for wrong in ["", "_", "2", "X0 1", &"X".repeat(33)] {
            assert!(mask(wrong).is_err(), "{wrong}");
        }
    }
}
