//! Applying a plan, what goes before what comes.
//!
//! Almost all that could fail was tried; the rest that fails is reported, and is as it was where
//! that can be.

use std::rc::Rc;

use channel::{Endpoint, Listener};
use futures_util::stream::{self, StreamExt};
use netdev::Port;

use super::bridges::{AT_ONCE, NewBridge, begin, end};
use super::plan::{BridgePlan, ComingPort, Plan, close_ports};
use super::ports::{add_port, close, open, remove_port, set_port};
use super::{Change, Item, Reconciled, Refused, TablesRule, gone};
use crate::agent::{Agent, Bridges, flush_tables};
use crate::bridge::Identity;
use crate::config::{BridgeConfig, PortConfig, PortSet, Setting};
use crate::serve::serve_controllers;
use crate::worker::WorkerPort;

impl Plan<'_> {
    /// Applies everything, what goes before what comes.
    pub(super) async fn apply(self) -> Reconciled {
        let Self { all, manner, leaving, mut changed, coming, refused, .. } = self;
        let mut outcome = Reconciled { changes: Vec::new(), refused };
        let ended = end(all, &leaving).await;
        for agent in &leaving {
            match &ended {
                Ok(()) => outcome.changed(&agent.name, "removed", None),
                Err(why) => outcome.refuse(&agent.name, Item::Bridge, why),
            }
        }
        for bridge in &mut changed {
            bridge.remove(&mut outcome).await;
        }
        let (mut left, mut unopened) = (Vec::new(), Vec::new());
        for mut bridge in changed {
            left.extend(bridge.left_ports());
            unopened.extend(bridge.apply(all, manner.tables, &mut outcome).await);
        }
        let mut ready = Vec::new();
        for (mut new, ports) in coming {
            // One by one: few devices may be opened at one time.
            let ports = open_later(all, &mut new.config, ports, &mut unopened).await;
            ready.push((new, ports));
        }
        // Most of the time is that of asking the workers.
        let begin = |(new, ports)| begin_bridge(all, new, ports);
        let mut begun = stream::iter(ready).map(begin).buffered(AT_ONCE);
        while let Some((bridge, made)) = begun.next().await {
            if let Some((agent, listeners)) = bridge {
                all.add(Rc::clone(&agent));
                serve_controllers(&agent, listeners);
            }
            outcome.changes.extend(made.changes);
            outcome.refused.extend(made.refused);
        }
        for port in unopened {
            port.give_back(all, &mut left, &mut outcome).await;
        }
        outcome
    }
}

/// A port that gave its device up.
struct LeftPort {
    agent: Rc<Agent>,
    port: PortConfig,
    set: PortSet,
}

/// A port whose device could not be opened.
struct UnopenedPort {
    bridge: String,
    port: PortConfig,
    why: String,
}

impl UnopenedPort {
    /// Has the device come back to the port that had it, perhaps of another bridge, and reports.
    async fn give_back(self, all: &Bridges, left: &mut Vec<LeftPort>, outcome: &mut Reconciled) {
        let Self { bridge, port, mut why } = self;
        let device = port.spec.exclusive();
        let had = |left: &LeftPort| device.is_some() && left.port.spec.exclusive() == device;
        if let Some(at) = left.iter().position(had) {
            let left = left.swap_remove(at);
            let place = match left.agent.name == bridge {
                true => left.port.to_string(),
                false => format!("{} of bridge {}", left.port, left.agent.name),
            };
            why += &match left.come_back(all).await {
                Ok(()) => format!("; its device is open as before, {place}"),
                Err(again) => format!("; nor can it be opened as before, {place}: {again}"),
            };
        }
        outcome.refuse(&bridge, Item::Port(port.number), &why);
    }
}

impl LeftPort {
    async fn come_back(self, all: &Bridges) -> Result<(), String> {
        let Self { agent, port, set } = self;
        let PortConfig { number, spec } = port.clone();
        let mut config = BridgeConfig::clone(&agent.config());
        if config.ports.iter().any(|other| other.number == number) {
            return Err("its number is another port's".to_owned());
        }
        add_port(&agent, open(all.fresh_serial(), number, spec).await?, &set).await?;
        config.add_port(port, set);
        agent.set_config(config);
        Ok(())
    }
}

impl Reconciled {
    fn changed(&mut self, bridge: &str, change: &'static str, what: Option<String>) {
        self.changes.push(Change { bridge: bridge.to_owned(), change, what });
    }

    fn refuse(&mut self, bridge: &str, item: Item, why: &str) {
        self.refused.push(Refused::of(bridge, item, why));
    }
}

/// Opens the ports of a new bridge whose devices others had until now.
async fn open_later(
    all: &Bridges,
    config: &mut BridgeConfig,
    ports: Vec<ComingPort>,
    unopened: &mut Vec<UnopenedPort>,
) -> Vec<ComingPort> {
    let mut open_ports = Vec::new();
    for coming in ports {
        let port = coming.config();
        match coming.open(all).await {
            Ok(port) => open_ports.push(ComingPort::Open(Box::new(port))),
            Err(why) => {
                config.remove_port(port.number);
                unopened.push(UnopenedPort { bridge: config.name.clone(), port, why });
            }
        }
    }
    open_ports
}

