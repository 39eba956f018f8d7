//! A packet that waits for a controller, and goes on when that resumes it (Open vSwitch,
//! ovs-actions(7)).

use openflow::message::PacketIn;
use openflow::{Action, Error, TableId, ToController};
use packet::PacketBuf;

use super::Reference;
use super::run::{PacketState, Place, Run, Todo, Waiting};
use crate::action_set::{ActionSet, Origin};
use crate::continuation::{Continuation, Level};
use crate::counter::DropReason;
use crate::time::Nanos;
use crate::validate::{Existing, check_resumed};
use crate::verdict::{HandUp, Out, meta_of};

impl Reference {
    pub(super) fn run_resumed(
        &mut self,
        paused: &PacketIn,
        now: Nanos,
        out: &mut Out,
    ) -> Result<(), Error> {
        check_resumed(paused)?;
        let meta = meta_of(&paused.matching).ok_or(Error::BadRequestBadPort)?;
        let rest = Continuation::decode(&paused.continuation).ok_or(Error::ResumeStale)?;
        rest.check(&Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.get(id).is_some(),
            meter: &|id| self.meters.get(id).is_some(),
        })?;
        let frame = PacketBuf::from_slice(&paused.data);
        let arriving = PacketState::arriving(frame, meta.in_port);
        let mut run = Run::new(self, now, out);
        let (queue, stack) = (rest.queue, rest.stack.clone());
        run.resume(PacketState { meta, queue, stack, ..arriving }, &rest);
        let (effects, _) = run.end();
        self.commit(effects, now);
        Ok(())
    }
}

impl<'a> Run<'a> {
    /// A copy goes to controllers, or the packet waits for them. It fits every packet.
    pub(super) fn controller(&mut self, packet: &PacketState, action: &Action, by: Origin) -> bool {
        let Some(asked) = action.to_controller() else { return false };
        if !asked.pauses {
            self.send_as_asked(packet, asked, by, Vec::new());
            return true;
        }
        self.pause = Some(Waiting {
            packet: packet.clone(),
            asked,
            by,
            is_behind_tables: self.is_behind_tables,
            is_packet_out: self.may_start_pipeline,
            levels: Vec::new(),
            then: Vec::new(),
        });
        true
    }

    /// A copy goes up, if the meter of the action lets it.
    fn send_as_asked(
        &mut self,
        packet: &PacketState,
        asked: ToController,
        by: Origin,
        continuation: Vec<u8>,
    ) {
        let metered = match asked.meter {
            Some(meter) => self.meter(packet.clone(), meter),
            None => Some(packet.clone()),
        };
        if let Some(copy) = metered {
            self.hand_up(&copy, &HandUp::asked(asked, by, continuation));
        }
    }

    /// Nothing beyond the first `until` things is done now: a pause keeps it. Beside the entries
    /// that were resubmitted to there is one that was not, unless a set or bucket resubmitted.
    pub(super) fn leave(&mut self, until: usize, has_outermost: bool) {
        let left = self.todo.split_off(until.min(self.todo.len()));
        let Some(pause) = &mut self.pause else { return };
        let (mut actions, mut instructions, mut origin) = (Vec::new(), Vec::new(), Origin::NONE);
        for todo in left.into_iter().rev() {
            match todo {
                Todo::Action(action, by) => {
                    actions.push(action.clone());
                    origin = by;
                }
                Todo::Instruction(instruction, by) => {
                    instructions.push(instruction.clone());
                    origin = by;
                }
                Todo::Return(_) => {
                    let level = Level::of(
                        std::mem::take(&mut actions),
                        std::mem::take(&mut instructions),
                        origin,
                    );
                    pause.levels.push(level);
                }
                Todo::Table(_) => unreachable!("a goto is the last thing that an entry does"),
                Todo::ListEnds => {}
            }
        }
        if has_outermost {
            pause.levels.push(Level::of(actions, instructions, origin));
        }
    }

    /// The rest of an action set or bucket, which is not carried out now.
    pub(super) fn leave_list<'b>(&mut self, rest: impl Iterator<Item = (&'b Action, Origin)>) {
        if let Some(pause) = &mut self.pause {
            pause.then = rest.map(|(action, by)| (action.clone(), by)).collect();
        }
    }

    /// The way of the packet, or of a bucket's copy, is over: if it waits, it goes up.
    pub(super) fn end_pause(&mut self, is_in_bucket: bool) {
        let Some(Waiting { packet, asked, by, is_behind_tables, is_packet_out, levels, mut then }) =
            self.pause.take()
        else {
            return;
        };
        if !is_in_bucket && !is_behind_tables {
            then = self.set.in_order().map(|(action, by)| (action.clone(), by)).collect();
        }
        let continuation = Continuation {
            queue: packet.queue,
            stack: packet.stack.clone(),
            mirrored: self.mirrored,
            home: if is_in_bucket { self.place.table } else { TableId(0) },
            in_bucket: is_in_bucket,
            in_action_set: is_behind_tables,
            is_packet_out,
            levels,
            then,
        };
        match continuation.encode() {
            Some(bytes) => self.send_as_asked(&packet, asked, by, bytes),
            None => self.drop(DropReason::ContinuationTooLong),
        }
    }

    fn resume(&mut self, packet: PacketState, rest: &'a Continuation) {
        self.may_start_pipeline = rest.is_packet_out;
        self.is_behind_tables = rest.in_action_set;
        self.mirrored = rest.mirrored;
        let home = Place { table: rest.home, is_in_bucket: rest.in_bucket, ..Place::default() };
        self.place = home;
        for (index, level) in rest.levels.iter().rev().enumerate() {
            if index > 0 || rest.is_list() {
                self.todo.push(Todo::Return(self.place));
            }
            self.place = Place { table: level.table(), ..Place::default() };
            let (instructions, actions) = (level.instructions.iter(), level.actions.iter());
            self.todo.extend(instructions.rev().map(|one| Todo::Instruction(one, level.origin)));
            self.todo.extend(actions.rev().map(|action| Todo::Action(action, level.origin)));
        }
        let then = || rest.then.iter().map(|(action, by)| (action, *by));
        if !rest.is_list() {
            self.set = ActionSet::default();
            then().for_each(|(action, by)| self.set.write(std::slice::from_ref(action), by));
        }
        let left = self.work(packet, 0);
        if left.is_none() {
            self.leave(0, !rest.is_list());
            self.leave_list(then());
        }
        self.place = home;
        if let Some(packet) = left {
            if rest.is_list() {
                self.actions(packet, then());
            } else if !rest.is_packet_out || self.set.in_order().next().is_some() {
                self.place = Place::default();
                self.action_set(packet);
            }
        }
        self.place = home;
        self.end_pause(rest.in_bucket);
    }
}
