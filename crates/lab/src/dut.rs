//! Switches under test: what one is, and the list of them.
//!
//! A new switch is one file under `dut/` and one line in [`ALL`], or any program that answers the
//! contract of `dut::command`, without a line here. A switch is a process, or a part of the kernel,
//! that is given its ports and what decides where packets go; nothing else about it is known here.

mod command;
mod controllers;
pub(crate) mod counters;
mod external;
mod in_kernel;
pub mod inventory;
pub(crate) mod ovs;
mod ovs_dpdk;
pub(crate) mod telemetry;
pub(crate) mod testpmd;
mod weir;
mod wire;

use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use channel::{Endpoint, Tls};
use programs::tools::{Missing, Program};

use crate::keys::ChannelKeys;
use crate::names;
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::{CacheSet, Forwarding, Replay, Settings};
use crate::testbed::external::Wiring;
use crate::testbed::{PortName, Testbed};
pub(crate) use controllers::{ALL as CONTROLLERS, COMMAND_ABOUT, RUNNING_ABOUT};
pub use counters::DutCounters;

/// The settings of a switch under test.
#[derive(Clone, Copy, Debug)]
pub struct DutPlan<'a> {
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
    /// Keys and certificates, where the channel is TLS.
    pub keys: Option<&'a ChannelKeys>,
    /// Settings of the run.
    pub settings: &'a Settings,
}

impl<'a> DutPlan<'a> {
    /// The names of its ports' devices, where it has no others.
    ///
    /// # Errors
    /// There are ports of another kind; `dut` has none of those.
    pub fn devices(&self, dut: &str) -> Result<Vec<&'a str>, ServiceError> {
        let device = |port: &'a PortName| match port {
            PortName::Device(device) => Ok(device.as_str()),
            PortName::Memory(_) | PortName::Dpdk(_) => {
                Err(ServiceError::Unfit(format!("{dut} has ports of the kernel only: run as root")))
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
#[derive(Debug)]
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
    /// A switch without an OpenFlow channel.
    #[must_use]
    pub fn without_channel(service: Service) -> Self {
        let (bridges, connection, tls) = (Vec::new(), None, None);
        Self { service, bridges, connection, tls, tier: None, counters: None, rest: None }
    }

    /// A switch that takes connections where the plan says.
    #[must_use]
    pub fn listening(service: Service, plan: &DutPlan<'_>) -> Self {
        let bridges = plan.listen.iter().cloned().map(Endpoint::into_active).collect();
        Self { bridges, ..Self::without_channel(service) }
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

/// Names of a switch under test.
#[derive(Clone, Copy, Debug)]
pub struct DutId {
    name: &'static str,
    word: &'static str,
    about: &'static str,
}

impl DutId {
    /// One that is known by its name.
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, word: name, about }
    }

    /// One of a user's word, which stays for as long as the lab runs.
    fn of_word(word: &str, name: &str, about: String) -> Self {
        let [word, name] = [word, name].map(|text| &*String::leak(text.to_owned()));
        Self { name, word, about: String::leak(about) }
    }
}

/// A switch under test.
pub trait Dut: Sync {
    /// Its names.
    fn id(&self) -> DutId;

    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str {
        self.id().name
    }

    /// Its word for [`find`], where more than the name belongs to it.
    fn word(&self) -> &'static str {
        self.id().word
    }

