//! The header that every message begins with (clause 7.1.1), and frames cut by it.
//!
//! These views copy nothing and know nothing of the bodies; a stream of bytes is cut into frames by
//! [`frame_len`] before anything is decoded.

use openflow::{Error, Version, Xid};

use crate::error::{DecodeError, Fault};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// Bytes of the longest message that the header's length field can say.
pub const MAX_FRAME_LEN: usize = 0xffff;

/// The header of a message, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Version byte; any number, since a hello of an unknown version is valid.
    pub version: u8,
    /// Type byte; its meaning depends on the version.
    pub message_type: u8,
    /// Length of the whole message in bytes, the header included.
    pub length: u16,
    /// Transaction number.
    pub xid: Xid,
}

impl MessageHeader {
    /// The header at the beginning of `bytes`; `None` when there are fewer than eight.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[version, message_type, l0, l1, x0, x1, x2, x3] = bytes.first_chunk::<HEADER_LEN>()?;
        Some(Self {
            version,
            message_type,
            length: u16::from_be_bytes([l0, l1]),
            xid: Xid(u32::from_be_bytes([x0, x1, x2, x3])),
        })
    }

    /// The version, if Weir speaks it.
    #[must_use]
    pub fn known_version(&self) -> Option<Version> {
        Version::from_number(self.version)
    }
}

/// A whole message's bytes and its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    header: MessageHeader,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that `bytes` are.
    ///
    /// # Errors
    /// `OFPBRC_BAD_LEN` when they are fewer than a header, or not as many as its length field says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let error = Error::BadRequestBadLen;
        let header = MessageHeader::parse(bytes).ok_or_else(|| {
            DecodeError::new(None, Fault { error, what: "header", offset: bytes.len() })
        })?;
        if usize::from(header.length) == bytes.len() {
            Ok(Self { header, bytes })
        } else {
            let fault = Fault { error, what: "header's length", offset: 2 };
            Err(DecodeError::new(Some(header), fault))
        }
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> MessageHeader {
        self.header
    }

    /// The whole message.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes after the header.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }
}

/// Length of the message that a stream of bytes begins with; `None` until there is a whole header.
/// The message itself may not have arrived yet.
///
/// # Errors
/// `OFPBRC_BAD_LEN` when the length field is below eight: the stream cannot be cut any further.
pub fn frame_len(stream: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some(header) = MessageHeader::parse(stream) else { return Ok(None) };
    let len = usize::from(header.length);
    if len < HEADER_LEN {
        let fault = Fault { error: Error::BadRequestBadLen, what: "header's length", offset: 2 };
        return Err(DecodeError::new(Some(header), fault));
    }
    Ok(Some(len))
}

#[cfg(test)]
mod tests {
    use super::{Frame, frame_len};

    #[test]
    fn frames_are_cut_by_the_length_field() {
        let stream = [4, 2, 0, 9, 0, 0, 0, 1, 0xaa, 4];
        assert_eq!(frame_len(&stream[..7]), Ok(None));
        assert_eq!(frame_len(&stream), Ok(Some(9)));
        let frame = Frame::parse(&stream[..9]).unwrap();
        assert_eq!((frame.body(), frame.header().xid.0), (&[0xaa][..], 1));
        assert!(Frame::parse(&stream).is_err());
        assert!(frame_len(&[4, 2, 0, 7, 0, 0, 0, 1]).is_err());
    }
}
