//! Encode, then decode, is the identity: for every row of every table, and for random messages of
//! both versions. No truncation of what was encoded is accepted.

use openflow::action::ACTIONS;
use openflow::field::FIELDS;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::GroupModCommand;
use openflow::instruction::INSTRUCTIONS;
use openflow::message::{MESSAGES, MultipartReply, MultipartReplyBody};
use openflow::text::parse_group_mod;
use openflow::{
    Action, ActionKind, BitRange, BucketId, Error, Field, Instruction, Match, Message, Version, Xid,
};
use proptest::prelude::{ProptestConfig, any, prop, proptest};

use crate::random::{self, Entropy, bytes};

/// Encodes and decodes; the same must come out, and no truncation may be accepted.
fn round_trip(version: Version, message: &Message) -> Vec<u8> {
    let xid = Xid(0x0102_0304);
    let bytes = wire::encode(version, xid, message)
        .unwrap_or_else(|error| panic!("{version}: {error}: {message:?}"));
    let decoded = wire::decode(&bytes)
        .unwrap_or_else(|error| panic!("{version}: {error}: {message:?}: {bytes:02x?}"));
    assert_eq!(decoded, (version, xid, message.clone()));
    for len in 0..bytes.len() {
        assert!(wire::decode(&bytes[..len]).is_err(), "{version}: {len} bytes of {message:?}");
    }
    bytes
}

fn flow_with(matching: Match, instructions: Vec<Instruction>) -> Message {
    Message::FlowMod(FlowMod { matching, instructions, ..FlowMod::new(FlowModCommand::Add) })
}

