//! Free memory of the allocator, back to the system.
#![allow(unsafe_code)]

/// Returns the free pages of the heap to the system, where the allocator is glibc's; others do so
/// by themselves. The calls of other threads that allocate wait meanwhile.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and locks what it changes.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::release_free_memory;

    #[test]
    fn what_is_in_use_stays() {
        let mut kept: Vec<Vec<u8>> = (0..4_096).map(|n| vec![n as u8; 4_096]).collect();
        kept.retain(|page| page[0] == 7);
        release_free_memory();
        assert!(kept.len() == 16 && kept.iter().flatten().all(|byte| *byte == 7));
    }
}
