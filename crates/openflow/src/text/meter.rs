//! Meters in text: what `add-meter` takes and `dump-meters` prints.

use super::TextError;
use super::lex::{Piece, pairs};
use super::value::unsigned;
use super::words::unknown;
use crate::id::MeterId;
use crate::meter::{Band, BandKind, MeterConfig, MeterFlags, MeterMod, MeterModCommand};

/// The flags' words, in the order in which `ovs-ofctl` prints them.
const FLAGS: &[(&str, MeterFlags)] = &[
    ("kbps", MeterFlags::KBPS),
    ("pktps", MeterFlags::PKTPS),
    ("burst", MeterFlags::BURST),
    ("stats", MeterFlags::STATS),
];

/// Reads a meter: `meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100`. A delete takes
/// `meter=1`, or nothing for all meters.
///
/// # Errors
/// On an unknown word or a bad value, on a word that has no effect or is given twice, and when the
/// meter's number is missing.
pub fn parse_meter_mod(text: &str, command: MeterModCommand) -> Result<MeterMod, TextError> {
    let whole = Piece::whole(text);
    let deletes = command == MeterModCommand::Delete;
    let no_effect = |key: Piece<'_>| {
        Err(key.error(format!("`{}` has no effect here: meter chooses the meters", key.text)))
    };
    let mut flags = MeterFlags::empty();
    let mut meter_id = None;
    let (head, rest) = match split_band(whole) {
        Some((head, rest)) => (head, Some(rest)),
        None => (whole, None),
    };
    for pair in pairs(head) {
        let pair = pair?;
        match (pair.key.text, FLAGS.iter().find(|(word, _)| *word == pair.key.text)) {
            ("meter", _) => pair.once(&mut meter_id, parse_id)?,
            (_, Some(_)) if deletes => return no_effect(pair.key),
            (_, Some((_, flag))) => pair.flag(&mut flags, *flag)?,
            (_, None) => {
                let words = FLAGS.iter().map(|(word, _)| *word).chain(["meter", "band", "bands"]);
                return Err(unknown("word", pair.key, words));
            }
        }
    }
    if let (true, Some(_)) = (deletes, rest) {
        return no_effect(whole.part("band", head.at + head.text.len()));
    }
    let bands = rest.map_or(Ok(Vec::new()), |bands| parse_bands(bands, flags))?;
    let meter_id = match meter_id {
        Some(id) => id,
        None if deletes => MeterId::ALL,
        None => return Err(whole.error("meter is missing: meter=1")),
    };
    if !deletes && !flags.intersects(MeterFlags::KBPS | MeterFlags::PKTPS) {
        flags |= MeterFlags::KBPS;
    }
    Ok(MeterMod { command, flags, meter_id, bands })
}

fn split_band(piece: Piece<'_>) -> Option<(Piece<'_>, Piece<'_>)> {
    piece.split_at_token("bands=").or_else(|| piece.split_at_token("band="))
}

fn parse_id(piece: Piece<'_>) -> Result<MeterId, TextError> {
    if piece.text.eq_ignore_ascii_case("all") {
        return Ok(MeterId::ALL);
    }
    Ok(MeterId(unsigned(piece)?))
}

/// A band of which not every word has been read.
struct Unfinished<'a> {
    kind: Piece<'a>,
    rate: Option<u32>,
    burst_size: Option<u32>,
    prec_level: Option<u8>,
}

/// Bands one behind the other: each begins with `type=` (and may stand behind a `band=`).
fn parse_bands(piece: Piece<'_>, flags: MeterFlags) -> Result<Vec<Band>, TextError> {
    let mut bands = Vec::new();
    let mut open: Option<Unfinished<'_>> = None;
    let mut rest = Some(piece);
    while let Some(piece) = rest {
        let (one, next) = match split_band(piece) {
            Some((one, next)) => (one, Some(next)),
            None => (piece, None),
        };
        for pair in pairs(one) {
            let pair = pair?;
            match (pair.key.text, open.as_mut()) {
                ("type", _) => {
                    let kind = pair.needed()?;
                    let band = Unfinished { kind, rate: None, burst_size: None, prec_level: None };
                    bands.extend(open.replace(band).map(finish_band).transpose()?);
                }
                ("burst_size", Some(_)) if !flags.contains(MeterFlags::BURST) => {
                    return Err(pair.key.error(
                        "burst_size has an effect only with the flag burst: meter=1,kbps,burst,..",
                    ));
                }
                ("rate", Some(band)) => pair.once(&mut band.rate, unsigned)?,
                ("burst_size", Some(band)) => pair.once(&mut band.burst_size, unsigned)?,
                ("prec_level", Some(band)) => pair.once(&mut band.prec_level, unsigned)?,
                ("rate" | "burst_size" | "prec_level", None) => {
                    return Err(pair.key.error("a band begins with its type: type=drop"));
                }
                (_, _) => {
                    let words = ["type", "rate", "burst_size", "prec_level"];
                    return Err(unknown("word", pair.key, words));
                }
            }
        }
        rest = next;
    }
    bands.extend(open.map(finish_band).transpose()?);
    Ok(bands)
}

fn finish_band(band: Unfinished<'_>) -> Result<Band, TextError> {
    let kind = match (band.kind.text, band.prec_level) {
        ("drop", None) => BandKind::Drop,
        ("drop", Some(_)) => return Err(band.kind.error("prec_level is for dscp_remark")),
        ("dscp_remark", level) => BandKind::DscpRemark { prec_level: level.unwrap_or(0) },
        (other, _) => return Err(band.kind.error(format!("`{other}`: drop or dscp_remark"))),
    };
    let missing = || band.kind.error("the band's rate is missing: rate=1000");
    let burst_size = band.burst_size.unwrap_or(0);
    Ok(Band { kind, rate: band.rate.ok_or_else(missing)?, burst_size })
}

/// A meter as `dump-meters` prints it: the bands on lines of their own.
#[must_use]
pub fn format_meter(meter: &MeterConfig) -> String {
    let mut out = format!("meter={} ", meter.meter_id.0);
    for (word, _) in FLAGS.iter().filter(|(_, flag)| meter.flags.contains(*flag)) {
        out += &format!("{word} ");
    }
    out += "bands=";
    for band in &meter.bands {
        let kind = match band.kind {
            BandKind::Drop => "drop".to_owned(),
            BandKind::DscpRemark { .. } => "dscp_remark".to_owned(),
            BandKind::Experimenter { experimenter } => format!("experimenter({experimenter:#x})"),
        };
        out += &format!("\ntype={kind} rate={}", band.rate);
        if meter.flags.contains(MeterFlags::BURST) {
            out += &format!(" burst_size={}", band.burst_size);
        }
        if let BandKind::DscpRemark { prec_level } = band.kind {
            out += &format!(" prec_level={prec_level}");
        }
    }
    out
}
