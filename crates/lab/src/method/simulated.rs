//! Each quantity on a simulated switch whose truth is known: the interval of a comparison of its
//! starts with the truth holds it in at least 93 of 100 rows of seeded campaigns, of the usual
//! number of starts and of those of `--quick`.
//!
//! The switch is not the same in each start, as a real one is not. Time is virtual throughout.

use std::cell::{Cell, RefCell};

use generator::method::throughput::ThroughputOptions;
use generator::method::{Measurer as _, TrialInput};
use generator::receiver::StreamReport;
use generator::testing::{DelayVariation, DeviceModel, SimulatedDevice, SimulatedMeasurer};
use stats::{Comparison, Observed};
use testkit::Random;

use super::search::{Attempt, Found, LOSS_MAX, Range, search};
use super::table_size::{Filled, fill, learn};
use super::{TrialError, Values, delay, failover, meter, packet_in, rate, rfc2544};

const CAMPAIGNS: u64 = 100;

/// Rows of a method, of 100, that hold the truth.
const HELD_MIN: u64 = 93;

/// Of a single metric chance alone makes more than so many of 100 intervals of 95 % wrong in one of
/// 2,000 cases.
const WRONG_MAX: u64 = 13;

/// The starts of `--quick`, and the usual ones.
const STARTS: [usize; 2] = [3, 6];

/// By how much, of itself, a property of the switch differs from start to start.
const SPREAD: f64 = 0.05;

