//! What the classifier alone costs: nanoseconds per lookup, insert and remove for a flow file.
//!
//! `cargo run --release -p weir-datapath --example classify -- DIR NAME...` reads `NAME.flows`
//! (text syntax of `ovs-ofctl`) and, if it is there, `NAME.pcap`, and prints one line for each flow
//! table (one for all of them when there are more than four). Keys are handed over in bursts and
//! lie in the processor's cache, as they do behind the extraction; entries are asked for at random.
//! `burst` and `single` are lookups of the capture's packets, `entries` of packets made of randomly
//! chosen entries; `share` is the most entries of a group that are compared for one packet and
//! `max us` the slowest insert. A NAME of the form `grow-10000000` needs no file: so many entries
//! for pairs of addresses. It must measure nothing but the classifier: no packet is parsed while
//! the clock runs.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use datapath::fast::testing::{
    BURST, Classifier, ClassifierFigures, CompiledMatch, EntryId, Masks,
};
use openflow::flow::FlowModCommand;
use openflow::text::parse_flow_mod;
use openflow::{Field, Match, PortNo};
use packet::{FlowKey, Meta, extract};
use testkit::Random;

/// Lookups of one measurement; the least of several is printed.
const LOOKUPS: usize = 200_000;
const ROUNDS: usize = 7;

struct Flow {
    compiled: CompiledMatch,
    matching: Match,
    priority: u16,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, names @ ..] = &arguments[..] else {
        return Err("usage: classify DIR NAME...".into());
    };
    println!(
        "{:<20} {:>5} {:>8} {:<8} {:>5} {:>6} {:>5} {:>6} {:>7} {:>6} {:>7} {:>7} {:>7} {:>8} \
         {:>7}",
        "workload",
        "table",
        "entries",
        "template",
        "masks",
        "groups",
        "share",
        "listed",
        "B/entry",
        "burst",
        "single",
        "entries",
        "insert",
        "max us",
        "remove"
    );
    for name in names {
        match name.strip_prefix("grow-") {
            Some(entries) => println!("{name:<20} {}", grow(entries.parse()?)),
            None => workload(Path::new(dir), name)?,
        }
    }
    Ok(())
}

/// So many entries for pairs of addresses, made on the way: how far it grows, and what it costs
/// there.
fn grow(entries: u32) -> Line {
    let mut masks = Masks::default();
    let matching = |number: u32| {
        Match::any()
            .with(Field::EthSrc, 0x0200_0000_0001)
            .with(Field::EthDst, 0x0200_0000_0002)
            .with(Field::EthType, 0x0800)
            .with(Field::Ipv4Src, (0x0a00_0000 + number).into())
            .with(Field::Ipv4Dst, (0x6400_0000 ^ number.reverse_bits()).into())
    };
    let mut classifier = Classifier::new(0x5eed);
    let (mut all, mut max) = (0, 0);
    for number in 0..entries {
        let compiled = CompiledMatch::of(&matching(number), &mut masks);
        let start = Instant::now();
        classifier.insert(&compiled, 1.into(), number.into(), EntryId(number));
        let ns = start.elapsed().as_nanos();
        all += ns;
        max = max.max(ns);
    }
    let figures = classifier.figures();
    let mut random = Random::new(1);
    let keys: Vec<FlowKey> = (0..LOOKUPS)
        .map(|_| key_in(&matching(random.index(entries as usize) as u32), &mut random))
        .collect();
    let (burst, single) = (bursts(&classifier, &keys), singles(&classifier, &keys));
    let start = Instant::now();
    for number in (0..entries).rev() {
        let compiled = CompiledMatch::of(&matching(number), &mut masks);
        assert!(classifier.remove(&compiled, 1.into(), EntryId(number)), "entry {number} is gone");
    }
    let remove = start.elapsed().as_nanos() as f64 / f64::from(entries);
    let insert = all as f64 / f64::from(entries);
    let insert_max_us = max as f64 / 1000.0;
    Line { table: 0, figures, burst, single, from_entries: burst, insert, insert_max_us, remove }
}

fn workload(dir: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let mut masks = Masks::default();
    let mut tables: Vec<Vec<Flow>> = Vec::new();
    for line in std::fs::read_to_string(dir.join(format!("{name}.flows")))?.lines() {
        let flow = parse_flow_mod(line, FlowModCommand::Add).map_err(|e| format!("{line}: {e}"))?;
        let table = usize::from(flow.table_id.0);
        tables.resize_with(tables.len().max(table + 1), Vec::new);
        let compiled = CompiledMatch::of(&flow.matching, &mut masks);
        tables[table].push(Flow { compiled, matching: flow.matching, priority: flow.priority });
    }
    let mut random = Random::new(1);
    let frames = std::fs::read(dir.join(format!("{name}.pcap"))).unwrap_or_default();
    let mut keys = keys_of(&frames);
    shuffle(&mut keys, &mut random);
    let mut lines: Vec<Line> = Vec::new();
    for (table, flows) in tables.iter().enumerate().filter(|(_, flows)| !flows.is_empty()) {
        lines.push(measure(table, flows, &keys, &mut random));
    }
    if lines.len() > 4 {
        let worst = |figure: fn(&Line) -> f64| lines.iter().map(figure).fold(0.0, f64::max);
        println!(
            "{name}: {} tables; the slowest: burst {:.1} ns, single {:.1} ns, insert {:.0} ns",
            lines.len(),
            worst(|l| l.burst),
            worst(|l| l.single),
            worst(|l| l.insert)
        );
        lines.truncate(1);
    }
    for line in lines {
        println!("{name:<20} {line}");
    }
    Ok(())
}

