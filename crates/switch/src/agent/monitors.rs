//! Flow monitors (clause 7.3.5.17 of 1.4, and Nicira's): a connection gets a report of each change
//! of the flow entries that it monitors, whoever makes it.
//!
//! A controller that reads too slowly is paused: from then on it gets removals only, and of what
//! changes otherwise the numbers of the entries are kept. When all that was queued is sent, these
//! entries are reported as they are then, piece by piece, and the monitors go on.
//!
//! `seq_end` divides the entries of a pause: the controller knows those of a lower age. Entries are
//! reported by rising age, so that it only ever moves up.

use std::collections::BTreeMap;

use datapath::fast::{Control, EntryId, WatchedChange};
use openflow::error::{NICIRA, ONF};
use openflow::flow::{FlowForm, FlowStats, FlowStatsRequest};
use openflow::flow_monitor::{
    FlowChange, FlowEvent, FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest, FlowUpdate,
};
use openflow::message::MultipartReplyBody;
use openflow::{Action, Error, GroupId, Instruction, Message, PortNo, TableId, Version, Xid};
use wire::ReplyFrames;

use super::nicira::message_of;
use super::{Agent, Peer};
use crate::bridge::{Bridge, FlowDump};
use crate::request::ConnectionId;

/// Monitors of one connection.
const MONITORS_MAX: usize = 256;

/// Bytes of reports that wait to be sent, above which a connection is paused: Open vSwitch's bound.
const PAUSE_BYTES: usize = 128 << 10;

/// Entries that are reported after a pause before something else has its turn.
const PIECE: usize = 256;

/// Nicira's messages of pauses, and ONF's.
const PAUSED: (u32, u32) = (22, 1871);
const RESUMED: (u32, u32) = (23, 1872);

/// The monitors of a connection, and the reports that wait for its task.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    all: BTreeMap<u32, FlowMonitorRequest>,
    frames: Vec<Vec<u8>>,
    bytes: usize,
    /// Bytes in the connection's output when its task looked last.
    unsent: usize,
    pause: Option<Pause>,
    /// Reports that the version cannot express, since that was last asked for.
    unsayable: u64,
}

/// The changes since the reports were paused.
#[derive(Debug)]
struct Pause {
    /// The age of the first entry that the controller does not know.
    seq_end: u64,
    /// The entries that were added or modified, by their age.
    changed: BTreeMap<u64, EntryId>,
}

/// The entries that a new monitor finds.
#[derive(Debug)]
pub(crate) struct InitialEntries {
    pub(super) dump: FlowDump,
    pub(super) monitors: Vec<FlowMonitorRequest>,
}

/// The flags by which a monitor reports an event, if it has any of them.
fn flags_of(event: FlowEvent) -> FlowMonitorFlags {
    match event {
        FlowEvent::Initial => FlowMonitorFlags::INITIAL,
        FlowEvent::Added => FlowMonitorFlags::ADD,
        FlowEvent::Removed => FlowMonitorFlags::REMOVED,
        FlowEvent::Modified => FlowMonitorFlags::MODIFY,
        FlowEvent::Unknown(_) => FlowMonitorFlags::empty(),
    }
}

/// Whether a monitor is about an entry, which had other instructions before. As in Open vSwitch it
/// is for a port that the entry has or had outputs to, and for a group that it has.
fn takes(monitor: &FlowMonitorRequest, entry: &FlowChange, before: Option<&[Instruction]>) -> bool {
    let any = |list: &[Instruction], is_it: &dyn Fn(&Action) -> bool| {
        list.iter().flat_map(Instruction::all_actions).any(is_it)
    };
    let outputs = |action: &Action| {
        matches!(action, Action::Output { port, .. } | Action::Enqueue { port, .. }
            if *port == monitor.out_port)
    };
    let leads =
        |action: &Action| matches!(action, Action::Group(group) if *group == monitor.out_group);
    (monitor.table_id == TableId::ALL || monitor.table_id == entry.table_id)
        && (monitor.out_port == PortNo::ANY
            || any(&entry.instructions, &outputs)
            || before.is_some_and(|list| any(list, &outputs)))
        && (monitor.out_group == GroupId::ANY || any(&entry.instructions, &leads))
        && monitor.matching.covers(&entry.matching)
}

/// The flags of all monitors that report an entry for one of these flags.
fn flags_for<'a>(
    monitors: impl IntoIterator<Item = &'a FlowMonitorRequest>,
    wanted: FlowMonitorFlags,
    entry: &FlowChange,
    before: Option<&[Instruction]>,
) -> Option<FlowMonitorFlags> {
    let reporting = monitors.into_iter().filter(|one| one.flags.intersects(wanted));
    let reporting = reporting.filter(|one| takes(one, entry, before));
    reporting.map(|one| one.flags).reduce(FlowMonitorFlags::union)
}

