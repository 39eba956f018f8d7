//! The performance counters of a worker: frames, time of each stage, batch sizes, idle time.
//!
//! Each counter has one writer and any number of readers: relaxed additions on cache lines of the
//! worker's own. One round in [`SAMPLE`] is timed stage by stage, so that reading the clock costs a
//! frame nothing. (Open vSwitch has the same under `pmd-perf-show`, VPP under `show runtime`.)

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use datapath::fast::{Caches, ForwarderFigures};
use netdev::PortCounters;
use openflow::PortNo;

use crate::config::Poll;

/// One round of this many is timed stage by stage.
pub(crate) const SAMPLE: u64 = 32;

/// More nanoseconds than a batch takes while the worker has its CPU, also on ports where each frame
/// is a system call.
const INTERRUPTED_NS: u64 = 500_000;

macro_rules! perf_stats {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The counters of one worker, on cache lines that no other worker writes.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct PerfStats {
            $($(#[doc = $doc])+ pub(crate) $name: PerfCounter,)+
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct PerfReading {
            $($(#[doc = $doc])+ pub(crate) $name: u64,)+
        }

        impl PerfStats {
            /// The values now.
            pub(crate) fn read(&self) -> PerfReading {
                PerfReading { $($name: self.$name.get(),)+ }
            }
        }
    };
}

perf_stats! {
    /// Rounds over all ports.
    rounds,
    /// Batches with at least one frame.
    batches,
    /// Frames received.
    packets,
    /// Frames that ports accepted.
    sent,
    /// Commands carried out.
    commands,
    /// Times it went to sleep.
    sleeps,
    /// Nanoseconds asleep.
    asleep_ns,
    /// Nanoseconds of rounds without work.
    idle_ns,
    /// Nanoseconds of work in which it yielded the processor to others that the kernel tier serves.
    yielded_ns,
    /// Nanoseconds since the worker began.
    lived_ns,
    /// Frames of the timed rounds.
    timed_packets,
    /// Nanoseconds of receiving them.
    rx_ns,
    /// Nanoseconds of forwarding decisions and rewriting.
    forward_ns,
    /// Nanoseconds of sending them.
    tx_ns,
}

/// A counter with one writing thread and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct PerfCounter(AtomicU64);

impl PerfCounter {
    /// Adds. Only the worker itself may call it: with one writer, no bus is locked.
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.get().wrapping_add(amount), Ordering::Relaxed);
    }

    /// Replaces.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A worker's identity and its performance counters.
#[derive(Debug)]
pub(crate) struct WorkerInfo {
    /// Its index, from 0.
    pub(crate) index: usize,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
    /// Its polling policy.
    pub(crate) poll: Poll,
    /// Its counters.
    pub(crate) perf: PerfStats,
}

/// The state of a worker, as reported for one bridge.
#[derive(Clone, Debug)]
pub(crate) struct WorkerState {
    /// Its index, from 0.
    pub(crate) index: usize,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
    /// Its polling policy.
    pub(crate) poll: Poll,
    /// The bridge's ports on this worker.
    pub(crate) ports: Vec<PortAssignment>,
    /// Its counters, for all bridges.
    pub(crate) perf: PerfReading,
    /// The caches that the bridge's forwarder uses, and its counters; `None` on a wire.
    pub(crate) forwarder: Option<(Caches, ForwarderFigures)>,
}

/// By port: its device's counts, and the frames that it did not take.
pub(crate) type CountedPorts = Vec<(PortNo, PortCounters, u64)>;

/// The counts of a bridge's shard.
#[derive(Debug)]
pub(crate) struct ShardSample {
    pub(crate) worker: usize,
    pub(crate) perf: PerfReading,
    /// Those of its first ports, and the index from which on there are more.
    pub(crate) ports: CountedPorts,
    pub(crate) more_ports: Option<usize>,
    pub(crate) forwarder: Option<ForwarderFigures>,
}

/// A port assigned to a worker.
#[derive(Clone, Debug)]
pub(crate) struct PortAssignment {
    /// Its number.
    pub(crate) number: PortNo,
    /// Its spec text.
    pub(crate) spec: String,
    /// The number of the queue that is here, from 0, and the number of its queues.
    pub(crate) queue: usize,
    pub(crate) queues: usize,
    /// On a wire, the port that sends its frames.
    pub(crate) leaves_by: Option<PortNo>,
    /// Whether the kernel tier decides about what it receives here.
    pub(crate) is_in_tier: bool,
}

/// A timer of the stages of a batch, active in one round of [`SAMPLE`].
#[derive(Debug)]
pub(super) struct StageTimer<'a> {
    perf: &'a PerfStats,
    begun: Option<Instant>,
}

impl<'a> StageTimer<'a> {
    /// Starts before a batch is received.
    pub(super) fn begin(perf: &'a PerfStats) -> Self {
        let is_timed = perf.rounds.get().is_multiple_of(SAMPLE);
        Self { perf, begun: is_timed.then(Instant::now) }
    }

    /// Nanoseconds since the start; 0 in a round that is not timed.
    pub(super) fn lap(&self) -> u64 {
        self.begun.map_or(0, |begun| begun.elapsed().as_nanos() as u64)
    }

    /// Records a batch of `count` frames that has been sent, with the laps at which it was received
    /// and decided. A very long one is left out: the worker did not have its CPU meanwhile.
    pub(super) fn end(&self, count: usize, received: u64, decided: u64) {
        let sent = self.lap();
        if self.begun.is_some() && sent <= INTERRUPTED_NS {
            self.perf.timed_packets.add(count as u64);
            self.perf.rx_ns.add(received);
            self.perf.forward_ns.add(decided.saturating_sub(received));
            self.perf.tx_ns.add(sent.saturating_sub(decided));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PerfStats;

    #[test]
    fn what_is_added_is_read() {
        let perf = PerfStats::default();
        perf.packets.add(3);
        perf.packets.add(4);
        perf.lived_ns.set(9);
        let reading = perf.read();
        assert_eq!((reading.packets, reading.lived_ns, reading.sent), (7, 9, 0));
    }
}
