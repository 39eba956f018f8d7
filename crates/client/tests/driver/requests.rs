//! Both clients against a switch in a thread that answers by script.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::{Connection, ConnectionSettings, Event, Side, Stream};
use client::{AsyncClient, Client, ClientError, ClientSettings, LoadOutcome, RefusalReason};
use openflow::flow::{FlowMod, FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::port::{PortDesc, PortStats};
use openflow::{Error, Message, PortNo, TableId, Version, Xid};

/// Answers of the scripted switch: messages with their xids.
type Script = fn(Version, Xid, &Message) -> Vec<(Xid, Message)>;

/// A switch that answers by script until the connection ends; the messages that came.
fn switch(script: Script) -> (UnixStream, JoinHandle<Vec<Message>>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        let now = Instant::now();
        let mut settings = ConnectionSettings::new(Side::Switch).with_versions(Version::ALL);
        settings.probe_after = None;
        let mut connection = Connection::new(settings, now);
        let (mut seen, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let waiting = connection.transmit().to_vec();
            if theirs.write_all(&waiting).is_err() {
                return seen;
            }
            connection.transmitted(waiting.len(), now);
            let Ok(count) = theirs.read(&mut bytes) else { return seen };
            if count == 0 || connection.is_over() {
                return seen;
            }
            connection.receive(&bytes[..count], now);
            while let Some(event) = connection.poll_event() {
                let Event::Message { xid, message } = event else { continue };
                let version = connection.version().unwrap();
                for (xid, answer) in script(version, xid, &message) {
                    connection.send_as(xid, &answer).unwrap();
                }
                seen.push(message);
            }
        }
    });
    (ours, thread)
}

fn part(more: bool, ports: std::ops::Range<u32>) -> Message {
    let ports = ports.map(|n| PortDesc { port_no: PortNo(n), ..PortDesc::default() }).collect();
    Message::MultipartReply(MultipartReply { more, body: MultipartReplyBody::PortDesc(ports) })
}

fn error(version: Version, error: Error) -> Message {
    Message::Error(ErrorMessage::new(version, error, vec![0; 64]))
}

fn entry() -> FlowStats {
    FlowStats {
        table_id: TableId(0),
        duration_s: 0,
        duration_ns: 0,
        priority: 1,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: FlowMod::new(FlowModCommand::Add).flags,
        importance: 0,
        cookie: openflow::Cookie(0),
        packet_count: 0,
        byte_count: 0,
        matching: openflow::Match::any(),
        instructions: Vec::new(),
    }
}

/// A switch as most tests want it: an echo request before a barrier's reply, and lists in parts.
fn usual(version: Version, xid: Xid, message: &Message) -> Vec<(Xid, Message)> {
    let unasked = Message::EchoReply(b"unasked".to_vec());
    let answers = match message {
        Message::BarrierRequest => {
            vec![Message::EchoRequest(b"there?".to_vec()), Message::BarrierReply]
        }
        Message::FlowMod(entry) if entry.priority == 9 => {
            vec![error(version, Error::FlowModBadTableId)]
        }
        Message::MultipartRequest(request) => match &request.body {
            MultipartRequestBody::PortDesc => {
                return vec![
                    (xid, part(true, 1..3)),
                    (Xid(77), unasked),
                    (xid, part(true, 3..3)),
                    (xid, part(false, 3..6)),
                ];
            }
            MultipartRequestBody::PortStats(_) => {
                vec![error(version, Error::BadRequestBadPort)]
            }
            _ => {
                let flows = |more, count| {
                    let body = MultipartReplyBody::Flow(vec![entry(); count]);
                    Message::MultipartReply(MultipartReply { more, body })
                };
                vec![flows(true, 300), flows(true, 0), flows(false, 45)]
            }
        },
        Message::GetConfigRequest => vec![Message::BarrierReply],
        _ => Vec::new(),
    };
    answers.into_iter().map(|answer| (xid, answer)).collect()
}

fn connected(versions: &[Version], script: Script) -> (Client, JoinHandle<Vec<Message>>) {
    let (stream, thread) = switch(script);
    let settings = ClientSettings::of(versions).with_answer_deadline(Duration::from_secs(60));
    (Client::over_unix(stream, "switch", settings).unwrap(), thread)
}

fn flow_mod(priority: u16) -> Message {
    Message::FlowMod(FlowMod { priority, ..FlowMod::new(FlowModCommand::Add) })
}

