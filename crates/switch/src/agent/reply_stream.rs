//! A long multipart reply, sent frame by frame as there is room (clause 7.3.5).
//!
//! Between two frames the connection answers echoes and other messages, however long the reply is.
//! Entries that the version cannot express, or that are longer than any message (a flow-mod of 64
//! KiB has no flow statistics), are left out and counted. A dump of flow entries is made piece by
//! piece as it is sent, so that it is never held whole.

use channel::{Connection, SendError};
use openflow::flow::FlowForm;
use openflow::flow_monitor::FlowMonitorRequest;
use openflow::message::MultipartReplyBody;
use openflow::{Version, Xid};
use wire::ReplyFrames;

use super::monitors::{self, InitialEntries};
use crate::bridge::{Bridge, FlowDump};

/// A multipart reply under way.
#[derive(Debug)]
pub(super) struct ReplyStream {
    version: Version,
    form: FlowForm,
    xid: Xid,
    frames: ReplyFrames,
    /// The source of further entries.
    dump: Option<FlowDump>,
    /// Flow monitors for which the entries are, if it is no reply with statistics.
    monitors: Option<Vec<FlowMonitorRequest>>,
}

/// Whether the frame sent was the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There are more.
    More,
    /// It was the last.
    Last,
}

impl ReplyStream {
    /// A complete reply body.
    pub(super) fn whole(
        version: Version,
        form: FlowForm,
        xid: Xid,
        body: MultipartReplyBody,
    ) -> Self {
        let frames = ReplyFrames::new(version, xid, body).in_form(form);
        Self { version, form, xid, frames, dump: None, monitors: None }
    }

    /// A dump of flow entries.
    pub(super) fn of_flows(
        version: Version,
        form: FlowForm,
        xid: Xid,
        dump: FlowDump,
        bridge: &Bridge,
    ) -> Self {
        let nothing = MultipartReplyBody::Flow(Vec::new());
        let mut stream = Self::whole(version, form, xid, nothing);
        stream.dump = Some(dump);
        stream.refill(bridge);
        stream
    }

    /// The entries that flow monitors find.
    pub(super) fn of_monitors(
        version: Version,
        form: FlowForm,
        xid: Xid,
        entries: InitialEntries,
        bridge: &Bridge,
    ) -> Self {
        let InitialEntries { dump, monitors } = entries;
        let nothing = MultipartReplyBody::FlowMonitor(Vec::new());
        let mut stream = Self::whole(version, form, xid, nothing);
        (stream.dump, stream.monitors) = (Some(dump), Some(monitors));
        stream.refill(bridge);
        stream
    }

    fn refill(&mut self, bridge: &Bridge) {
        while let Some(dump) = &mut self.dump {
            let (flows, is_last) = bridge.next_flows(dump);
            let is_empty = flows.is_empty();
            let body = match &self.monitors {
                Some(monitors) => monitors::initial(monitors, flows),
                None => MultipartReplyBody::Flow(flows),
            };
            self.frames = ReplyFrames::new(self.version, self.xid, body).in_form(self.form);
            if is_last {
                self.dump = None;
            } else {
                self.frames.continue_later();
            }
            if !is_empty {
                break;
            }
        }
    }

    /// Sends the next frame; adds the entries that it leaves out to `unsayable`.
    ///
    /// # Errors
    /// When the connection is not up, or the reply is no dump and has no encoding.
    pub(super) fn send_next(
        &mut self,
        connection: &mut Connection,
        bridge: &Bridge,
        unsayable: &mut u64,
    ) -> Result<Sent, SendError> {
        if self.frames.is_ended() {
            self.refill(bridge);
        }
        let sent = send_next(&mut self.frames, connection, unsayable)?;
        Ok(if self.dump.is_some() { Sent::More } else { sent })
    }
}

fn send_next(
    reply: &mut ReplyFrames,
    connection: &mut Connection,
    unsayable: &mut u64,
) -> Result<Sent, SendError> {
    let before = reply.left_out();
    let Some(frame) = reply.next() else { return Ok(Sent::Last) };
    *unsayable += reply.left_out() - before;
    connection.send_frame(&frame?)?;
    Ok(if reply.is_ended() { Sent::Last } else { Sent::More })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use channel::{Connection, ConnectionSettings, Event, Side};
    use openflow::flow::{FlowModFlags, FlowStats};
    use openflow::message::MultipartReplyBody;
    use openflow::{Action, Cookie, Field, Instruction, Match, Message, TableId, Version, Xid};
    use wire::ReplyFrames;

    use super::{Sent, send_next};

    fn entry(number: u64, matching: Match) -> FlowStats {
        FlowStats {
            table_id: TableId(0),
            duration_s: 0,
            duration_ns: 0,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowModFlags::empty(),
            importance: 0,
            cookie: Cookie(number),
            packet_count: 0,
            byte_count: 0,
            matching,
            instructions: Vec::new(),
        }
    }

    /// The reply as a controller gets it: the cookies, and the number of entries left out.
    fn through(version: Version, entries: Vec<FlowStats>) -> (Vec<u64>, u64) {
        let now = Instant::now();
        let connection =
            |side| Connection::new(ConnectionSettings::new(side).with_versions(&[version]), now);
        let (mut switch, mut controller) = (connection(Side::Switch), connection(Side::Controller));
        let (a, b) = (switch.transmit().to_vec(), controller.transmit().to_vec());
        controller.receive(&a, now);
        switch.receive(&b, now);
        switch.transmitted(a.len(), now);
        assert_eq!(switch.poll_event(), Some(Event::Up { version }));
        assert_eq!(controller.poll_event(), Some(Event::Up { version }));
        let mut unsayable = 0;
        let mut reply = ReplyFrames::new(version, Xid(5), MultipartReplyBody::Flow(entries));
        while send_next(&mut reply, &mut switch, &mut unsayable).unwrap() == Sent::More {}
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
