//! Sixteen tags compared at once.
//!
//! One SSE2 compare instead of sixteen loads and branches; SSE2 is in every x86_64. It must equal
//! its scalar twin for all tags.

/// One bit for each of the bytes that equals the tag; found by plain code if asked to. A caller
/// with a loop keeps `is_plain` in a register: a branch that always goes one way is lost in the
/// wait for the tags.
#[inline(always)]
pub(crate) fn equal_tags(tags: &[u8; 16], tag: u8, is_plain: bool) -> u32 {
    if is_plain {
        return scalar(tags, tag);
    }
    #[cfg(target_arch = "x86_64")]
    return simd(tags, tag);
    #[cfg(not(target_arch = "x86_64"))]
    return scalar(tags, tag);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn simd(tags: &[u8; 16], tag: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    // SAFETY: SSE2 is part of x86_64, and the unaligned load reads the sixteen bytes of `tags`.
    unsafe {
        let tags = _mm_loadu_si128(tags.as_ptr().cast());
        _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag.cast_signed()))) as u32
    }
}

#[inline(never)]
fn scalar(tags: &[u8; 16], tag: u8) -> u32 {
    tags.iter().rev().fold(0, |bits, held| bits << 1 | u32::from(*held == tag))
}

#[cfg(test)]
mod tests {
    use super::equal_tags;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn simd_equals_scalar(tags in any::<[u8; 16]>(), tag in any::<u8>(), at in 0..16_usize) {
            let mut tags = tags;
            tags[at] = tag;
            prop_assert_eq!(equal_tags(&tags, tag, false), equal_tags(&tags, tag, true));
        }
    }
}
