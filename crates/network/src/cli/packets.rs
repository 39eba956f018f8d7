//! `weir net send-packets`, `show-stats` and `reset-stats`, in Trema's words.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use programs::cancel::{Cancel, EXIT_INTERRUPTED};
use serde_json::{Value, json};
use terminal::Table;

use super::NetArgs;
use crate::error::Error;
use crate::show;
use crate::state::NetworkState;
use crate::tap::{self, HostFlow, HostStats, StatsRequest};
use crate::traffic::{self, PAYLOAD_MAX, PAYLOAD_MIN, TrafficPlan};

pub(super) const SEND_EXAMPLES: &str = "\
Exit code 1 says that a packet was lost.

Examples:
  weir net send-packets --source h1 --dest h2
  weir net send-packets --source h1 --dest h2 --count 1000 --pps 500 --length 1000
  weir net send-packets --source h1 --dest h2 --pps 100 --duration 10 --json";

pub(super) const STATS_EXAMPLES: &str = "\
Examples:
  weir net show-stats h1
  weir net show-stats h1 --rx --json";

/// Bytes of a payload.
const PAYLOAD: RangeInclusive<i64> = PAYLOAD_MIN as i64..=PAYLOAD_MAX as i64;

/// Most datagrams of one call; each has a bit of memory.
const COUNT_MAX: u64 = 1_000_000_000;

#[derive(Args, Debug)]
pub(super) struct SendArgs {
    /// The host that sends
    #[arg(long, value_name = "HOST")]
    source: String,

    /// The host to which is sent
    #[arg(long, value_name = "HOST")]
    dest: String,

    /// Number of packets [default: 1]
    #[arg(long, short = 'n', value_name = "N", visible_alias = "n_pkts",
        value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    count: Option<u64>,

    /// For how many seconds packets are sent, in place of their number
    #[arg(long, value_name = "S", conflicts_with = "count",
        value_parser = clap::value_parser!(u32).range(1..))]
    duration: Option<u32>,

    /// Packets a second
    #[arg(long, value_name = "RATE", default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pps: u32,

    /// Bytes of the UDP payload
    #[arg(long, value_name = "BYTES", default_value_t = 22,
        value_parser = clap::value_parser!(u16).range(PAYLOAD))]
    length: u16,

    /// UDP port of the source
    #[arg(long, value_name = "PORT", default_value_t = 1, visible_alias = "tp_src",
        value_parser = clap::value_parser!(u16).range(1..))]
    source_port: u16,

    /// UDP port of the destination
    #[arg(long, value_name = "PORT", default_value_t = 1, visible_alias = "tp_dst",
        value_parser = clap::value_parser!(u16).range(1..))]
    dest_port: u16,

    /// Seconds to wait for what is on its way when all is sent
    #[arg(long, value_name = "S", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(0..=60))]
    wait: u64,
}

#[derive(Args, Debug)]
pub(super) struct StatsArgs {
    /// The host
    host: String,

    /// Only what it has sent
    #[arg(long)]
    tx: bool,

    /// Only what it has received
    #[arg(long, conflicts_with = "tx")]
    rx: bool,
}

#[derive(Args, Debug)]
pub(super) struct ResetArgs {
    /// The hosts [default: all]
    hosts: Vec<String>,
}

