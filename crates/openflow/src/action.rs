//! The actions: one row each, with their numbers per version (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! The behaviour of an action is one arm in `datapath`, which the compiler demands. The actions of
//! 1.0 that 1.3 no longer has are variants of their own, because they behave differently (setting a
//! VLAN id pushes a tag) and because tools print them by their own names.

use crate::field::Field;
use crate::id::{GroupId, MacAddr, PortNo, QueueId};
use crate::version::Version;
use std::net::Ipv4Addr;

/// `max_len` of an output to the controller that asks for the whole packet (`OFPCML_NO_BUFFER`).
pub const MAX_LEN_NO_BUFFER: u16 = 0xffff;

/// The shape of an action's argument on the wire, behind type and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Empty,
    /// An 8-bit value, then padding.
    U8,
    /// A 16-bit value, then padding.
    U16,
    /// A 32-bit value.
    U32,
    /// An Ethernet address, then padding.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// Of its own, written out in `wire`: it differs between versions or has several parts.
    Own,
}

macro_rules! actions {
    ($($(#[doc = $doc:literal])* $variant:ident $( ( $arg:ty ) )?
        $( { $($(#[doc = $fdoc:literal])* $fname:ident : $fty:ty),+ } )?
        $text:literal v1_0 $n10:expr, v1_3 $n13:expr, $shape:ident;)+) => {
        /// An action with its arguments.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Action {
            $($(#[doc = $doc])* $variant $( ($arg) )?
                $( { $($(#[doc = $fdoc])* $fname: $fty),+ } )?,)+
        }

        /// An action without its arguments: the row's key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ActionKind {
            $($(#[doc = $doc])* $variant,)+
        }

        /// Every row, in the order of [`ActionKind`].
        pub const ACTIONS: &[ActionRow] = &[$(ActionRow {
            kind: ActionKind::$variant,
            text: $text,
            v1_0: $n10,
            v1_3: $n13,
            shape: Shape::$shape,
        },)+];

        impl Action {
            /// The action's row key.
            #[must_use]
            pub fn kind(&self) -> ActionKind {
                match self {
                    $(Self::$variant { .. } => ActionKind::$variant,)+
                }
            }
        }
    };
}

/// One action's row.
#[derive(Clone, Copy, Debug)]
pub struct ActionRow {
    /// The action.
    pub kind: ActionKind,
    /// The name in `ovs-ofctl`'s syntax.
    pub text: &'static str,
    /// Type number in OpenFlow 1.0.
    pub v1_0: Option<u16>,
    /// Type number in OpenFlow 1.3.
    pub v1_3: Option<u16>,
    /// Shape of the argument.
    pub shape: Shape,
}

actions! {
    /// Send the packet out of a port; `max_len` bytes of it when that is the controller.
    Output {
        /// Destination.
        port: PortNo,
        /// Bytes for a packet-in; [`MAX_LEN_NO_BUFFER`] for all of them.
        max_len: u16
    } "output" v1_0 Some(0), v1_3 Some(0), Own;
    /// Copy the TTL outwards: from next-to-outermost to outermost header.
    CopyTtlOut "copy_ttl_out" v1_0 None, v1_3 Some(11), Empty;
    /// Copy the TTL inwards: from outermost to next-to-outermost header.
    CopyTtlIn "copy_ttl_in" v1_0 None, v1_3 Some(12), Empty;
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8) "set_mpls_ttl" v1_0 None, v1_3 Some(15), U8;
    /// Decrement the TTL of the outermost MPLS entry.
    DecMplsTtl "dec_mpls_ttl" v1_0 None, v1_3 Some(16), Empty;
    /// Push a VLAN tag with this EtherType (0x8100 or 0x88a8).
    PushVlan(u16) "push_vlan" v1_0 None, v1_3 Some(17), U16;
    /// Pop the outermost VLAN tag.
    PopVlan "pop_vlan" v1_0 None, v1_3 Some(18), Empty;
    /// Push an MPLS entry with this EtherType (0x8847 or 0x8848).
    PushMpls(u16) "push_mpls" v1_0 None, v1_3 Some(19), U16;
    /// Pop the outermost MPLS entry; the argument becomes the EtherType.
    PopMpls(u16) "pop_mpls" v1_0 None, v1_3 Some(20), U16;
    /// Choose the queue that a later output uses.
    SetQueue(QueueId) "set_queue" v1_0 None, v1_3 Some(21), U32;
    /// Process the packet by a group.
    Group(GroupId) "group" v1_0 None, v1_3 Some(22), U32;
    /// Set the IP TTL or hop limit.
    SetNwTtl(u8) "mod_nw_ttl" v1_0 None, v1_3 Some(23), U8;
    /// Decrement the IP TTL or hop limit.
    DecNwTtl "dec_ttl" v1_0 None, v1_3 Some(24), Empty;
    /// Write a match field.
    SetField {
        /// Which field; its row says whether it may be set.
        field: Field,
        /// The value, right-aligned.
        value: u128
    } "set_field" v1_0 None, v1_3 Some(25), Own;
    /// Push a PBB header with this EtherType (0x88e7).
    PushPbb(u16) "push_pbb" v1_0 None, v1_3 Some(26), U16;
    /// Pop the PBB header.
    PopPbb "pop_pbb" v1_0 None, v1_3 Some(27), Empty;
    /// 1.0: set the VLAN id, pushing a tag where there is none.
    SetVlanVid(u16) "mod_vlan_vid" v1_0 Some(1), v1_3 None, U16;
    /// 1.0: set the VLAN priority, pushing a tag where there is none.
    SetVlanPcp(u8) "mod_vlan_pcp" v1_0 Some(2), v1_3 None, U8;
    /// 1.0: strip the VLAN tag, if there is one.
    StripVlan "strip_vlan" v1_0 Some(3), v1_3 None, Empty;
    /// 1.0: set the Ethernet source address.
    SetDlSrc(MacAddr) "mod_dl_src" v1_0 Some(4), v1_3 None, Mac;
    /// 1.0: set the Ethernet destination address.
    SetDlDst(MacAddr) "mod_dl_dst" v1_0 Some(5), v1_3 None, Mac;
    /// 1.0: set the IPv4 source address.
    SetNwSrc(Ipv4Addr) "mod_nw_src" v1_0 Some(6), v1_3 None, Ipv4;
    /// 1.0: set the IPv4 destination address.
    SetNwDst(Ipv4Addr) "mod_nw_dst" v1_0 Some(7), v1_3 None, Ipv4;
    /// 1.0: set the DSCP, given as the whole TOS byte; its two low bits are not written.
    SetNwTos(u8) "mod_nw_tos" v1_0 Some(8), v1_3 None, U8;
    /// 1.0: set the TCP or UDP source port.
    SetTpSrc(u16) "mod_tp_src" v1_0 Some(9), v1_3 None, U16;
    /// 1.0: set the TCP or UDP destination port.
    SetTpDst(u16) "mod_tp_dst" v1_0 Some(10), v1_3 None, U16;
    /// 1.0: send the packet through a queue of a port.
    Enqueue {
        /// Destination.
        port: PortNo,
        /// Queue of that port.
        queue: QueueId
    } "enqueue" v1_0 Some(11), v1_3 None, Own;
    /// An action of somebody's own (`OFPAT_VENDOR` in 1.0). Weir runs none and refuses them.
    Experimenter {
        /// Whose.
        experimenter: u32,
        /// The body behind the experimenter id.
        data: Vec<u8>
    } "experimenter" v1_0 Some(0xffff), v1_3 Some(0xffff), Own;
}

impl ActionKind {
    /// The action's row.
    #[must_use]
    pub const fn row(self) -> &'static ActionRow {
        &ACTIONS[self as usize]
    }

    /// The type number on the wire, if the version has the action.
    #[must_use]
    pub const fn number(self, version: Version) -> Option<u16> {
        match version {
            Version::V1_0 => self.row().v1_0,
            Version::V1_3 => self.row().v1_3,
        }
    }

    /// The action of a type number.
    #[must_use]
    pub fn from_number(version: Version, number: u16) -> Option<Self> {
        ACTIONS.iter().map(|row| row.kind).find(|kind| kind.number(version) == Some(number))
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
}

#[cfg(test)]
mod tests {
    use super::{ACTIONS, ActionKind};
    use crate::version::Version;

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_numbers_lead_back() {
        for (index, row) in ACTIONS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert!(row.v1_0.is_some() || row.v1_3.is_some(), "{:?} has no number", row.kind);
            for &version in Version::ALL {
                if let Some(number) = row.kind.number(version) {
                    assert_eq!(ActionKind::from_number(version, number), Some(row.kind));
                }
            }
        }
    }
}
