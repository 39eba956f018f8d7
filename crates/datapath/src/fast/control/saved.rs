//! Entries, groups, meters, addresses and settings of tables as they are saved, and as a datapath
//! that begins takes them back.
//!
//! The ops say which of them have changed ([`Op::note_changed`]); their state is asked for
//! afterwards, so that any number of changes is saved as one. Restoring is for a datapath whose
//! forwarders have not begun, since it writes counters that are a forwarder's. What the datapath
//! refuses is left out and counted, as the state may be that of one with other sizes.

use std::collections::BTreeSet;
use std::sync::Arc;

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::{BucketCounter, GroupDesc, GroupMod, GroupModCommand, GroupType};
use openflow::meter::{BandCounter, MeterConfig, MeterMod, MeterModCommand};
use openflow::table::TableMod;
use openflow::{Error, GroupId, Instruction, MeterId, PortNo, Version};

use super::Control;
use super::meters::locked;
use crate::fast::compiled_match::CompiledMatch;
use crate::fast::ids::EntryId;
use crate::fast::op::{Change, InstructionList, Op};
use crate::fast::shared::Counts;
use crate::groups::group_of;
use crate::macs::LearntAddress;
use crate::precedence::Precedence;
use crate::time::Nanos;
use crate::validate::CheckedFlowMod;

/// Numbers of what ops have changed, each as often as it was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Flow entries.
    pub entries: Vec<EntryId>,
    /// Groups.
    pub groups: Vec<GroupId>,
    /// Meters.
    pub meters: Vec<MeterId>,
    /// Ports.
    pub ports: Vec<PortNo>,
}

impl Op {
    /// Adds what it changes.
    pub fn note_changed(&self, changed: &mut Changed) {
        match &self.0 {
            Change::Insert(new) => changed.entries.push(new.id),
            Change::Exchange { old, new } => changed.entries.extend([*old, new.id]),
            Change::Replace { id, .. } | Change::Remove { id, .. } => changed.entries.push(*id),
            Change::Group { id, .. } => changed.groups.push(*id),
            Change::Meter { id, .. } => changed.meters.push(*id),
            Change::Port { port, .. } => changed.ports.push(*port),
            Change::Bundle(ops) => ops.iter().for_each(|op| op.note_changed(changed)),
            Change::Mirrors(_) | Change::Settings(_) | Change::PacketOut(..) | Change::Flush(_) => {
            }
        }
    }
}

/// Counts of an entry, and its last use; zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// When a packet last matched it.
    pub last_used: Nanos,
}

/// The instructions of an entry, which other entries may have too.
#[derive(Clone, Debug)]
pub struct SavedInstructions(Arc<InstructionList>);

impl SavedInstructions {
    /// The instructions.
    #[must_use]
    pub fn list(&self) -> &[Instruction] {
        &self.0.instructions
    }
}

/// A flow entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEntry {
    /// Its number where it was saved.
    pub id: EntryId,
    /// The command that makes it: an add, or in 1.0 a modify that found no entry.
    pub add: FlowMod,
    /// A version that sets it up in the same way.
    pub version: Version,
    /// Its place among entries of equal priority: lower for the older one.
    pub seq: u64,
    /// Its beginning.
    pub created: Nanos,
    /// Its counts.
    pub counts: SavedCounts,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedGroup {
    /// Number, type and buckets.
    pub desc: GroupDesc,
    /// Its beginning.
    pub created: Nanos,
    /// Packets and bytes.
    pub counts: BucketCounter,
    /// Those of each bucket.
    pub buckets: Vec<BucketCounter>,
}

/// A meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMeter {
    /// Number, flags and bands.
    pub config: MeterConfig,
    /// Its beginning.
    pub created: Nanos,
    /// Packets and bytes.
    pub counts: BandCounter,
    /// Those of each band.
    pub bands: Vec<BandCounter>,
}

