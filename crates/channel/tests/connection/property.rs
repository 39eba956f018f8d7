//! Any bytes in any pieces: no panic, only whole messages go out, and the pieces change nothing.

use channel::{Connection, ConnectionSettings, Event, Side};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use std::time::Instant;

/// Something like a message: the header is plausible, the body is not.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let version = prop_oneof![4 => Just(4_u8), 4 => Just(1), 1 => any::<u8>()];
    let body = prop::collection::vec(any::<u8>(), 0..120);
    let lie = prop_oneof![20 => Just(0_u16), 1 => any::<u16>()];
    let message = (version, 0_u8..32, body, any::<u32>(), lie);
    let message = message.prop_map(|(version, kind, body, xid, lie)| {
        let length = u16::try_from(body.len()).unwrap().wrapping_add(8).wrapping_add(lie);
        let mut bytes = vec![version, kind];
        bytes.extend(length.to_be_bytes());
        bytes.extend(xid.to_be_bytes());
        bytes.extend(body);
        bytes
    });
    prop::collection::vec(message, 0..20).prop_map(|messages| messages.concat())
}

fn settings(is_switch: bool) -> ConnectionSettings {
    ConnectionSettings::new(if is_switch { Side::Switch } else { Side::Controller })
}

/// All events when `bytes` come in pieces of these lengths, again and again.
fn events(settings: ConnectionSettings, bytes: &[u8], pieces: &[usize]) -> Vec<Event> {
    let now = Instant::now();
    let mut connection = Connection::new(settings, now);
    let mut happened = Vec::new();
    let (mut rest, mut pieces) = (bytes, pieces.iter().cycle());
    while !rest.is_empty() {
        let length = pieces.next().map_or(rest.len(), |piece| (*piece).min(rest.len()));
        let (piece, behind) = rest.split_at(length);
        connection.receive(piece, now);
        happened.extend(std::iter::from_fn(|| connection.poll_event()));
        rest = behind;
    }
    let mut sent = connection.transmit();
    while let Some(length) = wire::frame_len(sent).unwrap() {
        wire::decode(&sent[..length]).unwrap();
        sent = &sent[length..];
    }
    assert!(sent.is_empty());
    happened
}

proptest! {
    #[test]
    fn pieces_change_nothing(
        is_switch in any::<bool>(),
        says_hello in any::<bool>(),
        messages in messages(),
        pieces in prop::collection::vec(1_usize..200, 1..10),
    ) {
        let hello: &[u8] = if says_hello { &[4, 0, 0, 8, 0, 0, 0, 1] } else { &[] };
        let bytes = [hello, &messages].concat();
        let whole = events(settings(is_switch), &bytes, &[]);
        let in_pieces = events(settings(is_switch), &bytes, &pieces);
        assert_eq!(whole, in_pieces);
        let downs = whole.iter().filter(|event| matches!(event, Event::Down(_))).count();
        assert!(downs == 0 || downs == 1 && matches!(whole.last(), Some(Event::Down(_))));
    }

    #[test]
    fn noise_is_survived(
        is_switch in any::<bool>(),
        noise in prop::collection::vec(any::<u8>(), 0..500),
    ) {
        events(settings(is_switch), &noise, &[7]);
    }
}
