//! One start of one cell: testbed, controller and switch up and joined; everything gone on drop.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use channel::{Endpoint, Tls};
use control::ControlCommand;
use files::proc::ProcFolder;
use generator::method::{TrialInput, TrialOutput};
use netdev::sys::netns::Namespace;
use openflow::flow::FlowStatsRequest;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{Message, PortNo, Version};
use programs::cancel::{Cancel, Stopped};
use programs::cpu_share::{CpuGroup, CpuShare, GroupError, Hierarchy};
use programs::listening::{free_port, free_ports};
use programs::process::ProcessError;
use serde::{Deserialize, Serialize};

use crate::dut::counters::ask;
use crate::dut::{Dut, DutCounters, DutPlan, StartedDut, bridge_socket};
use crate::keys::ChannelKeys;
use crate::load::{ProcessRole, Watched};
use crate::service::{ProgramPaths, Service, ServiceContext};
use crate::settings::{AppKind, ChannelTransport, Forwarding, Settings, SettingsError};
use crate::switch_client::{Loaded, RefusedMessage, SwitchClient};
use crate::testbed::cores::Cores;
use crate::testbed::external::ExternalTestbed;
use crate::testbed::memory::MemoryTestbed;
use crate::testbed::netns::{CONTROLLER_IP, NetnsTestbed, SWITCH_CONTROL_IP};
use crate::testbed::replay::{Counts, ReplayTestbed};
use crate::testbed::{CONTROLLER_PORT, PortName, Testbed};
use crate::trial_error::TrialError;

/// The TCP port on which the first bridge takes connections, where the channel itself is measured.
const CHANNEL_PORT: u16 = 6_653;

/// The exit code of a program that cannot do it (Automake's): its last line has the reason.
const UNSUPPORTED: i32 = 77;

/// Longest time for the switch to find its controller and for the first packet to cross.
const PATH_LIMIT: Duration = Duration::from_secs(20);

/// Kind of a testbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestbedKind {
    /// Network namespaces; needs root.
    Kernel,
    /// In-memory ports.
    #[default]
    Memory,
}

/// Why a cell did not start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The run was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The testbed, or a scratch folder.
    #[error("cannot make the testbed: {0}")]
    Io(#[from] std::io::Error),
    /// The switch under test.
    #[error("switch under test: {0}")]
    Dut(anyhow::Error),
    /// The controller.
    #[error("controller: {0}")]
    Controller(anyhow::Error),
    /// A text of the settings is no value.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Programs cannot be held to a CPU share here.
    #[error(transparent)]
    CpuShare(#[from] GroupError),
    /// The switch answers a group, a meter or a flow entry with an error.
    #[error(transparent)]
    Refused(RefusedMessage),
    /// The replay that the switch was to run, the cores of a controller, the channel with its keys,
    /// or the path that no packet crosses.
    #[error("{0}")]
    Unfit(String),
}

impl SetupError {
    /// Why the cell is not supported, if it is not: the switch refused a message, its program says
    /// so by its exit code, or nothing here holds a program to a CPU share.
    pub fn refusal(&self) -> Option<String> {
        let part = match self {
            Self::Refused(refused) => return Some(refused.to_string()),
            Self::CpuShare(error) => return Some(error.to_string()),
            Self::Dut(error) | Self::Controller(error) => error,
            Self::Stopped(_) | Self::Io(_) | Self::Settings(_) | Self::Unfit(_) => return None,
        };
        if let Some(error) = part.downcast_ref::<GroupError>() {
            return Some(error.to_string());
        }
        let ended = part.downcast_ref::<ProcessError>().filter(|_| matches!(self, Self::Dut(_)))?;
        let reason = ended.tail().lines().last().unwrap_or_default().trim();
        let reason = if reason.is_empty() { "its program gives no reason" } else { reason };
        (ended.code() == Some(UNSUPPORTED)).then(|| reason.to_owned())
    }

    /// Whether the whole run is to end.
    pub fn is_stop(&self) -> bool {
        let (Self::Dut(error) | Self::Controller(error)) = self else {
            return matches!(self, Self::Stopped(_));
        };
        let process = error.downcast_ref::<ProcessError>();
        error.is::<Stopped>() || matches!(process, Some(ProcessError::Stopped(_)))
    }
}

/// A running cell. The order of the fields is the order in which they go.
#[derive(Debug)]
pub struct Setup {
    /// The lab's own connections to the switches, where they forward by flow entries.
    clients: Vec<Mutex<SwitchClient>>,
    /// The switch under test, and those behind it in a line.
    line: Vec<StartedDut>,
    controller: Option<Service>,
    /// Groups that hold their programs to a CPU share.
    #[expect(dead_code, reason = "held until the programs have ended")]
    cpu_groups: [Option<CpuGroup>; 2],
    bed: Testbed,
    /// The lab's side of the channel, where that is TLS.
    tls: Option<Tls>,
    /// The version of OpenFlow, of the settings.
    pub version: Version,
    /// The load of the flow entries, until the barrier after them was answered.
    pub loaded: Option<Loaded>,
    /// Bytes of memory that the switch held before that.
    empty_bytes: u64,
}

/// The parts of a setup.
pub struct SetupParts<'a> {
    /// Settings of all parts.
    pub settings: &'a Settings,
    /// The switch under test.
    pub dut: &'a Dut,
    /// The controller, where one decides.
    pub controller: Option<&'a Dut>,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: &'a ProgramPaths,
    /// A scratch folder that is empty.
    pub dir: &'a Path,
    /// Ends every wait.
    pub cancel: &'a Cancel,
}

