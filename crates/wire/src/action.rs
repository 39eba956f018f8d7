//! The actions on the wire (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! Numbers and the types of the arguments come from the actions' rows; here stands how an argument
//! of each type is laid out, so that a new action needs nothing here. Actions that the version does
//! not have are translated by [`compat::action`] before they are written.

use std::net::Ipv4Addr;

use openflow::action::{ReadArguments, WriteArguments};
use openflow::{Action, ActionKind, Error, Field, MacAddr, PortNo};

pub(crate) use crate::compat::action::Context;

use crate::compat;
use crate::error::{EncodeError, Fault};
use crate::oxm;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// Reads all that is left in `r` as actions.
pub(crate) fn read_list(r: Reader<'_>) -> reader::ReadResult<Vec<Action>> {
    let mut r = r.reading("action", Error::BadActionBadLen);
    let mut actions = Vec::new();
    while !r.is_empty() {
        actions.push(read(&mut r)?);
    }
    Ok(actions)
}

fn read(r: &mut Reader<'_>) -> reader::ReadResult<Action> {
    let start = r.clone();
    let (number, len, body) = r.element()?;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let kind = ActionKind::from_number(r.version, number)
        .ok_or_else(|| start.fault(Error::BadActionBadType))?;
    let row = kind.row();
    let mut body = body.reading(row.text, Error::BadActionBadLen);
    let argument = body.clone();
    let mut reading = Reading { r: &mut body, field: None };
    let action = Action::read(kind, &mut reading)?;
    let padding = (len - body.remaining()).next_multiple_of(8) - (len - body.remaining());
    body.skip(padding)?;
    body.finish()?;
    if row.bits.is_some_and(|bits| action.number().is_some_and(|number| number >> bits != 0)) {
        return Err(argument.fault(Error::BadActionBadArgument));
    }
    let Action::Experimenter { experimenter, data } = action else { return Ok(action) };
    let known =
        if r.version.has_push() { None } else { compat::action::of_vendor(experimenter, &data) };
    Ok(known.unwrap_or(Action::Experimenter { experimenter, data }))
}

/// Reads arguments from the bytes of an action.
struct Reading<'r, 'a> {
    r: &'r mut Reader<'a>,
    /// The field that was named last, with its OXM header's place.
    field: Option<(Field, Reader<'a>)>,
}

impl ReadArguments for Reading<'_, '_> {
    type Error = Fault;

    #[inline]
    fn u8(&mut self) -> reader::ReadResult<u8> {
        self.r.u8()
    }

    #[inline]
    fn u16(&mut self) -> reader::ReadResult<u16> {
        self.r.u16()
    }

    #[inline]
    fn u32(&mut self) -> reader::ReadResult<u32> {
        self.r.u32()
    }

    #[inline]
    fn port(&mut self) -> reader::ReadResult<PortNo> {
        self.r.port()
    }

    #[inline]
    fn mac(&mut self) -> reader::ReadResult<MacAddr> {
        self.r.mac()
    }

    #[inline]
    fn ipv4(&mut self) -> reader::ReadResult<Ipv4Addr> {
        self.r.ipv4()
    }

    #[inline]
    fn field(&mut self) -> reader::ReadResult<Field> {
        let start = self.r.clone();
        let field = oxm::read_field(self.r)?;
        self.field = Some((field, start));
        Ok(field)
    }

    #[inline]
    fn value(&mut self) -> reader::ReadResult<u128> {
        match self.field.take() {
            Some((field, start)) => oxm::read_value(self.r, field, &start),
            None => Err(self.r.bad_len()),
        }
    }

    #[inline]
    fn rest(&mut self) -> reader::ReadResult<Vec<u8>> {
        Ok(self.r.rest().to_vec())
    }

    #[inline]
    fn pad(&mut self, bytes: usize) -> reader::ReadResult<()> {
        self.r.skip(bytes)
    }
}

/// Writes actions for packets of which `context` is known, translated to the version's words.
pub(crate) fn write_list(
    w: &mut Writer<'_>,
    actions: &[Action],
    context: Context,
) -> writer::WriteResult<()> {
    let said = compat::action::translate(w.version, actions, context);
    for action in said.map_err(|what| w.unsupported(what))?.iter() {
        write(w, action)?;
    }
    Ok(())
}

fn write(w: &mut Writer<'_>, action: &Action) -> writer::WriteResult<()> {
    let row = action.kind().row();
    let number = action.kind().number(w.version).ok_or_else(|| w.unsupported(row.text))?;
    let start = w.place();
    w.u16(number);
    w.u16(0);
    if row.bits.is_some_and(|bits| action.number().is_some_and(|number| number >> bits != 0)) {
        return Err(EncodeError::Invalid { what: row.text });
    }
    action.write(&mut Writing { w, field: None })?;
    if matches!(action, Action::Experimenter { .. }) && !(w.place() - start).is_multiple_of(8) {
        return Err(EncodeError::Invalid { what: "experimenter action of an uneven length" });
    }
    w.pad_from(start);
    w.fill_len(start + 2, start, row.text)
}

/// Appends arguments to the bytes of an action.
struct Writing<'w, 'a> {
    w: &'w mut Writer<'a>,
    /// The field that was named last.
    field: Option<Field>,
}

impl WriteArguments for Writing<'_, '_> {
    type Error = EncodeError;

    #[inline]
    fn u8(&mut self, number: u8) -> writer::WriteResult<()> {
        self.w.u8(number);
        Ok(())
    }

    #[inline]
    fn u16(&mut self, number: u16) -> writer::WriteResult<()> {
        self.w.u16(number);
        Ok(())
    }

    #[inline]
    fn u32(&mut self, number: u32) -> writer::WriteResult<()> {
        self.w.u32(number);
        Ok(())
    }

    #[inline]
    fn port(&mut self, port: PortNo) -> writer::WriteResult<()> {
        self.w.port(port)
    }

    #[inline]
    fn mac(&mut self, mac: MacAddr) -> writer::WriteResult<()> {
        self.w.mac(mac);
        Ok(())
    }

    #[inline]
    fn ipv4(&mut self, address: Ipv4Addr) -> writer::WriteResult<()> {
        self.w.ipv4(address);
        Ok(())
    }

    #[inline]
    fn field(&mut self, field: Field) -> writer::WriteResult<()> {
        self.field = Some(field);
        oxm::write_field(self.w, field);
        Ok(())
    }

    #[inline]
    fn value(&mut self, value: u128) -> writer::WriteResult<()> {
        match self.field {
            Some(field) => oxm::write_value(self.w, field, value),
            None => Err(EncodeError::Invalid { what: "value of no field" }),
        }
    }

    #[inline]
    fn rest(&mut self, bytes: &[u8]) -> writer::WriteResult<()> {
        self.w.bytes(bytes);
        Ok(())
    }

    #[inline]
    fn pad(&mut self, bytes: usize) -> writer::WriteResult<()> {
        self.w.zeros(bytes);
        Ok(())
    }
}
