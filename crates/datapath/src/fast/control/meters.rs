//! Meter-mods (clause 6.6) and the statistics of meters.
//!
//! A meter is shared with the forwarders as a whole, since a rate is one for all of them: whoever
//! meters a packet or changes the meter holds its lock for that moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openflow::flow::FlowRemovedReason;
use openflow::meter::{MeterConfig, MeterFeatures, MeterMod, MeterModCommand, MeterStats};
use openflow::{Error, MeterId};

use super::{CommandCounts, Control};
use crate::fast::op::Change;
use crate::features;
use crate::meters::{Meter, check};
use crate::time::Nanos;

/// The meter, whatever a thread that broke off has left: counts and tokens are always whole.
pub(crate) fn locked(meter: &Mutex<Meter>) -> MutexGuard<'_, Meter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    /// Changes a meter (clause 6.6); a deleted meter takes the entries that use it along.
    ///
    /// # Errors
    /// Those of clause 6.6, found before anything is changed.
    pub fn meter_mod(&mut self, asked: &MeterMod, now: Nanos) -> Result<CommandCounts, Error> {
        let id = asked.meter_id;
        match asked.command {
            MeterModCommand::Add => {
                check(asked, &self.config)?;
                if self.meters.contains_key(&id) {
                    return Err(Error::MeterModMeterExists);
                }
                if self.meters.len() >= self.config.max_meters as usize {
                    return Err(Error::MeterModOutOfMeters);
                }
                let need = self.meters_peak.need(self.meters.len());
                if !self.memory_allows(need) {
                    return Err(Error::MeterModOutOfMeters);
                }
                let meter = Arc::new(Mutex::new(Meter::new(asked, now)));
                self.meters.insert(id, Arc::clone(&meter));
                self.emit_op(Change::Meter { id, meter: Some(meter) });
                Ok(CommandCounts::default())
            }
            MeterModCommand::Modify => {
                check(asked, &self.config)?;
                let meter = self.meters.get(&id).ok_or(Error::MeterModUnknownMeter)?;
                locked(meter).configure(asked, now);
                let meter = Some(Arc::clone(meter));
                self.emit_op(Change::Meter { id, meter });
                Ok(CommandCounts::default())
            }
            MeterModCommand::Delete => {
                let gone: Vec<MeterId> = if id == MeterId::ALL {
                    self.meters.keys().copied().collect()
                } else {
                    self.meters.get(&id).map(|_| id).into_iter().collect()
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
        // 1.3 has no reason of its own for this.
        let done = self.remove_users(users, FlowRemovedReason::Delete, now);
        for id in gone {
            self.meters.remove(id);
            self.emit_op(Change::Meter { id: *id, meter: None });
        }
        done
    }

    fn wanted_meters(&self, id: MeterId) -> Result<Vec<(MeterId, &Mutex<Meter>)>, Error> {
        if id == MeterId::ALL {
            return Ok(self.meters.iter().map(|(id, meter)| (*id, &**meter)).collect());
        }
        Ok(vec![(id, self.meters.get(&id).ok_or(Error::MeterModUnknownMeter)?)])
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

    /// What meters can do.
    #[must_use]
    pub fn meter_features(&self) -> MeterFeatures {
        features::meter_features(&self.config)
    }
}
