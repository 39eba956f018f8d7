//! The actions on the wire (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! Numbers and the types of the arguments come from the actions' rows; here stands how an argument
//! of each type is laid out, so that a new action needs nothing here. Actions that the version does
//! not have are translated by [`openflow::translate`] before they are written.

use openflow::action::{CLONES_DEEP_MAX, METER, ReadArguments, WriteArguments};
use openflow::error::NICIRA;
use openflow::translate::{self, Context};
use openflow::{
    Action, ActionKind, BitRange, Error, Field, Learn, Members, MeterId, PortNo, ToController,
    Version,
};

use crate::error::{EncodeError, Fault};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{controller, learn, members, oxm};

/// Length of the meter among the actions of 1.5.
const METER_LEN: u16 = 8;

/// Reads all that is left in `r` as actions.
pub(crate) fn read_list(r: Reader<'_>) -> reader::ReadResult<Vec<Action>> {
    read_inner(r, 0)
}

/// The same of a list that lies in so many clones.
fn read_inner(r: Reader<'_>, depth: usize) -> reader::ReadResult<Vec<Action>> {
    let mut r = r.reading("action", Error::BadActionBadLen);
    let mut actions = r.list();
    let may_be_masked = r.version.has_masked_set_field();
    while !r.is_empty() {
        if may_be_masked && read_masked(&mut r, &mut actions)? {
            continue;
        }
        actions.push(read(&mut r, depth)?);
    }
    Ok(actions)
}

/// Reads a set-field with a mask, if it is one, as loads of the bits that it sets.
#[cold]
fn read_masked(r: &mut Reader<'_>, actions: &mut Vec<Action>) -> reader::ReadResult<bool> {
    let start = r.clone();
    let mut ahead = r.clone();
    let (number, len, body) = ahead.element()?;
    let is_set = ActionKind::from_number(r.version, number) == Some(ActionKind::SetField);
    if !is_set || !oxm::has_mask(body.clone()) {
        return Ok(false);
    }
    if !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let body = body.reading(ActionKind::SetField.row().text, Error::BadActionBadLen);
    let (dst, value, mask) = oxm::read_masked(body)?;
    *r = ahead;
    if mask == dst.full_mask() {
        actions.push(Action::set_field(dst, value));
        return Ok(true);
    }
    let mut left = mask;
    while left != 0 {
        let offset = left.trailing_zeros();
        let n_bits = (left >> offset).trailing_ones().min(u64::BITS);
        let bits = BitRange { offset: offset as u16, n_bits: n_bits as u16 };
        actions.push(Action::Load { bits, dst, value: bits.of(value) as u64 });
        left &= !bits.mask();
    }
    Ok(true)
}

/// Reads the meter that a list of actions begins with, if it does.
pub(crate) fn read_meter(r: &mut Reader<'_>) -> reader::ReadResult<Option<MeterId>> {
    let mut ahead = r.clone().reading("meter", Error::BadActionBadLen);
    if ahead.is_empty() {
        return Ok(None);
    }
    let start = ahead.clone();
    let (number, len, mut body) = ahead.element()?;
    if number != METER {
        return Ok(None);
    }
    if len != usize::from(METER_LEN) {
        return Err(start.bad_len());
    }
    *r = ahead;
    Ok(Some(MeterId(body.u32()?)))
}

pub(crate) fn write_meter(w: &mut Writer<'_>, meter: MeterId) {
    w.u16(METER);
    w.u16(METER_LEN);
    w.u32(meter.0);
}

fn read(r: &mut Reader<'_>, depth: usize) -> reader::ReadResult<Action> {
    let start = r.clone();
    let (number, len, body) = r.element()?;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let kind = ActionKind::from_number(r.version, number).ok_or_else(|| {
        let is_meter = number == METER && r.version.has_meter_action();
        start.fault(match is_meter {
            true => Error::BadActionUnsupportedOrder,
            false => Error::BadActionBadType,
        })
    })?;
    let is_foreign = kind == ActionKind::Experimenter;
    let known = if is_foreign { nicira(body.clone()) } else { None };
    let is_nicira = known.is_some();
    let (kind, body) = known.unwrap_or((kind, body));
    let row = kind.row();
    let mut body = body.reading(row.text, Error::BadActionBadLen);
    let offset = body.offset();
    let mut arguments = Reading { is_nicira, depth, ..Reading::of(&mut body) };
    let action = Action::read(kind, &mut arguments)?;
    let padding = (len - body.remaining()).next_multiple_of(8) - (len - body.remaining());
    body.skip(padding)?;
    body.finish()?;
    if row.bits.is_some_and(|bits| action.number().is_some_and(|number| number >> bits != 0)) {
        return Err(Fault { error: Error::BadActionBadArgument, what: row.text, offset });
    }
    let Action::Load { bits, dst, value } = action else { return Ok(action) };
    if !r.version.has_masked_set_field() {
        return Ok(action);
    }
    let fail = |error| Fault { error, what: row.text, offset };
    as_set_field(bits, dst, value).map_err(fail)
}

