//! UDP segmentation offload of a kernel socket: one send call, many datagrams (Linux 4.18).
#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Makes every send on `socket` that is longer than `size` bytes go out as datagrams of `size`
/// bytes (the last may be shorter), which the kernel carries as one frame as far as it can. 0 puts
/// an end to it.
///
/// # Errors
/// `ENOPROTOOPT` on a kernel without it.
pub fn set_segment_size(socket: &UdpSocket, size: u16) -> io::Result<()> {
    let size = libc::c_int::from(size);
    // SAFETY: pointer and length describe `size`; the kernel only reads it.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const size).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
