//! The endpoints of Ryu's `rest_topology`: switches with their ports, links, hosts.
//!
//! Switches are those that are ready, whether anything discovers the network or not; links and
//! hosts are what discovery knows, and none without it.

use crate::datapath::ServedSwitch;
use crate::problem::Problem;
use crate::route::{Answer, Body, Call, Row, endpoints};
use crate::services::{LinkEnd, SeenHost};
use openflow::port::PortDesc;
use openflow::{DatapathId, PortNo};
use serde_json::{Value, json};

/// The endpoints.
pub(crate) fn rows() -> [Row; 6] {
    endpoints! {
        GET "/v1.0/topology/switches" "All switches with their ports" Body::None, true => switches;
        GET "/v1.0/topology/switches/{hex_dpid}" "A switch with its ports" Body::None, true
            => switches;
        GET "/v1.0/topology/links" "All links" Body::None, true => links;
        GET "/v1.0/topology/links/{hex_dpid}" "Links from a switch" Body::None, true => links;
        GET "/v1.0/topology/hosts" "All hosts" Body::None, true => hosts;
        GET "/v1.0/topology/hosts/{hex_dpid}" "Hosts at a switch" Body::None, true => hosts;
    }
}

/// The switch of the path, if the path has one: 16 hex digits.
fn wanted(call: &Call) -> Result<Option<DatapathId>, Problem> {
    let Some(text) = call.part("hex_dpid") else { return Ok(None) };
    hex_dpid(text).map(Some)
}

/// A datapath id as Ryu's topology writes it.
///
/// # Errors
/// When the text has not 16 hex digits.
pub(crate) fn hex_dpid(text: &str) -> Result<DatapathId, Problem> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hex);
    let no_dpid = || Problem::not_found(format!("`{text}` is no datapath id of 16 hex digits"));
    number.map(DatapathId).ok_or_else(no_dpid)
}

fn of_port(dpid: DatapathId, port: &PortDesc) -> Value {
    json!({
        "dpid": dpid.to_string(),
        "port_no": format!("{:08x}", port.port_no.0),
        "hw_addr": port.hw_addr.to_string(),
        "name": port.name,
    })
}

/// A port by its place; one that the switch does not name has no address and no name.
fn of_place(datapaths: &[ServedSwitch], place: LinkEnd) -> Value {
    let datapath = datapaths.iter().find(|datapath| datapath.dpid == place.dpid);
    let port = datapath.and_then(|it| it.ports.iter().find(|port| port.port_no == place.port));
    let unnamed = || PortDesc { port_no: place.port, ..PortDesc::default() };
    of_port(place.dpid, &port.cloned().unwrap_or_else(unnamed))
}

async fn switches(call: Call) -> Answer {
    let wanted = wanted(&call)?;
    let mut datapaths = call.services.datapaths.all();
    datapaths.retain(|datapath| wanted.is_none_or(|dpid| dpid == datapath.dpid));
    datapaths.sort_by_key(|datapath| datapath.dpid);
    let of_switch = |datapath: &ServedSwitch| {
        let real = datapath.ports.iter().filter(|port| port.port_no <= PortNo::MAX);
        let ports: Vec<Value> = real.map(|port| of_port(datapath.dpid, port)).collect();
        json!({"dpid": datapath.dpid.to_string(), "ports": ports})
    };
    let switches: Vec<Value> = datapaths.iter().map(of_switch).collect();
    Ok(Some(switches.into()))
}

async fn links(call: Call) -> Answer {
    let wanted = wanted(&call)?;
    let datapaths = call.services.datapaths.all();
    let mut links = call.services.map.as_ref().map(|map| map.links()).unwrap_or_default();
    links.retain(|(from, _)| wanted.is_none_or(|dpid| dpid == from.dpid));
    links.sort_unstable();
    let of_link = |(from, to): &(LinkEnd, LinkEnd)| {
        let (src, dst) = (of_place(&datapaths, *from), of_place(&datapaths, *to));
        json!({ "src": src, "dst": dst })
    };
    let links: Vec<Value> = links.iter().map(of_link).collect();
    Ok(Some(links.into()))
}

async fn hosts(call: Call) -> Answer {
    let wanted = wanted(&call)?;
    let datapaths = call.services.datapaths.all();
    let mut hosts = call.services.map.as_ref().map(|map| map.hosts()).unwrap_or_default();
    hosts.retain(|host| wanted.is_none_or(|dpid| dpid == host.place.dpid));
    hosts.sort_by_key(|host| host.mac);
    let of_host = |host: &SeenHost| {
        let ipv4: Vec<_> = host.ipv4.iter().map(ToString::to_string).collect();
        let ipv6: Vec<_> = host.ipv6.iter().map(ToString::to_string).collect();
        json!({
            "mac": host.mac.to_string(),
            "ipv4": ipv4,
            "ipv6": ipv6,
            "port": of_place(&datapaths, host.place),
        })
    };
    let hosts: Vec<Value> = hosts.iter().map(of_host).collect();
    Ok(Some(hosts.into()))
}
