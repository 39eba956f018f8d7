//! `weir ctl reload` and SIGHUP: the file is read again, and what has changed in it is applied.
//!
//! The file as it was read last is compared with the file as it is now, so that ports which were
//! added by `weir ctl` stay. What may fail is tried first, and where it does nothing has changed.
//! The one exception is a port of which the same device is to be opened in another way: it has to
//! be closed before, and where it cannot be opened any more it is opened as it was.

use std::rc::Rc;

use netdev::PortSpec;
use openflow::PortNo;
use serde_json::json;
use tokio::signal::unix::Signal;

use super::answer::{Record, Records, gone};
use super::bridges::{NewBridge, end};
use super::opening::{CONFIG, open_within};
use super::ports::{Settings, add_port, close, may_change_ports, open, remove_port, set_port};
use crate::agent::{Agent, Bridges};
use crate::config::{BridgeDifference, Difference, FileText, PortConfig};
use crate::worker::WorkerPort;

/// Reloads on every SIGHUP, for ever.
pub(crate) async fn reload_on_hangup(all: Rc<Bridges>, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        match reload(&all).await {
            Ok(records) if records.is_empty() => tracing::info!("SIGHUP: nothing has changed"),
            Ok(records) => {
                for record in records {
                    tracing::info!(change = record.text, "SIGHUP");
                }
            }
            Err(why) => tracing::warn!(why, "SIGHUP: not reloaded"),
        }
    }
}

/// Reloads; a record for each change.
pub(super) async fn reload(all: &Bridges) -> Result<Records, String> {
    let _alone = all.reload().await;
    let (args, before) = all.loaded().ok_or("the switch was started without a file to read")?;
    let file = args.config.clone().ok_or("the switch was started without --config")?;
    // Ports and bridges may change meanwhile.
    let name = file.display().to_string();
    let text = open_within(CONFIG, name, move || FileText::read(file)).await?;
    let text = text.map_err(|error| error.to_string())?;
    let _unchanged = all.change().await;
    let changed = args.changed_since(&before, &text);
    let (mut config, difference) = changed.map_err(|error| error.to_string())?;
    let (mut plans, mut coming) = (Vec::new(), Vec::new());
    let leaving = match prepare(all, difference, &mut plans, &mut coming).await {
        Ok(leaving) => leaving,
        Err(why) => {
            let opened = plans.into_iter().flat_map(|plan| plan.open);
            close(opened.filter_map(|mut port| port.take_device()).collect::<Vec<_>>()).await;
            for bridge in coming {
                bridge.close().await;
            }
            return Err(format!("{why}; nothing was changed"));
        }
    };
    let (mut records, mut failed) = (Vec::new(), Vec::new());
    for agent in leaving {
        let name = agent.config.name.clone();
        end(all, agent).await?;
        records.push(whole_bridge(&name, "removed"));
    }
    // A device that goes may be one that comes elsewhere.
    for plan in &plans {
        for port in &plan.to.gone {
            close(remove_port(&plan.agent, port.number).await?).await;
            records.push(plan.record("port removed", &port.number.to_string()));
        }
    }
    for plan in plans {
        plan.apply(all, &mut records, &mut failed).await?;
    }
    for bridge in coming {
        let agent = bridge.begin(all).await?;
        let name = &agent.config.name;
        records.push(whole_bridge(name, "added"));
    }
    // What is not as the file says is tried again by the next reload.
    for Failed { bridge, number, earlier, .. } in &failed {
        let found = config.bridges.iter_mut().find(|found| found.name == *bridge);
        let Some(ports) = found.map(|found| &mut found.ports) else { continue };
        ports.retain(|port| port.number != *number);
        ports.extend(earlier.clone());
    }
    all.set_loaded(config);
    if failed.is_empty() {
        return Ok(records);
    }
    let why: Vec<String> = failed.into_iter().map(|failed| failed.why).collect();
    Err(why.join("; "))
}

/// Tries all that may fail; the bridges that go.
async fn prepare(
    all: &Bridges,
    difference: Difference,
    plans: &mut Vec<Plan>,
    coming: &mut Vec<NewBridge>,
) -> Result<Vec<Rc<Agent>>, String> {
    let Difference { gone, new, changed } = difference;
    // What `weir ctl del-bridge` has removed is gone already.
    let leaving: Vec<Rc<Agent>> =
        gone.iter().filter_map(|name| all.find(Some(name)).ok()).collect();
    if leaving.len() == all.all().len() {
        return Err("no bridge of those that run would stay".to_owned());
    }
    for to in changed {
        plans.push(Plan::new(all, &to).await?);
    }
    for config in new {
        coming.push(NewBridge::prepare(all, config, &leaving).await?);
    }
    Ok(leaving)
}

/// The record of a bridge that has come or gone.
fn whole_bridge(bridge: &str, change: &str) -> Record {
    Record {
        text: format!("bridge {bridge}: {change}"),
        value: json!({ "bridge": bridge, "change": change }),
    }
}

/// The record of a change of a bridge.
fn of_bridge(bridge: &str, change: &str, what: &str) -> Record {
    Record {
        text: format!("bridge {bridge}: {change}: {what}"),
        value: json!({ "bridge": bridge, "change": change, "what": what }),
    }
}

/// A port that could not be opened in its new way.
struct Failed {
    bridge: String,
    number: PortNo,
    /// The port that it is instead.
    earlier: Option<PortConfig>,
    why: String,
}

/// The changes of one bridge, with the ports that are open for it already.
struct Plan {
    agent: Rc<Agent>,
    to: BridgeDifference,
    open: Vec<WorkerPort>,
    /// Ports whose device is still another one's that goes.
    later: Vec<PortConfig>,
}

