//! `memory`: two rings in shared memory, one per direction, as a wire between two ends `a` and `b`.
//!
//! `memory:NAME` joins two ports of this process; `memory:/a/path` joins two processes by a file
//! that both map, with a FIFO beside it for each end (`PATH.a`, `PATH.b`) that wakes a sleeper. The
//! end that comes first makes these files, the end that goes last removes them; a lock on the FIFO
//! tells whether an end lives, so what a killed process has left is taken over, not stumbled over.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use packet::{Batch, PacketBuf};

use crate::error::PortError;
use crate::port::{Port, PortCounters, PortInfo, made_up_mac};
use crate::ring::{Consumer, Corrupt, Geometry, Producer};
use crate::spec::PortSpec;
use crate::sys::event::Event;
use crate::sys::shm::Mapping;

/// Bytes that a frame has besides its payload: an Ethernet header and one VLAN tag.
const FRAME_OVERHEAD: u32 = 18;

/// One end of a wire in memory.
#[derive(Debug)]
pub struct Memory {
    name: String,
    end: End,
    geometry: Geometry,
    producer: Producer,
    consumer: Consumer,
    own_bell: Event,
    peer_bell: Event,
    counters: PortCounters,
    seat: Seat,
}

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
pub fn pair(name: &str, geometry: Geometry) -> Result<(Memory, Memory), PortError> {
    let wire = Arc::new(Wire::new(geometry).map_err(failed(name))?);
    Ok((wire.sit(name, End::A)?, wire.sit(name, End::B)?))
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    let end = match spec.option("end") {
        None | Some("a") => End::A,
        Some("b") => End::B,
        Some(_) => return Err(spec.bad_value("end", "a or b").into()),
    };
    let wish = Wish {
        slots: spec.number("slots", 1..=Geometry::SLOTS_MAX)?,
        frame_max: spec.number("frame_max", 14..=Geometry::FRAME_MAX)?,
    };
    let port = if spec.name().contains('/') {
        open_file(spec.name(), end, wish)?
    } else {
        open_named(spec.name(), end, wish)?
    };
    Ok(Box::new(port))
}

/// The geometry as far as the options tell it: who comes first decides, who comes second must
/// agree where it has a wish.
#[derive(Debug, Clone, Copy)]
struct Wish {
    slots: Option<u32>,
    frame_max: Option<u32>,
}

impl Wish {
    fn geometry(self) -> Geometry {
        let default = Geometry::default();
        Geometry {
            slots: self.slots.unwrap_or(default.slots),
            frame_max: self.frame_max.unwrap_or(default.frame_max),
        }
    }

