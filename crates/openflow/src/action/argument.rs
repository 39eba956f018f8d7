//! The arguments of actions, by their types: what a codec or a text must be able to say.
//!
//! An action's row lists the types of its arguments and the padding between them. A codec
//! implements [`ReadArguments`] and [`WriteArguments`] once, for the types; that makes it a codec
//! of all actions, compiled to the code that would be written by hand. No bytes are known here.

use crate::field::Field;
use crate::id::{GroupId, MacAddr, PortNo, QueueId};
use std::net::Ipv4Addr;

/// Reads arguments, one after the other.
pub trait ReadArguments {
    /// Why it cannot be read.
    type Error;

    /// An 8-bit number.
    ///
    /// # Errors
    /// As all of these: when there is no such argument here.
    fn u8(&mut self) -> Result<u8, Self::Error>;
    /// A 16-bit number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn u16(&mut self) -> Result<u16, Self::Error>;
    /// A 32-bit number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn u32(&mut self) -> Result<u32, Self::Error>;
    /// A port number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn port(&mut self) -> Result<PortNo, Self::Error>;
    /// An Ethernet address.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn mac(&mut self) -> Result<MacAddr, Self::Error>;
    /// An IPv4 address.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn ipv4(&mut self) -> Result<Ipv4Addr, Self::Error>;
    /// The name of a match field: an OXM header without value and mask.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn field(&mut self) -> Result<Field, Self::Error>;
    /// A value of the field that was read last, which must be one that can be set.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn value(&mut self) -> Result<u128, Self::Error>;
    /// All bytes that are left.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn rest(&mut self) -> Result<Vec<u8>, Self::Error>;
    /// So many bytes of padding.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn pad(&mut self, bytes: usize) -> Result<(), Self::Error>;
}

/// Takes arguments, one after the other.
pub trait WriteArguments {
    /// Why it cannot be written.
    type Error;

    /// An 8-bit number.
    ///
    /// # Errors
    /// As all of these: when the number cannot be said.
    fn u8(&mut self, number: u8) -> Result<(), Self::Error>;
    /// A 16-bit number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn u16(&mut self, number: u16) -> Result<(), Self::Error>;
    /// A 32-bit number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn u32(&mut self, number: u32) -> Result<(), Self::Error>;
    /// A port number.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn port(&mut self, port: PortNo) -> Result<(), Self::Error>;
    /// An Ethernet address.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn mac(&mut self, mac: MacAddr) -> Result<(), Self::Error>;
    /// An IPv4 address.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn ipv4(&mut self, address: Ipv4Addr) -> Result<(), Self::Error>;
    /// The name of a match field.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn field(&mut self, field: Field) -> Result<(), Self::Error>;
    /// A value of the field that was written last.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn value(&mut self, value: u128) -> Result<(), Self::Error>;
    /// Bytes to the end.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn rest(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
    /// So many bytes of padding.
    ///
    /// # Errors
    /// See [`Self::u8`].
    fn pad(&mut self, bytes: usize) -> Result<(), Self::Error>;
}

/// A type that an argument can have.
pub(super) trait Argument: Sized {
    fn read<R: ReadArguments>(r: &mut R) -> Result<Self, R::Error>;
    fn write<W: WriteArguments>(&self, w: &mut W) -> Result<(), W::Error>;
}

macro_rules! argument {
    ($($ty:ty: $method:ident, $value:ident => $wire:expr, $number:ident => $back:expr;)+) => {$(
        impl Argument for $ty {
            #[inline]
            fn read<R: ReadArguments>(r: &mut R) -> Result<Self, R::Error> {
                r.$method().map(|$number| $back)
            }

            #[inline]
            fn write<W: WriteArguments>(&self, w: &mut W) -> Result<(), W::Error> {
                let $value = self;
                w.$method($wire)
            }
        }
    )+};
}

argument! {
    u8: u8, value => *value, number => number;
    u16: u16, value => *value, number => number;
    u32: u32, value => *value, number => number;
    QueueId: u32, value => value.0, number => Self(number);
    GroupId: u32, value => value.0, number => Self(number);
    PortNo: port, value => *value, number => number;
    MacAddr: mac, value => *value, number => number;
    Ipv4Addr: ipv4, value => *value, number => number;
    Field: field, value => *value, number => number;
    u128: value, value => *value, number => number;
    Vec<u8>: rest, value => value, number => number;
}

/// What the arguments of an action are, for those who ask for fields and numbers only.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// The fields that they name, in their order.
    pub(super) fields: [Option<Field>; 2],
    /// The first number or address.
    pub(super) number: Option<u64>,
    /// The value for a field.
    pub(super) value: Option<u128>,
}

impl Noted {
    fn number(&mut self, number: u64) -> Result<(), std::convert::Infallible> {
        self.number.get_or_insert(number);
        Ok(())
    }
}

impl WriteArguments for Noted {
    type Error = std::convert::Infallible;

    fn u8(&mut self, number: u8) -> Result<(), Self::Error> {
        self.number(number.into())
    }

    fn u16(&mut self, number: u16) -> Result<(), Self::Error> {
        self.number(number.into())
    }

    fn u32(&mut self, number: u32) -> Result<(), Self::Error> {
        self.number(number.into())
    }

    fn port(&mut self, port: PortNo) -> Result<(), Self::Error> {
        self.number(port.0.into())
    }

    fn mac(&mut self, mac: MacAddr) -> Result<(), Self::Error> {
        self.number(mac.to_u64())
    }

    fn ipv4(&mut self, address: Ipv4Addr) -> Result<(), Self::Error> {
        self.number(address.to_bits().into())
    }

    fn field(&mut self, field: Field) -> Result<(), Self::Error> {
        let free = self.fields.iter_mut().find(|noted| noted.is_none());
        *free.expect("no action names more than two fields") = Some(field);
        Ok(())
    }

    fn value(&mut self, value: u128) -> Result<(), Self::Error> {
        self.value = Some(value);
        Ok(())
    }

    fn rest(&mut self, _bytes: &[u8]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn pad(&mut self, _bytes: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}
