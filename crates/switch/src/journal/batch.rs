//! The words of a journal: records of items, and how they are written.
//!
//! A record is the length of its payload, the payload's CRC32c and that of these eight bytes, then
//! the payload: items, each with a tag, a length and a body. Numbers are little-endian. Entries,
//! groups and meters are the messages of OpenFlow that make them, with what no message says.

use std::convert::Infallible;

use datapath::LearntAddress;
use datapath::fast::{EntryId, SavedCounts, SavedEntry, SavedGroup, SavedMeter};
use openflow::flow::{FlowForm, FlowMod, FlowModCommand};
use openflow::group::{BucketCounter, GroupMod, GroupModCommand};
use openflow::message::PacketInForm;
use openflow::meter::{BandCounter, MeterConfig, MeterMod, MeterModCommand};
use openflow::table::TableMod;
use openflow::{GroupId, Instruction, Match, Message, MeterId, PortNo, Version, Xid};
use packet::checksum::crc32c;
use wire::{EncodeError, Forms};

use super::Header;

/// Bytes before a payload.
pub(super) const HEAD_LEN: usize = 12;

/// The forms of messages: a flow-mod names its table.
pub(super) const FORMS: Forms =
    Forms { has_table_ids: true, flows: FlowForm::Standard, packet_ins: PacketInForm::Standard };

/// Bytes before the body of an item.
const ITEM_HEAD_LEN: usize = 5;

macro_rules! tags {
    ($($(#[doc = $doc:literal])+ $tag:ident $number:literal;)+) => {
        /// The meaning of an item.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Tag {
            $($(#[doc = $doc])+ $tag = $number,)+
        }

        impl Tag {
            /// The tag of a number.
            pub(super) fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$tag),)+
                    _ => None,
                }
            }
        }
    };
}

tags! {
    /// The owner, in JSON.
    Header 1;
    /// An entry.
    Entry 2;
    /// There is no entry of this number.
    EntryGone 3;
    /// The counts of an entry.
    Counts 4;
    /// A group, with its counts.
    Group 5;
    /// There is no group of this number.
    GroupGone 6;
    /// A meter, with its counts.
    Meter 7;
    /// There is no meter of this number.
    MeterGone 8;
    /// A port: its number and its name.
    Port 9;
    /// There is no port of this number.
    PortGone 10;
    /// All addresses that `NORMAL` knows.
    Addresses 11;
    /// The instructions of a number that entries name.
    Instructions 12;
    /// Table-mods that set up all tables that have settings.
    Tables 13;
}

/// A record that is being made.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Begins with the room for the head, unless it is empty.
    bytes: Vec<u8>,
}

impl Batch {
    /// The record of the items so far; none without items.
    pub(super) fn seal(&mut self) -> Option<&[u8]> {
        let (head, payload) = self.bytes.split_first_chunk_mut::<HEAD_LEN>()?;
        // A message of a controller is shorter than 4 GiB, and so is a bundle.
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let [sum_1, sum_2] = sums(len, payload);
        let words = [len, sum_1, sum_2].map(u32::to_le_bytes);
        *head = std::array::from_fn(|at| words[at / 4][at % 4]);
        Some(&self.bytes)
    }

    /// Begins anew, with room of at most this size.
    pub(super) fn clear(&mut self, room: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(room);
    }

    /// Writes an item.
    fn item(&mut self, tag: Tag, write: impl FnOnce(&mut Vec<u8>)) {
        let always = |out: &mut Vec<u8>| {
            write(out);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = self.try_item(tag, always);
    }

    /// Writes an item, or nothing where that fails.
    fn try_item<E>(
        &mut self,
        tag: Tag,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_first = self.bytes.is_empty();
        if is_first {
            self.bytes.extend([0; HEAD_LEN]);
        }
        let start = self.bytes.len();
        self.bytes.extend([tag as u8, 0, 0, 0, 0]);
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(if is_first { 0 } else { start });
            return Err(error);
        }
        let body = start + ITEM_HEAD_LEN;
        let len = u32::try_from(self.bytes.len() - body).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(start + 1..body) {
            place.copy_from_slice(&len.to_le_bytes());
        }
        Ok(())
    }

    pub(super) fn header(&mut self, header: &Header) {
        let text = serde_json::json!(header).to_string();
        self.item(Tag::Header, |out| out.extend(text.as_bytes()));
    }

    /// Writes an entry, but for its instructions.
    pub(super) fn entry(
        &mut self,
        entry: SavedEntry,
        instructions: u32,
    ) -> Result<(), EncodeError> {
        let SavedEntry { id, add, version, seq, created, counts } = entry;
        let message = Message::FlowMod(add);
        self.try_item(Tag::Entry, |out| {
            out.extend(id.0.to_le_bytes());
            out.extend(instructions.to_le_bytes());
            put_u64(out, [seq, created.0, counts.packets, counts.bytes, counts.last_used.0]);
            // The version that has set it up has words for its match, and for its form: its own,
            // or Nicira's.
            wire::encode_in(out, FORMS, version, Xid(0), &message).or_else(|_| {
                let forms = Forms { flows: FlowForm::Nicira, ..FORMS };
                wire::encode_in(out, forms, version, Xid(0), &message)
            })
        })
    }

