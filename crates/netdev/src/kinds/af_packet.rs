//! `af_packet`: a Linux network device through packet sockets.
//!
//! Frames come out as they would stand on a wire, whatever the sender left to its network card: a
//! VLAN tag that the kernel took out is put back, a partial checksum is completed, a GSO frame is
//! cut, unless the receiver asks for it whole ([`crate::RxQueue::keep_offloads`]). Nobody has to
//! switch offloads off, which on a veth would be needed at the end that lies in another namespace.
//! The kernel's own stack sees every frame too; give the device no address. In the kernel tier
//! ([`crate::KernelTier`]) the ring is given up for that of the device by which the tier's program
//! hands over.

mod own_veth;

use std::io;
use std::sync::{Arc, Weak};

use packet::PacketBuf;

use crate::counters::{HandoverLosses, PortCounters, PortQueueCounters, queue_counters};
use crate::device::{KernelDevice, is_gone};
use crate::error::PortError;
use crate::kernel_tx::{FrameSender, KernelTx, TakenFrames};
use crate::offload::VNET_LEN;
use crate::port::{Port, PortDevice};
use crate::port_info::{LinkNotification, PortInfo};
use crate::ring_rx::{self, RingRx};
use crate::spec::{
    DEVICE, KindRow, PortRight, PortSpec, QUEUES, by_name, is_device_name, no_file, option,
};
use crate::sys::ethtool::Ethtool;
use crate::sys::link::Rtnl;
use crate::sys::packet_socket::{Fanout, RxRing, RxRingDrops, TxSocket};
use crate::tier_port::{TierDevice, TierPeer, TierPort, TierWay};

use self::own_veth::OwnVeth;

const FIX: &str = "give the program CAP_NET_RAW and CAP_NET_ADMIN";
const SLOTS: u32 = 2_048;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "af_packet",
    name_hint: DEVICE,
    help: "a Linux network device, through packet sockets",
    options: &[
        option("slots", "2048", "frames that the receiving ring holds; 64 to 65536"),
        option(
            "qdisc_bypass",
            "false|true",
            "send past the device's queueing discipline, no super-frames then",
        ),
        option("gso", "true|false", "take and send super-frames whole"),
        option(
            "peer",
            "true|false",
            "hand frames of the kernel tier straight to the far end of a veth",
        ),
        option("far", "DEVICE", "make a veth that goes with the port, whose other end this is"),
        option(QUEUES, "1", "queues, among which the kernel shares flows out; 1 to 64"),
    ],
    exclusive: by_name,
    file_use: no_file,
    rights: &[PortRight::PacketSocket, PortRight::DeviceSettings],
    open,
};

/// Keeps a ring ready for the next port of this kind, which then comes without waiting for the
/// kernel; it is taken where the device's MTU is the usual one.
///
/// # Errors
/// The kernel has no ring, or nobody may have one.
pub fn keep_spare_ring() -> io::Result<()> {
    const FRAME_LEN: usize = 1_518;
    RxRing::keep_spare(FRAME_LEN, SLOTS as usize)
}

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let slots = spec.number("slots", 64..=65_536)?.unwrap_or(SLOTS);
    let bypass = spec.flag("qdisc_bypass", false)?;
    // Past its queueing discipline a device is not asked to cut, and the kernel does not either.
    let gso = spec.flag("gso", !bypass)?;
    if gso && bypass {
        return Err(spec.bad_value("gso", "false beside qdisc_bypass=true").into());
    }
    let is_peer_wanted = spec.flag("peer", true)?;
    let name = spec.name();
    let own = match spec.option("far") {
        Some(far) if is_device_name(far) => OwnVeth::make(name, far, FIX)?,
        Some(_) => return Err(spec.bad_value("far", "the name of a device").into()),
        None => None,
    };
    let device = Arc::new(KernelDevice::find(ROW.word, name)?);
    let failed = |source| PortError::from_io(format!("af_packet:{name}"), FIX, source);
    let (index, slots) = (device.index(), slots as usize);
    let frame_len = ring_rx::frame_len(&device);
    let rings = match spec.queues()? as usize {
        1 => RxRing::open(index, frame_len, slots).map(|ring| vec![ring]),
        queues => RxRing::open_queues(index, frame_len, slots, (queues, Fanout::Hash)),
    };
    let rings = rings.map_err(failed)?;
    let counters: Arc<[_]> = queue_counters(rings.len()).into();
    let mut notes = switch_off_lro(name);
    if let Some(far) = spec.option("far").filter(|_| own.is_none()) {
        let note = format!("{name} was there already, and stays; no veth to {far} was made");
        tracing::info!("{note}");
        notes.push(note);
    }
    let handle = AfPacketDevice {
        notes,
        device: Arc::clone(&device),
        drops: Drops::Rings(rings.iter().map(RxRing::drops).collect()),
        counters: Arc::clone(&counters),
        peer: (is_peer_wanted && is_veth(index)).then(Arc::default),
        gso,
        own,
    };
    let queue = |(ring, counters): (RxRing, Arc<PortQueueCounters>)| {
        let socket = TxSocket::open(index, bypass, gso).map_err(failed)?;
        let rx = RingRx::new(&device, ring, &counters, gso);
        Ok((rx, KernelTx::new(Arc::clone(&device), socket, counters)))
    };
    Port::with_queues(handle, rings.into_iter().zip(counters.iter().cloned()).map(queue))
}

