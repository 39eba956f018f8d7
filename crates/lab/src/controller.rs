//! Controllers: what one is for the lab, and the list of them.
//!
//! A new controller is one file under `controller/` and one line in [`ALL`]. A controller is a
//! process that listens on an address and runs one of the lab's applications.

mod os_ken;
mod testcontroller;
mod weir;

use std::net::Ipv4Addr;
use std::time::Duration;

use programs::cancel::Cancel;
use programs::listening::is_listened_on;
use programs::process::{self, Process};
use programs::tools::{Missing, Program};

use crate::keys::ChannelKeys;
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::AppKind;
pub(crate) use weir::start_weir;

/// The settings of a controller.
#[derive(Clone, Copy, Debug)]
pub struct ControllerPlan<'a> {
    /// Place where it runs.
    pub context: ServiceContext<'a>,
    /// The application.
    pub app: AppKind,
    /// Address at which it listens.
    pub address: Ipv4Addr,
    /// On which TCP port.
    pub port: u16,
    /// Keys and certificates, where it is to listen with TLS.
    pub keys: Option<&'a ChannelKeys>,
}

/// A controller.
pub trait ControllerProgram: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// Whether the lab can start it with TLS.
    fn has_tls(&self) -> bool {
        false
    }

    /// About how long it takes to start, be found by the switch, and end.
    fn start_cost(&self) -> Duration {
        Duration::from_millis(300)
    }

    /// The programs that it consists of.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing>;

    /// Starts it and returns when it listens.
    ///
    /// # Errors
    /// [`ServiceError`] with what the program said.
    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, ServiceError>;
}

/// Every controller.
pub const ALL: &[&dyn ControllerProgram] =
    &[&weir::WeirController, &os_ken::OsKen, &testcontroller::OvsTestcontroller];

/// The controller of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn ControllerProgram> {
    ALL.iter().copied().find(|controller| controller.name() == name)
}

/// Longest time until a controller listens; Python's imports on a busy machine take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Waits until `plan`'s port is listened on. The kernel's list of sockets is asked, and no
/// connection made: a controller would take that for a switch.
pub(crate) fn wait_until_listening(
    process: &mut Process,
    plan: &ControllerPlan<'_>,
    cancel: &Cancel,
) -> Result<(), process::ProcessError> {
    process.wait_until("listen", START_LIMIT, cancel, |_| {
        is_listened_on(plan.context.namespace, &[plan.port])
    })
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};

    #[test]
    fn names_are_found() {
        for controller in ALL {
            assert_eq!(find(controller.name()).unwrap().about(), controller.about());
        }
        assert!(find("nothing").is_none());
    }
}
