//! The rows `cluster`: three controllers as a cluster on an etcd, whose busiest node is killed
//! under load.
//!
//! Everything is a process of its own: etcd, three `weir controller hub`, and one `weir switch`
//! whose bridges all connect with all three. Each bridge has numbered frames that a flow entry
//! forwards, numbered frames that the hub must forward, and a capture of all that comes out; so
//! whatever is lost is seen. Controllers share the core of `--core`, etcd and the switches have the
//! others. A time counts from before the signal until a node says that it is the master, which it
//! says when the switch has granted it the role.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use channel::Endpoint;
use client::{Client, ClientSettings};
use netdev::sys::affinity;
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::parse_flow_mod;
use openflow::{Cookie, Message, PortNo};
use programs::cancel::Cancel;
use programs::listening::free_port;
use programs::process::Process;
use programs::tools::{Missing, Tool};

use super::super::common::Run;
use super::super::scratch;
use super::capture;
use super::contenders::pin;
use super::cpu::CpuUse;
use super::http::HttpClient;
use super::trial::{Measured, of_silence};

/// Longest time for all but the new masters: programs may start on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks at what the nodes have said: a part of a hundredth of what is measured.
const STEP: Duration = Duration::from_millis(1);

/// So long a switch counts as new to a node that has just connected with it (docs/cluster.md).
const UNTIL_KNOWN: Duration = Duration::from_millis(3_500);

/// Frames a second of each switch that a flow entry forwards, and those that the hub does.
const FLOW_RATE: u32 = 300;
const HUB_RATE: u32 = 50;

const NODES: [&str; 3] = ["a", "b", "c"];
const COOKIE: u64 = 0x77;
const ENTRY: &str = "cookie=0x77,priority=9,in_port=1,actions=output:2";

/// Whether what it needs is installed; etcd's program.
///
/// # Errors
/// It is not, and the remedy.
pub(super) fn check() -> Result<PathBuf, Missing> {
    Tool::Etcd.find()
}

/// Kills the master of as many switches as it has, in a cluster of its own.
///
/// # Errors
/// A program does not start, a switch has no new master in time, or the run was interrupted.
pub(super) fn measure(switches: u32, etcd: &Path, run: &Run) -> Result<Measured> {
    let mut bed = ClusterBed::start(switches, etcd, run)?;
    let cancel = &run.cancel;
    bed.until_shared(cancel)?;
    let first: Vec<u32> =
        (1..=switches).map(|number| bed.add_entry(number)).collect::<Result<_>>()?;
    cancel.sleep(UNTIL_KNOWN)?;
    let had = bed.until_served(cancel)?;
    let (killed, took) = bed.kill_busiest(&had, cancel)?;
    bed.until_forwarded(cancel)?;
    let (mut entries_lost, mut lost, mut packets) = (0, 0, 0);
    for (number, first) in (1..=switches).zip(first) {
        entries_lost += u32::from(!bed.has_entry(number)?);
        let seen = capture::numbers(bed.captured(number)?, capture::BY_FLOW);
        let last = seen.iter().copied().max().unwrap_or(0);
        let whole = (last + 1).saturating_sub(first);
        ensure!(whole > 0, "switch {number} has forwarded nothing by its flow entry");
        packets += whole;
        lost += capture::missing(&seen, first..=last);
    }
    let slowest = took.iter().max().copied().unwrap_or_default();
    let figures = vec![
        of_silence("", slowest.as_secs_f64(), "s"),
        of_silence("switches", killed as f64, "switches"),
        of_silence("entries-lost", f64::from(entries_lost), "entries"),
        of_silence("packets-lost", f64::from(lost), "packets"),
        of_silence("packets", f64::from(packets), "packets"),
    ];
    Ok(Measured::without_limit(figures, CpuUse::default()))
}

/// The programs. They end before the folder goes.
struct ClusterBed {
    nodes: BTreeMap<&'static str, Process>,
    switch: Process,
    _etcd: Process,
    count: u32,
    folder: tempfile::TempDir,
}

impl ClusterBed {
    fn start(count: u32, etcd: &Path, run: &Run) -> Result<Self> {
        let all = affinity::allowed_cpus().context("asking for the cores")?;
        let others: Vec<usize> = all.into_iter().filter(|core| *core != run.core).collect();
        let folder = scratch()?;
        let path = folder.path();
        let (etcd, etcd_port) = start_etcd(etcd, path, &run.cancel)?;
        pin(etcd.pid(), &others)?;
        let mut nodes = BTreeMap::new();
        let mut ports = Vec::new();
        for node in NODES {
            let port = free_port()?;
            let mut command = Command::new(&run.weir);
            command.args(["controller", "hub", "--listen", &format!("tcp:127.0.0.1:{port}")]);
            command.args(["--cluster", &format!("etcd:http://127.0.0.1:{etcd_port}")]);
            command.args(["--cluster-name", "bench", "--node-id", node, "--cluster-ttl", "1"]);
            let mut process = Process::start(&format!("node-{node}"), command, None, path)?;
            process.wait_for_text("listening on", LIMIT, &run.cancel)?;
            pin(process.pid(), &[run.core])?;
            nodes.insert(node, process);
            ports.push(port);
        }
        for (name, ethertype) in [("flow", capture::BY_FLOW), ("hub", capture::BY_HUB)] {
            let file = path.join(format!("{name}.pcap"));
            std::fs::write(file, capture::of_one_frame(ethertype, [1, 2]))
                .context("writing a capture")?;
        }
        let file = path.join("switches.toml");
        std::fs::write(&file, bridges(count, &ports, path)).context("writing bridges")?;
        let mut command = Command::new(&run.weir);
        command.args(["switch", "--config"]).arg(&file);
        command.arg("--control").arg(path.join("ctl"));
        let switch = Process::start("switches", command, None, path)?;
        pin(switch.pid(), &others)?;
        Ok(Self { nodes, switch, _etcd: etcd, count, folder })
    }

