//! A match: `ofp_match` of 1.3 as a list of OXM fields (clause 7.2.3), of 1.0 as the twelve-tuple.

use openflow::{Error, Match, Version};

use crate::compat;
use crate::oxm;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPMT_OXM`; the only other type, `OFPMT_STANDARD`, is 1.1's.
const TYPE_OXM: u16 = 1;

/// Whether a match without a field's prerequisite is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prerequisites {
    /// Refused: the match selects packets or entries.
    Checked,
    /// Accepted: the match describes a packet, or an entry that a switch has.
    Unchecked,
}

/// Reads a match and its padding.
pub(crate) fn read(r: &mut Reader<'_>, prerequisites: Prerequisites) -> reader::Result<Match> {
    match r.version {
        Version::V1_0 => compat::matching::read(r),
        Version::V1_3 => read_oxm(r, prerequisites),
    }
}

fn read_oxm(r: &mut Reader<'_>, prerequisites: Prerequisites) -> reader::Result<Match> {
    let start = r.clone().reading("match", Error::BadMatchBadLen);
    let mut inner = start.clone();
    let (number, len, mut fields) = inner.element()?;
    if number != TYPE_OXM {
        return Err(start.fault(Error::BadMatchBadType));
    }
    inner.skip(len.next_multiple_of(8) - len)?;
    let mut matching = Match::any();
    while !fields.is_empty() {
        oxm::read_into(&mut fields, &mut matching)?;
    }
    if prerequisites == Prerequisites::Checked {
        matching.check_prerequisites().map_err(|error| start.fault(error))?;
    }
    r.skip(len.next_multiple_of(8))?;
    Ok(matching)
}

/// Writes a match and its padding.
pub(crate) fn write(w: &mut Writer<'_>, matching: &Match) -> writer::Result<()> {
    match w.version {
        Version::V1_0 => compat::matching::write(w, matching),
        Version::V1_3 => {
            let start = w.place();
            w.u16(TYPE_OXM);
            w.u16(0);
            for held in matching.fields() {
                oxm::write(w, held);
            }
            w.fill_len(start + 2, start, "match")?;
            w.pad_from(start);
            Ok(())
        }
    }
}
