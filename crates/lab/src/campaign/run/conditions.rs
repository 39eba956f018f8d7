//! Conditions of a campaign's figures: the version of Weir, the machine, the programs, and the
//! boxes that measure. One that goes on under other conditions would be no one campaign.

use std::path::Path;

use super::{CampaignError, Run};
use crate::campaign::ledger::{LedgerError, LedgerLine, NAME};
use crate::facts::{BoxFacts, conditions};
use crate::results::RunPart;

/// The refusal of conditions that have changed; figures under both would be no one campaign's. A
/// condition that only one of them names does not count.
fn check(
    folder: &Path,
    whose: &str,
    [old, now]: [Vec<(String, String)>; 2],
) -> Result<(), LedgerError> {
    let changed = |(name, old): &(String, String)| {
        let (_, new) = now.iter().find(|(same, _)| same == name)?;
        (old != new).then(|| format!("{name}: {old}, now {new}"))
    };
    let words: Vec<String> = old.iter().filter_map(changed).collect();
    if words.is_empty() {
        return Ok(());
    }
    let why = format!(
        "was measured under other conditions ({whose}{}): their figures are not those of one \
         campaign. Go on where it began, or leave --resume out",
        words.join("; ")
    );
    Err(LedgerError::new(folder.join(NAME).display(), why))
}

/// Whether a campaign goes on under the conditions of its last part.
pub(super) fn check_part(folder: &Path, parts: [&RunPart; 2]) -> Result<(), LedgerError> {
    let of = |part: &RunPart| {
        let mut all = conditions(&part.weir, Some(&part.machine));
        let programs = part.programs.iter();
        // The switch may have the lab's name and another form of its version.
        all.extend(programs.map(|one| (format!("program {}", one.name), one.version.clone())));
        all
    };
    check(folder, "", parts.map(of))
}

impl Run<'_> {
    /// Files a box that measures; one that is another than it was ends the campaign.
    pub(super) fn check_box(&mut self, of: BoxFacts) -> Result<(), CampaignError> {
        let Some(known) = self.record.boxes.get(&of.address) else {
            return self.log(LedgerLine::Box(of));
        };
        let whose = format!("the box of the agent {}: ", of.address);
        let both = [known, &of].map(|one| conditions(&one.weir, one.machine.as_ref()));
        Ok(check(&self.campaign.folder, &whose, both)?)
    }
}
