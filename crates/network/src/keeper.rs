//! Makes a network and keeps it: folder, namespaces, devices, and the process of the switches.
//!
//! All switches are bridges of one `weir switch` in a namespace of their own, so that no device of
//! theirs meets one of the machine's. They reach the controller by a Unix socket, which a path
//! leads to from every namespace. Dropping the keeper takes everything down.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::sys::netns::Namespace;
use openflow::DatapathId;
use programs::cancel::Cancel;
use programs::process::Process;
use serde::Serialize;

use crate::error::Error;
use crate::folder::NetworkFolder;
use crate::plan::{HOST_DEVICE, HostPlan, NetworkPlan, PlannedEnd};
use crate::state::NetworkState;
use crate::tap::Taps;

/// Longest time for the switches to open their ports.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time for a controller to listen before the switches start all the same; they try again.
const CONTROLLER_LIMIT: Duration = Duration::from_secs(5);
/// With more ports than this, each has a small ring.
const PORTS_MANY: usize = 32;

/// A network; dropping it takes it down. The order of the fields is the order in which they go.
#[derive(Debug)]
pub struct NetworkKeeper {
    process: Option<Process>,
    _taps: Taps,
    /// Held so that the namespaces live as long as the keeper.
    _hosts: Vec<Namespace>,
    switches: Namespace,
    folder: NetworkFolder,
    state: NetworkState,
    cleaned: Vec<String>,
}

impl NetworkKeeper {
    /// Makes namespaces and devices of the network, in a folder of that name below `root`. The
    /// switches do not run yet.
    ///
    /// # Errors
    /// [`Error::NotRoot`], [`Error::Link`], [`Error::Io`], [`Error::Description`].
    pub fn make(root: &Path, name: &str, plan: NetworkPlan) -> Result<Self, Error> {
        // Each host holds a descriptor; where the limit cannot be raised, the one that is missing
        // says so.
        let _ = files::raise_open_files();
        let switches = namespace("the switches")?;
        let hosts: Result<Vec<_>, _> =
            plan.hosts.iter().map(|host| namespace(&host.name)).collect();
        let hosts = hosts?;
        let rtnl = Rtnl::open_in(&switches)?;
        for link in &plan.links {
            let [a, b] = &link.ends;
            match (a.port, b.port) {
                (Some(_), Some(_)) => join_switches(&rtnl, a, b)?,
                (Some(_), None) => join_host(&rtnl, a, &b.node, &plan, &hosts)?,
                (None, _) => join_host(&rtnl, b, &a.node, &plan, &hosts)?,
            }
        }
        let (folder, cleaned) = NetworkFolder::create(root, name)?;
        let state = NetworkState {
            name: folder.name().to_owned(),
            pid: std::process::id(),
            controller: folder.path().join("controller.sock"),
            control: folder.path().join("switch.sock"),
            stats: folder.path().join("stats.sock"),
            switch_namespace: switches.path().into(),
            host_namespaces: hosts.iter().map(|host| host.path().into()).collect(),
            plan,
        };
        let taps = Taps::start(&state.plan.hosts, &hosts, &state.stats)?;
        state.write(folder.path())?;
        Ok(Self { process: None, _taps: taps, _hosts: hosts, switches, folder, state, cleaned })
    }

    /// State of the network.
    #[must_use]
    pub fn state(&self) -> &NetworkState {
        &self.state
    }

    /// Networks whose keepers had been killed, which were removed before this one was made.
    #[must_use]
    pub fn cleaned(&self) -> &[String] {
        &self.cleaned
    }

    /// Starts the switches with the program `weir`: when a controller listens on the socket, or
    /// after a few seconds without one. Comes back when their ports are open.
    ///
    /// # Errors
    /// [`Error::Switch`] with what the program said, or when `cancel` was set.
    pub fn start_switches(&mut self, weir: &Path, cancel: &Cancel) -> Result<(), Error> {
        let folder = self.folder.path();
        let file = folder.join("switch.toml");
        std::fs::write(&file, self.configuration()?).map_err(Error::at("writing", &file))?;
        let controller = self.state.controller.clone();
        cancel
            .poll(CONTROLLER_LIMIT, || controller.exists())
            .map_err(|stopped| Error::Switch(stopped.into()))?;
        let mut command = Command::new(weir);
        command.arg("switch").arg("--config").arg(&file);
        let mut process = Process::start("weir-switch", command, Some(&self.switches), folder)?;
        process.wait_for_text("ready", START_LIMIT, cancel)?;
        self.process = Some(process);
        Ok(())
    }

