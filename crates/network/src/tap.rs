//! Counts what each host sends and receives, as Trema's `show_stats` tells it, and answers who
//! asks.
//!
//! One thread of the keeper listens at the device of every host and at a Unix socket in the
//! network's folder: a line with a request comes in, a line with the answer goes out. A packet is
//! the host's own when its source address is the host's, and is received when it is addressed to
//! the host or to a group. Nothing is kept but counts, and of those a bounded number. Hosts must
//! never wait for it: what the kernel has no room for is counted as missed.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use netdev::sys::netns::Namespace;
use netdev::sys::packet_tap::PacketTap;
use packet::PacketView;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::plan::HostPlan;

/// Rows of one host; packets of further flows are counted together.
const ROWS_MAX: usize = 4_096;
/// Bytes of each packet that are looked at: Ethernet, tags, IPv4 with options, ports.
const HEADERS_MAX: usize = 256;
/// Packets of one host before the next has its turn.
const TURN_MAX: usize = 256;
/// Packets that are counted before a question is answered; more cannot wait.
const WAITING_MAX: usize = 65_536;
/// Time between the thread's looks at its end.
const STEP: Duration = Duration::from_millis(100);
/// Longest time for a question.
const ASK_LIMIT: Duration = Duration::from_secs(2);
/// Longest line, in bytes.
const LINE_MAX: u64 = 4 << 20;
/// Bytes of packets that may wait at a host.
const BUFFER_MAX: usize = 4 << 20;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StatsRequest {
    /// The counts of a host, by its place in the plan.
    Show(usize),
    /// All counts of a host are zero from now on.
    Reset(usize),
}

/// A flow that a host has sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct HostFlow {
    pub(crate) is_received: bool,
    /// IPv4's number of the protocol.
    pub(crate) protocol: u8,
    pub(crate) src: Ipv4Addr,
    /// Of UDP.
    pub(crate) src_port: Option<u16>,
    pub(crate) dst: Ipv4Addr,
    /// Of UDP.
    pub(crate) dst_port: Option<u16>,
}

/// Its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlowCount {
    pub(crate) packets: u64,
    /// With the Ethernet header.
    pub(crate) bytes: u64,
}

/// The counts of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostStats {
    pub(crate) rows: Vec<(HostFlow, FlowCount)>,
    /// Packets of IPv4 beyond the rows that are kept.
    pub(crate) beyond: u64,
    /// Packets that are not IPv4, such as ARP.
    pub(crate) others: u64,
    /// Packets that came too fast to be counted.
    pub(crate) missed: u64,
}

/// The counts of a host in the making.
#[derive(Default)]
struct Counts {
    rows: BTreeMap<HostFlow, FlowCount>,
    beyond: u64,
    others: u64,
}

struct HostTap {
    socket: PacketTap,
    mac: [u8; 6],
    counts: Counts,
    /// Packets missed before the counts were set to zero.
    missed_before: u64,
}

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Taps {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Taps {
    /// Counts at these hosts, and answers at `socket`.
    pub(crate) fn start(
        hosts: &[HostPlan],
        namespaces: &[Namespace],
        socket: &Path,
    ) -> Result<Self, Error> {
        let open = |(host, namespace): (&HostPlan, &Namespace)| {
            let opened = namespace.enter(|| PacketTap::open(BUFFER_MAX)).and_then(|tap| tap);
            let socket = opened.map_err(Error::io(format!("a packet socket at {}", host.name)))?;
            Ok(HostTap { socket, mac: host.mac, counts: Counts::default(), missed_before: 0 })
        };
        let taps: Result<Vec<HostTap>, Error> = hosts.iter().zip(namespaces).map(open).collect();
        let listener = UnixListener::bind(socket).map_err(Error::at("binding", socket))?;
        let prepare = || {
            std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            epoll_of(&listener, taps.as_ref().map_or(&[], Vec::as_slice))
        };
        let epoll = prepare().map_err(Error::at("preparing", socket))?;
        let taps = taps?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("taps".into())
            .spawn(move || serve(&epoll, &listener, taps, &until))
            .map_err(Error::io("starting a thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Taps {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn epoll_of(listener: &UnixListener, taps: &[HostTap]) -> io::Result<OwnedFd> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    for (at, tap) in taps.iter().enumerate() {
        epoll::add(&all, &tap.socket, epoll::EventData::new_u64(at as u64), readable)?;
    }
    epoll::add(&all, listener, epoll::EventData::new_u64(u64::MAX), readable)?;
    Ok(all)
}

fn serve(epoll: &OwnedFd, listener: &UnixListener, mut taps: Vec<HostTap>, stop: &AtomicBool) {
    let mut events = Vec::with_capacity(64);
    let step = Timespec { tv_sec: 0, tv_nsec: STEP.subsec_nanos().into() };
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(epoll, spare, Some(&step)) {
            Ok(_) | Err(Errno::INTR) => {}
            // The set is gone only when the process ends.
            Err(_) => return,
        }
        for event in &events {
            let at = event.data.u64();
            match usize::try_from(at).ok().and_then(|at| taps.get_mut(at)) {
                Some(tap) => tap.drain(TURN_MAX),
                None => {
                    if let Ok((stream, _)) = listener.accept() {
                        // Who does not ask properly gets no answer.
                        drop(answer(stream, &mut taps));
                    }
                }
            }
        }
    }
}

fn answer(mut stream: UnixStream, taps: &mut [HostTap]) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ASK_LIMIT))?;
    stream.set_write_timeout(Some(ASK_LIMIT))?;
    let mut line = String::new();
    BufReader::new(&stream).take(LINE_MAX).read_line(&mut line)?;
    let request: StatsRequest = serde_json::from_str(&line)?;
    let (StatsRequest::Show(at) | StatsRequest::Reset(at)) = request;
    let tap = taps.get_mut(at).ok_or(io::ErrorKind::InvalidInput)?;
    // What has arrived before the question is in the answer.
    tap.drain(WAITING_MAX);
    let missed = tap.socket.drops();
    if let StatsRequest::Reset(_) = request {
        tap.counts = Counts::default();
        tap.missed_before = missed;
    }
    let missed = missed.saturating_sub(tap.missed_before);
    let mut text = serde_json::to_string(&tap.counts.report(missed))?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

