//! One start of one cell: testbed, controller and switch up and joined; everything gone on drop.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use channel::{Endpoint, Tls};
use control::ControlCommand;
use files::proc::ProcFolder;
use generator::method::TrialInput;
use netdev::sys::netns::Namespace;
use openflow::flow::{FlowMod, FlowStatsRequest};
use openflow::message::MultipartRequestBody;
use openflow::{Message, Version};
use programs::cancel::{Cancel, Stopped};
use programs::cpu_share::{CpuGroup, CpuShare, GroupError, Hierarchy};
use programs::listening::free_ports;
use programs::process;
use serde::{Deserialize, Serialize};

use crate::controller::{ControllerPlan, ControllerProgram};
use crate::dut::counters::ask;
use crate::dut::{Dut, DutCounters, DutPlan, StartedDut, bridge_socket};
use crate::keys::ChannelKeys;
use crate::load::{ProcessRole, Watched};
use crate::service::{self, ProgramPaths, Service, ServiceContext};
use crate::settings::AppKind;
use crate::settings::{ChannelTransport, Forwarding, Settings, SettingsError};
use crate::switch_client::{Loaded, RefusedMessage, SwitchClient};
use crate::testbed::PortName;
use crate::testbed::external::ExternalTestbed;
use crate::testbed::fleet::FleetTestbed;
use crate::testbed::memory::MemoryTestbed;
use crate::testbed::netns::{CONTROLLER_IP, NetnsShape, NetnsTestbed, SWITCH_CONTROL_IP};
use crate::testbed::replay::{Counts, ReplayTestbed};
use crate::testbed::{CONTROLLER_PORT, Testbed};
use crate::trial_error::TrialError;

/// The TCP port on which the first bridge takes connections, where the channel itself is measured.
const CHANNEL_PORT: u16 = 6_653;

/// The exit code of a program that cannot do what it is asked for, as of a test that is skipped
/// (Automake): the last line of its output has the reason.
const UNSUPPORTED: i32 = 77;

/// Longest time for the switch to find its controller and for the first packet to cross.
const PATH_LIMIT: Duration = Duration::from_secs(20);

/// Kind of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestbedKind {
    /// Network namespaces; needs root.
    Kernel,
    /// In-memory ports.
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
    Dut(service::ServiceError),
    /// The controller.
    #[error("controller: {0}")]
    Controller(service::ServiceError),
    /// The replay that the switch was to run, or the cores of a controller.
    #[error("{0}")]
    Replay(String),
    /// A text of the settings is no value.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The channel's keys and certificates could not be made.
    #[error("the channel's keys: {0}")]
    Keys(String),
    /// Programs cannot be held to a CPU share here.
    #[error(transparent)]
    CpuShare(#[from] GroupError),
    /// The switch answers a group, a meter or a flow entry with an error.
    #[error(transparent)]
    Refused(RefusedMessage),
    /// The lab's own OpenFlow connection.
    #[error("{0}")]
    Channel(String),
    /// Both run, but no packet crosses.
    #[error("no packet crossed within {limit_s} s: {last}\n{logs}", limit_s = PATH_LIMIT.as_secs())]
    NoPath {
        /// Result of the last try.
        last: String,
        /// The end of every program's log.
        logs: String,
    },
}

impl SetupError {
    /// Why the cell is not supported, if it is not: the switch refused a message, its program says
    /// so by its exit code, or nothing here holds a program to a CPU share.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Dut(service::ServiceError::Process(ended))
                if ended.code() == Some(UNSUPPORTED) =>
            {
                let reason = ended.tail().lines().last().unwrap_or_default().trim();
                Some(if reason.is_empty() { "its program gives no reason" } else { reason }.into())
            }
            Self::Refused(refused) => Some(refused.to_string()),
            Self::CpuShare(error)
            | Self::Dut(service::ServiceError::CpuShare(error))
            | Self::Controller(service::ServiceError::CpuShare(error)) => Some(error.to_string()),
            Self::Stopped(_)
            | Self::Io(_)
            | Self::Dut(_)
            | Self::Controller(_)
            | Self::Replay(_)
            | Self::Settings(_)
            | Self::Keys(_)
            | Self::Channel(_)
            | Self::NoPath { .. } => None,
        }
    }

    /// Whether the whole run is to end.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        let is_stop = |error: &service::ServiceError| {
            matches!(error, service::ServiceError::Process(process::ProcessError::Stopped(_)))
        };
        matches!(self, Self::Stopped(_))
            || matches!(self, Self::Dut(error) | Self::Controller(error) if is_stop(error))
    }
}

