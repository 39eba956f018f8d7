//! Controller roles and the choice of asynchronous messages (clauses 7.3.9 and 7.3.10), since 1.3.

use openflow::message::{
    AsyncConfig, AsyncEvent, ControllerRole, ControllerStatus, Role, RoleReason, RoleStatus,
};

use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPACPT_EXPERIMENTER_SLAVE`: masks have two properties of experimenters.
const EXPERIMENTER_SLAVE: u16 = 0xfffe;
/// `OFPACPT_FLOW_STATS_*` and `OFPACPT_CONT_STATUS_*` of 1.5: messages that Weir does not send.
const UNSENT: std::ops::RangeInclusive<u16> = 12..=15;

/// The number that a controller of 1.5 asks for stands in what is padding before; none is given.
pub(crate) fn read_role(r: &mut Reader<'_>) -> reader::ReadResult<Role> {
    let role = ControllerRole::from_number(r.u32()?);
    r.skip(4)?;
    Ok(Role { role, generation_id: r.u64()? })
}

pub(crate) fn write_role(w: &mut Writer<'_>, role: &Role) {
    w.u32(role.role.number());
    w.zeros(4);
    w.u64(role.generation_id);
}

/// Properties, which are of experimenters alone, are left out.
pub(crate) fn read_status(r: &mut Reader<'_>) -> reader::ReadResult<RoleStatus> {
    let role = ControllerRole::from_number(r.u32()?);
    let reason = RoleReason::from_number(r.u8()?);
    r.skip(3)?;
    let generation_id = r.u64()?;
    property::read_all(r, Unknown::LeftOut, |_, _| Ok(false))?;
    Ok(RoleStatus { role: Role { role, generation_id }, reason })
}

pub(crate) fn write_status(w: &mut Writer<'_>, status: &RoleStatus) {
    w.u32(status.role.role.number());
    w.u8(status.reason.number());
    w.zeros(3);
    w.u64(status.role.generation_id);
}

/// Properties, which have the controller's address, are left out.
pub(crate) fn read_controller(r: &mut Reader<'_>) -> reader::ReadResult<ControllerStatus> {
    let mut r = r.sized("controller status")?;
    let status = ControllerStatus {
        short_id: r.u16()?,
        role: ControllerRole::from_number(r.u32()?),
        reason: r.u8()?,
        channel: r.u8()?,
    };
    r.skip(6)?;
    property::read_all(&mut r, Unknown::LeftOut, |_, _| Ok(false))?;
    Ok(status)
}

pub(crate) fn write_controller(
    w: &mut Writer<'_>,
    status: &ControllerStatus,
) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.u16(status.short_id);
    w.u32(status.role.number());
    w.u8(status.reason);
    w.u8(status.channel);
    w.zeros(6);
    w.fill_len(start, start, "controller status")
}

pub(crate) fn read_async_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<AsyncConfig> {
    Ok(AsyncConfig::new([r.u32()?, r.u32()?], [r.u32()?, r.u32()?], [r.u32()?, r.u32()?]))
}

/// Masks of what 1.3 does not send are left out.
pub(crate) fn write_async_v1_3(
    w: &mut Writer<'_>,
    config: &AsyncConfig,
) -> writer::WriteResult<()> {
    for event in [AsyncEvent::PacketIn, AsyncEvent::PortStatus, AsyncEvent::FlowRemoved] {
        config.of(event).into_iter().for_each(|mask| w.u32(mask));
    }
    Ok(())
}

pub(crate) fn read_async_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<AsyncConfig> {
    read_masks(r, Unknown::LeftOut)
}

pub(crate) fn read_async_change_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<AsyncConfig> {
    read_masks(r, Unknown::Refused)
}

/// Reads a property for each mask: its number is twice that of the kind of message, and one more
/// for master and equal.
fn read_masks(r: &mut Reader<'_>, unknown: Unknown) -> reader::ReadResult<AsyncConfig> {
    let mut config = AsyncConfig::default();
    property::read_all(r, unknown, |number, body| {
        if number == EXPERIMENTER_SLAVE && unknown == Unknown::Refused {
            return Err(body.fault(openflow::Error::BadPropertyBadExperimenter));
        }
        let is_unsent = body.version.has_stat_triggers() && UNSENT.contains(&number);
        if is_unsent && unknown == Unknown::Refused {
            return Err(body.fault(openflow::Error::AsyncConfigUnsupported));
        }
        let pair = config.masks.get_mut(usize::from(number / 2));
        let Some([full, slave]) = pair else { return Ok(false) };
        let mask = if number % 2 == 0 { slave } else { full };
        *mask = Some(body.u32()?);
        Ok(true)
    })?;
    Ok(config)
}

/// Writes a property for each mask that is given.
pub(crate) fn write_async_v1_4(
    w: &mut Writer<'_>,
    config: &AsyncConfig,
) -> writer::WriteResult<()> {
    let numbers = (0_u16..).step_by(2);
    for (number, [full, slave]) in numbers.zip(config.masks) {
        for (number, mask) in [(number, slave), (number + 1, full)] {
            if let Some(mask) = mask {
                property::write(w, number, |w| w.u32(mask))?;
            }
        }
    }
    Ok(())
}
