//! From what was given to what holds: defaults filled in, ports numbered, contradictions refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use channel::{Endpoint, TlsFiles};
use datapath::{FlowTable, MIRRORS_MAX, Mirror, MirrorOutput, PortVlans, QueueRates, check_queues};
use netdev::{PortSpec, QUEUES_MAX};
use openflow::message::SwitchDesc;
use openflow::{DatapathId, PortNo, TableId, Version};

use super::problem::Problem;
use super::{CachesArg, ConfigError, FailMode, Forward, MirrorArg, Poll, SwitchArgs};

/// Most ports of 1.0, whose numbers have 16 bits (`OFPP_MAX` of 1.0).
const V1_0_PORT_MAX: PortNo = PortNo(0xff00);

/// The name of a bridge that is given none and is the only one.
const BRIDGE_NAME: &str = "br0";

/// Most forwarding threads.
const WORKERS_MAX: u16 = 64;

/// Most auxiliary connections to one controller.
const AUXILIARY_MAX: u8 = 8;

/// Shortest allowed `max-backoff`, and its default.
const BACKOFF_LEAST: Duration = Duration::from_millis(100);
const BACKOFF_DEFAULT: Duration = Duration::from_secs(8);

/// Seconds until an address that sent nothing is forgotten, where nothing else is wanted.
const MAC_AGE_S: u16 = 300;

/// The highest port number that all these versions can say.
pub(crate) fn highest_port(versions: &[Version]) -> PortNo {
    if versions.iter().all(|version| version.has_wide_ports()) {
        PortNo::MAX
    } else {
        V1_0_PORT_MAX
    }
}

/// A configuration without gaps.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bridges, at least one, each with a name of its own.
    pub bridges: Vec<BridgeConfig>,
    /// The control socket; `None` for none.
    pub control: Option<PathBuf>,
    /// The address at which metrics are served; `None` for none.
    pub metrics: Option<SocketAddr>,
    /// The folder in which the state is kept; `None` for none.
    pub state: Option<PathBuf>,
    /// Forwarding threads, at least 1.
    pub workers: usize,
    /// The CPU of each, or none for any.
    pub worker_cores: Vec<usize>,
    /// Most memory to take, in bytes; none for the limit of the control group.
    pub max_memory: Option<u64>,
    /// Their wait policy.
    pub poll: Poll,
}

/// A bridge's part of it.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// Its name.
    pub name: String,
    /// Datapath id; `None` for one made from the first port's address.
    pub dpid: Option<DatapathId>,
    /// The ports, by number; `LOCAL` is last when there is one.
    pub ports: Vec<PortConfig>,
    /// The part of ports in VLANs, by number, where that is set.
    pub vlans: Vec<(PortNo, PortVlans)>,
    /// The mirrors.
    pub mirrors: Vec<Mirror>,
    /// Ports with queues or a rate of their own.
    pub queues: Vec<PortQueues>,
    /// The queues of devices whose ports do not say it.
    pub device_queues: u32,
    /// Controllers to connect to.
    pub controllers: Vec<Endpoint>,
    /// The endpoints that controllers may connect to.
    pub listeners: Vec<Endpoint>,
    /// Key and certificates, when there is an endpoint with TLS.
    pub tls: Option<TlsFiles>,
    /// Whether a controller that is connected to must have a certificate for its host.
    pub check_peer_name: bool,
    /// Auxiliary connections to each controller that is connected to.
    pub auxiliary: u8,
    /// Versions to speak; never empty.
    pub versions: Vec<Version>,
    /// The mode while no controller is connected.
    pub fail_mode: FailMode,
    /// Flow tables.
    pub tables: u8,
    /// Most flow entries in one table.
    pub max_entries: u32,
    /// Names and limits of single tables.
    pub flow_tables: BTreeMap<TableId, FlowTable>,
    /// Seconds until `NORMAL` forgets an address that sent nothing.
    pub mac_age_s: u16,
    /// Seconds of silence until a probe; 0 for never.
    pub inactivity_probe_s: u32,
    /// The longest wait between two attempts to connect to a controller.
    pub max_backoff: Duration,
    /// Most packets that wait for the controllers.
    pub packet_in_queue: usize,
    /// Most packet-ins a second for each reason; 0 for any number.
    pub packet_in_rate: u32,
    /// Packet-ins that may come at once before the rate holds.
    pub packet_in_burst: u32,
    /// The mode of forwarding.
    pub forward: Forward,
    /// The caches that its forwarders use.
    pub caches: CachesArg,
    /// Whether the kernel tier was asked for by name: it takes devices then that the host uses too.
    pub is_tier_asked: bool,
    /// The description.
    pub desc: SwitchDesc,
}

