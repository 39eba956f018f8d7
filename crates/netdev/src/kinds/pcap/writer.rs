//! A capture file that is written, whole records at a time.
//!
//! Where the disk is full the frames are counted as errors, the log has a line, and the port's link
//! is down until there is room again. It must never leave half a record, which would spoil the
//! file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use packet::PacketBuf;

use super::{FIX, info_of};
use crate::counters::{Counted, PortCounters, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::{append_record, file_header};
use crate::port::{Port, PortDevice, PortInfo, SilentRx, TxQueue};

/// Bytes that must find room before a full disk is taken for one with room: several bursts.
const PROBE_LEN: usize = 256 * 1_024;
/// How often a full disk is tried.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How often the log has a line about it.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Creates the file `name`, or empties it.
pub(super) fn open(name: &str) -> Result<Port, PortError> {
    let failed = |source| PortError::from_io(format!("pcap:{name}"), FIX, source);
    let rx = SilentRx::new().map_err(failed)?;
    let mut file = File::create(name).map_err(failed)?;
    file.write_all(&file_header()).map_err(failed)?;
    let counters = Arc::new(PortQueueCounters::default());
    let file = Arc::new(Mutex::new(PcapFile {
        name: name.to_owned(),
        file,
        whole_len: file_header().len() as u64,
        buffer: Vec::new(),
        fault: None,
        logged_at: None,
    }));
    let tx = PcapWriter { file: Arc::clone(&file), counters: Arc::clone(&counters) };
    Ok(Port::new(WriterDevice { file, counters }, rx, tx))
}

/// The file, shared by the transmit queue and the device handle.
#[derive(Debug)]
struct PcapFile {
    name: String,
    file: File,
    /// Bytes up to the end of the last whole record.
    whole_len: u64,
    buffer: Vec<u8>,
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
    fn send(&mut self, frames: &[PacketBuf], now: Duration) -> Counted {
        self.buffer.clear();
        let mut counted = Counted::default();
        for frame in frames {
            if append_record(&mut self.buffer, now, frame.bytes()) {
                counted.frame(frame.len());
            } else {
                counted.errors += 1;
            }
        }
        match self.write() {
            Ok(()) => {
                self.whole_len += self.buffer.len() as u64;
                self.recover();
                counted
            }
            Err(error) => {
                self.fail(&error, frames.len());
                Counted { errors: frames.len() as u64, ..Counted::default() }
            }
        }
    }

    /// Writes the buffer behind the last whole record, or nothing.
    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer).or_else(|error| {
            self.rewind()?;
            Err(error)
        })
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole_len)?;
        self.file.seek(SeekFrom::Start(self.whole_len)).map(drop)
    }

    /// Whether there is room again, at most once a second.
    fn probe(&mut self) {
        let Some(fault) = &mut self.fault else { return };
        if fault.tried_at.elapsed() < PROBE_EVERY {
            return;
        }
        fault.tried_at = Instant::now();
        self.buffer.clear();
        self.buffer.resize(PROBE_LEN, 0);
        if self.write().and_then(|()| self.rewind()).is_ok() {
            self.recover();
        }
    }

    fn fail(&mut self, error: &io::Error, frames: usize) {
        self.fault = Some(Fault { reason: error.to_string(), tried_at: Instant::now() });
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
        self.counters.tx.add(&lock(&self.file).send(frames, now));
        Ok(frames.len())
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
        info_of(&file.name, note.is_none(), note.into_iter().collect())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.read()
    }
}
