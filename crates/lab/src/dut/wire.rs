//! No switch at all: the hosts are joined by one link. What is measured here is the limit of every
//! switch on this machine, and the floor of the lab's own delays.

use super::{Dut, DutId, DutPlan, StartedDut};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{Forwarding, Settings};

const ABOUT: &str =
    "No switch: one link between the hosts, which is the limit and the lab's own floor";

/// A link, by its name: as a switch under test, or as the lab's own floor.
pub(super) struct DirectLink(pub(super) &'static str);

impl Dut for DirectLink {
    fn id(&self) -> DutId {
        DutId::new(self.0, ABOUT)
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        match settings.forwarding() {
            Forwarding::Flows | Forwarding::Learning | Forwarding::Io if settings.ports() <= 2 => {
                Ok(())
            }
            Forwarding::Controller => Err("has no OpenFlow channel".to_owned()),
            Forwarding::Flows | Forwarding::Learning | Forwarding::Io => {
                Err("joins two hosts only".to_owned())
            }
        }
    }

    fn is_wire(&self) -> bool {
        true
    }

    fn start(&self, _plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        Ok(StartedDut::without_channel(Service::new()))
    }
}
