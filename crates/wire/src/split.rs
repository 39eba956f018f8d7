//! Multipart messages that are longer than one frame can be (clause 7.3.5).
//!
//! A list is written to as few frames as it fits in, every one but the last with the MORE flag; an
//! element is never split. A frame is filled until the next element does not fit, so the bytes of
//! each element are written once and moved at most once.

use openflow::message::{
    MultipartReplyBody, MultipartRequest, MultipartRequestBody, MultipartType,
};
use openflow::{Message, MessageKind, Version, Xid};

use crate::error::EncodeError;
use crate::header::{HEADER_LEN, MAX_FRAME_LEN};
use crate::message::{encode, finish, write_header};
use crate::multipart;
use crate::table_features;
use crate::writer::{self, Writer};

/// Where the flags of a multipart message stand.
const FLAGS_AT: usize = HEADER_LEN + 2;

/// The frames of a reply, and how much of it the version could not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The frames, in their order; at least one.
    pub frames: Vec<Vec<u8>>,
    /// Elements left out because the version cannot say them.
    pub unsayable: usize,
}

/// The frames that say a multipart reply, each at most 65,535 bytes.
///
/// # Errors
/// As [`encode`]; [`EncodeError::TooLong`] only when a single element is longer than a frame.
pub fn encode_multipart(
    version: Version,
    xid: Xid,
    body: &MultipartReplyBody,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let mut splitter =
        Splitter::new(version, xid, MessageKind::MultipartReply, multipart::reply_type(body));
    splitter.begin()?;
    for element in multipart::elements(body) {
        splitter.add(|w| multipart::write_element(w, &element))?;
    }
    splitter.end()
}

/// As [`encode_multipart`], but elements that the version cannot say (a flow entry with a match on
/// IPv6, in 1.0) are left out and counted, as Open vSwitch does it.
///
/// # Errors
/// As [`encode_multipart`], but for those elements.
pub fn encode_sayable_multipart(
    version: Version,
    xid: Xid,
    body: &MultipartReplyBody,
) -> Result<Parts, EncodeError> {
    let mut splitter =
        Splitter::new(version, xid, MessageKind::MultipartReply, multipart::reply_type(body));
    splitter.begin()?;
    let mut unsayable = 0;
    for element in multipart::elements(body) {
        match splitter.add(|w| multipart::write_element(w, &element)) {
            Err(EncodeError::Unsupported { .. }) => unsayable += 1,
            added => added?,
        }
    }
    Ok(Parts { frames: splitter.end()?, unsayable })
}

/// The frames that say a multipart request; more than one only for table features.
///
/// # Errors
/// As [`encode_multipart`].
pub fn encode_multipart_request(
    version: Version,
    xid: Xid,
    body: &MultipartRequestBody,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    if let MultipartRequestBody::TableFeatures(tables) = body {
        let number = MultipartType::TableFeatures;
        let mut splitter = Splitter::new(version, xid, MessageKind::MultipartRequest, number);
        splitter.begin()?;
        for table in tables {
            splitter.add(|w| table_features::write(w, table))?;
        }
        return splitter.end();
    }
    let request = MultipartRequest { more: false, body: body.clone() };
    Ok(vec![encode(version, xid, &Message::MultipartRequest(request))?])
}

/// Fills frames with elements.
struct Splitter {
    version: Version,
    xid: Xid,
    kind: MessageKind,
    number: MultipartType,
    full: Vec<Vec<u8>>,
    frame: Vec<u8>,
}

impl Splitter {
    fn new(version: Version, xid: Xid, kind: MessageKind, number: MultipartType) -> Self {
        Self { version, xid, kind, number, full: Vec::new(), frame: Vec::new() }
    }

    fn begin(&mut self) -> Result<(), EncodeError> {
        let mut w = Writer::new(self.version, &mut self.frame);
        write_header(&mut w, self.xid, self.kind)?;
        multipart::write_header(&mut w, self.number, false)
    }

    /// Writes an element to this frame, or to the next one. On an error nothing of it is left.
    fn add(
        &mut self,
        write: impl Fn(&mut Writer<'_>) -> writer::Result<()>,
    ) -> Result<(), EncodeError> {
        let before = self.frame.len();
        let mut w = Writer::new(self.version, &mut self.frame);
        if let Err(error) = write(&mut w) {
            w.take_back(before);
            return Err(error);
        }
        if self.frame.len() <= MAX_FRAME_LEN {
            return Ok(());
        }
        let element = self.frame.split_off(before);
        self.close(true)?;
        self.begin()?;
        if self.frame.len() + element.len() > MAX_FRAME_LEN {
            return Err(EncodeError::TooLong { what: "element of a multipart message" });
        }
        self.frame.extend(element);
        Ok(())
    }

    fn close(&mut self, more: bool) -> Result<(), EncodeError> {
        let may_continue = self.may_continue();
        let mut w = Writer::new(self.version, &mut self.frame);
        finish(&mut w, 0)?;
        if more {
            w.require(may_continue, "a request of several parts")?;
            w.fill(FLAGS_AT, &multipart::MORE.to_be_bytes());
        }
        self.full.push(std::mem::take(&mut self.frame));
        Ok(())
    }

    /// 1.0 has the flag for replies only.
    fn may_continue(&self) -> bool {
        match self.version {
            Version::V1_0 => self.kind == MessageKind::MultipartReply,
            Version::V1_3 => true,
        }
    }

    fn end(mut self) -> Result<Vec<Vec<u8>>, EncodeError> {
        self.close(false)?;
        Ok(self.full)
    }
}
