//! The codec against os-ken's messages: decoded values against os-ken's decoder, encoded bytes
//! against the bytes, and every damage to every message without a panic.
//!
//! `vectors/tools/from_osken.py` made the files; nothing here may depend on our own encoder being
//! right.

use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{Message, Version, Xid};
use testkit::vectors::Vector;

use crate::{compare, describe};

fn vectors() -> Vec<Vector> {
    let mut all = testkit::vectors::load_dir(&testkit::vectors_dir("os-ken")).unwrap();
    assert!(all.len() >= 315, "only {} vectors", all.len());
    // What was recorded as refused for its version says nothing once the version has a row.
    let is_spoken = |vector: &Vector| Version::from_number(vector.bytes[0]).is_some();
    let is_refused = |vector: &Vector| vector.error.as_deref() == Some("OFPBRC_BAD_VERSION");
    all.retain(|vector| !(is_refused(vector) && is_spoken(vector)));
    all
}

/// The vector's message in canonical form: the record after it, or itself.
fn canonical<'a>(all: &'a [Vector], vector: &'a Vector) -> &'a [u8] {
    let name = format!("{}/canonical", vector.name);
    let twin = all.iter().find(|other| other.file == vector.file && other.name == name);
    &twin.unwrap_or(vector).bytes
}

