//! Validity of decisions: versions by field value, so that a change ends only decisions about it.
//!
//! Every change of a table raises the epoch. A decision that carries the present epoch holds. One
//! that does not is held against the versions of what its packet shows: an entry that asks for one
//! exact address can have changed the way of packets with this address only, so its change raises
//! the version of the address, and of few others that share a slot with it. Equal sums mean that
//! nothing has changed for this packet, as versions only rise.
//!
//! Only values that are in the decision's digest as a whole count: packets that differ elsewhere
//! share the decision. When other bits become un-wildcarded, all decisions end.
//!
//! An address that some entry writes before another table is looked up may be another one there
//! than the packet came with, so such fields say nothing.

use openflow::Field;
use packet::header::{ipv4, ipv6, vlan};
use packet::{FlowKey, Network, Shape};

use crate::fast::compiled_match::CompiledMatch;
use crate::select::mix;

/// Places for versions of each kind.
const SLOTS: usize = 4_096;

/// A field without a number of its lowest bits.
type Part = (Field, u32);

/// The kinds of values, and the parts of fields that are of each kind. A match's best is the first.
/// Prefixes count by their first 16 bits, or 32 of IPv6, so that a route that changes leaves most
/// flows alone.
const KINDS: [&[Part]; 7] = [
    &[(Field::Ipv4Dst, 0), (Field::Ipv6Dst, 0)],
    &[(Field::Ipv4Src, 0), (Field::Ipv6Src, 0)],
    &[(Field::EthDst, 0)],
    &[(Field::EthSrc, 0)],
    &[(Field::VlanVid, 0)],
    &[(Field::Ipv4Dst, 16), (Field::Ipv6Dst, 96)],
    &[(Field::Ipv4Src, 16), (Field::Ipv6Src, 96)],
];

/// The indices of values are below.
pub(super) const INDICES: u16 = (SLOTS * KINDS.len()) as u16;

/// The bits of a field that belong to a part.
fn bits((field, shift): Part) -> u128 {
    field.full_mask() >> shift << shift
}

/// The version that a change raises: that of a value of a field, or the version of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VersionIndex(u16);

impl VersionIndex {
    /// Anything.
    pub(super) const ALL: Self = Self(u16::MAX);

    /// Its number: that of a value, or the last one for everything.
    pub(super) fn number(self) -> u16 {
        self.0
    }

    /// That of a number.
    pub(super) fn of_number(number: u16) -> Self {
        Self(number)
    }
}

/// The packets that changes since the last [`Versions::take_invalidated`] can concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Invalidated {
    /// There was none.
    #[default]
    Nothing,
    /// Packets that show a value of this index.
    One(u16),
    /// Any packet.
    All,
}

/// The versions.
#[derive(Debug)]
pub(super) struct Versions {
    invalidated: Invalidated,
    /// Present state of everything; never zero.
    pub(super) epoch: u64,
    /// The first epoch of the present un-wildcarded bits; decisions of earlier ones hold no longer.
    first: u64,
    /// Parts of which every bit is un-wildcarded: bit for bit, counted through all kinds.
    unwildcarded: u32,
    all: u32,
    by_value: Vec<u32>,
    /// Fields that entries write before other tables are looked up: bit `field as u32`.
    written: u64,
}

impl Versions {
    pub(super) fn new() -> Self {
        Self {
            invalidated: Invalidated::Nothing,
            epoch: 1,
            first: 1,
            unwildcarded: 0,
            all: 0,
            by_value: vec![0; SLOTS * KINDS.len()],
            written: 0,
        }
    }

    /// The version that a change of an entry with this match raises.
    pub(super) fn index_of(&self, compiled: &CompiledMatch) -> VersionIndex {
        for (kind, parts) in KINDS.iter().enumerate() {
            for (field, mask) in compiled.mask().fields() {
                let part = parts
                    .iter()
                    .find(|part| part.0 == *field && mask & bits(**part) == bits(**part));
                let Some((_, shift)) = part else { continue };
                let value = value_of(compiled, *field) >> shift;
                let untagged = *field == Field::VlanVid && value == 0;
                if parts.iter().any(|(field, _)| self.is_written(*field)) || untagged {
                    continue;
                }
                let index = kind * SLOTS + slot(fold(value));
                return u16::try_from(index).map_or(VersionIndex::ALL, VersionIndex);
            }
        }
        VersionIndex::ALL
    }

