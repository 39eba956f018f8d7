//! Route and generic netlink: messages built and read as bytes, and one socket that asks and hears.
//!
//! Written here instead of taken from a crate: a dozen message shapes are needed, TBF is in none of
//! the crates, and these had five breaking releases in a year. What the kernel sends is read with
//! bounds checks all the same: a short attribute is skipped, not trusted.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recv, sendto, socket_with};

/// `nlmsghdr.nlmsg_flags`.
pub(crate) const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
/// The notification that the request makes comes to the asking socket, too.
pub(crate) const NLM_F_ECHO: u16 = 0x8;
/// With `RTM_NEW...`: fail when it is there already.
pub(crate) const NLM_F_EXCL: u16 = 0x200;
/// With `RTM_NEW...`: take the place of what is there.
pub(crate) const NLM_F_REPLACE: u16 = 0x100;
/// With `RTM_NEW...`: make it when it is not there.
pub(crate) const NLM_F_CREATE: u16 = 0x400;
const NLM_F_DUMP: u16 = 0x300;
/// In a reply: the objects changed while they were listed, so that some may be missing.
const NLM_F_DUMP_INTR: u16 = 0x10;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;
const HEADER_LEN: usize = 16;

/// The kernel answers a dump in pieces of at most this size.
const RECEIVE_LEN: usize = 64 * 1024;

/// Attempts at a list that changes while it is read.
const DUMP_TRIES: usize = 8;

/// A request under construction.
#[derive(Debug, Clone)]
pub(crate) struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    /// A message of `kind` whose family header (`ifinfomsg`, `tcmsg`, ...) is `header`.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(header);
        Self { bytes }
    }

    /// Appends an attribute.
    pub(crate) fn attr(&mut self, kind: u16, value: &[u8]) {
        let start = self.begin(kind);
        self.bytes.extend_from_slice(value);
        self.end(start);
    }

    /// Appends a text attribute with its closing zero.
    pub(crate) fn attr_text(&mut self, kind: u16, text: &str) {
        let start = self.begin(kind);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.end(start);
    }

    /// Appends a number attribute of 32 bits.
    pub(crate) fn attr_u32(&mut self, kind: u16, value: u32) {
        self.attr(kind, &value.to_ne_bytes());
    }

    /// Appends an attribute that holds a `header` and the attributes that `fill` appends.
    pub(crate) fn nested(&mut self, kind: u16, header: &[u8], fill: impl FnOnce(&mut Self)) {
        let start = self.begin(kind | NLA_F_NESTED);
        self.bytes.extend_from_slice(header);
        fill(self);
        self.end(start);
    }

    fn begin(&mut self, kind: u16) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        start
    }

    fn end(&mut self, start: usize) {
        // No request of ours comes near 64 KiB.
        let len = u16::try_from(self.bytes.len() - start).unwrap_or(u16::MAX);
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }

    /// The bytes to be sent.
    pub(crate) fn finish(mut self, sequence: u32, more_flags: u16) -> Vec<u8> {
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        let flags = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) | more_flags;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// One message from the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetlinkMessage {
    /// `nlmsg_type`.
    pub(crate) kind: u16,
    flags: u16,
    sequence: u32,
    body: Vec<u8>,
}

impl NetlinkMessage {
    /// The first byte of the family header, which is the address family in all of them.
    pub(crate) fn family(&self) -> Option<u8> {
        self.body.first().copied()
    }

    /// The family header's bytes from `offset`, as a number of the host's byte order.
    pub(crate) fn header_u32(&self, offset: usize) -> Option<u32> {
        read_u32(&self.body, offset)
    }

    /// The attributes that follow a family header of `header_len` bytes.
    pub(crate) fn attributes(&self, header_len: usize) -> Attributes<'_> {
        Attributes { rest: self.body.get(header_len..).unwrap_or_default() }
    }
}

/// Reads a 32-bit number of the host's byte order.
pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    let four = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

/// Reads a 64-bit number of the host's byte order.
pub(crate) fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    let eight = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(eight.try_into().ok()?))
}

