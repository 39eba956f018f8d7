//! Length of the gap in traffic when a link of its path fails (RFC 8456, 5.4.2).
//!
//! The switches are real: bridges of one `weir switch` in a ring, and one bridge for each of two
//! hosts, which send numbered frames to each other and capture what arrives. A link of the path is
//! taken down at both ends; the numbers that are missing afterwards, at a known rate, are the time.
//! The controller must find paths by itself, without loops. A ring that did not forward everything
//! before must never be measured.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use channel::Endpoint;
use client::{Client, ClientSettings};
use openflow::flow::FlowModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortConfig, PortFeatures, PortMod};
use openflow::text::parse_flow_mod;
use openflow::{Message, PortNo};
use programs::cancel::Cancel;
use programs::process::Process;

use super::super::scratch;
use super::capture;
use super::contenders::pin;
use super::cpu::{CpuReading, CpuUse};
use super::fleet::FleetPlan;
use super::trial::{Measured, figure, of_silence};
use emulator::Oddities;

/// Frames a second of each host.
const RATE: u32 = 500;
/// Everything has arrived for so long: then the paths stand.
const STEADY: Duration = Duration::from_secs(1);
/// Between two looks at what has arrived.
const STEP: Duration = Duration::from_millis(20);
/// Longest time for programs to start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The ports of a switch: to the next, to the one before, to a host.
const TO_NEXT: u32 = 1;
const TO_PREVIOUS: u32 = 2;

/// The hosts, with the EtherTypes of what they send.
const HOSTS: [(&str, u16); 2] = [("one", capture::BY_FLOW), ("other", capture::BY_HUB)];

/// Measures a failure in a ring of as many switches as the plan has.
///
/// # Errors
/// A program does not start, the traffic never becomes whole, or the run is interrupted.
pub(super) fn measure(fleet: &FleetPlan, cancel: &Cancel) -> Result<Measured> {
    ensure!((3..=64).contains(&fleet.switches), "a ring has 3 to 64 switches: --switches 4");
    ensure!(fleet.tls.is_none(), "the switches of this mode connect without TLS");
    let mut bed = Bed::start(fleet)?;
    bed.until_steady(fleet, cancel).context("before the failure")?;
    let port = bed.port_of_path(cancel)?;
    let from = bed.last_numbers()?;
    let before = CpuReading::now(fleet.pid);
    // A link that fails is down at both ends.
    let (neighbour, its_port) =
        if port == TO_NEXT { (2, TO_PREVIOUS) } else { (fleet.switches, TO_NEXT) };
    bed.take_down(1, port)?;
    bed.take_down(neighbour, its_port)?;
    bed.until_steady(fleet, cancel).context("after the failure")?;
    let used = CpuUse::between(&before, &CpuReading::now(fleet.pid));
    let mut lost = [0; 2];
    for (index, (_, ethertype)) in HOSTS.iter().enumerate() {
        let seen = bed.numbers(index, *ethertype)?;
        let last = seen.iter().copied().max().unwrap_or(0);
        lost[index] = capture::missing(&seen, from[index]..=last);
    }
    let [forth, back] = lost.map(f64::from);
    let figures = vec![
        figure("", forth.max(back) / f64::from(RATE), "s"),
        of_silence("forth-lost", forth, "packets"),
        of_silence("back-lost", back, "packets"),
    ];
    Ok(Measured { figures, used, limit: used.limit(false), oddities: Oddities::default() })
}

/// The switches and the hosts. The process ends before the folder goes.
struct Bed {
    switch: Process,
    folder: tempfile::TempDir,
}

impl Bed {
    fn start(fleet: &FleetPlan) -> Result<Self> {
        let folder = scratch()?;
        let path = folder.path();
        for (index, (name, ethertype)) in HOSTS.iter().enumerate() {
            let way = if index == 1 { [2, 1] } else { [1, 2] };
            let frame = capture::of_one_frame(*ethertype, way);
            std::fs::write(path.join(format!("{name}.pcap")), frame).context("a capture")?;
        }
        let file = path.join("switches.toml");
        std::fs::write(&file, bridges(fleet, path)).context("writing bridges")?;
        let mut command = Command::new(&fleet.weir);
        command.args(["switch", "--config"]).arg(&file);
        command.arg("--control").arg(path.join("ctl"));
        let switch = Process::start("switches", command, None, path)?;
        pin(switch.pid(), &fleet.cores)?;
        let mut bed = Self { switch, folder };
        for (name, _) in HOSTS {
            let mut client = bed.client(name)?;
            for entry in ["in_port=2,actions=output:1", "in_port=1,actions=output:3"] {
                let entry = parse_flow_mod(entry, FlowModCommand::Add)
                    .map_err(|error| anyhow::anyhow!("{error}"))?;
                let loaded = client.load([Message::FlowMod(entry)])?;
                ensure!(loaded.refused == 0, "the bridge of host {name} refuses its entry");
            }
        }
        Ok(bed)
    }

