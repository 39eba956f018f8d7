//! The other way: appends numbers in network order and fills in lengths when they are known.
//!
//! A length that does not fit its 16 bits is an error, never a wrapped number.

use openflow::flow::FlowForm;
use openflow::{BufferId, MacAddr, PortNo, Version};

use crate::compat;
use crate::error::EncodeError;
use crate::forms::Forms;

pub(crate) type WriteResult<T> = std::result::Result<T, EncodeError>;

/// Appends a message, or elements of one, to a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) version: Version,
    /// The forms of messages that the controller has chosen.
    pub(crate) forms: Forms,
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(version: Version, out: &'a mut Vec<u8>) -> Self {
        Self { version, forms: Forms::default(), out }
    }

    pub(crate) fn unsupported(&self, what: &'static str) -> EncodeError {
        EncodeError::Unsupported { version: self.version, what }
    }

    /// Fails with [`EncodeError::Unsupported`] unless the version can say it.
    #[inline]
    pub(crate) fn require(&self, sayable: bool, what: &'static str) -> WriteResult<()> {
        if sayable { Ok(()) } else { Err(self.unsupported(what)) }
    }

    /// Whether flow entries are written in Nicira's form.
    pub(crate) fn has_nicira_flows(&self) -> bool {
        self.forms.flows == FlowForm::Nicira && self.version.has_nicira_flows()
    }

    /// Bytes in the buffer so far: the place of what comes next.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.out.len()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn u8(&mut self, number: u8) {
        self.out.push(number);
    }

    /// The upper bytes of a number: all are stored and the rest is taken back, because a copy whose
    /// length is not known is a call.
    #[inline]
    pub(crate) fn front(&mut self, number: u64, bytes: usize) {
        let start = self.place();
        self.u64(number);
        self.out.truncate(start + bytes);
    }

    /// Numbers of a byte each.
    pub(crate) fn all(&mut self, numbers: impl Iterator<Item = u8>) {
        self.out.extend(numbers);
    }

    #[inline]
    pub(crate) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_be_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_be_bytes());
    }

    #[inline]
    pub(crate) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }

    #[inline]
    pub(crate) fn mac(&mut self, mac: MacAddr) {
        self.bytes(&mac.0);
    }

    #[inline]
    pub(crate) fn zeros(&mut self, count: usize) {
        // Of a known number this is one store, and a resize is a call.
        match [0; 8].get(..count) {
            Some(zeros) => self.bytes(zeros),
            None => self.out.resize(self.out.len() + count, 0),
        }
    }

    /// Zeros until the bytes since `start` are a multiple of eight.
    #[inline]
    pub(crate) fn pad_from(&mut self, start: usize) {
        self.pad_to(start, 8);
    }

    /// Zeros until the bytes since `start` are a multiple of `unit`.
    #[inline]
    pub(crate) fn pad_to(&mut self, start: usize, unit: usize) {
        let len = self.place() - start;
        if !len.is_multiple_of(unit) {
            self.zeros(len.next_multiple_of(unit) - len);
        }
    }

    /// A port number: 32 bits, or 16 in 1.0.
    #[inline]
    pub(crate) fn port(&mut self, port: PortNo) -> WriteResult<()> {
        if self.version.has_wide_ports() {
            self.u32(port.0);
        } else {
            let number = compat::port_to_v1_0(port);
            self.u16(number.ok_or_else(|| self.unsupported("port number above 16 bits"))?);
        }
        Ok(())
    }

    pub(crate) fn buffer_id(&mut self, buffer: Option<BufferId>) -> WriteResult<()> {
        if buffer == Some(BufferId(u32::MAX)) {
            return Err(EncodeError::Invalid { what: "buffer 0xffffffff, which means none" });
        }
        self.u32(buffer.map_or(u32::MAX, |buffer| buffer.0));
        Ok(())
    }

    /// A text in a field of `size` bytes, cut before a character that does not fit; at least one
    /// zero byte ends it.
    pub(crate) fn text(&mut self, text: &str, size: usize) {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|end| *end < size).last().unwrap_or(0);
        let text = text.get(..end).unwrap_or_default();
        self.bytes(text.as_bytes());
        self.zeros(size - text.len());
    }

    /// Puts the 16-bit number of bytes since `start` to the place `at`.
    pub(crate) fn fill_len(
        &mut self,
        at: usize,
        start: usize,
        what: &'static str,
    ) -> WriteResult<()> {
        let len = self.place() - start;
        let len = u16::try_from(len).map_err(|_| EncodeError::TooLong { what })?;
        self.fill(at, &len.to_be_bytes());
        Ok(())
    }

    /// Overwrites bytes that were written before.
    pub(crate) fn fill(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        let place = self.out.get_mut(at..end).expect("the place was written before");
        place.copy_from_slice(bytes);
    }

    /// Two bytes that are written already.
    pub(crate) fn bytes_at(&self, at: usize) -> [u8; 2] {
        let written = self.out.get(at..).and_then(|written| written.first_chunk());
        written.copied().unwrap_or_default()
    }

    /// Takes back what was written from the place `at` on.
    pub(crate) fn take_back(&mut self, at: usize) {
        self.out.truncate(at);
    }
}
