//! BOFUSS, the switch that was ofsoftswitch13: its datapath and its protocol process, from the
//! folder that is given.

use std::process::Command;
use std::time::Duration;

use channel::Endpoint;
use programs::process::Process;
use programs::tools::{Missing, Program};

use super::{Dut, DutPlan, PortName, StartedDut, bridge_dpid};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::Settings;

const START_LIMIT: Duration = Duration::from_secs(20);

/// `ofdatapath` and `ofprotocol`.
pub(super) struct Bofuss;

impl Dut for Bofuss {
    fn name(&self) -> &'static str {
        "bofuss"
    }

    fn about(&self) -> &'static str {
        "BOFUSS (ofsoftswitch13), OpenFlow 1.3 in user space; needs --bofuss DIR"
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        super::one_bridge_of_1_3(settings, "a Unix socket")
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        let folder = paths.bofuss.as_deref().ok_or_else(|| {
            Missing("not built: build BOFUSS, then --bofuss DIR with its programs".to_owned())
        })?;
        let ask = |name: &str| {
            let path = folder.join(name);
            if !path.is_file() {
                return Err(Missing(format!("{} is not there: --bofuss DIR", path.display())));
            }
            Ok(Program::ask(name, &path, &["--version"]))
        };
        ["ofdatapath", "ofprotocol"].into_iter().map(ask).collect()
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let context = &plan.context;
        let folder =
            context.paths.bofuss.as_deref().ok_or_else(|| {
                Missing("no folder with BOFUSS's programs: --bofuss DIR".to_owned())
            })?;
        let devices = plan.ports.iter().map(|port| match port {
            PortName::Device(device) => Ok(device.as_str()),
            PortName::Memory(_) | PortName::Dpdk(_) => {
                Err(ServiceError::Unfit("BOFUSS has no in-memory ports: run as root".to_owned()))
            }
        });
        let devices = devices.collect::<Result<Vec<&str>, _>>()?.join(",");
        let datapath_socket = context.dir.join("datapath.sock");
        let mut datapath = Command::new(folder.join("ofdatapath"));
        // Without a LOCAL port it needs no tap device.
        datapath.args(["--no-slicing", "--no-local-port", "-d", &bridge_dpid(0)[4..]]);
        datapath.arg(format!("--interfaces={devices}"));
        datapath.arg(format!("punix:{}", datapath_socket.display()));
        let mut datapath = Process::start("ofdatapath", datapath, context.namespace, context.dir)?;
        let socket = &datapath_socket;
        datapath.wait_until("open its socket", START_LIMIT, context.cancel, |_| socket.exists())?;
        let mut service = Service::new();
        service.add(datapath, Some(ProcessRole::Switch), 1);

        let mut protocol = Command::new(folder.join("ofprotocol"));
        protocol.arg(format!("unix:{}", datapath_socket.display()));
        if let Some(controller) = plan.controller {
            protocol.arg(controller);
        }
        protocol.args(["--out-of-band", "--fail=closed"]);
        let Some(Endpoint::PassiveUnix(listen)) = plan.listen.first() else {
            return Err(ServiceError::Unfit("BOFUSS listens on a Unix socket".to_owned()));
        };
        protocol.arg(format!("--listen=punix:{}", listen.display()));
        let mut protocol = Process::start("ofprotocol", protocol, context.namespace, context.dir)?;
        protocol.wait_until("listen", START_LIMIT, context.cancel, |_| listen.exists())?;
        service.add(protocol, Some(ProcessRole::Switch), 1);
        Ok(StartedDut::listening(service, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::{Bofuss, Dut, ProgramPaths};
    use std::path::PathBuf;

    #[test]
    fn without_programs_the_remedy_is_named() {
        let mut paths = ProgramPaths::new(PathBuf::from("/nowhere"), PathBuf::from("/nowhere"));
        assert!(Bofuss.programs(&paths).unwrap_err().to_string().contains("--bofuss DIR"));
        paths.bofuss = Some(PathBuf::from("/nowhere"));
        let error = Bofuss.programs(&paths).unwrap_err().to_string();
        assert!(error.contains("/nowhere/ofdatapath"), "{error}");
    }
}
