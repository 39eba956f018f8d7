//! Meters in messages (clauses 7.3.4.4 and 7.3.5.10 to 7.3.5.12); 1.3 only.

use openflow::meter::{
    Band, BandCounter, BandKind, MeterConfig, MeterFeatures, MeterFlags, MeterMod, MeterModCommand,
    MeterStats,
};
use openflow::{Error, MeterId};

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPMBT_DROP`.
const DROP: u16 = 1;
/// `OFPMBT_DSCP_REMARK`.
const DSCP_REMARK: u16 = 2;
/// `OFPMBT_EXPERIMENTER`.
const EXPERIMENTER: u16 = 0xffff;
/// Bytes of a band of the specification.
const BAND_LEN: u16 = 16;

pub(crate) fn read_mod(r: &mut Reader<'_>) -> reader::ReadResult<MeterMod> {
    Ok(MeterMod {
        command: MeterModCommand::from_number(r.u16()?),
        flags: MeterFlags::from_bits_retain(r.u16()?),
        meter_id: MeterId(r.u32()?),
        bands: read_bands(r)?,
    })
}

pub(crate) fn write_mod(w: &mut Writer<'_>, meter: &MeterMod) -> writer::WriteResult<()> {
    w.u16(meter.command.number());
    w.u16(meter.flags.bits());
    w.u32(meter.meter_id.0);
    meter.bands.iter().for_each(|band| write_band(w, band));
    Ok(())
}

/// Reads all that is left in `r` as bands. An unknown type, and an experimenter's band with more
/// than its id, is `OFPMMFC_BAD_BAND`: no switch of ours could run it.
fn read_bands(r: &mut Reader<'_>) -> reader::ReadResult<Vec<Band>> {
    let mut bands = Vec::new();
    while !r.is_empty() {
        bands.push(read_band(r)?);
    }
    Ok(bands)
}

fn read_band(r: &mut Reader<'_>) -> reader::ReadResult<Band> {
    let start = r.clone();
    let (number, len, mut body) = r.element()?;
    let is_known = matches!(number, DROP | DSCP_REMARK | EXPERIMENTER);
    if !is_known || number == EXPERIMENTER && len > usize::from(BAND_LEN) {
        return Err(start.fault_in(Error::MeterModBadBand, "band"));
    }
    let (rate, burst_size) = (body.u32()?, body.u32()?);
    let kind = match number {
        DSCP_REMARK => {
            let prec_level = body.u8()?;
            body.skip(3)?;
            BandKind::DscpRemark { prec_level }
        }
        EXPERIMENTER => BandKind::Experimenter { experimenter: body.u32()? },
        _ => body.skip(4).map(|()| BandKind::Drop)?,
    };
    body.finish()?;
    Ok(Band { kind, rate, burst_size })
}

fn write_band(w: &mut Writer<'_>, band: &Band) {
    w.u16(match band.kind {
        BandKind::Drop => DROP,
        BandKind::DscpRemark { .. } => DSCP_REMARK,
        BandKind::Experimenter { .. } => EXPERIMENTER,
    });
    w.u16(BAND_LEN);
    w.u32(band.rate);
    w.u32(band.burst_size);
    match band.kind {
        BandKind::Drop => w.zeros(4),
        BandKind::DscpRemark { prec_level } => {
            w.u8(prec_level);
            w.zeros(3);
        }
        BandKind::Experimenter { experimenter } => w.u32(experimenter),
    }
}

pub(crate) fn read_id_request(r: &mut Reader<'_>) -> reader::ReadResult<MeterId> {
    let meter = MeterId(r.u32()?);
    r.skip(4)?;
    Ok(meter)
}

pub(crate) fn write_id_request(w: &mut Writer<'_>, meter: MeterId) {
    w.u32(meter.0);
    w.zeros(4);
}

pub(crate) fn read_config(r: &mut Reader<'_>) -> reader::ReadResult<MeterConfig> {
    let mut r = r.sized("meter configuration")?;
    let flags = MeterFlags::from_bits_retain(r.u16()?);
    Ok(MeterConfig { flags, meter_id: MeterId(r.u32()?), bands: read_bands(&mut r)? })
}

pub(crate) fn write_config(w: &mut Writer<'_>, meter: &MeterConfig) -> writer::WriteResult<()> {
    let start = w.place();
    w.u16(0);
    w.u16(meter.flags.bits());
    w.u32(meter.meter_id.0);
    meter.bands.iter().for_each(|band| write_band(w, band));
    w.fill_len(start, start, "meter configuration")
}

pub(crate) fn read_stats(r: &mut Reader<'_>) -> reader::ReadResult<MeterStats> {
    let meter_id = MeterId(r.u32()?);
    let len = usize::from(r.u16()?);
    let mut r = r.part(len.checked_sub(6).ok_or_else(|| r.bad_len())?)?;
    r.skip(6)?;
    let mut stats = MeterStats {
        meter_id,
        flow_count: r.u32()?,
        packet_in_count: r.u64()?,
        byte_in_count: r.u64()?,
        duration_s: r.u32()?,
        duration_ns: r.u32()?,
        bands: Vec::new(),
    };
    while !r.is_empty() {
        stats.bands.push(BandCounter { packet_count: r.u64()?, byte_count: r.u64()? });
    }
    Ok(stats)
}

pub(crate) fn write_stats(w: &mut Writer<'_>, stats: &MeterStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.u32(stats.meter_id.0);
    w.u16(0);
    w.zeros(6);
    w.u32(stats.flow_count);
    w.u64(stats.packet_in_count);
    w.u64(stats.byte_in_count);
    w.u32(stats.duration_s);
    w.u32(stats.duration_ns);
    for band in &stats.bands {
        w.u64(band.packet_count);
        w.u64(band.byte_count);
    }
    w.fill_len(start + 4, start, "meter statistics")
}

pub(crate) fn read_features_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<MeterFeatures> {
    let features = MeterFeatures {
        max_meter: r.u32()?,
        band_types: r.u32()?,
        capabilities: r.u32()?,
        max_bands: r.u8()?,
        max_color: r.u8()?,
    };
    r.skip(2)?;
    Ok(features)
}

/// The flags of meters as actions are left out.
pub(crate) fn read_features_v1_5(r: &mut Reader<'_>) -> reader::ReadResult<MeterFeatures> {
    let features = read_features_v1_3(r)?;
    r.skip(8)?;
    Ok(features)
}

/// No flag of meters as actions: a meter is the first of a list that is applied, and in no set.
pub(crate) fn write_features_v1_5(
    w: &mut Writer<'_>,
    features: &MeterFeatures,
) -> writer::WriteResult<()> {
    write_features_v1_3(w, features)?;
    w.zeros(8);
    Ok(())
}

pub(crate) fn write_features_v1_3(
    w: &mut Writer<'_>,
    features: &MeterFeatures,
) -> writer::WriteResult<()> {
    w.u32(features.max_meter);
    w.u32(features.band_types);
    w.u32(features.capabilities);
    w.u8(features.max_bands);
    w.u8(features.max_color);
    w.zeros(2);
    Ok(())
}
