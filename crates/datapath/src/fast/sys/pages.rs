//! Large pages for large tables: fewer places where the processor has to look up an address.
//!
//! A table of megabytes that is read at random places needs an address translation for each line;
//! with pages of 2 MB instead of 4 KB all of them stay at hand. It is a wish that the system may
//! ignore; it must change nothing but time.

/// Bytes of a large page. Only what begins at a multiple of it can lie on large pages whole.
pub(crate) const HUGE: usize = 2 << 20;

/// Asks that a large table lie on large pages.
pub(crate) fn advise_huge(words: &mut [u64]) {
    let len = size_of_val(words);
    if len < HUGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4_096;
        let begin = words.as_mut_ptr().cast::<u8>();
        let skip = begin.align_offset(PAGE);
        let whole = (len.saturating_sub(skip)) / PAGE * PAGE;
        // SAFETY: the range lies within the slice, which is borrowed alone, and the advice changes
        // no byte of it.
        let _wish = unsafe {
            rustix::mm::madvise(
                begin.wrapping_add(skip).cast(),
                whole,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
    }
}
