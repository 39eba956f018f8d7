//! Ways out for packets: ports, the reserved ports, and the controller (clauses 4.5, 5.12, 7.4.1).
//!
//! A packet never leaves by the port that it came in by, except by `IN_PORT`.

use openflow::message::{PacketIn, PacketInReason};
use openflow::{Field, MacAddr, PortNo};

use super::effect::Effect;
use super::run::{PacketState, Run};
use crate::action_set::Origin;
use crate::counter::{Counter, DropReason};
use crate::macs::{is_link_local, is_multicast};
use crate::mirrors::Side;
use crate::ports::Port;
use crate::verdict::{HandUp, Verdict, packet_in_context, packet_in_data};
use crate::vlans::{PortVlans, tag_of};

impl Run<'_> {
    /// A copy of the packet goes to a port, reserved or not.
    pub(super) fn send_to(&mut self, packet: &PacketState, to: PortNo, max_len: u16, by: Origin) {
        let in_port = packet.meta.in_port;
        if [PortNo::ALL, PortNo::FLOOD, PortNo::NORMAL].contains(&to) {
            self.count_actions(self.dp.ports.len());
        }
        if self.is_withdrawn {
            return;
        }
        if to == PortNo::TABLE {
            self.start_pipeline(packet);
        } else if to == PortNo::CONTROLLER {
            let reason = match by.is_miss {
                true => PacketInReason::NoMatch,
                false if self.place.is_in_bucket => PacketInReason::Group,
                false if self.is_behind_tables => PacketInReason::ActionSet,
                false if self.may_start_pipeline => PacketInReason::PacketOut,
                false => PacketInReason::Action,
            };
            self.packet_in(packet, reason, by, max_len);
        } else if to == PortNo::NORMAL {
            self.switch_normally(packet);
        } else if to == PortNo::ALL {
            self.leave_by_all(packet, &self.ports_but(in_port, |_| true));
        } else if to == PortNo::FLOOD {
            self.leave_by_all(packet, &self.ports_but(in_port, |port| !port.no_flood()));
        } else if to == PortNo::IN_PORT {
            self.leave_by(packet, in_port);
        } else if to == in_port {
            self.drop(DropReason::ToIngress);
        } else {
            self.leave_by(packet, to);
        }
    }

    /// By one port, whatever port the packet came in by.
    fn leave_by(&mut self, packet: &PacketState, port: PortNo) {
        let refused = match self.dp.ports.get(port) {
            None => return self.drop(DropReason::NoSuchPort),
            Some(port) => port.refuses_tx(),
        };
        if let Some(reason) = refused {
            self.effect(Effect::TxDropped(port));
            return self.drop(reason);
        }
        self.mirror(packet, port, Side::Out);
        self.step(|| format!("leaves by port {port}"));
        let (queue, frame) = (packet.queue, packet.frame.clone());
        self.effect(Effect::Sent { port, queue, bytes: packet.bytes() });
        self.verdict(Verdict::Output { port, queue, frame });
    }

    fn leave_by_all(&mut self, packet: &PacketState, ports: &[PortNo]) {
        if ports.is_empty() {
            self.drop(DropReason::NoPortLeft);
        }
        ports.iter().for_each(|port| self.leave_by(packet, *port));
    }

    /// The ports that can send, but for the ingress port. Those that cannot are not selected, so
    /// they count no drop.
    fn ports_but(&self, in_port: PortNo, is_selected: impl Fn(&Port) -> bool) -> Vec<PortNo> {
        let able = self.dp.ports.iter().filter(|(_, port)| port.refuses_tx().is_none());
        let selected = able.filter(|(number, port)| *number != in_port && is_selected(port));
        selected.map(|(number, _)| number).collect()
    }

    /// As a learning switch does, within the packet's VLAN (`NORMAL`).
    fn switch_normally(&mut self, packet: &PacketState) {
        let dp = self.dp;
        let (key, in_port) = (packet.key(), packet.meta.in_port);
        let address = |field| MacAddr::from_u64(u64::try_from(key.get(field)).unwrap_or(u64::MAX));
        let (from, to) = (address(Field::EthSrc), address(Field::EthDst));
        let (ingress, tag) = (dp.ports.get(in_port), tag_of(&key));
        let access = PortVlans::default();
        let Some(vlan) = ingress.map_or(&access, Port::vlans).enters(tag) else {
            return self.drop(DropReason::NotInVlan);
        };
        if ingress.is_some() && !is_multicast(from) {
            self.effect(Effect::Learnt { station: (vlan, from), port: in_port });
        }
        if is_link_local(to) {
            return self.drop(DropReason::Reserved);
        }
        self.step(|| format!("in VLAN {vlan}"));
        let is_apart = |port: Option<&Port>| {
            ingress.zip(port).is_some_and(|(ingress, port)| ingress.is_apart_from(port))
        };
        let known = dp.macs.port((vlan, to), &dp.config, self.now);
        let ports = match known.filter(|_| !is_multicast(to)) {
            Some(port) if port == in_port => return self.drop(DropReason::ToIngress),
            Some(port) if is_apart(dp.ports.get(port)) => return self.drop(DropReason::Protected),
            Some(port) => vec![port],
            None => self.ports_but(in_port, |port| {
                !port.no_flood() && port.vlans().carries(vlan) && !is_apart(Some(port))
            }),
        };
        if ports.is_empty() {
            self.drop(DropReason::NoPortLeft);
        }
        for number in ports {
            let mut copy = packet.clone();
            let leaves = dp.ports.get(number).map(|port| port.vlans().leaves(vlan));
            if let Some(leaves) = leaves.filter(|leaves| leaves.differs(tag)) {
                leaves.put(&mut copy.frame, tag);
            }
            self.leave_by(&copy, number);
        }
    }

    /// To the controller: as the packet is now, without what a pending action set would still do to
    /// it (clause 7.4.1).
    pub(super) fn packet_in(
        &mut self,
        packet: &PacketState,
        reason: PacketInReason,
        by: Origin,
        max_len: u16,
    ) {
        let ingress = self.dp.ports.get(packet.meta.in_port);
        if ingress.is_some_and(Port::no_packet_in) && reason == PacketInReason::NoMatch {
            return self.drop(DropReason::NoPacketIn);
        }
        self.hand_up(packet, &HandUp::plain(reason, by, max_len));
    }

    pub(super) fn hand_up(&mut self, packet: &PacketState, hand_up: &HandUp) {
        let HandUp { reason, origin, max_len, controller_id, userdata, continuation } = hand_up;
        self.step(|| format!("to the controller: {}", reason.text()));
        self.effect(Effect::Count(Counter::PacketIns));
        let data = packet_in_data(&packet.frame, packet.arrived_len);
        let message = PacketIn {
            buffer_id: None,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason: *reason,
            table_id: origin.table_id,
            cookie: origin.cookie,
            matching: packet_in_context(&packet.meta),
            data,
            userdata: userdata.clone(),
            continuation: continuation.clone(),
            controller_id: *controller_id,
        };
        self.verdict(Verdict::PacketIn { message, max_len: *max_len });
    }
}
