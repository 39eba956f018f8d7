//! One packet's way, step by step: the reference's walk over this forwarder's replica.
//!
//! It does everything that can happen to a packet, at the price of finding everything out anew.
//! What programs cannot say (packet-outs, results that depend on bytes outside of any key, TTLs
//! that are used up) goes this way. It must never do something else than the reference does.

use std::ops::ControlFlow;
use std::sync::PoisonError;

use openflow::instruction::INSTRUCTIONS;
use openflow::message::PacketInReason;
use openflow::meter::BandKind;
use openflow::{Action, Field, GroupId, Instruction, MeterId, PortNo, QueueId, TableId};
use packet::rewrite::{self, TtlInvalid, set_field};
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use super::Sink;
use super::emit::Emit;
use super::replica::{InstructionSummary, Replica};
use crate::action_set::{ActionSet, Origin};
use crate::config::{Fragments, Miss};
use crate::counter::{Counter, DropReason};
use crate::meters::remarked;
use crate::time::Nanos;

/// Copies that groups may make of one packet, as in the reference.
pub(super) const MAX_COPIES: usize = 4_096;

/// How many groups may lead from one to the next, as in the reference.
pub(super) const MAX_CHAIN: usize = 64;

/// Whether the rest of a list of actions, or of the pipeline, still happens to a packet.
type Goes = ControlFlow<()>;

/// A packet on its way, with what its bytes do not say.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) frame: PacketBuf,
    pub(super) meta: Meta,
    pub(super) queue: Option<QueueId>,
    /// Its length when it came.
    pub(super) arrived_len: usize,
}

impl Packet {
    pub(super) fn new(frame: PacketBuf, in_port: PortNo) -> Self {
        let arrived_len = frame.len();
        Self { frame, meta: Meta::port(in_port), queue: None, arrived_len }
    }

    pub(super) fn key(&self) -> FlowKey {
        extract(self.frame.bytes(), &self.meta)
    }

    fn bytes(&self) -> u64 {
        self.frame.len() as u64
    }

    fn is_fragment(&self) -> bool {
        Layout::of(self.frame.bytes()).is_some_and(|layout| layout.fragment)
    }
}

/// What an action did to a frame.
pub(super) enum Changed {
    /// It fitted.
    Yes,
    /// It did not fit the packet.
    No,
    /// The TTL is used up.
    TtlInvalid,
}

impl From<bool> for Changed {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}

impl From<Result<bool, TtlInvalid>> for Changed {
    fn from(result: Result<bool, TtlInvalid>) -> Self {
        result.map_or(Self::TtlInvalid, Self::from)
    }
}

/// Carries out an action that changes the packet; none for the others.
pub(super) fn change(frame: &mut PacketBuf, meta: &mut Meta, action: &Action) -> Option<Changed> {
    let fits = match action {
        Action::Output { .. } | Action::Enqueue { .. } | Action::Group(_) | Action::SetQueue(_) => {
            return None;
        }
        Action::SetField { field: Field::TunnelId, value } => {
            meta.tunnel_id = u64::try_from(*value).unwrap_or(u64::MAX);
            true
        }
        Action::SetField { field, value } => set_field(frame, *field, *value),
        Action::PushVlan(eth_type) => rewrite::push_vlan(frame, *eth_type),
        Action::PopVlan | Action::StripVlan => rewrite::pop_vlan(frame),
        Action::PushMpls(eth_type) => rewrite::push_mpls(frame, *eth_type),
        Action::PopMpls(eth_type) => rewrite::pop_mpls(frame, *eth_type),
        Action::PushPbb(eth_type) => rewrite::push_pbb(frame, *eth_type),
        Action::PopPbb => rewrite::pop_pbb(frame),
        Action::CopyTtlOut => rewrite::copy_ttl_out(frame),
        Action::CopyTtlIn => rewrite::copy_ttl_in(frame),
        Action::SetMplsTtl(ttl) => rewrite::set_mpls_ttl(frame, *ttl),
        Action::SetNwTtl(ttl) => rewrite::set_nw_ttl(frame, *ttl),
        Action::DecMplsTtl => return Some(rewrite::dec_mpls_ttl(frame).into()),
        Action::DecNwTtl => return Some(rewrite::dec_nw_ttl(frame).into()),
        Action::SetVlanVid(vid) => rewrite::set_vlan_vid(frame, *vid),
        Action::SetVlanPcp(pcp) => rewrite::set_vlan_pcp(frame, *pcp),
        Action::SetDlSrc(mac) => set_field(frame, Field::EthSrc, mac.to_u64().into()),
        Action::SetDlDst(mac) => set_field(frame, Field::EthDst, mac.to_u64().into()),
        Action::SetNwSrc(address) => set_field(frame, Field::Ipv4Src, address.to_bits().into()),
        Action::SetNwDst(address) => set_field(frame, Field::Ipv4Dst, address.to_bits().into()),
        Action::SetNwTos(tos) => rewrite::set_nw_tos(frame, *tos),
        Action::SetTpSrc(port) => rewrite::set_tp_src(frame, *port),
        Action::SetTpDst(port) => rewrite::set_tp_dst(frame, *port),
        // Refused when the entry, bucket or packet-out came.
        Action::Experimenter { .. } => false,
    };
    Some(fits.into())
}

