//! The bundles of one connection (clause 7.3.9 of 1.4): opened, filled, closed, and given away to
//! be carried out or forgotten.
//!
//! Messages are kept as they came, so that a bundle takes the memory that its bytes take. Each is
//! checked when it comes, so far as it can be known before the commit whether it is right. Every
//! bundle is carried out whole and in order, whatever its flags ask for. The peer chooses what it
//! sends, so the number of bundles and what they hold is bounded, and a bundle for which nothing
//! comes is forgotten. Nothing of a bundle touches the bridge before its commit.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};
use openflow::{Error, Message, MessageKind, Version, Xid};
use wire::MessageHeader;

use super::request::Handling;
use crate::bridge::{BridgeCommand, BundleCommit, is_bundled};
use crate::request::ErrorData;

/// Bundles of one connection at a time.
const BUNDLES_MAX: usize = 64;

/// Messages of one bundle, and bytes of all bundles of a connection: a million flow-mods.
const MESSAGES_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 128 << 20;

/// A bundle for which nothing came for this time is forgotten.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// One bundle.
#[derive(Debug)]
struct Bundle {
    flags: BundleFlags,
    is_closed: bool,
    messages: Vec<u8>,
    count: usize,
    used: Instant,
    /// The message that has opened it, for an error about it.
    opened: (Xid, ErrorData),
}

/// A message about a bundle, beside what it asks for.
#[derive(Clone, Debug)]
pub(super) struct BundleMessage {
    pub(super) version: Version,
    pub(super) xid: Xid,
    pub(super) error_data: ErrorData,
    pub(super) now: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    bundles: BTreeMap<u32, Bundle>,
    bytes: usize,
}

impl Bundles {
    /// Opens, closes, discards or commits a bundle.
    pub(super) fn control(&mut self, asked: BundleControl, by: &BundleMessage) -> Handling {
        match self.controlled(asked, by) {
            Ok(handling) => handling,
            Err(error) => Handling::Refused(error),
        }
    }

    fn controlled(&mut self, asked: BundleControl, by: &BundleMessage) -> Result<Handling, Error> {
        let id = asked.bundle_id;
        let answer = asked.control.reply().ok_or(Error::BundleBadType)?;
        match asked.control {
            BundleControlType::OpenRequest => self.open(id, asked.flags, by)?,
            BundleControlType::CloseRequest => self.find(id, asked.flags, by.now)?.is_closed = true,
            BundleControlType::CommitRequest => {
                self.known(id, asked.flags)?;
                let bundle = self.remove(id).ok_or(Error::BundleBadId)?;
                let commit = BundleCommit { bundle_id: id, messages: bundle.messages };
                return Ok(Handling::Bridge(BridgeCommand::Bundle(commit)));
            }
            BundleControlType::DiscardRequest => {
                self.remove(id).ok_or(Error::BundleBadId)?;
            }
            BundleControlType::OpenReply
            | BundleControlType::CloseReply
            | BundleControlType::CommitReply
            | BundleControlType::DiscardReply
            | BundleControlType::Unknown(_) => return Err(Error::BundleBadType),
        }
        // No flags, as in Open vSwitch's replies: the text names none.
        let flags = BundleFlags::empty();
        let reply = BundleControl { bundle_id: id, control: answer, flags };
        Ok(Handling::Reply(Message::BundleControl(reply)))
    }

