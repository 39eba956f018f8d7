//! `memory`: two rings in shared memory, one per direction, as a wire between two ends `a` and `b`.
//!
//! `memory:NAME` joins two ports of this process, with `queues=N` by that number of pairs of rings,
//! of which each joins two queues of the same number; `memory:/a/path` joins two processes by a
//! file that both map, with a FIFO beside it for each end (`PATH.a`, `PATH.b`) as its doorbell. The
//! first end creates these files and the last one removes them. Each end holds a lock on its FIFO
//! while it exists, so files that a killed process left behind are taken over. The file has all its
//! room from the start, and a port whose file is shortened by somebody has lost its device.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use packet::{Batch, PacketBuf};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use crate::counters::{Counted, PortCounters, PortQueueCounters, queue_counters};
use crate::error::PortError;
use crate::port::{Port, PortDevice, RxQueue, TxQueue};
use crate::port_info::PortInfo;
use crate::ring::{Consumer, CorruptIndex, Geometry, Producer};
use crate::spec::{FileUse, KindRow, PortSpec, QUEUES, QUEUES_MAX, option};
use crate::sys::event::WakeEvent;
use crate::sys::shm::Mapping;

/// Bytes that a frame has besides its payload: an Ethernet header and one VLAN tag.
const FRAME_OVERHEAD: u32 = 18;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "memory",
    name_hint: "NAME, or /a/path to join two processes",
    help: "a wire in shared memory, between two ports of one process or of two",
    options: &[
        option("end", "a|b", "which end of the wire this port is"),
        option("slots", "1024", "frames that a direction holds; 1 to 65536"),
        option("frame_max", "2104", "longest frame in bytes; 14 to 65535"),
        option(QUEUES, "1", "queues, each with rings of its own; 1 to 64, 1 between processes"),
    ],
    exclusive: |spec| Some(format!("{}, end {}", spec.name(), spec.option("end").unwrap_or("a"))),
    file_use: |spec| spec.name().contains('/').then_some(FileUse::Wire),
    rights: &[],
    open,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    A,
    B,
}

impl End {
    fn number(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }
}

/// A pair of joined ports of this process, with room for `geometry` each way.
///
/// # Errors
/// [`PortError::Io`] when memory or descriptors run out.
pub fn pair(name: &str, geometry: Geometry) -> Result<(Port, Port), PortError> {
    let wire = Arc::new(Wire::new(geometry, 1).map_err(failed(name))?);
    Ok((wire.attach(name, End::A)?, wire.attach(name, End::B)?))
}

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let end = match spec.option("end") {
        None | Some("a") => End::A,
        Some("b") => End::B,
        Some(_) => return Err(spec.bad_value("end", "a or b").into()),
    };
    let requested = RequestedGeometry {
        slots: spec.number("slots", 1..=Geometry::SLOTS_MAX)?,
        frame_max: spec.number("frame_max", 14..=Geometry::FRAME_MAX)?,
        queues: spec.number(QUEUES, 1..=QUEUES_MAX)?,
    };
    if spec.name().contains('/') {
        if requested.queues() > 1 {
            return Err(spec.bad_value(QUEUES, "1 for a wire between processes").into());
        }
        open_file(spec.name(), end, requested)
    } else {
        open_named(spec.name(), end, requested)
    }
}

/// The geometry as far as the options give it: the first end decides, the second must agree where
/// its options say anything.
#[derive(Debug, Clone, Copy)]
struct RequestedGeometry {
    slots: Option<u32>,
    frame_max: Option<u32>,
    queues: Option<u32>,
}

impl RequestedGeometry {
    fn geometry(self) -> Geometry {
        let default = Geometry::default();
        Geometry {
            slots: self.slots.unwrap_or(default.slots),
            frame_max: self.frame_max.unwrap_or(default.frame_max),
        }
    }

    fn queues(self) -> usize {
        self.queues.unwrap_or(1) as usize
    }

    /// Queues must be the same even where none are given: what goes by one that the other end does
    /// not know would be lost.
    fn agree(self, name: &str, there: Geometry, queues: usize) -> Result<(), PortError> {
        let slots = self.slots.is_none_or(|slots| slots == there.slots);
        let frame_max = self.frame_max.is_none_or(|frame_max| frame_max == there.frame_max);
        if slots && frame_max && self.queues() == queues {
            return Ok(());
        }
        let reason = format!(
            "the other end made it with slots={}, frame_max={} and queues={queues}",
            there.slots, there.frame_max
        );
        Err(PortError::Format { name: name.to_owned(), offset: 0, reason })
    }
}

