//! The capture format pcapng, Ethernet only: read through the crate `pcap-parser`, and written.
//!
//! A file is either read to its end or refused, as in [`crate::pcap`]. Blocks that hold no frame
//! are skipped. What is written has one section with one interface (IETF draft
//! draft-ietf-opsawg-pcapng), in this machine's byte order.

use std::time::Duration;

use pcap_parser::pcapng::{Block, parse_block_be, parse_block_le};
use pcap_parser::{InterfaceDescriptionBlock, Linktype};

use super::{FormatError, RecordSpan};

/// One interface of a section.
struct Interface {
    is_ethernet: bool,
    snaplen: u32,
    /// Ticks of a second.
    resolution: u64,
    offset_s: i64,
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>) -> Self {
        Self {
            is_ethernet: block.linktype == Linktype::ETHERNET,
            snaplen: block.snaplen,
            // The default of the format is microseconds.
            resolution: block.ts_resolution().filter(|ticks| *ticks > 0).unwrap_or(1_000_000),
            offset_s: block.ts_offset(),
        }
    }

    fn time(&self, ticks: u64) -> Duration {
        let seconds = (ticks / self.resolution).saturating_add_signed(self.offset_s);
        let fraction = u128::from(ticks % self.resolution) * 1_000_000_000;
        // Below a second.
        Duration::new(seconds, (fraction / u128::from(self.resolution)) as u32)
    }
}

/// The records of a file: each with where its frame stands in `bytes`.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<RecordSpan>, FormatError> {
    let mut records = Vec::new();
    let mut interfaces: Vec<Interface> = Vec::new();
    let (mut rest, mut is_big_endian) = (bytes, false);
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let wrong = |reason: String| FormatError { offset, reason };
        let broken = || wrong("a broken pcapng block".to_owned());
        let (kind, block) = first_block(rest, is_big_endian).ok_or_else(broken)?;
        rest = rest.get(block.len()..).unwrap_or_default();
        if !READ.contains(&kind) {
            continue;
        }
        let parsed = if is_big_endian { parse_block_be(block) } else { parse_block_le(block) };
        let (_, block) = parsed.map_err(|_| broken())?;
        let (interface, time, wire_len, kept, data) = match block {
            Block::SectionHeader(header) => {
                is_big_endian = header.big_endian();
                interfaces.clear();
                continue;
            }
            Block::InterfaceDescription(block) => {
                interfaces.push(Interface::of(&block));
                continue;
            }
            Block::EnhancedPacket(block) => {
                let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                (block.if_id, Some(ticks), block.origlen, block.caplen, block.data)
            }
            Block::SimplePacket(block) => {
                let snaplen = interfaces.first().map_or(0, |interface| interface.snaplen);
                let limit = if snaplen == 0 { u32::MAX } else { snaplen };
                (0, None, block.origlen, block.origlen.min(limit), block.data)
            }
            Block::NameResolution(_)
            | Block::InterfaceStatistics(_)
            | Block::SystemdJournalExport(_)
            | Block::DecryptionSecrets(_)
            | Block::ProcessInformation(_)
            | Block::Custom(_)
            | Block::Unknown(_) => continue,
        };
        let interface = interfaces
            .get(interface as usize)
            .ok_or_else(|| wrong(format!("a frame of the unknown interface {interface}")))?;
        if !interface.is_ethernet {
            return Err(wrong("a frame that is not of an Ethernet interface".to_owned()));
        }
        let frame = data
            .get(..kept as usize)
            .ok_or_else(|| wrong("a frame longer than its block".to_owned()))?;
        records.push(RecordSpan {
            // The frame is a part of `bytes`.
            start: frame.as_ptr().addr() - bytes.as_ptr().addr(),
            kept,
            wire_len,
            time: time.map_or(Duration::ZERO, |ticks| interface.time(ticks)),
        });
    }
    Ok(records)
}

/// The first block, whole, and its type. The parser relies on the length, and is given only blocks
/// of which something is read.
fn first_block(bytes: &[u8], is_big_endian: bool) -> Option<(u32, &[u8])> {
    let head: &[u8; BLOCK_OVERHEAD] = bytes.first_chunk()?;
    let [kind, len, magic] = head.as_chunks::<4>().0 else { return None };
    // A section header, the same in both orders, is followed by the section's order.
    let is_big_endian = if *kind == SECTION_HEADER.to_be_bytes() {
        *magic == BYTE_ORDER_MAGIC.to_be_bytes()
    } else {
        is_big_endian
    };
    let number = |four: &[u8; 4]| {
        if is_big_endian { u32::from_be_bytes(*four) } else { u32::from_le_bytes(*four) }
    };
    let block = bytes.get(..number(len) as usize)?;
    let is_whole = block.len() >= BLOCK_OVERHEAD && block.ends_with(len);
    is_whole.then(|| (number(kind), block))
}

/// The types of blocks that are read; others are skipped.
const READ: [u32; 4] = [SECTION_HEADER, INTERFACE_DESCRIPTION, SIMPLE_PACKET, ENHANCED_PACKET];
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The number by which a section shows its byte order.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Link type of Ethernet.
const ETHERNET: u16 = 1;
/// Option of an interface: its name.
const IF_NAME: u16 = 2;
/// Option of an interface: the negative power of ten that is a tick.
const IF_TSRESOL: u16 = 9;
/// Ticks are nanoseconds.
const NANOSECONDS: u8 = 9;
/// Longest name of an interface that is written; more is cut.
const NAME_MAX: usize = 255;
/// Bytes of a block besides its body: type, and length before and after it.
const BLOCK_OVERHEAD: usize = 12;

