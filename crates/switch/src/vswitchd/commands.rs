//! The commands of `ovs-appctl`, a row each: name, usage, number of words, function.
//!
//! `list-commands`, the check of words and the call follow from the rows. Texts are those of Open
//! vSwitch where tools read them.

mod datapath;
mod dummy;
mod fdb;
mod qos;

use std::pin::Pin;
use std::rc::Rc;

use openflow::Version;
use openflow::flow::FlowStatsRequest;
use openflow::text::PortNames;

pub(super) use self::datapath::{datapath_name, datapath_ports};
use super::trace::trace;
use super::vlog::VLOG;
use super::{Daemon, versions};
use crate::agent::Agent;
use crate::control::named_counters;

type Answer<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + 'a>>;

/// A command.
struct CommandRow {
    name: &'static str,
    usage: &'static str,
    /// The least and the greatest number of words.
    words: (usize, usize),
    run: for<'a> fn(&'a Rc<Daemon>, &'a [String]) -> Answer<'a>,
}

macro_rules! row {
    ($name:literal, $usage:expr, $words:expr, $run:expr) => {
        CommandRow {
            name: $name,
            usage: $usage,
            words: $words,
            run: |daemon, words| Box::pin($run(daemon, words)),
        }
    };
}

const TRACE_USAGE: &str = "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [packet]";

/// All commands, by name.
#[rustfmt::skip]
const COMMANDS: &[CommandRow] = &[
    row!("bridge/dump-flows", "bridge", (1, 1), dump_flows),
    row!("bridge/reconnect", "[bridge]", (0, 1), reconnect),
    row!("coverage/read-counter", "COUNTER", (1, 1), read_counter),
    row!("coverage/show", "", (0, 0), coverage),
    row!("dpctl/del-if", "[dp] port", (1, 2), datapath::delete_port),
    row!("dpctl/dump-dps", "", (0, 1), datapath::dump_dps),
    row!("dpctl/show", "[-s] [dp]", (0, 2), datapath::show_datapath),
    row!("dpif/dump-dps", "", (0, 0), datapath::dump_bridges),
    row!("dpif/show", "", (0, 0), datapath::show_bridges),
    row!("dpif/show-dp-features", "bridge", (1, 1), features),
    row!("exit", "[--cleanup]", (0, 1), exit),
    row!("fdb/add", "bridge port vlan mac", (4, 4), fdb::add),
    row!("fdb/del", "bridge vlan mac", (3, 3), fdb::del),
    row!("fdb/flush", "[bridge]", (0, 1), fdb::flush),
    row!("fdb/show", "bridge", (1, 1), fdb::show),
    row!("fdb/stats-clear", "[bridge]", (0, 1), fdb::clear_stats),
    row!("fdb/stats-show", "bridge", (1, 1), fdb::show_stats),
    row!("list-commands", "", (0, 0), list_commands),
    row!("memory/show", "", (0, 0), memory),
    row!("ofproto/list", "", (0, 0), list_bridges),
    row!("ofproto/list-tunnels", "", (0, 0), list_tunnels),
    row!("ofproto/trace", TRACE_USAGE, (1, usize::MAX), trace),
    row!("qos/show", "interface", (1, 1), qos::show),
    row!("qos/show-types", "interface", (1, 1), qos::show_types),
    row!("revalidator/purge", "", (0, 0), flush_counts),
    row!("revalidator/wait", "", (0, 0), flush_counts),
    row!("upcall/show", "", (0, 0), datapath::show_upcalls),
    row!("version", "", (0, 0), version),
    row!("vlog/close", "", (0, 0), vlog_close),
    row!("vlog/disable-rate-limit", "[module]...", (0, usize::MAX), vlog_rate_limit),
    row!("vlog/enable-rate-limit", "[module]...", (0, usize::MAX), vlog_rate_limit),
    row!("vlog/list", "", (0, 0), vlog_list),
    row!("vlog/reopen", "", (0, 0), vlog_reopen),
    row!("vlog/set", "{spec | PATTERN:destination:pattern}", (1, usize::MAX), vlog_set),
];

const RECEIVE_USAGE: &str = "name [--qid queue_id] packet|flow [--len packet_len]";

/// The commands of `--enable-dummy`.
#[rustfmt::skip]
const DUMMY_COMMANDS: &[CommandRow] = &[
    row!("netdev-dummy/receive", RECEIVE_USAGE, (2, usize::MAX), dummy::receive),
    row!("netdev-dummy/set-admin-state", "[netdev] up|down", (1, 2), dummy::set_admin_state),
    row!("time/stop", "", (0, 0), dummy::stop_time),
    row!("time/warp", "[large_msecs] msecs", (1, 2), dummy::warp_time),
];

/// The commands that this daemon has.
fn commands(daemon: &Daemon) -> impl Iterator<Item = &'static CommandRow> {
    let dummies = if daemon.dummies.is_some() { DUMMY_COMMANDS } else { &[] };
    COMMANDS.iter().chain(dummies)
}

/// Carries a command out.
pub(super) async fn run_command(
    daemon: &Rc<Daemon>,
    name: &str,
    words: &[String],
) -> Result<String, String> {
    let Some(row) = commands(daemon).find(|row| row.name == name) else {
        return Err(format!(
            "\"{name}\" is not a valid command (use \"list-commands\" to see a list of valid \
             commands)"
        ));
    };
    let (least, most) = row.words;
    if words.len() < least {
        return Err(format!("\"{name}\" command requires at least {least} arguments"));
    }
    if words.len() > most {
        return Err(format!("\"{name}\" command takes at most {most} arguments"));
    }
    (row.run)(daemon, words).await
}

