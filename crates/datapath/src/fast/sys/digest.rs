//! The digest of packets' live bytes with the AES instructions of x86, for a burst at a time.
//!
//! The same function as [`crate::fast::forwarder`] defines in plain code; a test compares them. At
//! burst size the instructions of several packets overlap: measured 1.1-1.4 ns a packet with 512
//! bits at once.

use packet::{PacketBuf, Shape};

use crate::fast::forwarder::digest::{self, Keys, LINE, LineKeys, ROUNDS};

/// What the processor can do. Only what it can do can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Instructions);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    /// Plain code.
    Scalar,
    /// AES on 128 bits.
    Aes,
    /// AES on 512 bits, and loads that are masked by bytes.
    Vaes,
}

impl Level {
    /// Plain code.
    pub(crate) const SCALAR: Self = Self(Instructions::Scalar);

    /// All that this processor can do; the best is the last.
    fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let (aes, vaes) = {
            use std::arch::is_x86_feature_detected as has;
            let aes = has!("aes") && has!("sse4.1");
            let wide = has!("avx512f") && has!("avx512bw") && has!("avx512vl");
            (aes, aes && wide && has!("vaes"))
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (aes, vaes) = (false, false);
        let aes = aes.then_some(Self(Instructions::Aes));
        let vaes = vaes.then_some(Self(Instructions::Vaes));
        std::iter::once(Self(Instructions::Scalar)).chain(aes).chain(vaes)
    }

    /// The best that this processor can do.
    #[must_use]
    pub(crate) fn best() -> Self {
        Self::all().last().unwrap_or(Self(Instructions::Scalar))
    }
}

/// The live bytes of each shape.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct ShapeMasks(pub(crate) [[u8; LINE]; Shape::COUNT]);

