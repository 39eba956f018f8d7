//! What a worker says of itself while it runs: how many frames, how long each stage of their way
//! took, how full its batches were and how long it had nothing to do.
//!
//! Written by one worker, read by whoever wants to: relaxed additions to lines of its own. One
//! round in [`SAMPLE`] is timed stage by stage, so that the clock costs a frame nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use datapath::fast::{Caches, ForwarderFigures};
use openflow::PortNo;

use crate::config::Poll;

/// One round of so many is timed by stages.
pub(crate) const SAMPLE: u64 = 32;

/// More nanoseconds than a batch takes while the worker has its CPU, also on ports where each frame
/// is a system call.
const INTERRUPTED_NS: u64 = 500_000;

macro_rules! figures {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The figures of one worker, on cache lines that no other worker writes.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Figures {
            $($(#[doc = $doc])+ pub(crate) $name: Figure,)+
        }

        /// The figures at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Reading {
            $($(#[doc = $doc])+ pub(crate) $name: u64,)+
        }

        impl Figures {
            /// What they are now.
            pub(crate) fn read(&self) -> Reading {
                Reading { $($name: self.$name.get(),)+ }
            }
        }
    };
}

figures! {
    /// Rounds over all ports.
    rounds,
    /// Batches that had a frame.
    batches,
    /// Frames received.
    packets,
    /// Frames that ports took.
    sent,
    /// Commands carried out.
    commands,
    /// Times it went to sleep.
    sleeps,
    /// Nanoseconds asleep.
    asleep_ns,
    /// Nanoseconds of rounds in which there was nothing to do.
    idle_ns,
    /// Nanoseconds since it began.
    lived_ns,
    /// Frames of the rounds that were timed.
    timed_packets,
    /// Nanoseconds of receiving them.
    rx_ns,
    /// Nanoseconds of deciding about them and changing them.
    forward_ns,
    /// Nanoseconds of sending them.
    tx_ns,
}

/// A number that one thread writes and any reads.
#[derive(Debug, Default)]
pub(crate) struct Figure(AtomicU64);

impl Figure {
    /// Adds. Only the worker itself may call it: there is one writer, so that no bus is locked.
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

/// Who a worker is.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Which, from 0.
    pub(crate) index: usize,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
    /// How it waits.
    pub(crate) poll: Poll,
    /// What it says of itself.
    pub(crate) figures: Figures,
}

/// A worker as people see it who ask for one bridge.
#[derive(Clone, Debug)]
pub(crate) struct WorkerState {
    /// Which, from 0.
    pub(crate) index: usize,
    /// The CPU that it is bound to.
    pub(crate) cpu: Option<usize>,
    /// How it waits.
    pub(crate) poll: Poll,
    /// The bridge's ports that it receives from.
    pub(crate) ports: Vec<PortPlace>,
    /// Its figures, for all bridges.
    pub(crate) figures: Reading,
    /// Those of the bridge's forwarder, and the caches that this uses; none on a wire.
    pub(crate) forwarder: Option<(Caches, ForwarderFigures)>,
}

/// Where a port is served.
#[derive(Clone, Debug)]
pub(crate) struct PortPlace {
    /// Its number.
    pub(crate) number: PortNo,
    /// Its spec text.
    pub(crate) spec: String,
    /// On a wire, the port by which its frames leave.
    pub(crate) leaves_by: Option<PortNo>,
}

/// Times the stages of a batch, in one round of [`SAMPLE`].
#[derive(Debug)]
pub(super) struct Timer<'a> {
    figures: &'a Figures,
    begun: Option<Instant>,
}

impl<'a> Timer<'a> {
    /// The batch's way begins.
    pub(super) fn begin(figures: &'a Figures) -> Self {
        let is_timed = figures.rounds.get().is_multiple_of(SAMPLE);
        Self { figures, begun: is_timed.then(Instant::now) }
    }

    /// Nanoseconds since it began; 0 in a round that is not timed.
    pub(super) fn lap(&self) -> u64 {
        self.begun.map_or(0, |begun| begun.elapsed().as_nanos() as u64)
    }

    /// The batch of `count` frames has been sent; it was received and decided about at these laps.
    /// One that took very long is left out: the worker did not have its CPU meanwhile.
    pub(super) fn end(&self, count: usize, received: u64, decided: u64) {
        let sent = self.lap();
        if self.begun.is_some() && sent <= INTERRUPTED_NS {
            self.figures.timed_packets.add(count as u64);
            self.figures.rx_ns.add(received);
            self.figures.forward_ns.add(decided.saturating_sub(received));
            self.figures.tx_ns.add(sent.saturating_sub(decided));
        }
    }
}

impl Figures {
    /// A driver has passed a batch of `count` frames on by itself: its time counts as receiving.
    pub(super) fn passed(&self, count: usize, timer: &Timer<'_>) {
        if count == 0 {
            return;
        }
        let received = timer.lap();
        timer.end(count, received, received);
        self.batches.add(1);
        self.packets.add(count as u64);
        self.sent.add(count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn what_is_added_is_read() {
        let figures = Figures::default();
        figures.packets.add(3);
        figures.packets.add(4);
        figures.lived_ns.set(9);
        let reading = figures.read();
        assert_eq!((reading.packets, reading.lived_ns, reading.sent), (7, 9, 0));
    }
}
