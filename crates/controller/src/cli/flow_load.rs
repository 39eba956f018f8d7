//! `weir flow-load`: a controller that loads flow entries into many switches, and says how long
//! that took and what it used of its core.
//!
//! `weir bench controller --bars flow-entries` starts it as a process, so that what is measured is
//! the runtime that every app has. Each list of entries has a barrier behind it, which is awaited,
//! and an entry that a switch refuses ends the program: no figure must stand for less than was
//! asked.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use channel::Endpoint;
use clap::Args;
use files::proc::ProcFolder;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, DatapathId, Field, Instruction, Match, Message, PortNo};

use crate::{AppList, Controller, Error, Handle, HandleError, Options, apps::Idle};

/// Entries of a list, behind which a barrier is awaited.
const LIST: u32 = 1_000;

/// Interval between looks whether all switches have come.
const STEP: Duration = Duration::from_millis(10);

/// Load flow entries into switches, all at the same time, and measure it
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  weir flow-load --listen tcp:127.0.0.1:6653 --switches 100")]
pub struct FlowLoadArgs {
    /// Accept switches here
    #[arg(long, value_name = "ENDPOINT")]
    listen: Endpoint,

    /// Wait for so many switches
    #[arg(long, value_name = "COUNT", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    switches: u32,

    /// Flow entries of all switches together; each gets an equal share
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    entries: u32,

    /// Seconds that the switches may take to connect
    #[arg(long, value_name = "S", default_value_t = 120)]
    connect_limit: u64,
}

/// Why entries were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum FlowLoadError {
    /// The controller.
    #[error(transparent)]
    Controller(#[from] Error),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Not all switches connected.
    #[error("{came} of {wanted} switches connected within {limit_s} s")]
    Absent {
        /// The number that did.
        came: usize,
        /// The number that is asked for.
        wanted: u32,
        /// Seconds.
        limit_s: u64,
    },
    /// A switch.
    #[error("switch {dpid}: {source}")]
    Switch {
        /// The switch.
        dpid: DatapathId,
        /// The error.
        source: HandleError,
    },
    /// A task ended by a panic.
    #[error("a task: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Loads the entries and prints a line of JSON.
///
/// # Errors
/// [`FlowLoadError`].
pub fn run(args: &FlowLoadArgs) -> Result<(), FlowLoadError> {
    let options = Options { listen: vec![args.listen.clone()], ..Options::default() };
    let controller = Controller::new(AppList::one(|| Idle), options)?;
    let running = controller.start(|line| tracing::info!("{line}"))?;
    print_line(format_args!("listening on {}", args.listen));
    let handle = running.handle().clone();
    let begun = Instant::now();
    while handle.switches().len() < args.switches as usize {
        if begun.elapsed().as_secs() >= args.connect_limit {
            let (came, limit_s) = (handle.switches().len(), args.connect_limit);
            return Err(FlowLoadError::Absent { came, wanted: args.switches, limit_s });
        }
        std::thread::sleep(STEP);
    }
    print_line(format_args!("{} switches are ready", args.switches));
    let each = args.entries / args.switches;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (used_before, begun) = (cpu_s()?, Instant::now());
    runtime.block_on(load_all(&handle, each))?;
    let (seconds, used) = (begun.elapsed().as_secs_f64(), cpu_s()? - used_before);
    let loaded = each * args.switches;
    writeln!(
        files::stdout(),
        "{{\"entries\":{loaded},\"switches\":{},\"seconds\":{seconds:.6},\
         \"controller_core\":{:.6}}}",
        args.switches,
        used / seconds,
    )?;
    drop(runtime);
    running.stop()?;
    Ok(())
}

/// Prints a line for the program that waits for it, which may have gone.
fn print_line(line: std::fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Loads every switch, all at the same time.
async fn load_all(handle: &Handle, each: u32) -> Result<(), FlowLoadError> {
    let mut tasks = tokio::task::JoinSet::new();
    for switch in handle.switches() {
        tasks.spawn(load(handle.clone(), switch.dpid, each));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn load(handle: Handle, dpid: DatapathId, entries: u32) -> Result<(), FlowLoadError> {
    let mut next = 0;
    while next < entries {
        let end = entries.min(next + LIST);
        let list = (next..end).map(entry).collect();
        let applied = handle.apply(dpid, list).await;
        applied.map_err(|source| FlowLoadError::Switch { dpid, source })?;
        next = end;
    }
    Ok(())
}

/// An entry for datagrams to an address of its own.
fn entry(number: u32) -> Message {
    let address = 0x0a00_0000_u32.wrapping_add(number);
    let matching =
        Match::any().with(Field::EthType, 0x0800).with(Field::Ipv4Dst, u128::from(address));
    Message::FlowMod(FlowMod {
        matching,
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

/// Seconds that all threads of this process have run.
fn cpu_s() -> io::Result<f64> {
    let threads = ProcFolder::own().threads()?;
    let ran = threads.iter().filter_map(|(_, thread)| Some(thread.sched_time()?.ran_ns));
    Ok(ran.sum::<u64>() as f64 / 1e9)
}
