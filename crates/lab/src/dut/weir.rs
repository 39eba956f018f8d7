//! Weir's own switch, started as a process like every other.
//!
//! One bridge is told to be what it is by flags, several by a file of tables `[[bridge]]`. The
//! kernel tier is asked for before anything is measured: a switch that forwards in user space
//! instead must never be measured as what it is not. Where it replays a trace by itself, its
//! forwarding threads have their cores to themselves as far as the machine allows.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use channel::Endpoint;
use control::{ControlCommand, ControlRequest};
use programs::process::Process;
use programs::tools::{Missing, Program};

use super::{Dut, DutCounters, DutId, DutPlan, PortName, StartedDut, bridge_name, controllers};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{CacheSet, Forwarding, Replay, Settings};
use crate::testbed::Testbed;

const START_LIMIT: Duration = Duration::from_secs(20);

/// Time that one more bridge may add to the start.
const BRIDGE_LIMIT: Duration = Duration::from_millis(100);

/// The control socket, in the switch's folder.
const CONTROL: &str = "ctl.sock";

/// All caches, the tier inside the kernel too, as `--caches` takes it.
const KERNEL_CACHES: &str = "frame,key,kernel";

/// Longest start of a replay: reading a trace, or filling a device's buffers with it, takes a
/// while.
const REPLAY_START_LIMIT: Duration = Duration::from_secs(60);

/// More flow entries than any workload has.
const REPLAY_ENTRIES_MAX: &str = "20000000";

/// All caches of the process.
const USER_CACHES: &str = "frame,key";

/// `weir switch`.
pub(super) struct WeirSwitch {
    id: DutId,
    /// The way forwarding threads wait, in the words of `--poll`.
    poll: &'static str,
    tier: Tier,
    /// The program, where it is not the one that is measured by default.
    program: Option<PathBuf>,
}

/// Use of the tier inside the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// It is in use where it is possible.
    AsShipped,
    /// It is what is measured.
    Needed,
    /// It is off: all is forwarded in user space.
    Off,
}

/// As it is shipped.
pub(super) const WEIR: WeirSwitch = WeirSwitch {
    id: DutId::new(
        "weir",
        "Weir's switch as it is shipped: AF_PACKET ports, its kernel tier where that is \
            possible, asleep while nothing comes",
    ),
    poll: "adaptive",
    tier: Tier::AsShipped,
    program: None,
};

/// In user space, asleep while nothing comes.
pub(super) const WEIR_USER: WeirSwitch = WeirSwitch {
    id: DutId::new(
        "weir-user",
        "Weir's switch without its kernel tier: all is forwarded in user space",
    ),
    poll: "adaptive",
    tier: Tier::Off,
    program: None,
};

/// In user space, never asleep.
pub(super) const WEIR_BUSY: WeirSwitch = WeirSwitch {
    id: DutId::new(
        "weir-busy",
        "Weir's switch without its kernel tier, never asleep: a whole core a worker",
    ),
    poll: "busy",
    tier: Tier::Off,
    program: None,
};

/// With the tier inside the kernel.
pub(super) const WEIR_KERNEL: WeirSwitch = WeirSwitch {
    id: DutId::new(
        "weir-kernel",
        "Weir's switch, which must have its kernel tier: decisions of the frame cache are \
            carried out by a program at the devices' TCX hooks",
    ),
    poll: "adaptive",
    tier: Tier::Needed,
    program: None,
};

const ANOTHER: &str = "Another build of Weir's switch, in user space, never asleep";

/// The switch `weir=PATH`: that build, in user space and never asleep. The user of one has a
/// value of its own, which stays for as long as the program runs.
pub(super) fn other_build(name: &str) -> Option<&'static dyn Dut> {
    let path = name.strip_prefix("weir=").filter(|path| !path.is_empty())?;
    Some(Box::leak(Box::new(WeirSwitch {
        id: DutId::of_word(name, name, ANOTHER.to_owned()),
        poll: "busy",
        tier: Tier::Off,
        program: Some(PathBuf::from(path)),
    })))
}

impl WeirSwitch {
    fn program<'a>(&'a self, paths: &'a ProgramPaths) -> &'a Path {
        self.program.as_deref().unwrap_or(&paths.weir)
    }

