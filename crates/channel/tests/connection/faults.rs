//! The connection under every fault of a peer, without streams and with the time as an argument.
//!
//! Bytes are written by hand here, so that the tests do not believe the codec's word for them.

use channel::{Connection, ConnectionSettings, DownReason, Event, SendError, Side};
use openflow::message::{Features, Hello};
use openflow::{Error, Message, Version, VersionBitmap, Xid};
use std::time::{Duration, Instant};

const HELLO_1_0: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];
const HELLO_1_3: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const ECHO_1_3: [u8; 11] = [4, 2, 0, 11, 0, 0, 0, 9, b'a', b'b', b'c'];

fn settings() -> ConnectionSettings {
    ConnectionSettings::new(Side::Switch)
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// All that waits for the peer, cut into messages.
fn sent(connection: &mut Connection) -> Vec<(Version, Xid, Message)> {
    let now = Instant::now();
    let bytes = connection.transmit().to_vec();
    connection.transmitted(bytes.len(), now);
    let mut rest = bytes.as_slice();
    let mut messages = Vec::new();
    while let Some(length) = wire::frame_len(rest).unwrap() {
        let (frame, behind) = rest.split_at(length);
        messages.push(wire::decode(frame).unwrap());
        rest = behind;
    }
    assert!(rest.is_empty(), "only whole messages are sent");
    messages
}

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

fn give(connection: &mut Connection, bytes: &[u8], now: Instant) -> Vec<Event> {
    connection.receive(bytes, now);
    events(connection)
}

/// A connection that is up in 1.3, with nothing waiting.
fn up(settings: ConnectionSettings, now: Instant) -> Connection {
    let mut connection = Connection::new(settings, now);
    assert_eq!(give(&mut connection, &HELLO_1_3, now), [Event::Up { version: Version::V1_3 }]);
    sent(&mut connection);
    connection
}

fn the_error(connection: &mut Connection) -> (Version, Xid, Error, Vec<u8>) {
    match sent(connection).as_slice() {
        [(version, xid, Message::Error(body))] => {
            (*version, *xid, body.error(*version).unwrap(), body.data.clone())
        }
        other => panic!("one error is expected, not {other:?}"),
    }
}

#[test]
fn the_hello_goes_out_at_once_with_a_bitmap() {
    let mut connection = Connection::new(settings(), Instant::now());
    let versions = Some(VersionBitmap::of(Version::USUAL));
    let hello = sent(&mut connection);
    assert!(matches!(&hello[..], [(Version::V1_3, _, Message::Hello(body))]
            if *body == Hello { versions }));
    let only_v1_0 = settings().with_versions(&[Version::V1_0]);
    let mut connection = Connection::new(only_v1_0, Instant::now());
    assert_eq!(connection.transmit()[..4], [1, 0, 0, 8], "1.0 has no bitmap");
    assert!(matches!(sent(&mut connection)[..], [(Version::V1_0, _, Message::Hello(_))]));
}

#[test]
fn the_version_is_the_highest_common_one() {
    let now = Instant::now();
    let cases: &[(&[u8], Version)] = &[
        (&HELLO_1_0, Version::V1_0),
        (&HELLO_1_3, Version::V1_3),
        (&[6, 0, 0, 8, 0, 0, 0, 1], Version::V1_3),
        (&[6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0b0110_0010], Version::V1_0),
        (&[5, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0b0111_0010], Version::V1_3),
    ];
    for (hello, version) in cases {
        let mut connection = Connection::new(settings(), now);
        let expected = [Event::Up { version: *version }];
        assert_eq!(give(&mut connection, hello, now), expected, "{hello:?}");
        assert_eq!(connection.version(), Some(*version));
    }
}

#[test]
fn no_common_version_is_explained_and_ends() {
    let now = Instant::now();
    for (hello, version) in [
        (vec![2, 0, 0, 8, 0, 0, 0, 7], Version::V1_0),
        (vec![6, 0, 0, 16, 0, 0, 0, 7, 0, 1, 0, 8, 0, 0, 0, 0b0110_0000], Version::V1_3),
        (vec![0, 0, 0, 8, 0, 0, 0, 7], Version::V1_0),
    ] {
        let mut connection = Connection::new(settings(), now);
        sent(&mut connection);
        let happened = give(&mut connection, &hello, now);
        assert!(matches!(&happened[..], [Event::Down(DownReason::NoCommonVersion(_))]));
        let (v, xid, error, text) = the_error(&mut connection);
        assert_eq!((v, xid, error), (version, Xid(7), Error::HelloIncompatible));
        assert!(String::from_utf8(text).unwrap().contains("Weir speaks OpenFlow10"));
        assert!(connection.is_over());
    }
}

#[test]
fn a_first_message_that_is_no_hello_is_refused_and_ends() {
    let now = Instant::now();
    let echo = ECHO_1_3.to_vec();
    for (first, version) in [
        (echo, Version::V1_3),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), Version::V1_3),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), Version::V1_3),
        (vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc], Version::V1_3),
        (vec![1, 5, 0, 8, 0, 0, 0, 0], Version::V1_0),
    ] {
        let mut connection = Connection::new(settings(), now);
        sent(&mut connection);
        let happened = give(&mut connection, &first, now);
        let reason = DownReason::NotHello { version: first[0], kind: first[1] };
        assert_eq!(happened, [Event::Down(reason)]);
        let (v, _, error, quote) = the_error(&mut connection);
        assert_eq!((v, error), (version, Error::BadRequestBadVersion));
        assert!(first.starts_with(&quote) && !quote.is_empty());
    }
}

