//! The behaviour of each action: the one place of the fast datapath that names every action.
//!
//! [`execute`] changes a packet or says where it goes; a new action is a compile error here until
//! it has its arm. What caches and compiled programs have to know of an action ([`reveals_hidden`],
//! [`shape_after`]) follows from its row, never from its name. An action that does not fit the
//! packet (a pop without a tag, a field of a header that is not there) changes nothing.

use openflow::action::{HeaderEffect, MAX_LEN_NO_BUFFER};
use openflow::field::{Header, Place, VID_PRESENT};
use openflow::{Action, BitRange, Field, GroupId, PortNo, QueueId, TableId};
use packet::rewrite::{self, TtlInvalid, set_field};
use packet::{Meta, PacketBuf, Shape, extract};

use crate::member_choice::{hash, link};

/// Result of an action: a change of the packet, or the way that it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast) enum Executed {
    /// The packet was changed; whether the action fitted it.
    Rewritten(bool),
    /// The TTL is used up: the packet goes no further (clause 5.12).
    TtlInvalid,
    /// A copy goes to a port; the queue is that of the packet where none is given.
    Output { port: PortNo, queue: Option<QueueId>, max_len: u16 },
    /// Copies go through a group.
    Group(GroupId),
    /// Later outputs use this queue, or none.
    SetQueue(Option<QueueId>),
    /// The packet goes to a member of a bundle, or gets its number.
    Member,
    /// A value is on the packet's stack.
    Pushed,
    /// A table is searched as if the packet had come by this port; `ALL` for the present table.
    Resubmit(PortNo, TableId),
    /// The packet teaches the entry that the action describes.
    Learn,
    /// The entry's timeouts are shortened where the packet ends its TCP connection.
    FinTimeout,
    /// All lists end.
    Exit,
    /// A copy goes to controllers, or all of the packet while they have it.
    Controller,
}

impl From<Result<bool, TtlInvalid>> for Executed {
    fn from(result: Result<bool, TtlInvalid>) -> Self {
        result.map_or(Self::TtlInvalid, Self::Rewritten)
    }
}

/// Carries out an action as far as it is about the packet itself, without a stack: see
/// [`Packet::execute`](super::Packet::execute).
pub(in crate::fast) fn execute(
    frame: &mut PacketBuf,
    meta: &mut Meta,
    action: &Action,
) -> Executed {
    let fits = match action {
        Action::Output { port, max_len } => {
            return Executed::Output { port: *port, queue: None, max_len: *max_len };
        }
        Action::Enqueue { port, queue } => {
            let max_len = MAX_LEN_NO_BUFFER;
            return Executed::Output { port: *port, queue: Some(*queue), max_len };
        }
        Action::Resubmit(port) => return Executed::Resubmit(port.port(), TableId::ALL),
        Action::ResubmitTable { port, table } => return Executed::Resubmit(port.port(), *table),
        Action::Learn(_) => return Executed::Learn,
        Action::FinTimeout { .. } => return Executed::FinTimeout,
        Action::Exit => return Executed::Exit,
        Action::Controller { .. } | Action::ControllerProperties(_) => return Executed::Controller,
        Action::Group(id) => return Executed::Group(*id),
        Action::SetQueue(queue) => return Executed::SetQueue(Some(*queue)),
        Action::PopQueue => return Executed::SetQueue(None),
        Action::SetField { field, value } if field.row().place.is_beside_packet() => {
            meta.write(*field, *value)
        }
        Action::SetField { field, value } => set_field(frame, *field, *value),
        Action::Load { bits, dst, value } => {
            rewrite::write_bits(frame, meta, *dst, bits.mask(), bits.place((*value).into()))
        }
        Action::Move { .. } | Action::Multipath { .. } | Action::CheckPktLarger { .. } => {
            write_found(frame, meta, action)
        }
        Action::OutputReg { bits, src, max_len } => {
            let port = port_in(frame, meta, *bits, *src);
            return Executed::Output { port, queue: None, max_len: *max_len };
        }
        Action::Bundle(_) | Action::BundleLoad(_) => return Executed::Member,
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
        Action::DecMplsTtl => return rewrite::dec_mpls_ttl(frame).into(),
        Action::DecNwTtl | Action::DecNwTtlTo(_) => return rewrite::dec_nw_ttl(frame).into(),
        Action::SetVlanVid(vid) => rewrite::set_vlan_vid(frame, *vid),
        Action::SetVlanPcp(pcp) => rewrite::set_vlan_pcp(frame, *pcp),
        Action::SetTagVid(vid) => set_field(frame, Field::VlanVid, VID_PRESENT | u128::from(*vid)),
        Action::SetTagPcp(pcp) => set_field(frame, Field::VlanPcp, (*pcp).into()),
        Action::SetNwEcn(ecn) => set_field(frame, Field::IpEcn, (*ecn).into()),
        Action::SetMplsLabel(label) => set_field(frame, Field::MplsLabel, (*label).into()),
        Action::SetMplsTc(class) => set_field(frame, Field::MplsTc, (*class).into()),
        Action::SetDlSrc(mac) => set_field(frame, Field::EthSrc, mac.to_u64().into()),
        Action::SetDlDst(mac) => set_field(frame, Field::EthDst, mac.to_u64().into()),
        Action::SetNwSrc(address) => set_field(frame, Field::Ipv4Src, address.to_bits().into()),
        Action::SetNwDst(address) => set_field(frame, Field::Ipv4Dst, address.to_bits().into()),
        Action::SetNwTos(tos) => rewrite::set_nw_tos(frame, *tos),
        Action::SetTpSrc(port) => rewrite::set_tp_src(frame, *port),
        Action::SetTpDst(port) => rewrite::set_tp_dst(frame, *port),
        // The search goes on past a conjunction, and a clone is the interpreter's.
        Action::Conjunction { .. } | Action::Note(_) | Action::Clone(_) => true,
        // The stack is empty, or there is none; others were refused when they came.
        Action::Push { .. } | Action::Pop { .. } | Action::Experimenter { .. } => false,
    };
    Executed::Rewritten(fits)
}

