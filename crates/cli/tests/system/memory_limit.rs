//! `weir switch` as a program that may not take the memory that its controller asks for.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Memory that the process may map beside that of its start, in kilobytes: the reserve, some ten
/// thousand entries in an unoptimized build, and a heap of the allocator more than was measured.
const ROOM_KB: u64 = 160_000;
/// Entries that need more than the room.
const ENTRIES: u32 = 2_000_000;
/// Flow-mods between two barriers.
const ROUND: u32 = 2_000;

const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const FLOW_MOD: u8 = 14;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;
/// `OFPET_FLOW_MOD_FAILED`, `OFPFMFC_TABLE_FULL`.
const TABLE_FULL: [u8; 4] = [0, 5, 0, 1];

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + body.len()).unwrap();
    [&[4, kind], len.to_be_bytes().as_slice(), &[0, 0, 0, 9], body].concat()
}

/// An add of an entry of a destination address, or a delete of all entries.
fn flow_mod(add: Option<u32>) -> Vec<u8> {
    let (table, command) = if add.is_some() { (0, 0) } else { (0xff, 3) };
    let mut body = vec![0; 16];
    body.extend([table, command, 0, 0, 0, 0, 0, 1]);
    body.extend([0xff; 12]);
    body.extend([0; 4]);
    match add {
        Some(number) => {
            body.extend([0, 1, 0, 14, 0x80, 0, 6, 6, 2, 0]);
            body.extend(number.to_be_bytes());
            body.extend([0, 0]);
        }
        None => body.extend([0, 1, 0, 4, 0, 0, 0, 0]),
    }
    message(FLOW_MOD, &body)
}

struct Controller(UnixStream);

impl Controller {
    /// The next message that is no echo request: its type and body.
    fn next(&mut self) -> (u8, Vec<u8>) {
        loop {
            let mut header = [0; 8];
            self.0.read_exact(&mut header).expect("the switch lives");
            let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let mut body = vec![0; len - 8];
            self.0.read_exact(&mut body).unwrap();
            if header[1] != ECHO_REQUEST {
                return (header[1], body);
            }
            self.0.write_all(&message(ECHO_REPLY, &body)).unwrap();
        }
    }

    /// Sends messages and a barrier; how many were refused, each because the table is full.
    fn send(&mut self, messages: impl Iterator<Item = Vec<u8>>) -> u32 {
        let mut bytes: Vec<u8> = messages.flatten().collect();
        bytes.extend(message(BARRIER_REQUEST, &[]));
        self.0.write_all(&bytes).unwrap();
        let mut refused = 0;
        loop {
            match self.next() {
                (ERROR, body) => {
                    assert_eq!(body[..4], TABLE_FULL);
                    refused += 1;
                }
                (BARRIER_REPLY, _) => return refused,
                (_, _) => {}
            }
        }
    }

    fn add(&mut self, entries: std::ops::Range<u32>) -> u32 {
        self.send(entries.map(|number| flow_mod(Some(number))))
    }
}

type Log = std::io::Lines<BufReader<std::process::ChildStderr>>;

struct Switch(Child);

impl Switch {
    /// Starts a switch that may map so many kilobytes; with the rest of its log.
    fn start(listen: &Path, limit_kb: &str) -> (Self, Log) {
        let run = format!(
            "ulimit -v {limit_kb} && exec {} switch --port null:a --control none --listen punix:{}",
            env!("CARGO_BIN_EXE_weir"),
            listen.display()
        );
        let child = Command::new("sh").args(["-c", &run]).stderr(Stdio::piped()).spawn().unwrap();
        let mut switch = Self(child);
        let mut log = BufReader::new(switch.0.stderr.take().unwrap()).lines();
        assert!(log.by_ref().map(Result::unwrap).any(|line| line.contains("ready")));
        (switch, log)
    }

    /// Memory that it maps, in kilobytes.
    fn mapped_kb(&self) -> u64 {
        files::proc::ProcFolder::of(self.0.id()).memory("VmSize").unwrap() / 1_024
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _already_gone = self.0.wait();
    }
}

#[test]
fn a_switch_whose_memory_is_limited_refuses_entries_and_lives() {
    let dir = tempfile::tempdir().unwrap();
    let of = dir.path().join("of");
    let (unlimited, _) = Switch::start(&dir.path().join("unlimited"), "unlimited");
    let limit_kb = unlimited.mapped_kb() + ROOM_KB;
    drop(unlimited);
    let (switch, log) = Switch::start(&of, &limit_kb.to_string());
    let log = std::thread::spawn(move || {
        log.map_while(Result::ok).filter(|line| line.contains("memory is nearly used up")).count()
    });
    let mut controller = Controller(UnixStream::connect(&of).unwrap());
    controller.0.write_all(&message(0, &[])).unwrap();

    let mut rounds = (0..ENTRIES / ROUND).map(|round| round * ROUND..(round + 1) * ROUND);
    let full = rounds.find(|round| controller.add(round.clone()) > 0);
    let full = full.expect("so many entries do not fit");
    assert!(full.start > 10_000, "entries were refused after {}", full.start);
    // A worker may yet free the smaller of two tables, and some more entries fit.
    assert!(rounds.any(|round| controller.add(round) == ROUND), "all of a round are refused");
    controller.0.write_all(&message(ECHO_REQUEST, b"x")).unwrap();
    assert_eq!(controller.next(), (ECHO_REPLY, b"x".to_vec()));

    // What there was can come back.
    assert_eq!(controller.send(std::iter::once(flow_mod(None))), 0);
    assert_eq!(controller.add(0..10_000), 0);
    drop(switch);
    assert_eq!(log.join().unwrap(), 1, "it is said once");
}