/// A wire between two ports of this process.
#[derive(Debug)]
struct Wire {
    geometry: Geometry,
    mapping: Arc<Mapping>,
    /// Those of each queue, by end.
    doorbells: Vec<[WakeEvent; 2]>,
    taken: [AtomicBool; 2],
}

impl Wire {
    fn new(geometry: Geometry, queues: usize) -> io::Result<Self> {
        let mapping = Mapping::anonymous(geometry.mapping_len_of(queues))?;
        let doorbells: io::Result<Vec<[WakeEvent; 2]>> =
            (0..queues).map(|_| Ok([WakeEvent::new()?, WakeEvent::new()?])).collect();
        Ok(Self {
            geometry,
            mapping: Arc::new(mapping),
            doorbells: doorbells?,
            taken: [AtomicBool::new(false), AtomicBool::new(false)],
        })
    }

    fn attach(self: &Arc<Self>, name: &str, end: End) -> Result<Port, PortError> {
        if self.taken[end.number()].swap(true, Ordering::AcqRel) {
            return Err(PortError::InUse(format!("end {} of memory:{name}", end.word())));
        }
        // From here on dropping the attachment frees it again.
        let attachment = Attachment::Wire(WireAttachment { wire: self.clone(), end });
        let pair = |doorbells: &[WakeEvent; 2]| -> io::Result<(WakeEvent, WakeEvent)> {
            let doorbell = |end: End| doorbells[end.number()].try_clone();
            Ok((doorbell(end)?, doorbell(end.other())?))
        };
        let doorbells: io::Result<Vec<_>> = self.doorbells.iter().map(pair).collect();
        let doorbells = doorbells.map_err(failed(name))?;
        attach_rings(name, end, (self.geometry, self.mapping.clone()), doorbells, attachment)
    }
}

/// Resources that an end holds, and releases when it is dropped.
#[derive(Debug)]
enum Attachment {
    Wire(WireAttachment),
    File(FileAttachment),
}

#[derive(Debug)]
struct WireAttachment {
    wire: Arc<Wire>,
    end: End,
}

impl Drop for WireAttachment {
    fn drop(&mut self) {
        self.wire.taken[self.end.number()].store(false, Ordering::Release);
    }
}

fn open_named(name: &str, end: End, requested: RequestedGeometry) -> Result<Port, PortError> {
    static WIRES: Mutex<BTreeMap<String, Weak<Wire>>> = Mutex::new(BTreeMap::new());
    let mut wires = WIRES.lock().unwrap_or_else(PoisonError::into_inner);
    wires.retain(|_, wire| wire.strong_count() > 0);
    if let Some(wire) = wires.get(name).and_then(Weak::upgrade) {
        requested.agree(name, wire.geometry, wire.doorbells.len())?;
        return wire.attach(name, end);
    }
    let wire = Wire::new(requested.geometry(), requested.queues()).map_err(failed(name))?;
    let wire = Arc::new(wire);
    wires.insert(name.to_owned(), Arc::downgrade(&wire));
    wire.attach(name, end)
}

/// An end of a wire between processes. The main file is locked only while an end attaches, detaches
/// or asks for its peer; each end holds the lock of its FIFO as long as it exists.
#[derive(Debug)]
struct FileAttachment {
    path: PathBuf,
    main: File,
    /// Held for its lock.
    own: Option<File>,
    peer: File,
}

