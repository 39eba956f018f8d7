//! Open vSwitch as Debian ships it, user-space datapath, with a private database and daemon.
//!
//! Its run, log and database folders are the run's scratch folder; nothing of the system's own
//! Open vSwitch is read or changed. Threads are as they come: the main thread forwards between the
//! kernel's devices.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use channel::Endpoint;
use programs::listening::is_listened_on;
use programs::process::{self, command_line};
use programs::tools::{Missing, Tool};

use super::{Dut, DutPlan, PortName, StartedDut, bridge_name, one_thread};
use crate::load::ProcessRole;
use crate::service::{Service, ServiceContext, key_options};
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
const fn row(name: &'static str, about: &'static str) -> Dut {
    Dut {
        start_cost: Duration::from_millis(400),
        bridge_cost: Duration::from_millis(15),
        check: |_, settings, _| {
            check(settings)?;
            let what = "its main thread forwards between the kernel's devices, alone and from one \
                        queue; ovs-dpdk has threads and queues";
            one_thread(settings).map_err(|_| what.to_owned())
        },
        programs: |_, _| {
            find_tools()?;
            Ok(vec![Tool::Vswitchd.program()?])
        },
        ..Dut::new(name, about)
    }
}

pub(super) const OVS: Dut = Dut {
    start: |plan| start(plan, None),
    ..row(
        "ovs",
        "Open vSwitch, user-space datapath, private daemon; caches \"key\" is without its \
            exact-match cache, \"none\" looks each packet up in the flow tables (flow-limit=0)",
    )
};