#[test]
fn what_the_fuzz_target_found_round_trips_or_is_refused() {
    let all = testkit::vectors::load_dir(&testkit::vectors_dir("fuzz")).unwrap();
    let found = all.iter().filter(|vector| vector.file.ends_with("wire.vec"));
    let mut count = 0;
    for vector in found {
        let Ok((version, xid, message)) = wire::decode(&vector.bytes) else { continue };
        let again = wire::encode(version, xid, &message).unwrap();
        assert_eq!(wire::decode(&again), Ok((version, xid, message)), "{}", vector.place());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn a_load_of_1_5_is_the_set_field_that_says_it() {
    let load = |bits: u16, header: u32, value: u64| {
        let action = [&[0xff, 0xff, 0, 24, 0, 0, 0x23, 0x20, 0, 7][..], &bits.to_be_bytes()];
        let argument = [&header.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let instruction = [&[0, 4, 0, 32, 0, 0, 0, 0][..], &action.concat(), &argument].concat();
        let mut flow = wire::encode(Version::V1_5, Xid(1), &flow_with(Match::any(), Vec::new()));
        let bytes = flow.as_mut().unwrap();
        bytes.extend(instruction);
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        wire::decode(bytes).map(|(.., message)| message).map_err(|refused| refused.error)
    };
    const TTL: u32 = 0x0001_3a01;
    let of = |action| Ok(flow_with(Match::any(), vec![Instruction::ApplyActions(vec![action])]));
    assert_eq!(load(7, TTL, 5), of(Action::set_field(Field::NwTtl, 5)));
    let bits = BitRange { offset: 4, n_bits: 4 };
    assert_eq!(load(4 << 6 | 3, TTL, 5), of(Action::Load { bits, dst: Field::NwTtl, value: 5 }));
    assert_eq!(load(4 << 6 | 7, TTL, 5), Err(Error::BadActionBadSetLen));
    assert_eq!(load(4 << 6 | 3, TTL, 16), Err(Error::BadActionBadSetArgument));
    const IPV6_EXTHDR: u32 = 0x8000_4e02;
    assert_eq!(load(8, IPV6_EXTHDR, 5), Err(Error::BadActionBadSetType));
}

#[test]
fn every_field_round_trips_in_every_version_that_has_it() {
    for (index, row) in FIELDS.iter().enumerate() {
        for &version in Version::ALL {
            let mut count = 0;
            for seed in 0..8 {
                let entropy = bytes(index * 8 + seed);
                let matching = random::match_on(&mut Entropy::new(&entropy), version, row.field);
                if let Some(matching) = matching {
                    round_trip(version, &flow_with(matching, Vec::new()));
                    count += 1;
                }
            }
            let has = row.field.is_in(version);
            assert_eq!(count > 0, has, "{version}: {}", row.name);
        }
    }
}

#[test]
fn every_settable_field_round_trips_in_set_field() {
    for row in FIELDS {
        for value in [0, 1, row.field.full_mask()] {
            let actions = vec![Action::SetField { field: row.field, value }];
            let message = flow_with(Match::any(), vec![Instruction::ApplyActions(actions)]);
            for version in [Version::V1_2, Version::V1_3, Version::NEWEST] {
                if row.settable && row.field.is_in(version) {
                    round_trip(version, &message);
                } else {
                    assert!(wire::encode(version, Xid(0), &message).is_err(), "{}", row.name);
                }
            }
        }
    }
}

#[test]
fn every_action_round_trips_in_units_of_eight_bytes() {
    for (index, row) in ACTIONS.iter().enumerate() {
        for &version in Version::ALL {
            if row.kind.number(version).is_none() && row.kind != ActionKind::Learn {
                continue;
            }
            for entropy in [Vec::new(), bytes(index)] {
                let action = random::action(&mut Entropy::new(&entropy), version, row.kind);
                let list = Instruction::ApplyActions(vec![action]);
                let bytes = round_trip(version, &flow_with(Match::any(), vec![list]));
                let around = match (version.has_pipeline(), version.has_oxm()) {
                    (false, _) => 72,
                    (true, false) => 56 + 88,
                    (true, true) => 64,
                };
                let len = bytes.len() - around;
                assert!(len >= 8 && len.is_multiple_of(8), "{version}: {}", row.text);
            }
        }
    }
}

#[test]
fn every_instruction_round_trips() {
    for (index, row) in INSTRUCTIONS.iter().enumerate() {
        for entropy in [Vec::new(), bytes(index)] {
            for version in [Version::V1_1, Version::V1_2, Version::V1_3] {
                let mut entropy = Entropy::new(&entropy);
                let instruction = random::instruction(&mut entropy, version, row.kind);
                let message = flow_with(Match::any(), vec![instruction]);
                if row.kind.number(version).is_some() {
                    round_trip(version, &message);
                } else {
                    assert!(wire::encode(version, Xid(0), &message).is_err(), "{}", row.text);
                }
            }
        }
    }
}

#[test]
fn every_message_round_trips_in_every_version_that_has_it() {
    for (index, row) in MESSAGES.iter().enumerate() {
        for &version in Version::ALL {
            for seed in 0..16 {
                let entropy = if seed == 0 { Vec::new() } else { bytes(index * 16 + seed) };
                let message = random::message(&mut Entropy::new(&entropy), version, row.kind);
                if row.kind.is_in(version) {
                    round_trip(version, &message);
                } else {
                    assert!(wire::encode(version, Xid(0), &message).is_err(), "{}", row.name);
                }
            }
        }
    }
}

#[test]
fn buckets_without_a_number_get_the_lowest_that_is_free() {
    let text =
        "group_id=1,type=all,bucket=bucket_id:1,actions=output:1,bucket=output:2,bucket=output:3";
    let asked = parse_group_mod(text, GroupModCommand::Add).unwrap();
    let frame = wire::encode(Version::V1_5, Xid(0), &Message::GroupMod(asked.clone())).unwrap();
    let Message::GroupMod(read) = wire::decode(&frame).unwrap().2 else { panic!("{frame:02x?}") };
    let ids: Vec<_> = read.buckets.iter().map(|bucket| bucket.bucket_id).collect();
    assert_eq!(ids, [1, 0, 2].map(|id| Some(BucketId(id))));
    assert!(wire::encode(Version::V1_4, Xid(0), &Message::GroupMod(asked)).is_err());
}

/// Concatenates the parts of a reply, checking their length and flags.
fn joined(frames: &[Vec<u8>]) -> Vec<MultipartReplyBody> {
    let mut bodies = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        assert!(frame.len() <= wire::MAX_FRAME_LEN);
        let (_, _, message) = wire::decode(frame).unwrap();
        let Message::MultipartReply(MultipartReply { more, body }) = message else {
            panic!("not a multipart reply: {message:?}");
        };
        assert_eq!(more, at + 1 < frames.len(), "part {at} of {}", frames.len());
        bodies.push(body);
    }
    bodies
}

/// A reply's frames, and how many of its elements are in none.
fn frames(version: Version, body: MultipartReplyBody) -> (Vec<Vec<u8>>, u64) {
    let mut frames = wire::ReplyFrames::new(version, Xid(7), body);
    let made = frames.by_ref().map(|frame| frame.unwrap()).collect();
    (made, frames.left_out())
}

#[test]
fn long_replies_are_split_between_elements() {
    for &version in Version::ALL {
        let flows: Vec<_> = (0..3000)
            .map(|at| random::stats(&mut Entropy::new(&bytes(at)[..200]), version))
            .collect();
        let body = MultipartReplyBody::Flow(flows.clone());
        let frames = frames(version, body).0;
        assert!(frames.len() > 3);
        let mut together = Vec::new();
        for part in joined(&frames) {
            let MultipartReplyBody::Flow(part) = part else { panic!("another type: {part:?}") };
            together.extend(part);
        }
        assert_eq!(together, flows);
    }
    let (empty, _) = frames(Version::V1_3, MultipartReplyBody::Flow(vec![]));
    assert_eq!(joined(&empty), [MultipartReplyBody::Flow(vec![])]);
}

#[test]
fn what_cannot_be_encoded_is_left_out_and_counted() {
    let mut flows: Vec<_> = (0..9)
        .map(|at| random::stats(&mut Entropy::new(&bytes(at)[..200]), Version::V1_0))
        .collect();
    let sayable = flows.clone();
    let mut unsayable = flows[0].clone();
    unsayable.matching = Match::any().with(openflow::Field::Metadata, 1);
    flows.insert(4, unsayable);
    let (frames, left_out) = frames(Version::V1_0, MultipartReplyBody::Flow(flows));
    assert_eq!(left_out, 1);
    assert_eq!(joined(&frames), [MultipartReplyBody::Flow(sayable)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_messages_round_trip(
        version in prop::sample::select(Version::ALL),
        row in prop::sample::select(MESSAGES),
        entropy in prop::collection::vec(any::<u8>(), 0..800),
    ) {
        if row.kind.number(version).is_some() {
            round_trip(version, &random::message(&mut Entropy::new(&entropy), version, row.kind));
        }
    }

    #[test]
    fn random_replies_split_into_themselves(
        version in prop::sample::select(Version::ALL),
        entropy in prop::collection::vec(any::<u8>(), 0..800),
    ) {
        let body = random::reply_body(&mut Entropy::new(&entropy), version);
        let (frames, left_out) = frames(version, body.clone());
        assert_eq!((joined(&frames), left_out), (vec![body], 0));
    }

    #[test]
    fn random_bytes_never_panic(
        version in any::<u8>(),
        kind in 0_u8..32,
        body in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let len = u16::try_from(8 + body.len()).unwrap().to_be_bytes();
        for version in [1, 3, 4, version] {
            let mut frame = vec![version, kind, len[0], len[1], 0, 0, 0, 9];
            frame.extend(&body);
            match wire::decode(&frame) {
                Ok((version, xid, message)) => {
                    let again = wire::encode(version, xid, &message).unwrap();
                    assert_eq!(wire::decode(&again).unwrap().2, message);
                }
                Err(error) => assert_eq!((error.version, error.xid.0), (version, 9)),
            }
        }
    }
}
