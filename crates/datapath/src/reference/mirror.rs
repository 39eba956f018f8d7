//! Mirrors, as plain code: who gets a copy of a packet that comes in or leaves.

use openflow::{Field, MacAddr, PortNo};

use super::effect::Effect;
use super::run::{PacketState, Run};
use crate::macs::is_link_local;
use crate::mirrors::{MirrorOutput, Side};
use crate::verdict::Verdict;
use crate::vlans::tag_of;

impl Run<'_> {
    /// Mirrors the packet, as it is now, where it comes in or before it leaves.
    pub(super) fn mirror(&mut self, packet: &PacketState, port: PortNo, side: Side) {
        let ports = &self.dp.ports;
        let mirrors = ports.mirrors();
        let key = packet.key();
        let tag = tag_of(&key);
        let to = MacAddr::from_u64(u64::try_from(key.get(Field::EthDst)).unwrap_or(u64::MAX));
        let Some(vlan) = ports.get(port).and_then(|port| port.vlans().enters(tag)) else { return };
        loop {
            let selected = mirrors.at(port, side) & !self.mirrored;
            let Some(mirror) = mirrors.first(selected, vlan) else { return };
            self.mirrored |= mirrors.with_output(mirror.output);
            let (outputs, vlan) = match mirror.output {
                MirrorOutput::Port(output) => (vec![output], vlan),
                MirrorOutput::Vlan(output) if output == vlan || is_link_local(to) => continue,
                MirrorOutput::Vlan(output) => {
                    let able = ports.iter().filter(|(_, port)| port.refuses_tx().is_none());
                    let carry = able.filter(|(_, port)| port.vlans().carries(output));
                    (carry.map(|(number, _)| number).collect(), output)
                }
            };
            for output in outputs {
                self.leave_mirrored(packet, output, (vlan, tag), mirror.snaplen);
            }
        }
    }

    fn leave_mirrored(
        &mut self,
        packet: &PacketState,
        number: PortNo,
        (vlan, tag): (u16, Option<u16>),
        snaplen: Option<u16>,
    ) {
        let Some(port) = self.dp.ports.get(number) else { return };
        if let Some(reason) = port.refuses_mirrored() {
            self.step(|| format!("dropped: {}", reason.name()));
            self.effect(Effect::TxDropped(number));
            self.effect(Effect::Drop(reason));
            return self.beside(Verdict::Drop { reason });
        }
        self.step(|| format!("mirrored to port {number}"));
        let mut frame = packet.frame.clone();
        port.vlans().leaves(vlan).put(&mut frame, tag);
        frame.truncate(snaplen.map_or(usize::MAX, usize::from));
        let bytes = frame.len() as u64;
        self.effect(Effect::Sent { port: number, queue: None, bytes });
        self.beside(Verdict::Output { port: number, queue: None, frame });
    }
}