#[test]
fn every_message_decodes_to_its_error_or_encodes_to_its_bytes() {
    let all = vectors();
    let (mut encoded, mut failed) = (0, Vec::new());
    for vector in &all {
        let frame = &vector.bytes;
        if vector.error.is_none() && Version::from_number(frame[0]).is_none() {
            wire::decode_hello(frame).unwrap_or_else(|error| panic!("{}: {error}", vector.place()));
            continue;
        }
        let differs = match (wire::decode(frame), &vector.error) {
            (Err(found), Some(error)) if found.error.name() == error => None,
            (Err(found), _) => Some(found.to_string()),
            (Ok(_), Some(error)) => Some(format!("is not refused as {error}")),
            (Ok((version, xid, message)), None) => {
                encoded += 1;
                let found = match wire::encode(version, xid, &message) {
                    Ok(bytes) => testkit::hex::format(&bytes),
                    Err(error) => error.to_string(),
                };
                let expected = testkit::hex::format(canonical(&all, vector));
                (found != expected).then(|| format!("{found}\ninstead of\n{expected}"))
            }
        };
        failed.extend(differs.map(|why| format!("{}: {why}", vector.place())));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(encoded >= 170, "only {encoded} messages");
}

#[test]
fn values_are_those_of_os_kens_decoder() {
    let mut compared = 0;
    for vector in vectors().iter().filter(|vector| vector.error.is_none()) {
        let Some(json) = &vector.json else { continue };
        let (version, _, message) = wire::decode(&vector.bytes).unwrap();
        let theirs = compare::of_version(version, serde_json::from_str(json).unwrap());
        let ours = describe::message(version, &message);
        if let Err(difference) = compare::same("", &ours, &theirs) {
            panic!("{}: {difference}\nours   {ours}\ntheirs {theirs}", vector.place());
        }
        compared += 1;
    }
    assert!(compared >= 95, "only {compared} decodings");
}

#[test]
fn the_comparison_sees_every_value() {
    let mut seen = 0;
    for vector in vectors().iter().filter(|vector| vector.error.is_none()) {
        let Some(json) = vector.json.as_ref().filter(|json| json.len() < 20_000) else { continue };
        let (version, _, message) = wire::decode(&vector.bytes).unwrap();
        let theirs = compare::of_version(version, serde_json::from_str(json).unwrap());
        let ours = describe::message(version, &message);
        for pointer in compare::leaves(&theirs) {
            let mut changed = theirs.clone();
            compare::change(changed.pointer_mut(&pointer).unwrap());
            let found = compare::same("", &ours, &changed);
            assert!(found.is_err(), "{}: {pointer} is not compared", vector.place());
            seen += 1;
        }
    }
    assert!(seen > 900, "only {seen} values");
}

/// A body whose elements simply end earlier is a shorter message, not a truncated one.
fn may_be_shorter(message: &Message) -> bool {
    match message {
        Message::Hello(_)
        | Message::Error(_)
        | Message::EchoRequest(_)
        | Message::EchoReply(_)
        | Message::Experimenter(_)
        | Message::PacketIn(_)
        | Message::PacketOut(_) => true,
        Message::MultipartRequest(request) => matches!(
            request.body,
            MultipartRequestBody::Experimenter(_)
                | MultipartRequestBody::TableFeatures(_)
                | MultipartRequestBody::FlowMonitor(_)
        ),
        Message::MultipartReply(reply) => !matches!(
            reply.body,
            MultipartReplyBody::Desc(_)
                | MultipartReplyBody::Aggregate(_)
                | MultipartReplyBody::GroupFeatures(_)
                | MultipartReplyBody::MeterFeatures(_)
        ),
        Message::FlowMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::GetAsyncReply(_)
        | Message::SetAsync(_)
        | Message::RoleStatus(_)
        | Message::RequestForward(_)
        | Message::BundleControl(_)
        | Message::BundleAdd(_)
        | Message::FeaturesReply(_)
        | Message::GroupMod(_)
        | Message::MeterMod(_)
        | Message::QueueGetConfigReply(_) => true,
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::GetConfigReply(_)
        | Message::SetConfig(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::TableStatus(_)
        | Message::ControllerStatus(_)
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::QueueGetConfigRequest(_)
        | Message::RoleRequest(_)
        | Message::RoleReply(_)
        | Message::GetAsyncRequest => false,
    }
}

#[test]
fn every_prefix_is_refused_and_patched_ones_are_or_are_shorter() {
    for vector in vectors() {
        // One has bytes behind its end.
        let header = wire::MessageHeader::parse(&vector.bytes);
        let end = header.map(|header| usize::from(header.length));
        for len in (0..vector.bytes.len()).filter(|len| Some(*len) != end) {
            assert!(wire::decode(&vector.bytes[..len]).is_err(), "{} to {len}", vector.place());
        }
        for len in (4..vector.bytes.len()).step_by(stride(&vector)) {
            if Some(len) == end {
                continue;
            }
            let mut prefix = vector.bytes[..len].to_vec();
            prefix[2..4].copy_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
            if let Ok((version, xid, message)) = wire::decode(&prefix) {
                let place = vector.place();
                assert!(may_be_shorter(&message), "{place} cut to {len}: {message:?}");
                stable(version, xid, &message, &vector);
            }
        }
    }
}

/// One for messages of a usual size; the few long ones are repetitive, and are sampled.
fn stride(vector: &Vector) -> usize {
    vector.bytes.len() / 1200 * 4 + 1
}

/// A decoded message that is encoded again decodes to the same.
fn stable(version: Version, xid: Xid, message: &Message, vector: &Vector) {
    let bytes = match wire::encode(version, xid, message) {
        Ok(bytes) => bytes,
        Err(error) => panic!("{}: {error}: {message:?}", vector.place()),
    };
    let (_, _, again) = wire::decode(&bytes).unwrap();
    assert_eq!(&again, message, "{}", vector.place());
}

#[test]
fn no_single_byte_can_hurt() {
    for vector in vectors() {
        let header = wire::MessageHeader::parse(&vector.bytes);
        if header.is_none_or(|header| header.known_version().is_none()) {
            continue;
        }
        for at in (0..vector.bytes.len()).step_by(stride(&vector)) {
            let mut damaged = vector.bytes.clone();
            for bits in [0x01, 0x80, 0xff] {
                damaged[at] = vector.bytes[at] ^ bits;
                match wire::decode(&damaged) {
                    Ok((version, xid, message)) => stable(version, xid, &message, &vector),
                    Err(error) => {
                        if let Some((version, reply)) = error.reply(&damaged) {
                            wire::encode(version, error.xid, &reply).unwrap();
                        }
                    }
                }
            }
        }
    }
}