    /// Writes the instructions of a number, of which an entry with this match is one that has them;
    /// false where no version has words for them.
    pub(super) fn instructions(
        &mut self,
        number: u32,
        list: &[Instruction],
        matching: &Match,
    ) -> bool {
        let (matching, instructions) = (matching.clone(), list.to_vec());
        let add = FlowMod { matching, instructions, ..FlowMod::new(FlowModCommand::Add) };
        let is_same = |decoded: &Message| {
            let Message::FlowMod(FlowMod { instructions, .. }) = decoded else { return false };
            instructions == list
        };
        let Some(frame) = encode_exactly(&Message::FlowMod(add), is_same) else { return false };
        self.item(Tag::Instructions, |out| {
            out.extend(number.to_le_bytes());
            out.extend(frame);
        });
        true
    }

    pub(super) fn entry_gone(&mut self, id: EntryId) {
        self.item(Tag::EntryGone, |out| out.extend(id.0.to_le_bytes()));
    }

    pub(super) fn counts(&mut self, id: EntryId, counts: SavedCounts) {
        self.item(Tag::Counts, |out| {
            out.extend(id.0.to_le_bytes());
            put_u64(out, [counts.packets, counts.bytes, counts.last_used.0]);
        });
    }

    pub(super) fn group(&mut self, group: &SavedGroup) -> Result<(), EncodeError> {
        let SavedGroup { desc, created, counts, buckets } = group;
        let message = Message::GroupMod(GroupMod {
            command: GroupModCommand::Add,
            group_type: desc.group_type,
            group_id: desc.group_id,
            buckets: desc.buckets.clone(),
            selection: desc.selection.clone(),
            ..GroupMod::default()
        });
        let count = |it: &BucketCounter| [it.packet_count, it.byte_count];
        self.try_item(Tag::Group, |out| {
            out.extend(desc.group_id.0.to_le_bytes());
            put_u64(out, [created.0]);
            put_counts(out, count(counts), buckets.iter().map(count));
            match encode_exactly(&message, |decoded| *decoded == message) {
                Some(frame) => out.extend(frame),
                None => wire::encode_into(out, Version::NEWEST, Xid(0), &message)?,
            }
            Ok(())
        })
    }

    pub(super) fn group_gone(&mut self, id: GroupId) {
        self.item(Tag::GroupGone, |out| out.extend(id.0.to_le_bytes()));
    }

    pub(super) fn meter(&mut self, meter: &SavedMeter) -> Result<(), EncodeError> {
        let SavedMeter { config, created, counts, bands } = meter;
        let MeterConfig { flags, meter_id, bands: configured } = config.clone();
        let message = Message::MeterMod(MeterMod {
            command: MeterModCommand::Add,
            flags,
            meter_id,
            bands: configured,
        });
        let count = |it: &BandCounter| [it.packet_count, it.byte_count];
        self.try_item(Tag::Meter, |out| {
            out.extend(meter_id.0.to_le_bytes());
            put_u64(out, [created.0]);
            put_counts(out, count(counts), bands.iter().map(count));
            wire::encode_into(out, Version::NEWEST, Xid(0), &message)
        })
    }

    pub(super) fn meter_gone(&mut self, id: MeterId) {
        self.item(Tag::MeterGone, |out| out.extend(id.0.to_le_bytes()));
    }

    pub(super) fn port(&mut self, number: PortNo, name: &str) {
        self.item(Tag::Port, |out| {
            out.extend(number.0.to_le_bytes());
            out.extend(name.as_bytes());
        });
    }

    pub(super) fn port_gone(&mut self, number: PortNo) {
        self.item(Tag::PortGone, |out| out.extend(number.0.to_le_bytes()));
    }

    pub(super) fn tables(&mut self, tables: Vec<TableMod>) -> Result<(), EncodeError> {
        self.try_item(Tag::Tables, |out| {
            let mut messages = tables.into_iter().map(Message::TableMod);
            messages.try_for_each(|it| wire::encode_into(out, Version::NEWEST, Xid(0), &it))
        })
    }

    pub(super) fn addresses(&mut self, known: &[LearntAddress]) {
        self.item(Tag::Addresses, |out| {
            for LearntAddress { port, vlan, address, is_static, .. } in known {
                out.extend(port.0.to_le_bytes());
                out.extend(vlan.to_le_bytes());
                out.extend(address.0);
                out.push((*is_static).into());
            }
        });
    }
}

/// The checksums of a record: of the payload, and of the length and that.
pub(super) fn sums(len: u32, payload: &[u8]) -> [u32; 2] {
    let sum = crc32c(&[payload]);
    [sum, head_sum(len, sum)]
}

/// The checksum of a head.
pub(super) fn head_sum(len: u32, sum: u32) -> u32 {
    crc32c(&[&len.to_le_bytes(), &sum.to_le_bytes()])
}

/// The message in the newest version that says exactly it; what another says may be nearly the
/// same.
fn encode_exactly(message: &Message, is_same: impl Fn(&Message) -> bool) -> Option<Vec<u8>> {
    Version::ALL.iter().rev().find_map(|version| {
        let frame = wire::encode(*version, Xid(0), message).ok()?;
        let (.., decoded) = wire::decode(&frame).ok()?;
        is_same(&decoded).then_some(frame)
    })
}

fn put_u64<const N: usize>(out: &mut Vec<u8>, values: [u64; N]) {
    values.iter().for_each(|value| out.extend(value.to_le_bytes()));
}

/// Packets and bytes of the whole and of each part.
fn put_counts(out: &mut Vec<u8>, own: [u64; 2], parts: impl ExactSizeIterator<Item = [u64; 2]>) {
    put_u64(out, own);
    out.extend(u32::try_from(parts.len()).unwrap_or(u32::MAX).to_le_bytes());
    parts.for_each(|part| put_u64(out, part));
}
