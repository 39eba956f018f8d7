//! A whole message: its type byte leads to the body's file, its length is checked at both ends.
//!
//! Only dispatch stands here; each body is read and written in the file of its concept.

use openflow::error::{NICIRA, ONF};
use openflow::{Error, Message, MessageKind, Version, Xid};

use crate::error::{DecodeError, EncodeError, Fault};
use crate::forms::Forms;
use crate::header::{Frame, HEADER_LEN};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{
    bundle, error_message, experimenter, hello, layout, meter, multipart, nicira, port, queue,
    role, switch, table,
};

/// The message that a whole frame holds.
///
/// # Errors
/// The protocol's error for what is wrong: `OFPBRC_BAD_LEN` when the frame is not as long as its
/// header says or its body is too short or too long, `OFPBRC_BAD_VERSION` for versions that Weir
/// does not speak, `OFPBRC_BAD_TYPE` for unknown messages, and those of actions, matches and so on.
/// The first message of a connection may have any version: see [`crate::decode_hello`].
pub fn decode(frame: &[u8]) -> Result<(Version, Xid, Message), DecodeError> {
    decode_in(frame, Forms::default())
}

/// As [`decode`], on a connection whose controller has chosen these forms of messages.
///
/// # Errors
/// As [`decode`].
pub fn decode_in(frame: &[u8], forms: Forms) -> Result<(Version, Xid, Message), DecodeError> {
    let frame = Frame::parse(frame)?;
    let header = frame.header();
    let fail = |fault| DecodeError::new(Some(header), fault);
    let version = header.known_version().ok_or_else(|| {
        fail(Fault { error: Error::BadRequestBadVersion, what: "header's version", offset: 0 })
    })?;
    let kind = MessageKind::from_number(version, header.message_type).ok_or_else(|| {
        fail(Fault { error: Error::BadRequestBadType, what: "header's type", offset: 1 })
    })?;
    let known = match kind == MessageKind::Experimenter {
        true => as_known(version, frame.body()),
        false => None,
    };
    let (known, body, offset) = known.unwrap_or((Known::Kind(kind), frame.body(), HEADER_LEN));
    let name = if let Known::Kind(kind) = known { kind.row().name } else { "message of Nicira's" };
    let mut body = Reader::new(version, body, offset, name);
    body.forms = forms;
    let message = match known {
        Known::Kind(kind) => read_body(kind, &mut body),
        Known::OfNicira(read) => read(&mut body),
    };
    // One match, so that the message is moved once.
    match message {
        Ok(message) if body.is_empty() => Ok((version, header.xid, message)),
        Ok(_) => Err(fail(body.bad_len())),
        Err(fault) => Err(fail(fault)),
    }
}

/// The reader of a message that an experimenter message is.
#[derive(Clone, Copy)]
enum Known {
    /// As the version lays it out.
    Kind(MessageKind),
    /// In Nicira's form.
    OfNicira(nicira::Read),
}

/// The message that an experimenter message is: one of ONF may be one that later versions have by
/// a number of their own, one of Nicira a standard one in another form. Its body, and the body's
/// offset.
#[cold]
fn as_known(version: Version, body: &[u8]) -> Option<(Known, &[u8], usize)> {
    let (head, body) = body.split_first_chunk::<8>()?;
    let [a, b, c, d, exp_type @ ..] = *head;
    let exp_type = u32::from_be_bytes(exp_type);
    let known = match u32::from_be_bytes([a, b, c, d]) {
        ONF => Known::Kind(MessageKind::from_onf_type(version, exp_type)?),
        NICIRA => Known::OfNicira(nicira::reader_of(version, exp_type)?),
        _ => return None,
    };
    Some((known, body, HEADER_LEN + head.len()))
}

