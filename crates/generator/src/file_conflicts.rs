//! Files that ports and commands use at the same time must be apart.
//!
//! Two writers spoil one file for each other, and a writer empties the file that another one is to
//! read. So all files of a run are known before any of them is opened for writing, and a file that
//! has two uses is refused with both. Links of any kind are followed, to a file that is not there
//! yet too. It must never open a file itself, and never take a device or a FIFO for one.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use netdev::FileUse;
use netdev::PortSpec;

/// As many links after one another as Linux follows.
const LINKS_MAX: usize = 40;

/// Two uses of one file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{one} and {other} are the same file; use another one for one of them")]
pub struct FileOverlap {
    /// The use that was known first.
    pub one: String,
    /// The use that was added to it.
    pub other: String,
}

/// Identity of a file, by whatever name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FilePlace {
    /// Device and inode.
    There(u64, u64),
    /// It is not there yet: device and inode of its folder, and its name.
    Absent(u64, u64, OsString),
}

impl FilePlace {
    /// `None` for what is no regular file, and for one whose folder is not there.
    fn of(path: &Path) -> Option<Self> {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            if let Ok(facts) = path.metadata() {
                return Self::of_open(&facts);
            }
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
                Some(_) | None => PathBuf::from("."),
            };
            match path.read_link() {
                Ok(target) => path = folder.join(target),
                Err(_) => {
                    let facts = folder.metadata().ok()?;
                    let name = path.file_name()?.to_owned();
                    return Some(Self::Absent(facts.dev(), facts.ino(), name));
                }
            }
        }
        None
    }

    fn of_open(facts: &Metadata) -> Option<Self> {
        facts.is_file().then(|| Self::There(facts.dev(), facts.ino()))
    }
}

/// The files of a run.
#[derive(Clone, Debug, Default)]
pub struct FilesInUse {
    files: Vec<(String, FilePlace, FileUse)>,
}

impl FilesInUse {
    /// Those of ports.
    ///
    /// # Errors
    /// Two ports that cannot have one file.
    pub fn of_ports(specs: &[PortSpec]) -> Result<Self, FileOverlap> {
        let mut files = Self::default();
        for spec in specs {
            if let Some(how) = spec.file_use() {
                files.add(&format!("port {spec}"), Path::new(spec.name()), how)?;
            }
        }
        Ok(files)
    }

    /// Adds a use; `name` is its user.
    ///
    /// # Errors
    /// The use that has this file already, and must not.
    pub fn add(&mut self, name: &str, path: &Path, how: FileUse) -> Result<(), FileOverlap> {
        match FilePlace::of(path) {
            Some(place) => self.add_place(name, place, how),
            None => Ok(()),
        }
    }

    /// One more that is open already.
    ///
    /// # Errors
    /// As [`FilesInUse::add`].
    pub fn add_open(
        &mut self,
        name: &str,
        facts: &Metadata,
        how: FileUse,
    ) -> Result<(), FileOverlap> {
        match FilePlace::of_open(facts) {
            Some(place) => self.add_place(name, place, how),
            None => Ok(()),
        }
    }

    /// Whether one more could be added.
    ///
    /// # Errors
    /// As [`FilesInUse::add`].
    pub fn check(&self, name: &str, path: &Path, how: FileUse) -> Result<(), FileOverlap> {
        self.clone().add(name, path, how)
    }

    fn add_place(&mut self, name: &str, place: FilePlace, how: FileUse) -> Result<(), FileOverlap> {
        let clashes = |other: FileUse| how == FileUse::Write || how != other;
        let other = self.files.iter().find(|(_, at, other)| *at == place && clashes(*other));
        if let Some((one, ..)) = other {
            return Err(FileOverlap { one: one.clone(), other: name.to_owned() });
        }
        self.files.push((name.to_owned(), place, how));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use netdev::PortSpec;

    use super::{FileUse, FilesInUse};

    fn ports(texts: &[String]) -> Result<FilesInUse, String> {
        let specs: Vec<PortSpec> = texts.iter().map(|text| text.parse().unwrap()).collect();
        FilesInUse::of_ports(&specs).map_err(|error| error.to_string())
    }

    #[test]
    fn one_file_has_one_writer_and_no_reader_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text = |name: &str| path(name).display().to_string();
        std::fs::write(path("x.pcap"), "").unwrap();
        std::fs::hard_link(path("x.pcap"), path("hard.pcap")).unwrap();
        symlink("x.pcap", path("soft.pcap")).unwrap();
        // Two links to a file that is not there yet.
        symlink("new.pcap", path("dangling.pcap")).unwrap();
        symlink("dangling.pcap", path("twice.pcap")).unwrap();
        let write = |name: &str| format!("pcap:{}?write=true", text(name));
        let read = |name: &str| format!("pcap:{}", text(name));
        for (one, other) in [
            (write("x.pcap"), read("x.pcap")),
            (read("x.pcap"), write("hard.pcap")),
            (write("soft.pcap"), write("./x.pcap")),
            (write("new.pcap"), write("new.pcap")),
            (write("new.pcap"), write("twice.pcap")),
            (write("dangling.pcap"), read("twice.pcap")),
            (write("x.pcap"), format!("memory:{}?end=a", text("x.pcap"))),
        ] {
            let error = ports(&[one.clone(), "null:".to_owned(), other.clone()]).unwrap_err();
            let both = format!("port {one} and port {other} are the same file");
            assert!(error.starts_with(&both), "{error}");
        }
        let wire = |end: &str| format!("memory:{}?end={end}", text("wire"));
        let device = || "pcap:/dev/null?write=true".to_owned();
        let apart = [wire("a"), wire("b"), read("x.pcap"), read("soft.pcap"), write("new.pcap")];
        assert!(ports(&[&apart[..], &[device(), device()]].concat()).is_ok());
        // Nowhere at all, and a link to itself: who opens them says so.
        symlink("loop", path("loop")).unwrap();
        assert!(ports(&[write("no/x.pcap"), write("no/x.pcap"), write("loop")]).is_ok());
    }

    #[test]
    fn what_is_open_already_is_a_file_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let facts = std::fs::File::create(&path).unwrap().metadata().unwrap();
        let mut files = FilesInUse::default();
        files.add_open("standard output", &facts, FileUse::Write).unwrap();
        let error = files.check("the profile", &path, FileUse::Read).unwrap_err();
        assert_eq!((error.one.as_str(), error.other.as_str()), ("standard output", "the profile"));
        let null = std::fs::File::open("/dev/null").unwrap().metadata().unwrap();
        files.add_open("standard input", &null, FileUse::Read).unwrap();
        assert_eq!(files.add("x", Path::new("/dev/null"), FileUse::Write), Ok(()));
    }
}
