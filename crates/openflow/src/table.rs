//! Flow tables as messages speak of them (clauses 7.3.3, 7.3.5.4, 7.3.5.5).

use crate::action::ActionKind;
use crate::field::{Field, OXM_CLASS_BASIC};
use crate::id::TableId;
use crate::instruction::InstructionKind;
use crate::numbered::numbered;
use crate::version::Version;

/// A table's settings (clause 7.3.3): of a table-mod, of a table's description and of a table
/// status. 1.3 has no bit of them; 1.4 has eviction and vacancy events, each with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMod {
    /// The table; [`TableId::ALL`] for all.
    pub table_id: TableId,
    /// The settings' bits.
    pub config: u32,
    /// The flags of eviction (`OFPTMPEF_*`), where they are given.
    pub eviction: Option<u32>,
    /// The bounds of vacancy events, where they are given.
    pub vacancy: Option<Vacancy>,
}

impl TableMod {
    /// Of the settings: a full table makes room for a new entry (`OFPTC_EVICTION`, 1.4).
    pub const EVICTION: u32 = 1 << 2;
    /// Of the settings: vacancy events are sent (`OFPTC_VACANCY_EVENTS`, 1.4).
    pub const VACANCY_EVENTS: u32 = 1 << 3;

    /// Settings without properties.
    #[must_use]
    pub const fn new(table_id: TableId, config: u32) -> Self {
        Self { table_id, config, eviction: None, vacancy: None }
    }
}

/// Bounds of a table's vacancy, in per cent of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// An event is sent when less is vacant.
    pub down: u8,
    /// An event is sent when more is vacant again.
    pub up: u8,
    /// Vacant now; zero in a table-mod.
    pub now: u8,
}

numbered! {
    /// Why a table status is sent (`OFPTR_*`).
    pub enum TableReason: u8 {
        /// Less is vacant than the lower bound.
        VacancyDown = 3 => "VACANCY_DOWN" since V1_4,
        /// More is vacant than the upper bound.
        VacancyUp = 4 => "VACANCY_UP" since V1_4,
    }
}

/// A table's state has changed (1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStatus {
    /// The event.
    pub reason: TableReason,
    /// The table's settings.
    pub table: TableMod,
}

/// All that a table of 1.1 or 1.2 can do, where bit n stands for number n of an OXM field (in 1.1
/// of a member of its match, [`TUPLE_MEMBERS`]), an action or an instruction; since 1.3 the same
/// stands in the table's features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableAbilities {
    /// Fields that entries may match.
    pub matches: u64,
    /// Fields of these that entries may leave out.
    pub wildcards: u64,
    /// Actions in write-actions.
    pub write_actions: u32,
    /// Actions in apply-actions.
    pub apply_actions: u32,
    /// 1.2: fields that set-field may write in write-actions.
    pub write_setfields: u64,
    /// 1.2: fields that set-field may write in apply-actions.
    pub apply_setfields: u64,
    /// 1.2: metadata bits that it can match.
    pub metadata_match: u64,
    /// 1.2: metadata bits that it can write.
    pub metadata_write: u64,
    /// Instructions that entries may have.
    pub instructions: u32,
    /// Settings.
    pub config: u32,
}

