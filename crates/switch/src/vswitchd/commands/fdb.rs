//! The commands about the addresses that `NORMAL` knows.

use openflow::text::{PortNames, parse_decimal};
use openflow::{MacAddr, PortNo};

use super::{Daemon, bridge_of};
use crate::agent::Agent;
use crate::control::learnt_addresses;
use crate::reconcile::no_tables;

/// Lists the addresses of a bridge.
pub(super) async fn show(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let agent = bridge_of(daemon, words)?;
    let lines = learnt_addresses(&agent).await?;
    let head = " port  VLAN  MAC                Age\n".to_owned();
    Ok(lines.into_iter().fold(head, |text, line| text + &line + "\n"))
}

/// The VLAN and the address of two words.
fn station(words: &[String]) -> Result<(u16, MacAddr), String> {
    let [vlan, address] = words else { return Err("a VLAN and an address are missing".to_owned()) };
    let vlan = parse_decimal(vlan).filter(|vlan| *vlan < 4096).ok_or("Invalid vlan")?;
    Ok((vlan, address.parse().map_err(|_| "bad MAC address")?))
}

fn port_of(agent: &Agent, name: &str) -> Result<PortNo, String> {
    let descs = agent.bridge.port_descs();
    let names = PortNames::new(descs.iter().map(|desc| (desc.name.as_str(), desc.port_no)));
    let number = names.parse_port(name).ok();
    let found = number.filter(|number| descs.iter().any(|desc| desc.port_no == *number));
    found.ok_or_else(|| format!("{name}: no such port of {}", agent.name))
}

/// Sets by hand where an address is.
pub(super) async fn add(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let agent = bridge_of(daemon, words)?;
    let [_, port, rest @ ..] = words else { return Err("words are missing".to_owned()) };
    let (port, (vlan, address)) = (port_of(&agent, port)?, station(rest)?);
    let now = agent.bridge.clock.now();
    let set = |control: &mut datapath::fast::Control| control.set_address(vlan, address, port, now);
    match agent.bridge.with_control(set).ok_or_else(no_tables)? {
        true => Ok(String::new()),
        false => Err("the table of addresses is full".to_owned()),
    }
}

/// Forgets an address that was set by hand.
pub(super) async fn del(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let agent = bridge_of(daemon, words)?;
    let (vlan, address) = station(words.get(1..).unwrap_or_default())?;
    let unset = |control: &mut datapath::fast::Control| control.unset_address(vlan, address);
    match agent.bridge.with_control(unset).ok_or_else(no_tables)? {
        true => Ok(String::new()),
        false => Err("could not find static mac entry".to_owned()),
    }
}

/// Forgets what was learnt, of one bridge or of all.
pub(super) async fn flush(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    for agent in super::bridges_of(daemon, words)? {
        agent.bridge.flush_counters().await;
        agent.bridge.with_control(datapath::fast::Control::flush_addresses);
    }
    Ok("table successfully flushed".to_owned())
}

/// Counts of the addresses.
pub(super) async fn show_stats(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let agent = bridge_of(daemon, words)?;
    agent.bridge.flush_counters().await;
    let now = agent.bridge.clock.now();
    let stats = agent.bridge.with_control(|control| control.address_stats(now));
    let stats = stats.ok_or_else(no_tables)?;
    // A full table forgets none that is fresh: nothing is evicted.
    Ok(format!(
        "Statistics for bridge \"{}\":\n\
         \x20 Current/maximum MAC entries in the table: {}/{}\n\
         \x20 Current static MAC entries in the table : {}\n\
         \x20 Total number of learned MAC entries     : {}\n\
         \x20 Total number of expired MAC entries     : {}\n\
         \x20 Total number of evicted MAC entries     : 0\n\
         \x20 Total number of port moved MAC entries  : {}\n",
        agent.name,
        stats.known,
        stats.most,
        stats.set_by_hand,
        stats.learnt,
        stats.expired,
        stats.moved,
    ))
}

/// Counts begin at zero, of one bridge or of all.
pub(super) async fn clear_stats(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    for agent in super::bridges_of(daemon, words)? {
        agent.bridge.with_control(datapath::fast::Control::clear_address_stats);
    }
    Ok("statistics successfully cleared".to_owned())
}
