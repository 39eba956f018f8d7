//! The plan of a change: all that may fail is tried before it is applied.
//!
//! Everything that is opened for a plan is closed again where the plan is not applied. A part that
//! is refused is as it was, also in the configuration that holds afterwards.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use channel::{Endpoint, Listener, Tls, TlsFiles, TransportError};
use futures_util::stream::{self, StreamExt};
use netdev::{Port, PortSpec};
use openflow::{DatapathId, PortNo};

use super::bridges::NewBridge;
use super::opening::{KEY, open_within};
use super::ports::{OpenPort, close, may_change_ports, open, open_by, shape};
use super::{Acceptance, Item, Manner, Refused, TierEntering};
use crate::agent::{Agent, Bridges};
use crate::assemble::{first_mac, made_dpid, tls_of};
use crate::config::{
    BridgeConfig, BridgeDifference, Config, Difference, Forward, PortConfig, PortSet, Setting,
    highest_port,
};
use crate::worker::WorkerPort;

/// Devices of a bridge that are opened at one time.
const OPENED_AT_ONCE: usize = 4;

/// See the module.
pub(super) struct Plan<'a> {
    pub(super) all: &'a Bridges,
    pub(super) manner: Manner,
    agents: HashMap<String, Rc<Agent>>,
    pub(super) leaving: Vec<Rc<Agent>>,
    pub(super) changed: Vec<BridgePlan>,
    pub(super) coming: Vec<(NewBridge, Vec<ComingPort>)>,
    /// The holders of devices when everything is carried out, and of those that go.
    devices: HashMap<String, Holder>,
    /// The datapath ids of the bridges when everything is carried out.
    dpids: HashMap<DatapathId, String>,
    /// The endpoints that are no longer listened at.
    endpoints_gone: HashSet<String>,
    /// Keys and certificates that were read.
    tls: Vec<(TlsFiles, bool, Tls)>,
    pub(super) refused: Vec<Refused>,
}

/// The holder of a device.
struct Holder {
    bridge: String,
    number: PortNo,
    /// It gives the device up.
    leaves: bool,
}

/// A port that comes.
pub(super) enum ComingPort {
    Open(Box<WorkerPort>),
    /// Its device is still another port's that goes.
    Later(PortConfig),
}

impl ComingPort {
    pub(super) fn number(&self) -> PortNo {
        match self {
            Self::Open(port) => port.number,
            Self::Later(port) => port.number,
        }
    }

    /// Its number and its device.
    pub(super) fn config(&self) -> PortConfig {
        match self {
            Self::Open(port) => PortConfig { number: port.number, spec: port.spec.clone() },
            Self::Later(port) => port.clone(),
        }
    }

    /// The port, which is opened now where it is not open yet.
    pub(super) async fn open(self, all: &Bridges) -> Result<WorkerPort, String> {
        match self {
            Self::Open(port) => Ok(*port),
            Self::Later(PortConfig { number, spec }) => {
                open(all.fresh_serial(), number, spec).await
            }
        }
    }
}

/// The changes of one bridge, with what is open for it already.
pub(super) struct BridgePlan {
    pub(super) agent: Rc<Agent>,
    pub(super) from: Rc<BridgeConfig>,
    pub(super) change: BridgeDifference,
    pub(super) ports: Vec<ComingPort>,
    /// The devices of ports that get another number, once they are removed.
    pub(super) devices: Vec<(PortConfig, Port)>,
    pub(super) listeners: Vec<(Endpoint, Listener)>,
    /// Endpoints at which another listener still listens that goes.
    pub(super) listeners_later: Vec<Endpoint>,
    /// Another datapath id.
    pub(super) dpid: Option<DatapathId>,
    /// Other key and certificates.
    pub(super) tls: Option<Option<Tls>>,
}

