//! Each quantity on a simulated switch whose truth is known: the interval that a report would print
//! holds it in at least 98 of 100 rows of seeded campaigns, of the usual number of repeats and of
//! those of `--quick`.
//!
//! The switch is not the same in each repeat, as a real one is not. Where a report says that the
//! repeats are too few it claims nothing; of the usual number most campaigns must claim something.
//! Time is virtual throughout.

use generator::method::{Measurer, TrialInput};
use generator::receiver::StreamReport;
use generator::testing::{DelayVariation, DeviceModel, SimulatedDevice, SimulatedMeasurer};
use testkit::Random;

use super::flow_mods::Change;
use super::meter::Metered;
use super::pps::received_pps;
use super::rfc2544::Asked;
use super::search::{Attempt, LOSS_MAX, Path, Range, search};
use super::table_size::tests::KnownTable;
use super::table_size::{Learner, Station, fill};
use super::{
    Resolution, TrialError, Values, delay, failover, flow_mods, packet_in, pps, rate, rfc2544, soak,
};
use crate::stats::distributions::normal;
use crate::stats::{Reported, reported_mean_within};

const CAMPAIGNS: u64 = 100;

/// Rows of a method, of 100, that hold the truth.
const HELD_MIN: u64 = 98;

/// Of a single metric chance alone makes more than so many of 100 intervals of 99 % wrong in one of
/// 2,000 cases.
const WRONG_MAX: u64 = 5;

/// Of the full number of repeats, at least so many campaigns of 100 claim something: few frames
/// tell little of a rare loss.
const CLAIMS_MIN: u64 = 50;

/// The repeats of `--quick`, and the usual ones.
const REPEATS: [usize; 2] = [3, 5];

/// By how much, of itself, a property of the switch differs from repeat to repeat.
const SPREAD: f64 = 0.05;

type Figures = (Values, Vec<Resolution>);