fn read_body(kind: MessageKind, r: &mut Reader<'_>) -> reader::ReadResult<Message> {
    Ok(match kind {
        MessageKind::Hello => Message::Hello(hello::read(r)),
        MessageKind::Error => Message::Error(error_message::read(r)?),
        MessageKind::EchoRequest => Message::EchoRequest(r.rest().to_vec()),
        MessageKind::EchoReply => Message::EchoReply(r.rest().to_vec()),
        MessageKind::Experimenter => Message::Experimenter(experimenter::read(r)?),
        MessageKind::FeaturesRequest => Message::FeaturesRequest,
        MessageKind::FeaturesReply => Message::FeaturesReply(layout::FEATURES.read(r)?),
        MessageKind::GetConfigRequest => Message::GetConfigRequest,
        MessageKind::GetConfigReply => Message::GetConfigReply(switch::read_config(r)?),
        MessageKind::SetConfig => Message::SetConfig(switch::read_config(r)?),
        MessageKind::PacketIn => Message::PacketIn(layout::PACKET_IN.read(r)?),
        MessageKind::FlowRemoved => Message::FlowRemoved(layout::FLOW_REMOVED.read(r)?),
        MessageKind::PortStatus => Message::PortStatus(port::read_status(r)?),
        MessageKind::PacketOut => Message::PacketOut(layout::PACKET_OUT.read(r)?),
        MessageKind::FlowMod => Message::FlowMod(layout::FLOW_MOD.read(r)?),
        MessageKind::GroupMod => Message::GroupMod(layout::GROUP_MOD.read(r)?),
        MessageKind::PortMod => Message::PortMod(layout::PORT_MOD.read(r)?),
        MessageKind::TableMod => Message::TableMod(layout::TABLE_MOD.read(r)?),
        MessageKind::MultipartRequest => Message::MultipartRequest(multipart::read_request(r)?),
        MessageKind::MultipartReply => Message::MultipartReply(multipart::read_reply(r)?),
        MessageKind::BarrierRequest => Message::BarrierRequest,
        MessageKind::BarrierReply => Message::BarrierReply,
        MessageKind::QueueGetConfigRequest => {
            Message::QueueGetConfigRequest(queue::read_config_request(r)?)
        }
        MessageKind::QueueGetConfigReply => Message::QueueGetConfigReply(queue::read_config(r)?),
        MessageKind::RoleRequest => Message::RoleRequest(role::read_role(r)?),
        MessageKind::RoleReply => Message::RoleReply(role::read_role(r)?),
        MessageKind::GetAsyncRequest => Message::GetAsyncRequest,
        MessageKind::GetAsyncReply => Message::GetAsyncReply(layout::ASYNC_CONFIG.read(r)?),
        MessageKind::SetAsync => Message::SetAsync(layout::ASYNC_CHANGE.read(r)?),
        MessageKind::MeterMod => Message::MeterMod(meter::read_mod(r)?),
        MessageKind::RoleStatus => Message::RoleStatus(role::read_status(r)?),
        MessageKind::TableStatus => Message::TableStatus(table::read_status(r)?),
        MessageKind::RequestForward => Message::RequestForward(r.rest().to_vec()),
        MessageKind::BundleControl => Message::BundleControl(bundle::read_control(r)?),
        MessageKind::BundleAdd => Message::BundleAdd(bundle::read_add(r)?),
        MessageKind::ControllerStatus => Message::ControllerStatus(role::read_controller(r)?),
    })
}

/// The frame that says `message` in `version`.
///
/// # Errors
/// [`EncodeError::Unsupported`] for what the version cannot say, [`EncodeError::TooLong`] for what
/// does not fit its length field (a multipart reply is split by [`crate::ReplyFrames`]),
/// [`EncodeError::Invalid`] for a message that contradicts itself.
pub fn encode(version: Version, xid: Xid, message: &Message) -> Result<Vec<u8>, EncodeError> {
    let mut frame = Vec::new();
    encode_into(&mut frame, version, xid, message)?;
    Ok(frame)
}

/// Appends the frame that says `message` in `version` to `out`, which stays as it was on an error.
///
/// # Errors
/// As [`encode`].
pub fn encode_into(
    out: &mut Vec<u8>,
    version: Version,
    xid: Xid,
    message: &Message,
) -> Result<(), EncodeError> {
    encode_in(out, Forms::default(), version, xid, message)
}

/// As [`encode_into`], on a connection whose controller has chosen these forms of messages.
///
/// # Errors
/// As [`encode`].
pub fn encode_in(
    out: &mut Vec<u8>,
    forms: Forms,
    version: Version,
    xid: Xid,
    message: &Message,
) -> Result<(), EncodeError> {
    let mut w = Writer::new(version, out);
    w.forms = forms;
    let start = w.place();
    let written = write_whole(&mut w, xid, message).and_then(|()| finish(&mut w, start));
    if written.is_err() {
        w.take_back(start);
    }
    written
}

