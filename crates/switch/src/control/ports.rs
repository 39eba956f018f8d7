//! `weir ctl ports`, `add-port` and `del-port`: the ports of a running bridge.
//!
//! A port is opened and closed off the agent's thread, so that neither controllers nor packets wait
//! for it. What is refused changes nothing.

use datapath::{PortVlans, QueueRates, check_queues};
use netdev::{Port, PortSpec};
use openflow::PortNo;
use openflow::port::PortConfig;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::answer::{Record, Records, gone, no_tables};
use crate::agent::{Agent, Bridges};
use crate::assemble::shape_port;
use crate::bridge::{PortView, WorkerGone};
use crate::config::{PortArg, QueueArg, RateArg, highest_port};
use crate::worker::{PortSerial, WorkerPort};
use control::PortSettings;

/// One record for each port.
pub(super) fn ports(agent: &Agent) -> Records {
    agent.bridge.port_views().iter().map(record).collect()
}

fn record(PortView { port, place }: &PortView) -> Record {
    let (info, spec) = (&port.info, port.spec.to_string());
    let worker = place.map(|place| place.worker);
    let state = match (info.exists, info.link_up) {
        (false, _) => "no device",
        (true, false) => "link down",
        (true, true) => "up",
    };
    let is_down = port.config.contains(PortConfig::PORT_DOWN);
    let mut text = format!("{}({}): {spec}, {state}", port.number, info.name);
    if is_down {
        text += ", set down";
    }
    if let Some(worker) = worker {
        text += &format!(", worker {worker}");
    }
    text += &format!(", mtu {}, speed {}", info.mtu, speed(info.speed_bps));
    for note in &info.notes {
        text += &format!("\n  {note}");
    }
    let value = json!({
        "port_no": port.number.0,
        "name": info.name,
        "spec": spec,
        "exists": info.exists,
        "link_up": info.link_up,
        "port_down": is_down,
        "worker": worker,
        "mtu": info.mtu,
        "speed_bps": info.speed_bps,
        "notes": info.notes,
    });
    Record { text, value }
}

fn speed(bits: u64) -> String {
    match bits {
        0 => "unknown".to_owned(),
        bits => format!("{} Mb/s", bits / 1_000_000),
    }
}

/// The settings of a port, read.
#[derive(Debug, Default)]
struct Settings {
    rate_bps: Option<u64>,
    queues: Vec<QueueRates>,
    vlans: Option<PortVlans>,
}

impl Settings {
    fn read(given: &PortSettings) -> Result<Self, String> {
        let mut settings = Self::default();
        if let Some(rate) = given.rate.as_deref().filter(|rate| *rate != "none") {
            let rate: RateArg = format!("1={rate}").parse()?;
            settings.rate_bps = Some(rate.rate_bps);
        }
        if given.queues != ["none"] {
            for queue in &given.queues {
                settings.queues.push(format!("1:{queue}").parse::<QueueArg>()?.queue);
            }
        }
        check_queues(1, &settings.queues).map_err(|error| format!("queue: {error}"))?;
        let vlans = given.vlan.as_deref().map(str::parse::<PortVlans>).transpose();
        settings.vlans = vlans.map_err(|error| format!("vlan: {error}"))?;
        Ok(settings)
    }

    fn has_queues(&self) -> bool {
        self.rate_bps.is_some() || !self.queues.is_empty()
    }
}

/// Adds a port; its record.
pub(super) async fn add(
    all: &Bridges,
    agent: &Agent,
    text: &str,
    given: &PortSettings,
) -> Result<Records, String> {
    let PortArg { number, spec } = text.parse()?;
    let settings = Settings::read(given)?;
    let _alone = all.change().await;
    may_replug(agent)?;
    let number = free_number(agent, number)?;
    check_device(all, &spec)?;
    add_port(agent, all.fresh_serial(), number, spec, settings).await?;
    let views = agent.bridge.port_views();
    let added = views.iter().filter(|view| view.port.number == number);
    Ok(added.map(record).collect())
}

async fn add_port(
    agent: &Agent,
    serial: PortSerial,
    number: PortNo,
    spec: PortSpec,
    settings: Settings,
) -> Result<(), String> {
    let name = spec.to_string();
    let opened = spawn_blocking(move || WorkerPort::open(number, serial, spec)).await;
    let opened = opened.map_err(|error| format!("port {name}: its driver failed: {error}"))?;
    let mut port = opened.map_err(|error| error.to_string())?;
    let shaped = settings
        .has_queues()
        .then(|| shape_port(&mut port, settings.rate_bps, &settings.queues))
        .transpose();
    let queues = match shaped {
        Ok(queues) => queues,
        Err(error) => {
            close(port.device).await;
            return Err(error.to_string());
        }
    };
    if let Some(vlans) = settings.vlans {
        agent.bridge.with_control(|control| control.port_vlans(number, vlans));
    }
    for note in &port.info.notes {
        tracing::info!(bridge = agent.log_name(), port = %number, note, "port opened");
    }
    tracing::info!(bridge = agent.log_name(), port = %number, spec = name, "port added");
    let status = agent.bridge.add_port(port, queues).await.map_err(|WorkerGone| gone())?;
    if let Some(status) = status {
        agent.tell_port_status(status);
    }
    agent.send_ops();
    Ok(())
}

