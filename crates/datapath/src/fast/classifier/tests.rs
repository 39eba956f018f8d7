//! The classifier against its definition, under random entries, removals and packets.

use std::collections::BTreeSet;

use openflow::field::FIELDS;
use openflow::{Field, Match};
use packet::FlowKey;
use testkit::Random;

use super::{Classifier, SEQ_BITS, Template, rank_of};
use crate::fast::compiled_match::{CompiledMatch, Masks};
use crate::fast::ids::EntryId;

/// A kind of table: what its matches look like.
type Kind = fn(&mut Random) -> Match;

fn prefix(field: Field, value: u128, length: u32) -> (Field, u128, u128) {
    let full = field.full_mask();
    let width = u32::from(FIELDS[field as usize].bits);
    (field, value, if length >= width { full } else { full & !(full >> length) })
}

fn of(fields: &[(Field, u128, u128)]) -> Match {
    fields.iter().fold(Match::any(), |matching, (field, value, mask)| {
        matching.with_masked(*field, *value, *mask)
    })
}

fn exact(random: &mut Random) -> Match {
    Match::any()
        .with(Field::EthType, 0x0800)
        .with(Field::Ipv4Dst, random.below(3000).into())
        .with(Field::EthSrc, random.below(2).into())
}

fn ports(random: &mut Random) -> Match {
    Match::any().with(Field::InPort, random.below(40).into())
}

fn prefixes(random: &mut Random) -> Match {
    let length = 8 + random.below(25) as u32;
    let value = 0x0a00_0000 | random.below(4) << 20 | random.below(1 << 10);
    of(&[(Field::EthType, 0x0800, 0xffff), prefix(Field::Ipv4Dst, u128::from(value), length)])
}

fn wide_prefixes(random: &mut Random) -> Match {
    let length = *random.pick(&[16, 19, 32, 44, 48, 56, 64, 65, 96, 127, 128]);
    let value = 0x2001_0db8 << 96 | u128::from(random.below(8)) << 64 | u128::from(random.below(9));
    let src = prefix(Field::Ipv6Src, value ^ 1 << 80, *random.pick(&[32, 48, 128]));
    let both = [(Field::EthType, 0x86dd, 0xffff), prefix(Field::Ipv6Dst, value, length), src];
    of(&both[..2 + random.below(2) as usize])
}

fn lists(random: &mut Random) -> Match {
    let lengths = [0, 8, 16, 20, 22, 24, 26, 28, 29, 30, 31, 32];
    let address = |random: &mut Random| u128::from(0x0a00_0000 | random.below(1 << 9) << 5);
    let proto = *random.pick(&[6, 17]);
    let (src, dst) = match proto {
        6 => (Field::TcpSrc, Field::TcpDst),
        _ => (Field::UdpSrc, Field::UdpDst),
    };
    let mut fields = vec![
        (Field::EthType, 0x0800, 0xffff),
        (Field::IpProto, proto, 0xff),
        prefix(Field::Ipv4Src, address(random), *random.pick(&lengths)),
        prefix(Field::Ipv4Dst, address(random), *random.pick(&lengths)),
    ];
    if random.below(4) == 0 {
        fields.push((src, random.below(4).into(), 0xffff));
    }
    if random.below(2) == 0 {
        fields.push((dst, random.below(4).into(), 0xffff));
    }
    of(&fields)
}

/// Parts of conjunctive matches, and entries that look at `conj_id`, which is zero in some.
fn conjunctive(random: &mut Random) -> Match {
    conjunctive_from(random, 0)
}

/// The same without any where it is zero.
fn conjunctive_but_zero(random: &mut Random) -> Match {
    conjunctive_from(random, 1)
}

