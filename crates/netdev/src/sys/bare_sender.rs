//! A loop that sends one frame again and again by a packet socket, and does nothing else: the most
//! that such a socket takes on a device, which senders of ever different frames are held against.
//!
//! The messages are made once. It must never be used to send traffic for its own sake: it neither
//! paces nor counts by frame.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::packet_socket::TxSocket;

/// Frames of one system call.
const MESSAGES: usize = 64;

/// A socket that sends on one device.
#[derive(Debug)]
pub struct BareSender {
    socket: TxSocket,
}

impl BareSender {
    /// Opens the socket on device number `index` of this thread's network namespace, past the
    /// queueing discipline of the device where `qdisc_bypass` says so.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, or where there is no such device.
    pub fn open(index: u32, qdisc_bypass: bool) -> io::Result<Self> {
        Ok(Self { socket: TxSocket::open(index, qdisc_bypass, false)? })
    }

    /// Sends `frame` for so long; how often the kernel took it.
    ///
    /// # Errors
    /// Those of `sendmmsg(2)`, but for a full queue, after which it tries again.
    pub fn send_for(&self, frame: &[u8], time: Duration) -> io::Result<u64> {
        let mut part =
            libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        // SAFETY: all-zero bytes are a valid value: null pointers and numbers.
        let mut messages: [libc::mmsghdr; MESSAGES] = unsafe { std::mem::zeroed() };
        for message in &mut messages {
            message.msg_hdr.msg_iov = &raw mut part;
            message.msg_hdr.msg_iovlen = 1;
        }
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < time {
            // SAFETY: all messages point to `part`, and this to the frame; all live beyond the
            // call, and sending only reads them.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.fd().as_raw_fd(),
                    messages.as_mut_ptr(),
                    MESSAGES as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match u64::try_from(sent) {
                Ok(sent) => count += sent,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    let passes = [libc::EAGAIN, libc::ENOBUFS, libc::EINTR].map(Some);
                    if !passes.contains(&error.raw_os_error()) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(count)
    }
}
