//! Captures into a FIFO: with a slow reader, without a reader, and with one after another.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use netdev::pcap::Capture;
use netdev::{Port, open_text};
use packet::PacketBuf;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::testbed::until;

fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

fn open_writer(path: &Path) -> Port {
    open_text(&format!("pcap:{}?write=true", path.display())).unwrap()
}

fn open_reader(path: &Path) -> File {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// Reads up to `len` bytes, as many as there are.
fn read(reader: &mut File, len: usize, into: &mut Vec<u8>) -> usize {
    let mut buffer = vec![0; len];
    match reader.read(&mut buffer) {
        Ok(count) => {
            into.extend_from_slice(&buffer[..count]);
            count
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    }
}

fn frame(len: usize) -> PacketBuf {
    PacketBuf::from_slice(&vec![len as u8; len])
}

fn assert_holds(bytes: Vec<u8>, frames: &[PacketBuf]) {
    let capture = Capture::parse(bytes).unwrap();
    assert_eq!(capture.len(), frames.len());
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(capture.record(number).unwrap().frame, frame.bytes(), "record {number}");
    }
}

#[test]
fn a_slow_reader_gets_whole_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let mut reader = open_reader(&path);
    let mut port = open_writer(&path);
    assert!(port.info().link_up);
    let (mut bytes, mut sent, mut refused) = (Vec::new(), Vec::new(), 0);
    for round in 0..400 {
        let burst: Vec<PacketBuf> = (0..8).map(|n| frame(300 + 37 * n + round)).collect();
        let taken = port.tx(&burst).unwrap();
        sent.extend_from_slice(&burst[..taken]);
        refused += burst.len() - taken;
        read(&mut reader, 1_777, &mut bytes);
    }
    assert!(refused > 0, "the reader was not slow");
    // What is left of a torn record is written without another frame.
    until("the reader to be done", || {
        let is_empty = read(&mut reader, 1 << 20, &mut bytes) == 0;
        assert!(port.info().link_up);
        is_empty && Capture::parse(bytes.clone()).is_ok_and(|capture| capture.len() == sent.len())
    });
    assert_holds(bytes, &sent);
    let counters = port.counters();
    assert_eq!((counters.tx_packets, counters.tx_errors), (sent.len() as u64, 0));
}

#[test]
fn each_reader_begins_with_a_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let mut port = open_writer(&path);
    let mut errors = 0;
    for round in 0..2 {
        let info = port.info();
        assert!(!info.link_up && info.exists, "{info:?}");
        assert!(info.notes[0].starts_with("cannot be written: "), "{info:?}");
        assert_eq!(port.tx(&[frame(60)]).unwrap(), 1);
        errors += 1;
        assert_eq!(port.counters().tx_errors, errors);
        let mut reader = open_reader(&path);
        until("the reader to be found", || port.info().link_up);
        let frames = [frame(100 + round), frame(200 + round)];
        assert_eq!(port.tx(&frames).unwrap(), 2);
        let mut bytes = Vec::new();
        until("the records", || read(&mut reader, 1 << 16, &mut bytes) == 0);
        assert_holds(bytes, &frames);
        drop(reader);
        // This frame finds out that the reader has gone.
        assert_eq!(port.tx(&[frame(60)]).unwrap(), 1);
        errors += 1;
    }
    assert_eq!(port.counters().tx_packets, 4);
}
