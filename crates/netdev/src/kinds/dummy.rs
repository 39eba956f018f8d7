//! `dummy`: a port without a device, for tests of a switch. It receives what a command puts there,
//! and what it sends is counted, and written to a file where that is asked for.
//!
//! Open vSwitch's suites have ports of this kind; addresses and limits are those of theirs.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use openflow::MacAddr;
use packet::header::ethernet::HEADER_LEN;
use packet::header::vlan::TAG_LEN;
use packet::{Batch, PacketBuf};

use crate::counters::{Counted, PortCounters, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::{append_record, file_header};
use crate::port::{Port, PortDevice, RxQueue, TxQueue};
use crate::port_info::PortInfo;
use crate::spec::{KindRow, PortSpec, by_name, no_file, option};
use crate::sys::event::WakeEvent;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "dummy",
    name_hint: "NAME",
    help: "no device: for tests of weir vswitchd by ovs-appctl netdev-dummy/receive",
    options: &[
        option("mac", "ADDRESS", "its Ethernet address; else aa:55:aa:55:00:00 and following"),
        option("mtu", "1500", "the longest payload that it sends; 68 to 65521"),
        option("rx_pcap", "FILE", "a capture file for what it receives"),
        option("tx_pcap", "FILE", "a capture file for what it sends"),
    ],
    exclusive: by_name,
    file_use: no_file,
    rights: &[],
    open,
};

/// The first three bytes of addresses that are not set, of which the last three count up.
const ADDRESSES: [u8; 3] = [0xaa, 0x55, 0xaa];
static NEXT_ADDRESS: AtomicU32 = AtomicU32::new(0x55_0000);

/// Frames that wait to be received.
const FRAMES_MAX: usize = 1_000;

/// All ports that are open, by name.
static DUMMIES: Mutex<BTreeMap<String, Arc<DummyPort>>> = Mutex::new(BTreeMap::new());

fn dummies() -> MutexGuard<'static, BTreeMap<String, Arc<DummyPort>>> {
    DUMMIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there was any port of the kind.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// A dummy port, for whoever puts frames there.
#[derive(Debug)]
pub struct DummyPort {
    name: String,
    mac: [u8; 6],
    mtu: u32,
    is_up: AtomicBool,
    inbox: Mutex<VecDeque<PacketBuf>>,
    wake: WakeEvent,
    counters: PortQueueCounters,
    received: Option<Mutex<File>>,
    sent: Option<Mutex<File>>,
}

impl DummyPort {
    /// Whether the process has had one. Then it is a test, whose packets are as short as they came
    /// where they leave: dummies carry them.
    #[must_use]
    pub fn is_used() -> bool {
        IS_USED.load(Ordering::Relaxed)
    }

    /// The open port of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<Arc<Self>> {
        dummies().get(name).cloned()
    }

    fn inbox(&self) -> MutexGuard<'_, VecDeque<PacketBuf>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a frame where the port receives it; false where too many wait already.
    #[must_use]
    pub fn put(&self, frame: &[u8]) -> bool {
        let mut inbox = self.inbox();
        if inbox.len() >= FRAMES_MAX {
            return false;
        }
        inbox.push_back(PacketBuf::from_slice(frame));
        self.wake.ring();
        drop(inbox);
        capture(self.received.as_ref(), frame);
        true
    }

    /// Whether no frame waits to be received.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.inbox().is_empty()
    }
}

/// Appends a frame to a capture file, where there is one.
fn capture(file: Option<&Mutex<File>>, frame: &[u8]) {
    let Some(file) = file else { return };
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut record = Vec::new();
    append_record(&mut record, time, frame);
    let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&record);
    if let Err(error) = written {
        tracing::warn!(%error, "a capture of a dummy port is not written");
    }
}

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let name = spec.name();
    let failed = |source| PortError::Io { what: format!("dummy:{name}"), source };
    let mac = spec.option("mac").map(str::parse::<MacAddr>).transpose();
    let mac = mac.map_err(|_| spec.bad_value("mac", "an address, as 02:00:00:00:00:01"))?;
    let file = |option: &str| -> Result<Option<Mutex<File>>, PortError> {
        let Some(path) = spec.option(option) else { return Ok(None) };
        let make = || -> io::Result<File> {
            let mut file = File::create(path)?;
            file.write_all(&file_header())?;
            Ok(file)
        };
        let failed = |source| PortError::from_io(path.to_owned(), "choose another file", source);
        Ok(Some(Mutex::new(make().map_err(failed)?)))
    };
    let (received, sent) = (file("rx_pcap")?, file("tx_pcap")?);
    let mut all = dummies();
    if all.contains_key(name) {
        return Err(PortError::InUse(format!("dummy:{name}")));
    }
    let fresh = || {
        let [_, low @ ..] = NEXT_ADDRESS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let ([a, b, c], [d, e, f]) = (ADDRESSES, low);
        [a, b, c, d, e, f]
    };
    let port = Arc::new(DummyPort {
        name: name.to_owned(),
        mac: mac.map_or_else(fresh, |mac| mac.0),
        mtu: spec.number("mtu", 68..=65_521)?.unwrap_or(1_500),
        is_up: AtomicBool::new(true),
        inbox: Mutex::default(),
        wake: WakeEvent::new().map_err(failed)?,
        counters: PortQueueCounters::default(),
        received,
        sent,
    });
    all.insert(name.to_owned(), Arc::clone(&port));
    IS_USED.store(true, Ordering::Relaxed);
    let (rx, tx) = (DummyRx(Arc::clone(&port)), DummyTx(Arc::clone(&port)));
    Ok(Port::new(DummyDevice(port), rx, tx))
}