#[test]
fn an_answer_is_whole_and_what_came_between_is_kept() {
    for &version in Version::ALL {
        let (mut client, switch) = connected(&[version], usual);
        assert_eq!(client.version(), version);
        let ports = client.multipart(MultipartRequestBody::PortDesc).unwrap();
        let MultipartReplyBody::PortDesc(ports) = ports else { panic!("{ports:?}") };
        assert_eq!(ports.iter().map(|port| port.port_no.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let unasked = (Xid(77), Message::EchoReply(b"unasked".to_vec()));
        assert_eq!(client.next_message().unwrap(), unasked);
        client.barrier().unwrap();
        client.close();
        let seen = switch.join().unwrap();
        assert!(seen.contains(&Message::EchoReply(b"there?".to_vec())), "{seen:?}");
    }
}

#[test]
fn an_error_belongs_to_the_message_with_its_xid() {
    let (mut client, switch) = connected(&[Version::V1_3], usual);
    let refused = client.multipart(MultipartRequestBody::PortStats(PortNo::ANY)).unwrap_err();
    assert_eq!(refused.refusal(), Some(Error::BadRequestBadPort), "{refused}");
    let sent = client.send(&flow_mod(9)).unwrap();
    client.barrier().unwrap();
    let (xid, error) = client.take_error().unwrap();
    assert_eq!((xid, error.error(Version::V1_3)), (sent, Some(Error::FlowModBadTableId)));
    assert_eq!(client.take_error(), None);
    client.close();
    switch.join().unwrap();
}

#[test]
fn a_load_names_the_messages_that_are_refused() {
    let (mut client, switch) = connected(&[Version::V1_3], usual);
    let messages = (0..40_000).map(|n| flow_mod(if n == 17 || n == 39_000 { 9 } else { 1 }));
    let LoadOutcome { messages, refused, refusals } = client.load(messages).unwrap();
    assert_eq!((messages, refused), (40_000, 2));
    assert_eq!(refusals.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [17, 39_000]);
    let RefusalReason::Error(_, error) = &refusals[0].why else { panic!("{refusals:?}") };
    assert_eq!(error.error(Version::V1_3), Some(Error::FlowModBadTableId));
    client.close();
    let seen = switch.join().unwrap();
    assert_eq!(seen.iter().filter(|m| matches!(m, Message::FlowMod(_))).count(), 40_000);
}

#[test]
fn a_message_that_the_version_cannot_say_is_a_refusal() {
    let (mut client, switch) = connected(&[Version::V1_0], usual);
    let group = openflow::text::parse_flow_mod("actions=group:1", FlowModCommand::Add).unwrap();
    let messages = [flow_mod(1), Message::FlowMod(group), flow_mod(9)];
    let LoadOutcome { messages, refused, refusals } = client.load(messages).unwrap();
    assert_eq!((messages, refused), (3, 2));
    assert!(matches!(&refusals[0].why, RefusalReason::NotEncodable(_)), "{refusals:?}");
    assert_eq!((refusals[0].index, refusals[1].index), (1, 2));
    client.close();
    switch.join().unwrap();
}

/// The switch writes more than all buffers hold before it reads on: a client that only wrote would
/// wait for it for ever, and it for the client.
#[test]
fn a_load_that_is_refused_whole_does_not_lock_up() {
    let refuses = |version, xid, message: &Message| match message {
        Message::BarrierRequest => vec![(xid, Message::BarrierReply)],
        _ => vec![(xid, error(version, Error::FlowModTableFull))],
    };
    let (mut client, switch) = connected(&[Version::V1_3], refuses);
    let outcome = client.load((0..100_000).map(|_| flow_mod(1))).unwrap();
    assert_eq!((outcome.messages, outcome.refused), (100_000, 100_000));
    assert_eq!(outcome.refusals.len(), 1_000, "the others are counted");
    client.close();
    switch.join().unwrap();
}

#[test]
fn a_list_is_counted_without_its_values() {
    for &version in Version::ALL {
        let (mut client, switch) = connected(&[version], usual);
        let counted = client.count_flows(FlowStatsRequest::all()).unwrap();
        assert_eq!(counted.entries, 345);
        let mut parts = Vec::new();
        let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
        let taken = client.each_part(body.clone(), |_, part| match part {
            MultipartReplyBody::Flow(flows) if flows.is_empty() => Err("enough"),
            MultipartReplyBody::Flow(flows) => {
                parts.push(flows.len());
                Ok(())
            }
            other => panic!("{other:?}"),
        });
        assert_eq!((taken.unwrap(), parts), (Err("enough"), vec![300]));
        // What is left of that list disturbs no other.
        assert_eq!(client.count_flows(FlowStatsRequest::all()).unwrap(), counted);
        client.close();
        switch.join().unwrap();
    }
}

#[test]
fn a_switch_that_does_not_answer_is_named() {
    let (stream, switch) = switch(|_, _, _| Vec::new());
    let settings = ClientSettings::default().with_answer_deadline(Duration::from_millis(500));
    let mut client = Client::over_unix(stream, "br0", settings).unwrap();
    let error = client.barrier().unwrap_err().to_string();
    assert_eq!(error, "no answer from br0 after 0.5 s");
    let body = MultipartRequestBody::PortDesc;
    let parts = client.each_part(body, |_, _| Ok::<_, ()>(()));
    assert!(matches!(parts, Err(ClientError::Silent { .. })));
    assert!(matches!(client.load([flow_mod(1)]), Err(ClientError::Silent { .. })));
    client.close();
    switch.join().unwrap();
}

#[test]
fn a_hook_ends_a_wait() {
    let (stream, switch) = switch(|_, _, _| Vec::new());
    let end = Instant::now() + Duration::from_millis(100);
    let settings = ClientSettings::default().while_true(move || Instant::now() < end);
    // A machine that is slow may be over the end before the hello.
    let outcome =
        Client::over_unix(stream, "switch", settings).and_then(|mut client| client.next_message());
    assert!(matches!(outcome, Err(ClientError::Cancelled)), "{outcome:?}");
    switch.join().unwrap();
}

#[test]
fn a_foreign_answer_is_kept_and_garbage_is_answered() {
    let (mut client, switch) = connected(&[Version::V1_3], usual);
    client.send_bytes(&[4, 200, 0, 8, 0, 0, 0, 5]).unwrap();
    let frame = client.next_frame().unwrap().unwrap();
    assert_eq!((&frame[..2], &frame[4..8]), (&[4, 1][..], &[0, 0, 0, 5][..]));
    // An impossible length ends the connection, with an error before.
    client.send_bytes(&[4, 2, 0, 7, 0, 0, 0, 6]).unwrap();
    assert_eq!(client.next_frame().unwrap().unwrap()[4..8], [0, 0, 0, 6]);
    for _ in 0..2 {
        assert_eq!(client.next_frame().unwrap(), None);
    }
    assert!(matches!(client.next_message(), Err(ClientError::Down { .. })));
    assert!(client.barrier().is_err());
    switch.join().unwrap();
}

#[test]
fn the_async_client_does_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (stream, switch) = switch(usual);
        stream.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(tokio::net::UnixStream::from_std(stream).unwrap());
        let settings = ClientSettings::of(&[Version::V1_3]);
        let mut client = AsyncClient::over(stream, "switch", settings).await.unwrap();
        let body = MultipartRequestBody::PortDesc;
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        assert_eq!(client.request(&request).await.unwrap(), part(false, 1..6));
        assert_eq!(client.next_message().await.unwrap().0, Xid(77));
        let messages = (0..40_000).map(|n| flow_mod(if n == 30_000 { 9 } else { 1 }));
        let LoadOutcome { messages, refused, refusals } = client.load(messages).await.unwrap();
        assert_eq!((messages, refused, refusals[0].index), (40_000, 1, 30_000));
        let stats = client.multipart(MultipartRequestBody::PortStats(PortNo::ANY)).await;
        let refused = stats.unwrap_err().refusal();
        assert_eq!(refused, Some(Error::BadRequestBadPort));
        client.barrier().await.unwrap();
        client.close().await;
        tokio::task::spawn_blocking(|| switch.join().unwrap()).await.unwrap();
    });
}

