//! The instructions of a flow entry (clause 7.2.4); in 1.0 a bare list of actions.

use openflow::translate::Context;
use openflow::{Error, Instruction, InstructionKind, Match};

use crate::action::{self, Reading, Writing};
use crate::error::EncodeError;
use crate::layout;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

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
    let mut instructions = Vec::new();
    while !list.is_empty() {
        instructions.push(read(&mut list)?);
    }
    Ok(instructions)
}

fn read(r: &mut Reader<'_>) -> reader::ReadResult<Instruction> {
    let start = r.clone();
    let (number, len, mut body) = r.element()?;
    if len < 8 || !len.is_multiple_of(8) {
        return Err(start.bad_len());
    }
    let kind = InstructionKind::from_number(r.version, number)
        .ok_or_else(|| start.fault(Error::BadInstructionUnknownInst))?;
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
