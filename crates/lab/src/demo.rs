//! The demo: evaluation E1 in under two minutes, hub and learning switch beside each other.
//!
//! Weir's switch with Weir's hub, then with the learning switch, and, where Open vSwitch and os-ken
//! are installed and time is left, that pair's hub as a comparison. It installs nothing.

use std::time::Duration;

use openflow::Version;

use crate::controller::{self, AppKind};
use crate::dut;
use crate::method::Timing;
use crate::rate::LinkRate;
use crate::report::CellKey;
use crate::run::Plan;
use crate::scenario;
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;
use crate::tools::Missing;

/// Ports of 100BASE-TX, as in E1.
const PORT_RATE: LinkRate = LinkRate(Some(100_000_000));

/// How often round trips are measured in each cell. They take half a second, and over three repeats
/// their interval was wider than the figure.
const IDLE_REPEATS: usize = 10;

/// The demo's plan; `limit` is the time that it may take.
#[must_use]
pub fn plan(paths: ProgramPaths, kind: TestbedKind, repeats: usize, limit: Duration) -> Plan {
    let scenario = scenario::ALL[0];
    let mut cells = vec![cell("weir", "weir", AppKind::Hub, kind)];
    cells.push(cell("weir", "weir", AppKind::LearningSwitch, kind));
    let mut notes = Vec::new();
    match missing(&paths) {
        None if kind == TestbedKind::Kernel => {
            cells.push(cell("ovs", "os-ken", AppKind::Hub, kind));
        }
        None => {}
        Some(missing) => notes.push(format!(
            "Once Open vSwitch and os-ken are installed the demo sets their hub beside Weir's: \
             {missing}."
        )),
    }
    Plan {
        scenario,
        timing: Timing::demo(),
        cells,
        methods: scenario.methods().to_vec(),
        repeats,
        idle_repeats: IDLE_REPEATS,
        kind,
        paths,
        limit: Some(limit),
        notes,
        quiet: false,
    }
}

/// What the comparison needs and is not there.
fn missing(paths: &ProgramPaths) -> Option<Missing> {
    let dut = dut::find("ovs")?.programs(paths);
    let controller = controller::find("os-ken")?.programs(paths);
    dut.and(controller).err()
}

fn cell(dut: &str, controller: &str, app: AppKind, kind: TestbedKind) -> CellKey {
    let port_rate = match kind {
        TestbedKind::Kernel => PORT_RATE,
        TestbedKind::Memory => LinkRate(None),
    };
    CellKey {
        dut: dut.to_owned(),
        controller: controller.to_owned(),
        app,
        version: Version::V1_0,
        port_rate,
        control_rate: LinkRate(None),
    }
}

#[cfg(test)]
mod tests {
    use super::plan;
    use crate::service::ProgramPaths;
    use crate::setup::TestbedKind;
    use std::time::Duration;

    #[test]
    fn hub_and_learning_switch_fit_into_two_minutes() {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let paths = ProgramPaths { weir: nowhere.clone(), os_ken_dir: nowhere };
        let plan = plan(paths, TestbedKind::Kernel, 3, Duration::from_secs(110));
        assert_eq!((plan.cells.len(), plan.notes.len()), (2, 1));
        assert_eq!(plan.idle_repeats, 10);
        let cost = plan.cell_cost() * 6;
        assert!(cost < Duration::from_secs(105), "{cost:?}");
    }
}
