//! How fast a switch takes changes: flow-mods over a Unix socket, alone and while it forwards, and
//! a list of all entries while it forwards.
//!
//!     cargo run --release -p weir-switch --example change_rate -- ENTRIES PER_SECOND WORKER_CPU
//!
//! (all three may be left out, from the last on: 1,000,000 entries, 100,000 a second, CPU 1).
//!
//! The switch runs in this process, on ports without a wire: a capture that is replayed for ever
//! comes in, and a null port takes what leaves. Echo requests go by a connection of their own, one
//! after the other, while everything else happens; the longest answer is told. Beside each rate
//! stands what it took of a CPU, by thread, which other programs disturb less: of the worker the
//! frames for each second that it ran. It must not be taken for a comparison: switch, controller
//! and everything else share the machine.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::message::{Hello, MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::{Action, Field, Instruction, Match, Message, PortNo, Version, Xid};
use tokio::sync::oneshot;

const VERSION: Version = Version::V1_3;

/// Flows of the forwarded traffic.
const FLOWS: u32 = 1_000;

/// How long each rate is measured.
const MEASURE: Duration = Duration::from_secs(3);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The numbers on the command line.
struct Wishes {
    entries: u32,
    per_second: u32,
    worker_cpu: u32,
}

fn main() -> Result<()> {
    let mut numbers = Vec::new();
    for argument in std::env::args().skip(1) {
        numbers.push(argument.parse::<u32>()?);
    }
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let wishes = Wishes {
        entries: number(0, 1_000_000),
        per_second: number(1, 100_000),
        worker_cpu: number(2, 1),
    };
    alone(&wishes)?;
    while_forwarding(&wishes)
}

/// Adds all entries as fast as they are taken, by a switch that has nothing else to do.
fn alone(wishes: &Wishes) -> Result<()> {
    let switch = Switch::start("\"null:a\", \"null:b\"", "max-entries = 20000000")?;
    let mut client = Client::connect(&switch.socket())?;
    let (before, held) = ([AGENT, WORKER].map(cpu_ns), resident_bytes());
    let took = load(&mut client, wishes.entries)?;
    let used = [AGENT, WORKER].map(cpu_ns);
    let each = |at: usize| (used[at] - before[at]) as f64 / f64::from(wishes.entries);
    println!(
        "adds: {} in {:.2} s, {:.0} /s; CPU for each: agent {:.0} ns, worker {:.0} ns",
        wishes.entries,
        took,
        f64::from(wishes.entries) / took,
        each(0),
        each(1)
    );
    let held = resident_bytes().saturating_sub(held) as f64 / f64::from(wishes.entries);
    println!("memory: {held:.0} bytes an entry");
    let begun = Instant::now();
    client.send(&Message::FlowMod(FlowMod::new(FlowModCommand::Delete)))?;
    client.barrier()?;
    println!("all deleted: {:.2} s", begun.elapsed().as_secs_f64());
    switch.stop()
}

