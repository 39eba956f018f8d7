//! The cost of a thousand bridges in one process: `weir switch` with 1, 10, 100 and 1,000 of them,
//! each with two ports and a controller of its own, plain and with TLS.
//!
//!     cargo build --release -p weir-cli
//!     cargo run --release -p weir-switch --example many_bridges -- [null|tap] [COUNT...]
//!
//! The first bridge has memory ports, whose other ends this process holds; the others have null
//! ports, or TAP devices (root). This process also is all controllers: it accepts a connection from
//! each bridge, installs two flow entries in each, and is silent then. It prints the seconds until
//! the switch says `ready` and until all bridges are connected, what the switch takes of a core
//! over ten silent seconds, its memory, and the delay of single frames through the first bridge,
//! 1 ms apart, so that each wakes the worker. It must not be taken for a comparison of switches.

mod controllers;
mod switch;
mod wire;

use std::error::Error;
use std::time::{Duration, Instant};

use self::controllers::Controllers;
use self::switch::Switch;
use self::wire::{Delays, Wire};

/// How long the switch is left alone while its CPU time is taken.
const SILENCE: Duration = Duration::from_secs(10);

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What is wanted.
struct Wishes {
    with_tap: bool,
    counts: Vec<usize>,
}

impl Wishes {
    fn read() -> Result<Self> {
        let mut wishes = Self { with_tap: false, counts: Vec::new() };
        for word in std::env::args().skip(1) {
            match word.as_str() {
                "null" => wishes.with_tap = false,
                "tap" => wishes.with_tap = true,
                count => wishes.counts.push(count.parse()?),
            }
        }
        if wishes.counts.is_empty() {
            wishes.counts = vec![1, 10, 100, 1_000];
        }
        Ok(wishes)
    }
}

fn main() -> Result<()> {
    files::raise_open_files()?;
    let wishes = Wishes::read()?;
    println!(
        "| bridges | connection | ready, s | all connected, s | CPU of {} silent s, % | memory, \
         MiB | delay p50, us | p99, us | p50 to that of {} |",
        SILENCE.as_secs(),
        wishes.counts.first().copied().unwrap_or(1),
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for is_tls in [false, true] {
        let mut first = None;
        for count in &wishes.counts {
            let row = measure(*count, is_tls, wishes.with_tap)?;
            let base = *first.get_or_insert(row.delays.p50_us);
            println!(
                "| {count} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {:.2} |",
                if is_tls { "TLS" } else { "plain" },
                row.ready_s,
                row.connected_s,
                row.cpu_percent,
                row.memory_mib,
                row.delays.p50_us,
                row.delays.p99_us,
                row.delays.p50_us / base,
            );
        }
    }
    Ok(())
}

/// A row of the table.
struct Row {
    ready_s: f64,
    connected_s: f64,
    cpu_percent: f64,
    memory_mib: f64,
    delays: Delays,
}

fn measure(count: usize, is_tls: bool, with_tap: bool) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let controllers = Controllers::start(folder.path(), is_tls)?;
    let mut wire = Wire::open(folder.path())?;
    let begun = Instant::now();
    let switch = Switch::start(folder.path(), &controllers, count, with_tap)?;
    let ready_s = begun.elapsed().as_secs_f64();
    controllers.wait_for(count)?;
    let connected_s = begun.elapsed().as_secs_f64();
    // What connecting has left to do is not what silence costs.
    std::thread::sleep(Duration::from_secs(1));
    let (before, since) = (switch.cpu_s()?, Instant::now());
    std::thread::sleep(SILENCE);
    let cpu_percent = 100.0 * (switch.cpu_s()? - before) / since.elapsed().as_secs_f64();
    let memory_mib = switch.memory_mib()?;
    let delays = wire.delays()?;
    if controllers.up() != count {
        return Err(format!("{} of {count} bridges are still connected", controllers.up()).into());
    }
    Ok(Row { ready_s, connected_s, cpu_percent, memory_mib, delays })
}
