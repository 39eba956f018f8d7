//! The flow tables and the limits of each, as a controller has set them (clause 7.3.5.5).
//!
//! At first every table holds everything that runs. A set of table features replaces the whole
//! pipeline: a table that it does not name is gone, one that it names may from then on hold what
//! was asked for and nothing else, and its entries go where that differs from before. What is not
//! within what runs is refused, and then nothing has changed. Tables without limits cost a flow-mod
//! one look.

mod check;
mod limits;

use std::collections::BTreeMap;

use openflow::flow::FlowMod;
use openflow::table::{TableFeatures, TableMod, TableReason, TableStatus, Vacancy};
use openflow::{BitRange, Error, Field, TableId, Version};

use self::limits::Limits;
use crate::config::DatapathConfig;

/// The bits of a table's settings that 1.3 keeps without a meaning (`OFPTC_DEPRECATED_MASK`).
const CONFIG_DEPRECATED: u32 = 3;

/// Bits since 1.4: what a table can do, in its features, and what it does, in its settings.
const CONFIG_OF_1_4: u32 = TableMod::EVICTION | TableMod::VACANCY_EVENTS;

/// The rule by which a table evicts (`OFPTMPEF_OTHER`, `_IMPORTANCE`, `_LIFETIME`).
const EVICTION_FLAGS: u32 = 7;

/// One flow table that there is.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    /// The bits without a meaning.
    config: u32,
    /// Whether a controller lets it make room for new entries.
    evicts: bool,
    vacancy: Option<VacancyEvents>,
    /// None where it holds everything that runs.
    limits: Option<Box<Limits>>,
}

/// The vacancy events of a table (clause 7.3.4.6 of 1.4), in per cent of its size.
#[derive(Clone, Copy, Debug)]
struct VacancyEvents {
    down: u8,
    up: u8,
    /// The event that comes next: the two come in turns.
    next: TableReason,
}

/// A flow table as it is configured, beside what controllers set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// Its name; empty for none.
    pub name: String,
    /// Most entries; `None` for as many as any table.
    pub max_entries: Option<u32>,
    /// Whether a full table makes room for a new entry, by one that has a timeout. A controller's
    /// table-mod may ask for that too.
    pub evicts: bool,
    /// Parts of fields by which the entries are grouped: the largest group makes room.
    pub eviction_groups: Vec<(Field, BitRange)>,
}

/// The flow tables, by number; none where a table is gone.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    n_tables: u8,
    max_entries: u32,
    configured: BTreeMap<TableId, FlowTable>,
    tables: Vec<Option<Table>>,
    /// Whether any table has vacancy events.
    has_vacancy_events: bool,
}

impl Pipeline {
    /// All tables, each with everything that runs.
    pub(crate) fn new(config: &DatapathConfig) -> Self {
        let name = String::new();
        let table = Table { name, config: 0, evicts: false, vacancy: None, limits: None };
        Self {
            n_tables: config.n_tables,
            max_entries: config.max_entries,
            configured: BTreeMap::new(),
            tables: vec![Some(table); config.n_tables.into()],
            has_vacancy_events: false,
        }
    }

    fn get(&self, table_id: TableId) -> Option<&Table> {
        self.tables.get(usize::from(table_id.0))?.as_ref()
    }

    /// Whether there is such a table.
    pub(crate) fn has(&self, table_id: TableId) -> bool {
        self.get(table_id).is_some()
    }

    /// The tables that a number names: itself, or all; none when there is no such table.
    pub(crate) fn selected(&self, table_id: TableId) -> Option<std::ops::Range<u8>> {
        if table_id == TableId::ALL {
            Some(0..self.n_tables)
        } else {
            self.has(table_id).then(|| table_id.0..table_id.0 + 1)
        }
    }

    /// The tables in which a modify or delete looks.
    ///
    /// # Errors
    /// `OFPFMFC_BAD_TABLE_ID` when there is no such table.
    pub(crate) fn tables_selected_by(
        &self,
        flow_mod: &FlowMod,
    ) -> Result<std::ops::Range<u8>, Error> {
        self.selected(flow_mod.table_id).ok_or(Error::FlowModBadTableId)
    }