fn conjunctive_from(random: &mut Random, least: u64) -> Match {
    let address = u128::from(0x0a00_0000 | random.below(64) << 8);
    let field = *random.pick(&[Field::Ipv4Src, Field::Ipv4Dst]);
    let part = of(&[prefix(field, address, *random.pick(&[0, 16, 24, 32]))]);
    match random.below(3) {
        0 => part.with(Field::ConjId, u128::from(least + random.below(3))),
        _ => part,
    }
}

/// Hardly two entries with the same mask, and no prefixes.
fn odd_masks(random: &mut Random) -> Match {
    let (value, mask) = (random.u64(), random.u64() | random.u64());
    Match::any()
        .with_masked(Field::Ipv4Dst, (value & 0xffff).into(), (mask & 0xffff_ffff).into())
        .with_masked(Field::Metadata, (value >> 60).into(), (mask >> 56).into())
}

/// Any fields under any masks, absent tags, presence: what makes no sense is answered correctly
/// too.
fn anything(random: &mut Random) -> Match {
    let mut matching = Match::any();
    for _ in 0..random.below(5) {
        let field = *random.pick(&[
            Field::VlanVid,
            Field::VlanPcp,
            Field::EthType,
            Field::IpProto,
            Field::Metadata,
            Field::Ipv6NdTarget,
            Field::TunnelId,
            Field::Ipv6Exthdr,
            Field::ArpSpa,
        ]);
        let mask = *random.pick(&[u128::MAX, 0, 1, 3, 0xff00, 0x1000]);
        matching.set(field, u128::from(random.below(4)) * 0x1001, mask);
    }
    matching
}

fn everything(random: &mut Random) -> Match {
    let fields = FIELDS.len() as u64 - random.below(20);
    let all = FIELDS.iter().take(fields as usize);
    all.fold(Match::any(), |matching, row| matching.with(row.field, random.below(2).into()))
}

fn mixed(random: &mut Random) -> Match {
    let kind = *random.pick(&KINDS[..KINDS.len() - 1]);
    kind(random)
}

const KINDS: &[Kind] = &[
    exact,
    ports,
    prefixes,
    wide_prefixes,
    lists,
    odd_masks,
    anything,
    everything,
    |_| Match::any(),
    mixed,
];

/// A packet near to a match: its fields, and some noise.
fn key_near(matching: &Match, random: &mut Random) -> FlowKey {
    let mut key = FlowKey::default();
    for held in matching.fields() {
        let noise = random.u128();
        key.set(held.field, held.value | noise & !held.mask);
    }
    for _ in 0..random.below(3) {
        let field = FIELDS[random.below(FIELDS.len() as u64) as usize].field;
        match random.below(3) {
            0 => key.unset(field),
            _ => key.set(field, random.below(4).into()),
        }
    }
    key
}

/// The definition.
#[derive(Default)]
struct Linear(Vec<(u64, Match, u16, EntryId)>);

impl Linear {
    fn lookup(&self, key: &FlowKey, counts: impl Fn(EntryId) -> bool) -> Option<EntryId> {
        let matches = self.0.iter().filter(|entry| key.matches(&entry.1) && counts(entry.3));
        matches.min_by_key(|entry| entry.0).map(|entry| entry.3)
    }

    /// The entries that a key matches before it comes to another one, with their orders.
    fn before(&self, key: &FlowKey, end: Option<EntryId>) -> Vec<(u32, EntryId)> {
        let matched = || self.0.iter().filter(|entry| key.matches(&entry.1));
        let end = matched().find(|entry| Some(entry.3) == end).map_or(u64::MAX, |entry| entry.0);
        let before = matched().filter(|entry| entry.0 < end);
        before.map(|entry| ((entry.0 >> SEQ_BITS) as u32, entry.3)).collect()
    }
}

struct Run {
    random: Random,
    masks: Masks,
    linear: Linear,
    fast: Classifier,
    seq: u64,
}

