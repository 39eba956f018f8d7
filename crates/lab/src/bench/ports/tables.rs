//! Flow entries that the rows of `weir bench ports` are forwarded by.
//!
//! Texts of `ovs-ofctl`'s syntax, since a reader knows them; all switches get the same.

use anyhow::{Context, Result};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;

use super::flood::{FLOW_PORTS_FROM, MANY};

/// Tables that a packet visits.
const TABLES: u32 = 64;

/// Entries of each table: 61,000 over all.
const PER_TABLE: u32 = 61_000 / TABLES;

fn entry(text: &str) -> Result<FlowMod> {
    parse_flow_mod(text, FlowModCommand::Add).with_context(|| text.to_owned())
}

/// An entry for each way between two hosts.
pub(super) fn pair() -> impl Iterator<Item = Result<FlowMod>> {
    ["in_port=1,actions=output:2", "in_port=2,actions=output:1"].into_iter().map(entry)
}

/// An entry for each of ten thousand flows.
pub(super) fn many_flows() -> impl Iterator<Item = Result<FlowMod>> {
    let ports = FLOW_PORTS_FROM..FLOW_PORTS_FROM + MANY;
    ports.map(|port| entry(&format!("in_port=1,udp,udp_src={port},actions=output:2")))
}

/// Entries for two pairs of hosts, and others behind which no packet is: they look at addresses and
/// ports, so that each new flow is a new one to the caches too.
pub(super) fn two_pairs() -> impl Iterator<Item = Result<FlowMod>> {
    let ways = [(1, 2), (2, 1), (3, 4), (4, 3)];
    let ways = ways.map(|(from, to)| format!("priority=1,in_port={from},actions=output:{to}"));
    let others = (0..100).map(|number| {
        format!(
            "priority=10,in_port=2,udp,nw_src=10.9.0.{number},nw_dst=10.9.1.{number},\
             tp_src={number},tp_dst=9,actions=drop"
        )
    });
    ways.into_iter().chain(others).map(|text| entry(&text))
}

/// An entry for each of eight ports, to its neighbour.
pub(super) fn eight_ports() -> impl Iterator<Item = Result<FlowMod>> {
    let to = |from: u32| if from.is_multiple_of(2) { from - 1 } else { from + 1 };
    (1..=8).map(move |from| entry(&format!("in_port={from},actions=output:{}", to(from))))
}

/// The addresses of the packet that meets the entries of that number, in all tables.
fn addresses(number: u32) -> [String; 2] {
    [1, 2].map(|net| format!("10.{net}.{}.{}", number >> 8, number & 255))
}

/// The addresses of all packets that [`many_tables`] forward.
pub(super) fn many_addresses() -> Vec<[String; 2]> {
    (0..PER_TABLE).map(addresses).collect()
}

/// 61,000 entries over 64 tables, all of which a packet visits: a different field in each of four.
pub(super) fn many_tables() -> impl Iterator<Item = Result<FlowMod>> {
    (0..TABLES).flat_map(|table| {
        (0..PER_TABLE).map(move |number| {
            let [src, dst] = addresses(number);
            let matching = match table % 4 {
                0 => format!("ip,nw_dst={dst}"),
                1 => format!("ip,nw_src={src}"),
                2 => format!("udp,nw_dst={dst},tp_dst=2000"),
                _ => format!("udp,nw_src={src},tp_src=1000"),
            };
            let then = if table + 1 < TABLES {
                format!("goto_table:{}", table + 1)
            } else {
                "output:2".to_owned()
            };
            entry(&format!("table={table},{matching},actions={then}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use openflow::TableId;

    use super::{eight_ports, many_addresses, many_flows, many_tables, pair, two_pairs};

    #[test]
    fn entries_are_as_many_as_their_rows_say() {
        assert_eq!(pair().filter(Result::is_ok).count(), 2);
        assert_eq!(two_pairs().filter(Result::is_ok).count(), 104);
        assert_eq!(eight_ports().filter(Result::is_ok).count(), 8);
        assert_eq!(many_flows().filter(Result::is_ok).count(), 10_000);
        let all: Vec<_> = many_tables().map(|entry| entry.unwrap()).collect();
        assert_eq!((all.len(), all[0].table_id), (60_992, TableId(0)));
        assert_eq!(all[60_991].table_id, TableId(63));
        let addresses = many_addresses();
        assert_eq!((addresses.len(), addresses[952][1].as_str()), (953, "10.2.3.184"));
    }
}
