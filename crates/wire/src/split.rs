//! Multipart replies that are longer than one frame can be (clause 7.3.5).
//!
//! A list is written to as few frames as it fits in, every one but the last with the MORE flag; an
//! element is never split. Frames are made one at a time, so that who sends them can do other
//! things in between and never holds the whole reply twice.

use openflow::flow::FlowForm;
use openflow::message::MultipartReplyBody;
use openflow::{MessageKind, Version, Xid};

use crate::error::EncodeError;
use crate::header::{HEADER_LEN, MAX_FRAME_LEN};
use crate::message::{finish, write_header};
use crate::multipart;
use crate::writer::Writer;

/// Offset of the flags of a multipart message.
const FLAGS_AT: usize = HEADER_LEN + 2;

/// The frames of a multipart reply, each at most 65,535 bytes.
///
/// Elements that the version cannot say (a flow entry with a match on IPv6, in 1.0) or that no
/// frame can hold are left out and counted, as Open vSwitch does it.
#[derive(Debug)]
pub struct ReplyFrames {
    version: Version,
    form: FlowForm,
    xid: Xid,
    body: MultipartReplyBody,
    /// Elements that are written or left out.
    done: usize,
    ended: bool,
    /// Further frames of the same reply come behind these.
    is_continued: bool,
    left_out: u64,
}

impl ReplyFrames {
    /// The frames that say `body`.
    #[must_use]
    pub fn new(version: Version, xid: Xid, body: MultipartReplyBody) -> Self {
        Self {
            version,
            form: FlowForm::Standard,
            xid,
            body,
            done: 0,
            ended: false,
            is_continued: false,
            left_out: 0,
        }
    }

    /// The same in the form of the request, where OpenFlow 1.0 has several.
    #[must_use]
    pub fn in_form(self, form: FlowForm) -> Self {
        Self { form, ..self }
    }

    /// The reply goes on behind these frames, with elements that are not there yet: the last one of
    /// them has the MORE flag too.
    pub fn continue_later(&mut self) {
        self.is_continued = true;
    }

    /// Elements left out of the frames made so far.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether the last frame has been made.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    fn frame(&mut self) -> Result<Vec<u8>, EncodeError> {
        let mut frame = Vec::new();
        let mut w = Writer::new(self.version, &mut frame);
        w.forms.flows = self.form;
        write_header(&mut w, self.xid, MessageKind::MultipartReply)?;
        multipart::write_reply_header(&mut w, &self.body, false)?;
        let empty = w.place();
        let mut more = false;
        for element in multipart::elements(&self.body, self.done) {
            let before = w.place();
            let written = multipart::write_element(&mut w, &element);
            let fits = w.place() <= MAX_FRAME_LEN;
            match written {
                Ok(()) if fits => {}
                Ok(()) if before > empty => {
                    w.take_back(before);
                    more = true;
                    break;
                }
                Err(error) if !multipart::is_list(&self.body) => return Err(error),
                Ok(()) if !multipart::is_list(&self.body) => {
                    return Err(EncodeError::TooLong { what: "multipart reply" });
                }
                Ok(()) | Err(_) => {
                    w.take_back(before);
                    self.left_out += 1;
                }
            }
            self.done += 1;
        }
        finish(&mut w, 0)?;
        if more || self.is_continued {
            w.fill(FLAGS_AT, &multipart::MORE.to_be_bytes());
        }
        self.ended = !more;
        Ok(frame)
    }
}

impl Iterator for ReplyFrames {
    type Item = Result<Vec<u8>, EncodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let frame = self.frame();
        self.ended |= frame.is_err();
        Some(frame)
    }
}