    /// Most entries of a table.
    pub(crate) fn max_entries(&self, table_id: TableId) -> u32 {
        let limits = self.get(table_id).and_then(|table| table.limits.as_ref());
        let most = self.most(table_id);
        limits.map_or(most, |limits| limits.max_entries.min(most))
    }

    /// Most entries of a table, whatever controllers set.
    fn most(&self, table_id: TableId) -> u32 {
        let own = self.configured.get(&table_id).and_then(|table| table.max_entries);
        own.map_or(self.max_entries, |own| own.min(self.max_entries))
    }

    /// The parts of fields by which a full table groups its entries to make room for a new one;
    /// none where it refuses that.
    pub(crate) fn eviction_groups(&self, table_id: TableId) -> Option<&[(Field, BitRange)]> {
        let configured = self.configured.get(&table_id);
        let is_asked = || self.get(table_id).is_some_and(|table| table.evicts);
        let evicts = configured.is_some_and(|table| table.evicts) || is_asked();
        evicts.then(|| configured.map_or(&[][..], |table| &table.eviction_groups))
    }

    /// The tables that make room for new entries.
    pub(crate) fn evicting(&self) -> Vec<TableId> {
        let tables = (0..self.n_tables).map(TableId);
        tables.filter(|number| self.eviction_groups(*number).is_some()).collect()
    }

    /// Other names and limits of single tables. Where a table has more entries, they stay, and
    /// further ones are refused.
    pub(crate) fn configure(&mut self, configured: BTreeMap<TableId, FlowTable>) {
        for (number, table) in (0..self.n_tables).map(TableId).zip(&mut self.tables) {
            let name = |all: &BTreeMap<TableId, FlowTable>| {
                all.get(&number).map(|table| table.name.clone()).unwrap_or_default()
            };
            let (before, name) = (name(&self.configured), name(&configured));
            if let Some(table) = table.as_mut().filter(|_| before != name) {
                table.name = name;
            }
        }
        self.configured = configured;
    }

    /// Another limit of entries, for every table whose features were not set to fewer.
    pub(crate) fn set_max_entries(&mut self, max_entries: u32) {
        self.max_entries = max_entries;
        for table in self.tables.iter_mut().flatten() {
            if let Some(limits) = &mut table.limits {
                limits.max_entries = limits.max_entries.min(max_entries);
            }
        }
    }

