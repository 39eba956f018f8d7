//! Properties (1.4 and later): elements of a type and a length at the end of a structure, each
//! padded to eight bytes.
//!
//! Here stand the numbers of all of them and the way to read and to write a list; the body of each
//! is laid out in the file of its structure.

use openflow::Error;

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPPDPT_ETHERNET`, `OFPPMPT_ETHERNET` and `OFPPSPT_ETHERNET`: of an Ethernet port.
pub(crate) const ETHERNET: u16 = 0;
/// `OFPTMPT_EVICTION`.
pub(crate) const EVICTION: u16 = 2;
/// `OFPTMPT_VACANCY`.
pub(crate) const VACANCY: u16 = 3;
/// `OFPQDPT_MIN_RATE`.
pub(crate) const MIN_RATE: u16 = 1;
/// `OFPQDPT_MAX_RATE`.
pub(crate) const MAX_RATE: u16 = 2;
/// `OFPGBPT_WEIGHT`.
pub(crate) const WEIGHT: u16 = 0;
/// `OFPGBPT_WATCH_PORT`.
pub(crate) const WATCH_PORT: u16 = 1;
/// `OFPGBPT_WATCH_GROUP`.
pub(crate) const WATCH_GROUP: u16 = 2;
/// `OFPBPT_TIME`.
pub(crate) const BUNDLE_TIME: u16 = 1;
/// Somebody's own, of every structure.
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// Treatment of the properties that Weir does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are left out: a switch may always say more.
    LeftOut,
    /// A request with one cannot be carried out.
    Refused,
}

/// Reads all that is left in `r` as properties. `read` says whether it knows the number. A request
/// has each property once.
///
/// The faults are those of `OFPET_BAD_PROPERTY`.
pub(crate) fn read_all(
    r: &mut Reader<'_>,
    unknown: Unknown,
    mut read: impl FnMut(u16, &mut Reader<'_>) -> reader::ReadResult<bool>,
) -> reader::ReadResult<()> {
    let mut r = r.part(r.remaining())?.reading("property", Error::BadPropertyBadLen);
    // The properties that are known have numbers below 64.
    let mut seen = 0_u64;
    while !r.is_empty() {
        let start = r.clone();
        let (number, len, mut body) = r.element()?;
        r.skip(len.next_multiple_of(8) - len)?;
        let is_known = read(number, &mut body)?;
        if is_known {
            body.finish()?;
        }
        if unknown == Unknown::Refused {
            let bit = 1_u64.checked_shl(number.into()).unwrap_or_default();
            if !is_known {
                return Err(start.fault(match number {
                    EXPERIMENTER => Error::BadPropertyBadExperimenter,
                    _ => Error::BadPropertyBadType,
                }));
            }
            if seen & bit != 0 {
                return Err(start.fault(Error::BadPropertyDupType));
            }
            seen |= bit;
        }
    }
    Ok(())
}

/// Writes a property and its padding.
pub(crate) fn write(
    w: &mut Writer<'_>,
    number: u16,
    body: impl FnOnce(&mut Writer<'_>),
) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(number);
    w.u16(0);
    body(w);
    w.fill_len(start + 2, start, "property")?;
    w.pad_from(start);
    Ok(())
}