/// A switch whose figures are known, and one measurement of it.
struct Known {
    truths: Vec<(&'static str, f64)>,
    repeat: Box<dyn FnMut(&mut Random) -> Figures>,
}

/// Report of a metric.
fn reported(repeats: &[Figures], metric: &str) -> Reported {
    let sample = |(values, resolutions): &Figures| {
        let value = values.iter().find(|(id, _)| *id == metric).unwrap().1;
        let resolution = resolutions.iter().find(|of| of.metric == metric);
        (value, resolution.map_or((value, value), |of| (of.low, of.high)))
    };
    let (samples, resolutions): (Vec<_>, Vec<_>) = repeats.iter().map(sample).unzip();
    reported_mean_within(&samples, &resolutions).unwrap()
}

/// Holds 100 campaigns against the truth, each with a switch of its own.
fn judge(what: &str, known: impl Fn(&mut Random) -> Known) {
    // For each number of repeats and metric: campaigns that claim something, and wrong ones.
    let mut counts: std::collections::BTreeMap<(usize, &str), (u64, u64)> = <_>::default();
    let mut example = String::new();
    for seed in 0..CAMPAIGNS {
        let mut random = Random::new(seed);
        let mut switch = known(&mut random);
        let repeats: Vec<Figures> = (0..REPEATS[1]).map(|_| (switch.repeat)(&mut random)).collect();
        for count in REPEATS {
            for (metric, truth) in &switch.truths {
                let (claims, wrong) = counts.entry((count, metric)).or_default();
                match reported(&repeats[..count], metric) {
                    Reported::Known { interval, .. } => {
                        *claims += 1;
                        if !interval.contains(*truth) {
                            *wrong += 1;
                            example += &format!("{count} {metric} {truth}: {interval:?}\n");
                        }
                    }
                    Reported::Single { .. } => panic!("{count} repeats are no single one"),
                    Reported::TooFew { .. } => {}
                }
            }
        }
    }
    for count in REPEATS {
        let rows = || counts.iter().filter(|((repeats, _), _)| *repeats == count);
        for ((_, metric), (claims, wrong)) in rows() {
            println!("{what}: {metric}: {count} repeats, {claims} claims, {wrong} wrong");
            assert!(*wrong <= WRONG_MAX, "{what}: {metric}: {wrong} wrong\n{example}");
            let is_usual = count == REPEATS[1];
            assert!(!is_usual || *claims >= CLAIMS_MIN, "{what}: {metric}: {claims} claims");
        }
        let all = CAMPAIGNS * rows().count() as u64;
        let wrong: u64 = rows().map(|(_, (_, wrong))| wrong).sum();
        let held = 100 * (all - wrong);
        assert!(held >= HELD_MIN * all, "{what}: {wrong} of {all} wrong\n{example}");
    }
}

/// `value` as it is in one repeat.
fn varied(value: f64, random: &mut Random) -> f64 {
    value * (1.0 + SPREAD * normal(random))
}

/// Between `low` and `high`.
fn between(low: u64, high: u64, random: &mut Random) -> f64 {
    (low + random.below(high - low)) as f64
}

fn trial(measurer: &mut SimulatedMeasurer, rate_pps: f64, duration_s: f64) -> StreamReport {
    let input = TrialInput { frame_size: 128, rate_pps, duration_s, grace_s: 2.0 };
    Measurer::trial(measurer, input).unwrap().report
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
        let repeat = move |random: &mut Random| {
            let model = DeviceModel {
                delay_ns: varied(base_ns, random).max(0.0) as u64,
                variation: variation(wide_ns as u64),
                loss,
                ..DeviceModel::perfect(1e6, 64)
            };
            let report = trial(&mut SimulatedMeasurer::new(model, random.u64()), 1_000.0, 0.6);
            let (delay, ipdv) = (report.delay.as_ref().unwrap(), report.ipdv.as_ref().unwrap());
            delay::figures(&report, delay, ipdv)
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

/// Trials of a fifth of a second.
struct Simulated(SimulatedMeasurer);

const TRIAL_S: f64 = 0.2;

impl Path for Simulated {
    type Error = TrialError;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, TrialError> {
        let (duration_s, grace_s) = (TRIAL_S, 0.1 * TRIAL_S);
        let input = TrialInput { frame_size: 128, rate_pps: offered_pps, duration_s, grace_s };
        let output = Measurer::trial(&mut self.0, input).unwrap();
        let received_pps = received_pps(&output.report, output.start_ns, duration_s);
        Ok(Attempt { offered_pps, received_pps, loss: output.loss_ratio() })
    }
}

#[test]
fn rates() {
    judge("rates", |random| {
        let capacity_pps = between(700, 1_500, random);
        let queue = *random.pick(&[1, 8, 64]);
        let delay_ns = between(1_000, 500_000, random) as u64;
        let mbps = capacity_pps * 1_184.0 / 1e6;
        let truths = vec![
            ("rate_pps", capacity_pps),
            ("rate_most_pps", capacity_pps),
            ("rate_mbps", mbps),
            ("pps_carried", capacity_pps),
            ("pps_saturated", capacity_pps),
        ];
        let mut known_pps = None;
        let repeat = move |random: &mut Random| {
            let variation = DelayVariation::Exponential(20_000);
            let model = DeviceModel {
                delay_ns,
                variation,
                ..DeviceModel::perfect(varied(capacity_pps, random), queue)
            };
            let mut path = Simulated(SimulatedMeasurer::new(model, random.u64()));
            let (start_pps, max_pps, loss_max) = (500.0, 200_000.0, LOSS_MAX);
            let range = Range { start_pps, max_pps, known_pps, loss_max };
            let found = search(&mut path, range).unwrap();
            known_pps = Some(found.carried_pps);
            let beyond = path.trial(1.1 * found.most_received_pps).unwrap();
            let (mut values, mut resolutions) = rate::figures(&found, 1_184.0);
            let others = pps::figures(&found, &beyond);
            values.extend(others.0);
            resolutions.extend(others.1);
            (values, resolutions)
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

#[test]
fn packet_ins_and_packet_outs() {
    judge("packet-in", |random| {
        let capacity_pps = between(700, 1_500, random);
        let ways_ns =
            [(); 2].map(|()| (between(8_000, 300_000, random), between(1, 50_000, random)));
        let us = |way: usize, factor: f64| {
            let (base_ns, wide_ns) = ways_ns[way];
            (base_ns + 1_000.0 + factor * wide_ns) / 1e3
        };
        let (p50, p99) = (2_f64.ln(), 100_f64.ln());
        let truths = vec![
            ("packet_in_pps", capacity_pps),
            ("packet_in_most_pps", capacity_pps),
            ("packet_in_us", us(0, p50)),
            ("packet_in_p99_us", us(0, p99)),
            ("packet_out_us", us(1, p50)),
            ("packet_out_p99_us", us(1, p99)),
        ];
        let mut known_pps = None;
        let repeat = move |random: &mut Random| {
            let mut way = |(base_ns, wide_ns): (f64, f64)| {
                let model = DeviceModel {
                    delay_ns: varied(base_ns, random).max(0.0) as u64,
                    variation: DelayVariation::Exponential(wide_ns as u64),
                    ..DeviceModel::perfect(1e6, 64)
                };
                let report = trial(&mut SimulatedMeasurer::new(model, random.u64()), 500.0, 1.0);
                report.delay.unwrap()
            };
            let delays = packet_in::Delays { up: way(ways_ns[0]), down: way(ways_ns[1]) };
            let model = DeviceModel::perfect(varied(capacity_pps, random), 8);
            let mut path = Simulated(SimulatedMeasurer::new(model, random.u64()));
            let (start_pps, max_pps, loss_max) = (500.0, 200_000.0, 0.0);
            let range = Range { start_pps, max_pps, known_pps, loss_max };
            let mut found = search(&mut path, range).unwrap();
            known_pps = Some(found.carried_pps);
            let beyond = path.trial(1.1 * found.most_received_pps).unwrap();
            found.most_received_pps = found.most_received_pps.max(beyond.received_pps);
            packet_in::figures(&found, &delays)
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

/// A switch that learns addresses, on a machine that loses frames, and of some passes a quarter.
struct KnownAddresses<'a> {
    size: u64,
    /// Of 10,000 frames.
    loss: u64,
    taught: u64,
    random: &'a mut Random,
}

impl KnownAddresses<'_> {
    /// Frames of a pass that come to a port.
    fn come(&mut self, sent: u64, loss: u64) -> u64 {
        (0..sent).filter(|_| self.random.below(10_000) >= loss).count() as u64
    }

    /// Loss of a pass.
    fn pass(&mut self) -> u64 {
        if self.random.percent(5) { 2_500 } else { self.loss }
    }
}

impl Station for KnownAddresses<'_> {
    fn teach(&mut self, count: u64) -> Result<u64, TrialError> {
        let loss = self.pass();
        self.taught = self.come(count, loss);
        Ok(self.taught)
    }

    fn look(&mut self, count: u64) -> Result<(u64, u64), TrialError> {
        let loss = self.pass();
        let flooded = count - self.taught.min(self.size);
        Ok((self.come(count, loss), self.come(flooded, loss)))
    }
}

#[test]
fn table_sizes() {
    let figures = |found: super::table_size::Filled| {
        let held = found.held.count as f64;
        let (low, high) = found.resolution();
        (vec![("table_entries", held)], vec![Resolution::new("table_entries", low, high)])
    };
    judge("flow table", |random| {
        let (size, is_lying) = (1 + random.below(60_000), random.percent(50));
        let repeat = move |_: &mut Random| {
            figures(fill(&mut KnownTable::new(size, is_lying), 100_000).unwrap())
        };
        Known { truths: vec![("table_entries", size as f64)], repeat: Box::new(repeat) }
    });
    judge("learnt addresses", |random| {
        let (size, loss) = (1 + random.below(30_000), random.below(30));
        let repeat = move |random: &mut Random| {
            let addresses = KnownAddresses { size, loss, taught: 0, random };
            figures(fill(&mut Learner(addresses), 1 << 15).unwrap())
        };
        Known { truths: vec![("table_entries", size as f64)], repeat: Box::new(repeat) }
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
    trial(&mut measurer, RATE_PPS, FRAMES_S)
}

#[test]
fn flow_mods_and_barriers() {
    judge("flow-mods", |random| {
        let obeyed_ns = between(2_000_000, 20_000_000, random);
        // A third is honest, and answers a little after it obeyed.
        let lie_ns = between(0, 9_000_000, random) - 3_000_000.0;
        let truths = vec![
            ("flow_mod_obeyed_ms", obeyed_ns / 1e6),
            ("flow_mod_barrier_ms", (obeyed_ns - lie_ns.min(obeyed_ns)) / 1e6),
            ("flow_mod_lie_ms", lie_ns.max(0.0).min(obeyed_ns) / 1e6),
        ];
        let repeat = move |random: &mut Random| {
            let mut change = || {
                let sent_ns = between(5_000_000, 10_000_000, random) as u64;
                let taken_ns = varied(obeyed_ns, random) as u64;
                let answered_ns = sent_ns as f64 + taken_ns as f64 - lie_ns.min(obeyed_ns);
                let report = interrupted(0, sent_ns + taken_ns, random);
                Change {
                    sent_ns,
                    answered_ns: answered_ns as u64,
                    first_ns: report.first_ns.unwrap(),
                    interval_ns: (1e9 / RATE_PPS) as u64,
                    delay_ns: report.delay_us(0.99).map_or(0, |us| (1e3 * us) as u64),
                }
            };
            flow_mods::figures(&[change(), change(), change(), change(), change()])
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

#[test]
fn failovers() {
    judge("failover", |random| {
        let gap_ns = between(1_000_000, 20_000_000, random);
        let repeat = move |random: &mut Random| {
            let pulled_ns = between(5_000_000, 10_000_000, random);
            let before = interrupted(pulled_ns as u64, u64::MAX / 2, random);
            let behind = interrupted(0, (pulled_ns + varied(gap_ns, random)) as u64, random);
            let gap = failover::Gap::between(Some(&before), Some(&behind), RATE_PPS).unwrap();
            let resolution = Resolution::new("failover_ms", gap.least_ms, gap.most_ms);
            (vec![("failover_ms", gap.ms)], vec![resolution])
        };
        Known { truths: vec![("failover_ms", gap_ns / 1e6)], repeat: Box::new(repeat) }
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
        let repeat = move |random: &mut Random| {
            let model = DeviceModel::perfect(factor * configured_pps, bucket);
            let mut path = SimulatedMeasurer::new(model, random.u64());
            let phase = |duration_s| TrialInput {
                frame_size: 128,
                rate_pps: 2.0 * configured_pps,
                duration_s,
                grace_s: 0.1,
            };
            let outputs = path.run(&[phase(0.2), phase(0.4)]).unwrap();
            let passed = [0, 1].map(|index: usize| outputs[index].report.received as f64);
            Metered::of(passed, [0.2, 0.4], configured_pps).figures(992.0)
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

#[test]
fn rfc2544_figures() {
    judge("RFC 2544", |random| {
        let max_pps = 2_000.0;
        let (capacity_pps, queue) = (between(600, 1_500, random), 1 + random.below(5));
        let delay_us = between(10, 400, random);
        let asked = Asked {
            frame_size: 128,
            max_pps,
            trial_s: 0.15,
            loss_ratio: 0.0,
            longest: 64,
            resolution: 4,
        };
        let model =
            move |delay_ns| DeviceModel { delay_ns, ..DeviceModel::perfect(capacity_pps, queue) };
        let mut device = SimulatedDevice::new(model(0), 1);
        let burst = (0..).find(|n| device.offer(n * 500_000).at_ns.is_none()).unwrap();
        let passed = capacity_pps * asked.trial_s + queue as f64 + 1.0;
        let truths = vec![
            ("rfc2544_throughput_pps", capacity_pps),
            ("rfc2544_latency_us", 1e6 / capacity_pps + delay_us),
            ("rfc2544_loss_pct", 100.0 * (1.0 - passed / (max_pps * asked.trial_s))),
            ("rfc2544_burst", burst as f64),
        ];
        let repeat = move |random: &mut Random| {
            let model = model((1e3 * varied(delay_us, random)) as u64);
            let mut measurer = SimulatedMeasurer::new(model, random.u64());
            rfc2544::answers(&mut measurer, asked).unwrap().figures(asked)
        };
        Known { truths, repeat: Box::new(repeat) }
    });
}

/// A soak is one repeat, whose windows carry the interval of its drift.
#[test]
fn drifts() {
    let is_held = |seed| {
        let mut random = Random::new(seed);
        let drift = *random.pick(&[0.0, 5.0, -40.0, 2_000.0]);
        let mut at_s = 0.0;
        let mut point = |_| {
            at_s += 0.5 + between(0, 100, &mut random) / 1e3;
            // A window in ten is disturbed.
            let disturbed = if random.percent(10) { between(0, 300, &mut random) } else { 0.0 };
            (at_s, 60.0 + drift * at_s / 3_600.0 + 2.0 * normal(&mut random) + disturbed)
        };
        let points: Vec<(f64, f64)> = (0..80).map(&mut point).collect();
        soak::drift(&points, 3_600.0).unwrap().1.contains(drift)
    };
    let held = (0..CAMPAIGNS).filter(|seed| is_held(*seed)).count() as u64;
    assert!(held >= HELD_MIN, "{held}");
}
