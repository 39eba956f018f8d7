//! Bundles: commands of which all are carried out, or none (clause 7.3.9 of 1.4).
//!
//! The commands of a bundle are the usual calls between [`Control::begin_bundle`] and its end. Each
//! change of an entry notes what it was before, so that a bundle costs by its own size and not by
//! that of the tables. Groups, meters and ports, of which there are fewer, are kept whole from the
//! first command about them. The ops of a bundle leave as one, which every forwarder shows to
//! packets at one moment. Nothing else may change the datapath before the bundle has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use openflow::message::PacketOut;
use openflow::meter::MeterMod;
use openflow::{Error, GroupId, Version};
use packet::{Meta, extract};

use super::meters::{MeterTable, locked};
use super::store::EntryBefore;
use super::{CommandCounts, Control};
use crate::counter::{Counter, DatapathCounters};
use crate::fast::ids::EntryId;
use crate::fast::op::Change;
use crate::fast::shared::GroupCounters;
use crate::groups::Groups;
use crate::meters::Meter;
use crate::ports::Ports;
use crate::seam::{BundleCommand, BundleRefused};
use crate::time::Nanos;
use crate::validate::{Existing, check_packet_out, check_packet_out_actions};

/// The state before a bundle, so far as its commands have changed it.
#[derive(Debug)]
pub(super) struct Savepoint {
    changes: Vec<Undo>,
    /// Numbers of the ops and of the removed entries that there were.
    ops: usize,
    removals: usize,
    /// Number of the changes that were noted.
    watched: usize,
    seq: u64,
    counters: DatapathCounters,
    groups: Option<(Groups, BTreeMap<GroupId, Arc<GroupCounters>>)>,
    meters: Option<MeterTable>,
    ports: Option<Ports>,
    /// Changes of meters, which the forwarders share: they wait for the commit.
    meter_mods: Vec<(Arc<Mutex<Meter>>, MeterMod, Nanos)>,
}

/// The reverse of a change of an entry.
#[derive(Debug)]
enum Undo {
    /// It is new.
    New(EntryId),
    /// It was another one, or has gone.
    Was(Box<EntryBefore>),
}

impl Control {
    /// Carries out a bundle, or nothing of it (clause 7.3.9 of 1.4).
    ///
    /// # Errors
    /// That of the first command that is refused.
    pub fn bundle(
        &mut self,
        commands: &[BundleCommand],
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, BundleRefused> {
        self.begin_bundle();
        let mut sum = CommandCounts::default();
        for (at, command) in commands.iter().enumerate() {
            match self.command(command, version, now) {
                Ok(done) => sum = sum.plus(done),
                Err(error) => {
                    self.roll_back_bundle();
                    return Err(BundleRefused { at, error });
                }
            }
        }
        self.commit_bundle();
        Ok(sum)
    }

    /// Carries out one command of a bundle.
    ///
    /// # Errors
    /// Those of the command; nothing of it is done then.
    pub fn command(
        &mut self,
        command: &BundleCommand,
        version: Version,
        now: Nanos,
    ) -> Result<CommandCounts, Error> {
        match command {
            BundleCommand::FlowMod(body) => self.flow_mod(body, version, now),
            BundleCommand::GroupMod(body) => self.group_mod(body, now),
            BundleCommand::MeterMod(body) => self.meter_mod(body, now),
            BundleCommand::PortMod(body) => self.port_mod(body).map(|_| CommandCounts::default()),
            BundleCommand::PacketOut(body) => {
                self.packet_out(body, now).map(|()| CommandCounts::default())
            }
        }
    }

    /// Checks a packet-out against what the commands before it left; it is sent with the ops.
    fn packet_out(&mut self, packet_out: &PacketOut, now: Nanos) -> Result<(), Error> {
        check_packet_out(packet_out)?;
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.is_nameable(id),
            meter: &|id| self.meters.is_nameable(id),
        };
        let key = extract(&packet_out.data, &Meta::port(packet_out.in_port));
        check_packet_out_actions(packet_out, &key, &existing)?;
        self.emit_op(Change::PacketOut(Arc::new(packet_out.clone()), now));
        Ok(())
    }

