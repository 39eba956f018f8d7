//! Reassembly of IP fragments before the first table (`OFPC_FRAG_REASM`, clause 7.3.2).
//!
//! A fragment is kept until the others of its packet have come; then the packet goes through the
//! tables whole. What is kept is bounded in bytes, in packets and in fragments of a packet, and in
//! time: all are dropped that are not whole after [`TIMEOUT_S`]. When there is no room, the oldest
//! incomplete packets go. Fragments that overlap spoil their packet for IPv6 (RFC 5722) and for
//! IPv4 alike: all of it is dropped, and what still comes of it. Every fragment that is lost is
//! counted. No message about it is sent: a switch is no host.

mod fragment;

use std::collections::BTreeMap;

use openflow::PortNo;
use packet::Layout;

use self::fragment::{Fragment, FragmentHead, Key};
use crate::config::{Fragments, Settings};
use crate::counter::DropReason;
use crate::time::Nanos;

/// Seconds after which an incomplete packet is given up; RFC 8200 asks for at most 60.
const TIMEOUT_S: u64 = 30;

/// Bytes that are kept in all, with [`PIECE_COST`] for each fragment.
const BYTES_MAX: usize = 4 << 20;

/// Incomplete packets at a time.
const PACKETS_MAX: usize = 4_096;

/// Fragments of a packet; 65,535 bytes come in 119 fragments of the smallest usual link (576).
const PIECES_MAX: usize = 256;

/// Bytes that a fragment costs beside its data.
const PIECE_COST: usize = 128;

/// Fate of a frame before the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is no fragment, or they are not put together: it goes on as it is.
    Itself,
    /// It was the last fragment of this packet, which goes on in its place.
    Whole(Vec<u8>),
    /// It is kept until the others have come.
    Held,
    /// It is dropped.
    Dropped(DropReason),
}

/// Fate of a frame, and what it has cost others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reassembled {
    pub(crate) fate: Fate,
    /// Fragments that had been kept and are dropped now, with the reasons.
    pub(crate) lost: Vec<(DropReason, u64)>,
}

impl Reassembled {
    /// A frame that goes on as it is.
    pub(crate) const ITSELF: Self = Self { fate: Fate::Itself, lost: Vec::new() };
}

/// A packet of which fragments have come.
#[derive(Clone, Debug)]
struct Incomplete {
    /// Its place in the order of arrival.
    number: u64,
    since: Nanos,
    head: Option<FragmentHead>,
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Its cost, of [`BYTES_MAX`].
    cost: usize,
    /// Bytes of data so far, and in all where that is known.
    len: usize,
    end: Option<usize>,
    /// The ECN fields that were seen: bit n for value n.
    ecn: u8,
    /// Nothing of it is kept, and what comes of it is dropped, for this reason.
    spoilt: Option<DropReason>,
}

impl Incomplete {
    /// Why a fragment cannot be one of this packet's.
    fn contradicts(&self, fragment: &Fragment<'_>) -> Option<DropReason> {
        let (start, stop) = (fragment.start, fragment.start + fragment.data.len());
        let before = self.pieces.range(..start).next_back();
        let reaches_in = before.is_some_and(|(at, data)| at + data.len() > start);
        let overlaps = reaches_in || self.pieces.range(start..stop).next().is_some();
        let last = self.pieces.last_key_value().map_or(0, |(at, data)| at + data.len());
        let ends_wrongly = match (fragment.more, self.end) {
            (true, Some(end)) => stop >= end,
            (true, None) => false,
            (false, Some(end)) => stop != end,
            (false, None) => last > stop,
        };
        if overlaps || ends_wrongly {
            Some(DropReason::FragmentOverlap)
        } else if self.pieces.len() >= PIECES_MAX {
            Some(DropReason::FragmentMemory)
        } else {
            None
        }
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        if fragment.start == 0 {
            self.head = Some(fragment.head());
        }
        if !fragment.more {
            self.end = Some(fragment.start + fragment.data.len());
        }
        self.len += fragment.data.len();
        self.ecn |= 1 << fragment.ecn;
        self.pieces.insert(fragment.start, fragment.data.to_vec());
    }

    /// Whether nothing is missing: pieces do not overlap, so their sum says that.
    fn is_whole(&self) -> bool {
        self.end == Some(self.len)
    }

    /// The packet, of which nothing is missing.
    fn whole(self) -> Result<Vec<u8>, DropReason> {
        // RFC 3168, section 5.3: congestion marked on any fragment marks the packet; a packet with
        // both CE and Not-ECT fragments is dropped.
        let is_congested = self.ecn & 1 << 3 != 0;
        let contradicts = is_congested && self.ecn & 1 != 0;
        let head = self.head.filter(|_| !contradicts);
        let whole = head.and_then(|head| head.whole(self.pieces.into_values(), is_congested));
        whole.ok_or(DropReason::FragmentMalformed)
    }
}

/// The fragments that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembler {
    packets: BTreeMap<Key, Incomplete>,
    /// The packets in the order in which their first fragment came.
    order: BTreeMap<u64, Key>,
    numbered: u64,
    bytes: usize,
}

