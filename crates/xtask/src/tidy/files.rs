//! The files that git tracks or would track, with their text.
//!
//! Checks take a [`SourceFile`], so tests make one from a string. Files that git ignores are never
//! looked at.

use std::cell::OnceCell;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// A file of the workspace.
pub(crate) struct SourceFile {
    /// Path relative to the workspace, with `/`.
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) size_bytes: u64,
    /// The text; none when it is not UTF-8.
    pub(crate) text: Option<String>,
    /// Parsed for the rule that asks first, and kept for those after it.
    tree: OnceCell<syn::Result<syn::File>>,
}

impl SourceFile {
    /// A file with this text.
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self::of(path, text.as_bytes().into())
    }

    fn of(path: &str, bytes: Vec<u8>) -> Self {
        let (path, size_bytes) = (path.into(), bytes.len() as u64);
        Self { path, size_bytes, text: String::from_utf8(bytes).ok(), tree: OnceCell::new() }
    }

    /// The syntax tree; none for what is no Rust file.
    pub(crate) fn parsed(&self) -> Option<&syn::Result<syn::File>> {
        let text = self.text.as_deref().filter(|_| self.is("rs"))?;
        Some(self.tree.get_or_init(|| syn::parse_file(text)))
    }

    /// The syntax tree; none for what is not Rust, which is a problem of `syntax` alone.
    pub(crate) fn tree(&self) -> Option<&syn::File> {
        self.parsed()?.as_ref().ok()
    }

    /// Whether the name ends in `.extension`.
    pub(crate) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| e == extension)
    }

    /// The crate it belongs to: the folder under `crates/`, and the path inside it.
    pub(crate) fn in_crate(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    /// All files of the workspace that git tracks or does not ignore.
    ///
    /// # Errors
    /// When git does not answer or a file cannot be read.
    pub(crate) fn tracked(root: &Path) -> Result<Vec<Self>> {
        let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = shell::capture(Command::new("git").current_dir(root).args(arguments))?;
        let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let full = root.join(path);
            // A tracked file may be deleted in the work tree; then there is nothing to check.
            if !full.is_file() {
                continue;
            }
            let bytes = std::fs::read(&full).with_context(|| format!("reading {path}"))?;
            files.push(Self::of(path, bytes));
        }
        Ok(files)
    }
}
