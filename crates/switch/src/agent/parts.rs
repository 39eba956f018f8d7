//! A long multipart reply, cut into parts that are sent as there is room (clause 7.3.5).
//!
//! Between two parts the connection answers echoes and other messages, however long the reply is.
//! Entries that the version cannot say, or that are longer than any message (a flow-mod of 64 KiB
//! has no flow statistics), are left out and counted.

use channel::{Connection, SendError};
use openflow::message::{MultipartReply, MultipartReplyBody};
use openflow::{Message, Xid};
use wire::EncodeError;

/// Entries of a part to begin with; a part that is too long for a message is halved.
const ENTRIES: usize = 256;

/// A reply on its way.
#[derive(Debug)]
pub(super) struct Parts {
    xid: Xid,
    /// What is still to be sent; the next part stands last.
    rest: Vec<MultipartReplyBody>,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There are more.
    More,
    /// It was the last.
    Last,
}

impl Parts {
    pub(super) fn new(xid: Xid, mut body: MultipartReplyBody) -> Self {
        let mut rest = Vec::new();
        // From the end, so that every entry is moved once.
        while let Some(part) = split_last(&mut body, ENTRIES) {
            rest.push(part);
        }
        rest.push(body);
        // `split_last` cut from behind; what was cut first is sent last.
        Self { xid, rest }
    }

    /// Sends the next part; adds the entries that the version cannot say to `unsayable`.
    ///
    /// # Errors
    /// When the connection is not up, or the reply is no list and cannot be said.
    pub(super) fn send(
        &mut self,
        connection: &mut Connection,
        unsayable: &mut u64,
    ) -> Result<Sent, SendError> {
        let Some(body) = self.rest.pop() else { return Ok(Sent::Last) };
        let more = !self.rest.is_empty();
        let message = Message::MultipartReply(MultipartReply { more, body });
        let Err(error) = connection.send_as(self.xid, &message) else {
            return Ok(if more { Sent::More } else { Sent::Last });
        };
        let Message::MultipartReply(MultipartReply { mut body, .. }) = message else {
            return Err(error);
        };
        let entries = count(&body);
        match error {
            SendError::Encode(EncodeError::TooLong { .. } | EncodeError::Unsupported { .. })
                if entries > 1 =>
            {
                let second = split_last(&mut body, entries.div_ceil(2));
                self.rest.extend(second);
                self.rest.push(body);
            }
            SendError::Encode(EncodeError::TooLong { .. } | EncodeError::Unsupported { .. })
                if entries == 1 =>
            {
                *unsayable += 1;
                // The last part carries the flag that ends the reply, with or without entries.
                if !more {
                    clear(&mut body);
                    self.rest.push(body);
                }
            }
            error => return Err(error),
        }
        Ok(Sent::More)
    }
}

/// Takes entries off the end of a list so that a multiple of `size` is left; `None` when no more
/// than `size` entries are there, or it is no list.
fn split_last(body: &mut MultipartReplyBody, size: usize) -> Option<MultipartReplyBody> {
    macro_rules! split {
        ($($variant:ident)+) => {
            match body {
                $(MultipartReplyBody::$variant(entries) if entries.len() > size => {
                    let at = (entries.len() - 1) / size * size;
                    Some(MultipartReplyBody::$variant(entries.split_off(at)))
                })+
                $(MultipartReplyBody::$variant(_))|+
                | MultipartReplyBody::Desc(_)
                | MultipartReplyBody::Aggregate(_)
                | MultipartReplyBody::GroupFeatures(_)
                | MultipartReplyBody::MeterFeatures(_)
                | MultipartReplyBody::Experimenter(_) => None,
            }
        };
    }
    split!(Flow Table PortStats Queue Group GroupDesc Meter MeterConfig TableFeatures PortDesc)
}

/// How many entries a list has; zero for what is no list.
fn count(body: &MultipartReplyBody) -> usize {
    match body {
        MultipartReplyBody::Flow(entries) => entries.len(),
        MultipartReplyBody::Table(entries) => entries.len(),
        MultipartReplyBody::PortStats(entries) => entries.len(),
        MultipartReplyBody::Queue(entries) => entries.len(),
        MultipartReplyBody::Group(entries) => entries.len(),
        MultipartReplyBody::GroupDesc(entries) => entries.len(),
        MultipartReplyBody::Meter(entries) => entries.len(),
        MultipartReplyBody::MeterConfig(entries) => entries.len(),
        MultipartReplyBody::TableFeatures(entries) => entries.len(),
        MultipartReplyBody::PortDesc(entries) => entries.len(),
        MultipartReplyBody::Desc(_)
        | MultipartReplyBody::Aggregate(_)
        | MultipartReplyBody::GroupFeatures(_)
        | MultipartReplyBody::MeterFeatures(_)
        | MultipartReplyBody::Experimenter(_) => 0,
    }
}

