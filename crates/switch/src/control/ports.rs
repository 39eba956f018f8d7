//! `weir ctl ports`, `add-port`, `set-port` and `del-port`: the ports of a running bridge.
//!
//! A port is opened and closed off the agent's thread, so that neither controllers nor packets wait
//! for it. What is refused changes nothing.

use datapath::{PortVlans, QueueRates, check_queues};
use netdev::{Port, PortSpec};
use openflow::PortNo;
use openflow::port::PortConfig;
use openflow::text::parse_decimal;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::answer::{Record, Records, gone, no_tables};
use super::opening::{DEVICE, open_within};
use crate::agent::{Agent, Bridges};
use crate::assemble::queues_of;
use crate::bridge::{BridgeQueues, PortView, WorkerGone};
use crate::config::{BridgeConfig, PortArg, QueueArg, RateArg, highest_port, with_queues};
use crate::worker::{PortSerial, Shaper, WorkerPort};
use control::PortSettings;

/// One record for each port.
pub(super) fn ports(agent: &Agent) -> Records {
    agent.bridge.port_views().iter().map(record).collect()
}

fn record(PortView { port, places }: &PortView) -> Record {
    let (info, spec) = (&port.info, port.spec.to_string());
    let workers: Vec<usize> = places.iter().map(|place| place.worker).collect();
    let state = match (info.exists, info.link_up) {
        (false, _) => "no device",
        (true, false) => "link down",
        (true, true) => "up",
    };
    let is_down = port.config.contains(PortConfig::PORT_DOWN);
    let mut text = format!("{}({}): {spec}, {state}", port.number, info.name);
    if is_down {
        text += match port.owns_link {
            true => ", set down with its device",
            false => ", set down (the device is not the switch's own, and its link stays as it is)",
        };
    }
    match workers.as_slice() {
        [] => {}
        [worker] => text += &format!(", worker {worker}"),
        several => {
            let all: Vec<String> = several.iter().map(ToString::to_string).collect();
            text += &format!(", {} queues on workers {}", several.len(), all.join(", "));
        }
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
        "owns_link": port.owns_link,
        "worker": workers.first(),
        "queue_workers": workers,
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

/// The settings of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) rate_bps: Option<u64>,
    pub(super) queues: Vec<QueueRates>,
    pub(super) vlans: PortVlans,
}

impl Settings {
    /// These settings with what is given in their place.
    fn with(mut self, given: &PortSettings) -> Result<Self, String> {
        match given.rate.as_deref() {
            None => {}
            Some("none") => self.rate_bps = None,
            Some(rate) => self.rate_bps = Some(format!("1={rate}").parse::<RateArg>()?.rate_bps),
        }
        if !given.queues.is_empty() {
            self.queues.clear();
        }
        for queue in given.queues.iter().filter(|_| given.queues != ["none"]) {
            self.queues.push(format!("1:{queue}").parse::<QueueArg>()?.queue);
        }
        check_queues(1, &self.queues).map_err(|error| format!("queue: {error}"))?;
        if let Some(vlans) = &given.vlan {
            self.vlans = vlans.parse().map_err(|error| format!("vlan: {error}"))?;
        }
        Ok(self)
    }

    /// Those of a port in a configuration.
    pub(super) fn in_config(config: &BridgeConfig, number: PortNo) -> Self {
        let (rate_bps, queues) = config.shape_of(number);
        Self { rate_bps, queues, vlans: config.vlans_of(number) }
    }

    /// Those that a port has.
    fn of(agent: &Agent, number: PortNo) -> Self {
        let (rate_bps, queues) = agent.bridge.shape_of(number);
        let vlans = agent.bridge.with_control(|control| control.vlans_of(number));
        Self { rate_bps, queues, vlans: vlans.unwrap_or_default() }
    }

    /// The queues of a port with these settings, where it has any.
    pub(super) fn shape(
        &self,
        number: PortNo,
        speed_bps: u64,
    ) -> Result<Option<(Shaper, BridgeQueues)>, String> {
        let has_queues = self.rate_bps.is_some() || !self.queues.is_empty();
        has_queues
            .then(|| queues_of(number, speed_bps, self.rate_bps, &self.queues))
            .transpose()
            .map_err(|error| error.to_string())
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
    let settings = Settings::default().with(given)?;
    let _alone = all.change().await;
    may_change_ports(agent)?;
    let number = free_number(agent, number)?;
    let spec = with_queues(spec, agent.config.device_queues);
    check_device(all, &spec)?;
    let port = open(all.fresh_serial(), number, spec).await?;
    add_port(agent, port, &settings).await?;
    Ok(records_of(agent, number))
}

fn records_of(agent: &Agent, number: PortNo) -> Records {
    let views = agent.bridge.port_views();
    views.iter().filter(|view| view.port.number == number).map(record).collect()
}

/// Opens a port off the agent's thread.
pub(super) async fn open(
    serial: PortSerial,
    number: PortNo,
    spec: PortSpec,
) -> Result<WorkerPort, String> {
    let name = spec.to_string();
    let open = move || WorkerPort::open(number, serial, spec);
    let opened = open_within(DEVICE, format_args!("port {name}"), open).await?;
    opened.map_err(|error| error.to_string())
}

/// Adds an open port, which is closed where that cannot be.
pub(super) async fn add_port(
    agent: &Agent,
    mut port: WorkerPort,
    settings: &Settings,
) -> Result<(), String> {
    let number = port.number;
    let queues = match settings.shape(number, port.info.speed_bps) {
        Ok(queues) => queues,
        Err(error) => {
            close(port.take_device()).await;
            return Err(error);
        }
    };
    let (shaper, queues) = queues.unzip();
    port.shaper = shaper;
    agent.bridge.with_control(|control| control.port_vlans(number, settings.vlans.clone()));
    for note in &port.info.notes {
        tracing::info!(bridge = agent.log_name(), port = %number, note, "port opened");
    }
    tracing::info!(bridge = agent.log_name(), port = %number, spec = %port.spec, "port added");
    let status = agent.bridge.add_port(port, queues).await.map_err(|WorkerGone| gone())?;
    if let Some(status) = status {
        agent.publish_port_status(status);
    }
    agent.send_ops();
    Ok(())
}

/// Removes a port; no record.
pub(super) async fn remove(all: &Bridges, agent: &Agent, port: &str) -> Result<Records, String> {
    let _alone = all.change().await;
    may_change_ports(agent)?;
    let device = remove_port(agent, port_named(agent, port)?).await?;
    close(device).await;
    Ok(Vec::new())
}

/// Changes settings of a port, and its number; its record.
pub(super) async fn set(
    all: &Bridges,
    agent: &Agent,
    port: &str,
    number: Option<u32>,
    given: &PortSettings,
) -> Result<Records, String> {
    let _alone = all.change().await;
    may_change_ports(agent)?;
    if number.is_none() && *given == PortSettings::default() {
        return Err("there is nothing to set: give a rate, queues, VLANs or a number".to_owned());
    }
    let now = port_named(agent, port)?;
    let settings = Settings::of(agent, now).with(given)?;
    let number = match number.map(PortNo).filter(|number| *number != now) {
        None => now,
        Some(number) if number.0 == 0 || number > PortNo::MAX => {
            return Err(format!("port number {number} must be 1 to {}", PortNo::MAX.0));
        }
        Some(number) => free_number(agent, Some(number))?,
    };
    if number == now {
        set_port(agent, now, &settings)?;
    } else {
        renumber(all, agent, now, number, &settings).await?;
    }
    Ok(records_of(agent, number))
}

/// Whether a port has the same rate and queues under these settings.
fn is_reshaped(agent: &Agent, number: PortNo, settings: &Settings) -> bool {
    let before = Settings::of(agent, number);
    (before.rate_bps, &before.queues) != (settings.rate_bps, &settings.queues)
}

/// Gives a port these settings.
pub(super) fn set_port(agent: &Agent, number: PortNo, settings: &Settings) -> Result<(), String> {
    if is_reshaped(agent, number, settings) {
        let views = agent.bridge.port_views();
        let view = views.iter().find(|view| view.port.number == number);
        let speed_bps = view.map_or(0, |view| view.port.info.speed_bps);
        agent.bridge.reshape(number, settings.shape(number, speed_bps)?);
    }
    agent.bridge.with_control(|control| control.port_vlans(number, settings.vlans.clone()));
    agent.send_ops();
    Ok(())
}

/// Moves the device of a port to another number: to controllers, one port goes and another comes.
async fn renumber(
    all: &Bridges,
    agent: &Agent,
    now: PortNo,
    number: PortNo,
    settings: &Settings,
) -> Result<(), String> {
    let views = agent.bridge.port_views();
    let view = views.iter().find(|view| view.port.number == now);
    let view = view.filter(|view| view.port.info.exists);
    let view = view.ok_or_else(|| format!("port {now} has no device now; its number stays"))?;
    settings.shape(number, view.port.info.speed_bps)?;
    let device = remove_port(agent, now).await?;
    // A queue may have gone with the device meanwhile.
    let is_whole = |device: &Port| 1 + device.more.len() == view.places.len();
    let Some(device) = device.filter(is_whole) else {
        return Err(format!("port {now} lost its device just now, and is removed; add it anew"));
    };
    let (serial, spec) = (all.fresh_serial(), view.port.spec.clone());
    add_port(agent, WorkerPort::of_device(number, serial, device, spec), settings).await
}

/// Removes a port; its device is to be closed, or used again.
pub(super) async fn remove_port(agent: &Agent, number: PortNo) -> Result<Option<Port>, String> {
    let publish = |status| agent.publish_port_status(status);
    let device = agent.bridge.remove_port(number, publish).await.map_err(|WorkerGone| gone())?;
    agent.bridge.with_control(|control| control.port_vlans(number, PortVlans::default()));
    agent.send_ops();
    tracing::info!(bridge = agent.log_name(), port = %number, "port removed");
    Ok(device)
}

/// Closes a device off the agent's thread.
pub(super) async fn close(devices: impl IntoIterator<Item = Port> + Send + 'static) {
    if let Err(error) = spawn_blocking(move || drop(devices)).await {
        tracing::error!(%error, "closing a device has failed");
    }
}

/// Ports in pairs cannot come and go alone.
pub(super) fn may_change_ports(agent: &Agent) -> Result<(), String> {
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
pub(super) fn check_device(all: &Bridges, spec: &PortSpec) -> Result<(), String> {
    let Some(device) = spec.exclusive() else { return Ok(()) };
    for agent in all.all() {
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
fn port_named(agent: &Agent, text: &str) -> Result<PortNo, String> {
    let views = agent.bridge.port_views();
    let number = match text {
        "LOCAL" => Some(PortNo::LOCAL),
        text => parse_decimal(text).map(PortNo),
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
        let fresh = Settings::default;
        let read = fresh().with(&given("5M", &["1,min=5%", "2"], Some("access:7"))).unwrap();
        assert_eq!((read.rate_bps, read.queues.len()), (Some(5_000_000), 2));
        assert!(read.vlans != fresh().vlans);
        assert_eq!(read.clone().with(&given("", &[], None)).unwrap(), read, "what is absent stays");
        let other = read.clone().with(&given("6M", &["3"], None)).unwrap();
        assert_eq!((other.rate_bps, other.queues.len()), (Some(6_000_000), 1));
        assert_eq!(other.vlans, read.vlans);
        assert_eq!(read.with(&given("none", &["none"], Some("trunk"))).unwrap(), fresh());
        for bad in [
            given("fast", &[], None),
            given("1=5M", &[], None),
            given("", &["x"], None),
            given("", &["1", "1"], None),
            given("", &["1,min=60%", "2,min=60%"], None),
            given("", &["1", "none"], None),
            given("", &[], Some("access:9999")),
        ] {
            assert!(fresh().with(&bad).is_err(), "{bad:?}");
        }
    }
}
