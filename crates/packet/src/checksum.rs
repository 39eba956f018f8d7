//! The two checksums of the internet: ones' complement (RFC 1071, updated by RFC 1624) and CRC32c
//! (RFC 9260 appendix A).
//!
//! Numbers only: which bytes a checksum covers is said where headers are known.

/// A ones' complement sum in the making. Pieces but the last have an even number of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct InternetChecksum(u64);

impl InternetChecksum {
    /// Adds bytes as big-endian 16-bit words; a last odd byte is the higher half of its word.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut pairs = bytes.chunks_exact(2);
        for pair in &mut pairs {
            self.0 += u64::from(pair[0]) << 8 | u64::from(pair[1]);
        }
        if let [last] = pairs.remainder() {
            self.0 += u64::from(*last) << 8;
        }
    }

    /// Adds a number of up to 32 bits as two words.
    pub fn add_number(&mut self, value: u32) {
        self.0 += u64::from(value >> 16) + u64::from(value & 0xffff);
    }

    /// The checksum: the complement of the folded sum.
    #[must_use]
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The ones' complement checksum of `bytes`; zero over data that holds its own right checksum.
#[must_use]
pub fn ones_complement(bytes: &[u8]) -> u16 {
    let mut sum = InternetChecksum::default();
    sum.add(bytes);
    sum.finish()
}

/// The checksum after `old` became `new` (RFC 1624, equation 3). Both have the same even length
/// and start at an even offset of the data that is summed. A wrong checksum stays wrong.
#[must_use]
pub fn update(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let mut sum = InternetChecksum(u64::from(!checksum));
    for pair in old.chunks_exact(2) {
        sum.0 += u64::from(!(u16::from(pair[0]) << 8 | u16::from(pair[1])));
    }
    sum.add(new);
    sum.finish()
}

/// The Castagnoli polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

fn crc_step(state: u32, byte: u8) -> u32 {
    CRC_TABLE[usize::from(state as u8 ^ byte)] ^ state >> 8
}

/// CRC32c of the pieces, one behind the other.
#[must_use]
pub fn crc32c(pieces: &[&[u8]]) -> u32 {
    !pieces.iter().flat_map(|piece| piece.iter()).fold(u32::MAX, |crc, byte| crc_step(crc, *byte))
}

/// What to XOR into the CRC32c of data in which `old` became `new`, with `behind` bytes after it.
///
/// CRCs are linear: the difference of two is the CRC, begun with zero, of the difference of their
/// data. Bytes before the change cost nothing and a wrong checksum stays wrong.
#[must_use]
pub fn crc32c_change(old: &[u8], new: &[u8], behind: usize) -> u32 {
    let changed = old.iter().zip(new).fold(0, |crc, (old, new)| crc_step(crc, old ^ new));
    (0..behind).fold(changed, |crc, _| crc_step(crc, 0))
}

#[cfg(test)]
mod tests {
    use super::{crc32c, crc32c_change, ones_complement, update};

    #[test]
    fn known_values() {
        // RFC 1071 section 3, numerical example.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(ones_complement(&example), !0xddf2);
        // RFC 3720 appendix B.4.
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 16], &[0xff; 16]]), 0x62a8_ab43);
    }

    #[test]
    fn updates_give_what_a_recomputation_gives() {
        let mut data: Vec<u8> = (0..41).map(|n: u8| n.wrapping_mul(37)).collect();
        for at in [0, 2, 16, 38] {
            for new in [[0, 0], [0xff, 0xff], [0x12, 0x34]] {
                let before = ones_complement(&data);
                let crc = crc32c(&[&data]);
                let old = [data[at], data[at + 1]];
                data[at..at + 2].copy_from_slice(&new);
                assert_eq!(update(before, &old, &new), ones_complement(&data));
                let behind = data.len() - at - 2;
                assert_eq!(crc ^ crc32c_change(&old, &new, behind), crc32c(&[&data]));
            }
        }
    }
}
