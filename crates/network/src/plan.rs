//! Meaning of a description: numbers of ports, addresses, names of devices, and contradictions.
//!
//! A plan knows no kernel. Every name in it is safe as a part of a path and of a device's name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use openflow::text::{parse_decimal, zero_advice};
use openflow::{DatapathId, MacAddr, Version};
use serde::{Deserialize, Serialize};

use crate::description::{GivenDpid, HostDescription, NetworkDescription, SwitchDescription};
use crate::error::Error;

/// Most switches, and most hosts.
const NODES_MAX: usize = 1_000;
/// Highest number of a port; with a switch's name it makes a device's name of 15 bytes.
const PORT_MAX: u16 = 9_999;
/// Longest name.
const NAME_MAX: usize = 10;
/// The device of a host.
pub(crate) const HOST_DEVICE: &str = "eth0";

/// A network, checked and complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPlan {
    /// Switches, in the order of the description.
    pub switches: Vec<SwitchPlan>,
    /// Hosts, in the order of the description.
    pub hosts: Vec<HostPlan>,
    /// Links, in the order of the description.
    pub links: Vec<LinkPlan>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPlan {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub dpid: u64,
    /// OpenFlow versions that it speaks; all when empty.
    pub protocols: Vec<String>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Number of its bits that are the network's.
    pub prefix: u8,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its gateway to other networks.
    pub gateway: Option<Ipv4Addr>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Its ends.
    pub ends: [PlannedEnd; 2],
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedEnd {
    /// The switch or host.
    pub node: String,
    /// The switch's port; `None` at a host.
    pub port: Option<u16>,
    /// The device, in the namespace of the switches or of the host.
    pub device: String,
}

impl PlannedEnd {
    /// As people write it: `s1:2`, or a host's name.
    #[must_use]
    pub fn text(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.node),
            None => self.node.clone(),
        }
    }
}

impl HostPlan {
    /// The address with its prefix length.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}/{}", self.ip, self.prefix)
    }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Description(what.into())
}

impl NetworkPlan {
    /// Checks a description and fills in what it leaves open.
    ///
    /// # Errors
    /// [`Error::Description`] with the name that is wrong.
    pub fn new(description: &NetworkDescription) -> Result<Self, Error> {
        let NetworkDescription { switches, hosts, links } = description;
        if switches.is_empty() {
            return Err(wrong("it has no switch"));
        }
        for (what, count) in [("switches", switches.len()), ("hosts", hosts.len())] {
            if count > NODES_MAX {
                return Err(wrong(format!("{count} {what} are more than {NODES_MAX}")));
            }
        }
        let mut names = BTreeSet::new();
        let all = switches.iter().map(|s| &s.name).chain(hosts.iter().map(|h| &h.name));
        for name in all {
            check_name(name)?;
            if !names.insert(name) {
                return Err(wrong(format!("{name:?} is there twice")));
            }
        }
        let planned: Result<_, _> =
            switches.iter().enumerate().map(|(at, switch)| plan_switch(at, switch)).collect();
        let switches: Vec<SwitchPlan> = planned?;
        let planned: Result<_, _> =
            hosts.iter().enumerate().map(|(at, host)| plan_host(at, host, hosts.len())).collect();
        let hosts: Vec<HostPlan> = planned?;
        unique("dpid", switches.iter().map(|s| (DatapathId(s.dpid).to_string(), &s.name)))?;
        unique("ip", hosts.iter().map(|h| (h.ip.to_string(), &h.name)))?;
        unique("mac", hosts.iter().map(|h| (MacAddr(h.mac).to_string(), &h.name)))?;
        let links = plan_links(&switches, &hosts, links)?;
        Ok(Self { switches, hosts, links })
    }

