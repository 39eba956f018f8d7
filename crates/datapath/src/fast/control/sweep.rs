//! Deletes and modifies of many entries, in pieces; also deletes of groups and meters that many
//! entries use or that are many.
//!
//! A command that selects a million entries takes the better part of a second. It is cut into
//! pieces of bounded work, so that the agent can answer others between two of them: first the
//! entries are looked through and those that are selected are kept, sorted, in runs; then they are
//! changed in the order in which a command at once would change them. Commands of others may come
//! in between: an entry that came later is not selected, and one that was changed is asked again,
//! also when a command that begins its counts anew has given it another number.
//!
//! A delete of groups or meters takes their entries away like that, and then the groups or meters,
//! again in pieces; meanwhile nothing new may name them (see [`PendingDelete`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason};
use openflow::{Error, GroupId, MeterId, TableId, Version};

use super::filter::EntryFilter;
use super::tuples::Projection;
use super::{CommandCounts, Control};
use crate::counter::Counter;
use crate::fast::compiled_match::CompiledMatch;
use crate::pending_delete::PendingDelete;
use crate::time::Nanos;
use crate::validate::CheckedFlowMod;

/// A command that may mean more entries, groups or meters than this is a sweep.
pub(super) const AT_ONCE: usize = 4_096;

/// Progress of a command.
#[derive(Debug)]
pub enum CommandProgress {
    /// It is done.
    Done(CommandCounts),
    /// It goes on with [`Control::sweep`].
    Sweep(Box<Sweep>),
}

/// Place of an entry in the order of a command: table, falling precedence, age; and its number.
type SweepKey = (u8, u32, u64, u32);

/// Entries in order, as the pieces in which they were found. Entries that were added one after the
/// other with the same priority make one run, so that there is nothing to merge.
#[derive(Debug)]
struct Run {
    pieces: VecDeque<std::vec::IntoIter<SweepKey>>,
    end: SweepKey,
}

impl Run {
    fn next(&mut self) -> Option<SweepKey> {
        loop {
            if let Some(place) = self.pieces.front_mut()?.next() {
                return Some(place);
            }
            self.pieces.pop_front();
        }
    }
}

/// Rank of an entry in that order; no other has the same, whatever its number.
fn rank((table, order, seq, _): SweepKey) -> (u8, u32, u64) {
    (table, order, seq)
}

/// Numbers that entries which there were already have got since they were last asked for.
#[derive(Debug, Default)]
struct Moved(Mutex<Vec<u32>>);