/// Of what the kernel does not describe, frames go by way of the device.
fn is_veth(index: u32) -> bool {
    let link = Rtnl::open().and_then(|rtnl| rtnl.link_at(index));
    link.is_ok_and(|link| link.kind == "veth")
}

/// LRO merges frames so that they cannot be taken apart again; no switch can work with it.
fn switch_off_lro(name: &str) -> Vec<String> {
    let Ok(ethtool) = Ethtool::open() else { return Vec::new() };
    let features = ethtool.features(name).unwrap_or_default();
    if !features.iter().any(|f| f.name == "rx-lro" && f.active && f.changeable) {
        return Vec::new();
    }
    let note = match ethtool.set_features(name, &[("rx-lro", false)]) {
        Ok(()) => "rx-lro was on and has been switched off".to_owned(),
        Err(error) => format!("rx-lro is on and merges frames: {error}"),
    };
    tracing::info!(device = name, "{note}");
    vec![note]
}

/// Reasons why a frame could not be sent, by the treatment that it gets.
enum SendFailure {
    /// The device can never carry it: longer than the MTU, or shorter than a header.
    Unfit,
    /// Queueing discipline or device have dropped it, and counted that.
    Dropped,
    /// It was not taken: a full socket, or a device that is down.
    NotTaken,
}

impl SendFailure {
    /// Sorts an error of the socket; one that is no matter of the frame is returned.
    fn of(error: &io::Error, device: &KernelDevice) -> Result<Self, PortError> {
        match error.raw_os_error() {
            Some(libc::EMSGSIZE | libc::EINVAL) => Ok(Self::Unfit),
            Some(libc::ENOBUFS) => Ok(Self::Dropped),
            Some(libc::EAGAIN | libc::ENOMEM | libc::ENETDOWN | libc::EINTR) => Ok(Self::NotTaken),
            _ if is_gone(error) => device.ask().map(|()| Self::NotTaken),
            code => {
                let source = code
                    .map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
                let what = format!("sending on {}", device.name());
                Err(PortError::from_io(what, FIX, source))
            }
        }
    }
}

impl FrameSender for TxSocket {
    fn send(
        &self,
        device: &KernelDevice,
        frames: &[PacketBuf],
        headers: &[[u8; VNET_LEN]],
        taken: &mut TakenFrames,
    ) -> Result<(), PortError> {
        // The call before ended at a frame that was not taken, for a reason not known yet.
        let mut fell_short = false;
        while let Some([first, rest @ ..]) = frames.get(taken.count()..) {
            let headers = headers.get(taken.count()..).unwrap_or_default();
            match self.send_some(&frames[taken.count()..], headers) {
                Ok(0) => break,
                Ok(sent) => {
                    taken.dropped_below(u64::from(fell_short));
                    fell_short = sent < TxSocket::AT_ONCE.min(1 + rest.len());
                    std::iter::once(first).chain(rest).take(sent).for_each(|f| taken.sent(f));
                }
                Err(error) => match SendFailure::of(&error, device)? {
                    SendFailure::Unfit if first.has_offload() => {
                        taken.refuse_offload();
                        break;
                    }
                    SendFailure::Unfit => {
                        fell_short = false;
                        taken.unfit();
                    }
                    SendFailure::Dropped => {
                        taken.dropped_below(1 + u64::from(fell_short));
                        break;
                    }
                    SendFailure::NotTaken => break,
                },
            }
        }
        Ok(())
    }

    fn carries_offloads(&self) -> bool {
        self.has_gso()
    }
}

/// The places where frames are lost for want of room.
#[derive(Debug)]
enum Drops {
    /// In the rings of the sockets.
    Rings(Vec<RxRingDrops>),
    /// On the way from the kernel tier's program.
    Handover {
        /// Those of the rings before.
        earlier: u64,
        /// Frames of the worker that were dropped below before there was a tier.
        refused_before: u64,
        /// Those since.
        since: Box<dyn HandoverLosses>,
    },
}

