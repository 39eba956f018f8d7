//! The arguments of actions and instructions, by their types: all that a codec or a text must be
//! able to read and write.
//!
//! A row lists the types of its arguments and the padding between them. A codec implements
//! [`ReadArguments`] and [`WriteArguments`] once, for the types; that makes it a codec of all
//! actions and instructions, compiled to the code that would be written by hand. No bytes are known
//! here.

use super::Action;
use crate::field::Field;
use crate::id::{GroupId, MacAddr, MeterId, PortNo, QueueId, ShortPort, TableId};
use crate::learn::Learn;
use crate::members::{HashFields, Members, MultipathAlgorithm};
use crate::packet_in_reason::PacketInReason;
use crate::subfield::BitRange;
use crate::to_controller::ToController;
use std::convert::Infallible;
use std::net::Ipv4Addr;

macro_rules! arguments {
    (numbers $($(#[doc = $ndoc:literal])+ $nvariant:ident $bits:literal $nmethod:ident: $nty:ty,
        $nread:ident => $of:expr, $nwrite:ident => $into:expr;)+
    others $($(#[doc = $doc:literal])+ $variant:ident $method:ident: $read:ty, $written:ty;)+) => {
        /// Reads arguments, one after the other. All methods fail when there is no such argument.
        #[expect(clippy::missing_errors_doc, reason = "the trait's documentation has the error")]
        pub trait ReadArguments {
            /// Error of an argument that cannot be read.
            type Error;

            /// A number of at most this many bits.
            fn number(&mut self, bits: u16) -> Result<u64, Self::Error>;

            $($(#[doc = $ndoc])+
            #[inline]
            fn $nmethod(&mut self) -> Result<$nty, Self::Error> {
                self.number($bits).map(|$nread| $of)
            })+

            $($(#[doc = $doc])+
            fn $method(&mut self) -> Result<$read, Self::Error>;)+

            /// This number of bytes of padding.
            fn pad(&mut self, _bytes: usize) -> Result<(), Self::Error> {
                Ok(())
            }

            /// The same, in the version's own action; Nicira's of the same arguments has none.
            fn pad_own(&mut self, _bytes: usize) -> Result<(), Self::Error> {
                Ok(())
            }
        }

        /// Takes arguments, one after the other. All methods fail when it cannot be written.
        #[expect(clippy::missing_errors_doc, reason = "the trait's documentation has the error")]
        pub trait WriteArguments {
            /// Error of an argument that cannot be written.
            type Error;

            /// A number of at most this many bits.
            fn number(&mut self, number: u64, bits: u16) -> Result<(), Self::Error>;

            $($(#[doc = $ndoc])+
            #[inline]
            fn $nmethod(&mut self, $nwrite: $nty) -> Result<(), Self::Error> {
                self.number($into, $bits)
            })+

            $($(#[doc = $doc])+
            fn $method(&mut self, argument: $written) -> Result<(), Self::Error>;)+

            /// This number of bytes of padding.
            fn pad(&mut self, _bytes: usize) -> Result<(), Self::Error> {
                Ok(())
            }

            /// The same, in the version's own action; Nicira's of the same arguments has none.
            fn pad_own(&mut self, _bytes: usize) -> Result<(), Self::Error> {
                Ok(())
            }
        }

        /// Type of an argument: the method that reads and writes it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ArgumentType {
            $($(#[doc = $ndoc])+ $nvariant,)+
            $($(#[doc = $doc])+ $variant,)+
        }
    };
}

arguments! {
    numbers
    /// An 8-bit number.
    U8 8 u8: u8, read => u8::try_from(read).unwrap_or(u8::MAX), number => number.into();
    /// A 16-bit number.
    U16 16 u16: u16, read => u16::try_from(read).unwrap_or(u16::MAX), number => number.into();
    /// A 32-bit number.
    U32 32 u32: u32, read => u32::try_from(read).unwrap_or(u32::MAX), number => number.into();
    /// A 64-bit number.
    U64 64 u64: u64, read => read, number => number;
    /// An Ethernet address.
    Mac 48 mac: MacAddr, read => MacAddr::from_u64(read), mac => mac.to_u64();
    /// An IPv4 address.
    Ipv4 32 ipv4: Ipv4Addr, read => u32::try_from(read).unwrap_or(u32::MAX).into(),
        address => address.to_bits().into();
    /// A port number of 16 bits in every version.
    ShortPort 16 short_port: ShortPort, read => ShortPort::of(read), port => port.number().into();
    others
    /// A port number.
    Port port: PortNo, PortNo;
    /// The name of a match field: an OXM header without value and mask.
    Field field: Field, Field;
    /// A value of the field that came last, which must be one that can be set.
    Value value: u128, u128;
    /// All of a `controller` action with properties.
    ToController to_controller: ToController, &ToController;
    /// The numbers of controllers.
    ControllerIds controller_ids: Vec<u16>, &[u16];
    /// All bytes to the end.
    Bytes bytes: Vec<u8>, &[u8];
    /// All actions to the end.
    Actions actions: Vec<Action>, &[Action];
    /// All of a learn action.
    Learn learn: Learn, &Learn;
    /// All of a bundle of ports.
    Bundle members: Members, &Members;
}

/// A type that an argument can have.
pub(crate) trait Argument: Sized {
    const TYPE: ArgumentType;
    fn read<R: ReadArguments>(r: &mut R) -> Result<Self, R::Error>;
    fn write<W: WriteArguments>(&self, w: &mut W) -> Result<(), W::Error>;
    fn actions(&self) -> &[Action] {
        &[]
    }
    fn actions_mut(&mut self) -> Option<&mut Vec<Action>> {
        None
    }
}

macro_rules! argument {
    ($($ty:ty: $kind:ident $method:ident, $value:ident => $wire:expr, $number:ident => $back:expr
        $(, $more:item)*;)+) => {$(
        impl Argument for $ty {
            const TYPE: ArgumentType = ArgumentType::$kind;

            #[inline]
            fn read<R: ReadArguments>(r: &mut R) -> Result<Self, R::Error> {
                r.$method().map(|$number| $back)
            }

            #[inline]
            fn write<W: WriteArguments>(&self, w: &mut W) -> Result<(), W::Error> {
                let $value = self;
                w.$method($wire)
            }

            $($more)*
        }
    )+};
}

argument! {
    u8: U8 u8, value => *value, number => number;
    u16: U16 u16, value => *value, number => number;
    u32: U32 u32, value => *value, number => number;
    u64: U64 u64, value => *value, number => number;
    TableId: U8 u8, value => value.0, number => Self(number);
    QueueId: U32 u32, value => value.0, number => Self(number);
    GroupId: U32 u32, value => value.0, number => Self(number);
    MeterId: U32 u32, value => value.0, number => Self(number);
    BitRange: U16 u16, value => value.to_ofs_nbits(), number => Self::from_ofs_nbits(number);
    PortNo: Port port, value => *value, number => number;
    ShortPort: ShortPort short_port, value => *value, number => number;
    MacAddr: Mac mac, value => *value, number => number;
    Ipv4Addr: Ipv4 ipv4, value => *value, number => number;
    Field: Field field, value => *value, number => number;
    u128: Value value, value => *value, number => number;
    Box<Learn>: Learn learn, value => value, learn => Box::new(learn);
    Box<Members>: Bundle members, value => value, bundle => Box::new(bundle);
    HashFields: U16 u16, value => value.number(), number => Self::from_number(number);
    MultipathAlgorithm: U16 u16, value => value.number(), number => Self::from_number(number);
    PacketInReason: U8 u8, value => value.number(), number => Self::from_number(number);
    Box<ToController>: ToController to_controller, value => value, asked => Box::new(asked);
    Vec<u16>: ControllerIds controller_ids, value => value, number => number;
    Vec<u8>: Bytes bytes, value => value, number => number;
    Vec<Action>: Actions actions, value => value, list => list,
        fn actions(&self) -> &[Action] { self },
        fn actions_mut(&mut self) -> Option<&mut Vec<Action>> { Some(self) };
}

/// Names the argument of a tuple variant in a pattern.
macro_rules! bind {
    ($name:ident $arg:ty) => {
        $name
    };
}

pub(crate) use bind;

/// An enum of elements with arguments, and its key: each variant with the bytes of padding before
/// its arguments (`[n]`) and after one of them (`=> n`, or `[n]` where
/// Nicira's action has none).
macro_rules! elements {
    ($(#[doc = $about:literal])+ $name:ident $(#[doc = $kind_about:literal])+ $kind:ident
        $($(#[doc = $doc:literal])* $variant:ident $([ $before:literal ])?
        $( ( $arg:ty $(=> $end:literal)? ) )?
        $( { $($(#[doc = $fdoc:literal])* $fname:ident : $fty:ty $(=> $pad:literal)?
            $([ $own:literal ])?),+ } )?;)+)
    => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $doc])* $variant $( ($arg) )?
                $( { $($(#[doc = $fdoc])* $fname: $fty),+ } )?,)+
        }

        $(#[doc = $kind_about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $kind {
            $($(#[doc = $doc])* $variant,)+
        }

        impl $name {
            /// The row's key.
            #[must_use]
            #[inline]
            pub fn kind(&self) -> $kind {
                match self {
                    $(Self::$variant { .. } => $kind::$variant,)+
                }
            }

            /// Reads the one of a kind, by its arguments.
            ///
            /// # Errors
            /// Those of `r`.
            #[inline]
            pub fn read<R: $crate::action::ReadArguments>(
                kind: $kind,
                r: &mut R,
            ) -> Result<Self, R::Error> {
                Ok(match kind {
                    $($kind::$variant => {
                        $(r.pad($before)?;)?
                        Self::$variant
                            $( ({
                                let argument = <$arg as Argument>::read(r)?;
                                $(r.pad($end)?;)?
                                argument
                            }) )?
                            $( { $($fname: {
                                let argument = <$fty as Argument>::read(r)?;
                                $(r.pad($pad)?;)?
                                $(r.pad_own($own)?;)?
                                argument
                            }),+ } )?
                    })+
                })
            }

            /// Writes the arguments.
            ///
            /// # Errors
            /// Those of `w`.
            #[inline]
            pub fn write<W: $crate::action::WriteArguments>(
                &self,
                w: &mut W,
            ) -> Result<(), W::Error> {
                match self {
                    $(Self::$variant $( (bind!(argument $arg)) )? $( { $($fname),+ } )? => {
                        $(w.pad($before)?;)?
                        $(
                            <$arg as Argument>::write(argument, w)?;
                            $(w.pad($end)?;)?
                        )?
                        $($(
                            $fname.write(w)?;
                            $(w.pad($pad)?;)?
                            $(w.pad_own($own)?;)?
                        )+)?
                    })+
                }
                Ok(())
            }
        }
    };
}

pub(crate) use elements;

/// The fields, numbers and sizes among the arguments of an action or instruction.
#[derive(Debug, Default)]
pub(crate) struct ArgumentSummary {
    /// The fields that they name, in their order.
    pub(super) fields: [Option<Field>; 2],
    /// The first number or address.
    pub(super) number: Option<u64>,
    /// The value for a field.
    pub(super) value: Option<u128>,
    /// Bytes of lists.
    pub(crate) list_bytes: usize,
}

impl ArgumentSummary {
    /// Of the arguments that `write` writes.
    pub(crate) fn of(write: impl FnOnce(&mut Self) -> Result<(), Infallible>) -> Self {
        let mut summary = Self::default();
        match write(&mut summary) {
            Ok(()) => summary,
            Err(never) => match never {},
        }
    }
}

impl WriteArguments for ArgumentSummary {
    type Error = Infallible;

    fn number(&mut self, number: u64, _bits: u16) -> Result<(), Infallible> {
        self.number.get_or_insert(number);
        Ok(())
    }

    fn port(&mut self, port: PortNo) -> Result<(), Infallible> {
        self.u32(port.0)
    }

    fn field(&mut self, field: Field) -> Result<(), Infallible> {
        let free = self.fields.iter_mut().find(|named| named.is_none());
        *free.expect("no action names more than two fields") = Some(field);
        Ok(())
    }

    fn value(&mut self, value: u128) -> Result<(), Infallible> {
        self.value = Some(value);
        Ok(())
    }

    fn to_controller(&mut self, asked: &ToController) -> Result<(), Infallible> {
        self.list_bytes += size_of::<ToController>() + asked.userdata.len();
        Ok(())
    }

    fn controller_ids(&mut self, ids: &[u16]) -> Result<(), Infallible> {
        self.list_bytes += size_of_val(ids);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.list_bytes += bytes.len();
        Ok(())
    }

    fn learn(&mut self, learn: &Learn) -> Result<(), Infallible> {
        self.list_bytes += size_of::<Learn>() + size_of_val(learn.specs.as_slice());
        Ok(())
    }

    fn members(&mut self, bundle: &Members) -> Result<(), Infallible> {
        self.list_bytes += size_of::<Members>() + size_of_val(bundle.members.as_slice());
        bundle.dst.map_or(Ok(()), |(_, dst)| self.field(dst))
    }

    fn actions(&mut self, actions: &[Action]) -> Result<(), Infallible> {
        self.list_bytes += size_of_val(actions);
        self.list_bytes += actions.iter().map(|action| action.summary().list_bytes).sum::<usize>();
        Ok(())
    }
}
