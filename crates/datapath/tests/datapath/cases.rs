//! Every case of the workspace on both datapaths, through the seam.
//!
//! The cases say what any OpenFlow switch must do; every datapath runs the same ones. Nothing in
//! this folder may know how a datapath works inside.

mod runner;

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Reference};
use testkit::cases::load_dir;

fn run_all(area: &str, at_least: usize, datapath: impl Fn() -> Box<dyn Datapath>) {
    let cases = load_dir(&testkit::cases_dir(area));
    let cases = cases.unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= at_least, "{area}: only {} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        if let Err(failure) = runner::run(case, &mut *datapath()) {
            failures.push(failure);
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn reference() -> Box<dyn Datapath> {
    Box::new(Reference::new(DatapathConfig::default()))
}

fn fast() -> Box<dyn Datapath> {
    Box::new(Fast::new(DatapathConfig::default(), 1))
}

#[test]
fn the_cases_of_the_pipeline_run_on_the_reference() {
    run_all("pipeline", 195, reference);
}

#[test]
fn the_cases_of_the_pipeline_run_on_the_fast_datapath() {
    run_all("pipeline", 195, fast);
}

#[test]
fn the_cases_of_os_ken_run_on_the_reference() {
    run_all("os-ken", 711, reference);
}

#[test]
fn the_cases_of_os_ken_run_on_the_fast_datapath() {
    run_all("os-ken", 711, fast);
}
