//! Estimate of a campaign's duration, before anything is started.
//!
//! It is made of what each start, each end and each method say that they take, for what the
//! switches can do; a program that is not installed is found out by the run. It must never be a
//! bound: trials in which the machine stalls are repeated.

use std::time::Duration;

use super::{
    BED_COST, Campaign, CampaignError, CampaignPart, check_fit, group_cost, groups, parts, turns,
};
use crate::setup::TestbedKind;

/// About how long a scenario takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioCost {
    /// The scenario's name.
    pub scenario: String,
    /// Starts of switches.
    pub starts: usize,
    /// The duration.
    pub duration: Duration,
}

/// About how long each scenario of a campaign takes.
///
/// # Errors
/// A scenario that is wrong.
pub fn estimate(campaign: &Campaign) -> Result<Vec<ScenarioCost>, CampaignError> {
    Ok(parts(campaign)?.iter().map(|part| of_part(campaign, part)).collect())
}

fn of_part(campaign: &Campaign, part: &CampaignPart<'_>) -> ScenarioCost {
    let all = groups(&part.cells);
    let mut once = floor(campaign, part);
    let mut starts = 0;
    for (group, dut) in turns(part, campaign, &all) {
        if check_fit(campaign, part, dut, &group.cells[0].1.settings).is_ok() {
            starts += 1;
            once += group_cost(part, &group, dut);
        }
    }
    let starts_each = u32::try_from(part.starts).unwrap_or(u32::MAX);
    ScenarioCost {
        scenario: part.scenario.id.clone(),
        starts: starts * part.starts,
        duration: once * starts_each,
    }
}

/// The lab's own floor, once.
fn floor(campaign: &Campaign, part: &CampaignPart<'_>) -> Duration {
    if !part.has_floor() || campaign.kind != TestbedKind::Kernel {
        return Duration::ZERO;
    }
    let methods = || part.methods.iter().filter(|method| !method.floors().is_empty());
    let traffics = part.traffics().into_iter();
    let of = |traffic: usize| methods().map(move |of| part.cost(*of, &part.cells[traffic]));
    BED_COST + traffics.flat_map(of).sum::<Duration>()
}