/// The queue may hold 1 MiB and gets twice that: a client that only queued would end the connection
/// as one whose peer does not read.
#[test]
fn the_async_client_waits_for_room_before_it_queues_more() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (stream, switch) = switch(usual);
        stream.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(tokio::net::UnixStream::from_std(stream).unwrap());
        let mut settings = ClientSettings::of(&[Version::V1_3]);
        settings.connection.output_max_bytes = 1 << 20;
        let mut client = AsyncClient::over(stream, "switch", settings).await.unwrap();
        let message = Message::EchoReply(vec![7; 60_000]);
        let bytes = wire::encode(Version::V1_3, Xid(9), &message).unwrap();
        for _ in 0..18 {
            client.send(&message).await.unwrap();
            client.send_bytes(&bytes).await.unwrap();
        }
        client.barrier().await.unwrap();
        client.close().await;
        let seen = tokio::task::spawn_blocking(|| switch.join().unwrap()).await.unwrap();
        assert_eq!(seen.iter().filter(|seen| **seen == message).count(), 36);
    });
}

#[test]
fn port_statistics_have_their_own_type() {
    // Part of the script above: a body of another type than asked is an error.
    let script: Script = |_, xid, _| {
        let body = MultipartReplyBody::PortStats(vec![PortStats::default()]);
        let first = Message::MultipartReply(MultipartReply { more: true, body });
        vec![(xid, first), (xid, part(false, 1..2))]
    };
    let (mut client, switch) = connected(&[Version::V1_3], script);
    let error = client.multipart(MultipartRequestBody::PortDesc).unwrap_err();
    assert!(matches!(error, ClientError::Unanswered(_)), "{error}");
    client.close();
    switch.join().unwrap();
}
