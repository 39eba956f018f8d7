//! Packet-outs: a list of actions on a packet that the controller gives (clause 7.3.7).

use openflow::message::PacketOut;
use openflow::{Error, Field, Match};
use packet::FlowKey;

use super::emit::Emit;
use super::{Core, Sink};
use crate::counter::Counter;
use crate::fast::interpreter::{Interpreter, Packet};
use crate::known_fields::KnownFields;
use crate::time::Nanos;
use crate::validate::{ActionContext, Existing, check_actions, check_packet_out};

/// The fields that others need as their prerequisites.
const DECISIVE: [Field; 4] = [Field::EthType, Field::VlanVid, Field::IpProto, Field::Icmpv6Type];

impl Core {
    pub(super) fn packet_out(
        &mut self,
        packet_out: &PacketOut,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        check_packet_out(packet_out)?;
        let replica = &self.replica;
        let mut frame = sink.spare();
        frame.assign(&packet_out.data);
        let packet = Packet::new(frame, packet_out.in_port);
        let existing = Existing {
            n_tables: replica.config.n_tables,
            group: &|id| replica.groups.get(id).is_some(),
            meter: &|id| replica.meter(id).is_some(),
        };
        let mut known = KnownFields::of(&shown(&packet.key()));
        let checked =
            check_actions(&packet_out.actions, ActionContext::PacketOut, &mut known, &existing);
        if let Err(error) = checked {
            sink.done(packet.frame);
            return Err(error);
        }
        replica.count(Counter::PacketOuts, 1);
        let mut walk = Interpreter::new(Emit::step_by_step(replica, sink, now));
        walk.packet_out(packet, &packet_out.actions);
        walk.finish().close();
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
