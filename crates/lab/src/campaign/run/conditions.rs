//! Conditions of a campaign's figures: the version of Weir, the machine, the programs, and the
//! boxes that measure. One that goes on under other conditions would be no one campaign.

use super::{CampaignError, Run};
use crate::campaign::ledger::{LedgerError, LedgerLine, NAME, PartHead};
use crate::facts::{BoxFacts, Machine};

impl PartHead {
    /// Conditions of the figures, by name.
    pub(super) fn conditions(&self) -> Vec<(String, String)> {
        let mut all = conditions(&self.weir, Some(&self.machine));
        let programs = self.programs.iter();
        // The switch may have the lab's name and another form of its version.
        let named = programs.map(|one| (format!("program {}", one.name), one.version.clone()));
        all.extend(named);
        all
    }
}

impl BoxFacts {
    /// Conditions of the figures, by name.
    pub(super) fn conditions(&self) -> Vec<(String, String)> {
        conditions(&self.weir, self.machine.as_ref())
    }
}

/// Of a version of Weir on a machine. A machine that was started anew is the same.
fn conditions(weir: &str, machine: Option<&Machine>) -> Vec<(String, String)> {
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = vec![named("weir", weir)];
    if let Some(machine) = machine {
        let real_time = machine.real_time_error.as_deref().unwrap_or("permitted");
        all.extend([
            named("processor", &machine.cpu),
            named("cores", &machine.cores.to_string()),
            named("kernel", &machine.kernel),
            named("system", &machine.os),
            named("real time", real_time),
        ]);
    }
    all
}

/// Conditions that have changed; figures under both would be no one campaign's. A condition that
/// only one of them names does not count.
pub(super) fn difference(old: Vec<(String, String)>, now: Vec<(String, String)>) -> Option<String> {
    let other = |name: &str| now.iter().find(|(same, _)| same == name);
    let words: Vec<String> = old
        .iter()
        .filter_map(|(name, old)| Some((name, old, &other(name)?.1)))
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| format!("{name}: {old}, now {new}"))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

impl Run<'_> {
    /// Files a box that measures; one that is another than it was ends the campaign.
    pub(super) fn check_box(&mut self, of: BoxFacts) -> Result<(), CampaignError> {
        match self.record.boxes.get(&of.address) {
            Some(known) if known == &of => Ok(()),
            Some(known) => match difference(known.conditions(), of.conditions()) {
                Some(what) => {
                    let path = self.campaign.folder.join(NAME);
                    let what = format!("the box of the agent {}: {what}", of.address);
                    Err(LedgerError::Conditions { path, what }.into())
                }
                None => Ok(()),
            },
            None => self.log(LedgerLine::Box(of)),
        }
    }
}
