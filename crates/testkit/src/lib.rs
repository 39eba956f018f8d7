//! The format of test vectors, where vectors and cases lie in the workspace, a seeded generator, an
//! etcd for tests that need one, and what a program leaves behind.
//!
//! Bytes in tests come from other programs and from the specification; they are kept as text so
//! that people can read and review them (`vectors/README.md` describes both formats). This crate
//! reads those files and makes no bytes of its own but random ones. It imports the cases only, so
//! every crate may use it in its tests, and it never decides what the bytes mean.
#![forbid(unsafe_code)]

mod etcd;
mod leftovers;
mod random;
pub mod vectors;

use std::path::{Path, PathBuf};

pub use cases::{self, Error, hex};
pub use etcd::{EtcdCertificates, EtcdProcess};
pub use leftovers::{marked_processes, network_devices};
pub use random::Random;

/// The root of the workspace: the folder that holds `vectors/` and `crates/`.
///
/// Known from where this crate was compiled, so tests may run from any working directory.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// The folder of the vectors, or a folder inside it: `vectors_dir("wire")`.
#[must_use]
pub fn vectors_dir(area: &str) -> PathBuf {
    workspace_root().join("vectors").join(area)
}

/// The folder of the cases, or a folder inside it: `cases_dir("reference")`.
#[must_use]
pub fn cases_dir(area: &str) -> PathBuf {
    workspace_root().join("cases").join(area)
}
