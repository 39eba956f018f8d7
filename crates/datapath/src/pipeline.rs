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
use openflow::table::{TableFeatures, TableMod};
use openflow::{BitRange, Error, Field, TableId, Version};

use self::limits::Limits;
use crate::config::DatapathConfig;

/// The bits of a table's settings that 1.3 keeps without a meaning (`OFPTC_DEPRECATED_MASK`).
const CONFIG_DEPRECATED: u32 = 3;

/// One flow table that there is.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    config: u32,
    /// None where it holds everything that runs.
    limits: Option<Box<Limits>>,
}

/// A flow table as it is configured, beside what controllers set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// Its name; empty for none.
    pub name: String,
    /// Most entries; `None` for as many as any table.
    pub max_entries: Option<u32>,
    /// Whether a full table makes room for a new entry, by one that has a timeout.
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
}

impl Pipeline {
    /// All tables, each with everything that runs.
    pub(crate) fn new(config: &DatapathConfig) -> Self {
        let table = Table { name: String::new(), config: 0, limits: None };
        Self {
            n_tables: config.n_tables,
            max_entries: config.max_entries,
            configured: BTreeMap::new(),
            tables: vec![Some(table); config.n_tables.into()],
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
        let table = self.configured.get(&table_id).filter(|table| table.evicts)?;
        Some(&table.eviction_groups)
    }

    /// The tables that make room for new entries.
    pub(crate) fn evicting(&self) -> Vec<TableId> {
        let evicting = self.configured.iter().filter(|(_, table)| table.evicts);
        evicting.map(|(number, _)| *number).collect()
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
            let mut features = match &table.limits {
                Some(limits) => limits.features(version, id, &table.name, table.config),
                None => self.full(id).features(version, id, &table.name, table.config),
            };
            features.max_entries = self.max_entries(id);
            Some(features)
        };
        (0..self.n_tables).zip(&self.tables).filter_map(features).collect()
    }

    fn full(&self, table_id: TableId) -> Limits {
        Limits::full(table_id, self.n_tables, self.most(table_id))
    }

    /// Settings of every table.
    pub(crate) fn descriptions(&self) -> Vec<TableMod> {
        let config = |number: u8| self.tables.get(usize::from(number))?.as_ref();
        let of = |number| Some(TableMod::new(TableId(number), config(number)?.config));
        (0..self.n_tables).filter_map(of).collect()
    }

    /// Takes a table-mod: its settings mean nothing in 1.3, but are kept (clause 7.3.3). No table
    /// evicts entries or sends vacancy events.
    ///
    /// # Errors
    /// `OFPTMFC_BAD_TABLE`, `OFPTMFC_BAD_CONFIG`, `OFPBPC_BAD_TYPE` for a property.
    pub(crate) fn table_mod(&mut self, asked: &TableMod) -> Result<(), Error> {
        let selected = self.selected(asked.table_id).ok_or(Error::TableModBadTable)?;
        if asked.config & !CONFIG_DEPRECATED != 0 {
            return Err(Error::TableModBadConfig);
        }
        if asked.eviction.is_some() || asked.vacancy.is_some() {
            return Err(Error::BadPropertyBadType);
        }
        let tables = self.tables.iter_mut().take(selected.end.into()).skip(selected.start.into());
        for table in tables.flatten() {
            table.config = asked.config;
        }
        Ok(())
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
            if features.config & !CONFIG_DEPRECATED != 0 {
                return Err(Error::TableFeaturesBadArgument);
            }
            let full = self.full(features.table_id);
            let limits = Limits::of(features, version)?.with_fields_after(version, &full);
            if !limits.within(&full) {
                return Err(Error::TableFeaturesBadArgument);
            }
            let limits = (limits != full).then(|| Box::new(limits));
            *place = Some(Table { name: features.name.clone(), config: features.config, limits });
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
