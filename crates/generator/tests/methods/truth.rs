//! Every method against simulated devices of which the truth is known: it lies within the method's
//! own 99 % interval in at least 98 of 100 seeded runs.
//!
//! In virtual time; the seeds are fixed, so a run is the same everywhere. An interval that is so
//! wide that it always holds says nothing: each test also bounds its width.

use generator::method::back_to_back::{BackToBackOptions, back_to_back};
use generator::method::frame_loss::{FrameLossOptions, frame_loss};
use generator::method::latency::{LatencyOptions, LatencyReport, latency};
use generator::method::mlrsearch::{MlrsearchOptions, SearchGoal, mlrsearch};
use generator::method::recovery::{RecoveryOptions, recovery};
use generator::method::reset::reset;
use generator::method::throughput::{ThroughputOptions, throughput};
use generator::method::{Estimate, Measurer, TrialInput};
use generator::receiver::StreamReport;
use generator::testing::{DelayVariation, DeviceModel, SimulatedDevice, SimulatedMeasurer};

const RUNS: u64 = 100;

/// Counts the runs whose interval holds the truth, for each of several figures at once. Widths are
/// relative to `scale`, or to the truth where that is `None`.
fn holds<const N: usize>(
    names: [&str; N],
    width_max: f64,
    scale: Option<f64>,
    run: impl Fn(u64) -> [(Estimate, f64); N],
) {
    let (mut held, mut widths) = ([0; N], [0.0; N]);
    for seed in 0..RUNS {
        for (index, (estimate, truth)) in run(seed).into_iter().enumerate() {
            held[index] += u64::from(estimate.contains(truth));
            let width = (estimate.high - estimate.low) / scale.unwrap_or(truth);
            widths[index] += width / RUNS as f64;
        }
    }
    for (index, name) in names.into_iter().enumerate() {
        assert!(held[index] >= 98, "{name}: the truth was within in {} of {RUNS}", held[index]);
        assert!(widths[index] <= width_max, "{name}: mean width {}", widths[index]);
    }
}

/// A number of this seed's own between `low` and `high`.
fn between(seed: u64, low: f64, high: f64) -> f64 {
    // The golden ratio's multiples are spread evenly.
    low + (seed as f64 * 0.618_033_988_749_895).fract() * (high - low)
}

/// One trial of 2,000 frames of 1 ms each.
fn trial(model: DeviceModel, seed: u64) -> StreamReport {
    let input = TrialInput { frame_size: 64, rate_pps: 1_000.0, duration_s: 2.0, grace_s: 1.0 };
    SimulatedMeasurer::new(model, seed).trial(input).unwrap().report
}

#[test]
fn shares_of_lost_doubled_corrupted_and_reordered_frames() {
    holds(["loss", "duplication", "corruption", "reordering"], 0.05, Some(1.0), |seed| {
        let share = between(seed, 0.0, 0.1);
        let fast = DeviceModel::perfect(1e6, 64);
        let of = |hits: u64, report: &StreamReport| Estimate::of_share(hits, report.sent);
        let lossy = trial(DeviceModel { loss: share, ..fast }, seed);
        let doubling = trial(DeviceModel { duplication: share, ..fast }, seed);
        let corrupting = trial(DeviceModel { corruption: share, ..fast }, seed);
        // Two frames overtake one that is held back for two and a half, unless both are, too.
        let holding = DeviceModel { holding_back: share, holding_back_ns: 2_500_000, ..fast };
        let holding = trial(holding, seed);
        [
            (of(lossy.lost, &lossy), share),
            (of(doubling.duplicated, &doubling), share),
            (of(corrupting.corrupted, &corrupting), share),
            (of(holding.reordered, &holding), share * (1.0 - share * share)),
        ]
    });
}

#[test]
fn frame_loss_below_and_above_the_capacity() {
    holds(["random", "by overload"], 0.12, Some(1.0), |seed| {
        let share = between(seed, 0.0, 0.1);
        let options =
            FrameLossOptions { frame_size: 64, max_pps: 4_000.0, step: 1.0, trial_s: 0.5 };
        let at_max = |model: DeviceModel| {
            let mut measurer = SimulatedMeasurer::new(model, seed);
            frame_loss(&mut measurer, &options).unwrap()[0].loss_ratio
        };
        let capacity = between(seed, 1_000.0, 3_900.0);
        let queue = between(seed * 7, 1.0, 60.0) as u64;
        [
            (at_max(DeviceModel { loss: share, ..DeviceModel::perfect(1e6, 64) }), share),
            (at_max(DeviceModel::perfect(capacity, queue)), 1.0 - capacity / 4_000.0),
        ]
    });
}

