//! The pause of a packet while a controller has it, and its way from there on.
//!
//! A pause ends the walk as an exit does. On the way out, each list that is left keeps what it had
//! still to do; where the packet or its copy ends, all of it goes up as the continuation.

use openflow::{Action, TableId, ToController};

use super::{Activation, Interpreter, MatchedEntry, Packet, Stop, Target, WalkFlow};
use crate::action_set::{ActionSet, Origin};
use crate::continuation::{Continuation, Level, MAX_LEN};
use crate::counter::DropReason;

/// A pause that is under way.
pub(super) struct Pause {
    asked: ToController,
    origin: Origin,
    in_action_set: bool,
    is_packet_out: bool,
    levels: Vec<Level>,
    /// Bytes of the levels so far. When they have no room any more, the others are left out:
    /// thousands of long lists may be left.
    len: usize,
    then: Vec<(Action, Origin)>,
}

impl<'a, T: Target<'a>> Interpreter<'a, T> {
    pub(super) fn begin_pause(&mut self, asked: ToController, origin: Origin) -> WalkFlow {
        self.pause = Some(Pause {
            asked,
            origin,
            in_action_set: self.in_action_set,
            is_packet_out: self.table_allowed,
            levels: Vec::new(),
            len: 0,
            then: Vec::new(),
        });
        WalkFlow::Break(Stop::Packet)
    }

    /// The activation on top ends, of which a pause keeps the rest.
    pub(super) fn keep_for_pause(&mut self) {
        let (Some(pause), Some(top)) = (&mut self.pause, self.active.last_mut()) else { return };
        if pause.len > MAX_LEN {
            return;
        }
        let actions = top.actions.as_ref().map(|rest| rest.as_slice().to_vec());
        let mut instructions = Vec::new();
        while let Some(instruction) = top.next_instruction() {
            top.row = instruction.kind() as usize + 1;
            instructions.push(instruction.clone());
        }
        let level = Level::of(actions.unwrap_or_default(), instructions, top.origin);
        pause.len += level.len();
        pause.levels.push(level);
    }

    /// The same of a list that no activation has.
    pub(super) fn keep_list_for_pause<'l>(
        &mut self,
        rest: impl Iterator<Item = (&'l Action, Origin)>,
    ) {
        if let Some(pause) = &mut self.pause {
            pause.then = rest.map(|(action, by)| (action.clone(), by)).collect();
        }
    }

    /// The way of a packet or of a bucket's copy is over: if it was paused, it goes up.
    pub(super) fn end_pause(&mut self, packet: &Packet, in_bucket: bool) {
        let Some(pause) = self.pause.take() else { return };
        let Pause { asked, origin, in_action_set, is_packet_out, levels, mut then, .. } = pause;
        if !in_bucket && !in_action_set {
            then = self.set.in_order().map(|(action, by)| (action.clone(), by)).collect();
        }
        let home = self.active.last().map_or(TableId(0), Activation::table);
        let continuation = Continuation {
            queue: packet.queue,
            stack: packet.stack.clone(),
            mirrored: *self.target.mirrored(),
            home: if in_bucket { home } else { TableId(0) },
            in_bucket,
            in_action_set,
            is_packet_out,
            levels,
            then,
        };
        match continuation.encode() {
            Some(bytes) => self.hand_up_as_asked(packet, asked, origin, bytes),
            None => self.drop(DropReason::ContinuationTooLong),
        }
    }

    /// Goes on with a packet that has been paused.
    pub(in crate::fast) fn resume(&mut self, mut packet: Packet, rest: &'a Continuation) {
        self.table_allowed = rest.is_packet_out;
        self.in_action_set = rest.in_action_set;
        *self.target.mirrored() = rest.mirrored;
        let entry = |origin| MatchedEntry { instructions: &[], origin };
        // The present table of a bucket is that of the entry which led to it.
        let home = Origin { table_id: rest.home, ..Origin::NONE };
        self.active.push(Activation::of(entry(home)));
        for (index, level) in rest.levels.iter().rev().enumerate() {
            self.active.push(Activation {
                instructions: &level.instructions,
                actions: Some(level.actions.iter()),
                is_resubmitted: index > 0 || rest.is_list(),
                was_in_bucket: index == 0 && rest.in_bucket,
                ..Activation::of(entry(level.origin))
            });
        }
        if !rest.is_list() {
            self.set = ActionSet::default();
            for (action, by) in &rest.then {
                self.set.write(std::slice::from_ref(action), *by);
            }
        }
        // Whatever ends it has given its verdict.
        let _end: WalkFlow = self.run_rest(&mut packet, rest);
        self.active.clear();
        self.end_pause_at(&packet, rest);
        self.target.discard(packet);
    }

    fn run_rest(&mut self, packet: &mut Packet, rest: &Continuation) -> WalkFlow {
        let base = 1;
        let has_ended = match self.run(packet, base) {
            WalkFlow::Continue(has_ended) => has_ended,
            WalkFlow::Break(stop) => {
                if rest.is_list() {
                    self.keep_list_for_pause(rest.then.iter().map(|(action, by)| (action, *by)));
                }
                return WalkFlow::Break(stop);
            }
        };
        if rest.is_list() {
            self.in_bucket = rest.in_bucket;
            return self.run_list(packet, rest.then.iter().map(|(action, by)| (action, *by)));
        }
        let has_set = self.set.in_order().next().is_some();
        if if rest.is_packet_out { has_set } else { has_ended } {
            return self.action_set(packet);
        }
        WalkFlow::Continue(())
    }

    /// A resumed packet is paused again, if it is, where it was before.
    fn end_pause_at(&mut self, packet: &Packet, rest: &Continuation) {
        if rest.in_bucket {
            let home = Origin { table_id: rest.home, ..Origin::NONE };
            self.active.push(Activation::of(MatchedEntry { instructions: &[], origin: home }));
        }
        self.end_pause(packet, rest.in_bucket);
        self.active.clear();
    }
}
