//! The instructions of a flow entry (clause 7.2.4); in 1.0 a bare list of actions.

use openflow::translate::Context;
use openflow::{Error, Instruction, InstructionKind, Match};

use crate::action::{self, Reading, Writing};
use crate::error::EncodeError;
use crate::layout;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPIT_STAT_TRIGGER` of 1.5.
const STAT_TRIGGER: u16 = 7;

/// Reads all that is left in `r` as instructions.
pub(crate) fn read_list(r: &mut Reader<'_>) -> reader::ReadResult<Vec<Instruction>> {
    let list = r.part(r.remaining())?.reading("instruction", Error::BadInstructionBadLen);
    (layout::INSTRUCTIONS.of(r.version).read)(list)
}

/// Reads a bare list of actions as one apply-actions instruction, or none when it is empty.
pub(crate) fn read_bare(list: Reader<'_>) -> reader::ReadResult<Vec<Instruction>> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Instruction::ApplyActions(action::read_list(list)?)])
}

/// Reads instructions.
pub(crate) fn read_all(mut list: Reader<'_>) -> reader::ReadResult<Vec<Instruction>> {
    let mut instructions = list.list();
    while !list.is_empty() {
        instructions.push(read(&mut list)?);
    }
    Ok(instructions)
}

/// Reads instructions of a version in which a meter is an action. One that is the first of those
/// that are applied is the instruction; there is no other place for it.
pub(crate) fn read_metered(mut list: Reader<'_>) -> reader::ReadResult<Vec<Instruction>> {
    let (mut instructions, mut meters_alone) = (Vec::new(), false);
    while !list.is_empty() {
        let start = list.clone();
        let mut element = list.clone();
        let (number, _, mut body) = element.element()?;
        let mut meter = None;
        if Some(number) == InstructionKind::ApplyActions.number(list.version) {
            body.skip(4)?;
            meter = action::read_meter(&mut body)?;
        }
        let Some(meter) = meter else {
            instructions.push(read(&mut list)?);
            continue;
        };
        if !(start.remaining() - element.remaining()).is_multiple_of(8) {
            return Err(start.bad_len());
        }
        list = element;
        instructions.push(Instruction::Meter(meter));
        let rest = action::read_list(body)?;
        if rest.is_empty() {
            meters_alone = true;
        } else {
            instructions.push(Instruction::ApplyActions(rest));
        }
    }
    let applies = |one: &Instruction| one.kind() == InstructionKind::ApplyActions;
    if meters_alone && instructions.iter().any(applies) {
        return Err(list.fault(Error::BadInstructionDupInst));
    }
    Ok(instructions)
}

fn read(r: &mut Reader<'_>) -> reader::ReadResult<Instruction> {
    let start = r.clone();
    let (number, len, mut body) = r.element()?;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let kind = InstructionKind::from_number(r.version, number).ok_or_else(|| {
        let is_known = number == STAT_TRIGGER && r.version.has_stat_triggers();
        start.fault(match is_known {
            true => Error::BadInstructionUnsupInst,
            false => Error::BadInstructionUnknownInst,
        })
    })?;
    let instruction = Instruction::read(kind, &mut Reading::of(&mut body))?;
    body.finish()?;
    Ok(instruction)
}

/// Writes the instructions of an entry with this match.
pub(crate) fn write_list(
    w: &mut Writer<'_>,
    instructions: &[Instruction],
    matching: &Match,
) -> writer::WriteResult<()> {
    (layout::INSTRUCTIONS.of(w.version).write)(w, instructions, Context::of(matching))
}

/// Writes the actions of an entry that has one apply-actions instruction, or none.
pub(crate) fn write_bare(
    w: &mut Writer<'_>,
    instructions: &[Instruction],
    context: Context,
) -> writer::WriteResult<()> {
    match instructions {
        [] => Ok(()),
        [Instruction::ApplyActions(actions)] => action::write_list(w, actions, context),
        [..] => Err(w.unsupported("instructions other than one apply-actions")),
    }
}

/// Writes instructions in a version in which a meter is an action: the first that is applied.
pub(crate) fn write_metered(
    w: &mut Writer<'_>,
    instructions: &[Instruction],
    context: Context,
) -> writer::WriteResult<()> {
    let Some(meter) = instructions.iter().find_map(Instruction::meter) else {
        return write_all(w, instructions, context);
    };
    let is_applied = |one: &&Instruction| one.kind() == InstructionKind::ApplyActions;
    let applied = instructions.iter().find(is_applied);
    let number = InstructionKind::ApplyActions.number(w.version);
    let start = w.place();
    w.u16(number.ok_or_else(|| w.unsupported("apply-actions"))?);
    w.zeros(6);
    action::write_meter(w, meter);
    action::write_list(w, applied.map_or(&[], |one| one.actions()), context)?;
    w.fill_len(start + 2, start, "apply-actions")?;
    let others = instructions.iter().filter(|one| one.meter().is_none() && !is_applied(one));
    others.into_iter().try_for_each(|one| write(w, one, context))
}

/// Writes instructions.
pub(crate) fn write_all(
    w: &mut Writer<'_>,
    instructions: &[Instruction],
    context: Context,
) -> writer::WriteResult<()> {
    instructions.iter().try_for_each(|one| write(w, one, context))
}

fn write(
    w: &mut Writer<'_>,
    instruction: &Instruction,
    context: Context,
) -> writer::WriteResult<()> {
    let (kind, row) = (instruction.kind(), instruction.kind().row());
    let number = kind.number(w.version).ok_or_else(|| w.unsupported(row.text))?;
    let start = w.place();
    w.u16(number);
    w.u16(0);
    instruction.write(&mut Writing::to(w, context))?;
    if !(w.place() - start).is_multiple_of(8) {
        return Err(EncodeError::Invalid { what: "experimenter instruction of an uneven length" });
    }
    w.fill_len(start + 2, start, row.text)
}