/// The receive queue.
#[derive(Debug)]
struct DummyRx(Arc<DummyPort>);

impl RxQueue for DummyRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let mut counted = Counted::default();
        let mut inbox = self.0.inbox();
        if inbox.is_empty() {
            self.0.wake.drain();
            return Ok(0);
        }
        let taken = inbox.len().min(max);
        for frame in inbox.drain(..taken) {
            counted.frame(frame.len());
            batch.push(frame);
        }
        drop(inbox);
        self.0.counters.rx.add(&counted);
        Ok(taken)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.wake.fd())
    }
}

/// The transmit queue.
#[derive(Debug)]
struct DummyTx(Arc<DummyPort>);

impl TxQueue for DummyTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let mut counted = Counted::default();
        let longest = self.0.mtu as usize + HEADER_LEN + TAG_LEN;
        for frame in frames {
            if (HEADER_LEN..=longest).contains(&frame.len()) {
                counted.frame(frame.len());
                capture(self.0.sent.as_ref(), frame.bytes());
            } else {
                counted.errors += 1;
            }
        }
        self.0.counters.tx.add(&counted);
        Ok(frames.len())
    }
}

/// The device handle.
#[derive(Debug)]
struct DummyDevice(Arc<DummyPort>);

impl Drop for DummyDevice {
    fn drop(&mut self) {
        dummies().remove(&self.0.name);
    }
}

impl PortDevice for DummyDevice {
    fn info(&mut self) -> PortInfo {
        let DummyPort { name, mac, mtu, is_up, .. } = &*self.0;
        let is_up = is_up.load(Ordering::Relaxed);
        PortInfo {
            mac: *mac,
            mtu: *mtu,
            link_up: is_up,
            is_set_down: Some(!is_up),
            ..PortInfo::without_device(ROW.word, name, name)
        }
    }

    fn owns_link(&self) -> bool {
        true
    }

    fn set_link(&mut self, up: bool) -> Result<(), PortError> {
        self.0.is_up.store(up, Ordering::Relaxed);
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.0.counters.read()
    }
}

#[cfg(test)]
mod tests {
    use packet::Batch;

    use super::DummyPort;
    use crate::pcap::Capture;
    use crate::{PortError, open_text};

    #[test]
    fn frames_come_by_hand_and_are_captured() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let spec = format!("dummy:d0?mtu=100&rx_pcap={}&tx_pcap={}", file("rx"), file("tx"));
        let mut port = open_text(&spec).unwrap();
        assert!(matches!(open_text("dummy:d0").map(drop), Err(PortError::InUse(_))));
        let info = port.info();
        assert_eq!((&info.mac[..3], info.is_set_down), (&[0xaa, 0x55, 0xaa][..], Some(false)));
        port.device.set_link(false).unwrap();
        assert!(!port.info().link_up);
        let dummy = DummyPort::find("d0").unwrap();
        assert!(dummy.put(&[7; 20]) && !dummy.is_idle());
        let mut batch = Batch::default();
        assert_eq!((port.rx(&mut batch, 8).unwrap(), port.rx(&mut batch, 8).unwrap()), (1, 0));
        assert!(dummy.is_idle());
        let long = packet::PacketBuf::from_slice(&[1; 119]);
        port.tx(&[batch.frames()[0].clone(), long]).unwrap();
        let counters = port.counters();
        assert_eq!((counters.rx_bytes, counters.tx_packets, counters.tx_errors), (20, 1, 1));
        for name in ["rx", "tx"] {
            let capture = Capture::parse(std::fs::read(file(name)).unwrap()).unwrap();
            assert_eq!((capture.len(), capture.record(0).unwrap().frame), (1, &[7; 20][..]));
        }
        drop(port);
        assert!(DummyPort::find("d0").is_none() && open_text("dummy:d0?mac=x").is_err());
    }
}
