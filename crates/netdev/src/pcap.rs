//! Capture files, Ethernet only: pcap and pcapng, read whole and checked, and written.
//!
//! Of the classic format microseconds and nanoseconds, both byte orders. An error names the byte
//! where it was met; a file is either read to its end or refused, never read in part.

mod pcapng;

use std::path::Path;
use std::time::Duration;

const MAGIC_US: u32 = 0xa1b2_c3d4;
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const MAGIC_PCAPNG: u32 = 0x0a0d_0d0a;
const LINKTYPE_ETHERNET: u32 = 1;
const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// The longest record that `tcpdump` takes as possible.
const SNAPLEN: u32 = 262_144;

/// One captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureRecord<'a> {
    /// When, since the epoch.
    pub time: Duration,
    /// The frame's length on the wire; more than `frame.len()` when it was cut.
    pub wire_len: u32,
    /// The bytes that were kept.
    pub frame: &'a [u8],
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset})")]
pub struct FormatError {
    /// Place of the trouble, in bytes from the start.
    pub offset: usize,
    /// The trouble found there.
    pub reason: String,
}

/// A capture file in memory, checked to its end.
#[derive(Debug, Clone)]
pub struct Capture {
    bytes: Vec<u8>,
    records: Vec<RecordSpan>,
}

/// One record, with where its frame stands in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordSpan {
    pub(crate) start: usize,
    /// Bytes that were kept.
    pub(crate) kept: u32,
    pub(crate) wire_len: u32,
    pub(crate) time: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    swapped: bool,
    nanoseconds: bool,
}

impl Form {
    fn number(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let four = bytes.get(offset..offset.checked_add(4)?)?;
        let number = u32::from_ne_bytes(four.try_into().ok()?);
        Some(if self.swapped { number.swap_bytes() } else { number })
    }

    /// The record whose header stands at `offset`, which was found to be whole.
    fn span(self, bytes: &[u8], offset: usize) -> RecordSpan {
        let number = |at: usize| self.number(bytes, offset + at).unwrap_or_default();
        let fraction = u64::from(number(4));
        let fraction = if self.nanoseconds {
            Duration::from_nanos(fraction)
        } else {
            Duration::from_micros(fraction)
        };
        RecordSpan {
            start: offset + RECORD_HEADER_LEN,
            kept: number(8),
            wire_len: number(12),
            time: Duration::from_secs(number(0).into()) + fraction,
        }
    }

    fn of(magic: u32) -> Option<Self> {
        let form = |swapped, nanoseconds| Some(Self { swapped, nanoseconds });
        match (magic, magic.swap_bytes()) {
            (MAGIC_US, _) => form(false, false),
            (MAGIC_NS, _) => form(false, true),
            (_, MAGIC_US) => form(true, false),
            (_, MAGIC_NS) => form(true, true),
            _ => None,
        }
    }
}

impl Capture {
    /// Checks the bytes of a file.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, FormatError> {
        let wrong = |offset, reason: String| FormatError { offset, reason };
        if bytes.len() < FILE_HEADER_LEN {
            let reason = format!("a capture file has at least 24 bytes, this has {}", bytes.len());
            return Err(wrong(bytes.len(), reason));
        }
        let host = Form { swapped: false, nanoseconds: false };
        let magic = host.number(&bytes, 0).unwrap_or_default();
        if magic == MAGIC_PCAPNG {
            let records = pcapng::records(&bytes)?;
            return Ok(Self { bytes, records });
        }
        let Some(form) = Form::of(magic) else {
            return Err(wrong(0, format!("not a capture file: magic number {magic:#010x}")));
        };
        // The upper bits are about the FCS, which Ethernet captures of hosts do not have.
        let linktype = form.number(&bytes, 20).unwrap_or_default() & 0x0fff_ffff;
        if linktype != LINKTYPE_ETHERNET {
            return Err(wrong(20, format!("link type {linktype}, and only 1 (Ethernet) is read")));
        }
        let mut records = Vec::new();
        let mut offset = FILE_HEADER_LEN;
        while offset < bytes.len() {
            let Some(kept) = form.number(&bytes, offset + 8) else {
                return Err(wrong(offset, "the file ends within a record's header".into()));
            };
            if kept > SNAPLEN {
                return Err(wrong(offset + 8, format!("a record of {kept} bytes")));
            }
            let end = offset + RECORD_HEADER_LEN + kept as usize;
            if end > bytes.len() {
                let missing = end - bytes.len();
                return Err(wrong(offset, format!("the file ends {missing} bytes too early")));
            }
            records.push(form.span(&bytes, offset));
            offset = end;
        }
        Ok(Self { bytes, records })
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The record of that number, from 0.
    #[must_use]
    pub fn record(&self, number: usize) -> Option<CaptureRecord<'_>> {
        let span = self.records.get(number)?;
        Some(CaptureRecord {
            time: span.time,
            wire_len: span.wire_len,
            frame: self.bytes.get(span.start..span.start + span.kept as usize)?,
        })
    }
}

/// The header of a file with nanoseconds in this machine's byte order.
#[must_use]
pub fn file_header() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FILE_HEADER_LEN);
    bytes.extend_from_slice(&MAGIC_NS.to_ne_bytes());
    bytes.extend_from_slice(&2_u16.to_ne_bytes());
    bytes.extend_from_slice(&4_u16.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&SNAPLEN.to_ne_bytes());
    bytes.extend_from_slice(&LINKTYPE_ETHERNET.to_ne_bytes());
    bytes
}

