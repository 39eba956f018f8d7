//! A packet on its way through the pipeline, with what its bytes do not say.

use openflow::{Action, BitRange, Field, PortNo, QueueId};
use packet::rewrite::write_bits;
use packet::{FlowKey, Layout, Meta, PacketBuf, extract};

use super::action::{Executed, execute};
use crate::action_set::FIN_OR_RST;
use crate::config::Fragments;
use crate::counter::DropReason;

/// A packet on its way.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Packet {
    pub(in crate::fast) frame: PacketBuf,
    pub(in crate::fast) meta: Meta,
    pub(in crate::fast) queue: Option<QueueId>,
    /// Its stack of values, the last one on top.
    pub(in crate::fast) stack: Vec<u128>,
    /// Its length when it came.
    pub(in crate::fast) arrived_len: usize,
}

impl Packet {
    pub(in crate::fast) fn new(frame: PacketBuf, in_port: PortNo) -> Self {
        let (meta, arrived_len) = (Meta::port(in_port), frame.len());
        Self { frame, meta, queue: None, stack: Vec::new(), arrived_len }
    }

    /// The same packet with other bytes.
    pub(in crate::fast) fn with_frame(&self, frame: PacketBuf) -> Self {
        let Self { meta, queue, stack, arrived_len, .. } = self;
        Self { frame, meta: *meta, queue: *queue, stack: stack.clone(), arrived_len: *arrived_len }
    }

    /// Carries out an action as far as it is about the packet itself.
    pub(in crate::fast) fn execute(&mut self, action: &Action) -> Executed {
        if let Action::Push { src, .. } = action {
            let bits = action.read_bits().unwrap_or_else(|| BitRange::all(*src));
            self.stack.push(bits.of(self.key().get(*src)));
            return Executed::Pushed;
        }
        if let Action::Pop { dst, .. } = action
            && let Some(value) = self.stack.pop()
        {
            let bits = action.written_bits().unwrap_or_else(|| BitRange::all(*dst));
            let Self { frame, meta, .. } = self;
            let fits = write_bits(frame, meta, *dst, bits.mask(), bits.place(value));
            return Executed::Rewritten(fits);
        }
        execute(&mut self.frame, &mut self.meta, action)
    }

    /// Whether it ends its TCP connection.
    pub(in crate::fast) fn ends_connection(&self) -> bool {
        self.key().get(Field::TcpFlags) & FIN_OR_RST != 0
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
