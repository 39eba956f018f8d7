//! Reads a journal: the last item about each thing, and what becomes of a file that says nothing.
//!
//! A record that the file's end cuts off is one whose write a kill has interrupted: nothing had
//! been confirmed of it, and it is left out. Anything else that is wrong makes the whole file
//! unusable, since what stands before it may no longer be so. Such a file is set aside under
//! another name; of more than nine, the last is replaced. Reading allocates no more than the
//! file's length justifies.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use datapath::fast::{EntryId, Saved, SavedCounts, SavedEntry, SavedGroup, SavedMeter};
use datapath::{LearntAddress, Nanos};
use files::ReadError;
use openflow::flow::FlowMod;
use openflow::group::{BucketCounter, GroupDesc};
use openflow::meter::{BandCounter, MeterConfig};
use openflow::{Instruction, MacAddr, Message, PortNo, Version};
use wire::MessageHeader;

use super::batch::{FORMS, HEAD_LEN, Tag, head_sum};
use super::folder::with_ending;
use super::{FORMAT, Header, JournalOwner, LEN_MAX};

/// The most files of a kind that are set aside.
const ASIDE_MAX: u32 = 9;

/// Why a journal cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// It does not begin as one.
    #[error("it is no journal of a switch")]
    NoJournal,
    /// A record is not what was written.
    #[error("it is damaged at byte {0}")]
    Damaged(u64),
    /// It is of another version of the format.
    #[error("its format is {0}, and this version of Weir reads {known}", known = FORMAT)]
    Format(u32),
}

/// The items of a journal that hold.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    pub(super) header: Header,
    /// The first byte that is left out, of a journal whose end is cut off.
    pub(super) torn_at: Option<u64>,
    ports: BTreeMap<PortNo, String>,
    /// Entries, each with counts that came after it.
    entries: HashMap<EntryId, (&'a [u8], Option<SavedCounts>)>,
    /// By the numbers that entries name.
    instructions: HashMap<u32, &'a [u8]>,
    groups: BTreeMap<u32, &'a [u8]>,
    meters: BTreeMap<u32, &'a [u8]>,
    addresses: &'a [u8],
    tables: &'a [u8],
}

/// Reads a journal, for tools and tests: all that it says, where every message is one that this
/// version knows.
///
/// # Errors
/// See [`JournalFault`].
pub fn read_journal(bytes: &[u8]) -> Result<Saved, JournalFault> {
    Parsed::of(bytes).map(|parsed| parsed.saved(None).0)
}

