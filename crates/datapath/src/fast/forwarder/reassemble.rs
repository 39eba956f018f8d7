//! Reassembly of fragments, ahead of the lookup of their packets.
//!
//! Fragments are rare, and those of one packet may come to several forwarders, so they are kept in
//! one place behind a lock. A batch without any costs one look at each frame, and only where
//! reassembly is asked for.

use openflow::PortNo;
use packet::PacketBuf;

use super::{Core, Sink};
use crate::config::Fragments;
use crate::counter::Counter;
use crate::reassembly::{Fate, concerns};
use crate::time::Nanos;

impl Core {
    /// Takes the fragments out of a batch that their port has let in, and puts whole packets into
    /// it; whether there is anything left.
    pub(super) fn reassemble(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        in_port: PortNo,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> bool {
        let replica = &self.replica;
        if replica.settings.fragments != Fragments::Reassemble
            || !frames.iter().any(|frame| concerns(&replica.settings, frame.bytes()))
        {
            return true;
        }
        for mut frame in std::mem::take(frames) {
            if !concerns(&replica.settings, frame.bytes()) {
                frames.push(frame);
                continue;
            }
            let reassembled = replica
                .shared()
                .with_reassembler(|kept| kept.reassemble(frame.bytes(), in_port, now));
            for (reason, fragments) in reassembled.lost {
                replica.count_drops(reason, fragments);
            }
            match reassembled.fate {
                Fate::Itself => frames.push(frame),
                Fate::Whole(whole) => {
                    replica.count(Counter::Reassembled, 1);
                    frame.assign(&whole);
                    frames.push(frame);
                }
                Fate::Held => {
                    replica.count(Counter::FragmentsHeld, 1);
                    sink.held();
                    sink.done(frame);
                }
                Fate::Dropped(reason) => {
                    replica.count_rx_dropped(in_port, 1);
                    replica.count_drops(reason, 1);
                    sink.dropped(reason);
                    sink.done(frame);
                }
            }
        }
        !frames.is_empty()
    }
}
