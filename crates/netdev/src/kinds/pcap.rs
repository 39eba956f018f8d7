//! `pcap`: a capture file, received frame by frame once or in a loop, or written.
//!
//! A port that reads takes what is sent to it and counts it as dropped; a port that writes receives
//! nothing. Times in the file are not waited for: frames come as fast as they are asked for, or in
//! a loop at a rate.

mod paced;
mod replay;

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use packet::{Batch, PacketBuf};

use crate::error::PortError;
use crate::pcap::{Capture, append_record, file_header};
use crate::port::{Port, PortCounters, PortInfo, made_up_mac};
use crate::spec::PortSpec;
use crate::sys::event::WakeEvent;
use paced::{NUMBER_LEN, PacedReplay, ReplayOptions, ReplayRate};
use replay::Replay;

/// Frames that wait at a rate, unless told: what network cards have at most.
const SLOTS: u32 = 4_096;

const FIX: &str = "choose a file that you may open";

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    let write = spec.flag("write", false)?;
    let repeat = spec.flag("loop", false)?;
    if write && repeat {
        return Err(spec.bad_value("loop", "loop=true or write=true, not both").into());
    }
    let options = options(spec, repeat)?;
    let name = spec.name();
    let failed = |source| PortError::from_io(format!("pcap:{name}"), FIX, source);
    let quiet = WakeEvent::new().map_err(failed)?;
    if write {
        let mut file = File::create(name).map_err(failed)?;
        file.write_all(&file_header()).map_err(failed)?;
        let good_len = file_header().len() as u64;
        let common = PcapCommon { name: name.to_owned(), quiet, counters: PortCounters::default() };
        return Ok(Box::new(PcapWriter { common, file, good_len, buffer: Vec::new() }));
    }
    let bytes =
        files::read(name.as_ref(), files::CAPTURE_MAX).map_err(|error| failed(error.into()))?;
    let capture = Capture::parse(bytes).map_err(|error| PortError::Format {
        name: name.to_owned(),
        offset: error.offset as u64,
        reason: error.reason,
    })?;
    let common = PcapCommon { name: name.to_owned(), quiet, counters: PortCounters::default() };
    if repeat {
        let replay = Replay::new(common, &capture);
        if let (Some(at), Some(shortest)) = (options.number_at, replay.shortest())
            && shortest < at + NUMBER_LEN
        {
            let allowed = format!("at most {}", shortest.saturating_sub(NUMBER_LEN));
            return Err(spec.bad_value("number", &allowed).into());
        }
        let is_plain = options.pace.is_none() && options.number_at.is_none();
        if is_plain {
            return Ok(Box::new(replay));
        }
        return Ok(Box::new(PacedReplay::new(replay, options)));
    }
    Ok(Box::new(PcapReader { common, capture, next: 0 }))
}

/// How the frames of a loop come.
fn options(spec: &PortSpec, repeat: bool) -> Result<ReplayOptions, PortError> {
    for option in ["rate", "slots", "number"] {
        let is_alone = option == "slots" && spec.option("rate").is_none();
        if spec.option(option).is_some() && (!repeat || is_alone) {
            let allowed = if repeat { "it with rate" } else { "it with loop=true" };
            return Err(spec.bad_value(option, allowed).into());
        }
    }
    let rate = spec.number("rate", 1..=1_000_000_000)?;
    let slots = spec.number("slots", 1..=1 << 30)?.unwrap_or(SLOTS);
    let number_at = spec.number("number", 0..=u16::MAX.into())?;
    Ok(ReplayOptions {
        pace: rate.map(|rate| ReplayRate::new(rate, slots)),
        number_at: number_at.map(|at| at as usize),
    })
}

/// What both directions have.
#[derive(Debug)]
struct PcapCommon {
    name: String,
    /// Never rung: to sleep on when there is nothing to be received any more.
    quiet: WakeEvent,
    counters: PortCounters,
}

impl PcapCommon {
    fn info(&self, link_up: bool, notes: Vec<String>) -> PortInfo {
        PortInfo {
            name: self.name.clone(),
            kind: "pcap",
            mac: made_up_mac(&self.name),
            mtu: u16::MAX.into(),
            link_up,
            speed_bps: 0,
            full_duplex: Some(true),
            exists: true,
            notes,
        }
    }

    /// [`PortInfo`] of a file that is read, with the number of incomplete records.
    fn reader_info(&self) -> PortInfo {
        let cut = self.counters.rx_errors;
        let note = format!("{cut} records were cut when captured, and skipped");
        self.info(true, if cut > 0 { vec![note] } else { Vec::new() })
    }
}

/// A capture file that is received once.
#[derive(Debug)]
struct PcapReader {
    common: PcapCommon,
    capture: Capture,
    next: usize,
}

impl PcapReader {
    fn is_at_end(&self) -> bool {
        self.next >= self.capture.len()
    }
}

impl Port for PcapReader {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let mut received = 0;
        while received < max {
            let Some(record) = self.capture.record(self.next) else { break };
            self.next += 1;
            // A frame that was cut when captured is not the frame that was on the wire.
            if record.frame.len() < record.wire_len as usize || record.frame.is_empty() {
                self.common.counters.rx_errors += 1;
                continue;
            }
            batch.push_slice(record.frame);
            self.common.counters.count_rx(record.frame.len());
            received += 1;
        }
        Ok(received)
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        self.common.counters.tx_drops += frames.len() as u64;
        Ok(frames.len())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        if self.is_at_end() { Some(self.common.quiet.fd()) } else { None }
    }

    fn info(&mut self) -> PortInfo {
        self.common.reader_info()
    }

    fn counters(&mut self) -> PortCounters {
        self.common.counters
    }
}

/// A capture file that is written, whole records at a time.
#[derive(Debug)]
struct PcapWriter {
    common: PcapCommon,
    file: File,
    /// Bytes of the file up to the end of the last whole record.
    good_len: u64,
    buffer: Vec<u8>,
}

impl PcapWriter {
    /// A disk that is full must not leave half a record, which would spoil the file.
    fn write(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.buffer);
        if let Err(error) = written {
            self.file.set_len(self.good_len)?;
            self.file.seek(SeekFrom::Start(self.good_len))?;
            return Err(error);
        }
        self.good_len += self.buffer.len() as u64;
        Ok(())
    }
}

impl Port for PcapWriter {
    fn rx(&mut self, _batch: &mut Batch, _max: usize) -> Result<usize, PortError> {
        Ok(0)
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        // A clock before 1970 gives 0.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.buffer.clear();
        let mut sent = PortCounters::default();
        for frame in frames {
            if append_record(&mut self.buffer, now, frame.bytes()) {
                sent.count_tx(frame.len());
            } else {
                sent.tx_errors += 1;
            }
        }
        self.write().map_err(|source| {
            PortError::from_io(format!("writing pcap:{}", self.common.name), FIX, source)
        })?;
        let counters = &mut self.common.counters;
        counters.tx_packets += sent.tx_packets;
        counters.tx_bytes += sent.tx_bytes;
        counters.tx_errors += sent.tx_errors;
        Ok(frames.len())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.common.quiet.fd())
    }

    fn info(&mut self) -> PortInfo {
        self.common.info(true, Vec::new())
    }

    fn counters(&mut self) -> PortCounters {
        self.common.counters
    }
}