impl<'a> Plan<'a> {
    /// Tries all that may fail.
    pub(super) async fn prepare(
        all: &'a Bridges,
        manner: Manner,
        running: &Config,
        difference: Difference,
        refused: Vec<Refused>,
    ) -> Result<Self, Vec<Refused>> {
        let mut plan = Self {
            all,
            manner,
            agents: all.all().into_iter().map(|agent| (agent.name.clone(), agent)).collect(),
            leaving: Vec::new(),
            changed: Vec::new(),
            coming: Vec::new(),
            devices: HashMap::new(),
            dpids: HashMap::new(),
            endpoints_gone: HashSet::new(),
            tls: Vec::new(),
            refused,
        };
        plan.leaving = difference.gone.iter().filter_map(|name| plan.agents.remove(name)).collect();
        plan.note_what_runs(running, &difference);
        all.assembly().expect_bridges(difference.new.len());
        let mut changed = difference.changed;
        plan.claim_other_dpids(&mut changed);
        for change in changed {
            if !plan.is_stopped() {
                plan.prepare_change(change).await;
            }
        }
        for config in difference.new {
            if !plan.is_stopped() {
                plan.prepare_bridge(config).await;
            }
        }
        if !plan.is_stopped() {
            return Ok(plan);
        }
        let ports = plan.changed.into_iter().map(|bridge| bridge.ports);
        let ports = ports.chain(plan.coming.into_iter().map(|(_, ports)| ports));
        close_ports(ports.flatten()).await;
        Err(plan.refused)
    }

    /// Whether nothing is to be changed, because something is refused.
    fn is_stopped(&self) -> bool {
        match self.manner.acceptance {
            Acceptance::Whole => !self.refused.is_empty(),
            Acceptance::Partial => false,
        }
    }

    fn refuse(&mut self, bridge: &str, item: Item, why: impl Into<String>) {
        self.refused.push(Refused::of(bridge, item, why));
    }

    /// Notes the holders of devices, datapath ids and endpoints, and which of them go.
    fn note_what_runs(&mut self, running: &Config, difference: &Difference) {
        let changes: HashMap<&str, &BridgeDifference> =
            difference.changed.iter().map(|change| (change.to.name.as_str(), change)).collect();
        for bridge in &running.bridges {
            let is_gone = !self.agents.contains_key(&bridge.name);
            let change = changes.get(bridge.name.as_str());
            let ports_gone: HashSet<PortNo> =
                change.iter().flat_map(|one| &one.gone).map(|port| port.number).collect();
            let moved: HashMap<PortNo, PortNo> = change
                .iter()
                .flat_map(|one| &one.moved)
                .map(|(from, to)| (*from, to.number))
                .collect();
            for port in &bridge.ports {
                let Some(device) = port.spec.exclusive() else { continue };
                let number = moved.get(&port.number).copied().unwrap_or(port.number);
                let leaves = is_gone || ports_gone.contains(&port.number);
                self.devices.insert(device, Holder { bridge: bridge.name.clone(), number, leaves });
            }
            let endpoints = match change {
                Some(change) => &change.listeners_gone[..],
                None if is_gone => &bridge.listeners[..],
                None => &[],
            };
            self.endpoints_gone.extend(endpoints.iter().map(socket_of));
            let keeps_dpid = change.is_none_or(|change| !change.has(Setting::Dpid));
            if let Some(agent) = self.agents.get(&bridge.name).filter(|_| keeps_dpid) {
                self.dpids.insert(agent.bridge.dpid(), bridge.name.clone());
            }
        }
    }

