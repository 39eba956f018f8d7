//! A packet on its way through the pipeline, with what its bytes do not say.

use openflow::{PortNo, QueueId};
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use crate::config::Fragments;
use crate::counter::DropReason;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Packet {
    pub(in crate::fast) frame: PacketBuf,
    pub(in crate::fast) meta: Meta,
    pub(in crate::fast) queue: Option<QueueId>,
    /// Its length when it came.
    pub(in crate::fast) arrived_len: usize,
}

impl Packet {
    pub(in crate::fast) fn new(frame: PacketBuf, in_port: PortNo) -> Self {
        let arrived_len = frame.len();
        Self { frame, meta: Meta::port(in_port), queue: None, arrived_len }
    }

    /// The same packet with other bytes.
    pub(in crate::fast) fn with_frame(&self, frame: PacketBuf) -> Self {
        Self { frame, meta: self.meta, queue: self.queue, arrived_len: self.arrived_len }
    }

    pub(in crate::fast) fn key(&self) -> FlowKey {
        extract(self.frame.bytes(), &self.meta)
    }

    pub(in crate::fast) fn bytes(&self) -> u64 {
        self.frame.len() as u64
    }

    pub(super) fn is_fragment(&self) -> bool {
        Layout::of(self.frame.bytes()).is_some_and(|layout| layout.fragment)
    }
}

/// Why a frame that its port has let in goes no further.
pub(in crate::fast) fn refusal(fragments: Fragments, frame: &[u8]) -> Option<DropReason> {
    match (Layout::of(frame), fragments) {
        (None, _) => Some(DropReason::Malformed),
        (Some(layout), Fragments::Drop) if layout.fragment => Some(DropReason::Fragment),
        (Some(_), Fragments::Drop | Fragments::Normal | Fragments::Reassemble) => None,
    }
}
