//! The hello and its version bitmap (clause 7.5.1).
//!
//! A hello of any version must be understood, or versions could not be negotiated; so nothing in
//! its body is ever an error, and unknown elements are stepped over.

use openflow::VersionBitmap;
use openflow::message::Hello;
use openflow::{Error, Version};

use crate::error::{DecodeError, Fault};
use crate::header::{Frame, HEADER_LEN, MessageHeader};
use crate::reader::{self, Reader};
use crate::writer::Writer;

/// `OFPT_HELLO`, in every version.
const HELLO: u8 = 0;
/// `OFPHET_VERSIONBITMAP`.
const VERSION_BITMAP: u16 = 1;

/// The hello that a frame of any version holds, with the header that names the peer's highest
/// version.
///
/// # Errors
/// `OFPBRC_BAD_LEN` when the frame is not as long as its header says, `OFPBRC_BAD_TYPE` when it is
/// not a hello.
pub fn decode_hello(frame: &[u8]) -> Result<(MessageHeader, Hello), DecodeError> {
    let frame = Frame::parse(frame)?;
    let header = frame.header();
    if header.message_type != HELLO {
        let fault =
            Fault { error: Error::BadRequestBadType, what: "header's type of a hello", offset: 1 };
        return Err(DecodeError::new(Some(header), fault));
    }
    let mut body = Reader::new(Version::NEWEST, frame.body(), HEADER_LEN, "OFPT_HELLO");
    Ok((header, read(&mut body)))
}

/// Reads the elements up to the first that is not well-formed; the rest is ignored.
pub(crate) fn read(r: &mut Reader<'_>) -> Hello {
    let mut hello = Hello::default();
    while let Ok((number, mut element)) = read_element(r) {
        if number == VERSION_BITMAP && hello.versions.is_none() {
            hello.versions = element.u32().ok().map(VersionBitmap);
        }
    }
    r.rest();
    hello
}

fn read_element<'a>(r: &mut Reader<'a>) -> reader::ReadResult<(u16, Reader<'a>)> {
    let (number, len, body) = r.element()?;
    let padding = len.next_multiple_of(8) - len;
    r.skip(padding.min(r.remaining()))?;
    Ok((number, body))
}

/// Writes the bitmap, if there is one, as the only element.
pub(crate) fn write(w: &mut Writer<'_>, hello: &Hello) {
    if let Some(versions) = hello.versions {
        w.u16(VERSION_BITMAP);
        w.u16(8);
        w.u32(versions.0);
    }
}

#[cfg(test)]
mod tests {
    use super::decode_hello;
    use openflow::VersionBitmap;

    fn hello(version: u8, body: &[u8]) -> Option<VersionBitmap> {
        let len = u8::try_from(8 + body.len()).unwrap();
        let mut frame = vec![version, 0, 0, len, 0, 0, 0, 1];
        frame.extend(body);
        let (header, hello) = decode_hello(&frame).unwrap();
        assert_eq!(header.version, version);
        hello.versions
    }

    #[test]
    fn any_version_and_any_body_is_a_hello() {
        assert_eq!(hello(99, &[]), None);
        assert_eq!(hello(6, &[0, 1, 0, 8, 0, 0, 0, 0x72]), Some(VersionBitmap(0x72)));
        assert_eq!(hello(4, &[0, 9, 0, 5, 1, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 2]).unwrap().0, 2);
        assert_eq!(hello(4, &[0, 1, 0, 12, 0, 0, 0, 0x12, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap().0, 18);
        assert_eq!(hello(2, &[0, 1, 0, 0, 0, 0, 0, 2]), None);
        assert_eq!(hello(1, &[1, 2, 3]), None);
    }

    #[test]
    fn only_a_hello_is_a_hello() {
        assert!(decode_hello(&[4, 2, 0, 8, 0, 0, 0, 1]).is_err());
        assert!(decode_hello(&[4, 0, 0, 9, 0, 0, 0, 1]).is_err());
    }
}