/// A running cell. The order of the fields is the order in which they go.
#[derive(Debug)]
pub struct Setup {
    client: Option<Mutex<SwitchClient>>,
    dut: StartedDut,
    /// The switches behind it in a line, each with the lab's connection to it.
    further: Vec<(StartedDut, Option<SwitchClient>)>,
    controller: Option<Service>,
    /// Groups that hold their programs to a CPU share.
    #[expect(dead_code, reason = "held until the programs have ended")]
    cpu_groups: [Option<CpuGroup>; 2],
    bed: Testbed,
    /// The lab's side of the channel, where that is TLS.
    tls: Option<Tls>,
    version: Version,
    /// The load of the flow entries, until the barrier after them was answered.
    loaded: Option<Loaded>,
    /// Bytes of memory that the switch held before that.
    empty_bytes: u64,
}

/// The parts of a setup.
pub struct SetupParts<'a> {
    /// Settings of all parts.
    pub settings: &'a Settings,
    /// The switch under test.
    pub dut: &'a dyn Dut,
    /// The controller, where one decides.
    pub controller: Option<&'a ControllerProgram>,
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
        let settings = self.settings;
        if let Some(replay) = &settings.replay {
            let bed = ReplayTestbed::new(settings, replay, self.dir);
            let bed = bed.map_err(|error| SetupError::Replay(format!("{error:#}")))?;
            return Ok(Testbed::Replay(bed));
        }
        if settings.fleet.is_some() {
            let bed = FleetTestbed::new(settings, !self.dut.keeps_entries());
            let bed = bed.map_err(|error| SetupError::Replay(format!("{error:#}")))?;
            return Ok(Testbed::Fleet(bed));
        }
        let wiring = self.dut.wiring(self.paths);
        if let Some(wiring) = wiring.map_err(|missing| SetupError::Dut(missing.into()))? {
            let (rate_bps, places) = (settings.port_rate().0, (&*self.paths.weir, self.dir));
            let bed = ExternalTestbed::start(&wiring, rate_bps, places, self.cancel);
            self.cancel.check()?;
            return Ok(Testbed::External(bed?));
        }
        let (port_rate, control_rate) = (settings.port_rate(), settings.control_rate());
        Ok(match self.kind {
            TestbedKind::Kernel => Testbed::Kernel(NetnsTestbed::new(NetnsShape {
                hosts: settings.ports(),
                line: settings.line(),
                port_rate,
                control_rate,
                // A shaped link carries frames of a wire, for every switch.
                has_offloads: port_rate.0.is_none() && self.dut.has_offloads(),
                is_wire: self.dut.is_wire(),
            })?),
            TestbedKind::Memory => Testbed::Memory(MemoryTestbed::new(self.dir)?),
        })
    }

    /// Endpoint at which each bridge takes OpenFlow connections: a Unix socket in the switch's
    /// folder, or TCP where the channel itself is measured.
    fn listen(&self, bed: &Testbed, dut_dir: &Path) -> Result<Vec<Endpoint>, SetupError> {
        let settings = self.settings;
        // With a controller the bridges connect to that.
        let is_tcp =
            settings.is_channel_measured() && settings.forwarding() != Forwarding::Controller;
        let count = settings.bridges();
        if !is_tcp {
            let path = |index| dut_dir.join(bridge_socket(index));
            return Ok((0..count).map(|index| Endpoint::PassiveUnix(path(index))).collect());
        }
        let (host, ports) = match bed.kernel() {
            Some(_) => {
                let port = |index| u16::try_from(usize::from(CHANNEL_PORT) + index);
                let ports = (0..count).map(port).collect::<Result<Vec<u16>, _>>();
                let most = u16::MAX - CHANNEL_PORT;
                let ports =
                    ports.map_err(|_| SetupError::Channel(format!("bridges: {most} at most")))?;
                (SWITCH_CONTROL_IP, ports)
            }
            None => (Ipv4Addr::LOCALHOST, free_ports(count)?),
        };
        let host = host.to_string();
        let endpoint = |port| {
            let host = host.clone();
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

    fn context<'c>(
        &'c self,
        dir: &'c Path,
        namespace: Option<&'c Namespace>,
        version: Version,
    ) -> ServiceContext<'c> {
        ServiceContext { namespace, dir, version, paths: self.paths, cancel: self.cancel }
    }

    /// Starts each switch of the line, in a folder of its own.
    fn switches(
        &self,
        bed: &Testbed,
        version: Version,
        controller: Option<&str>,
        keys: Option<&ChannelKeys>,
        group: Option<&CpuGroup>,
    ) -> Result<Vec<(StartedDut, Option<SwitchClient>)>, SetupError> {
        let (ports, mut line) = (ports(bed), Vec::new());
        for (place, namespace) in switch_namespaces(bed).into_iter().enumerate() {
            let dir = self.dir.join(format!("dut{}", place + 1));
            std::fs::create_dir(&dir)?;
            let listen = self.listen(bed, &dir)?;
            let plan = DutPlan {
                context: self.context(&dir, namespace, version),
                bed,
                place,
                ports: &ports,
                controller,
                listen: &listen,
                keys,
                settings: self.settings,
            };
            let mut dut = self.dut.start(&plan).map_err(SetupError::Dut)?;
            dut.service = dut.service.held_to(group).map_err(SetupError::Dut)?;
            line.push((dut, None));
        }
        Ok(line)
    }

    fn keys(&self) -> Result<Option<ChannelKeys>, SetupError> {
        match self.settings.transport() {
            ChannelTransport::Plain => Ok(None),
            ChannelTransport::Tls => ChannelKeys::make(&self.dir.join("keys"))
                .map(Some)
                .map_err(|error| SetupError::Keys(error.to_string())),
        }
    }
}

