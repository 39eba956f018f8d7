//! Messages with one fault each: every fault has its protocol error, and every error its answer.

use openflow::message::ErrorMessage;
use openflow::{Error, Message, Version, Xid};
use testkit::vectors::Vector;

fn vectors() -> Vec<Vector> {
    testkit::vectors::load_dir(&testkit::vectors_dir("malformed")).unwrap()
}

#[test]
fn every_fault_has_its_error() {
    let mut wrong = Vec::new();
    for vector in vectors() {
        let expected = vector.error.as_deref().unwrap();
        match wire::decode(&vector.bytes) {
            Ok((_, _, message)) => wrong.push(format!("{}: {message:?}", vector.place())),
            Err(found) if found.error.name() != expected => {
                wrong.push(format!("{}: {found}, expected {expected}", vector.place()));
            }
            Err(found) => assert_eq!(found.xid, Xid(0x2a), "{}", vector.place()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_error_has_its_answer() {
    for vector in vectors() {
        let place = vector.place();
        let found = wire::decode(&vector.bytes).unwrap_err();
        let (version, reply) = found.reply(&vector.bytes).unwrap_or_else(|| panic!("{place}"));
        let bytes = wire::encode(version, found.xid, &reply).unwrap();
        let (_, xid, decoded) = wire::decode(&bytes).unwrap();
        let Message::Error(body) = decoded else { panic!("{place}: {decoded:?}") };
        assert_eq!(xid, Xid(0x2a), "{place}");
        let numbers = found.error.numbers(version);
        assert_eq!((body.error_type, body.code), numbers, "{place}");
        assert_eq!(body.data, vector.bytes, "{place}");
    }
}

#[test]
fn errors_and_hellos_are_never_answered() {
    for (version, number) in [(1, 1), (4, 1), (4, 0), (99, 0), (99, 1)] {
        let frame = [version, number, 0, 9, 0, 0, 0, 1];
        assert_eq!(wire::decode(&frame).unwrap_err().reply(&frame), None);
    }
    let short = [4, 5, 0];
    assert_eq!(wire::decode(&short).unwrap_err().reply(&short), None);
}

#[test]
fn an_unknown_version_is_answered_in_the_nearest_one_below() {
    for (version, answered) in [(0, Version::V1_0), (99, Version::NEWEST)] {
        let frame = [version, 5, 0, 8, 0, 0, 0, 1];
        let found = wire::decode(&frame).unwrap_err();
        assert_eq!(found.error, Error::BadRequestBadVersion);
        let (with, reply) = found.reply(&frame).unwrap();
        assert_eq!(with, answered);
        let expected = ErrorMessage::new(with, Error::BadRequestBadVersion, frame.to_vec());
        assert_eq!(reply, Message::Error(expected));
    }
}

#[test]
fn a_message_too_long_for_its_length_field_is_refused() {
    let mut out = b"before".to_vec();
    let long = Message::EchoRequest(vec![0; 65_528]);
    let refused = wire::encode_into(&mut out, Version::V1_3, Xid(1), &long);
    assert_eq!(refused, Err(wire::EncodeError::TooLong { what: "message" }));
    assert_eq!(out, b"before");
    let longest = Message::EchoRequest(vec![0; 65_527]);
    wire::encode_into(&mut out, Version::V1_3, Xid(1), &longest).unwrap();
    assert_eq!(wire::decode(&out[6..]).unwrap().2, longest);
}
