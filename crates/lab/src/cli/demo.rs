//! `weir demo`: in under two minutes a hub and a learning switch beside each other, on ports
//! without a limit of their own.
//!
//! Weir's switch with Weir's hub, then with the learning switch, and, where Open vSwitch and os-ken
//! are installed and time is left, that pair's hub as a comparison. It installs nothing.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::campaign::carry_out;
use super::{OutputArgs, PathArgs, TestbedArg, testbed_kind};
use crate::campaign::job::Campaign;
use crate::campaign::scenario::Scenario;
use crate::dut::{self, controller};
use crate::service::ProgramPaths;
use crate::setup::TestbedKind;

const DEMO_EXAMPLES: &str = "\
Examples:
  weir demo
  weir demo --out /tmp/demo --starts 2";

/// Show it: hub and learning switch beside each other, in under two minutes.
#[derive(Args, Debug)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// Starts of each switch in every cell.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    starts: u16,
    /// Seconds that the demo may take; what does not fit is left out and named.
    #[arg(long, default_value_t = 110)]
    budget: u64,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    paths: PathArgs,
}

impl DemoArgs {
    /// Runs the demo.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let (paths, kind) = (self.paths.resolve()?, testbed_kind(TestbedArg::Auto)?);
        let campaign = Campaign {
            starts: Some(usize::from(self.starts)),
            limit: Some(Duration::from_secs(self.budget)),
            ..campaign(paths, kind)
        };
        carry_out(campaign, &self.output)
    }
}

/// The demo's campaign, with a note about switches that are not installed.
fn campaign(paths: ProgramPaths, kind: TestbedKind) -> Campaign {
    let text = include_str!("../campaign/scenarios/demo.toml");
    let scenarios = vec![Scenario::from_toml(text).expect("a test reads it")];
    let mut duts: Vec<_> = dut::find("weir").into_iter().collect();
    let mut peers = dut::find("ovs").into_iter().chain(controller::find("os-ken"));
    let missing = peers.find_map(|peer| (peer.programs)(peer, &paths).err());
    if missing.is_none() && kind == TestbedKind::Kernel {
        duts.extend(dut::find("ovs"));
    }
    let note = missing.map(|missing| {
        format!(
            "Once Open vSwitch and os-ken are installed the demo sets their hub beside Weir's: \
             {missing}."
        )
    });
    let notes = note.into_iter().collect();
    Campaign { scenarios, duts, kind, paths, notes, ..Campaign::default() }
}

#[cfg(test)]
mod tests {
    use super::campaign;
    use crate::service::ProgramPaths;
    use crate::setup::TestbedKind;
    use std::time::Duration;

    #[test]
    fn hub_and_learning_switch_fit_into_two_minutes() {
        let campaign = campaign(ProgramPaths::default(), TestbedKind::Memory);
        let scenario = &campaign.scenarios[0];
        let cells = scenario.cells();
        let measured = cells.iter().filter(|cell| cell.without.iter().all(|dut| dut != "weir"));
        let cost = |settings| -> Duration {
            let methods = scenario.methods().into_iter();
            methods
                .map(|method| {
                    let trials = scenario.trials(method) as u32;
                    (method.cost)(&scenario.settings_of(method, settings)) * trials
                })
                .sum()
        };
        let all: Duration = measured.map(|cell| cost(&cell.settings)).sum();
        let all = all * scenario.starts() as u32;
        assert!(all < Duration::from_secs(105), "{all:?}");
    }

    #[test]
    fn without_the_peers_the_demo_says_so() {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let paths = ProgramPaths::new(nowhere.clone(), nowhere);
        let campaign = campaign(paths, TestbedKind::Kernel);
        assert_eq!((campaign.duts.len(), campaign.notes.len()), (1, 1));
    }
}
