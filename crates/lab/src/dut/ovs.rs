//! Open vSwitch as Debian ships it, user-space datapath, with a private database and daemon.
//!
//! Its run, log and database folders are the run's scratch folder; nothing of the system's own
//! Open vSwitch is read or changed. Threads are as they come: the main thread forwards between the
//! kernel's devices.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use channel::Endpoint;
use programs::listening::is_listened_on;
use programs::process::{self, Process, command_line};
use programs::tools::{Missing, Program, Tool};

use super::{Dut, DutId, DutPlan, PortName, StartedDut, bridge_name};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::{CacheSet, Forwarding, Settings};

const START_LIMIT: Duration = Duration::from_secs(20);

/// Time that one more bridge may add to the start: each has a device of its own.
const BRIDGE_LIMIT: Duration = Duration::from_millis(200);

/// The database's socket, in the folder of the run.
const DATABASE_SOCKET: &str = "db.sock";

/// The daemon's name among the programs of the service.
const DAEMON: &str = "ovs-vswitchd";

/// The daemon's control socket, in the folder of the run.
pub(super) const DAEMON_CONTROL: &str = "vswitchd.ctl";

/// Paths of the database's schema in packages and source installations.
const SCHEMAS: [&str; 2] =
    ["/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema"];

/// `ovs-vswitchd` with `datapath_type=netdev`.
pub(super) struct Ovs {
    id: DutId,
    /// Whether it takes and sends super-frames.
    has_tso: bool,
}

/// As it comes.
pub(super) const OVS: Ovs = Ovs {
    id: DutId::new(
        "ovs",
        "Open vSwitch, user-space datapath, private daemon; caches \"key\" is without its \
            exact-match cache, \"none\" looks each packet up in the flow tables (flow-limit=0)",
    ),
    has_tso: false,
};

/// With `userspace-tso-enable`, and hosts that leave checksums and segmentation to others.
pub(super) const OVS_TSO: Ovs = Ovs {
    id: DutId::new(
        "ovs-tso",
        "Open vSwitch, user-space datapath with userspace-tso-enable; its hosts' offloads are \
            left as the kernel has them",
    ),
    has_tso: true,
};

/// The settings of the whole daemon (`other_config`) for a set of caches.
///
/// The exact-match cache is filled by no packet with `emc-insert-inv-prob=0`. Nothing is installed
/// in the datapath's classifier with `flow-limit=0`: each packet is an upcall, which is what other
/// switches call a lookup in the flow tables.
pub(super) fn cache_settings(caches: CacheSet) -> &'static [&'static str] {
    match caches {
        CacheSet::Usual | CacheSet::User | CacheSet::Kernel => &[],
        CacheSet::Key => &["other_config:emc-insert-inv-prob=0"],
        CacheSet::None => &["other_config:emc-insert-inv-prob=0", "other_config:flow-limit=0"],
    }
}

/// Refuses settings that no Open vSwitch in user space has.
///
/// # Errors
/// The reason.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    if settings.forwarding() == Forwarding::Io {
        return Err("forwards by flow tables only".to_owned());
    }
    if settings.has_queues == Some(true) {
        let what = "its user-space datapath sends past the queues of the port: set_queue changes \
                    nothing there";
        return Err(what.to_owned());
    }
    if settings.caches() == CacheSet::Kernel {
        return Err("its kernel module is another datapath than the one in user space".to_owned());
    }
    Ok(())
}

impl Dut for Ovs {
    fn id(&self) -> DutId {
        self.id
    }

    fn has_offloads(&self) -> bool {
        self.has_tso
    }

    fn programs(&self, _settings: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        for tool in [Tool::OvsdbServer, Tool::OvsdbTool, Tool::OvsVsctl] {
            tool.find()?;
        }
        Ok(vec![Tool::Vswitchd.program()?])
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        check(settings)?;
        let is_more = |count: Option<u16>| count.is_some_and(|count| count > 1);
        if is_more(settings.workers) || is_more(settings.queues) {
            let what = "its main thread forwards between the kernel's devices, alone and from one \
                        queue; ovs-dpdk has threads and queues";
            return Err(what.to_owned());
        }
        Ok(())
    }