/// A section header and the description of the interface `name`.
pub(crate) fn header(name: &str, snaplen: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut body = BYTE_ORDER_MAGIC.to_ne_bytes().to_vec();
    body.extend([1_u16.to_ne_bytes(), 0_u16.to_ne_bytes()].concat());
    // The length of the section is not known: all ones.
    body.extend([0xff; 8]);
    append_block(&mut bytes, SECTION_HEADER, &[&body]);
    let mut body = [ETHERNET.to_ne_bytes(), [0; 2]].concat();
    body.extend(snaplen.to_ne_bytes());
    let name = name.as_bytes();
    append_option(&mut body, IF_NAME, name.get(..NAME_MAX).unwrap_or(name));
    append_option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
    // The end of the options.
    body.extend([0; 4]);
    append_block(&mut bytes, INTERFACE_DESCRIPTION, &[&body]);
    bytes
}

/// Appends a frame of the one interface; false for one whose length or time has no number.
pub(crate) fn append(bytes: &mut Vec<u8>, time: Duration, frame: &[u8]) -> bool {
    let (Ok(len), Ok(ticks)) = (u32::try_from(frame.len()), u64::try_from(time.as_nanos())) else {
        return false;
    };
    // Interface, upper and lower half of the time, bytes kept, bytes on the wire.
    let numbers = [0, (ticks >> 32) as u32, ticks as u32, len, len];
    let mut fixed = [0; 20];
    for (place, number) in fixed.as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
        *place = number.to_ne_bytes();
    }
    append_block(bytes, ENHANCED_PACKET, &[&fixed, frame]);
    true
}

/// A block: its pieces follow one another and are padded to four bytes together.
fn append_block(bytes: &mut Vec<u8>, kind: u32, pieces: &[&[u8]]) {
    let body: usize = pieces.iter().map(|piece| piece.len()).sum();
    let padding = body.next_multiple_of(4) - body;
    // A frame is at most some hundred thousand bytes.
    let len = ((body + padding + BLOCK_OVERHEAD) as u32).to_ne_bytes();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(len);
    for piece in pieces {
        bytes.extend_from_slice(piece);
    }
    bytes.resize(bytes.len() + padding, 0);
    bytes.extend(len);
}

fn append_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_ne_bytes());
    // Values here are at most NAME_MAX bytes.
    body.extend((value.len() as u16).to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::pcap::Capture;

    /// Two frames of 60 and 61 bytes as scapy 2.8.0 writes them with `PcapNgWriter`.
    const SCAPY: &str = "\
        0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c0000000100\
        000014000000010000000000040014000000060000005c00000000000000\
        240a0600901022183c0000003c0000000200000000020200000000010800\
        4500002e00010000401166bc0a0000010a00000200010002001aebb40000\
        000000000000000000000000000000005c00000006000000600000000000\
        0000240a0600d05231183d0000003d000000020000000002020000000001\
        08004500002f00010000401166bb0a0000010a00000200010002001be1a9\
        0101010101010101010101010101010101010100000060000000";

    fn bytes() -> Vec<u8> {
        let digits = SCAPY.as_bytes().as_chunks::<2>().0;
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.iter().map(|pair| byte(pair).unwrap()).collect()
    }

    #[test]
    fn a_file_of_another_program_is_read() {
        let capture = Capture::parse(bytes()).unwrap();
        assert_eq!(capture.len(), 2);
        for (number, len) in [(0, 60), (1, 61)] {
            let record = capture.record(number).unwrap();
            assert_eq!((record.frame.len(), record.wire_len), (len, len as u32));
            packet::verify(record.frame).unwrap();
            let seconds = 1_700_000_000 + number as u64;
            assert_eq!(record.time, Duration::new(seconds, 250_000_000));
        }
        assert_eq!(capture.record(2), None);
    }

    #[test]
    fn every_prefix_but_whole_blocks_is_refused() {
        let whole = bytes();
        let ends = [28, 48, 140];
        for end in 24..whole.len() {
            let parsed = Capture::parse(whole[..end].to_vec());
            assert_eq!(parsed.is_ok(), ends.contains(&end), "{end}: {parsed:?}");
        }
    }

    #[test]
    fn any_change_of_a_byte_is_survived() {
        let whole = bytes();
        for position in 0..whole.len() {
            for value in [0, 1, 2, 4, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[position] = value;
                if let Ok(capture) = Capture::parse(changed) {
                    assert!((0..capture.len()).all(|number| capture.record(number).is_some()));
                }
            }
        }
    }

    /// Found by the fuzz target `capture`: the parser subtracts 12 from the length of a block.
    #[test]
    fn a_block_shorter_than_its_lengths_is_refused() {
        let mut short = bytes();
        for len in 0..12_u8 {
            for kind in [6, 9] {
                short[48] = kind;
                short[52] = len;
                assert_eq!(Capture::parse(short.clone()).unwrap_err().offset, 48, "{kind} {len}");
            }
        }
    }

    #[test]
    fn frames_of_other_links_are_refused() {
        let mut other = bytes();
        other[36] = 113;
        let error = Capture::parse(other).unwrap_err();
        assert_eq!(error.offset, 48);
        assert!(error.to_string().contains("Ethernet"), "{error}");
    }
}
