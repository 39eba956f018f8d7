//! Controllers, switches and traffic of a test of the cluster, all as processes on loopback. Each
//! switch has numbered frames that a flow entry forwards, numbered frames that the hub must
//! forward, and a capture of all that comes out; so whatever is lost is seen. Nothing of it stays.

use crate::process::{DEADLINE, Running, free_port, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;
use testkit::EtcdProcess;

/// The EtherTypes of frames that a flow entry forwards, and of those that the hub does.
pub(crate) const BY_FLOW: u16 = 0x88b5;
pub(crate) const BY_HUB: u16 = 0x88b6;

/// The offset of a frame's number.
const NUMBER_AT: usize = 14;

pub(crate) struct Bench {
    pub(crate) etcd: EtcdProcess,
    pub(crate) controllers: BTreeMap<&'static str, Running>,
    pub(crate) switches: Vec<Running>,
    ports: BTreeMap<&'static str, u16>,
    app: &'static str,
    dir: TempDir,
}

pub(crate) const NODES: [&str; 3] = ["a", "b", "c"];

impl Bench {
    /// Three controllers and so many switches; each switch has one master when this is done.
    pub(crate) fn start(app: &'static str, switches: usize, protocols: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        capture(&dir.path().join("flow.pcap"), BY_FLOW);
        capture(&dir.path().join("hub.pcap"), BY_HUB);
        let mut bench = Self {
            etcd: EtcdProcess::start(),
            controllers: BTreeMap::new(),
            switches: Vec::new(),
            ports: NODES.iter().map(|node| (*node, free_port())).collect(),
            app,
            dir,
        };
        NODES.iter().for_each(|node| bench.start_controller(node));
        for number in 1..=switches {
            let switch = bench.start_switch(number, protocols);
            bench.switches.push(switch);
        }
        bench.until_served();
        bench
    }

    pub(crate) fn start_controller(&mut self, node: &'static str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["controller", self.app, "--listen"]);
        command.arg(format!("tcp:127.0.0.1:{}", self.ports[node]));
        command.arg("--cluster").arg(format!("etcd:http://{}", self.etcd.server()));
        command.args(["--cluster-name", "test", "--node-id", node, "--cluster-ttl", "1"]);
        let program = Running::start(&mut command);
        program.says("listening on");
        self.controllers.insert(node, program);
    }

    fn start_switch(&self, number: usize, protocols: &str) -> Running {
        let dir = self.dir.path();
        let replay = |port: usize, file: &str, rate: u32| {
            let file = dir.join(file).display().to_string();
            format!("{port}=pcap:{file}?loop=true&rate={rate}&number={NUMBER_AT}")
        };
        let out = format!("2=pcap:{}?write=true", self.capture_of(number).display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["switch", "--dpid", &format!("{number:x}"), "--protocols", protocols]);
        command.args(["--port", &replay(1, "flow.pcap", 300), "--port", &out]);
        command.args(["--port", &replay(3, "hub.pcap", 50), "--max-backoff", "0.2"]);
        for port in self.ports.values() {
            command.args(["--controller", &format!("tcp:127.0.0.1:{port}")]);
        }
        command.arg("--listen").arg(format!("punix:{}", self.openflow_of(number).display()));
        Running::start(command.arg("--control").arg(self.control_of(number)))
    }

    fn capture_of(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("out{number}.pcap"))
    }

    fn control_of(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("ctl{number}"))
    }

    /// The socket at which other controllers reach the switch.
    pub(crate) fn openflow_of(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("of{number}"))
    }

    /// Ends a controller's process by its id, as the power cut does.
    pub(crate) fn kill_controller(&mut self, node: &str) -> Instant {
        let mut program = self.controllers.remove(node).unwrap();
        let killed = Instant::now();
        program.child.kill().unwrap();
        program.child.wait().unwrap();
        killed
    }

    /// The node that is each switch's master, by what the nodes have said last, and since when.
    pub(crate) fn masters(&self) -> BTreeMap<usize, Vec<(&'static str, Instant)>> {
        let mut masters: BTreeMap<usize, Vec<(&'static str, Instant)>> =
            (1..=self.switches.len()).map(|number| (number, Vec::new())).collect();
        for (node, program) in &self.controllers {
            let printed = program.timed_lines();
            for (number, masters) in &mut masters {
                let own = |line: &str| {
                    let rest = line.split_once(&format!("switch {number:016x}"))?.1;
                    match rest {
                        _ if rest.contains("is master of it") => Some(true),
                        _ if rest.contains("stands by") || rest.contains("is down") => Some(false),
                        _ => None,
                    }
                };
                let last = printed.iter().rev().find_map(|(at, line)| Some((*at, own(line)?)));
                if let Some((at, true)) = last {
                    masters.push((node, at));
                }
            }
        }
        masters
    }

    /// Waits until each switch has one master; who that is, and since when.
    pub(crate) fn until_served(&self) -> BTreeMap<usize, (&'static str, Instant)> {
        until("one master of each switch", || {
            let masters = self.masters();
            let one = |(number, masters): (usize, Vec<(&'static str, Instant)>)| {
                let [one] = masters[..] else { return None };
                Some((number, one))
            };
            masters.into_iter().map(one).collect()
        })
    }

    /// The number of switches that each node is master of.
    pub(crate) fn shares(&self) -> BTreeMap<&'static str, usize> {
        let mut shares = BTreeMap::new();
        for (node, _) in self.until_served().values() {
            *shares.entry(*node).or_default() += 1;
        }
        shares
    }

    /// Waits until every node is up and master of as many switches as the others.
    pub(crate) fn until_even_shares(&self) {
        let share = self.switches.len() / NODES.len();
        let even = BTreeMap::from(NODES.map(|node| (node, share)));
        until("even shares", || (self.shares() == even).then_some(()));
    }

    pub(crate) fn ctl(&self, number: usize, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("ctl").arg("--control").arg(self.control_of(number)).args(words);
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {printed}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Adds the flow entry that forwards the frames of port 1; from which number on it does.
    pub(crate) fn add_entry(&self, number: usize) -> u32 {
        self.ctl(number, &["add-flow", "cookie=0x77,priority=9,in_port=1,actions=output:2"]);
        let stats = self.ctl(number, &["--json", "dump-ports"]);
        let ports = stats.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let port = ports.into_iter().find(|port| port["port_no"] == 1).unwrap();
        u32::try_from(port["rx_packets"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn has_entry(&self, number: usize) -> bool {
        self.ctl(number, &["dump-flows"]).contains("cookie=0x77")
    }

    /// The numbers of all frames of an EtherType that came out of a switch so far, in order.
    pub(crate) fn numbers(&self, number: usize, ethertype: u16) -> Vec<u32> {
        numbers(&std::fs::read(self.capture_of(number)).unwrap(), ethertype)
    }

    /// Waits until the hub forwards frames of every switch, from now on.
    pub(crate) fn until_forwarded(&self) {
        for number in 1..=self.switches.len() {
            let count = self.numbers(number, BY_HUB).len();
            until("the hub forwards", || {
                (self.numbers(number, BY_HUB).len() > count + 5).then_some(())
            });
        }
    }

    /// Every frame that the entry was there for has come out, once, and the entry stands.
    pub(crate) fn check_no_loss(&self, first: &BTreeMap<usize, u32>) {
        for (number, first) in first {
            assert!(self.has_entry(*number), "switch {number} has lost its flow entry");
            let seen = self.numbers(*number, BY_FLOW);
            let last = *seen.last().unwrap();
            assert!(last > *first, "switch {number} does not forward any more");
            let mut counts: BTreeMap<u32, u32> = (*first..=last).map(|n| (n, 0)).collect();
            for one in seen.iter().filter(|one| **one >= *first) {
                *counts.entry(*one).or_default() += 1;
            }
            let wrong: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
            assert!(wrong.is_empty(), "switch {number}: lost or doubled of {last}: {wrong:?}");
        }
    }
}

/// REST's answer to a question; nothing when there is no answer.
pub(crate) fn get(address: &str, path: &str) -> Value {
    let mut answer = String::new();
    let mut exchange = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        stream.read_to_string(&mut answer).map(drop)
    };
    drop(exchange());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or(Value::Null)
}

/// Writes a capture of one frame.
pub(crate) fn capture(path: &Path, ethertype: u16) {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    frame.resize(60, 0);
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0, 60, 60] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(frame);
    std::fs::write(path, bytes).unwrap();
}

/// The numbers of the frames of an EtherType in a capture whose last record may be torn.
pub(crate) fn numbers(bytes: &[u8], ethertype: u16) -> Vec<u32> {
    let is_little = bytes.first() != Some(&0xa1);
    let word = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    let (mut at, mut numbers) = (24, Vec::new());
    while let Some(len) = word(at + 8) {
        let Some(frame) = bytes.get(at + 16..at + 16 + len as usize) else { break };
        if frame.get(12..14) == Some(&ethertype.to_be_bytes()) {
            let four: [u8; 4] = frame[NUMBER_AT..NUMBER_AT + 4].try_into().unwrap();
            numbers.push(u32::from_be_bytes(four));
        }
        at += 16 + len as usize;
    }
    numbers
}
