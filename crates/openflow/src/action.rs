//! The actions: one row each, with their numbers per version (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! A row defines the whole action except its behaviour: that is one arm in the datapath's
//! interpreter and one in its reference, both demanded by the compiler. The actions of 1.0 and 1.1
//! that later versions no longer have are variants of their own, because they behave differently
//! (in 1.0 setting a VLAN id pushes a tag, in 1.1 it does not) and because tools print them by
//! their own names.

use crate::field::{Field, Header, IP, MPLS, PBB, Prereq, TCP};
use crate::id::{GroupId, MacAddr, PortNo, QueueId, ShortPort, TableId};
use crate::learn::Learn;
use crate::members::{BundleAlgorithm, HashFields, Members, MultipathAlgorithm};
use crate::packet_in_reason::PacketInReason;
use crate::subfield::BitRange;
use crate::text::action as text;
use crate::text::controller;
use crate::text::learn;
use crate::text::members;
use crate::text::subfield;
use crate::to_controller::ToController;
use crate::version::{Version, numbers};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// `max_len` of an output to the controller that asks for the whole packet (`OFPCML_NO_BUFFER`).
pub const MAX_LEN_NO_BUFFER: u16 = 0xffff;

/// The numbers of dimensions that a conjunction may have.
pub const DIMENSIONS: RangeInclusive<u8> = 2..=64;

/// The most clones that lie in each other in one list of actions.
pub const CLONES_DEEP_MAX: usize = 16;

pub(crate) mod argument;
mod controllers;
mod nested;
mod row;
mod set_field;
mod syntax;

pub use argument::{ArgumentType, ReadArguments, WriteArguments};
pub use nested::{Nested, nested};
pub(crate) use row::argument_keys;
pub use row::{Accepts, ActionRow, ArgumentKey, Fields, HeaderEffect, InSet, SetStep, TtlLayer};
pub(crate) use syntax::Syntax;

use argument::{Argument, ArgumentSummary, bind, elements};

