//! The kernel's own IPv4 forwarding between the two hosts: it decides by routes and knows neither
//! flow entries nor OpenFlow.
//!
//! The hosts keep their addresses: each of its devices answers to the Ethernet address that a host
//! sends to, and each host is a network of its own.

use programs::tools::{Missing, Program};

use super::{Dut, DutPlan, StartedDut};
use crate::hosts::HOSTS;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;
use crate::testbed::netns::Offloads;

/// A router in the switch's namespace.
pub(super) struct LinuxRouter;

impl Dut for LinuxRouter {
    fn name(&self) -> &'static str {
        "linux-router"
    }

    fn about(&self) -> &'static str {
        "IPv4 forwarding of the Linux kernel between two networks; has no OpenFlow"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        super::no_openflow(settings)?;
        if settings.ports() > 2 {
            return Err("the lab makes it a router between two networks only".to_owned());
        }
        if let Some(packet) = &settings.packet {
            let router = openflow::MacAddr(HOSTS[1].mac).to_string();
            let is_routed = packet.contains("ipv4(") && !packet.contains("vlan(");
            if !is_routed || !packet.contains(&format!("dst={router}")) {
                return Err(format!("forwards untagged IPv4 that is sent to {router} only"));
            }
        }
        if settings.is_bidirectional == Some(true)
            && settings.modifiers.as_ref().is_some_and(|modifiers| !modifiers.is_empty())
        {
            return Err("has a route for any address to host 2 only".to_owned());
        }
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::Kept
    }

    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(Vec::new())
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let kernel = plan.bed.kernel().ok_or_else(|| {
            ServiceError::Unfit("the kernel's router has no in-memory ports: run as root".into())
        })?;
        kernel.add_router().map_err(|error| ServiceError::Unfit(error.to_string()))?;
        let mut service = Service::new();
        service.note_command(
            "sysctl net.ipv4.ip_forward=1; ip route add HOST/32 dev PORT; \
             ip route add default via HOST2"
                .to_owned(),
        );
        Ok(StartedDut::without_channel(service))
    }
}
