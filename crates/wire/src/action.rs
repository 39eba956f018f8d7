//! The actions on the wire (clause 7.2.5 of 1.3, 5.2.4 of 1.0).
//!
//! Numbers and the length of the argument come from the actions' rows; only arguments of their own
//! shape are laid out here. Actions that the version does not have are translated by
//! [`compat::action`] before they are written.

use openflow::action::Shape;
use openflow::{Action, ActionKind, Error, QueueId, Version};

pub(crate) use crate::compat::action::Context;

use crate::compat;
use crate::error::EncodeError;
use crate::oxm;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// Highest VLAN id.
const VLAN_VID_MAX: u16 = 0xfff;
/// Highest VLAN priority.
const VLAN_PCP_MAX: u8 = 7;

/// Bytes behind type and length; `None` for shapes of their own.
fn body_len(shape: Shape) -> Option<usize> {
    match shape {
        Shape::Empty | Shape::U8 | Shape::U16 | Shape::U32 | Shape::Ipv4 => Some(4),
        Shape::Mac => Some(12),
        Shape::Own => None,
    }
}

/// Reads all that is left in `r` as actions.
pub(crate) fn read_list(r: Reader<'_>) -> reader::Result<Vec<Action>> {
    let mut r = r.reading("action", Error::BadActionBadLen);
    let mut actions = Vec::new();
    while !r.is_empty() {
        actions.push(read(&mut r)?);
    }
    Ok(actions)
}

fn read(r: &mut Reader<'_>) -> reader::Result<Action> {
    let start = r.clone();
    let (number, len, body) = r.element()?;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let kind = ActionKind::from_number(r.version, number)
        .ok_or_else(|| start.fault(Error::BadActionBadType))?;
    let mut body = body.reading(kind.row().text, Error::BadActionBadLen);
    if body_len(kind.row().shape).is_some_and(|len| len != body.remaining()) {
        return Err(body.bad_len());
    }
    read_argument(kind, &mut body)
}

fn read_argument(kind: ActionKind, r: &mut Reader<'_>) -> reader::Result<Action> {
    Ok(match kind {
        ActionKind::Output => return read_output(r),
        ActionKind::CopyTtlOut => Action::CopyTtlOut,
        ActionKind::CopyTtlIn => Action::CopyTtlIn,
        ActionKind::SetMplsTtl => Action::SetMplsTtl(r.u8()?),
        ActionKind::DecMplsTtl => Action::DecMplsTtl,
        ActionKind::PushVlan => Action::PushVlan(r.u16()?),
        ActionKind::PopVlan => Action::PopVlan,
        ActionKind::PushMpls => Action::PushMpls(r.u16()?),
        ActionKind::PopMpls => Action::PopMpls(r.u16()?),
        ActionKind::SetQueue => Action::SetQueue(QueueId(r.u32()?)),
        ActionKind::Group => Action::Group(openflow::GroupId(r.u32()?)),
        ActionKind::SetNwTtl => Action::SetNwTtl(r.u8()?),
        ActionKind::DecNwTtl => Action::DecNwTtl,
        ActionKind::SetField => {
            let (field, value) = oxm::read_set(r)?;
            Action::SetField { field, value }
        }
        ActionKind::PushPbb => Action::PushPbb(r.u16()?),
        ActionKind::PopPbb => Action::PopPbb,
        ActionKind::SetVlanVid => Action::SetVlanVid(at_most(r, Reader::u16, VLAN_VID_MAX)?),
        ActionKind::SetVlanPcp => Action::SetVlanPcp(at_most(r, Reader::u8, VLAN_PCP_MAX)?),
        ActionKind::StripVlan => Action::StripVlan,
        ActionKind::SetDlSrc => Action::SetDlSrc(r.mac()?),
        ActionKind::SetDlDst => Action::SetDlDst(r.mac()?),
        ActionKind::SetNwSrc => Action::SetNwSrc(r.ipv4()?),
        ActionKind::SetNwDst => Action::SetNwDst(r.ipv4()?),
        ActionKind::SetNwTos => Action::SetNwTos(r.u8()?),
        ActionKind::SetTpSrc => Action::SetTpSrc(r.u16()?),
        ActionKind::SetTpDst => Action::SetTpDst(r.u16()?),
        ActionKind::Enqueue => {
            let port = r.port()?;
            r.skip(6)?;
            let queue = QueueId(r.u32()?);
            r.finish()?;
            Action::Enqueue { port, queue }
        }
        ActionKind::Experimenter => {
            let (experimenter, data) = (r.u32()?, r.rest());
            let known = (r.version == Version::V1_0)
                .then(|| compat::action::of_vendor(experimenter, data))
                .flatten();
            known.unwrap_or_else(|| Action::Experimenter { experimenter, data: data.to_vec() })
        }
    })
}