/// One row an action: its variant with the types of its arguments (see `elements`), its name, Ryu's
/// name and keys, its numbers, its effect, its place in the action set, and what else differs from
/// [`PLAIN`].
macro_rules! actions {
    ($($(#[doc = $doc:literal])* $variant:ident $([ $before:literal ])? $( ( $arg:ty ) )?
        $( { $($(#[doc = $fdoc:literal])* $fname:ident : $fty:ty $(=> $pad:literal)?
            $([ $own:literal ])?),+ } )?
        $text:literal $ryu:literal ( $($keys:tt)* ) [$($numbers:tt)*], $effect:expr, $in_set:expr
        $(, $fact:ident: $value:expr)*;)+) => {
        elements! {
            /// An action with its arguments.
            Action
            /// An action without its arguments: the row's key.
            ActionKind
            $($(#[doc = $doc])* $variant $([ $before ])? $( ( $arg ) )?
                $( { $($(#[doc = $fdoc])* $fname : $fty $(=> $pad)? $([ $own ])?),+ } )?;)+
        }

        /// Every row, in the order of [`ActionKind`].
        pub const ACTIONS: &[ActionRow] = &[$(ActionRow {
            kind: ActionKind::$variant,
            doc: concat!($($doc),*),
            text: $text,
            ryu: $ryu,
            keys: argument_keys!($($keys)*),
            arguments: &[$(<$arg as Argument>::TYPE)? $($(<$fty as Argument>::TYPE),+)?],
            argument_docs: &[$($(concat!($($fdoc),*)),+)?],
            numbers: numbers!($($numbers)*),
            effect: $effect,
            in_set: $in_set,
            $($fact: $value,)*
            ..PLAIN
        },)+];
    };
}

/// The facts of a row that does not give them.
const PLAIN: ActionRow = ActionRow {
    kind: ActionKind::Experimenter,
    doc: "",
    text: "",
    ryu: "",
    keys: &[],
    arguments: &[],
    argument_docs: &[],
    numbers: numbers!(V1_0: 0xffff),
    nicira: None,
    effect: HeaderEffect::None,
    in_set: InSet::Never,
    needs: Prereq::None,
    reads: Fields::None,
    writes: Fields::None,
    bits: None,
    accepts: Accepts::Any,
    successor: None,
    syntax: Syntax::Value,
};

const TAG: Fields = Fields::These(&[Field::VlanVid, Field::VlanPcp]);
const LABEL: Fields =
    Fields::These(&[Field::EthType, Field::MplsLabel, Field::MplsTc, Field::MplsBos]);
const SERVICE: Fields =
    Fields::These(&[Field::EthType, Field::VlanVid, Field::VlanPcp, Field::PbbIsid, Field::PbbUca]);
const SRC_PORTS: Fields = Fields::These(&[Field::TcpSrc, Field::UdpSrc, Field::SctpSrc]);
const DST_PORTS: Fields = Fields::These(&[Field::TcpDst, Field::UdpDst, Field::SctpDst]);
/// `OFPAT_METER` of 1.5: a meter among the actions, which is an instruction here.
pub const METER: u16 = 29;

const SET_FIELD: Option<ActionKind> = Some(ActionKind::SetField);

const fn set_at(index: u8) -> InSet {
    InSet::At(SetStep::Set, index)
}

actions! {
    /// Send the packet out of a port; `max_len` bytes of it when that is the controller.
    Output {
        /// Destination.
        port: PortNo,
        /// Bytes for a packet-in; [`MAX_LEN_NO_BUFFER`] for all of them.
        max_len: u16
    } "output" "OUTPUT" (port, max_len = 0xffe5) [V1_0: 0],
        HeaderEffect::None, InSet::At(SetStep::Output, 0),
        syntax: Syntax::Own { parse: text::output, format: text::format_output };
    /// Copy the TTL outwards: from next-to-outermost to outermost header.
    CopyTtlOut "copy_ttl_out" "COPY_TTL_OUT" () [V1_1: 11],
        HeaderEffect::CopyTtl, InSet::At(SetStep::CopyTtlOut, 0);
    /// Copy the TTL inwards: from outermost to next-to-outermost header.
    CopyTtlIn "copy_ttl_in" "COPY_TTL_IN" () [V1_1: 12],
        HeaderEffect::CopyTtl, InSet::At(SetStep::CopyTtlIn, 0);
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8) "set_mpls_ttl" "SET_MPLS_TTL" (mpls_ttl) [V1_1: 15],
        HeaderEffect::SetTtl(TtlLayer::Mpls), set_at(0),
        needs: MPLS, syntax: Syntax::Parenthesized;
    /// Decrement the TTL of the outermost MPLS entry.
    DecMplsTtl "dec_mpls_ttl" "DEC_MPLS_TTL" () [V1_1: 16], HeaderEffect::DecTtl(TtlLayer::Mpls),
        InSet::At(SetStep::DecTtl, 0), needs: MPLS;
    /// Push a VLAN tag with this EtherType (0x8100 or 0x88a8).
    PushVlan(u16) "push_vlan" "PUSH_VLAN" (ethertype) [V1_1: 17], HeaderEffect::Push(Header::Vlan),
        InSet::At(SetStep::PushVlan, 0), writes: TAG, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x8100, 0x88a8]);
    /// Pop the outermost VLAN tag.
    PopVlan "pop_vlan" "POP_VLAN" () [V1_1: 18],
        HeaderEffect::Pop(Header::Vlan), InSet::At(SetStep::Pop, 0),
        needs: Prereq::VlanTag, writes: TAG;
    /// Push an MPLS entry with this EtherType (0x8847 or 0x8848).
    PushMpls(u16) "push_mpls" "PUSH_MPLS" (ethertype) [V1_1: 19], HeaderEffect::Push(Header::Mpls),
        InSet::At(SetStep::PushMpls, 0), writes: LABEL, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x8847, 0x8848]);
    /// Pop the outermost MPLS entry; the argument becomes the EtherType.
    PopMpls(u16) "pop_mpls" "POP_MPLS" (ethertype) [V1_1: 20],
        HeaderEffect::Pop(Header::Mpls), InSet::At(SetStep::Pop, 2),
        needs: MPLS, writes: LABEL, syntax: Syntax::EthType;
    /// Choose the queue that a later output uses.
    SetQueue(QueueId) "set_queue" "SET_QUEUE" (queue_id) [V1_1: 21],
        HeaderEffect::None, InSet::At(SetStep::Qos, 0);
    /// Process the packet by a group.
    Group(GroupId) "group" "GROUP" (group_id) [V1_1: 22],
        HeaderEffect::None, InSet::At(SetStep::Group, 0);
    /// Set the IP TTL or hop limit.
    SetNwTtl(u8) "mod_nw_ttl" "SET_NW_TTL" (nw_ttl) [V1_1: 23],
        HeaderEffect::SetTtl(TtlLayer::Ip), set_at(1), needs: IP;
    /// Decrement the IP TTL or hop limit.
    DecNwTtl "dec_ttl" "DEC_NW_TTL" () [V1_1: 24], HeaderEffect::DecTtl(TtlLayer::Ip),
        InSet::At(SetStep::DecTtl, 1), nicira: Some(18),
        needs: IP;
    /// Write a match field.
    SetField {
        /// The field; its row says whether it may be set.
        field: Field,
        /// The value, right-aligned.
        value: u128
    } "set_field" "SET_FIELD" (field, value) [V1_2: 25],
        HeaderEffect::Write, InSet::PerField(SetStep::Set),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: text::set_field, format: text::format_set_field };
    /// Push a PBB header with this EtherType (0x88e7).
    PushPbb(u16) "push_pbb" "PUSH_PBB" (ethertype) [V1_3: 26], HeaderEffect::Push(Header::Pbb),
        InSet::At(SetStep::PushPbb, 0), writes: SERVICE, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x88e7]);
    /// Pop the PBB header.
    PopPbb "pop_pbb" "POP_PBB" () [V1_3: 27],
        HeaderEffect::Pop(Header::Pbb), InSet::At(SetStep::Pop, 1),
        needs: PBB, writes: SERVICE;
    /// Write bits of a match field or register (Nicira's `NXAST_REG_LOAD`).
    Load {
        /// The bits that are written.
        bits: BitRange,
        /// The field; its row says whether it may be set.
        dst: Field,
        /// The value of these bits, right-aligned.
        value: u64
    } "load" "NX_REG_LOAD" (ofs_nbits, dst, value) [],
        HeaderEffect::Write, InSet::Each(SetStep::Set), nicira: Some(7),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: subfield::load, format: subfield::format_load };
    /// Copy bits of one field or register to another (copy-field; Nicira's `NXAST_REG_MOVE`).
    Move {
        /// Number of bits.
        n_bits: u16,
        /// The lowest bit in the source.
        src_offset: u16,
        /// The lowest bit in the destination.
        dst_offset: u16 [2],
        /// The source.
        src: Field,
        /// The destination; its row says whether it may be set.
        dst: Field
    } "move" "NX_REG_MOVE" (n_bits, src_offset, dst_offset, src, dst) [V1_5: 28],
        HeaderEffect::Write, InSet::Each(SetStep::Set), nicira: Some(6),
        reads: Fields::Named(0), writes: Fields::Named(1),
        syntax: Syntax::Own { parse: subfield::copy, format: subfield::format_copy };
    /// Send the packet out of the port whose number stands in a field or register (Nicira's
    /// `NXAST_OUTPUT_REG`).
    OutputReg {
        /// The bits of the number.
        bits: BitRange,
        /// The field.
        src: Field,
        /// Bytes for a packet-in, as those of an output.
        max_len: u16
    } "output_reg" "NX_OUTPUT_REG" (ofs_nbits, src, max_len = 0xffff) [],
        HeaderEffect::None, InSet::At(SetStep::Output, 0), nicira: Some(15),
        reads: Fields::Named(0),
        syntax: Syntax::Own { parse: text::output, format: subfield::format_output };
    /// Search the present flow table with another ingress port, and carry out what the entry there
    /// asks for (Nicira's `NXAST_RESUBMIT`).
    Resubmit(ShortPort) "resubmit" "NX_RESUBMIT" (port) [],
        HeaderEffect::None, InSet::At(SetStep::Resubmit, 0), nicira: Some(1),
        syntax: Syntax::Own { parse: text::resubmit, format: text::format_resubmit };
    /// Search any flow table with any ingress port, and carry out what the entry there asks for
    /// (Nicira's `NXAST_RESUBMIT_TABLE`).
    ResubmitTable {
        /// The ingress port of the search; `IN_PORT` for that of the packet.
        port: ShortPort,
        /// The table; 255 for the present one.
        table: TableId => 3
    } "resubmit_table" "NX_RESUBMIT_TABLE" (port = 0xfff8, table_id = 0xff) [],
        HeaderEffect::None, InSet::At(SetStep::Resubmit, 0), nicira: Some(14),
        syntax: Syntax::Own { parse: text::resubmit, format: text::format_resubmit };
    /// Put bits of a field or register on the packet's stack of values (Nicira's
    /// `NXAST_STACK_PUSH`).
    Push {
        /// The lowest bit.
        offset: u16,
        /// The field.
        src: Field,
        /// Number of bits.
        n_bits: u16
    } "push" "NX_STACK_PUSH" (offset, src, n_bits) [],
        HeaderEffect::None, InSet::Never, nicira: Some(27),
        reads: Fields::Named(0),
        syntax: Syntax::Own { parse: subfield::push, format: subfield::format_push };
    /// Take the value that was put on the stack last and write it to bits of a field or register;
    /// nothing where there is none (Nicira's `NXAST_STACK_POP`).
    Pop {
        /// The lowest bit.
        offset: u16,
        /// The field; its row says whether it may be set.
        dst: Field,
        /// Number of bits.
        n_bits: u16
    } "pop" "NX_STACK_POP" (offset, dst, n_bits) [],
        HeaderEffect::Write, InSet::Never, nicira: Some(28),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: subfield::pop, format: subfield::format_pop };
    /// Carry out actions on a copy of the packet, and then the action set as it is; what they
    /// change is as before afterwards (Nicira's `NXAST_CLONE`).
    Clone [6] (Vec<Action>) "clone" "NX_CLONE" (actions) [],
        HeaderEffect::None, InSet::Never, nicira: Some(42), syntax: Syntax::Parenthesized;
    /// Take back the choice of a queue (Nicira's `NXAST_POP_QUEUE`).
    PopQueue "pop_queue" "NX_POP_QUEUE" () [], HeaderEffect::None, InSet::Never, nicira: Some(5);
    /// Send the packet out of one of several ports, of those that can send (Nicira's
    /// `NXAST_BUNDLE`).
    Bundle(Box<Members>) "bundle" "NX_BUNDLE" (bundle) [], HeaderEffect::None, InSet::Never,
        nicira: Some(12),
        syntax: Syntax::Own { parse: members::bundle, format: members::format_bundle };
    /// Write the number of such a port to bits of a field or register (Nicira's
    /// `NXAST_BUNDLE_LOAD`).
    BundleLoad(Box<Members>) "bundle_load" "NX_BUNDLE_LOAD" (bundle) [],
        HeaderEffect::Write, InSet::Never, nicira: Some(13),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: members::bundle_load, format: members::format_bundle_load };
    /// Write a number below another to bits of a field or register, the same for all packets of a
    /// flow (Nicira's `NXAST_MULTIPATH`).
    Multipath {
        /// The fields that make a flow.
        fields: HashFields,
        /// A number that makes the choice another one than that of other actions.
        basis: u16 => 2,
        /// The choice.
        algorithm: MultipathAlgorithm,
        /// The highest number.
        max_link: u16,
        /// An argument of the algorithm, which none has.
        arg: u32 => 2,
        /// The bits that are written.
        bits: BitRange,
        /// The field; its row says whether it may be set.
        dst: Field
    } "multipath" "NX_MULTIPATH" (fields, basis, algorithm, max_link, arg, ofs_nbits, dst) [],
        HeaderEffect::Write, InSet::Never, nicira: Some(10),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: members::multipath, format: members::format_multipath };
    /// Write a bit of a field or register: one where the packet is longer than so many bytes, and
    /// zero where it is not (Nicira's `NXAST_CHECK_PKT_LARGER`).
    CheckPktLarger {
        /// Bytes, those of the Ethernet header included.
        pkt_len: u16,
        /// The bit.
        offset: u16,
        /// The field; its row says whether it may be set.
        dst: Field
    } "check_pkt_larger" "NX_CHECK_PKT_LARGER" (pkt_len, offset, dst) [],
        HeaderEffect::Write, InSet::Never, nicira: Some(49),
        writes: Fields::Named(0),
        syntax: Syntax::Own {
            parse: subfield::check_pkt_larger, format: subfield::format_check_pkt_larger
        };
    /// Shorten the timeouts of the entry where the packet ends its TCP connection, by FIN or RST
    /// (Nicira's `NXAST_FIN_TIMEOUT`).
    FinTimeout {
        /// The most seconds of the idle timeout from then on; 0 leaves it.
        idle_timeout: u16,
        /// The most seconds of the hard timeout; 0 leaves it.
        hard_timeout: u16
    } "fin_timeout" "NX_FIN_TIMEOUT" (fin_idle_timeout = 0, fin_hard_timeout = 0) [],
        HeaderEffect::None, InSet::Never, nicira: Some(19), needs: TCP,
        syntax: Syntax::Own { parse: text::fin_timeout, format: text::format_fin_timeout };
    /// End the pipeline here, or a bucket; what was done before holds (Nicira's `NXAST_EXIT`).
    Exit "exit" "NX_EXIT" () [], HeaderEffect::None, InSet::Never, nicira: Some(17);
    /// The entry's part in a conjunctive match, of which it is one of the entries of a dimension.
    /// Nothing is carried out (Nicira's `NXAST_CONJUNCTION`).
    Conjunction {
        /// The dimension, counted from 0.
        dimension: u8,
        /// The number of dimensions, 2 to 64.
        n_dimensions: u8,
        /// The value of `conj_id` for packets that match an entry of each dimension.
        id: u32
    } "conjunction" "NX_CONJUNCTION" (clause, n_clauses, id) [],
        HeaderEffect::None, InSet::Never, nicira: Some(34),
        syntax: Syntax::Own { parse: text::conjunction, format: text::format_conjunction };
    /// Add an entry to a flow table, or change it, by fields of the packet (Nicira's
    /// `NXAST_LEARN`). It holds for the packets that come after this one.
    Learn(Box<Learn>) "learn" "NX_LEARN" (learn) [], HeaderEffect::None, InSet::Never,
        nicira: Some(16),
        syntax: Syntax::Own { parse: learn::parse, format: learn::format };
    /// Send the packet to some of the controllers, for a reason (Nicira's `NXAST_CONTROLLER`).
    Controller {
        /// Bytes for a packet-in, as those of an output.
        max_len: u16,
        /// The controllers that get it, by the number that they have chosen.
        controller_id: u16,
        /// The reason that the packet-in names.
        reason: PacketInReason => 1
    } "controller" "NX_CONTROLLER" (max_len = 0xffff, controller_id = 0, reason = 1) [],
        HeaderEffect::None, InSet::Never, nicira: Some(20),
        syntax: Syntax::Own { parse: controller::parse, format: controller::format };
    /// The same with data, a meter or a pause of the packet (Nicira's `NXAST_CONTROLLER2`).
    ControllerProperties [6] (Box<ToController>) "controller_properties" "NX_CONTROLLER2"
        (controller) [], HeaderEffect::None, InSet::Never, nicira: Some(37),
        syntax: Syntax::Own { parse: controller::parse, format: controller::format };
    /// Decrement the IP TTL or hop limit; where it is used up, these controllers get the packet
    /// (Nicira's `NXAST_DEC_TTL_CNT_IDS`).
    DecNwTtlTo(Vec<u16>) "dec_ttl_cnt_ids" "NX_DEC_TTL_CNT_IDS" (cnt_ids) [],
        HeaderEffect::DecTtl(TtlLayer::Ip), InSet::At(SetStep::DecTtl, 1), nicira: Some(21),
        needs: IP,
        syntax: Syntax::Own { parse: text::dec_ttl, format: text::format_dec_ttl };
    /// Bytes that are kept with the entry and have no effect (Nicira's `NXAST_NOTE`).
    Note(Vec<u8>) "note" "NX_NOTE" (data = 0) [], HeaderEffect::None, InSet::Never, nicira: Some(8),
        syntax: Syntax::Own { parse: text::note, format: text::format_note };
    /// 1.0: set the VLAN id, pushing a tag where there is none.
    SetVlanVid(u16) "mod_vlan_vid" "SET_VLAN_VID" (vlan_vid) [V1_0: 1; V1_0],
        HeaderEffect::WriteTag, set_at(2),
        writes: Fields::These(&[Field::VlanVid]), bits: Some(12), accepts: Accepts::Bits(0xfff),
        successor: SET_FIELD;
    /// 1.0: set the VLAN priority, pushing a tag where there is none.
    SetVlanPcp(u8) "mod_vlan_pcp" "SET_VLAN_PCP" (vlan_pcp) [V1_0: 2; V1_0],
        HeaderEffect::WriteTag, set_at(3),
        writes: Fields::These(&[Field::VlanPcp]), bits: Some(3), accepts: Accepts::Bits(7),
        successor: SET_FIELD;
    /// 1.0: strip the VLAN tag, if there is one.
    StripVlan "strip_vlan" "STRIP_VLAN" () [V1_0: 3; V1_0], HeaderEffect::Pop(Header::Vlan),
        InSet::At(SetStep::Pop, 0), writes: TAG, successor: Some(ActionKind::PopVlan);
    /// Until 1.1: set the Ethernet source address.
    SetDlSrc(MacAddr) "mod_dl_src" "SET_DL_SRC" (dl_src) [V1_0: 4, V1_1: 3; V1_1],
        HeaderEffect::Write, set_at(4),
        writes: Fields::These(&[Field::EthSrc]), successor: SET_FIELD;
    /// Until 1.1: set the Ethernet destination address.
    SetDlDst(MacAddr) "mod_dl_dst" "SET_DL_DST" (dl_dst) [V1_0: 5, V1_1: 4; V1_1],
        HeaderEffect::Write, set_at(5),
        writes: Fields::These(&[Field::EthDst]), successor: SET_FIELD;
    /// Until 1.1: set the IPv4 source address.
    SetNwSrc(Ipv4Addr) "mod_nw_src" "SET_NW_SRC" (nw_src) [V1_0: 6, V1_1: 5; V1_1],
        HeaderEffect::Write, set_at(6),
        writes: Fields::These(&[Field::Ipv4Src]), successor: SET_FIELD;
    /// Until 1.1: set the IPv4 destination address.
    SetNwDst(Ipv4Addr) "mod_nw_dst" "SET_NW_DST" (nw_dst) [V1_0: 7, V1_1: 6; V1_1],
        HeaderEffect::Write, set_at(7),
        writes: Fields::These(&[Field::Ipv4Dst]), successor: SET_FIELD;
    /// Until 1.1: set the DSCP, given as the whole TOS byte; its two low bits are not written.
    SetNwTos(u8) "mod_nw_tos" "SET_NW_TOS" (nw_tos) [V1_0: 8, V1_1: 7; V1_1],
        HeaderEffect::Write, set_at(8),
        writes: Fields::These(&[Field::IpDscp]), accepts: Accepts::Bits(0xfc),
        successor: SET_FIELD;
    /// Until 1.1: set the TCP or UDP source port; that of SCTP too, as Open vSwitch does.
    SetTpSrc(u16) "mod_tp_src" "SET_TP_SRC" (tp_src) [V1_0: 9; V1_1],
        HeaderEffect::Write, set_at(9),
        writes: SRC_PORTS, successor: SET_FIELD;
    /// Until 1.1: set the TCP or UDP destination port; that of SCTP too, as Open vSwitch does.
    SetTpDst(u16) "mod_tp_dst" "SET_TP_DST" (tp_dst) [V1_0: 10; V1_1],
        HeaderEffect::Write, set_at(10),
        writes: DST_PORTS, successor: SET_FIELD;
    /// 1.1: set the id of the VLAN tag that the packet has.
    SetTagVid(u16) "set_vlan_vid" "SET_VLAN_VID" (vlan_vid) [V1_1: 1; V1_1],
        HeaderEffect::Write, set_at(11), needs: Prereq::VlanTag,
        writes: Fields::These(&[Field::VlanVid]), bits: Some(12), accepts: Accepts::Bits(0xfff),
        successor: SET_FIELD;
    /// 1.1: set the priority of the VLAN tag that the packet has.
    SetTagPcp(u8) "set_vlan_pcp" "SET_VLAN_PCP" (vlan_pcp) [V1_1: 2; V1_1],
        HeaderEffect::Write, set_at(12), needs: Prereq::VlanTag,
        writes: Fields::These(&[Field::VlanPcp]), bits: Some(3), accepts: Accepts::Bits(7),
        successor: SET_FIELD;
    /// 1.1: set the ECN bits of the IP header.
    SetNwEcn(u8) "mod_nw_ecn" "SET_NW_ECN" (nw_ecn) [V1_1: 8; V1_1],
        HeaderEffect::Write, set_at(13), needs: IP,
        writes: Fields::These(&[Field::IpEcn]), bits: Some(2), accepts: Accepts::Bits(3),
        successor: SET_FIELD;
    /// 1.1: set the label of the outermost MPLS entry.
    SetMplsLabel(u32) "set_mpls_label" "SET_MPLS_LABEL" (mpls_label) [V1_1: 13; V1_1],
        HeaderEffect::Write, set_at(14), needs: MPLS,
        writes: Fields::These(&[Field::MplsLabel]), bits: Some(20),
        accepts: Accepts::Bits(0xf_ffff), successor: SET_FIELD, syntax: Syntax::Parenthesized;
    /// 1.1: set the traffic class of the outermost MPLS entry.
    SetMplsTc(u8) "set_mpls_tc" "SET_MPLS_TC" (mpls_tc) [V1_1: 14; V1_1],
        HeaderEffect::Write, set_at(15), needs: MPLS,
        writes: Fields::These(&[Field::MplsTc]), bits: Some(3), accepts: Accepts::Bits(7),
        successor: SET_FIELD, syntax: Syntax::Parenthesized;
    /// 1.0: send the packet through a queue of a port.
    Enqueue {
        /// Destination.
        port: PortNo => 6,
        /// Queue of that port.
        queue: QueueId
    } "enqueue" "ENQUEUE" (port, queue_id) [V1_0: 11; V1_0],
        HeaderEffect::None, InSet::At(SetStep::Output, 0),
        successor: Some(ActionKind::SetQueue),
        syntax: Syntax::Own { parse: text::enqueue, format: text::format_enqueue };
    /// An action of somebody's own (`OFPAT_VENDOR` in 1.0). Weir runs none and refuses them.
    Experimenter {
        /// Its owner.
        experimenter: u32,
        /// The body behind the experimenter id.
        data: Vec<u8>
    } "experimenter" "EXPERIMENTER" (experimenter, data = 0) [V1_0: 0xffff],
        HeaderEffect::None, InSet::Never,
        syntax: Syntax::Own { parse: text::experimenter, format: text::format_experimenter };
}

