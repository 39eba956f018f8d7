//! A row of the actions' table: everything about an action but its behaviour.
//!
//! Codec, text, features, checks, the action set and the compiler of programs read these facts, so
//! that a new action needs no arm in any of them. The rewrite itself is code, in `datapath`.

use super::argument::ArgumentType;
use super::syntax::Syntax;
use super::{Action, ActionKind};
use crate::field::{Field, Header, Prereq};
use crate::version::Numbers;

/// One action's row.
#[derive(Clone, Copy, Debug)]
pub struct ActionRow {
    /// The action.
    pub kind: ActionKind,
    /// The first paragraph of its documentation.
    pub doc: &'static str,
    /// The name in `ovs-ofctl`'s syntax.
    pub text: &'static str,
    /// Ryu's name of it (`ofctl_rest`).
    pub ryu: &'static str,
    /// Ryu's keys for its arguments, in their order.
    pub keys: &'static [ArgumentKey],
    /// The types of its arguments.
    pub arguments: &'static [ArgumentType],
    /// Their documentation where they have names; a single one is what the action says.
    pub argument_docs: &'static [&'static str],
    /// Type numbers.
    pub numbers: Numbers<u16>,
    /// Subtype of Nicira's action that does the same, for versions without a number of its own.
    pub nicira: Option<u16>,
    /// Its effect on the packet's headers.
    pub effect: HeaderEffect,
    /// Its place in an action set.
    pub in_set: InSet,
    /// Headers that the packet must have; it changes nothing in others. Set-field needs what the
    /// row of its field says.
    pub needs: Prereq,
    /// The fields whose values it reads.
    pub reads: Fields,
    /// The fields that have another value behind it, of those that the packet has before and after.
    pub writes: Fields,
    /// Bits of the argument, where its type has more.
    pub bits: Option<u16>,
    /// The arguments with which it may be installed.
    pub accepts: Accepts,
    /// The action of later versions that does the same, for actions that ended.
    pub successor: Option<ActionKind>,
    /// The form of its arguments in text.
    pub(crate) syntax: Syntax<Action>,
}

/// Ryu's key for an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentKey {
    /// The key.
    pub name: &'static str,
    /// The number that a missing key stands for; nothing, in a text. `None`: it must be there.
    pub default: Option<u64>,
}

/// Keys as rows have them: `(port, max_len = 0xffe5)`.
macro_rules! argument_keys {
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    ($($name:ident $(= $default:expr)?),*) => {
        &[$($crate::action::ArgumentKey {
            name: stringify!($name),
            default: $crate::action::argument_keys!(@default $($default)?),
        }),*]
    };
}

pub(crate) use argument_keys;

/// Effect of an action on the headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderEffect {
    /// Nothing: it sends the packet or chooses how it is sent.
    None,
    /// Writes fields of headers that the packet has.
    Write,
    /// Writes a field of the VLAN tag, pushing a tag where there is none (1.0's way).
    WriteTag,
    /// Puts a header before those that the packet has; fields behind it cannot be seen any more.
    Push(Header),
    /// Takes the outermost header off; others that were hidden can be seen then.
    Pop(Header),
    /// Sets the TTL of a layer.
    SetTtl(TtlLayer),
    /// Decrements the TTL of a layer, which may not be valid then (`OFPR_INVALID_TTL`).
    DecTtl(TtlLayer),
    /// Copies the TTL from one header to another.
    CopyTtl,
}

impl HeaderEffect {
    /// Whether the packet may be another one behind the action.
    #[must_use]
    pub const fn rewrites(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the action may find the packet's TTL invalid, which ends the packet's way.
    #[must_use]
    pub const fn may_find_ttl_invalid(self) -> bool {
        matches!(self, Self::DecTtl(_))
    }
}

/// A header with a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlLayer {
    /// IPv4's TTL or IPv6's hop limit.
    Ip,
    /// The outermost MPLS entry's TTL.
    Mpls,
}

/// Fields that an action reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// None.
    None,
    /// Always these.
    These(&'static [Field]),
    /// The field that the arguments name as the one with this index, counted from zero.
    Named(usize),
}

impl Fields {
    /// Whether the field is one of them whatever the arguments.
    pub(super) fn always(self, field: Field) -> bool {
        matches!(self, Self::These(fields) if fields.contains(&field))
    }
}

/// The steps in which an action set is executed (clause 5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetStep {
    /// Copy TTL inwards.
    CopyTtlIn,
    /// All pops, from the outermost tag inwards.
    Pop,
    /// Push an MPLS entry.
    PushMpls,
    /// Push a PBB header.
    PushPbb,
    /// Push a VLAN tag.
    PushVlan,
    /// Copy TTL outwards.
    CopyTtlOut,
    /// Decrement TTLs.
    DecTtl,
    /// Set fields and TTLs.
    Set,
    /// Choose the queue.
    Qos,
    /// Process by a group.
    Group,
    /// Send; left out where there is a group.
    Output,
    /// Search another table; left out where there is a group or an output.
    Resubmit,
}

/// An action's place in the action set. Of the actions of one place the set holds the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InSet {
    /// No set holds it.
    Never,
    /// In this step, at this place among the step's actions.
    At(SetStep, u8),
    /// In this step after those with places, the last for each field that it writes. All that have
    /// no place stand in the order in which they were written.
    PerField(SetStep),
    /// In this step after those with places, each of them.
    Each(SetStep),
}

/// The arguments with which an action may be installed (`OFPBAC_BAD_ARGUMENT` for others).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// All that its type and its width allow, as far as the row knows.
    Any,
    /// One of these numbers.
    OneOf(&'static [u64]),
    /// Numbers without other bits than these.
    Bits(u64),
}

impl Accepts {
    /// Whether an action with these arguments may be installed.
    #[must_use]
    pub(super) fn allows(self, action: &Action) -> bool {
        let is = |allowed: &dyn Fn(u64) -> bool| action.number().is_none_or(allowed);
        match self {
            Self::Any => true,
            Self::OneOf(allowed) => is(&|number| allowed.contains(&number)),
            Self::Bits(bits) => is(&|number| number & !bits == 0),
        }
    }

    /// Number of low bits that are not written.
    pub(crate) const fn unwritten_bits(self) -> u32 {
        match self {
            Self::Bits(bits) => bits.trailing_zeros(),
            Self::Any | Self::OneOf(_) => 0,
        }
    }
}
