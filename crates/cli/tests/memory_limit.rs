//! `weir switch` as a program that may not take the memory that its controller asks for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// What the process may map, in kilobytes: some hundred thousand entries in an unoptimized build.
const LIMIT_KB: u32 = 220_000;
/// Entries that need more than the limit.
const ENTRIES: u32 = 1_000_000;
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

struct Switch(Child);

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
    let run = format!(
        "ulimit -v {LIMIT_KB} && exec {} switch --port null:a --control none --listen punix:{}",
        env!("CARGO_BIN_EXE_weir"),
        of.display()
    );
    let child = Command::new("sh").args(["-c", &run]).stderr(Stdio::piped()).spawn().unwrap();
    let mut switch = Switch(child);
    let mut log = BufReader::new(switch.0.stderr.take().unwrap()).lines();
    assert!(log.by_ref().map(Result::unwrap).any(|line| line.contains("ready")));
    let log = std::thread::spawn(move || {
        log.map_while(Result::ok).filter(|line| line.contains("memory is nearly used up")).count()
    });
    let mut controller = Controller(UnixStream::connect(&of).unwrap());
    controller.0.write_all(&message(0, &[])).unwrap();

    let mut rounds = (0..ENTRIES / ROUND).map(|round| round * ROUND..(round + 1) * ROUND);
    let full = rounds.find(|round| controller.add(round.clone()) > 0);
    let full = full.expect("so many entries do not fit");
    assert!(full.start > 10_000, "entries were refused after {}", full.start);
    assert_eq!(controller.add(full.end..full.end + ROUND), ROUND);
    controller.0.write_all(&message(ECHO_REQUEST, b"x")).unwrap();
    assert_eq!(controller.next(), (ECHO_REPLY, b"x".to_vec()));

    // What there was can come back.
    assert_eq!(controller.send(std::iter::once(flow_mod(None))), 0);
    assert_eq!(controller.add(0..10_000), 0);
    drop(switch);
    assert_eq!(log.join().unwrap(), 1, "it is said once");
}
