//! Every case of the workspace on the reference datapath, through the seam.
//!
//! The cases say what any OpenFlow switch must do; a later datapath runs the same ones by one more
//! test here. Nothing in this folder may know how a datapath works inside.

mod runner;

use datapath::{Config, Reference};
use testkit::cases::load_dir;

fn run_all(area: &str, at_least: usize) {
    let cases = load_dir(&testkit::cases_dir(area));
    let cases = cases.unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= at_least, "{area}: only {} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let mut datapath = Reference::new(Config::default());
        if let Err(failure) = runner::run(case, &mut datapath) {
            failures.push(failure);
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn the_cases_of_the_pipeline_run_on_the_reference() {
    run_all("pipeline", 195);
}

#[test]
fn the_cases_of_os_ken_run_on_the_reference() {
    run_all("os-ken", 702);
}