impl Run {
    fn insert(&mut self, kind: Kind) {
        let matching = kind(&mut self.random);
        let most = *self.random.pick(&[1, 4, 60_000]);
        let priority = self.random.below(most) as u16;
        if self.linear.0.iter().any(|entry| entry.1 == matching && entry.2 == priority) {
            return;
        }
        let compiled = CompiledMatch::of(&matching, &mut self.masks);
        let id = EntryId(self.seq as u32 ^ 0x55);
        self.fast.insert(&compiled, priority.into(), self.seq, id);
        self.linear.0.push((rank_of(priority.into(), self.seq), matching, priority, id));
        self.seq += 1;
    }

    fn remove(&mut self) {
        if self.linear.0.is_empty() {
            return;
        }
        let at = self.random.below(self.linear.0.len() as u64) as usize;
        let (_, matching, priority, id) = self.linear.0.swap_remove(at);
        let compiled = CompiledMatch::of(&matching, &mut self.masks);
        assert!(!self.fast.remove(&compiled, priority.into(), EntryId(u32::MAX)), "{matching:?}");
        assert!(self.fast.remove(&compiled, priority.into(), id), "{matching:?}");
        assert!(!self.fast.remove(&compiled, priority.into(), id), "{matching:?}");
    }

    fn compare(&mut self, keys: usize) {
        assert_eq!(self.fast.len(), self.linear.0.len());
        let mut unwildcarded = super::UnwildcardedBits::default();
        for (_, matching, ..) in &self.linear.0 {
            unwildcarded.add(CompiledMatch::of(matching, &mut self.masks).mask());
        }
        assert_eq!(*self.fast.unwildcarded(), unwildcarded);
        let keys: Vec<FlowKey> = (0..keys)
            .map(|_| match self.linear.0.len() as u64 {
                0 => FlowKey::default(),
                len => {
                    let matching = self.linear.0[self.random.below(len) as usize].1.clone();
                    key_near(&matching, &mut self.random)
                }
            })
            .collect();
        let mut out = vec![Some(EntryId(7)); keys.len()];
        self.fast.lookup_burst(&keys, &mut out);
        for (key, found) in keys.iter().zip(&out) {
            let expected = self.linear.lookup(key, |_| true);
            assert_eq!(*found, expected, "{key:?} {:?}", self.fast.figures());
            assert_eq!(self.fast.lookup(key), expected, "{key:?}");
            let all = self.fast.lookup_if(key, |_, _| true).map(|answer| answer.id);
            assert_eq!(all, expected, "{key:?}");
            let is_odd = |id: EntryId| id.0 % 2 == 1;
            let mut asked = Vec::new();
            let odd = self.fast.lookup_if(key, |order, id| {
                asked.push((order, id));
                is_odd(id)
            });
            let expected = self.linear.lookup(key, is_odd);
            assert_eq!(odd.map(|odd| odd.id), expected, "{key:?}");
            for passed in self.linear.before(key, expected) {
                assert!(asked.contains(&passed), "{key:?}: {passed:?} of {asked:?}");
            }
            let mut key = key.clone();
            key.set(Field::ConjId, (self.seq % 3).into());
            let odd = self.fast.lookup_conj_id(&key, odd, |_, id| is_odd(id));
            let expected = self.linear.lookup(&key, is_odd);
            assert_eq!(odd.map(|odd| odd.id), expected, "{key:?}");
        }
        let among = self.random.u64();
        let part = &keys[..keys.len().min(50)];
        let mut some = vec![Some(EntryId(u32::MAX)); part.len()];
        self.fast.lookup_among(part, among, &mut some);
        for (at, found) in some.iter().enumerate() {
            let asked = among >> at & 1 == 1;
            assert_eq!(*found, if asked { out[at] } else { Some(EntryId(u32::MAX)) });
        }
    }

    /// The classifier's template at the moment.
    fn shape(&self) -> Vec<&'static str> {
        let figures = self.fast.figures();
        let beside = figures.groups > 0 && figures.listed > 0;
        let filter = self.fast.filter.is_active();
        let template = figures.template.name();
        let parts = [Some(template), beside.then_some("list"), filter.then_some("filter")];
        parts.into_iter().flatten().collect()
    }
}

