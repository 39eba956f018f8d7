//! How long a controller takes to load flow entries into many switches, and what it uses of its
//! core meanwhile.
//!
//!     cargo run --release -p weir-controller --example flow_load -- ENDPOINT SWITCHES ENTRIES
//!
//! It listens on ENDPOINT (`tcp:127.0.0.1:6653`) until so many switches are ready, sends each its
//! share of ENTRIES in lists of a thousand, each list followed by a barrier that is awaited, and
//! prints a line of JSON. An entry that a switch refuses ends it. The switches are real ones, which
//! `docs/bench.md` shows, since they are what should be the limit.

use std::error::Error;
use std::time::{Duration, Instant};

use controller::{App, AppList, Controller, Handle, Options};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, DatapathId, Field, Instruction, Match, Message, PortNo};

/// Entries of a list, behind which a barrier is awaited.
const LIST: u32 = 1_000;

/// How long the switches may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(120);

type Failure = Box<dyn Error + Send + Sync>;

/// Leaves the switches alone: what they get comes from outside of the apps.
struct Idle;

impl App for Idle {}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: flow_load ENDPOINT SWITCHES ENTRIES";
    let endpoint = words.next().ok_or(usage)?.parse()?;
    let switches: u32 = words.next().ok_or(usage)?.parse()?;
    let entries: u32 = words.next().ok_or(usage)?.parse()?;
    let options = Options { listen: vec![endpoint], ..Options::default() };
    let controller = Controller::new(AppList::one(|| Idle), options)?;
    let running = controller.start(|line| eprintln!("{line}"))?;
    let handle = running.handle().clone();
    let begun = Instant::now();
    while handle.switches().len() < switches as usize {
        if begun.elapsed() > CONNECT_LIMIT {
            return Err(format!("{} of {switches} switches came", handle.switches().len()).into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (used_before, begun) = (cpu_s()?, Instant::now());
    runtime.block_on(load_all(&handle, entries / switches.max(1)))?;
    let (seconds, used) = (begun.elapsed().as_secs_f64(), cpu_s()? - used_before);
    let loaded = entries / switches.max(1) * switches;
    println!(
        "{{\"row\":\"flow-entries\",\"value\":{:.0},\"unit\":\"entries/s\",\"entries\":{loaded},\
         \"switches\":{switches},\"seconds\":{seconds:.3},\"controller_core\":{:.3}}}",
        f64::from(loaded) / seconds,
        used / seconds,
    );
    drop(runtime);
    running.stop()?;
    Ok(())
}

/// Loads every switch, all at the same time.
async fn load_all(handle: &Handle, each: u32) -> Result<(), Failure> {
    let mut tasks = tokio::task::JoinSet::new();
    for switch in handle.switches() {
        tasks.spawn(load(handle.clone(), switch.dpid, each));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn load(handle: Handle, dpid: DatapathId, entries: u32) -> Result<(), Failure> {
    let mut next = 0;
    while next < entries {
        let end = entries.min(next + LIST);
        let list = (next..end).map(entry).collect();
        handle.apply(dpid, list).await.map_err(|error| format!("switch {dpid}: {error}"))?;
        next = end;
    }
    Ok(())
}

/// An entry for datagrams to an address of its own.
fn entry(number: u32) -> Message {
    let matching = Match::any()
        .with(Field::EthType, 0x0800)
        .with(Field::Ipv4Dst, u128::from(0x0a00_0000 | number));
    Message::FlowMod(FlowMod {
        matching,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

/// Seconds that all threads of this process have run.
fn cpu_s() -> Result<f64, Failure> {
    let mut ran_ns = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        ran_ns += text.split_ascii_whitespace().next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(ran_ns as f64 / 1e9)
}