impl BridgeConfig {
    /// The rate that is asked for at a port, and its queues.
    pub(crate) fn shape_of(&self, number: PortNo) -> (Option<u64>, Vec<QueueRates>) {
        let held = self.queues.iter().find(|queues| queues.number == number);
        held.map(|queues| (queues.rate_bps, queues.queues.clone())).unwrap_or_default()
    }

    /// The part of a port in VLANs.
    pub(crate) fn vlans_of(&self, number: PortNo) -> PortVlans {
        let held = self.vlans.iter().find(|(port, _)| *port == number);
        held.map(|(_, vlans)| vlans.clone()).unwrap_or_default()
    }
}

/// A port whose device has `queues` queues, where the spec names none; one is not mentioned.
pub(crate) fn with_queues(spec: PortSpec, queues: u32) -> PortSpec {
    if queues > 1 { spec.with_queues(queues) } else { spec }
}

/// A port with its number.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Its number.
    pub number: PortNo,
    /// The device to open.
    pub spec: PortSpec,
}

impl fmt::Display for PortConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.number, self.spec)
    }
}

/// The queues of a port.
#[derive(Clone, Debug)]
pub struct PortQueues {
    /// The port's number.
    pub number: PortNo,
    /// Bits per second; `None` for the device's.
    pub rate_bps: Option<u64>,
    /// Its queues; none where only the rate was asked for.
    pub queues: Vec<QueueRates>,
}

/// A bridge's name stands in front of flow entries (`weir ctl del-flows br0 tcp`) and in lines of
/// output, so it is no word of an entry and breaks no line.
fn check_name(name: &str) -> Result<(), Problem> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.@+".contains(letter);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(Problem::new("name", "must be letters, digits and any of -_.@+"));
    }
    if openflow::text::parse_match(name).is_ok() {
        let message = format!("`{name}` is a word of flow entries; choose another");
        return Err(Problem::new("name", message));
    }
    Ok(())
}

impl SwitchArgs {
    /// Checks what the types alone do not: ranges, and values against each other.
    pub(super) fn check_one(&self) -> Result<(), Problem> {
        self.name.as_deref().map_or(Ok(()), check_name)?;
        if self.tables.is_some_and(|tables| !(1..=254).contains(&tables)) {
            return Err(Problem::new("tables", "must be 1 to 254"));
        }
        for (key, value) in
            [("max-entries", self.max_entries), ("packet-in-queue", self.packet_in_queue)]
        {
            if value == Some(0) {
                return Err(Problem::new(key, "must be at least 1"));
            }
        }
        if self.max_backoff.is_some_and(|most| most.0 < BACKOFF_LEAST) {
            return Err(Problem::new("max-backoff", "must be at least 0.1"));
        }
        if self.queues.is_some_and(|queues| !(1..=QUEUES_MAX).contains(&queues)) {
            return Err(Problem::new("queues", format!("must be 1 to {QUEUES_MAX}")));
        }
        self.check_workers()?;
        self.check_endpoints()?;
        self.check_tls()?;
        self.check_ports()?;
        self.check_devices()?;
        self.check_vlans()?;
        self.check_mirrors()?;
        self.check_queues()
    }

