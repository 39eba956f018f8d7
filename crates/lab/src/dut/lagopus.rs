//! Lagopus in its raw-socket build, from the program that is given.
//!
//! It connects to its controller by itself, so the lab waits for it at the controller's address.

use std::process::Command;
use std::time::Duration;

use channel::Endpoint;
use programs::process::Process;
use programs::tools::{Missing, Program};

use super::{Dut, DutPlan, PortName, StartedDut};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;
use crate::testbed::CONTROLLER_PORT;
use crate::testbed::netns::CONTROLLER_IP;

/// Time after which it is seen to run or to have ended.
const START_WAIT: Duration = Duration::from_secs(1);

/// `lagopus`.
pub(super) struct Lagopus;

/// Its datastore: the channel to the controller, a raw socket for each device, one bridge.
fn datastore(devices: &[&str]) -> String {
    let mut text = format!(
        "channel channel01 create -dst-addr {CONTROLLER_IP} -dst-port {CONTROLLER_PORT} \
         -protocol tcp\n\
         controller controller01 create -channel channel01 -role equal -connection-type main\n"
    );
    let mut ports = String::new();
    for (number, device) in (1..).zip(devices) {
        text += &format!(
            "interface interface{number:02} create -type ethernet-rawsock -device {device}\n\
             port port{number:02} create -interface interface{number:02}\n"
        );
        ports += &format!(" -port port{number:02} {number}");
    }
    text + &format!(
        "bridge bridge01 create -controller controller01{ports} -dpid 0x1 -fail-mode secure\n\
         bridge bridge01 enable\n"
    )
}

impl Dut for Lagopus {
    fn name(&self) -> &'static str {
        "lagopus"
    }

    fn about(&self) -> &'static str {
        "Lagopus, OpenFlow 1.3 in user space, raw-socket build; needs --lagopus PATH"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        super::one_bridge_of_1_3(settings, "plain TCP")
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        let path = paths.lagopus.as_deref().ok_or_else(|| {
            Missing("not built: build Lagopus without DPDK, then --lagopus PATH".to_owned())
        })?;
        if !path.is_file() {
            return Err(Missing(format!("{} is not there: --lagopus PATH", path.display())));
        }
        Ok(vec![Program::ask("lagopus", path, &["--version"])])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let context = &plan.context;
        let program = context
            .paths
            .lagopus
            .as_deref()
            .ok_or_else(|| Missing("no program lagopus: --lagopus PATH".to_owned()))?;
        let devices = plan.ports.iter().map(|port| match port {
            PortName::Device(device) => Ok(device.as_str()),
            PortName::Memory(_) | PortName::Dpdk(_) => {
                Err(ServiceError::Unfit("Lagopus has no in-memory ports: run as root".to_owned()))
            }
        });
        let devices = devices.collect::<Result<Vec<&str>, _>>()?;
        let path = context.dir.join("lagopus.dsl");
        std::fs::write(&path, datastore(&devices))
            .map_err(|source| ServiceError::File { path: path.clone(), source })?;
        let mut command = Command::new(program);
        command.arg("-d").arg("-C").arg(&path);
        command.arg("-l").arg(context.dir.join("lagopus.log"));
        let mut process = Process::start("lagopus", command, context.namespace, context.dir)?;
        context.cancel.sleep(START_WAIT).map_err(programs::process::ProcessError::Stopped)?;
        process.check()?;
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Switch), 0);
        let host = CONTROLLER_IP.to_string();
        let bridges = vec![Endpoint::PassiveTcp { host, port: CONTROLLER_PORT }];
        Ok(StartedDut { service, bridges, tls: None, tier: None, counters: None })
    }
}

#[cfg(test)]
mod tests {
    use super::{Dut, Lagopus, ProgramPaths, datastore};
    use std::path::PathBuf;

    #[test]
    fn each_device_is_a_port() {
        let text = datastore(&["sw-h1", "sw-h2"]);
        assert!(text.contains("-port port01 1 -port port02 2 "), "{text}");
        assert!(text.contains("interface interface02 create -type ethernet-rawsock -device sw-h2"));
    }

    #[test]
    fn without_a_program_the_remedy_is_named() {
        let paths = ProgramPaths::new(PathBuf::from("/nowhere"), PathBuf::from("/nowhere"));
        assert!(Lagopus.programs(&paths).unwrap_err().to_string().contains("--lagopus PATH"));
    }
}
