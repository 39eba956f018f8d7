//! A trial as it is filed: its figures, or why there are none.

use files::with_sources;

use crate::limit::limiting;
use crate::method::{Method, Trial};
use crate::results::{CellState, MeasuredDistribution, NOT_SUPPORTED, TrialRecord};
use crate::settings::{Forwarding, Settings};
use crate::setup::Setup;

/// The commands that a reader would type, with the first of the flow entries.
pub(super) fn commands(setup: &Setup, settings: &Settings) -> Vec<String> {
    let mut commands = setup.commands();
    if settings.forwarding() != Forwarding::Flows {
        // Nothing is loaded then, whatever the base settings of the scenario say.
        return commands;
    }
    let flows = settings.flows.iter().flatten().take(4).map(|flow| format!("add-flow {flow}"));
    let series = settings.series.iter().flatten();
    let series = series.map(|all| format!("add-flow {} times {}", all.count, all.flow));
    let groups = settings.groups.iter().flatten().map(|group| format!("add-group {group}"));
    let meters = settings.meters.iter().flatten().map(|meter| format!("add-meter {meter}"));
    commands.extend(flows.chain(series).chain(groups).chain(meters));
    commands
}

/// A trial that yields nothing, by its start and its own number in it.
pub(super) fn failed(method: &str, (start, trial): (usize, usize), error: String) -> TrialRecord {
    TrialRecord { method: method.to_owned(), start, trial, error: Some(error), ..<_>::default() }
}

/// Packets that a tier inside the kernel decided between two readings, or the reason that they are
/// not known; neither where there is no such tier.
pub(super) fn hits_between(
    first: anyhow::Result<Option<u64>>,
    last: anyhow::Result<Option<u64>>,
) -> (Option<u64>, Option<String>) {
    match (first, last) {
        (Ok(first), Ok(last)) => {
            (last.zip(first).map(|(last, first)| last.saturating_sub(first)), None)
        }
        (Err(error), _) | (Ok(_), Err(error)) => (None, Some(with_sources(error.as_ref()))),
    }
}

/// Filed form of a trial, or of why there is none.
pub(super) fn record(
    method: &Method,
    number: (usize, usize),
    outcome: Result<Trial, CellState>,
) -> TrialRecord {
    let trial = match outcome {
        Ok(trial) => trial,
        Err(CellState::NotSupported(why)) => {
            return failed(method.id, number, format!("{NOT_SUPPORTED}: {why}"));
        }
        Err(state) => {
            let why = state.absence().map_or("", |(_, why)| why);
            return failed(method.id, number, why.to_owned());
        }
    };
    let saturating = trial.load.as_ref().filter(|_| method.saturates);
    let limit = saturating.map(|load| limiting(load, trial.carried));
    let distributions = trial.distributions.into_iter();
    let distributions = distributions.map(|of| MeasuredDistribution { start: number.0, ..of });
    let values = trial.values.iter().filter(|(_, of)| of.value.is_finite());
    let open = trial.values.iter().filter(|(_, of)| of.low < of.high);
    let resolutions = open.filter(|(_, of)| of.low.is_finite() && of.high.is_finite());
    TrialRecord {
        method: method.id.to_owned(),
        start: number.0,
        trial: number.1,
        tool: trial.tool,
        values: values.map(|(id, of)| ((*id).to_owned(), of.value)).collect(),
        resolutions: resolutions.map(|(id, of)| ((*id).to_owned(), (of.low, of.high))).collect(),
        load: trial.load,
        limit,
        distributions: distributions.collect(),
        raw: trial.raw,
        ..<_>::default()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::hits_between;

    #[test]
    fn a_question_that_failed_is_no_tier_that_decided_nothing() {
        assert_eq!(hits_between(Ok(Some(3)), Ok(Some(10))), (Some(7), None));
        assert_eq!(hits_between(Ok(None), Ok(None)), (None, None));
        for words in ["asking for the hits", "asking for the hits: no answer"] {
            let failed = || Err(anyhow!("no answer").context(words));
            let unknown = (None, Some("asking for the hits: no answer".to_owned()));
            assert_eq!(hits_between(failed(), Ok(Some(10))), unknown);
            assert_eq!(hits_between(Ok(Some(3)), failed()), unknown);
        }
    }
}
