//! Counts of entries as a list of OXS fields (1.5, clause 7.2.4): `ofp_stats`.
//!
//! A field that is not there says that the switch does not have the count. Fields that Weir does
//! not know are left out, since a switch may always say more.

use openflow::Error;

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPXSC_OPENFLOW_BASIC`.
const CLASS_BASIC: u16 = 0x8002;
/// `OFPXST_OFB_*`.
const DURATION: u8 = 0;
const FLOW_COUNT: u8 = 3;
const PACKET_COUNT: u8 = 4;
const BYTE_COUNT: u8 = 5;

/// The counts that Weir knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Whole seconds, and nanoseconds beyond them.
    pub(crate) duration: Option<(u32, u32)>,
    /// Entries.
    pub(crate) flows: Option<u32>,
    /// Packets and bytes; all ones where not counted.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Reads the list and its padding.
pub(crate) fn read(r: &mut Reader<'_>) -> reader::ReadResult<Counts> {
    let start = r.clone().reading("counts", Error::BadRequestBadLen);
    let mut inner = start.clone();
    let (_, len, mut fields) = inner.element()?;
    let mut counts = Counts { packets: u64::MAX, bytes: u64::MAX, ..Counts::default() };
    while !fields.is_empty() {
        let class = fields.u16()?;
        let (number, len) = (fields.u8()? >> 1, usize::from(fields.u8()?));
        let mut value = fields.part(len)?;
        if class != CLASS_BASIC {
            continue;
        }
        match number {
            DURATION => counts.duration = Some((value.u32()?, value.u32()?)),
            FLOW_COUNT => counts.flows = Some(value.u32()?),
            PACKET_COUNT => counts.packets = value.u64()?,
            BYTE_COUNT => counts.bytes = value.u64()?,
            _ => continue,
        }
        value.finish()?;
    }
    r.skip(len.next_multiple_of(8))?;
    Ok(counts)
}

/// Writes the list and its padding, in the order of the fields' numbers.
pub(crate) fn write(w: &mut Writer<'_>, counts: &Counts) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(4);
    if let Some((seconds, nanoseconds)) = counts.duration {
        header(w, DURATION, 8);
        w.u32(seconds);
        w.u32(nanoseconds);
    }
    if let Some(flows) = counts.flows {
        header(w, FLOW_COUNT, 4);
        w.u32(flows);
    }
    for (number, count) in [(PACKET_COUNT, counts.packets), (BYTE_COUNT, counts.bytes)] {
        if count != u64::MAX {
            header(w, number, 8);
            w.u64(count);
        }
    }
    w.fill_len(start + 2, start, "counts")?;
    w.pad_from(start);
    Ok(())
}

fn header(w: &mut Writer<'_>, number: u8, len: u8) {
    w.u16(CLASS_BASIC);
    w.u8(number << 1);
    w.u8(len);
}