/// The switch's ports, in the order of their numbers.
fn ports(bed: &Testbed) -> Vec<PortName> {
    match bed {
        Testbed::Kernel(bed) => bed.ports().into_iter().map(PortName::Device).collect(),
        Testbed::Memory(bed) => bed.port_texts().iter().cloned().map(PortName::Memory).collect(),
        Testbed::External(bed) => bed.interfaces().cloned().map(PortName::Device).collect(),
        Testbed::Replay(bed) => bed.ports().to_vec(),
        Testbed::Fleet(_) => Vec::new(),
    }
}

/// Namespace of each switch, in the order of the line, if it is not the lab's.
fn switch_namespaces(bed: &Testbed) -> Vec<Option<&Namespace>> {
    match bed {
        Testbed::Kernel(bed) => bed.switches().map(Some).collect(),
        Testbed::Replay(bed) => vec![bed.namespace()],
        Testbed::Memory(_) | Testbed::External(_) | Testbed::Fleet(_) => vec![None],
    }
}

/// Loads the flow entries of the settings, and behind them those of what is replayed, without a
/// part in the forwarding meanwhile.
fn load(client: &mut SwitchClient, bed: &Testbed, settings: &Settings) -> anyhow::Result<Loaded> {
    let entries = settings.flow_mods().map(|entry| Ok(entry?));
    let Testbed::Replay(bed) = bed else { return client.load(entries) };
    let _off = bed.keep_off().context("choosing cores")?;
    let given: Vec<anyhow::Result<FlowMod>> = entries.collect();
    client.load(bed.flow_mods(given)?)
}

