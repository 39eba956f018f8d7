//! The kernel's own IPv4 forwarding between the two hosts: it decides by routes and knows neither
//! flow entries nor OpenFlow.
//!
//! The hosts keep their addresses: each of its devices answers to the Ethernet address that a host
//! sends to, and each host is a network of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netdev::sys::link::{LinkError, Rtnl};

use super::{Dut, DutPlan, StartedDut, refused};
use crate::hosts::HOSTS;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;
use crate::testbed::netns::Offloads;

/// A router in the switch's namespace.
pub(super) struct LinuxRouter;

/// Has the kernel of this namespace forward IPv4 between all of its devices.
fn forward(ports: &[&str]) -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    for device in ["all", "default"].iter().chain(ports) {
        let folder = format!("/proc/sys/net/ipv4/conf/{device}");
        std::fs::write(format!("{folder}/rp_filter"), "0")?;
        std::fs::write(format!("{folder}/send_redirects"), "0")?;
    }
    Ok(())
}

/// A route to each host. Each of the two devices has the Ethernet address of the host behind the
/// other one, so that the hosts send as they do to each other. What is for neither of them goes to
/// host 2.
fn route(rtnl: &Rtnl, ports: &[&str]) -> Result<(), LinkError> {
    for (port, (here, other)) in ports.iter().zip([(HOSTS[0], HOSTS[1]), (HOSTS[1], HOSTS[0])]) {
        rtnl.set_mac(port, other.mac)?;
        rtnl.add_route(port, (IpAddr::V4(here.ip), 32), None)?;
        rtnl.add_neighbour(port, IpAddr::V4(here.ip), here.mac)?;
    }
    let all = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    ports.get(1).map_or(Ok(()), |far| rtnl.add_route(far, all, Some(IpAddr::V4(HOSTS[1].ip))))
}

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

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let (namespace, rtnl) = plan.kernel(self.name())?;
        let ports = plan.devices(self.name())?;
        namespace.enter(|| forward(&ports)).and_then(|done| done).map_err(refused)?;
        route(&rtnl, &ports).map_err(refused)?;
        let mut service = Service::new();
        service.note_command(
            "sysctl net.ipv4.ip_forward=1; ip route add HOST/32 dev PORT; \
             ip route add default via HOST2"
                .to_owned(),
        );
        Ok(StartedDut::without_channel(service))
    }
}
