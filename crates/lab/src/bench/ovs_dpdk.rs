//! Open vSwitch with DPDK under the bench: a private database and daemon in a network namespace and
//! a scratch folder of their own, one forwarding core.
//!
//! Port 1 and port 2 are the devices that Weir gets. Caches and threads are as they come. Nothing
//! of the system's own Open vSwitch is read or changed; DPDK's files lie in the scratch folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use netdev::sys::netns::Namespace;
use openflow::{PortNo, Version};

use super::settings::{HUGE_MB, Settings};
use super::subject::{Counts, Subject};
use super::workload::Workload;
use crate::cancel::Cancel;
use crate::process::{self, Process};
use crate::switch_client::SwitchClient;
use crate::tools::Tool;

const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const BRIDGE: &str = "br0";
const START_LIMIT: Duration = Duration::from_secs(60);
/// A million flow entries take it most of a minute.
const LOAD_LIMIT: Duration = Duration::from_secs(600);

/// It fills its caches packet by packet, with 100,000 flows for three quarters of a minute.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// What the cache counters are called; those that count a miss begin with `miss`.
const COUNTERS: [&str; 6] = [
    "packets received",
    "emc hits",
    "smc hits",
    "megaflow hits",
    "miss with success upcall",
    "miss with failed upcall",
];

/// A running Open vSwitch. The fields go in this order: the daemon before its database.
#[derive(Debug)]
pub(super) struct OvsDpdk {
    client: SwitchClient,
    daemon: Process,
    _server: Process,
    tools: Tools,
}

/// Where its commands are run.
#[derive(Debug)]
struct Tools {
    namespace: Namespace,
    folder: PathBuf,
    cancel: Cancel,
}

impl Tools {
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, &self.folder);
        }
        // DPDK keeps its own files there.
        command.env("RUNTIME_DIRECTORY", &self.folder);
        command
    }

    fn run(&self, program: &Path, words: &[String], limit: Duration) -> Result<String> {
        let mut command = self.command(program);
        command.args(words);
        let line = process::command_line(&command);
        let namespace = Some(&self.namespace);
        let output =
            process::run("ovs-step", command, namespace, &self.folder, limit, &self.cancel)?;
        ensure!(output.success, "`{line}` failed: {}", output.text.trim_end());
        Ok(output.text)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Runs `ovs-vsctl` with the words of `text`; within a word `+` stands for a blank.
    fn vsctl(&self, text: &str) -> Result<()> {
        let mut words = vec![format!("--db=unix:{}", self.path("db.sock"))];
        words.push("--timeout=60".to_owned());
        words.extend(text.split_ascii_whitespace().map(|word| word.replace('+', " ")));
        self.run(&Tool::OvsVsctl.find()?, &words, START_LIMIT).map(|_| ())
    }
}

