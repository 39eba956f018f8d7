//! Hello, features and configuration in both versions.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use openflow::message::{
    Capabilities, Hello, MultipartReplyBody, MultipartRequestBody, SwitchConfig,
};
use openflow::port::PortState;
use openflow::{DatapathId, Error, Message, PortNo, Version, VersionBitmap, Xid};

use crate::harness::{Switch, WITH_1_4};

#[test]
fn features_of_1_0_carry_ports_and_actions() {
    let switch = Switch::start(2, "");
    let mut controller = switch.controller(Version::V1_0);
    let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest) else {
        panic!("no features");
    };
    assert_eq!(features.datapath_id, DatapathId(0xa1));
    assert_eq!((features.n_buffers, features.actions), (0, 0xfff));
    let ports: Vec<PortNo> = features.ports.iter().map(|port| port.port_no).collect();
    assert_eq!(ports, [PortNo(1), PortNo(2)]);
    assert!(features.capabilities.contains(Capabilities::FLOW_STATS | Capabilities::PORT_STATS));
    switch.stop();
}

#[test]
fn features_of_1_3_leave_ports_to_a_multipart_request() {
    let switch = Switch::start(2, "tables = 7");
    let mut controller = switch.controller(Version::V1_3);
    let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest) else {
        panic!("no features");
    };
    assert_eq!((features.n_tables, features.auxiliary_id), (7, 0));
    assert!(features.capabilities.contains(Capabilities::GROUP_STATS));
    let ports = controller.port_descs();
    assert_eq!(ports.len(), 2);
    assert!(ports.iter().all(|port| !port.state.contains(PortState::LINK_DOWN)));
}

/// The next message on a stream where the hello exchange is what is tested.
fn frame_of(stream: &mut UnixStream) -> Vec<u8> {
    let mut frame = vec![0; wire::HEADER_LEN];
    stream.read_exact(&mut frame).unwrap();
    frame.resize(wire::frame_len(&frame).unwrap().unwrap(), 0);
    stream.read_exact(&mut frame[wire::HEADER_LEN..]).unwrap();
    frame
}

#[test]
fn the_highest_common_version_is_taken() {
    // Where no version is named, 1.4 is not offered.
    for (toml, versions, highest) in [
        ("", &[Version::V1_0][..], Version::V1_0),
        ("", &[Version::V1_0, Version::V1_3], Version::V1_3),
        ("", Version::ALL, Version::V1_3),
        (WITH_1_4, Version::ALL, Version::V1_4),
    ] {
        let switch = Switch::start(1, toml);
        let mut stream = switch.stream();
        let hello = Message::Hello(Hello { versions: Some(VersionBitmap::of(versions)) });
        for (version, message) in [(Version::V1_3, &hello), (highest, &Message::FeaturesRequest)] {
            stream.write_all(&wire::encode(version, Xid(5), message).unwrap()).unwrap();
        }
        wire::decode_hello(&frame_of(&mut stream)).unwrap();
        let (version, xid, reply) = wire::decode(&frame_of(&mut stream)).unwrap();
        assert_eq!((version, xid), (highest, Xid(5)));
        assert!(matches!(reply, Message::FeaturesReply(_)), "{reply:?}");
    }
}

#[test]
fn a_version_that_is_not_spoken_is_refused_with_an_error() {
    let switch = Switch::start(1, "protocols = [\"OpenFlow13\"]");
    let mut stream = switch.stream();
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    frame_of(&mut stream);
    let last = frame_of(&mut stream);
    // In whatever version: type 1 is an error, its type 0 is "hello failed".
    assert_eq!((last[1], &last[8..12]), (1, &[0, 0, 0, 0][..]));
    switch.assert_serves();
}

#[test]
fn configuration_is_kept_and_unknown_flags_are_refused() {
    let switch = Switch::start(1, "");
    for version in [Version::V1_0, Version::V1_3] {
        let mut controller = switch.controller(version);
        for flags in [1, 2, 0] {
            let config = SwitchConfig { flags, miss_send_len: 77 };
            controller.send(&Message::SetConfig(config));
            let reply = controller.request(&Message::GetConfigRequest);
            assert_eq!(reply, Message::GetConfigReply(config));
        }
        let all = SwitchConfig { flags: 3, miss_send_len: 77 };
        controller.refused(&Message::SetConfig(all), Error::SwitchConfigBadFlags);
    }
}

#[test]
fn the_description_is_the_configured_one() {
    let switch = Switch::start(1, "mfr-desc = \"Somebody\"\ndp-desc = \"rack 7\"");
    let mut controller = switch.controller(Version::V1_3);
    let body = controller.multipart(MultipartRequestBody::Desc);
    let MultipartReplyBody::Desc(desc) = body else { panic!("{body:?}") };
    assert_eq!((desc.mfr_desc.as_str(), desc.dp_desc.as_str()), ("Somebody", "rack 7"));
}

#[test]
fn echoes_come_back_with_their_bytes() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_3);
    let reply = controller.request(&Message::EchoRequest(b"how are you".to_vec()));
    assert_eq!(reply, Message::EchoReply(b"how are you".to_vec()));
}
