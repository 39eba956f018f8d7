//! Verdicts on packets, and the list that collects them.
//!
//! The datapath sends nothing; it says what is to be sent. Every packet that goes in yields at
//! least one verdict.

use openflow::message::{PacketIn, PacketInReason};
use openflow::{Field, Match, PortNo, QueueId, ToController};
use packet::header::ethernet::FRAME_MIN_LEN;
use packet::{Meta, PacketBuf};

use crate::action_set::Origin;
use crate::counter::DropReason;

/// The fate of a packet or of one of its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves by a port that exists, is up and may send.
    Output {
        /// A port's number, or [`PortNo::LOCAL`]; never another reserved port.
        port: PortNo,
        /// The queue that set-queue or enqueue chose; `None` for the port's own.
        queue: Option<QueueId>,
        /// The frame as it leaves.
        frame: PacketBuf,
    },
    /// It goes to the controller.
    PacketIn {
        /// The message, with the whole packet and no buffer (clause 7.4.1: a packet that is not
        /// buffered goes up as a whole).
        message: PacketIn,
        /// The bytes that the action asked for, or `miss_send_len`; for a switch that buffers.
        max_len: u16,
    },
    /// It is a fragment and is kept until the others of its packet have come.
    Held,
    /// It goes nowhere.
    Drop {
        /// Why.
        reason: DropReason,
    },
}

/// All of a packet-in but the packet and its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HandUp {
    pub(crate) reason: PacketInReason,
    pub(crate) origin: Origin,
    pub(crate) max_len: u16,
    pub(crate) controller_id: u16,
    pub(crate) userdata: Vec<u8>,
    pub(crate) continuation: Vec<u8>,
}

impl HandUp {
    /// To the controllers that have chosen no number, without data.
    pub(crate) const fn plain(reason: PacketInReason, origin: Origin, max_len: u16) -> Self {
        Self {
            reason,
            origin,
            max_len,
            controller_id: 0,
            userdata: Vec::new(),
            continuation: Vec::new(),
        }
    }

    /// As a `controller` action asks.
    pub(crate) fn asked(asked: ToController, origin: Origin, continuation: Vec<u8>) -> Self {
        let ToController { max_len, controller_id, reason, userdata, .. } = asked;
        Self { reason, origin, max_len, controller_id, userdata, continuation }
    }

    /// The message with these bytes and fields of the packet.
    pub(crate) fn message(&self, data: Vec<u8>, matching: Match) -> PacketIn {
        PacketIn {
            buffer_id: None,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason: self.reason,
            table_id: self.origin.table_id,
            cookie: self.origin.cookie,
            matching,
            data,
            userdata: self.userdata.clone(),
            continuation: self.continuation.clone(),
            controller_id: self.controller_id,
        }
    }
}

/// The bytes of a frame that a packet-in carries: all of it. A frame that popped tags have made
/// shorter than Ethernet allows is filled up, as it is when it leaves by a port (IEEE 802.3, clause
/// 3.2.8); one that arrived shorter stays as it is.
pub(crate) fn packet_in_data(frame: &PacketBuf, arrived_len: usize) -> Vec<u8> {
    let mut data = frame.bytes().to_vec();
    if arrived_len >= FRAME_MIN_LEN {
        data.resize(data.len().max(FRAME_MIN_LEN), 0);
    }
    data
}

/// The fields that a packet-in carries beside the packet: its ports, and metadata, tunnel,
/// mark and registers where there are any.
pub(crate) fn packet_in_context(meta: &Meta) -> Match {
    let mut context = Match::any().with(Field::InPort, meta.in_port.0.into());
    if meta.in_phy_port != meta.in_port {
        context = context.with(Field::InPhyPort, meta.in_phy_port.0.into());
    }
    if meta.metadata != 0 {
        context = context.with(Field::Metadata, meta.metadata.into());
    }
    if meta.tunnel_id != 0 {
        context = context.with(Field::TunnelId, meta.tunnel_id.into());
    }
    if meta.pkt_mark != 0 {
        context = context.with(Field::PktMark, meta.pkt_mark.into());
    }
    for (field, value) in meta.registers.written() {
        context = context.with(field, value.into());
    }
    context
}

/// The fields beside a packet that a packet-in with this context carried, as far as the pipeline
/// has them. `None` where no packet can have its ingress port.
pub(crate) fn meta_of(context: &Match) -> Option<Meta> {
    let number = |field| context.exact(field).unwrap_or_default();
    let port = |field| u32::try_from(context.exact(field)?).ok().map(PortNo);
    let in_port = port(Field::InPort).unwrap_or(PortNo::ANY);
    if !in_port.is_port() && in_port != PortNo::CONTROLLER && in_port != PortNo::ANY {
        return None;
    }
    let mut meta = Meta::port(in_port);
    meta.in_phy_port = port(Field::InPhyPort).unwrap_or(in_port);
    meta.metadata = number(Field::Metadata) as u64;
    for held in context.fields() {
        meta.write(held.field, held.value);
    }
    Some(meta)
}

/// Collects verdicts, in the order in which they are given.
#[derive(Clone, Debug, Default)]
pub struct Out {
    verdicts: Vec<Verdict>,
}

impl Out {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a verdict.
    pub fn push(&mut self, verdict: Verdict) {
        self.verdicts.push(verdict);
    }

    /// Takes back the verdicts beyond the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.verdicts.truncate(len);
    }

    /// The verdicts so far.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Takes the verdicts out, keeping the allocation.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Verdict> {
        self.verdicts.drain(..)
    }

    /// Forgets the verdicts, keeping the allocation.
    pub fn clear(&mut self) {
        self.verdicts.clear();
    }

    /// Number of verdicts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.verdicts.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }
}