    /// Adds a message to a bundle, which it opens where there is none of the number. `has_memory`
    /// says whether the process has room for it.
    ///
    /// # Errors
    /// `OFPBFC_*`, and what is wrong with the message itself.
    pub(super) fn add(
        &mut self,
        add: &BundleAdd,
        by: &BundleMessage,
        has_memory: bool,
    ) -> Result<(), Error> {
        check(&add.message, by)?;
        if !self.bundles.contains_key(&add.bundle_id) {
            self.open(add.bundle_id, add.flags, by)?;
        }
        let len = add.message.len();
        let is_full = self.bytes + len > BYTES_MAX;
        let bundle = self.find(add.bundle_id, add.flags, by.now)?;
        if is_full || bundle.count == MESSAGES_MAX || !has_memory {
            return Err(Error::BundleMsgTooMany);
        }
        bundle.messages.extend_from_slice(&add.message);
        bundle.count += 1;
        self.bytes += len;
        Ok(())
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// The time until a bundle is to be forgotten.
    pub(super) fn expire_in(&self, now: Instant) -> Duration {
        let idle = self.bundles.values().map(|bundle| now.saturating_duration_since(bundle.used));
        IDLE_MAX.saturating_sub(idle.max().unwrap_or_default())
    }

    /// Forgets the bundles for which nothing came; the messages that had opened them.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(Xid, ErrorData)> {
        let is_idle =
            |(_, bundle): &(&u32, &Bundle)| now.saturating_duration_since(bundle.used) >= IDLE_MAX;
        let idle: Vec<u32> = self.bundles.iter().filter(is_idle).map(|(id, _)| *id).collect();
        idle.into_iter().filter_map(|id| Some(self.remove(id)?.opened)).collect()
    }

    /// A number that is in use is refused, and its bundle is discarded.
    fn open(&mut self, id: u32, flags: BundleFlags, by: &BundleMessage) -> Result<(), Error> {
        if self.remove(id).is_some() {
            return Err(Error::BundleExist);
        }
        if self.bundles.len() == BUNDLES_MAX {
            return Err(Error::BundleOutOfBundles);
        }
        if flags.contains(BundleFlags::TIME) && by.version.has_scheduled_bundles() {
            return Err(Error::BundleSchedNotSupported);
        }
        if !(BundleFlags::ATOMIC | BundleFlags::ORDERED).contains(flags) {
            return Err(Error::BundleBadFlags);
        }
        let bundle = Bundle {
            flags,
            is_closed: false,
            messages: Vec::new(),
            count: 0,
            used: by.now,
            opened: (by.xid, by.error_data.clone()),
        };
        self.bundles.insert(id, bundle);
        Ok(())
    }

    /// The bundle, whose flags are these; one with other flags is discarded.
    fn known(&mut self, id: u32, flags: BundleFlags) -> Result<&mut Bundle, Error> {
        if self.bundles.get(&id).is_some_and(|bundle| bundle.flags != flags) {
            self.remove(id);
            return Err(Error::BundleBadFlags);
        }
        self.bundles.get_mut(&id).ok_or(Error::BundleBadId)
    }

    /// A bundle that is open still; a closed one is discarded.
    fn find(&mut self, id: u32, flags: BundleFlags, now: Instant) -> Result<&mut Bundle, Error> {
        if self.known(id, flags)?.is_closed {
            self.remove(id);
            return Err(Error::BundleClosed);
        }
        let bundle = self.bundles.get_mut(&id).ok_or(Error::BundleBadId)?;
        bundle.used = now;
        Ok(bundle)
    }

    fn remove(&mut self, id: u32) -> Option<Bundle> {
        let bundle = self.bundles.remove(&id)?;
        self.bytes -= bundle.messages.len();
        Some(bundle)
    }
}

