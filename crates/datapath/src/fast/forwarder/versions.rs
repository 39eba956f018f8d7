//! Which decisions still hold: versions by value, so that a change touches only what it is about.
//!
//! Every change of a table raises the epoch. A decision that carries the present epoch holds. One
//! that does not is held against the versions of what its packet shows: an entry that asks for one
//! exact address can have changed the way of packets with this address only, so its change raises
//! the version of the address, and of few others that share a place with it. Equal sums mean that
//! nothing has changed for this packet, as versions only rise.
//!
//! Only values that are in the decision's digest as a whole count: packets that differ elsewhere
//! share the decision. When other bits become live, all decisions end.
//!
//! An address that some entry writes before another table is looked up may be another one there
//! than the packet came with, so such fields say nothing.

use openflow::Field;
use packet::header::{ipv4, ipv6, vlan};
use packet::{FlowKey, Network, Shape};

use crate::fast::pattern::Pattern;
use crate::select::mix;

/// Places for versions of each kind.
const PLACES: usize = 4_096;

/// The kinds of values, and the fields that are of each kind. A pattern's best is the first.
const KINDS: [&[Field]; 5] = [
    &[Field::Ipv4Dst, Field::Ipv6Dst],
    &[Field::Ipv4Src, Field::Ipv6Src],
    &[Field::EthDst],
    &[Field::EthSrc],
    &[Field::VlanVid],
];

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About(u16);

impl About {
    /// Anything.
    pub(super) const ALL: Self = Self(u16::MAX);
}

/// The versions.
#[derive(Debug)]
pub(super) struct Versions {
    /// Present state of everything; never zero.
    pub(super) epoch: u64,
    /// The first epoch of the present live bits; decisions of earlier ones hold no longer.
    first: u64,
    /// Fields of which every bit is live: bit `field as u32`.
    live: u64,
    all: u32,
    by_value: Vec<u32>,
    /// Fields that entries write before other tables are looked up: bit `field as u32`.
    written: u64,
}

impl Versions {
    pub(super) fn new() -> Self {
        Self {
            epoch: 1,
            first: 1,
            live: 0,
            all: 0,
            by_value: vec![0; PLACES * KINDS.len()],
            written: 0,
        }
    }

    /// What a change of an entry with this pattern is about.
    pub(super) fn about(&self, pattern: &Pattern) -> About {
        for (kind, fields) in KINDS.iter().enumerate() {
            for (field, mask) in pattern.mask().fields() {
                if fields.contains(field) && *mask == field.full_mask() {
                    let value = pattern.matching().exact(*field).unwrap_or(0);
                    let untagged = *field == Field::VlanVid && value == 0;
                    if fields.iter().any(|field| self.is_written(*field)) || untagged {
                        continue;
                    }
                    let place = kind * PLACES + place(fold(value));
                    return u16::try_from(place).map_or(About::ALL, About);
                }
            }
        }
        About::ALL
    }

    fn is_written(&self, field: Field) -> bool {
        self.written >> field as u32 & 1 != 0
    }

    /// Tells that entries write a field before another table is looked up. All decisions end when
    /// that is news.
    pub(super) fn write(&mut self, field: Field) {
        if !self.is_written(field) {
            self.written |= 1 << field as u32;
            self.change_all();
        }
    }

    /// Something has changed.
    pub(super) fn change(&mut self, about: About) {
        self.epoch += 1;
        // What was told of an entry when it came may be wrong by now.
        let kind = KINDS.get(usize::from(about.0) / PLACES);
        let is_written = kind.is_none_or(|fields| fields.iter().any(|f| self.is_written(*f)));
        let version = match self.by_value.get_mut(usize::from(about.0)) {
            Some(version) if !is_written => version,
            Some(_) | None => &mut self.all,
        };
        *version = version.wrapping_add(1);
    }

    /// Anything may have changed.
    pub(super) fn change_all(&mut self) {
        self.change(About::ALL);
    }

    /// Tells which fields are live as a whole, from now on: all decisions end.
    pub(super) fn set_live(&mut self, is_live: impl Fn(Field) -> bool) {
        let fields = KINDS.iter().flat_map(|fields| fields.iter());
        let live = fields.filter(|field| is_live(**field));
        self.live = live.fold(0, |live, field| live | 1 << *field as u32);
        self.change_all();
        self.first = self.epoch;
    }

    fn is_live(&self, field: Field) -> bool {
        self.live >> field as u32 & 1 != 0
    }

    /// Whether a decision of an earlier epoch may hold still.
    #[inline]
    pub(super) fn may_hold(&self, stamp: u64) -> bool {
        stamp >= self.first
    }

    fn at(&self, kind: usize, value: u64) -> u32 {
        self.by_value.get(kind * PLACES + place(value)).copied().unwrap_or(0)
    }

