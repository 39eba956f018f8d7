//! Numbered frames in captures: what the bar `cluster` sends, and which of it came out.
//!
//! A frame is known by its EtherType and its number. A capture that is still written may end in the
//! middle of a record, which is then not yet there.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The EtherTypes of frames that a flow entry forwards, and of those that the hub does: the local
/// experimental ones of IEEE 802.
pub(super) const BY_FLOW: u16 = 0x88b5;
pub(super) const BY_HUB: u16 = 0x88b6;

/// Offset of a frame's number.
pub(super) const NUMBER_AT: usize = 14;

/// Bytes of the head of a file, and of a record.
const FILE_HEAD: usize = 24;
const RECORD_HEAD: usize = 16;

/// A capture of one frame.
pub(super) fn of_one_frame(ethertype: u16) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(60, 0);
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0, 60, 60] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(frame);
    bytes
}

/// Changes sender and receiver of a capture of one frame.
pub(super) fn turn_around(capture: &mut [u8]) {
    let addresses = capture.get_mut(FILE_HEAD + RECORD_HEAD..).and_then(|it| it.get_mut(..12));
    if let Some(addresses) = addresses {
        addresses.rotate_left(6);
    }
}

/// The numbers of the frames of an EtherType, in the order in which they came out.
pub(super) fn numbers(bytes: &[u8], ethertype: u16) -> Vec<u32> {
    let is_little = bytes.first() != Some(&0xa1);
    let word = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    let (mut at, mut numbers) = (FILE_HEAD, Vec::new());
    while let Some(len) = word(at + 8) {
        let Some(frame) = bytes.get(at + RECORD_HEAD..at + RECORD_HEAD + len as usize) else {
            break;
        };
        if frame.get(12..14) == Some(&ethertype.to_be_bytes())
            && let Some(Ok(four)) = frame.get(NUMBER_AT..NUMBER_AT + 4).map(<[u8; 4]>::try_from)
        {
            numbers.push(u32::from_be_bytes(four));
        }
        at += RECORD_HEAD + len as usize;
    }
    numbers
}

/// Count of a range's numbers that were not seen.
pub(super) fn missing(seen: &[u32], range: RangeInclusive<u32>) -> u32 {
    let seen: BTreeSet<u32> = seen.iter().copied().filter(|one| range.contains(one)).collect();
    range.filter(|one| !seen.contains(one)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::{BY_FLOW, BY_HUB, missing, numbers, of_one_frame, turn_around};

    #[test]
    fn frames_have_type_and_number_and_torn_records_do_not_count() {
        let mut bytes = of_one_frame(BY_FLOW);
        let record = bytes[24..].to_vec();
        for number in [1_u8, 3] {
            let mut record = record.clone();
            record[16 + 17] = number;
            bytes.extend(record);
        }
        assert_eq!(numbers(&bytes, BY_FLOW), [0, 1, 3]);
        assert_eq!(numbers(&bytes, BY_HUB), [0; 0]);
        assert_eq!(numbers(&bytes[..bytes.len() - 1], BY_FLOW), [0, 1]);
        assert_eq!(numbers(&[], BY_FLOW), [0; 0]);
        let mut turned = of_one_frame(BY_HUB);
        turn_around(&mut turned);
        assert_eq!((turned[45], turned[51]), (1, 2), "the last bytes of the addresses");
        assert_eq!(numbers(&turned, BY_HUB), [0]);
        assert_eq!((missing(&[0, 1, 3, 9], 0..=3), missing(&[4, 4], 4..=4)), (1, 0));
    }
}
