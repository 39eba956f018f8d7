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
mod wire;

use std::net::{SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use channel::{Endpoint, Tls, TlsFiles};
use programs::tools::{Missing, Program};

use crate::names;
use crate::service::{ProgramPaths, Service, ServiceContext};
use crate::settings::{AppKind, CacheSet, Forwarding, Replay, ReplayDevices, Settings};
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
    /// Why it does not replay a trace by itself, between such devices.
    pub replays: fn(&Replay) -> Result<(), String>,
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
    #[must_use]
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
            replays: |_| Err("replays no trace by itself".to_owned()),
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
    /// The names of its ports' devices, where it has no others.
    ///
    /// # Errors
    /// There are ports of another kind; the switch has none of those.
    pub fn devices(&self) -> Result<Vec<&'a str>> {
        let device = |port: &'a PortName| match port {
            PortName::Device(device) => Ok(device.as_str()),
            PortName::Memory(_) | PortName::Dpdk(_) => {
                Err(anyhow!("{} has ports of the kernel only: run as root", self.dut.name))
            }
        };
        self.ports.iter().map(device).collect()
    }

    /// The datapath id of a bridge, which is counted from 0, as sixteen hex digits.
    #[must_use]
    pub fn dpid(&self, bridge: usize) -> String {
        format!("{:016x}", (self.place << 16) + bridge + 1)
    }
}

/// A switch that runs.
#[derive(Debug, Default)]
pub struct StartedDut {
    /// Its programs; what is a part of the kernel has none.
    pub service: Service,
    /// OpenFlow endpoints of its bridges, or those at which the lab waits for them; empty where it
    /// has no channel.
    pub bridges: Vec<Endpoint>,
    /// The connection that it made by itself until it had started.
    pub connection: Option<TcpStream>,
    /// The lab's own keys for it, where they are not those of the plan.
    pub tls: Option<Tls>,
    /// The control socket that says how much a tier inside the kernel has decided, where that tier
    /// may decide.
    pub tier: Option<PathBuf>,
    /// The switch's own counters, where it counts more than OpenFlow does.
    pub counters: Option<DutCounters>,
    /// `HOST:PORT` of the REST of a controller.
    pub rest: Option<String>,
}

impl StartedDut {
    /// A switch that takes connections where the plan says.
    #[must_use]
    pub fn listening(service: Service, plan: &DutPlan<'_>) -> Self {
        let bridges = plan.listen.iter().cloned().map(Endpoint::into_active).collect();
        Self { service, bridges, ..Self::default() }
    }
}

/// The name of a bridge, which is counted from 0.
#[must_use]
pub fn bridge_name(index: usize) -> String {
    format!("br{index}")
}

/// The socket of a bridge in the switch's folder: Open vSwitch's own name for it.
#[must_use]
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
pub const WIRE: &Dut = &wire::link("wire");

/// The same in every campaign, for the floor of its figures. No switch has such a name.
pub const FLOOR: &Dut = &wire::link("the lab's own floor");

/// A sentence about `NAME=PROGRAM`.
pub const PROGRAM_ABOUT: &str = "Any switch that PROGRAM runs, with its orders in the \
                                 environment (docs/lab.md); NAME is its name in the tables";

/// Why a part of the kernel cannot run with these settings.
fn no_openflow(settings: &Settings) -> Result<(), String> {
    match settings.forwarding() {
        Forwarding::Learning if settings.is_channel_measured() => {
            Err("has no OpenFlow channel".to_owned())
        }
        Forwarding::Learning => {
            no_caches(settings)?;
            one_thread(settings)
        }
        Forwarding::Flows => Err("has no flow entries".to_owned()),
        Forwarding::Controller => Err("has no OpenFlow channel".to_owned()),
        Forwarding::Io => Err("forwards by addresses only".to_owned()),
    }
}

/// Why a switch whose caches the lab cannot switch off does not run with these settings.
fn no_caches(settings: &Settings) -> Result<(), String> {
    match settings.caches() {
        CacheSet::Usual => Ok(()),
        CacheSet::User | CacheSet::Kernel | CacheSet::Key | CacheSet::None => {
            Err("has no caches that the lab can switch on or off".to_owned())
        }
    }
}

/// Why a switch whose threads and queues the lab does not set does not run with these settings.
fn one_thread(settings: &Settings) -> Result<(), String> {
    let is_more = |count: Option<u16>| count.is_some_and(|count| count > 1);
    if is_more(settings.workers) || is_more(settings.queues) {
        return Err("its threads and queues are not the lab's to set".to_owned());
    }
    Ok(())
}

/// Why a switch that is linked with DPDK does not replay a trace between such devices.
fn replays_by_dpdk(replay: &Replay) -> Result<(), String> {
    match replay.devices {
        ReplayDevices::Dpdk => Ok(()),
        ReplayDevices::Memory => Err("replays by DPDK's devices only".to_owned()),
    }
}

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
#[must_use]
pub fn find(name: &str) -> Option<&'static Dut> {
    named(name).ok()
}

/// The switch of that name, of which there must be one; `weir=PATH` is another build of Weir's,
/// `NAME=PROGRAM` is one that a program runs.
///
/// # Errors
/// Names those that there are.
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
///
/// # Errors
/// [`Missing`] with its name and the remedy.
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
        let missing = |name| ensure_given(&[find(name).unwrap()], &paths).err();
        for (name, why) in [
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
}