/// One packet's walk.
pub(super) struct Walk<'a, S> {
    pub(super) emit: Emit<'a, S>,
    /// Copies that groups have made so far.
    copies: usize,
    /// Groups that the packet is in just now, one inside the other.
    chained: usize,
    /// Whether an output to `TABLE` is allowed: in the actions of a packet-out only.
    pub(super) table_allowed: bool,
}

impl<'a, S: Sink> Walk<'a, S> {
    pub(super) fn new(replica: &'a Replica, sink: &'a mut S, now: Nanos) -> Self {
        let emit = Emit::new(replica, sink, now);
        Self { emit, copies: 0, chained: 0, table_allowed: false }
    }

    /// Takes a frame that its port has let in.
    pub(super) fn ingress(&mut self, frame: PacketBuf, in_port: PortNo) {
        match refusal(self.emit.replica.settings.fragments, frame.bytes()) {
            Some(reason) => {
                refuse_rx(self.emit.replica, in_port, 1);
                self.emit.drop(reason);
                self.emit.sink.done(frame);
            }
            None => self.pipeline(Packet::new(frame, in_port)),
        }
        self.emit.close();
    }

    /// Takes a packet through the tables from the first on.
    fn pipeline(&mut self, mut packet: Packet) {
        self.tables(&mut packet);
        self.emit.sink.done(packet.frame);
    }

    fn tables(&mut self, packet: &mut Packet) {
        let replica = self.emit.replica;
        let mut set = ActionSet::default();
        let mut table_id = TableId(0);
        loop {
            let Some((id, entry)) = replica.lookup(table_id, &packet.key(), self.emit.now) else {
                replica.count_miss(table_id, 1);
                return self.miss(packet, table_id);
            };
            replica.count_hit(table_id, id, 1, packet.bytes());
            replica.touch(id, entry.life, self.emit.now);
            match self.instructions(packet, &mut set, &entry.summary, entry.origin) {
                ControlFlow::Break(()) => return,
                ControlFlow::Continue(Some(next)) => table_id = next,
                ControlFlow::Continue(None) => break,
            }
        }
        // What becomes of the packet behind its action set concerns nobody any more.
        let _done: Goes = self.run_set(packet, &set, None);
    }

    /// Executes an entry's instructions in the order of clause 5.9; the table to go on in.
    fn instructions(
        &mut self,
        packet: &mut Packet,
        set: &mut ActionSet,
        summary: &InstructionSummary,
        origin: Origin,
    ) -> ControlFlow<(), Option<TableId>> {
        for row in INSTRUCTIONS {
            let Some(instruction) = summary.instructions().iter().find(|i| i.kind() == row.kind)
            else {
                continue;
            };
            match instruction {
                Instruction::Meter(id) => self.meter(packet, *id)?,
                Instruction::ApplyActions(actions) => {
                    actions.iter().try_for_each(|action| self.action(packet, action, origin))?;
                }
                Instruction::ClearActions => set.clear(),
                Instruction::WriteActions(actions) => set.write(actions, origin),
                Instruction::WriteMetadata { metadata, mask } => {
                    packet.meta.metadata = packet.meta.metadata & !mask | metadata & mask;
                }
                // Where it leads stands in the kind; experiments were refused.
                Instruction::GotoTable(_) | Instruction::Experimenter { .. } => {}
            }
        }
        ControlFlow::Continue(summary.next)
    }

