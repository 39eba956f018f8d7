//! The figures of a forwarder: hits of the caches, and time of each stage.

use crate::fast::classifier::Template;

/// Figures of a forwarder since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwarderFigures {
    /// Batches.
    pub batches: u64,
    /// Packets.
    pub packets: u64,
    /// Packets of batches that were decided about as a whole, by their port alone.
    pub port_hits: u64,
    /// Packets that the kernel decided about; they are not among [`Self::packets`].
    pub kernel_hits: u64,
    /// Decisions that the kernel carries out at present.
    pub kernel_entries: u64,
    /// Decisions that had to go from there for new ones.
    pub kernel_evictions: u64,
    /// Decisions that found no room there.
    pub kernel_refused: u64,
    /// Packets that the frame cache decided about.
    pub frame_hits: u64,
    /// Misses of the frame cache, in packets.
    pub frame_misses: u64,
    /// Packets that the key cache decided about.
    pub key_hits: u64,
    /// Misses of the key cache, in packets.
    pub key_misses: u64,
    /// Decisions that had to go for new ones.
    pub evictions: u64,
    /// Decisions that found no line.
    pub refused: u64,
    /// Programs that were compiled.
    pub compiled: u64,
    /// Programs that are kept.
    pub programs: u64,
    /// Packets that went step by step.
    pub walked: u64,
    /// Lookups in flow tables that were made for packets that no cache decided about, by
    /// [`Template`].
    pub lookups: [u64; Template::ALL.len()],
    /// Lines of the caches.
    pub lines: u64,
    /// Lines that hold a decision.
    pub lines_used: u64,
    /// Nanoseconds in the stages, while they are measured: see [`ForwarderStage`].
    pub stage_ns: [u64; ForwarderStage::ALL.len()],
    /// Packets of the batches whose stages were measured.
    pub stage_packets: u64,
}

/// A stage of a batch's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ForwarderStage {
    /// Shapes, digests and cache lines; lookups of what the caches do not have.
    Decide,
    /// Changes, copies and the hand-over to the sink.
    Execute,
}

impl ForwarderStage {
    /// Every stage, in order.
    pub const ALL: &'static [Self] = &[Self::Decide, Self::Execute];

    /// The stage's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Execute => "execute",
        }
    }
}

impl ForwarderFigures {
    /// Packets decided by the tables: by neither their port nor a cache.
    #[must_use]
    pub fn by_tables(&self) -> u64 {
        self.packets.saturating_sub(self.port_hits + self.frame_hits + self.key_hits)
    }

    #[inline]
    pub(super) fn frame(&mut self, asked: usize, missed: u64) {
        let misses = u64::from(missed.count_ones());
        self.frame_misses += misses;
        self.frame_hits += asked as u64 - misses;
    }

    /// Adds what the stages of a batch took.
    pub(super) fn stages(&mut self, packets: u64, ns: [u64; ForwarderStage::ALL.len()]) {
        self.stage_packets += packets;
        for (sum, ns) in self.stage_ns.iter_mut().zip(ns) {
            *sum += ns;
        }
    }

    pub(super) fn key(&mut self, is_hit: bool) {
        self.key_hits += u64::from(is_hit);
        self.key_misses += u64::from(!is_hit);
    }
}