/// Asks the keeper whose socket this is.
pub(crate) fn ask(socket: &Path, request: &StatsRequest) -> Result<HostStats, Error> {
    let path: PathBuf = socket.to_owned();
    let asked = || -> io::Result<HostStats> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(ASK_LIMIT * 5))?;
        stream.set_write_timeout(Some(ASK_LIMIT))?;
        let mut text = serde_json::to_string(request)?;
        text.push('\n');
        stream.write_all(text.as_bytes())?;
        let mut line = String::new();
        BufReader::new(&stream).take(LINE_MAX).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    asked().map_err(Error::at("asking the network at", socket))
}

impl HostTap {
    /// Counts the packets that wait, up to `most` of them.
    fn drain(&mut self, most: usize) {
        let mut headers = [0; HEADERS_MAX];
        for _ in 0..most {
            match self.socket.receive(&mut headers) {
                Ok(Some((held, len))) => self.counts.add(self.mac, &headers[..held], len),
                Ok(None) => break,
                // The device went down; what comes when it is up again is counted.
                Err(_) => {}
            }
        }
    }
}

impl Counts {
    /// Counts a packet of `len` bytes of which these are the first.
    fn add(&mut self, own: [u8; 6], headers: &[u8], len: usize) {
        let view = PacketView::of(headers);
        let (Some(src), Some(dst)) = (view.eth_src(), view.eth_dst()) else { return };
        let is_sent = src.0 == own;
        // What is flooded to the host and is another's is not received.
        if !is_sent && dst.0 != own && dst.0[0] & 1 == 0 {
            return;
        }
        let addresses = view.ipv4_saddr().zip(view.ipv4_daddr()).zip(view.ipv4_protocol());
        let Some(((src, dst), protocol)) = addresses else {
            self.others += 1;
            return;
        };
        let (src_port, dst_port) = (view.udp_src_port(), view.udp_dst_port());
        let row = HostFlow { is_received: !is_sent, protocol, src, src_port, dst, dst_port };
        let is_full = self.rows.len() >= ROWS_MAX;
        if is_full && !self.rows.contains_key(&row) {
            self.beyond += 1;
            return;
        }
        let count = self.rows.entry(row).or_default();
        count.packets += 1;
        count.bytes += len as u64;
    }

    fn report(&self, missed: u64) -> HostStats {
        let rows = self.rows.iter().map(|(flow, count)| (*flow, *count));
        let Self { beyond, others, .. } = *self;
        HostStats { rows: rows.collect(), beyond, others, missed }
    }
}

#[cfg(test)]
mod tests {
    use openflow::MacAddr;
    use packet::build::{FrameBuilder, Ipv4};

    use super::{Counts, ROWS_MAX};

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn udp(src: [u8; 6], dst: [u8; 6], port: u16) -> Vec<u8> {
        let (a, b) = ([10, 0, 0, src[5]].into(), [10, 0, 0, dst[5]].into());
        let frame = FrameBuilder::ethernet(MacAddr(dst), MacAddr(src));
        frame.ipv4(Ipv4::new(a, b)).udp(1, port).build()
    }

    #[test]
    fn sent_received_and_foreign_packets_have_their_own_counts() {
        let mut counts = Counts::default();
        for frame in [udp(OWN, OTHER, 9), udp(OWN, OTHER, 9), udp(OTHER, OWN, 9)] {
            counts.add(OWN, &frame, frame.len());
        }
        let third = [2, 0, 0, 0, 0, 3];
        counts.add(OWN, &udp(OTHER, third, 9), 60);
        counts.add(OWN, &[&[0xff; 6][..], &OTHER, &[0x08, 0x06], &[0; 28]].concat(), 42);
        // A long packet of which only the headers were looked at.
        let long = FrameBuilder::ethernet(MacAddr(OTHER), MacAddr(OWN))
            .ipv4(Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()))
            .udp(1, 9)
            .payload(&[0; 1_000])
            .build();
        counts.add(OWN, &long[..256], long.len());
        for cut in 0..udp(OWN, OTHER, 9).len() {
            Counts::default().add(OWN, &udp(OWN, OTHER, 9)[..cut], cut);
        }
        let report = counts.report(0);
        assert_eq!((report.rows.len(), report.others, report.beyond), (2, 1, 0));
        let (sent, count) = report.rows[0];
        assert!(!sent.is_received && sent.dst_port == Some(9) && sent.protocol == 17);
        assert_eq!((count.packets, sent.dst), (3, [10, 0, 0, 2].into()));
        assert!(count.bytes > 1_000);
        assert!(report.rows[1].0.is_received && report.rows[1].1.packets == 1);
    }

    #[test]
    fn a_host_of_many_flows_keeps_a_bounded_number() {
        let mut counts = Counts::default();
        for port in 0..ROWS_MAX as u16 + 10 {
            counts.add(OWN, &udp(OTHER, OWN, port), 60);
        }
        counts.add(OWN, &udp(OTHER, OWN, 0), 60);
        let report = counts.report(0);
        assert_eq!((report.rows.len(), report.beyond, report.rows[0].1.packets), (ROWS_MAX, 10, 2));
    }
}