impl FileAttachment {
    fn peer_is_attached(&self) -> io::Result<bool> {
        match self.peer.try_lock() {
            Ok(()) => self.peer.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn detach(&mut self) -> io::Result<()> {
        self.main.lock()?;
        self.own = None;
        if !self.peer_is_attached()? && is_at(&self.main, &self.path)? {
            for end in [End::A, End::B] {
                std::fs::remove_file(doorbell_path(&self.path, end))?;
            }
            std::fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for FileAttachment {
    fn drop(&mut self) {
        if let Err(error) = self.detach() {
            tracing::warn!(path = %self.path.display(), %error, "memory port: cannot clean up");
        }
    }
}

fn doorbell_path(path: &Path, end: End) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(".");
    text.push(end.word());
    text.into()
}

/// Whether `path` still leads to this very file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let here = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok(here.ino() == there.ino() && here.dev() == there.dev()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The main file, locked; made if it is missing.
fn lock_main(path: &Path) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        let main = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let main = main.open(path)?;
        main.lock()?;
        // The last end may have removed it between open and lock.
        if is_at(&main, path)? {
            return Ok(main);
        }
    }
}

fn open_file(name: &str, end: End, requested: RequestedGeometry) -> Result<Port, PortError> {
    let path = PathBuf::from(name);
    let main = lock_main(&path).map_err(failed(name))?;
    // Before there is an attachment: detaching removes the file.
    let there = geometry_there(name, &main)?;
    let doorbell = |end: End| WakeEvent::fifo(&doorbell_path(&path, end)).map_err(failed(name));
    let (own_doorbell, peer_doorbell) = (doorbell(end)?, doorbell(end.other())?);
    // Locks belong to an open file, so they are opened apart from the doorbells.
    let lockable = |end: End| {
        let doorbell = OpenOptions::new().read(true).write(true).open(doorbell_path(&path, end));
        doorbell.map_err(failed(name))
    };
    let (own, peer) = (lockable(end)?, lockable(end.other())?);
    match own.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(PortError::InUse(format!("end {} of memory:{name}", end.word())));
        }
        Err(TryLockError::Error(source)) => return Err(failed(name)(source)),
    }
    let attachment = FileAttachment { path, main, own: Some(own), peer };
    let geometry = match there.filter(|_| attachment.peer_is_attached().unwrap_or(true)) {
        Some(there) => {
            requested.agree(name, there, 1)?;
            there
        }
        // New, or left behind by a killed process.
        None => {
            let geometry = requested.geometry();
            reserve(&attachment.main, geometry.mapping_len() as u64).map_err(failed(name))?;
            geometry
        }
    };
    let mapping = Mapping::shared_file(&attachment.main, geometry.mapping_len());
    let mapping = mapping.map_err(failed(name))?;
    geometry.write(&mapping);
    attachment.main.unlock().map_err(failed(name))?;
    let doorbells = vec![(own_doorbell, peer_doorbell)];
    attach_rings(name, end, (geometry, Arc::new(mapping)), doorbells, Attachment::File(attachment))
}

/// Empties a file and gives it room for `len` zero bytes, so that a full disk shows here and not
/// when a page is first used.
fn reserve(mut file: &File, len: u64) -> io::Result<()> {
    file.set_len(0)?;
    let reserved = match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
        // Not every file system can.
        Err(Errno::OPNOTSUPP) => io::copy(&mut io::repeat(0).take(len), &mut file).map(drop),
        reserved => reserved.map_err(io::Error::from),
    };
    reserved.map_err(|error| {
        let kind = error.kind();
        let full = [ErrorKind::StorageFull, ErrorKind::FileTooLarge, ErrorKind::QuotaExceeded];
        if !full.contains(&kind) {
            return error;
        }
        io::Error::new(kind, format!("{error}; it needs {len} bytes: give fewer slots"))
    })
}

/// The geometry of a file that is there already; `None` for an empty file, and an error for one
/// that is not ours, which must not be overwritten.
fn geometry_there(name: &str, main: &File) -> Result<Option<Geometry>, PortError> {
    let len = main.metadata().map_err(failed(name))?.len();
    if len == 0 {
        return Ok(None);
    }
    let mut header = [0; 24];
    let whole = main.read_exact_at(&mut header, 0);
    let geometry = whole.ok().and_then(|()| Geometry::read(&header));
    match geometry.filter(|geometry| geometry.mapping_len() as u64 == len) {
        Some(geometry) => Ok(Some(geometry)),
        None => Err(PortError::Format {
            name: name.to_owned(),
            offset: 0,
            reason: format!("a file of {len} bytes that is no memory port's; remove it yourself"),
        }),
    }
}

fn failed(name: &str) -> impl Fn(io::Error) -> PortError {
    move |source| {
        let fix = "choose a path that you may write";
        PortError::from_io(format!("memory:{name}"), fix, source)
    }
}

fn attach_rings(
    name: &str,
    end: End,
    (geometry, mapping): (Geometry, Arc<Mapping>),
    doorbells: Vec<(WakeEvent, WakeEvent)>,
    attachment: Attachment,
) -> Result<Port, PortError> {
    let counters = queue_counters(doorbells.len());
    let shared = Arc::new(Shared {
        name: name.to_owned(),
        end,
        geometry,
        mapping: Arc::clone(&mapping),
        is_loss_logged: AtomicBool::new(false),
        attachment,
        counters: counters.clone(),
    });
    let device = MemoryDevice { shared: Arc::clone(&shared) };
    let lanes = doorbells.into_iter().zip(counters).enumerate();
    Port::with_queues(
        device,
        lanes.map(|(lane, ((own_doorbell, peer_doorbell), counters))| {
            // Of each lane, end a sends in its first direction, end b in its second.
            let number = |end: End| 2 * lane + end.number();
            let producer = Producer::new(mapping.clone(), geometry, number(end));
            let consumer = Consumer::new(mapping.clone(), geometry, number(end.other()));
            let rx = MemoryRx {
                consumer: consumer.map_err(|c| corrupt(name, c))?,
                doorbell: own_doorbell,
                shared: Arc::clone(&shared),
                counters: Arc::clone(&counters),
            };
            let tx = MemoryTx {
                producer: producer.map_err(|c| corrupt(name, c))?,
                doorbell: peer_doorbell,
                shared: Arc::clone(&shared),
                counters,
            };
            Ok((rx, tx))
        }),
    )
}

