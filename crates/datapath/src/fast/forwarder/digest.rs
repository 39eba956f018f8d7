//! The digest that stands for a packet's un-wildcarded bytes: 128 bits, keyed, from up to four
//! lines.
//!
//! Each lane of 16 bytes passes four rounds of AES under keys of its own and all lanes are summed
//! (XOR). Of two different inputs nobody who does not know the keys can say that their digests
//! differ in a certain way with a chance above 2^-113 (the best differential of four rounds of
//! AES), so equal digests are taken for equal inputs: at 100 million packets a second against two
//! million digests the first mistake is to be expected in some 10^11 years. The keys are
//! drawn from the forwarder's seed; a peer that knew them could make two flows look like one.
//!
//! The function is one; [`crate::fast::sys`] has it for processors with AES instructions, and this
//! file has it in plain code, as the definition.

use crate::select::mix;

/// Bytes that are digested at once.
pub(crate) const LINE: usize = 64;

/// Rounds of AES for each lane.
pub(crate) const ROUNDS: usize = 4;

/// Lines at most in one input.
pub(crate) const LINES: usize = 4;

/// The keys of a line: what is added before the first round, and the key of each round.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct LineKeys {
    pub(crate) rounds: [[u8; LINE]; ROUNDS + 1],
}

/// The keys of all lines.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) lines: [LineKeys; LINES],
}

impl Keys {
    /// The keys of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = mix(seed ^ 0x5745_4952_4b45_5953);
        let mut line = || {
            let mut bytes = [0; LINE];
            for word in bytes.chunks_exact_mut(8) {
                state = mix(state);
                word.copy_from_slice(&mix(state ^ seed.rotate_left(17)).to_le_bytes());
            }
            bytes
        };
        let lines = std::array::from_fn(|_| LineKeys { rounds: std::array::from_fn(|_| line()) });
        Self { lines }
    }
}

/// The digest of one line, in plain code.
pub(crate) fn digest(line: &[u8; LINE], keys: &LineKeys) -> u128 {
    let mut sum = 0;
    for lane in 0..LINE / 16 {
        let part = |bytes: &[u8; LINE]| {
            let mut lane_bytes = [0; 16];
            lane_bytes.copy_from_slice(&bytes[16 * lane..16 * lane + 16]);
            u128::from_le_bytes(lane_bytes)
        };
        let mut state = part(line) ^ part(&keys.rounds[0]);
        for key in &keys.rounds[1..] {
            state = aes_round(state, part(key));
        }
        sum ^= state;
    }
    sum
}

/// The digest of several lines of 64-bit words, in plain code: the sum of those of its lines.
pub(crate) fn digest_words(words: &[u64], keys: &Keys) -> u128 {
    let lines = words.chunks(LINE / 8).zip(&keys.lines);
    lines.fold(0, |sum, (words, keys)| {
        let mut line = [0; LINE];
        for (place, word) in line.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        sum ^ digest(&line, keys)
    })
}

/// One round of AES (FIPS 197 section 5.1) as the instruction has it: rows shifted, bytes
/// substituted, columns mixed, the key added.
fn aes_round(state: u128, key: u128) -> u128 {
    let bytes = state.to_le_bytes();
    let mut out = [0; 16];
    for column in 0..4 {
        let byte = |row: usize| SBOX[usize::from(bytes[(4 * (column + row) + row) % 16])];
        let (a, b, c, d) = (byte(0), byte(1), byte(2), byte(3));
        let all = a ^ b ^ c ^ d;
        out[4 * column] = a ^ all ^ double(a ^ b);
        out[4 * column + 1] = b ^ all ^ double(b ^ c);
        out[4 * column + 2] = c ^ all ^ double(c ^ d);
        out[4 * column + 3] = d ^ all ^ double(d ^ a);
    }
    u128::from_le_bytes(out) ^ key
}

const fn double(x: u8) -> u8 {
    (x << 1) ^ (if x & 0x80 != 0 { 0x1b } else { 0 })
}

const SBOX: [u8; 256] = sbox();

/// The substitution of AES: the inverse in GF(2^8), then an affine map. Walks the powers of the
/// generator 3 and of its inverse side by side.
const fn sbox() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut p, mut q) = (1_u8, 1_u8);
    loop {
        p ^= double(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 0x09;
        }
        let turned = q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = q ^ turned ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

#[cfg(test)]
mod tests {
    use super::{Keys, SBOX, aes_round, digest, digest_words};

    #[test]
    fn known_values() {
        assert_eq!(SBOX[..8], [0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5]);
        // FIPS 197 appendix B: from the start of round 1 to the start of round 2.
        let state = 0x193d_e3be_a0f4_e22b_9ac6_8d2a_e9f8_4808_u128;
        let key = 0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605_u128;
        let round = aes_round(state.swap_bytes(), key.swap_bytes());
        assert_eq!(round.swap_bytes(), 0xa49c_7ff2_689f_352b_6b5b_ea43_026a_5049);
    }

    #[test]
    fn every_bit_of_the_input_and_every_line_counts() {
        let keys = Keys::new(7);
        let zero = digest(&[0; 64], &keys.lines[0]);
        for bit in 0..512 {
            let mut line = [0; 64];
            line[bit / 8] = 1 << (bit % 8);
            let changed = (digest(&line, &keys.lines[0]) ^ zero).count_ones();
            assert!((30..100).contains(&changed), "bit {bit}: {changed}");
        }
        let mut words = [0; 32];
        let none = digest_words(&words, &keys);
        words[31] = 1;
        assert_ne!(digest_words(&words, &keys), none);
    }
}