/// Trials of a number of seconds, each with 1,000 frames a second.
fn latency_of(
    seed: u64,
    (trials, trial_s): (u32, f64),
    delay_ns: u64,
    variation: DelayVariation,
) -> LatencyReport {
    let model = DeviceModel { delay_ns, variation, ..DeviceModel::perfect(1e6, 64) };
    let options = LatencyOptions { frame_size: 64, rate_pps: 1_000.0, trial_s, trials };
    latency(&mut SimulatedMeasurer::new(model, seed), &options).unwrap().unwrap()
}

#[test]
fn latency_with_uniform_variation() {
    holds(["mean", "p50", "p90", "jitter"], 0.1, None, |seed| {
        let (delay, most) = (between(seed, 1e3, 5e5), between(seed * 3, 1e3, 5e5));
        let variation = DelayVariation::Uniform(most as u64);
        let found = latency_of(seed, (10, 0.5), delay as u64, variation);
        // Forwarding takes a microsecond; times are whole nanoseconds.
        let at = |share: f64| delay + 1_000.0 + share * most;
        [
            (found.mean_ns.widened(1.0, 1.0), at(0.5)),
            (found.p50_ns.unwrap().widened(1.0, 1.0), at(0.5)),
            (found.p90_ns.unwrap().widened(1.0, 1.0), at(0.9)),
            (found.jitter_ns.widened(1.0, 1.0), most / 3.0),
        ]
    });
}

#[test]
fn latency_with_exponential_variation() {
    holds(["mean", "p50", "p90", "jitter"], 0.2, None, |seed| {
        let (delay, mean) = (between(seed, 1e3, 1e5), between(seed * 3, 1e3, 5e4));
        let variation = DelayVariation::Exponential(mean as u64);
        let found = latency_of(seed, (10, 0.5), delay as u64, variation);
        let at = |share: f64| delay + 1_000.0 - mean * (1.0_f64 - share).ln();
        [
            (found.mean_ns.widened(1.0, 1.0), delay + 1_000.0 + mean),
            (found.p50_ns.unwrap().widened(1.0, 1.0), at(0.5)),
            (found.p90_ns.unwrap().widened(1.0, 1.0), at(0.9)),
            // The difference of two such delays has the same distribution.
            (found.jitter_ns.widened(1.0, 1.0), mean),
        ]
    });
}

#[test]
fn the_tail_of_latency() {
    holds(["p99"], 0.25, None, |seed| {
        let mean = between(seed, 1e3, 5e4);
        let found = latency_of(seed, (4, 5.0), 1_000, DelayVariation::Exponential(mean as u64));
        let truth = 2_000.0 - mean * 0.01_f64.ln();
        [(found.p99_ns.unwrap().widened(1.0, 1.0), truth)]
    });
}

/// A device of a capacity from 500 to 7,000 frames a second with a short queue.
fn some_device(seed: u64) -> DeviceModel {
    let variation = DelayVariation::Uniform(between(seed * 5, 0.0, 1e6) as u64);
    let queue = between(seed * 7, 1.0, 8.0) as u64;
    let model = DeviceModel::perfect(between(seed, 500.0, 7_000.0), queue);
    DeviceModel { delay_ns: 50_000, variation, ..model }
}

#[test]
fn throughput_by_binary_search() {
    holds(["throughput"], 0.12, None, |seed| {
        let options = ThroughputOptions {
            trial_s: 0.2,
            grace_s: 0.02,
            precision: 0.01,
            ..ThroughputOptions::new(64, 8_000.0)
        };
        let model = some_device(seed);
        let found = throughput(&mut SimulatedMeasurer::new(model, seed), &options).unwrap();
        [(found.rate_pps, model.capacity_pps)]
    });
}

