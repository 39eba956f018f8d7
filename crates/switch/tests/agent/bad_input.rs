//! Bad input of every kind on the OpenFlow connections: none ends the switch, and each is answered
//! as the specification says, or its connection is closed.

use std::io::{Read, Write};
use std::time::Duration;

use openflow::{Message, Version, Xid};

use crate::harness::{Controller, Switch, add_flow};

/// A hello of 1.3, for peers that do nothing as a controller does.
const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];

/// The error that answers what was sent, by name.
fn error_of(controller: &mut Controller, version: Version) -> (Xid, &'static str) {
    let frame = controller.frame().expect("an answer");
    match wire::decode(&frame).unwrap() {
        (_, xid, Message::Error(error)) => (xid, error.error(version).unwrap().name()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_and_oversized_bodies_are_of_a_bad_length() {
    let switch = Switch::start(1, "");
    for version in [Version::V1_0, Version::V1_3] {
        let mut controller = switch.controller(version);
        let whole = wire::encode(version, Xid(7), &add_flow(1, openflow::Match::any(), Vec::new()))
            .unwrap();
        // A frame of the right length whose body ends too early.
        let mut short = whole[..40].to_vec();
        short[2..4].copy_from_slice(&40_u16.to_be_bytes());
        controller.raw(&short);
        assert_eq!(error_of(&mut controller, version), (Xid(7), "OFPBRC_BAD_LEN"));
        // A request without a body that has one.
        let mut long = wire::encode(version, Xid(8), &Message::BarrierRequest).unwrap();
        long.extend([0; 8]);
        long[3] = 16;
        controller.raw(&long);
        assert_eq!(error_of(&mut controller, version), (Xid(8), "OFPBRC_BAD_LEN"));
        controller.barrier();
    }
}

#[test]
fn another_version_in_mid_stream_is_refused() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    controller.raw(&wire::encode(Version::V1_0, Xid(3), &Message::BarrierRequest).unwrap());
    assert_eq!(error_of(&mut controller, Version::V1_3), (Xid(3), "OFPBRC_BAD_VERSION"));
    controller.raw(&[9, 2, 0, 8, 0, 0, 0, 4]);
    assert_eq!(error_of(&mut controller, Version::V1_3), (Xid(4), "OFPBRC_BAD_VERSION"));
    controller.barrier();
}

#[test]
fn an_unknown_type_is_refused() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    controller.raw(&[4, 200, 0, 8, 0, 0, 0, 5]);
    assert_eq!(error_of(&mut controller, Version::V1_3), (Xid(5), "OFPBRC_BAD_TYPE"));
    controller.barrier();
}

#[test]
fn an_impossible_length_ends_its_connection_only() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    controller.raw(&[4, 2, 0, 7, 0, 0, 0, 6]);
    assert_eq!(error_of(&mut controller, Version::V1_3), (Xid(6), "OFPBRC_BAD_LEN"));
    assert!(controller.closed().is_empty());
    switch.assert_serves();
}

#[test]
fn garbage_ends_its_connection_only() {
    let switch = Switch::start(1, "");
    let mut stream = switch.stream();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: switch\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    // Closing with bytes unread is a reset for some; both are an end.
    let _ = stream.read_to_end(&mut rest);
    switch.assert_serves();
    switch.stop();
}

#[test]
fn random_bytes_behind_a_good_hello_end_nothing_else() {
    let switch = Switch::start(1, "");
    let mut random = testkit::Random::new(1);
    for _ in 0..50 {
        let mut controller = switch.controller(Version::V1_3);
        // The switch may have closed already, in the middle of it.
        let _ = controller.try_raw(&random.bytes(600));
    }
    switch.assert_serves();
}

#[test]
fn silent_peers_and_half_messages_harm_nobody_else() {
    let switch = Switch::start(1, "");
    let silent: Vec<_> = (0..20).map(|_| switch.stream()).collect();
    let mut halves = Vec::new();
    for cut in [1, 4, 7, 8, 20] {
        let mut half = switch.controller(Version::V1_3);
        let whole =
            wire::encode(Version::V1_3, Xid(1), &add_flow(1, openflow::Match::any(), Vec::new()))
                .unwrap();
        half.raw(&whole[..cut]);
        halves.push(half);
    }
    switch.assert_serves();
    drop(halves);
    drop(silent);
    switch.assert_serves();
    switch.stop();
}

#[test]
fn a_controller_that_goes_away_in_mid_stream_leaves_its_entries() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(1, openflow::Match::any(), Vec::new()));
    controller.barrier();
    let whole =
        wire::encode(Version::V1_3, Xid(1), &add_flow(2, openflow::Match::any(), Vec::new()))
            .unwrap();
    controller.raw(&whole[..30]);
    drop(controller);
    crate::harness::until("the switch has noticed", || {
        (switch.counter("channel_down") == 1).then_some(())
    });
    let out = switch.ctl(&["dump-flows", "--json"]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn a_peer_that_does_not_answer_the_probe_is_given_up() {
    let switch = Switch::start(1, "inactivity-probe = 1");
    let mut silent = switch.stream();
    silent.write_all(&HELLO).unwrap();
    let mut bytes = Vec::new();
    silent.read_to_end(&mut bytes).unwrap();
    let mut kinds = Vec::new();
    while let Some(length) = wire::frame_len(&bytes).unwrap() {
        kinds.push(bytes[1]);
        bytes.drain(..length);
    }
    assert_eq!(kinds, [0, 2], "the switch asked before");
    switch.assert_serves();
}

#[test]
fn a_controller_that_does_not_read_stops_itself_only() {
    let switch = Switch::start(1, "");
    let mut greedy = switch.stream();
    greedy.write_all(&HELLO).unwrap();
    greedy.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = wire::encode(
        Version::V1_3,
        Xid(1),
        &Message::MultipartRequest(openflow::message::MultipartRequest {
            more: false,
            body: openflow::message::MultipartRequestBody::TableFeatures(Vec::new()),
        }),
    )
    .unwrap();
    // Far more is asked than fits anywhere; at some point the switch takes no further request.
    let mut refused = false;
    for _ in 0..200_000 {
        if greedy.write_all(&request).is_err() {
            refused = true;
            break;
        }
    }
    assert!(refused, "the switch went on reading");
    switch.assert_serves();
}

#[test]
fn a_flood_of_half_open_connections_keeps_no_controller_out() {
    let switch = Switch::start(1, "");
    let mut up = switch.controller(Version::V1_3);
    let mut flood = Vec::new();
    for round in 0..4 {
        flood.extend((0..150).map(|_| switch.stream()));
        switch.assert_serves();
        up.barrier();
        let (open, round) = (flood.len() as u64, round + 1);
        let gone = switch.counter("channel_evicted");
        assert!(gone >= open.saturating_sub(256 + round), "{gone} of {open} are ended");
    }
    assert_eq!(switch.counter("channel_turned_away"), 0);
    drop(flood);
    switch.stop();
}
