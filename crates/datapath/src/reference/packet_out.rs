//! Packet-outs: a list of actions on a packet that the controller gives (clause 7.3.7).

use openflow::message::PacketOut;
use openflow::{Error, Field, Match};
use packet::{FlowKey, PacketBuf};

use super::Reference;
use super::effect::Effect;
use super::run::{PacketState, Run};
use crate::counter::Counter;
use crate::known_fields::KnownFields;
use crate::time::Nanos;
use crate::validate::{ActionContext, Existing, check_actions, check_packet_out};
use crate::verdict::Out;

/// The fields that others need as their prerequisites.
const DECISIVE: [Field; 4] = [Field::EthType, Field::VlanVid, Field::IpProto, Field::Icmpv6Type];

impl Reference {
    pub(super) fn run_packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        out: &mut Out,
    ) -> Result<(), Error> {
        check_packet_out(packet_out)?;
        let frame = PacketBuf::from_slice(&packet_out.data);
        let packet = PacketState::arriving(frame, packet_out.in_port);
        let existing = Existing {
            n_tables: self.config.n_tables,
            group: &|id| self.groups.get(id).is_some(),
            meter: &|id| self.meters.get(id).is_some(),
        };
        let mut known = KnownFields::of(&shown(&packet.key()));
        check_actions(&packet_out.actions, ActionContext::PacketOut, &mut known, &existing)?;

        let mut run = Run::new(self, now, out);
        run.may_start_pipeline = true;
        run.effect(Effect::Count(Counter::PacketOuts));
        run.packet_out(packet, &packet_out.actions);
        let (effects, _) = run.end();
        self.commit(effects, now);
        Ok(())
    }
}

/// The fields that the packet itself makes certain.
fn shown(key: &FlowKey) -> Match {
    DECISIVE.iter().fold(Match::any(), |known, field| {
        if key.has(*field) || *field == Field::VlanVid {
            known.with(*field, key.get(*field))
        } else {
            known
        }
    })
}