    /// Words of `--caches`; none for those as shipped, the kernel tier too where it is possible.
    fn caches(&self, settings: &Settings) -> Option<&'static str> {
        match settings.caches() {
            CacheSet::Usual => match self.tier {
                Tier::AsShipped => None,
                Tier::Needed => Some(KERNEL_CACHES),
                Tier::Off => Some(USER_CACHES),
            },
            CacheSet::User => Some(USER_CACHES),
            CacheSet::Kernel => Some(KERNEL_CACHES),
            CacheSet::Key => Some("key"),
            CacheSet::None => Some("off"),
        }
    }

    /// Whether the kernel tier may decide: it has to, or it does where it is possible.
    fn may_have_tier(&self, settings: &Settings) -> bool {
        self.caches(settings).is_none_or(|caches| caches == KERNEL_CACHES)
    }

    /// `weir switch`, on the cores of a replay.
    fn plain_command(&self, plan: &DutPlan<'_>) -> Command {
        let program = self.program(plan.context.paths);
        let Some(bed) = plan.bed.replay() else {
            let mut plain = Command::new(program);
            plain.arg("switch");
            return plain;
        };
        // Below zero other programs keep off the cores that are measured; who may not set it
        // measures with what there is.
        let mut nice = Command::new("nice");
        nice.args(["-n", "-20"]).arg(program).arg("switch");
        let cores: Vec<String> = bed.forwarding_cores().map(|core| core.to_string()).collect();
        nice.args(["--worker-cores", &cores.join(",")]);
        nice
    }

    /// The command that starts it; writes the file of the bridges where there are several.
    fn command(&self, plan: &DutPlan<'_>) -> Result<Command, ServiceError> {
        let (context, settings) = (&plan.context, plan.settings);
        let mut command = self.plain_command(plan);
        command.args(["--poll", self.poll]);
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
            if settings.replay.is_some() {
                command.args(["--max-entries", REPLAY_ENTRIES_MAX]);
            }
        }
        let tls = plan.keys.map(|keys| &keys.switch).map(|keys| {
            [
                ("private-key", keys.private_key.display().to_string()),
                ("certificate", keys.certificate.display().to_string()),
                ("ca-cert", keys.ca_cert.display().to_string()),
            ]
        });
        let tls = tls.as_ref().map_or(&[][..], |files| &files[..]);
        if let Some(caches) = self.caches(settings) {
            command.args(["--caches", caches]);
        }
        if let Some(workers) = settings.workers {
            command.arg("--workers").arg(workers.to_string());
        }
        if let Some(queues) = settings.queues.filter(|queues| *queues > 1) {
            command.arg("--queues").arg(queues.to_string());
        }
        let bridges = bridges(plan);
        if let [(_, keys)] = &bridges[..] {
            for (key, values) in keys {
                for value in values {
                    command.arg(format!("--{key}")).arg(value);
                }
            }
            for (key, value) in tls {
                command.arg(format!("--{key}")).arg(value);
            }
        } else {
            let path = context.dir.join("bridges.toml");
            std::fs::write(&path, file(tls, &bridges))
                .map_err(|source| ServiceError::File { path: path.clone(), source })?;
            command.arg("--config").arg(path);
        }
        command.arg("--control").arg(context.dir.join(CONTROL));
        Ok(command)
    }

    /// Fails where the tier is wanted and is not there.
    fn ensure_tier(&self, plan: &DutPlan<'_>, service: &Service) -> Result<(), ServiceError> {
        if self.caches(plan.settings) != Some(KERNEL_CACHES) {
            return Ok(());
        }
        let command = ControlCommand::Caches { set: Some(KERNEL_CACHES.to_owned()) };
        let request = ControlRequest { json: true, bridge: None, command };
        match control::ask(&plan.context.dir.join(CONTROL), &request) {
            Ok(_) => Ok(()),
            Err(error) => {
                let tails = service.tails();
                Err(ServiceError::Unfit(format!("no kernel tier: {error}; it said:\n{tails}")))
            }
        }
    }
}