impl Drops {
    fn total(&mut self) -> u64 {
        match self {
            Self::Rings(drops) => drops.iter_mut().map(RxRingDrops::total).sum(),
            Self::Handover { earlier, since, .. } => *earlier + since.not_received(),
        }
    }

    /// Frames that the kernel tier gave to queueing discipline and device, and counted as sent, and
    /// which they dropped. Of what they dropped in all, `refused` was the worker's.
    fn behind_tier(&mut self, refused: u64) -> u64 {
        match self {
            Self::Rings(_) => 0,
            Self::Handover { since, refused_before, .. } => {
                since.not_sent(refused.saturating_sub(*refused_before))
            }
        }
    }
}

/// The device handle.
#[derive(Debug)]
struct AfPacketDevice {
    device: Arc<KernelDevice>,
    drops: Drops,
    /// Those of each queue, and what passes in the kernel.
    counters: Arc<[Arc<PortQueueCounters>]>,
    notes: Vec<String>,
    /// The far end of a veth; none where the tier is to use the device whatever its far end is.
    /// It is looked at elsewhere.
    peer: Option<Arc<TierPeer>>,
    /// Whether super-frames may come whole.
    gso: bool,
    /// The device is the port's own.
    own: Option<OwnVeth>,
}

impl AfPacketDevice {
    /// Packets that were dropped below calls that send.
    fn dropped_below(&self) -> u64 {
        self.counters.iter().map(|queue| queue.tier.dropped_below()).sum()
    }
}

impl PortDevice for AfPacketDevice {
    fn info(&mut self) -> PortInfo {
        let info = self.device.info(&self.notes);
        let Some(peer) = &self.peer else { return info };
        if !info.link_up {
            peer.set(None);
        }
        PortInfo { peer: peer.address(), ..info }
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Netlink(self.device.index())
    }

    fn owns_link(&self) -> bool {
        self.own.is_some()
    }

    fn set_link(&mut self, up: bool) -> Result<(), PortError> {
        let name = self.device.name();
        let set = self.own.as_ref().map_or(Ok(()), |own| own.set_link(&name, up));
        set.map_err(|error| {
            let what = format!("setting the link of af_packet:{name}");
            PortError::from_io(what, FIX, error.into())
        })
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters: PortCounters = self.counters.iter().map(|queue| queue.read()).sum();
        counters.rx_drops += self.drops.total();
        let behind = self.drops.behind_tier(self.dropped_below());
        counters.tx_drops += behind;
        counters.tx_packets = counters.tx_packets.saturating_sub(behind);
        counters
    }

    fn tier_port(&self) -> Option<TierPort> {
        let (device, queues) = (Arc::clone(&self.device), Arc::clone(&self.counters));
        let counters = Arc::clone(queues.first()?);
        let (peer, gso) = (self.peer.clone(), self.gso);
        let ring = match &self.drops {
            Drops::Rings(rings) if rings.len() == 1 => rings[0].socket(),
            Drops::Rings(_) | Drops::Handover { .. } => Weak::new(),
        };
        let way = TierWay::Device(TierDevice { device, queues, peer, gso, ring });
        Some(TierPort { way, counters })
    }

    fn host_use(&self) -> Result<Option<String>, PortError> {
        self.tier_port().map_or(Ok(None), |port| port.host_use())
    }

    fn enter_tier(&mut self, losses: Box<dyn HandoverLosses>) {
        let (earlier, refused_before) = (self.drops.total(), self.dropped_below());
        self.drops = Drops::Handover { earlier, refused_before, since: losses };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::link::{VethEnd, VethPair};
    use crate::sys::netns::Namespace;

    #[test]
    #[ignore = "needs root"]
    fn only_a_veth_without_peer_false_may_have_a_far_end() {
        let namespace = Namespace::new().expect("needs root: run by `cargo xtask test`");
        let (here, there) = (VethEnd::new("near"), VethEnd::new("far"));
        let pair = VethPair { here, there, there_in: None };
        Rtnl::open_in(&namespace).unwrap().add_veth(&pair).unwrap();
        for (text, may) in [("near", true), ("near?peer=false", false), ("lo", false)] {
            let spec: PortSpec = format!("af_packet:{text}").parse().unwrap();
            let port = namespace.enter(|| open(&spec).unwrap()).unwrap();
            let tier_port = port.device.tier_port().unwrap();
            assert_eq!(tier_port.may_have_far_end(), may, "{text}");
        }
    }

    #[test]
    fn super_frames_past_the_queueing_discipline_are_refused() {
        let spec: PortSpec = "af_packet:lo?qdisc_bypass=true&gso=true".parse().unwrap();
        let error = open(&spec).err().unwrap().to_string();
        assert!(error.contains("gso") && error.contains("qdisc_bypass=true"), "{error}");
    }
}