    /// Gives bridges the other datapath ids that they want. One that cannot have it keeps its own,
    /// which no other can have then.
    fn claim_other_dpids(&mut self, changed: &mut [BridgeDifference]) {
        loop {
            let mut wanted = HashSet::new();
            let refused = changed.iter_mut().find_map(|change| {
                let dpid = change.to.dpid.filter(|_| change.has(Setting::Dpid))?;
                let is_free = !self.dpids.contains_key(&dpid) && wanted.insert(dpid);
                (!is_free).then_some((change, dpid))
            });
            let Some((change, dpid)) = refused else { break };
            let name = change.to.name.clone();
            let other = self.dpids.get(&dpid).map_or("another bridge", String::as_str);
            let why = format!("{dpid} is the datapath id of {other}; give another dpid");
            self.refuse(&name, Item::Key("dpid"), why);
            change.settings.retain(|(_, setting)| *setting != Setting::Dpid);
            if let Some(agent) = self.agents.get(&name) {
                change.to.dpid = agent.config().dpid;
                self.dpids.insert(agent.bridge.dpid(), name);
            }
        }
        for change in changed.iter().filter(|change| change.has(Setting::Dpid)) {
            if let Some(dpid) = change.to.dpid {
                self.dpids.insert(dpid, change.to.name.clone());
            }
        }
    }

    /// Tries the changes of a bridge.
    async fn prepare_change(&mut self, change: BridgeDifference) {
        let Some(agent) = self.agents.get(&change.to.name).cloned() else { return };
        let from = agent.config();
        let mut plan = BridgePlan {
            agent,
            from,
            change,
            ports: Vec::new(),
            devices: Vec::new(),
            listeners: Vec::new(),
            listeners_later: Vec::new(),
            dpid: None,
            tls: None,
        };
        self.prepare_settings(&mut plan).await;
        self.prepare_listeners(&mut plan).await;
        self.prepare_ports(&mut plan).await;
        self.changed.push(plan);
    }

    async fn prepare_settings(&mut self, plan: &mut BridgePlan) {
        let BridgePlan { agent, from, change, .. } = plan;
        let (name, settings) = (agent.name.as_str(), &mut change.settings);
        let is_tls = |(_, setting): &(&str, Setting)| *setting == Setting::Tls;
        if settings.iter().any(is_tls) {
            match self.tls(&change.to).await {
                Ok(tls) => plan.tls = Some(tls),
                Err(why) => {
                    self.refuse(name, Item::Key("private-key"), why);
                    settings.retain(|setting| !is_tls(setting));
                    change.to.tls.clone_from(&from.tls);
                    change.to.check_peer_name = from.check_peer_name;
                }
            }
        }
        let highest = highest_port(&change.to.versions);
        let over = change.to.ports.iter().find(|port| !may_be(port.number, highest));
        if let Some(port) = over.filter(|_| highest < highest_port(&from.versions)) {
            let why = format!("port number {} is more than these versions can say", port.number);
            self.refuse(name, Item::Key("protocols"), why);
            settings.retain(|(_, setting)| *setting != Setting::Versions);
            change.to.versions.clone_from(&from.versions);
        }
        if settings.iter().any(|(_, setting)| *setting == Setting::Dpid) {
            let first = agent.bridge.port_descs().first().map(|port| port.hw_addr);
            let made = || made_dpid(first, |dpid| self.dpids.contains_key(&dpid));
            let dpid = change.to.dpid.unwrap_or_else(made);
            self.dpids.insert(dpid, name.to_owned());
            plan.dpid = Some(dpid);
        }
    }

    async fn prepare_listeners(&mut self, plan: &mut BridgePlan) {
        let name = plan.agent.name.clone();
        if plan.tls.is_some() {
            // A listener has its key for as long as it listens.
            let has_key = |endpoint: &&Endpoint| endpoint.is_tls();
            let stays = |endpoint: &&Endpoint| !plan.change.listeners_new.contains(endpoint);
            let again = plan.change.to.listeners.iter().filter(has_key).filter(stays);
            plan.listeners_later = again.cloned().collect();
            plan.change.listeners_gone.extend(plan.listeners_later.iter().cloned());
        }
        let tls = plan.tls.clone().unwrap_or_else(|| plan.agent.tls());
        for endpoint in std::mem::take(&mut plan.change.listeners_new) {
            match self.listen(&endpoint, tls.as_ref()).await {
                Ok(Some(listener)) => plan.listeners.push((endpoint, listener)),
                Ok(None) => plan.listeners_later.push(endpoint),
                Err(error) => {
                    self.refuse(&name, Item::Key("listen"), error.to_string());
                    plan.change.to.listeners.retain(|other| *other != endpoint);
                }
            }
        }
    }

