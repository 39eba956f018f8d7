//! What a walk reads of a datapath.
//!
//! The walk of the reference also writes the traces of other datapaths, over their state: so a
//! trace says in every datapath what the specification says, and a test compares it with what the
//! datapath does.

use std::borrow::Cow;

use openflow::{Instruction, Match, MeterId, PortNo, TableId};
use packet::FlowKey;

use super::Reference;
use crate::action_set::Origin;
use crate::config::Settings;
use crate::groups::Groups;
use crate::macs::Station;
use crate::meters::Meter;
use crate::ports::Ports;
use crate::time::Nanos;

/// A flow entry that a packet matched.
#[derive(Clone, Debug)]
pub(crate) struct MatchedEntry<'a> {
    /// Where it stands, for the one whose state it is.
    pub(crate) place: usize,
    pub(crate) priority: u16,
    pub(crate) origin: Origin,
    pub(crate) matching: Cow<'a, Match>,
    pub(crate) instructions: &'a [Instruction],
}

/// The state that packets find.
pub(crate) trait View {
    /// The treatments.
    fn settings(&self) -> &Settings;

    /// The groups.
    fn groups(&self) -> &Groups;

    /// The ports.
    fn ports(&self) -> &Ports;

    /// A meter.
    fn meter(&self, id: MeterId) -> Option<Cow<'_, Meter>>;

    /// Where `NORMAL` knows a station to be.
    fn station(&self, station: Station, now: Nanos) -> Option<PortNo>;

    /// The entry of a table that a packet matches.
    fn lookup(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<MatchedEntry<'_>>;
}

impl View for Reference {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn ports(&self) -> &Ports {
        &self.ports
    }

    fn meter(&self, id: MeterId) -> Option<Cow<'_, Meter>> {
        self.meters.get(id).map(Cow::Borrowed)
    }

    fn station(&self, station: Station, now: Nanos) -> Option<PortNo> {
        self.macs.port(station, &self.config, now)
    }

    fn lookup(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<MatchedEntry<'_>> {
        let (place, entry) = self.tables.get(usize::from(table.0))?.lookup(key, now)?;
        Some(MatchedEntry {
            place,
            priority: entry.priority,
            origin: entry.origin(table),
            matching: Cow::Borrowed(&entry.matching),
            instructions: &entry.instructions,
        })
    }
}
