//! Two connections joined in memory and in virtual time, with faults from a seed.
//!
//! For simulation: hours of waiting pass at once, and a seed that fails fails again. The faults are
//! those of real peers and links: bytes in odd fragments, delay, a stream that is cut or falls
//! silent in the middle of a message, and bytes that arrive changed.

use crate::connection::Connection;
use crate::event::{DownReason, Event};
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The owner of a connection that can be joined to another.
pub trait Peer {
    /// Its connection.
    fn connection(&mut self) -> &mut Connection;
    /// Takes an event of its connection.
    fn take_event(&mut self, event: Event, now: Instant);
    /// When [`Peer::handle_timeout`] is due, if ever.
    fn next_timeout(&mut self) -> Option<Instant> {
        self.connection().next_timeout()
    }
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant) {
        self.connection().handle_timeout(now);
    }
}

/// Direction of bytes between the two joined peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first peer to the second.
    AToB,
    /// From the second peer to the first.
    BToA,
}

/// The fate of the bytes of one direction from a certain byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// They vanish, and the stream stays open.
    Silence,
    /// The stream ends.
    Close,
    /// This one byte is inverted, the others arrive.
    Invert,
}

/// The faults of a link.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Seed of all chance.
    pub seed: u64,
    /// Each piece takes from nothing to this long.
    pub latency_max: Duration,
    /// Pieces have from one byte to this many.
    pub fragment_max_bytes: usize,
    /// Direction of the bytes that are cut, the number of bytes before them, and the cut.
    pub cut: Option<(Direction, u64, Cut)>,
}

impl Faults {
    /// A link with odd fragments and delays of up to 10 ms, and no loss.
    #[must_use]
    pub fn fragments(seed: u64) -> Self {
        Self { seed, latency_max: Duration::from_millis(10), fragment_max_bytes: 100, cut: None }
    }
}

/// Two joined peers.
#[derive(Debug)]
pub struct Pair<A, B> {
    /// The first peer.
    pub a: A,
    /// The second peer.
    pub b: B,
    now: Instant,
    faults: Faults,
    chance: Rng,
    to_a: Pipe,
    to_b: Pipe,
}

/// The bytes in flight to one peer.
#[derive(Debug, Default)]
struct Pipe {
    pieces: VecDeque<(Instant, Piece)>,
    entered_bytes: u64,
    closed: bool,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    End,
}

impl<A: Peer, B: Peer> Pair<A, B> {
    /// Joins two peers at the time `now`.
    #[must_use]
    pub fn new(a: A, b: B, faults: Faults, now: Instant) -> Self {
        let chance = Rng::with_seed(faults.seed);
        let (to_a, to_b) = (Pipe::default(), Pipe::default());
        Self { a, b, now, faults, chance, to_a, to_b }
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets virtual time pass, with everything that happens in it.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.collect(Direction::AToB);
            self.collect(Direction::BToA);
            let due =
                [self.to_a.next(), self.to_b.next(), self.a.next_timeout(), self.b.next_timeout()];
            let Some(next) = due.into_iter().flatten().min().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            step(&mut self.a, &mut self.to_a, self.now);
            step(&mut self.b, &mut self.to_b, self.now);
        }
        self.now = end;
    }

    /// Moves what the sender of `direction` has queued onto the link.
    fn collect(&mut self, direction: Direction) {
        let (connection, pipe) = match direction {
            Direction::AToB => (self.a.connection(), &mut self.to_b),
            Direction::BToA => (self.b.connection(), &mut self.to_a),
        };
        let mut bytes = connection.transmit().to_vec();
        connection.transmitted(bytes.len(), self.now);
        let is_over = connection.is_over();
        let mut end_now = is_over;
        if let Some((cut_direction, at, cut)) = self.faults.cut
            && cut_direction == direction
        {
            let room = usize::try_from(at.saturating_sub(pipe.entered_bytes)).unwrap_or(usize::MAX);
            pipe.entered_bytes += bytes.len() as u64;
            match cut {
                Cut::Invert => {
                    let is_past = pipe.entered_bytes - bytes.len() as u64 > at;
                    if let Some(byte) = bytes.get_mut(room).filter(|_| !is_past) {
                        *byte = !*byte;
                    }
                }
                Cut::Silence => {
                    bytes.truncate(room);
                    end_now = is_over && pipe.entered_bytes <= at;
                }
                Cut::Close => {
                    end_now |= bytes.len() > room;
                    bytes.truncate(room);
                }
            }
        }
        if !pipe.closed {
            pipe.enter(&bytes, end_now, self.now, &self.faults, &mut self.chance);
        }
    }
}

impl Pipe {
    fn next(&self) -> Option<Instant> {
        self.pieces.front().map(|(at, _)| *at)
    }

    fn enter(
        &mut self,
        mut bytes: &[u8],
        end: bool,
        now: Instant,
        faults: &Faults,
        chance: &mut Rng,
    ) {
        let mut at = self.pieces.back().map_or(now, |(at, _)| *at).max(now);
        while !bytes.is_empty() {
            let length = chance.usize(1..=faults.fragment_max_bytes.max(1));
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            at = at.max(now + faults.latency_max.mul_f64(chance.f64()));
            self.pieces.push_back((at, Piece::Bytes(piece.to_vec())));
            bytes = rest;
        }
        if end {
            self.closed = true;
            self.pieces.push_back((at, Piece::End));
        }
    }
}

/// Delivers to `peer` the bytes that have arrived, its timeouts that are due, and its events.
fn step(peer: &mut impl Peer, pipe: &mut Pipe, now: Instant) {
    while pipe.next().is_some_and(|at| at <= now)
        && let Some((_, piece)) = pipe.pieces.pop_front()
    {
        match piece {
            Piece::Bytes(bytes) => peer.connection().receive(&bytes, now),
            Piece::End => peer.connection().stream_ended(DownReason::PeerClosed),
        }
        drain(peer, now);
    }
    if peer.next_timeout().is_some_and(|at| at <= now) {
        peer.handle_timeout(now);
    }
    drain(peer, now);
}

fn drain(peer: &mut impl Peer, now: Instant) {
    while let Some(event) = peer.connection().poll_event() {
        peer.take_event(event, now);
    }
}
