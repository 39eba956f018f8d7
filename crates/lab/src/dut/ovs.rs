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

use super::{Dut, DutPlan, Lack, NO_REPLAY, ONE_THREAD, StartedDut, bridge_name, refuse};
use crate::load::ProcessRole;
use crate::service::{Service, ServiceContext, key_options};
use crate::settings::{CacheSet, Forwarding};

const START_LIMIT: Duration = Duration::from_secs(20);

/// Time that one more bridge may add to the start: each has a device of its own.
const BRIDGE_LIMIT: Duration = Duration::from_millis(200);

/// The database's socket, in the folder of the run.
const DATABASE_SOCKET: &str = "db.sock";

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
            let what = "its main thread forwards between the kernel's devices, alone and from one \
                        queue; ovs-dpdk has threads and queues";
            refuse(&[NO_REPLAY], settings)?;
            refuse(LACKS, settings)?;
            refuse(&[(ONE_THREAD.0, what)], settings)
        },
        programs: |_, _| {
            find_tools()?;
            Ok(vec![Tool::VSWITCHD.program()?])
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

/// Settings that no Open vSwitch in user space has.
pub(super) const LACKS: &[Lack] = &[
    (|of| of.forwarding() == Forwarding::Io, "forwards by flow tables only"),
    (
        |of| of.has_queues == Some(true),
        "its user-space datapath sends past the queues of the port: set_queue changes nothing \
         there",
    ),
    (
        |of| of.caches() == CacheSet::Kernel,
        "its kernel module is another datapath than the one in user space",
    ),
];

/// The programs that configure a daemon; or what installs those that are missing.
pub(super) fn find_tools() -> Result<(), Missing> {
    let tools = [Tool::OVSDB_SERVER, Tool::OVSDB_TOOL, Tool::OVS_VSCTL];
    tools.into_iter().try_for_each(|tool| tool.find().map(drop))
}

fn start(plan: &DutPlan<'_>, more: Option<&str>) -> Result<StartedDut> {
    let settings = cache_settings(plan.settings.caches());
    let settings: Vec<&str> = settings.iter().copied().chain(more).collect();
    let daemon = plan.command(&Tool::VSWITCHD.find()?);
    let service = start_daemon(&plan.context, daemon, &settings)?;
    let ports = plan.devices()?.into_iter().map(|name| (name.to_owned(), String::new()));
    add_bridges(plan, &ports.collect::<Vec<_>>(), service)
}

/// Adds the plan's bridges and returns when all of them take OpenFlow connections, or have their
/// controller. Each of the ports has a name in Open vSwitch and the settings of its interface.
pub(super) fn add_bridges(
    plan: &DutPlan<'_>,
    ports: &[(String, String)],
    mut service: Service,
) -> Result<StartedDut> {
    let context = &plan.context;
    let count = u32::try_from(plan.listen.len()).unwrap_or(u32::MAX);
    let limit = START_LIMIT + BRIDGE_LIMIT * count;
    if let Some(keys) = context.keys {
        let files = key_options(&keys.switch).map(|(_, path)| path);
        let words = ["set-ssl"].into_iter().chain(files.iter().map(String::as_str));
        vsctl(context, words, START_LIMIT, &mut service)?;
    }
    let configuration = configuration(plan, ports);
    vsctl(context, configuration.split_ascii_whitespace(), limit, &mut service)?;
    if let Some(controller) = plan.controller {
        // A packet before the controller's hello is dropped, and so are those behind it for as
        // long as they come: a hub that sets up no entry never makes Open vSwitch decide anew. Its
        // log says at once that the channel is up, its database (`is_connected`) up to 5 s later.
        let line = |bridge| format!("{}<->{controller}: connected", bridge_name(bridge));
        let lines: Vec<String> = (0..plan.listen.len()).map(line).collect();
        let what = format!("say that it is connected to {controller}");
        let daemon = service.programs.last_mut().context("the daemon has not been started")?;
        daemon.wait_until(&what, limit, context.cancel, |daemon| {
            let log = daemon.output();
            lines.iter().all(|line| log.contains(line))
        })?;
    }
    // Open vSwitch opens them after it has said that the bridges are there.
    if !context.cancel.poll(limit, || is_listening(plan))? {
        let tails = service.tails();
        bail!(
            "Open vSwitch has not opened all of its {count} OpenFlow channels; it said:\n{tails}"
        );
    }
    service.check()?;
    Ok(StartedDut::listening(service, plan))
}

/// Whether every bridge takes connections.
fn is_listening(plan: &DutPlan<'_>) -> bool {
    let mut ports = Vec::new();
    let are_there = plan.listen.iter().all(|endpoint| match endpoint {
        Endpoint::Unix(path) | Endpoint::PassiveUnix(path) => path.exists(),
        Endpoint::Tcp { port, .. }
        | Endpoint::Ssl { port, .. }
        | Endpoint::PassiveTcp { port, .. }
        | Endpoint::PassiveSsl { port, .. } => {
            ports.push(*port);
            true
        }
    });
    are_there && is_listened_on(plan.context.namespace, &ports)
}

/// Starts database and `daemon` in the folder of `context`, without a bridge. The settings
/// (`other_config:KEY=VALUE`) hold from the daemon's first moment on.
pub(super) fn start_daemon(
    context: &ServiceContext<'_>,
    mut daemon: Command,
    settings: &[&str],
) -> Result<Service> {
    let database = context.dir.join("conf.db");
    let socket = context.dir.join(DATABASE_SOCKET);
    let mut service = Service::default();
    let schema = SCHEMAS.iter().find(|path| Path::new(path).exists()).ok_or_else(|| {
        Missing("Open vSwitch's schema not found: apt-get install openvswitch-switch".into())
    })?;
    let mut create = Command::new(Tool::OVSDB_TOOL.find()?);
    create.arg("create").arg(&database).arg(schema);
    step(context, create, START_LIMIT, &mut service)?;

    let mut server = Command::new(Tool::OVSDB_SERVER.find()?);
    set_folders(&mut server, context);
    server.arg(&database).arg(format!("--remote=punix:{}", socket.display()));
    server.arg(format!("--unixctl={}", context.dir.join("ovsdb.ctl").display()));
    server.args(["--no-chdir", "-vsyslog:off"]);
    let mut server = context.start("ovsdb-server", server)?;
    server.wait_until("open its socket", START_LIMIT, context.cancel, |_| {
        // Its file is there a moment before it takes connections.
        UnixStream::connect(&socket).is_ok()
    })?;
    service.add(server, None, 0);

    vsctl(context, ["--no-wait", "init"], START_LIMIT, &mut service)?;
    if !settings.is_empty() {
        let words = ["--no-wait", "set", "Open_vSwitch", "."].iter().chain(settings).copied();
        vsctl(context, words, START_LIMIT, &mut service)?;
    }

    set_folders(&mut daemon, context);
    daemon
        .arg(format!("unix:{}", socket.display()))
        .arg(format!("--unixctl={}", context.dir.join(DAEMON_CONTROL).display()));
    daemon.args(["--no-chdir", "--disable-system", "-vsyslog:off"]);
    let daemon = context.start("ovs-vswitchd", daemon)?;
    service.add(daemon, Some(ProcessRole::Switch), 0);
    Ok(service)
}

/// Runs `ovs-vsctl` with these words on the database, for so long at most.
fn vsctl<'w>(
    context: &ServiceContext<'_>,
    words: impl IntoIterator<Item = &'w str>,
    limit: Duration,
    service: &mut Service,
) -> Result<()> {
    let mut vsctl = Command::new(Tool::OVS_VSCTL.find()?);
    vsctl.arg(format!("--db=unix:{}", context.dir.join(DATABASE_SOCKET).display()));
    vsctl.arg(format!("--timeout={}", limit.as_secs())).args(words);
    step(context, vsctl, limit, service)
}

