//! Counters that OpenFlow has, as a case names them, asked of a switch.
//!
//! A port counts from the start of the switch, and so do the look-ups of a table; what they had
//! counted before the case is taken off. A counter of all ones is one that the switch does not have
//! (clause 7.3.5). What a port counts as dropped is each switch's own affair.

use openflow::flow::{FlowMod, FlowStats, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::{GroupId, MeterId, PortNo};

use super::{End, PlayedSwitch};

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

fn otherwise(what: impl Into<String>) -> End {
    End::Otherwise(what.into())
}

fn other_reply(reply: &MultipartReplyBody) -> End {
    otherwise(format!("the switch answers with other statistics than asked: {reply:?}"))
}

/// Value of a counter.
pub(super) fn counter(
    switch: &mut dyn PlayedSwitch,
    flows: &[FlowMod],
    what: &str,
) -> Result<u64, End> {
    let words: Vec<&str> = what.split_whitespace().collect();
    let unknown = || End::Unplayable(format!("`{what}` is no counter"));
    let number = |text: &str| text.parse::<u32>().map_err(|_| unknown());
    Ok(match words.as_slice() {
        ["flow", index, field] => {
            let wanted = flows.get(number(index)? as usize).ok_or_else(unknown)?;
            let entry = flow(switch, wanted)?;
            match *field {
                "packets" => entry.packet_count,
                "bytes" => entry.byte_count,
                "cookie" => entry.cookie.0,
                "duration" => entry.duration_s.into(),
                _ => return Err(unknown()),
            }
        }
        ["table", index, field] => {
            let MultipartReplyBody::Table(tables) =
                switch.statistics(MultipartRequestBody::Table)?
            else {
                return Err(unknown());
            };
            let index = number(index)?;
            let mut tables = tables.into_iter();
            let table = tables.find(|table| u32::from(table.table_id.0) == index);
            let table = table.ok_or_else(|| otherwise(format!("there is no table {index}")))?;
            match *field {
                "active" => table.active_count.into(),
                "lookups" => table.lookup_count,
                "matches" => table.matched_count,
                _ => return Err(unknown()),
            }
        }
        ["port", index, field] => port(switch, number(index)?, field)?.ok_or_else(unknown)?,
        ["group", id, field] => group(switch, number(id)?, None, field)?.ok_or_else(unknown)?,
        ["bucket", id, index, field] => {
            let index = number(index)? as usize;
            group(switch, number(id)?, Some(index), field)?.ok_or_else(unknown)?
        }
        ["meter", id, "packets"] => meter(switch, number(id)?, None)?,
        ["band", id, index, "packets"] => {
            let index = number(index)? as usize;
            meter(switch, number(id)?, Some(index))?
        }
        _ => return Err(unknown()),
    })
}

fn flow(switch: &mut dyn PlayedSwitch, wanted: &FlowMod) -> Result<FlowStats, End> {
    let request = FlowStatsRequest {
        table_id: wanted.table_id,
        matching: wanted.matching.clone(),
        ..FlowStatsRequest::all()
    };
    let reply = switch.statistics(MultipartRequestBody::Flow(request))?;
    let MultipartReplyBody::Flow(flows) = reply else { return Err(other_reply(&reply)) };
    let is_it =
        |flow: &FlowStats| flow.matching == wanted.matching && flow.priority == wanted.priority;
    flows.into_iter().find(is_it).ok_or_else(|| otherwise("the flow entry is gone"))
}

fn port(switch: &mut dyn PlayedSwitch, port: u32, field: &str) -> Result<Option<u64>, End> {
    let reply = switch.statistics(MultipartRequestBody::PortStats(PortNo(port)))?;
    let MultipartReplyBody::PortStats(ports) = reply else { return Err(other_reply(&reply)) };
    let stats = ports.first().ok_or_else(|| otherwise(format!("there is no port {port}")))?;
    Ok(match field {
        "rx_packets" => Some(stats.rx_packets),
        "tx_packets" => Some(stats.tx_packets),
        _ => None,
    })
}

fn group(
    switch: &mut dyn PlayedSwitch,
    id: u32,
    bucket: Option<usize>,
    field: &str,
) -> Result<Option<u64>, End> {
    let reply = switch.statistics(MultipartRequestBody::Group(GroupId(id)))?;
    let MultipartReplyBody::Group(groups) = reply else { return Err(other_reply(&reply)) };
    let group = groups.first().ok_or_else(|| otherwise(format!("there is no group {id}")))?;
    Ok(match (bucket, field) {
        (None, "packets") => Some(group.packet_count),
        (None, "refs") => Some(group.ref_count.into()),
        (Some(index), "packets") => {
            let bucket = group.buckets.get(index);
            let none = || otherwise(format!("group {id} has no statistics of bucket {index}"));
            Some(bucket.ok_or_else(none)?.packet_count)
        }
        (None | Some(_), _) => None,
    })
}

fn meter(switch: &mut dyn PlayedSwitch, id: u32, band: Option<usize>) -> Result<u64, End> {
    let reply = switch.statistics(MultipartRequestBody::Meter(MeterId(id)))?;
    let MultipartReplyBody::Meter(meters) = reply else { return Err(other_reply(&reply)) };
    let meter = meters.first().ok_or_else(|| otherwise(format!("there is no meter {id}")))?;
    match band {
        None => Ok(meter.packet_in_count),
        Some(index) => {
            let band = meter.bands.get(index);
            let none = || otherwise(format!("meter {id} has no statistics of band {index}"));
            Ok(band.ok_or_else(none)?.packet_count)
        }
    }
}