/// Digests and shapes of a burst of frames: the live bytes of the first 64 of each, and the tweak,
/// which is mixed so that no frame and no tweak of another frame can undo it.
///
/// # Panics
/// When `out` or `shapes` is shorter than `frames`.
pub(crate) fn digest_frames(
    level: Level,
    frames: &[PacketBuf],
    masks: &ShapeMasks,
    keys: &LineKeys,
    tweak: u64,
    (shapes, out): (&mut [Shape], &mut [u128]),
) {
    assert!(shapes.len() >= frames.len() && out.len() >= frames.len(), "no room for the results");
    match level.0 {
        Instructions::Scalar => scalar(frames, masks, keys, tweak, shapes, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is made only by `Level::all`, which has asked the processor.
        Instructions::Aes => unsafe { x86::aes(frames, masks, keys, tweak, shapes, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Instructions::Vaes => unsafe { x86::vaes(frames, masks, keys, tweak, shapes, out) },
        #[cfg(not(target_arch = "x86_64"))]
        Instructions::Aes | Instructions::Vaes => scalar(frames, masks, keys, tweak, shapes, out),
    }
}

/// The digest of words of a flow key.
pub(crate) fn digest_words(level: Level, words: &[u64], keys: &Keys) -> u128 {
    match level.0 {
        Instructions::Scalar => digest::digest_words(words, keys),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; a processor with 512 bits has 128 bits too.
        Instructions::Aes | Instructions::Vaes => unsafe { x86::words(words, keys) },
        #[cfg(not(target_arch = "x86_64"))]
        Instructions::Aes | Instructions::Vaes => digest::digest_words(words, keys),
    }
}

/// What sets frames of other ports and shapes apart: bits that differ for each, and a spread of
/// them where the place in a table comes from.
#[inline]
fn tweaked(digest: u128, tweak: u64, shape: Shape) -> u128 {
    let apart = tweak << 8 | shape.index() as u64;
    let spread = apart.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    digest ^ (u128::from(apart) << 64 | u128::from(spread))
}

fn scalar(
    frames: &[PacketBuf],
    masks: &ShapeMasks,
    keys: &LineKeys,
    tweak: u64,
    shapes: &mut [Shape],
    out: &mut [u128],
) {
    for ((frame, shape), out) in frames.iter().zip(shapes).zip(out) {
        let bytes = frame.bytes();
        *shape = Shape::of(bytes);
        let mut line = [0; LINE];
        for ((place, byte), mask) in line.iter_mut().zip(bytes).zip(&masks.0[shape.index()]) {
            *place = byte & mask;
        }
        *out = tweaked(digest::digest(&line, keys), tweak, *shape);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_aesenc_si128, _mm_and_si128, _mm_loadu_si128, _mm_setzero_si128,
        _mm_storeu_si128, _mm_xor_si128, _mm512_aesenc_epi128, _mm512_and_si512,
        _mm512_extracti32x4_epi32, _mm512_load_si512, _mm512_maskz_loadu_epi8, _mm512_xor_si512,
    };

    use packet::{PacketBuf, Shape};

    use super::{Keys, LINE, LineKeys, ROUNDS, ShapeMasks, tweaked};

    #[inline]
    #[target_feature(enable = "aes,sse4.1")]
    fn number(it: __m128i) -> u128 {
        let mut bytes = [0_u8; 16];
        // SAFETY: the array has the 16 bytes.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), it) };
        u128::from_le_bytes(bytes)
    }

    #[inline]
    #[target_feature(enable = "aes,sse4.1")]
    fn lane(line: &[u8; LINE], lane: usize) -> __m128i {
        let part = &line[16 * lane..16 * lane + 16];
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "aes,sse4.1")]
    fn digest(line: &[u8; LINE], mask: Option<&[u8; LINE]>, keys: &LineKeys) -> __m128i {
        let mut sum = _mm_setzero_si128();
        for index in 0..LINE / 16 {
            let mut state = lane(line, index);
            if let Some(mask) = mask {
                state = _mm_and_si128(state, lane(mask, index));
            }
            state = _mm_xor_si128(state, lane(&keys.rounds[0], index));
            for key in &keys.rounds[1..] {
                state = _mm_aesenc_si128(state, lane(key, index));
            }
            sum = _mm_xor_si128(sum, state);
        }
        sum
    }

    #[target_feature(enable = "aes,sse4.1")]
    pub(super) fn aes(
        frames: &[PacketBuf],
        masks: &ShapeMasks,
        keys: &LineKeys,
        tweak: u64,
        shapes: &mut [Shape],
        out: &mut [u128],
    ) {
        for ((frame, shape), out) in frames.iter().zip(shapes).zip(out) {
            let bytes = frame.bytes();
            *shape = Shape::of(bytes);
            let mut short = [0; LINE];
            let line = if let Some(line) = bytes.first_chunk::<LINE>() {
                line
            } else {
                short[..bytes.len()].copy_from_slice(bytes);
                &short
            };
            let digest = digest(line, Some(&masks.0[shape.index()]), keys);
            *out = tweaked(number(digest), tweak, *shape);
        }
    }

    #[target_feature(enable = "aes,sse4.1")]
    pub(super) fn words(words: &[u64], keys: &Keys) -> u128 {
        let mut sum = _mm_setzero_si128();
        for (words, keys) in words.chunks(LINE / 8).zip(&keys.lines) {
            let mut line = [0; LINE];
            for (place, word) in line.chunks_exact_mut(8).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            sum = _mm_xor_si128(sum, digest(&line, None, keys));
        }
        number(sum)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,sse4.1")]
    fn wide(line: &[u8; LINE]) -> __m512i {
        debug_assert_eq!(line.as_ptr().align_offset(LINE), 0, "keys and masks are aligned");
        // SAFETY: the array has 64 bytes; keys and masks are aligned to 64 by their types.
        unsafe { _mm512_load_si512(line.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vaes,aes,sse4.1")]
    pub(super) fn vaes(
        frames: &[PacketBuf],
        masks: &ShapeMasks,
        keys: &LineKeys,
        tweak: u64,
        shapes: &mut [Shape],
        out: &mut [u128],
    ) {
        let rounds: [__m512i; ROUNDS + 1] = [
            wide(&keys.rounds[0]),
            wide(&keys.rounds[1]),
            wide(&keys.rounds[2]),
            wide(&keys.rounds[3]),
            wide(&keys.rounds[4]),
        ];
        for ((frame, shape), out) in frames.iter().zip(shapes).zip(out) {
            let bytes = frame.bytes();
            *shape = Shape::of(bytes);
            let held = if bytes.len() >= LINE { u64::MAX } else { !(u64::MAX << bytes.len()) };
            // SAFETY: bytes beyond the frame are masked out, and masked bytes are not touched.
            let line = unsafe { _mm512_maskz_loadu_epi8(held, bytes.as_ptr().cast()) };
            let mut state = _mm512_and_si512(line, wide(&masks.0[shape.index()]));
            state = _mm512_xor_si512(state, rounds[0]);
            state = _mm512_aesenc_epi128(state, rounds[1]);
            state = _mm512_aesenc_epi128(state, rounds[2]);
            state = _mm512_aesenc_epi128(state, rounds[3]);
            state = _mm512_aesenc_epi128(state, rounds[4]);
            let left = _mm_xor_si128(
                _mm512_extracti32x4_epi32::<0>(state),
                _mm512_extracti32x4_epi32::<1>(state),
            );
            let right = _mm_xor_si128(
                _mm512_extracti32x4_epi32::<2>(state),
                _mm512_extracti32x4_epi32::<3>(state),
            );
            *out = tweaked(number(_mm_xor_si128(left, right)), tweak, *shape);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, ShapeMasks, digest_frames, digest_words};
    use crate::fast::forwarder::digest::Keys;
    use crate::select::mix;
    use packet::{PacketBuf, Shape};

    #[test]
    fn instructions_and_plain_code_agree() {
        let keys = Keys::new(3);
        let byte = |n: usize| mix(n as u64) as u8;
        let masks = ShapeMasks(std::array::from_fn(|shape| {
            std::array::from_fn(|at| byte(shape * 64 + at) | byte(at))
        }));
        let frames: Vec<PacketBuf> = (0..300)
            .map(|len| {
                let mut bytes: Vec<u8> = (0..len % 130).map(|at| byte(len * 131 + at)).collect();
                if let Some(place) = bytes.get_mut(12..15) {
                    place.copy_from_slice(&[8, 0, 0x45]);
                }
                PacketBuf::from_slice(&bytes)
            })
            .collect();
        let of = |level| {
            let (mut shapes, mut out) = (vec![Shape::RARE; 300], vec![0; 300]);
            let results = (shapes.as_mut_slice(), out.as_mut_slice());
            digest_frames(level, &frames, &masks, &keys.lines[0], 5, results);
            (shapes, out)
        };
        let words: Vec<u64> = (0..29).map(mix).collect();
        for level in Level::all() {
            assert_eq!(of(level), of(Level::SCALAR), "{level:?}");
            let plain = digest_words(Level::SCALAR, &words, &keys);
            assert_eq!(digest_words(level, &words, &keys), plain);
        }
    }
}