#[test]
fn an_error_as_first_message_is_a_refusal_and_is_not_answered() {
    let now = Instant::now();
    let mut connection = Connection::new(settings(), now);
    sent(&mut connection);
    let error = [1, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, b'n', b'o', b'p', b'e'];
    let happened = give(&mut connection, &error, now);
    let text = "OFPHFC_INCOMPATIBLE: nope".to_owned();
    assert_eq!(happened, [Event::Down(DownReason::RefusedByPeer(text))]);
    assert!(sent(&mut connection).is_empty());
    // The same after our side has settled on a version.
    let mut connection = up(settings(), now);
    let happened = give(&mut connection, &[4, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0], now);
    let text = "OFPHFC_INCOMPATIBLE".to_owned();
    assert_eq!(happened, [Event::Down(DownReason::RefusedByPeer(text))]);
    assert!(sent(&mut connection).is_empty());
}

#[test]
fn a_silent_peer_is_dropped_at_the_deadline() {
    let now = Instant::now();
    for bytes in [&[][..], &HELLO_1_3[..3]] {
        let mut connection = Connection::new(settings(), now);
        assert!(give(&mut connection, bytes, now + s(1)).is_empty());
        assert_eq!(connection.next_timeout(), Some(now + s(10)));
        connection.handle_timeout(now + s(9));
        assert!(events(&mut connection).is_empty());
        connection.handle_timeout(now + s(10));
        assert_eq!(events(&mut connection), [Event::Down(DownReason::NoHello)]);
        assert_eq!(connection.next_timeout(), None);
    }
}

#[test]
fn half_a_message_and_silence_ends_even_without_probes() {
    let now = Instant::now();
    let mut connection = up(ConnectionSettings { probe_after: None, ..settings() }, now);
    assert_eq!(connection.next_timeout(), None);
    for (byte, second) in ECHO_1_3[..10].iter().zip(1..) {
        assert!(give(&mut connection, &[*byte], now + s(second)).is_empty());
    }
    assert_eq!(connection.unfinished_since(), Some(now + s(1)));
    assert_eq!(connection.next_timeout(), Some(now + s(11)), "10 s behind the first byte");
    connection.handle_timeout(now + s(11));
    assert_eq!(events(&mut connection), [Event::Down(DownReason::HalfMessage)]);
}

#[test]
fn a_message_may_come_byte_by_byte() {
    let now = Instant::now();
    let mut connection = Connection::new(settings(), now);
    sent(&mut connection);
    let stream = [&HELLO_1_3[..], &ECHO_1_3, &ECHO_1_3].concat();
    let mut happened = Vec::new();
    for byte in &stream {
        happened.extend(give(&mut connection, &[*byte], now));
    }
    assert_eq!(happened, [Event::Up { version: Version::V1_3 }]);
    let echo = (Version::V1_3, Xid(9), Message::EchoReply(b"abc".to_vec()));
    assert_eq!(sent(&mut connection), [echo.clone(), echo]);
}

#[test]
fn idle_peers_are_probed_and_dropped_only_if_nothing_comes() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    connection.handle_timeout(now + s(4));
    assert!(sent(&mut connection).is_empty());
    connection.handle_timeout(now + s(5));
    let probe = sent(&mut connection);
    let [(Version::V1_3, xid, Message::EchoRequest(data))] = &probe[..] else {
        panic!("an echo request, not {probe:?}")
    };
    assert_eq!(connection.next_timeout(), Some(now + s(15)));
    let reply = wire::encode(Version::V1_3, *xid, &Message::EchoReply(data.clone())).unwrap();
    assert!(give(&mut connection, &reply, now + s(14)).is_empty(), "the reply is the probe's");
    assert_eq!(connection.next_timeout(), Some(now + s(19)));
    connection.handle_timeout(now + s(19));
    assert_eq!(sent(&mut connection).len(), 1);
    connection.handle_timeout(now + s(29));
    assert_eq!(events(&mut connection), [Event::Down(DownReason::NoEchoReply)]);
}