    /// The end of a switch's link with a node; `switch:port` may name the port too.
    pub(crate) fn end_towards(&self, switch: &str, other: &str) -> Option<&PlannedEnd> {
        let is_it = |end: &PlannedEnd, text: &str| end.node == text || end.text() == text;
        self.links.iter().find_map(|link| {
            let [a, b] = &link.ends;
            [(a, b), (b, a)].into_iter().find_map(|(near, far)| {
                (near.port.is_some() && is_it(near, switch) && is_it(far, other)).then_some(near)
            })
        })
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let is_good = name.len() <= NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_good {
        return Ok(());
    }
    Err(wrong(format!(
        "{name:?} is no name: a letter, then letters, digits, - and _, at most {NAME_MAX} in all"
    )))
}

fn unique<'a>(what: &str, values: impl Iterator<Item = (String, &'a String)>) -> Result<(), Error> {
    let mut seen = BTreeMap::new();
    for (value, name) in values {
        if let Some(first) = seen.insert(value.clone(), name) {
            return Err(wrong(format!("{first} and {name} have the same {what}, {value}")));
        }
    }
    Ok(())
}

fn plan_switch(at: usize, switch: &SwitchDescription) -> Result<SwitchPlan, Error> {
    let SwitchDescription { name, dpid, protocols } = switch;
    let dpid = match dpid {
        None => at as u64 + 1,
        Some(GivenDpid::Number(number)) => *number,
        Some(GivenDpid::Text(text)) => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let is_hex = (1..=16).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let bad = || wrong(format!("{name}: dpid {text:?} is not 1 to 16 hex digits"));
            u64::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or_else(bad)?
        }
    };
    for word in protocols {
        if Version::from_name(word).is_none() {
            let names: Vec<_> = Version::ALL.iter().map(|version| version.name()).collect();
            let known = names.join(", ");
            return Err(wrong(format!("{name}: there is no protocol {word:?}; there is {known}")));
        }
    }
    Ok(SwitchPlan { name: name.clone(), dpid, protocols: protocols.clone() })
}

fn plan_host(at: usize, host: &HostDescription, hosts: usize) -> Result<HostPlan, Error> {
    let HostDescription { name, ip, mac, gateway } = host;
    let number = at as u32 + 1;
    let [.., high, low] = number.to_be_bytes();
    let parse = |text: &str| {
        let bad = |_| wrong(format!("{name}: {text:?} is no IPv4 address"));
        text.parse::<Ipv4Addr>().map_err(bad)
    };
    let (ip, prefix) = match ip {
        None => (Ipv4Addr::new(10, 0, high, low), if hosts > 254 { 16 } else { 24 }),
        Some(text) => {
            let (ip, prefix) = text.split_once('/').unwrap_or((text, "24"));
            let bits = parse_decimal::<u8>(prefix).filter(|bits| (1..=32).contains(bits));
            let advice = zero_advice(prefix);
            let bad =
                || wrong(format!("{name}: {prefix:?} is no prefix length of 1 to 32{advice}"));
            (parse(ip)?, bits.ok_or_else(bad)?)
        }
    };
    let is_host = !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast();
    if !is_host || ip.is_loopback() {
        return Err(wrong(format!("{name}: {ip} is no address of a host")));
    }
    let mac = match mac {
        None => MacAddr([2, 0, 0, 0, high, low]),
        Some(text) => {
            let bad = || wrong(format!("{name}: {text:?} is no Ethernet address of a host"));
            let is_of_host = |mac: &MacAddr| mac.0[0] & 1 == 0 && mac.0 != [0; 6];
            text.parse::<MacAddr>().ok().filter(is_of_host).ok_or_else(bad)?
        }
    };
    let gateway = gateway.as_deref().map(parse).transpose()?;
    Ok(HostPlan { name: name.clone(), ip, prefix, mac: mac.0, gateway })
}

