//! `NORMAL` in the kernel tier: entries between two stations that are known, and what ends them.
//!
//! If a learning switch decides, the tier's key has both addresses and the VLAN too, and an entry
//! is for packets between its two stations. It ends when one of them moves, in every shard of the
//! bridge, before the next turn of the shard that saw it; and it holds no longer than both
//! addresses are young enough. The worker learns nothing from what the kernel forwards, so that is
//! credited to the source's address with the packets: its lease ends after half of the ageing time,
//! and goes on from when it was used last. An address that no port has seen is never decided about.

use openflow::{Field, PortNo};
use packet::{PacketBuf, Shape};

use super::{Core, KernelTable, Lease, Proposal, Slot, TIER_BYTES, Tier};
use crate::fast::forwarder::compile::compile_switched;
use crate::fast::forwarder::path::Steps;
use crate::fast::forwarder::program::{CompiledProgram, Decided};
use crate::fast::forwarder::replica::{Replica, ReplicaEntry};
use crate::fast::forwarder::versions::INDICES;
use crate::fast::shared::slot_of;
use crate::fast::sys::ShapeMasks;
use crate::macs::Station;
use crate::time::Nanos;

/// The fields that `NORMAL` looks at.
const FIELDS: [Field; 3] = [Field::EthDst, Field::EthSrc, Field::VlanVid];

/// A station that a decision hangs on, and the port that it is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast::forwarder) struct UsedStation {
    pub(in crate::fast::forwarder) station: Station,
    pub(in crate::fast::forwarder) port: PortNo,
    /// Whether it has sent the packets, which keeps its address young.
    pub(in crate::fast::forwarder) is_source: bool,
}

impl UsedStation {
    /// The index that its entries are listed under, beside those of values.
    pub(super) fn index(&self) -> u16 {
        INDICES + slot_of(self.station)
    }
}

/// Masks that have what `NORMAL` looks at as well.
pub(super) fn with_stations(masks: &ShapeMasks) -> ShapeMasks {
    let mut masks = masks.clone();
    for (index, mask) in masks.0.iter_mut().enumerate() {
        let Some(shape) = Shape::from_index(index) else { continue };
        for field in FIELDS {
            shape.mask_of(field, field.full_mask(), |at, bits| {
                if let Some(byte) = mask.get_mut(at) {
                    *byte |= bits;
                }
            });
        }
    }
    masks
}

impl Lease {
    /// The same, but no longer than these stations stay at their ports and are young enough; the
    /// source for half of the time, so that the worker looks before it is over.
    pub(super) fn of_stations(mut self, stations: &[UsedStation], replica: &Replica) -> Self {
        if stations.is_empty() {
            return self;
        }
        replica.shared().with_macs(|macs| {
            let age_ns = macs.age_ns(&replica.config);
            for used in stations {
                let for_ns = if used.is_source { age_ns / 2 } else { age_ns };
                let seen = macs.seen_at(used.station, used.port);
                let until = seen.map_or(Nanos(0), |at| Nanos(at.0.saturating_add(for_ns)));
                self.until = self.until.min(until);
            }
        });
        self.goes_on = true;
        self
    }
}

impl Slot {
    /// The kernel has forwarded what the entry's sources sent, the last of it then.
    pub(super) fn refresh_stations(&self, last_used: Nanos, replica: &Replica) {
        if self.verdict.stations.iter().any(|used| used.is_source) {
            replica.shared().with_macs(|macs| {
                for used in self.verdict.stations.iter().filter(|used| used.is_source) {
                    macs.refresh(used.station, used.port, last_used);
                }
            });
        }
    }
}

impl Tier {
    /// Sets the masks that the tier begins with.
    pub(super) fn set_masks(&mut self, pipeline: &ShapeMasks) -> &[[u8; TIER_BYTES]; Shape::COUNT] {
        self.has_stations |= std::mem::take(&mut self.lacks_stations);
        self.masks = match self.has_stations {
            true => with_stations(pipeline),
            false => pipeline.clone(),
        };
        &self.masks.0
    }
}

impl Core {
    /// Whether packets have shown since the last call that a station has moved, and some shard of
    /// the bridge has a kernel tier, be it this one or another.
    pub(in crate::fast::forwarder) fn has_seen_moves(&mut self) -> bool {
        let moved = self.replica.counters().stations_moved.get();
        let has_new = std::mem::replace(&mut self.tier.moves_reported, moved) != moved;
        has_new && self.replica.shared().moves().is_watched()
    }

    /// Whether entries are to be ended because stations have moved.
    pub(super) fn is_behind_moves(&self) -> bool {
        self.tier.is_running && self.tier.moves.is_behind(self.replica.shared().moves())
    }

    /// Ends the entries about stations that have moved, and what is proposed about them.
    pub(super) fn end_moved(&mut self, table: &mut dyn KernelTable) {
        if !self.is_behind_moves() {
            return;
        }
        let mut moved = self.tier.moves.catch_up(self.replica.shared().moves());
        moved.iter_mut().for_each(|slot| *slot += INDICES);
        let concerned = |proposal: &mut Proposal| {
            proposal.verdict.stations.iter().any(|used| moved.contains(&used.index()))
        };
        for proposal in self.tier.proposals.extract_if(.., concerned) {
            self.paths.release(proposal.path);
        }
        self.end_concerned(&moved, table);
    }

    /// The program of packets between the stations of this one, where their decision's has
    /// `NORMAL`, and the stations that it hangs on. `None` if these are unknown, or the tier has to
    /// begin anew for them.
    pub(super) fn switched(
        &mut self,
        decided: Decided,
        (frame, shape): (&PacketBuf, Shape),
        in_port: PortNo,
        now: Nanos,
    ) -> Option<(Option<CompiledProgram>, Vec<UsedStation>)> {
        if !self.programs.get(decided.program)?.has_normal() {
            return Some((None, Vec::new()));
        }
        if !self.tier.has_stations {
            self.tier.lacks_stations = true;
            return None;
        }
        let entry = |id| self.replica.entry(id);
        let entries: Vec<Option<&ReplicaEntry>> = match self.paths.steps(decided.path) {
            Steps::One(id) => vec![entry(id)],
            Steps::Many(steps) => steps.iter().map(|step| entry(step.entry?)).collect(),
        };
        let copy = PacketBuf::from_slice(frame.bytes());
        let (program, stations) =
            compile_switched(&self.replica, shape, copy, in_port, &entries, now)?;
        Some((Some(program), stations))
    }
}
