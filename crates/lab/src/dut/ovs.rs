//! Open vSwitch as Debian ships it, user-space datapath, with a private database and daemon.
//!
//! Its run, log and database folders are the run's scratch folder; nothing of the system's own
//! Open vSwitch is read or changed. CacheSet and threads are as they come.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Dut, DutPlan, OPENFLOW_SOCKET, PortName, StartedDut};
use crate::load::ProcessRole;
use crate::process::{self, Process, command_line};
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::{CacheSet, ChannelTransport, Forwarding, Settings};
use crate::testbed::DPID;
use crate::tools::{Missing, Program, Tool};

const START_LIMIT: Duration = Duration::from_secs(20);
const BRIDGE: &str = "br0";

/// The database's socket, in the folder of the run.
const DATABASE_SOCKET: &str = "db.sock";

/// Where packages and source installations put the database's schema.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];

/// `ovs-vswitchd` with `datapath_type=netdev`.
pub(super) struct Ovs;

impl Dut for Ovs {
    fn name(&self) -> &'static str {
        "ovs"
    }

    fn about(&self) -> &'static str {
        "Open vSwitch, user-space datapath, private daemon"
    }

    fn programs(&self, _settings: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        for tool in [Tool::OvsdbServer, Tool::OvsdbTool, Tool::OvsVsctl] {
            tool.find()?;
        }
        Ok(vec![Tool::Vswitchd.program()?])
    }

    fn check(&self, settings: &Settings) -> Result<(), String> {
        let is_plain = settings.transport.unwrap_or_default() == ChannelTransport::Plain;
        if settings.forwarding() == Forwarding::Io {
            return Err("forwards by flow tables only".to_owned());
        }
        if settings.bridges.is_some_and(|count| count > 1) || !is_plain {
            return Err("the lab does not start it with several bridges or with TLS yet".into());
        }
        match settings.caches() {
            CacheSet::Usual => Ok(()),
            CacheSet::Kernel => Err("its kernel module is not on this machine".to_owned()),
            CacheSet::Key | CacheSet::None => {
                Err("the lab does not switch its caches off yet".into())
            }
        }
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let context = &plan.context;
        let mut service = start_daemon(context, &[])?;
        configure(context, &configuration(plan)?, &mut service)?;
        if plan.controller.is_some() {
            // A packet before the controller's hello is dropped, and so are those behind it for as
            // long as they come: a hub that sets up no entry never makes Open vSwitch decide anew.
            let connected = format!("wait-until controller {BRIDGE} is_connected=true");
            configure(context, &connected, &mut service)?;
        }
        let socket = context.dir.join(OPENFLOW_SOCKET);
        // The bridge's socket is opened after Open vSwitch has said that the bridge is there.
        let is_open = context.cancel.poll(START_LIMIT, || socket.exists());
        if !is_open.map_err(process::ProcessError::Stopped)? {
            let what = format!("Open vSwitch has not opened {}", socket.display());
            return Err(ServiceError::Unfit(what));
        }
        service.check()?;
        Ok(StartedDut::with_socket(service, context))
    }
}

/// Starts database and daemon in the folder of `context`, without a bridge. The settings
/// (`other_config:KEY=VALUE`) hold from the daemon's first moment on.
///
/// # Errors
/// [`ServiceError`] with what a program said.
pub(crate) fn start_daemon(
    context: &ServiceContext<'_>,
    settings: &[&str],
) -> Result<Service, ServiceError> {
    let database = context.dir.join("conf.db");
    let socket = context.dir.join(DATABASE_SOCKET);
    let mut service = Service::new();
    let schema = SCHEMAS.iter().find(|path| Path::new(path).exists()).ok_or_else(|| {
        Missing("Open vSwitch's schema not found: apt-get install openvswitch-switch".into())
    })?;
    let mut create = ovs(context, Tool::OvsdbTool)?;
    create.arg("create").arg(&database).arg(schema);
    step(context, create, &mut service)?;

    let mut server = ovs(context, Tool::OvsdbServer)?;
    server.arg(&database).arg(format!("--remote=punix:{}", socket.display()));
    server.arg(format!("--unixctl={}", context.dir.join("ovsdb.ctl").display()));
    server.args(["--no-chdir", "-vsyslog:off"]);
    let mut server = Process::start("ovsdb-server", server, context.namespace, context.dir)?;
    server.wait_until("open its socket", START_LIMIT, context.cancel, |_| socket.exists())?;
    service.add(server, None, 0);

    configure(context, "--no-wait init", &mut service)?;
    for setting in settings {
        let words = format!("--no-wait set Open_vSwitch . {setting}");
        configure(context, &words, &mut service)?;
    }

    let mut daemon = ovs(context, Tool::Vswitchd)?;
    daemon
        .arg(format!("unix:{}", socket.display()))
        .arg(format!("--unixctl={}", context.dir.join("vswitchd.ctl").display()));
    daemon.args(["--no-chdir", "--disable-system", "-vsyslog:off"]);
    let daemon = Process::start("ovs-vswitchd", daemon, context.namespace, context.dir)?;
    service.add(daemon, Some(ProcessRole::Switch), 0);
    Ok(service)
}

/// Runs `ovs-vsctl` with the words of `text` on the database of [`start_daemon`].
///
/// # Errors
/// [`ServiceError`] with what it said.
pub(crate) fn configure(
    context: &ServiceContext<'_>,
    text: &str,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let mut command = ovs(context, Tool::OvsVsctl)?;
    command.arg(format!("--db=unix:{}", context.dir.join(DATABASE_SOCKET).display()));
    command.arg("--timeout=20").args(text.split_ascii_whitespace());
    step(context, command, service)
}

fn ovs(context: &ServiceContext<'_>, tool: Tool) -> Result<Command, ServiceError> {
    let mut command = Command::new(tool.find()?);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, context.dir);
    }
    Ok(command)
}

/// `ovs-vsctl`'s words for the bridge, its ports and its controller in one transaction.
fn configuration(plan: &DutPlan<'_>) -> Result<String, ServiceError> {
    let fail_mode = match plan.settings.forwarding() {
        Forwarding::Learning => "standalone",
        Forwarding::Flows | Forwarding::Controller | Forwarding::Io => "secure",
    };
    let mut text = format!(
        "add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail_mode={fail_mode} \
         protocols={} other_config:datapath-id={DPID} other_config:disable-in-band=true",
        plan.context.version.name()
    );
    for (index, port) in plan.ports.iter().enumerate() {
        let PortName::Device(device) = port else {
            return Err(ServiceError::Unfit(
                "Open vSwitch has no in-memory ports: run as root".into(),
            ));
        };
        let number = index + 1;
        text += &format!(
            " -- add-port {BRIDGE} {device} -- set interface {device} ofport_request={number}"
        );
    }
    if let Some(controller) = plan.controller {
        text += &format!(
            " -- --id=@c create controller target=\"{controller}\" connection_mode=out-of-band \
             max_backoff=1000 -- set bridge {BRIDGE} controller=@c"
        );
    }
    Ok(text)
}

fn step(
    context: &ServiceContext<'_>,
    command: Command,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let line = command_line(&command);
    let output = process::run(
        "ovs-step",
        command,
        context.namespace,
        context.dir,
        START_LIMIT,
        context.cancel,
    )?;
    if !output.success {
        let output = output.text.trim_end().to_owned();
        return Err(ServiceError::Step { command: line, output });
    }
    service.note_command(line);
    Ok(())
}