/// A bridge that has come, with its listeners.
type BegunBridge = (Rc<Agent>, Vec<(Endpoint, Listener)>);

/// Makes a bridge with its ports, which controllers do not see yet; and the parts that are refused.
async fn begin_bridge(
    all: &Bridges,
    mut new: NewBridge,
    ports: Vec<ComingPort>,
) -> (Option<BegunBridge>, Reconciled) {
    let mut outcome = Reconciled::default();
    let name = new.config.name.clone();
    let agent = match begin(all, &mut new).await {
        Ok(agent) => agent,
        Err(why) => {
            outcome.refuse(&name, Item::Bridge, &why);
            close_ports(ports).await;
            return (None, outcome);
        }
    };
    let NewBridge { mut config, mut listeners, .. } = new;
    for port in patches_last(ports) {
        let number = port.number();
        if let Err(why) = add(all, &agent, port, &config).await {
            outcome.refuse(&name, Item::Port(number), &why);
            config.remove_port(number);
        }
    }
    let is_bound = |wanted: &Endpoint, bound: &[(Endpoint, Listener)]| {
        bound.iter().any(|(endpoint, _)| endpoint == wanted)
    };
    for endpoint in std::mem::take(&mut config.listeners) {
        if is_bound(&endpoint, &listeners) {
            config.listeners.push(endpoint);
            continue;
        }
        match Listener::bind(&endpoint, agent.tls().as_ref()).await {
            Ok(listener) => {
                listeners.push((endpoint.clone(), listener));
                config.listeners.push(endpoint);
            }
            Err(error) => outcome.refuse(&name, Item::Key("listen"), &error.to_string()),
        }
    }
    agent.set_config(config);
    outcome.changed(&name, "added", None);
    (Some((agent, listeners)), outcome)
}

/// The same ports, of which those that enter the kernel tier beside devices only come last.
fn patches_last(mut ports: Vec<ComingPort>) -> Vec<ComingPort> {
    ports.sort_by_key(|port| port.config().spec.kind().word == "patch");
    ports
}

/// Adds a port to a bridge of this configuration, and opens it where it is not open yet.
async fn add(
    all: &Bridges,
    agent: &Agent,
    port: ComingPort,
    config: &BridgeConfig,
) -> Result<(), String> {
    let port = port.open(all).await?;
    let set = config.port_set(port.number);
    add_port(agent, port, &set).await
}

impl BridgePlan {
    /// Has listeners and ports go.
    async fn remove(&mut self, outcome: &mut Reconciled) {
        let Self { agent, change, .. } = self;
        for endpoint in &change.listeners_gone {
            agent.forget_listener(endpoint).await;
            if !change.to.listeners.contains(endpoint) {
                outcome.changed(&agent.name, "listener removed", Some(endpoint.to_string()));
            }
        }
        let mut closing = Vec::new();
        for port in &change.gone {
            let number = port.number;
            match remove_port(agent, number).await {
                Ok(device) => closing.extend(device),
                Err(why) => outcome.refuse(&agent.name, Item::Port(number), &why),
            }
            outcome.changed(&agent.name, "port removed", Some(number.to_string()));
        }
        close(closing).await;
        for (now, port) in std::mem::take(&mut change.moved) {
            let views = agent.bridge.port_views();
            let view = views.iter().find(|view| view.port.number == now);
            let queues = view.map_or(0, |view| view.places.len());
            let device = remove_port(agent, now).await;
            outcome.changed(&agent.name, "port removed", Some(now.to_string()));
            // A queue may have gone with the device meanwhile.
            let is_whole = |device: &Port| 1 + device.more.len() == queues;
            if let Some(device) = device.ok().flatten().filter(is_whole) {
                self.devices.push((port, device));
                continue;
            }
            let why = format!("port {now} lost its device just now, and is removed; add it anew");
            outcome.refuse(&agent.name, Item::Port(port.number), &why);
            change.to.remove_port(port.number);
        }
    }

    /// The ports that gave their devices up.
    fn left_ports(&mut self) -> Vec<LeftPort> {
        let left = |port: PortConfig| {
            let set = self.from.port_set(port.number);
            LeftPort { agent: Rc::clone(&self.agent), port, set }
        };
        std::mem::take(&mut self.change.gone).into_iter().map(left).collect()
    }

