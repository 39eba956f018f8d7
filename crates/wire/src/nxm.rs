//! Nicira's extensible match, `nx_match`: by it OpenFlow 1.0 of Open vSwitch names any match field.
//!
//! Its entries are laid out as OXM's, under numbers of their own where Nicira had the field before
//! OpenFlow. Four are others than the match fields: the ingress port has 16 bits, the VLAN tag is
//! one number of 16 bits, the DSCP stands in its byte, and a cookie limits a request to some
//! entries.

use openflow::field::VID_PRESENT;
use openflow::{Cookie, Error, Field, Match, MatchField, PortNo};

use crate::compat::{port_from_v1_0, port_to_v1_0};
use crate::matching::Purpose;
use crate::oxm;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `NXM_OF_IN_PORT`, `NXM_OF_VLAN_TCI`, `NXM_OF_IP_TOS` and `NXM_NX_COOKIE`, without a mask.
pub(crate) const IN_PORT: u32 = 0x0000_0002;
pub(crate) const VLAN_TCI: u32 = 0x0000_0802;
const IP_TOS: u32 = 0x0000_0a01;
const COOKIE: u32 = 0x0001_3c08;

/// Lowest bit of the priority in a VLAN tag, and of the DSCP in its byte.
pub(crate) const PCP_OFFSET: u16 = 13;
const DSCP_SHIFT: u32 = 2;

/// A match, and the cookies of the entries that a request is limited to.
#[derive(Clone, Debug, Default)]
pub(crate) struct NxMatch {
    pub(crate) matching: Match,
    pub(crate) cookie: Cookie,
    pub(crate) cookie_mask: u64,
}

/// Reads a match of `len` bytes and its padding.
///
/// The faults are those of OXM; `OFPBMC_BAD_FIELD` is one for a cookie, too, where the match
/// describes an entry.
pub(crate) fn read(
    r: &mut Reader<'_>,
    len: usize,
    purpose: Purpose,
) -> reader::ReadResult<NxMatch> {
    let start = r.clone().reading("nx_match", Error::BadMatchBadLen);
    let mut inner = start.clone();
    let found = read_entries(&mut inner.part(len)?, purpose)?;
    if purpose == Purpose::Select {
        found.matching.check_prerequisites().map_err(|error| start.fault(error))?;
    }
    r.skip(len.next_multiple_of(8))?;
    Ok(found)
}

/// Reads all that is left as entries of a match. Those of OXM are taken, too.
pub(crate) fn read_entries(
    entries: &mut Reader<'_>,
    purpose: Purpose,
) -> reader::ReadResult<NxMatch> {
    let mut found = NxMatch::default();
    while !entries.is_empty() {
        let entry = entries.clone();
        match (read_entry(entries, &mut found), purpose) {
            (Err(fault), Purpose::Context) if fault.error == Error::BadMatchBadField => {}
            (read, Purpose::Select | Purpose::Report | Purpose::Context) => read?,
        }
        if found.cookie_mask != 0 && purpose != Purpose::Select {
            return Err(entry.fault(Error::BadMatchBadField));
        }
    }
    Ok(found)
}

fn read_entry(r: &mut Reader<'_>, found: &mut NxMatch) -> reader::ReadResult<()> {
    let start = r.clone();
    let mut peeked = r.clone();
    let (header, has_mask) = oxm::split_mask(peeked.u32()?);
    let fail = |error, what| start.fault_in(error, what);
    let matching = &mut found.matching;
    match header {
        IN_PORT if !has_mask => {
            let port = port_from_v1_0(peeked.u16()?);
            let mask = Field::InPort.full_mask();
            let added = matching.add(Field::InPort, port.0.into(), mask);
            added.map_err(|error| fail(error, "in_port"))?;
        }
        VLAN_TCI => {
            let tci = peeked.u16()?;
            let mask = if has_mask { peeked.u16()? } else { u16::MAX };
            add_tci(matching, tci & mask, mask).map_err(|error| fail(error, "vlan_tci"))?;
        }
        IP_TOS if !has_mask => {
            let tos = peeked.u8()?;
            if tos & 3 != 0 {
                return Err(fail(Error::BadMatchBadValue, "ip_tos"));
            }
            let (field, dscp) = (Field::IpDscp, u128::from(tos >> DSCP_SHIFT));
            let added = matching.add(field, dscp, field.full_mask());
            added.map_err(|error| fail(error, "ip_tos"))?;
        }
        COOKIE => {
            if found.cookie_mask != 0 {
                return Err(fail(Error::BadMatchDupField, "cookie"));
            }
            found.cookie = Cookie(peeked.u64()?);
            found.cookie_mask = if has_mask { peeked.u64()? } else { u64::MAX };
        }
        IN_PORT | IP_TOS => return Err(fail(Error::BadMatchBadMask, "nx_match")),
        _ => return oxm::read_nxm_into(r, matching),
    }
    *r = peeked;
    Ok(())
}