/// The state that the journal of a bridge says, and the number of items that this version cannot
/// read; none where it is of no use, and set aside.
pub(super) fn read_saved(
    path: &Path,
    header: &Header,
    owner: &JournalOwner,
    now: Nanos,
) -> io::Result<(Saved, usize)> {
    let bytes = match files::read(path, LEN_MAX) {
        Ok(bytes) => bytes,
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if bytes.is_empty() {
        return Ok((Saved::default(), 0));
    }
    let bridge = &owner.name;
    let parsed = Parsed::of(&bytes).map_err(|fault| (fault.to_string(), "damaged"));
    let usable = parsed.and_then(|parsed| match parsed.refusal(header, owner) {
        Some(why) => Err((why, "refused")),
        None => Ok(parsed),
    });
    match usable {
        Ok(parsed) => {
            if let Some(byte) = parsed.torn_at {
                let path = path.display();
                tracing::warn!(bridge, %path, byte, "the last record is cut off, and left out");
            }
            let is_same_boot = parsed.header.boot == header.boot;
            Ok(parsed.saved((!is_same_boot).then_some(now)))
        }
        Err((why, suffix)) => {
            let aside = name_aside(path, suffix);
            std::fs::rename(path, &aside)?;
            let (path, aside) = (path.display(), aside.display());
            tracing::warn!(
                bridge, %path, %aside, why,
                "the state of before is not used: the bridge begins without flow entries"
            );
            Ok((Saved::default(), 0))
        }
    }
}

/// A name that no earlier file that was set aside has; the last one where all are taken.
pub(super) fn name_aside(path: &Path, suffix: &str) -> PathBuf {
    let name = |number: u32| match number {
        1 => with_ending(path, suffix),
        number => with_ending(path, &format!("{suffix}.{number}")),
    };
    (1..ASIDE_MAX).map(name).find(|aside| !aside.exists()).unwrap_or_else(|| name(ASIDE_MAX))
}

impl<'a> Parsed<'a> {
    /// Reads all records.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, JournalFault> {
        let (first, mut rest) = match split_record(bytes) {
            Ok(Some(parts)) => parts,
            Ok(None) | Err(Damage) => return Err(JournalFault::NoJournal),
        };
        let mut parsed = Self::begun_by(first)?;
        let at = |rest: &[u8]| (bytes.len() - rest.len()) as u64;
        parsed.take_record(first).ok_or(JournalFault::Damaged(0))?;
        while !rest.is_empty() {
            let damaged = JournalFault::Damaged(at(rest));
            match split_record(rest) {
                Ok(Some((payload, behind))) => {
                    parsed.take_record(payload).ok_or(damaged)?;
                    rest = behind;
                }
                Ok(None) => {
                    parsed.torn_at = Some(at(rest));
                    break;
                }
                Err(Damage) => return Err(damaged),
            }
        }
        Ok(parsed)
    }

    /// The first item of the first record is the header.
    fn begun_by(first: &[u8]) -> Result<Self, JournalFault> {
        let (tag, body, _) = split_item(first).ok_or(JournalFault::NoJournal)?;
        if Tag::from_number(tag) != Some(Tag::Header) {
            return Err(JournalFault::NoJournal);
        }
        // Of another format, nothing else need be known.
        let value: serde_json::Value =
            serde_json::from_slice(body).map_err(|_| JournalFault::NoJournal)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        let format = format.and_then(|format| u32::try_from(format).ok());
        let format = format.ok_or(JournalFault::NoJournal)?;
        if format != FORMAT {
            return Err(JournalFault::Format(format));
        }
        let header = serde_json::from_value(value).map_err(|_| JournalFault::NoJournal)?;
        Ok(Self {
            header,
            torn_at: None,
            ports: BTreeMap::new(),
            entries: HashMap::new(),
            instructions: HashMap::new(),
            groups: BTreeMap::new(),
            meters: BTreeMap::new(),
            addresses: &[],
            tables: &[],
        })
    }

    /// Takes the items of a record; none where one is no item.
    fn take_record(&mut self, mut payload: &'a [u8]) -> Option<()> {
        while !payload.is_empty() {
            let (tag, body, behind) = split_item(payload)?;
            self.take_item(Tag::from_number(tag)?, body)?;
            payload = behind;
        }
        Some(())
    }

    fn take_item(&mut self, tag: Tag, body: &'a [u8]) -> Option<()> {
        let mut fields = Fields(body);
        match tag {
            Tag::Header => self.header = serde_json::from_slice(body).ok()?,
            Tag::Addresses => self.addresses = body,
            Tag::Tables => self.tables = body,
            Tag::Entry => {
                let id = EntryId(fields.u32()?);
                self.entries.insert(id, (fields.0, None));
            }
            Tag::EntryGone => {
                self.entries.remove(&EntryId(fields.u32()?));
            }
            Tag::Counts => {
                let (id, counts) = (EntryId(fields.u32()?), fields.counts()?);
                // Counts that were saved during a compaction may stand before their entry, which
                // has later ones.
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.1 = Some(counts);
                }
            }
            Tag::Instructions => {
                self.instructions.insert(fields.u32()?, fields.0);
            }
            Tag::Group => {
                self.groups.insert(fields.u32()?, fields.0);
            }
            Tag::GroupGone => {
                self.groups.remove(&fields.u32()?);
            }
            Tag::Meter => {
                self.meters.insert(fields.u32()?, fields.0);
            }
            Tag::MeterGone => {
                self.meters.remove(&fields.u32()?);
            }
            Tag::Port => {
                let (number, name) = (PortNo(fields.u32()?), str::from_utf8(fields.0).ok()?);
                self.ports.insert(number, name.to_owned());
            }
            Tag::PortGone => {
                self.ports.remove(&PortNo(fields.u32()?));
            }
        }
        Some(())
    }

    /// Why the state is not of this bridge, and how it can be used all the same.
    fn refusal(&self, header: &Header, owner: &JournalOwner) -> Option<String> {
        let (before, now) = (&self.header.dpid, &header.dpid);
        if before != now {
            return Some(format!(
                "it is of the datapath {before}, and the bridge is {now} now; to use it, set \
                 dpid = \"{before}\" and give the file its name again"
            ));
        }
        let other = self.ports.iter().find_map(|(number, before)| {
            let now = owner.ports.get(number).filter(|now| *now != before)?;
            Some((number, before, now))
        });
        let (number, before, now) = other?;
        Some(format!(
            "its port {number} is {before}, and that of the bridge is {now} now; to use it, give \
             the ports their numbers of before and the file its name again"
        ))
    }

    /// All that it says, and the number of items that this version cannot read. Where times are of
    /// an earlier start of the machine, everything begins at `anew`.
    pub(super) fn saved(&self, anew: Option<Nanos>) -> (Saved, usize) {
        let lists = self.instructions.iter();
        let lists = lists.map(|(number, frame)| (*number, instructions(frame))).collect();
        let entries = self.entries.iter();
        let entries = entries.map(|(id, (body, counts))| entry(*id, body, *counts, &lists, anew));
        let entries: Vec<_> = entries.collect();
        let groups: Vec<_> = self.groups.values().map(|body| group(body, anew)).collect();
        let meters: Vec<_> = self.meters.values().map(|body| meter(body, anew)).collect();
        let mut fields = Fields(self.addresses);
        let addresses = std::iter::from_fn(|| fields.address()).collect();
        let mut messages = Fields(self.tables);
        let tables = std::iter::from_fn(|| {
            let Message::TableMod(table) = messages.message()?.1 else { return None };
            Some(table)
        });
        let tables = tables.collect();
        let held = entries.len() + groups.len() + meters.len();
        let saved = Saved {
            entries: entries.into_iter().flatten().collect(),
            groups: groups.into_iter().flatten().collect(),
            meters: meters.into_iter().flatten().collect(),
            addresses,
            tables,
        };
        let read = saved.entries.len() + saved.groups.len() + saved.meters.len();
        (saved, held - read)
    }
}

