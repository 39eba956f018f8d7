//! A bundle on its way to the commit (clause 7.3.9 of 1.4): its messages as they came, one behind
//! the other, and the commands that they are.

use datapath::BundleCommand;
use openflow::{Error, Message, MessageKind, Xid};
use wire::MessageHeader;

use crate::request::ErrorData;

/// A bundle to be carried out.
#[derive(Debug)]
pub(crate) struct BundleCommit {
    /// Its number.
    pub(crate) bundle_id: u32,
    /// Its messages, encoded, one behind the other. Each is a whole frame that can be decoded.
    pub(crate) messages: Vec<u8>,
}

/// The message for which a bundle was not carried out.
#[derive(Debug)]
pub(crate) struct RefusedMessage {
    /// Its transaction number.
    pub(crate) xid: Xid,
    /// Its first bytes.
    pub(crate) error_data: ErrorData,
    /// The reason.
    pub(crate) error: Error,
}

/// Whether a bundle may hold messages of a kind.
pub(crate) fn is_bundled(kind: MessageKind) -> bool {
    matches!(
        kind,
        MessageKind::FlowMod
            | MessageKind::GroupMod
            | MessageKind::MeterMod
            | MessageKind::PortMod
            | MessageKind::PacketOut
    )
}

/// The command of a message that a bundle may hold.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other kind is let in: see `is_bundled`")]
pub(super) fn command(frame: &[u8]) -> Result<BundleCommand, Error> {
    let (.., message) = wire::decode(frame).map_err(|error| error.error)?;
    match message {
        Message::FlowMod(body) => Ok(BundleCommand::FlowMod(body)),
        Message::GroupMod(body) => Ok(BundleCommand::GroupMod(body)),
        Message::MeterMod(body) => Ok(BundleCommand::MeterMod(body)),
        Message::PortMod(body) => Ok(BundleCommand::PortMod(body)),
        Message::PacketOut(body) => Ok(BundleCommand::PacketOut(body)),
        _ => Err(Error::BundleMsgUnsup),
    }
}

/// The frames that stand one behind the other.
pub(super) fn frames(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = usize::from(MessageHeader::parse(rest)?.length);
        let (frame, behind) = rest.split_at_checked(len)?;
        rest = behind;
        Some(frame)
    })
}

#[cfg(test)]
mod tests {
    use super::frames;

    #[test]
    fn frames_are_cut_and_a_torn_one_ends_them() {
        let bytes = [4, 20, 0, 8, 0, 0, 0, 1, 4, 20, 0, 9, 0, 0, 0, 2, 7, 4, 20, 0, 9, 0, 0, 0, 3];
        let found: Vec<&[u8]> = frames(&bytes).collect();
        assert_eq!(found, [&bytes[..8], &bytes[8..17]]);
    }
}