/// All that can be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Flow entries, in any order.
    pub entries: Vec<SavedEntry>,
    /// Groups.
    pub groups: Vec<SavedGroup>,
    /// Meters.
    pub meters: Vec<SavedMeter>,
    /// Addresses that `NORMAL` knows. Their age begins anew.
    pub addresses: Vec<LearntAddress>,
    /// Table-mods of the newest version that set the tables up.
    pub tables: Vec<TableMod>,
}

/// Numbers of what was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Flow entries.
    pub entries: usize,
    /// Groups.
    pub groups: usize,
    /// Meters.
    pub meters: usize,
    /// Tables that had settings.
    pub tables: usize,
    /// Number of those that were left out, and the error of the first.
    pub refused: Option<(usize, Error)>,
    /// The numbers of entries where they were saved, and those that they have now.
    pub numbers: Vec<(EntryId, EntryId)>,
}

impl Restored {
    /// Counts one of them.
    fn count(&mut self, outcome: Result<(), Error>, of: impl Fn(&mut Self) -> &mut usize) {
        match outcome {
            Ok(()) => *of(self) += 1,
            Err(error) => self.refused.get_or_insert((0, error)).0 += 1,
        }
    }
}

impl Control {
    /// The number above those of all entries that there are.
    #[must_use]
    pub fn entries_end(&self) -> EntryId {
        EntryId(self.store.slab.end() as u32)
    }

    /// The counts of an entry, so far as they are flushed.
    #[must_use]
    pub fn saved_counts(&self, id: EntryId) -> SavedCounts {
        let Counts { packets, bytes } = self.shared.entry(id);
        SavedCounts { packets, bytes, last_used: self.shared.last_used(id) }
    }

    /// The entry of a number as it is, but for its instructions, and the number of these; if there
    /// is one. Entries of one number have the same instructions at any time.
    #[must_use]
    pub fn saved_entry(&self, id: EntryId) -> Option<(SavedEntry, u32)> {
        let entry = self.store.slab.live(id.0)?;
        let (version, seq, created) = (entry.setup.version(), entry.seq, entry.created);
        let mut add = FlowMod {
            table_id: self.store.tuple(entry).table,
            cookie: entry.cookie,
            idle_timeout_s: entry.idle_timeout_s,
            hard_timeout_s: entry.hard_timeout_s,
            priority: entry.priority,
            flags: entry.flags,
            importance: self.store.setups.importance(entry.setup),
            matching: self.store.matching(entry),
            ..FlowMod::new(FlowModCommand::Add)
        };
        if !version.has_reset_counts() {
            // There the command says it: an add has reset counters, a modify has not.
            add.flags -= FlowModFlags::RESET_COUNTS;
            if add.kept_flags(version) != entry.flags {
                add.command = FlowModCommand::ModifyStrict;
            }
        }
        let counts = self.saved_counts(id);
        Some((SavedEntry { id, add, version, seq, created, counts }, entry.instruction_list))
    }

    /// The instructions of a number that [`Control::saved_entry`] has given now, unless they are
    /// those that are `known` for it.
    #[must_use]
    pub fn saved_instructions(
        &self,
        number: u32,
        known: Option<&SavedInstructions>,
    ) -> Option<SavedInstructions> {
        let list = self.store.instruction_lists.get(number);
        let is_known = known.is_some_and(|known| Arc::ptr_eq(&known.0, list));
        (!is_known).then(|| SavedInstructions(Arc::clone(list)))
    }

    /// A group as it is, if there is one.
    #[must_use]
    pub fn saved_group(&self, id: GroupId) -> Option<SavedGroup> {
        let group = self.groups.get(id)?;
        let desc = GroupDesc {
            group_type: group.group_type(),
            group_id: id,
            buckets: group.buckets().to_vec(),
            selection: group.selection().cloned(),
        };
        let counters = self.group_counters.get(&id)?;
        let count = |(packet_count, byte_count)| BucketCounter { packet_count, byte_count };
        let buckets = (0..desc.buckets.len()).map(|bucket| count(counters.bucket_sum(bucket)));
        let buckets = buckets.collect();
        Some(SavedGroup { desc, created: group.since(), counts: count(counters.sum()), buckets })
    }