fn load(client: &mut Client, entries: u32) -> Result<f64> {
    let begun = Instant::now();
    for number in 0..entries {
        client.queue(&add(number))?;
        client.flush_over(1 << 16)?;
    }
    client.barrier()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// An entry for one address, which no frame has.
fn add(number: u32) -> Message {
    flow_mod(FlowModCommand::Add, u128::from(0x1400_0000 + number))
}

fn flow_mod(command: FlowModCommand, address: u128) -> Message {
    Message::FlowMod(FlowMod {
        priority: 10,
        matching: Match::any().with(Field::EthType, 0x0800).with(Field::Ipv4Dst, address),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
        ..FlowMod::new(command)
    })
}

fn while_forwarding(wishes: &Wishes) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let capture = folder.path().join("traffic.pcap");
    std::fs::write(&capture, traffic())?;
    let ports = format!("\"pcap:{}?loop=true\", \"null:b\"", capture.display());
    let pinned = format!("worker-cores = [{}]\nmax-entries = 20000000", wishes.worker_cpu);
    let switch = Switch::start(&ports, &pinned)?;
    let mut client = Client::connect(&switch.socket())?;
    for flow in 0..FLOWS {
        client.queue(&flow_mod(FlowModCommand::Add, u128::from(0x0a00_0000 + flow)))?;
    }
    client.barrier()?;
    let echoes = Echoes::start(&switch.socket())?;
    std::thread::sleep(Duration::from_secs(1));

    let base = rate(&mut client, |_| std::thread::sleep(MEASURE))?;
    println!("forwarding: {:.2} Mpps; longest echo {:.2} ms", base, echoes.worst_ms());

    let mut sent = 0_u32;
    let changing = rate(&mut client, |client| {
        sent = changes(client, wishes.per_second).unwrap_or(0);
    })?;
    println!(
        "with {:.0} changes/s: {:.2} Mpps, {:+.1} %; longest echo {:.2} ms",
        f64::from(sent) / MEASURE.as_secs_f64(),
        changing,
        100.0 * (changing / base - 1.0),
        echoes.worst_ms()
    );

    let took = load(&mut client, wishes.entries)?;
    println!("{} added meanwhile: {:.0} /s", wishes.entries, f64::from(wishes.entries) / took);
    echoes.worst_ms();
    let before = rate(&mut client, |_| std::thread::sleep(MEASURE))?;
    let (mut listed, mut seconds) = (0, 0.0);
    let listing = rate(&mut client, |client| {
        let begun = Instant::now();
        listed = list(client).unwrap_or(0);
        seconds = begun.elapsed().as_secs_f64();
    })?;
    println!(
        "{listed} listed in {seconds:.2} s: {listing:.2} Mpps of {before:.2}, {:+.1} %; \
         longest echo {:.2} ms",
        100.0 * (listing / before - 1.0),
        echoes.worst_ms()
    );
    echoes.stop()?;
    switch.stop()
}

/// Adds, modifies and deletes entries evenly, `per_second` of them; how many.
fn changes(client: &mut Client, per_second: u32) -> Result<u32> {
    const STEP: Duration = Duration::from_millis(1);
    let begun = Instant::now();
    let mut sent = 0_u32;
    while begun.elapsed() < MEASURE {
        let due = (begun.elapsed().as_secs_f64() * f64::from(per_second)) as u32;
        while sent < due {
            let command = match sent / 1_000 % 3 {
                0 => FlowModCommand::Add,
                1 => FlowModCommand::ModifyStrict,
                _ => FlowModCommand::DeleteStrict,
            };
            client.queue(&flow_mod(command, u128::from(0x1e00_0000 + sent % 1_000)))?;
            client.flush_over(1 << 14)?;
            sent += 1;
        }
        client.flush_over(0)?;
        std::thread::sleep(STEP);
    }
    client.barrier()?;
    Ok(sent)
}

/// Lists all entries; how many.
fn list(client: &mut Client) -> Result<usize> {
    let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
    client.send(&Message::MultipartRequest(MultipartRequest { more: false, body }))?;
    let mut listed = 0;
    loop {
        let Message::MultipartReply(reply) = client.next()? else { continue };
        if let MultipartReplyBody::Flow(flows) = &reply.body {
            listed += flows.len();
        }
        if !reply.more {
            return Ok(listed);
        }
    }
}

/// The names of the switch's threads.
const AGENT: &str = "agent";
const WORKER: &str = "worker 0";

/// What the process holds of the machine's memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// What the threads of this name have used of a CPU, in nanoseconds.
fn cpu_ns(name: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let named = tasks.filter(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    });
    let used = named.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    used.sum()
}

/// Frames that leave by port 2 while `meanwhile` runs, in millions for each second that the worker
/// has run.
fn rate(client: &mut Client, meanwhile: impl FnOnce(&mut Client)) -> Result<f64> {
    let (before, begun) = (client.sent_by(PortNo(2))?, cpu_ns(WORKER));
    meanwhile(client);
    let (after, took) = (client.sent_by(PortNo(2))?, cpu_ns(WORKER) - begun);
    Ok((after - before) as f64 * 1e3 / took as f64)
}

/// A capture with a UDP packet of each flow.
fn traffic() -> Vec<u8> {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    for flow in 0..FLOWS {
        let mut frame = vec![0_u8; 60];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        frame[26..30].copy_from_slice(&0x0a01_0000_u32.to_be_bytes());
        frame[30..34].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(frame);
    }
    capture
}