    fn check_workers(&self) -> Result<(), Problem> {
        let workers = self.workers.unwrap_or(1);
        if !(1..=WORKERS_MAX).contains(&workers) {
            return Err(Problem::new("workers", format!("must be 1 to {WORKERS_MAX}")));
        }
        let cores = self.worker_cores.len();
        if cores > 0 && cores != usize::from(workers) {
            let message = format!("names {cores} CPUs for {workers} workers; name one for each");
            return Err(Problem::new("worker-cores", message));
        }
        let by_controller = !self.controllers().is_empty() || !self.listen.is_empty();
        if by_controller && matches!(self.forward, Some(Forward::Wire(_))) {
            let message = "is without flow tables, so that no controller can be had: leave out \
                        controller and listen";
            return Err(Problem::new("forward", message));
        }
        Ok(())
    }

    fn check_endpoints(&self) -> Result<(), Problem> {
        let passive = self.controllers().iter().position(|endpoint| endpoint.0.is_passive());
        if let Some(index) = passive {
            let message = "a controller is connected to: tcp:HOST[:PORT], ssl:HOST[:PORT] or \
                           unix:PATH; where controllers may come to is for listen"
                .to_owned();
            return Err(Problem::at("controller", index, message));
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), Problem> {
        if self.auxiliary.is_some_and(|count| count > AUXILIARY_MAX) {
            return Err(Problem::new("auxiliary", format!("must be 0 to {AUXILIARY_MAX}")));
        }
        let files = [
            ("private-key", &self.private_key),
            ("certificate", &self.certificate),
            ("ca-cert", &self.ca_cert),
        ];
        let missing: Vec<&str> =
            files.iter().filter(|(_, path)| path.is_none()).map(|(key, _)| *key).collect();
        let wants = |endpoints: &[super::EndpointArg]| endpoints.iter().position(|e| e.0.is_tls());
        for (key, endpoints) in [("controller", self.controllers()), ("listen", &self.listen)] {
            let Some(index) = wants(endpoints).filter(|_| !missing.is_empty()) else { continue };
            let message = format!("TLS needs {} too; weir pki makes them", missing.join(" and "));
            return Err(Problem::at(key, index, message));
        }
        let given = files.iter().find(|(_, path)| path.is_some());
        match given {
            Some((key, _)) if !missing.is_empty() => {
                let message = format!("goes together with {}", missing.join(" and "));
                Err(Problem::new(key, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            private_key: self.private_key.clone()?,
            certificate: self.certificate.clone()?,
            ca_cert: self.ca_cert.clone()?,
        })
    }

    /// Refuses a device that two ports of the bridge have: its frames would go round for ever.
    fn check_devices(&self) -> Result<(), Problem> {
        let mut taken = BTreeSet::new();
        let ports = self.port.iter().map(|port| &port.spec).zip(0..);
        let ports = ports.map(|(spec, index)| (spec, Some(index)));
        for (spec, index) in ports.chain(self.local.iter().map(|spec| (spec, None))) {
            let Some(device) = spec.exclusive() else { continue };
            let message =
                format!("{device} is another port's device already; a device is one port");
            if !taken.insert(device) {
                return Err(match index {
                    Some(index) => Problem::at("port", index, message),
                    None => Problem::new("local", message),
                });
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), Problem> {
        let highest = highest_port(&self.versions());
        for (index, port) in self.port.iter().enumerate() {
            let Some(number) = port.number else { continue };
            let at = |message: String| Problem::at("port", index, message);
            if self.port.iter().take(index).any(|earlier| earlier.number == Some(number)) {
                return Err(at(format!("port number {number} is given twice")));
            }
            if number > highest {
                let message = format!(
                    "port number {number} is above {}, the highest that OpenFlow10 can say; \
                     choose a lower one or protocols OpenFlow13",
                    highest.0
                );
                return Err(at(message));
            }
        }
        Ok(())
    }

    fn check_vlans(&self) -> Result<(), Problem> {
        let ports = self.numbered_ports();
        for (index, vlan) in self.vlan.iter().enumerate() {
            let number = vlan.number;
            let at = |message: String| Problem::at("vlan", index, message);
            if !ports.iter().any(|port| port.number == number) {
                return Err(at(format!("there is no port {number}")));
            }
            if self.vlan.iter().take(index).any(|earlier| earlier.number == number) {
                return Err(at(format!("port {number} is given twice")));
            }
        }
        Ok(())
    }

    fn check_mirrors(&self) -> Result<(), Problem> {
        let ports = self.numbered_ports();
        for (index, MirrorArg(mirror)) in self.mirror.iter().enumerate() {
            let at = |message: String| Problem::at("mirror", index, message);
            let output = match mirror.output {
                MirrorOutput::Port(port) => Some(port),
                MirrorOutput::Vlan(_) => None,
            };
            let mut named = mirror.sources.iter().chain(&mirror.destinations).chain(&output);
            let lacks = |number: &&PortNo| !ports.iter().any(|port| port.number == **number);
            if let Some(number) = named.find(lacks) {
                return Err(at(format!("there is no port {number}")));
            }
            let is_selected =
                |port: &PortNo| mirror.sources.contains(port) || mirror.destinations.contains(port);
            if let Some(port) = output.filter(is_selected) {
                return Err(at(format!("port {port} is its output, which takes nothing else")));
            }
            if self.mirror.iter().take(index).any(|earlier| earlier.0.name == mirror.name) {
                return Err(at(format!("mirror {} is given twice", mirror.name)));
            }
            if index >= MIRRORS_MAX {
                return Err(at(format!("a bridge has {MIRRORS_MAX} mirrors at most")));
            }
        }
        Ok(())
    }

    fn check_queues(&self) -> Result<(), Problem> {
        let ports = self.numbered_ports();
        let lacks = |number: PortNo| !ports.iter().any(|port| port.number == number);
        for (index, queue) in self.queue.iter().enumerate() {
            let at = |message: String| Problem::at("queue", index, message);
            if lacks(queue.port) {
                return Err(at(format!("there is no port {}", queue.port)));
            }
            let so_far = self.queue.iter().take(index + 1);
            let of_port = so_far.filter(|other| other.port == queue.port).map(|other| other.queue);
            check_queues(1, &of_port.collect::<Vec<_>>()).map_err(|error| at(error.to_string()))?;
        }
        for (index, rate) in self.rate.iter().enumerate() {
            let at = |message: String| Problem::at("rate", index, message);
            if lacks(rate.port) {
                return Err(at(format!("there is no port {}", rate.port)));
            }
            if self.rate.iter().take(index).any(|earlier| earlier.port == rate.port) {
                return Err(at(format!("port {} is given twice", rate.port)));
            }
        }
        Ok(())
    }

    /// The ports with queues or a rate, by number.
    fn port_queues(&self) -> Vec<PortQueues> {
        let rates = self.rate.iter().map(|rate| rate.port);
        let numbers: BTreeSet<PortNo> =
            self.queue.iter().map(|queue| queue.port).chain(rates).collect();
        let of = |number: PortNo| PortQueues {
            number,
            rate_bps: self.rate.iter().find(|rate| rate.port == number).map(|rate| rate.rate_bps),
            queues: self.queue.iter().filter(|q| q.port == number).map(|q| q.queue).collect(),
        };
        numbers.into_iter().map(of).collect()
    }

    fn versions(&self) -> Vec<Version> {
        let given = self.protocols.clone().filter(|versions| !versions.is_empty());
        given.unwrap_or_else(|| Version::USUAL.to_vec())
    }

    fn controllers(&self) -> &[super::EndpointArg] {
        self.controller.as_deref().unwrap_or_default()
    }

    /// Fills in the defaults and numbers the ports.
    ///
    /// # Errors
    /// Values that contradict each other.
    pub fn resolve(&self) -> Result<Config, ConfigError> {
        let bridges = self.bridges();
        self.check(&bridges).map_err(|problem| {
            let error = ConfigError::plain(Some(problem.key), problem.message);
            let bridge = problem.bridge.and_then(|index| bridges.get(index));
            ConfigError { bridge: bridge.and_then(|bridge| bridge.name.clone()), ..error }
        })?;
        let control = self.control.clone().unwrap_or_else(control::default_path);
        Ok(Config {
            bridges: bridges.iter().map(Self::resolve_bridge).collect(),
            control: (control != Path::new("none")).then_some(control),
            metrics: self.metrics,
            state: self.state.clone(),
            workers: self.workers.unwrap_or(1).into(),
            worker_cores: self.worker_cores.iter().copied().map(usize::from).collect(),
            max_memory: self.max_memory.map(|size| size.0),
            poll: self.poll.unwrap_or_default(),
        })
    }

    fn resolve_bridge(&self) -> BridgeConfig {
        let text = |given: &Option<String>, default: &str| {
            given.clone().unwrap_or_else(|| default.to_owned())
        };
        BridgeConfig {
            name: text(&self.name, BRIDGE_NAME),
            dpid: self.dpid.map(|dpid| dpid.0),
            ports: self.numbered_ports(),
            queues: self.port_queues(),
            device_queues: self.device_queues(),
            vlans: self.vlan.iter().map(|vlan| (vlan.number, vlan.vlans.clone())).collect(),
            mirrors: self.mirror.iter().map(|mirror| mirror.0.clone()).collect(),
            controllers: self.controllers().iter().map(|endpoint| endpoint.0.clone()).collect(),
            listeners: self.listen.iter().map(|place| place.0.clone()).collect(),
            tls: self.tls_files(),
            check_peer_name: self.check_peer_name.unwrap_or(false),
            auxiliary: self.auxiliary.unwrap_or(0),
            versions: self.versions(),
            fail_mode: self.fail_mode.unwrap_or_default(),
            tables: self.tables.unwrap_or(254),
            max_entries: self.max_entries.unwrap_or(1_000_000),
            flow_tables: BTreeMap::new(),
            mac_age_s: MAC_AGE_S,
            inactivity_probe_s: self.inactivity_probe.unwrap_or(5),
            max_backoff: self.max_backoff.map_or(BACKOFF_DEFAULT, |most| most.0),
            packet_in_queue: self.packet_in_queue.unwrap_or(8_192) as usize,
            packet_in_rate: self.packet_in_rate.unwrap_or(0),
            packet_in_burst: self
                .packet_in_burst
                .unwrap_or_else(|| (self.packet_in_rate.unwrap_or(0) / 4).max(1)),
            forward: self.forward.unwrap_or_default(),
            caches: self.caches.unwrap_or_default(),
            is_tier_asked: self.caches.is_some_and(|caches| caches.0.kernel),
            desc: SwitchDesc {
                mfr_desc: text(&self.mfr_desc, "Weir"),
                hw_desc: text(&self.hw_desc, "user space"),
                sw_desc: text(&self.sw_desc, concat!("weir ", env!("CARGO_PKG_VERSION"))),
                serial_num: text(&self.serial_num, "none"),
                dp_desc: text(&self.dp_desc, "none"),
            },
        }
    }

    fn numbered_ports(&self) -> Vec<PortConfig> {
        let mut taken: Vec<PortNo> = self.port.iter().filter_map(|port| port.number).collect();
        let mut next = 1;
        let mut ports = Vec::new();
        for port in &self.port {
            let number = port.number.unwrap_or_else(|| {
                while taken.contains(&PortNo(next)) {
                    next += 1;
                }
                taken.push(PortNo(next));
                PortNo(next)
            });
            ports.push(PortConfig { number, spec: port.spec.clone() });
        }
        ports.sort_by_key(|port| port.number);
        ports.extend(
            self.local.iter().map(|spec| PortConfig { number: PortNo::LOCAL, spec: spec.clone() }),
        );
        for port in &mut ports {
            port.spec = with_queues(port.spec.clone(), self.device_queues());
        }
        ports
    }

    fn device_queues(&self) -> u32 {
        self.queues.unwrap_or(1)
    }
}