pub(super) const OVS_TSO: Dut = Dut {
    has_offloads: true,
    start: |plan| start(plan, Some("other_config:userspace-tso-enable=true")),
    ..row(
        "ovs-tso",
        "Open vSwitch, user-space datapath with userspace-tso-enable; its hosts' offloads are \
            left as the kernel has them",
    )
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

/// The programs that configure a daemon; or what installs those that are missing.
pub(super) fn find_tools() -> Result<(), Missing> {
    let tools = [Tool::OvsdbServer, Tool::OvsdbTool, Tool::OvsVsctl];
    tools.into_iter().try_for_each(|tool| tool.find().map(drop))
}

fn start(plan: &DutPlan<'_>, more: Option<&str>) -> Result<StartedDut> {
    let settings = cache_settings(plan.settings.caches());
    let settings: Vec<&str> = settings.iter().copied().chain(more).collect();
    let mut service = start_daemon(&plan.context, &Tool::Vswitchd.find()?, &settings, None)?;
    let port = |port: &PortName, _| match port {
        PortName::Device(name) => Some((name.clone(), String::new())),
        PortName::Memory(_) | PortName::Dpdk(_) => None,
    };
    add_bridges(plan, port, &mut service)?;
    service.check()?;
    Ok(StartedDut::listening(service, plan))
}

/// Adds the plan's bridges, with the ports on the first, and returns when all of them take OpenFlow
/// connections, or have their controller. `port` has the name of a port in Open vSwitch and the
/// settings of its interface.
pub(super) fn add_bridges(
    plan: &DutPlan<'_>,
    port: impl Fn(&PortName, usize) -> Option<(String, String)>,
    service: &mut Service,
) -> Result<()> {
    let context = &plan.context;
    let count = u32::try_from(plan.listen.len()).unwrap_or(u32::MAX);
    let limit = START_LIMIT + BRIDGE_LIMIT * count;
    if let Some(keys) = context.keys {
        let files = key_options(&keys.switch).map(|(_, path)| path);
        let words = ["set-ssl"].into_iter().chain(files.iter().map(String::as_str));
        vsctl(context, words, START_LIMIT, service)?;
    }
    let configuration = configuration(plan, port)?;
    vsctl(context, configuration.split_ascii_whitespace(), limit, service)?;
    if let Some(controller) = plan.controller {
        // A packet before the controller's hello is dropped, and so are those behind it for as
        // long as they come: a hub that sets up no entry never makes Open vSwitch decide anew. Its
        // log says at once that the channel is up, its database (`is_connected`) up to 5 s later.
        let line = |bridge| format!("{}<->{controller}: connected", bridge_name(bridge));
        let lines: Vec<String> = (0..plan.listen.len()).map(line).collect();
        let what = format!("say that it is connected to {controller}");
        for daemon in service.programs.iter_mut().filter(|program| program.name() == DAEMON) {
            daemon.wait_until(&what, limit, context.cancel, |daemon| {
                let log = daemon.output();
                lines.iter().all(|line| log.contains(line))
            })?;
        }
    }
    // Open vSwitch opens them after it has said that the bridges are there.
    if !context.cancel.poll(limit, || is_listening(plan))? {
        let tails = service.tails();
        bail!(
            "Open vSwitch has not opened all of its {count} OpenFlow channels; it said:\n{tails}"
        );
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

/// Starts database and daemon, of a build and at a niceness, in the folder of `context`, without a
/// bridge. The settings (`other_config:KEY=VALUE`) hold from the daemon's first moment on.
pub(super) fn start_daemon(
    context: &ServiceContext<'_>,
    program: &Path,
    settings: &[&str],
    niceness: Option<i8>,
) -> Result<Service> {
    let database = context.dir.join("conf.db");
    let socket = context.dir.join(DATABASE_SOCKET);
    let mut service = Service::default();
    let schema = SCHEMAS.iter().find(|path| Path::new(path).exists()).ok_or_else(|| {
        Missing("Open vSwitch's schema not found: apt-get install openvswitch-switch".into())
    })?;
    let mut create = command(context, &Tool::OvsdbTool.find()?);
    create.arg("create").arg(&database).arg(schema);
    step(context, create, START_LIMIT, &mut service)?;

    let mut server = command(context, &Tool::OvsdbServer.find()?);
    server.arg(&database).arg(format!("--remote=punix:{}", socket.display()));
    server.arg(format!("--unixctl={}", context.dir.join("ovsdb.ctl").display()));
    server.args(["--no-chdir", "-vsyslog:off"]);
    let mut server = context.start("ovsdb-server", server)?;
    server.wait_until("open its socket", START_LIMIT, context.cancel, |_| has_listener(&socket))?;
    service.add(server, None, 0);

    vsctl(context, ["--no-wait", "init"], START_LIMIT, &mut service)?;
    for setting in settings {
        let words = ["--no-wait", "set", "Open_vSwitch", ".", setting];
        vsctl(context, words, START_LIMIT, &mut service)?;
    }

    let mut daemon = command(context, niceness.map_or(program, |_| Path::new("nice")));
    if let Some(niceness) = niceness {
        daemon.args(["-n", &niceness.to_string()]).arg(program);
    }
    daemon
        .arg(format!("unix:{}", socket.display()))
        .arg(format!("--unixctl={}", context.dir.join(DAEMON_CONTROL).display()));
    daemon.args(["--no-chdir", "--disable-system", "-vsyslog:off"]);
    let daemon = context.start(DAEMON, daemon)?;
    service.add(daemon, Some(ProcessRole::Switch), 0);
    Ok(service)
}

/// Whether a program takes connections at a socket, whose file is there a moment before.
fn has_listener(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// Runs `ovs-vsctl` with these words on the database, for so long at most.
fn vsctl<'w>(
    context: &ServiceContext<'_>,
    words: impl IntoIterator<Item = &'w str>,
    limit: Duration,
    service: &mut Service,
) -> Result<()> {
    let mut vsctl = command(context, &Tool::OvsVsctl.find()?);
    vsctl.arg(format!("--db=unix:{}", context.dir.join(DATABASE_SOCKET).display()));
    vsctl.arg(format!("--timeout={}", limit.as_secs())).args(words);
    step(context, vsctl, limit, service)
}

/// A program of Open vSwitch, or one that starts it, with all its folders in that of the run.
fn command(context: &ServiceContext<'_>, program: &Path) -> Command {
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
    port: impl Fn(&PortName, usize) -> Option<(String, String)>,
) -> Result<String> {
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
        let (name, settings) =
            port(port_name, index).context("Open vSwitch has no in-memory ports: run as root")?;
        let number = index + 1;
        words.push(format!(
            "add-port {} {name} -- set interface {name} ofport_request={number} {settings}",
            bridge_name(0)
        ));
    }
    Ok(words.join(" -- "))
}

/// Runs a step of the configuration to its end, for so long at most, and notes its command.
fn step(
    context: &ServiceContext<'_>,
    command: Command,
    limit: Duration,
    service: &mut Service,
) -> Result<()> {
    let line = command_line(&command);
    let (namespace, dir, cancel) = (context.namespace, context.dir, context.cancel);
    let output = process::run("ovs-step", command, namespace, dir, limit, cancel)?;
    ensure!(output.success, "`{line}` failed: {}", output.text.trim_end());
    service.commands.push(line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::has_listener;

    #[test]
    fn the_file_of_a_socket_alone_is_no_database_that_answers() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("db.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        assert!(has_listener(&socket));
        drop(listener);
        assert!(socket.exists() && !has_listener(&socket));
    }
}