impl Reassembler {
    /// Takes a fragment.
    fn offer(&mut self, fragment: &Fragment<'_>, now: Nanos) -> Reassembled {
        let mut lost = vec![(DropReason::FragmentTimeout, self.expire(now))];
        let fate = self.take(fragment, now, &mut lost);
        lost.retain(|(_, fragments)| *fragments > 0);
        Reassembled { fate, lost }
    }

    fn take(
        &mut self,
        fragment: &Fragment<'_>,
        now: Nanos,
        lost: &mut Vec<(DropReason, u64)>,
    ) -> Fate {
        let key = &fragment.key;
        let known = self.packets.get(key);
        if let Some(known) = known {
            if let Some(reason) = known.spoilt {
                return Fate::Dropped(reason);
            }
            let is_same = known.pieces.get(&fragment.start).is_some_and(|old| old == fragment.data);
            if is_same && (known.end == Some(fragment.start + fragment.data.len())) != fragment.more
            {
                return Fate::Dropped(DropReason::FragmentDuplicate);
            }
            if let Some(reason) = known.contradicts(fragment) {
                lost.push((reason, self.spoil(key, reason)));
                return Fate::Dropped(reason);
            }
        }
        let is_new = known.is_none();
        let cost = PIECE_COST + fragment.data.len() + if is_new { PIECE_COST } else { 0 };
        lost.push((DropReason::FragmentMemory, self.make_room(key, is_new, cost)));
        self.bytes += cost;
        let packet = match self.packets.get_mut(key) {
            Some(packet) => packet,
            None => self.begin(key, now),
        };
        packet.cost += cost;
        packet.add(fragment);
        if !packet.is_whole() {
            return Fate::Held;
        }
        let others = packet.pieces.len() as u64 - 1;
        match self.forget(key).map(Incomplete::whole) {
            Some(Ok(frame)) => Fate::Whole(frame),
            Some(Err(reason)) => {
                lost.push((reason, others));
                Fate::Dropped(reason)
            }
            None => Fate::Dropped(DropReason::FragmentMalformed),
        }
    }

    fn begin(&mut self, key: &Key, now: Nanos) -> &mut Incomplete {
        self.numbered += 1;
        self.order.insert(self.numbered, key.clone());
        let (number, since) = (self.numbered, now);
        self.packets.entry(key.clone()).or_insert(Incomplete {
            number,
            since,
            head: None,
            pieces: BTreeMap::new(),
            cost: 0,
            len: 0,
            end: None,
            ecn: 0,
            spoilt: None,
        })
    }

    /// Takes a packet out.
    fn forget(&mut self, key: &Key) -> Option<Incomplete> {
        let packet = self.packets.remove(key)?;
        self.order.remove(&packet.number);
        self.bytes -= packet.cost;
        Some(packet)
    }

    /// Drops what is kept of a packet, and remembers to drop the rest; how many fragments were
    /// kept.
    fn spoil(&mut self, key: &Key, reason: DropReason) -> u64 {
        let Some(packet) = self.packets.get_mut(key) else { return 0 };
        packet.spoilt = Some(reason);
        packet.head = None;
        self.bytes -= packet.cost - PIECE_COST;
        packet.cost = PIECE_COST;
        std::mem::take(&mut packet.pieces).len() as u64
    }

    /// Makes room for a fragment by dropping the oldest other packets; how many fragments of them
    /// were kept.
    fn make_room(&mut self, key: &Key, is_new: bool, cost: usize) -> u64 {
        let mut lost = 0;
        while self.bytes + cost > BYTES_MAX || is_new && self.packets.len() >= PACKETS_MAX {
            let oldest = self.order.values().find(|other| *other != key).cloned();
            let Some(packet) = oldest.and_then(|oldest| self.forget(&oldest)) else { break };
            lost += packet.pieces.len() as u64;
        }
        lost
    }

    /// Drops the packets that have waited too long; how many fragments of them were kept.
    pub(crate) fn expire(&mut self, now: Nanos) -> u64 {
        let mut lost = 0;
        while let Some((_, oldest)) = self.order.first_key_value() {
            let is_over = |packet: &Incomplete| packet.since.plus_s(TIMEOUT_S) <= now;
            if !self.packets.get(oldest).is_some_and(is_over) {
                break;
            }
            let oldest = oldest.clone();
            lost += self.forget(&oldest).map_or(0, |packet| packet.pieces.len() as u64);
        }
        lost
    }

    /// Takes the frame that came in by a port, if it is a fragment.
    pub(crate) fn reassemble(&mut self, frame: &[u8], in_port: PortNo, now: Nanos) -> Reassembled {
        let Some(layout) = Layout::of(frame).filter(|layout| layout.fragment) else {
            return Reassembled::ITSELF;
        };
        match Fragment::of(frame, &layout, in_port) {
            Some(fragment) => self.offer(&fragment, now),
            None => {
                let fate = Fate::Dropped(DropReason::FragmentMalformed);
                Reassembled { fate, lost: Vec::new() }
            }
        }
    }
}

/// Whether a frame that its port lets in is to be given to the reassembler.
pub(crate) fn concerns(settings: &Settings, frame: &[u8]) -> bool {
    settings.fragments == Fragments::Reassemble
        && Layout::of(frame).is_some_and(|layout| layout.fragment)
}

#[cfg(test)]
mod tests;
