//! Whether the disk has room for a whole run.
//!
//! A full disk fails half of the steps with messages about other things, after many minutes. So a
//! whole run asks first, and says at its end what it has taken.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Free bytes that a whole run asks for where nothing is built yet: more than it takes, which it
/// says at its end.
const WHOLE_RUN_BYTES: u64 = 14 * GIB;

const GIB: u64 = 1 << 30;

/// The free bytes of the disk of a folder that exists.
///
/// # Errors
/// The system's.
pub(super) fn free(folder: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(folder)
        .with_context(|| format!("asking for the free space of {}", folder.display()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Says how much is free.
///
/// # Errors
/// That a whole run has no room, although nothing of an earlier one (`has_built`) is there.
pub(super) fn check(free: u64, has_built: bool) -> Result<()> {
    println!("{} GiB of disk free", free / GIB);
    if !has_built && free < WHOLE_RUN_BYTES {
        bail!(
            "a whole run asks for {} GiB of disk and there are {} GiB: make room, or choose \
             another disk by CARGO_TARGET_DIR, or run some steps by --only",
            WHOLE_RUN_BYTES / GIB,
            free / GIB
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{GIB, check, free};
    use std::path::Path;

    #[test]
    fn a_whole_run_without_room_is_refused_with_both_sizes() {
        let refusal = check(2 * GIB, false).unwrap_err().to_string();
        assert!(refusal.contains("14 GiB of disk and there are 2 GiB"), "{refusal}");
        check(2 * GIB, true).unwrap();
        check(14 * GIB, false).unwrap();
    }

    #[test]
    fn the_free_space_is_that_of_the_folders_disk() {
        assert!(free(Path::new("/")).unwrap() > 0);
        assert!(free(Path::new("/does/not/exist")).is_err());
    }
}
