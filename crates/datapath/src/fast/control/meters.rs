//! Meter-mods (clause 6.6) and the statistics of meters.
//!
//! A meter is shared with the forwarders as a whole, since a rate is one for all of them: a
//! forwarder that meters a packet, or a change of the meter, holds its lock for that moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openflow::flow::FlowRemovedReason;
use openflow::meter::{MeterConfig, MeterFeatures, MeterMod, MeterModCommand, MeterStats};
use openflow::{Error, MeterId};

use super::sweep::{AT_ONCE, CommandProgress, SweptCommand};
use super::{CommandCounts, Control};
use crate::fast::op::Change;
use crate::features;
use crate::meters::{Meter, check};
use crate::pending_delete::{PendingDelete, PendingDeletes};
use crate::time::Nanos;

/// The meter, whatever a thread that broke off has left: counts and tokens are always whole.
pub(crate) fn locked(meter: &Mutex<Meter>) -> MutexGuard<'_, Meter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A meter, and its age: meters that came earlier have lower ones.
#[derive(Clone, Debug)]
struct MeterRecord {
    seq: u64,
    meter: Arc<Mutex<Meter>>,
}

/// The meters.
#[derive(Clone, Debug, Default)]
pub(super) struct MeterTable {
    records: BTreeMap<MeterId, MeterRecord>,
    /// Those that are done in pieces.
    deletes: PendingDeletes<MeterId>,
    /// The age of the next meter.
    next_seq: u64,
}

impl MeterTable {
    pub(super) fn get(&self, id: MeterId) -> Option<&Arc<Mutex<Meter>>> {
        self.records.get(&id).map(|record| &record.meter)
    }

    fn len(&self) -> usize {
        self.records.len()
    }

    fn insert(&mut self, id: MeterId, meter: Arc<Mutex<Meter>>) {
        self.records.insert(id, MeterRecord { seq: self.next_seq, meter });
        self.next_seq += 1;
    }

    /// Whether entries may name a meter: it is there, and no delete of it is under way.
    pub(super) fn is_nameable(&self, id: MeterId) -> bool {
        self.records.get(&id).is_some_and(|record| !self.deletes.mean(id, record.seq))
    }

    /// Whether a delete selects a meter.
    pub(super) fn is_selected(&self, delete: &PendingDelete<MeterId>, id: MeterId) -> bool {
        self.records.get(&id).is_some_and(|record| delete.selects(id, record.seq))
    }
}

impl Control {
    /// Changes a meter as [`Self::meter_mod`] does, or begins with it when that may mean many
    /// meters or entries.
    ///
    /// # Errors
    /// Those of [`Self::meter_mod`].
    pub fn begin_meter_mod(
        &mut self,
        asked: &MeterMod,
        now: Nanos,
    ) -> Result<CommandProgress, Error> {
        if asked.command != MeterModCommand::Delete || !self.is_used_by_many(asked, AT_ONCE) {
            return self.meter_mod(asked, now).map(CommandProgress::Done);
        }
        Ok(self.begin_meter_delete(asked.meter_id))
    }

    pub(super) fn begin_meter_delete(&mut self, id: MeterId) -> CommandProgress {
        let id = Some(id).filter(|id| *id != MeterId::ALL);
        let delete = self.meters.deletes.begin(id, self.meters.next_seq);
        self.new_sweep(SweptCommand::MeterDelete { delete, after: None })
    }

    fn is_used_by_many(&self, asked: &MeterMod, at_once: usize) -> bool {
        let id = asked.meter_id;
        id == MeterId::ALL && self.meters.len() > at_once
            || self.store.instruction_lists.has_more_meter_users(id, at_once)
    }

    /// Deletes meters whose entries are gone, looking at up to `most` after `after`; the last
    /// that was looked at, or none at the end.
    pub(super) fn delete_some_meters(
        &mut self,
        delete: &PendingDelete<MeterId>,
        after: Option<MeterId>,
        meters_max: usize,
    ) -> Option<MeterId> {
        let seq = |record: &MeterRecord| record.seq;
        let (gone, last) = delete.selected_in(&self.meters.records, seq, after, meters_max);
        for id in gone {
            self.meters.records.remove(&id);
            self.emit_op(Change::Meter { id, meter: None });
        }
        last
    }