    fn is_written(&self, field: Field) -> bool {
        self.written >> field as u32 & 1 != 0
    }

    /// Records that entries write a field before another table is looked up. Invalidates all
    /// decisions when no entry wrote the field before.
    pub(super) fn write(&mut self, field: Field) {
        if !self.is_written(field) {
            self.written |= 1 << field as u32;
            self.change_all();
        }
    }

    /// Whether a change of this index is one of a value, and not of everything.
    pub(super) fn is_of_value(&self, index: VersionIndex) -> bool {
        let kind = KINDS.get(usize::from(index.0) / SLOTS);
        kind.is_some_and(|parts| !parts.iter().any(|(field, _)| self.is_written(*field)))
    }

    /// Something has changed.
    pub(super) fn change(&mut self, index: VersionIndex) {
        self.epoch += 1;
        // The index was chosen when the entry was added; its field may be written by entries since.
        let is_of_value = self.is_of_value(index);
        let version = match self.by_value.get_mut(usize::from(index.0)) {
            Some(version) if is_of_value => {
                self.invalidated = match self.invalidated {
                    Invalidated::Nothing => Invalidated::One(index.0),
                    Invalidated::One(other) if other == index.0 => Invalidated::One(other),
                    Invalidated::One(_) | Invalidated::All => Invalidated::All,
                };
                version
            }
            Some(_) | None => {
                self.invalidated = Invalidated::All;
                &mut self.all
            }
        };
        *version = version.wrapping_add(1);
    }

    /// The packets that changes since the last call can concern.
    pub(super) fn take_invalidated(&mut self) -> Invalidated {
        std::mem::take(&mut self.invalidated)
    }

    /// Anything may have changed.
    pub(super) fn change_all(&mut self) {
        self.change(VersionIndex::ALL);
    }

    /// Sets the parts of fields that are un-wildcarded from now on; invalidates all decisions.
    pub(super) fn set_unwildcarded(&mut self, is_unwildcarded: impl Fn(Field, u128) -> bool) {
        let parts = KINDS.iter().flat_map(|parts| parts.iter()).enumerate();
        let unwildcarded = parts.filter(|(_, part)| is_unwildcarded(part.0, bits(**part)));
        self.unwildcarded =
            unwildcarded.fold(0, |unwildcarded, (index, _)| unwildcarded | 1 << index);
        self.change_all();
        self.first = self.epoch;
    }

    /// Whether all bits of a part are un-wildcarded; parts are counted through all kinds.
    #[inline]
    fn is_unwildcarded(&self, index: usize) -> bool {
        self.unwildcarded >> index & 1 != 0
    }

    /// Whether a decision of an earlier epoch may hold still.
    #[inline]
    pub(super) fn may_hold(&self, stamp: u64) -> bool {
        stamp >= self.first
    }

    fn at(&self, kind: usize, value: u64) -> u32 {
        self.by_value.get(kind * SLOTS + slot(value)).copied().unwrap_or(0)
    }

    /// The sum of the versions of what a packet shows.
    pub(super) fn of_key(&self, key: &FlowKey) -> u32 {
        let mut sum = self.all;
        let mut index = 0;
        for (kind, parts) in KINDS.iter().enumerate() {
            for (field, shift) in *parts {
                if self.is_unwildcarded(index) && key.has(*field) {
                    sum = sum.wrapping_add(self.at(kind, fold(key.get(*field) >> shift)));
                }
                index += 1;
            }
        }
        sum
    }

    /// The same for a frame of a shape, without a key.
    pub(super) fn of_frame(&self, shape: Shape, frame: &[u8]) -> u32 {
        let mut sum = self.all;
        self.each_of_frame(shape, frame, |kind, value| {
            sum = sum.wrapping_add(self.at(kind, value));
        });
        sum
    }

    /// The indices of what a frame shows: a decision about it ends when one of them is raised. Of
    /// the frame, the un-wildcarded bits are enough.
    pub(super) fn indices_of_frame(&self, shape: Shape, frame: &[u8], mut each: impl FnMut(u16)) {
        self.each_of_frame(shape, frame, |kind, value| each((kind * SLOTS + slot(value)) as u16));
    }