impl SetupParts<'_> {
    fn bed(&self) -> Result<Testbed, SetupError> {
        let (settings, dut) = (self.settings, self.dut);
        let unfit = |error: anyhow::Error| SetupError::Unfit(files::with_sources(error.as_ref()));
        if let Some(replay) = &settings.replay {
            let bed = ReplayTestbed::new(settings, replay, self.dir);
            return Ok(Testbed::Replay(bed.map_err(unfit)?));
        }
        if settings.fleet.is_some() {
            let cores = Cores::of_fleet(settings, !dut.keeps_entries);
            return Ok(Testbed::Fleet(cores.map_err(unfit)?));
        }
        let wiring = (dut.wiring)(self.paths);
        if let Some(wiring) = wiring.map_err(|missing| SetupError::Dut(missing.into()))? {
            let bed = ExternalTestbed::start(&wiring, (&self.paths.weir, self.dir), self.cancel);
            self.cancel.check()?;
            return Ok(Testbed::External(bed?));
        }
        Ok(match self.kind {
            TestbedKind::Kernel => {
                Testbed::Kernel(NetnsTestbed::new(settings, dut.has_offloads, dut.is_wire)?)
            }
            TestbedKind::Memory => Testbed::Memory(MemoryTestbed::new(self.dir)?),
        })
    }

    /// Endpoint at which each bridge takes OpenFlow connections: a Unix socket in the switch's
    /// folder, or TCP where the channel itself is measured.
    fn listen(&self, bed: &Testbed, dut_dir: &Path) -> Result<Vec<Endpoint>, SetupError> {
        let (settings, count) = (self.settings, self.settings.bridges());
        // With a controller the bridges connect to that.
        if !settings.is_channel_measured() || settings.forwarding() == Forwarding::Controller {
            let socket = |index| Endpoint::PassiveUnix(dut_dir.join(bridge_socket(index)));
            return Ok((0..count).map(socket).collect());
        }
        let (host, ports): (_, Vec<u16>) = match bed.kernel() {
            Some(_) => {
                let most = usize::from(u16::MAX - CHANNEL_PORT);
                if count > most {
                    return Err(SetupError::Unfit(format!("bridges: {most} at most")));
                }
                (SWITCH_CONTROL_IP, (CHANNEL_PORT..).take(count).collect())
            }
            None => (Ipv4Addr::LOCALHOST, free_ports(count)?),
        };
        let endpoint = |port| {
            let host = host.to_string();
            match settings.transport() {
                ChannelTransport::Plain => Endpoint::PassiveTcp { host, port },
                ChannelTransport::Tls => Endpoint::PassiveSsl { host, port },
            }
        };
        Ok(ports.into_iter().map(endpoint).collect())
    }

    /// Groups that hold switch and controller to their CPU shares, where they have some.
    fn cpu_groups(&self) -> Result<[Option<CpuGroup>; 2], GroupError> {
        let settings = self.settings;
        let group = |share: CpuShare| Hierarchy::find()?.make(share);
        let switch = settings.switch_cpu_share.map(group).transpose()?;
        let controller = settings.controller_cpu_share.filter(|_| self.controller.is_some());
        Ok([switch, controller.map(group).transpose()?])
    }

    /// Starts the controller, where one decides, in a folder of its own.
    fn start_controller(
        &self,
        context: ServiceContext<'_>,
        at: SocketAddrV4,
        group: Option<&CpuGroup>,
    ) -> Result<Option<Service>, SetupError> {
        let Some(controller) = self.controller else { return Ok(None) };
        let dir = &self.dir.join("controller");
        std::fs::create_dir(dir)?;
        let app = self.settings.app.unwrap_or(AppKind::Hub);
        let started = (controller.serve)(&ServiceContext { dir, ..context }, app, at);
        let held = started.and_then(|service| Ok(service.held_to(group)?));
        held.map(Some).map_err(SetupError::Controller)
    }

    /// Starts each switch of the line, in a folder of its own.
    fn start_line(
        &self,
        context: ServiceContext<'_>,
        bed: &Testbed,
        controller: Option<&str>,
        group: Option<&CpuGroup>,
    ) -> Result<Vec<StartedDut>, SetupError> {
        let ((ports, namespaces), mut line) = (places(bed), Vec::new());
        for (place, namespace) in namespaces.into_iter().enumerate() {
            let dir = &self.dir.join(format!("dut{}", place + 1));
            std::fs::create_dir(dir)?;
            let plan = DutPlan {
                dut: self.dut,
                context: ServiceContext { namespace, dir, ..context },
                bed,
                place,
                ports: &ports,
                controller,
                listen: &self.listen(bed, dir)?,
                settings: self.settings,
            };
            let mut dut = (self.dut.start)(&plan).map_err(SetupError::Dut)?;
            let held = dut.service.held_to(group);
            dut.service = held.map_err(|error| SetupError::Dut(error.into()))?;
            line.push(dut);
        }
        Ok(line)
    }
}

