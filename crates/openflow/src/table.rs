//! Flow tables as messages speak of them (clauses 7.3.3, 7.3.5.4, 7.3.5.5).

use crate::action::ActionKind;
use crate::field::Field;
use crate::id::TableId;
use crate::instruction::InstructionKind;
use crate::numbered::numbered;

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
        VacancyDown = 3 => "VACANCY_DOWN",
        /// More is vacant than the upper bound.
        VacancyUp = 4 => "VACANCY_UP",
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

/// One table's counters. Name, wildcards and size are carried by 1.0 only; in 1.3 they stand in the
/// table's features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// The table.
    pub table_id: TableId,
    /// 1.0: its name.
    pub name: String,
    /// 1.0: which wildcards it supports (`OFPFW_*`).
    pub wildcards: u32,
    /// 1.0: most entries.
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
