//! A match: `ofp_match` of 1.3 as a list of OXM fields (clause 7.2.3), of 1.0 as the twelve-tuple,
//! of 1.1 as its successor with masks.

use openflow::field::FIELDS;
use openflow::{Error, Match};

use crate::layout;
use crate::oxm;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPMT_OXM`; the only other type, `OFPMT_STANDARD`, is 1.1's.
pub(crate) const TYPE_OXM: u16 = 1;

/// Purpose of a match, which decides how much of it must be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It selects packets or entries: every field must be known, with its prerequisites.
    Select,
    /// It describes an entry that a switch has: every field must be known.
    Report,
    /// It says what a packet-in's frame does not show: unknown fields are left out, since a switch
    /// may always say more.
    Context,
}

/// Reads a match and its padding.
pub(crate) fn read(r: &mut Reader<'_>, purpose: Purpose) -> reader::ReadResult<Match> {
    (layout::MATCH.of(r.version).read)(r, purpose)
}

pub(crate) fn read_oxm(r: &mut Reader<'_>, purpose: Purpose) -> reader::ReadResult<Match> {
    let start = r.clone().reading("match", Error::BadMatchBadLen);
    let mut inner = start.clone();
    let (number, len, mut fields) = inner.element()?;
    if number != TYPE_OXM {
        return Err(start.fault(Error::BadMatchBadType));
    }
    inner.skip(len.next_multiple_of(8) - len)?;
    // Most fields have six bytes or more: one allocation.
    let mut matching = Match::with_room((fields.remaining() / 6).min(FIELDS.len()));
    while !fields.is_empty() {
        match (oxm::read_into(&mut fields, &mut matching), purpose) {
            (Err(fault), Purpose::Context) if fault.error == Error::BadMatchBadField => {}
            (read, Purpose::Select | Purpose::Report | Purpose::Context) => read?,
        }
    }
    if purpose == Purpose::Select {
        matching.check_prerequisites().map_err(|error| start.fault(error))?;
    }
    r.skip(len.next_multiple_of(8))?;
    Ok(matching)
}

/// Writes a match and its padding.
pub(crate) fn write(w: &mut Writer<'_>, matching: &Match) -> writer::WriteResult<()> {
    (layout::MATCH.of(w.version).write)(w, matching)
}

pub(crate) fn write_oxm(w: &mut Writer<'_>, matching: &Match) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(TYPE_OXM);
    w.u16(0);
    for held in matching.fields() {
        oxm::write(w, held)?;
    }
    w.fill_len(start + 2, start, "match")?;
    w.pad_from(start);
    Ok(())
}