/// Adds the id and the priority of a VLAN tag, or that there is none.
fn add_tci(matching: &mut Match, tci: u16, mask: u16) -> Result<(), Error> {
    let low = |number: u16| u128::from(number) & Field::VlanVid.full_mask();
    let high = |number: u16| u128::from(number >> PCP_OFFSET);
    let has_no_tag = low(mask) & VID_PRESENT != 0 && low(tci) & VID_PRESENT == 0;
    if has_no_tag && tci != 0 {
        return Err(Error::BadMatchBadValue);
    }
    if low(mask) != 0 {
        matching.add(Field::VlanVid, low(tci), low(mask))?;
    }
    // Without a tag the priority is zero, and no field.
    if high(mask) != 0 && !has_no_tag {
        matching.add(Field::VlanPcp, high(tci), high(mask))?;
    }
    Ok(())
}

/// Writes a match and its padding: the bytes of the match alone, for the length before it.
pub(crate) fn write(w: &mut Writer<'_>, all: &NxMatch) -> writer::WriteResult<u16> {
    let start = w.place();
    let matching = &all.matching;
    for held in matching.fields() {
        let (field, pcp) = (held.field, matching.get(Field::VlanPcp));
        if field == Field::InPort {
            let port = u32::try_from(held.value).ok().and_then(|no| port_to_v1_0(PortNo(no)));
            w.u32(IN_PORT);
            w.u16(port.ok_or_else(|| w.unsupported("port number above 16 bits"))?);
        } else if field == Field::VlanVid {
            write_tci(w, Some(held), pcp);
        } else if field == Field::IpDscp {
            w.u32(IP_TOS);
            w.u8((held.value << DSCP_SHIFT) as u8);
        } else if field != Field::VlanPcp {
            oxm::write_nxm(w, held);
        } else if matching.get(Field::VlanVid).is_none() {
            write_tci(w, None, pcp);
        }
    }
    if all.cookie_mask != 0 {
        write_masked(w, COOKIE, all.cookie_mask == u64::MAX, |w, is_mask| {
            w.u64(if is_mask { all.cookie_mask } else { all.cookie.0 & all.cookie_mask });
        });
    }
    let len = u16::try_from(w.place() - start);
    w.pad_from(start);
    len.map_err(|_| crate::EncodeError::TooLong { what: "nx_match" })
}

fn write_tci(w: &mut Writer<'_>, vid: Option<&MatchField>, pcp: Option<&MatchField>) {
    let no_tag = vid.is_some_and(|vid| vid.value == 0 && vid.is_exact());
    let part = |of: fn(&MatchField) -> u128| {
        let [vid, pcp] = [vid, pcp].map(|held| held.map_or(0, of) as u16);
        vid | pcp << PCP_OFFSET
    };
    let (tci, mask) = match no_tag {
        true => (0, u16::MAX),
        false => (part(|held| held.value), part(|held| held.mask)),
    };
    write_masked(w, VLAN_TCI, mask == u16::MAX, |w, is_mask| {
        w.u16(if is_mask { mask } else { tci });
    });
}

/// Writes an entry of this header with its value and, unless it is exact, its mask.
fn write_masked(
    w: &mut Writer<'_>,
    header: u32,
    is_exact: bool,
    number: impl Fn(&mut Writer<'_>, bool),
) {
    w.u32(if is_exact { header } else { oxm::with_mask(header) });
    number(w, false);
    if !is_exact {
        number(w, true);
    }
}