    #[inline]
    fn each_of_frame(&self, shape: Shape, frame: &[u8], mut each: impl FnMut(usize, u64)) {
        let l3 = shape.l3();
        let mut add = |index, kind, at, len| {
            if self.is_unwildcarded(index) {
                each(kind, be(frame, at, len));
            }
        };
        // In the order of the parts.
        add(4, 2, 0, 6);
        add(5, 3, 6, 6);
        match shape.network() {
            Network::Ipv4 => {
                let (src, dst) = (l3 + ipv4::SRC.start, l3 + ipv4::DST.start);
                add(0, 0, dst, 4);
                add(2, 1, src, 4);
                add(7, 5, dst, 2);
                add(9, 6, src, 2);
            }
            Network::Ipv6 => {
                let (src, dst) = (l3 + ipv6::SRC.start, l3 + ipv6::DST.start);
                add(8, 5, dst, 4);
                add(10, 6, src, 4);
                for (index, kind, at) in [(1, 0, dst), (3, 1, src)] {
                    if self.is_unwildcarded(index) {
                        let value = be(frame, at + 8, 8) ^ be(frame, at, 8).rotate_left(32);
                        each(kind, value);
                    }
                }
            }
            Network::Other | Network::Mpls | Network::Pbb | Network::Arp => {}
        }
        if shape.tags() > 0 && self.is_unwildcarded(6) {
            each(4, be(frame, vlan::OUTERMOST_TCI, 2) & 0x0fff | 0x1000);
        }
    }
}

/// The value that a match wants in a field.
fn value_of(compiled: &CompiledMatch, field: Field) -> u128 {
    let slot = FlowKey::slot(field);
    let word = |index: usize| {
        let mut words = compiled.mask().words().iter().zip(compiled.value());
        let found = words.find(|(word, _)| usize::from(word.index) == index);
        found.map_or(0, |(_, value)| *value)
    };
    let low = u128::from(word(slot.word) >> slot.shift);
    let high = if slot.bits > 64 { u128::from(word(slot.word + 1)) << 64 } else { 0 };
    (low | high) & field.full_mask()
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
fn slot(value: u64) -> usize {
    mix(value) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::{VersionIndex, Versions};
    use crate::fast::compiled_match::{CompiledMatch, Masks};
    use openflow::{Field, MacAddr, Match, PortNo};
    use packet::build::{FrameBuilder, Ipv4, Ipv6};
    use packet::{Meta, Shape, extract};

    fn frames() -> Vec<Vec<u8>> {
        let frame = || FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
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
        versions.set_unwildcarded(|_, _| true);
        let mut masks = Masks::default();
        let fields = [
            (Field::Ipv4Dst, 0x0a00_0002),
            (Field::Ipv4Src, 0x0a00_0001),
            (Field::Ipv6Dst, 7 << 64 | 9),
            (Field::EthDst, 2),
            (Field::EthSrc, 5),
            (Field::VlanVid, 0x1007),
        ];
        let exact = fields.map(|(field, value)| Match::any().with(field, value));
        let prefixes = [
            Match::any().with_masked(Field::Ipv4Dst, 0x0a00_0000, 0xffff_ff00),
            Match::any().with_masked(Field::Ipv4Src, 0x0a00_0000, 0xffff_0000),
            Match::any().with_masked(Field::Ipv6Dst, 0, u128::MAX << 80),
        ];
        for matching in exact.into_iter().chain(prefixes) {
            let compiled = CompiledMatch::of(&matching, &mut masks);
            let index = versions.index_of(&compiled);
            assert_ne!(index, VersionIndex::ALL);
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
            versions.change(index);
            for ((frame, before), after) in frames().iter().zip(before).zip(sums(&versions)) {
                let key = extract(frame, &Meta::port(PortNo(1)));
                assert!(!compiled.matches(&key) || after != before, "{matching:?}");
            }
        }
    }

    #[test]
    fn what_is_written_on_the_way_says_nothing() {
        let mut versions = Versions::new();
        let compiled =
            CompiledMatch::of(&Match::any().with(Field::Ipv4Dst, 1), &mut Masks::default());
        versions.write(Field::Ipv6Dst);
        assert_eq!(versions.index_of(&compiled), VersionIndex::ALL);
        let any = CompiledMatch::of(&Match::any(), &mut Masks::default());
        assert_eq!(versions.index_of(&any), VersionIndex::ALL);
    }
}