/// Reads a text attribute, up to its closing zero.
pub(crate) fn read_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Walks attributes; ends at the first that is broken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes inside an attribute.
    pub(crate) fn inside(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The first attribute of `kind`.
    pub(crate) fn find(mut self, kind: u16) -> Option<&'a [u8]> {
        Iterator::find(&mut self, |(k, _)| *k == kind).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let [a, b, c, d, ..] = *self.rest else { return None };
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let kind = u16::from_ne_bytes([c, d]) & NLA_TYPE_MASK;
        let value = self.rest.get(4..len)?;
        self.rest = self.rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// Splits what one receive call brought into messages; stops at a broken length.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<NetlinkMessage> {
    let mut found = Vec::new();
    while bytes.len() >= HEADER_LEN {
        let Some(len) = read_u32(bytes, 0).map(|len| len as usize) else { break };
        let Some(body) = bytes.get(HEADER_LEN..len) else { break };
        found.push(NetlinkMessage {
            kind: u16::from_ne_bytes([bytes[4], bytes[5]]),
            flags: u16::from_ne_bytes([bytes[6], bytes[7]]),
            sequence: read_u32(bytes, 8).unwrap_or_default(),
            body: body.to_vec(),
        });
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// A route or generic netlink socket. It belongs to the network namespace in which it was opened,
/// whatever thread uses it later.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    fd: OwnedFd,
    sequence: Mutex<u32>,
}

impl NetlinkSocket {
    /// A socket in the calling thread's namespace that hears the multicast `groups` (`RTMGRP_*`).
    pub(crate) fn open(groups: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        // No protocol number is NETLINK_ROUTE.
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&fd, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { fd, sequence: Mutex::new(1) })
    }

    /// A socket of generic netlink in the calling thread's namespace, that hears nothing yet.
    pub(crate) fn open_generic() -> io::Result<Self> {
        let (family, protocol) = (AddressFamily::NETLINK, Some(netlink::GENERIC));
        let fd = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self { fd, sequence: Mutex::new(1) })
    }

    /// Hears a multicast group of this number from now on.
    pub(crate) fn join(&self, group: u32) -> io::Result<()> {
        let len = size_of::<u32>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the kernel reads four bytes of a local variable.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_ADD_MEMBERSHIP,
                (&raw const group).cast(),
                len,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The descriptor, readable when a multicast message waits.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Carries out a request.
    pub(crate) fn act(&self, request: NetlinkRequest) -> io::Result<()> {
        self.ask(request, NLM_F_ACK).map(drop)
    }

    /// Asks for one object.
    pub(crate) fn get(&self, request: NetlinkRequest) -> io::Result<NetlinkMessage> {
        let replies = self.ask(request, NLM_F_ACK)?;
        replies.into_iter().next().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Asks for all objects of a kind, and again while they change during the reply.
    ///
    /// # Errors
    /// `EINTR` when they changed each time.
    pub(crate) fn dump(&self, request: NetlinkRequest) -> io::Result<Vec<NetlinkMessage>> {
        for _ in 0..DUMP_TRIES {
            match self.ask(request.clone(), NLM_F_DUMP) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                whole => return whole,
            }
        }
        Err(io::Error::from_raw_os_error(libc::EINTR))
    }

    fn ask(&self, request: NetlinkRequest, flags: u16) -> io::Result<Vec<NetlinkMessage>> {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *sequence = sequence.wrapping_add(1);
        let bytes = request.finish(*sequence, flags);
        sendto(&self.fd, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut replies = Vec::new();
        let mut is_whole = true;
        loop {
            let ours = self.receive(RecvFlags::empty())?;
            for reply in ours.into_iter().filter(|reply| reply.sequence == *sequence) {
                is_whole &= reply.flags & NLM_F_DUMP_INTR == 0;
                match reply.kind {
                    NLMSG_ERROR => return error_of(&reply).map(|()| replies),
                    NLMSG_DONE if !is_whole => return Err(io::ErrorKind::Interrupted.into()),
                    NLMSG_DONE => return Ok(replies),
                    _ => replies.push(reply),
                }
            }
        }
    }

    /// Messages that wait on a socket with multicast groups; empty when none does.
    pub(crate) fn pending_messages(&self) -> io::Result<Vec<NetlinkMessage>> {
        match self.receive(RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            other => other,
        }
    }

    fn receive(&self, flags: RecvFlags) -> io::Result<Vec<NetlinkMessage>> {
        let mut buffer = vec![0; RECEIVE_LEN];
        loop {
            match recv(&self.fd, buffer.as_mut_slice(), flags) {
                Ok((len, _)) => return Ok(messages(&buffer[..len])),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn error_of(reply: &NetlinkMessage) -> io::Result<()> {
    match reply.header_u32(0).map(|n| n.cast_signed()) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno.wrapping_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_back() {
        let mut request = NetlinkRequest::new(16, 0, &[7; 16]);
        request.attr_text(3, "veth0");
        request.nested(18, &[], |inner| inner.attr_u32(1, 0x0102_0304));
        let bytes = request.finish(9, NLM_F_ACK);
        let all = messages(&bytes);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind, all[0].sequence), (16, 9));
        let attributes = all[0].attributes(16);
        assert_eq!(read_text(attributes.find(3).unwrap()), "veth0");
        let inner = Attributes::inside(attributes.find(18).unwrap());
        assert_eq!(read_u32(inner.find(1).unwrap(), 0), Some(0x0102_0304));
        assert_eq!(attributes.find(4), None);
    }

    #[test]
    fn every_prefix_and_broken_length_is_survived() {
        let mut request = NetlinkRequest::new(16, 0, &[0; 16]);
        request.attr_text(3, "a-device-name");
        request.attr_u32(4, 5);
        let bytes = request.finish(1, 0);
        for end in 0..bytes.len() {
            for reply in messages(&bytes[..end]) {
                let _ = reply.attributes(16).count();
            }
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[position] = value;
                for reply in messages(&broken) {
                    let _ = reply.attributes(16).count();
                }
            }
        }
    }

    #[test]
    fn loopback_is_in_every_namespace() {
        let socket = NetlinkSocket::open(0).unwrap();
        let links = socket.dump(NetlinkRequest::new(libc::RTM_GETLINK, 0, &[0; 16])).unwrap();
        assert!(links.iter().any(|l| read_text(l.attributes(16).find(3).unwrap()) == "lo"));
    }
}
