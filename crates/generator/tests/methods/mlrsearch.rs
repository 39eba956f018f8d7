//! MLRsearch against the package of the same name (1.2.1 on PyPI), whose results stand in
//! `vectors/mlrsearch/bounds.json`: whole searches on devices that a formula describes, and what
//! random trials make of a load.

use std::convert::Infallible;

use generator::method::mlrsearch::{
    LoadClass, LoadTrial, MlrsearchOptions, SearchGoal, classify, conditional_throughput, mlrsearch,
};
use generator::method::{Measurer, TrialInput, TrialOutput};
use generator::receiver::StreamReport;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    searches: Vec<SearchVector>,
    classes: Vec<ClassVector>,
}

#[derive(Deserialize)]
struct SearchVector {
    device: FormulaDevice,
    goals: Vec<SearchGoal>,
    results: Vec<PackageResult>,
    trials: usize,
}

#[derive(Deserialize)]
struct PackageResult {
    lower_bound_pps: Option<f64>,
    upper_bound_pps: Option<f64>,
    conditional_throughput_pps: Option<f64>,
}

#[derive(Deserialize)]
struct ClassVector {
    goal: SearchGoal,
    trials: Vec<(f64, f64)>,
    at_best: bool,
    at_worst: bool,
    loss_ratio: Option<f64>,
}

fn vectors() -> Vectors {
    let text = include_str!("../../../../vectors/mlrsearch/bounds.json");
    serde_json::from_str(text).unwrap()
}

/// The device of the script that made the vectors.
#[derive(Clone, Debug, Deserialize)]
struct FormulaDevice {
    capacity_pps: f64,
    queue: u64,
    bad_every: u64,
    #[serde(skip)]
    trials: u64,
}

impl Measurer for FormulaDevice {
    type Error = Infallible;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, Infallible> {
        let mut output = |input: &TrialInput| {
            self.trials += 1;
            let sent = ((input.rate_pps * input.duration_s).round() as u64).max(1);
            let capacity = (self.capacity_pps * input.duration_s) as u64 + self.queue;
            let mut received = sent.min(capacity);
            if self.bad_every > 0 && self.trials.is_multiple_of(self.bad_every) {
                received -= received.div_ceil(100);
            }
            let report = StreamReport {
                sent,
                received,
                lost: sent - received,
                first_ns: Some(0),
                last_ns: Some(((sent - 1) as f64 * 1e9 / input.rate_pps) as u64),
                ..StreamReport::default()
            };
            TrialOutput {
                input: *input,
                start_ns: 0,
                unsent: 0,
                unsent_down: 0,
                sent_late: 0,
                report,
            }
        };
        Ok(phases.iter().map(&mut output).collect())
    }
}

#[test]
fn searches_end_at_the_packages_bounds() {
    for vector in vectors().searches {
        let (mut ours, mut theirs) = (0, 0);
        let options = MlrsearchOptions {
            frame_size: 64,
            min_pps: 100.0,
            max_pps: 1_000_000.0,
            grace_s: 0.0,
            goals: vector.goals.clone(),
            trials_max: 10_000,
        };
        let found = mlrsearch(&mut vector.device.clone(), &options).unwrap();
        ours += found.trials.len();
        theirs += vector.trials;
        for (own, package) in found.results.iter().zip(&vector.results) {
            let says = format!("{:?} {own:?}", vector.device);
            assert_eq!(own.lower_bound_pps.is_some(), package.lower_bound_pps.is_some(), "{says}");
            assert_eq!(own.upper_bound_pps.is_some(), package.upper_bound_pps.is_some(), "{says}");
            // Both have the truth between bounds that are a width apart: so they overlap.
            let width = own.goal.relative_width;
            if let (Some(lower), Some(upper)) = (own.lower_bound_pps, package.upper_bound_pps) {
                assert!(lower <= upper && own.is_regular, "{says}");
            }
            if let (Some(upper), Some(lower)) = (own.upper_bound_pps, package.lower_bound_pps) {
                assert!(upper >= lower, "{says}");
            }
            let conditional = own.conditional_throughput_pps.unwrap();
            let packages = package.conditional_throughput_pps.unwrap();
            assert!((conditional / packages - 1.0).abs() <= 2.0 * width, "{says} {packages}");
        }
        // Trials are what a search costs.
        assert!(ours <= 2 * theirs, "{:?}: {ours} trials, the package {theirs}", vector.device);
    }
}

#[test]
fn trials_make_the_same_of_a_load() {
    let vectors = vectors().classes;
    assert!(vectors.len() >= 300);
    for (number, vector) in vectors.iter().enumerate() {
        let trial = |&(duration_s, loss_ratio): &(f64, f64)| LoadTrial { duration_s, loss_ratio };
        let trials: Vec<LoadTrial> = vector.trials.iter().map(trial).collect();
        let expected = match (vector.at_best, vector.at_worst) {
            (true, true) => LoadClass::Lower,
            (true, false) => LoadClass::Undecided,
            (false, true | false) => LoadClass::Upper,
        };
        assert_eq!(classify(&trials, &vector.goal), expected, "class {number}");
        if let Some(loss_ratio) = vector.loss_ratio {
            let found = conditional_throughput(1000.0, &trials, &vector.goal);
            assert!((found - 1000.0 * (1.0 - loss_ratio)).abs() < 1e-6, "class {number}: {found}");
        }
    }
}
