//! Weir's own switch, started as a process like every other.
//!
//! One bridge is told to be what it is by flags, several by a file of tables `[[bridge]]`. The
//! kernel tier is asked for before anything is measured: a switch that forwards in user space
//! instead must never be measured as what it is not. Where it replays a trace by itself, its
//! forwarding threads have their cores to themselves as far as the machine allows.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use control::{ControlCommand, ControlRequest};
use programs::tools::Program;

use super::command::given_program;
use super::{Dut, DutCounters, DutPlan, PortName, StartedDut, bridge_name, controller};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, key_options};
use crate::settings::{CacheSet, Forwarding, Settings};
use crate::testbed::Testbed;

const START_LIMIT: Duration = Duration::from_secs(20);

/// Time that one more bridge may add to the start.
const BRIDGE_LIMIT: Duration = Duration::from_millis(100);

/// The control socket, in the switch's folder.
const CONTROL: &str = "ctl.sock";

/// Longest start of a replay: it reads a trace, or fills a device's buffers with it.
const REPLAY_START_LIMIT: Duration = Duration::from_secs(60);

/// More flow entries than any workload has.
const REPLAY_ENTRIES_MAX: &str = "20000000";

/// The common part of all of them.
const fn row(name: &'static str, about: &'static str) -> Dut {
    Dut {
        has_offloads: true,
        has_memory_ports: true,
        programs: |dut, paths| {
            if dut.is_given {
                given_program(dut)?;
            }
            Ok(vec![Program::ask("weir", program(dut, paths), &["--version"])])
        },
        ..Dut::new(name, about)
    }
}

pub(super) const WEIR: Dut = Dut {
    is_controller: true,
    check: |_, settings, _| check(settings, CacheSet::Usual),
    start: |plan| start(plan, CacheSet::Usual, "adaptive"),
    ..row(
        "weir",
        "Weir's switch as it is shipped: AF_PACKET ports, its kernel tier where that is \
            possible, asleep while nothing comes",
    )
};

pub(super) const WEIR_USER: Dut = Dut {
    check: |_, settings, _| check(settings, CacheSet::User),
    start: |plan| start(plan, CacheSet::User, "adaptive"),
    ..row("weir-user", "Weir's switch without its kernel tier: all is forwarded in user space")
};

pub(super) const WEIR_BUSY: Dut = Dut {
    is_controller: true,
    check: |_, settings, _| check(settings, CacheSet::User),
    start: |plan| start(plan, CacheSet::User, "busy"),
    ..row("weir-busy", "Weir's switch without its kernel tier, never asleep: a whole core a worker")
};

pub(super) const WEIR_KERNEL: Dut = Dut {
    has_memory_ports: false,
    check: |_, settings, _| check(settings, CacheSet::Kernel),
    start: |plan| start(plan, CacheSet::Kernel, "adaptive"),
    ..row(
        "weir-kernel",
        "Weir's switch, which must have its kernel tier: decisions of the frame cache are \
            carried out by a program at the devices' TCX hooks",
    )
};

/// The switch `weir=PATH`: that build, in user space and never asleep.
pub(super) fn other_build(word: &str) -> Option<&'static Dut> {
    word.strip_prefix("weir=").filter(|path| !path.is_empty())?;
    let about = "Another build of Weir's switch, in user space, never asleep";
    Some(Dut { is_given: true, ..WEIR_BUSY }.with_word(word, word, about))
}

fn program<'a>(dut: &'a Dut, paths: &'a ProgramPaths) -> &'a Path {
    if dut.is_given { Path::new(dut.behind_name()) } else { &paths.weir }
}

/// The caches of a switch that has those of `usual` if nothing else is asked for.
fn caches(usual: CacheSet, settings: &Settings) -> CacheSet {
    if settings.caches() == CacheSet::Usual { usual } else { settings.caches() }
}