/// A load of Nicira's in a version whose set-fields have masks, and no other form for it: that of a
/// whole field is a set-field, as Open vSwitch reads it, and one that no set-field says is refused.
fn as_set_field(bits: BitRange, dst: Field, value: u64) -> Result<Action, Error> {
    if !dst.row().settable {
        return Err(Error::BadActionBadSetType);
    }
    if !bits.is_within(dst) {
        return Err(Error::BadActionBadSetLen);
    }
    if u128::from(value) > bits.largest() {
        return Err(Error::BadActionBadSetArgument);
    }
    if bits == BitRange::all(dst) {
        return Ok(Action::set_field(dst, value.into()));
    }
    Ok(Action::Load { bits, dst, value })
}

/// The action of Nicira's that an experimenter's body is, if it is one that Weir has, and its
/// arguments.
fn nicira(mut arguments: Reader<'_>) -> Option<(ActionKind, Reader<'_>)> {
    if arguments.u32().ok()? != NICIRA {
        return None;
    }
    let subtype = arguments.u16().ok()?;
    Some((ActionKind::from_nicira(arguments.version, subtype)?, arguments))
}

/// Reads arguments from the bytes of an action or instruction.
pub(crate) struct Reading<'r, 'a> {
    r: &'r mut Reader<'a>,
    /// The field that was named last, with its OXM header's place.
    field: Option<(Field, Reader<'a>)>,
    /// Whether fields are named as Nicira's actions name them: those of all versions.
    is_nicira: bool,
    /// Number of clones that these lie in.
    depth: usize,
}

impl<'r, 'a> Reading<'r, 'a> {
    pub(crate) fn of(r: &'r mut Reader<'a>) -> Self {
        Self { r, field: None, is_nicira: false, depth: 0 }
    }
}

impl ReadArguments for Reading<'_, '_> {
    type Error = Fault;

    #[inline]
    fn number(&mut self, bits: u16) -> reader::ReadResult<u64> {
        Ok(match bits {
            8 => self.r.u8()?.into(),
            16 => self.r.u16()?.into(),
            32 => self.r.u32()?.into(),
            48 => self.r.mac()?.to_u64(),
            _ => self.r.u64()?,
        })
    }

    #[inline]
    fn port(&mut self) -> reader::ReadResult<PortNo> {
        self.r.port()
    }