    /// The sum of the versions of what a packet shows.
    pub(super) fn of_key(&self, key: &FlowKey) -> u32 {
        let mut sum = self.all;
        for (kind, fields) in KINDS.iter().enumerate() {
            let mut shown = fields.iter().filter(|field| self.is_live(**field));
            if let Some(field) = shown.find(|field| key.has(**field)) {
                sum = sum.wrapping_add(self.at(kind, fold(key.get(*field))));
            }
        }
        sum
    }

    /// The same for a frame of a shape, without a key.
    pub(super) fn of_frame(&self, shape: Shape, frame: &[u8]) -> u32 {
        let l3 = shape.l3();
        let mut sum = self.all;
        let mut add = |field, kind, at, len| {
            if self.is_live(field) {
                sum = sum.wrapping_add(self.at(kind, be(frame, at, len)));
            }
        };
        add(Field::EthDst, 2, 0, 6);
        add(Field::EthSrc, 3, 6, 6);
        match shape.network() {
            Network::Ipv4 => {
                add(Field::Ipv4Dst, 0, l3 + ipv4::DST.start, 4);
                add(Field::Ipv4Src, 1, l3 + ipv4::SRC.start, 4);
            }
            Network::Ipv6 => {
                for (kind, field, at) in [
                    (0, Field::Ipv6Dst, l3 + ipv6::DST.start),
                    (1, Field::Ipv6Src, l3 + ipv6::SRC.start),
                ] {
                    if self.is_live(field) {
                        let value = be(frame, at + 8, 8) ^ be(frame, at, 8).rotate_left(32);
                        sum = sum.wrapping_add(self.at(kind, value));
                    }
                }
            }
            Network::Other | Network::Mpls | Network::Pbb | Network::Arp => {}
        }
        if shape.is_tagged() && self.is_live(Field::VlanVid) {
            let vid = be(frame, vlan::OUTERMOST_TCI, 2) & 0x0fff | 0x1000;
            sum = sum.wrapping_add(self.at(4, vid));
        }
        sum
    }
}

/// The big-endian number of up to eight bytes.
#[inline]
fn be(frame: &[u8], at: usize, len: usize) -> u64 {
    let bytes = frame.get(at..at + len).unwrap_or_default();
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn fold(value: u128) -> u64 {
    value as u64 ^ ((value >> 64) as u64).rotate_left(32)
}

#[inline]
fn place(value: u64) -> usize {
    mix(value) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::{About, Versions};
    use crate::fast::pattern::{Masks, Pattern};
    use openflow::{Field, MacAddr, Match, PortNo};
    use packet::build::{Frame, Ipv4, Ipv6};
    use packet::{Meta, Shape, extract};

    fn frames() -> Vec<Vec<u8>> {
        let frame = || Frame::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
        let v4 = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let v6 = Ipv6::new(1.into(), (7_u128 << 64 | 9).into());
        vec![
            frame().ipv4(v4.clone()).udp(1, 2).fill_to(64).build(),
            frame().vlan(7, 1).ipv4(v4).udp(1, 2).fill_to(64).build(),
            frame().ipv6(v6).udp(1, 2).fill_to(80).build(),
        ]
    }

    #[test]
    fn frames_and_their_keys_have_the_same_sum_after_any_change() {
        let mut versions = Versions::new();
        versions.set_live(|_| true);
        let mut masks = Masks::default();
        let fields = [
            (Field::Ipv4Dst, 0x0a00_0002),
            (Field::Ipv4Src, 0x0a00_0001),
            (Field::Ipv6Dst, 7 << 64 | 9),
            (Field::EthDst, 2),
            (Field::EthSrc, 5),
            (Field::VlanVid, 0x1007),
        ];
        for (field, value) in fields {
            let pattern = Pattern::of(&Match::any().with(field, value), &mut masks);
            let about = versions.about(&pattern);
            assert_ne!(about, About::ALL);
            let sums = |versions: &Versions| -> Vec<u32> {
                let of = |frame: &Vec<u8>| {
                    let key = extract(frame, &Meta::port(PortNo(1)));
                    let sum = versions.of_key(&key);
                    assert_eq!(versions.of_frame(Shape::of(frame), frame), sum);
                    sum
                };
                frames().iter().map(of).collect()
            };
            let before = sums(&versions);
            versions.change(about);
            for ((frame, before), after) in frames().iter().zip(before).zip(sums(&versions)) {
                let key = extract(frame, &Meta::port(PortNo(1)));
                assert!(!pattern.meets(&key) || after != before, "{field:?}");
            }
        }
    }

    #[test]
    fn what_is_written_on_the_way_says_nothing() {
        let mut versions = Versions::new();
        let pattern = Pattern::of(&Match::any().with(Field::Ipv4Dst, 1), &mut Masks::default());
        versions.write(Field::Ipv6Dst);
        assert_eq!(versions.about(&pattern), About::ALL);
        let any = Pattern::of(&Match::any(), &mut Masks::default());
        assert_eq!(versions.about(&any), About::ALL);
    }
}
