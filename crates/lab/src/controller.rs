//! Controllers: what one is for the lab, and the list of them.
//!
//! A new controller is one file under `controller/` and one line in [`ALL`]. A controller is a
//! process that listens on an address and runs one of the lab's applications.

mod os_ken;
mod testcontroller;
mod weir;

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use programs::listening::is_listened_on;
use programs::process::Process;
use programs::tools::{Missing, Program};

use crate::keys::ChannelKeys;
use crate::load::ProcessRole;
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
#[derive(Debug)]
pub struct ControllerProgram {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// Whether the lab can start it with TLS.
    pub has_tls: bool,
    /// About how long it takes to start, be found by the switch, and end.
    pub start_cost: Duration,
    /// The programs that it consists of, or the remedy for the one that is missing.
    pub programs: fn(&ProgramPaths) -> Result<Vec<Program>, Missing>,
    /// Starts it and returns when it listens; or what the program said.
    pub start: fn(&ControllerPlan<'_>) -> Result<Service, ServiceError>,
}

/// Every controller.
pub const ALL: &[ControllerProgram] = &[weir::WEIR, os_ken::OS_KEN, testcontroller::OVS];

/// The controller of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static ControllerProgram> {
    ALL.iter().find(|controller| controller.name == name)
}

/// Longest time until a controller listens; Python's imports on a busy machine take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Starts a controller's program, which uses `cores_max` cores at once (0 for any number), and
/// waits until `plan`'s port is listened on. The kernel's list of sockets is asked, and no
/// connection made: a controller would take that for a switch.
///
/// # Errors
/// It does not start, or does not listen in time.
pub(crate) fn start_listening(
    name: &str,
    command: Command,
    plan: &ControllerPlan<'_>,
    cores_max: usize,
) -> Result<Service, ServiceError> {
    let ServiceContext { namespace, dir, cancel, .. } = plan.context;
    let mut process = Process::start(name, command, namespace, dir)?;
    process
        .wait_until("listen", START_LIMIT, cancel, |_| is_listened_on(namespace, &[plan.port]))?;
    Ok(service_of(process, cores_max))
}

fn service_of(process: Process, cores_max: usize) -> Service {
    let mut service = Service::new();
    service.add(process, Some(ProcessRole::Controller), cores_max);
    service
}

/// The files of TLS on the command line of a controller, where the plan has keys.
fn add_keys(command: &mut Command, plan: &ControllerPlan<'_>) {
    if let Some(keys) = plan.keys.map(|keys| &keys.controller) {
        command.arg("--private-key").arg(&keys.private_key);
        command.arg("--certificate").arg(&keys.certificate);
        command.arg("--ca-cert").arg(&keys.ca_cert);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};

    #[test]
    fn names_are_found() {
        for controller in ALL {
            assert_eq!(find(controller.name).unwrap().about, controller.about);
        }
        assert!(find("nothing").is_none());
    }
}