/// A bridge's name, and the keys that are its own, each with its values.
type BridgeKeys = (String, Vec<(&'static str, Vec<String>)>);

/// The bridges of the plan; the ports are those of the first.
fn bridges(plan: &DutPlan<'_>) -> Vec<BridgeKeys> {
    let settings = plan.settings;
    let has_channel = settings.forwarding() != Forwarding::Io;
    let bridge = |(index, endpoint): (usize, &Endpoint)| {
        let mut keys = vec![("dpid", vec![plan.dpid(index)])];
        if index == 0 {
            let port = |(index, port): (usize, &PortName)| match port {
                PortName::Device(device) => format!("{}=af_packet:{device}", index + 1),
                PortName::Memory(text) => format!("{}={text}", index + 1),
                PortName::Dpdk(device) => format!("{}=dpdk:{device}", index + 1),
            };
            keys.push(("port", plan.ports.iter().enumerate().map(port).collect()));
            if settings.has_queues == Some(true) {
                let queue = |port| format!("{port}:1,min=50%");
                keys.push(("queue", (1..=plan.ports.len()).map(queue).collect()));
            }
        }
        if has_channel {
            keys.push(("listen", vec![endpoint.to_string()]));
        }
        (bridge_name(index), keys)
    };
    plan.listen.iter().enumerate().map(bridge).collect()
}

/// The file of several bridges, in TOML; `shared` holds for all of them.
fn file(shared: &[(&str, String)], bridges: &[BridgeKeys]) -> String {
    let mut text = String::new();
    for (key, value) in shared {
        text += &format!("{key} = {value:?}\n");
    }
    for (name, keys) in bridges {
        text += &format!("[[bridge]]\nname = {name:?}\n");
        for (key, values) in keys {
            text += &match (*key, &values[..]) {
                ("dpid", [value]) => format!("{key} = {value:?}\n"),
                (_, values) => format!("{key} = {values:?}\n"),
            };
        }
    }
    text
}

impl Dut for WeirSwitch {
    fn id(&self) -> DutId {
        self.id
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        let is_io = settings.forwarding() == Forwarding::Io;
        if is_io && settings.is_channel_measured() {
            return Err("has no OpenFlow channel where it forwards without tables".to_owned());
        }
        let is_needed = self.tier == Tier::Needed;
        let wants_kernel = is_needed || settings.caches() == CacheSet::Kernel;
        let without = matches!(settings.caches(), CacheSet::User | CacheSet::Key | CacheSet::None);
        if is_needed && without {
            return Err("is the kernel tier, which hangs on the frame cache".to_owned());
        }
        if wants_kernel && self.tier == Tier::Off {
            return Err("is Weir without its kernel tier".to_owned());
        }
        if wants_kernel && settings.replay.is_some() {
            return Err("the kernel tier hangs on devices of the kernel".to_owned());
        }
        if wants_kernel && is_io {
            return Err("the kernel tier carries out decisions of flow tables".to_owned());
        }
        Ok(())
    }

    fn has_offloads(&self) -> bool {
        true
    }

    fn replays(&self, _replay: &Replay) -> Result<(), String> {
        Ok(())
    }

    fn has_memory_ports(&self) -> bool {
        self.tier != Tier::Needed
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(vec![Program::ask("weir", self.program(paths), &["--version"])])
    }

    fn is_controller(&self) -> bool {
        matches!(self.tier, Tier::AsShipped) || self.poll == "busy"
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        if let Testbed::Fleet(bed) = plan.bed {
            let words: &[&str] =
                if self.id.name == WEIR_BUSY.id.name { &["--busy-poll", "50"] } else { &[] };
            return controllers::start_weir(plan, bed, self.program(plan.context.paths), words);
        }
        let context = &plan.context;
        let command = self.command(plan)?;
        let bridges = u32::try_from(plan.listen.len()).unwrap_or(u32::MAX);
        let is_replay = plan.settings.replay.is_some();
        let limit = if is_replay { REPLAY_START_LIMIT } else { START_LIMIT };
        let limit = limit + BRIDGE_LIMIT * bridges;
        let mut process = Process::start("weir-switch", command, context.namespace, context.dir)?;
        process.wait_for_text("ready", limit, context.cancel)?;
        if let Testbed::Replay(bed) = plan.bed {
            bed.keep_process_off(process.pid()).map_err(|error| {
                ServiceError::Unfit(format!("cannot choose the switch's cores: {error}"))
            })?;
        }
        let mut service = Service::new();
        service.add(process, Some(ProcessRole::Switch), 0);
        self.ensure_tier(plan, &service)?;
        let socket = || context.dir.join(CONTROL);
        let counters = is_replay.then(|| DutCounters::Control(socket()));
        Ok(match plan.settings.forwarding() {
            Forwarding::Io => StartedDut { counters, ..StartedDut::without_channel(service) },
            Forwarding::Flows | Forwarding::Learning | Forwarding::Controller => {
                let may_have_tier = !is_replay && self.may_have_tier(plan.settings);
                let tier = may_have_tier.then(socket);
                StartedDut { tier, counters, ..StartedDut::listening(service, plan) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{WEIR, WEIR_BUSY, WEIR_KERNEL, WEIR_USER};
    use crate::settings::{CacheSet, Settings};

    #[test]
    fn who_may_use_the_kernel_tier_is_asked_what_it_decided() {
        let with = |caches| Settings { caches, ..<_>::default() };
        let usual = with(None);
        assert!(WEIR.may_have_tier(&usual) && WEIR_KERNEL.may_have_tier(&usual));
        assert!(!WEIR_USER.may_have_tier(&usual) && !WEIR_BUSY.may_have_tier(&usual));
        assert!(WEIR.may_have_tier(&with(Some(CacheSet::Kernel))));
        for caches in [CacheSet::User, CacheSet::Key, CacheSet::None] {
            assert!(!WEIR.may_have_tier(&with(Some(caches))), "{caches:?}");
        }
    }
}
