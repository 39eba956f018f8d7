//! Programs started by `spawn` and what is left of them when the process that started them is
//! killed: nothing.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use files::proc::ProcFolder;
use netdev::sys::spawn::{Spawn, spawn};

use crate::testbed::until;

const CHILD: &str = "WEIR_TEST_SPAWNED_CHILD";

/// The process of the test below that is killed; by itself it does nothing.
#[test]
fn a_process_that_starts_a_program_and_stays() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    let mut command = Command::new("sleep");
    command.arg("1000");
    // The thread that asks ends; the program must not.
    let asked = std::thread::spawn(|| Spawn::new(command).own_group().spawn().unwrap());
    let mut program = asked.join().unwrap();
    eprintln!("program {}", program.id());
    program.wait().unwrap();
}

/// Whether a process is there and is no zombie, which waits only for the process that has inherited
/// it.
fn runs(pid: u32) -> bool {
    let stat = ProcFolder::of(pid).read("stat").unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with('Z') && !state.starts_with('X')
}

#[test]
fn programs_die_with_the_process_that_started_them() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "spawned::a_process_that_starts_a_program_and_stays"]);
    command.env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = spawn(command, None).unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let pid = stderr.lines().find_map(|line| {
        line.unwrap().split_once("program ").and_then(|(_, pid)| pid.trim().parse().ok())
    });
    let pid = pid.expect("the process prints the number of the program that it has started");
    assert!(runs(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the program's end", || !runs(pid));
}
