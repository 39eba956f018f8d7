//! Duration of a campaign: estimated before it begins, and better the longer it measures.

use std::time::{Duration, Instant};

use super::{CampaignPart, controller_of};
use crate::campaign::order::Group;
use crate::controller::ControllerProgram;
use crate::dut::Dut;
use crate::settings::Settings;

/// About how long the testbed takes to make, and how many flow entries are loaded in a second.
pub(super) const BED_COST: Duration = Duration::from_millis(150);
const ENTRIES_A_SECOND: f64 = 80_000.0;

/// From so much on, what was measured says how long the rest takes.
const KNOWN_FROM: Duration = Duration::from_secs(20);

/// About how long a switch's turn takes.
pub(super) fn group_cost(part: &CampaignPart<'_>, group: &Group<'_>, dut: &dyn Dut) -> Duration {
    let trials: Duration = group
        .cells
        .iter()
        .flat_map(|(_, cell)| part.methods.iter().map(|method| part.cost(*method, cell)))
        .sum();
    trials + start_cost(dut, &group.cells[0].1.settings)
}

/// About how long a switch takes to start and to end, with its controller and its flow entries.
pub(super) fn start_cost(dut: &dyn Dut, settings: &Settings) -> Duration {
    let entries = settings.flow_count() as f64 / ENTRIES_A_SECOND;
    let controller = controller_of(settings).and_then(Result::ok);
    let controller = controller.map_or(Duration::ZERO, ControllerProgram::start_cost);
    let switches = dut.start_cost(settings) * u32::try_from(settings.line()).unwrap_or(u32::MAX);
    BED_COST + switches + controller + Duration::from_secs_f64(entries)
}

/// Work still to be measured, as it was estimated beforehand.
#[derive(Debug)]
pub(super) struct Plan {
    left: Duration,
    /// Estimate of the work that has been measured, and the time it took.
    estimated: Duration,
    took: Duration,
    begun: Instant,
}

impl Plan {
    /// All of it.
    pub(super) fn new(left: Duration) -> Self {
        let (estimated, took) = (Duration::ZERO, Duration::ZERO);
        Self { left, estimated, took, begun: Instant::now() }
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// A turn is over that was estimated to take `cost`; one that was not measured says nothing of
    /// the others.
    pub(super) fn end(&mut self, cost: Duration, is_measured: bool) {
        self.left = self.left.saturating_sub(cost);
        if is_measured {
            self.took += self.begun.elapsed();
            self.estimated += cost;
        }
        self.begun = Instant::now();
    }

    /// Seconds that are left, about.
    pub(super) fn left_s(&self) -> f64 {
        let pace = if self.took < KNOWN_FROM || self.estimated.is_zero() {
            1.0
        } else {
            self.took.as_secs_f64() / self.estimated.as_secs_f64()
        };
        (self.left.as_secs_f64() * pace - self.begun.elapsed().as_secs_f64()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use std::time::Duration;

    #[test]
    fn what_was_measured_says_how_long_the_rest_takes() {
        let second = Duration::from_secs(1);
        let mut plan = Plan::new(100 * second);
        let near = |plan: &Plan, most: f64| plan.left_s() <= most && plan.left_s() > most - 30.0;
        assert!(near(&plan, 100.0));
        plan.end(10 * second, false);
        assert!(near(&plan, 90.0), "what the switch cannot do takes no time");
        // Thirty seconds took sixty.
        plan.end(30 * second, true);
        plan.took = 60 * second;
        assert!(near(&plan, 120.0), "{}", plan.left_s());
        plan.end(60 * second, true);
        assert_eq!(plan.left_s(), 0.0);
    }
}