impl SendArgs {
    pub(super) fn run(&self, net: &NetArgs, network: &NetworkState) -> anyhow::Result<ExitCode> {
        let cancel = Cancel::on_signals().context("catching signals")?;
        let (from, to) = (network.host(&self.source)?, network.host(&self.dest)?);
        if self.source == self.dest {
            let what = format!("{} cannot send to itself over the network", self.source);
            return Err(Error::Description(what).into());
        }
        let count = match self.duration {
            None => self.count.unwrap_or(1),
            Some(seconds) => u64::from(self.pps) * u64::from(seconds),
        };
        if count > COUNT_MAX {
            let what = format!("{count} packets are more than {COUNT_MAX} of one call");
            return Err(Error::Description(what).into());
        }
        let plan = TrafficPlan {
            count,
            rate_pps: self.pps.into(),
            payload_len: self.length,
            src_port: self.source_port,
            dst_port: self.dest_port,
            wait: Duration::from_secs(self.wait),
        };
        let outcome = traffic::send(&from, &to, &plan, &cancel)?;
        let lost = outcome.sent.saturating_sub(outcome.received);
        let value = json!({"source": self.source, "dest": self.dest, "sent": outcome.sent,
            "unsent": outcome.unsent, "received": outcome.received, "lost": lost,
            "duplicated": outcome.duplicated});
        net.print(&value, |out| {
            let (sent, received) = (outcome.sent, outcome.received);
            write!(out, "{} sent {sent}, {} received {received}", self.source, self.dest)?;
            for (count, what) in
                [(lost, "lost"), (outcome.duplicated, "came twice"), (outcome.unsent, "not sent")]
            {
                if count > 0 {
                    write!(out, ", {what}: {count}")?;
                }
            }
            writeln!(out)
        })?;
        if cancel.check().is_err() {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        let is_whole = lost == 0 && outcome.unsent == 0;
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl StatsArgs {
    pub(super) fn run(&self, net: &NetArgs, network: &NetworkState) -> anyhow::Result<ExitCode> {
        let place = network.place(&self.host)?;
        let mut stats = tap::ask(&network.stats, &StatsRequest::Show(place))?;
        stats.rows.retain(|(flow, _)| if flow.is_received { !self.tx } else { !self.rx });
        net.print(&json(&self.host, &stats), |out| {
            let heads = ["", "protocol", "from", "to", "packets", "bytes"];
            let mut table = Table::new(heads).keys(4);
            for (flow, count) in &stats.rows {
                let way = if flow.is_received { "received" } else { "sent" };
                let (from, to) = ends(flow);
                let protocol = protocol(flow.protocol);
                let (packets, bytes) = (count.packets.to_string(), count.bytes.to_string());
                table.row([way.to_owned(), protocol, from, to, packets, bytes]);
            }
            writeln!(out, "{}", show::table(&table))?;
            for (count, what) in [
                (stats.others, "packets of other protocols than IPv4, such as ARP"),
                (stats.beyond, "packets of further flows"),
                (stats.missed, "packets came too fast to be counted"),
            ] {
                if count > 0 {
                    writeln!(out, "{count} {what}")?;
                }
            }
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ResetArgs {
    pub(super) fn run(&self, net: &NetArgs, network: &NetworkState) -> anyhow::Result<ExitCode> {
        let all = network.plan.hosts.iter().map(|host| host.name.clone());
        let names = if self.hosts.is_empty() { all.collect() } else { self.hosts.clone() };
        // A wrong name resets nothing.
        let places: Result<Vec<usize>, Error> =
            names.iter().map(|name| network.place(name)).collect();
        for place in places? {
            tap::ask(&network.stats, &StatsRequest::Reset(place))?;
        }
        net.print(&json!({"reset": names}), |out| writeln!(out, "reset: {}", names.join(", ")))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn protocol(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        other => format!("ip {other}"),
    }
}

fn ends(flow: &HostFlow) -> (String, String) {
    let end = |ip: std::net::Ipv4Addr, port: Option<u16>| match port {
        Some(port) => format!("{ip}:{port}"),
        None => ip.to_string(),
    };
    (end(flow.src, flow.src_port), end(flow.dst, flow.dst_port))
}

fn json(host: &str, stats: &HostStats) -> Value {
    let rows = |is_received| -> Vec<Value> {
        let wanted = stats.rows.iter().filter(|(flow, _)| flow.is_received == is_received);
        wanted
            .map(|(flow, count)| {
                json!({"protocol": protocol(flow.protocol), "src": flow.src, "dst": flow.dst,
                    "src_port": flow.src_port, "dst_port": flow.dst_port,
                    "packets": count.packets, "bytes": count.bytes})
            })
            .collect()
    };
    json!({"host": host, "sent": rows(false), "received": rows(true), "others": stats.others,
        "beyond": stats.beyond, "missed": stats.missed})
}
