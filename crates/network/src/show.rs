//! Output of the commands: tables for people, JSON for programs.

use std::io::{self, Write};

use openflow::{DatapathId, MacAddr};
use serde_json::{Value, json};
use terminal::Table;

use crate::echo::EchoCount;
use crate::plan::PlannedEnd;
use crate::state::NetworkState;

/// A table of texts, for the terminal.
pub(crate) fn table(table: &Table) -> String {
    table.boxed(terminal::width())
}

/// One JSON value on a line.
pub(crate) fn line(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

/// A network as JSON.
pub(crate) fn network_json(network: &NetworkState) -> Value {
    let plan = &network.plan;
    let switches = plan
        .switches
        .iter()
        .map(|switch| json!({"name": switch.name, "dpid": DatapathId(switch.dpid).to_string()}));
    let hosts = plan.hosts.iter().map(|host| {
        let gateway = host.gateway.map(|gateway| gateway.to_string());
        json!({"name": host.name, "ip": host.address(), "gateway": gateway,
            "mac": MacAddr(host.mac).to_string()})
    });
    let links = plan.links.iter().map(|link| link.ends.each_ref().map(PlannedEnd::text));
    json!({
        "name": network.name, "pid": network.pid, "control": network.control,
        "controller": network.controller,
        "switches": switches.collect::<Vec<_>>(), "hosts": hosts.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

/// A network for people.
pub(crate) fn network(out: &mut dyn Write, network: &NetworkState) -> io::Result<()> {
    let plan = &network.plan;
    writeln!(out, "network {} (process {})", network.name, network.pid)?;
    let links_of = |node: &str| {
        let links = plan.links.iter().filter_map(|link| {
            let [a, b] = &link.ends;
            let (near, far) = match (a.node == node, b.node == node) {
                (true, _) => (a, b),
                (false, true) => (b, a),
                (false, false) => return None,
            };
            let port = near.port.map(|port| format!("{port}: ")).unwrap_or_default();
            Some(format!("{port}{}", far.text()))
        });
        links.collect::<Vec<_>>().join(", ")
    };
    let mut nodes = Table::new(["name", "what", "address", "links"]).left(0..4);
    for switch in &plan.switches {
        let dpid = DatapathId(switch.dpid).to_string();
        nodes.row([switch.name.clone(), "switch".to_owned(), dpid, links_of(&switch.name)]);
    }
    for host in &plan.hosts {
        let address = format!("{} {}", host.address(), MacAddr(host.mac));
        nodes.row([host.name.clone(), "host".to_owned(), address, links_of(&host.name)]);
    }
    writeln!(out, "{}", table(&nodes))?;
    writeln!(out, "weir ctl --control {} --bridge SWITCH", network.control.display())
}

/// Table of the hosts that reached each other.
pub(crate) fn pings(
    out: &mut dyn Write,
    names: &[String],
    rows: &[Vec<Option<EchoCount>>],
) -> io::Result<()> {
    let mut columns = vec!["from \\ to"];
    columns.extend(names.iter().map(String::as_str));
    let mut cells = Table::new(columns);
    for (name, row) in names.iter().zip(rows) {
        let cell = |cell: &Option<EchoCount>| match cell {
            None => String::new(),
            Some(EchoCount { sent, received, .. }) if received < sent => {
                format!("lost {} of {sent}", sent - received)
            }
            Some(count) => format!("{:.2} ms", count.rtt_ms.unwrap_or_default()),
        };
        let mut line = vec![name.clone()];
        line.extend(row.iter().map(cell));
        cells.row(line);
    }
    let (sent, received) = total(rows);
    writeln!(out, "{}\n{received} of {sent} echo requests were answered", table(&cells))
}

/// The hosts that reached each other, as JSON.
pub(crate) fn pings_json(names: &[String], rows: &[Vec<Option<EchoCount>>]) -> Value {
    let mut pairs = Vec::new();
    for (from, row) in names.iter().zip(rows) {
        for (to, cell) in names.iter().zip(row) {
            let Some(EchoCount { sent, received, rtt_ms }) = cell else { continue };
            pairs.push(json!({"from": from, "to": to, "sent": sent, "received": received,
                "rtt_ms": rtt_ms}));
        }
    }
    let (sent, received) = total(rows);
    json!({"sent": sent, "received": received, "pairs": pairs})
}

/// Requests sent, and replies.
pub(crate) fn total(rows: &[Vec<Option<EchoCount>>]) -> (u64, u64) {
    let cells = || rows.iter().flatten().flatten();
    let sent = cells().map(|cell| u64::from(cell.sent)).sum();
    (sent, cells().map(|cell| u64::from(cell.received)).sum())
}