/// Appends a record to `bytes`; false, and nothing appended, for a frame that is too long.
pub fn append_record(bytes: &mut Vec<u8>, time: Duration, frame: &[u8]) -> bool {
    let Some(len) = u32::try_from(frame.len()).ok().filter(|&len| len <= SNAPLEN) else {
        return false;
    };
    // The format's seconds end in 2106.
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    for number in [seconds, time.subsec_nanos(), len, len] {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    bytes.extend_from_slice(frame);
    true
}

/// The form of a capture file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureFormat {
    /// The classic format, with nanoseconds.
    Pcap,
    /// pcapng, with nanoseconds and the name of the port.
    Pcapng,
}

impl CaptureFormat {
    /// The format that the ending of a file's name says: pcapng for `.pcapng`, else pcap.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("pcapng") => Self::Pcapng,
            _ => Self::Pcap,
        }
    }

    /// Bytes before the first record; `port` is the name of the port.
    #[must_use]
    pub fn header(self, port: &str) -> Vec<u8> {
        match self {
            Self::Pcap => file_header(),
            Self::Pcapng => pcapng::header(port, SNAPLEN),
        }
    }

    /// Appends a record to `bytes`; false, and nothing appended, for a frame that is too long.
    /// `time` is since the epoch.
    pub fn append(self, bytes: &mut Vec<u8>, time: Duration, frame: &[u8]) -> bool {
        match self {
            Self::Pcap => append_record(bytes, time, frame),
            Self::Pcapng => frame.len() <= SNAPLEN as usize && pcapng::append(bytes, time, frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as a machine of the given byte order writes it, made without the code above.
    fn file(magic: u32, big_endian: bool) -> Vec<u8> {
        let number = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
        let version = if big_endian { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        let mut bytes = Vec::new();
        for part in [number(magic), version, [0; 4], [0; 4], number(65_535), number(1)] {
            bytes.extend_from_slice(&part);
        }
        for (seconds, fraction, kept, wire) in [(1, 500, 14, 14), (2, 7, 20, 99)] {
            for part in [seconds, fraction, kept, wire] {
                bytes.extend_from_slice(&number(part));
            }
            bytes.resize(bytes.len() + kept as usize, kept as u8);
        }
        bytes
    }

    #[test]
    fn both_byte_orders_and_both_resolutions_are_read() {
        for big_endian in [false, true] {
            for (magic, unit_ns) in [(MAGIC_US, 1_000), (MAGIC_NS, 1)] {
                let capture = Capture::parse(file(magic, big_endian)).unwrap();
                assert_eq!(capture.len(), 2);
                let first = capture.record(0).unwrap();
                assert_eq!(first.time, Duration::new(1, 500 * unit_ns));
                assert_eq!((first.frame, first.wire_len), (&[14; 14][..], 14));
                let second = capture.record(1).unwrap();
                assert_eq!((second.frame, second.wire_len), (&[20; 20][..], 99));
                assert_eq!(capture.record(2), None);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut bytes = file_header();
        assert!(append_record(&mut bytes, Duration::new(9, 8), b"a frame of sorts"));
        assert!(!append_record(&mut bytes, Duration::ZERO, &vec![0; SNAPLEN as usize + 1]));
        let capture = Capture::parse(bytes).unwrap();
        assert_eq!(capture.len(), 1);
        let record = capture.record(0).unwrap();
        assert_eq!((record.time, record.frame), (Duration::new(9, 8), &b"a frame of sorts"[..]));
    }

    #[test]
    fn both_formats_are_read_back_as_they_are_written() {
        for format in [CaptureFormat::Pcap, CaptureFormat::Pcapng] {
            let mut bytes = format.header("memory:wire?end=b");
            let frames = [&b"a frame of sorts"[..], b"", b"one byte more than"];
            let time = Duration::new(1_700_000_000, 123_456_789);
            for frame in frames {
                assert!(format.append(&mut bytes, time, frame));
            }
            assert!(!format.append(&mut bytes, time, &vec![0; SNAPLEN as usize + 1]));
            let capture = Capture::parse(bytes).unwrap();
            assert_eq!(capture.len(), frames.len(), "{format:?}");
            for (number, frame) in frames.into_iter().enumerate() {
                let record = capture.record(number).unwrap();
                let expected = (time, frame, frame.len() as u32);
                assert_eq!((record.time, record.frame, record.wire_len), expected, "{format:?}");
            }
        }
        let of = |name: &str| CaptureFormat::of_path(Path::new(name));
        assert_eq!(of("x.pcapng"), CaptureFormat::Pcapng);
        assert_eq!(of("x.pcap"), CaptureFormat::Pcap);
    }

    #[test]
    fn every_prefix_but_whole_records_is_refused_with_its_place() {
        let whole = file(MAGIC_US, false);
        for end in 0..whole.len() {
            match Capture::parse(whole[..end].to_vec()) {
                Ok(capture) => assert!(matches!((end, capture.len()), (24, 0) | (54, 1))),
                Err(error) => assert!(error.offset <= end, "{error}"),
            }
        }
    }

    #[test]
    fn other_formats_are_named() {
        let reason = |bytes: &[u8]| Capture::parse(bytes.to_vec()).unwrap_err().to_string();
        let mut other = file(MAGIC_US, false);
        other[20] = 113;
        assert!(reason(&other).contains("link type 113"), "{}", reason(&other));
        other[..4].copy_from_slice(&MAGIC_PCAPNG.to_ne_bytes());
        assert!(reason(&other).contains("pcapng block"));
        other[..4].copy_from_slice(b"GIF8");
        assert!(reason(&other).contains("magic"));
        let mut long = file(MAGIC_US, false);
        long[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(reason(&long).contains("(at byte 32)"), "{}", reason(&long));
    }
}
