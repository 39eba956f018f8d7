//! `AF_PACKET` sockets: a receiving ring of frames, and sending many frames per system call.
//!
//! TPACKET_V2 and not V3: a V3 block is handed over when it is full or after its timer (1 ms at
//! least), which would be the floor of every round trip; V2 hands over each frame at once. Frames
//! longer than a slot come whole through the socket's queue (`PACKET_COPY_THRESH`), so that slots
//! can be small although a GSO frame has 64 KiB. Sending is `sendmmsg`, which was measured faster
//! on veth than the TX ring (0.8 against 0.7 Mpps), and does not bypass the qdisc unless asked to:
//! a shaped device must stay shaped. Several rings of a device are a fanout group, in which the
//! kernel gives each flow to one of them.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use packet::PacketBuf;

use super::shm::Mapping;
use crate::offload::VNET_LEN;
use crate::soft_offload::VlanTag;

const TPACKET_V2: c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
const TP_STATUS_COPY: u32 = 1 << 1;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const TPACKET2_HDR_LEN: usize = 32;
const BLOCK_LEN: usize = 256 * 1024;
const ETHERTYPE_VLAN: u16 = 0x8100;
const MESSAGES: usize = 64;
/// Room for frames that wait for their slot's turn in the queue, and for a burst on its way out.
const SOCKET_BUFFER_LEN: c_int = 8 * 1024 * 1024;

/// Contents of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingSlot {
    /// The frame's length as the kernel saw it.
    pub(crate) len: usize,
    /// Bytes of it that are in the slot.
    pub(crate) held: usize,
    /// Place of the frame, in bytes from the start of the ring.
    at: usize,
    /// The tag that was taken out.
    pub(crate) vlan: Option<VlanTag>,
    /// Whether the whole frame waits in the queue (see [`RxRing::read_whole`]).
    pub(crate) copied: bool,
    /// When it arrived, by the wall clock, in nanoseconds since 1970.
    pub(crate) arrived_ns: u64,
}

/// A socket that receives all that arrives at one device.
#[derive(Debug)]
pub(crate) struct RxRing {
    ring: Mapping,
    fd: Arc<OwnedFd>,
    slot_len: usize,
    slots: usize,
    next: usize,
}

impl RxRing {
    /// Opens the socket on device number `index`; frames of up to `frame_len` bytes stand in the
    /// ring's slots, of which there are at least `slots`. The spare one is taken where it is as
    /// wanted.
    pub(crate) fn open(index: u32, frame_len: usize, slots: usize) -> io::Result<Self> {
        let ring = Self::take_spare(frame_len, slots);
        let ring = ring.map_or_else(|| Self::unbound(frame_len, slots), Ok)?;
        ring.bind(index)?;
        Ok(ring)
    }

    /// Opens `count` new sockets, among which the kernel shares out what arrives at the device.
    pub(crate) fn open_queues(
        index: u32,
        frame_len: usize,
        slots: usize,
        (count, by): (usize, Fanout),
    ) -> io::Result<Vec<Self>> {
        if count == 1 {
            let ring = Self::unbound(frame_len, slots)?;
            ring.bind(index)?;
            return Ok(vec![ring]);
        }
        let mut rings = Vec::new();
        let mut group = None;
        for _ in 0..count {
            let ring = Self::unbound(frame_len, slots)?;
            // In its group a socket would receive again what the others have: kernels before 6.0
            // do not know `PACKET_FANOUT_FLAG_IGNORE_OUTGOING`, and do not say so.
            let is_first = group.is_none();
            filter(&ring.fd, if is_first { &NOT_OUTGOING } else { &NOTHING })?;
            ring.bind(index)?;
            group = Some(join_fanout(&ring.fd, group, by)?);
            if !is_first {
                // Until here the others had its frames.
                filter(&ring.fd, &NOT_OUTGOING)?;
            }
            rings.push(ring);
        }
        Ok(rings)
    }