    /// Begins a bundle: the commands until [`Self::commit_bundle`] or [`Self::roll_back_bundle`]
    /// are carried out together or not at all. They are commands at once, not in pieces.
    pub fn begin_bundle(&mut self) {
        debug_assert!(self.savepoint.is_none(), "one bundle at a time");
        self.savepoint = Some(Box::new(Savepoint {
            changes: Vec::new(),
            ops: self.ops.len(),
            removals: self.removals.len(),
            watched: self.watched.as_ref().map_or(0, Vec::len),
            seq: self.seq,
            counters: self.counters.clone(),
            groups: None,
            meters: None,
            ports: None,
            meter_mods: Vec::new(),
        }));
    }

    /// Ends a bundle: its commands hold, and its ops are one. A meter is shared by all forwarders:
    /// its new bands hold from now on, a moment before the rest.
    pub fn commit_bundle(&mut self) {
        let Some(savepoint) = self.savepoint.take() else { return };
        for (meter, asked, now) in &savepoint.meter_mods {
            locked(meter).configure(asked, *now);
        }
        for undo in savepoint.changes {
            if let Undo::Was(before) = undo {
                self.store.instruction_lists.release(before.entry.instruction_list);
            }
        }
        let mut ops = self.ops.split_off(savepoint.ops);
        if ops.len() > 1 {
            self.emit_op(Change::Bundle(ops.into()));
        } else {
            self.ops.append(&mut ops);
        }
        self.learn_put_off();
    }

    /// Ends a bundle of which a command was refused: all is as it was before it, but for the count
    /// of refused flow-mods.
    pub fn roll_back_bundle(&mut self) {
        let Some(savepoint) = self.savepoint.take() else { return };
        for undo in savepoint.changes.into_iter().rev() {
            match undo {
                Undo::New(id) => {
                    self.store.remove(id.0);
                    self.store.slab.give_back(id);
                }
                Undo::Was(before) => {
                    if self.store.slab.live(before.id.0).is_some() {
                        self.store.remove(before.id.0);
                    }
                    let last_used = self.shared.last_used(before.id);
                    self.store.restore(*before, last_used);
                }
            }
        }
        self.ops.truncate(savepoint.ops);
        self.removals.truncate(savepoint.removals);
        if let Some(changes) = &mut self.watched {
            changes.truncate(savepoint.watched);
        }
        self.seq = savepoint.seq;
        let refused = self.counters.get(Counter::FlowModErrors);
        self.counters = savepoint.counters;
        let refused = refused - self.counters.get(Counter::FlowModErrors);
        self.counters.add(Counter::FlowModErrors, refused);
        if let Some((groups, counters)) = savepoint.groups {
            (self.groups, self.group_counters) = (groups, counters);
        }
        if let Some(meters) = savepoint.meters {
            self.meters = meters;
        }
        if let Some(ports) = savepoint.ports {
            self.ports = ports;
        }
        self.learn_put_off();
    }

    /// An entry is new.
    pub(super) fn note_new(&mut self, id: EntryId) {
        if let Some(savepoint) = &mut self.savepoint {
            savepoint.changes.push(Undo::New(id));
        }
    }

    /// An entry is about to change or to go.
    pub(super) fn note_before(&mut self, number: u32) {
        self.forget_learnt(number);
        if let Some(savepoint) = &mut self.savepoint {
            let before = Box::new(self.store.before(number));
            savepoint.changes.push(Undo::Was(before));
        }
    }

    /// A group is about to change.
    pub(super) fn note_groups(&mut self) {
        if let Some(savepoint) = &mut self.savepoint {
            let before = || (self.groups.clone(), self.group_counters.clone());
            savepoint.groups.get_or_insert_with(before);
        }
    }

    /// A meter is about to come or to go.
    pub(super) fn note_meters(&mut self) {
        if let Some(savepoint) = &mut self.savepoint {
            savepoint.meters.get_or_insert_with(|| self.meters.clone());
        }
    }

    /// A port is about to change.
    pub(super) fn note_ports(&mut self) {
        if let Some(savepoint) = &mut self.savepoint {
            savepoint.ports.get_or_insert_with(|| self.ports.clone());
        }
    }

    /// Gives a meter other bands, in a bundle at its commit.
    pub(super) fn configure_meter(
        &mut self,
        meter: Arc<Mutex<Meter>>,
        asked: &MeterMod,
        now: Nanos,
    ) {
        match &mut self.savepoint {
            Some(savepoint) => savepoint.meter_mods.push((meter, asked.clone(), now)),
            None => locked(&meter).configure(asked, now),
        }
    }
}