    fn run_set(&mut self, packet: &mut Packet, set: &ActionSet, origin: Option<Origin>) -> Goes {
        for (action, written_by) in set.in_order() {
            self.action(packet, action, origin.unwrap_or(written_by))?;
        }
        ControlFlow::Continue(())
    }

    /// No entry matched, not even a table-miss entry.
    fn miss(&mut self, packet: &Packet, table_id: TableId) {
        let settings = self.emit.replica.settings;
        match settings.miss {
            Miss::Drop => self.emit.drop(DropReason::NoMatch),
            Miss::Controller => {
                let origin = Origin { table_id, is_miss: true, ..Origin::NONE };
                let (reason, max_len) = (PacketInReason::NoMatch, settings.miss_send_len);
                self.emit.packet_in(packet, reason, origin, max_len);
            }
        }
    }

    fn meter(&mut self, packet: &mut Packet, id: MeterId) -> Goes {
        let Some(meter) = self.emit.replica.meter(id) else { return ControlFlow::Continue(()) };
        let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        let band = meter.pass(packet.bytes(), self.emit.now);
        drop(meter);
        if let Some((_, BandKind::Drop)) = band {
            self.emit.drop(DropReason::Meter);
            return ControlFlow::Break(());
        }
        remark(band, &mut packet.frame, &packet.meta);
        ControlFlow::Continue(())
    }

    /// Executes one action on a packet.
    pub(super) fn action(&mut self, packet: &mut Packet, action: &Action, origin: Origin) -> Goes {
        match change(&mut packet.frame, &mut packet.meta, action) {
            Some(Changed::Yes) => {}
            Some(Changed::No) => self.emit.replica.count(Counter::ActionsWithoutEffect, 1),
            Some(Changed::TtlInvalid) => return self.invalid_ttl(packet, origin),
            None => self.lead(packet, action, origin),
        }
        ControlFlow::Continue(())
    }

    /// Executes an action that says where the packet goes.
    fn lead(&mut self, packet: &mut Packet, action: &Action, origin: Origin) {
        match action {
            Action::Output { port, max_len } => {
                self.output(packet, packet.queue, *port, *max_len, origin);
            }
            Action::Enqueue { port, queue } => {
                let whole = openflow::action::MAX_LEN_NO_BUFFER;
                self.output(packet, Some(*queue), *port, whole, origin);
            }
            Action::Group(id) => self.group(packet, *id, origin),
            Action::SetQueue(queue) => packet.queue = Some(*queue),
            other => debug_assert!(false, "an action without a instruction_list: {other:?}"),
        }
    }

    /// The packet goes no further (clause 5.12); the controller may want to know.
    fn invalid_ttl(&mut self, packet: &Packet, origin: Origin) -> Goes {
        let settings = self.emit.replica.settings;
        if settings.invalid_ttl_to_controller {
            let (reason, max_len) = (PacketInReason::InvalidTtl, settings.miss_send_len);
            self.emit.packet_in(packet, reason, origin, max_len);
        } else {
            self.emit.drop(DropReason::InvalidTtl);
        }
        ControlFlow::Break(())
    }

    fn output(
        &mut self,
        packet: &Packet,
        queue: Option<QueueId>,
        port: PortNo,
        max_len: u16,
        origin: Origin,
    ) {
        let (frame, in_port) = (&packet.frame, packet.meta.in_port);
        match port {
            PortNo::IN_PORT => self.emit.send(frame, in_port, queue),
            PortNo::ALL => self.emit.flood(frame, in_port, queue, |_| true),
            PortNo::FLOOD => self.emit.flood(frame, in_port, queue, |port| !port.no_flood()),
            PortNo::NORMAL => self.emit.normal(frame, in_port, queue),
            PortNo::TABLE => self.table(packet),
            PortNo::CONTROLLER => {
                let reason = reason_of(origin);
                self.emit.packet_in(packet, reason, origin, max_len);
            }
            _ if port == in_port => self.emit.drop(DropReason::ToIngress),
            _ => self.emit.send(frame, port, queue),
        }
    }

