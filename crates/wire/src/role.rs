//! Controller roles and the choice of asynchronous messages (clauses 7.3.9 and 7.3.10); 1.3 only.

use openflow::message::{AsyncConfig, ControllerRole, Role};

use crate::reader::{self, Reader};
use crate::writer::Writer;

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

pub(crate) fn read_async(r: &mut Reader<'_>) -> reader::ReadResult<AsyncConfig> {
    Ok(AsyncConfig {
        packet_in: [r.u32()?, r.u32()?],
        port_status: [r.u32()?, r.u32()?],
        flow_removed: [r.u32()?, r.u32()?],
    })
}

pub(crate) fn write_async(w: &mut Writer<'_>, config: &AsyncConfig) {
    for mask in [config.packet_in, config.port_status, config.flow_removed].as_flattened() {
        w.u32(*mask);
    }
}
