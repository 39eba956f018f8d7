//! A multipart reply whose entries stay bytes (clause 7.3.5): for those who count a long list, or
//! hand it on, and need no value for each entry.

use openflow::MessageKind;
use openflow::message::MultipartType;

use crate::header::{Frame, HEADER_LEN};
use crate::multipart;
use crate::reader::Reader;

/// A multipart reply as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipartReplyFrame<'a> {
    kind: MultipartType,
    more: bool,
    body: &'a [u8],
}

impl<'a> MultipartReplyFrame<'a> {
    /// The multipart reply that a whole message is; `None` when it is another message, or has no
    /// whole multipart header.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let frame = Frame::parse(bytes).ok()?;
        let version = frame.header().known_version()?;
        if MessageKind::MultipartReply.number(version) != Some(frame.header().message_type) {
            return None;
        }
        let mut reader = Reader::new(version, frame.body(), HEADER_LEN, "multipart reply");
        let (kind, more) = multipart::read_header(&mut reader).ok()?;
        Some(Self { kind, more, body: reader.rest() })
    }

    /// Type of the list that it is a part of.
    #[must_use]
    pub fn kind(&self) -> MultipartType {
        self.kind
    }

    /// Whether further parts follow (`OFPMPF_REPLY_MORE`).
    #[must_use]
    pub fn more(&self) -> bool {
        self.more
    }

    /// The bytes after the multipart header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Number of entries of the body, for lists whose entries begin with their own length in 16
    /// bits: flow statistics, groups and their descriptions, table features. Bytes that are no
    /// whole entry are not counted.
    #[must_use]
    pub fn count_sized_entries(&self) -> u64 {
        let (mut rest, mut count) = (self.body, 0);
        while let Some(length) = rest.first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            match rest.get(length..) {
                Some(behind) if length > 0 => rest = behind,
                Some(_) | None => break,
            }
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::flow::FlowStats;
    use openflow::message::{MultipartReply, MultipartReplyBody, MultipartType};
    use openflow::text::parse_flow_mod;
    use openflow::{Message, Version, Xid};

    use super::MultipartReplyFrame;

    fn entry() -> FlowStats {
        let entry = parse_flow_mod("in_port=1,actions=output:2", FlowModCommand::Add).unwrap();
        FlowStats {
            table_id: entry.table_id,
            duration_s: 0,
            duration_ns: 0,
            priority: entry.priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: entry.flags,
            importance: entry.importance,
            cookie: entry.cookie,
            packet_count: 0,
            byte_count: 0,
            matching: entry.matching,
            instructions: entry.instructions,
        }
    }

    #[test]
    fn entries_of_a_list_are_counted_by_their_lengths() {
        for &version in Version::ALL {
            let body = MultipartReplyBody::Flow(vec![entry(); 3]);
            let reply = Message::MultipartReply(MultipartReply { more: true, body });
            let frame = crate::encode(version, Xid(1), &reply).unwrap();
            let part = MultipartReplyFrame::parse(&frame).unwrap();
            assert_eq!((part.kind(), part.more()), (MultipartType::Flow, true));
            assert_eq!(part.count_sized_entries(), 3, "{version}");
            for end in 0..frame.len() {
                assert_eq!(MultipartReplyFrame::parse(&frame[..end]), None);
            }
            let other = crate::encode(version, Xid(1), &Message::BarrierReply).unwrap();
            assert_eq!(MultipartReplyFrame::parse(&other), None);
        }
    }

    #[test]
    fn an_entry_without_length_ends_the_count() {
        let frame = [4, 19, 0, 20, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(MultipartReplyFrame::parse(&frame).unwrap().count_sized_entries(), 0);
    }
}
