//! Vector files: hex beside text, from other programs.
//!
//! `vectors/README.md` is the description of the format for people. This file must never interpret
//! the bytes: whether they are a message, an action or a packet is the test's business.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use cases::block::{self, Entry, Error};
use cases::hex;

/// One record of a vector file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Name, unique in its file.
    pub name: String,
    /// Origin of the bytes.
    pub source: Option<String>,
    /// The same in the syntax of `ovs-ofctl`.
    pub text: Option<String>,
    /// A decoding by another program: JSON, or a path relative to the folder of the file.
    pub json: Option<String>,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The protocol error that decoding must give, such as `OFPBRC_BAD_LEN`.
    pub error: Option<String>,
    /// Why the record is here.
    pub note: Option<String>,
    /// The file it was read from.
    pub file: PathBuf,
    /// The line of its `name`, counted from 1.
    pub line: usize,
}

impl Vector {
    /// `file:line (name)`, for messages of failing tests.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{} ({})", self.file.display(), self.line, self.name)
    }
}

/// The vectors in `text`; `file` is only used in messages and in [`Vector::file`].
///
/// # Errors
/// File, line and what is allowed, at the first record that is not understood.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Vector>, Error> {
    let mut names = HashSet::new();
    let mut vectors = Vec::new();
    for block in block::parse(file, text)? {
        let vector = record(file, &block)?;
        if !names.insert(vector.name.clone()) {
            let what = format!("the name `{}` stands twice in this file", vector.name);
            return Err(Error::new(file, vector.line, what));
        }
        vectors.push(vector);
    }
    Ok(vectors)
}

/// The vectors of one file.
///
/// # Errors
/// Line 0 when the file cannot be read; otherwise as [`parse`].
pub fn load(file: &Path) -> Result<Vec<Vector>, Error> {
    parse(file, &block::read(file)?)
}

/// The vectors of every `*.vec` below `dir`, in the order of their paths.
///
/// # Errors
/// As [`load`]; also when `dir` does not exist, so that a renamed folder cannot pass for an empty
/// one.
pub fn load_dir(dir: &Path) -> Result<Vec<Vector>, Error> {
    let mut all = Vec::new();
    for file in block::files(dir, "vec")? {
        all.extend(load(&file)?);
    }
    Ok(all)
}

fn record(file: &Path, block: &[Entry]) -> Result<Vector, Error> {
    let line = block.first().map_or(0, |entry| entry.line);
    let mut vector = Vector {
        name: String::new(),
        source: None,
        text: None,
        json: None,
        bytes: Vec::new(),
        error: None,
        note: None,
        file: file.to_path_buf(),
        line,
    };
    let mut seen = HashSet::new();
    for entry in block {
        let fail = |what: String| Error::new(file, entry.line, what);
        if !seen.insert(entry.key.as_str()) {
            return Err(fail(format!("the key `{}` stands twice in this record", entry.key)));
        }
        let value = entry.value.replace('\n', " ");
        match entry.key.as_str() {
            "name" if value.is_empty() => return Err(fail("the name is empty".into())),
            "name" => (vector.name, vector.line) = (value, entry.line),
            "source" => vector.source = Some(value),
            "text" => vector.text = Some(value),
            "json" => vector.json = Some(value),
            "hex" => vector.bytes = hex::parse(&entry.value).map_err(fail)?,
            "error" => vector.error = Some(value),
            "note" => vector.note = Some(value),
            other => {
                let allowed = "name, source, text, json, hex, error, note";
                return Err(fail(format!("unknown key `{other}`; allowed: {allowed}")));
            }
        }
    }
    for needed in ["name", "hex"] {
        if !seen.contains(needed) {
            return Err(Error::new(file, line, format!("this record has no `{needed}:`")));
        }
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::{load_dir, parse};
    use std::path::Path;

    fn error(text: &str) -> String {
        parse(Path::new("x.vec"), text).unwrap_err().to_string()
    }

    #[test]
    fn reads_every_key() {
        let text = "# c\nname: a/b\nsource: s\ntext: in_port=1,\n  actions=drop\njson: {}\n\
                    hex: 04 00\n  00 08\nerror: OFPBRC_BAD_LEN\nnote: n\n\nname: c\nhex:\n";
        let vectors = parse(Path::new("x.vec"), text).unwrap();
        assert_eq!(vectors.len(), 2);
        let first = &vectors[0];
        assert_eq!(first.place(), "x.vec:2 (a/b)");
        assert_eq!(first.bytes, [4, 0, 0, 8]);
        assert_eq!(first.text.as_deref(), Some("in_port=1, actions=drop"));
        assert_eq!(first.error.as_deref(), Some("OFPBRC_BAD_LEN"));
        assert_eq!(vectors[1].bytes, []);
    }

    #[test]
    fn refuses_with_place_and_remedy() {
        assert_eq!(error("name: a\n"), "x.vec:1: this record has no `hex:`");
        assert_eq!(error("\nhex: 00\n"), "x.vec:2: this record has no `name:`");
        assert_eq!(error("name: a\nhex: 0\n"), "x.vec:2: odd number of hex digits (1)");
        assert_eq!(
            error("name: a\nname: b\n"),
            "x.vec:2: the key `name` stands twice in this record"
        );
        let twice = "name: a\nhex: 00\n\nname: a\nhex: 00\n";
        assert_eq!(error(twice), "x.vec:4: the name `a` stands twice in this file");
        assert!(error("name: a\ncolour: red\n").contains("unknown key `colour`; allowed: name"));
    }

    #[test]
    fn the_vectors_of_the_workspace_are_well_formed() {
        load_dir(&crate::vectors_dir("")).unwrap();
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(load_dir(&crate::vectors_dir("no/such/folder")).is_err());
    }
}
