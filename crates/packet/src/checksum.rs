//! The two checksums of the internet: ones' complement (RFC 1071, updated by RFC 1624) and CRC32c
//! (RFC 9260 appendix A).
//!
//! Numbers only: the bytes that a checksum covers are known where headers are.

/// A ones' complement sum in the making. Pieces but the last have an even number of bytes.
///
/// It adds 32-bit words in the host's byte order to 64 bits: the carries stay in the upper half, so
/// the loop has no branch and the compiler makes vector code of it. The order of bytes matters only
/// at the end (RFC 1071, section 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct InternetChecksum(u64);

impl InternetChecksum {
    /// Adds bytes as big-endian 16-bit words; a last odd byte is the higher half of its word.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut tail = [0; 4];
        tail[..rest.len()].copy_from_slice(rest);
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        self.0 += sum + u64::from(u32::from_ne_bytes(tail));
    }

    /// Adds a number of up to 32 bits as two words.
    pub fn add_number(&mut self, value: u32) {
        self.add(&value.to_be_bytes());
    }

    /// The checksum: the complement of the folded sum.
    #[must_use]
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::from_be(!(sum as u16))
    }

    /// The checksum of UDP, where zero is sent as all ones (RFC 768).
    #[must_use]
    pub fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => u16::MAX,
            checksum => checksum,
        }
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
    let mut sum = InternetChecksum(u64::from((!checksum).to_be()));
    let (words, _) = old.as_chunks::<2>();
    sum.0 += words.iter().map(|word| u64::from(!u16::from_ne_bytes(*word))).sum::<u64>();
    sum.add(new);
    sum.finish()
}

/// CRC32c of the pieces, one behind the other.
#[must_use]
pub fn crc32c(pieces: &[&[u8]]) -> u32 {
    pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece))
}

/// The value to XOR into the CRC32c of data in which `old` became `new`, with `behind` bytes after
/// it.
///
/// CRCs are linear: the difference of two is the difference of the CRCs of the changed bytes, moved
/// on by the bytes behind. Bytes before the change cost nothing and a wrong checksum stays wrong.
/// It is moved on by zero bytes, 8 in three cycles with SSE 4.2; the logarithmic way of the crate's
/// `crc32c_combine` squares a 32 by 32 matrix for each bit of the length, which is worth more than
/// the zeros of a frame.
#[must_use]
pub fn crc32c_change(old: &[u8], new: &[u8], behind: usize) -> u32 {
    const ZEROS: [u8; 256] = [0; 256];
    let mut change = crc32c::crc32c(old) ^ crc32c::crc32c(new);
    let mut left = behind;
    while left > 0 {
        let count = left.min(ZEROS.len());
        // The crate complements at both ends, which has no part in a difference.
        change = !crc32c::crc32c_append(!change, &ZEROS[..count]);
        left -= count;
    }
    change
}

#[cfg(test)]
mod tests {
    use super::{InternetChecksum, crc32c, crc32c_change, ones_complement, update};

    #[test]
    fn known_values() {
        // RFC 1071 section 3, numerical example.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(ones_complement(&example), !0xddf2);
        assert_eq!(ones_complement(&[0xab]), 0x54ff);
        let mut in_pieces = InternetChecksum::default();
        in_pieces.add(&example[..2]);
        in_pieces.add_number(0xf203_f4f5);
        in_pieces.add(&example[6..]);
        assert_eq!(in_pieces.finish(), !0xddf2);
        let mut zero = InternetChecksum::default();
        zero.add(&[0xff, 0xff]);
        assert_eq!((zero.finish(), zero.finish_udp()), (0, 0xffff));
        // RFC 3720 appendix B.4.
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 16], &[0xff; 16]]), 0x62a8_ab43);
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xe306_9283);
    }

    #[test]
    fn updates_give_what_a_recomputation_gives() {
        let mut data: Vec<u8> =
            (0..=254).chain(0..=254).chain(0..131).map(|n: u8| n.wrapping_mul(37)).collect();
        for at in [0, 2, 16, 38, 638] {
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
