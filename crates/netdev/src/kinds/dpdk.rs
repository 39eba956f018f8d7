//! `dpdk`: any device that DPDK drives, a NIC or a virtual one, named by its devargs.
//!
//! Frames that came from a DPDK port leave by one without a copy. There is no descriptor to sleep
//! on, so a worker with such a port polls. Only a build with the cargo feature `dpdk` has it; any
//! other says so.

use crate::error::PortError;
use crate::port::Port;
use crate::spec::PortSpec;

#[cfg(feature = "dpdk")]
mod port;

#[cfg(feature = "dpdk")]
pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    Ok(Box::new(port::Dpdk::open(spec)?))
}

#[cfg(not(feature = "dpdk"))]
pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    Err(PortError::NotBuilt { name: spec.to_string(), feature: "dpdk" })
}
