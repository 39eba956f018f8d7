//! A cursor over a frame's bytes whose every step may say which protocol error a lack of bytes is.
//!
//! The reader knows what it is reading (`what`) and which error it means when the bytes run out or
//! are left over (`short`): a truncated action is `OFPBAC_BAD_LEN`, a truncated match
//! `OFPBMC_BAD_LEN`. It never indexes, so no input can make it panic.

use openflow::{BufferId, Error, MacAddr, PortNo, Version};

use crate::compat;
use crate::error::Fault;
use crate::forms::Forms;

pub(crate) type ReadResult<T> = std::result::Result<T, Fault>;

/// Unread bytes of a frame or of an element in it.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) version: Version,
    /// The forms of messages that the controller has chosen.
    pub(crate) forms: Forms,
    bytes: &'a [u8],
    offset: usize,
    short: Error,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which begin at `offset` of their frame.
    pub(crate) fn new(
        version: Version,
        bytes: &'a [u8],
        offset: usize,
        what: &'static str,
    ) -> Self {
        let short = Error::BadRequestBadLen;
        Self { version, forms: Forms::default(), bytes, offset, short, what }
    }

    /// The same bytes under another name and with another meaning of their lack.
    #[inline]
    pub(crate) fn reading(mut self, what: &'static str, short: Error) -> Self {
        (self.what, self.short) = (what, short);
        self
    }

    /// Offset of the unread bytes in their frame.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn fault(&self, error: Error) -> Fault {
        Fault { error, what: self.what, offset: self.offset }
    }

    pub(crate) fn fault_in(&self, error: Error, what: &'static str) -> Fault {
        Fault { error, what, offset: self.offset }
    }

    /// The fault of too few or too many bytes.
    pub(crate) fn bad_len(&self) -> Fault {
        self.fault(self.short)
    }

    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// An empty list of what is read here, with room for its first elements if there are any: what
    /// a first push would allocate, without the calls that find that out.
    #[inline]
    pub(crate) fn list<T>(&self) -> Vec<T> {
        Vec::with_capacity(if self.is_empty() { 0 } else { 4 })
    }

    /// Refuses bytes that are left over.
    pub(crate) fn finish(&self) -> ReadResult<()> {
        if self.is_empty() { Ok(()) } else { Err(self.bad_len()) }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> ReadResult<&'a [u8]> {
        let Some((head, tail)) = self.bytes.split_at_checked(count) else {
            return Err(self.bad_len());
        };
        self.bytes = tail;
        self.offset += count;
        Ok(head)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        let Some((&head, tail)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.bad_len());
        };
        self.bytes = tail;
        self.offset += N;
        Ok(head)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.bytes);
        self.offset += rest.len();
        rest
    }

    /// Skips padding, whatever it holds.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> ReadResult<()> {
        self.bytes(count).map(drop)
    }

    /// Skips the padding that makes what was read since `start` a multiple of `unit` bytes.
    pub(crate) fn skip_padding(&mut self, start: &Self, unit: usize) -> ReadResult<()> {
        let len = self.offset - start.offset;
        self.skip(len.next_multiple_of(unit) - len)
    }

    /// A reader of the next `count` bytes, which this reader steps over.
    pub(crate) fn part(&mut self, count: usize) -> ReadResult<Self> {
        let offset = self.offset;
        let bytes = self.bytes(count)?;
        Ok(Self { bytes, offset, ..self.clone() })
    }

    /// A reader of what is left of the `len` bytes since `start`, which this reader steps over.
    pub(crate) fn rest_of(&mut self, start: &Self, len: usize) -> ReadResult<Self> {
        let read = self.offset - start.offset;
        self.part(len.checked_sub(read).ok_or_else(|| self.bad_len())?)
    }

    /// The next element that begins with a 16-bit type and a 16-bit length of all of it: its type,
    /// its length and a reader of the bytes after the two. A length that does not fit is this
    /// reader's `short`.
    pub(crate) fn element(&mut self) -> ReadResult<(u16, usize, Self)> {
        let number = self.u16()?;
        let len = usize::from(self.u16()?);
        let body = len.checked_sub(4).ok_or_else(|| self.bad_len())?;
        Ok((number, len, self.part(body)?))
    }

    /// The next element that begins with a 16-bit length of all of it, under its own name: a reader
    /// of the bytes after the length.
    pub(crate) fn sized(&mut self, what: &'static str) -> ReadResult<Self> {
        let len = usize::from(self.u16()?);
        let body = len.checked_sub(2).ok_or_else(|| self.bad_len())?;
        Ok(Self { what, ..self.part(body)? })
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> ReadResult<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> ReadResult<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> ReadResult<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> ReadResult<u64> {
        self.array().map(u64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn mac(&mut self) -> ReadResult<MacAddr> {
        self.array().map(MacAddr)
    }

    /// A port number: 32 bits, or 16 in 1.0.
    #[inline]
    pub(crate) fn port(&mut self) -> ReadResult<PortNo> {
        if self.version.has_wide_ports() {
            self.u32().map(PortNo)
        } else {
            self.u16().map(compat::port_from_v1_0)
        }
    }

    pub(crate) fn buffer_id(&mut self) -> ReadResult<Option<BufferId>> {
        let number = self.u32()?;
        Ok((number != u32::MAX).then_some(BufferId(number)))
    }

    /// A text in a field of `size` bytes, ended by a zero byte (the last byte counts as one). Bytes
    /// that are not UTF-8 become question marks, so that the text still fits its field.
    pub(crate) fn text(&mut self, size: usize) -> ReadResult<String> {
        let field = self.bytes(size)?;
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = text.get(..size.saturating_sub(1)).unwrap_or(text);
        let mut out = String::with_capacity(text.len());
        for chunk in text.utf8_chunks() {
            out.push_str(chunk.valid());
            out.extend(std::iter::repeat_n('?', chunk.invalid().len()));
        }
        Ok(out)
    }
}
