//! Flow tables in messages: settings and statistics (clauses 7.3.3 and 7.3.5.4).

use openflow::TableId;
use openflow::table::{TableMod, TableStats};

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFP_MAX_TABLE_NAME_LEN`.
pub(crate) const NAME_LEN: usize = 32;

pub(crate) fn read_mod(r: &mut Reader<'_>) -> reader::ReadResult<TableMod> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    Ok(TableMod { table_id, config: r.u32()? })
}

pub(crate) fn write_mod(w: &mut Writer<'_>, table: &TableMod) {
    w.u8(table.table_id.0);
    w.zeros(3);
    w.u32(table.config);
}

pub(crate) fn read_stats_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<TableStats> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    Ok(TableStats {
        table_id,
        name: r.text(NAME_LEN)?,
        wildcards: r.u32()?,
        max_entries: r.u32()?,
        active_count: r.u32()?,
        lookup_count: r.u64()?,
        matched_count: r.u64()?,
    })
}

pub(crate) fn read_stats_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<TableStats> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    Ok(TableStats {
        table_id,
        active_count: r.u32()?,
        lookup_count: r.u64()?,
        matched_count: r.u64()?,
        ..TableStats::default()
    })
}

pub(crate) fn write_stats_v1_0(w: &mut Writer<'_>, stats: &TableStats) -> writer::WriteResult<()> {
    w.u8(stats.table_id.0);
    w.zeros(3);
    w.text(&stats.name, NAME_LEN);
    w.u32(stats.wildcards);
    w.u32(stats.max_entries);
    write_counters(w, stats);
    Ok(())
}

pub(crate) fn write_stats_v1_3(w: &mut Writer<'_>, stats: &TableStats) -> writer::WriteResult<()> {
    w.u8(stats.table_id.0);
    w.zeros(3);
    write_counters(w, stats);
    Ok(())
}

fn write_counters(w: &mut Writer<'_>, stats: &TableStats) {
    w.u32(stats.active_count);
    w.u64(stats.lookup_count);
    w.u64(stats.matched_count);
}