    /// Listens at an endpoint; `None` where another listener is in the way until it goes.
    async fn listen(
        &self,
        endpoint: &Endpoint,
        tls: Option<&Tls>,
    ) -> Result<Option<Listener>, TransportError> {
        let is_in_the_way = self.endpoints_gone.contains(&socket_of(endpoint));
        if is_in_the_way && matches!(endpoint, Endpoint::PassiveUnix(_) | Endpoint::Unix(_)) {
            return Ok(None);
        }
        match Listener::bind(endpoint, tls).await {
            Err(TransportError::AddressInUse(_)) if is_in_the_way => Ok(None),
            bound => bound.map(Some),
        }
    }

    async fn prepare_ports(&mut self, plan: &mut BridgePlan) {
        if !plan.change.has_port_changes() {
            return;
        }
        let (agent, from, change) = (&plan.agent, &plan.from, &mut plan.change);
        let name = agent.name.as_str();
        if let Err(why) = may_change_ports(agent) {
            self.refuse(name, Item::Key("port"), why);
            change.to.ports.clone_from(&from.ports);
            (change.gone, change.new) = (Vec::new(), Vec::new());
            (change.moved, change.set) = (Vec::new(), Vec::new());
            return;
        }
        for (number, why) in keep_numbers(agent, from, change) {
            self.refuse(name, Item::Port(number), why);
        }
        for number in std::mem::take(&mut change.set) {
            let speed_bps = agent.bridge.speed_of(number).unwrap_or(0);
            match shape(&change.to.port_set(number), number, speed_bps) {
                Ok(_) => change.set.push(number),
                Err(why) => {
                    self.refuse(name, Item::Port(number), why);
                    change.to.set_port(number, from.port_set(number));
                }
            }
        }
        let goes = change.gone.iter().map(|port| port.number);
        let goes: HashSet<PortNo> = goes.chain(change.moved.iter().map(|(now, _)| *now)).collect();
        let mut taken: HashSet<PortNo> =
            from.ports.iter().map(|port| port.number).filter(|port| !goes.contains(port)).collect();
        taken.extend(change.moved.iter().map(|(_, port)| port.number));
        let new = std::mem::take(&mut change.new);
        plan.ports = self.open_all(&mut plan.change.to, new, taken).await;
    }

    /// Opens new ports of a bridge, whose other ports have the numbers `taken`, several at a time:
    /// most of it is waiting for the kernel. A port that is refused is no longer in `to`.
    async fn open_all(
        &mut self,
        to: &mut BridgeConfig,
        new: Vec<PortConfig>,
        mut taken: HashSet<PortNo>,
    ) -> Vec<ComingPort> {
        let mut coming = Vec::new();
        for port in new {
            let number = port.number;
            if !taken.insert(number) {
                let why = format!("port number {number} is taken");
                self.refuse(&to.name, Item::Port(number), why);
                // The other one stays, and has its settings.
                to.ports.retain(|other| other.number != number || other.spec != port.spec);
                continue;
            }
            match self.claim_device(to, &port) {
                Ok(is_free) => coming.push((port, is_free, to.port_set(number))),
                Err(why) => {
                    self.refuse(&to.name, Item::Port(number), why);
                    to.remove_port(number);
                }
            }
        }
        if self.is_stopped() {
            return Vec::new();
        }
        let is_tier_wanted = matches!(to.forward, Forward::Openflow) && to.caches.0.kernel;
        let by: OpenPort = match self.manner.entering {
            _ if !is_tier_wanted => WorkerPort::open,
            TierEntering::First => WorkerPort::open_for_tier,
            TierEntering::Later => WorkerPort::open_before_tier,
        };
        let all = self.all;
        let open = |(port, is_free, set): (PortConfig, bool, PortSet)| async move {
            let opened = match is_free {
                true => open_shaped(all, by, port.clone(), &set).await,
                false => Ok(ComingPort::Later(port.clone())),
            };
            (port, opened)
        };
        let mut opened = stream::iter(coming).map(open).buffered(OPENED_AT_ONCE);
        let mut ports = Vec::new();
        while let Some((port, opened)) = opened.next().await {
            match opened {
                Ok(port) => ports.push(port),
                Err(why) => {
                    self.release_device(&port.spec);
                    self.refuse(&to.name, Item::Port(port.number), why);
                    to.remove_port(port.number);
                }
            }
        }
        ports
    }

