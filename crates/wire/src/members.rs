//! The arguments of Nicira's bundles of ports on the wire (`nx_action_bundle`, in Open vSwitch's
//! `ofp-actions.c`): a head of fixed length, and the members.

use openflow::members::{BundleAlgorithm, HashFields};
use openflow::{BitRange, Error, Members, PortNo, ShortPort, Version};

use crate::error::EncodeError;
use crate::nxm::IN_PORT;
use crate::oxm;
use crate::reader::{ReadResult, Reader};
use crate::writer::{WriteResult, Writer};

/// Most members of a bundle (`BUNDLE_MAX_MEMBERS`).
const MEMBERS_MAX: u16 = 2_048;

/// Zeros before the members.
const PAD: usize = 4;

pub(crate) fn read(r: &mut Reader<'_>) -> ReadResult<Members> {
    let start = r.clone();
    let bad = || start.fault(Error::BadActionBadArgument);
    let algorithm = BundleAlgorithm::from_number(r.u16()?);
    let fields = HashFields::from_number(r.u16()?);
    let basis = r.u16()?;
    let (kind, count) = (r.u32()?, r.u16()?);
    if kind != IN_PORT || count > MEMBERS_MAX {
        return Err(bad());
    }
    let bits = r.u16()?;
    let has_field = r.clone().u32()? != 0;
    let dst = if has_field {
        Some((BitRange::from_ofs_nbits(bits), oxm::read_field(r, Version::NEWEST)?))
    } else {
        r.skip(size_of::<u32>())?;
        None
    };
    let is_clear = r.bytes(PAD)?.iter().all(|byte| *byte == 0);
    if !is_clear || dst.is_none() && bits != 0 {
        return Err(bad());
    }
    let mut members = Vec::with_capacity(usize::from(count).min(r.remaining()));
    for _ in 0..count {
        let port = PortNo::of_short(r.u16()?.into()).and_then(ShortPort::new);
        members.push(port.ok_or_else(bad)?);
    }
    Ok(Members { fields, basis, algorithm, members, dst })
}

pub(crate) fn write(w: &mut Writer<'_>, bundle: &Members) -> WriteResult<()> {
    let count = u16::try_from(bundle.members.len()).ok().filter(|count| *count <= MEMBERS_MAX);
    let count = count.ok_or(EncodeError::Invalid { what: "bundle of more than 2048 members" })?;
    w.u16(bundle.algorithm.number());
    w.u16(bundle.fields.number());
    w.u16(bundle.basis);
    w.u32(IN_PORT);
    w.u16(count);
    w.u16(bundle.dst.map_or(0, |(bits, _)| bits.to_ofs_nbits()));
    match bundle.dst {
        Some((_, field)) => oxm::write_nxm_field(w, field),
        None => w.u32(0),
    }
    w.zeros(PAD);
    bundle.members.iter().for_each(|member| w.u16(member.number()));
    Ok(())
}