/// Words of `--caches`; none for those as shipped, the kernel tier too where it is possible.
fn words(caches: CacheSet) -> Option<&'static str> {
    match caches {
        CacheSet::Usual => None,
        CacheSet::User => Some("frame,key"),
        CacheSet::Kernel => Some("frame,key,kernel"),
        CacheSet::Key => Some("key"),
        CacheSet::None => Some("off"),
    }
}

/// Whether the kernel tier may decide: it has to, or it does where it is possible.
fn may_have_tier(caches: CacheSet) -> bool {
    matches!(caches, CacheSet::Usual | CacheSet::Kernel)
}

/// The command that starts it; writes the file of the bridges where there are several.
fn command(plan: &DutPlan<'_>, caches: CacheSet, poll: &str) -> Result<Command> {
    let (context, settings) = (&plan.context, plan.settings);
    let mut command = plan.command(program(plan.dut, context.paths));
    command.args(["switch", "--poll", poll]);
    if let Some(bed) = plan.bed.replay() {
        let cores: Vec<String> = bed.cores.subject.iter().map(usize::to_string).collect();
        command.args(["--worker-cores", &cores.join(",")]);
    }
    let mode: &[&str] = match (settings.forwarding(), plan.controller) {
        (Forwarding::Learning, _) => &["--fail-mode", "standalone"],
        (Forwarding::Io, _) => &["--forward", "io"],
        (Forwarding::Controller, Some(controller)) => {
            &["--controller", controller, "--fail-mode", "secure"]
        }
        // The lab is silent for longer than any probe waits.
        (Forwarding::Flows | Forwarding::Controller, _) => {
            &["--fail-mode", "secure", "--inactivity-probe", "0"]
        }
    };
    command.args(mode);
    if settings.forwarding() != Forwarding::Io {
        command.args(["--protocols", &context.version.to_string()]);
        if settings.replay.is_some() {
            command.args(["--max-entries", REPLAY_ENTRIES_MAX]);
        }
    }
    if let Some(caches) = words(caches) {
        command.args(["--caches", caches]);
    }
    if let Some(workers) = settings.workers {
        command.arg("--workers").arg(workers.to_string());
    }
    if let Some(queues) = settings.queues.filter(|queues| *queues > 1) {
        command.arg("--queues").arg(queues.to_string());
    }
    let tls = context.keys.map(|keys| key_options(&keys.switch));
    let tls: Vec<_> = tls.into_iter().flatten().collect();
    if plan.listen.len() == 1 {
        let bridge = bridge_keys(plan, 0).into_iter();
        let bridge = bridge.flat_map(|(key, values)| values.into_iter().map(move |one| (key, one)));
        for (key, value) in bridge.chain(tls) {
            command.arg(format!("--{key}")).arg(value);
        }
    } else {
        command.arg("--config").arg(context.write("bridges.toml", &file(plan, &tls))?);
    }
    command.arg("--control").arg(context.dir.join(CONTROL));
    Ok(command)
}

/// The keys of a bridge of the plan, each with its values; the ports are those of the first.
fn bridge_keys(plan: &DutPlan<'_>, index: usize) -> Vec<(&'static str, Vec<String>)> {
    let mut keys = vec![("dpid", vec![plan.dpid(index)])];
    if index == 0 {
        let port = |(number, port): (usize, &PortName)| match port {
            PortName::Device(device) => format!("{number}=af_packet:{device}"),
            PortName::Memory(text) => format!("{number}={text}"),
            PortName::Dpdk(device) => format!("{number}=dpdk:{device}"),
        };
        keys.push(("port", (1..).zip(plan.ports).map(port).collect()));
        if plan.settings.has_queues == Some(true) {
            let queue = |port| format!("{port}:1,min=50%");
            keys.push(("queue", (1..=plan.ports.len()).map(queue).collect()));
        }
    }
    if plan.settings.forwarding() != Forwarding::Io {
        keys.push(("listen", vec![plan.listen[index].to_string()]));
    }
    keys
}

