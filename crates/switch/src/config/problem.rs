//! A fault of a value among others, before its place in a file is known.
//!
//! It must never name the file: the reader of the file finds the place by the key.

/// A fault of a value that is fine by itself.
pub(crate) struct Problem {
    /// The table that has it, among those of several bridges.
    pub(crate) bridge: Option<usize>,
    pub(crate) key: &'static str,
    pub(super) index: Option<usize>,
    pub(crate) message: String,
}

impl Problem {
    pub(super) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { bridge: None, key, index: None, message: message.into() }
    }

    pub(super) fn at(key: &'static str, index: usize, message: String) -> Self {
        Self { bridge: None, key, index: Some(index), message }
    }
}