    /// Applies the rest; the ports that could not be opened.
    async fn apply(
        mut self,
        all: &Bridges,
        rule: TablesRule,
        outcome: &mut Reconciled,
    ) -> Vec<UnopenedPort> {
        if let Some(tls) = self.tls.take() {
            self.agent.set_tls(tls);
        }
        let unopened = self.add_ports(all, outcome).await;
        let name = self.agent.name.clone();
        for number in std::mem::take(&mut self.change.set) {
            let (before, set) = (self.from.port_set(number), self.change.to.port_set(number));
            match set_port(&self.agent, number, &before, &set) {
                Ok(()) => outcome.changed(&name, "port set", Some(number.to_string())),
                Err(why) => {
                    outcome.refuse(&name, Item::Port(number), &why);
                    self.change.to.set_port(number, before);
                }
            }
        }
        self.add_listeners(outcome).await;
        self.apply_settings(outcome).await;
        self.agent.set_config(self.change.to.clone());
        self.apply_controllers(rule, outcome).await;
        unopened
    }

    async fn add_ports(&mut self, all: &Bridges, outcome: &mut Reconciled) -> Vec<UnopenedPort> {
        let name = self.agent.name.clone();
        for (port, device) in std::mem::take(&mut self.devices) {
            let what = port.to_string();
            let PortConfig { number, spec } = port;
            let port = WorkerPort::of_device(number, all.fresh_serial(), device, spec);
            match add_port(&self.agent, port, &self.change.to.port_set(number)).await {
                Ok(()) => outcome.changed(&name, "port added", Some(what)),
                Err(why) => {
                    outcome.refuse(&name, Item::Port(number), &why);
                    self.change.to.remove_port(number);
                }
            }
        }
        let mut unopened = Vec::new();
        for coming in patches_last(std::mem::take(&mut self.ports)) {
            let port = coming.config();
            match add(all, &self.agent, coming, &self.change.to).await {
                Ok(()) => outcome.changed(&name, "port added", Some(port.to_string())),
                Err(why) => {
                    self.change.to.remove_port(port.number);
                    unopened.push(UnopenedPort { bridge: name.clone(), port, why });
                }
            }
        }
        unopened
    }

    async fn add_listeners(&mut self, outcome: &mut Reconciled) {
        let (agent, name) = (&self.agent, &self.agent.name);
        let mut bound = std::mem::take(&mut self.listeners);
        for endpoint in std::mem::take(&mut self.listeners_later) {
            match Listener::bind(&endpoint, agent.tls().as_ref()).await {
                Ok(listener) => bound.push((endpoint, listener)),
                Err(error) => {
                    outcome.refuse(name, Item::Key("listen"), &error.to_string());
                    self.change.to.listeners.retain(|other| *other != endpoint);
                }
            }
        }
        for (wanted, listener) in bound {
            if !self.from.listeners.contains(&wanted) {
                outcome.changed(name, "listener added", Some(wanted.to_string()));
            }
            agent.add_listener(wanted, listener);
        }
    }

    async fn apply_settings(&mut self, outcome: &mut Reconciled) {
        let Self { agent, change, dpid, .. } = self;
        let to = &mut change.to;
        let dpid = dpid.unwrap_or_else(|| agent.bridge.dpid());
        agent.bridge.set_identity(Identity { dpid, desc: to.desc.clone() });
        let now = agent.bridge.clock.now();
        agent.bridge.with_control(|control| {
            control.set_max_entries(to.max_entries);
            control.set_flow_tables(to.flow_tables.clone(), now);
            control.set_address_age(to.mac_age_s);
            control.set_mirrors(to.mirrors.clone());
        });
        agent.send_ops();
        for (key, setting) in &change.settings {
            let mut what = (*key).to_owned();
            if *setting == Setting::Caches {
                let caches = to.caches;
                let asked = agent.bridge.ask(move |shard| shard.set_caches(caches.0)).await;
                if asked.is_none() {
                    outcome.refuse(&agent.name, Item::Key(key), &gone());
                    continue;
                }
                what = format!("{key} {caches}");
            }
            outcome.changed(&agent.name, "set", Some(what));
        }
    }

    /// Controllers go and come, and connections begin anew where a setting asks for that.
    async fn apply_controllers(&self, rule: TablesRule, outcome: &mut Reconciled) {
        let Self { agent, from, change, .. } = self;
        for endpoint in &change.controllers_gone {
            agent.forget_controller(endpoint);
            outcome.changed(&agent.name, "controller removed", Some(endpoint.to_string()));
        }
        let has_none = change.to.controllers.is_empty();
        let is_other_mode = has_none && change.has(Setting::FailMode);
        if rule == TablesRule::Flushed && (from.controllers.is_empty() != has_none || is_other_mode)
        {
            flush_tables(agent, has_none).await;
        }
        let restarts_all = change.has(Setting::Dpid) || change.has(Setting::Versions);
        if restarts_all {
            agent.restart_connections();
        } else {
            agent.restart_controllers(|endpoint| {
                change.has(Setting::Auxiliary)
                    || (change.has(Setting::Tls) && endpoint.is_tls())
                    || (change.has(Setting::Backoff) && !agent.is_connected(endpoint))
            });
        }
        for endpoint in &change.controllers_new {
            agent.add_controller(endpoint.clone());
            outcome.changed(&agent.name, "controller added", Some(endpoint.to_string()));
        }
    }
}