/// A record is not what was written.
#[derive(Debug)]
struct Damage;

/// The first part, and what comes after it.
type Parts<'a> = (&'a [u8], &'a [u8]);

/// The payload of the first record, and what comes after it; none where the end cuts it off.
fn split_record(bytes: &[u8]) -> Result<Option<Parts<'_>>, Damage> {
    if bytes.len() < HEAD_LEN {
        return Ok(None);
    }
    let mut fields = Fields(bytes);
    let mut word = || fields.u32().ok_or(Damage);
    let (len, sum, own_sum) = (word()?, word()?, word()?);
    if head_sum(len, sum) != own_sum {
        return Err(Damage);
    }
    let Some((payload, behind)) = fields.0.split_at_checked(len as usize) else { return Ok(None) };
    let is_whole = packet::checksum::crc32c(&[payload]) == sum;
    if is_whole { Ok(Some((payload, behind))) } else { Err(Damage) }
}

/// Tag and body of the first item, and what comes after it.
fn split_item(payload: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let mut fields = Fields(payload);
    let ([tag], len) = (fields.array()?, fields.u32()?);
    let (body, behind) = fields.0.split_at_checked(len as usize)?;
    Some((tag, body, behind))
}

/// The lists of instructions by number, those that this version can read.
type Lists = HashMap<u32, Option<Vec<Instruction>>>;