/// The entries of a piece of a dump that monitors report in the beginning.
pub(super) fn initial(
    monitors: &[FlowMonitorRequest],
    entries: Vec<FlowStats>,
) -> MultipartReplyBody {
    let report = |entry| {
        let entry = FlowChange::of(FlowEvent::Initial, entry);
        let flags = flags_for(monitors, FlowMonitorFlags::INITIAL, &entry, None)?;
        let is_whole = flags.contains(FlowMonitorFlags::INSTRUCTIONS);
        Some(FlowUpdate::Change(entry.with_instructions(is_whole)))
    };
    MultipartReplyBody::FlowMonitor(entries.into_iter().filter_map(report).collect())
}

impl Monitors {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether nothing is to be sent, now or after a pause.
    pub(super) fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.pause.is_none()
    }

    /// Whether the reports are paused.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Takes the reports that wait, and the number of those that the version cannot express.
    pub(super) fn take(&mut self) -> (Vec<Vec<u8>>, u64) {
        self.bytes = 0;
        (std::mem::take(&mut self.frames), std::mem::take(&mut self.unsayable))
    }

    /// This much waits in the connection's output.
    pub(super) fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }

    fn queue(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push(frame);
    }

    /// Queues reports as one message, or as several where they are too long for one.
    fn send(&mut self, version: Version, updates: Vec<FlowUpdate>) {
        let count = updates.len() as u64;
        let body = MultipartReplyBody::FlowMonitor(updates);
        let mut frames = ReplyFrames::new(version, Xid(0), body).in_form(FlowForm::Nicira);
        let made: Vec<_> = frames.by_ref().map_while(Result::ok).collect();
        let left_out = frames.left_out();
        self.unsayable += left_out;
        if left_out < count {
            made.into_iter().for_each(|frame| self.queue(frame));
        }
    }

    /// Queues the begin or the end of a pause.
    fn send_pause(&mut self, version: Version, update: FlowUpdate, (nicira, onf): (u32, u32)) {
        if version.has_flow_monitor() {
            return self.send(version, vec![update]);
        }
        let message = match version.has_onf_flow_monitor() {
            true => message_of(version, ONF, onf, &[]),
            false => message_of(version, NICIRA, nicira, &[]),
        };
        match wire::encode(version, Xid(0), &Message::Experimenter(message)) {
            Ok(frame) => self.queue(frame),
            Err(_) => self.unsayable += 1,
        }
    }

    /// Reports changes. `own` is the transaction number of the connection's request that has made
    /// them, if one of its has; `seq_end` the age of the next entry.
    fn report(
        &mut self,
        version: Version,
        changes: &[WatchedChange],
        own: Option<Xid>,
        seq_end: u64,
    ) {
        let mut updates = Vec::new();
        let mut is_abbreviated = false;
        for watched in changes {
            let change = &watched.change;
            let flags = flags_of(change.event);
            let before = watched.instructions_before();
            if let Some(pause) = &mut self.pause
                && let Some(id) = pause.changed.get_mut(&watched.seq)
            {
                // The number may be another one, whoever wants to hear of this change.
                *id = watched.id;
            }
            if watched.is_only_moved {
                continue;
            }
            if let Some(pause) = &mut self.pause
                && change.event == FlowEvent::Removed
            {
                pause.changed.remove(&watched.seq);
                if watched.seq >= pause.seq_end {
                    continue;
                }
            }
            let Some(flags) = flags_for(self.all.values(), flags, change, before) else {
                continue;
            };
            if let Some(pause) = &mut self.pause
                && change.event != FlowEvent::Removed
            {
                pause.changed.insert(watched.seq, watched.id);
                continue;
            }
            match own {
                Some(xid) if self.pause.is_none() && !flags.has_own_in_full() => {
                    if !is_abbreviated {
                        updates.push(FlowUpdate::Abbreviated(xid));
                    }
                    is_abbreviated = true;
                }
                Some(_) | None => {
                    let is_whole = flags.contains(FlowMonitorFlags::INSTRUCTIONS);
                    let change = change.clone().with_instructions(is_whole);
                    updates.push(FlowUpdate::Change(change));
                }
            }
        }
        if updates.is_empty() {
            return;
        }
        self.send(version, updates);
        if self.pause.is_none() && self.bytes + self.unsent > PAUSE_BYTES {
            self.send_pause(version, FlowUpdate::Paused, PAUSED);
            self.pause = Some(Pause { seq_end, changed: BTreeMap::new() });
        }
    }

    /// After a pause, when nothing waits in the connection's output: queues a piece of what has
    /// changed meanwhile, or ends the pause. Nothing is queued where there is none.
    pub(super) fn resume(&mut self, version: Version, bridge: &Bridge) {
        let Some(pause) = &mut self.pause else { return };
        let mut updates = Vec::new();
        while updates.len() < PIECE
            && let Some((seq, id)) = pause.changed.pop_first()
        {
            let (event, flags) = if seq < pause.seq_end {
                (FlowEvent::Modified, FlowMonitorFlags::MODIFY)
            } else {
                pause.seq_end = seq + 1;
                (FlowEvent::Added, FlowMonitorFlags::ADD.union(FlowMonitorFlags::MODIFY))
            };
            let entry = bridge.with_control(|control| control.watched_entry(id, seq, event));
            let Some(entry) = entry.flatten() else { continue };
            let Some(flags) = flags_for(self.all.values(), flags, &entry, None) else { continue };
            let is_whole = flags.contains(FlowMonitorFlags::INSTRUCTIONS);
            updates.push(FlowUpdate::Change(entry.with_instructions(is_whole)));
        }
        let is_over = pause.changed.is_empty();
        if !updates.is_empty() {
            self.send(version, updates);
        }
        if is_over {
            self.pause = None;
            self.send_pause(version, FlowUpdate::Resumed, RESUMED);
        }
    }
}

