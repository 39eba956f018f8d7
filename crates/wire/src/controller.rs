//! Arguments of Nicira's actions that name controllers: properties of `NXAST_CONTROLLER2`, ids of
//! `NXAST_DEC_TTL_CNT_IDS`.

use openflow::message::PacketInReason;
use openflow::{MeterId, ToController};

use crate::error::EncodeError;
use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// Properties (`NXAC2PT_*`).
const MAX_LEN: u16 = 0;
const CONTROLLER_ID: u16 = 1;
const REASON: u16 = 2;
const USERDATA: u16 = 3;
const PAUSE: u16 = 4;
const METER_ID: u16 = 5;

/// Padding after the number of ids.
const IDS_PAD: usize = 4;

/// Reads all that is left in `r` as properties.
pub(crate) fn read(r: &mut Reader<'_>) -> reader::ReadResult<ToController> {
    let mut asked = ToController::default();
    property::read_all(r, Unknown::Refused, |number, body| {
        match number {
            MAX_LEN => asked.max_len = padded(body, Reader::u16)?,
            CONTROLLER_ID => asked.controller_id = padded(body, Reader::u16)?,
            REASON => asked.reason = PacketInReason::from_number(padded(body, Reader::u8)?),
            USERDATA => asked.userdata = body.rest().to_vec(),
            PAUSE => asked.pauses = true,
            // Zero is no meter.
            METER_ID => asked.meter = Some(MeterId(body.u32()?)).filter(|meter| meter.0 != 0),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(asked)
}

/// A number that may have padding within the length of its property.
fn padded<'a, T>(
    body: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> reader::ReadResult<T>,
) -> reader::ReadResult<T> {
    let number = read(body)?;
    body.rest();
    Ok(number)
}

/// Those that differ from the defaults, in the order of Open vSwitch.
pub(crate) fn write(w: &mut Writer<'_>, asked: &ToController) -> writer::WriteResult<()> {
    let default = ToController::default();
    if asked.max_len != default.max_len {
        property::write(w, MAX_LEN, |w| padded_u16(w, asked.max_len))?;
    }
    if asked.controller_id != default.controller_id {
        property::write(w, CONTROLLER_ID, |w| padded_u16(w, asked.controller_id))?;
    }
    if asked.reason != default.reason {
        property::write(w, REASON, |w| w.u8(asked.reason.number()))?;
    }
    if !asked.userdata.is_empty() {
        property::write(w, USERDATA, |w| w.bytes(&asked.userdata))?;
    }
    if asked.pauses {
        property::write(w, PAUSE, |_| ())?;
    }
    match asked.meter {
        Some(meter) => property::write(w, METER_ID, |w| w.u32(meter.0)),
        None => Ok(()),
    }
}

/// A number of 16 bits, with the padding that Open vSwitch counts in.
fn padded_u16(w: &mut Writer<'_>, number: u16) {
    w.u16(number);
    w.zeros(2);
}

pub(crate) fn read_ids(r: &mut Reader<'_>) -> reader::ReadResult<Vec<u16>> {
    let count = r.u16()?;
    r.skip(IDS_PAD)?;
    (0..count).map(|_| r.u16()).collect()
}

pub(crate) fn write_ids(w: &mut Writer<'_>, ids: &[u16]) -> writer::WriteResult<()> {
    let too_many = |_| EncodeError::Invalid { what: "more controllers than a number has room for" };
    w.u16(u16::try_from(ids.len()).map_err(too_many)?);
    w.zeros(IDS_PAD);
    ids.iter().for_each(|id| w.u16(*id));
    Ok(())
}
