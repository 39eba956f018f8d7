//! The asynchronous messages of a controller (clauses 6.3.5 and 7.3.10): masks of reasons, one
//! for master and equal, one for slave.

use openflow::message::{AsyncConfig, AsyncEvent, ControllerRole, PacketInReason};
use openflow::{Error, Version};

/// Nothing at all.
pub(crate) const NOTHING: AsyncConfig =
    AsyncConfig { masks: [[Some(0); 2]; AsyncEvent::ALL.len()] };

/// Before a controller of the version says otherwise: as master or equal everything but packets
/// with an invalid TTL, which nobody asked for; as slave only the status of ports and of its role.
pub(crate) fn default_in(version: Version) -> AsyncConfig {
    let all = |event: AsyncEvent| event.reasons(version);
    NOTHING
        .with(AsyncEvent::PacketIn, [all(AsyncEvent::PacketIn) & !invalid_ttl(), 0])
        .with(AsyncEvent::PortStatus, [all(AsyncEvent::PortStatus); 2])
        .with(AsyncEvent::FlowRemoved, [all(AsyncEvent::FlowRemoved), 0])
        .with(AsyncEvent::RoleStatus, [all(AsyncEvent::RoleStatus); 2])
        .with(AsyncEvent::TableStatus, [all(AsyncEvent::TableStatus), 0])
}

/// The bit of packet-ins with an invalid TTL.
fn invalid_ttl() -> u32 {
    1 << PacketInReason::InvalidTtl.number()
}

/// Whether packets with an invalid TTL are sent to a master or equal.
pub(crate) fn has_invalid_ttl(config: &AsyncConfig) -> bool {
    let [full, _] = config.of(AsyncEvent::PacketIn);
    full & invalid_ttl() != 0
}

/// The choice with or without packets of an invalid TTL for a master or equal.
pub(crate) fn with_invalid_ttl(config: AsyncConfig, is_wanted: bool) -> AsyncConfig {
    let [full, slave] = config.of(AsyncEvent::PacketIn);
    let other = full & !invalid_ttl();
    let full = if is_wanted { other | invalid_ttl() } else { other };
    config.with(AsyncEvent::PacketIn, [full, slave])
}

/// Checks the masks that a controller sends. To versions that have no error for it, bits that are
/// no reason mean nothing.
///
/// # Errors
/// `OFPACFC_INVALID` for bits that are no reason, `OFPACFC_UNSUPPORTED` for a mask of messages that
/// the switch does not send.
pub(crate) fn check(version: Version, asked: &AsyncConfig) -> Result<(), Error> {
    if !version.has_async_properties() {
        return Ok(());
    }
    for event in AsyncEvent::ALL {
        let [full, slave] = asked.of(event);
        let bits = full | slave;
        if bits & !event.reasons(version) != 0 {
            return Err(Error::AsyncConfigInvalid);
        }
        if bits != 0 && event == AsyncEvent::RequestForward {
            return Err(Error::AsyncConfigUnsupported);
        }
    }
    Ok(())
}

/// Whether a controller of this role gets messages of this kind and reason.
pub(crate) fn wants(
    config: &AsyncConfig,
    role: ControllerRole,
    event: AsyncEvent,
    reason: u8,
) -> bool {
    let [full, slave] = config.of(event);
    let mask = if role == ControllerRole::Slave { slave } else { full };
    1_u32.checked_shl(reason.into()).is_some_and(|bit| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::{check, default_in, wants};
    use openflow::Version;
    use openflow::message::{AsyncEvent, ControllerRole};

    #[test]
    fn a_slave_gets_the_status_of_ports_and_of_its_role_only() {
        for &version in Version::ALL {
            let config = default_in(version);
            assert_eq!(check(version, &config), Ok(()));
            for (role, full) in [
                (ControllerRole::Equal, true),
                (ControllerRole::Master, true),
                (ControllerRole::Slave, false),
            ] {
                let wants = |event, reason| wants(&config, role, event, reason);
                assert!(wants(AsyncEvent::PortStatus, 2) && wants(AsyncEvent::RoleStatus, 0));
                assert_eq!(wants(AsyncEvent::PacketIn, 1), full, "{version}");
                assert_eq!(wants(AsyncEvent::PacketIn, 0), full);
                assert_eq!(wants(AsyncEvent::FlowRemoved, 2), full);
                assert!(!wants(AsyncEvent::PacketIn, 2) && !wants(AsyncEvent::PacketIn, 200));
            }
        }
        assert_eq!(default_in(Version::V1_3).of(AsyncEvent::PacketIn), [0b11, 0]);
        assert_eq!(default_in(Version::V1_3).of(AsyncEvent::FlowRemoved), [0b1111, 0]);
    }
}
