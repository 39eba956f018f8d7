//! The journal of a bridge: a file of what its tables hold, so that a switch that starts anew has
//! the same entries, groups, meters, counts, addresses and settings of tables.
//!
//! A record is the state, after a batch of commands, of all that the batch has changed. It is
//! written before the batch's barrier goes to the workers, so a killed process has lost nothing
//! that a barrier has confirmed: what is written lies with the kernel. It is not forced to the
//! disk: a power failure may take the end of it. Each item says what is so now, and the last one of
//! a number holds; so the file is written anew in pieces (compacted) while records go on.
//!
//! A write that fails must never stop the switch, nor leave a file that says what is no longer so:
//! the file is emptied, that is logged and counted, and writing it anew is tried again and again.

mod batch;
mod folder;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datapath::fast::{Changed, Control, EntryId, Restored, SavedInstructions};
use datapath::{LearntAddress, Nanos};
use openflow::{DatapathId, GroupId, Match, MeterId, PortNo};
use serde::{Deserialize, Serialize};

use self::batch::Batch;
pub(crate) use self::folder::{StateFolder, file_name};
pub use self::read::{JournalFault, read_journal};
use crate::counters::{Counter, Counters};
use crate::error::SwitchError;

/// The version of the format.
const FORMAT: u32 = 1;

/// A journal is written anew when it is this many times as long as it was then, and by this more.
const COMPACTION_RATIO: u64 = 2;
const COMPACTION_BEYOND: u64 = 1 << 20;

/// The longest journal: some ten million entries.
const LEN_MAX: u64 = 8 << 30;

/// After a failure a compaction is tried again when this has passed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Entries of a record when a journal is begun.
const AT_ONCE: u32 = 4_096;

/// Room for a batch that is kept for the next one.
const ROOM_KEPT: usize = 1 << 20;

/// The owner of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: u32,
    /// The datapath id, in hexadecimal digits.
    dpid: String,
    /// The machine's start, since which times are counted.
    boot: String,
}

/// A bridge, for its journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalOwner {
    /// Its name.
    pub(crate) name: String,
    /// Its datapath id.
    pub(crate) dpid: DatapathId,
    /// Its ports with the names of their devices.
    pub(crate) ports: BTreeMap<PortNo, String>,
    /// Counts what fails.
    pub(crate) counters: Arc<Counters>,
}

/// A file that is written to.
#[derive(Debug)]
struct Output {
    file: File,
    len: u64,
    /// Its length when it held nothing but what was so.
    compact_len: u64,
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // Flow entries describe the network: for the owner alone.
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { file, len: 0, compact_len: 0 })
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if self.len + record.len() as u64 > LEN_MAX {
            return Err(io::Error::other(format!("the journal is longer than {LEN_MAX} bytes")));
        }
        self.file.write_all(record)?;
        self.len += record.len() as u64;
        Ok(())
    }
}

/// A compaction under way: the entries below `next` are in its file, and those from `end` on come
/// by the records meanwhile.
#[derive(Debug)]
struct Compaction {
    output: Output,
    next: u32,
    end: u32,
}

/// The journal of one bridge.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    header: Header,
    /// The bridge's name.
    name: String,
    counters: Arc<Counters>,
    /// None after a write that failed: a restart would begin without entries.
    output: Option<Output>,
    compaction: Option<Compaction>,
    /// A write has failed, and no compaction has been done since.
    is_lost: bool,
    /// The file of before the start, until another is written.
    aside: Option<PathBuf>,
    /// No compaction is begun before.
    retry_at: Option<Instant>,
    /// By number, the packets that the last item about an entry says, in the file that a restart
    /// would read; none without one.
    entries: Vec<Option<u64>>,
    /// By number, the instructions that every file has that is written to.
    instructions: Vec<Option<SavedInstructions>>,
    groups: BTreeMap<GroupId, u64>,
    meters: BTreeMap<MeterId, u64>,
    ports: BTreeMap<PortNo, String>,
    addresses: Vec<LearntAddress>,
    batch: Batch,
}

