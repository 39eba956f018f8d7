//! The file of raw samples: one line of JSON for each measurement, written when it is made.
//!
//! The report is written at the end of a run. Whatever ends a run before, Ctrl-C, `kill -9` or a
//! full disk, the samples measured until then are whole lines in this file. The file is made before
//! the first measurement, so a folder that takes no files is found out then. A line must never be
//! held back in memory until the next one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::facts::Machine;
use crate::method::{Method, Timing};
use crate::report::{CellKey, SampleRecord};

/// Its name, beside the report's.
pub const NAME: &str = "samples.jsonl";

/// The first line: what the run is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`crate::report::FORMAT`], as in the report.
    pub format: u32,
    /// The scenario's name.
    pub scenario: String,
    /// When the run started, UTC.
    pub started: String,
    /// Durations and rates of the methods.
    pub timing: Timing,
    /// The machine.
    pub machine: Machine,
}

/// Every other line: a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// What was measured.
    pub cell: CellKey,
    /// By which method.
    pub method: String,
    /// Number of the measurement in its cell, from 0.
    pub repeat: usize,
    /// The figures, by their keys.
    pub values: BTreeMap<String, f64>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Load, limiting part and raw data, as in the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleRecord>,
}

impl Line {
    /// A measurement of which nothing is known yet.
    #[must_use]
    pub fn new(cell: &CellKey, method: &dyn Method, repeat: usize) -> Self {
        let (cell, method) = (cell.clone(), method.id().to_owned());
        Self { cell, method, repeat, values: BTreeMap::new(), error: None, sample: None }
    }
}

/// The file, open for the lines to come.
#[derive(Debug)]
pub struct SampleFile {
    file: File,
    path: PathBuf,
}

impl SampleFile {
    /// An empty file in `folder`, in place of one of an earlier run.
    ///
    /// # Errors
    /// When the folder takes no files.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        Ok(Self { file: File::create(&path)?, path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line: the [`Head`] first, then a [`Line`] for each measurement. It is one write, so
    /// that a program that is killed has written all of the line or nothing.
    ///
    /// # Errors
    /// As [`std::io::Write`].
    pub fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::{NAME, SampleFile};

    #[test]
    fn a_line_is_in_the_file_when_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let read = || std::fs::read_to_string(folder.path().join(NAME)).unwrap();
        let mut file = SampleFile::create(folder.path()).unwrap();
        file.append(&[1]).unwrap();
        assert_eq!(read(), "[1]\n");
        file.append(&[2]).unwrap();
        assert_eq!(read(), "[1]\n[2]\n");
        SampleFile::create(folder.path()).unwrap();
        assert_eq!(read(), "", "a run begins anew");
    }

    #[test]
    fn a_folder_that_takes_no_files_is_named_before_anything_is_measured() {
        assert!(SampleFile::create(std::path::Path::new("/proc/self")).is_err());
    }
}
