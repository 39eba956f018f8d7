//! The atomics: those of the standard library, or loom's when its model checker runs.

#[cfg(not(feature = "loom"))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "loom")]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