/// The file of several bridges, in TOML; `shared` holds for all of them.
fn file(plan: &DutPlan<'_>, shared: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (key, value) in shared {
        text += &format!("{key} = {value:?}\n");
    }
    for index in 0..plan.listen.len() {
        text += &format!("[[bridge]]\nname = {:?}\n", bridge_name(index));
        for (key, values) in bridge_keys(plan, index) {
            text += &match (key, &values[..]) {
                ("dpid", [value]) => format!("{key} = {value:?}\n"),
                (_, values) => format!("{key} = {values:?}\n"),
            };
        }
    }
    text
}

fn check(settings: &Settings, usual: CacheSet) -> Result<(), String> {
    let is_io = settings.forwarding() == Forwarding::Io;
    let is_without = !may_have_tier(settings.caches());
    let wants_kernel = [usual, settings.caches()].contains(&CacheSet::Kernel);
    let why = if is_io && settings.is_channel_measured() {
        "has no OpenFlow channel where it forwards without tables"
    } else if usual == CacheSet::Kernel && is_without {
        "is the kernel tier, which hangs on the frame cache"
    } else if usual == CacheSet::User && wants_kernel {
        "is Weir without its kernel tier"
    } else if wants_kernel && settings.replay.is_some() {
        "the kernel tier hangs on devices of the kernel"
    } else if wants_kernel && is_io {
        "the kernel tier carries out decisions of flow tables"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

fn start(plan: &DutPlan<'_>, usual: CacheSet, poll: &str) -> Result<StartedDut> {
    let (context, settings) = (&plan.context, plan.settings);
    if let Testbed::Fleet(_) = plan.bed {
        let is_busy = plan.dut.name == WEIR_BUSY.name;
        let words: &[&str] = if is_busy { &["--busy-poll", "50"] } else { &[] };
        return controller::start_weir(plan, program(plan.dut, context.paths), words);
    }
    let caches = caches(usual, settings);
    let command = command(plan, caches, poll)?;
    let is_replay = settings.replay.is_some();
    let limit = if is_replay { REPLAY_START_LIMIT } else { START_LIMIT };
    let limit = limit + BRIDGE_LIMIT * plan.listen.len() as u32;
    let mut process = context.start("weir-switch", command)?;
    process.wait_for_text("ready", limit, context.cancel)?;
    if let Testbed::Replay(bed) = plan.bed {
        let kept = bed.cores.keep_process_off(process.pid());
        kept.map_err(|error| anyhow!("cannot choose the switch's cores: {error}"))?;
    }
    let service = Service::of(process, ProcessRole::Switch, 0);
    let socket = context.dir.join(CONTROL);
    if caches == CacheSet::Kernel {
        // One that forwards in user space instead is not what is measured.
        let command = ControlCommand::Caches { set: words(caches).map(str::to_owned) };
        let wanted = ControlRequest { json: true, bridge: None, command };
        if let Err(error) = control::ask(&socket, &wanted) {
            bail!("no kernel tier: {error}; it said:\n{}", service.tails());
        }
    }
    let counters = is_replay.then(|| DutCounters::Control(socket.clone()));
    if settings.forwarding() == Forwarding::Io {
        return Ok(StartedDut { service, counters, ..StartedDut::default() });
    }
    let tier = (!is_replay && may_have_tier(caches)).then_some(socket);
    Ok(StartedDut { tier, counters, ..StartedDut::listening(service, plan) })
}

#[cfg(test)]
mod tests {
    use super::{caches, may_have_tier};
    use crate::settings::{CacheSet, Settings};

    #[test]
    fn who_may_use_the_kernel_tier_is_asked_what_it_decided() {
        let may = |usual, of| {
            may_have_tier(caches(usual, &Settings { caches: of, ..Settings::default() }))
        };
        for (usual, expected) in
            [(CacheSet::Usual, true), (CacheSet::Kernel, true), (CacheSet::User, false)]
        {
            assert_eq!(may(usual, None), expected, "{usual:?}");
        }
        assert!(may(CacheSet::Usual, Some(CacheSet::Kernel)));
        for caches in [CacheSet::User, CacheSet::Key, CacheSet::None] {
            assert!(!may(CacheSet::Usual, Some(caches)), "{caches:?}");
        }
    }
}