#[test]
fn a_stall_of_our_own_does_not_drop_the_peer() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    connection.handle_timeout(now + s(3600));
    assert!(events(&mut connection).is_empty(), "it has not been asked yet");
    assert_eq!(sent(&mut connection).len(), 1);
    assert_eq!(connection.next_timeout(), Some(now + s(3610)));
}

#[test]
fn echo_replies_to_the_owners_requests_are_the_owners() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    let xid = connection.send(&Message::EchoRequest(vec![1])).unwrap();
    let reply = wire::encode(Version::V1_3, xid, &Message::EchoReply(vec![1])).unwrap();
    let message = Message::EchoReply(vec![1]);
    assert_eq!(give(&mut connection, &reply, now), [Event::Message { xid, message }]);
}

#[test]
fn a_length_below_eight_ends_the_connection_with_an_error() {
    let now = Instant::now();
    for length in 0..8 {
        let mut connection = up(settings(), now);
        let happened = give(&mut connection, &[4, 20, 0, length, 0, 0, 0, 5], now);
        let reason = DownReason::BadLength(u16::from(length));
        assert_eq!(happened, [Event::Down(reason)]);
        let (_, xid, error, _) = the_error(&mut connection);
        assert_eq!((xid, error), (Xid(5), Error::BadRequestBadLen));
    }
    let mut connection = up(settings(), now);
    give(&mut connection, &[4, 1, 0, 7, 0, 0, 0, 5], now);
    assert!(sent(&mut connection).is_empty(), "an error is never answered");
}

#[test]
fn the_longest_message_is_kept_until_it_is_whole() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    let mut echo = vec![4, 2, 0xff, 0xff, 0, 0, 0, 5];
    echo.resize(0xffff, 7);
    let (first, second) = echo.split_at(60_000);
    assert!(give(&mut connection, first, now).is_empty());
    assert!(give(&mut connection, second, now).is_empty());
    let reply = sent(&mut connection);
    assert!(matches!(&reply[..], [(_, Xid(5), Message::EchoReply(d))] if d.len() == 0xffff - 8));
}

#[test]
fn wrong_messages_are_answered_and_the_connection_stays() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    let mut long_unknown = vec![4, 77, 0, 100, 0, 0, 0, 5];
    long_unknown.resize(100, 3);
    let cases = [
        (long_unknown, Error::BadRequestBadType),
        (vec![4, 9, 0, 10, 0, 0, 0, 5, 0, 0], Error::BadRequestBadLen),
        (vec![1, 5, 0, 8, 0, 0, 0, 5], Error::BadRequestBadVersion),
        (vec![9, 5, 0, 8, 0, 0, 0, 5], Error::BadRequestBadVersion),
        (vec![4, 21, 0, 8, 0, 0, 0, 5], Error::BadRequestBadType),
    ];
    let count = cases.len() as u64;
    for (frame, error) in cases {
        let happened = give(&mut connection, &frame, now);
        assert_eq!(happened, [Event::Refused { xid: Xid(5), error }], "{frame:?}");
        let (version, xid, answered, quote) = the_error(&mut connection);
        assert_eq!((version, xid, answered), (Version::V1_3, Xid(5), error));
        assert_eq!(quote, wire::quote(&frame));
    }
    assert_eq!(connection.counters().refused, count);
    let barrier = Event::Message { xid: Xid(6), message: Message::BarrierRequest };
    assert_eq!(give(&mut connection, &[4, 20, 0, 8, 0, 0, 0, 6], now), [barrier]);
}

#[test]
fn errors_are_never_answered() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    for error in [
        &[4, 1, 0, 8, 0, 0, 0, 5][..],
        &[1, 1, 0, 12, 0, 0, 0, 5, 0, 1, 0, 1],
        &[9, 1, 0, 12, 0, 0, 0, 5, 0, 1, 0, 1],
        &[4, 1, 0, 12, 0, 0, 0, 5, 0, 1, 0, 1],
        &[4, 1, 0, 12, 0, 0, 0, 5, 0xee, 0xee, 0xee, 0xee],
    ] {
        give(&mut connection, error, now);
        assert!(sent(&mut connection).is_empty(), "{error:?}");
    }
    assert!(!connection.is_over());
}