    /// The table-mods that set the tables up, of those with settings.
    #[must_use]
    pub fn saved_tables(&self) -> Vec<TableMod> {
        let mut tables = self.table_desc();
        tables.retain(|table| table.config != 0);
        for table in &mut tables {
            // The rule of eviction is the table's own, and no message sets how much is vacant.
            table.eviction = None;
            table.vacancy.iter_mut().for_each(|vacancy| vacancy.now = 0);
        }
        tables
    }

    /// Packets of a group, so far as they are flushed.
    #[must_use]
    pub fn group_packets(&self, id: GroupId) -> u64 {
        self.group_counters.get(&id).map_or(0, |counters| counters.sum().0)
    }

    /// A meter as it is, if there is one.
    #[must_use]
    pub fn saved_meter(&self, id: MeterId) -> Option<SavedMeter> {
        let meter = locked(self.meters.get(id)?);
        let (counts, bands) = meter.counts();
        let bands = bands.to_vec();
        Some(SavedMeter { config: meter.config(id), created: meter.since(), counts, bands })
    }

    /// Packets of a meter.
    #[must_use]
    pub fn meter_packets(&self, id: MeterId) -> u64 {
        self.meters.get(id).map_or(0, |meter| locked(meter).counts().0.packet_count)
    }

    /// Restores what was saved. Entries keep their beginning, which is not later than `now`, and
    /// their last use; one whose timeout has passed meanwhile expires as usual.
    pub fn restore(&mut self, saved: Saved, now: Nanos) -> Restored {
        let Saved { mut entries, groups, meters, addresses, tables } = saved;
        let mut restored = Restored::default();
        for meter in &meters {
            restored.count(self.restore_meter(meter, now), |restored| &mut restored.meters);
        }
        for outcome in self.restore_groups(&groups, now) {
            restored.count(outcome, |restored| &mut restored.groups);
        }
        entries.sort_unstable_by_key(|entry| entry.seq);
        for entry in entries {
            let before = entry.id;
            let restored_as = self.restore_entry(entry, now);
            let outcome = restored_as.map(|id| restored.numbers.extend(id.map(|id| (before, id))));
            restored.count(outcome, |restored| &mut restored.entries);
        }
        // Behind the entries, none of which makes room for another.
        for table in &tables {
            restored.count(self.table_mod(table, Version::NEWEST), |restored| &mut restored.tables);
        }
        let (by_hand, learnt): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| address.is_static);
        for LearntAddress { vlan, address, port, .. } in by_hand {
            self.set_address(vlan, address, port, now);
        }
        let learnt = learnt.iter().map(|it| ((it.vlan, it.address), it.port));
        self.shared.learn(learnt, &self.config, now);
        restored
    }

    /// Notes when packets have used entries that were restored. No forwarder may have begun.
    pub fn note_used(&mut self, used: &[(EntryId, Nanos)]) {
        for (id, last_used) in used {
            self.shared.of_forwarder(0).entries.touch(*id, *last_used);
        }
    }

    fn restore_meter(&mut self, saved: &SavedMeter, now: Nanos) -> Result<(), Error> {
        let MeterConfig { flags, meter_id, ref bands } = saved.config;
        let (command, bands) = (MeterModCommand::Add, bands.clone());
        let add = MeterMod { command, flags, meter_id, bands };
        self.meter_mod(&add, saved.created.min(now))?;
        if let Some(meter) = self.meters.get(meter_id) {
            locked(meter).set_counts(saved.counts, &saved.bands);
        }
        Ok(())
    }

    /// Restores groups. Nothing is left of one that is refused, nor of those that lead to it.
    fn restore_groups(&mut self, saved: &[SavedGroup], now: Nanos) -> Vec<Result<(), Error>> {
        // All of them before the buckets of any, since a bucket may lead to any other group.
        let begin = |group: &SavedGroup| {
            let begun = empty_group(GroupModCommand::Add, group.desc.group_id);
            self.group_mod(&begun, group.created.min(now)).map(drop)
        };
        let mut outcomes: Vec<_> = saved.iter().map(begin).collect();
        // A group that was deleted may be watched still, but not by a command of now.
        let watched = saved.iter().flat_map(|group| &group.desc.buckets).map(|it| it.watch_group);
        let mut gone: BTreeSet<GroupId> = watched.filter(|id| *id != GroupId::ANY).collect();
        gone.retain(|id| self.group_mod(&empty_group(GroupModCommand::Add, *id), now).is_ok());
        for (group, outcome) in saved.iter().zip(&mut outcomes) {
            if outcome.is_ok() {
                *outcome = self.restore_group(group, now);
            }
        }
        let mut known = None;
        while known.replace(gone.len()) != Some(gone.len()) {
            for (group, outcome) in saved.iter().zip(&mut outcomes) {
                let id = group.desc.group_id;
                let actions = group.desc.buckets.iter().flat_map(|bucket| &bucket.actions);
                let mut ahead = actions.filter_map(group_of).chain([id]);
                if outcome.is_ok() && ahead.any(|id| gone.contains(&id)) {
                    *outcome = Err(Error::BadActionBadOutGroup);
                }
                if outcome.is_err() {
                    gone.insert(id);
                }
            }
        }
        // Without buckets none of them leads to another. Some were refused at the first.
        for command in [GroupModCommand::Modify, GroupModCommand::Delete] {
            for id in &gone {
                self.group_mod(&empty_group(command, *id), now).ok();
            }
        }
        outcomes
    }

    fn restore_group(&mut self, saved: &SavedGroup, now: Nanos) -> Result<(), Error> {
        let GroupDesc { group_type, group_id, ref buckets, ref selection } = saved.desc;
        let (command, buckets) = (GroupModCommand::Modify, buckets.clone());
        let selection = selection.clone();
        let rest = GroupMod::default();
        self.group_mod(
            &GroupMod { command, group_type, group_id, buckets, selection, ..rest },
            now,
        )?;
        let Some(counters) = self.group_counters.get(&group_id) else { return Ok(()) };
        let buckets = saved.buckets.iter().enumerate();
        let buckets = buckets.map(|(index, counts)| (counters.bucket(0, index), counts));
        for (pair, counts) in buckets.chain([(counters.group(0), &saved.counts)]) {
            if let Some(pair) = pair {
                pair.add(counts.packet_count, counts.byte_count);
            }
        }
        Ok(())
    }

    /// Restores an entry; its number.
    fn restore_entry(&mut self, saved: SavedEntry, now: Nanos) -> Result<Option<EntryId>, Error> {
        let SavedEntry { mut add, version, created, counts, .. } = saved;
        let flags = add.kept_flags(version);
        add.command = FlowModCommand::Add;
        // An entry of 1.0 may have got instructions of 1.3 by a modify.
        let checked = self.check_flow_mod(&add, version);
        let checked = checked.or_else(|_| self.check_flow_mod(&add, Version::NEWEST))?;
        let CheckedFlowMod::Add = checked else { return Err(Error::FlowModBadCommand) };
        // It has the flags; what they ask of a command was done when it came.
        add.flags -= FlowModFlags::CHECK_OVERLAP | FlowModFlags::RESET_COUNTS;
        self.add(&add, version, created.min(now))?;
        let compiled = CompiledMatch::of(&add.matching, &mut self.masks);
        let precedence = Precedence::of_flow_mod(&add, version);
        let number = self.store.find(add.table_id, &compiled, precedence);
        if let Some(number) = number {
            self.store.slab.get_mut(number).flags = flags;
            let SavedCounts { packets, bytes, last_used } = counts;
            let counts = Counts { packets, bytes };
            self.shared.restore_entry(EntryId(number), counts, last_used.min(now));
        }
        Ok(number.map(EntryId))
    }
}

/// A command about a group without buckets, as any type but indirect may be.
fn empty_group(command: GroupModCommand, group_id: GroupId) -> GroupMod {
    GroupMod {
        command,
        group_type: GroupType::All,
        group_id,
        buckets: Vec::new(),
        ..GroupMod::default()
    }
}