/// A switch whose figures are known, and one measurement of it.
struct Known {
    truths: Vec<(&'static str, f64)>,
    start: Box<dyn FnMut(&mut Random) -> Values>,
}

/// The starts' values of a metric beside the truth.
fn beside(starts: &[Values], metric: &str, truth: f64) -> Comparison {
    let value = |start: &Values| start.iter().find(|(id, _)| *id == metric).unwrap().1;
    let pairs = starts.iter().map(|start| (value(start), Observed::from(truth)));
    Comparison::of(&pairs.collect::<Vec<_>>()).unwrap()
}

/// Holds 100 campaigns against the truth, each with a switch of its own.
fn judge(what: &str, known: impl Fn(&mut Random) -> Known) {
    // For each number of starts and metric: the wrong campaigns.
    let mut counts: std::collections::BTreeMap<(usize, &str), u64> = <_>::default();
    let mut example = String::new();
    for seed in 0..CAMPAIGNS {
        let mut random = Random::new(seed);
        let mut switch = known(&mut random);
        let starts: Vec<Values> = (0..STARTS[1]).map(|_| (switch.start)(&mut random)).collect();
        for count in STARTS {
            for (metric, truth) in &switch.truths {
                let wrong = counts.entry((count, metric)).or_default();
                let found = beside(&starts[..count], metric, *truth);
                if found.is_different() {
                    *wrong += 1;
                    example += &format!("{count} {metric} {truth}: {found:?}\n");
                }
            }
        }
    }
    for count in STARTS {
        let rows = || counts.iter().filter(|((starts, _), _)| *starts == count);
        for ((_, metric), wrong) in rows() {
            println!("{what}: {metric}: {count} starts, {wrong} wrong");
            assert!(*wrong <= WRONG_MAX, "{what}: {metric}: {wrong} wrong\n{example}");
        }
        let all = CAMPAIGNS * rows().count() as u64;
        let wrong: u64 = rows().map(|(_, wrong)| wrong).sum();
        let held = 100 * (all - wrong);
        assert!(held >= HELD_MIN * all, "{what}: {wrong} of {all} wrong\n{example}");
    }
}

/// `value` as it is in one start.
fn varied(value: f64, random: &mut Random) -> f64 {
    value * (1.0 + SPREAD * random.normal())
}

/// Between `low` and `high`.
fn between(low: u64, high: u64, random: &mut Random) -> f64 {
    (low + random.below(high - low)) as f64
}

/// The account of frames through a device of that model.
fn account(
    model: DeviceModel,
    rate_pps: f64,
    duration_s: f64,
    random: &mut Random,
) -> StreamReport {
    let input = TrialInput { frame_size: 128, rate_pps, duration_s, grace_s: 2.0 };
    SimulatedMeasurer::new(model, random.u64()).trial(input).unwrap().report
}

#[test]
fn delay_jitter_and_loss() {
    judge("delay", |random| {
        let (base_ns, wide_ns) = (between(8_000, 200_000, random), between(1, 80_000, random));
        let loss = *random.pick(&[0.0, 0.000_2, 0.002, 0.05]);
        // Median, 99 %, mean and mean difference of what is added to the delay.
        let (variation, added_ns): (fn(u64) -> DelayVariation, _) = match random.below(3) {
            0 => (|_| DelayVariation::None, [0.0; 4]),
            1 => (DelayVariation::Uniform, [0.5, 0.99, 0.5, 1.0 / 3.0]),
            _ => (DelayVariation::Exponential, [2_f64.ln(), 100_f64.ln(), 1.0, 1.0]),
        };
        let [p50, p99, mean, jitter] = added_ns.map(|share| share * wide_ns);
        let us = |added_ns: f64| (base_ns + 1_000.0 + added_ns) / 1e3;
        let truths = vec![
            ("delay_p50_us", us(p50)),
            ("delay_p99_us", us(p99)),
            ("delay_mean_us", us(mean)),
            ("jitter_us", jitter / 1e3),
            ("delay_loss_pct", 100.0 * loss),
        ];
        let start = move |random: &mut Random| {
            let model = DeviceModel {
                delay_ns: varied(base_ns, random).max(0.0) as u64,
                variation: variation(wide_ns as u64),
                loss,
                ..DeviceModel::perfect(1e6, 64)
            };
            let report = account(model, 1_000.0, 0.6, random);
            let (delay, ipdv) = (report.delay.as_ref().unwrap(), report.ipdv.as_ref().unwrap());
            delay::figures(&report, delay, ipdv)
        };
        Known { truths, start: Box::new(start) }
    });
}

/// A search by trials of a fifth of a second, and one beyond what it found.
fn searched(model: DeviceModel, known_pps: Option<f64>, random: &mut Random) -> Found {
    let mut measurer = SimulatedMeasurer::new(model, random.u64());
    let mut trial = |rate_pps| {
        let (duration_s, grace_s) = (0.2, 0.02);
        let input = TrialInput { frame_size: 128, rate_pps, duration_s, grace_s };
        measurer.trial(input).map(|output| Attempt::of(&output))
    };
    let (start_pps, max_pps) = (500.0, 200_000.0);
    let range = Range { start_pps, max_pps, known_pps, loss_max: LOSS_MAX };
    let mut found = search(range, &mut trial).unwrap();
    let beyond = trial(1.1 * found.most_received_pps).unwrap();
    found.most_received_pps = found.most_received_pps.max(beyond.received_pps);
    found
}

#[test]
fn rates_and_packet_ins() {
    judge("rates", |random| {
        let capacity_pps = between(700, 1_500, random);
        let queue = *random.pick(&[1, 8, 64]);
        let delay_ns = between(1_000, 500_000, random) as u64;
        let ways_ns =
            [(); 2].map(|()| (between(8_000, 300_000, random), between(1, 50_000, random)));
        let us = |way: usize, factor: f64| {
            let (base_ns, wide_ns) = ways_ns[way];
            (base_ns + 1_000.0 + factor * wide_ns) / 1e3
        };
        let (p50, p99) = (2_f64.ln(), 100_f64.ln());
        let truths = vec![
            ("rate_pps", capacity_pps),
            ("rate_most_pps", capacity_pps),
            ("rate_mbps", capacity_pps * 1_184.0 / 1e6),
            ("pps_carried", capacity_pps),
            ("pps_saturated", capacity_pps),
            ("packet_in_pps", capacity_pps),
            ("packet_in_most_pps", capacity_pps),
            ("packet_in_us", us(0, p50)),
            ("packet_in_p99_us", us(0, p99)),
            ("packet_out_us", us(1, p50)),
            ("packet_out_p99_us", us(1, p99)),
        ];
        let mut known_pps = None;
        let start = move |random: &mut Random| {
            let model = DeviceModel {
                delay_ns,
                variation: DelayVariation::Exponential(20_000),
                ..DeviceModel::perfect(varied(capacity_pps, random), queue)
            };
            let found = searched(model, known_pps, random);
            known_pps = Some(found.carried_pps);
            let delays = ways_ns.map(|(base_ns, wide_ns)| {
                let model = DeviceModel {
                    delay_ns: varied(base_ns, random).max(0.0) as u64,
                    variation: DelayVariation::Exponential(wide_ns as u64),
                    ..DeviceModel::perfect(1e6, 64)
                };
                account(model, 500.0, 1.0, random).delay.unwrap()
            });
            let mut values = rate::figures(&found, 1_184.0);
            values.extend(found.figures("pps_carried", "pps_saturated"));
            values.extend(packet_in::figures(&found, &delays));
            values
        };
        Known { truths, start: Box::new(start) }
    });
}

/// A flow table of known size, which may take more than it holds.
pub(super) fn table_of(
    size: u64,
    is_lying: bool,
) -> impl FnMut(u64, u64) -> Result<Filled, TrialError> {
    let mut taken = 0;
    move |from, to| {
        assert_eq!(from, taken, "no entry is added twice");
        taken = to;
        let refused = (to > size && !is_lying).then(|| "table full".to_owned());
        Ok(Filled { offered: to, count: to.min(size), refused, ..Filled::default() })
    }
}

/// A switch that learns so many addresses, on a machine that loses that share of the frames, and of
/// some passes a quarter.
fn addresses(size: u64, loss: f64, random: &mut Random) -> Filled {
    let (taught, random) = (Cell::new(0), RefCell::new(random));
    let loss_of_pass = || if random.borrow_mut().percent(5) { 0.25 } else { loss };
    let come = |sent: u64, loss: f64| {
        let lost = sent as f64 * loss;
        let lost = lost + (lost * (1.0 - loss)).sqrt() * random.borrow_mut().normal();
        sent.saturating_sub(lost.max(0.0).round() as u64)
    };
    let add = |_: u64, count: u64| {
        let teach = || {
            taught.set(come(count, loss_of_pass()));
            Ok(taught.get())
        };
        let look = || {
            let (loss, flooded) = (loss_of_pass(), count - taught.get().min(size));
            Ok((come(count, loss), come(flooded, loss)))
        };
        learn(count, teach, look)
    };
    fill(1 << 15, add).unwrap()
}

#[test]
fn table_sizes() {
    let figures = |found: Filled| vec![("table_entries", found.held())];
    judge("flow table", |random| {
        let (size, is_lying) = (1 + random.below(60_000), random.percent(50));
        let start = move |_: &mut Random| figures(fill(100_000, table_of(size, is_lying)).unwrap());
        Known { truths: vec![("table_entries", size as f64)], start: Box::new(start) }
    });
    judge("learnt addresses", |random| {
        let (size, loss) = (1 + random.below(30_000), random.below(30) as f64 / 10_000.0);
        let start = move |random: &mut Random| figures(addresses(size, loss, random));
        Known { truths: vec![("table_entries", size as f64)], start: Box::new(start) }
    });
}

/// Frames a second while something is changed, and for how long.
const RATE_PPS: f64 = 2_000.0;
const FRAMES_S: f64 = 0.05;

/// Arrivals when frames are lost from `from_ns` on, for `for_ns`.
fn interrupted(from_ns: u64, for_ns: u64, random: &mut Random) -> StreamReport {
    let model = DeviceModel {
        delay_ns: 30_000,
        variation: DelayVariation::Exponential(10_000),
        reset_ns: for_ns,
        ..DeviceModel::perfect(1e6, 64)
    };
    let mut measurer = SimulatedMeasurer::new(model, random.u64());
    measurer.device.reset_at(from_ns);
    let (rate_pps, duration_s, grace_s) = (RATE_PPS, FRAMES_S, 2.0);
    measurer.trial(TrialInput { frame_size: 128, rate_pps, duration_s, grace_s }).unwrap().report
}

#[test]
fn failovers() {
    judge("failover", |random| {
        let gap_ns = between(1_000_000, 20_000_000, random);
        let start = move |random: &mut Random| {
            let pulled_ns = between(5_000_000, 10_000_000, random);
            let before = interrupted(pulled_ns as u64, u64::MAX / 2, random);
            let behind = interrupted(0, (pulled_ns + varied(gap_ns, random)) as u64, random);
            let gap_ms = failover::gap_ms([&before, &behind], RATE_PPS).unwrap();
            vec![("failover_ms", gap_ms)]
        };
        Known { truths: vec![("failover_ms", gap_ns / 1e6)], start: Box::new(start) }
    });
}

#[test]
fn meters() {
    judge("meter", |random| {
        let configured_pps = between(600, 1_400, random);
        let factor = *random.pick(&[0.9, 0.98, 1.0, 1.003, 1.05, 1.2]);
        let bucket = random.below(120);
        let kbit = |frames: f64| frames * 992.0 / 1e3;
        let truths = vec![
            ("meter_kbps", kbit(factor * configured_pps)),
            ("meter_error_pct", 100.0 * f64::abs(factor - 1.0)),
            // One frame is on its way out while the bucket's others wait.
            ("meter_burst_kbit", kbit(bucket as f64 + 1.0)),
        ];
        let start = move |random: &mut Random| {
            let model = DeviceModel::perfect(factor * configured_pps, bucket);
            let mut measurer = SimulatedMeasurer::new(model, random.u64());
            let phase = |duration_s| TrialInput {
                frame_size: 128,
                rate_pps: 2.0 * configured_pps,
                duration_s,
                grace_s: 0.1,
            };
            let outputs = measurer.run(&[phase(0.2), phase(0.4)]).unwrap();
            let passed = [0, 1].map(|index: usize| outputs[index].report.received);
            meter::figures(passed, [0.2, 0.4], configured_pps, 992.0)
        };
        Known { truths, start: Box::new(start) }
    });
}

#[test]
fn rfc2544_figures() {
    judge("RFC 2544", |random| {
        let max_pps = 2_000.0;
        let (capacity_pps, queue) = (between(600, 1_500, random), 1 + random.below(5));
        let delay_us = between(10, 400, random);
        let options = ThroughputOptions::new(128, max_pps);
        let search = ThroughputOptions { trial_s: 0.15, precision: rfc2544::PRECISION, ..options };
        let model =
            move |delay_ns| DeviceModel { delay_ns, ..DeviceModel::perfect(capacity_pps, queue) };
        let mut device = SimulatedDevice::new(model(0), 1);
        let burst = (0..).find(|n| device.offer(n * 500_000).at_ns.is_none()).unwrap();
        let passed = capacity_pps * search.trial_s + queue as f64 + 1.0;
        let truths = vec![
            ("rfc2544_throughput_pps", capacity_pps),
            ("rfc2544_latency_us", 1e6 / capacity_pps + delay_us),
            ("rfc2544_loss_pct", 100.0 * (1.0 - passed / (max_pps * search.trial_s))),
            ("rfc2544_burst", burst as f64),
        ];
        let start = move |random: &mut Random| {
            let model = model((1e3 * varied(delay_us, random)) as u64);
            let mut measurer = SimulatedMeasurer::new(model, random.u64());
            rfc2544::answers(&mut measurer, search, (64, 4)).unwrap().figures(search, 4)
        };
        Known { truths, start: Box::new(start) }
    });
}