    /// One sentence about it.
    fn about(&self) -> &'static str {
        self.id().about
    }

    /// Why it cannot run with these settings; reports say "not supported" with these words.
    ///
    /// # Errors
    /// The reason.
    fn check(&self, settings: &Settings, paths: &ProgramPaths) -> Result<(), String>;

    /// Whether its hosts' devices may leave checksums and segmentation to others.
    fn has_offloads(&self) -> bool {
        false
    }

    /// Whether it is the link between both hosts, without any switch.
    fn is_wire(&self) -> bool {
        false
    }

    /// Ends of its links, where the lab does not make the links itself.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn wiring(&self, _paths: &ProgramPaths) -> Result<Option<Wiring>, Missing> {
        Ok(None)
    }

    /// Whether it runs on between the lab's starts, with the entries of the start before.
    fn keeps_entries(&self) -> bool {
        false
    }

    /// Whether its start returns when its ports are open; else frames that cross show it.
    fn reports_ready(&self) -> bool {
        true
    }

    /// Whether it replays a trace by itself, between such devices.
    ///
    /// # Errors
    /// The reason why it does not.
    fn replays(&self, _replay: &Replay) -> Result<(), String> {
        Err("replays no trace by itself".to_owned())
    }

    /// Whether emulated switches can load it.
    fn is_controller(&self) -> bool {
        false
    }

    /// Whether it can be run on in-memory ports.
    fn has_memory_ports(&self) -> bool {
        false
    }

    /// About how long it takes to start and to end.
    fn start_cost(&self, _settings: &Settings) -> Duration {
        Duration::from_millis(200)
    }

    /// The programs that it consists of; none where it is a part of the kernel.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        Ok(Vec::new())
    }

    /// Starts it and returns when its ports are open.
    ///
    /// # Errors
    /// `ServiceError` with what the program said.
    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError>;
}

/// Every switch under test.
pub const ALL: &[&dyn Dut] = &[
    &weir::WEIR,
    &weir::WEIR_USER,
    &weir::WEIR_BUSY,
    &weir::WEIR_KERNEL,
    &ovs::OVS,
    &ovs::OVS_TSO,
    &ovs_dpdk::DpdkOvs,
    &testpmd::Testpmd,
    &in_kernel::LINUX_BRIDGE,
    &in_kernel::PEER_REDIRECT,
    &external::External,
    WIRE,
];

/// The path without a switch, as one of the switches.
pub const WIRE: &dyn Dut = &wire::DirectLink("wire");

/// The same in every campaign, for the floor of its figures. No switch has such a name.
pub const FLOOR: &dyn Dut = &wire::DirectLink("the lab's own floor");

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

/// Switches that the tests of the run bring along.
#[cfg(not(test))]
const FAKES: &[&dyn Dut] = &[];
#[cfg(test)]
use crate::campaign::fake::DUTS as FAKES;

/// The switch of that name; `weir=PATH` is another build of Weir's, `NAME=PROGRAM` is one that a
/// program runs.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Dut> {
    let all = ALL.iter().chain(CONTROLLERS).chain(FAKES);
    let known = all.copied().find(|dut| dut.name() == name);
    let known = known.or_else(|| controllers::of_word(name).ok().flatten());
    known.or_else(|| weir::other_build(name)).or_else(|| command::of_word(name).ok())
}

/// The switch of that name, of which there must be one.
///
/// # Errors
/// Names those that there are.
pub fn named(name: &str) -> anyhow::Result<&'static dyn Dut> {
    let known = ALL.iter().chain(CONTROLLERS).map(|dut| dut.name());
    let known = known.chain(["NAME=PROGRAM (a switch of yours: docs/lab.md)"]);
    let unknown = || match (controllers::of_word(name), command::of_word(name)) {
        (Err(why), _) => why,
        (Ok(_), Err(why)) if name.contains('=') => why,
        (Ok(_), Err(_) | Ok(_)) => names::unknown("switch under test", name, known),
    };
    find(name).ok_or_else(|| anyhow::Error::msg(unknown()))
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};

    #[test]
    fn names_are_found_and_differ() {
        let all: Vec<_> = ALL.iter().chain(super::CONTROLLERS).collect();
        for (index, dut) in all.iter().enumerate() {
            assert_eq!(find(dut.name()).unwrap().about(), dut.about());
            assert!(!dut.about().is_empty());
            assert!(all[..index].iter().all(|other| other.name() != dut.name()));
        }
        assert!(find("nothing").is_none() && find("weir=").is_none());
        assert_eq!(find("weir=/old/weir").unwrap().name(), "weir=/old/weir");
        assert_eq!(find("mine=./mine.sh").unwrap().name(), "mine");
        let error = |name| super::named(name).err().unwrap().to_string();
        assert!(error("ovs=./mine.sh").contains("the lab's own"), "{}", error("ovs=./mine.sh"));
        assert!(error("mine").contains("NAME=PROGRAM"), "{}", error("mine"));
    }
}