/// The channel's keys and certificates could not be made or read.
fn keys_error(error: impl std::fmt::Display) -> SetupError {
    SetupError::Unfit(format!("the channel's keys: {error}"))
}

/// The switch's ports in their order, and the namespace of each of the line, if not the lab's.
fn places(bed: &Testbed) -> (Vec<PortName>, Vec<Option<&Namespace>>) {
    match bed {
        Testbed::Kernel(bed) => {
            let namespaces = bed.switches.iter().map(|switch| Some(&switch.ns));
            (bed.ports().map(PortName::Device).collect(), namespaces.collect())
        }
        Testbed::Memory(bed) => (bed.texts.clone().map(PortName::Memory).into(), vec![None]),
        Testbed::External(bed) => {
            let device = |(_, name): &(usize, String)| PortName::Device(name.clone());
            (bed.ends.iter().map(device).collect(), vec![None])
        }
        Testbed::Replay(bed) => (bed.ports.clone(), vec![bed.namespace.as_ref()]),
        Testbed::Fleet(_) => (Vec::new(), vec![None]),
    }
}

/// Loads the flow entries of the settings and of a replay, off the cores that forward.
fn load(client: &mut SwitchClient, bed: &Testbed, settings: &Settings) -> anyhow::Result<Loaded> {
    let entries = settings.flow_mods().map(|entry| Ok(entry?));
    let Testbed::Replay(bed) = bed else { return client.load(entries) };
    let _off = bed.cores.keep_off().context("choosing cores")?;
    // Parsed before the time of the load begins.
    let entries: Vec<_> = entries.collect();
    client.load(bed.workload.flow_mods(entries.into_iter(), bed.pairs())?)
}

