//! A part of a match field: some of its bits, one after the other.

use crate::field::Field;

/// Bits of a field: the lowest, counted from zero, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRange {
    /// The lowest bit.
    pub offset: u16,
    /// Number of bits.
    pub n_bits: u16,
}

impl BitRange {
    /// All bits of a field.
    #[must_use]
    pub const fn all(field: Field) -> Self {
        Self { offset: 0, n_bits: field.row().bits }
    }

    /// Whether the field has all of these bits, and there are some.
    #[must_use]
    pub const fn is_within(self, field: Field) -> bool {
        self.n_bits > 0 && self.offset as u32 + self.n_bits as u32 <= field.row().bits as u32
    }

    /// The largest number that has room in the bits.
    #[must_use]
    pub fn largest(self) -> u128 {
        let spare = 128_u32.saturating_sub(self.n_bits.into());
        u128::MAX.checked_shr(spare).unwrap_or(0)
    }

    /// The bits in a field, as a mask; those beyond 128 are none.
    #[must_use]
    pub fn mask(self) -> u128 {
        self.place(u128::MAX)
    }

    /// A number at the place of the bits, cut to them.
    #[must_use]
    pub fn place(self, number: u128) -> u128 {
        (number & self.largest()).checked_shl(self.offset.into()).unwrap_or(0)
    }

    /// The bits of a field's value, as a number.
    #[must_use]
    pub fn of(self, value: u128) -> u128 {
        value.checked_shr(self.offset.into()).unwrap_or(0) & self.largest()
    }

    /// Nicira's encoding: the offset in ten bits, the number of bits less one in six.
    #[must_use]
    pub const fn to_ofs_nbits(self) -> u16 {
        self.offset << 6 | self.n_bits.wrapping_sub(1) & 0x3f
    }

    /// From Nicira's encoding.
    #[must_use]
    pub const fn from_ofs_nbits(number: u16) -> Self {
        Self { offset: number >> 6, n_bits: (number & 0x3f) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::BitRange;
    use crate::field::Field;

    #[test]
    fn bits_are_placed_and_read_back() {
        let bits = BitRange { offset: 4, n_bits: 8 };
        assert_eq!((bits.mask(), bits.place(0x1ab), bits.of(0xfabf)), (0xff0, 0xab0, 0xab));
        assert_eq!(BitRange::from_ofs_nbits(bits.to_ofs_nbits()), bits);
        assert!(bits.is_within(Field::Reg0) && !bits.is_within(Field::VlanPcp));
        assert_eq!(BitRange::all(Field::Ipv6Src).mask(), u128::MAX);
        let beyond = BitRange { offset: 1023, n_bits: 64 };
        assert_eq!((beyond.mask(), beyond.of(u128::MAX)), (0, 0));
    }
}