    fn agree(self, name: &str, there: Geometry) -> Result<(), PortError> {
        let slots = self.slots.is_none_or(|slots| slots == there.slots);
        if slots && self.frame_max.is_none_or(|frame_max| frame_max == there.frame_max) {
            return Ok(());
        }
        let reason = format!(
            "the other end made it with slots={} and frame_max={}",
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
    bells: [Event; 2],
    taken: [AtomicBool; 2],
}

impl Wire {
    fn new(geometry: Geometry) -> io::Result<Self> {
        let mapping = Mapping::anonymous(geometry.mapping_len())?;
        Ok(Self {
            geometry,
            mapping: Arc::new(mapping),
            bells: [Event::new()?, Event::new()?],
            taken: [AtomicBool::new(false), AtomicBool::new(false)],
        })
    }

    fn sit(self: &Arc<Self>, name: &str, end: End) -> Result<Memory, PortError> {
        if self.taken[end.number()].swap(true, Ordering::AcqRel) {
            return Err(PortError::InUse(format!("end {} of memory:{name}", end.word())));
        }
        // From here on dropping the seat frees it again.
        let seat = Seat::Wire(WireSeat { wire: self.clone(), end });
        let bell = |end: End| self.bells[end.number()].try_clone().map_err(failed(name));
        let bells = (bell(end)?, bell(end.other())?);
        Memory::join(name, end, (self.geometry, self.mapping.clone()), bells, seat)
    }
}

/// Where an end sits, and what leaving it means.
#[derive(Debug)]
enum Seat {
    Wire(WireSeat),
    File(FileSeat),
}

#[derive(Debug)]
struct WireSeat {
    wire: Arc<Wire>,
    end: End,
}

impl Drop for WireSeat {
    fn drop(&mut self) {
        self.wire.taken[self.end.number()].store(false, Ordering::Release);
    }
}

fn open_named(name: &str, end: End, wish: Wish) -> Result<Memory, PortError> {
    static WIRES: Mutex<BTreeMap<String, Weak<Wire>>> = Mutex::new(BTreeMap::new());
    let mut wires = WIRES.lock().unwrap_or_else(PoisonError::into_inner);
    wires.retain(|_, wire| wire.strong_count() > 0);
    if let Some(wire) = wires.get(name).and_then(Weak::upgrade) {
        wish.agree(name, wire.geometry)?;
        return wire.sit(name, end);
    }
    let wire = Arc::new(Wire::new(wish.geometry()).map_err(failed(name))?);
    wires.insert(name.to_owned(), Arc::downgrade(&wire));
    wire.sit(name, end)
}

/// An end of a wire between processes. The main file is locked only while somebody comes, goes or
/// looks; each end holds the lock of its FIFO as long as it lives.
#[derive(Debug)]
struct FileSeat {
    path: PathBuf,
    main: File,
    /// Held for its lock.
    own: Option<File>,
    peer: File,
}

impl FileSeat {
    fn peer_lives(&self) -> io::Result<bool> {
        match self.peer.try_lock() {
            Ok(()) => self.peer.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn leave(&mut self) -> io::Result<()> {
        self.main.lock()?;
        self.own = None;
        if !self.peer_lives()? && is_at(&self.main, &self.path)? {
            for end in [End::A, End::B] {
                std::fs::remove_file(bell_path(&self.path, end))?;
            }
            std::fs::remove_file(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for FileSeat {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            tracing::warn!(path = %self.path.display(), %error, "memory port: cannot clean up");
        }
    }
}

fn bell_path(path: &Path, end: End) -> PathBuf {
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

fn open_file(name: &str, end: End, wish: Wish) -> Result<Memory, PortError> {
    let path = PathBuf::from(name);
    let main = lock_main(&path).map_err(failed(name))?;
    // Before there is a seat: leaving one removes the file.
    let there = geometry_there(name, &main)?;
    let bell = |end: End| Event::fifo(&bell_path(&path, end)).map_err(failed(name));
    let (own_bell, peer_bell) = (bell(end)?, bell(end.other())?);
    // Locks belong to an open file, so they are opened apart from the bells.
    let lockable = |end: End| {
        let bell = OpenOptions::new().read(true).write(true).open(bell_path(&path, end));
        bell.map_err(failed(name))
    };
    let (own, peer) = (lockable(end)?, lockable(end.other())?);
    match own.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(PortError::InUse(format!("end {} of memory:{name}", end.word())));
        }
        Err(TryLockError::Error(source)) => return Err(failed(name)(source)),
    }
    let seat = FileSeat { path, main, own: Some(own), peer };
    let geometry = match there.filter(|_| seat.peer_lives().unwrap_or(true)) {
        Some(there) => {
            wish.agree(name, there)?;
            there
        }
        // New, or left by the dead.
        None => {
            let geometry = wish.geometry();
            let len = geometry.mapping_len() as u64;
            let emptied = seat.main.set_len(0).and_then(|()| seat.main.set_len(len));
            emptied.map_err(failed(name))?;
            geometry
        }
    };
    let mapping = Mapping::file(&seat.main, geometry.mapping_len()).map_err(failed(name))?;
    geometry.write(&mapping);
    seat.main.unlock().map_err(failed(name))?;
    let bells = (own_bell, peer_bell);
    Memory::join(name, end, (geometry, Arc::new(mapping)), bells, Seat::File(seat))
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

impl Memory {
    fn join(
        name: &str,
        end: End,
        (geometry, mapping): (Geometry, Arc<Mapping>),
        (own_bell, peer_bell): (Event, Event),
        seat: Seat,
    ) -> Result<Self, PortError> {
        // End a sends in direction 0, end b in direction 1.
        let producer = Producer::new(mapping.clone(), geometry, end.number());
        let consumer = Consumer::new(mapping, geometry, end.other().number());
        Ok(Self {
            name: name.to_owned(),
            end,
            geometry,
            producer: producer.map_err(|c| corrupt(name, c))?,
            consumer: consumer.map_err(|c| corrupt(name, c))?,
            own_bell,
            peer_bell,
            counters: PortCounters::default(),
            seat,
        })
    }

    /// Whether somebody sits at the other end.
    fn peer_lives(&self) -> bool {
        match &self.seat {
            Seat::Wire(seat) => seat.wire.taken[self.end.other().number()].load(Ordering::Acquire),
            Seat::File(seat) => match seat.main.try_lock() {
                Ok(()) => {
                    let lives = seat.peer_lives();
                    let unlocked = seat.main.unlock();
                    lives.is_ok_and(|lives| lives && unlocked.is_ok())
                }
                // Somebody comes or goes right now: then the answer is as good as either.
                Err(_) => true,
            },
        }
    }
}

fn corrupt(name: &str, corrupt: Corrupt) -> PortError {
    PortError::Format {
        name: format!("memory:{name}"),
        offset: corrupt.offset as u64,
        reason: "the other end wrote an impossible index".into(),
    }
}

impl Port for Memory {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        let Self { name, consumer, counters, own_bell, .. } = self;
        let mut receive = || {
            let received = consumer.receive(batch, max, counters)?;
            if received > 0 || !consumer.want(|| own_bell.drain())? {
                return Ok(received);
            }
            consumer.receive(batch, max, counters)
        };
        receive().map_err(|c| corrupt(name, c))
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let sent = self.producer.send(frames, &mut self.counters);
        let (taken, wanted) = sent.map_err(|c| corrupt(&self.name, c))?;
        if wanted {
            self.peer_bell.ring();
        }
        Ok(taken)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.own_bell.fd())
    }

    fn info(&mut self) -> PortInfo {
        PortInfo {
            name: self.name.clone(),
            kind: "memory",
            mac: made_up_mac(&format!("{}?{}", self.name, self.end.word())),
            mtu: self.geometry.frame_max.saturating_sub(FRAME_OVERHEAD),
            link_up: self.peer_lives(),
            speed_bps: 0,
            full_duplex: Some(true),
            exists: true,
            notes: Vec::new(),
        }
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