impl Setup {
    /// Starts everything. With a controller it returns when packets cross; else when the switch
    /// has all its groups, meters and flow entries in force.
    pub fn start(parts: &SetupParts<'_>) -> Result<Self, SetupError> {
        parts.cancel.check()?;
        let [switch_group, controller_group] = parts.cpu_groups()?;
        let (settings, cancel, bed) = (parts.settings, parts.cancel, parts.bed()?);
        let version = settings.version()?;
        let has_tls = settings.transport() == ChannelTransport::Tls;
        let keys = has_tls.then(|| ChannelKeys::make(&parts.dir.join("keys")));
        let keys = keys.transpose().map_err(keys_error)?;
        let keys = keys.as_ref();
        let namespace = bed.kernel().map(|bed| &bed.controller.ns);
        let at = match (namespace, parts.controller) {
            (None, Some(_)) => SocketAddrV4::new(Ipv4Addr::LOCALHOST, free_port()?),
            _ => SocketAddrV4::new(CONTROLLER_IP, CONTROLLER_PORT),
        };
        let (dir, paths) = (parts.dir, parts.paths);
        let context = ServiceContext { namespace, dir, version, keys, paths, cancel };
        let controller = parts.start_controller(context, at, controller_group.as_ref())?;
        let transport = if has_tls { "ssl" } else { "tcp" };
        let target = controller.as_ref().map(|_| format!("{transport}:{at}"));
        let line = parts.start_line(context, &bed, target.as_deref(), switch_group.as_ref())?;
        let tls = keys.map(|keys| Tls::load(keys.controller.clone(), false)).transpose();
        let tls = line[0].tls.clone().or(tls.map_err(keys_error)?);
        let mut setup = Self {
            clients: Vec::new(),
            line,
            controller,
            cpu_groups: [switch_group, controller_group],
            bed,
            tls,
            version,
            loaded: None,
            empty_bytes: 0,
        };
        match settings.forwarding() {
            Forwarding::Controller => setup.wait_for_path(cancel)?,
            Forwarding::Flows => setup.program(settings, parts.dut.keeps_entries, cancel)?,
            Forwarding::Learning if !parts.dut.reports_ready => setup.wait_for_path(cancel)?,
            Forwarding::Learning => {}
            Forwarding::Io => setup.ask_without_channel(cancel)?,
        }
        Ok(setup)
    }

    /// The switch under test.
    fn dut(&self) -> &StartedDut {
        &self.line[0]
    }

    /// Asks a switch of Weir's for its ports' counters that has no OpenFlow channel.
    fn ask_without_channel(&mut self, cancel: &Cancel) -> Result<(), SetupError> {
        if let Some(DutCounters::Control(socket)) = self.counters() {
            let client = SwitchClient::over_control(socket, self.version, cancel);
            let client = client.map_err(|error| self.refused(&error, cancel))?;
            self.clients.push(Mutex::new(client));
        }
        Ok(())
    }

    /// Loads groups, meters and flow entries, in this order, over connections of the lab's own.
    fn program(
        &mut self,
        settings: &Settings,
        is_cleared: bool,
        cancel: &Cancel,
    ) -> Result<(), SetupError> {
        if self.bridges().is_empty() {
            return Ok(());
        }
        let groups = settings.group_mods()?.into_iter().map(Message::GroupMod);
        let meters = settings.meter_mods()?.into_iter().map(Message::MeterMod);
        let before: Vec<Message> = groups.chain(meters).collect();
        for place in 0..self.line.len() {
            let client = self.client_of(place, cancel).and_then(|mut client| {
                if is_cleared {
                    client.clear()?;
                }
                if place == 0 {
                    self.empty_bytes = self.resident_bytes();
                }
                client.send_all(before.clone())?;
                let loaded = load(&mut client, &self.bed, settings)?;
                self.loaded = self.loaded.or(Some(loaded));
                Ok(client)
            });
            let client = client.map_err(|error| self.refused(&error, cancel))?;
            self.clients.push(Mutex::new(client));
        }
        Ok(())
    }

    /// The lab's connection to a switch: the one that it has made, or one to its first bridge.
    fn client_of(&mut self, place: usize, cancel: &Cancel) -> anyhow::Result<SwitchClient> {
        let made = self.line[place].connection.take();
        match (made, self.line[place].bridges.first()) {
            (Some(stream), _) => SwitchClient::over(stream, self.version, cancel),
            (None, Some(endpoint)) => self.connect_to(endpoint, self.version, cancel),
            (None, None) => anyhow::bail!("the switch has no OpenFlow channel"),
        }
    }

