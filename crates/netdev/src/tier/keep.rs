//! Tiers that outlive their process: links and maps are pinned in a BPF file system, so that the
//! programs go on with the decisions that they have until the next process takes their place.
//!
//! Each process pins in a folder of its own below that of its switch. The next one opens the links
//! that it finds, exchanges their programs when its workers run, so that no frame meets a device
//! without a program, and reads what the earlier programs have counted. Nothing may forward for
//! ever: the programs decide until a time that the process puts off again and again, and let frames
//! pass to the host after it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::layout::{
    CELL_BYTES, CELL_LEN, CELL_PACKETS, CELL_USED, OWNERS_BYTES, OWNERS_COUNT, OWNERS_LEN,
    OWNERS_LIST, OWNERS_MAX, OWNERS_PACKETS, STATE_SLOTS, STATE_UNTIL, VERSION, state_len,
};
use super::{KernelTier, possible_cpus, wait_for_runs};
use crate::sys::bpf::{Link, Map, Program};
use crate::sys::shm::Mapping;

/// The place where BPF file systems are mounted.
const MOUNT: &str = "/sys/fs/bpf";
/// The folder of all switches there; it is made where it is not there.
pub const KEPT_TIERS: &str = "/sys/fs/bpf/weir";
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// Time for which programs go on without their process, from when it was last there.
pub const KEPT_FOR: Duration = Duration::from_secs(30);

/// The parts of a tier that the next process reads.
const STATE: &str = "state";
const COUNTS: &str = "counts";
const OWNERS: &str = "owners";

/// A device: the number of its network namespace, and its own number there.
type DeviceKey = (u64, u32);

/// The tiers of a switch that outlive its process.
#[derive(Debug)]
pub struct TierKeeper {
    /// The folder of the switch, and that of this process in it.
    folder: PathBuf,
    own: PathBuf,
    held: Mutex<Held>,
    /// All that is pinned stays for the next process.
    is_left: AtomicBool,
    /// The switch's folder, which no other process has meanwhile.
    _lock: File,
}

#[derive(Debug, Default)]
struct Held {
    /// Folders of earlier processes.
    earlier: Vec<PathBuf>,
    /// Their links that no port has claimed.
    unclaimed: BTreeMap<DeviceKey, PinnedLink>,
    /// Links of this process, by serial numbers.
    links: BTreeMap<u64, KeptLink>,
    serial: u64,
    /// The states of the tiers of this process.
    states: Vec<Weak<Mapping>>,
}

#[derive(Debug)]
struct PinnedLink {
    link: Link,
    paths: Vec<PathBuf>,
}

#[derive(Debug)]
enum KeptLink {
    /// The program waits for the place of an earlier one.
    Waiting(DeviceKey, PinnedLink, Program),
    Placed(PinnedLink),
}

/// A program at a device, as long as this is there.
#[derive(Debug)]
pub(super) struct KeptPlace {
    keeper: Arc<TierKeeper>,
    serial: u64,
}

impl Drop for KeptPlace {
    fn drop(&mut self) {
        if self.keeper.is_left() {
            return;
        }
        let mut held = self.keeper.held();
        match held.links.remove(&self.serial) {
            // As if no port had claimed it.
            Some(KeptLink::Waiting(key, link, _)) => drop(held.unclaimed.insert(key, link)),
            Some(KeptLink::Placed(link)) => unpin(&link.paths),
            None => {}
        }
    }
}

/// Maps of a tier, pinned as long as this is there.
#[derive(Debug)]
pub(super) struct KeptMaps(Arc<TierKeeper>, Vec<PathBuf>);

impl Drop for KeptMaps {
    fn drop(&mut self) {
        if !self.0.is_left() {
            unpin(&self.1);
        }
    }
}

/// Counts of a decision of an earlier process that this one had not taken yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierCounts {
    /// The owners, as [`KernelTier::note_owners`] got them.
    pub owners: Vec<u64>,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// When the last one came, by [`KernelTier::now_ns`]; zero where nobody asked for it.
    pub last_used_ns: u64,
}

