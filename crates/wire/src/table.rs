//! Flow tables in messages: settings and statistics (clauses 7.3.3 and 7.3.5.4).

use openflow::TableId;
use openflow::table::{TableAbilities, TableMod, TableReason, TableStats, TableStatus, Vacancy};

use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFP_MAX_TABLE_NAME_LEN`.
pub(crate) const NAME_LEN: usize = 32;

pub(crate) fn read_mod_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<TableMod> {
    let table_id = TableId(r.u8()?);
    r.skip(3)?;
    Ok(TableMod::new(table_id, r.u32()?))
}

pub(crate) fn write_mod_v1_3(w: &mut Writer<'_>, table: &TableMod) -> writer::WriteResult<()> {
    w.require(table.eviction.is_none(), "eviction of a table")?;
    w.require(table.vacancy.is_none(), "vacancy events of a table")?;
    w.u8(table.table_id.0);
    w.zeros(3);
    w.u32(table.config);
    Ok(())
}

pub(crate) fn read_mod_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<TableMod> {
    let mut table = read_mod_v1_3(r)?;
    read_properties(r, &mut table, Unknown::Refused)?;
    Ok(table)
}

pub(crate) fn write_mod_v1_4(w: &mut Writer<'_>, table: &TableMod) -> writer::WriteResult<()> {
    w.u8(table.table_id.0);
    w.zeros(3);
    w.u32(table.config);
    write_properties(w, table)
}

fn read_properties(
    r: &mut Reader<'_>,
    table: &mut TableMod,
    unknown: Unknown,
) -> reader::ReadResult<()> {
    property::read_all(r, unknown, |number, body| {
        match number {
            property::EVICTION => table.eviction = Some(body.u32()?),
            property::VACANCY => {
                let (down, up, now) = (body.u8()?, body.u8()?, body.u8()?);
                body.skip(1)?;
                table.vacancy = Some(Vacancy { down, up, now });
            }
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn write_properties(w: &mut Writer<'_>, table: &TableMod) -> writer::WriteResult<()> {
    if let Some(flags) = table.eviction {
        property::write(w, property::EVICTION, |w| w.u32(flags))?;
    }
    if let Some(vacancy) = table.vacancy {
        property::write(w, property::VACANCY, |w| {
            w.bytes(&[vacancy.down, vacancy.up, vacancy.now, 0]);
        })?;
    }
    Ok(())
}

pub(crate) fn read_desc(r: &mut Reader<'_>) -> reader::ReadResult<TableMod> {
    let mut r = r.sized("table description")?;
    let table_id = TableId(r.u8()?);
    r.skip(1)?;
    let mut table = TableMod::new(table_id, r.u32()?);
    read_properties(&mut r, &mut table, Unknown::LeftOut)?;
    Ok(table)
}

pub(crate) fn write_desc(w: &mut Writer<'_>, table: &TableMod) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.u8(table.table_id.0);
    w.zeros(1);
    w.u32(table.config);
    write_properties(w, table)?;
    w.fill_len(start, start, "table description")
}

pub(crate) fn read_status(r: &mut Reader<'_>) -> reader::ReadResult<TableStatus> {
    let reason = TableReason::from_number(r.u8()?);
    r.skip(7)?;
    Ok(TableStatus { reason, table: read_desc(r)? })
}

pub(crate) fn write_status(w: &mut Writer<'_>, status: &TableStatus) -> writer::WriteResult<()> {
    w.u8(status.reason.number());
    w.zeros(7);
    write_desc(w, &status.table)
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
        ..TableStats::default()
    })
}

pub(crate) fn read_stats_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<TableStats> {
    let table_id = TableId(r.u8()?);
    r.skip(7)?;
    let name = r.text(NAME_LEN)?;
    let (wildcards, matches) = (r.u32()?.into(), r.u32()?.into());
    let (instructions, write_actions, apply_actions) = (r.u32()?, r.u32()?, r.u32()?);
    let config = r.u32()?;
    let abilities = TableAbilities {
        matches,
        wildcards,
        write_actions,
        apply_actions,
        instructions,
        config,
        ..TableAbilities::default()
    };
    Ok(TableStats {
        table_id,
        name,
        abilities,
        max_entries: r.u32()?,
        active_count: r.u32()?,
        lookup_count: r.u64()?,
        matched_count: r.u64()?,
        ..TableStats::default()
    })
}

pub(crate) fn read_stats_v1_2(r: &mut Reader<'_>) -> reader::ReadResult<TableStats> {
    let table_id = TableId(r.u8()?);
    r.skip(7)?;
    let name = r.text(NAME_LEN)?;
    let abilities = TableAbilities {
        matches: r.u64()?,
        wildcards: r.u64()?,
        write_actions: r.u32()?,
        apply_actions: r.u32()?,
        write_setfields: r.u64()?,
        apply_setfields: r.u64()?,
        metadata_match: r.u64()?,
        metadata_write: r.u64()?,
        instructions: r.u32()?,
        config: r.u32()?,
    };
    Ok(TableStats {
        table_id,
        name,
        abilities,
        max_entries: r.u32()?,
        active_count: r.u32()?,
        lookup_count: r.u64()?,
        matched_count: r.u64()?,
        ..TableStats::default()
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

pub(crate) fn write_stats_v1_1(w: &mut Writer<'_>, stats: &TableStats) -> writer::WriteResult<()> {
    let abilities = &stats.abilities;
    let bits = |w: &Writer<'_>, bits: u64| {
        u32::try_from(bits).map_err(|_| w.unsupported("bit of a table's match"))
    };
    w.u8(stats.table_id.0);
    w.zeros(7);
    w.text(&stats.name, NAME_LEN);
    w.u32(bits(w, abilities.wildcards)?);
    w.u32(bits(w, abilities.matches)?);
    w.u32(abilities.instructions);
    w.u32(abilities.write_actions);
    w.u32(abilities.apply_actions);
    w.u32(abilities.config);
    w.u32(stats.max_entries);
    write_counters(w, stats);
    Ok(())
}

pub(crate) fn write_stats_v1_2(w: &mut Writer<'_>, stats: &TableStats) -> writer::WriteResult<()> {
    w.u8(stats.table_id.0);
    w.zeros(7);
    w.text(&stats.name, NAME_LEN);
    let abilities = &stats.abilities;
    w.u64(abilities.matches);
    w.u64(abilities.wildcards);
    w.u32(abilities.write_actions);
    w.u32(abilities.apply_actions);
    w.u64(abilities.write_setfields);
    w.u64(abilities.apply_setfields);
    w.u64(abilities.metadata_match);
    w.u64(abilities.metadata_write);
    w.u32(abilities.instructions);
    w.u32(abilities.config);
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