async fn list_commands(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let mut all: Vec<_> = commands(daemon).collect();
    all.sort_unstable_by_key(|row| row.name);
    let lines = all.iter().map(|row| format!("  {:<23} {}\n", row.name, row.usage));
    Ok(format!("The available commands are:\n{}", lines.collect::<String>()))
}

async fn version(_: &Daemon, _: &[String]) -> Result<String, String> {
    Ok(versions())
}

async fn exit(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    // The answer is on its way before the switch has ended.
    daemon.exit.notify_one();
    Ok(String::new())
}

async fn vlog_set(_: &Daemon, words: &[String]) -> Result<String, String> {
    words.iter().try_for_each(|spec| VLOG.set(spec)).map(|()| String::new())
}

async fn vlog_list(_: &Daemon, _: &[String]) -> Result<String, String> {
    Ok(VLOG.list())
}

async fn vlog_reopen(_: &Daemon, _: &[String]) -> Result<String, String> {
    VLOG.reopen().map(|()| String::new())
}

async fn vlog_close(_: &Daemon, _: &[String]) -> Result<String, String> {
    VLOG.close_file();
    Ok(String::new())
}

/// No line of the log is left out by a rate that could be set.
async fn vlog_rate_limit(_: &Daemon, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

/// The bridge of a name.
fn bridge_of(daemon: &Daemon, words: &[String]) -> Result<Rc<Agent>, String> {
    let name = words.first().map(String::as_str);
    daemon.bridges.find(name).map_err(|_| "no such bridge".to_owned())
}

/// The bridge of a name, or all where none is given.
fn bridges_of(daemon: &Daemon, words: &[String]) -> Result<Vec<Rc<Agent>>, String> {
    if words.is_empty() { Ok(daemon.bridges.all()) } else { Ok(vec![bridge_of(daemon, words)?]) }
}

/// The features of Open vSwitch's datapath that Weir's has or lacks.
const FEATURES: [(&str, &str); 25] = [
    ("Masked set action", "Yes"),
    ("Tunnel push pop", "No"),
    ("Ufid", "No"),
    ("Truncate action", "Yes"),
    ("Clone action", "No"),
    ("Sample nesting", "0"),
    ("Conntrack eventmask", "No"),
    ("Conntrack clear", "No"),
    ("Max dp_hash algorithm", "0"),
    ("Check pkt length action", "No"),
    ("Conntrack timeout policy", "No"),
    ("Explicit Drop action", "Yes"),
    ("Optimized Balance TCP mode", "No"),
    ("Conntrack all-zero IP SNAT", "No"),
    ("MPLS Label add", "No"),
    ("Max VLAN headers", "1"),
    ("Max MPLS depth", "1"),
    ("Recirc", "No"),
    ("CT state", "No"),
    ("CT zone", "No"),
    ("CT mark", "No"),
    ("CT label", "No"),
    ("CT state NAT", "No"),
    ("CT orig tuple", "No"),
    ("CT orig tuple for IPv6", "No"),
];

async fn features(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    bridge_of(daemon, words)?;
    Ok(FEATURES.map(|(name, value)| format!("{name}: {value}\n")).concat())
}

/// There is no tunnel.
async fn list_tunnels(_: &Daemon, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

async fn list_bridges(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let mut lines: Vec<_> =
        daemon.bridges.all().iter().map(|agent| format!("{}\n", agent.name)).collect();
    lines.sort_unstable();
    Ok(lines.concat())
}

async fn flush_counts(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    for agent in daemon.bridges.all() {
        agent.bridge.flush_counters().await;
    }
    Ok(String::new())
}

async fn dump_flows(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let agent = bridge_of(daemon, words)?;
    agent.bridge.flush_counters().await;
    let list = agent.bridge.list_flows(&FlowStatsRequest::all());
    let mut list = list.map_err(|error| error.to_string())?;
    let (names, mut text) = (PortNames::default(), String::new());
    loop {
        let (flows, is_last) = agent.bridge.next_flows(&mut list);
        for flow in flows {
            text += &names.format_flow_stats(Version::V1_3, &flow);
            text.push('\n');
        }
        if is_last {
            return Ok(text);
        }
        tokio::task::yield_now().await;
    }
}

async fn reconnect(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let all = bridges_of(daemon, words)?;
    all.iter().for_each(|agent| agent.restart_connections());
    Ok(String::new())
}

async fn coverage(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for agent in daemon.bridges.all() {
        for (name, count) in named_counters(&agent).await {
            if count > 0 {
                text += &format!("{name:<24} total: {count} ({})\n", agent.name);
            }
        }
    }
    Ok(text)
}

/// The sum over all bridges.
async fn read_counter(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let mut found = None;
    for agent in daemon.bridges.all() {
        for (name, count) in named_counters(&agent).await {
            if words.first() == Some(&name) {
                found = Some(found.unwrap_or(0) + count);
            }
        }
    }
    found.map(|count| format!("{count}\n")).ok_or_else(|| "No such counter".to_owned())
}

async fn memory(daemon: &Daemon, _: &[String]) -> Result<String, String> {
    let all = daemon.bridges.all();
    let ports: usize = all.iter().map(|agent| agent.bridge.port_views().len()).sum();
    let connections: usize = all.iter().map(|agent| agent.peer_infos().len()).sum();
    Ok(format!("ofconns:{connections} ports:{ports}\n"))
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, DUMMY_COMMANDS};

    #[test]
    fn commands_are_sorted_and_stand_once() {
        for table in [COMMANDS, DUMMY_COMMANDS] {
            assert!(table.is_sorted_by(|a, b| a.name < b.name));
            assert!(table.iter().all(|row| row.words.0 <= row.words.1));
        }
    }
}