impl TierKeeper {
    /// The keeper of the switch of this name.
    ///
    /// # Errors
    /// When no BPF file system is mounted, it may not be written to, another user may write where
    /// the pins are, or another process has the name.
    pub fn open(name: &str) -> io::Result<Arc<Self>> {
        let is_bpf = rustix::fs::statfs(MOUNT).is_ok_and(|it| it.f_type == BPF_FS_MAGIC);
        if !is_bpf {
            let text = format!("no BPF file system is there: mount -t bpf bpf {MOUNT}");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        open_own(Path::new(KEPT_TIERS))?;
        let folder = Path::new(KEPT_TIERS).join(name);
        let lock = open_own(&folder)?;
        // In another mount namespace another switch may have a folder of this name.
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            named(&folder, "another switch keeps its kernel tier there", error.into())
        })?;
        let mut held = Held::default();
        let mut last = 0;
        for path in entries_of(&folder)? {
            let number = path.file_name().and_then(|name| name.to_str()).and_then(number_of_folder);
            match number {
                Some(number) => {
                    last = last.max(number);
                    held.find_links(&path)?;
                    held.earlier.push(path);
                }
                None => {
                    tracing::info!(path = %path.display(), "a kernel tier of another version ends");
                    remove_folder(&path);
                }
            }
        }
        let own = folder.join(format!("v{VERSION}-{}", last + 1));
        DirBuilder::new().mode(0o700).create(&own)?;
        let (held, is_left) = (Mutex::new(held), AtomicBool::new(false));
        Ok(Arc::new(Self { folder, own, held, is_left, _lock: lock }))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a program at a device: at once, or when this process takes the place of the one before.
    pub(super) fn place(self: &Arc<Self>, program: &Program, device: u32) -> io::Result<KeptPlace> {
        let key = (namespace()?, device);
        let mut held = self.held();
        let link = match held.unclaimed.remove(&key) {
            Some(link) => KeptLink::Waiting(key, link, program.try_clone()?),
            None => KeptLink::Placed(self.attach(program, key, held.serial)?),
        };
        let serial = held.serial;
        held.serial += 1;
        held.links.insert(serial, link);
        Ok(KeptPlace { keeper: Arc::clone(self), serial })
    }

    fn attach(&self, program: &Program, key: DeviceKey, serial: u64) -> io::Result<PinnedLink> {
        let link = program.attach(key.1)?;
        let path = self.link_path(key, serial);
        link.pin(&path)?;
        Ok(PinnedLink { link, paths: vec![path] })
    }

    fn link_path(&self, (namespace, device): DeviceKey, serial: u64) -> PathBuf {
        self.own.join(format!("link-{namespace}-{device}-{serial}"))
    }

    /// Pins what the programs at a device need besides, as long as that is there.
    pub(super) fn keep_map(self: &Arc<Self>, map: &Map, name: &str) -> io::Result<KeptMaps> {
        let mut held = self.held();
        held.serial += 1;
        let path = self.own.join(format!("{name}-{}", held.serial));
        map.pin(&path)?;
        Ok(KeptMaps(Arc::clone(self), vec![path]))
    }

    /// Pins the maps of a bridge's tier: state, counts and owners.
    pub(super) fn keep_tier(
        self: &Arc<Self>,
        bridge: &str,
        maps: [&Map; 3],
        (state, slots): (&Arc<Mapping>, usize),
    ) -> io::Result<KeptMaps> {
        let mut held = self.held();
        held.serial += 1;
        let mut kept = KeptMaps(Arc::clone(self), Vec::new());
        // Where the state is, the others are, whenever the process is killed.
        for (map, part) in maps.into_iter().zip([STATE, COUNTS, OWNERS]).rev() {
            let path = self.own.join(format!("tier-{}-{part}-{bridge}", held.serial));
            map.pin(&path)?;
            kept.1.push(path);
        }
        state.number(STATE_SLOTS).store(slots as u64, Ordering::Relaxed);
        put_off(state);
        held.states.retain(|state| state.strong_count() > 0);
        held.states.push(Arc::downgrade(state));
        Ok(kept)
    }

    /// The process is there: its programs decide for [`KEPT_FOR`] from now on.
    pub fn put_off(&self) {
        self.held().states.iter().filter_map(Weak::upgrade).for_each(|state| put_off(&state));
    }

