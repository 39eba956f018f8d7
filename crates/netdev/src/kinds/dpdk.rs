//! `dpdk`: any device that DPDK drives, a NIC or a virtual one, named by its devargs.
//!
//! Frames that came from a DPDK port leave by one without a copy. A port may have several queue
//! pairs of its device, each for a thread of its own. There is no descriptor to sleep
//! on, so a worker with such a port polls. Only a build with the cargo feature `dpdk` has it; any
//! other says so.

use crate::error::PortError;
use crate::port::Port;
use crate::spec::{KindRow, PortRight, PortSpec, QUEUES, by_name, no_file, option};

#[cfg(feature = "dpdk")]
mod port;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "dpdk",
    name_hint: "DEVARGS",
    help: "a device that DPDK drives, by its devargs (cargo feature dpdk; EAL options in \
           WEIR_DPDK_EAL, number of buffers in WEIR_DPDK_BUFFERS)",
    options: &[option(QUEUES, "1", "queue pairs, each for a thread of its own; 1 to 64")],
    exclusive: by_name,
    file_use: no_file,
    rights: &[PortRight::LockedMemory, PortRight::DeviceRegisters],
    open,
};

#[cfg(feature = "dpdk")]
fn open(spec: &PortSpec) -> Result<Port, PortError> {
    port::open(spec)
}

#[cfg(not(feature = "dpdk"))]
fn open(spec: &PortSpec) -> Result<Port, PortError> {
    Err(PortError::NotBuilt { name: spec.to_string(), feature: "dpdk" })
}
