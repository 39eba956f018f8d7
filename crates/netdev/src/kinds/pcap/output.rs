//! The output of a capture: a regular file, or a stream, which is a FIFO or a device.
//!
//! A file that cannot take a burst whole takes nothing of it. A stream cannot take bytes back: of a
//! record that it took in part the rest goes first the next time. It must never wait for a reader,
//! and never write a record after a part of another one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::pcap::file_header;

/// Bytes that must find room before a full disk is taken for one with room: several bursts.
const PROBE_LEN: usize = 256 * 1_024;

/// Records to be written at once.
#[derive(Debug, Default)]
pub(super) struct CaptureBurst {
    pub(super) bytes: Vec<u8>,
    /// For each frame, where its record ends; one that makes no record ends where it begins.
    pub(super) ends: Vec<usize>,
}

impl CaptureBurst {
    /// The number of frames that are done with when `written` bytes are written, and the end of the
    /// last of their records: beyond these bytes when it was torn.
    fn taken(&self, written: usize) -> (usize, usize) {
        let whole = self.ends.partition_point(|end| *end <= written);
        let begin = whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        let begin = begin.unwrap_or_default();
        match self.ends.get(whole) {
            Some(end) if begin < written => (whole + 1, *end),
            Some(_) | None => (whole, begin),
        }
    }
}

/// The target of a capture.
#[derive(Debug)]
pub(super) enum CaptureOutput {
    /// A regular file.
    Disk(CaptureFile),
    /// A FIFO or a device.
    Stream(CaptureStream),
}

impl CaptureOutput {
    /// Creates the file `name`, or empties it; a FIFO is opened when it has a reader.
    pub(super) fn open(name: &str) -> io::Result<Self> {
        if fs::metadata(name).is_ok_and(|found| found.file_type().is_fifo()) {
            return Ok(Self::Stream(CaptureStream::without_reader(name)));
        }
        let mut file = File::create(name)?;
        file.write_all(&file_header())?;
        if file.metadata()?.is_file() {
            let whole_len = file_header().len() as u64;
            return Ok(Self::Disk(CaptureFile { file, whole_len }));
        }
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        Ok(Self::Stream(CaptureStream {
            name: name.to_owned(),
            file: Some(file),
            rest: Vec::new(),
        }))
    }

    /// Writes records; how many frames were taken. After an error none was.
    pub(super) fn write(&mut self, records: &CaptureBurst) -> io::Result<usize> {
        match self {
            Self::Disk(disk) => disk.write(&records.bytes).map(|()| records.ends.len()),
            Self::Stream(stream) => stream.write(records),
        }
    }

    /// Writes what is left of a torn record.
    pub(super) fn finish_record(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(_) => Ok(()),
            Self::Stream(stream) => stream.finish_record(),
        }
    }

    /// Whether it is a FIFO whose reader is waited for.
    pub(super) fn needs_reader(&self) -> bool {
        match self {
            Self::Disk(_) => false,
            Self::Stream(stream) => stream.file.is_none(),
        }
    }

    /// Tries whether records can be written, again after an error.
    pub(super) fn probe(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(disk) => disk.probe(),
            Self::Stream(stream) => stream.reopen(),
        }
    }
}

/// A regular file.
#[derive(Debug)]
pub(super) struct CaptureFile {
    file: File,
    /// Bytes up to the end of the last whole record.
    whole_len: u64,
}

impl CaptureFile {
    /// Writes the bytes after the last whole record, or nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).or_else(|error| {
            self.rewind()?;
            Err(error)
        })?;
        self.whole_len += bytes.len() as u64;
        Ok(())
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole_len)?;
        self.file.seek(SeekFrom::Start(self.whole_len)).map(drop)
    }

    fn probe(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&[0; PROBE_LEN]);
        self.rewind()?;
        written
    }
}

/// A FIFO or a device, without waiting.
#[derive(Debug)]
pub(super) struct CaptureStream {
    name: String,
    /// `None` while it has no reader.
    file: Option<File>,
    /// The rest of a torn record.
    rest: Vec<u8>,
}

impl CaptureStream {
    fn without_reader(name: &str) -> Self {
        Self { name: name.to_owned(), file: None, rest: Vec::new() }
    }

    fn write(&mut self, records: &CaptureBurst) -> io::Result<usize> {
        self.finish_record()?;
        if !self.rest.is_empty() {
            return Ok(0);
        }
        let written = self.write_some(&records.bytes)?;
        let (taken, end) = records.taken(written);
        self.rest.extend_from_slice(records.bytes.get(written..end).unwrap_or_default());
        Ok(taken)
    }

    fn finish_record(&mut self) -> io::Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let rest = std::mem::take(&mut self.rest);
        let written = self.write_some(&rest)?;
        self.rest.extend_from_slice(rest.get(written..).unwrap_or_default());
        Ok(())
    }

    /// Writes what finds room at once: the number of bytes. An error is the end of this stream: a
    /// later reader begins with a header.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("it has no reader"));
        };
        let mut written = 0;
        while let Some(left) = bytes.get(written..).filter(|left| !left.is_empty()) {
            match file.write(left) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.file = None;
                    self.rest.clear();
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    /// Opens it where it has a reader, and begins with the header of a capture.
    fn reopen(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).custom_flags(libc::O_NONBLOCK).open(&self.name);
        self.file = Some(file.map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => io::Error::other("it has no reader"),
            _ => error,
        })?);
        self.rest = file_header();
        self.finish_record()
    }
}

#[cfg(test)]
mod tests {
    use super::CaptureBurst;

    #[test]
    fn a_torn_record_is_taken_and_what_follows_is_not() {
        // The third frame makes no record.
        let records = CaptureBurst { bytes: vec![0; 30], ends: vec![10, 20, 20, 30] };
        let taken = [0, 1, 10, 11, 20, 29, 30].map(|written| records.taken(written));
        assert_eq!(taken, [(0, 0), (1, 10), (1, 10), (2, 20), (3, 20), (4, 30), (4, 30)]);
        assert_eq!(CaptureBurst::default().taken(0), (0, 0));
        let unfit_first = CaptureBurst { bytes: vec![0; 10], ends: vec![0, 10] };
        assert_eq!(
            [0, 5, 10].map(|written| unfit_first.taken(written)),
            [(1, 0), (2, 10), (2, 10)]
        );
    }
}