/// A switch in a thread.
struct Switch {
    folder: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<std::result::Result<(), switch::SwitchError>>,
}

impl Switch {
    fn start(ports: &str, toml: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().display();
        let text = format!(
            "port = [{ports}]\nlisten = [\"punix:{path}/of\"]\ncontrol = \"{path}/ctl\"\n{toml}"
        );
        let config = switch::parse_config(&text)?.resolve()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(AGENT.to_owned()).spawn(move || {
            switch::run_until(config, || {
                Ok(async {
                    // Told or forgotten: both mean stop.
                    let _ = stopped.await;
                })
            })
        })?;
        let end = Instant::now() + Duration::from_secs(30);
        while UnixStream::connect(folder.path().join("of")).is_err() {
            if thread.is_finished() || Instant::now() > end {
                return Err("the switch did not start".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { folder, stop, thread })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("of")
    }

    fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.thread.join().map_err(|_| "the switch has panicked")??)
    }
}

/// A controller by script.
struct Client {
    stream: UnixStream,
    xid: u32,
    out: Vec<u8>,
    came: Vec<u8>,
}

impl Client {
    fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Self { stream, xid: 0, out: Vec::new(), came: Vec::new() };
        client.send(&Message::Hello(Hello { versions: None }))?;
        client.frame()?;
        Ok(client)
    }

    fn queue(&mut self, message: &Message) -> Result<u32> {
        self.xid += 1;
        wire::encode_into(&mut self.out, VERSION, Xid(self.xid), message)?;
        Ok(self.xid)
    }

    /// Writes what is queued if it is longer than so many bytes.
    fn flush_over(&mut self, bytes: usize) -> Result<()> {
        if self.out.len() > bytes {
            self.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn send(&mut self, message: &Message) -> Result<u32> {
        let xid = self.queue(message)?;
        self.flush_over(0)?;
        Ok(xid)
    }

    fn frame(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(len) = wire::frame_len(&self.came)?
                && len <= self.came.len()
            {
                return Ok(self.came.drain(..len).collect());
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("the switch has closed the connection".into()),
                Ok(count) => self.came.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next message that is not the switch's own echo request; an error ends the run.
    fn next(&mut self) -> Result<Message> {
        loop {
            let frame = self.frame()?;
            let (version, xid, message) = wire::decode(&frame).map_err(|_| "a bad message")?;
            match message {
                Message::EchoRequest(data) => {
                    let reply = wire::encode(version, xid, &Message::EchoReply(data))?;
                    self.stream.write_all(&reply)?;
                }
                Message::Error(error) => return Err(format!("refused: {error:?}").into()),
                message => return Ok(message),
            }
        }
    }

    fn barrier(&mut self) -> Result<()> {
        self.send(&Message::BarrierRequest)?;
        while self.next()? != Message::BarrierReply {}
        Ok(())
    }

    fn sent_by(&mut self, port: PortNo) -> Result<u64> {
        let body = MultipartRequestBody::PortStats(port);
        self.send(&Message::MultipartRequest(MultipartRequest { more: false, body }))?;
        loop {
            if let Message::MultipartReply(reply) = self.next()?
                && let MultipartReplyBody::PortStats(ports) = reply.body
            {
                return Ok(ports.first().map_or(0, |port| port.tx_packets));
            }
        }
    }
}

/// Echo requests one after the other.
struct Echoes {
    stop: Arc<AtomicBool>,
    worst_ns: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Echoes {
    fn start(path: &Path) -> Result<Self> {
        let mut client = Client::connect(path)?;
        let (stop, worst_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, worst) = (Arc::clone(&stop), Arc::clone(&worst_ns));
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                client.send(&Message::EchoRequest(Vec::new()))?;
                while !matches!(client.next()?, Message::EchoReply(_)) {}
                worst.fetch_max(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        });
        Ok(Self { stop, worst_ns, thread })
    }

    /// The longest since this was asked last, in milliseconds.
    fn worst_ms(&self) -> f64 {
        self.worst_ns.swap(0, Ordering::Relaxed) as f64 / 1e6
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the echoes have panicked")?
    }
}
