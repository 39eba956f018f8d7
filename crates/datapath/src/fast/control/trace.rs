//! Traces: the walk of the reference over control's state.
//!
//! Not over a forwarder's, so that nobody has to stop one. A trace shows what packets do when
//! every op is applied. It must change nothing, neither a counter nor a meter.

use std::borrow::Cow;

use openflow::{MeterId, PortNo, TableId};
use packet::{FlowKey, PacketBuf};

use super::Control;
use super::meters::locked;
use super::tuples::Tuple;
use crate::config::Settings;
use crate::fast::op::EntryId;
use crate::groups::Groups;
use crate::macs::Station;
use crate::meters::Meter;
use crate::ports::Ports;
use crate::reassembly::{Fate, concerns};
use crate::reference::{MatchedEntry, View, Walk};
use crate::time::Nanos;
use crate::trace::Trace;
use crate::verdict::Out;

impl Control {
    /// The way that a frame from a port would take, changing no counter and no meter.
    #[must_use]
    pub fn trace(&self, frame: PacketBuf, in_port: PortNo, now: Nanos) -> Trace {
        let mut out = Out::new();
        let mut walk = Walk::new(self, now, &mut out).recording();
        let port = self.ports.get(in_port);
        let lets_in = port.is_some_and(|port| port.refuses_rx(frame.bytes()).is_none());
        let fate = if lets_in && concerns(&self.settings, frame.bytes()) {
            // On a copy: a trace changes nothing.
            let mut kept = self.shared.with_reassembler(|kept| kept.clone());
            kept.reassemble(frame.bytes(), in_port, now).fate
        } else {
            Fate::Itself
        };
        walk.ingress(frame, in_port, fate);
        let steps = walk.into_steps();
        Trace { steps, verdicts: out.drain().collect() }
    }

    fn is_over(&self, number: u32, now: Nanos) -> bool {
        let life = self.store.slab.get(number).life();
        life.is_limited() && life.is_over(self.shared.last_used(EntryId(number)), now)
    }
}

/// The values that a packet has in the words of a tuple, if it has the tuple's fields at all.
fn projected(key: &FlowKey, tuple: &Tuple) -> Option<Vec<u64>> {
    let present = tuple.mask.present();
    let words = tuple.mask.words().iter();
    let value = words.map(|word| key.words()[usize::from(word.index)] & word.bits);
    (key.present() & present == present).then(|| value.collect())
}

impl View for Control {
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
        self.meters.get(&id).map(|meter| Cow::Owned(locked(meter).clone()))
    }

    fn station(&self, station: Station, now: Nanos) -> Option<PortNo> {
        self.shared.with_macs(|macs| macs.port(station, &self.config, now))
    }

    fn lookup(&self, table: TableId, key: &FlowKey, now: Nanos) -> Option<MatchedEntry<'_>> {
        let tuples = self.store.tuples.of_table(table).iter();
        let matched = tuples.filter_map(|number| {
            let tuple = self.store.tuples.get(*number)?;
            let value = projected(key, tuple)?;
            let same = self.store.with_value(*number, &value);
            same.filter(|number| !self.is_over(*number, now))
                .min_by_key(|matched| self.rank(*matched))
        });
        let number = matched.min_by_key(|number| self.rank(*number))?;
        let entry = self.store.slab.get(number);
        let compiled = self.store.tuple(entry).compiled(entry.at);
        Some(MatchedEntry {
            place: number as usize,
            priority: entry.priority,
            origin: entry.origin(table, compiled.is_any()),
            matching: Cow::Owned(compiled.matching()),
            instructions: &self.store.instruction_lists.get(entry.instruction_list).instructions,
        })
    }
}

impl Control {
    /// Lower for the entry that wins.
    fn rank(&self, number: u32) -> (u32, u64) {
        let entry = self.store.slab.get(number);
        (entry.precedence().order(), entry.seq)
    }
}
