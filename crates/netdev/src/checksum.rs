//! The sums that a network card would have made: RFC 1071's for TCP, UDP and IPv4, and RFC 9260's
//! CRC32c for SCTP. They are computed over whole payloads here; incremental updates after a rewrite
//! are not this file's subject.

/// The one's complement sum of `bytes` added to `sum`, not folded, in the host's byte order; a last
/// odd byte counts as if a zero followed. Only the last part of a sum may be odd.
///
/// Sums 32-bit words into 64 bits: the carries stay in the upper half, so the loop has no branch
/// and the compiler makes vector code of it.
pub(crate) fn add(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut tail = [0; 4];
    tail[..rest.len()].copy_from_slice(rest);
    let words: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    sum + words + u64::from(u32::from_ne_bytes(tail))
}

/// The bytes of the checksum field for a `sum` of [`add`].
pub(crate) fn finish(sum: u64) -> [u8; 2] {
    let mut folded = sum;
    while folded >> 16 != 0 {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    // Folded to 16 bits.
    (!(folded as u16)).to_ne_bytes()
}

/// As [`finish`] for UDP, where a sum of zero is sent as all ones (RFC 768).
pub(crate) fn finish_udp(sum: u64) -> [u8; 2] {
    match finish(sum) {
        [0, 0] => [0xff, 0xff],
        other => other,
    }
}

/// CRC32c (Castagnoli) of `bytes`, bit by bit: SCTP over a veth is rare, a table not worth it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    let crc = bytes
        .iter()
        .fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)));
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(add(0, &bytes)), [!0xdd, !0xf2]);
        assert_eq!(finish(add(add(0, &bytes[..4]), &bytes[4..])), [!0xdd, !0xf2]);
        assert_eq!(finish(add(0, &[0xab])), [!0xab, 0xff]);
        assert_eq!(finish_udp(add(0, &[0xff, 0xff])), [0xff, 0xff]);
    }

    #[test]
    fn crc32c_check_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
