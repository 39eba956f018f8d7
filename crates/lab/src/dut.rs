//! Switches under test: what one is, and the list of them.
//!
//! A new switch is one file under `dut/` and one line in [`ALL`], or any program that answers the
//! contract of `dut::command`, without a line here. A switch is a process, or a part of the kernel,
//! that is given its ports and what decides where packets go; nothing else about it is known here.

mod command;
pub(crate) mod controller;
pub(crate) mod counters;
mod external;
mod in_kernel;
mod ovs;
mod ovs_dpdk;
mod testpmd;
mod weir;

use std::net::{SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow};
use channel::{Endpoint, Tls, TlsFiles};
use programs::tools::{Missing, Program};

use crate::names;
use crate::service::{ProgramPaths, Service, ServiceContext};
use crate::settings::{AppKind, CacheSet, ReplayDevices, Settings};
use crate::testbed::external::Wiring;
use crate::testbed::{PortName, Testbed};
pub(crate) use controller::{COMMAND_ABOUT, RUNNING_ABOUT, SUBJECTS as CONTROLLERS};
pub use counters::DutCounters;

/// A switch or a controller. A row names what differs from [`Dut::new`].
#[derive(Debug)]
pub struct Dut {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// A user's word for it: the name, or `NAME=PROGRAM`.
    pub word: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// Whether a user brings it along, so that its absence is a wrong argument.
    pub is_given: bool,
    /// Whether its hosts' devices may leave checksums and segmentation to others.
    pub has_offloads: bool,
    /// Whether it is the link between both hosts, without any switch.
    pub is_wire: bool,
    /// Whether it runs on between the lab's starts, with the entries of the start before.
    pub keeps_entries: bool,
    /// Whether its start returns when its ports are open; else frames that cross show it.
    pub reports_ready: bool,
    /// Whether it can be run on in-memory ports.
    pub has_memory_ports: bool,
    /// Whether emulated switches can load it.
    pub is_controller: bool,
    /// Whether the lab can start the controller with TLS.
    pub has_tls: bool,
    /// About how long it takes to start and to end.
    pub start_cost: Duration,
    /// That of each of its bridges.
    pub bridge_cost: Duration,
    /// Ends of its links, where the lab does not make the links itself.
    pub wiring: fn(&ProgramPaths) -> Result<Option<Wiring>, Missing>,
    /// Why it cannot run with these settings; reports say "not supported" with these words.
    pub check: fn(&Dut, &Settings, &ProgramPaths) -> Result<(), String>,
    /// The programs that it consists of, none where it is a part of the kernel; or the remedy for
    /// one that is missing.
    pub programs: fn(&Dut, &ProgramPaths) -> Result<Vec<Program>, Missing>,
    /// Starts it and returns when its ports are open; or what the program said.
    pub start: fn(&DutPlan<'_>) -> Result<StartedDut>,
    /// Starts a controller with an application and returns when it listens at the address.
    pub serve: fn(&ServiceContext<'_>, AppKind, SocketAddrV4) -> Result<Service>,
}

impl Dut {
    /// One without any program, of which nothing is to be known.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            word: name,
            about,
            is_given: false,
            has_offloads: false,
            is_wire: false,
            keeps_entries: false,
            reports_ready: true,
            has_memory_ports: false,
            is_controller: false,
            has_tls: false,
            start_cost: Duration::from_millis(200),
            bridge_cost: Duration::ZERO,
            wiring: |_| Ok(None),
            check: |_, _, _| Ok(()),
            programs: |_, _| Ok(Vec::new()),
            start: |_| Ok(StartedDut::default()),
            serve: |_, _, _| Err(anyhow!("is no controller")),
        }
    }

    /// The same of a user's word, which stays for as long as the lab runs.
    pub(crate) fn with_word(self, word: &str, name: &str, about: &str) -> &'static Self {
        let [word, name, about] = [word, name, about].map(|text| &*String::leak(text.to_owned()));
        Box::leak(Box::new(Self { word, name, about, ..self }))
    }

    /// The program or the command of a user's word, behind the name.
    pub(crate) fn behind_name(&self) -> &'static str {
        self.word.split_once('=').map_or("", |(_, behind)| behind)
    }
}