    /// Notes a port as the holder of its device; false where another one has it until it goes.
    fn claim_device(&mut self, to: &BridgeConfig, port: &PortConfig) -> Result<bool, String> {
        let highest = highest_port(&to.versions);
        if !may_be(port.number, highest) {
            let (number, highest) = (port.number, highest.0);
            return Err(format!(
                "port number {number} is above {highest}, the highest that OpenFlow10 can say"
            ));
        }
        let Some(device) = port.spec.exclusive() else { return Ok(true) };
        let number = port.number;
        let holder = || Holder { bridge: to.name.clone(), number, leaves: false };
        match self.devices.get_mut(&device) {
            None => {
                self.devices.insert(device, holder());
                Ok(true)
            }
            Some(held) if held.leaves => {
                *held = holder();
                Ok(false)
            }
            Some(held) => Err(format!(
                "{device} is the device of port {} of bridge {} already; a device is one port",
                held.number, held.bridge
            )),
        }
    }

    fn release_device(&mut self, spec: &PortSpec) {
        if let Some(device) = spec.exclusive() {
            self.devices.remove(&device);
        }
    }

    /// The datapath id that a bridge gets: the wanted one, or one made of its first port's address.
    fn claim_dpid(
        &mut self,
        bridge: &str,
        wanted: Option<DatapathId>,
        first: Option<openflow::MacAddr>,
    ) -> Result<DatapathId, String> {
        let is_taken = |dpid| self.dpids.contains_key(&dpid);
        let dpid = wanted.unwrap_or_else(|| made_dpid(first, is_taken));
        match self.dpids.get(&dpid) {
            Some(other) => {
                Err(format!("{dpid} is the datapath id of bridge {other}; give another dpid"))
            }
            None => {
                self.dpids.insert(dpid, bridge.to_owned());
                Ok(dpid)
            }
        }
    }

    /// Key and certificates of a bridge; read once for all that have the same.
    async fn tls(&mut self, config: &BridgeConfig) -> Result<Option<Tls>, String> {
        let Some(files) = &config.tls else { return Ok(None) };
        let checks = config.check_peer_name;
        let mut known = self.tls.iter();
        if let Some((.., tls)) = known.find(|(known, name, _)| known == files && *name == checks) {
            return Ok(Some(tls.clone()));
        }
        let of = config.clone();
        let tls = open_within(KEY, "keys and certificates", move || tls_of(&of)).await?;
        let tls = tls.map_err(|error| error.to_string())?;
        self.tls.extend(tls.clone().map(|tls| (files.clone(), checks, tls)));
        Ok(tls)
    }

