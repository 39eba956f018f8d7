//! Parts of the kernel that carry frames between the hosts' devices, without OpenFlow.
//!
//! The bridge learns addresses. The limit of kernel ports is a program of four instructions at each
//! of two devices, which decides nothing and hands every frame straight to the other host.

use netdev::sys::link::Rtnl;
use netdev::sys::netns::Namespace;
use netdev::sys::peer_redirect::PeerRedirect;

use super::{Dut, DutId, DutPlan, StartedDut, no_openflow};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;

/// Makes it between devices of a namespace.
type Make = fn(&Namespace, &Rtnl, &[&str], &mut Service) -> Result<(), ServiceError>;

/// A part of the kernel in the switch's namespace.
pub(super) struct InKernel {
    id: DutId,
    /// The words by which a user makes it.
    words: &'static str,
    check: fn(&Settings) -> Result<(), String>,
    make: Make,
}

pub(super) const LINUX_BRIDGE: InKernel = InKernel {
    id: DutId::new("linux-bridge", "The bridge of the Linux kernel; learns, has no OpenFlow"),
    words: "ip link add br0 type bridge; ip link set PORT master br0",
    check: |_| Ok(()),
    make: |_, rtnl, ports, _| {
        const BRIDGE: &str = "br0";
        rtnl.add_bridge(BRIDGE).map_err(refused)?;
        ports.iter().try_for_each(|port| rtnl.add_to_bridge(port, BRIDGE)).map_err(refused)?;
        rtnl.set_up(BRIDGE, true).map_err(refused)
    },
};

pub(super) const PEER_REDIRECT: InKernel = InKernel {
    id: DutId::new(
        "peer-redirect",
        "Four instructions at each TCX hook hand every frame straight to the other host: the limit",
    ),
    words: "bpf_redirect_peer from each PORT to the other",
    check: |settings| match settings.ports() > 2 {
        true => Err(TWO_HOSTS.to_owned()),
        false => Ok(()),
    },
    make: |namespace, rtnl, ports, service| {
        let index = |device: &&str| rtnl.link(device).map(|link| link.index).map_err(refused);
        let ports = ports.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        let [one, other] = ports[..] else {
            return Err(ServiceError::Unfit(TWO_HOSTS.to_owned()));
        };
        let programs = namespace.enter(|| PeerRedirect::between(one, other));
        service.keep_in_kernel(programs.and_then(|made| made).map_err(refused)?);
        Ok(())
    },
};

const TWO_HOSTS: &str = "it joins two hosts only";

/// An order that the kernel refuses.
fn refused(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::Unfit(error.to_string())
}

impl Dut for InKernel {
    fn id(&self) -> DutId {
        self.id
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        no_openflow(settings)?;
        (self.check)(settings)
    }

    fn has_offloads(&self) -> bool {
        true
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let Some(namespace) = plan.context.namespace else {
            let what = format!("{} is made in a network namespace of its own", self.id.name);
            return Err(ServiceError::Unfit(format!("{what}: run as root")));
        };
        let rtnl = Rtnl::open_in(namespace).map_err(refused)?;
        let mut service = Service::new();
        (self.make)(namespace, &rtnl, &plan.devices(self.id.name)?, &mut service)?;
        service.note_command(self.words.to_owned());
        Ok(StartedDut::without_channel(service))
    }
}