    /// The tables with their names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = (TableId, &str)> {
        let tables = (0..self.n_tables).zip(&self.tables);
        tables.filter_map(|(number, table)| Some((TableId(number), table.as_ref()?.name.as_str())))
    }

    /// Features of every table, for a controller of the version.
    pub(crate) fn features(&self, version: Version) -> Vec<TableFeatures> {
        let features = |(number, table): (u8, &Option<Table>)| {
            let table = table.as_ref()?;
            let id = TableId(number);
            let abilities = if version.has_table_eviction() { CONFIG_OF_1_4 } else { 0 };
            let config = table.config | abilities;
            let mut features = match &table.limits {
                Some(limits) => limits.features(version, id, &table.name, config),
                None => self.full(id).features(version, id, &table.name, config),
            };
            features.max_entries = self.max_entries(id);
            Some(features)
        };
        (0..self.n_tables).zip(&self.tables).filter_map(features).collect()
    }

    fn full(&self, table_id: TableId) -> Limits {
        Limits::full(table_id, self.n_tables, self.most(table_id))
    }

    /// Settings of every table. `active` says how many entries a table has.
    pub(crate) fn descriptions(&self, active: impl Fn(TableId) -> u32) -> Vec<TableMod> {
        let describe = |number| self.description(number, active(number));
        (0..self.n_tables).map(TableId).filter_map(describe).collect()
    }

    fn description(&self, number: TableId, active: u32) -> Option<TableMod> {
        let table = self.get(number)?;
        let evicts = if table.evicts { TableMod::EVICTION } else { 0 };
        let reports = if table.vacancy.is_some() { TableMod::VACANCY_EVENTS } else { 0 };
        let vacancy = |of: VacancyEvents| Vacancy {
            down: of.down,
            up: of.up,
            now: self.vacancy(number, active),
        };
        Some(TableMod {
            eviction: Some(EVICTION_FLAGS),
            vacancy: table.vacancy.map(vacancy),
            ..TableMod::new(number, table.config | evicts | reports)
        })
    }

    /// The part of a table with this number of entries that is vacant, in per cent.
    fn vacancy(&self, number: TableId, active: u32) -> u8 {
        let most = u64::from(self.max_entries(number));
        let vacant = most.saturating_sub(active.into());
        (vacant * 100).checked_div(most).unwrap_or(0) as u8
    }

    /// Takes a table-mod: its settings mean nothing in 1.3, but are kept (clause 7.3.3). Since 1.4
    /// they are eviction and vacancy events. `active` says how many entries a table has.
    ///
    /// # Errors
    /// `OFPTMFC_BAD_TABLE`; `OFPTMFC_BAD_CONFIG`, also for another rule of eviction than there is;
    /// `OFPBPC_BAD_VALUE` for bounds of the vacancy that are none.
    pub(crate) fn table_mod(
        &mut self,
        asked: &TableMod,
        version: Version,
        active: impl Fn(TableId) -> u32,
    ) -> Result<(), Error> {
        let selected = self.selected(asked.table_id).ok_or(Error::TableModBadTable)?;
        let of_version = if version.has_table_eviction() { CONFIG_OF_1_4 } else { 0 };
        if asked.config & !(CONFIG_DEPRECATED | of_version) != 0
            || asked.eviction.is_some_and(|flags| flags != EVICTION_FLAGS)
        {
            return Err(Error::TableModBadConfig);
        }
        let bounds = asked.vacancy.unwrap_or(Vacancy { down: 0, up: 0, now: 0 });
        if bounds.now != 0 || bounds.up > 100 || bounds.down > bounds.up {
            return Err(Error::BadPropertyBadValue);
        }
        for number in selected.map(TableId) {
            let vacancy = self.vacancy(number, active(number));
            let Some(Some(table)) = self.tables.get_mut(usize::from(number.0)) else { continue };
            table.config = asked.config & CONFIG_DEPRECATED;
            if !version.has_table_eviction() {
                continue;
            }
            table.evicts = asked.config & TableMod::EVICTION != 0;
            let is_low = vacancy < bounds.up;
            let first = if is_low { TableReason::VacancyUp } else { TableReason::VacancyDown };
            let next = table.vacancy.map_or(first, |events| events.next);
            let events = VacancyEvents { down: bounds.down, up: bounds.up, next };
            table.vacancy = (asked.config & TableMod::VACANCY_EVENTS != 0).then_some(events);
        }
        self.note_vacancy_events();
        Ok(())
    }

    fn note_vacancy_events(&mut self) {
        let mut tables = self.tables.iter().flatten();
        self.has_vacancy_events = tables.any(|table| table.vacancy.is_some());
    }

    /// The vacancy events that are due, each once. `active` says how many entries a table has.
    pub(crate) fn take_events(&mut self, active: impl Fn(TableId) -> u32) -> Vec<TableStatus> {
        if !self.has_vacancy_events {
            return Vec::new();
        }
        let mut due = Vec::new();
        for number in (0..self.n_tables).map(TableId) {
            let Some(events) = self.get(number).and_then(|table| table.vacancy) else { continue };
            let vacancy = self.vacancy(number, active(number));
            let (reason, next) = match events.next {
                TableReason::VacancyDown if vacancy < events.down => {
                    (TableReason::VacancyDown, TableReason::VacancyUp)
                }
                TableReason::VacancyUp if vacancy > events.up => {
                    (TableReason::VacancyUp, TableReason::VacancyDown)
                }
                TableReason::VacancyDown | TableReason::VacancyUp | TableReason::Unknown(_) => {
                    continue;
                }
            };
            let table = self.description(number, active(number));
            due.extend(table.map(|table| TableStatus { reason, table }));
            if let Some(Some(table)) = self.tables.get_mut(usize::from(number.0)) {
                table.vacancy = Some(VacancyEvents { next, ..events });
            }
        }
        due
    }

    /// Replaces the pipeline, as a controller of the version asks; the tables whose entries go,
    /// because the table is gone or may hold something else than before.
    ///
    /// # Errors
    /// `OFPTFFC_*`: a table that cannot exist, stands twice, or is the first one and missing
    /// (`BAD_TABLE`); metadata that is matched or written by no bit (`BAD_METADATA`); a property of
    /// somebody's own (`BAD_TYPE`); a property that is missing, stands twice, or asks for what does
    /// not run (`BAD_ARGUMENT`).
    pub(crate) fn set(
        &mut self,
        asked: &[TableFeatures],
        version: Version,
    ) -> Result<Vec<TableId>, Error> {
        let mut new: Vec<Option<Table>> = vec![None; self.tables.len()];
        for features in asked {
            let place = new.get_mut(usize::from(features.table_id.0));
            let place = place.ok_or(Error::TableFeaturesBadTable)?;
            if place.is_some() {
                return Err(Error::TableFeaturesBadTable);
            }
            let of_version = if version.has_table_eviction() { CONFIG_OF_1_4 } else { 0 };
            if features.config & !(CONFIG_DEPRECATED | of_version) != 0 {
                return Err(Error::TableFeaturesBadArgument);
            }
            let full = self.full(features.table_id);
            let limits = Limits::of(features, version)?.with_fields_after(version, &full);
            if !limits.within(&full) {
                return Err(Error::TableFeaturesBadArgument);
            }
            let limits = (limits != full).then(|| Box::new(limits));
            let before = self.get(features.table_id);
            *place = Some(Table {
                name: features.name.clone(),
                config: features.config & CONFIG_DEPRECATED,
                evicts: before.is_some_and(|table| table.evicts),
                vacancy: before.and_then(|table| table.vacancy),
                limits,
            });
        }
        let has = |id: &TableId| new.get(usize::from(id.0)).is_some_and(Option::is_some);
        if !has(&TableId(0)) {
            return Err(Error::TableFeaturesBadTable);
        }
        let is_whole = new.iter().all(Option::is_some);
        let leads_nowhere = |(number, table): (u8, &Option<Table>)| match table {
            Some(Table { limits: Some(limits), .. }) => !limits.next_tables().all(&has),
            // A table without limits leads to every later one.
            Some(_) => !is_whole && (number + 1..self.n_tables).any(|next| !has(&TableId(next))),
            None => false,
        };
        if (0..self.n_tables).zip(&new).any(leads_nowhere) {
            return Err(Error::TableFeaturesBadArgument);
        }
        let differs = |(old, new): (&Option<Table>, &Option<Table>)| {
            old.as_ref().map(|table| &table.limits) != new.as_ref().map(|table| &table.limits)
        };
        let pairs = (0..self.n_tables).zip(self.tables.iter().zip(&new));
        let changed = pairs.filter(|(_, pair)| differs(*pair)).map(|(number, _)| TableId(number));
        let changed = changed.collect();
        self.tables = new;
        self.note_vacancy_events();
        Ok(changed)
    }

    /// Checks an add or modify against what its table may hold.
    ///
    /// # Errors
    /// `OFPFMFC_BAD_TABLE_ID`, and for what the table may not hold `OFPBMC_BAD_FIELD`, `_BAD_MASK`
    /// or `_BAD_WILDCARDS`, `OFPBIC_UNSUP_INST`, `_BAD_TABLE_ID` or `_UNSUP_METADATA_MASK`,
    /// `OFPBAC_BAD_TYPE` or `_BAD_SET_TYPE`.
    pub(crate) fn check(&self, flow_mod: &FlowMod, version: Version) -> Result<(), Error> {
        let table =
            self.get(table_of_new_entry(flow_mod, version)).ok_or(Error::FlowModBadTableId)?;
        match &table.limits {
            Some(limits) => limits.check(flow_mod, version),
            None => Ok(()),
        }
    }
}

/// The table of the entry that a flow-mod adds: the first for one of 1.0 that means all, as a
/// modify that selects entries wherever they reside (its clause 4.6) and finds none.
pub(crate) fn table_of_new_entry(flow_mod: &FlowMod, version: Version) -> TableId {
    let is_of_all = flow_mod.table_id == TableId::ALL && !version.has_pipeline();
    if is_of_all { TableId(0) } else { flow_mod.table_id }
}

#[cfg(test)]
mod tests;