/// The settings of a switch under test.
#[derive(Clone, Copy, Debug)]
pub struct DutPlan<'a> {
    /// The switch.
    pub dut: &'a Dut,
    /// Place where the service runs.
    pub context: ServiceContext<'a>,
    /// The testbed, for what is a part of the kernel.
    pub bed: &'a Testbed,
    /// Its place in a line of switches, from 0.
    pub place: usize,
    /// Its ports: they become OpenFlow ports 1, 2, ... in this order.
    pub ports: &'a [PortName],
    /// The controller that it connects to, `tcp:HOST:PORT` or `ssl:HOST:PORT`, if there is one.
    pub controller: Option<&'a str>,
    /// Endpoint of each bridge's OpenFlow connections; the ports are those of the first.
    pub listen: &'a [Endpoint],
    /// Settings of the run.
    pub settings: &'a Settings,
}

impl<'a> DutPlan<'a> {
    /// The names of its ports' devices; an error where it has ports of another kind.
    pub fn devices(&self) -> Result<Vec<&'a str>> {
        let device = |port: &'a PortName| match port {
            PortName::Device(device) => Ok(device.as_str()),
            PortName::Memory(_) | PortName::Dpdk(_) => {
                Err(anyhow!("{} has ports of the kernel only: run as root", self.dut.name))
            }
        };
        self.ports.iter().map(device).collect()
    }

    /// A program of the switch; where it replays a trace, other programs keep off its cores, if
    /// this one may have that.
    fn command(&self, program: &Path) -> Command {
        if self.bed.replay().is_none() {
            return Command::new(program);
        }
        let mut nice = Command::new("nice");
        nice.args(["-n", "-20"]).arg(program);
        nice
    }

    /// The datapath id of a bridge, which is counted from 0, as sixteen hex digits.
    pub fn dpid(&self, bridge: usize) -> String {
        format!("{:016x}", (self.place << 16) + bridge + 1)
    }
}

/// A switch that runs.
#[derive(Debug, Default)]
pub struct StartedDut {
    /// Its programs; what is a part of the kernel has none.
    pub service: Service,
    /// OpenFlow endpoints of its bridges, to connect to or to wait at; empty without a channel.
    pub bridges: Vec<Endpoint>,
    /// The connection that it made by itself until it had started.
    pub connection: Option<TcpStream>,
    /// The lab's own keys for it, where they are not those of the plan.
    pub tls: Option<Tls>,
    /// The control socket that counts the decisions of a tier inside the kernel, where that may be.
    pub tier: Option<PathBuf>,
    /// The switch's own counters, where it counts more than OpenFlow does.
    pub counters: Option<DutCounters>,
    /// `HOST:PORT` of the REST of a controller.
    pub rest: Option<String>,
}

impl StartedDut {
    /// A switch that takes connections where the plan says.
    pub fn listening(service: Service, plan: &DutPlan<'_>) -> Self {
        let bridges = plan.listen.iter().cloned().map(Endpoint::into_active).collect();
        Self { service, bridges, ..Self::default() }
    }
}

/// The name of a bridge, which is counted from 0.
pub fn bridge_name(index: usize) -> String {
    format!("br{index}")
}

/// The socket of a bridge in the switch's folder: Open vSwitch's own name for it.
pub fn bridge_socket(index: usize) -> String {
    format!("{}.mgmt", bridge_name(index))
}

/// Every switch under test.
pub const ALL: &[&Dut] = &[
    &weir::WEIR,
    &weir::WEIR_USER,
    &weir::WEIR_BUSY,
    &weir::WEIR_KERNEL,
    &ovs::OVS,
    &ovs::OVS_TSO,
    &ovs_dpdk::DPDK_OVS,
    &testpmd::TESTPMD,
    &in_kernel::LINUX_BRIDGE,
    &in_kernel::PEER_REDIRECT,
    &external::EXTERNAL,
    WIRE,
];

/// The path without a switch, as one of the switches.
pub const WIRE: &Dut = &in_kernel::link("wire");

/// The same in every campaign, for the floor of its figures. No switch has such a name.
pub const FLOOR: &Dut = &in_kernel::link("the lab's own floor");

/// A sentence about `NAME=PROGRAM`.
pub const PROGRAM_ABOUT: &str = "Any switch that PROGRAM runs, with its orders in the \
                                 environment (docs/lab.md); NAME is its name in the tables";

