//! The syntax that cases and the test vectors share: blocks of `key: value` lines.
//!
//! One reader for both, so that comments, continuation lines and error messages are the same
//! everywhere. It must never drop a line silently: what is not understood is an error with its
//! place.

use std::fmt;
use std::path::{Path, PathBuf};

/// Mistake in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The file as it was named by the caller.
    pub file: PathBuf,
    /// Line, counted from 1; 0 when the file as a whole could not be read.
    pub line: usize,
    /// The mistake, and the allowed forms.
    pub what: String,
}

impl Error {
    /// An error at that place.
    pub fn new(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_path_buf(), line, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

impl std::error::Error for Error {}

/// One `key: value`, with its continuation lines joined by single line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Text before the colon.
    pub key: String,
    /// Text after it.
    pub value: String,
    /// Line of the key, counted from 1.
    pub line: usize,
}

/// Blocks of entries; blank lines stand between them.
///
/// # Errors
/// A line that is no entry and continues none.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Vec<Entry>>, Error> {
    let mut blocks = Vec::new();
    let mut block: Vec<Entry> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        if raw.starts_with('#') {
            continue;
        }
        if raw.trim().is_empty() {
            if !block.is_empty() {
                blocks.push(std::mem::take(&mut block));
            }
            continue;
        }
        if raw.starts_with([' ', '\t']) {
            let Some(last) = block.last_mut() else {
                return Err(Error::new(file, line, "an indented line continues nothing"));
            };
            last.value.push('\n');
            last.value.push_str(raw.trim());
            continue;
        }
        let Some((key, value)) = raw.split_once(':') else {
            return Err(Error::new(file, line, format!("expected `key: value`, found `{raw}`")));
        };
        let entry = Entry { key: key.trim().into(), value: value.trim().into(), line };
        block.push(entry);
    }
    if !block.is_empty() {
        blocks.push(block);
    }
    Ok(blocks)
}

/// All files below `dir` whose name ends in `.extension`, sorted by path.
///
/// # Errors
/// A folder cannot be read.
pub fn files(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| Error::new(&folder, 0, e.to_string()));
        for entry in entries? {
            let path = entry.map_err(|e| Error::new(&folder, 0, e.to_string()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|e| Error::new(file, 0, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::path::Path;

    #[test]
    fn blocks_comments_and_continuations() {
        let text = "# head\na: 1\n# inside\nb: x\n  y\n\n\nc:\n";
        let blocks = parse(Path::new("f"), text).unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0][1].value, "x\ny");
        assert_eq!((blocks[1][0].key.as_str(), blocks[1][0].line), ("c", 8));
    }

    #[test]
    fn says_where() {
        let error = parse(Path::new("dir/f.vec"), "a: 1\nnonsense\n").unwrap_err();
        assert_eq!(error.to_string(), "dir/f.vec:2: expected `key: value`, found `nonsense`");
        let error = parse(Path::new("f"), "  x\n").unwrap_err();
        assert_eq!(error.to_string(), "f:1: an indented line continues nothing");
    }
}
