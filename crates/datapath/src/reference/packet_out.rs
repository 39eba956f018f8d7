//! Packet-outs: a list of actions on a packet that the controller gives (clause 7.3.7).

use openflow::Error;
use openflow::message::PacketOut;
use packet::PacketBuf;

use super::Reference;
use super::effect::{Effect, Effects};
use super::run::{PacketState, Run};
use crate::counter::Counter;
use crate::time::Nanos;
use crate::validate::{Existing, check_packet_out, check_packet_out_actions};
use crate::verdict::Out;

impl Reference {
    /// The effects of a packet-out, which are still to be carried out.
    pub(super) fn run_packet_out(
        &self,
        packet_out: &PacketOut,
        now: Nanos,
        out: &mut Out,
    ) -> Result<Effects, Error> {
        check_packet_out(packet_out)?;
        let frame = PacketBuf::from_slice(&packet_out.data);
        let packet = PacketState::arriving(frame, packet_out.in_port);
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.get(id).is_some(),
            meter: &|id| self.meters.get(id).is_some(),
        };
        check_packet_out_actions(packet_out, &packet.key(), &existing)?;

        let mut run = Run::new(self, now, out);
        run.may_start_pipeline = true;
        run.effect(Effect::Count(Counter::PacketOuts));
        run.packet_out(packet, &packet_out.actions);
        let (effects, _) = run.end();
        Ok(effects)
    }
}
