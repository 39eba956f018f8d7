//! Weir's own switch, started as a process like every other.

use std::process::Command;
use std::time::Duration;

use super::{Dut, DutPlan, OPENFLOW_SOCKET, PortName, StartedDut};
use crate::load::ProcessRole;
use crate::process::Process;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{CacheSet, ChannelTransport, Forwarding, Settings};
use crate::testbed::DPID;
use crate::tools::{Missing, Program};

const START_LIMIT: Duration = Duration::from_secs(20);

/// `weir switch`.
pub(super) struct WeirSwitch {
    name: &'static str,
    about: &'static str,
    /// How forwarding threads wait, as `--poll` takes it.
    poll: &'static str,
}

/// Asleep while nothing comes.
pub(super) const WEIR: WeirSwitch = WeirSwitch {
    name: "weir",
    about: "Weir's user-space switch, AF_PACKET ports, asleep while nothing comes",
    poll: "adaptive",
};

/// Never asleep.
pub(super) const WEIR_BUSY: WeirSwitch = WeirSwitch {
    name: "weir-busy",
    about: "Weir's user-space switch, AF_PACKET ports, never asleep: a whole core a worker",
    poll: "busy",
};

/// What `--caches` takes.
fn caches(caches: CacheSet) -> Option<&'static str> {
    match caches {
        CacheSet::Usual => None,
        CacheSet::Kernel => Some("frame,key,kernel"),
        CacheSet::Key => Some("key"),
        CacheSet::None => Some("off"),
    }
}

impl Dut for WeirSwitch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn check(&self, settings: &Settings) -> Result<(), String> {
        if settings.bridges.is_some_and(|count| count > 1)
            || settings.transport == Some(ChannelTransport::Tls)
        {
            return Err("the lab does not start it with several bridges or with TLS yet".into());
        }
        Ok(())
    }

    fn has_memory_ports(&self) -> bool {
        true
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![Program::ask("weir", &paths.weir, &["--version"])])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let (context, settings) = (&plan.context, plan.settings);
        let mut command = Command::new(&context.paths.weir);
        command.args(["switch", "--dpid", DPID, "--poll", self.poll]);
        for (index, port) in plan.ports.iter().enumerate() {
            let text = match port {
                PortName::Device(device) => format!("af_packet:{device}"),
                PortName::Memory(text) => text.clone(),
            };
            command.arg("--port").arg(format!("{}={text}", index + 1));
        }
        match (settings.forwarding(), plan.controller) {
            (Forwarding::Learning, _) => {
                command.args(["--fail-mode", "standalone"]);
            }
            (Forwarding::Io, _) => {
                command.args(["--forward", "io"]);
            }
            (Forwarding::Controller, Some(controller)) => {
                command.args(["--controller", controller, "--fail-mode", "secure"]);
            }
            (Forwarding::Flows | Forwarding::Controller, _) => {
                // The lab is silent for longer than any probe waits.
                command.args(["--fail-mode", "secure", "--inactivity-probe", "0"]);
            }
        }
        if settings.forwarding() != Forwarding::Io {
            command.args(["--protocols", &context.version.to_string()]);
            let socket = context.dir.join(OPENFLOW_SOCKET);
            command.arg("--listen").arg(format!("punix:{}", socket.display()));
        }
        if let Some(caches) = caches(settings.caches()) {
            command.args(["--caches", caches]);
        }
        if let Some(workers) = settings.workers {
            command.arg("--workers").arg(workers.to_string());
        }
        if settings.has_queues == Some(true) {
            for port in 1..=plan.ports.len() {
                command.arg("--queue").arg(format!("{port}:1,min=50%"));
            }
        }
        command.arg("--control").arg(context.dir.join("ctl.sock"));
        let mut process = Process::start("weir-switch", command, context.namespace, context.dir)?;
        process.wait_for_text("ready", START_LIMIT, context.cancel)?;
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Switch), 0);
        Ok(match settings.forwarding() {
            Forwarding::Io => StartedDut { service, openflow: None },
            Forwarding::Flows | Forwarding::Learning | Forwarding::Controller => {
                StartedDut::with_socket(service, context)
            }
        })
    }
}
