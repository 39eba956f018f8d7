//! `NORMAL`: forwarding as a learning switch does (clause 4.5), within the packet's VLAN.
//!
//! One function for three targets: forwarding now, traces, and programs of the kernel tier for
//! packets between two stations. The target knows the stations.

use openflow::{Field, MacAddr, PortNo, QueueId};
use packet::extract;

use super::{Executed, Packet, Target, WalkFlow, flood, send};
use crate::counter::DropReason;
use crate::macs::{Station, is_link_local, is_multicast};
use crate::ports::Port;
use crate::vlans::{PortVlans, tag_of};

/// A learning switch, with its knowledge of stations.
pub(in crate::fast) trait Stations<'a>: Target<'a> {
    /// The port behind which a station was seen. `Break` when the target does nothing with packets
    /// to an unknown station.
    fn port_of(&mut self, station: Station) -> WalkFlow<Option<PortNo>>;

    /// A station is seen behind a port. A packet must not see what it taught itself, so this holds
    /// from the next packet on.
    fn learn(&mut self, station: Station, port: PortNo);
}

/// Carries out an output to `NORMAL`.
pub(in crate::fast) fn forward_as_switch<'a, T: Stations<'a>>(
    target: &mut T,
    packet: &Packet,
    queue: Option<QueueId>,
) -> WalkFlow {
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
    let Some(vlan) = entered else { return drop(target, DropReason::NotInVlan) };
    if !is_multicast(src) && ingress.is_some() {
        target.learn((vlan, src), in_port);
    }
    if is_link_local(dst) {
        return drop(target, DropReason::Reserved);
    }
    let known = if is_multicast(dst) { None } else { target.port_of((vlan, dst))? };
    target.note(|| format!("in VLAN {vlan}"));
    // By one port, with the tag that its VLANs ask for.
    let retagged = |target: &mut T, number: PortNo| {
        let leaves = ports.get(number).map(|port| port.vlans().leaves(vlan));
        let Some(leaves) = leaves.filter(|leaves| leaves.differs(tag)) else {
            return send(target, ports, packet, number, queue);
        };
        let mut copy = target.begin_copy(packet);
        for action in leaves.actions(tag) {
            // They fit every packet, and no target stops at them.
            let _fits: WalkFlow<Executed> = target.execute(&mut copy, &action);
        }
        send(target, ports, &copy, number, queue);
        target.end_copy(copy);
    };
    let is_apart = |port: Option<&Port>| {
        ingress.zip(port).is_some_and(|(ingress, port)| ingress.is_apart_from(port))
    };
    match known {
        None => {
            let wanted = |port: &Port| {
                !port.no_flood() && port.vlans().carries(vlan) && !is_apart(Some(port))
            };
            flood(target, ports, packet, wanted, |target, number, _| retagged(target, number));
        }
        Some(port) if port == in_port => return drop(target, DropReason::ToIngress),
        Some(port) if is_apart(ports.get(port)) => return drop(target, DropReason::Protected),
        Some(port) => retagged(target, port),
    }
    WalkFlow::Continue(())
}

fn drop<'a, T: Target<'a>>(target: &mut T, reason: DropReason) -> WalkFlow {
    target.note(|| format!("dropped: {}", reason.name()));
    target.drop(reason);
    WalkFlow::Continue(())
}
