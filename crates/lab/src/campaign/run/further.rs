//! Further starts of the headline figures, until the interval of each ratio is narrow enough or the
//! time is over.
//!
//! They come behind the plan, the widest interval first. It must never begin a start for which
//! there is no time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CampaignError, Run};
use crate::campaign::job::Job;
use crate::present::{Headline, headlines_of};

/// An interval is narrow enough that reaches no further from its ratio than this share of it.
const REACH: f64 = 0.05;

/// Further starts of a headline at most: a narrow interval is not worth any time.
const STARTS_MAX: usize = 24;

impl Run<'_> {
    /// Measures further starts of the plan's headlines until the campaign has taken `limit`.
    pub(super) fn further_starts(
        &mut self,
        plan: &[Job<'_>],
        limit: Duration,
    ) -> Result<(), CampaignError> {
        let mut begun: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let Some(results) = self.record.results() else { return Ok(()) };
            let mut wide = headlines_of(&results);
            wide.retain(|one| one.reach > REACH);
            wide.sort_by(|a, b| b.reach.total_cmp(&a.reach));
            let mut is_over = true;
            for headline in &wide {
                let round = begun.entry(headline.scenario.clone()).or_default();
                let turn = turn(plan, headline, *round);
                let cost: Duration = turn.iter().map(Job::cost).sum();
                let has_time = self.clock.elapsed() + cost <= limit;
                if turn.is_empty() || *round >= STARTS_MAX || !has_time {
                    continue;
                }
                (*round, is_over) = (*round + 1, false);
                self.progress.more(turn.iter().map(Job::steps).sum());
                turn.iter().try_for_each(|job| self.job(job))?;
            }
            if is_over {
                break;
            }
        }
        let further = begun.iter().filter(|(_, starts)| **starts > 0);
        let further: Vec<String> =
            further.map(|(scenario, starts)| format!("{scenario} {starts}")).collect();
        if further.is_empty() {
            return Ok(());
        }
        self.note(format!(
            "Further starts of headline figures, until the interval of each ratio was within ±{} % \
             of it or the time was over: {}",
            100.0 * REACH,
            further.join(", ")
        ))
    }
}

/// The jobs of one more start of all switches that have a headline's figure, with its cell and its
/// method alone. A start that serves all turns is not one more.
fn turn<'a>(plan: &[Job<'a>], headline: &Headline, round: usize) -> Vec<Job<'a>> {
    let is_of = |job: &&Job<'_>| {
        let has_figure = headline.duts.iter().any(|dut| dut == job.dut.name);
        job.start == 0 && job.scenario.id == headline.scenario && has_figure
    };
    let one_more = |job: &Job<'a>| {
        let mut job = job.clone();
        job.start = job.campaign.starts(job.scenario) + round;
        job.cells.retain(|cell| cell.at == headline.at);
        job.methods.retain(|method| method.id == headline.method);
        (!job.cells.is_empty() && !job.scenario.is_held).then_some(job)
    };
    plan.iter().filter(is_of).filter_map(one_more).collect()
}