/// Has a program of Open vSwitch keep its files in the folder of the run.
fn set_folders(command: &mut Command, context: &ServiceContext<'_>) {
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, context.dir);
    }
    // DPDK keeps its own files there.
    command.env("RUNTIME_DIRECTORY", context.dir);
}

/// `ovs-vsctl`'s words for the bridges, the ports and the controllers in one transaction.
fn configuration(plan: &DutPlan<'_>, ports: &[(String, String)]) -> String {
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
    for (number, (name, settings)) in (1..).zip(ports) {
        words.push(format!(
            "add-port {} {name} -- set interface {name} ofport_request={number} {settings}",
            bridge_name(0)
        ));
    }
    words.join(" -- ")
}

/// Runs a step of the configuration to its end, for so long at most, and notes its command.
fn step(
    context: &ServiceContext<'_>,
    mut command: Command,
    limit: Duration,
    service: &mut Service,
) -> Result<()> {
    set_folders(&mut command, context);
    let line = command_line(&command);
    let (namespace, dir, cancel) = (context.namespace, context.dir, context.cancel);
    let output = process::run("ovs-step", command, namespace, dir, limit, cancel)?;
    ensure!(output.success, "`{line}` failed: {}", output.text.trim_end());
    service.commands.push(line);
    Ok(())
}
