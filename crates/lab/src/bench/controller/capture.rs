//! Numbered frames in captures: what the rows `cluster` send, and which of it came out.
//!
//! A frame is known by its EtherType and its number. A capture that is still written may end in the
//! middle of a record, which is then not yet there.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use netdev::pcap::{Capture, append_record, file_header};

/// The EtherTypes of frames that a flow entry forwards, and of those that the hub does: the local
/// experimental ones of IEEE 802.
pub(super) const BY_FLOW: u16 = 0x88b5;
pub(super) const BY_HUB: u16 = 0x88b6;

/// Offset of a frame's number.
pub(super) const NUMBER_AT: usize = 14;

/// A capture of one frame, from one host to another.
pub(super) fn of_one_frame(ethertype: u16, [from, to]: [u8; 2]) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, to, 0x02, 0, 0, 0, 0, from];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(60, 0);
    let mut bytes = file_header();
    append_record(&mut bytes, Duration::ZERO, &frame);
    bytes
}

/// The numbers of the frames of an EtherType, in the order in which they came out.
pub(super) fn numbers(mut bytes: Vec<u8>, ethertype: u16) -> Vec<u32> {
    if let Err(torn) = Capture::parse(bytes.clone()) {
        bytes.truncate(torn.offset);
    }
    let Ok(capture) = Capture::parse(bytes) else { return Vec::new() };
    let number = |frame: &[u8]| {
        let is_it = frame.get(12..14)? == ethertype.to_be_bytes();
        let four = frame.get(NUMBER_AT..)?.first_chunk()?;
        is_it.then(|| u32::from_be_bytes(*four))
    };
    (0..capture.len()).filter_map(|at| number(capture.record(at)?.frame)).collect()
}

/// Count of a range's numbers that were not seen.
pub(super) fn missing(seen: &[u32], range: RangeInclusive<u32>) -> u32 {
    let seen: BTreeSet<u32> = seen.iter().copied().filter(|one| range.contains(one)).collect();
    range.filter(|one| !seen.contains(one)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::{BY_FLOW, BY_HUB, missing, numbers, of_one_frame};

    #[test]
    fn frames_have_type_and_number_and_torn_records_do_not_count() {
        let mut bytes = of_one_frame(BY_FLOW, [1, 2]);
        let record = bytes[24..].to_vec();
        for number in [1_u8, 3] {
            let mut record = record.clone();
            record[16 + 17] = number;
            bytes.extend(record);
        }
        assert_eq!(numbers(bytes.clone(), BY_FLOW), [0, 1, 3]);
        assert_eq!(numbers(bytes.clone(), BY_HUB), [0; 0]);
        bytes.pop();
        assert_eq!(numbers(bytes, BY_FLOW), [0, 1]);
        assert_eq!(numbers(Vec::new(), BY_FLOW), [0; 0]);
        let back = of_one_frame(BY_HUB, [2, 1]);
        assert_eq!((back[45], back[51]), (1, 2), "the last bytes of the addresses");
        assert_eq!(numbers(back, BY_HUB), [0]);
        assert_eq!((missing(&[0, 1, 3, 9], 0..=3), missing(&[4, 4], 4..=4)), (1, 0));
    }
}