    #[inline]
    fn field(&mut self) -> reader::ReadResult<Field> {
        let start = self.r.clone();
        let version = if self.is_nicira { Version::NEWEST } else { self.r.version };
        let field = oxm::read_field(self.r, version)?;
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

    fn to_controller(&mut self) -> reader::ReadResult<ToController> {
        controller::read(self.r)
    }

    fn controller_ids(&mut self) -> reader::ReadResult<Vec<u16>> {
        controller::read_ids(self.r)
    }

    #[inline]
    fn bytes(&mut self) -> reader::ReadResult<Vec<u8>> {
        Ok(self.r.rest().to_vec())
    }

    fn learn(&mut self) -> reader::ReadResult<Learn> {
        learn::read(self.r)
    }

    fn members(&mut self) -> reader::ReadResult<Members> {
        members::read(self.r)
    }

    fn actions(&mut self) -> reader::ReadResult<Vec<Action>> {
        // Those of an instruction lie in none.
        let depth = self.depth + usize::from(self.is_nicira);
        if depth > CLONES_DEEP_MAX {
            return Err(self.r.fault(Error::BadActionTooMany));
        }
        read_inner(self.r.part(self.r.remaining())?, depth)
    }

    #[inline]
    fn pad(&mut self, bytes: usize) -> reader::ReadResult<()> {
        self.r.skip(bytes)
    }

    fn pad_own(&mut self, bytes: usize) -> reader::ReadResult<()> {
        if self.is_nicira { Ok(()) } else { self.r.skip(bytes) }
    }
}

/// Writes actions for packets of which `context` is known, translated to the version.
pub(crate) fn write_list(
    w: &mut Writer<'_>,
    actions: &[Action],
    context: Context,
) -> writer::WriteResult<()> {
    let translated = translate::translate(w.version, actions, context);
    for action in translated.map_err(|why| w.unsupported(why.action()))?.iter() {
        write(w, action)?;
    }
    Ok(())
}

fn write(w: &mut Writer<'_>, action: &Action) -> writer::WriteResult<()> {
    let kind = action.kind();
    let row = kind.row();
    let (number, subtype) = match kind.number(w.version) {
        Some(number) => (number, None),
        None if w.version.has_masked_set_field() && kind == ActionKind::Load => {
            return write_masked(w, action);
        }
        None => nicira_number(w, kind)?,
    };
    let start = w.place();
    // The length comes after the number.
    w.u32(u32::from(number) << 16);
    if let Some(subtype) = subtype {
        w.u32(NICIRA);
        w.u16(subtype);
    }
    if row.bits.is_some_and(|bits| action.number().is_some_and(|number| number >> bits != 0)) {
        return Err(EncodeError::Invalid { what: row.text });
    }
    let is_nicira = subtype.is_some();
    action.write(&mut Writing { is_nicira, ..Writing::to(w, Context::default()) })?;
    if matches!(action, Action::Experimenter { .. }) && !(w.place() - start).is_multiple_of(8) {
        return Err(EncodeError::Invalid { what: "experimenter action of an uneven length" });
    }
    w.pad_from(start);
    w.fill_len(start + 2, start, row.text)
}

/// Writes a load as the set-field with a mask that it is.
#[cold]
fn write_masked(w: &mut Writer<'_>, action: &Action) -> writer::WriteResult<()> {
    let Action::Load { bits, dst, value } = action else { return Ok(()) };
    let row = ActionKind::SetField.row();
    let start = w.place();
    w.u16(ActionKind::SetField.number(w.version).ok_or_else(|| w.unsupported(row.text))?);
    w.u16(0);
    oxm::write_masked(w, *dst, bits.place((*value).into()), bits.mask())?;
    w.pad_from(start);
    w.fill_len(start + 2, start, row.text)
}

/// The numbers by which a version without an action of its own has Nicira's.
#[cold]
fn nicira_number(w: &Writer<'_>, kind: ActionKind) -> writer::WriteResult<(u16, Option<u16>)> {
    let number = ActionKind::Experimenter.number(w.version);
    let unsupported = || w.unsupported(kind.row().text);
    let subtype = kind.row().nicira.ok_or_else(unsupported)?;
    Ok((number.ok_or_else(unsupported)?, Some(subtype)))
}

/// Appends arguments to the bytes of an action or instruction.
pub(crate) struct Writing<'w, 'a> {
    w: &'w mut Writer<'a>,
    /// The field that was named last.
    field: Option<Field>,
    /// For the actions among them.
    context: Context,
    /// Whether fields are named as Nicira's actions name them.
    is_nicira: bool,
}

impl<'w, 'a> Writing<'w, 'a> {
    pub(crate) fn to(w: &'w mut Writer<'a>, context: Context) -> Self {
        Self { w, field: None, context, is_nicira: false }
    }
}

impl WriteArguments for Writing<'_, '_> {
    type Error = EncodeError;

    #[inline]
    fn number(&mut self, number: u64, bits: u16) -> writer::WriteResult<()> {
        let bytes = number.to_be_bytes();
        self.w.bytes(bytes.get(8 - usize::from(bits / 8)..).unwrap_or(&bytes));
        Ok(())
    }

    #[inline]
    fn port(&mut self, port: PortNo) -> writer::WriteResult<()> {
        self.w.port(port)
    }

    #[inline]
    fn field(&mut self, field: Field) -> writer::WriteResult<()> {
        self.field = Some(field);
        if self.is_nicira {
            oxm::write_nxm_field(self.w, field);
            return Ok(());
        }
        oxm::write_field(self.w, field)
    }

    #[inline]
    fn value(&mut self, value: u128) -> writer::WriteResult<()> {
        match self.field {
            Some(field) => oxm::write_value(self.w, field, value),
            None => Err(EncodeError::Invalid { what: "value of no field" }),
        }
    }

    fn to_controller(&mut self, asked: &ToController) -> writer::WriteResult<()> {
        controller::write(self.w, asked)
    }

    fn controller_ids(&mut self, ids: &[u16]) -> writer::WriteResult<()> {
        controller::write_ids(self.w, ids)
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> writer::WriteResult<()> {
        self.w.bytes(bytes);
        Ok(())
    }

    fn learn(&mut self, learn: &Learn) -> writer::WriteResult<()> {
        learn::write(self.w, learn)
    }

    fn members(&mut self, bundle: &Members) -> writer::WriteResult<()> {
        members::write(self.w, bundle)
    }

    fn actions(&mut self, actions: &[Action]) -> writer::WriteResult<()> {
        write_list(self.w, actions, self.context)
    }

    #[inline]
    fn pad(&mut self, bytes: usize) -> writer::WriteResult<()> {
        self.w.zeros(bytes);
        Ok(())
    }

    fn pad_own(&mut self, bytes: usize) -> writer::WriteResult<()> {
        self.w.zeros(if self.is_nicira { 0 } else { bytes });
        Ok(())
    }
}
