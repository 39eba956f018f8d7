//! Interrupting the lab: whenever it happens, no program, namespace or file of the run is left.
//!
//! The programs of a run inherit a marker in their environment; a process that still carries it
//! after the lab has ended is what this test looks for. Network namespaces of a run have no name
//! and live by its descriptors and processes only, so with those they are gone.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{marked_processes, network_devices};

const MARKER: &str = "WEIR_TEST_TEARDOWN";
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a run in `dir` and returns when it has announced a step that holds `step`.
fn run_until(step: &str, marker: &str, dir: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["lab", "run", "packet-in-hub", "--quick", "--starts", "50", "--out"])
        .arg(dir.join("out"))
        .env(MARKER, marker)
        .env("TMPDIR", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the weir binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let announced = lines.by_ref().map_while(Result::ok).any(|line| line.contains(step));
    assert!(announced, "the run ended before the step {step:?}");
    // Keeps reading, so that the lab never writes into a closed pipe.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn signal(child: &Child, signal: &str) {
    let id = child.id();
    let order = format!("kill -s {signal} {id} && {{ kill -s {signal} {id} || true; }}");
    let done = Command::new("sh").args(["-c", &order]).stderr(Stdio::null()).status();
    assert!(done.is_ok_and(|status| status.success()), "kill -s {signal}");
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status;
        }
        assert!(start.elapsed() < LIMIT, "the lab does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn assert_nothing_runs(marker: &str) {
    let start = Instant::now();
    loop {
        let left = marked_processes(MARKER, marker);
        if left.is_empty() {
            break;
        }
        assert!(start.elapsed() < LIMIT, "still there: {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root"]
fn an_interrupt_at_any_point_leaves_nothing_behind() {
    let before = network_devices();
    for (index, step) in ["start", "RTT by ping", "TCP", "Packet rate"].into_iter().enumerate() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let marker = format!("int-{}-{index}", std::process::id());
        let mut lab = run_until(step, &marker, dir.path());
        // Twice at once, as `timeout` does it: the second is no wish to end without clearing up.
        signal(&lab, if index % 2 == 0 { "INT" } else { "TERM" });
        assert_eq!(wait(&mut lab).code(), Some(130), "at {step:?}");
        assert_nothing_runs(&marker);
        let left: Vec<_> = std::fs::read_dir(dir.path())
            .expect("the folder is there")
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| name != "out")
            .collect();
        assert!(left.is_empty(), "at {step:?}: {left:?}");
    }
    assert_eq!(network_devices(), before);
}

#[test]
#[ignore = "needs root"]
fn a_killed_lab_takes_its_programs_along() {
    let before = network_devices();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let marker = format!("kill-{}", std::process::id());
    let mut lab = run_until("TCP", &marker, dir.path());
    signal(&lab, "KILL");
    assert_eq!(wait(&mut lab).code(), None, "killed by a signal");
    assert_nothing_runs(&marker);
    assert_eq!(network_devices(), before);
}
