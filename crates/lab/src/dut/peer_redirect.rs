//! The limit of kernel ports: a program of four instructions at each of two devices, which decides
//! nothing and hands every frame straight to the other host.

use netdev::sys::peer_redirect::PeerRedirect as Programs;

use super::{Dut, DutPlan, StartedDut, refused};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;
use crate::testbed::netns::Offloads;

/// The programs in the switch's namespace.
pub(super) struct PeerRedirect;

impl Dut for PeerRedirect {
    fn name(&self) -> &'static str {
        "peer-redirect"
    }

    fn about(&self) -> &'static str {
        "Four instructions at each TCX hook hand every frame straight to the other host: the limit"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        super::no_openflow(settings)?;
        if settings.ports() > 2 {
            return Err("it joins two hosts only".to_owned());
        }
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::Kept
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let (namespace, rtnl) = plan.kernel(self.name())?;
        let index = |device: &str| rtnl.link(device).map(|link| link.index).map_err(refused);
        let ports = plan.devices(self.name())?.into_iter().map(index);
        let ports = ports.collect::<Result<Vec<_>, _>>()?;
        let [one, other] = ports[..] else {
            return Err(ServiceError::Unfit("it joins two hosts only".to_owned()));
        };
        let programs = namespace.enter(|| Programs::between(one, other));
        let programs = programs.and_then(|made| made).map_err(refused)?;
        let mut service = Service::new();
        service.note_command("bpf_redirect_peer from each PORT to the other".to_owned());
        service.keep_in_kernel(programs);
        Ok(StartedDut::without_channel(service))
    }
}