/// The type numbers of a version, by the index of the row.
type TypeNumbers = [Option<u16>; ACTIONS.len()];

/// Type numbers of every version, by the version's index.
static NUMBERS: [TypeNumbers; Version::ALL.len()] = {
    let mut all = [[None; ACTIONS.len()]; Version::ALL.len()];
    let mut version = 0;
    while version < Version::ALL.len() {
        let mut row = 0;
        while row < ACTIONS.len() {
            all[version][row] = ACTIONS[row].numbers.of(Version::ALL[version]);
            row += 1;
        }
        version += 1;
    }
    all
};

/// The actions of the type numbers below this are found without a search.
const LOW_NUMBERS: usize = 32;

/// The action of each low type number, by the version's index.
static LOW_KINDS: [[Option<ActionKind>; LOW_NUMBERS]; Version::ALL.len()] = {
    let mut all = [[None; LOW_NUMBERS]; Version::ALL.len()];
    let mut version = 0;
    while version < Version::ALL.len() {
        let mut row = 0;
        while row < ACTIONS.len() {
            if let Some(number) = NUMBERS[version][row]
                && (number as usize) < LOW_NUMBERS
            {
                all[version][number as usize] = Some(ACTIONS[row].kind);
            }
            row += 1;
        }
        version += 1;
    }
    all
};