    /// The spare socket, where it has such a ring and is of this namespace.
    fn take_spare(frame_len: usize, slots: usize) -> Option<Self> {
        let (slot_len, blocks) = measures(frame_len, slots);
        let is_wanted = |ring: &mut Self| {
            ring.slot_len == slot_len && ring.slots == blocks * (BLOCK_LEN / slot_len)
        };
        // One of another namespace is closed when others may take the next one.
        let taken = spare().take_if(is_wanted);
        taken.filter(Self::is_of_this_namespace)
    }

    /// Keeps a ring of this size ready for the port that comes next: the kernel waits 10 ms and
    /// more for each that is made.
    pub(crate) fn keep_spare(frame_len: usize, slots: usize) -> io::Result<()> {
        static MAKING: Mutex<()> = Mutex::new(());
        // Whoever makes one sees to it; to close a second one would take as long.
        let Ok(_alone) = MAKING.try_lock() else { return Ok(()) };
        if spare().is_none() {
            let made = Self::unbound(frame_len, slots)?;
            *spare() = Some(made);
        }
        Ok(())
    }

    /// Whether its devices are those of the calling thread.
    fn is_of_this_namespace(&self) -> bool {
        // The kernel waits 10 ms and more for a packet socket that is closed, and for this one not.
        let own = UnixDatagram::unbound().and_then(|own| netns_cookie(own.as_fd()));
        own.is_ok_and(|own| netns_cookie(self.fd.as_fd()).is_ok_and(|cookie| cookie == own))
    }

    /// A new socket to which nothing comes.
    fn unbound(frame_len: usize, slots: usize) -> io::Result<Self> {
        let (slot_len, blocks) = measures(frame_len, slots);
        // Protocol 0: nothing arrives before `bind`.
        let fd = socket()?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &(1 as c_int))?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &(1 as c_int))?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &(1 as c_int))?;
        // Without the right the default stays; then some long frames are lost in a burst.
        let _ = set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &SOCKET_BUFFER_LEN);
        let slots = blocks * (BLOCK_LEN / slot_len);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_LEN as u32,
            tp_block_nr: u32::try_from(blocks).map_err(|_| io::ErrorKind::InvalidInput)?,
            tp_frame_size: u32::try_from(slot_len).map_err(|_| io::ErrorKind::InvalidInput)?,
            tp_frame_nr: u32::try_from(slots).map_err(|_| io::ErrorKind::InvalidInput)?,
        };
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let ring = Mapping::file(&fd, blocks * BLOCK_LEN)?;
        Ok(Self { ring, fd: Arc::new(fd), slot_len, slots, next: 0 })
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        bind(&self.fd, index, libc::ETH_P_ALL as u16)?;
        join_promiscuous(&self.fd, index)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The frame whose turn it is, if there is one. It stays until [`RxRing::release`].
    pub(crate) fn peek(&self) -> Option<RingSlot> {
        let base = self.next * self.slot_len;
        let status = self.ring.status(base).load(Ordering::Acquire);
        if status & TP_STATUS_USER == 0 {
            return None;
        }
        let mut header = [0; TPACKET2_HDR_LEN];
        self.ring.read(base, &mut header);
        let long = |at: usize| super::netlink::read_u32(&header, at).unwrap_or_default() as usize;
        let short = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        // `struct tpacket2_hdr`: status, len, snaplen, mac, net, sec, nsec, vlan_tci, vlan_tpid.
        let mac = usize::from(short(12)).clamp(VNET_LEN, self.slot_len);
        let tpid = if status & TP_STATUS_VLAN_TPID_VALID == 0 { ETHERTYPE_VLAN } else { short(26) };
        let vlan = VlanTag { tpid, tci: short(24) };
        Some(RingSlot {
            len: long(4),
            held: long(8).min(self.slot_len - mac),
            at: base + mac,
            vlan: (status & TP_STATUS_VLAN_VALID != 0).then_some(vlan),
            copied: status & TP_STATUS_COPY != 0,
            arrived_ns: long(16) as u64 * 1_000_000_000 + long(20) as u64,
        })
    }

    /// The virtio-net header of a slot.
    pub(crate) fn read_vnet(&self, slot: &RingSlot) -> [u8; VNET_LEN] {
        let mut header = [0; VNET_LEN];
        self.ring.read(slot.at - VNET_LEN, &mut header);
        header
    }

    /// Copies the frame of a slot; `into` must not be longer than `slot.held`.
    pub(crate) fn read(&self, slot: &RingSlot, into: &mut [u8]) {
        assert!(into.len() <= slot.held, "more than the slot holds");
        self.ring.read(slot.at, into);
    }

    /// Reads the virtio-net header and then the whole frame of a slot that was `copied`; returns
    /// the true length of both together, which is more than `into` holds when it was cut.
    pub(crate) fn read_whole(&self, into: &mut [u8]) -> io::Result<usize> {
        use rustix::net::{RecvFlags, recv};
        Ok(recv(&self.fd, into, RecvFlags::DONTWAIT | RecvFlags::TRUNC)?.1)
    }

    /// Returns the current slot to the kernel.
    pub(crate) fn release(&mut self) {
        self.ring.status(self.next * self.slot_len).store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
    }

    /// The counter of the ring's drops, which may outlive the ring.
    pub(crate) fn drops(&self) -> RxRingDrops {
        RxRingDrops { fd: Arc::clone(&self.fd), total: 0 }
    }
}

