//! The actions: one row each, with their numbers per version (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! A row defines the whole action except its behaviour: that is one arm in the datapath's
//! interpreter and one in its reference, both demanded by the compiler. The actions of 1.0 that 1.3
//! no longer has are variants of their own, because they behave differently (setting a VLAN id
//! pushes a tag) and because tools print them by their own names.

use crate::field::{Field, Header, IP, MPLS, PBB, Prereq};
use crate::id::{GroupId, MacAddr, PortNo, QueueId};
use crate::text::action as text;
use crate::version::{Version, numbers};
use std::net::Ipv4Addr;

/// `max_len` of an output to the controller that asks for the whole packet (`OFPCML_NO_BUFFER`).
pub const MAX_LEN_NO_BUFFER: u16 = 0xffff;

mod argument;
mod row;
mod set_field;
mod syntax;

pub use argument::{ReadArguments, WriteArguments};
pub use row::{Accepts, ActionRow, Fields, HeaderEffect, InSet, SetStep, TtlLayer};
pub(crate) use syntax::Syntax;

use argument::{Argument, Noted};

/// Names the argument of a tuple variant in a pattern.
macro_rules! bind {
    ($name:ident $arg:ty) => {
        $name
    };
}

/// One row an action: its variant with the types of its arguments (`=> n`: so many bytes of padding
/// follow), its name, its numbers, its effect, its place in the action set, and what else differs
/// from [`PLAIN`].
macro_rules! actions {
    ($($(#[doc = $doc:literal])* $variant:ident $( ( $arg:ty ) )?
        $( { $($(#[doc = $fdoc:literal])* $fname:ident : $fty:ty $(=> $pad:literal)?),+ } )?
        $text:literal [$($numbers:tt)+], $effect:expr, $in_set:expr
        $(, $fact:ident: $value:expr)*;)+) => {
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
            numbers: numbers!($($numbers)+),
            effect: $effect,
            in_set: $in_set,
            $($fact: $value,)*
            ..PLAIN
        },)+];

        impl Action {
            /// The action's row key.
            #[must_use]
            #[inline]
            pub fn kind(&self) -> ActionKind {
                match self {
                    $(Self::$variant { .. } => ActionKind::$variant,)+
                }
            }

            /// Reads the action of a kind, by its arguments.
            ///
            /// # Errors
            /// Those of `r`.
            #[inline]
            pub fn read<R: ReadArguments>(kind: ActionKind, r: &mut R) -> Result<Self, R::Error> {
                Ok(match kind {
                    $(ActionKind::$variant => Self::$variant
                        $( (<$arg as Argument>::read(r)?) )?
                        $( { $($fname: {
                            let argument = <$fty as Argument>::read(r)?;
                            $(r.pad($pad)?;)?
                            argument
                        }),+ } )?,)+
                })
            }

            /// Writes the arguments.
            ///
            /// # Errors
            /// Those of `w`.
            #[inline]
            pub fn write<W: WriteArguments>(&self, w: &mut W) -> Result<(), W::Error> {
                match self {
                    $(Self::$variant $( (bind!(argument $arg)) )? $( { $($fname),+ } )? => {
                        $(<$arg as Argument>::write(argument, w)?;)?
                        $($(
                            $fname.write(w)?;
                            $(w.pad($pad)?;)?
                        )+)?
                    })+
                }
                Ok(())
            }
        }
    };
}

/// What is said in a row only where it is otherwise.
const PLAIN: ActionRow = ActionRow {
    kind: ActionKind::Experimenter,
    text: "",
    numbers: numbers!(V1_0: 0xffff),
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
    Fields::These(&[Field::EthType, Field::VlanVid, Field::VlanPcp, Field::PbbIsid]);
const SRC_PORTS: Fields = Fields::These(&[Field::TcpSrc, Field::UdpSrc, Field::SctpSrc]);
const DST_PORTS: Fields = Fields::These(&[Field::TcpDst, Field::UdpDst, Field::SctpDst]);
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
    } "output" [V1_0: 0], HeaderEffect::None, InSet::At(SetStep::Output, 0),
        syntax: Syntax::Own { parse: text::output, format: text::format_output };
    /// Copy the TTL outwards: from next-to-outermost to outermost header.
    CopyTtlOut "copy_ttl_out" [V1_3: 11], HeaderEffect::CopyTtl, InSet::At(SetStep::CopyTtlOut, 0);
    /// Copy the TTL inwards: from outermost to next-to-outermost header.
    CopyTtlIn "copy_ttl_in" [V1_3: 12], HeaderEffect::CopyTtl, InSet::At(SetStep::CopyTtlIn, 0);
    /// Set the TTL of the outermost MPLS entry.
    SetMplsTtl(u8) "set_mpls_ttl" [V1_3: 15], HeaderEffect::SetTtl(TtlLayer::Mpls), set_at(0),
        needs: MPLS, syntax: Syntax::Parenthesized;
    /// Decrement the TTL of the outermost MPLS entry.
    DecMplsTtl "dec_mpls_ttl" [V1_3: 16], HeaderEffect::DecTtl(TtlLayer::Mpls),
        InSet::At(SetStep::DecTtl, 0), needs: MPLS;
    /// Push a VLAN tag with this EtherType (0x8100 or 0x88a8).
    PushVlan(u16) "push_vlan" [V1_3: 17], HeaderEffect::Push(Header::Vlan),
        InSet::At(SetStep::PushVlan, 0), writes: TAG, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x8100, 0x88a8]);
    /// Pop the outermost VLAN tag.
    PopVlan "pop_vlan" [V1_3: 18], HeaderEffect::Pop(Header::Vlan), InSet::At(SetStep::Pop, 0),
        needs: Prereq::VlanTag, writes: TAG;
    /// Push an MPLS entry with this EtherType (0x8847 or 0x8848).
    PushMpls(u16) "push_mpls" [V1_3: 19], HeaderEffect::Push(Header::Mpls),
        InSet::At(SetStep::PushMpls, 0), writes: LABEL, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x8847, 0x8848]);
    /// Pop the outermost MPLS entry; the argument becomes the EtherType.
    PopMpls(u16) "pop_mpls" [V1_3: 20], HeaderEffect::Pop(Header::Mpls), InSet::At(SetStep::Pop, 2),
        needs: MPLS, writes: LABEL, syntax: Syntax::EthType;
    /// Choose the queue that a later output uses.
    SetQueue(QueueId) "set_queue" [V1_3: 21], HeaderEffect::None, InSet::At(SetStep::Qos, 0);
    /// Process the packet by a group.
    Group(GroupId) "group" [V1_3: 22], HeaderEffect::None, InSet::At(SetStep::Group, 0);
    /// Set the IP TTL or hop limit.
    SetNwTtl(u8) "mod_nw_ttl" [V1_3: 23], HeaderEffect::SetTtl(TtlLayer::Ip), set_at(1), needs: IP;
    /// Decrement the IP TTL or hop limit.
    DecNwTtl "dec_ttl" [V1_3: 24], HeaderEffect::DecTtl(TtlLayer::Ip),
        InSet::At(SetStep::DecTtl, 1),
        needs: IP;
    /// Write a match field.
    SetField {
        /// Which field; its row says whether it may be set.
        field: Field,
        /// The value, right-aligned.
        value: u128
    } "set_field" [V1_3: 25], HeaderEffect::Write, InSet::PerField(SetStep::Set),
        writes: Fields::Named(0),
        syntax: Syntax::Own { parse: text::set_field, format: text::format_set_field };
    /// Push a PBB header with this EtherType (0x88e7).
    PushPbb(u16) "push_pbb" [V1_3: 26], HeaderEffect::Push(Header::Pbb),
        InSet::At(SetStep::PushPbb, 0), writes: SERVICE, syntax: Syntax::EthType,
        accepts: Accepts::OneOf(&[0x88e7]);
    /// Pop the PBB header.
    PopPbb "pop_pbb" [V1_3: 27], HeaderEffect::Pop(Header::Pbb), InSet::At(SetStep::Pop, 1),
        needs: PBB, writes: SERVICE;
    /// 1.0: set the VLAN id, pushing a tag where there is none.
    SetVlanVid(u16) "mod_vlan_vid" [V1_0: 1; V1_0], HeaderEffect::WriteTag, set_at(2),
        writes: Fields::These(&[Field::VlanVid]), bits: Some(12), accepts: Accepts::Bits(0xfff),
        successor: SET_FIELD;
    /// 1.0: set the VLAN priority, pushing a tag where there is none.
    SetVlanPcp(u8) "mod_vlan_pcp" [V1_0: 2; V1_0], HeaderEffect::WriteTag, set_at(3),
        writes: Fields::These(&[Field::VlanPcp]), bits: Some(3), accepts: Accepts::Bits(7),
        successor: SET_FIELD;
    /// 1.0: strip the VLAN tag, if there is one.
    StripVlan "strip_vlan" [V1_0: 3; V1_0], HeaderEffect::Pop(Header::Vlan),
        InSet::At(SetStep::Pop, 0), writes: TAG, successor: Some(ActionKind::PopVlan);
    /// 1.0: set the Ethernet source address.
    SetDlSrc(MacAddr) "mod_dl_src" [V1_0: 4; V1_0], HeaderEffect::Write, set_at(4),
        writes: Fields::These(&[Field::EthSrc]), successor: SET_FIELD;
    /// 1.0: set the Ethernet destination address.
    SetDlDst(MacAddr) "mod_dl_dst" [V1_0: 5; V1_0], HeaderEffect::Write, set_at(5),
        writes: Fields::These(&[Field::EthDst]), successor: SET_FIELD;
    /// 1.0: set the IPv4 source address.
    SetNwSrc(Ipv4Addr) "mod_nw_src" [V1_0: 6; V1_0], HeaderEffect::Write, set_at(6),
        writes: Fields::These(&[Field::Ipv4Src]), successor: SET_FIELD;
    /// 1.0: set the IPv4 destination address.
    SetNwDst(Ipv4Addr) "mod_nw_dst" [V1_0: 7; V1_0], HeaderEffect::Write, set_at(7),
        writes: Fields::These(&[Field::Ipv4Dst]), successor: SET_FIELD;
    /// 1.0: set the DSCP, given as the whole TOS byte; its two low bits are not written.
    SetNwTos(u8) "mod_nw_tos" [V1_0: 8; V1_0], HeaderEffect::Write, set_at(8),
        writes: Fields::These(&[Field::IpDscp]), accepts: Accepts::Bits(0xfc),
        successor: SET_FIELD;
    /// 1.0: set the TCP or UDP source port; that of SCTP too, as Open vSwitch does.
    SetTpSrc(u16) "mod_tp_src" [V1_0: 9; V1_0], HeaderEffect::Write, set_at(9),
        writes: SRC_PORTS, successor: SET_FIELD;
    /// 1.0: set the TCP or UDP destination port; that of SCTP too, as Open vSwitch does.
    SetTpDst(u16) "mod_tp_dst" [V1_0: 10; V1_0], HeaderEffect::Write, set_at(10),
        writes: DST_PORTS, successor: SET_FIELD;
    /// 1.0: send the packet through a queue of a port.
    Enqueue {
        /// Destination.
        port: PortNo => 6,
        /// Queue of that port.
        queue: QueueId
    } "enqueue" [V1_0: 11; V1_0], HeaderEffect::None, InSet::At(SetStep::Output, 0),
        successor: Some(ActionKind::SetQueue),
        syntax: Syntax::Own { parse: text::enqueue, format: text::format_enqueue };
    /// An action of somebody's own (`OFPAT_VENDOR` in 1.0). Weir runs none and refuses them.
    Experimenter {
        /// Whose.
        experimenter: u32,
        /// The body behind the experimenter id.
        data: Vec<u8>
    } "experimenter" [V1_0: 0xffff], HeaderEffect::None, InSet::Never,
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

    fn noted(&self) -> Noted {
        let mut noted = Noted::default();
        match self.write(&mut noted) {
            Ok(()) => noted,
            Err(never) => match never {},
        }
    }

    fn fields(&self, fields: Fields) -> &'static [Field] {
        match fields {
            Fields::None => &[],
            Fields::These(these) => these,
            Fields::Named(index) => {
                let named = self.noted().fields.get(index).copied().flatten();
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
        self.noted().value
    }

    /// The value that the fields have behind the action, right-aligned; `None` where it is taken
    /// from the packet, or no argument gives it.
    #[must_use]
    pub fn written(&self) -> Option<u128> {
        let row = self.kind().row();
        let writes = matches!(row.effect, HeaderEffect::Write | HeaderEffect::WriteTag);
        if !writes || row.reads != Fields::None {
            return None;
        }
        let number = || Some(u128::from(self.number()? >> row.accepts.unwritten_bits()));
        self.value().or_else(number)
    }

    /// Whether the arguments are such that the action may be installed, as far as its row says.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.kind().row().accepts.allows(self)
    }

    /// The first number or address among the arguments.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.noted().number
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
            let has_number = |version: &Version| row.kind.number(*version).is_some();
            assert!(Version::ALL.iter().any(has_number), "{:?} has no number", row.kind);
            for &version in Version::ALL {
                if let Some(number) = row.kind.number(version) {
                    assert_eq!(ActionKind::from_number(version, number), Some(row.kind));
                }
            }
        }
    }
}