    /// Starts the pipeline for a packet-out.
    fn table(&mut self, packet: &Packet) {
        if !self.table_allowed {
            return self.emit.drop(DropReason::ReentrantTable);
        }
        // A new packet as far as the pipeline is concerned: no metadata, no queue.
        let fresh = Packet::new(self.emit.copy(&packet.frame), packet.meta.in_port);
        self.table_allowed = false;
        self.pipeline(fresh);
        self.table_allowed = true;
    }

    /// Takes a packet through a group: a copy for each chosen bucket (clause 5.6).
    fn group(&mut self, packet: &Packet, id: GroupId, origin: Origin) {
        let replica = self.emit.replica;
        // A group that entries use exists: deleting it takes them along.
        let Some(group) = replica.groups.get(id) else {
            return self.emit.drop(DropReason::NoBucket);
        };
        if self.chained >= MAX_CHAIN {
            return self.emit.drop(DropReason::ChainTooLong);
        }
        let bytes = packet.bytes();
        replica.count_group(id, 1, bytes);
        if group.buckets().is_empty() {
            return;
        }
        let (key, is_fragment) = (packet.key(), packet.is_fragment());
        let chosen = replica.groups.chosen(id, &key, is_fragment, &replica.ports);
        if chosen.is_empty() {
            return self.emit.drop(DropReason::NoLiveBucket);
        }
        for index in chosen {
            let Some(bucket) = group.buckets().get(index) else { continue };
            if self.copies >= MAX_COPIES {
                return self.emit.drop(DropReason::TooManyCopies);
            }
            self.copies += 1;
            replica.count_bucket(id, index, 1, bytes);
            let frame = self.emit.copy(&packet.frame);
            let Packet { meta, queue, arrived_len, .. } = *packet;
            let mut copy = Packet { frame, meta, queue, arrived_len };
            let set = ActionSet::of(&bucket.actions);
            self.chained += 1;
            // What becomes of the copy behind its bucket concerns nobody any more.
            let _done: Goes = self.run_set(&mut copy, &set, Some(origin));
            self.chained -= 1;
            self.emit.sink.done(copy.frame);
        }
    }
}

/// Why an output to the controller says that it happens.
pub(super) fn reason_of(origin: Origin) -> PacketInReason {
    if origin.is_miss { PacketInReason::NoMatch } else { PacketInReason::Action }
}

/// Lowers the DSCP as a meter's band asks.
pub(super) fn remark(band: Option<(usize, BandKind)>, frame: &mut PacketBuf, meta: &Meta) {
    if let Some((_, BandKind::DscpRemark { prec_level })) = band {
        let dscp = extract(frame.bytes(), meta).get(Field::IpDscp);
        let dscp = u8::try_from(dscp).unwrap_or(0);
        let remarked = remarked(dscp, prec_level);
        if remarked != dscp {
            set_field(frame, Field::IpDscp, remarked.into());
        }
    }
}

/// Why a frame that its port has let in goes no further.
pub(super) fn refusal(fragments: Fragments, frame: &[u8]) -> Option<DropReason> {
    match (Layout::of(frame), fragments) {
        (None, _) => Some(DropReason::Malformed),
        (Some(layout), Fragments::Drop) if layout.fragment => Some(DropReason::Fragment),
        (Some(_), Fragments::Drop | Fragments::Normal | Fragments::Reassemble) => None,
    }
}

/// Counts packets that a port refused to take in.
pub(super) fn refuse_rx(replica: &Replica, in_port: PortNo, packets: u64) {
    if let Some(cell) = replica.port_cell(in_port) {
        cell.rx_dropped.add(packets);
    }
}