    /// The error of a connection, with what the switch said last if it has ended.
    fn refused(&mut self, error: &anyhow::Error, cancel: &Cancel) -> SetupError {
        if cancel.check().is_err() {
            return SetupError::Stopped(Stopped);
        }
        if let Some(refused) = error.downcast_ref::<RefusedMessage>() {
            return SetupError::Refused(refused.clone());
        }
        self.check().err().unwrap_or_else(|| SetupError::Unfit(files::with_sources(error.as_ref())))
    }

    /// Hands the lab's own OpenFlow connection over: a switch that connects by itself has one.
    pub fn take_client(&mut self) -> Option<SwitchClient> {
        let client = (!self.clients.is_empty()).then(|| self.clients.remove(0))?;
        Some(client.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The lab's own OpenFlow connection, where the switch forwards by flow entries.
    pub fn client(&self) -> Option<MutexGuard<'_, SwitchClient>> {
        self.clients.first().map(|client| client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// OpenFlow endpoints of the bridges; empty where the switch has no channel.
    pub fn bridges(&self) -> &[Endpoint] {
        &self.dut().bridges
    }

    /// A new OpenFlow connection of the lab's own to a bridge, which is counted from 0: over the
    /// control link where the channel is TCP, with TLS where the settings want it.
    pub fn connect(
        &self,
        version: Version,
        bridge: usize,
        cancel: &Cancel,
    ) -> anyhow::Result<SwitchClient> {
        let Some(endpoint) = self.bridges().get(bridge) else {
            anyhow::bail!("the switch has no OpenFlow channel of a bridge {bridge}");
        };
        self.connect_to(endpoint, version, cancel)
    }

    fn connect_to(
        &self,
        endpoint: &Endpoint,
        version: Version,
        cancel: &Cancel,
    ) -> anyhow::Result<SwitchClient> {
        let connect = || SwitchClient::connect(endpoint, version, self.tls.clone(), cancel);
        match self.bed.kernel() {
            // A socket stays in the namespace that it was made in.
            Some(bed) => bed.controller.ns.enter(connect)?,
            None => connect(),
        }
    }

    /// Bytes of memory that the switch held before its flow entries, and that it holds now.
    pub fn memory_bytes(&self) -> (u64, u64) {
        (self.empty_bytes, self.resident_bytes())
    }

    /// The programs of each switch, in the order of the line.
    fn services(&self) -> impl Iterator<Item = &Service> {
        self.line.iter().map(|dut| &dut.service)
    }

    /// Process ids of the switch's programs that forward, or of the controller that is loaded.
    pub fn switch_pids(&self) -> Vec<u32> {
        self.services().flat_map(Service::watched).map(|one| one.pid).collect()
    }

    /// Address of the loaded controller, the switches' side of TLS, and `HOST:PORT` of its REST.
    pub(crate) fn controller(&self) -> Option<(&Endpoint, Option<&Tls>, Option<&str>)> {
        let endpoint = self.bridges().first()?;
        Some((endpoint, self.tls.as_ref(), self.dut().rest.as_deref()))
    }

    fn resident_bytes(&self) -> u64 {
        let of = |pid: &u32| ProcFolder::of(*pid).memory("VmRSS").unwrap_or(0);
        self.switch_pids().iter().map(of).sum()
    }

    /// The switch's own counters, where it counts more than OpenFlow does.
    pub fn counters(&self) -> Option<&DutCounters> {
        self.dut().counters.as_ref()
    }

    /// Counts of all pairs of ports, where the switch replays a trace.
    pub(crate) fn counts(&self, pairs: usize) -> anyhow::Result<Counts> {
        if let Some(counts) = self.counters().map(DutCounters::counts).transpose()?.flatten() {
            return Ok(counts);
        }
        let mut client = self.client().context("the switch has no counters to ask for")?;
        let before = Instant::now();
        let asked = client.multipart(MultipartRequestBody::PortStats(PortNo::ANY))?;
        let MultipartReplyBody::PortStats(stats) = asked else {
            anyhow::bail!("the switch answers with other statistics than asked: {asked:?}");
        };
        Counts::of_ports(&stats, pairs, before + before.elapsed() / 2)
    }

    /// Packets that a tier inside the kernel has decided since the start, where that tier may
    /// decide for the only bridge, and the lab has loaded the flow entries.
    pub fn tier_hits(&self) -> anyhow::Result<Option<u64>> {
        let parts = (&self.dut().tier, self.client(), self.bridges());
        let (Some(socket), Some(mut client), [_]) = parts else { return Ok(None) };
        // Asking for statistics has the tier's hits counted.
        client.multipart(MultipartRequestBody::Aggregate(FlowStatsRequest::all()))?;
        let values = ask(socket, ControlCommand::Caches { set: None })?;
        Ok(Some(values.iter().filter_map(|value| value["kernel_hits"].as_u64()).sum()))
    }

    /// The testbed.
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// The programs whose CPU is watched.
    pub fn watched(&self) -> Vec<Watched> {
        let (role, name, pid) = (ProcessRole::Host, "lab".to_owned(), std::process::id());
        let host = Watched { role, name, pid, cores_max: None };
        let services = self.services().chain(&self.controller);
        services.flat_map(Service::watched).chain([host]).collect()
    }

    /// The commands that started controller and switch.
    pub fn commands(&self) -> Vec<String> {
        let services = self.controller.iter().chain(self.services());
        services.flat_map(|service| service.commands.iter().cloned()).collect()
    }

    /// Fails if switch or controller has ended.
    pub fn check(&mut self) -> Result<(), SetupError> {
        self.check_switch()?;
        let controller = self.controller.as_mut().map_or(Ok(()), Service::check);
        controller.map_err(|error| SetupError::Controller(error.into()))
    }

    /// Fails if the switch has ended. A controller may have been ended by a method.
    pub fn check_switch(&mut self) -> Result<(), SetupError> {
        let ended = self.line.iter_mut().try_for_each(|dut| dut.service.check());
        ended.map_err(|error| SetupError::Dut(error.into()))
    }

    /// Sends a few probes there and back until two rounds in a row come back whole: the connection
    /// is up, the controller answers, and a learning switch has learned.
    fn wait_for_path(&mut self, cancel: &Cancel) -> Result<(), SetupError> {
        let probes = TrialInput { frame_size: 64, rate_pps: 50.0, duration_s: 0.1, grace_s: 1.0 };
        let mut whole = 0;
        let mut last = String::new();
        let reached = cancel.poll(PATH_LIMIT, || {
            let (is_whole, found) = match self.bed.round_trip(&probes, cancel) {
                Ok(TrialOutput { report: of, .. }) => {
                    (of.lost == 0, format!("{} of {} probes came back", of.received, of.sent))
                }
                Err(error) => (false, error.to_string()),
            };
            (whole, last) = (if is_whole { whole + 1 } else { 0 }, found);
            whole >= 2 || self.check().is_err()
        })?;
        self.check()?;
        if reached {
            return Ok(());
        }
        let services = self.controller.iter().chain(self.services());
        let logs: String = services.map(Service::tails).collect();
        let limit_s = PATH_LIMIT.as_secs();
        Err(SetupError::Unfit(format!("no packet crossed within {limit_s} s: {last}\n{logs}")))
    }
}

/// An error of a method, with that of the part of the setup that has ended, if one has.
pub fn explain(setup: &mut Setup, error: &TrialError) -> String {
    match setup.check() {
        Ok(()) => error.to_string(),
        Err(ended) => format!("{error}; {ended}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Setup, SetupParts, TestbedKind};
    use crate::dut;
    use crate::service::ProgramPaths;
    use crate::settings::Settings;
    use programs::cancel::Cancel;

    #[test]
    fn a_start_without_a_controller_has_no_folder_of_one() {
        let folder = tempfile::tempdir().unwrap();
        let parts = SetupParts {
            settings: &Settings::default(),
            dut: dut::find("fake-switch").unwrap(),
            controller: None,
            kind: TestbedKind::Memory,
            paths: &ProgramPaths::new("weir".into(), "none".into()),
            dir: folder.path(),
            cancel: &Cancel::default(),
        };
        let mut setup = Setup::start(&parts).unwrap();
        setup.check().unwrap();
        assert!(folder.path().join("dut1").exists() && !folder.path().join("controller").exists());
    }
}
