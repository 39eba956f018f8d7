//! The queueing discipline of a device: a token bucket that makes a veth as slow as a real link,
//! and the counters of what it dropped.
//!
//! It must never leave the rate to be guessed: what is counted per frame is a parameter.

use std::io;

use super::link::{LinkError, Rtnl, refused};
use super::netlink::{
    Attributes, NLM_F_CREATE, NLM_F_ECHO, NLM_F_REPLACE, NetlinkMessage, NetlinkRequest, read_text,
    read_u32, read_u64,
};

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TCMSG_LEN: usize = 20;
/// Handle `8001:`, the major number that we give our own qdiscs.
const OUR_HANDLE: u32 = 0x8001_0000;

/// Bytes that a frame occupies on an Ethernet wire besides its own: FCS 4, preamble 8, gap 12.
pub const ETHERNET_OVERHEAD_BYTES: u16 = 24;
/// The least that a frame occupies on an Ethernet wire: 64 bytes, preamble and gap.
pub const ETHERNET_LEAST_BYTES: u16 = 84;

/// A token bucket filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Rate in bit/s.
    pub rate_bps: u64,
    /// Depth of the bucket in bytes. A GSO frame of the sender that is longer is segmented first.
    pub burst_bytes: u32,
    /// Length of the queue in bytes; a frame beyond it is dropped.
    pub limit_bytes: u32,
    /// Bytes counted per frame besides its own.
    pub overhead_bytes: u16,
    /// The least that a frame counts.
    pub least_bytes: u16,
}

impl Tbf {
    /// As an Ethernet of `rate_bps`: preamble, gap and FCS are counted, so that 100 Mb/s carries
    /// 95.7 Mb/s of UDP in 1,470-byte datagrams, as 100BASE-TX does. The bucket holds 1 ms, at
    /// least two full frames; the queue holds `latency_ms`, at least ten full frames.
    #[must_use]
    pub fn ethernet(rate_bps: u64, latency_ms: u32) -> Self {
        let clamp = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let bytes_per_ms = rate_bps / 8 / 1_000;
        Self {
            rate_bps,
            burst_bytes: clamp(bytes_per_ms.max(2 * 1_538)),
            limit_bytes: clamp((bytes_per_ms * u64::from(latency_ms)).max(10 * 1_538)),
            overhead_bytes: ETHERNET_OVERHEAD_BYTES,
            least_bytes: ETHERNET_LEAST_BYTES,
        }
    }

    /// `struct tc_tbf_qopt`: `tc_ratespec` twice, limit, buffer, mtu.
    fn parms(&self) -> [u8; 36] {
        let mut parms = [0; 36];
        let rate = u32::try_from(self.rate_bps / 8).unwrap_or(u32::MAX);
        // With a link layer given, the kernel counts by itself and wants no rate table.
        parms[1] = TC_LINKLAYER_ETHERNET;
        parms[2..4].copy_from_slice(&self.overhead_bytes.to_ne_bytes());
        parms[6..8].copy_from_slice(&self.least_bytes.to_ne_bytes());
        parms[8..12].copy_from_slice(&rate.to_ne_bytes());
        parms[13] = TC_LINKLAYER_ETHERNET;
        parms[24..28].copy_from_slice(&self.limit_bytes.to_ne_bytes());
        parms
    }
}

/// A qdisc and its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The device's number.
    pub index: u32,
    /// The kind: `tbf`, `pfifo_fast`, `noqueue`, ...
    pub kind: String,
    /// Whether it is the root of its device.
    pub root: bool,
    /// Bytes sent, as the qdisc counts them.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// The number of times that a packet had to wait for its turn.
    pub overlimits: u32,
    /// Packets that went back into the queue.
    pub requeues: u32,
    /// Bytes in the queue now.
    pub backlog_bytes: u32,
    /// Packets in the queue now.
    pub queue_packets: u32,
}

