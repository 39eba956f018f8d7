//! Copies for mirrors: of a packet that comes in, or is about to leave. One function for all
//! targets.

use openflow::{Field, MacAddr, PortNo};
use packet::extract;

use super::{Executed, Packet, Target, WalkFlow};
use crate::macs::is_link_local;
use crate::mirrors::{MirrorOutput, Side};
use crate::ports::Ports;
use crate::vlans::tag_of;

/// Sends the packet, as it is now, to the mirrors that select it and have not had it yet.
pub(super) fn mirror<'a, T: Target<'a>>(
    target: &mut T,
    ports: &Ports,
    packet: &Packet,
    port: PortNo,
    side: Side,
) {
    let mirrors = ports.mirrors();
    if mirrors.is_empty() {
        return;
    }
    let selected = mirrors.at(port, side);
    if selected & !*target.mirrored() == 0 {
        return;
    }
    target.looks_at_vlan();
    let key = extract(packet.frame.bytes(), &packet.meta);
    let to = MacAddr::from_u64(u64::try_from(key.get(Field::EthDst)).unwrap_or(u64::MAX));
    let tag = tag_of(&key);
    let Some(vlan) = ports.get(port).and_then(|port| port.vlans().enters(tag)) else { return };
    while let Some(mirror) = mirrors.first(selected & !*target.mirrored(), vlan) {
        *target.mirrored() |= mirrors.with_output(mirror.output);
        match mirror.output {
            MirrorOutput::Port(output) => {
                send(target, ports, packet, output, (vlan, tag), mirror.snaplen);
            }
            MirrorOutput::Vlan(output) if vlan == output || is_link_local(to) => {}
            MirrorOutput::Vlan(output) => {
                for (number, port) in ports.iter() {
                    if port.refuses_tx().is_none() && port.vlans().carries(output) {
                        send(target, ports, packet, number, (output, tag), mirror.snaplen);
                    }
                }
            }
        }
    }
}

/// Sends a copy of a packet that has this tag by a port, as one of a VLAN.
fn send<'a, T: Target<'a>>(
    target: &mut T,
    ports: &Ports,
    packet: &Packet,
    number: PortNo,
    (vlan, tag): (u16, Option<u16>),
    snaplen: Option<u16>,
) {
    let Some(port) = ports.get(number) else { return };
    if let Some(reason) = port.refuses_mirrored() {
        target.note(|| format!("dropped: {}", reason.name()));
        return target.refuse(number, reason);
    }
    target.note(|| format!("mirrored to port {number}"));
    let leaves = port.vlans().leaves(vlan);
    if !leaves.differs(tag) && snaplen.is_none() {
        return target.output(packet, number, None);
    }
    let mut copy = target.begin_copy(packet);
    for action in leaves.actions(tag).filter(|_| leaves.differs(tag)) {
        // They fit every packet, and no target stops at them.
        let _fits: WalkFlow<Executed> = target.execute(&mut copy, &action);
    }
    if let Some(snaplen) = snaplen {
        target.truncate(&mut copy, snaplen.into());
    }
    target.output(&copy, number, None);
    target.end_copy(copy);
}