impl Setup {
    /// Starts everything. With a controller it returns when packets cross; else when the switch
    /// has all its groups, meters and flow entries in force.
    ///
    /// # Errors
    /// [`SetupError`] with what the program said.
    pub fn start(parts: &SetupParts<'_>) -> Result<Self, SetupError> {
        parts.cancel.check()?;
        let controller_dir = parts.dir.join("controller");
        std::fs::create_dir(&controller_dir)?;
        let cpu_groups = parts.cpu_groups()?;
        let (settings, bed) = (parts.settings, parts.bed()?);
        let version = settings.version()?;
        let (address, port) = match &bed {
            Testbed::Kernel(_) => (CONTROLLER_IP, CONTROLLER_PORT),
            Testbed::Memory(bed) => (Ipv4Addr::LOCALHOST, bed.controller_port()),
            Testbed::External(_) | Testbed::Replay(_) | Testbed::Fleet(_) => {
                (Ipv4Addr::LOCALHOST, CONTROLLER_PORT)
            }
        };
        let keys = parts.keys()?;
        let keys = keys.as_ref();
        let controller = match parts.controller {
            None => None,
            Some(program) => {
                let namespace = bed.kernel().map(NetnsTestbed::controller);
                let plan = ControllerPlan {
                    context: parts.context(&controller_dir, namespace, version),
                    app: settings.app.unwrap_or(AppKind::Hub),
                    address,
                    port,
                    keys,
                };
                let held =
                    (program.start)(&plan).and_then(|one| one.held_to(cpu_groups[1].as_ref()));
                Some(held.map_err(SetupError::Controller)?)
            }
        };
        let transport = if keys.is_some() { "ssl" } else { "tcp" };
        let target = format!("{transport}:{address}:{port}");
        let controlled = controller.is_some().then_some(target.as_str());
        let mut line = parts.switches(&bed, version, controlled, keys, cpu_groups[0].as_ref())?;
        let (dut, _) = line.remove(0);
        let tls = keys.map(|keys| Tls::load(keys.controller.clone(), false)).transpose();
        let tls = tls.map_err(|error| SetupError::Keys(error.to_string()))?;
        let tls = dut.tls.clone().or(tls);
        let (client, further, loaded, empty_bytes) = (None, line, None, 0);
        let mut setup = Self {
            client,
            dut,
            further,
            controller,
            cpu_groups,
            bed,
            tls,
            version,
            loaded,
            empty_bytes,
        };
        match settings.forwarding() {
            Forwarding::Controller => setup.wait_for_path(parts.cancel)?,
            Forwarding::Flows => {
                setup.program(settings, parts.dut.keeps_entries(), parts.cancel)?;
            }
            Forwarding::Learning if !parts.dut.reports_ready() => {
                setup.wait_for_path(parts.cancel)?;
            }
            Forwarding::Learning => {}
            Forwarding::Io => setup.ask_without_channel(parts.cancel)?,
        }
        Ok(setup)
    }

    /// Asks a switch of Weir's for its ports' counters that has no OpenFlow channel.
    fn ask_without_channel(&mut self, cancel: &Cancel) -> Result<(), SetupError> {
        if let Some(DutCounters::Control(socket)) = &self.dut.counters {
            let client = SwitchClient::over_control(socket, self.version, cancel);
            self.client = Some(Mutex::new(client.map_err(|error| self.refused(&error, cancel))?));
        }
        Ok(())
    }

    /// Loads groups, meters and flow entries, in this order, over a connection of the lab's own.
    fn program(
        &mut self,
        settings: &Settings,
        is_cleared: bool,
        cancel: &Cancel,
    ) -> Result<(), SetupError> {
        if self.dut.bridges.is_empty() {
            return Ok(());
        }
        let made = self.dut.connection.take();
        let client = self.client_of(made, &self.dut.bridges, cancel);
        let mut client = client.map_err(|error| self.refused(&error, cancel))?;
        if is_cleared {
            client.clear().map_err(|error| self.refused(&error, cancel))?;
        }
        let groups = settings.group_mods()?.into_iter().map(Message::GroupMod);
        let meters = settings.meter_mods()?.into_iter().map(Message::MeterMod);
        let before: Vec<Message> = groups.chain(meters).collect();
        self.empty_bytes = self.resident_bytes();
        let loaded =
            client.send_all(before.clone()).and_then(|()| load(&mut client, &self.bed, settings));
        self.loaded = Some(loaded.map_err(|error| self.refused(&error, cancel))?);
        self.client = Some(Mutex::new(client));
        for place in 0..self.further.len() {
            let made = self.further[place].0.connection.take();
            let client = self.client_of(made, &self.further[place].0.bridges, cancel);
            let loaded = client.and_then(|mut client| {
                client.send_all(before.clone())?;
                load(&mut client, &self.bed, settings)?;
                Ok(client)
            });
            let client = loaded.map_err(|error| self.refused(&error, cancel))?;
            self.further[place].1 = Some(client);
        }
        Ok(())
    }

