//! The capture format pcapng, Ethernet only, read through the crate `pcap-parser`.
//!
//! A file is either read to its end or refused, as in [`crate::pcap`]. Blocks that hold no frame
//! are skipped.

use std::time::Duration;

use pcap_parser::pcapng::{Block, parse_block_be, parse_block_le};
use pcap_parser::{InterfaceDescriptionBlock, Linktype};

use crate::pcap::{FormatError, RecordSpan};

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
        let parsed = if is_big_endian { parse_block_be(rest) } else { parse_block_le(rest) };
        let (behind, block) = parsed.map_err(|_| wrong("a broken pcapng block".to_owned()))?;
        if behind.len() >= rest.len() {
            return Err(wrong("an empty pcapng block".to_owned()));
        }
        rest = behind;
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

    #[test]
    fn frames_of_other_links_are_refused() {
        let mut other = bytes();
        other[36] = 113;
        let error = Capture::parse(other).unwrap_err();
        assert_eq!(error.offset, 48);
        assert!(error.to_string().contains("Ethernet"), "{error}");
    }
}
