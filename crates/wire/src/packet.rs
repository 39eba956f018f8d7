//! Packets between switch and controller: packet-in and packet-out (clauses 7.4.1 and 7.3.7).
//!
//! 1.0's packet-in carries the ingress port alone: table, cookie and the other fields of the match
//! are not carried, which is 1.0's meaning and not an error; in 1.1 the table and the physical port
//! are, in 1.2 all but the cookie. Their packet-out with ingress port 0 is read as one without a
//! port where there is no error for it. That of 1.5 has a match in place of the port, which is all
//! that it may have: tables see no other field of the pipeline of such a packet.

use openflow::message::{PacketIn, PacketInReason, PacketOut};
use openflow::translate::Context;
use openflow::{Action, Cookie, Error, Field, Match, PortNo, TableId};

use crate::action;
use crate::matching::{self, Purpose};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read_in_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    let (buffer_id, total_len) = (r.buffer_id()?, r.u16()?);
    let matching = Match::any().with(Field::InPort, r.port()?.0.into());
    let reason = PacketInReason::from_number_in(r.version, r.u8()?);
    r.skip(1)?;
    let (table_id, cookie) = (TableId(0), Cookie(u64::MAX));
    let data = r.rest().to_vec();
    let (userdata, continuation) = (Vec::new(), Vec::new());
    Ok(PacketIn {
        buffer_id,
        total_len,
        reason,
        table_id,
        cookie,
        matching,
        data,
        userdata,
        continuation,
        controller_id: 0,
    })
}

pub(crate) fn read_in_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    let buffer_id = r.buffer_id()?;
    let (in_port, in_phy_port) = (r.port()?, r.port()?);
    let mut matching = Match::any().with(Field::InPort, in_port.0.into());
    if in_phy_port != in_port {
        matching = matching.with(Field::InPhyPort, in_phy_port.0.into());
    }
    let total_len = r.u16()?;
    let reason = PacketInReason::from_number_in(r.version, r.u8()?);
    let (table_id, cookie) = (TableId(r.u8()?), Cookie(u64::MAX));
    let data = r.rest().to_vec();
    let (userdata, continuation) = (Vec::new(), Vec::new());
    Ok(PacketIn {
        buffer_id,
        total_len,
        reason,
        table_id,
        cookie,
        matching,
        data,
        userdata,
        continuation,
        controller_id: 0,
    })
}

pub(crate) fn read_in_v1_2(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    read_in(r, |_| Ok(Cookie(u64::MAX)))
}

pub(crate) fn read_in_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<PacketIn> {
    read_in(r, |r| r.u64().map(Cookie))
}

fn read_in<'a>(
    r: &mut Reader<'a>,
    cookie: impl Fn(&mut Reader<'a>) -> reader::ReadResult<Cookie>,
) -> reader::ReadResult<PacketIn> {
    let (buffer_id, total_len) = (r.buffer_id()?, r.u16()?);
    let reason = PacketInReason::from_number_in(r.version, r.u8()?);
    let (table_id, cookie) = (TableId(r.u8()?), cookie(r)?);
    let matching = matching::read(r, Purpose::Context)?;
    r.skip(2)?;
    let data = r.rest().to_vec();
    let (userdata, continuation) = (Vec::new(), Vec::new());
    Ok(PacketIn {
        buffer_id,
        total_len,
        reason,
        table_id,
        cookie,
        matching,
        data,
        userdata,
        continuation,
        controller_id: 0,
    })
}

pub(crate) fn write_in_v1_0(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    w.buffer_id(packet.buffer_id)?;
    w.u16(packet.total_len);
    let port = packet.in_port();
    w.port(port.ok_or_else(|| w.unsupported("packet-in without an ingress port"))?)?;
    w.u8(packet.reason.nearest_in(w.version).number());
    w.zeros(1);
    w.bytes(&packet.data);
    Ok(())
}