impl ActionKind {
    /// The action's row.
    #[must_use]
    #[inline]
    pub const fn row(self) -> &'static ActionRow {
        &ACTIONS[self as usize]
    }

    /// The type number on the wire, if the version has the action.
    #[must_use]
    #[inline]
    pub const fn number(self, version: Version) -> Option<u16> {
        NUMBERS[version as usize][self as usize]
    }

    /// The subtype of Nicira's action that is it in a version without an action of its own.
    #[must_use]
    pub fn nicira_subtype(self, version: Version) -> Option<u16> {
        self.row().nicira.filter(|_| self.number(version).is_none())
    }

    /// Whether a version has an encoding of the action.
    #[must_use]
    pub fn is_in(self, version: Version) -> bool {
        self.number(version).is_some() || self.row().nicira.is_some()
    }

    /// The action of a subtype of Nicira's, in a version without an action of its own for it.
    #[must_use]
    pub fn from_nicira(version: Version, subtype: u16) -> Option<Self> {
        let is_it = |row: &&ActionRow| row.kind.nicira_subtype(version) == Some(subtype);
        ACTIONS.iter().find(is_it).map(|row| row.kind)
    }

    /// The action of a type number.
    #[must_use]
    pub fn from_number(version: Version, number: u16) -> Option<Self> {
        if let Some(kind) = LOW_KINDS[version as usize].get(usize::from(number)) {
            return *kind;
        }
        let numbers = &NUMBERS[version as usize];
        let index = numbers.iter().position(|own| *own == Some(number))?;
        ACTIONS.get(index).map(|row| row.kind)
    }
}