    /// The lab's connection to the first bridge of a switch: the one that the switch has made, or a
    /// new one.
    fn client_of(
        &self,
        made: Option<TcpStream>,
        bridges: &[Endpoint],
        cancel: &Cancel,
    ) -> anyhow::Result<SwitchClient> {
        match (made, bridges.first()) {
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
        self.check().err().unwrap_or_else(|| SetupError::Channel(format!("{error:#}")))
    }

    /// Hands the lab's own OpenFlow connection over: a switch that connects by itself has one.
    pub fn take_client(&mut self) -> Option<SwitchClient> {
        let client = self.client.take()?;
        Some(client.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The lab's own OpenFlow connection, where the switch forwards by flow entries.
    #[must_use]
    pub fn client(&self) -> Option<MutexGuard<'_, SwitchClient>> {
        self.client.as_ref().map(|client| client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// OpenFlow endpoints of the bridges; empty where the switch has no channel.
    #[must_use]
    pub fn bridges(&self) -> &[Endpoint] {
        &self.dut.bridges
    }

    /// A new OpenFlow connection of the lab's own to a bridge, which is counted from 0: over the
    /// control link where the channel is TCP, with TLS where the settings want it.
    ///
    /// # Errors
    /// There is no such bridge, nobody listens, or it does not speak the version.
    pub fn connect(&self, bridge: usize, cancel: &Cancel) -> anyhow::Result<SwitchClient> {
        self.connect_in(self.version, bridge, cancel)
    }

    /// The same in another version than that of the settings.
    ///
    /// # Errors
    /// As [`Setup::connect`].
    pub fn connect_in(
        &self,
        version: Version,
        bridge: usize,
        cancel: &Cancel,
    ) -> anyhow::Result<SwitchClient> {
        let Some(endpoint) = self.dut.bridges.get(bridge) else {
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
        match (endpoint, self.bed.kernel()) {
            // A socket stays in the namespace that it was made in.
            (
                Endpoint::Tcp { .. } | Endpoint::Ssl { .. } | Endpoint::PassiveTcp { .. },
                Some(bed),
            ) => bed.controller().enter(connect)?,
            _ => connect(),
        }
    }

    /// The load of the flow entries, until the barrier's answer.
    #[must_use]
    pub fn loaded(&self) -> Option<Loaded> {
        self.loaded
    }

    /// Bytes of memory that the switch held before its flow entries, and that it holds now.
    #[must_use]
    pub fn memory_bytes(&self) -> (u64, u64) {
        (self.empty_bytes, self.resident_bytes())
    }

    /// The programs of each switch, in the order of the line.
    fn services(&self) -> impl Iterator<Item = &Service> {
        let further = self.further.iter().map(|(dut, _)| &dut.service);
        std::iter::once(&self.dut.service).chain(further)
    }

    /// Process ids of the subject: of the switch's programs that forward, or of the controller
    /// that a fleet loads.
    #[must_use]
    pub fn switch_pids(&self) -> Vec<u32> {
        self.services().flat_map(Service::watched).map(|one| one.pid).collect()
    }

    /// Address of the controller that a fleet loads, the switches' side of TLS, and `HOST:PORT` of
    /// its REST.
    pub(crate) fn controller(&self) -> Option<(&Endpoint, Option<&Tls>, Option<&str>)> {
        let endpoint = self.dut.bridges.first()?;
        Some((endpoint, self.tls.as_ref(), self.dut.rest.as_deref()))
    }

    fn resident_bytes(&self) -> u64 {
        let of = |pid: &u32| ProcFolder::of(*pid).memory("VmRSS").unwrap_or(0);
        self.switch_pids().iter().map(of).sum()
    }

    /// The switch's own counters, where it counts more than OpenFlow does.
    #[must_use]
    pub fn counters(&self) -> Option<&DutCounters> {
        self.dut.counters.as_ref()
    }

    /// Counts of all pairs of ports, where the switch replays a trace.
    ///
    /// # Errors
    /// The switch does not answer.
    pub(crate) fn counts(&self, pairs: usize) -> anyhow::Result<Counts> {
        if let Some(counts) = self.counters().map(DutCounters::counts).transpose()?.flatten() {
            return Ok(counts);
        }
        let mut client = self.client().context("the switch has no counters to ask for")?;
        let before = Instant::now();
        let stats = client.port_stats()?;
        Counts::of_ports(&stats, pairs, before + before.elapsed() / 2)
    }

    /// Packets that a tier inside the kernel has decided since the start, where that tier may
    /// decide for the only bridge, and the lab has loaded the flow entries.
    ///
    /// # Errors
    /// The switch does not answer.
    pub fn tier_hits(&self) -> anyhow::Result<Option<u64>> {
        let (Some(socket), Some(mut client), [_]) = (&self.dut.tier, self.client(), self.bridges())
        else {
            return Ok(None);
        };
        // Asking for statistics has the tier's hits counted.
        client.multipart(MultipartRequestBody::Aggregate(FlowStatsRequest::all()))?;
        let values = ask(socket, ControlCommand::Caches { set: None })?;
        Ok(Some(values.iter().filter_map(|value| value["kernel_hits"].as_u64()).sum()))
    }

    /// The testbed.
    #[must_use]
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// The programs whose CPU is watched.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        let host = Watched {
            role: ProcessRole::Host,
            name: "lab".to_owned(),
            pid: std::process::id(),
            cores_max: None,
        };
        let controller = self.controller.as_ref().map(Service::watched).unwrap_or_default();
        let switches = self.services().flat_map(Service::watched).collect();
        [switches, controller, vec![host]].concat()
    }

    /// The commands that started controller and switch.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let controller = self.controller.as_ref().map_or(&[][..], Service::commands);
        let switches = self.services().flat_map(Service::commands);
        controller.iter().chain(switches).cloned().collect()
    }

    /// Fails if switch or controller has ended.
    ///
    /// # Errors
    /// [`SetupError::Dut`] or [`SetupError::Controller`] with the end of the log.
    pub fn check(&mut self) -> Result<(), SetupError> {
        self.check_switch()?;
        let controller = self.controller.as_mut().map_or(Ok(()), Service::check);
        controller.map_err(|error| SetupError::Controller(error.into()))
    }

    /// Fails if the switch has ended. A controller may have been ended by a method.
    ///
    /// # Errors
    /// [`SetupError::Dut`] with the end of the log.
    pub fn check_switch(&mut self) -> Result<(), SetupError> {
        let further = self.further.iter_mut().map(|(dut, _)| dut);
        let mut all = std::iter::once(&mut self.dut).chain(further);
        all.try_for_each(|dut| dut.service.check()).map_err(|error| SetupError::Dut(error.into()))
    }

    /// Sends a few probes there and back until two rounds in a row come back whole: the connection
    /// is up, the controller answers, and a learning switch has learned.
    fn wait_for_path(&mut self, cancel: &Cancel) -> Result<(), SetupError> {
        let probes = TrialInput { frame_size: 64, rate_pps: 50.0, duration_s: 0.1, grace_s: 1.0 };
        let mut whole = 0;
        let mut last = String::new();
        let reached = cancel.poll(PATH_LIMIT, || {
            match self.bed.round_trip(&probes, cancel) {
                Ok(outcome) if outcome.report.lost == 0 => whole += 1,
                Ok(outcome) => {
                    whole = 0;
                    let account = outcome.report;
                    last = format!("{} of {} probes came back", account.received, account.sent);
                }
                Err(error) => {
                    whole = 0;
                    last = error.to_string();
                }
            }
            whole >= 2 || self.check().is_err()
        })?;
        self.check()?;
        if reached {
            return Ok(());
        }
        let controller = self.controller.as_ref().map(Service::tails).unwrap_or_default();
        let logs = controller + &self.services().map(Service::tails).collect::<String>();
        Err(SetupError::NoPath { last, logs })
    }
}

/// Whether an error of a method is due to a part of the setup that has ended; the error of that
/// part says more.
#[must_use]
pub fn explain(setup: &mut Setup, error: &TrialError) -> String {
    match setup.check() {
        Ok(()) => error.to_string(),
        Err(ended) => format!("{error}; {ended}"),
    }
}