#[test]
fn messages_that_the_peer_may_not_send_are_refused() {
    let now = Instant::now();
    let barrier_request = [4, 20, 0, 8, 0, 0, 0, 5];
    let mut controller = up(ConnectionSettings::new(Side::Controller), now);
    let refused = Event::Refused { xid: Xid(5), error: Error::BadRequestBadType };
    assert_eq!(give(&mut controller, &barrier_request, now), [refused]);
    assert_eq!(the_error(&mut controller).2, Error::BadRequestBadType);
}

#[test]
fn a_flood_of_hellos_costs_nothing() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    for _ in 0..100_000 {
        assert!(give(&mut connection, &HELLO_1_3, now).is_empty());
        assert!(give(&mut connection, &[6, 0, 0, 8, 0, 0, 0, 1], now).is_empty());
    }
    assert!(connection.transmit().is_empty());
    assert_eq!(connection.version(), Some(Version::V1_3));
}

#[test]
fn an_echo_flood_from_a_peer_that_does_not_read_is_bounded() {
    let now = Instant::now();
    let limits =
        ConnectionSettings { output_limit_bytes: 1000, output_max_bytes: 10_000, ..settings() };
    let mut connection = up(limits, now);
    let mut rounds = 0;
    while connection.wants_input() {
        give(&mut connection, &ECHO_1_3, now);
        rounds += 1;
    }
    assert!(rounds < 100, "a switch stops reading when its replies pile up");
    while !connection.is_over() {
        connection.receive(&ECHO_1_3, now);
        while let Some(event) = connection.poll_event() {
            assert!(matches!(event, Event::Down(DownReason::NotReading(10_000..11_000))));
        }
    }
}

#[test]
fn a_slow_reader_is_alive_while_nothing_is_read_from_it() {
    let now = Instant::now();
    let mut connection = up(ConnectionSettings { output_limit_bytes: 100, ..settings() }, now);
    for number in 0..30 {
        connection.send_as(Xid(number), &Message::BarrierReply).unwrap();
    }
    for second in 1..16 {
        assert!(!connection.wants_input());
        connection.handle_timeout(now + s(second * 4));
        connection.transmitted(8, now + s(second * 4));
    }
    assert!(events(&mut connection).is_empty());
    connection.handle_timeout(now + s(65));
    connection.handle_timeout(now + s(75));
    assert_eq!(events(&mut connection), [Event::Down(DownReason::NoEchoReply)]);
}

#[test]
fn half_a_message_waits_while_nothing_is_read() {
    let now = Instant::now();
    let mut connection = up(ConnectionSettings { output_limit_bytes: 100, ..settings() }, now);
    for number in 0..30 {
        connection.send_as(Xid(number), &Message::BarrierReply).unwrap();
    }
    assert!(give(&mut connection, &ECHO_1_3[..9], now).is_empty());
    for second in 1..16 {
        connection.handle_timeout(now + s(second * 4));
        connection.transmitted(8, now + s(second * 4));
    }
    assert!(events(&mut connection).is_empty(), "its rest stands in the stream");
}

#[test]
fn a_peer_is_not_judged_while_its_owner_does_not_read() {
    let now = Instant::now();
    let patient = ConnectionSettings { frame_deadline: s(30), ..settings() };
    let mut connection = up(patient, now);
    assert!(give(&mut connection, &ECHO_1_3[..9], now).is_empty());
    connection.hold_input(true, now);
    let mut at = now;
    while at < now + s(300) {
        at = connection.next_timeout().unwrap();
        connection.handle_timeout(at);
    }
    assert!(events(&mut connection).is_empty());
    assert!(sent(&mut connection).is_empty(), "no probe, as its answer would not be read");
    connection.hold_input(false, at);
    connection.handle_timeout(at + s(10));
    assert_eq!(sent(&mut connection).len(), 1, "the probe after a silence");
    connection.handle_timeout(at + s(20));
    assert_eq!(events(&mut connection), [Event::Down(DownReason::NoEchoReply)]);
}