    fn start_cost(&self, settings: &Settings) -> Duration {
        Duration::from_millis(400) + Duration::from_millis(15) * settings.bridges() as u32
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let mut settings = cache_settings(plan.settings.caches()).to_vec();
        if self.has_tso {
            settings.push("other_config:userspace-tso-enable=true");
        }
        let mut service = start_daemon(&plan.context, &settings)?;
        let port = |port: &PortName, _| match port {
            PortName::Device(name) => {
                Some(PortWords { name: name.clone(), settings: String::new() })
            }
            PortName::Memory(_) | PortName::Dpdk(_) => None,
        };
        add_bridges(plan, port, &mut service)?;
        service.check()?;
        Ok(StartedDut::listening(service, plan))
    }
}

/// Words of `ovs-vsctl` for a port.
pub(super) struct PortWords {
    /// Its name in Open vSwitch.
    pub(super) name: String,
    /// Settings of its interface.
    pub(super) settings: String,
}

/// Adds the plan's bridges, with the ports on the first, and returns when all of them take OpenFlow
/// connections, or have their controller.
///
/// # Errors
/// [`ServiceError`] with what a program said.
pub(super) fn add_bridges(
    plan: &DutPlan<'_>,
    port: impl Fn(&PortName, usize) -> Option<PortWords>,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let context = &plan.context;
    let count = u32::try_from(plan.listen.len()).unwrap_or(u32::MAX);
    let limit = START_LIMIT + BRIDGE_LIMIT * count;
    if let Some(keys) = plan.keys.map(|keys| &keys.switch) {
        let [key, certificate, authority] =
            [&keys.private_key, &keys.certificate, &keys.ca_cert].map(|path| path.display());
        configure(context, &format!("set-ssl {key} {certificate} {authority}"), service)?;
    }
    configure_within(context, &configuration(plan, port)?, limit, service)?;
    if let Some(controller) = plan.controller {
        // A packet before the controller's hello is dropped, and so are those behind it for as
        // long as they come: a hub that sets up no entry never makes Open vSwitch decide anew. Its
        // log says at once that the channel is up, its database (`is_connected`) up to 5 s later.
        let bridges: Vec<String> = (0..plan.listen.len()).map(bridge_name).collect();
        let is_connected = |log: &str| {
            bridges
                .iter()
                .all(|bridge| log.contains(&format!("{bridge}<->{controller}: connected")))
        };
        let what = format!("say that it is connected to {controller}");
        service.wait_for_output(DAEMON, &what, limit, context.cancel, is_connected)?;
    }
    // Open vSwitch opens them after it has said that the bridges are there.
    let is_open = context.cancel.poll(limit, || is_listening(plan));
    if !is_open.map_err(process::ProcessError::Stopped)? {
        let what = format!(
            "Open vSwitch has not opened all of its {count} OpenFlow channels; it said:\n{}",
            service.tails()
        );
        return Err(ServiceError::Unfit(what));
    }
    Ok(())
}

/// Whether every bridge takes connections.
fn is_listening(plan: &DutPlan<'_>) -> bool {
    let mut ports = Vec::new();
    for endpoint in plan.listen {
        match endpoint {
            Endpoint::Unix(path) | Endpoint::PassiveUnix(path) => {
                if !path.exists() {
                    return false;
                }
            }
            Endpoint::Tcp { port, .. }
            | Endpoint::Ssl { port, .. }
            | Endpoint::PassiveTcp { port, .. }
            | Endpoint::PassiveSsl { port, .. } => ports.push(*port),
        }
    }
    ports.is_empty() || is_listened_on(plan.context.namespace, &ports)
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
    start_program(context, &Tool::Vswitchd.find()?, settings, None)
}

/// The same for another build of the daemon, at a niceness.
///
/// # Errors
/// [`ServiceError`] with what a program said.
pub(super) fn start_program(
    context: &ServiceContext<'_>,
    program: &Path,
    settings: &[&str],
    niceness: Option<i8>,
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
        let words = ["--no-wait", "set", "Open_vSwitch", ".", setting];
        vsctl(context, &words, START_LIMIT, &mut service)?;
    }

    let mut daemon = match niceness {
        Some(niceness) => {
            let mut nice = ovs_program(context, Path::new("nice"));
            nice.args(["-n", &niceness.to_string()]).arg(program);
            nice
        }
        None => ovs_program(context, program),
    };
    daemon
        .arg(format!("unix:{}", socket.display()))
        .arg(format!("--unixctl={}", context.dir.join(DAEMON_CONTROL).display()));
    daemon.args(["--no-chdir", "--disable-system", "-vsyslog:off"]);
    let daemon = Process::start(DAEMON, daemon, context.namespace, context.dir)?;
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
    configure_within(context, text, START_LIMIT, service)
}