/// Checks a message that is to be added.
fn check(frame: &[u8], by: &BundleMessage) -> Result<(), Error> {
    let header = MessageHeader::parse(frame).ok_or(Error::BundleMsgBadLen)?;
    if header.version != by.version.number() {
        return Err(Error::BadRequestBadVersion);
    }
    if header.xid != by.xid {
        return Err(Error::BundleMsgBadXid);
    }
    let kind = MessageKind::from_number(by.version, header.message_type);
    if !kind.is_some_and(is_bundled) {
        return Err(Error::BundleMsgUnsup);
    }
    wire::decode(frame).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use openflow::bundle::{BundleAdd, BundleControl, BundleControlType as Type, BundleFlags};
    use openflow::flow::{FlowMod, FlowModCommand};
    use openflow::{Error, Message, Version, Xid};

    use super::{BUNDLES_MAX, BYTES_MAX, BundleMessage, Bundles, IDLE_MAX};
    use crate::agent::request::Handling;
    use crate::bridge::BridgeCommand;
    use crate::request::ErrorData;

    const ATOMIC: BundleFlags = BundleFlags::ATOMIC;

    fn by(xid: u32, now: Instant) -> BundleMessage {
        let error_data = ErrorData::new(&[7]);
        BundleMessage { version: Version::V1_3, xid: Xid(xid), error_data, now }
    }

    fn control(bundles: &mut Bundles, id: u32, control_type: Type, flags: BundleFlags) -> Handling {
        let asked = BundleControl { bundle_id: id, control: control_type, flags };
        bundles.control(asked, &by(1, Instant::now()))
    }

    fn add(bundles: &mut Bundles, id: u32, message: &Message) -> Result<(), Error> {
        let message = wire::encode(Version::V1_3, Xid(1), message).unwrap();
        let add = BundleAdd { bundle_id: id, flags: ATOMIC, message };
        bundles.add(&add, &by(1, Instant::now()), true)
    }

    fn flow_mod() -> Message {
        Message::FlowMod(FlowMod::new(FlowModCommand::Add))
    }

    #[track_caller]
    fn assert_refused(handling: &Handling, error: Error) {
        assert!(matches!(handling, Handling::Refused(found) if *found == error), "{handling:?}");
    }

    #[track_caller]
    fn assert_reply(handling: &Handling, control_type: Type) {
        let Handling::Reply(Message::BundleControl(reply)) = handling else {
            panic!("{handling:?}");
        };
        assert_eq!(reply.control, control_type);
    }

    #[test]
    fn a_bundle_is_opened_filled_closed_and_committed() {
        let mut bundles = Bundles::default();
        assert_reply(&control(&mut bundles, 5, Type::OpenRequest, ATOMIC), Type::OpenReply);
        assert_eq!(add(&mut bundles, 5, &flow_mod()), Ok(()));
        assert_eq!(add(&mut bundles, 5, &flow_mod()), Ok(()));
        assert_reply(&control(&mut bundles, 5, Type::CloseRequest, ATOMIC), Type::CloseReply);
        let Handling::Bridge(BridgeCommand::Bundle(commit)) =
            control(&mut bundles, 5, Type::CommitRequest, ATOMIC)
        else {
            panic!("nothing is committed");
        };
        assert_eq!((commit.bundle_id, commit.messages.len()), (5, 2 * 56));
        assert!(bundles.is_empty() && bundles.bytes == 0);
        // Without open and close.
        assert_eq!(add(&mut bundles, 6, &flow_mod()), Ok(()));
        let committed = control(&mut bundles, 6, Type::CommitRequest, ATOMIC);
        assert!(matches!(committed, Handling::Bridge(_)));
        assert_eq!(add(&mut bundles, 7, &flow_mod()), Ok(()));
        assert_reply(&control(&mut bundles, 7, Type::DiscardRequest, ATOMIC), Type::DiscardReply);
        assert!(bundles.is_empty());
    }

    #[test]
    fn wrong_requests_have_their_errors() {
        let both = ATOMIC | BundleFlags::ORDERED;
        let open = |bundles: &mut Bundles| {
            assert_reply(&control(bundles, 5, Type::OpenRequest, ATOMIC), Type::OpenReply);
        };
        let closed = |bundles: &mut Bundles| {
            open(bundles);
            assert_reply(&control(bundles, 5, Type::CloseRequest, ATOMIC), Type::CloseReply);
        };
        let none = |_: &mut Bundles| {};
        type Begin<'a> = &'a dyn Fn(&mut Bundles);
        let rows: [(Begin<'_>, Type, BundleFlags, Error); 10] = [
            (&none, Type::CloseRequest, ATOMIC, Error::BundleBadId),
            (&none, Type::CommitRequest, ATOMIC, Error::BundleBadId),
            (&none, Type::DiscardRequest, ATOMIC, Error::BundleBadId),
            (&none, Type::Unknown(9), ATOMIC, Error::BundleBadType),
            (&none, Type::CommitReply, ATOMIC, Error::BundleBadType),
            (&none, Type::OpenRequest, BundleFlags::from_bits_retain(8), Error::BundleBadFlags),
            (&open, Type::OpenRequest, ATOMIC, Error::BundleExist),
            (&open, Type::CloseRequest, both, Error::BundleBadFlags),
            (&open, Type::CommitRequest, both, Error::BundleBadFlags),
            (&closed, Type::CloseRequest, ATOMIC, Error::BundleClosed),
        ];
        for (begin, control_type, flags, error) in rows {
            let mut bundles = Bundles::default();
            begin(&mut bundles);
            assert_refused(&control(&mut bundles, 5, control_type, flags), error);
            assert!(bundles.is_empty(), "a bundle that is used wrongly is discarded");
        }
        let mut bundles = Bundles::default();
        closed(&mut bundles);
        assert_eq!(add(&mut bundles, 5, &flow_mod()), Err(Error::BundleClosed));
        assert!(bundles.is_empty());
    }

    #[test]
    fn messages_are_checked_when_they_come() {
        let mut bundles = Bundles::default();
        let frame = wire::encode(Version::V1_3, Xid(1), &flow_mod()).unwrap();
        let mut other = |change: fn(&mut Vec<u8>), xid| {
            let mut message = frame.clone();
            change(&mut message);
            let add = BundleAdd { bundle_id: 1, flags: ATOMIC, message };
            bundles.add(&add, &by(xid, Instant::now()), true)
        };
        assert_eq!(other(|_| {}, 2), Err(Error::BundleMsgBadXid));
        assert_eq!(other(|frame| frame[0] = 1, 1), Err(Error::BadRequestBadVersion));
        assert_eq!(other(|frame| frame[1] = 99, 1), Err(Error::BundleMsgUnsup));
        assert_eq!(other(|frame| frame.truncate(5), 1), Err(Error::BundleMsgBadLen));
        // A match of a type that there is not.
        assert_eq!(other(|frame| frame[49] = 9, 1), Err(Error::BadMatchBadType));
        assert_eq!(other(|_| {}, 1), Ok(()));
        assert_eq!(add(&mut bundles, 1, &Message::BarrierRequest), Err(Error::BundleMsgUnsup));
    }

    #[test]
    fn bundles_and_their_bytes_are_bounded() {
        let mut bundles = Bundles::default();
        for id in 0..BUNDLES_MAX as u32 {
            assert_reply(&control(&mut bundles, id, Type::OpenRequest, ATOMIC), Type::OpenReply);
        }
        let more = control(&mut bundles, 1_000, Type::OpenRequest, ATOMIC);
        assert_refused(&more, Error::BundleOutOfBundles);
        bundles.bytes = BYTES_MAX - 60;
        assert_eq!(add(&mut bundles, 1, &flow_mod()), Ok(()));
        assert_eq!(add(&mut bundles, 1, &flow_mod()), Err(Error::BundleMsgTooMany));
    }

    #[test]
    fn a_bundle_for_which_nothing_comes_is_forgotten() {
        let (mut bundles, begin) = (Bundles::default(), Instant::now());
        let asked = BundleControl { bundle_id: 1, control: Type::OpenRequest, flags: ATOMIC };
        bundles.control(asked, &by(77, begin));
        let late = begin + Duration::from_secs(4);
        bundles.control(BundleControl { bundle_id: 2, ..asked }, &by(78, late));
        assert_eq!(bundles.expire_in(late), Duration::from_secs(6));
        let gone = bundles.expire(begin + IDLE_MAX);
        assert_eq!(gone.iter().map(|(xid, _)| *xid).collect::<Vec<_>>(), [Xid(77)]);
        assert_eq!(bundles.expire_in(begin + IDLE_MAX), Duration::from_secs(4));
    }
}