impl Moved {
    fn with<R>(&self, work: impl FnOnce(&mut Vec<u32>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The commands that are under way.
#[derive(Debug, Default)]
pub(super) struct Sweeps(Vec<Weak<Moved>>);

impl Sweeps {
    fn open(&mut self) -> Arc<Moved> {
        let moved = Arc::default();
        self.0.retain(|moved| moved.strong_count() > 0);
        self.0.push(Arc::downgrade(&moved));
        moved
    }

    /// Updates all sweeps for an entry whose number has changed.
    pub(super) fn note_moved(&mut self, number: u32) {
        self.0.retain(|moved| {
            let moved = moved.upgrade();
            if let Some(moved) = &moved {
                moved.with(|numbers| numbers.push(number));
            }
            moved.is_some()
        });
    }
}

/// A flow-mod that is under way.
#[derive(Debug)]
pub(super) struct SweptFlowMod {
    flow_mod: FlowMod,
    version: Version,
    filter: EntryFilter,
    tables: Range<u8>,
}

impl SweptFlowMod {
    fn is_modify(&self) -> bool {
        self.flow_mod.command == FlowModCommand::Modify
    }
}

/// The step that is under way. Of groups and meters, `after` is the last that was looked at.
#[derive(Debug)]
pub(super) enum SweptCommand {
    FlowMod(Box<SweptFlowMod>),
    GroupDelete { delete: Arc<PendingDelete<GroupId>>, after: Option<GroupId> },
    MeterDelete { delete: Arc<PendingDelete<MeterId>>, after: Option<MeterId> },
}

/// A command that is under way. When it is dropped, what is left of it is not done.
#[derive(Debug)]
pub struct Sweep {
    command: SweptCommand,
    /// The age of the first entry that came later.
    seq_end: u64,
    /// Numbers of entries that have been looked at, and that there were in the beginning.
    looked_at: u32,
    end: u32,
    /// The entries that are selected, in sorted runs, and the first of each run.
    runs: Vec<Run>,
    first: BinaryHeap<Reverse<(SweepKey, usize)>>,
    /// Entries that other commands have given other numbers, which may have been looked at before.
    moved: Arc<Moved>,
    /// The place that was changed last: nothing before it is left to do.
    last: Option<SweepKey>,
    done: CommandCounts,
}

impl Control {
    /// Changes flow entries as [`Self::flow_mod`] does, or begins with it when it may mean many.
    ///
    /// # Errors
    /// Those of [`Self::flow_mod`].
    pub fn begin_flow_mod(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandProgress, Error> {
        if !self.may_mean_many(flow_mod, AT_ONCE) {
            return self.flow_mod(flow_mod, version, now).map(CommandProgress::Done);
        }
        let begun = self.begin_sweep(flow_mod, version, now);
        if begun.is_err() {
            self.counters.add(Counter::FlowModErrors, 1);
        }
        begun
    }

    fn may_mean_many(&mut self, flow_mod: &FlowMod, at_once: usize) -> bool {
        if !matches!(flow_mod.command, FlowModCommand::Modify | FlowModCommand::Delete) {
            return false;
        }
        let Ok(tables) = self.pipeline.tables_selected_by(flow_mod) else { return false };
        let compiled = CompiledMatch::of(&flow_mod.matching, &mut self.masks);
        let tuples = tables.flat_map(|table| self.store.tuples.of_table(TableId(table)));
        let tuples = tuples.filter_map(|number| self.store.tuples.get(*number));
        let looks_through = tuples.filter(|tuple| {
            tuple.mask != *compiled.mask() && Projection::of(&compiled, tuple).is_some()
        });
        looks_through.map(|tuple| tuple.ids.len()).sum::<usize>() > at_once
    }

    fn begin_sweep(
        &mut self,
        flow_mod: &FlowMod,
        version: Version,
        now: Nanos,
    ) -> Result<CommandProgress, Error> {
        let (tables, strict, is_delete) = match self.check_flow_mod(flow_mod, version)? {
            CheckedFlowMod::Add => {
                return self.add(flow_mod, version, now).map(CommandProgress::Done);
            }
            CheckedFlowMod::Modify(tables, strict) => {
                self.check_list_memory(&flow_mod.instructions)?;
                (tables, strict, false)
            }
            CheckedFlowMod::Delete(tables, strict) => (tables, strict, true),
        };
        let filter = self.filter(flow_mod, strict, is_delete);
        let swept = SweptFlowMod { filter, tables, flow_mod: flow_mod.clone(), version };
        Ok(self.new_sweep(SweptCommand::FlowMod(Box::new(swept))))
    }

    /// A command that is to be done in pieces.
    pub(super) fn new_sweep(&mut self, command: SweptCommand) -> CommandProgress {
        CommandProgress::Sweep(Box::new(Sweep {
            command,
            seq_end: self.seq,
            looked_at: 0,
            end: self.store.slab.end() as u32,
            runs: Vec::new(),
            first: BinaryHeap::new(),
            moved: self.sweeps.open(),
            last: None,
            done: CommandCounts::default(),
        }))
    }

    /// Does a piece of a command, looking at up to `most` entries, groups or meters or changing
    /// half as many; all that it did when it is done.
    ///
    /// A modify is checked anew for each piece, as a command of others may have taken away a group
    /// or a meter that it names, or the memory that it needs; what it has changed until then stays.
    ///
    /// # Errors
    /// Those of [`Self::flow_mod`] that a modify has come to have, and those of an add, which a
    /// modify of 1.0 becomes when it selects nothing.
    pub fn sweep(
        &mut self,
        sweep: &mut Sweep,
        entries_max: usize,
        now: Nanos,
    ) -> Option<Result<CommandCounts, Error>> {
        self.latest = now;
        if let SweptCommand::FlowMod(swept) = &sweep.command
            && swept.is_modify()
            && let Err(error) = self.check_flow_mod(&swept.flow_mod, swept.version)
        {
            self.counters.add(Counter::FlowModErrors, 1);
            return Some(Err(error));
        }
        let entries_max = entries_max.max(2);
        if sweep.looked_at < sweep.end {
            self.look_through(sweep, entries_max);
            return None;
        }
        if let SweptCommand::FlowMod(swept) = &sweep.command
            && swept.is_modify()
            && let Err(error) = self.check_modify_memory(&swept.flow_mod)
        {
            self.counters.add(Counter::FlowModErrors, 1);
            return Some(Err(error));
        }
        let mut left = entries_max - self.look_at_moved(sweep, entries_max);
        while left > 0 {
            let Some(place) = sweep.next_place() else {
                return self.end_sweep(sweep, left.div_ceil(2), now);
            };
            left -= 1;
            // An entry that was moved may stand in two runs.
            let is_new = sweep.last.is_none_or(|last| rank(last) < rank(place));
            if is_new && self.is_still_selected(sweep, place, now) {
                sweep.last = Some(place);
                self.change(sweep, place, now);
                left = left.saturating_sub(1);
            }
        }
        None
    }

    /// Refuses to go on with a modify that there is no memory for. One that resets counts gives
    /// each entry another number, while the old one waits for its last counts: the modify of a
    /// million entries takes the memory of as many new ones.
    fn check_modify_memory(&mut self, flow_mod: &FlowMod) -> Result<(), Error> {
        if !flow_mod.flags.contains(FlowModFlags::RESET_COUNTS) {
            return self.check_list_memory(&flow_mod.instructions);
        }
        let need = self.entries_peak.need(self.store.slab.taken());
        let bytes = self.new_list_size(&flow_mod.instructions).unwrap_or(0);
        if self.memory_allows(need, bytes) { Ok(()) } else { Err(Error::FlowModTableFull) }
    }

    fn change(&mut self, sweep: &mut Sweep, (.., number): SweepKey, now: Nanos) {
        let reason = match &sweep.command {
            SweptCommand::FlowMod(swept) if swept.is_modify() => {
                let moved = sweep.moved.with(|numbers| numbers.len());
                self.modify_one(number, &swept.flow_mod, swept.version);
                sweep.moved.with(|numbers| numbers.truncate(moved));
                sweep.done.modified += 1;
                return;
            }
            SweptCommand::FlowMod(_) => FlowRemovedReason::Delete,
            SweptCommand::MeterDelete { .. } => FlowRemovedReason::MeterDelete,
            SweptCommand::GroupDelete { .. } => FlowRemovedReason::GroupDelete,
        };
        self.remove(number, reason, now);
        sweep.done.removed += 1;
    }

    /// Does what is left when all entries are done, with up to `most` groups or meters.
    fn end_sweep(
        &mut self,
        sweep: &mut Sweep,
        most: usize,
        now: Nanos,
    ) -> Option<Result<CommandCounts, Error>> {
        let is_over = match &mut sweep.command {
            SweptCommand::FlowMod(swept) => {
                let has_done_nothing = sweep.done == CommandCounts::default();
                if swept.is_modify()
                    && swept.flow_mod.adds_where_none(swept.version)
                    && has_done_nothing
                {
                    let done = self.add(&swept.flow_mod, swept.version, now);
                    self.counters.add(Counter::FlowModErrors, done.is_err().into());
                    return Some(done);
                }
                true
            }
            SweptCommand::GroupDelete { delete, after } => {
                *after = self.delete_some_groups(delete, *after, most);
                after.is_none()
            }
            SweptCommand::MeterDelete { delete, after } => {
                *after = self.delete_some_meters(delete, *after, most);
                after.is_none()
            }
        };
        is_over.then_some(Ok(sweep.done))
    }

    /// Looks at the next entries and keeps those that are selected as a run.
    fn look_through(&mut self, sweep: &mut Sweep, entries_max: usize) {
        let piece = u32::try_from(entries_max).unwrap_or(u32::MAX);
        let end = sweep.end.min(sweep.looked_at.saturating_add(piece));
        let places = (sweep.looked_at..end).filter_map(|number| self.selected(sweep, number));
        let run = places.collect();
        sweep.add_found(run);
        sweep.looked_at = end;
    }

    /// Looks at entries that others have moved meanwhile; at how many.
    fn look_at_moved(&mut self, sweep: &mut Sweep, entries_max: usize) -> usize {
        let numbers = sweep.moved.with(|numbers| {
            let kept = numbers.len().saturating_sub(entries_max);
            numbers.split_off(kept)
        });
        let places = numbers.iter().filter_map(|number| self.selected(sweep, *number));
        let mut run: Vec<SweepKey> = places.collect();
        run.sort_unstable();
        sweep.add_run(run);
        numbers.len()
    }

    /// The place of an entry, if it is selected.
    fn selected(&self, sweep: &Sweep, number: u32) -> Option<SweepKey> {
        let entry = self.store.slab.live(number).filter(|entry| entry.seq < sweep.seq_end)?;
        let table = self.store.tuple(entry).table;
        let lists = &self.store.instruction_lists;
        let is_selected = match &sweep.command {
            SweptCommand::FlowMod(swept) => {
                swept.tables.contains(&table.0) && swept.filter.takes(&self.store, number)
            }
            SweptCommand::GroupDelete { delete, .. } => {
                let mut groups = lists.groups_of(entry.instruction_list).iter();
                groups.any(|id| self.groups.is_selected(delete, *id))
            }
            SweptCommand::MeterDelete { delete, .. } => {
                let meter = lists.meter_of(entry.instruction_list);
                meter.is_some_and(|id| self.meters.is_selected(delete, id))
            }
        };
        is_selected.then_some((table.0, entry.precedence().order(), entry.seq, number))
    }

    /// Whether an entry is still what it was when it was looked at.
    fn is_still_selected(&self, sweep: &Sweep, key: SweepKey, now: Nanos) -> bool {
        let (.., number) = key;
        let is_modify = match &sweep.command {
            SweptCommand::FlowMod(swept) => swept.is_modify(),
            SweptCommand::GroupDelete { .. } | SweptCommand::MeterDelete { .. } => false,
        };
        self.selected(sweep, number) == Some(key)
            && !(is_modify && self.expired(number, now).is_some())
    }
}

impl Sweep {
    /// Adds places that were found before any place is taken.
    fn add_found(&mut self, mut places: Vec<SweepKey>) {
        places.sort_unstable();
        match (self.runs.last_mut(), &places[..]) {
            (Some(run), [first, .., end]) if *first > run.end => {
                run.end = *end;
                run.pieces.push_back(places.into_iter());
            }
            _ => self.add_run(places),
        }
    }

    /// Adds places, which are in order, as a run.
    fn add_run(&mut self, places: Vec<SweepKey>) {
        let Some(end) = places.last().copied() else { return };
        let mut places = places.into_iter();
        if let Some(first) = places.next() {
            self.first.push(Reverse((first, self.runs.len())));
            self.runs.push(Run { pieces: VecDeque::from([places]), end });
        }
    }

    /// The next place in order, whose entry may have gone or changed since.
    fn next_place(&mut self) -> Option<SweepKey> {
        let Reverse((place, run)) = self.first.pop()?;
        if let Some(next) = self.runs.get_mut(run).and_then(Run::next) {
            self.first.push(Reverse((next, run)));
        }
        Some(place)
    }
}

#[cfg(test)]
mod delete_tests;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{CommandCounts, CommandProgress, Control, Sweep};
    use crate::config::DatapathConfig;
    use crate::counter::Counter;
    use crate::fast::control::RemovalReport;
    use crate::memory::{MemoryBudget, MemoryNeed};
    use crate::time::Nanos;
    use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
    use openflow::group::{GroupMod, GroupModCommand, GroupType};
    use openflow::{
        Action, Cookie, Error, Field, GroupId, Instruction, Match, PortNo, TableId, Version,
    };

    /// 5,000 entries in four tables and of two masks, with priorities in disorder.
    fn control() -> Control {
        let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::All);
        for number in 0..5_000_u32 {
            let field = if number % 3 == 0 { Field::InPort } else { Field::Metadata };
            let flow_mod = FlowMod {
                table_id: TableId((number % 4) as u8),
                priority: (number.wrapping_mul(0x9e37_79b9) >> 30) as u16,
                cookie: Cookie(u64::from(number) % 2),
                matching: Match::any().with(field, u128::from(number + 1)),
                flags: FlowModFlags::SEND_FLOW_REM,
                ..FlowMod::new(FlowModCommand::Add)
            };
            control.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
        }
        control.take_ops(&mut Vec::new());
        control
    }

    fn command(command: FlowModCommand, cookie: Option<u64>) -> FlowMod {
        FlowMod {
            table_id: if command == FlowModCommand::Delete { TableId::ALL } else { TableId(1) },
            cookie: Cookie(cookie.unwrap_or_default()),
            cookie_mask: if cookie.is_some() { u64::MAX } else { 0 },
            instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(7))])],
            ..FlowMod::new(command)
        }
    }

    fn begin(control: &mut Control, flow_mod: &FlowMod) -> Box<Sweep> {
        assert!(control.may_mean_many(flow_mod, 1_000));
        let begun = control.begin_sweep(flow_mod, Version::V1_3, Nanos(0)).unwrap();
        let CommandProgress::Sweep(sweep) = begun else { panic!("{begun:?}") };
        sweep
    }

    fn ops(control: &mut Control) -> Vec<String> {
        let mut ops = Vec::new();
        control.take_ops(&mut ops);
        ops.iter().map(|op| format!("{op:?}")).collect()
    }

    #[test]
    fn pieces_do_what_a_command_at_once_does_in_the_same_order() {
        for (flow_mod, piece) in [
            (command(FlowModCommand::Delete, None), 300),
            (command(FlowModCommand::Delete, Some(1)), 7),
            (command(FlowModCommand::Modify, None), 64),
        ] {
            let (mut whole, mut pieces) = (control(), control());
            let expected = whole.flow_mod(&flow_mod, Version::V1_3, Nanos(5)).unwrap();
            let mut sweep = begin(&mut pieces, &flow_mod);
            let found = loop {
                if let Some(done) = pieces.sweep(&mut sweep, piece, Nanos(5)) {
                    break done.unwrap();
                }
            };
            assert_eq!(found, expected);
            assert!(found.removed + found.modified > 1_000, "{found:?}");
            assert_eq!(ops(&mut pieces), ops(&mut whole));
        }
    }

    #[test]
    fn new_entries_stay_and_gone_ones_are_not_looked_at_again() {
        let mut control = control();
        let delete = command(FlowModCommand::Delete, None);
        let mut sweep = begin(&mut control, &delete);
        for _ in 0..30 {
            assert!(control.sweep(&mut sweep, 200, Nanos(5)).is_none());
        }
        let added = FlowMod {
            matching: Match::any().with(Field::InPort, 1),
            ..FlowMod::new(FlowModCommand::Add)
        };
        let first = FlowMod {
            matching: Match::any().with(Field::InPort, 4_999),
            table_id: TableId::ALL,
            ..FlowMod::new(FlowModCommand::Delete)
        };
        let gone = control.flow_mod(&first, Version::V1_3, Nanos(6)).unwrap().removed;
        control.flow_mod(&added, Version::V1_3, Nanos(6)).unwrap();
        while control.sweep(&mut sweep, 200, Nanos(7)).is_none() {}
        let left = control.flow_stats(&FlowStatsRequest::all(), Nanos(8)).unwrap();
        assert!(gone <= 1 && left.len() <= 1, "{gone} {left:?}");
    }

    /// Renumbers all entries with an odd cookie, as another controller's commands may.
    fn move_half(control: &mut Control, now: Nanos) {
        let modify = FlowMod {
            table_id: TableId(1),
            flags: FlowModFlags::RESET_COUNTS,
            ..command(FlowModCommand::Modify, Some(1))
        };
        let done = control.flow_mod(&modify, Version::V1_3, now).unwrap();
        assert!(done.modified > 0, "{done:?}");
    }

    #[test]
    fn an_entry_with_another_number_is_still_selected() {
        for pieces in [3, 20, 30] {
            let mut control = control();
            let delete = command(FlowModCommand::Delete, None);
            let mut sweep = begin(&mut control, &delete);
            for piece in 0..pieces {
                assert!(control.sweep(&mut sweep, 200, Nanos(5)).is_none(), "{piece}");
            }
            move_half(&mut control, Nanos(6));
            let done = loop {
                if let Some(done) = control.sweep(&mut sweep, 200, Nanos(7)) {
                    break done.unwrap();
                }
            };
            let left = control.flow_stats(&FlowStatsRequest::all(), Nanos(8)).unwrap();
            assert_eq!((done.removed, left.len()), (5_000, 0), "after {pieces}");
        }
    }

    #[test]
    fn modifies_that_move_what_the_other_means_come_to_an_end() {
        let mut control = control();
        let reset =
            FlowMod { flags: FlowModFlags::RESET_COUNTS, ..command(FlowModCommand::Modify, None) };
        let mut sweeps = [begin(&mut control, &reset), begin(&mut control, &reset)];
        let (mut ended, mut pieces) = (Vec::new(), 0);
        while ended.len() < sweeps.len() {
            pieces += 1;
            assert!(pieces < 1_000, "{ended:?}");
            let sweep = &mut sweeps[pieces % 2];
            ended.extend(control.sweep(sweep, 200, Nanos(5)).map(Result::unwrap));
        }
        assert!(ended.iter().all(|done| done.modified == 1_250), "{ended:?}");
    }

    /// Allows this number of additions that need new room.
    #[derive(Debug)]
    struct Additions(AtomicUsize);

    impl MemoryBudget for Additions {
        fn allows(&self, need: MemoryNeed, _bytes: usize) -> bool {
            let take = |left: usize| left.checked_sub(1);
            need == MemoryNeed::Reused
                || self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
        }
    }

    #[test]
    fn a_modify_that_resets_counts_asks_for_memory_with_each_piece() {
        let mut control = control();
        let reset =
            FlowMod { flags: FlowModFlags::RESET_COUNTS, ..command(FlowModCommand::Modify, None) };
        let mut sweep = begin(&mut control, &reset);
        control.set_memory_budget(Arc::new(Additions(AtomicUsize::new(3))));
        let outcome = loop {
            if let Some(outcome) = control.sweep(&mut sweep, 200, Nanos(5)) {
                break outcome;
            }
        };
        assert_eq!(outcome, Err(Error::FlowModTableFull));
        assert_eq!(sweep.done.modified, 300, "three pieces of a hundred changes");
        // One that keeps the counts needs only its list of instructions.
        let keep = command(FlowModCommand::Modify, None);
        let mut sweep = begin(&mut control, &keep);
        let outcome = loop {
            if let Some(outcome) = control.sweep(&mut sweep, 200, Nanos(6)) {
                break outcome;
            }
        };
        assert_eq!(outcome.map(|done| done.modified), Ok(1_250));
    }

    #[test]
    fn a_piece_is_bounded_also_where_all_selected_entries_have_gone() {
        let mut control = control();
        let delete = command(FlowModCommand::Delete, None);
        let mut sweep = begin(&mut control, &delete);
        while sweep.looked_at < sweep.end {
            assert!(control.sweep(&mut sweep, 200, Nanos(5)).is_none());
        }
        control.flow_mod(&delete, Version::V1_3, Nanos(6)).unwrap();
        for _ in 0..5_000 / 200 {
            assert!(control.sweep(&mut sweep, 200, Nanos(7)).is_none());
        }
        assert_eq!(control.sweep(&mut sweep, 200, Nanos(7)), Some(Ok(CommandCounts::default())));
    }

    #[test]
    fn a_modify_ends_when_the_group_that_it_names_goes() {
        let mut control = control();
        let to_group = |command| GroupMod {
            command,
            group_type: GroupType::All,
            group_id: GroupId(9),
            buckets: Vec::new(),
            ..GroupMod::default()
        };
        control.group_mod(&to_group(GroupModCommand::Add), Nanos(1)).unwrap();
        let group = Instruction::ApplyActions(vec![Action::Group(GroupId(9))]);
        let modify = FlowMod { instructions: vec![group], ..command(FlowModCommand::Modify, None) };
        let mut sweep = begin(&mut control, &modify);
        while sweep.done.modified == 0 {
            assert!(control.sweep(&mut sweep, 200, Nanos(5)).is_none());
        }
        let gone = control.group_mod(&to_group(GroupModCommand::Delete), Nanos(6)).unwrap();
        assert_eq!(gone.removed, sweep.done.modified);
        let ended = control.sweep(&mut sweep, 200, Nanos(7));
        let at_once = control.flow_mod(&modify, Version::V1_3, Nanos(7));
        assert_eq!(ended, Some(at_once));
        assert!(matches!(ended, Some(Err(_))), "{ended:?}");
        assert_eq!(control.counters().get(Counter::FlowModErrors), 2);
    }

    #[test]
    fn a_command_that_means_few_is_done_at_once() {
        let mut control = control();
        let few = FlowMod {
            matching: Match::any().with(Field::InPort, 4),
            ..FlowMod::new(FlowModCommand::Delete)
        };
        let begun = control.begin_flow_mod(&few, Version::V1_3, Nanos(1)).unwrap();
        assert!(matches!(begun, CommandProgress::Done(_)), "{begun:?}");
    }
}
