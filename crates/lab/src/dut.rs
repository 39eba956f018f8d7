//! Switches under test: what one is, and the list of them.
//!
//! A new switch is one file under `dut/` and one line in [`ALL`]. A switch is a process, or a part
//! of the kernel, that is given its ports and told what decides where packets go; nothing else
//! about it is known here.

mod bofuss;
pub(crate) mod counters;
mod external;
pub mod inventory;
mod lagopus;
mod linux_bridge;
mod linux_router;
pub(crate) mod ovs;
mod ovs_dpdk;
mod peer_redirect;
pub(crate) mod telemetry;
pub(crate) mod testpmd;
mod weir;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use channel::{Endpoint, Tls};
use programs::tools::{Missing, Program};

use crate::keys::ChannelKeys;
use crate::names;
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::{CacheSet, Forwarding, Replay, Settings};
use crate::testbed::agents::Wiring;
use crate::testbed::netns::{Joined, Offloads};
use crate::testbed::{PortName, Testbed};
pub use counters::DutCounters;

/// The settings of a switch under test.
#[derive(Clone, Copy, Debug)]
pub struct DutPlan<'a> {
    /// Place where the service runs.
    pub context: ServiceContext<'a>,
    /// The testbed, for what is a part of the kernel.
    pub bed: &'a Testbed,
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

/// A switch that runs.
#[derive(Debug)]
pub struct StartedDut {
    /// Its programs; what is a part of the kernel has none.
    pub service: Service,
    /// OpenFlow endpoints of its bridges, or those at which the lab waits for them; empty where it
    /// has no channel.
    pub bridges: Vec<Endpoint>,
    /// The lab's own keys for it, where they are not those of the plan.
    pub tls: Option<Tls>,
    /// The control socket that says how much a tier inside the kernel has decided, where that tier
    /// may decide.
    pub tier: Option<PathBuf>,
    /// The switch's own counters, where it counts more than OpenFlow does.
    pub counters: Option<DutCounters>,
}

impl StartedDut {
    /// A switch without an OpenFlow channel.
    #[must_use]
    pub fn without_channel(service: Service) -> Self {
        Self { service, bridges: Vec::new(), tls: None, tier: None, counters: None }
    }

    /// A switch that takes connections where the plan says.
    #[must_use]
    pub fn listening(service: Service, plan: &DutPlan<'_>) -> Self {
        let bridges = plan.listen.iter().cloned().map(Endpoint::into_active).collect();
        Self { service, bridges, tls: None, tier: None, counters: None }
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

/// The datapath id of a bridge, which is counted from 0, as sixteen hex digits.
#[must_use]
pub fn bridge_dpid(index: usize) -> String {
    format!("{:016x}", index + 1)
}

/// A switch under test.
pub trait Dut: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// Why it cannot run with these settings; reports say "not supported" with these words.
    ///
    /// # Errors
    /// The reason.
    fn check(&self, settings: &Settings, paths: &ProgramPaths) -> Result<(), String>;

    /// Work that its hosts' devices may leave to others.
    fn offloads(&self) -> Offloads {
        Offloads::Off
    }

    /// The joint between its hosts.
    fn joined(&self) -> Joined {
        Joined::BySwitch
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

    /// Whether it replays a trace by itself, between such devices.
    ///
    /// # Errors
    /// The reason why it does not.
    fn replays(&self, _replay: &Replay) -> Result<(), String> {
        Err("replays no trace by itself".to_owned())
    }

    /// Whether it can be run on in-memory ports.
    fn has_memory_ports(&self) -> bool {
        false
    }

    /// About how long it takes to start and to end.
    fn start_cost(&self, _settings: &Settings) -> Duration {
        Duration::from_millis(200)
    }

    /// The programs that it consists of.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing>;

    /// Starts it and returns when its ports are open.
    ///
    /// # Errors
    /// [`ServiceError`] with what the program said.
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
    &bofuss::Bofuss,
    &lagopus::Lagopus,
    &linux_bridge::LinuxBridge,
    &linux_router::LinuxRouter,
    &peer_redirect::PeerRedirect,
    &external::External,
    &wire::DirectLink,
];

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

/// Why a switch of OpenFlow 1.3 that the lab starts in its plainest form cannot run with these
/// settings: one bridge, one thread, its channel by `way`, nothing but flow tables.
///
/// # Errors
/// The reason.
fn one_bridge_of_1_3(settings: &Settings, way: &str) -> Result<(), String> {
    match settings.forwarding() {
        Forwarding::Flows | Forwarding::Controller => {}
        Forwarding::Learning => return Err("does not learn by itself".to_owned()),
        Forwarding::Io => return Err("forwards by flow tables only".to_owned()),
    }
    let is_old = settings.version().is_ok_and(|version| !version.has_pipeline());
    if is_old || settings.is_channel_measured() {
        return Err(format!("the lab starts it with OpenFlow 1.3, one bridge, {way}"));
    }
    if settings.has_queues == Some(true) {
        return Err("the lab starts it without queues".to_owned());
    }
    no_caches(settings)?;
    one_thread(settings)
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

/// The switch of that name; `weir=PATH` is another build of Weir's.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Dut> {
    let known = ALL.iter().chain(FAKES).copied().find(|dut| dut.name() == name);
    known.or_else(|| weir::other_build(name))
}

/// The switch of that name, of which there must be one.
///
/// # Errors
/// Names those that there are.
pub fn named(name: &str) -> anyhow::Result<&'static dyn Dut> {
    let known = ALL.iter().map(|dut| dut.name());
    find(name).ok_or_else(|| anyhow::Error::msg(names::unknown("switch under test", name, known)))
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};

    #[test]
    fn names_are_found_and_differ() {
        for (index, dut) in ALL.iter().enumerate() {
            assert_eq!(find(dut.name()).unwrap().about(), dut.about());
            assert!(!dut.about().is_empty());
            assert!(ALL[..index].iter().all(|other| other.name() != dut.name()));
        }
        assert!(find("nothing").is_none() && find("weir=").is_none());
        assert_eq!(find("weir=/old/weir").unwrap().name(), "weir=/old/weir");
    }
}