#[test]
fn ndr_and_pdr_by_mlrsearch() {
    let goal = SearchGoal {
        relative_width: 0.01,
        initial_trial_s: 0.1,
        final_trial_s: 0.2,
        duration_sum_s: 0.6,
        ..SearchGoal::ndr()
    };
    holds(["NDR", "PDR"], 0.12, None, |seed| {
        let goals = vec![goal, SearchGoal { loss_ratio: 0.02, ..goal }];
        let options =
            MlrsearchOptions { grace_s: 0.02, goals, ..MlrsearchOptions::ndr_pdr(64, 8_000.0) };
        let model = some_device(seed);
        let found = mlrsearch(&mut SimulatedMeasurer::new(model, seed), &options).unwrap();
        let [ndr, pdr] = &found.results[..] else { panic!("{found:?}") };
        [(ndr.rate_pps, model.capacity_pps), (pdr.rate_pps, model.capacity_pps / 0.98)]
    });
}

#[test]
fn back_to_back_frames() {
    const LINE_PPS: f64 = 10_000.0;
    holds(["burst"], 0.1, None, |seed| {
        let queue = between(seed * 7, 1.0, 60.0) as u64;
        let model = DeviceModel::perfect(between(seed, 1_000.0, 8_000.0), queue);
        let options = BackToBackOptions {
            frame_size: 64,
            line_pps: LINE_PPS,
            longest: 500,
            resolution: 1,
            repeats: 3,
            throughput_pps: Some(model.capacity_pps),
        };
        let mut device = SimulatedDevice::new(model, seed);
        let due = |number: u64| (number as f64 * 1e9 / LINE_PPS) as u64;
        let truth = (0..).take_while(|number| device.offer(due(*number)).at_ns.is_some()).count();
        let found = back_to_back(&mut SimulatedMeasurer::new(model, seed), &options).unwrap();
        [(found.burst, truth as f64)]
    });
}

#[test]
fn system_recovery() {
    holds(["recovery"], 0.02, None, |seed| {
        let capacity = between(seed, 2_000.0, 6_000.0);
        let truth_s = between(seed * 3, 0.05, 0.2);
        let recovery_ns = (truth_s * 1e9) as u64;
        let model = DeviceModel { recovery_ns, ..DeviceModel::perfect(capacity, 8) };
        let options = RecoveryOptions {
            frame_size: 64,
            throughput_pps: capacity,
            overload: 1.1,
            reduced: 0.5,
            overload_s: 0.2,
            reduced_s: 0.3,
            repeats: 2,
        };
        let found = recovery(&mut SimulatedMeasurer::new(model, seed), &options).unwrap();
        // The frame at the reduction is the last that comes an interval of the overload after
        // another.
        [(found.recovery_s, truth_s)]
    });
}

/// A reset: the device drops all, or takes the link down so that the sender's port takes nothing,
/// or the port also takes nothing at other times though its link is up.
fn reset_of(change: fn(DeviceModel) -> DeviceModel) {
    holds(["time stamps", "frame loss"], 0.1, None, |seed| {
        let truth_s = between(seed, 0.05, 0.5);
        let model = change(DeviceModel {
            reset_ns: (truth_s * 1e9) as u64,
            variation: DelayVariation::Uniform(200_000),
            ..DeviceModel::perfect(10_000.0, 16)
        });
        let input = TrialInput { frame_size: 64, rate_pps: 2_000.0, duration_s: 0.8, grace_s: 1.0 };
        let cause = |measurer: &mut SimulatedMeasurer| {
            let at_s = between(seed * 11, 0.05, 0.2);
            measurer.device.reset_at(measurer.now_ns() + (at_s * 1e9) as u64);
        };
        let found = reset(&mut SimulatedMeasurer::new(model, seed), input, cause).unwrap();
        [(found.by_time_stamps_s, truth_s), (found.by_frame_loss_s, truth_s)]
    });
}

#[test]
fn reset_by_both_ways() {
    reset_of(|model| model);
}

#[test]
fn reset_that_takes_the_link_of_the_sender_down() {
    reset_of(|model| DeviceModel { reset_takes_link_down: true, ..model });
}

#[test]
fn reset_beside_a_port_that_refuses_frames() {
    reset_of(|model| DeviceModel { refuse_every_ns: 37_000_000, refuse_ns: 700_000, ..model });
}