    /// Gives the owners of a bridge's counts for earlier processes the numbers that they have now.
    /// `now` gets a number of before, and when the last packet that counts for it came, by
    /// [`KernelTier::now_ns`]; zero where nobody asked for it.
    ///
    /// # Errors
    /// The tier of one of these processes cannot be read.
    pub fn renumber_owners(
        &self,
        bridge: &str,
        mut now: impl FnMut(u64, u64) -> u64,
    ) -> io::Result<()> {
        for folder in &self.held().earlier {
            for (_, tier) in tiers_in(folder)?.iter().filter(|(of, _)| of == bridge) {
                for slot in 0..tier.slots {
                    for owner in tier.owners(slot) {
                        let number = now(owner.load(Ordering::Relaxed), tier.last_used_ns(slot));
                        owner.store(number, Ordering::Relaxed);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the earlier programs at devices that no port has claimed. It must come before anything
    /// forwards: such a port's frames would go out twice.
    pub fn end_unclaimed(&self) {
        for (_, link) in std::mem::take(&mut self.held().unclaimed) {
            unpin(&link.paths);
        }
    }

    /// Puts the programs of this process in the place of the earlier ones; returns the number of
    /// devices, and the counts that nobody has taken, by bridge.
    pub fn take_over(&self) -> (usize, BTreeMap<String, Vec<EarlierCounts>>) {
        // The start may have taken long.
        self.put_off();
        let mut held = self.held();
        // A port that left the tier meanwhile: its worker has its frames.
        held.unclaimed.clear();
        let mut taken = 0;
        let links = std::mem::take(&mut held.links);
        for (serial, link) in links {
            let link = match link {
                KeptLink::Waiting(key, earlier, program) => {
                    taken += 1;
                    match self.exchange(earlier, &program, key, serial) {
                        Ok(link) => link,
                        Err(error) => {
                            let device = key.1;
                            tracing::warn!(device, %error, "a device is without its program");
                            continue;
                        }
                    }
                }
                KeptLink::Placed(link) => link,
            };
            held.links.insert(serial, KeptLink::Placed(link));
        }
        let mut counts = BTreeMap::<String, Vec<EarlierCounts>>::new();
        for folder in std::mem::take(&mut held.earlier) {
            if let Err(error) = read_counts(&folder, &mut counts) {
                let path = folder.display();
                tracing::warn!(%path, %error, "the last counts of an earlier tier are lost");
            }
            remove_folder(&folder);
        }
        (taken, counts)
    }

    fn exchange(
        &self,
        earlier: PinnedLink,
        program: &Program,
        key: DeviceKey,
        serial: u64,
    ) -> io::Result<PinnedLink> {
        let PinnedLink { link, paths } = earlier;
        let done = link.update(program);
        let exchanged = match done {
            Ok(()) => {
                let path = self.link_path(key, serial);
                link.pin(&path)?;
                Ok(PinnedLink { link, paths: vec![path] })
            }
            // The device that it was at has gone.
            Err(_) => self.attach(program, key, serial),
        };
        unpin(&paths);
        exchanged
    }

    /// Leaves all that is pinned to the next process, whatever ends in this one.
    pub fn leave(&self) {
        self.put_off();
        self.is_left.store(true, Ordering::Release);
    }

    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Ends all that is pinned; the programs go with their descriptors.
    pub fn end(&self) {
        remove_folder(&self.own);
        // Others may have something there.
        let _ = std::fs::remove_dir(&self.folder);
        let _ = self.folder.parent().map(std::fs::remove_dir);
    }
}

impl Held {
    fn find_links(&mut self, folder: &Path) -> io::Result<()> {
        for path in entries_of(folder)? {
            let Some(key) = path.file_name().and_then(|name| name.to_str()).and_then(link_key)
            else {
                continue;
            };
            // A process that was killed while it took over has left a second path of a link.
            match self.unclaimed.get_mut(&key) {
                Some(known) => known.paths.push(path),
                None => match Link::pinned(&path) {
                    Ok(link) => {
                        self.unclaimed.insert(key, PinnedLink { link, paths: vec![path] });
                    }
                    // It must not decide beside the program of this process.
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "a program is removed");
                        unpin(&[path]);
                    }
                },
            }
        }
        Ok(())
    }
}

/// The number of a folder of this version.
fn number_of_folder(name: &str) -> Option<u64> {
    let (version, number) = name.strip_prefix('v')?.split_once('-')?;
    (version.parse() == Ok(VERSION)).then(|| number.parse().ok()).flatten()
}

/// The device of a link.
fn link_key(name: &str) -> Option<DeviceKey> {
    let mut parts = name.strip_prefix("link-")?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The number of the network namespace that this thread is in.
fn namespace() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

fn entries_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Makes a folder where there is none and opens it. All that is in it is taken for the switch's
/// own, and removed, so no other user may have put it there: everybody may write to a BPF file
/// system that was mounted by hand.
fn open_own(path: &Path) -> io::Result<File> {
    let fix = "the switch must be able to make this folder, or have it for itself";
    let failed = |error| named(path, fix, error);
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    let folder = folder.map_err(|error| failed(error.into()))?;
    let found = folder.metadata().map_err(failed)?;
    let is_own = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    if !is_own || found.mode() & 0o022 != 0 {
        return Err(failed(io::Error::other("another user may write to it")));
    }
    Ok(folder)
}

fn named(path: &Path, fix: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}; {fix}", path.display()))
}

fn unpin(paths: &[PathBuf]) {
    for path in paths {
        // It may be gone with its folder.
        let _ = std::fs::remove_file(path);
    }
}

fn remove_folder(path: &Path) {
    unpin(&entries_of(path).unwrap_or_default());
    if let Err(error) = std::fs::remove_dir(path) {
        tracing::warn!(path = %path.display(), %error, "a folder of kernel tiers stays");
    }
}

fn put_off(state: &Mapping) {
    let until = KernelTier::now_ns() + KEPT_FOR.as_nanos() as u64;
    state.number(STATE_UNTIL).store(until, Ordering::Release);
}

/// Reads the counts of the tiers of an earlier process, whose programs are at no device any more.
fn read_counts(folder: &Path, counts: &mut BTreeMap<String, Vec<EarlierCounts>>) -> io::Result<()> {
    for (bridge, tier) in tiers_in(folder)? {
        wait_for_runs(&tier.state, tier.cpus);
        let found = (0..tier.slots).filter_map(|slot| tier.counts(slot));
        counts.entry(bridge).or_default().extend(found);
    }
    Ok(())
}

/// The tiers of an earlier process, with the names of their bridges.
fn tiers_in(folder: &Path) -> io::Result<Vec<(String, EarlierTier)>> {
    let mut found = Vec::new();
    for path in entries_of(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let parts: Vec<&str> = name.splitn(4, '-').collect();
        let ["tier", number, STATE, bridge] = parts[..] else { continue };
        let part = |part| folder.join(format!("tier-{number}-{part}-{bridge}"));
        found.push((bridge.to_owned(), EarlierTier::open(&path, &part(COUNTS), &part(OWNERS))?));
    }
    Ok(found)
}

/// A tier of an earlier process.
struct EarlierTier {
    state: Mapping,
    cells: Mapping,
    owners: Mapping,
    cpus: usize,
    slots: usize,
}

impl EarlierTier {
    fn open(state: &Path, cells: &Path, owners: &Path) -> io::Result<Self> {
        let cpus = possible_cpus()?;
        let state = Map::pinned_array(state, state_len(cpus), 1)?.map()?;
        let slots = usize::try_from(state.number(STATE_SLOTS).load(Ordering::Relaxed));
        let slots = slots.map_err(io::Error::other)?;
        let cells = Map::pinned_array(cells, CELL_LEN, cpus.saturating_mul(slots))?.map()?;
        let owners = Map::pinned_array(owners, OWNERS_LEN, slots)?.map()?;
        Ok(Self { state, cells, owners, cpus, slots })
    }

    fn owned(&self, slot: usize, at: usize) -> &AtomicU64 {
        self.owners.number(OWNERS_LEN * slot + at)
    }

    /// The owners of a slot.
    fn owners(&self, slot: usize) -> impl Iterator<Item = &AtomicU64> {
        let count = self.owned(slot, OWNERS_COUNT).load(Ordering::Relaxed);
        let count = usize::try_from(count).unwrap_or(0).min(OWNERS_MAX);
        (0..count).map(move |nth| self.owned(slot, OWNERS_LIST + 8 * nth))
    }

    /// A number of a slot's counts, by processor.
    fn counted(&self, slot: usize, at: usize) -> impl Iterator<Item = u64> {
        let cell = move |cpu| CELL_LEN * (self.slots * cpu + slot) + at;
        (0..self.cpus).map(move |cpu| self.cells.number(cell(cpu)).load(Ordering::Relaxed))
    }

    /// When the last packet of a slot came.
    fn last_used_ns(&self, slot: usize) -> u64 {
        self.counted(slot, CELL_USED).max().unwrap_or_default()
    }

    /// The counts of a slot that its owners have not got, where there are any.
    fn counts(&self, slot: usize) -> Option<EarlierCounts> {
        let owned = |at| self.owned(slot, at).load(Ordering::Relaxed);
        let sum = |at| self.counted(slot, at).fold(0, u64::wrapping_add);
        let owners: Vec<_> = self.owners(slot).map(|it| it.load(Ordering::Relaxed)).collect();
        let packets = sum(CELL_PACKETS).wrapping_sub(owned(OWNERS_PACKETS));
        (!owners.is_empty() && packets > 0).then(|| EarlierCounts {
            owners,
            packets,
            bytes: sum(CELL_BYTES).wrapping_sub(owned(OWNERS_BYTES)),
            last_used_ns: self.last_used_ns(slot),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{VERSION, link_key, number_of_folder};

    #[test]
    fn names_of_pins_are_read_as_they_are_written() {
        assert_eq!(number_of_folder(&format!("v{VERSION}-17")), Some(17));
        for other in ["v0-17", "17", "v1", "v1-", "vx-1"] {
            assert_eq!(number_of_folder(other), None, "{other}");
        }
        assert_eq!(link_key("link-4026531840-7-3"), Some((4_026_531_840, 7)));
        for other in ["link-1", "tier-1-2-3", "link-a-1-2", "link--1-2"] {
            assert_eq!(link_key(other), None, "{other}");
        }
    }
}