/// Empties a list.
fn clear(body: &mut MultipartReplyBody) {
    match body {
        MultipartReplyBody::Flow(entries) => entries.clear(),
        MultipartReplyBody::Table(entries) => entries.clear(),
        MultipartReplyBody::PortStats(entries) => entries.clear(),
        MultipartReplyBody::Queue(entries) => entries.clear(),
        MultipartReplyBody::Group(entries) => entries.clear(),
        MultipartReplyBody::GroupDesc(entries) => entries.clear(),
        MultipartReplyBody::Meter(entries) => entries.clear(),
        MultipartReplyBody::MeterConfig(entries) => entries.clear(),
        MultipartReplyBody::TableFeatures(entries) => entries.clear(),
        MultipartReplyBody::PortDesc(entries) => entries.clear(),
        MultipartReplyBody::Desc(_)
        | MultipartReplyBody::Aggregate(_)
        | MultipartReplyBody::GroupFeatures(_)
        | MultipartReplyBody::MeterFeatures(_)
        | MultipartReplyBody::Experimenter(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use channel::{Connection, Event, Role, Settings};
    use openflow::flow::{FlowModFlags, FlowStats};
    use openflow::message::MultipartReplyBody;
    use openflow::{Action, Cookie, Field, Instruction, Match, Message, TableId, Version, Xid};

    use super::{Parts, Sent};

    fn entry(number: u64, matching: Match) -> FlowStats {
        FlowStats {
            table_id: TableId(0),
            duration_s: 0,
            duration_ns: 0,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowModFlags::empty(),
            cookie: Cookie(number),
            packet_count: 0,
            byte_count: 0,
            matching,
            instructions: Vec::new(),
        }
    }

    /// What a controller gets of the reply: the cookies, and how many entries were left out.
    fn through(version: Version, entries: Vec<FlowStats>) -> (Vec<u64>, u64) {
        let now = Instant::now();
        let side = |role| Connection::new(Settings::new(role).with_versions(&[version]), now);
        let (mut switch, mut controller) = (side(Role::Switch), side(Role::Controller));
        let (a, b) = (switch.transmit().to_vec(), controller.transmit().to_vec());
        controller.receive(&a, now);
        switch.receive(&b, now);
        switch.transmitted(a.len(), now);
        assert_eq!(switch.poll_event(), Some(Event::Up { version }));
        assert_eq!(controller.poll_event(), Some(Event::Up { version }));
        let mut unsayable = 0;
        let mut parts = Parts::new(Xid(5), MultipartReplyBody::Flow(entries));
        while parts.send(&mut switch, &mut unsayable).unwrap() == Sent::More {}
        controller.receive(switch.transmit(), now);
        let (mut cookies, mut ended) = (Vec::new(), false);
        while let Some(event) = controller.poll_event() {
            let Event::Message { xid: Xid(5), message: Message::MultipartReply(reply) } = event
            else {
                panic!("{event:?}");
            };
            assert!(!ended, "a part behind the last");
            ended = !reply.more;
            let MultipartReplyBody::Flow(flows) = reply.body else { panic!("no flows") };
            cookies.extend(flows.iter().map(|flow| flow.cookie.0));
        }
        assert!(ended);
        (cookies, unsayable)
    }

    #[test]
    fn every_entry_arrives_once_and_in_order() {
        for count in [0_u64, 1, 255, 256, 257, 5_000] {
            let entries = (0..count).map(|n| entry(n, Match::any())).collect();
            let (cookies, unsayable) = through(Version::V1_3, entries);
            assert!(cookies.iter().copied().eq(0..count), "{count}");
            assert_eq!(unsayable, 0);
        }
    }

    #[test]
    fn an_entry_that_no_message_holds_is_left_out() {
        let mut long = entry(1, Match::any());
        let action = Action::set_field(Field::EthDst, 1);
        long.instructions = vec![Instruction::ApplyActions(vec![action; 4_100])];
        let short = |number| entry(number, Match::any());
        let (cookies, unsayable) = through(Version::V1_3, vec![short(0), long.clone(), short(2)]);
        assert_eq!((cookies, unsayable), (vec![0, 2], 1));
        let (cookies, unsayable) = through(Version::V1_3, vec![long]);
        assert_eq!((cookies, unsayable), (vec![], 1), "the reply ends all the same");
    }

    #[test]
    fn what_1_0_cannot_say_is_left_out() {
        for count in [1_u64, 2, 700] {
            let six = Match::any().with(Field::EthType, 0x86dd).with(Field::Ipv6Src, 1);
            let entries = (0..count)
                .map(|n| entry(n, if n % 3 == 0 { six.clone() } else { Match::any() }))
                .collect();
            let (cookies, unsayable) = through(Version::V1_0, entries);
            assert!(cookies.iter().copied().eq((0..count).filter(|n| n % 3 != 0)));
            assert_eq!(unsayable, count.div_ceil(3));
        }
    }
}