    /// A client of a bridge, which may be starting.
    fn client(&mut self, bridge: &str) -> Result<Client> {
        let endpoint = Endpoint::Unix(self.folder.path().join(bridge));
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match Client::connect(&endpoint, ClientSettings::default()) {
                Ok(client) => return Ok(client),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => {}
            }
            self.switch.check()?;
            std::thread::sleep(STEP);
        }
    }

    /// The numbers of what has come from a host to the other.
    fn numbers(&self, from: usize, ethertype: u16) -> Result<Vec<u32>> {
        let (name, _) = HOSTS[1 - from];
        let file = self.folder.path().join(format!("{name}-arrived.pcap"));
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(capture::numbers(bytes, ethertype))
    }

    /// The last numbers that have arrived, from each host.
    fn last_numbers(&self) -> Result<[u32; 2]> {
        let last = |from: usize| -> Result<u32> {
            Ok(self.numbers(from, HOSTS[from].1)?.into_iter().max().unwrap_or(0))
        };
        Ok([last(0)?, last(1)?])
    }

    /// Waits until all that both hosts send has arrived for a while.
    fn until_steady(&mut self, fleet: &FleetPlan, cancel: &Cancel) -> Result<()> {
        let deadline = Instant::now() + fleet.ready_limit;
        loop {
            let from = self.last_numbers()?;
            let until = Instant::now() + STEADY;
            while Instant::now() < until {
                self.switch.check()?;
                cancel.sleep(STEP)?;
            }
            let mut came = [0; 2];
            let mut missing = 0;
            for (index, (_, ethertype)) in HOSTS.iter().enumerate() {
                let seen = self.numbers(index, *ethertype)?;
                let last = seen.iter().copied().max().unwrap_or(0);
                came[index] = last - from[index].min(last);
                missing += capture::missing(&seen, from[index]..=last);
            }
            if came.iter().all(|came| *came > RATE / 4) && missing == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "of what two hosts send each other, at {RATE} frames a second, {came:?} \
                     arrived in the last second and {missing} were missing, after {} s: does the \
                     controller find paths around a ring (shortest-path)?",
                    fleet.ready_limit.as_secs()
                );
            }
        }
    }

    /// The port by which the first switch sends what the host at it sends.
    fn port_of_path(&mut self, cancel: &Cancel) -> Result<u32> {
        let before = self.sent()?;
        cancel.sleep(STEADY / 2)?;
        let after = self.sent()?;
        let [next, previous] = [after[0] - before[0], after[1] - before[1]];
        let busier = if next > previous { (TO_NEXT, next) } else { (TO_PREVIOUS, previous) };
        ensure!(busier.1 > 0, "traffic arrives, and the first switch sends none around the ring");
        Ok(busier.0)
    }

    /// Packets that the first switch has sent to the next and to the one before.
    fn sent(&mut self) -> Result<[u64; 2]> {
        let mut client = self.client("s1")?;
        let mut sent = [0; 2];
        for (sent, port) in sent.iter_mut().zip([TO_NEXT, TO_PREVIOUS]) {
            let body = client.multipart(MultipartRequestBody::PortStats(PortNo(port)))?;
            let MultipartReplyBody::PortStats(stats) = body else {
                bail!("switch 1 answers a question about port {port} otherwise");
            };
            *sent = stats.first().context("no counters of the port")?.tx_packets;
        }
        Ok(sent)
    }

    /// Takes a port of a switch down.
    fn take_down(&mut self, number: u32, port: u32) -> Result<()> {
        let mut client = self.client(&format!("s{number}"))?;
        let body = client.multipart(MultipartRequestBody::PortDesc)?;
        let MultipartReplyBody::PortDesc(ports) = body else {
            bail!("switch {number} answers a question about its ports otherwise");
        };
        let port = ports.iter().find(|desc| desc.port_no == PortNo(port)).context("the port")?;
        let port_mod = PortMod {
            port_no: port.port_no,
            hw_addr: port.hw_addr,
            config: PortConfig::PORT_DOWN,
            mask: PortConfig::PORT_DOWN,
            advertise: PortFeatures::default(),
        };
        let loaded = client.load([Message::PortMod(port_mod)])?;
        ensure!(loaded.refused == 0, "switch {number} does not take its port down");
        Ok(())
    }
}

/// The file of the bridges: the ring, and two hosts at opposite ends of it.
fn bridges(fleet: &FleetPlan, folder: &Path) -> String {
    let (count, target) = (fleet.switches, fleet.target.to_string());
    let file = |name: String| folder.join(name).display().to_string();
    let mut text = format!("protocols = [{:?}]\nmax-backoff = 0.2\n", fleet.version.name());
    let mut bridge = |name: &str, dpid: u64, ports: &[String], controllers: &[&str]| {
        let listen = format!("punix:{}", file(name.to_owned()));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[bridge]]\nname = {name:?}\ndpid = \"{dpid:x}\"\nport = {ports:?}\n\
             listen = [{listen:?}]\ncontroller = {controllers:?}\n"
        );
    };
    for number in 1..=count {
        let before = if number == 1 { count } else { number - 1 };
        let mut ports = vec![
            format!("{TO_NEXT}=memory:link{number}?end=a"),
            format!("{TO_PREVIOUS}=memory:link{before}?end=b"),
        ];
        let host = [1, count / 2 + 1].iter().position(|at| *at == number);
        ports.extend(host.map(|host| format!("3=memory:{}?end=a", HOSTS[host].0)));
        bridge(&format!("s{number}"), number.into(), &ports, &[target.as_str()]);
    }
    for (host, (name, _)) in HOSTS.iter().enumerate() {
        let at = capture::NUMBER_AT;
        let ports = [
            format!("1=memory:{name}?end=b"),
            format!("2=pcap:{}?loop=true&rate={RATE}&number={at}", file(format!("{name}.pcap"))),
            format!("3=pcap:{}?write=true", file(format!("{name}-arrived.pcap"))),
        ];
        bridge(name, 0xff01 + host as u64, &ports, &[]);
    }
    text
}
