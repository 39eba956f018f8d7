//! `NORMAL`: forwarding as a learning switch does (clause 4.5), within the packet's VLAN.

use openflow::{Field, MacAddr, PortNo, QueueId};
use packet::extract;

use super::{Packet, Target, flood, send};
use crate::counter::DropReason;
use crate::macs::{Station, is_link_local, is_multicast};
use crate::ports::Port;
use crate::vlans::{PortVlans, tag_of};

/// What a learning switch knows of stations.
pub(in crate::fast) trait Stations {
    /// The port behind which a station was seen.
    fn port_of(&mut self, station: Station) -> Option<PortNo>;

    /// A station is seen behind a port. A packet must not see what it taught itself, so this holds
    /// from the next packet on.
    fn learn(&mut self, station: Station, port: PortNo);
}

/// Carries out an output to `NORMAL`.
pub(in crate::fast) fn forward_as_switch<'a, T: Target<'a> + Stations>(
    target: &mut T,
    packet: &Packet,
    queue: Option<QueueId>,
) {
    let ports = target.surroundings().ports;
    let key = extract(packet.frame.bytes(), &packet.meta);
    let address = |field| MacAddr::from_u64(u64::try_from(key.get(field)).unwrap_or(u64::MAX));
    let (src, dst) = (address(Field::EthSrc), address(Field::EthDst));
    let in_port = packet.meta.in_port;
    let ingress = ports.get(in_port);
    let tag = tag_of(&key);
    let entered = match ingress {
        Some(port) => port.vlans().enters(tag),
        None => PortVlans::default().enters(tag),
    };
    let Some(vlan) = entered else { return dropped(target, DropReason::NotInVlan) };
    if !is_multicast(src) && ingress.is_some() {
        target.learn((vlan, src), in_port);
    }
    if is_link_local(dst) {
        return dropped(target, DropReason::Reserved);
    }
    let known = if is_multicast(dst) { None } else { target.port_of((vlan, dst)) };
    target.note(|| format!("in VLAN {vlan}"));
    // By one port, with the tag that its VLANs ask for.
    let retagged = |target: &mut T, number: PortNo| {
        let leaves = ports.get(number).map(|port| port.vlans().leaves(vlan));
        let Some(leaves) = leaves.filter(|leaves| leaves.differs(tag)) else {
            return send(target, ports, packet, number, queue);
        };
        let mut copy = target.fresh(packet);
        leaves.put(&mut copy.frame, tag);
        send(target, ports, &copy, number, queue);
        target.discard(copy);
    };
    match known {
        None => {
            let wanted = |port: &Port| !port.no_flood() && port.vlans().carries(vlan);
            flood(target, ports, packet, wanted, |target, number, _| retagged(target, number));
        }
        Some(port) if port == in_port => dropped(target, DropReason::ToIngress),
        Some(port) => retagged(target, port),
    }
}

fn dropped<'a, T: Target<'a>>(target: &mut T, reason: DropReason) {
    target.note(|| format!("dropped: {}", reason.name()));
    target.drop(reason);
}