fn write_whole(w: &mut Writer<'_>, xid: Xid, message: &Message) -> writer::WriteResult<()> {
    let chosen = w.forms != Forms::default();
    let Some(exp_type) = chosen.then(|| nicira::type_of(w, message)).flatten() else {
        write_header(w, xid, message.kind())?;
        return write_body(w, message);
    };
    write_header(w, xid, MessageKind::Experimenter)?;
    w.u32(NICIRA);
    w.u32(exp_type);
    nicira::write(w, message)
}

/// Begins a frame; its length is filled in by [`finish`].
pub(crate) fn write_header(
    w: &mut Writer<'_>,
    xid: Xid,
    kind: MessageKind,
) -> writer::WriteResult<()> {
    let Some(number) = kind.number(w.version) else { return write_onf_header(w, xid, kind) };
    // In one piece: each asks whether there is room.
    let [a, b, c, d] = xid.0.to_be_bytes();
    w.bytes(&[w.version.number(), number, 0, 0, a, b, c, d]);
    Ok(())
}

/// The header of a message that the version has as one of ONF's, if it has it at all.
#[cold]
fn write_onf_header(w: &mut Writer<'_>, xid: Xid, kind: MessageKind) -> writer::WriteResult<()> {
    let exp_type = kind.onf_type(w.version).ok_or_else(|| w.unsupported(kind.row().name))?;
    write_header(w, xid, MessageKind::Experimenter)?;
    w.u32(ONF);
    w.u32(exp_type);
    Ok(())
}

/// Fills in the length of the frame that began at `start`.
pub(crate) fn finish(w: &mut Writer<'_>, start: usize) -> writer::WriteResult<()> {
    w.fill_len(start + 2, start, "message")
}

fn write_body(w: &mut Writer<'_>, message: &Message) -> writer::WriteResult<()> {
    match message {
        Message::Hello(body) => hello::write(w, body),
        Message::Error(body) => error_message::write(w, body)?,
        Message::EchoRequest(data) | Message::EchoReply(data) => w.bytes(data),
        Message::Experimenter(body) => experimenter::write(w, body)?,
        Message::FeaturesReply(body) => layout::FEATURES.write(w, body)?,
        Message::GetConfigReply(body) | Message::SetConfig(body) => switch::write_config(w, body),
        Message::PacketIn(body) => layout::PACKET_IN.write(w, body)?,
        Message::FlowRemoved(body) => layout::FLOW_REMOVED.write(w, body)?,
        Message::PortStatus(body) => port::write_status(w, body)?,
        Message::PacketOut(body) => layout::PACKET_OUT.write(w, body)?,
        Message::FlowMod(body) => layout::FLOW_MOD.write(w, body)?,
        Message::GroupMod(body) => layout::GROUP_MOD.write(w, body)?,
        Message::PortMod(body) => layout::PORT_MOD.write(w, body)?,
        Message::TableMod(body) => layout::TABLE_MOD.write(w, body)?,
        Message::MultipartRequest(body) => multipart::write_request(w, body)?,
        Message::MultipartReply(body) => multipart::write_reply(w, body)?,
        Message::QueueGetConfigRequest(port) => queue::write_config_request(w, *port)?,
        Message::QueueGetConfigReply(body) => queue::write_config(w, body)?,
        Message::RoleRequest(body) | Message::RoleReply(body) => role::write_role(w, body),
        Message::GetAsyncReply(body) | Message::SetAsync(body) => {
            layout::ASYNC_CONFIG.write(w, body)?;
        }
        Message::MeterMod(body) => meter::write_mod(w, body)?,
        Message::RoleStatus(body) => role::write_status(w, body),
        Message::TableStatus(body) => table::write_status(w, body)?,
        Message::RequestForward(request) => w.bytes(request),
        Message::BundleControl(body) => bundle::write_control(w, body),
        Message::BundleAdd(body) => bundle::write_add(w, body),
        Message::ControllerStatus(body) => role::write_controller(w, body)?,
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest => {}
    }
    Ok(())
}
