//! A capture that is written, whole records at a time.
//!
//! While the disk is full, or a FIFO has no reader, the frames are counted as errors, the log has a
//! line, and the port's link is down until they can be written again. Frames that a slow reader
//! leaves no room for are not taken. It must never leave half a record, which would spoil the file.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use packet::PacketBuf;

use super::output::{CaptureBurst, CaptureOutput};
use super::{FIX, info_of};
use crate::counters::{Counted, PortCounters, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::append_record;
use crate::port::{Port, PortDevice, SilentRx, TxQueue};
use crate::port_info::PortInfo;

/// Time between attempts at a full disk or a FIFO without a reader.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Time between lines of the log about it.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Creates the file `name`, or empties it.
pub(super) fn open(name: &str) -> Result<Port, PortError> {
    let failed = |source| PortError::from_io(format!("pcap:{name}"), FIX, source);
    let rx = SilentRx::new().map_err(failed)?;
    let output = CaptureOutput::open(name).map_err(failed)?;
    let counters = Arc::new(PortQueueCounters::default());
    let mut file = PcapFile {
        name: name.to_owned(),
        output,
        records: CaptureBurst::default(),
        fault: None,
        logged_at: None,
    };
    file.begin();
    let file = Arc::new(Mutex::new(file));
    let tx = PcapWriter { file: Arc::clone(&file), counters: Arc::clone(&counters) };
    Ok(Port::new(WriterDevice { file, counters }, rx, tx))
}

/// The file, shared by the transmit queue and the device handle.
#[derive(Debug)]
struct PcapFile {
    name: String,
    output: CaptureOutput,
    records: CaptureBurst,
    fault: Option<Fault>,
    logged_at: Option<Instant>,
}

/// Why the file cannot be written now.
#[derive(Debug)]
struct Fault {
    reason: String,
    tried_at: Instant,
}

impl PcapFile {
    /// Begins the stream of a FIFO that has a reader.
    fn begin(&mut self) {
        if self.output.needs_reader()
            && let Err(error) = self.output.probe()
        {
            self.fail(&error, 0);
        }
    }

    /// Writes frames; what was counted, and how many were taken.
    fn send(&mut self, frames: &[PacketBuf], now: Duration) -> (Counted, usize) {
        let CaptureBurst { bytes, ends } = &mut self.records;
        bytes.clear();
        ends.clear();
        for frame in frames {
            append_record(bytes, now, frame.bytes());
            ends.push(bytes.len());
        }
        match self.output.write(&self.records) {
            Ok(taken) => {
                self.recover();
                (self.count(frames, taken), taken)
            }
            Err(error) => {
                self.fail(&error, frames.len());
                let errors = frames.len() as u64;
                (Counted { errors, ..Counted::default() }, frames.len())
            }
        }
    }

    /// Counts the first frames; those that made no record are errors.
    fn count(&self, frames: &[PacketBuf], taken: usize) -> Counted {
        let mut counted = Counted::default();
        let mut begin = 0;
        for (frame, end) in frames.iter().zip(&self.records.ends).take(taken) {
            if *end > begin {
                counted.frame(frame.len());
            } else {
                counted.errors += 1;
            }
            begin = *end;
        }
        counted
    }

    /// Finishes a torn record; after an error, tries at most once a second whether records can be
    /// written again.
    fn probe(&mut self) {
        let Some(fault) = &mut self.fault else {
            if let Err(error) = self.output.finish_record() {
                self.fail(&error, 0);
            }
            return;
        };
        if fault.tried_at.elapsed() < PROBE_EVERY {
            return;
        }
        fault.tried_at = Instant::now();
        match self.output.probe() {
            Ok(()) => self.recover(),
            Err(error) => fault.reason = error.to_string(),
        }
    }

    fn fail(&mut self, error: &io::Error, frames: usize) {
        // Frames that fail meanwhile do not put the next attempt off.
        let tried_at = self.fault.as_ref().map_or_else(Instant::now, |fault| fault.tried_at);
        self.fault = Some(Fault { reason: error.to_string(), tried_at });
        if self.logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            self.logged_at = Some(Instant::now());
            let port = format!("pcap:{}", self.name);
            tracing::warn!(port, %error, frames, "frames cannot be written; the link is down");
        }
    }

    fn recover(&mut self) {
        if self.fault.take().is_some() {
            tracing::info!(port = format!("pcap:{}", self.name), "frames can be written again");
        }
    }
}

fn lock(file: &Mutex<PcapFile>) -> MutexGuard<'_, PcapFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transmit queue.
#[derive(Debug)]
struct PcapWriter {
    file: Arc<Mutex<PcapFile>>,
    counters: Arc<PortQueueCounters>,
}

impl TxQueue for PcapWriter {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        // A clock before 1970 gives 0.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (counted, taken) = lock(&self.file).send(frames, now);
        self.counters.tx.add(&counted);
        Ok(taken)
    }
}

/// The device handle.
#[derive(Debug)]
struct WriterDevice {
    file: Arc<Mutex<PcapFile>>,
    counters: Arc<PortQueueCounters>,
}

impl PortDevice for WriterDevice {
    fn info(&mut self) -> PortInfo {
        let mut file = lock(&self.file);
        file.probe();
        let note = file.fault.as_ref().map(|fault| format!("cannot be written: {}", fault.reason));
        let info = info_of(&file.name, note.is_none(), note.into_iter().collect());
        PortInfo { receives: false, ..info }
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.read()
    }
}