impl Journal {
    /// Restores what the journal of a bridge says, and begins it anew.
    ///
    /// # Errors
    /// The folder's files cannot be read or written.
    pub(crate) fn open(
        folder: &StateFolder,
        owner: JournalOwner,
        control: &mut Control,
        now: Nanos,
    ) -> Result<(Self, Restored), SwitchError> {
        let path = folder.journal_of(&owner.name);
        let boot = folder.boot().to_owned();
        let header = Header { format: FORMAT, dpid: owner.dpid.to_string(), boot };
        let failed = |source| SwitchError::State { path: path.clone(), source };
        let (mut saved, unreadable) =
            read::read_saved(&path, &header, &owner, now).map_err(failed)?;
        // As when a port goes: frames for them must not go to a port that is not there.
        saved.addresses.retain(|it| owner.ports.contains_key(&it.port));
        let groups = saved.groups.iter().map(|it| (it.desc.group_id, 0)).collect();
        let meters = saved.meters.iter().map(|it| (it.config.meter_id, 0)).collect();
        let restored = control.restore(saved, now);
        log_restored(&owner.name, &restored, unreadable, &path).map_err(failed)?;
        let mut journal = Self {
            path: path.clone(),
            header,
            name: owner.name,
            counters: owner.counters,
            output: None,
            compaction: None,
            is_lost: false,
            aside: None,
            retry_at: None,
            entries: Vec::new(),
            instructions: Vec::new(),
            groups,
            meters,
            ports: owner.ports,
            addresses: control.learnt_addresses(now),
            batch: Batch::default(),
        };
        match journal.write_anew(control) {
            Ok(()) => {}
            // Room may come; nothing else will.
            Err(error) if is_no_room(&error) => {
                journal.keep_aside();
                journal.give_up_compaction(&error);
                journal.lose(&error);
            }
            Err(error) => return Err(failed(error)),
        }
        Ok((journal, restored))
    }

    /// The state of before is all that a restart could have, and must not be taken for that of now.
    fn keep_aside(&mut self) {
        let aside = read::name_aside(&self.path, "kept");
        if std::fs::rename(&self.path, &aside).is_ok() {
            let (bridge, path) = (&self.name, aside.display());
            tracing::warn!(bridge, %path, "no room for the state: that of the start is kept here");
            self.aside = Some(aside);
        }
    }

    /// Writes all that there is, at once.
    fn write_anew(&mut self, control: &Control) -> io::Result<()> {
        self.begin_compaction(control)?;
        while !self.add_to_compaction(control, AT_ONCE)? {}
        Ok(())
    }

    /// Writes what ops have changed, as it is now.
    pub(crate) fn save(&mut self, control: &Control, mut changed: Changed) {
        changed.entries.sort_unstable();
        changed.entries.dedup();
        changed.entries.iter().for_each(|id| self.put_entry(control, *id));
        changed.groups.sort_unstable();
        changed.groups.dedup();
        changed.groups.iter().for_each(|id| self.put_group(control, *id));
        changed.meters.sort_unstable();
        changed.meters.dedup();
        changed.meters.iter().for_each(|id| self.put_meter(control, *id));
        if !changed.ports.is_empty() {
            self.put_ports(control, &changed.ports);
        }
        self.write();
    }

    /// Writes the settings of the tables.
    pub(crate) fn save_tables(&mut self, control: &Control) {
        self.put_tables(control);
        self.write();
    }

    /// Another datapath id is the bridge's.
    pub(crate) fn set_dpid(&mut self, dpid: DatapathId) {
        self.header.dpid = dpid.to_string();
        self.batch.header(&self.header);
        self.write();
    }