struct Line {
    table: usize,
    figures: ClassifierFigures,
    burst: f64,
    single: f64,
    from_entries: f64,
    insert: f64,
    insert_max_us: f64,
    remove: f64,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let figures = &self.figures;
        let mut text = String::new();
        write!(text, "{:>5} {:>8} {:<8} ", self.table, figures.entries, figures.template.name())?;
        write!(text, "{:>5} {:>6} {:>5} ", figures.masks, figures.groups, figures.sharing)?;
        write!(text, "{:>6} ", figures.listed)?;
        write!(text, "{:>7} ", figures.bytes / figures.entries.max(1))?;
        write!(text, "{:>6.1} {:>7.1} {:>7.1} ", self.burst, self.single, self.from_entries)?;
        write!(text, "{:>7.0} {:>8.1} {:>7.0}", self.insert, self.insert_max_us, self.remove)?;
        f.write_str(&text)
    }
}

fn measure(table: usize, flows: &[Flow], keys: &[FlowKey], random: &mut Random) -> Line {
    let mut classifier = Classifier::new(0x5eed);
    let mut inserts = vec![u32::MAX; flows.len()];
    let mut insert = f64::MAX;
    for _ in 0..3 {
        classifier = Classifier::new(0x5eed);
        let whole = Instant::now();
        for (number, flow) in flows.iter().enumerate() {
            let start = Instant::now();
            classifier.insert(
                &flow.compiled,
                flow.priority.into(),
                number as u64,
                EntryId(number as u32),
            );
            inserts[number] = inserts[number].min(start.elapsed().as_nanos() as u32);
        }
        insert = insert.min(whole.elapsed().as_nanos() as f64 / flows.len() as f64);
    }
    let figures = classifier.figures();
    let near: Vec<FlowKey> = (0..LOOKUPS.min(4 * flows.len().max(1000)))
        .map(|_| key_in(&flows[random.index(flows.len())].matching, random))
        .collect();
    let of_packets = if keys.is_empty() { &near } else { keys };
    let burst = bursts(&classifier, of_packets);
    let single = singles(&classifier, of_packets);
    let from_entries = bursts(&classifier, &near);
    let mut order: Vec<usize> = (0..flows.len()).collect();
    shuffle(&mut order, random);
    let start = Instant::now();
    for number in &order {
        let flow = &flows[*number];
        classifier.remove(&flow.compiled, flow.priority.into(), EntryId(*number as u32));
    }
    let remove = start.elapsed().as_nanos() as f64 / flows.len() as f64;
    assert!(classifier.is_empty(), "{} entries of {} are left", classifier.len(), flows.len());
    let insert_max_us = inserts.iter().copied().max().unwrap_or(0).into();
    let insert_max_us: f64 = insert_max_us;
    Line {
        table,
        figures,
        burst,
        single,
        from_entries,
        insert,
        insert_max_us: insert_max_us / 1000.0,
        remove,
    }
}

/// Nanoseconds per lookup in bursts, the keys of each in the cache.
fn bursts(classifier: &Classifier, keys: &[FlowKey]) -> f64 {
    let mut least = f64::MAX;
    let mut at = 0;
    let mut out = [None; BURST];
    let mut near: Vec<FlowKey> = vec![FlowKey::default(); BURST];
    for _ in 0..ROUNDS {
        let (mut ns, mut looked_up) = (0, 0);
        while looked_up < LOOKUPS {
            for key in &mut near {
                key.clone_from(&keys[at]);
                at = (at + 1) % keys.len();
            }
            let start = Instant::now();
            classifier.lookup_burst(black_box(&near), black_box(&mut out));
            ns += start.elapsed().as_nanos();
            looked_up += BURST;
        }
        least = least.min(ns as f64 / looked_up as f64);
    }
    least
}

/// Nanoseconds per lookup, one after the other.
fn singles(classifier: &Classifier, keys: &[FlowKey]) -> f64 {
    let mut least = f64::MAX;
    let mut at = 0;
    let mut near: Vec<FlowKey> = vec![FlowKey::default(); BURST];
    for _ in 0..ROUNDS {
        let (mut ns, mut looked_up) = (0, 0);
        while looked_up < LOOKUPS / 2 {
            for key in &mut near {
                key.clone_from(&keys[at]);
                at = (at + 1) % keys.len();
            }
            let start = Instant::now();
            for key in &near {
                black_box(classifier.lookup(black_box(key)));
            }
            ns += start.elapsed().as_nanos();
            looked_up += BURST;
        }
        least = least.min(ns as f64 / looked_up as f64);
    }
    least
}

/// A packet that a match takes, random in what the match does not look at.
fn key_in(matching: &Match, random: &mut Random) -> FlowKey {
    let mut key = FlowKey::default();
    for held in matching.fields() {
        let noise = random.u128();
        key.set(held.field, held.value | noise & !held.mask);
    }
    key
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.index(at + 1));
    }
}

/// The keys of a capture's frames, come in by port 1.
fn keys_of(pcap: &[u8]) -> Vec<FlowKey> {
    let mut keys = Vec::new();
    let mut rest = pcap.get(24..).unwrap_or_default();
    while let Some(header) = rest.first_chunk::<16>() {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        keys.push(extract(frame, &Meta::port(PortNo(1))));
        rest = &rest[16 + length..];
    }
    keys
}
