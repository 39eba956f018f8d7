//! The metrics of every program: its build, and its process in the names that Prometheus' own
//! libraries use.

use std::time::Duration;

use files::proc::{self, ProcFolder};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::{Family, Kind, Labels, MetricRow, Value, table};

/// The process at one moment; it asks the kernel row by row.
struct Process {
    folder: ProcFolder,
    status: String,
}

const ROWS: &[MetricRow<Process>] = &[
    MetricRow::counter("process_cpu_seconds", "Time on a CPU, of all threads.", |_| {
        let time = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?;
        Some(Value::Real(time.as_secs_f64()))
    }),
    MetricRow::gauge("process_resident_memory_bytes", "Memory that is in RAM.", |it| {
        proc::bytes(&it.status, "VmRSS").map(Value::Whole)
    }),
    MetricRow::gauge("process_virtual_memory_bytes", "Address space.", |it| {
        proc::bytes(&it.status, "VmSize").map(Value::Whole)
    }),
    MetricRow::gauge("process_threads", "Threads.", |it| {
        proc::value(&it.status, "Threads")?.parse().ok().map(Value::Whole)
    }),
    MetricRow::gauge("process_open_fds", "Open files.", |it| {
        Some(Value::Whole(it.folder.open_descriptors().ok()? as u64))
    }),
    MetricRow::gauge("process_max_fds", "Files that may be open.", |_| {
        getrlimit(Resource::Nofile).current.map(Value::Whole)
    }),
    MetricRow::gauge("process_start_time_seconds", "The start, since 1970 began.", |it| {
        start_s(&proc::machine("stat").ok()?, &it.folder.read("stat").ok()?).map(Value::Real)
    }),
];

/// The start of a process (proc(5)), of the machine's `stat` and its own.
fn start_s(machine: &str, own: &str) -> Option<f64> {
    let boot: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
    // The second field is the program's name, in brackets, and may hold blanks.
    let ticks: f64 = own.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    Some(boot + ticks / clock_ticks_per_second() as f64)
}

/// The metrics of the process that asks, of this program of Weir.
#[must_use]
pub fn of_process(program: &str) -> Vec<Family> {
    let folder = ProcFolder::own();
    let process = Process { status: folder.read("status").unwrap_or_default(), folder };
    let names = &["program", "version"];
    let help = "1; the program and its version are the labels.";
    let mut build = Family::new(Kind::Gauge, "weir_build_info", help, names);
    build.sample(&[&Labels::new(names, &[&program, &env!("CARGO_PKG_VERSION")])], Value::Whole(1));
    [build].into_iter().chain(table(ROWS, &[], &[(Labels::default(), &process)])).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_process, start_s};
    use crate::{TextFormat, text};

    #[test]
    fn the_process_has_every_value() {
        let text = text(&of_process("test"), TextFormat::Text);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), 8, "{text}");
        let own = "7 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 500 1 1";
        let start = start_s("cpu 1\nbtime 1000\n", own).unwrap();
        assert!((1_000.0..=1_500.0).contains(&start), "{start}");
        assert_eq!(start_s("", own), None);
        assert_eq!(start_s("btime 1", "7 (a"), None);
    }
}
