//! Counters that OpenFlow has, as a case names them, asked of a switch.
//!
//! A port counts from the start of the switch, and so do the look-ups of a table; what they had
//! counted before the case is taken off. A counter of all ones is one that the switch does not have
//! (clause 7.3.5). What a port counts as dropped is each switch's own affair.

use openflow::flow::{FlowMod, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{GroupId, MeterId, PortNo};

use super::{CheckError, PlayedSwitch};

/// Whether every switch has such a counter, and means the same by it.
pub(super) fn is_seen(what: &str) -> bool {
    !what.starts_with("drops ") && !what.starts_with("datapath ") && !what.ends_with("_dropped")
}

/// Whether it counts from the start of the switch.
pub(super) fn is_since_start(what: &str) -> bool {
    what.starts_with("port ") || (what.starts_with("table ") && !what.ends_with(" active"))
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

/// Kind, number, index of the bucket or band, and field of a counter.
fn parts(what: &str) -> Option<(&str, u32, Option<usize>, &str)> {
    let mut words = what.split_whitespace();
    let (kind, id) = (words.next()?, words.next()?.parse().ok()?);
    let part = match kind {
        "bucket" | "band" => Some(words.next()?.parse().ok()?),
        _ => None,
    };
    let field = words.next()?;
    words.next().is_none().then_some((kind, id, part, field))
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
    let fields = match (switch.statistics(request)?, part) {
        (MultipartReplyBody::Flow(entries), None) => {
            let wanted = flows.get(id as usize).ok_or_else(unknown)?;
            let mut alike = entries.iter().filter(|entry| entry.matching == wanted.matching);
            let entry = alike.find(|entry| entry.priority == wanted.priority).ok_or_else(none)?;
            vec![
                ("packets", entry.packet_count),
                ("bytes", entry.byte_count),
                ("cookie", entry.cookie.0),
                ("duration", entry.duration_s.into()),
            ]
        }
        (MultipartReplyBody::Table(tables), None) => {
            let table = tables.iter().find(|table| u32::from(table.table_id.0) == id);
            let table = table.ok_or_else(none)?;
            vec![
                ("active", table.active_count.into()),
                ("lookups", table.lookup_count),
                ("matches", table.matched_count),
            ]
        }
        (MultipartReplyBody::PortStats(ports), None) => {
            let port = ports.first().ok_or_else(none)?;
            vec![("rx_packets", port.rx_packets), ("tx_packets", port.tx_packets)]
        }
        (MultipartReplyBody::Group(groups), None) => {
            let group = groups.first().ok_or_else(none)?;
            vec![("packets", group.packet_count), ("refs", group.ref_count.into())]
        }
        (MultipartReplyBody::Group(groups), Some(bucket)) => {
            let bucket = groups.first().and_then(|group| group.buckets.get(bucket));
            vec![("packets", bucket.ok_or_else(none)?.packet_count)]
        }
        (MultipartReplyBody::Meter(meters), None) => {
            vec![("packets", meters.first().ok_or_else(none)?.packet_in_count)]
        }
        (MultipartReplyBody::Meter(meters), Some(band)) => {
            let band = meters.first().and_then(|meter| meter.bands.get(band));
            vec![("packets", band.ok_or_else(none)?.packet_count)]
        }
        (reply, _) => {
            let what = format!("another answer than asked: {reply:?}");
            return Err(CheckError::Otherwise(what));
        }
    };
    let found = fields.iter().find(|(name, _)| *name == field);
    found.map(|(_, value)| *value).ok_or_else(unknown)
}