    /// Changes a meter (clause 6.6); a deleted meter takes the entries that use it along.
    ///
    /// # Errors
    /// Those of clause 6.6, found before anything is changed.
    pub fn meter_mod(&mut self, asked: &MeterMod, now: Nanos) -> Result<CommandCounts, Error> {
        let id = asked.meter_id;
        self.note_meters();
        match asked.command {
            MeterModCommand::Add => {
                check(asked, &self.config)?;
                if self.meters.get(id).is_some() {
                    return Err(Error::MeterModMeterExists);
                }
                if self.meters.len() >= self.config.max_meters as usize {
                    return Err(Error::MeterModOutOfMeters);
                }
                let need = self.meters_peak.need(self.meters.len());
                if !self.memory_allows(need, std::mem::size_of_val(asked.bands.as_slice())) {
                    return Err(Error::MeterModOutOfMeters);
                }
                let meter = Arc::new(Mutex::new(Meter::new(asked, now)));
                self.meters.insert(id, Arc::clone(&meter));
                self.emit_op(Change::Meter { id, meter: Some(meter) });
                Ok(CommandCounts::default())
            }
            MeterModCommand::Modify => {
                check(asked, &self.config)?;
                let meter = self.meters.get(id).filter(|_| self.meters.is_nameable(id));
                let meter = Arc::clone(meter.ok_or(Error::MeterModUnknownMeter)?);
                self.configure_meter(Arc::clone(&meter), asked, now);
                self.emit_op(Change::Meter { id, meter: Some(meter) });
                Ok(CommandCounts::default())
            }
            MeterModCommand::Delete => {
                let gone: Vec<MeterId> = if id == MeterId::ALL {
                    self.meters.records.keys().copied().collect()
                } else {
                    self.meters.get(id).map(|_| id).into_iter().collect()
                };
                Ok(self.delete_meters(&gone, now))
            }
            MeterModCommand::Unknown(_) => Err(Error::MeterModBadCommand),
        }
    }

    fn delete_meters(&mut self, gone: &[MeterId], now: Nanos) -> CommandCounts {
        let with_meter =
            |id: &MeterId| self.store.instruction_lists.with_meter(&self.store.slab, *id);
        let users = gone.iter().flat_map(with_meter).collect();
        let done = self.remove_users(users, FlowRemovedReason::MeterDelete, now);
        for id in gone {
            self.meters.records.remove(id);
            self.emit_op(Change::Meter { id: *id, meter: None });
        }
        done
    }

    fn wanted_meters(&self, id: MeterId) -> Result<Vec<(MeterId, &Mutex<Meter>)>, Error> {
        if id == MeterId::ALL {
            let all = self.meters.records.iter();
            return Ok(all.map(|(id, record)| (*id, &*record.meter)).collect());
        }
        Ok(vec![(id, self.meters.get(id).ok_or(Error::MeterModUnknownMeter)?)])
    }

    /// Counters of a meter, or of all ([`MeterId::ALL`]).
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    pub fn meter_stats(&self, meter: MeterId, now: Nanos) -> Result<Vec<MeterStats>, Error> {
        let stats = |(id, meter): (MeterId, &Mutex<Meter>)| {
            locked(meter).stats(id, now, self.store.instruction_lists.meter_users(id))
        };
        Ok(self.wanted_meters(meter)?.into_iter().map(stats).collect())
    }

    /// Configuration of a meter, or of all ([`MeterId::ALL`]).
    ///
    /// # Errors
    /// `OFPMMFC_UNKNOWN_METER`.
    pub fn meter_config(&self, meter: MeterId) -> Result<Vec<MeterConfig>, Error> {
        let config = |(id, meter): (MeterId, &Mutex<Meter>)| locked(meter).config(id);
        Ok(self.wanted_meters(meter)?.into_iter().map(config).collect())
    }

    /// Features of meters.
    #[must_use]
    pub fn meter_features(&self) -> MeterFeatures {
        features::meter_features(&self.config)
    }
}