/// Whether a switch cannot run with such settings, and why.
type Lack = (fn(&Settings) -> bool, &'static str);

/// Refuses settings for the first reason that holds.
fn refuse(lacks: &[Lack], settings: &Settings) -> Result<(), String> {
    let first = lacks.iter().find(|(lacks, _)| lacks(settings));
    first.map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
}

const NO_REPLAY: Lack = (|of| of.replay.is_some(), "replays no trace by itself");

const REPLAYS_BY_DPDK: Lack = (
    |of| of.replay.as_ref().is_some_and(|replay| replay.devices != ReplayDevices::Dpdk),
    "replays by DPDK's devices only",
);

const NO_CACHES: Lack =
    (|of| of.caches() != CacheSet::Usual, "has no caches that the lab can switch on or off");

const ONE_THREAD: Lack = (
    |of| of.workers.max(of.queues).is_some_and(|count| count > 1),
    "its threads and queues are not the lab's to set",
);

const TWO_HOSTS: Lack = (|of| of.ports() > 2, "joins two hosts only");

/// The files of a user's own TLS: private key, certificate and that of the authority.
pub(crate) fn tls_files(
    [private_key, certificate, ca_cert]: [&Option<PathBuf>; 3],
) -> Option<TlsFiles> {
    Some(TlsFiles {
        private_key: private_key.clone()?,
        certificate: certificate.clone()?,
        ca_cert: ca_cert.clone()?,
    })
}

/// Switches that the tests of the run bring along.
#[cfg(not(test))]
const FAKES: &[&Dut] = &[];
#[cfg(test)]
use crate::campaign::fake::DUTS as FAKES;

/// The switch of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Dut> {
    named(name).ok()
}

/// The switch of that name, `weir=PATH` for another build of Weir's, `NAME=PROGRAM` for one that a
/// program runs; or an error with the names that there are.
pub fn named(name: &str) -> Result<&'static Dut> {
    let mut all = ALL.iter().chain(CONTROLLERS).chain(FAKES).copied();
    if let Some(known) = all.find(|dut| dut.name == name) {
        return Ok(known);
    }
    if let Some(controller) = controller::of_word(name).map_err(anyhow::Error::msg)? {
        return Ok(controller);
    }
    if let Some(build) = weir::other_build(name) {
        return Ok(build);
    }
    if name.contains('=') {
        return command::of_word(name).map_err(anyhow::Error::msg);
    }
    let known = ALL.iter().chain(CONTROLLERS).map(|dut| dut.name);
    let known = known.chain(["NAME=PROGRAM (a switch of yours: docs/lab.md)"]);
    Err(anyhow::Error::msg(names::unknown("switch under test", name, known)))
}