/// The same, with so much time.
fn configure_within(
    context: &ServiceContext<'_>,
    text: &str,
    limit: Duration,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    vsctl(context, &words, limit, service)
}

fn vsctl(
    context: &ServiceContext<'_>,
    words: &[&str],
    limit: Duration,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let mut command = ovs(context, Tool::OvsVsctl)?;
    command.arg(format!("--db=unix:{}", context.dir.join(DATABASE_SOCKET).display()));
    command.arg(format!("--timeout={}", limit.as_secs())).args(words);
    step_within(context, command, limit, service)
}

fn ovs(context: &ServiceContext<'_>, tool: Tool) -> Result<Command, ServiceError> {
    Ok(ovs_program(context, &tool.find()?))
}

fn ovs_program(context: &ServiceContext<'_>, program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, context.dir);
    }
    // DPDK keeps its own files there.
    command.env("RUNTIME_DIRECTORY", context.dir);
    command
}

/// `ovs-vsctl`'s words for the bridges, the ports and the controllers in one transaction.
fn configuration(
    plan: &DutPlan<'_>,
    port: impl Fn(&PortName, usize) -> Option<PortWords>,
) -> Result<String, ServiceError> {
    let fail_mode = match plan.settings.forwarding() {
        Forwarding::Learning => "standalone",
        Forwarding::Flows | Forwarding::Controller | Forwarding::Io => "secure",
    };
    let protocols = plan.context.version.name();
    let mut words = Vec::new();
    for (index, endpoint) in plan.listen.iter().enumerate() {
        let (bridge, dpid) = (bridge_name(index), plan.dpid(index));
        words.push(format!(
            "add-br {bridge} -- set bridge {bridge} datapath_type=netdev fail_mode={fail_mode} \
             protocols={protocols} other_config:datapath-id={dpid} \
             other_config:disable-in-band=true"
        ));
        // On its own Unix socket a bridge listens anyway.
        let target = match (plan.controller, endpoint) {
            (Some(controller), _) => Some(controller.to_owned()),
            (None, Endpoint::Unix(_) | Endpoint::PassiveUnix(_)) => None,
            (None, endpoint) => Some(endpoint.to_string()),
        };
        if let Some(target) = target {
            // The lab is silent for longer than any probe waits.
            let probe = if plan.controller.is_some() { "" } else { "inactivity_probe=0" };
            words.push(format!(
                "--id=@c{index} create controller target=\"{target}\" {probe} \
                 connection_mode=out-of-band max_backoff=1000 \
                 -- set bridge {bridge} controller=@c{index}"
            ));
        }
    }
    for (index, port_name) in plan.ports.iter().enumerate() {
        let Some(PortWords { name, settings }) = port(port_name, index) else {
            return Err(ServiceError::Unfit(
                "Open vSwitch has no in-memory ports: run as root".into(),
            ));
        };
        let number = index + 1;
        words.push(format!(
            "add-port {} {name} -- set interface {name} ofport_request={number} {settings}",
            bridge_name(0)
        ));
    }
    Ok(words.join(" -- "))
}

fn step(
    context: &ServiceContext<'_>,
    command: Command,
    service: &mut Service,
) -> Result<(), ServiceError> {
    step_within(context, command, START_LIMIT, service)
}

fn step_within(
    context: &ServiceContext<'_>,
    command: Command,
    limit: Duration,
    service: &mut Service,
) -> Result<(), ServiceError> {
    let line = command_line(&command);
    let output =
        process::run("ovs-step", command, context.namespace, context.dir, limit, context.cancel)?;
    if !output.success {
        let output = output.text.trim_end().to_owned();
        return Err(ServiceError::Step { command: line, output });
    }
    service.note_command(line);
    Ok(())
}