/// The frames that the kernel dropped for want of a slot.
#[derive(Debug)]
pub(crate) struct RxRingDrops {
    fd: Arc<OwnedFd>,
    total: u64,
}

/// The length of a slot for frames of this length, and the number of blocks for these slots.
fn measures(frame_len: usize, slots: usize) -> (usize, usize) {
    // A slot holds the ring's header, the address, alignment and the virtio-net header too.
    let slot_len = (frame_len + 128).next_power_of_two().clamp(2_048, BLOCK_LEN);
    (slot_len, (slots.max(1) * slot_len).div_ceil(BLOCK_LEN))
}

/// A ring that is ready for the next port.
static SPARE: Mutex<Option<RxRing>> = Mutex::new(None);

fn spare() -> MutexGuard<'static, Option<RxRing>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the namespace that a socket is of.
fn netns_cookie(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let (mut cookie, mut len) = (0_u64, socklen::<u64>());
    // SAFETY: pointer and length describe `cookie`, which is writable for the call.
    let done = unsafe {
        let value = (&raw mut cookie).cast::<c_void>();
        let (level, option) = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
        libc::getsockopt(fd.as_raw_fd(), level, option, value, &raw mut len)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

impl RxRingDrops {
    /// Of another socket that receives packets.
    pub(crate) fn of(fd: Arc<OwnedFd>) -> Self {
        Self { fd, total: 0 }
    }

    /// The socket, for those who do not keep it open.
    pub(crate) fn socket(&self) -> Weak<OwnedFd> {
        Arc::downgrade(&self.fd)
    }

    /// The frames dropped since the ring was made.
    pub(crate) fn total(&mut self) -> u64 {
        self.total += self.take().unwrap_or_default();
        self.total
    }

    /// Those since the last call: the kernel starts anew with each.
    fn take(&self) -> io::Result<u64> {
        // SAFETY: all-zero bytes are a valid value of two numbers.
        let mut stats: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut len = socklen::<libc::tpacket_stats>();
        // SAFETY: pointer and length describe `stats`, which is writable for the call.
        let done = unsafe {
            let value = (&raw mut stats).cast::<c_void>();
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                value,
                &raw mut len,
            )
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(stats.tp_drops.into()) }
    }
}

/// A socket that sends on one device, and receives nothing. For super-frames it is a pair: a
/// virtio-net header before each frame costs a twentieth of the rate of short ones, so that only
/// calls with super-frames have them.
#[derive(Debug)]
pub(crate) struct TxSocket {
    fd: OwnedFd,
    /// The one whose messages begin with a virtio-net header.
    gso: Option<OwnedFd>,
}

impl TxSocket {
    /// Opens the socket on device number `index`; with `has_gso` it sends super-frames too.
    pub(crate) fn open(index: u32, qdisc_bypass: bool, has_gso: bool) -> io::Result<Self> {
        let fd = sending_socket(index, qdisc_bypass, false)?;
        let gso = has_gso.then(|| sending_socket(index, qdisc_bypass, true)).transpose()?;
        Ok(Self { fd, gso })
    }

    /// Whether it is to send super-frames whole.
    pub(crate) fn has_gso(&self) -> bool {
        self.gso.is_some()
    }

    /// The most frames that one call sends.
    pub(crate) const AT_ONCE: usize = MESSAGES;

    /// Sends a prefix of at most 64 `frames` without waiting, with their virtio-net headers, which
    /// a socket without super-frames has no use for; without headers nothing is left to do to any.
    /// Returns how many went out. An error is that of the first frame.
    pub(crate) fn send_some(
        &self,
        frames: &[PacketBuf],
        headers: &[[u8; VNET_LEN]],
    ) -> io::Result<usize> {
        // SAFETY: all-zero bytes are a valid value: null pointers and numbers.
        let (mut messages, mut parts): ([libc::mmsghdr; MESSAGES], [[libc::iovec; 2]; MESSAGES]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let count = frames.len().min(MESSAGES);
        let gso = self.gso.as_ref().filter(|_| !headers.is_empty());
        let headers = headers.iter().chain(std::iter::repeat(&[0; VNET_LEN]));
        let whole = messages.iter_mut().zip(&mut parts).zip(frames).zip(headers);
        for (((message, parts), frame), header) in whole {
            parts[0].iov_base = header.as_ptr().cast_mut().cast();
            parts[0].iov_len = VNET_LEN;
            parts[1].iov_base = frame.bytes().as_ptr().cast_mut().cast();
            parts[1].iov_len = frame.len();
            let parts = if gso.is_some() { &mut parts[..] } else { &mut parts[1..] };
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
        }
        // SAFETY: the first `count` messages point to `parts`, and these to headers and frames; all
        // live beyond the call, and sending only reads them.
        let sent = unsafe {
            let (fd, count) = (gso.unwrap_or(&self.fd), count as libc::c_uint);
            libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// A socket that keeps a device promiscuous, and receives nothing.
#[derive(Debug)]
pub(crate) struct Promiscuous {
    _fd: OwnedFd,
}

impl Promiscuous {
    /// Opens the socket for device number `index`.
    pub(crate) fn open(index: u32) -> io::Result<Self> {
        let fd = socket()?;
        join_promiscuous(&fd, index)?;
        Ok(Self { _fd: fd })
    }
}

fn sending_socket(index: u32, qdisc_bypass: bool, with_header: bool) -> io::Result<OwnedFd> {
    let fd = socket()?;
    if with_header {
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &(1 as c_int))?;
    }
    if qdisc_bypass {
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &(1 as c_int))?;
    }
    // So that a qdisc's own limit decides what is dropped. Without the right, the default.
    let _ = set_option(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SOCKET_BUFFER_LEN);
    bind(&fd, index, 0)?;
    Ok(fd)
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: `socket` takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(fd: &OwnedFd, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: pointer and length describe `address`.
    let done = unsafe {
        let pointer = (&raw const address).cast();
        libc::bind(fd.as_raw_fd(), pointer, socklen::<libc::sockaddr_ll>())
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn join_promiscuous(fd: &OwnedFd, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// The choice of the socket that gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fanout {
    /// By flow: addresses and ports, the same both ways.
    Hash = libc::PACKET_FANOUT_HASH as isize,
    /// The one of the number that a program has given the frame as its queue.
    Queue = libc::PACKET_FANOUT_QM as isize,
}

/// Puts a bound socket into a fanout group, or a new one; which it is.
fn join_fanout(fd: &OwnedFd, group: Option<u16>, by: Fanout) -> io::Result<u16> {
    let how = by as u32 | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    // The kernel chooses the number of a new one, which nobody else has then.
    let new = if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
    let argument = u32::from(group.unwrap_or(0)) | (how | new) << 16;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, &argument)?;
    if let Some(group) = group {
        return Ok(group);
    }
    let mut joined: u32 = 0;
    let mut len = socklen::<u32>();
    // SAFETY: pointer and length describe `joined`, which is writable for the call.
    let done = unsafe {
        let value = (&raw mut joined).cast::<c_void>();
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_FANOUT);
        libc::getsockopt(fd.as_raw_fd(), level, option, value, &raw mut len)
    };
    // The number is in the lower half.
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(joined as u16) }
}

const fn instruction(code: u32, k: u32, (jt, jf): (u8, u8)) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// The offset at which a filter reads `skb->pkt_type` (`SKF_AD_OFF + SKF_AD_PKTTYPE`).
const PACKET_TYPE_AT: u32 = 0xffff_f004;
const PACKET_OUTGOING: u32 = 4;

/// A filter that lets through whatever this machine did not send.
const NOT_OUTGOING: [libc::sock_filter; 4] = [
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, PACKET_TYPE_AT, (0, 0)),
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, PACKET_OUTGOING, (0, 1)),
    instruction(libc::BPF_RET | libc::BPF_K, 0, (0, 0)),
    instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, (0, 0)),
];