/// Removes a port; no record.
pub(super) async fn remove(all: &Bridges, agent: &Agent, port: &str) -> Result<Records, String> {
    let _alone = all.change().await;
    may_replug(agent)?;
    remove_port(agent, meant(agent, port)?).await?;
    Ok(Vec::new())
}

async fn remove_port(agent: &Agent, number: PortNo) -> Result<(), String> {
    let tell = |status| agent.tell_port_status(status);
    let device = agent.bridge.remove_port(number, tell).await.map_err(|WorkerGone| gone())?;
    agent.bridge.with_control(|control| control.port_vlans(number, PortVlans::default()));
    agent.send_ops();
    close(device).await;
    tracing::info!(bridge = agent.log_name(), port = %number, "port removed");
    Ok(())
}

async fn close(device: Option<Port>) {
    if let Err(error) = spawn_blocking(move || drop(device)).await {
        tracing::error!(%error, "closing a device has failed");
    }
}

/// Ports in pairs cannot come and go alone.
fn may_replug(agent: &Agent) -> Result<(), String> {
    agent.bridge.with_control(|_| ()).ok_or_else(|| {
        format!("{}, and its ports stand in pairs; they cannot come and go", no_tables())
    })
}

/// The number of a new port: what was asked for, or else the lowest that is free.
fn free_number(agent: &Agent, wanted: Option<PortNo>) -> Result<PortNo, String> {
    let highest = highest_port(&agent.config.versions);
    let number = match wanted {
        Some(number) if agent.bridge.is_taken(number) => {
            return Err(format!("port number {number} is taken"));
        }
        Some(number) => number,
        None => (1..=highest.0)
            .map(PortNo)
            .find(|free| !agent.bridge.is_taken(*free))
            .ok_or_else(|| format!("all port numbers up to {} are taken", highest.0))?,
    };
    if number > highest {
        return Err(format!(
            "port number {number} is above {}, the highest that OpenFlow10 can say",
            highest.0
        ));
    }
    Ok(number)
}

/// Refuses a device that another port has.
fn check_device(all: &Bridges, spec: &PortSpec) -> Result<(), String> {
    let Some(device) = spec.exclusive() else { return Ok(()) };
    for agent in all.iter() {
        let views = agent.bridge.port_views();
        let holder = views.iter().find(|view| view.port.spec.exclusive().as_ref() == Some(&device));
        if let Some(view) = holder {
            return Err(format!(
                "{device} is the device of port {} of bridge {} already; a device is one port",
                view.port.number, agent.config.name
            ));
        }
    }
    Ok(())
}

/// The port of this number or name.
fn meant(agent: &Agent, text: &str) -> Result<PortNo, String> {
    let views = agent.bridge.port_views();
    let number = match text {
        "LOCAL" => Some(PortNo::LOCAL),
        text => text.parse().ok().map(PortNo),
    };
    let by_number = views.iter().find(|view| Some(view.port.number) == number);
    let mut by_name = views.iter().filter(|view| view.port.info.name == text);
    let found = by_number.or_else(|| by_name.next());
    if by_number.is_none() && by_name.next().is_some() {
        return Err(format!("several ports are called {text:?}; give a number"));
    }
    found.map(|view| view.port.number).ok_or_else(|| {
        let known: Vec<String> = views
            .iter()
            .take(16)
            .map(|view| format!("{}({})", view.port.number, view.port.info.name))
            .collect();
        format!("bridge {} has no port {text:?}; it has: {}", agent.config.name, known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{PortSettings, Settings};

    fn given(rate: &str, queues: &[&str], vlan: Option<&str>) -> PortSettings {
        PortSettings {
            rate: (!rate.is_empty()).then(|| rate.to_owned()),
            queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
            vlan: vlan.map(str::to_owned),
        }
    }

    #[test]
    fn settings_are_read_or_refused() {
        let read = Settings::read(&given("5M", &["1,min=5%", "2"], Some("access:7"))).unwrap();
        assert_eq!((read.rate_bps, read.queues.len()), (Some(5_000_000), 2));
        assert!(read.has_queues() && read.vlans.is_some());
        assert!(!Settings::read(&given("none", &["none"], None)).unwrap().has_queues());
        for bad in [
            given("fast", &[], None),
            given("1=5M", &[], None),
            given("", &["x"], None),
            given("", &["1", "1"], None),
            given("", &["1,min=60%", "2,min=60%"], None),
            given("", &["1", "none"], None),
            given("", &[], Some("access:9999")),
        ] {
            assert!(Settings::read(&bad).is_err(), "{bad:?}");
        }
    }
}
