//! `weir ctl ports`, `add-port`, `set-port` and `del-port`: the ports of a running bridge.
//!
//! A refused word changes nothing.

use datapath::check_queues;
use openflow::PortNo;
use openflow::port::PortConfig as PortFlags;
use openflow::text::parse_decimal;
use serde_json::json;

use super::answer::{Record, Records};
use super::edit::{check_number, edit_bridge};
use crate::agent::{Agent, Bridges};
use crate::bridge::PortView;
use crate::config::{BridgeConfig, PortArg, PortConfig, PortSet, QueueArg, RateArg, with_queues};
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
    let is_down = port.config.contains(PortFlags::PORT_DOWN);
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

/// These settings with what is given in their place.
fn with(mut set: PortSet, given: &PortSettings) -> Result<PortSet, String> {
    match given.rate.as_deref() {
        None => {}
        Some("none") => set.rate_bps = None,
        Some(rate) => set.rate_bps = Some(format!("1={rate}").parse::<RateArg>()?.rate_bps),
    }
    if !given.queues.is_empty() {
        set.queues.clear();
    }
    for queue in given.queues.iter().filter(|_| given.queues != ["none"]) {
        set.queues.push(format!("1:{queue}").parse::<QueueArg>()?.queue);
    }
    check_queues(1, &set.queues).map_err(|error| format!("queue: {error}"))?;
    if let Some(vlans) = &given.vlan {
        set.vlans = vlans.parse().map_err(|error| format!("vlan: {error}"))?;
    }
    Ok(set)
}

/// Adds a port; its record.
pub(super) async fn add(
    all: &Bridges,
    agent: &Agent,
    text: &str,
    given: &PortSettings,
) -> Result<Records, String> {
    let PortArg { number, spec } = text.parse()?;
    let set = with(PortSet::default(), given)?;
    let mut added = None;
    let add = |bridge: &mut BridgeConfig| {
        let number = bridge.free_number(number)?;
        added = Some(number);
        let spec = with_queues(spec, bridge.device_queues);
        bridge.add_port(PortConfig { number, spec }, set);
        Ok(())
    };
    edit_bridge(all, &agent.name, add).await?;
    Ok(added.map(|number| records_of(agent, number)).unwrap_or_default())
}

fn records_of(agent: &Agent, number: PortNo) -> Records {
    let views = agent.bridge.port_views();
    views.iter().filter(|view| view.port.number == number).map(record).collect()
}

/// Removes a port; no record.
pub(super) async fn remove(all: &Bridges, agent: &Agent, port: &str) -> Result<Records, String> {
    let remove = |bridge: &mut BridgeConfig| {
        bridge.remove_port(port_named(agent, port)?);
        Ok(())
    };
    edit_bridge(all, &agent.name, remove).await?;
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
    if number.is_none() && *given == PortSettings::default() {
        return Err("there is nothing to set: give a rate, queues, VLANs or a number".to_owned());
    }
    let mut number = number.map(PortNo);
    let change = |bridge: &mut BridgeConfig| {
        let now = port_named(agent, port)?;
        let set = with(bridge.port_set(now), given)?;
        let to = match number.filter(|number| *number != now) {
            None => now,
            Some(number) => bridge.free_number(Some(check_number(number)?))?,
        };
        number = Some(to);
        match bridge.remove_port(now) {
            Some(port) => bridge.add_port(PortConfig { number: to, ..port }, set),
            None => return Err(format!("port {now} is gone")),
        }
        Ok(())
    };
    edit_bridge(all, &agent.name, change).await?;
    Ok(number.map(|number| records_of(agent, number)).unwrap_or_default())
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
        format!("bridge {} has no port {text:?}; it has: {}", agent.name, known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{PortSet, PortSettings, with};

    fn given(rate: &str, queues: &[&str], vlan: Option<&str>) -> PortSettings {
        PortSettings {
            rate: (!rate.is_empty()).then(|| rate.to_owned()),
            queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
            vlan: vlan.map(str::to_owned),
        }
    }

    #[test]
    fn settings_are_read_or_refused() {
        let fresh = PortSet::default;
        let read = with(fresh(), &given("5M", &["1,min=5%", "2"], Some("access:7"))).unwrap();
        assert_eq!((read.rate_bps, read.queues.len()), (Some(5_000_000), 2));
        assert!(read.vlans != fresh().vlans);
        let same = with(read.clone(), &given("", &[], None)).unwrap();
        assert_eq!(same, read, "what is absent stays");
        let other = with(read.clone(), &given("6M", &["3"], None)).unwrap();
        assert_eq!((other.rate_bps, other.queues.len()), (Some(6_000_000), 1));
        assert_eq!(other.vlans, read.vlans);
        assert_eq!(with(read, &given("none", &["none"], Some("trunk"))).unwrap(), fresh());
        for bad in [
            given("fast", &[], None),
            given("1=5M", &[], None),
            given("", &["x"], None),
            given("", &["1", "1"], None),
            given("", &["1,min=60%", "2,min=60%"], None),
            given("", &["1", "none"], None),
            given("", &[], Some("access:9999")),
        ] {
            assert!(with(fresh(), &bad).is_err(), "{bad:?}");
        }
    }
}