#[test]
fn memory_of_a_burst_is_freed_when_the_peer_falls_silent() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    let long = Message::EchoReply(vec![7; 60_000]);
    let bytes = wire::encode(Version::V1_3, Xid(3), &long).unwrap();
    assert_eq!(give(&mut connection, &bytes, now).len(), 1);
    for _ in 0..20 {
        connection.send(&long).unwrap();
    }
    assert!(connection.buffer_bytes() > 21 * 60_000);
    connection.transmitted(connection.transmit().len(), now);
    connection.handle_timeout(now + s(5));
    assert!(connection.buffer_bytes() < 1_000, "{}", connection.buffer_bytes());
    let echo = (Version::V1_3, Xid(u32::MAX), Message::EchoRequest(Vec::new()));
    assert_eq!(sent(&mut connection), [echo]);
    assert_eq!(give(&mut connection, &bytes, now + s(6)).len(), 1, "it goes on");
}

#[test]
fn an_owner_can_stop_the_reading() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    connection.hold_input(true, now);
    assert!(!connection.wants_input());
    connection.hold_input(false, now);
    assert!(connection.wants_input());
}

#[test]
fn half_a_message_has_a_new_deadline_when_reading_resumes() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    assert!(give(&mut connection, &ECHO_1_3[..9], now).is_empty());
    connection.hold_input(true, now);
    // An answer that the peer leaves unread: of its own messages nothing is known.
    connection.send_as(Xid(1), &Message::BarrierReply).unwrap();
    connection.handle_timeout(now + s(10));
    assert!(events(&mut connection).is_empty(), "its rest stands in the stream");
    assert_eq!(connection.unfinished_since(), Some(now + s(10)));
    connection.hold_input(false, now + s(14));
    assert_eq!(connection.unfinished_since(), Some(now + s(14)));
    connection.transmitted(connection.transmit().len(), now + s(14));
    assert_eq!(give(&mut connection, &ECHO_1_3[9..10], now + s(15)), []);
    connection.handle_timeout(now + s(24));
    assert_eq!(events(&mut connection), [Event::Down(DownReason::HalfMessage)]);
}

#[test]
fn packet_ins_are_offered_and_replies_are_not_dropped() {
    let now = Instant::now();
    let mut connection = up(ConnectionSettings { output_limit_bytes: 1000, ..settings() }, now);
    let message = Message::EchoReply(vec![0; 92]);
    let taken = (0..30).filter(|_| connection.offer(Xid(0), &message).unwrap()).count();
    assert_eq!((taken, connection.counters().offers_dropped), (10, 20));
    assert!(connection.wants_input(), "packet-ins do not stop a switch from reading");
    connection.send_as(Xid(1), &Message::BarrierReply).unwrap();
    assert_eq!(sent(&mut connection).len(), 11);
    assert!(connection.offer(Xid(0), &message).unwrap());
}

#[test]
fn nothing_is_sent_before_and_after() {
    let now = Instant::now();
    let mut connection = Connection::new(settings(), now);
    assert_eq!(connection.send(&Message::BarrierReply), Err(SendError::NotUp));
    let mut connection = up(settings(), now);
    connection.close();
    connection.close();
    assert_eq!(events(&mut connection), [Event::Down(DownReason::Closed)]);
    assert_eq!(connection.offer(Xid(0), &Message::BarrierReply), Err(SendError::NotUp));
    assert!(give(&mut connection, &ECHO_1_3, now).is_empty());
    assert!(sent(&mut connection).is_empty());
}

#[test]
fn what_the_version_cannot_say_is_the_owners_error() {
    let now = Instant::now();
    let mut connection = Connection::new(settings(), now);
    give(&mut connection, &HELLO_1_0, now);
    sent(&mut connection);
    let result = connection.send(&Message::GetAsyncRequest);
    assert!(matches!(result, Err(SendError::Encode(_))));
    assert!(connection.transmit().is_empty());
    connection.send_as(Xid(2), &Message::FeaturesReply(Features::default())).unwrap();
    assert_eq!(sent(&mut connection).len(), 1);
}

#[test]
fn a_refusal_quotes_the_last_message() {
    let now = Instant::now();
    let mut connection = up(settings(), now);
    let barrier = [4, 20, 0, 8, 0, 0, 0, 6];
    connection.receive(&[barrier, barrier].concat(), now);
    assert!(connection.poll_event().is_some());
    connection.refuse(Xid(6), Error::BadRequestEperm).unwrap();
    let (_, xid, error, quote) = the_error(&mut connection);
    assert_eq!((xid, error, quote), (Xid(6), Error::BadRequestEperm, barrier.to_vec()));
}

#[test]
fn xids_of_the_connection_do_not_repeat_soon() {
    let mut connection = Connection::new(settings(), Instant::now());
    let first = connection.allocate_xid();
    assert!((0..100_000).all(|_| connection.allocate_xid() > first));
}