    /// Tries a bridge that is to come.
    async fn prepare_bridge(&mut self, mut config: BridgeConfig) {
        let name = config.name.clone();
        let mut coming = self.coming.iter();
        if self.agents.contains_key(&name) || coming.any(|(new, _)| new.config.name == name) {
            return self.refuse(&name, Item::Bridge, "there is a bridge of this name already");
        }
        let new = config.ports.clone();
        let ports = self.open_all(&mut config, new, HashSet::new()).await;
        let first = ports.iter().find_map(|port| match port {
            ComingPort::Open(port) => first_mac(std::slice::from_ref(port)),
            ComingPort::Later(_) => None,
        });
        let dpid = match self.claim_dpid(&name, config.dpid, first) {
            Ok(dpid) => dpid,
            Err(why) => {
                self.refuse(&name, Item::Bridge, why);
                for port in &config.ports {
                    self.release_device(&port.spec);
                }
                return close_ports(ports).await;
            }
        };
        let tls = self.tls(&config).await.unwrap_or_else(|why| {
            self.refuse(&name, Item::Key("private-key"), why);
            config.tls = None;
            None
        });
        let mut listeners = Vec::new();
        for endpoint in std::mem::take(&mut config.listeners) {
            match self.listen(&endpoint, tls.as_ref()).await {
                Ok(listener) => {
                    listeners.extend(listener.map(|listener| (endpoint.clone(), listener)));
                    config.listeners.push(endpoint);
                }
                Err(error) => self.refuse(&name, Item::Key("listen"), error.to_string()),
            }
        }
        self.coming.push((NewBridge { config, dpid, tls, listeners }, ports));
    }
}

/// Opens a port whose settings its device can have.
async fn open_shaped(
    all: &Bridges,
    by: OpenPort,
    port: PortConfig,
    set: &PortSet,
) -> Result<ComingPort, String> {
    let PortConfig { number, spec } = port;
    let mut port = open_by(by, all.fresh_serial(), number, spec).await?;
    if let Err(why) = shape(set, number, port.info.speed_bps) {
        close(port.take_device()).await;
        return Err(why);
    }
    Ok(ComingPort::Open(Box::new(port)))
}

/// Has ports keep their numbers that cannot move, as those without a device, and those that would
/// get the number of one that stays: the numbers that they wanted, and why.
fn keep_numbers(
    agent: &Agent,
    from: &BridgeConfig,
    change: &mut BridgeDifference,
) -> Vec<(PortNo, String)> {
    let views = agent.bridge.port_views();
    let has_device = |number: PortNo| {
        views.iter().any(|view| view.port.number == number && view.port.info.exists)
    };
    let mut stays: HashSet<PortNo> = from.ports.iter().map(|port| port.number).collect();
    let goes = change.gone.iter().map(|port| port.number);
    for number in goes.chain(change.moved.iter().map(|(now, _)| *now)) {
        stays.remove(&number);
    }
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    let may_move = |(now, port): &(PortNo, PortConfig), stays: &HashSet<PortNo>| {
        has_device(*now) && !stays.contains(&port.number)
    };
    while let Some(at) = change.moved.iter().position(|moved| !may_move(moved, &stays)) {
        let (now, port) = change.moved.remove(at);
        let wanted = port.number;
        let why = match has_device(now) {
            true => format!("port {now} keeps its number: {wanted} is that of a port that stays"),
            false => format!("port {now} has no device now; its number stays"),
        };
        refused.push((wanted, why));
        stays.insert(now);
        change.to.remove_port(wanted);
        kept.push(PortConfig { number: now, ..port });
    }
    for port in kept {
        let set = from.port_set(port.number);
        change.to.add_port(port, set);
    }
    refused
}

/// Whether a port may have this number where `highest` is the highest.
fn may_be(number: PortNo, highest: PortNo) -> bool {
    number == PortNo::LOCAL || number <= highest
}

/// The text that two endpoints have in common which cannot perhaps be listened at at one time: a
/// port of one address and the same port of all addresses are in each other's way.
fn socket_of(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { port, .. }
        | Endpoint::Ssl { port, .. }
        | Endpoint::PassiveTcp { port, .. }
        | Endpoint::PassiveSsl { port, .. } => port.to_string(),
        Endpoint::Unix(path) | Endpoint::PassiveUnix(path) => path.display().to_string(),
    }
}

pub(super) async fn close_ports(ports: impl IntoIterator<Item = ComingPort>) {
    let devices = ports.into_iter().filter_map(|port| match port {
        ComingPort::Open(mut port) => port.take_device(),
        ComingPort::Later(_) => None,
    });
    close(devices.collect::<Vec<_>>()).await;
}