    /// The nodes that say that they are master of each switch.
    fn masters(&self) -> BTreeMap<u32, Vec<&'static str>> {
        let mut masters: BTreeMap<u32, Vec<&'static str>> =
            (1..=self.count).map(|number| (number, Vec::new())).collect();
        for (node, process) in &self.nodes {
            let output = process.output();
            for (number, masters) in &mut masters {
                if is_master(&output, *number) {
                    masters.push(node);
                }
            }
        }
        masters
    }

    /// Waits until each switch has one master; which.
    fn until_served(&mut self, cancel: &Cancel) -> Result<BTreeMap<u32, &'static str>> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let masters = self.masters();
            let one = |(number, masters): (&u32, &Vec<&'static str>)| match masters[..] {
                [one] => Some((*number, one)),
                _ => None,
            };
            if let Some(all) = masters.iter().map(one).collect() {
                return Ok(all);
            }
            if Instant::now() > deadline {
                bail!("not each switch has one master within {} s: {masters:?}", LIMIT.as_secs());
            }
            self.check(cancel)?;
        }
    }

    /// Waits until the nodes share the switches evenly.
    fn until_shared(&mut self, cancel: &Cancel) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let masters = self.until_served(cancel)?;
            let share = |node| masters.values().filter(|master| **master == node).count();
            let shares = NODES.map(share);
            if shares.iter().max().zip(shares.iter().min()).is_some_and(|(a, b)| a - b <= 1) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the nodes' shares stay uneven: {shares:?}");
        }
    }

    /// Goes on after a moment unless a program has ended.
    fn check(&mut self, cancel: &Cancel) -> Result<()> {
        self.nodes.values_mut().try_for_each(Process::check)?;
        self.switch.check()?;
        cancel.check()?;
        std::thread::sleep(STEP);
        Ok(())
    }

    /// Kills the node that is master of most switches; how many it had, and after which time each
    /// of them had a new master.
    fn kill_busiest(
        &mut self,
        had: &BTreeMap<u32, &'static str>,
        cancel: &Cancel,
    ) -> Result<(usize, Vec<Duration>)> {
        let of = |node: &'static str| had.iter().filter(move |(_, master)| **master == node);
        let busiest = NODES.into_iter().max_by_key(|node| of(node).count());
        let busiest = busiest.context("no node")?;
        let mut orphans: Vec<u32> = of(busiest).map(|(number, _)| *number).collect();
        let count = orphans.len();
        let mut node = self.nodes.remove(busiest).context("a node that runs")?;
        let killed = Instant::now();
        node.kill()?;
        let mut took = Vec::new();
        while !orphans.is_empty() {
            let output: Vec<String> = self.nodes.values().map(Process::output).collect();
            let at = killed.elapsed();
            orphans.retain(|number| {
                let is_served = output.iter().any(|output| is_master(output, *number));
                took.extend(is_served.then_some(at));
                !is_served
            });
            let left = LIMIT.checked_sub(at).ok_or_else(|| {
                anyhow!("{} switches have no new master after {} s", orphans.len(), LIMIT.as_secs())
            });
            left.and_then(|_| self.check(cancel))?;
        }
        Ok((count, took))
    }

    /// Waits until the hub forwards frames of every switch, from now on.
    fn until_forwarded(&mut self, cancel: &Cancel) -> Result<()> {
        for number in 1..=self.count {
            let count = |bed: &Self| -> Result<usize> {
                Ok(capture::numbers(bed.captured(number)?, capture::BY_HUB).len())
            };
            let (before, deadline) = (count(self)?, Instant::now() + LIMIT);
            while count(self)? < before + 5 {
                ensure!(
                    Instant::now() < deadline,
                    "no packet-in of switch {number} was answered for {} s",
                    LIMIT.as_secs()
                );
                self.check(cancel)?;
            }
        }
        Ok(())
    }

    fn captured(&self, number: u32) -> Result<Vec<u8>> {
        let file = self.folder.path().join(format!("out{number}.pcap"));
        std::fs::read(&file).with_context(|| format!("reading {}", file.display()))
    }

    fn client(&self, number: u32) -> Result<Client> {
        let endpoint = Endpoint::Unix(self.folder.path().join(format!("of{number}")));
        Ok(Client::connect(&endpoint, ClientSettings::default())?)
    }

    /// Adds the flow entry that forwards the frames of port 1; from which number on it does.
    fn add_entry(&self, number: u32) -> Result<u32> {
        let mut client = self.client(number)?;
        let entry =
            parse_flow_mod(ENTRY, FlowModCommand::Add).map_err(|error| anyhow!("{error}"))?;
        let loaded = client.load([Message::FlowMod(entry)])?;
        ensure!(loaded.refused == 0, "switch {number} refuses its flow entry");
        let ports = client.multipart(MultipartRequestBody::PortStats(PortNo(1)))?;
        let MultipartReplyBody::PortStats(ports) = ports else {
            bail!("switch {number} answers a question about port 1 otherwise");
        };
        let port = ports.first().context("no counters of port 1")?;
        Ok(u32::try_from(port.rx_packets)?)
    }

    fn has_entry(&self, number: u32) -> Result<bool> {
        let request = FlowStatsRequest {
            cookie: Cookie(COOKIE),
            cookie_mask: u64::MAX,
            ..FlowStatsRequest::all()
        };
        Ok(self.client(number)?.count_flows(request)?.entries == 1)
    }
}