/// A filter that lets nothing through.
const NOTHING: [libc::sock_filter; 1] = [instruction(libc::BPF_RET | libc::BPF_K, 0, (0, 0))];

/// Gives a socket a filter, in the place of the one that it has.
fn filter(fd: &OwnedFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = program.len().try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel only reads it.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set_option<T: Copy>(fd: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`; the kernel only reads it.
    let done = unsafe {
        let pointer = (value as *const T).cast::<c_void>();
        libc::setsockopt(fd.as_raw_fd(), level, option, pointer, socklen::<T>())
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn socklen<T>() -> libc::socklen_t {
    // The types used here have a few bytes.
    size_of::<T>() as libc::socklen_t
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::AsRawFd;

    use super::{Fanout, RxRing, spare};
    use crate::sys::link::Rtnl;
    use crate::sys::netns::Namespace;

    const FRAME_LEN: usize = 1_518;
    const SLOTS: usize = 64;

    fn open() -> io::Result<RxRing> {
        let lo = Rtnl::open()?.link("lo")?.index;
        RxRing::open(lo, FRAME_LEN, SLOTS)
    }

    #[test]
    #[ignore = "needs root"]
    fn the_spare_ring_is_for_a_port_of_its_namespace() {
        let namespace = || Namespace::new().expect("needs root: run by `cargo xtask test`");
        let (one, other) = (namespace(), namespace());
        let kept = || -> io::Result<i32> {
            RxRing::keep_spare(FRAME_LEN, SLOTS)?;
            RxRing::keep_spare(FRAME_LEN, SLOTS)?;
            Ok(spare().as_ref().map(|ring| ring.fd.as_raw_fd()).expect("it is kept"))
        };
        let fd = one.enter(kept).unwrap().unwrap();
        // The queues of the tier's device are not the next port's.
        let queues = || {
            let lo = Rtnl::open()?.link("lo")?.index;
            RxRing::open_queues(lo, FRAME_LEN, SLOTS, (1, Fanout::Queue))
        };
        let queues = one.enter(queues).unwrap().unwrap();
        assert!(queues[0].fd.as_raw_fd() != fd && spare().is_some());
        let longer = one.enter(|| RxRing::open(1, 8 * FRAME_LEN, SLOTS)).unwrap().unwrap();
        assert!(longer.fd.as_raw_fd() != fd && spare().is_some());
        let port = one.enter(open).unwrap().unwrap();
        assert!(port.fd.as_raw_fd() == fd && spare().is_none());
        // One of another namespace is given up.
        one.enter(kept).unwrap().unwrap();
        let is_new = || open().map(|ring| ring.is_of_this_namespace());
        assert!(other.enter(is_new).unwrap().unwrap() && spare().is_none());
    }
}
