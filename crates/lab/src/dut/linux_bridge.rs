//! The kernel's own bridge: it learns addresses and knows no OpenFlow.

use super::{Dut, DutPlan, StartedDut, refused};
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

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        const BRIDGE: &str = "br0";
        let (_, rtnl) = plan.kernel(self.name())?;
        rtnl.add_bridge(BRIDGE).map_err(refused)?;
        for port in plan.devices(self.name())? {
            rtnl.add_to_bridge(port, BRIDGE).map_err(refused)?;
        }
        rtnl.set_up(BRIDGE, true).map_err(refused)?;
        let mut service = Service::new();
        service.note_command("ip link add br0 type bridge; ip link set PORT master br0".to_owned());
        Ok(StartedDut::without_channel(service))
    }
}