/// An end as it was written, and the port if one was named.
fn split<'a>(text: &'a str, link: &str) -> Result<(&'a str, Option<u16>), Error> {
    let Some((node, port)) = text.split_once(':') else { return Ok((text, None)) };
    let number = parse_decimal(port).filter(|number| (1..=PORT_MAX).contains(number));
    let advice = zero_advice(port);
    let bad = || wrong(format!("link {link}: {port:?} is no port of 1 to {PORT_MAX}{advice}"));
    Ok((node, Some(number.ok_or_else(bad)?)))
}

fn plan_links(
    switches: &[SwitchPlan],
    hosts: &[HostPlan],
    links: &[[String; 2]],
) -> Result<Vec<LinkPlan>, Error> {
    // Ports that are named are taken before those that are not get the lowest free number.
    let mut taken: BTreeMap<&str, BTreeSet<u16>> =
        switches.iter().map(|switch| (switch.name.as_str(), BTreeSet::new())).collect();
    let mut linked = BTreeSet::new();
    for ends in links {
        let link = ends.join(" - ");
        let mut is_switch = [false; 2];
        for (end, is_switch) in ends.iter().zip(&mut is_switch) {
            let (node, port) = split(end, &link)?;
            if let Some(ports) = taken.get_mut(node) {
                *is_switch = true;
                if port.is_some_and(|port| !ports.insert(port)) {
                    return Err(wrong(format!("link {link}: port {end} has a link already")));
                }
            } else if !hosts.iter().any(|host| host.name == node) {
                return Err(wrong(format!("link {link}: there is no switch or host {node:?}")));
            } else if port.is_some() {
                return Err(wrong(format!("link {link}: {node} is a host and has no ports")));
            } else if !linked.insert(node) {
                return Err(wrong(format!("link {link}: host {node} has a link already")));
            }
        }
        if is_switch == [false; 2] {
            return Err(wrong(format!("link {link}: one end must be a switch")));
        }
    }
    if let Some(host) = hosts.iter().find(|host| !linked.contains(host.name.as_str())) {
        return Err(wrong(format!("host {} has no link", host.name)));
    }
    let mut planned = Vec::with_capacity(links.len());
    for ends in links {
        let link = ends.join(" - ");
        let [a, b] = [end(&ends[0], &link, &mut taken)?, end(&ends[1], &link, &mut taken)?];
        planned.push(LinkPlan { ends: [a, b] });
    }
    Ok(planned)
}

fn end(
    text: &str,
    link: &str,
    taken: &mut BTreeMap<&str, BTreeSet<u16>>,
) -> Result<PlannedEnd, Error> {
    let (node, port) = split(text, link)?;
    let Some(ports) = taken.get_mut(node) else {
        let device = HOST_DEVICE.to_owned();
        return Ok(PlannedEnd { node: node.to_owned(), port: None, device });
    };
    let free = || (1..=PORT_MAX).find(|number| !ports.contains(number));
    let full = || wrong(format!("link {link}: {node} has {PORT_MAX} ports already"));
    let number = port.or_else(free).ok_or_else(full)?;
    ports.insert(number);
    let device = format!("{node}-{number}");
    Ok(PlannedEnd { node: node.to_owned(), port: Some(number), device })
}

#[cfg(test)]
mod tests {
    use super::NetworkPlan;
    use crate::description::NetworkDescription;

