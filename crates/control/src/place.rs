//! The place of the control socket where none is named.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The control socket that `weir switch` makes and `weir ctl` asks where none is named: under
/// `/run/weir` for root, else under `$XDG_RUNTIME_DIR`, else under the temporary folder.
#[must_use]
pub fn default_path() -> PathBuf {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let folder = if root {
        PathBuf::from("/run")
    } else {
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) if !folder.is_empty() => PathBuf::from(folder),
            _ => std::env::temp_dir(),
        }
    };
    folder.join("weir").join("switch.sock")
}
