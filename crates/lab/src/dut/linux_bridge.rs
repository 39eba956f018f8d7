//! The kernel's own bridge: it learns addresses and knows no OpenFlow.

use programs::tools::{Missing, Program};

use super::{Dut, DutPlan, StartedDut};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;
use crate::testbed::netns::Offloads;

/// A bridge device in the switch's namespace.
pub(super) struct LinuxBridge;

impl Dut for LinuxBridge {
    fn name(&self) -> &'static str {
        "linux-bridge"
    }

    fn about(&self) -> &'static str {
        "The bridge of the Linux kernel; learns, has no OpenFlow"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        super::no_openflow(settings)
    }

    fn offloads(&self) -> Offloads {
        Offloads::Kept
    }

    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(Vec::new())
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let kernel = plan.bed.kernel().ok_or_else(|| {
            ServiceError::Unfit("the kernel's bridge has no in-memory ports: run as root".into())
        })?;
        kernel.add_bridge().map_err(|error| ServiceError::Unfit(error.to_string()))?;
        let mut service = Service::new();
        service.note_command("ip link add br0 type bridge; ip link set PORT master br0".to_owned());
        Ok(StartedDut::without_channel(service))
    }
}