pub(crate) fn write_in_v1_1(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    w.buffer_id(packet.buffer_id)?;
    let port = packet.in_port();
    let port = port.ok_or_else(|| w.unsupported("packet-in without an ingress port"))?;
    let physical = packet.matching.exact(Field::InPhyPort).and_then(|it| u32::try_from(it).ok());
    w.port(port)?;
    w.port(physical.map_or(port, PortNo))?;
    w.u16(packet.total_len);
    w.u8(packet.reason.nearest_in(w.version).number());
    w.u8(packet.table_id.0);
    w.bytes(&packet.data);
    Ok(())
}

pub(crate) fn write_in_v1_2(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    write_in(w, packet, None)
}

pub(crate) fn write_in_v1_3(w: &mut Writer<'_>, packet: &PacketIn) -> writer::WriteResult<()> {
    write_in(w, packet, Some(packet.cookie))
}

fn write_in(
    w: &mut Writer<'_>,
    packet: &PacketIn,
    cookie: Option<Cookie>,
) -> writer::WriteResult<()> {
    w.buffer_id(packet.buffer_id)?;
    w.u16(packet.total_len);
    w.u8(packet.reason.nearest_in(w.version).number());
    w.u8(packet.table_id.0);
    cookie.into_iter().for_each(|cookie| w.u64(cookie.0));
    matching::write(w, &packet.matching)?;
    w.zeros(2);
    w.bytes(&packet.data);
    Ok(())
}

pub(crate) fn read_out_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<PacketOut> {
    let start = r.clone();
    let buffer_id = r.buffer_id()?;
    let in_port = match r.port()? {
        // No port has this number. Controllers mean none by it where there is no error for that.
        PortNo(0) if !r.version.has_bad_port_code() => PortNo::ANY,
        port => port,
    };
    let actions_len = usize::from(r.u16()?);
    r.skip_padding(&start, 8)?;
    let actions = read_actions(r, actions_len)?;
    Ok(PacketOut { buffer_id, in_port, actions, data: r.rest().to_vec() })
}

fn read_actions(r: &mut Reader<'_>, len: usize) -> reader::ReadResult<Vec<Action>> {
    if len > r.remaining() {
        return Err(r.fault_in(Error::BadRequestBadLen, "length of the actions"));
    }
    action::read_list(r.part(len)?)
}

pub(crate) fn read_out_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<PacketOut> {
    let buffer_id = r.buffer_id()?;
    let actions_len = usize::from(r.u16()?);
    r.skip(2)?;
    let start = r.clone();
    let matching = matching::read(r, Purpose::Select)?;
    let other = matching.fields().iter().find(|held| held.field != Field::InPort);
    if let Some(held) = other {
        let row = held.field.row();
        return Err(start.fault_in(
            match row.place.is_beside_packet() {
                true => Error::BadMatchBadField,
                false => Error::BadRequestPipelineFieldsOnly,
            },
            row.name,
        ));
    }
    let in_port = matching.exact(Field::InPort).and_then(|value| u32::try_from(value).ok());
    let in_port = in_port.ok_or_else(|| start.fault_in(Error::BadRequestBadPort, "in_port"))?;
    let (in_port, actions) = (PortNo(in_port), read_actions(r, actions_len)?);
    Ok(PacketOut { buffer_id, in_port, actions, data: r.rest().to_vec() })
}

pub(crate) fn write_out_v1_5(w: &mut Writer<'_>, packet: &PacketOut) -> writer::WriteResult<()> {
    w.buffer_id(packet.buffer_id)?;
    let len_at = w.place();
    w.zeros(4);
    matching::write(w, &Match::any().with(Field::InPort, packet.in_port.0.into()))?;
    let start = w.place();
    action::write_list(w, &packet.actions, Context::default())?;
    w.fill_len(len_at, start, "actions of a packet-out")?;
    w.bytes(&packet.data);
    Ok(())
}

pub(crate) fn write_out_v1_0(w: &mut Writer<'_>, packet: &PacketOut) -> writer::WriteResult<()> {
    let header = w.place();
    w.buffer_id(packet.buffer_id)?;
    w.port(packet.in_port)?;
    let len_at = w.place();
    w.u16(0);
    w.pad_from(header);
    let start = w.place();
    action::write_list(w, &packet.actions, Context::default())?;
    w.fill_len(len_at, start, "actions of a packet-out")?;
    w.bytes(&packet.data);
    Ok(())
}