/// State that the parts of a port share. The end is attached as long as any of them exists.
#[derive(Debug)]
struct Shared {
    name: String,
    end: End,
    geometry: Geometry,
    mapping: Arc<Mapping>,
    is_loss_logged: AtomicBool,
    attachment: Attachment,
    /// Those of each queue.
    counters: Vec<Arc<PortQueueCounters>>,
}

impl Shared {
    /// Whether the file is as long as it was made. What was read or written before the answer is
    /// no good otherwise.
    fn check_file(&self) -> Result<(), PortError> {
        if !self.mapping.is_lost() {
            return Ok(());
        }
        let port = format!("memory:{}", self.name);
        if !self.is_loss_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(port, "another program has shortened the file, or its disk is full");
        }
        Err(PortError::Gone(port))
    }
}

fn corrupt(name: &str, corrupt: CorruptIndex) -> PortError {
    PortError::Format {
        name: format!("memory:{name}"),
        offset: corrupt.offset as u64,
        reason: "the other end wrote an impossible index".into(),
    }
}

/// The receive queue.
#[derive(Debug)]
struct MemoryRx {
    consumer: Consumer,
    doorbell: WakeEvent,
    shared: Arc<Shared>,
    counters: Arc<PortQueueCounters>,
}

impl RxQueue for MemoryRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let Self { consumer, doorbell, shared, counters } = self;
        let mut counted = Counted::default();
        let earlier = batch.len();
        let mut receive = || {
            let received = consumer.receive(batch, max, &mut counted)?;
            if received > 0 || !consumer.request_doorbell(|| doorbell.drain())? {
                return Ok(received);
            }
            consumer.receive(batch, max, &mut counted)
        };
        let received = receive();
        if let Err(lost) = shared.check_file() {
            batch.parts_mut().0.truncate(earlier);
            return Err(lost);
        }
        counters.rx.add(&counted);
        received.map_err(|c| corrupt(&shared.name, c))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.doorbell.fd())
    }
}

/// The transmit queue.
#[derive(Debug)]
struct MemoryTx {
    producer: Producer,
    /// The other end's.
    doorbell: WakeEvent,
    shared: Arc<Shared>,
    counters: Arc<PortQueueCounters>,
}

impl TxQueue for MemoryTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let mut counted = Counted::default();
        let sent = self.producer.send(frames, &mut counted);
        self.shared.check_file()?;
        self.counters.tx.add(&counted);
        let (taken, wanted) = sent.map_err(|c| corrupt(&self.shared.name, c))?;
        if wanted {
            self.doorbell.ring();
        }
        Ok(taken)
    }
}

/// The device handle.
#[derive(Debug)]
struct MemoryDevice {
    shared: Arc<Shared>,
}

impl MemoryDevice {
    /// Whether the other end is attached.
    fn peer_is_attached(&self) -> bool {
        match &self.shared.attachment {
            Attachment::Wire(attachment) => {
                let peer = self.shared.end.other().number();
                attachment.wire.taken[peer].load(Ordering::Acquire)
            }
            Attachment::File(attachment) => match attachment.main.try_lock() {
                Ok(()) => {
                    let attached = attachment.peer_is_attached();
                    let unlocked = attachment.main.unlock();
                    attached.is_ok_and(|attached| attached && unlocked.is_ok())
                }
                // An end attaches or detaches right now: either answer is right.
                Err(_) => true,
            },
        }
    }
}

impl PortDevice for MemoryDevice {
    fn info(&mut self) -> PortInfo {
        let Shared { name, end, geometry, .. } = &*self.shared;
        PortInfo {
            mtu: geometry.frame_max.saturating_sub(FRAME_OVERHEAD),
            link_up: self.peer_is_attached(),
            ..PortInfo::without_device(ROW.word, name, &format!("{name}?{}", end.word()))
        }
    }

    fn counters(&mut self) -> PortCounters {
        self.shared.counters.iter().map(|queue| queue.read()).sum()
    }
}
