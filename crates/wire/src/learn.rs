//! The arguments of a learn action on the wire (Nicira's `nx_action_learn`, in Open vSwitch's
//! `ofp-actions.c`): a head of fixed length, and parts of the entry up to a zero or to the end.
//!
//! Two of Nicira's fields are parts of others here: that of a port's 16 bits, and that of the whole
//! VLAN tag.

use openflow::learn::{LearnFlags, LearnSource, LearnSpec, LearnTarget};
use openflow::{Cookie, Error, Field, Learn, TableId, Version};

use crate::nxm::{IN_PORT, PCP_OFFSET, VLAN_TCI};
use crate::oxm;
use crate::reader::{ReadResult, Reader};
use crate::writer::{WriteResult, Writer};

/// Bits of the head of a part: its number of bits, the use of it, and that the value stands there.
const N_BITS: u16 = 0x7ff;
const TARGET: u16 = 3 << 11;
const LOAD: u16 = 1 << 11;
const OUTPUT: u16 = 2 << 11;
const IMMEDIATE: u16 = 1 << 13;

/// Bits of `NXM_OF_IN_PORT` and of `NXM_OF_VLAN_TCI`.
const WIDTH: u16 = 16;

/// Bits of the widest field, and of the widest value.
const WIDEST: u16 = 128;

pub(crate) fn read(r: &mut Reader<'_>) -> ReadResult<Learn> {
    let start = r.clone();
    let (idle_timeout_s, hard_timeout_s, priority) = (r.u16()?, r.u16()?, r.u16()?);
    let cookie = Cookie(r.u64()?);
    let flags = LearnFlags::from_bits_retain(r.u16()?);
    let table = TableId(r.u8()?);
    let pad = r.u8()?;
    let fin_timeouts_s = [r.u16()?, r.u16()?];
    let known = LearnFlags::SEND_FLOW_REM | LearnFlags::DELETE_LEARNED;
    if pad != 0 || !known.contains(flags) || table == TableId::ALL {
        return Err(start.fault(Error::BadActionBadArgument));
    }
    let mut specs = Vec::new();
    while r.remaining() >= 2 {
        let start = r.clone();
        let head = r.u16()?;
        if head == 0 {
            break;
        }
        specs.push(read_spec(r, head, &start)?);
    }
    let rest = r.clone();
    if r.rest().iter().any(|byte| *byte != 0) {
        return Err(rest.fault(Error::BadActionBadArgument));
    }
    Ok(Learn {
        idle_timeout_s,
        hard_timeout_s,
        priority,
        cookie,
        flags,
        table,
        fin_timeouts_s,
        specs,
    })
}

fn read_spec(r: &mut Reader<'_>, head: u16, start: &Reader<'_>) -> ReadResult<LearnSpec> {
    let bad = || start.fault(Error::BadActionBadArgument);
    let n_bits = head & N_BITS;
    let target = head & TARGET;
    let is_immediate = head & IMMEDIATE != 0;
    let is_known = head & !(N_BITS | TARGET | IMMEDIATE) == 0 && target != TARGET;
    if !is_known || n_bits == 0 || is_immediate && target == OUTPUT {
        return Err(bad());
    }
    let source = if is_immediate {
        if n_bits > WIDEST {
            return Err(start.fault(Error::BadActionBadSetLen));
        }
        let bytes = r.bytes(usize::from(n_bits.div_ceil(16)) * 2)?;
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        if n_bits < WIDEST && value >> n_bits != 0 {
            return Err(bad());
        }
        LearnSource::Immediate(value)
    } else {
        let (field, offset) = read_part(r, n_bits)?;
        LearnSource::Field(field, offset)
    };
    let target = match target {
        OUTPUT => LearnTarget::Output,
        LOAD => {
            let (field, offset) = read_part(r, n_bits)?;
            LearnTarget::Load(field, offset)
        }
        _ => {
            let (field, offset) = read_part(r, n_bits)?;
            LearnTarget::Match(field, offset)
        }
    };
    Ok(LearnSpec { n_bits, source, target })
}

/// A field and the lowest bit of the part of it.
fn read_part(r: &mut Reader<'_>, n_bits: u16) -> ReadResult<(Field, u16)> {
    let start = r.clone();
    let header = r.clone().u32()?;
    if header != IN_PORT && header != VLAN_TCI {
        let field = oxm::read_field(r, Version::NEWEST)?;
        let offset = r.u16()?;
        if offset.saturating_add(n_bits) > field.row().bits {
            return Err(start.fault(Error::BadActionBadSetLen));
        }
        return Ok((field, offset));
    }
    r.skip(4)?;
    let offset = r.u16()?;
    let end = offset.saturating_add(n_bits);
    if end > WIDTH {
        return Err(start.fault(Error::BadActionBadSetLen));
    }
    if header == IN_PORT {
        return Ok((Field::InPort, offset));
    }
    if end <= PCP_OFFSET {
        return Ok((Field::VlanVid, offset));
    }
    let offset = offset.checked_sub(PCP_OFFSET);
    // No field has the id and the priority.
    offset
        .map(|offset| (Field::VlanPcp, offset))
        .ok_or_else(|| start.fault(Error::BadActionBadSetLen))
}

pub(crate) fn write(w: &mut Writer<'_>, learn: &Learn) -> WriteResult<()> {
    w.u16(learn.idle_timeout_s);
    w.u16(learn.hard_timeout_s);
    w.u16(learn.priority);
    w.u64(learn.cookie.0);
    w.u16(learn.flags.bits());
    w.u8(learn.table.0);
    w.zeros(1);
    learn.fin_timeouts_s.into_iter().for_each(|seconds| w.u16(seconds));
    learn.specs.iter().try_for_each(|spec| write_spec(w, spec))
}

fn write_spec(w: &mut Writer<'_>, spec: &LearnSpec) -> WriteResult<()> {
    let source = match spec.source {
        LearnSource::Immediate(_) => IMMEDIATE,
        LearnSource::Field(..) => 0,
    };
    let target = match spec.target {
        LearnTarget::Match(..) => 0,
        LearnTarget::Load(..) => LOAD,
        LearnTarget::Output => OUTPUT,
    };
    w.require((1..=WIDEST).contains(&spec.n_bits), "part of a learnt entry")?;
    w.u16(source | target | spec.n_bits);
    match spec.source {
        LearnSource::Immediate(value) => {
            let bytes = value.to_be_bytes();
            let len = usize::from(spec.n_bits.div_ceil(16)) * 2;
            w.bytes(bytes.get(bytes.len() - len..).unwrap_or(&bytes));
        }
        LearnSource::Field(field, offset) => write_part(w, field, offset, spec.n_bits),
    }
    match spec.target {
        LearnTarget::Match(field, offset) | LearnTarget::Load(field, offset) => {
            write_part(w, field, offset, spec.n_bits);
        }
        LearnTarget::Output => {}
    }
    Ok(())
}

fn write_part(w: &mut Writer<'_>, field: Field, offset: u16, n_bits: u16) {
    if field == Field::InPort && offset.saturating_add(n_bits) <= WIDTH {
        w.u32(IN_PORT);
    } else if field == Field::VlanVid && n_bits < Field::VlanVid.row().bits {
        w.u32(VLAN_TCI);
    } else {
        oxm::write_nxm_field(w, field);
    }
    w.u16(offset);
}
