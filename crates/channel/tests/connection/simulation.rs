//! Switch and controller joined in virtual time over a link with seeded faults.
//!
//! Whatever the link does, neither side panics, both end or go on, and what arrives is a prefix of
//! what was sent unless bytes were changed.

use channel::memory::{Cut, Direction, Faults, Pair, Peer};
use channel::{Connection, ConnectionSettings, Event, Side};
use openflow::{Message, Xid};
use std::time::{Duration, Instant};

/// Sends numbered barrier requests or replies and notes what comes.
struct Counting {
    connection: Connection,
    to_send: u32,
    seen: Vec<Xid>,
    went_up: bool,
    went_down: bool,
}

impl Counting {
    fn new(side: Side, to_send: u32, now: Instant) -> Self {
        let connection = Connection::new(ConnectionSettings::new(side), now);
        Self { connection, to_send, seen: Vec::new(), went_up: false, went_down: false }
    }
}

impl Peer for Counting {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn take_event(&mut self, event: Event, _: Instant) {
        assert!(!self.went_down, "nothing follows the end");
        match event {
            Event::Up { .. } => {
                self.went_up = true;
                for number in 0..self.to_send {
                    let request = Message::BarrierRequest;
                    self.connection.send_as(Xid(number), &request).expect("it is up");
                }
            }
            Event::Message { xid, message: Message::BarrierRequest } => {
                self.seen.push(xid);
                let reply = Message::BarrierReply;
                self.connection.send_as(xid, &reply).expect("it is up");
            }
            Event::Message { xid, .. } => self.seen.push(xid),
            Event::Refused { .. } => {}
            Event::Down(_) => self.went_down = true,
        }
    }
}

fn simulate(faults: Faults) -> Pair<Counting, Counting> {
    let now = Instant::now();
    let controller = Counting::new(Side::Controller, 200, now);
    let switch = Counting::new(Side::Switch, 0, now);
    let mut pair = Pair::new(controller, switch, faults, now);
    pair.run(Duration::from_secs(600));
    pair
}

fn counted(xids: &[Xid]) -> bool {
    xids.iter().zip(0..).all(|(xid, number)| xid.0 == number)
}

#[test]
fn fragments_and_delays_change_nothing() {
    for seed in 0..20 {
        let pair = simulate(Faults::fragments(seed));
        assert!(pair.a.went_up && pair.b.went_up, "seed {seed}");
        assert!(!pair.a.went_down && !pair.b.went_down, "ten idle minutes are probed, seed {seed}");
        assert_eq!((pair.a.seen.len(), pair.b.seen.len()), (200, 200), "seed {seed}");
        assert!(counted(&pair.a.seen) && counted(&pair.b.seen), "seed {seed}");
    }
}

#[test]
fn a_cut_link_ends_both_sides() {
    for seed in (0..400).step_by(3) {
        for cut in [Cut::Close, Cut::Silence] {
            let direction = if seed % 2 == 0 { Direction::AToB } else { Direction::BToA };
            let faults =
                Faults { cut: Some((direction, seed * 5, cut)), ..Faults::fragments(seed) };
            let pair = simulate(faults);
            assert!(pair.a.went_down && pair.b.went_down, "seed {seed} {cut:?}");
            assert!(counted(&pair.a.seen) && counted(&pair.b.seen), "seed {seed} {cut:?}");
        }
    }
}

#[test]
fn a_changed_byte_is_survived_by_both_sides() {
    for seed in (0..1700).step_by(7) {
        let direction = if seed % 2 == 0 { Direction::AToB } else { Direction::BToA };
        let faults =
            Faults { cut: Some((direction, seed, Cut::Invert)), ..Faults::fragments(seed) };
        let pair = simulate(faults);
        assert_eq!(pair.a.went_down, pair.b.went_down, "neither is left alone, seed {seed}");
    }
}
