//! The keyed hash of the masked words of a key.
//!
//! Two words go into one multiplication of 64 x 64 -> 128 bits whose halves are folded, each word
//! mixed with a secret of its own: about 1 ns for four words, without instructions that not every
//! processor has. The secrets come from the seed, so a peer that does not know it cannot choose
//! what collides. The hash decides where an entry lies and nothing else.

use packet::FlowKey;

use crate::fast::compiled_match::MaskWord;
use crate::select::{MIX_STEP, mix};

const SECRETS: usize = packet::WORDS + 2;

/// The secrets of one classifier.
#[derive(Debug)]
pub(super) struct Secrets([u64; SECRETS]);

impl Secrets {
    pub(super) fn of(seed: u64) -> Self {
        // SplitMix64: any seed, also zero, gives secrets with about half of the bits set.
        let state = |step: usize| seed.wrapping_add(MIX_STEP.wrapping_mul(step as u64));
        Self(std::array::from_fn(|step| mix(state(step))))
    }

    /// A secret of its own for hashes of another kind.
    pub(super) fn odd(&self) -> u64 {
        self.0[SECRETS - 1] | 1
    }

    /// The hash of `N` masked words.
    #[inline(always)]
    pub(super) fn of_row<const N: usize>(&self, row: &[u64; N]) -> u64 {
        let mut hash = 0;
        let mut at = 0;
        while at + 1 < N {
            hash ^= fold(row[at] ^ self.0[at], row[at + 1] ^ self.0[at + 1]);
            at += 2;
        }
        if at < N {
            hash ^= fold(row[at] ^ self.0[at], self.0[at + 1]);
        }
        hash
    }

    /// The same of words that are masked already.
    pub(super) fn of_words(&self, words: &[u64]) -> u64 {
        match *words {
            [a] => self.of_row(&[a]),
            [a, b] => self.of_row(&[a, b]),
            [a, b, c] => self.of_row(&[a, b, c]),
            [a, b, c, d] => self.of_row(&[a, b, c, d]),
            _ => words.chunks(2).zip(self.0.chunks(2)).fold(0, |hash, (pair, secrets)| {
                let second = pair.get(1).copied().unwrap_or_default();
                hash ^ fold(pair[0] ^ secrets[0], second ^ secrets[1])
            }),
        }
    }

    /// The same of a key under a mask of any size.
    #[inline]
    pub(super) fn of_masked(&self, key: &FlowKey, mask: &[MaskWord]) -> u64 {
        match mask.len() {
            1 => self.of_slice::<1>(key, mask),
            2 => self.of_slice::<2>(key, mask),
            3 => self.of_slice::<3>(key, mask),
            4 => self.of_slice::<4>(key, mask),
            5 => self.of_slice::<5>(key, mask),
            6 => self.of_slice::<6>(key, mask),
            _ => self.of_long(key, mask),
        }
    }

    #[inline(always)]
    fn of_slice<const N: usize>(&self, key: &FlowKey, mask: &[MaskWord]) -> u64 {
        mask.first_chunk::<N>().map_or(0, |mask| self.of_row(&masked(key, mask)))
    }

    #[cold]
    fn of_long(&self, key: &FlowKey, mask: &[MaskWord]) -> u64 {
        let mut words = [0; packet::WORDS];
        for (word, masked) in words.iter_mut().zip(mask) {
            *word = key.words()[usize::from(masked.index)] & masked.bits;
        }
        self.of_words(&words[..mask.len()])
    }
}

/// The words of a key that a mask looks at.
#[inline(always)]
pub(super) fn masked<const N: usize>(key: &FlowKey, mask: &[MaskWord; N]) -> [u64; N] {
    let words = key.words();
    std::array::from_fn(|at| words[usize::from(mask[at].index)] & mask[at].bits)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use crate::fast::compiled_match::MaskWord;
    use openflow::Field;
    use packet::FlowKey;

    #[test]
    fn keys_and_words_hash_alike_at_every_length() {
        let secrets = Secrets::of(0);
        let mut key = FlowKey::default();
        for row in openflow::field::FIELDS {
            key.set(row.field, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        }
        let mask: Vec<MaskWord> = (0..packet::WORDS as u8)
            .map(|index| MaskWord { index, bits: u64::MAX >> index })
            .collect();
        for len in 1..=mask.len() {
            let words: Vec<u64> = mask[..len]
                .iter()
                .map(|word| key.words()[usize::from(word.index)] & word.bits)
                .collect();
            assert_eq!(secrets.of_masked(&key, &mask[..len]), secrets.of_words(&words), "{len}");
        }
    }

    #[test]
    fn neighbours_spread_over_the_low_and_the_high_bits() {
        let secrets = Secrets::of(7);
        let mask = [MaskWord { index: FlowKey::slot(Field::Ipv4Dst).word as u8, bits: u64::MAX }];
        let (mut low, mut high) = ([0_u32; 256], [0_u32; 256]);
        for n in 0..25_600_u32 {
            let mut key = FlowKey::default();
            key.set(Field::Ipv4Dst, n.into());
            let hash = secrets.of_masked(&key, &mask);
            low[hash as usize % 256] += 1;
            high[(hash >> 56) as usize] += 1;
        }
        for count in low.iter().chain(&high) {
            assert!((50..200).contains(count), "{count} of 100");
        }
    }
}
