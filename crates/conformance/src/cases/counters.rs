//! Counters that OpenFlow has, as a case names them, asked of a switch.
//!
//! A port counts from the start of the switch, and so do the look-ups of a table; what they had
//! counted before the case is taken off. A counter of all ones is one that the switch does not have
//! (clause 7.3.5). What a port counts as dropped is each switch's own affair.

use openflow::flow::{FlowMod, FlowStats, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{GroupId, MeterId, PortNo};

use super::{CheckError, PlayedSwitch};

/// Whether every switch has such a counter, and means the same by it.
pub(super) fn is_seen(what: &str) -> bool {
    !what.starts_with("drops ") && !what.starts_with("datapath ") && !what.ends_with("_dropped")
}

/// Whether it counts from the start of the switch.
pub(super) fn is_since_start(what: &str) -> bool {
    let mut words = what.split_whitespace();
    match words.next() {
        Some("port") => true,
        Some("table") => words.nth(1).is_some_and(|field| field != "active"),
        _ => false,
    }
}

/// The statistics that have a counter of that kind and number.
fn request(kind: &str, id: u32, flows: &[FlowMod]) -> Option<MultipartRequestBody> {
    Some(match kind {
        "flow" => {
            let FlowMod { table_id, matching, .. } = flows.get(id as usize)?.clone();
            let request = FlowStatsRequest { table_id, matching, ..FlowStatsRequest::all() };
            MultipartRequestBody::Flow(request)
        }
        "table" => MultipartRequestBody::Table,
        "port" => MultipartRequestBody::PortStats(PortNo(id)),
        "group" | "bucket" => MultipartRequestBody::Group(GroupId(id)),
        "meter" | "band" => MultipartRequestBody::Meter(MeterId(id)),
        _ => return None,
    })
}

fn is_of(entry: &FlowStats, wanted: &FlowMod) -> bool {
    entry.matching == wanted.matching && entry.priority == wanted.priority
}

/// Kind, number, index of the bucket or band, and field of a counter.
fn parts(what: &str) -> Option<(&str, u32, Option<usize>, &str)> {
    let words: Vec<&str> = what.split_whitespace().collect();
    let (kind, id, part, field) = match words[..] {
        [kind @ ("bucket" | "band"), id, part, field] => (kind, id, Some(part), field),
        ["bucket" | "band", ..] => return None,
        [kind, id, field] => (kind, id, None, field),
        _ => return None,
    };
    let part = part.map(str::parse).transpose().ok()?;
    Some((kind, id.parse().ok()?, part, field))
}

/// Value of a counter, such as `flow 0 packets` or `bucket 1 0 packets`.
pub(super) fn counter(
    switch: &mut dyn PlayedSwitch,
    flows: &[FlowMod],
    what: &str,
) -> Result<u64, CheckError> {
    let unknown = || CheckError::Unsaid(format!("`{what}` is no counter"));
    let none = || CheckError::Otherwise(format!("the switch has no statistics of {what}"));
    let (kind, id, part, field) = parts(what).ok_or_else(unknown)?;
    let request = request(kind, id, flows).ok_or_else(unknown)?;
    Ok(match (switch.statistics(request)?, part) {
        (MultipartReplyBody::Flow(entries), None) => {
            let wanted = flows.get(id as usize).ok_or_else(unknown)?;
            let entry = entries.iter().find(|entry| is_of(entry, wanted)).ok_or_else(none)?;
            match field {
                "packets" => entry.packet_count,
                "bytes" => entry.byte_count,
                "cookie" => entry.cookie.0,
                "duration" => entry.duration_s.into(),
                _ => return Err(unknown()),
            }
        }
        (MultipartReplyBody::Table(tables), None) => {
            let table = tables.iter().find(|table| u32::from(table.table_id.0) == id);
            let table = table.ok_or_else(none)?;
            match field {
                "active" => table.active_count.into(),
                "lookups" => table.lookup_count,
                "matches" => table.matched_count,
                _ => return Err(unknown()),
            }
        }
        (MultipartReplyBody::PortStats(ports), None) => {
            let port = ports.first().ok_or_else(none)?;
            match field {
                "rx_packets" => port.rx_packets,
                "tx_packets" => port.tx_packets,
                _ => return Err(unknown()),
            }
        }
        (MultipartReplyBody::Group(groups), part) => {
            let group = groups.first().ok_or_else(none)?;
            match (part, field) {
                (None, "packets") => group.packet_count,
                (None, "refs") => group.ref_count.into(),
                (Some(bucket), "packets") => {
                    group.buckets.get(bucket).ok_or_else(none)?.packet_count
                }
                (None | Some(_), _) => return Err(unknown()),
            }
        }
        (MultipartReplyBody::Meter(meters), part) if field == "packets" => {
            let meter = meters.first().ok_or_else(none)?;
            match part {
                None => meter.packet_in_count,
                Some(band) => meter.bands.get(band).ok_or_else(none)?.packet_count,
            }
        }
        (reply, _) => {
            let what = format!("another answer than asked: {reply:?}");
            return Err(CheckError::Otherwise(what));
        }
    })
}
