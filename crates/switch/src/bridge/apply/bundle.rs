//! The commit of a bundle (clause 7.3.9.6 of 1.4): all of its messages at once, or none.
//!
//! It is one piece of work on the agent's thread, since no command of others may come between two
//! of its messages. The commit is answered when every worker shows all of it to packets.

use datapath::BundleCommand;
use datapath::fast::Op;
use openflow::bundle::{BundleControl, BundleControlType, BundleFlags};
use openflow::port::PortStatus;
use openflow::{Version, Xid};
use wire::MessageHeader;

use super::{Applied, ApplyResult, BarrierWaiter, Bridge};
use crate::bridge::PacketOuts;
use crate::bridge::bundle::{BundleCommit, RefusedMessage, command, frames};
use crate::counters::Counter;
use crate::request::{ErrorData, RequestContext};

impl Bridge {
    /// Carries out a bundle, or nothing of it. `request` is the commit's context.
    pub(super) fn commit(
        &self,
        version: Version,
        bundle: &BundleCommit,
        request: impl FnOnce() -> RequestContext,
    ) -> ApplyResult {
        self.counters.bump(Counter::Bundle);
        let now = self.clock.now();
        let (mut ports, mut packet_outs) = (Vec::new(), 0);
        let done = self.with_control(|control| {
            control.begin_bundle();
            for frame in frames(&bundle.messages) {
                let done = command(frame).and_then(|command| {
                    match &command {
                        BundleCommand::PortMod(port_mod) => ports.push(port_mod.port_no),
                        BundleCommand::PacketOut(_) => packet_outs += 1,
                        BundleCommand::FlowMod(_)
                        | BundleCommand::GroupMod(_)
                        | BundleCommand::MeterMod(_) => {}
                    }
                    control.command(&command, version, now)
                });
                if let Err(error) = done {
                    control.roll_back_bundle();
                    let xid = MessageHeader::parse(frame).map_or(Xid(0), |header| header.xid);
                    return Err(RefusedMessage { xid, error_data: ErrorData::new(frame), error });
                }
            }
            control.commit_bundle();
            Ok(())
        });
        if let Err(refused) = done.ok_or_else(Self::no_tables)? {
            return Ok(Applied::BundleRefused(refused));
        }
        self.expiry.notify_one();
        let statuses: Vec<PortStatus> =
            ports.into_iter().filter_map(|port| self.port_modded(port)).collect();
        self.counters.add(Counter::PortStatus, statuses.len() as u64);
        let reply = BundleControl {
            bundle_id: bundle.bundle_id,
            control: BundleControlType::CommitReply,
            flags: BundleFlags::empty(),
        };
        let ops = self.take_ops();
        if packet_outs > 0 {
            self.counters.add(Counter::PacketOut, packet_outs);
            self.packet_outs.set(PacketOuts::Staged);
        }
        self.stage_barrier(BarrierWaiter::Bundle(request(), reply, ops));
        Ok(Applied::Bundle(statuses))
    }

    /// Whether the process has memory for these bytes of a bundle.
    pub(crate) fn has_memory(&self, bytes: usize) -> bool {
        self.with_control(|control| control.has_memory(bytes)).unwrap_or(true)
    }

    /// The ops of the commands so far. Who keeps them until the workers are done drops them last,
    /// which takes a while for a large bundle.
    fn take_ops(&self) -> Vec<Op> {
        let mut ops = self.ops.borrow_mut();
        self.with_control(|control| control.take_ops(&mut ops));
        ops.clone()
    }
}