impl OvsDpdk {
    /// Starts the switch for `workload` in the empty folder.
    ///
    /// # Errors
    /// It is not installed, does not start, or refuses a flow entry.
    pub(super) fn start(
        settings: &Settings,
        workload: &Workload,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Self> {
        if !Path::new(DAEMON).is_file() {
            bail!("{DAEMON} not installed: apt-get install openvswitch-switch-dpdk");
        }
        let namespace = Namespace::new().context("making a network namespace")?;
        let tools = Tools { namespace, folder: folder.to_owned(), cancel: cancel.clone() };
        let server = start_server(&tools)?;
        let daemon = start_daemon(&tools, settings)?;
        tools.vsctl(&format!(
            "add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail-mode=secure"
        ))?;
        let ofctl = ["add-flows".to_owned(), format!("unix:{}", tools.path("br0.mgmt"))];
        let flows = workload.flows.display().to_string();
        tools.run(&Tool::OvsOfctl.find()?, &[&ofctl[..], &[flows]].concat(), LOAD_LIMIT)?;
        let trace = workload.trace.display();
        tools.vsctl(&format!(
            "add-port {BRIDGE} p2 -- set interface p2 type=dpdk ofport_request=2 \
             options:dpdk-devargs=net_null0,no-rx=1"
        ))?;
        tools.vsctl(&format!(
            "add-port {BRIDGE} p1 -- set interface p1 type=dpdk ofport_request=1 \
             options:dpdk-devargs=net_pcap0,rx_pcap={trace},infinite_rx=1"
        ))?;
        let socket = tools.path("br0.mgmt");
        let client = SwitchClient::connect_unix(Path::new(&socket), Version::V1_3, cancel)?;
        Ok(Self { client, daemon, _server: server, tools })
    }

    /// The counters of the caches, in the order of [`COUNTERS`].
    fn cache_counters(&self) -> Result<[u64; COUNTERS.len()]> {
        let words = ["-t", &self.tools.path("vswitchd.ctl"), "dpif-netdev/pmd-stats-show"];
        let words = words.map(str::to_owned);
        let text = self.tools.run(&Tool::OvsAppctl.find()?, &words, START_LIMIT)?;
        Ok(COUNTERS.map(|key| sum_of(&text, key)))
    }
}

/// The sum over all forwarding threads of the counter `key`.
fn sum_of(text: &str, key: &str) -> u64 {
    let values = text.lines().filter_map(|line| {
        let value = line.trim().strip_prefix(key)?.trim_start().strip_prefix(':')?;
        value.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    values.sum()
}

fn start_server(tools: &Tools) -> Result<Process> {
    ensure!(
        Path::new(SCHEMA).exists(),
        "{SCHEMA} not installed: apt-get install openvswitch-switch"
    );
    let create = ["create".to_owned(), tools.path("conf.db"), SCHEMA.to_owned()];
    tools.run(&Tool::OvsdbTool.find()?, &create, START_LIMIT)?;
    let mut server = tools.command(Tool::OvsdbServer.find()?);
    server.arg(tools.path("conf.db")).arg(format!("--remote=punix:{}", tools.path("db.sock")));
    server.arg(format!("--unixctl={}", tools.path("db.ctl"))).args(["--no-chdir", "-vsyslog:off"]);
    let namespace = Some(&tools.namespace);
    let mut server = Process::start("ovsdb-server", server, namespace, &tools.folder)?;
    let socket = tools.folder.join("db.sock");
    server.wait_until("open its socket", START_LIMIT, &tools.cancel, |_| socket.exists())?;
    Ok(server)
}

fn start_daemon(tools: &Tools, settings: &Settings) -> Result<Process> {
    tools.vsctl("--no-wait init")?;
    tools.vsctl(&format!(
        "--no-wait set Open_vSwitch . other_config:dpdk-init=true \
         other_config:dpdk-lcore-mask={:#x} other_config:pmd-cpu-mask={:#x} \
         other_config:dpdk-socket-mem={HUGE_MB} other_config:dpdk-socket-limit={HUGE_MB} \
         other_config:dpdk-extra=\"--no-pci+--in-memory\"",
        1_u64 << settings.control_core(),
        1_u64 << settings.core
    ))?;
    let mut daemon = tools.command("nice");
    daemon.args(["-n", "-20", DAEMON]).arg(format!("unix:{}", tools.path("db.sock")));
    daemon.arg(format!("--unixctl={}", tools.path("vswitchd.ctl")));
    daemon.args(["--no-chdir", "--disable-system", "-vsyslog:off"]);
    let namespace = Some(&tools.namespace);
    Ok(Process::start("ovs-vswitchd", daemon, namespace, &tools.folder)?)
}

impl Subject for OvsDpdk {
    fn name(&self) -> &'static str {
        "ovs-dpdk"
    }

    fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    fn counts(&mut self) -> Result<Counts> {
        self.daemon.check()?;
        let before = Instant::now();
        let stats = self.client.port_stats()?;
        let at = before + before.elapsed() / 2;
        let find = |number| stats.iter().find(|port| port.port_no == PortNo(number));
        let (Some(first), Some(second)) = (find(1), find(2)) else {
            bail!("Open vSwitch has not made its ports; its last lines:\n{}", self.daemon.tail())
        };
        Ok(Counts { at, received: first.rx_packets, sent: second.tx_packets })
    }

    /// Waits until fewer than one packet in a thousand misses its caches for three seconds.
    fn warm_up(&mut self, cancel: &Cancel) -> Result<f64> {
        let start = Instant::now();
        let mut last = self.cache_counters()?;
        let mut quiet_s = 0;
        while quiet_s < 3 && start.elapsed() < SETTLE_LIMIT {
            cancel.sleep(Duration::from_secs(1))?;
            self.daemon.check()?;
            let now = self.cache_counters()?;
            let now_and_last = now.iter().zip(&last);
            let change: Vec<u64> = now_and_last.map(|(n, l)| n.saturating_sub(*l)).collect();
            let &[packets, .., missed, failed] = change.as_slice() else { continue };
            let is_quiet = packets > 0 && missed + failed < packets / 1000;
            quiet_s = if is_quiet { quiet_s + 1 } else { 0 };
            last = now;
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTERS, sum_of};

    #[test]
    fn counters_of_all_threads_are_summed() {
        let text = "pmd thread numa_id 0 core_id 1:\n  packets received: 12\n  emc hits: 5\n  \
                    megaflow hits: 6\n  miss with success upcall: 1\nmain thread:\n  \
                    packets received: 3\n";
        assert_eq!(COUNTERS.map(|key| sum_of(text, key)), [15, 5, 0, 6, 1, 0]);
    }
}