impl TableAbilities {
    /// The abilities of a table with these features, of entries other than the table-miss entry.
    /// Settings of 1.3 mean nothing, and are left out.
    #[must_use]
    pub fn of(features: &TableFeatures, version: Version) -> Self {
        let mut abilities = Self {
            metadata_match: features.metadata_match,
            metadata_write: features.metadata_write,
            ..Self::default()
        };
        let actions = |ids: &[TypeId<ActionKind>]| bits32(ids, |kind| kind.number(version));
        for property in &features.properties {
            match property {
                TableProperty::Instructions(OnPacket::Hit, ids) => {
                    abilities.instructions = bits32(ids, |kind| kind.number(version));
                }
                TableProperty::WriteActions(OnPacket::Hit, ids) => {
                    abilities.write_actions = actions(ids);
                }
                TableProperty::ApplyActions(OnPacket::Hit, ids) => {
                    abilities.apply_actions = actions(ids);
                }
                TableProperty::Match(ids) => abilities.matches = field_bits(ids),
                TableProperty::Wildcards(ids) => abilities.wildcards = field_bits(ids),
                TableProperty::WriteSetField(OnPacket::Hit, ids) => {
                    abilities.write_setfields = field_bits(ids);
                }
                TableProperty::ApplySetField(OnPacket::Hit, ids) => {
                    abilities.apply_setfields = field_bits(ids);
                }
                TableProperty::Instructions(OnPacket::Miss, _)
                | TableProperty::WriteActions(OnPacket::Miss, _)
                | TableProperty::ApplyActions(OnPacket::Miss, _)
                | TableProperty::WriteSetField(OnPacket::Miss, _)
                | TableProperty::ApplySetField(OnPacket::Miss, _)
                | TableProperty::NextTables(..)
                | TableProperty::SynchronisedFrom(_)
                | TableProperty::WriteCopyField(..)
                | TableProperty::ApplyCopyField(..)
                | TableProperty::PacketTypes(_)
                | TableProperty::Experimenter { .. } => {}
            }
        }
        if version.has_tuple_matches() { abilities.in_members(version) } else { abilities }
    }

    /// The same where there is an action for each field that can be set, and a match has members.
    fn in_members(self, version: Version) -> Self {
        let members = |fields: u64| {
            let known = TUPLE_MEMBERS.iter().enumerate();
            let held = known.filter(|(_, field)| fields >> field.row().oxm & 1 != 0);
            held.fold(0, |bits, (number, _)| bits | 1 << number)
        };
        let sets = |fields: u64| {
            let kinds = Self::fields(fields).filter_map(|it| ActionKind::setting(version, it));
            bits_of(kinds.filter_map(|kind| kind.number(version)))
        };
        Self {
            matches: members(self.matches),
            wildcards: members(self.wildcards),
            write_actions: self.write_actions | sets(self.write_setfields),
            apply_actions: self.apply_actions | sets(self.apply_setfields),
            write_setfields: 0,
            apply_setfields: 0,
            metadata_match: 0,
            metadata_write: 0,
            ..self
        }
    }

    /// The fields of a bitmap, in the order of their numbers.
    pub fn fields(bits: u64) -> impl Iterator<Item = Field> {
        (0..64).filter(move |number| bits >> number & 1 != 0).filter_map(Field::from_oxm)
    }

    /// The fields of a bitmap of 1.1's members.
    pub fn members(bits: u64) -> impl Iterator<Item = Field> {
        let known = TUPLE_MEMBERS.iter().enumerate().filter(|(number, _)| *number != MATCH_TYPE);
        known.filter(move |(number, _)| bits >> number & 1 != 0).map(|(_, field)| *field)
    }
}

/// The number of the match's type among the members of 1.1's match, which is no field.
const MATCH_TYPE: usize = 10;

/// The members of 1.1's match by their numbers in a table's bitmaps (`OFPFMF_*`), each by its first
/// field. The EtherType stands for `MATCH_TYPE` too.
pub const TUPLE_MEMBERS: [Field; 16] = [
    Field::InPort,
    Field::VlanVid,
    Field::VlanPcp,
    Field::EthType,
    Field::IpDscp,
    Field::IpProto,
    Field::TcpSrc,
    Field::TcpDst,
    Field::MplsLabel,
    Field::MplsTc,
    Field::EthType,
    Field::EthSrc,
    Field::EthDst,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Metadata,
];

/// A bit for the number of each type.
fn bits32<Kind: Copy>(ids: &[TypeId<Kind>], number: impl Fn(Kind) -> Option<u16>) -> u32 {
    let numbers = ids.iter().filter_map(|id| match id {
        TypeId::Known(kind) => number(*kind),
        TypeId::Unknown(number) => Some(*number),
        TypeId::Experimenter(_) => None,
    });
    bits_of(numbers)
}

fn bits_of(numbers: impl Iterator<Item = u16>) -> u32 {
    let mut bits = 0;
    numbers.for_each(|number| bits |= 1_u32.checked_shl(number.into()).unwrap_or(0));
    bits
}

