//! How long a forwarder takes for a packet: a flow file and a capture in memory, without ports.
//!
//! ```text
//! cargo run --release -p weir-datapath --example forward -- FLOWS PCAP [seconds=2] [batch=32]
//!     [caches=frame,key|key|off] [frames=N] [rounds=1]
//! ```
//!
//! Adds every line of FLOWS (flow entries, and groups and meters by their own lines, in ovs-ofctl
//! syntax), replays PCAP from port 1 for ever and prints nanoseconds of processor time for a
//! packet: of the whole loop, of a loop that only copies the frames into buffers, of the
//! difference, which is the forwarder's, and of its stages, with what the caches did.
//! `frames=N` generates N frames of as many flows instead of reading a capture: UDP from
//! 10.0.0.0+i to 10.128.0.0+i, shuffled. Figures move with the neighbours of a virtual machine:
//! compare runs that were made in turns.

use std::error::Error;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use datapath::fast::{Caches, Fast, Sink};
use datapath::{Datapath, DatapathConfig, DropReason, Nanos};
use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::message::PacketIn;
use openflow::meter::MeterModCommand;
use openflow::port::{PortDesc, PortState};
use openflow::text::{parse_flow_mod, parse_group_mod, parse_meter_mod};
use openflow::{MacAddr, PortNo, QueueId, Version};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

/// Takes everything and gives buffers out again.
#[derive(Default)]
struct Null {
    pool: Vec<PacketBuf>,
    outputs: u64,
    drops: u64,
    packet_ins: u64,
}

impl Sink for Null {
    fn output(&mut self, _port: PortNo, _queue: Option<QueueId>, frame: PacketBuf) {
        self.outputs += 1;
        self.pool.push(frame);
    }

    fn output_all(
        &mut self,
        _port: PortNo,
        _queue: Option<QueueId>,
        frames: &mut Vec<PacketBuf>,
        _shortest: usize,
    ) {
        self.outputs += frames.len() as u64;
        self.pool.append(frames);
    }

    fn packet_in(&mut self, message: PacketIn, _max_len: u16) {
        self.packet_ins += 1;
        black_box(message);
    }

    fn dropped(&mut self, _reason: DropReason) {
        self.drops += 1;
    }

    fn done(&mut self, frame: PacketBuf) {
        self.pool.push(frame);
    }

    fn done_all(&mut self, frames: &mut Vec<PacketBuf>) {
        self.pool.append(frames);
    }

    fn spare(&mut self) -> PacketBuf {
        self.pool.pop().unwrap_or_default()
    }
}

struct Asked {
    flows: String,
    frames: Vec<Vec<u8>>,
    time: Duration,
    batch: usize,
    caches: Caches,
    rounds: usize,
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let held = args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
        held.map(str::to_owned)
    };
    let files: Vec<&String> = args.iter().filter(|arg| !arg.contains('=')).collect();
    let frames = match (value("frames"), files.get(1)) {
        (Some(number), _) => generated(number.parse()?),
        (None, Some(path)) => read_pcap(&std::fs::read(path)?)?,
        (None, None) => return Err("a capture or frames=N is needed".into()),
    };
    let caches = value("caches").unwrap_or_else(|| "frame,key".into());
    let has = |name| caches.split(',').any(|cache| cache == name);
    Ok(Asked {
        flows: std::fs::read_to_string(files.first().ok_or("a flow file is needed")?)?,
        frames,
        time: Duration::from_secs_f64(value("seconds").map_or(Ok(2.0), |s| s.parse())?),
        batch: value("batch").map_or(Ok(32), |s| s.parse())?,
        caches: Caches { frame: has("frame"), key: has("key"), kernel: false },
        rounds: value("rounds").map_or(Ok(1), |s| s.parse())?,
    })
}

fn generated(number: u32) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = (0..number)
        .map(|i| {
            let src = 0x0a00_0000 | i & 0xff_ffff;
            let dst = 0x0a80_0000 | i & 0x7f_ffff;
            let ip = Ipv4::new(src.to_be_bytes().into(), dst.to_be_bytes().into());
            let frame = FrameBuilder::ethernet(
                MacAddr::from_u64(0x0200_0000_0002),
                MacAddr::from_u64(0x0200_0000_0001),
            );
            frame.ipv4(ip).udp(1000, 2000).fill_to(60).build()
        })
        .collect();
    let mut state = 1_u64;
    for index in (1..frames.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        frames.swap(index, (state >> 33) as usize % (index + 1));
    }
    frames
}

fn read_pcap(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut frames = Vec::new();
    let mut rest = bytes.get(24..).ok_or("no pcap")?;
    while let Some((head, body)) = rest.split_first_chunk::<16>() {
        let [.., a, b, c, d, _, _, _, _] = *head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let (frame, behind) = body.split_at_checked(len).ok_or("the pcap is cut off")?;
        frames.push(frame.to_vec());
        rest = behind;
    }
    Ok(frames)
}

/// Packets whose time is taken together. Short enough that most slices are not interrupted by
/// another process.
const SLICE: usize = 2_048;