    /// Writes the counts of at most `most` entries from a number on, where they have changed; the
    /// first that was not looked at, or none at the end.
    pub(crate) fn save_counts(&mut self, control: &Control, from: u32, most: u32) -> Option<u32> {
        let known = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let end = known.min(from.saturating_add(most));
        (from..end).for_each(|number| self.put_counts(control, EntryId(number)));
        self.write();
        (end < known).then_some(end)
    }

    /// Writes the counts of these entries, where they have changed.
    pub(crate) fn save_counts_of(&mut self, control: &Control, entries: &[EntryId]) {
        entries.iter().for_each(|id| self.put_counts(control, *id));
        self.write();
    }

    /// Writes the counts of groups and meters, where they have changed.
    pub(crate) fn save_shared_counts(&mut self, control: &Control) {
        let groups = self.groups.iter();
        let groups = groups.filter(|(id, packets)| control.group_packets(**id) != **packets);
        let groups: Vec<GroupId> = groups.map(|(id, _)| *id).collect();
        groups.into_iter().for_each(|id| self.put_group(control, id));
        let meters = self.meters.iter();
        let meters = meters.filter(|(id, packets)| control.meter_packets(**id) != **packets);
        let meters: Vec<MeterId> = meters.map(|(id, _)| *id).collect();
        meters.into_iter().for_each(|id| self.put_meter(control, id));
        self.write();
    }

    /// Writes the addresses that are known, when they have changed.
    pub(crate) fn save_addresses(&mut self, control: &Control, now: Nanos) {
        let known = control.learnt_addresses(now);
        let place = |it: &LearntAddress| (it.vlan, it.address, it.port, it.is_static);
        if !known.iter().map(place).eq(self.addresses.iter().map(place)) {
            self.batch.addresses(&known);
            self.addresses = known;
            self.write();
        }
    }

    /// Begins a compaction where one is due; whether one is under way.
    pub(crate) fn begin_due_compaction(&mut self, control: &Control, now: Instant) -> bool {
        let is_long = self.output.as_ref().is_none_or(|output| {
            output.len > output.compact_len * COMPACTION_RATIO + COMPACTION_BEYOND
        });
        let may_begin = self.retry_at.is_none_or(|at| at <= now);
        if self.compaction.is_none() && is_long && may_begin {
            self.retry_at = None;
            if let Err(error) = self.begin_compaction(control) {
                self.give_up_compaction(&error);
            }
        }
        self.compaction.is_some()
    }

    /// Goes on with a compaction by at most `most` entries; whether there is more to do.
    pub(crate) fn go_on_with_compaction(&mut self, control: &Control, most: u32) -> bool {
        match self.add_to_compaction(control, most) {
            Ok(is_done) => !is_done,
            Err(error) => {
                self.give_up_compaction(&error);
                false
            }
        }
    }