/// A bit for each field of the basic class.
fn field_bits(ids: &[OxmId]) -> u64 {
    let number = |id: &OxmId| match id {
        OxmId::Basic { field, .. } => {
            (field.row().class == OXM_CLASS_BASIC).then_some(field.row().oxm)
        }
        OxmId::Unknown(_) | OxmId::Experimenter { .. } => None,
    };
    let numbers = ids.iter().filter_map(number);
    numbers.fold(0, |bits, number| bits | 1_u64.checked_shl(number.into()).unwrap_or(0))
}

/// One table's counters. Name, abilities and size are carried until 1.2; since 1.3 they stand in
/// the table's features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// The table.
    pub table_id: TableId,
    /// Until 1.2: its name.
    pub name: String,
    /// 1.0: which wildcards it supports (`OFPFW_*`).
    pub wildcards: u32,
    /// 1.1 and 1.2: all that it can do.
    pub abilities: TableAbilities,
    /// Until 1.2: most entries.
    pub max_entries: u32,
    /// Entries in it.
    pub active_count: u32,
    /// Packets looked up.
    pub lookup_count: u64,
    /// Packets that hit an entry.
    pub matched_count: u64,
}

/// A field as a table's features name it: the OXM header without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OxmId {
    /// A basic field; the flag says whether a mask may be used.
    Basic {
        /// The field.
        field: Field,
        /// Whether the has-mask bit is set.
        maskable: bool,
    },
    /// A field that Weir does not know: its 32-bit OXM header.
    Unknown(u32),
    /// A field of somebody's own.
    Experimenter {
        /// The 32-bit OXM header.
        header: u32,
        /// Its owner.
        experimenter: u32,
    },
}

/// An instruction or action in a list of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeId<Kind> {
    /// A type that has a row.
    Known(Kind),
    /// A type number that has none.
    Unknown(u16),
    /// One of somebody's own.
    Experimenter(u32),
}

/// Each property comes for table hits and for table misses; this says which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnPacket {
    /// For entries that are not the table-miss entry.
    Hit,
    /// For the table-miss entry.
    Miss,
}

/// One property of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableProperty {
    /// Instructions that entries may have.
    Instructions(OnPacket, Vec<TypeId<InstructionKind>>),
    /// Tables that entries may go to.
    NextTables(OnPacket, Vec<TableId>),
    /// Actions in write-actions.
    WriteActions(OnPacket, Vec<TypeId<ActionKind>>),
    /// Actions in apply-actions.
    ApplyActions(OnPacket, Vec<TypeId<ActionKind>>),
    /// Fields that entries may match.
    Match(Vec<OxmId>),
    /// Fields that entries may leave out.
    Wildcards(Vec<OxmId>),
    /// Fields that set-field may write in write-actions.
    WriteSetField(OnPacket, Vec<OxmId>),
    /// Fields that set-field may write in apply-actions.
    ApplySetField(OnPacket, Vec<OxmId>),
    /// Tables whose entries this one copies (1.4).
    SynchronisedFrom(Vec<TableId>),
    /// Fields that copy-field may write in write-actions (1.5).
    WriteCopyField(OnPacket, Vec<OxmId>),
    /// Fields that copy-field may write in apply-actions (1.5).
    ApplyCopyField(OnPacket, Vec<OxmId>),
    /// Packet types that entries may match: namespace and type (1.5).
    PacketTypes(Vec<u32>),
    /// Somebody's own.
    Experimenter {
        /// For hits or misses.
        on: OnPacket,
        /// Its owner.
        experimenter: u32,
        /// Its type.
        exp_type: u32,
        /// The body.
        data: Vec<u8>,
    },
}

/// Features of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// The table.
    pub table_id: TableId,
    /// Its name: at most 31 bytes go on the wire.
    pub name: String,
    /// Metadata bits that it can match.
    pub metadata_match: u64,
    /// Metadata bits that it can write.
    pub metadata_write: u64,
    /// Settings.
    pub config: u32,
    /// Most entries.
    pub max_entries: u32,
    /// Its properties, in the order of the message.
    pub properties: Vec<TableProperty>,
}