    fn plan(text: &str) -> Result<NetworkPlan, String> {
        let description = NetworkDescription::parse_json(text).map_err(|e| e.to_string())?;
        NetworkPlan::new(&description).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_open_is_filled_in_by_place() {
        let plan = plan(
            r#"{"switch": [{"name": "s1"}, {"name": "s2", "dpid": "0xab"}],
                "host": [{"name": "h1"}, {"name": "h2", "ip": "192.168.0.7"},
                         {"name": "h3", "ip": "10.0.0.9/16", "gateway": "10.0.0.254"}],
                "link": [["s1", "h1"], ["h2", "s1:1"], ["s1", "s2"], ["h3", "s2"]]}"#,
        )
        .unwrap();
        let dpids: Vec<_> = plan.switches.iter().map(|switch| switch.dpid).collect();
        assert_eq!(dpids, [1, 0xab]);
        let hosts: Vec<_> = plan.hosts.iter().map(super::HostPlan::address).collect();
        assert_eq!(hosts, ["10.0.0.1/24", "192.168.0.7/24", "10.0.0.9/16"]);
        assert_eq!(plan.hosts[2].mac, [2, 0, 0, 0, 0, 3]);
        let links: Vec<_> = plan
            .links
            .iter()
            .map(|link| link.ends.each_ref().map(super::PlannedEnd::text).join(" "))
            .collect();
        assert_eq!(links, ["s1:2 h1", "h2 s1:1", "s1:3 s2:1", "h3 s2:2"]);
        assert_eq!(plan.end_towards("s1", "h2").unwrap().device, "s1-1");
        assert_eq!(plan.end_towards("s2", "s1").unwrap().device, "s2-1");
        assert_eq!(plan.end_towards("h1", "s1"), None);
    }

    #[test]
    fn what_contradicts_is_named() {
        let with = |rest: &str| {
            format!(r#"{{"switch": [{{"name": "s1"}}], "host": [{{"name": "h1"}}], {rest}}}"#)
        };
        let s = r#""switch": [{"name": "s1"}]"#;
        for (text, part) in [
            ("{}".to_owned(), "no switch"),
            ("{".to_owned(), "line 1"),
            (with(r#""port": 1"#), "unknown field `port`"),
            (with(r#""link": []"#), "host h1 has no link"),
            (with(r#""link": [["s1", "h2"]]"#), "no switch or host \"h2\""),
            (with(r#""link": [["s1", "h1"], ["s1", "h1"]]"#), "host h1 has a link already"),
            (with(r#""link": [["s1:1", "h1"], ["s1:1", "s1:2"]]"#), "port s1:1 has a link"),
            (with(r#""link": [["s1:0", "h1"]]"#), "\"0\" is no port"),
            (with(r#""link": [["s1", "h1:1"]]"#), "h1 is a host"),
            (format!(r#"{{{s}, "host": [{{"name": "s1"}}]}}"#), "\"s1\" is there twice"),
            (format!(r#"{{{s}, "host": [{{"name": "../x"}}]}}"#), "is no name"),
            (format!(r#"{{{s}, "host": [{{"name": "h", "ip": "10.0.0.300"}}]}}"#), "10.0.0.300"),
            (format!(r#"{{{s}, "host": [{{"name": "h", "ip": "1.2.3.4/0"}}]}}"#), "\"0\""),
            (format!(r#"{{{s}, "host": [{{"name": "h", "ip": "224.0.0.1"}}]}}"#), "no address"),
            (format!(r#"{{{s}, "host": [{{"name": "h", "mac": "ff:ff:ff:ff:ff:ff"}}]}}"#), "ff:ff"),
            (r#"{"switch": [{"name": "a"}, {"name": "b", "dpid": 1}]}"#.to_owned(), "same dpid"),
            (r#"{"switch": [{"name": "a", "dpid": "0xxyz"}]}"#.to_owned(), "hex digits"),
            (r#"{"switch": [{"name": "a", "dpid": -1}]}"#.to_owned(), "dpid"),
            (r#"{"switch": [{"name": "a", "protocols": ["9.9"]}]}"#.to_owned(), "OpenFlow13"),
            (
                format!(
                    r#"{{{s}, "host": [{{"name": "h1"}}, {{"name": "h2", "ip": "10.0.0.1"}}],
                        "link": [["s1", "h1"], ["s1", "h2"]]}}"#
                ),
                "same ip",
            ),
            (
                format!(
                    r#"{{{s}, "host": [{{"name": "h1"}}, {{"name": "h2"}}],
                        "link": [["h1", "h2"]]}}"#
                ),
                "one end must be a switch",
            ),
        ] {
            let error = plan(&text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