impl Action {
    /// An output of the whole packet.
    #[must_use]
    pub const fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: MAX_LEN_NO_BUFFER }
    }

    /// A set-field action.
    #[must_use]
    pub const fn set_field(field: Field, value: u128) -> Self {
        Self::SetField { field, value }
    }

    fn summary(&self) -> ArgumentSummary {
        ArgumentSummary::of(|summary| self.write(summary))
    }

    fn fields(&self, fields: Fields) -> &'static [Field] {
        match fields {
            Fields::None => &[],
            Fields::These(these) => these,
            Fields::Named(index) => {
                let named = self.summary().fields.get(index).copied().flatten();
                named.map_or(&[], |field| std::slice::from_ref(&field.row().field))
            }
        }
    }

    /// Whether the arguments name the fields that the action writes.
    #[must_use]
    pub fn names_fields(&self) -> bool {
        matches!(self.kind().row().writes, Fields::Named(_))
    }

    /// The fields whose values the action reads.
    #[must_use]
    pub fn reads(&self) -> &'static [Field] {
        self.fields(self.kind().row().reads)
    }

    /// The fields that have another value behind the action, of those that the packet has before
    /// and after it.
    #[must_use]
    pub fn writes(&self) -> &'static [Field] {
        self.fields(self.kind().row().writes)
    }

    /// The value that a set-field writes; `None` for actions that name no value.
    #[must_use]
    pub fn value(&self) -> Option<u128> {
        self.summary().value
    }

    /// The value that the fields have behind the action, right-aligned; `None` where it is taken
    /// from the packet, or no argument gives it.
    #[must_use]
    pub fn written(&self) -> Option<u128> {
        let row = self.kind().row();
        let writes = matches!(row.effect, HeaderEffect::Write | HeaderEffect::WriteTag);
        if !writes || row.reads != Fields::None || self.written_bits().is_some() {
            return None;
        }
        let number = || Some(u128::from(self.number()? >> row.accepts.unwritten_bits()));
        self.value().or_else(number)
    }

    /// The entry that it makes, if it is a learn action.
    #[must_use]
    pub const fn learns(&self) -> Option<&Learn> {
        if let Self::Learn(learn) = self { Some(learn) } else { None }
    }

    /// The actions inside it.
    #[must_use]
    pub fn inner(&self) -> &[Self] {
        if let Self::Clone(actions) = self { actions } else { &[] }
    }

    /// Whether it or an action inside it is such a one.
    #[must_use]
    pub fn has_inside(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        is(self) || self.inner().iter().any(|one| one.has_inside(is))
    }

    /// Whether what it writes for later tables depends on more than the headers of a packet: its
    /// stack, its length, or ports.
    #[must_use]
    pub const fn is_of_a_walk(&self) -> bool {
        self.uses_stack() || matches!(self, Self::BundleLoad(_) | Self::CheckPktLarger { .. })
    }

    /// Number of clones that lie in each other here, itself included.
    #[must_use]
    pub fn clones_deep(&self) -> usize {
        let own = usize::from(self.kind() == ActionKind::Clone);
        own + self.inner().iter().map(Self::clones_deep).max().unwrap_or(0)
    }

    /// The bundle of ports that it chooses from.
    #[must_use]
    pub const fn members(&self) -> Option<&Members> {
        if let Self::Bundle(bundle) | Self::BundleLoad(bundle) = self { Some(bundle) } else { None }
    }

    /// The fields by which it makes a choice, of those that the packet has.
    #[must_use]
    pub fn hashes(&self) -> &'static [Field] {
        if let Self::Multipath { fields, .. } = self {
            return fields.fields();
        }
        if self.kind() == ActionKind::FinTimeout {
            return &[Field::TcpFlags];
        }
        let by_flow = |bundle: &&Members| bundle.algorithm == BundleAlgorithm::Hrw;
        self.members().filter(by_flow).map_or(&[], |bundle| bundle.fields.fields())
    }

    /// Whether it uses the packet's stack of values.
    #[must_use]
    pub const fn uses_stack(&self) -> bool {
        matches!(self, Self::Push { .. } | Self::Pop { .. })
    }

    /// Whether it has a flow table searched while its list runs.
    #[must_use]
    pub const fn resubmits(&self) -> bool {
        matches!(self, Self::Resubmit(_) | Self::ResubmitTable { .. })
    }

    /// The bits of its field that it writes, where it does not write the whole of it.
    #[must_use]
    pub fn written_bits(&self) -> Option<BitRange> {
        if let Self::Load { bits, .. } = self {
            Some(*bits)
        } else if let Self::Move { n_bits, dst_offset, .. } = self {
            Some(BitRange { offset: *dst_offset, n_bits: *n_bits })
        } else if let Self::Multipath { bits, .. } = self {
            Some(*bits)
        } else if let Self::CheckPktLarger { offset, .. } = self {
            Some(BitRange { offset: *offset, n_bits: 1 })
        } else if let Self::BundleLoad(bundle) = self {
            bundle.dst.map(|(bits, _)| bits)
        } else if let Self::Pop { offset, n_bits, .. } = self {
            Some(BitRange { offset: *offset, n_bits: *n_bits })
        } else {
            None
        }
    }

    /// The bits of the field that it reads.
    #[must_use]
    pub fn read_bits(&self) -> Option<BitRange> {
        if let Self::OutputReg { bits, .. } = self {
            Some(*bits)
        } else if let Self::Move { n_bits, src_offset, .. } = self {
            Some(BitRange { offset: *src_offset, n_bits: *n_bits })
        } else if let Self::Push { offset, n_bits, .. } = self {
            Some(BitRange { offset: *offset, n_bits: *n_bits })
        } else {
            None
        }
    }

    /// Nicira's loads that write a whole field, of 64 bits each.
    pub(crate) fn loads(dst: Field, value: u128) -> impl Iterator<Item = Self> {
        (0..dst.row().bits).step_by(64).map(move |offset| {
            let bits = BitRange { offset, n_bits: (dst.row().bits - offset).min(64) };
            Self::Load { bits, dst, value: bits.of(value) as u64 }
        })
    }

    /// The same action: a set-field for one that writes all bits of a field.
    #[must_use]
    pub fn as_whole(&self) -> Self {
        if let Self::Load { bits, dst, value } = self
            && *bits == BitRange::all(*dst)
        {
            return Self::set_field(*dst, (*value).into());
        }
        self.clone()
    }

    /// Whether the arguments are such that the action may be installed, as far as its row says.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.kind().row().accepts.allows(self)
    }

    /// The first number or address among the arguments.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.summary().number
    }
}

#[cfg(test)]
mod tests {
    use super::{ACTIONS, ActionKind};
    use crate::version::Version;

    #[test]
    fn rows_are_in_the_enum_order_and_numbers_lead_back() {
        for (index, row) in ACTIONS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(row.keys.len(), row.arguments.len(), "{}", row.text);
            let is_in = |version: &Version| row.kind.is_in(*version);
            assert!(Version::ALL.iter().any(is_in), "{:?} has no number", row.kind);
            for &version in Version::ALL {
                if let Some(number) = row.kind.number(version) {
                    assert_eq!(ActionKind::from_number(version, number), Some(row.kind));
                }
                if let Some(subtype) = row.kind.nicira_subtype(version) {
                    assert_eq!(ActionKind::from_nicira(version, subtype), Some(row.kind));
                }
            }
        }
    }
}