    /// The bridge is gone, and its journal with it.
    pub(crate) fn discard(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            let (bridge, path) = (&self.name, self.path.display());
            tracing::warn!(bridge, %path, %error, "the state of a bridge that is gone stays");
        }
        if self.compaction.is_some() {
            std::fs::remove_file(self.fresh_path()).ok();
        }
    }

    fn put_entry(&mut self, control: &Control, id: EntryId) {
        let mut packets = None;
        if let Some((entry, number)) = control.saved_entry(id) {
            let count = entry.counts.packets;
            let is_written = self.put_instructions(control, number, &entry.add.matching)
                && self.batch.entry(entry, number).is_ok();
            packets = is_written.then_some(count);
            if !is_written {
                self.counters.bump(Counter::StateError);
                tracing::debug!(bridge = self.name, "no message holds an entry, to keep it");
            }
        }
        let index = id.0 as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        let Some(held) = self.entries.get_mut(index) else { return };
        if std::mem::replace(held, packets).is_some() && packets.is_none() {
            self.batch.entry_gone(id);
        }
    }

    /// Writes the instructions of a number where a file does not have them; false where they cannot
    /// be written.
    fn put_instructions(&mut self, control: &Control, number: u32, matching: &Match) -> bool {
        let index = number as usize;
        let known = self.instructions.get(index).and_then(Option::as_ref);
        let Some(new) = control.saved_instructions(number, known) else { return true };
        let is_written = self.batch.instructions(number, new.list(), matching);
        if self.instructions.len() <= index {
            self.instructions.resize(index + 1, None);
        }
        if let Some(held) = self.instructions.get_mut(index) {
            *held = is_written.then_some(new);
        }
        is_written
    }

    fn put_counts(&mut self, control: &Control, id: EntryId) {
        let Some(Some(packets)) = self.entries.get_mut(id.0 as usize) else { return };
        let counts = control.saved_counts(id);
        if counts.packets != *packets {
            *packets = counts.packets;
            self.batch.counts(id, counts);
        }
    }

    fn put_group(&mut self, control: &Control, id: GroupId) {
        let group = control.saved_group(id);
        let written = group.filter(|group| self.batch.group(group).is_ok());
        if let Some(group) = written {
            self.groups.insert(id, group.counts.packet_count);
        } else if self.groups.remove(&id).is_some() {
            self.batch.group_gone(id);
        }
    }

    fn put_meter(&mut self, control: &Control, id: MeterId) {
        let meter = control.saved_meter(id);
        let written = meter.filter(|meter| self.batch.meter(meter).is_ok());
        if let Some(meter) = written {
            self.meters.insert(id, meter.counts.packet_count);
        } else if self.meters.remove(&id).is_some() {
            self.batch.meter_gone(id);
        }
    }

    fn put_tables(&mut self, control: &Control) {
        if self.batch.tables(control.saved_tables()).is_err() {
            self.counters.bump(Counter::StateError);
            tracing::debug!(bridge = self.name, "no message holds the settings of tables");
        }
    }

    fn put_ports(&mut self, control: &Control, changed: &[PortNo]) {
        let all = control.ports();
        for number in changed {
            let name = all.iter().find(|desc| desc.port_no == *number).map(|desc| &desc.name);
            if self.ports.get(number) == name {
                continue;
            }
            match name {
                Some(name) => {
                    self.batch.port(*number, name);
                    self.ports.insert(*number, name.clone());
                }
                None => {
                    self.batch.port_gone(*number);
                    self.ports.remove(number);
                }
            }
        }
    }

    /// Writes the batch as one record, with one call.
    fn write(&mut self) {
        let Some(record) = self.batch.seal() else { return };
        let written = self.output.as_mut().map_or(Ok(()), |output| output.append(record));
        let compaction = self.compaction.as_mut().map_or(Ok(()), |it| it.output.append(record));
        self.batch.clear(ROOM_KEPT);
        if let Err(error) = compaction {
            self.give_up_compaction(&error);
        }
        if let Err(error) = written {
            self.lose(&error);
        }
    }

    /// The file says what is no longer so: nothing of it may be restored.
    fn lose(&mut self, error: &io::Error) {
        self.counters.bump(Counter::StateError);
        self.is_lost = true;
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        let (bridge, path) = (&self.name, self.path.display());
        tracing::error!(
            bridge, %path, %error,
            "the state is not kept: a restart now would begin without flow entries"
        );
        let emptied = self.output.take().map(|output| output.file.set_len(0));
        if !matches!(emptied, Some(Ok(())))
            && let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(bridge, %path, %error, "an outdated state stays: remove this file");
        }
    }

    fn fresh_path(&self) -> PathBuf {
        folder::with_ending(&self.path, "new")
    }

    fn begin_compaction(&mut self, control: &Control) -> io::Result<()> {
        let output = Output::create(&self.fresh_path())?;
        self.compaction = Some(Compaction { output, next: 0, end: control.entries_end().0 });
        self.instructions.clear();
        self.batch.header(&self.header);
        self.ports.iter().for_each(|(number, name)| self.batch.port(*number, name));
        self.batch.addresses(&self.addresses);
        if !control.saved_tables().is_empty() {
            self.put_tables(control);
        }
        // The file that a restart would read does not get these counts.
        let (groups, meters) = (self.groups.clone(), self.meters.clone());
        groups.keys().for_each(|id| self.put_group(control, *id));
        meters.keys().for_each(|id| self.put_meter(control, *id));
        (self.groups, self.meters) = (groups, meters);
        self.write_to_compaction()
    }

    /// Adds at most `most` entries to the compaction; whether it is done, and in its place.
    fn add_to_compaction(&mut self, control: &Control, most: u32) -> io::Result<bool> {
        let Some(compaction) = &mut self.compaction else { return Ok(true) };
        let from = compaction.next;
        compaction.next = compaction.end.min(from.saturating_add(most));
        let (next, is_done) = (compaction.next, compaction.next == compaction.end);
        (from..next).for_each(|number| self.compact_entry(control, EntryId(number)));
        self.write_to_compaction()?;
        if is_done {
            std::fs::rename(self.fresh_path(), &self.path)?;
            self.output = self
                .compaction
                .take()
                .map(|Compaction { output, .. }| Output { compact_len: output.len, ..output });
            if std::mem::take(&mut self.is_lost) {
                tracing::info!(bridge = self.name, "the state is kept again");
            }
            if let Some(aside) = self.aside.take() {
                std::fs::remove_file(aside).ok();
            }
        }
        Ok(is_done)
    }

    /// Puts an entry into the compaction alone. Its counts are saved again when a reply shows them,
    /// as the file that a restart would read does not get them here.
    fn compact_entry(&mut self, control: &Control, id: EntryId) {
        let index = id.0 as usize;
        let held = self.entries.get(index).copied().flatten();
        self.put_entry(control, id);
        if let (Some(_), Some(known)) = (held, self.entries.get_mut(index)) {
            *known = held;
        }
    }

    fn write_to_compaction(&mut self) -> io::Result<()> {
        let both = self.compaction.as_mut().zip(self.batch.seal());
        let written = both.map_or(Ok(()), |(it, record)| it.output.append(record));
        self.batch.clear(ROOM_KEPT);
        written
    }

    /// The journal goes on as it is.
    fn give_up_compaction(&mut self, error: &io::Error) {
        self.counters.bump(Counter::StateError);
        self.compaction = None;
        self.instructions.clear();
        self.batch.clear(ROOM_KEPT);
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        let (bridge, path) = (&self.name, self.fresh_path());
        if !self.is_lost {
            tracing::warn!(bridge, path = %path.display(), %error, "a journal is not compacted");
        }
        // What was written of it takes room; where it is not there, nothing does.
        std::fs::remove_file(path).ok();
    }
}

/// Whether an error may go by itself.
fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Logs what was restored and what was not; the file that has the latter stays under another name,
/// as it will be written anew without that.
fn log_restored(
    bridge: &str,
    restored: &Restored,
    unreadable: usize,
    path: &Path,
) -> io::Result<()> {
    let Restored { entries, groups, meters, tables, refused, numbers: _ } = restored;
    if entries + groups + meters + tables > 0 {
        tracing::info!(bridge, entries, groups, meters, "restored");
    }
    if refused.is_none() && unreadable == 0 {
        return Ok(());
    }
    let aside = read::name_aside(path, "refused");
    if aside.exists() {
        std::fs::remove_file(&aside)?;
    }
    std::fs::hard_link(path, &aside)?;
    let aside = aside.display();
    if let Some((count, error)) = refused {
        let error = error.name();
        tracing::warn!(
            bridge,
            count,
            error,
            %aside,
            "not restored: this configuration refuses so many entries, groups, meters and \
             settings of tables of before; a file keeps the state with them"
        );
    }
    if unreadable > 0 {
        tracing::warn!(bridge, unreadable, %aside, "not restored: items of another version");
    }
    Ok(())
}