impl Rtnl {
    /// Sets the token bucket as the root qdisc of a device, in place of what was there.
    ///
    /// # Errors
    /// `EINVAL` for a rate or bucket of 0.
    pub fn set_tbf(&self, name: &str, tbf: &Tbf) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        let header = tcmsg(index, OUR_HANDLE, TC_H_ROOT);
        let mut request = NetlinkRequest::new(libc::RTM_NEWQDISC, flags, &header);
        request.attr_text(TCA_KIND, "tbf");
        request.nested(TCA_OPTIONS, &[], |options| {
            options.attr(TCA_TBF_PARMS, &tbf.parms());
            options.attr_u32(TCA_TBF_BURST, tbf.burst_bytes);
            let bytes_per_s = tbf.rate_bps / 8;
            if bytes_per_s > u64::from(u32::MAX) {
                options.attr(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes());
            }
        });
        self.socket.act(request).map_err(refused(&format!("token bucket {tbf:?} on {name}")))
    }

    /// Restores a device's default qdisc.
    ///
    /// # Errors
    /// `ENOENT` when it has no other.
    pub fn reset_qdisc(&self, name: &str) -> Result<(), LinkError> {
        let index = self.link(name)?.index;
        let request = NetlinkRequest::new(libc::RTM_DELQDISC, 0, &tcmsg(index, 0, TC_H_ROOT));
        self.socket.act(request).map_err(refused(&format!("removing the qdisc of {name}")))
    }

    /// The root qdisc of a device with its counters.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device; "not found" when it has no qdisc.
    pub fn root_qdisc(&self, name: &str) -> Result<Qdisc, LinkError> {
        let index = self.link(name)?.index;
        let what = format!("qdisc of {name}");
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, 0, &tcmsg(index, 0, 0));
        let all = self.socket.dump(request).map_err(refused(&what))?;
        let mut found = all.iter().filter_map(qdisc_of);
        found
            .find(|qdisc| qdisc.index == index && qdisc.root)
            .ok_or_else(|| LinkError { what, source: io::ErrorKind::NotFound.into() })
    }

    /// The root qdisc of the device of a number, with its counters; none where there is none to
    /// speak of.
    pub(crate) fn root_qdisc_at(&self, index: u32) -> Option<Qdisc> {
        self.qdisc_at(index, TC_H_ROOT).unwrap_or_default()
    }

    /// The same of that which filters hang on: `ingress` or `clsact`.
    ///
    /// # Errors
    /// The kernel's; that there is none is no error.
    pub(super) fn ingress_qdisc_at(&self, index: u32) -> Result<Option<Qdisc>, LinkError> {
        let found = self.qdisc_at(index, TC_H_INGRESS);
        found.map_err(refused(&format!("filters of device number {index}")))
    }

    fn qdisc_at(&self, index: u32, parent: u32) -> io::Result<Option<Qdisc>> {
        // Without the flag the answer goes to those only who hear of all changes.
        let header = tcmsg(index, 0, parent);
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, NLM_F_ECHO, &header);
        match self.socket.get(request) {
            Ok(reply) => {
                qdisc_of(&reply).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn tcmsg(index: u32, handle: u32, parent: u32) -> [u8; TCMSG_LEN] {
    let mut header = [0; TCMSG_LEN];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}

fn qdisc_of(reply: &NetlinkMessage) -> Option<Qdisc> {
    if reply.kind != libc::RTM_NEWQDISC {
        return None;
    }
    let attributes = reply.attributes(TCMSG_LEN);
    let stats = Attributes::inside(attributes.find(TCA_STATS2).unwrap_or_default());
    let basic = stats.find(TCA_STATS_BASIC).unwrap_or_default();
    let queue = stats.find(TCA_STATS_QUEUE).unwrap_or_default();
    let at = |n: usize| read_u32(queue, n * 4).unwrap_or_default();
    let packets = match stats.find(TCA_STATS_PKT64) {
        Some(wide) => read_u64(wide, 0),
        None => read_u32(basic, 8).map(u64::from),
    };
    Some(Qdisc {
        index: reply.header_u32(4)?,
        kind: read_text(attributes.find(TCA_KIND)?),
        root: reply.header_u32(12)? == TC_H_ROOT,
        bytes: read_u64(basic, 0).unwrap_or_default(),
        packets: packets.unwrap_or_default(),
        queue_packets: at(0),
        backlog_bytes: at(1),
        drops: at(2),
        requeues: at(3),
        overlimits: at(4),
    })
}