impl Agent {
    /// Carries out requests about the monitors of a connection, all or none; the entries to begin
    /// with, if one of them asks for these.
    ///
    /// # Errors
    /// `OFPMOFC_*`.
    pub(super) fn monitor(
        &self,
        peer: &Peer,
        asked: Vec<FlowMonitorRequest>,
    ) -> Result<Option<InitialEntries>, Error> {
        let tables = self.bridge.with_control(|control| control.config().n_tables);
        let tables = tables.ok_or_else(Bridge::no_tables)?;
        let mut all = peer.monitors.borrow().all.clone();
        let mut monitors: Vec<FlowMonitorRequest> = Vec::new();
        for one in asked {
            let (id, is_known) = (one.monitor_id, all.contains_key(&one.monitor_id));
            match one.command {
                FlowMonitorCommand::Add if is_known => return Err(Error::FlowMonitorExists),
                FlowMonitorCommand::Modify | FlowMonitorCommand::Delete if !is_known => {
                    return Err(Error::FlowMonitorUnknownMonitor);
                }
                FlowMonitorCommand::Unknown(_) => return Err(Error::FlowMonitorBadCommand),
                FlowMonitorCommand::Add | FlowMonitorCommand::Modify => {
                    if one.table_id != TableId::ALL && one.table_id.0 >= tables {
                        return Err(Error::FlowMonitorBadTable);
                    }
                    monitors.push(one.clone());
                    all.insert(id, one);
                }
                FlowMonitorCommand::Delete => {
                    all.remove(&id);
                }
            }
            if all.len() > MONITORS_MAX {
                return Err(Error::FlowMonitorUnknown);
            }
        }
        monitors.retain(|one| {
            one.flags.contains(FlowMonitorFlags::INITIAL) && all.get(&one.monitor_id) == Some(one)
        });
        let dump = match &monitors[..] {
            [] => None,
            [one] => Some(self.bridge.list_flows(&FlowStatsRequest {
                table_id: one.table_id,
                out_port: one.out_port,
                out_group: one.out_group,
                matching: one.matching.clone(),
                ..FlowStatsRequest::all()
            })?),
            [..] => Some(self.bridge.list_flows(&FlowStatsRequest::all())?),
        };
        peer.monitors.borrow_mut().all = all;
        self.update_watch();
        Ok(dump.map(|dump| InitialEntries { dump, monitors }))
    }

    /// Has the bridge note changes while a connection monitors them.
    pub(super) fn update_watch(&self) {
        let is_watched = self.peers().iter().any(|peer| !peer.monitors.borrow().is_empty());
        if self.is_watched.replace(is_watched) != is_watched {
            self.bridge.with_control(|control| control.watch(is_watched));
        }
    }

    /// Reports the changes of flow entries since the last call to the connections that monitor
    /// them, and vacancy events to controllers. `own` is the request that has made them, if one
    /// has.
    pub(super) fn report_changes(&self, own: Option<(ConnectionId, Xid)>) {
        self.send_table_events();
        if !self.is_watched.get() {
            return;
        }
        let taken = |control: &mut Control| (control.take_changes(), control.next_seq());
        let (changes, seq_end) = self.bridge.with_control(taken).unwrap_or_default();
        if changes.is_empty() {
            return;
        }
        for peer in self.peers() {
            let own = own.filter(|(from, _)| *from == peer.id).map(|(_, xid)| xid);
            peer.monitors.borrow_mut().report(peer.version, &changes, own, seq_end);
            peer.refresh();
        }
    }
}