fn read_output(r: &mut Reader<'_>) -> reader::Result<Action> {
    let port = r.port()?;
    let max_len = r.u16()?;
    if r.version == Version::V1_3 {
        r.skip(6)?;
    }
    r.finish()?;
    Ok(Action::Output { port, max_len })
}

/// A number that its field can hold, or `OFPBAC_BAD_ARGUMENT`.
fn at_most<'a, T: PartialOrd>(
    r: &mut Reader<'a>,
    read: fn(&mut Reader<'a>) -> reader::Result<T>,
    max: T,
) -> reader::Result<T> {
    let start = r.clone();
    let number = read(r)?;
    if number <= max { Ok(number) } else { Err(start.fault(Error::BadActionBadArgument)) }
}

/// Writes actions for packets of which `context` is known, translated to the version's words.
pub(crate) fn write_list(
    w: &mut Writer<'_>,
    actions: &[Action],
    context: Context,
) -> writer::Result<()> {
    let said = compat::action::translate(w.version, actions, context);
    for action in said.map_err(|what| w.unsupported(what))?.iter() {
        write(w, action)?;
    }
    Ok(())
}

fn write(w: &mut Writer<'_>, action: &Action) -> writer::Result<()> {
    let row = action.kind().row();
    let number = action.kind().number(w.version).ok_or_else(|| w.unsupported(row.text))?;
    let start = w.place();
    w.u16(number);
    w.u16(0);
    write_argument(w, action)?;
    if matches!(action, Action::Experimenter { .. }) && !(w.place() - start).is_multiple_of(8) {
        return Err(EncodeError::Invalid { what: "experimenter action of an uneven length" });
    }
    w.pad_from(start);
    w.fill_len(start + 2, start, row.text)
}

fn write_argument(w: &mut Writer<'_>, action: &Action) -> writer::Result<()> {
    match action {
        Action::Output { port, max_len } => {
            w.port(*port)?;
            w.u16(*max_len);
        }
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::PopVlan
        | Action::DecNwTtl
        | Action::PopPbb
        | Action::StripVlan => {}
        Action::SetMplsTtl(number) | Action::SetNwTtl(number) | Action::SetNwTos(number) => {
            w.u8(*number);
        }
        Action::PushVlan(number)
        | Action::PushMpls(number)
        | Action::PopMpls(number)
        | Action::PushPbb(number)
        | Action::SetTpSrc(number)
        | Action::SetTpDst(number) => w.u16(*number),
        Action::SetVlanVid(vid) if *vid > VLAN_VID_MAX => {
            return Err(EncodeError::Invalid { what: "VLAN id above 4095" });
        }
        Action::SetVlanVid(vid) => w.u16(*vid),
        Action::SetVlanPcp(pcp) if *pcp > VLAN_PCP_MAX => {
            return Err(EncodeError::Invalid { what: "VLAN priority above 7" });
        }
        Action::SetVlanPcp(pcp) => w.u8(*pcp),
        Action::SetQueue(queue) => w.u32(queue.0),
        Action::Group(group) => w.u32(group.0),
        Action::SetField { field, value } => oxm::write_set(w, *field, *value)?,
        Action::SetDlSrc(mac) | Action::SetDlDst(mac) => w.mac(*mac),
        Action::SetNwSrc(address) | Action::SetNwDst(address) => w.ipv4(*address),
        Action::Enqueue { port, queue } => {
            w.port(*port)?;
            w.zeros(6);
            w.u32(queue.0);
        }
        Action::Experimenter { experimenter, data } => {
            w.u32(*experimenter);
            w.bytes(data);
        }
    }
    Ok(())
}