/// Fails where a switch that a user brings along is not there, before anything is started.
pub fn ensure_given(duts: &[&Dut], paths: &ProgramPaths) -> Result<(), Missing> {
    for dut in duts.iter().filter(|dut| dut.is_given) {
        (dut.programs)(dut, paths)
            .map_err(|Missing(why)| Missing(format!("{}: {why}", dut.word)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ALL, controller, ensure_given, find};
    use crate::service::ProgramPaths;

    #[test]
    fn names_are_found_and_differ() {
        let all: Vec<_> = ALL.iter().chain(super::CONTROLLERS).collect();
        for (index, dut) in all.iter().enumerate() {
            assert_eq!(find(dut.name).unwrap().about, dut.about);
            assert!(!dut.about.is_empty());
            assert!(all[..index].iter().all(|other| other.name != dut.name));
        }
        for one in controller::ALL {
            assert_eq!(controller::find(one.name).unwrap().about, one.about);
        }
        assert!(find("nothing").is_none() && find("weir=").is_none());
        assert_eq!(find("weir=/old/weir").unwrap().name, "weir=/old/weir");
        assert_eq!(find("mine=./mine.sh").unwrap().name, "mine");
        let error = |name| super::named(name).err().unwrap().to_string();
        assert!(error("ovs=./mine.sh").contains("the lab's own"), "{}", error("ovs=./mine.sh"));
        assert!(error("mine").contains("NAME=PROGRAM"), "{}", error("mine"));
    }

    #[test]
    fn what_a_user_brings_along_is_there_before_a_start() {
        let paths = ProgramPaths::new("weir".into(), "none".into());
        let missing = |name: &str| ensure_given(&[find(name).unwrap()], &paths).err();
        let file = tempfile::NamedTempFile::new().unwrap();
        let plain = &*format!("mine={}", file.path().display());
        for (name, why) in [
            (plain, &*format!("{plain}: {0} is not executable: chmod +x {0}", &plain[5..])),
            ("mine=/", "mine=/: / is no program"),
            ("mine=no-such", "mine=no-such: no program no-such in PATH: mine=./no-such"),
            ("mine=/nope", "mine=/nope: /nope is not there"),
            ("weir=/nope", "weir=/nope: /nope is not there"),
            ("external", "external: no inventory of the switch: --inventory FILE"),
        ] {
            let error = missing(name).unwrap().to_string();
            assert!(error.starts_with(why), "{error}");
        }
        for name in ["mine=sh", "weir=sh", "weir", "ovs-dpdk", "os-ken", "tcp:127.0.0.1"] {
            assert_eq!(missing(name), None, "{name}");
        }
    }

    #[test]
    fn what_a_switch_lacks_is_named() {
        let paths = ProgramPaths::new("weir".into(), "none".into());
        for (name, text, why) in [
            ("weir", "forwarding = 'io'\nbridges = 1", "has no OpenFlow channel"),
            ("weir", "replay = {}\ncaches = 'kernel'", "the kernel tier hangs on devices"),
            ("weir", "replay = {}\ncaches = 'key'", ""),
            ("weir-user", "caches = 'kernel'", "is Weir without"),
            ("weir-busy", "caches = 'kernel'", "is Weir without"),
            ("weir-busy", "caches = 'user'", ""),
            ("weir-kernel", "caches = 'kernel'", ""),
            ("weir-kernel", "caches = 'user'", "is the kernel tier"),
            ("weir-kernel", "forwarding = 'io'", "the kernel tier carries out"),
            ("ovs", "workers = 1\ncaches = 'none'", ""),
            ("ovs", "queues = 2", "its main thread forwards"),
            ("ovs", "replay = {}", "replays no trace"),
            ("ovs", "forwarding = 'io'", "forwards by flow tables only"),
            ("ovs-tso", "has_queues = true", "its user-space datapath sends past"),
            ("ovs-tso", "caches = 'kernel'", "its kernel module is another"),
            ("ovs-dpdk", "replay = {}", "replays by DPDK's devices only"),
            ("ovs-dpdk", "replay = { devices = 'dpdk' }\nqueues = 2", ""),
            ("ovs-dpdk", "forwarding = 'io'", "forwards by flow tables only"),
            ("testpmd", "forwarding = 'io'\nreplay = {}", "replays by DPDK's devices only"),
            ("testpmd", "forwarding = 'io'", "replays a trace without tables"),
            ("testpmd", "forwarding = 'io'\nreplay = { devices = 'dpdk' }", ""),
            ("linux-bridge", "forwarding = 'learning'\nports = 3", ""),
            ("linux-bridge", "forwarding = 'learning'\ncaches = 'none'", "has no caches"),
            ("linux-bridge", "forwarding = 'learning'\nworkers = 2", "its threads and queues"),
            ("linux-bridge", "forwarding = 'learning'\nbridges = 1", "has no OpenFlow channel"),
            ("linux-bridge", "forwarding = 'controller'", "has no OpenFlow channel"),
            ("linux-bridge", "forwarding = 'io'", "forwards by addresses only"),
            ("linux-bridge", "", "has no flow entries"),
            ("peer-redirect", "forwarding = 'learning'\nports = 3", "joins two hosts only"),
            ("wire", "forwarding = 'io'", ""),
            ("wire", "forwarding = 'controller'", "has no OpenFlow channel"),
            ("wire", "ports = 3", "joins two hosts only"),
            ("mine=sh", "forwarding = 'io'", "a program is asked to forward"),
            ("mine=sh", "bridges = 2", "a program is asked for one bridge"),
            ("mine=sh", "queues = 2", "a program is asked for no queues"),
            ("mine=sh", "caches = 'none'", "has no caches"),
            ("mine=sh", "switch_cpu_share = '50 %'", "what a program starts"),
            ("mine=sh", "workers = 2", ""),
        ] {
            let (dut, settings) = (find(name).unwrap(), toml::from_str(text).unwrap());
            let found = (dut.check)(dut, &settings, &paths).err().unwrap_or_default();
            assert!(found.starts_with(why), "{name}: {found}");
            assert_eq!(found.is_empty(), why.is_empty(), "{name}: {found}");
        }
    }
}