/// Whether a node is master of a switch, by what it has said of it last.
fn is_master(output: &str, number: u32) -> bool {
    let mark = format!("switch {number:016x}");
    let last = output.lines().rev().find_map(|line| {
        let rest = line.split_once(&mark)?.1;
        let is_one = rest.contains("is master of it");
        (is_one || rest.contains("stands by") || rest.contains("is down")).then_some(is_one)
    });
    last == Some(true)
}

/// The file of a number of bridges, all of these controllers.
fn bridges(count: u32, controllers: &[u16], folder: &Path) -> String {
    let endpoints: Vec<String> =
        controllers.iter().map(|port| format!("tcp:127.0.0.1:{port}")).collect();
    let mut text =
        format!("controller = {endpoints:?}\nprotocols = [\"OpenFlow13\"]\nmax-backoff = 0.2\n");
    let file = |name: String| folder.join(name).display().to_string();
    for number in 1..=count {
        let replay = |port: u32, name: &str, rate: u32| {
            let capture = file(format!("{name}.pcap"));
            let at = capture::NUMBER_AT;
            format!("{port}=pcap:{capture}?loop=true&rate={rate}&number={at}")
        };
        let out = format!("2=pcap:{}?write=true", file(format!("out{number}.pcap")));
        let ports = [replay(1, "flow", FLOW_RATE), out, replay(3, "hub", HUB_RATE)];
        let socket = format!("punix:{}", file(format!("of{number}")));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[bridge]]\nname = \"s{number}\"\ndpid = \"{number:x}\"\nport = {ports:?}\n\
             listen = [{socket:?}]\n"
        );
    }
    text
}

/// Starts an etcd on loopback that elects quickly, so that it grants leases of one second; it and
/// the port of its clients.
fn start_etcd(program: &Path, folder: &Path, cancel: &Cancel) -> Result<(Process, u16)> {
    let (client_port, peer_port) = (free_port()?, free_port()?);
    let [client, peer] = [client_port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args(["--name", "one", "--logger", "zap", "--log-level", "error"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("one={peer}")]);
    command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
    let mut process = Process::start("etcd", command, None, folder)?;
    process.wait_until("answer", LIMIT, cancel, |_| is_healthy(client_port).unwrap_or(false))?;
    Ok((process, client_port))
}

fn is_healthy(port: u16) -> Result<bool> {
    let (_, answer) = HttpClient::new(&format!("127.0.0.1:{port}"))?.ask("GET", "/health", "")?;
    Ok(String::from_utf8_lossy(&answer).contains("\"true\""))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{bridges, is_master};

    #[test]
    fn the_last_word_of_a_node_counts() {
        let line = |text: &str| format!("tcp:1: switch 0000000000000001 {text}\n");
        let mut output = line("stands by");
        assert!(!is_master(&output, 1));
        output += "tcp:1: switch 0000000000000001: this node is master of it, generation 7\n";
        output += &line("is ready: OpenFlow13, 1 ports");
        assert!(is_master(&output, 1) && !is_master(&output, 17));
        output += &line("is down: closed");
        assert!(!is_master(&output, 1));
    }

    #[test]
    fn every_bridge_connects_with_all_nodes_and_has_its_frames() {
        let text = bridges(2, &[5, 6, 7], Path::new("/x"));
        assert!(text.contains(r#"["tcp:127.0.0.1:5", "tcp:127.0.0.1:6", "tcp:127.0.0.1:7"]"#));
        assert!(text.contains(r#""3=pcap:/x/hub.pcap?loop=true&rate=50&number=14""#), "{text}");
        assert!(text.contains("2=pcap:/x/out2.pcap?write=true"), "{text}");
    }
}