/// The port whose number stands in bits of a field; none that exists where it is none.
fn port_in(frame: &PacketBuf, meta: &Meta, bits: BitRange, src: Field) -> PortNo {
    PortNo::of_short(bits.of(extract(frame.bytes(), meta).get(src))).unwrap_or(PortNo::ANY)
}

/// Writes bits of a field that follow from the packet; whether they fit it.
fn write_found(frame: &mut PacketBuf, meta: &mut Meta, action: &Action) -> bool {
    if let Action::Move { n_bits, src_offset, dst_offset, src, dst } = action {
        let from = BitRange { offset: *src_offset, n_bits: *n_bits };
        let to = BitRange { offset: *dst_offset, n_bits: *n_bits };
        rewrite::move_bits(frame, meta, (*src, from), (*dst, to))
    } else if let Action::Multipath { fields, basis, algorithm, max_link, bits, dst, .. } = action {
        let flow = hash(*fields, *basis, &extract(frame.bytes(), meta));
        let link = link(*algorithm, flow, *max_link);
        rewrite::write_bits(frame, meta, *dst, bits.mask(), bits.place(link.into()))
    } else if let Action::CheckPktLarger { pkt_len, offset, dst } = action {
        let bit = BitRange { offset: *offset, n_bits: 1 };
        let is_larger = frame.len() > usize::from(*pkt_len);
        rewrite::write_bits(frame, meta, *dst, bit.mask(), bit.place(is_larger.into()))
    } else {
        false
    }
}

/// The number of a register, the mask of its bits that an action writes, and their values, if it
/// does nothing else, and the same to every packet.
pub(in crate::fast) fn register_write(action: &Action) -> Option<(u8, u32, u32)> {
    let (field, mask, value) = if let Action::SetField { field, value } = action {
        (field, u128::MAX, *value)
    } else if let Action::Load { bits, dst, value } = action {
        (dst, bits.mask(), bits.place((*value).into()))
    } else {
        return None;
    };
    let Place::Register(number) = field.row().place else { return None };
    Some((number, mask as u32, value as u32))
}

/// Effect of an action on headers, by its row.
pub(in crate::fast) fn header_effect(action: &Action) -> HeaderEffect {
    action.kind().row().effect
}

/// Whether an action brings forth headers or fields that were hidden, so that what a later table
/// sees is not in the key of the incoming packet.
pub(in crate::fast) fn reveals_hidden(action: &Action, shape: Shape) -> bool {
    match header_effect(action) {
        HeaderEffect::Pop(Header::Vlan) => shape.is_rare() || shape.tags() > 1,
        // A PBB header is put before the Ethernet header, which hides and shows tags.
        HeaderEffect::Pop(_) | HeaderEffect::Push(Header::Pbb) => true,
        // What is copied from a field is in the key: see `Replica::read_fields`.
        HeaderEffect::Write => writes_a_type(action),
        HeaderEffect::None
        | HeaderEffect::WriteTag
        | HeaderEffect::Push(_)
        | HeaderEffect::SetTtl(_)
        | HeaderEffect::DecTtl(_)
        | HeaderEffect::CopyTtl => false,
    }
}

/// The shape of a frame after an action that was carried out where it fits.
pub(in crate::fast) fn shape_after(shape: Shape, action: &Action) -> Shape {
    match header_effect(action) {
        HeaderEffect::None
        | HeaderEffect::SetTtl(_)
        | HeaderEffect::DecTtl(_)
        | HeaderEffect::CopyTtl => shape,
        HeaderEffect::Write if !writes_a_type(action) => shape,
        HeaderEffect::Pop(Header::Vlan) => shape.popped(),
        HeaderEffect::Push(Header::Vlan) => shape.pushed(),
        HeaderEffect::WriteTag if shape.tags() == 0 => shape.pushed(),
        HeaderEffect::WriteTag => shape,
        HeaderEffect::Write | HeaderEffect::Push(_) | HeaderEffect::Pop(_) => Shape::RARE,
    }
}

/// Whether an action writes a field that says which headers or fields follow.
pub(in crate::fast) fn writes_a_type(action: &Action) -> bool {
    let is_type =
        |field: &Field| matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type);
    action.writes().iter().any(is_type)
}