impl Plan {
    /// Tries all that may fail.
    async fn new(all: &Bridges, to: &BridgeDifference) -> Result<Self, String> {
        let agent = all.find(Some(&to.to.name))?;
        let mut plan = Self { agent, to: to.clone(), open: Vec::new(), later: Vec::new() };
        if let Err(why) = plan.prepare(all).await {
            let opened = plan.open.iter_mut().filter_map(WorkerPort::take_device);
            close(opened.collect::<Vec<_>>()).await;
            return Err(format!("bridge {}: {why}", to.to.name));
        }
        Ok(plan)
    }

    async fn prepare(&mut self, all: &Bridges) -> Result<(), String> {
        if self.to.has_port_changes() {
            may_change_ports(&self.agent)?;
        }
        for number in &self.to.set {
            let speed_bps = self.agent.bridge.speed_of(*number);
            let speed_bps = speed_bps.ok_or_else(|| format!("port {number} was removed"))?;
            let settings = Settings::in_config(&self.to.to, *number);
            settings.shape(*number, speed_bps)?;
        }
        for PortConfig { number, spec } in self.to.new.clone() {
            let goes = self.to.gone.iter().any(|gone| gone.number == number);
            if !goes && self.agent.bridge.is_taken(number) {
                return Err(format!("port number {number} was given by weir ctl add-port"));
            }
            match self.holder(all, &spec) {
                Holder::Nobody => {
                    let port = open(all.fresh_serial(), number, spec).await?;
                    let (number, speed_bps) = (port.number, port.info.speed_bps);
                    self.open.push(port);
                    Settings::in_config(&self.to.to, number).shape(number, speed_bps)?;
                }
                Holder::Leaves => self.later.push(PortConfig { number, spec }),
                Holder::Stays(port) => {
                    return Err(format!("{spec} is the device of port {port} already"));
                }
            }
        }
        Ok(())
    }

    /// The holder of the device of a port that is to come.
    fn holder(&self, all: &Bridges, spec: &PortSpec) -> Holder {
        let Some(device) = spec.exclusive() else { return Holder::Nobody };
        for agent in all.all() {
            for view in agent.bridge.port_views() {
                if view.port.spec.exclusive().as_ref() != Some(&device) {
                    continue;
                }
                let is_own = Rc::ptr_eq(&agent, &self.agent);
                let number = view.port.number;
                let leaves = is_own && self.to.gone.iter().any(|gone| gone.number == number);
                return if leaves { Holder::Leaves } else { Holder::Stays(number) };
            }
        }
        Holder::Nobody
    }

    fn record(&self, change: &str, what: &str) -> Record {
        of_bridge(&self.to.to.name, change, what)
    }

    async fn apply(
        mut self,
        all: &Bridges,
        records: &mut Records,
        failed: &mut Vec<Failed>,
    ) -> Result<(), String> {
        for port in std::mem::take(&mut self.open) {
            self.add(port, records).await?;
        }
        for PortConfig { number, spec } in std::mem::take(&mut self.later) {
            match open(all.fresh_serial(), number, spec.clone()).await {
                Ok(port) => self.add(port, records).await?,
                Err(why) => failed.push(self.add_again(all, number, &spec, &why).await),
            }
        }
        for number in &self.to.set {
            set_port(&self.agent, *number, &Settings::in_config(&self.to.to, *number))?;
            records.push(self.record("port set", &number.to_string()));
        }
        for endpoint in &self.to.controllers_gone {
            self.agent.forget_controller(endpoint);
            records.push(self.record("controller removed", &endpoint.to_string()));
        }
        for endpoint in &self.to.controllers_new {
            self.agent.add_controller(endpoint.clone());
            records.push(self.record("controller added", &endpoint.to_string()));
        }
        if self.to.has_other_caches {
            let caches = self.to.to.caches;
            let answers = self.agent.bridge.ask(move |shard| shard.set_caches(caches.0)).await;
            answers.ok_or_else(gone)?;
            records.push(self.record("caches", &caches.to_string()));
        }
        Ok(())
    }

    async fn add(&self, port: WorkerPort, records: &mut Records) -> Result<(), String> {
        let (number, spec) = (port.number, port.spec.to_string());
        add_port(&self.agent, port, &Settings::in_config(&self.to.to, number)).await?;
        records.push(self.record("port added", &format!("{number}={spec}")));
        Ok(())
    }

    /// A device could not be opened in its new way: the port that had it comes back.
    async fn add_again(&self, all: &Bridges, number: PortNo, spec: &PortSpec, why: &str) -> Failed {
        let bridge = self.to.to.name.clone();
        let had = |port: &&PortConfig| port.spec.exclusive() == spec.exclusive();
        let mut why = format!("bridge {bridge}: port {number}: {why}");
        let mut earlier = None;
        if let Some(PortConfig { number, spec }) = self.to.gone.iter().find(had) {
            let settings = Settings::in_config(&self.to.to, *number);
            let added = match open(all.fresh_serial(), *number, spec.clone()).await {
                Ok(port) => add_port(&self.agent, port, &settings).await,
                Err(why) => Err(why),
            };
            match added {
                Ok(()) => {
                    why += &format!("; its device is open as before, {number}={spec}");
                    earlier = Some(PortConfig { number: *number, spec: spec.clone() });
                }
                Err(again) => why += &format!("; nor can it be opened as before: {again}"),
            }
        }
        Failed { bridge, number, earlier, why }
    }
}

/// The holder of a device.
enum Holder {
    Nobody,
    /// A port that goes.
    Leaves,
    /// A port that stays.
    Stays(PortNo),
}