/// Nanoseconds for a packet.
struct Times {
    /// In the tenth of the slices that were fastest, at most.
    fast: f64,
    /// In the slice in the middle.
    median: f64,
    packets: u64,
}

/// Runs over the frames again and again for the time.
fn run(
    asked: &Asked,
    time: Duration,
    sink: &mut Null,
    mut each: impl FnMut(&mut Vec<PacketBuf>, Nanos, &mut Null),
) -> Times {
    let mut batch = Vec::with_capacity(asked.batch);
    let (begin, mut packets) = (Instant::now(), 0);
    let (mut slices, mut slice_begin, mut slice) = (Vec::new(), own_time_ns(), 0);
    loop {
        for frames in asked.frames.chunks(asked.batch) {
            for frame in frames {
                let mut buf = sink.spare();
                buf.assign(frame);
                batch.push(buf);
            }
            packets += frames.len() as u64;
            slice += frames.len();
            each(&mut batch, Nanos(1 + packets), sink);
            if slice >= SLICE {
                let end = own_time_ns();
                slices.push((end - slice_begin) / slice as f64);
                (slice_begin, slice) = (end, 0);
            }
        }
        if begin.elapsed() >= time {
            break;
        }
    }
    if slices.is_empty() {
        slices.push(begin.elapsed().as_nanos() as f64 / packets.max(1) as f64);
    }
    slices.sort_by(f64::total_cmp);
    let at = |share: usize| slices.get(slices.len() * share / 100).copied().unwrap_or(f64::NAN);
    Times { fast: at(10), median: at(50), packets }
}

/// Processor time of this thread: what other processes take is not counted.
fn own_time_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds since the first call.
fn clock() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Adds groups, meters and flow entries, a line each; how many entries there were.
fn add(dp: &mut Fast, lines: &str) -> Result<usize, Box<dyn Error>> {
    let mut entries = 0;
    for line in lines.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("group_id=") {
            dp.group_mod(&parse_group_mod(line, GroupModCommand::Add)?, Nanos(0))?;
            continue;
        }
        if line.starts_with("meter=") {
            dp.meter_mod(&parse_meter_mod(line, MeterModCommand::Add)?, Nanos(0))?;
            continue;
        }
        let flow_mod = parse_flow_mod(line, FlowModCommand::Add)?;
        dp.flow_mod(&flow_mod, Version::V1_3, Nanos(0))?;
        entries += 1;
    }
    Ok(entries)
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = asked()?;
    let mut dp =
        Fast::new(DatapathConfig { max_entries: 20_000_000, ..DatapathConfig::default() }, 1);
    for number in 1..=4 {
        let desc =
            PortDesc { port_no: PortNo(number), state: PortState::LIVE, ..PortDesc::default() };
        dp.port_set(desc, Nanos(0));
    }
    let begin = Instant::now();
    let entries = add(&mut dp, &asked.flows)?;
    println!(
        "{entries} entries in {:.2} s, {} frames",
        begin.elapsed().as_secs_f64(),
        asked.frames.len()
    );
    dp.forwarder().set_caches(asked.caches);
    dp.forwarder().measure_stages(Some(clock));
    let mut sink = Null::default();
    for _ in 0..asked.rounds {
        let first = run(&asked, Duration::ZERO, &mut sink, |batch, now, sink| {
            dp.process_batch(batch, PortNo(1), now, sink);
        });
        let copy = run(&asked, asked.time / 4, &mut sink, |batch, _, sink| {
            black_box(&mut *batch);
            sink.pool.append(batch);
        });
        let before = dp.forwarder().figures();
        let all = run(&asked, asked.time, &mut sink, |batch, now, sink| {
            dp.process_batch(batch, PortNo(1), now, sink);
        });
        let figures = dp.forwarder().figures();
        let packets = all.packets;
        let own = all.fast - copy.fast;
        println!(
            "{:.2} ns a packet ({:.2} in the median): {:.2} copying, {own:.2} forwarding \
             ({:.1} Mpps); first pass {:.0} ({:.0})",
            all.fast,
            all.median,
            copy.fast,
            1e3 / own,
            first.fast,
            first.median,
        );
        let measured = (figures.stage_packets - before.stage_packets).max(1) as f64;
        for stage in datapath::fast::ForwarderStage::ALL {
            let ns = figures.stage_ns[*stage as usize] - before.stage_ns[*stage as usize];
            print!("  {} {:.2} ns", stage.name(), ns as f64 / measured);
        }
        let share = |now: u64, before: u64| 100.0 * (now - before) as f64 / packets as f64;
        println!(
            "\n  hits: port {:.1} %, frame {:.1} %, key {:.1} %; \
             step by step {:.1} %; programs {}, lines {} of {}",
            share(figures.port_hits, before.port_hits),
            share(figures.frame_hits, before.frame_hits),
            share(figures.key_hits, before.key_hits),
            share(figures.walked, before.walked),
            figures.programs,
            figures.lines_used,
            figures.lines,
        );
    }
    println!("outputs {}, drops {}, packet-ins {}", sink.outputs, sink.drops, sink.packet_ins);
    Ok(())
}
