//! The lab's own floor: what is measured where hosts are joined without a switch.

use std::time::Duration;

use programs::cancel::Stopped;

use super::part::CampaignPart;
use super::trial::NoTrial;
use super::{CampaignError, Run};
use crate::campaign::ledger::LedgerLine;
use crate::dut;
use crate::method::Method;
use crate::settings::{Forwarding, Settings};

/// The name of the switch that is none: what is measured on it is the lab's own floor.
pub(super) const FLOOR_DUT: &str = "wire";

impl Run<'_> {
    /// Measures what has a floor on a wire, once for everything that is sent.
    pub(super) fn floor(
        &mut self,
        index: usize,
        part: &CampaignPart<'_>,
        start: usize,
    ) -> Result<(), CampaignError> {
        let missing: Vec<(usize, &'static dyn Method)> = part
            .traffics()
            .into_iter()
            .flat_map(|traffic| part.methods.iter().map(move |method| (traffic, *method)))
            .filter(|(traffic, method)| !self.has_floor((index, *traffic), *method, start))
            .collect();
        let Some(wire) = dut::find(FLOOR_DUT) else { return Ok(()) };
        if missing.is_empty() || !self.outside.has_floor {
            return Ok(());
        }
        self.begin(&format!("{}: the lab's own floor", part.scenario.id), Duration::ZERO);
        let settings = Settings { forwarding: Some(Forwarding::Flows), ..<_>::default() };
        let mut started = match self.start(wire, &settings) {
            Ok(started) => started,
            Err(error) if error.is_stop() => return Err(Stopped.into()),
            Err(error) => {
                self.note(format!("{}: no floor: {error}", part.scenario.id));
                return Ok(());
            }
        };
        for (traffic, method) in missing {
            let cell = &part.cells[traffic];
            let settings = part.settings(method, cell).traffic();
            match self.measure(method, &mut started, &settings, None)? {
                (Ok(_), stall) if stall.is_long() => {}
                (Ok(trial), _) => {
                    let values = trial.values.into_iter();
                    let values = values
                        .filter(|(id, value)| method.floors().contains(id) && value.is_finite());
                    let values = values.map(|(id, value)| (id.to_owned(), value)).collect();
                    let (scenario, at) = (part.scenario.id.clone(), cell.at.clone());
                    let method = method.id().to_owned();
                    self.log(LedgerLine::Floor { scenario, at, start, method, values });
                }
                (Err(NoTrial { why, .. }), _) => {
                    self.note(format!("{}: no floor: {why}", part.scenario.id));
                }
            }
        }
        Ok(())
    }

    /// Whether a method has its floor in a start, or has none.
    fn has_floor(&self, place: (usize, usize), method: &dyn Method, start: usize) -> bool {
        let known = self.record.floors.get(&place);
        let has = |id: &&str| {
            known
                .and_then(|floors| floors.get(id))
                .is_some_and(|values| values.contains_key(&start))
        };
        method.floors().is_empty() || method.floors().iter().any(has)
    }
}
