//! The asynchronous messages of a controller (clauses 6.3.5 and 7.3.10): masks of reasons, one
//! for master and equal, one for slave.

use openflow::flow::FlowRemovedReason;
use openflow::message::{AsyncConfig, ControllerRole, PacketInReason};
use openflow::port::PortReason;

/// Before a controller says otherwise: as master or equal everything but packets with an invalid
/// TTL, which nobody asked for; as slave only port status.
pub(crate) const DEFAULT: AsyncConfig = AsyncConfig {
    packet_in: [
        1 << 0 | 1 << 1, // no match, action
        0,
    ],
    port_status: [0b111, 0b111],
    flow_removed: [0b1111, 0],
};

/// Nothing at all.
pub(crate) const NOTHING: AsyncConfig =
    AsyncConfig { packet_in: [0; 2], port_status: [0; 2], flow_removed: [0; 2] };

/// Whether a controller of this role gets packet-ins of this reason.
pub(crate) fn wants_packet_in(
    config: &AsyncConfig,
    role: ControllerRole,
    reason: PacketInReason,
) -> bool {
    has(config.packet_in, role, reason.number())
}

/// Whether a controller of this role gets port-status messages of this reason.
pub(crate) fn wants_port_status(
    config: &AsyncConfig,
    role: ControllerRole,
    reason: PortReason,
) -> bool {
    has(config.port_status, role, reason.number())
}

/// Whether a controller of this role gets flow-removed messages of this reason.
pub(crate) fn wants_flow_removed(
    config: &AsyncConfig,
    role: ControllerRole,
    reason: FlowRemovedReason,
) -> bool {
    has(config.flow_removed, role, reason.number())
}

fn has([full, slave]: [u32; 2], role: ControllerRole, reason: u8) -> bool {
    let mask = if role == ControllerRole::Slave { slave } else { full };
    1_u32.checked_shl(reason.into()).is_some_and(|bit| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, wants_flow_removed, wants_packet_in, wants_port_status};
    use openflow::flow::FlowRemovedReason;
    use openflow::message::{ControllerRole, PacketInReason};
    use openflow::port::PortReason;

    #[test]
    fn a_slave_gets_port_status_only() {
        for (role, full) in [
            (ControllerRole::Equal, true),
            (ControllerRole::Master, true),
            (ControllerRole::Slave, false),
        ] {
            assert!(wants_port_status(&DEFAULT, role, PortReason::Modify));
            assert_eq!(wants_packet_in(&DEFAULT, role, PacketInReason::Action), full);
            assert_eq!(wants_packet_in(&DEFAULT, role, PacketInReason::NoMatch), full);
            assert_eq!(wants_flow_removed(&DEFAULT, role, FlowRemovedReason::GroupDelete), full);
            assert!(!wants_packet_in(&DEFAULT, role, PacketInReason::InvalidTtl));
            assert!(!wants_packet_in(&DEFAULT, role, PacketInReason::Unknown(200)));
        }
    }
}
