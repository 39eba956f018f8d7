//! The demo: in under two minutes a hub and a learning switch beside each other, on ports without
//! a limit of their own.
//!
//! Weir's switch with Weir's hub, then with the learning switch, and, where Open vSwitch and os-ken
//! are installed and time is left, that pair's hub as a comparison. It installs nothing.

use programs::tools::Missing;

use crate::campaign::scenario::Scenario;
use crate::dut::{self, Dut, controller};
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;

/// The demo's scenario.
pub fn scenario() -> Scenario {
    let text = include_str!("campaign/scenarios/demo.toml");
    Scenario::from_toml(text).expect("a test reads it")
}

/// The switches that it is measured on, and what the reader should know of those that are not.
pub fn duts(paths: &ProgramPaths, kind: TestbedKind) -> (Vec<&'static Dut>, Vec<String>) {
    let mut duts: Vec<&'static Dut> = dut::find("weir").into_iter().collect();
    match missing(paths) {
        None if kind == TestbedKind::Kernel => duts.extend(dut::find("ovs")),
        None => {}
        Some(missing) => {
            let note = format!(
                "Once Open vSwitch and os-ken are installed the demo sets their hub beside \
                 Weir's: {missing}."
            );
            return (duts, vec![note]);
        }
    }
    (duts, Vec::new())
}

/// The peer that the comparison needs, if it is missing.
fn missing(paths: &ProgramPaths) -> Option<Missing> {
    let dut = dut::find("ovs")?;
    let dut = (dut.programs)(dut, paths);
    let controller = controller::find("os-ken")?;
    let controller = (controller.programs)(controller, paths);
    dut.and(controller).err()
}

#[cfg(test)]
mod tests {
    use super::{duts, scenario};
    use crate::service::ProgramPaths;
    use crate::setup::TestbedKind;
    use std::time::Duration;

    #[test]
    fn hub_and_learning_switch_fit_into_two_minutes() {
        let scenario = scenario();
        let cells = scenario.cells(false);
        let measured = cells.iter().filter(|cell| cell.without.iter().all(|dut| dut != "weir"));
        let cost = |settings| -> Duration {
            let methods = scenario.methods(false).into_iter();
            methods
                .map(|method| {
                    let trials = scenario.trials(method, false) as u32;
                    (method.cost)(&scenario.settings_of(method, settings, false)) * trials
                })
                .sum()
        };
        let all: Duration = measured.map(|cell| cost(&cell.settings)).sum();
        let all = all * scenario.starts(false) as u32;
        assert!(all < Duration::from_secs(105), "{all:?}");
    }

    #[test]
    fn without_the_peers_the_demo_says_so() {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let paths = ProgramPaths::new(nowhere.clone(), nowhere);
        let (duts, notes) = duts(&paths, TestbedKind::Kernel);
        assert_eq!((duts.len(), notes.len()), (1, 1));
    }
}