fn instructions(frame: &[u8]) -> Option<Vec<Instruction>> {
    let (.., message) = Fields(frame).message()?;
    let Message::FlowMod(add) = message else { return None };
    Some(add.instructions)
}

fn entry(
    id: EntryId,
    body: &[u8],
    counted: Option<SavedCounts>,
    lists: &Lists,
    anew: Option<Nanos>,
) -> Option<SavedEntry> {
    let mut fields = Fields(body);
    let instructions = lists.get(&fields.u32()?)?.clone()?;
    let (seq, created) = (fields.u64()?, Nanos(fields.u64()?));
    let counts = counted.or(fields.counts())?;
    let (version, message) = fields.message()?;
    let Message::FlowMod(add) = message else { return None };
    let add = FlowMod { instructions, ..add };
    let last_used = anew.unwrap_or(counts.last_used);
    let counts = SavedCounts { last_used, ..counts };
    Some(SavedEntry { id, add, version, seq, created: anew.unwrap_or(created), counts })
}

fn group(body: &[u8], anew: Option<Nanos>) -> Option<SavedGroup> {
    let mut fields = Fields(body);
    let created = Nanos(fields.u64()?);
    let (counts, buckets) = fields.all_counts()?;
    let count = |[packet_count, byte_count]: [u64; 2]| BucketCounter { packet_count, byte_count };
    let Message::GroupMod(add) = fields.message()?.1 else { return None };
    Some(SavedGroup {
        desc: GroupDesc {
            group_type: add.group_type,
            group_id: add.group_id,
            buckets: add.buckets,
            selection: add.selection,
        },
        created: anew.unwrap_or(created),
        counts: count(counts),
        buckets: buckets.into_iter().map(count).collect(),
    })
}

fn meter(body: &[u8], anew: Option<Nanos>) -> Option<SavedMeter> {
    let mut fields = Fields(body);
    let created = Nanos(fields.u64()?);
    let (counts, bands) = fields.all_counts()?;
    let count = |[packet_count, byte_count]: [u64; 2]| BandCounter { packet_count, byte_count };
    let Message::MeterMod(add) = fields.message()?.1 else { return None };
    Some(SavedMeter {
        config: MeterConfig { flags: add.flags, meter_id: add.meter_id, bands: add.bands },
        created: anew.unwrap_or(created),
        counts: count(counts),
        bands: bands.into_iter().map(count).collect(),
    })
}

/// The fields of a body that are left.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn counts(&mut self) -> Option<SavedCounts> {
        let (packets, bytes, last_used) = (self.u64()?, self.u64()?, Nanos(self.u64()?));
        Some(SavedCounts { packets, bytes, last_used })
    }

    /// Packets and bytes of the whole and of each part.
    fn all_counts(&mut self) -> Option<([u64; 2], Vec<[u64; 2]>)> {
        let own = [self.u64()?, self.u64()?];
        let count = self.u32()?;
        let parts = (0..count).map_while(|_| Some([self.u64()?, self.u64()?]));
        let parts: Vec<_> = parts.collect();
        (parts.len() == count as usize).then_some((own, parts))
    }

    fn address(&mut self) -> Option<LearntAddress> {
        let port = PortNo(self.u32()?);
        let vlan = u16::from_le_bytes(self.array()?);
        let (address, [is_static]) = (MacAddr(self.array()?), self.array()?);
        Some(LearntAddress { port, vlan, address, age_s: 0, is_static: is_static != 0 })
    }

    fn message(&mut self) -> Option<(Version, Message)> {
        let len = usize::from(MessageHeader::parse(self.0)?.length);
        let (frame, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let (version, _, message) = wire::decode_in(frame, FORMS).ok()?;
        Some((version, message))
    }
}
