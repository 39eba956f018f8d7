//! Whether an entry is within what its table may hold: asked of tables with limits only.
//!
//! The errors are those of a switch whose tables cannot do more, as that is what the controller
//! has asked them to be. Groups have no limits.

use openflow::flow::FlowMod;
use openflow::instruction::ActionsRun;
use openflow::{Action, ActionKind, Error, Field, Instruction, Match, Version};

use super::limits::{EntryLimits, Limits};
use crate::precedence::is_table_miss;

fn require(condition: bool, error: Error) -> Result<(), Error> {
    if condition { Ok(()) } else { Err(error) }
}

impl Limits {
    pub(super) fn check(&self, flow_mod: &FlowMod, version: Version) -> Result<(), Error> {
        let is_miss = is_table_miss(flow_mod.priority, &flow_mod.matching, version);
        // Every table can hold a table-miss entry, whatever must be matched (clause 5.4).
        if !is_miss {
            self.check_match(&flow_mod.matching)?;
        }
        let limits = if is_miss { &self.miss } else { &self.hit };
        let check = |asked| self.check_instruction(asked, limits, version);
        flow_mod.instructions.iter().try_for_each(check)
    }

    fn check_match(&self, matching: &Match) -> Result<(), Error> {
        for asked in matching.fields() {
            let maskable = self.matches.get(&asked.field).ok_or(Error::BadMatchBadField)?;
            require(*maskable || asked.is_exact(), Error::BadMatchBadMask)?;
            if asked.field == Field::Metadata {
                let foreign = asked.mask & !u128::from(self.metadata_match);
                // A match of the whole field is one of the bits that there are.
                require(foreign == 0 || asked.is_exact(), Error::BadMatchBadMask)?;
            }
        }
        // A field that the packets of the entry do not have cannot be asked for.
        let missing = self.matches.keys().any(|field| {
            let can_match = matching.matches(field.row().prereq);
            can_match && matching.get(*field).is_none() && !self.wildcards.contains(field)
        });
        require(!missing, Error::BadMatchBadWildcards)
    }

    fn check_instruction(
        &self,
        asked: &Instruction,
        limits: &EntryLimits,
        version: Version,
    ) -> Result<(), Error> {
        let is_action = asked.meter().is_some() && version.has_meter_action();
        require(
            limits.instructions.contains(&asked.kind()),
            match is_action {
                true => Error::BadActionBadType,
                false => Error::BadInstructionUnsupInst,
            },
        )?;
        let next = asked.goto_table();
        require(next.is_none_or(|it| limits.next.contains(&it)), Error::BadInstructionBadTableId)?;
        if let Some((metadata, mask)) = asked.metadata() {
            require(mask & !self.metadata_write == 0, Error::BadInstructionUnsupMetadataMask)?;
            require(metadata & !self.metadata_write == 0, Error::BadInstructionUnsupMetadata)?;
        }
        let (kinds, fields) = match asked.kind().row().actions {
            ActionsRun::Never => return Ok(()),
            ActionsRun::AtOnce => (&limits.apply_actions, &limits.apply_set),
            ActionsRun::InSet => (&limits.write_actions, &limits.write_set),
        };
        asked.all_actions().try_for_each(|action| check_action(action, kinds, fields))
    }
}

fn check_action(
    action: &Action,
    kinds: &std::collections::BTreeSet<ActionKind>,
    fields: &std::collections::BTreeSet<Field>,
) -> Result<(), Error> {
    let row = action.kind().row();
    // The actions of Nicira's cannot be named in features, so that no limit leaves them out.
    let can_be_named = row.nicira.is_none() || row.kind.number(Version::NEWEST).is_some();
    let is_allowed = !can_be_named || kinds.contains(&row.successor.unwrap_or(row.kind));
    require(is_allowed, Error::BadActionBadType)?;
    let sets = action.names_fields() || row.successor == Some(ActionKind::SetField);
    let set = action.writes().first().filter(|_| sets);
    // Features name the registers that are several as one.
    let may_set = |field: &Field| match field.registers() {
        Some(mut registers) => registers.all(|register| fields.contains(&register)),
        None => fields.contains(field),
    };
    require(set.is_none_or(may_set), Error::BadActionBadSetType)
}