fn run(kind: Kind, seed: u64, entries: usize, forced: Option<Template>) -> BTreeSet<&'static str> {
    let mut run = Run {
        random: Random::new(seed),
        masks: Masks::default(),
        linear: Linear::default(),
        fast: Classifier::new(seed),
        seq: 0,
    };
    run.fast.force(forced);
    run.fast.set_plain(seed % 2 == 1);
    let mut seen = BTreeSet::from_iter(run.shape());
    for grows in [true, false, true, false] {
        for step in 0..entries {
            let inserts = run.random.below(10) < if grows { 8 } else { 1 };
            if inserts {
                run.insert(kind);
            } else {
                run.remove();
            }
            let len = run.fast.len();
            if len < 30 || step % (entries / 8) == 0 {
                run.compare(if len < 30 { 4 } else { 130 });
                seen.extend(run.shape());
            }
        }
        while !grows && !run.fast.is_empty() {
            run.remove();
            if run.fast.len() < 20 {
                run.compare(4);
            }
        }
    }
    seen
}

#[test]
fn equals_a_linear_search_whatever_the_table_is() {
    let mut seen = BTreeSet::new();
    let others: [Kind; 2] = [conjunctive, conjunctive_but_zero];
    for (number, kind) in KINDS.iter().chain(&others).enumerate() {
        for (seed, entries) in [(0, 200), (1, 700)] {
            println!("kind {number} seed {seed}");
            seen.extend(run(*kind, seed, entries, None));
        }
    }
    let all = ["constant", "exact", "few", "filter", "general", "list", "pruned"];
    assert!(seen.iter().eq(&all), "{seen:?}");
}

#[test]
fn a_template_that_is_forced_answers_alike_and_is_the_only_one() {
    let forced = |template| {
        let kinds = KINDS.iter().map(|kind| run(*kind, 3, 150, Some(template)));
        kinds.flatten().filter(|shape| *shape != "constant").collect::<BTreeSet<_>>()
    };
    assert_eq!(forced(Template::Few), BTreeSet::from(["few"]));
    assert_eq!(forced(Template::Exact), BTreeSet::from(["exact", "general", "list"]));
    assert_eq!(forced(Template::General), BTreeSet::from(["exact", "general", "list"]));
    assert_eq!(forced(Template::Pruned), BTreeSet::from(["filter", "list", "pruned"]));
}

#[test]
fn a_hundred_masks_of_prefixes_stay_few_groups() {
    let mut random = Random::new(3);
    let mut masks = Masks::default();
    let mut classifier = Classifier::new(3);
    for number in 0..3000 {
        let compiled = CompiledMatch::of(&lists(&mut random), &mut masks);
        classifier.insert(&compiled, number.into(), number.into(), EntryId(number.into()));
    }
    let figures = classifier.figures();
    assert!(figures.masks > 400 && figures.groups <= 64, "{figures:?}");
    assert_eq!(figures.listed, 0);
}

#[test]
fn equal_entries_of_many_priorities_cost_no_more_than_one() {
    let mut masks = Masks::default();
    let mut classifier = Classifier::new(4);
    let compiled = CompiledMatch::of(&Match::any().with(Field::InPort, 1), &mut masks);
    for number in 0..2000_u16 {
        classifier.insert(&compiled, number.into(), number.into(), EntryId(number.into()));
    }
    let mut key = FlowKey::default();
    key.set(Field::InPort, 1);
    for number in (0..2000_u16).rev() {
        assert_eq!(classifier.lookup(&key), Some(EntryId(number.into())));
        assert!(classifier.remove(&compiled, number.into(), EntryId(number.into())));
    }
    assert!(classifier.is_empty() && classifier.lookup(&key).is_none());
}
