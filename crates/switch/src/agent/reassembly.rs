//! Reassembly of requests in parts: table features, the only body that may be longer than a message
//! (clause 7.3.5).
//!
//! The parts of a request have one xid, and the last one says that no more follow. How many
//! requests wait for their last part, and how long each may become, is bounded, since the peer
//! chooses what it sends.

use openflow::message::{MultipartRequest, MultipartRequestBody};
use openflow::table::TableFeatures;
use openflow::{Error, Message, Xid};

/// Requests of one connection that may wait at a time.
const REQUESTS_MAX: usize = 4;

/// Tables that a request may name: all that there can be.
const TABLES_MAX: usize = 255;

/// The parts that have come so far.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    waiting: Vec<(Xid, Vec<TableFeatures>)>,
}

impl Reassembly {
    /// Takes a message: itself where it is whole, the whole request with its last part, and nothing
    /// with a part before.
    ///
    /// # Errors
    /// `OFPBRC_MULTIPART_BUFFER_OVERFLOW` where too much waits; the request is forgotten.
    pub(super) fn take(&mut self, xid: Xid, message: Message) -> Result<Option<Message>, Error> {
        let known = self.waiting.iter().position(|(waiting, _)| *waiting == xid);
        let Message::MultipartRequest(MultipartRequest {
            more,
            body: MultipartRequestBody::TableFeatures(tables),
        }) = message
        else {
            return Ok(Some(message));
        };
        if !more && known.is_none() {
            let body = MultipartRequestBody::TableFeatures(tables);
            return Ok(Some(Message::MultipartRequest(MultipartRequest { more, body })));
        }
        let mut all = known.map_or_else(Vec::new, |at| self.waiting.swap_remove(at).1);
        if all.len() + tables.len() > TABLES_MAX || self.waiting.len() >= REQUESTS_MAX {
            return Err(Error::BadRequestMultipartBufferOverflow);
        }
        all.extend(tables);
        if more {
            self.waiting.push((xid, all));
            return Ok(None);
        }
        let body = MultipartRequestBody::TableFeatures(all);
        Ok(Some(Message::MultipartRequest(MultipartRequest { more: false, body })))
    }
}

#[cfg(test)]
mod tests {
    use super::{REQUESTS_MAX, Reassembly, TABLES_MAX};
    use openflow::message::{MultipartRequest, MultipartRequestBody};
    use openflow::table::TableFeatures;
    use openflow::{Error, Message, TableId, Xid};

    fn part(more: bool, tables: std::ops::Range<usize>) -> Message {
        let table = |number: usize| TableFeatures {
            table_id: TableId(u8::try_from(number % 256).unwrap()),
            name: String::new(),
            metadata_match: 0,
            metadata_write: 0,
            config: 0,
            max_entries: 0,
            properties: Vec::new(),
        };
        let body = MultipartRequestBody::TableFeatures(tables.map(table).collect());
        Message::MultipartRequest(MultipartRequest { more, body })
    }

    #[test]
    fn parts_become_one_request_whatever_comes_between() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.take(Xid(1), part(true, 0..2)), Ok(None));
        assert_eq!(reassembly.take(Xid(2), part(false, 0..0)), Ok(Some(part(false, 0..0))));
        let barrier = Message::BarrierRequest;
        assert_eq!(reassembly.take(Xid(1), barrier.clone()), Ok(Some(barrier)));
        assert_eq!(reassembly.take(Xid(1), part(true, 2..3)), Ok(None));
        assert_eq!(reassembly.take(Xid(1), part(false, 3..5)), Ok(Some(part(false, 0..5))));
        assert_eq!(reassembly.take(Xid(1), part(false, 0..1)), Ok(Some(part(false, 0..1))));
    }

    #[test]
    fn neither_too_many_requests_nor_too_long_ones_wait() {
        let overflow = Err(Error::BadRequestMultipartBufferOverflow);
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.take(Xid(9), part(true, 0..TABLES_MAX)), Ok(None));
        assert_eq!(reassembly.take(Xid(9), part(true, 0..1)), overflow);
        for xid in 0..REQUESTS_MAX as u32 {
            assert_eq!(reassembly.take(Xid(xid), part(true, 0..1)), Ok(None));
        }
        assert_eq!(reassembly.take(Xid(9), part(true, 0..1)), overflow);
        assert_eq!(reassembly.take(Xid(0), part(false, 1..2)), Ok(Some(part(false, 0..2))));
    }
}