    /// Fails if the switches have ended by themselves.
    ///
    /// # Errors
    /// [`Error::Switch`] with the end of their log.
    pub fn check(&mut self) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), |process| Ok(process.check()?))
    }

    /// The file that the switches are started with.
    fn configuration(&self) -> Result<String, Error> {
        let NetworkPlan { switches, links, .. } = &self.state.plan;
        let ends = || links.iter().flat_map(|link| &link.ends).filter(|end| end.port.is_some());
        let ring = if ends().count() > PORTS_MANY { "?slots=256" } else { "" };
        let bridges = switches.iter().map(|switch| BridgeFile {
            name: &switch.name,
            dpid: DatapathId(switch.dpid).to_string(),
            port: ends()
                .filter(|end| end.node == switch.name)
                .filter_map(|end| Some((end.port?, &end.device)))
                .map(|(port, device)| format!("{port}=af_packet:{device}{ring}"))
                .collect(),
            controller: [format!("unix:{}", self.state.controller.display())],
            protocols: &switch.protocols,
            max_backoff: 1,
        });
        let file = SwitchFile { control: &self.state.control, bridge: bridges.collect() };
        toml::to_string(&file).map_err(|error| {
            Error::io("writing the switches' configuration")(std::io::Error::other(error))
        })
    }
}

/// The keys of `weir switch --config` that a network needs.
#[derive(Serialize)]
struct SwitchFile<'a> {
    control: &'a PathBuf,
    bridge: Vec<BridgeFile<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct BridgeFile<'a> {
    name: &'a str,
    dpid: String,
    port: Vec<String>,
    controller: [String; 1],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    protocols: &'a [String],
    max_backoff: u8,
}

/// A namespace in which the kernel sends nothing by itself.
fn namespace(whose: &str) -> Result<Namespace, Error> {
    let made = Namespace::new().map_err(|source| {
        if source.kind() == std::io::ErrorKind::PermissionDenied {
            return Error::NotRoot(source);
        }
        Error::Io { what: format!("making a network namespace for {whose}"), source }
    })?;
    let quiet = made.enter(|| {
        disable_ipv6("all")?;
        disable_ipv6("default")
    });
    quiet.and_then(|done| done).map_err(Error::io("switching IPv6 off in a namespace"))?;
    Rtnl::open_in(&made)?.set_up("lo", true)?;
    Ok(made)
}

fn join_switches(rtnl: &Rtnl, a: &PlannedEnd, b: &PlannedEnd) -> Result<(), Error> {
    let (here, there) = (VethEnd::new(&a.device), VethEnd::new(&b.device));
    rtnl.add_veth(&VethPair { here, there, there_in: None })?;
    rtnl.set_up(&a.device, true)?;
    Ok(rtnl.set_up(&b.device, true)?)
}

fn join_host(
    rtnl: &Rtnl,
    at: &PlannedEnd,
    name: &str,
    plan: &NetworkPlan,
    hosts: &[Namespace],
) -> Result<(), Error> {
    let both = plan.hosts.iter().zip(hosts).find(|(host, _)| host.name == name);
    // The plan links only what it has.
    let Some((host, namespace)) = both else {
        return Err(Error::Description(format!("there is no host {name:?}")));
    };
    let HostPlan { ip, prefix, mac, gateway, .. } = host;
    let there = VethEnd { mac: Some(*mac), ..VethEnd::new(HOST_DEVICE) };
    let here = VethEnd::new(&at.device);
    rtnl.add_veth(&VethPair { here, there, there_in: Some(namespace) })?;
    rtnl.set_up(&at.device, true)?;
    let own = Rtnl::open_in(namespace)?;
    own.add_address(HOST_DEVICE, IpAddr::V4(*ip), *prefix)?;
    own.set_up(HOST_DEVICE, true)?;
    if let Some(gateway) = gateway {
        let default = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        own.add_route(HOST_DEVICE, default, Some(IpAddr::V4(*gateway)))?;
    }
    Ok(())
}
