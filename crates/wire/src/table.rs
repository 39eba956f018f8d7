//! Flow tables in messages: settings and statistics (clauses 7.3.3 and 7.3.5.4).

use openflow::table::{TableMod, TableStats};
use openflow::{TableId, Version};

use crate::reader::{self, Reader};
use crate::writer::Writer;

/// `OFP_MAX_TABLE_NAME_LEN`.
pub(crate) const NAME_LEN: usize = 32;

pub(crate) fn read_mod(r: &mut Reader<'_>) -> reader::Result<TableMod> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    Ok(TableMod { table_id, config: r.u32()? })
}

pub(crate) fn write_mod(w: &mut Writer<'_>, table: &TableMod) {
    w.u8(table.table_id.0);
    w.zeros(3);
    w.u32(table.config);
}

pub(crate) fn read_stats(r: &mut Reader<'_>) -> reader::Result<TableStats> {
    let mut stats = TableStats { table_id: TableId(r.u8()?), ..TableStats::default() };
    r.skip(3)?;
    if r.version == Version::V1_0 {
        stats.name = r.text(NAME_LEN)?;
        stats.wildcards = r.u32()?;
        stats.max_entries = r.u32()?;
    }
    stats.active_count = r.u32()?;
    stats.lookup_count = r.u64()?;
    stats.matched_count = r.u64()?;
    Ok(stats)
}

pub(crate) fn write_stats(w: &mut Writer<'_>, stats: &TableStats) {
    w.u8(stats.table_id.0);
    w.zeros(3);
    if w.version == Version::V1_0 {
        w.text(&stats.name, NAME_LEN);
        w.u32(stats.wildcards);
        w.u32(stats.max_entries);
    }
    w.u32(stats.active_count);
    w.u64(stats.lookup_count);
    w.u64(stats.matched_count);
}
