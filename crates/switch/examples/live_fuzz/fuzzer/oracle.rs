//! The oracle of answers: to a message an error that the codec names, a reply of its kind, or
//! silence; and the errors that may refuse a message of a kind.

use openflow::message::{MultipartReply, MultipartRequest, MultipartRequestBody, Sender};
use openflow::{Error, Message, MessageKind, Version};

/// Type numbers of hello and error, the same in every version.
const HELLO: u8 = 0;
const ERROR: u8 = 1;

/// The answers that are allowed.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Nothing at all.
    Nothing,
    /// This error and nothing else.
    Error(Error),
    /// Nothing, or an error that fits the kind.
    Done(MessageKind),
    /// A reply to a request of the first kind, of the second, or an error that fits the first.
    Reply(MessageKind, MessageKind),
    /// The same bytes as an echo reply.
    Echo(Vec<u8>),
}

/// The answers that a frame may get on a connection of this version.
pub(crate) fn expected(version: Version, frame: &[u8]) -> Expected {
    let (number, kind) = match frame {
        [number, kind, ..] => (*number, *kind),
        _ => return Expected::Nothing,
    };
    if kind == HELLO || kind == ERROR {
        return Expected::Nothing;
    }
    if number != version.number() {
        return Expected::Error(Error::BadRequestBadVersion);
    }
    if MessageKind::from_number(version, kind) == Some(MessageKind::EchoRequest) {
        return Expected::Echo(frame.get(8..).unwrap_or_default().to_vec());
    }
    let message = match wire::decode(frame) {
        Ok((_, _, message)) => message,
        Err(wrong) => return Expected::Error(wrong.error),
    };
    let kind = message.kind();
    // A request in parts is answered after its last part.
    if matches!(
        message,
        Message::MultipartRequest(MultipartRequest {
            more: true,
            body: MultipartRequestBody::TableFeatures(_),
        })
    ) {
        return Expected::Done(kind);
    }
    match (kind.row().sender, kind.row().reply) {
        (Sender::Switch, _) => Expected::Error(Error::BadRequestBadType),
        (Sender::Controller | Sender::Both, _) if kind == MessageKind::EchoReply => {
            Expected::Nothing
        }
        (Sender::Controller | Sender::Both, Some(reply)) => Expected::Reply(kind, reply),
        (Sender::Controller | Sender::Both, None) => Expected::Done(kind),
    }
}

/// The numbers of the error types that may refuse a message of a kind, beside bad request. 0xffff
/// is an experimenter's.
fn types(version: Version, kind: MessageKind) -> &'static [u16] {
    match (version, kind) {
        (Version::V1_0, MessageKind::FlowMod) => &[2, 3],
        (Version::V1_0, MessageKind::PortMod) => &[4],
        (Version::V1_0, MessageKind::QueueGetConfigRequest | MessageKind::MultipartRequest) => &[5],
        (Version::V1_3, MessageKind::FlowMod) => &[2, 3, 4, 5, 12, 0xffff],
        (Version::V1_3, MessageKind::GroupMod) => &[2, 6],
        (Version::V1_3, MessageKind::PortMod) => &[7],
        (Version::V1_3, MessageKind::TableMod) => &[8],
        (Version::V1_3, MessageKind::QueueGetConfigRequest) => &[9],
        (Version::V1_3, MessageKind::SetConfig) => &[10],
        (Version::V1_3, MessageKind::RoleRequest) => &[11],
        (Version::V1_3, MessageKind::MeterMod) => &[12],
        (Version::V1_3, MessageKind::MultipartRequest) => &[4, 9, 12, 13],
        (_, MessageKind::PacketOut) => &[2],
        (_, _) => &[],
    }
}

/// Judges the answers to a message that came before the answer to the next barrier.
///
/// # Errors
/// Their fault.
pub(crate) fn judge(
    version: Version,
    frame: &[u8],
    expected: &Expected,
    answers: &[Message],
) -> Result<(), String> {
    for answer in answers {
        if let Message::Error(error) = answer
            && error.data != wire::quote(frame)
        {
            return Err("the error quotes other bytes".to_owned());
        }
    }
    let parts = answers.iter().filter(|answer| is_end(answer)).count();
    match (expected, answers) {
        (Expected::Nothing | Expected::Done(_), []) => Ok(()),
        (Expected::Error(error), [Message::Error(found)]) => {
            let wanted = error.numbers(version);
            if (found.error_type, found.code) == wanted {
                Ok(())
            } else {
                Err(wrong(found, wanted))
            }
        }
        (Expected::Done(kind) | Expected::Reply(kind, _), [Message::Error(found)]) => {
            let fits = found.error_type == 1 || types(version, *kind).contains(&found.error_type);
            if fits && found.error(version).is_some() {
                Ok(())
            } else {
                Err(format!("type {} code {} does not fit", found.error_type, found.code))
            }
        }
        (Expected::Echo(data), [Message::EchoReply(same)]) if data == same => Ok(()),
        (Expected::Reply(_, reply), [.., last]) if parts == 1 && is_end(last) => {
            let all = answers.iter().all(|answer| answer.kind() == *reply);
            if all { Ok(()) } else { Err("a reply of another kind".to_owned()) }
        }
        (expected, answers) => Err(format!("{} answers, not {expected:?}", answers.len())),
    }
}

/// Whether a message is the end of an answer: all are but the parts of a long one.
fn is_end(message: &Message) -> bool {
    !matches!(message, Message::MultipartReply(MultipartReply { more: true, .. }))
}

fn wrong(found: &openflow::message::ErrorMessage, wanted: (u16, u16)) -> String {
    format!("type {} code {} in place of {wanted:?}", found.error_type, found.code)
}
