//! Multipart messages: their header and which body they carry (clause 7.3.5; statistics in 1.0).
//!
//! A reply is a sequence of elements; [`crate::split`] writes the same elements to as many messages
//! as they need.

use openflow::flow::{AggregateStats, FlowForm, FlowStats};
use openflow::flow_monitor::FlowUpdate;
use openflow::group::{GroupDesc, GroupFeatures, GroupStats};
use openflow::message::{
    Experimenter, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    MultipartType, SwitchDesc,
};
use openflow::meter::{MeterConfig, MeterFeatures, MeterStats};
use openflow::port::{PacketQueue, PortDesc, PortStats, QueueStats};
use openflow::table::{TableFeatures, TableMod, TableStats};
use openflow::{Error, GroupId, PortNo};

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{
    experimenter, flow_monitor, group, layout, meter, nicira, port, queue, table, table_features,
};

/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
pub(crate) const MORE: u16 = 1;

/// `DESC_STR_LEN`.
const DESC_LEN: usize = 256;
/// `SERIAL_NUM_LEN`.
const SERIAL_LEN: usize = 32;

pub(crate) fn read_header(r: &mut Reader<'_>) -> reader::ReadResult<(MultipartType, bool)> {
    let start = r.clone();
    let number = MultipartType::from_number(r.u16()?);
    if !number.is_in(r.version) {
        return Err(start.fault_in(Error::BadRequestBadMultipart, "type of a multipart message"));
    }
    let more = r.u16()? & MORE != 0;
    if r.version.has_padded_statistics() {
        r.skip(4)?;
    }
    Ok((number, more))
}

/// Writes type and flags; the flags' place is two bytes behind the type's.
pub(crate) fn write_header(
    w: &mut Writer<'_>,
    number: MultipartType,
    more: bool,
) -> writer::WriteResult<()> {
    w.require(number.is_in(w.version), number.text())?;
    w.u16(number.number());
    w.u16(if more { MORE } else { 0 });
    if w.version.has_padded_statistics() {
        w.zeros(4);
    }
    Ok(())
}

/// Writes the head of a message about flow monitors, which are an experimenter's before 1.4.
fn write_monitor_header(w: &mut Writer<'_>, more: bool) -> writer::WriteResult<()> {
    if w.version.has_flow_monitor() {
        return write_header(w, MultipartType::FlowMonitor, more);
    }
    write_header(w, MultipartType::Experimenter, more)?;
    flow_monitor::write_head(w);
    Ok(())
}

/// Reads a request. Those before 1.3 have no flags for requests, so there `more` is never set.
pub(crate) fn read_request(r: &mut Reader<'_>) -> reader::ReadResult<MultipartRequest> {
    use MultipartRequestBody as Body;
    let start = r.clone();
    let (number, more) = read_header(r)?;
    let of_nicira = of_nicira(r, number, true);
    let body = match of_nicira.unwrap_or(number) {
        MultipartType::Flow if of_nicira.is_some() => Body::Flow(nicira::read_stats_request(r)?),
        MultipartType::Aggregate if of_nicira.is_some() => {
            Body::Aggregate(nicira::read_stats_request(r)?)
        }
        MultipartType::Desc => Body::Desc,
        MultipartType::Flow => Body::Flow(layout::FLOW_STATS_REQUEST.read(r)?),
        MultipartType::Aggregate => Body::Aggregate(layout::FLOW_STATS_REQUEST.read(r)?),
        MultipartType::Table => Body::Table,
        MultipartType::PortStats => Body::PortStats(port::read_stats_request(r)?),
        MultipartType::Queue => {
            let (port, queue) = queue::read_stats_request(r)?;
            Body::Queue { port, queue }
        }
        MultipartType::Group => Body::Group(group::read_id_request(r)?),
        MultipartType::GroupDesc => match of_one(r, group::read_id_request)? {
            None | Some(GroupId::ALL) => Body::GroupDesc,
            Some(group) => Body::OneGroupDesc(group),
        },
        MultipartType::GroupFeatures => Body::GroupFeatures,
        MultipartType::Meter => Body::Meter(meter::read_id_request(r)?),
        MultipartType::MeterConfig => Body::MeterConfig(meter::read_id_request(r)?),
        MultipartType::MeterFeatures => Body::MeterFeatures,
        MultipartType::TableFeatures => {
            Body::TableFeatures(read_all(r, table_features::read_asked)?)
        }
        MultipartType::PortDesc => match of_one(r, port::read_stats_request)? {
            None | Some(PortNo::ANY) => Body::PortDesc,
            Some(port) => Body::OnePortDesc(port),
        },
        MultipartType::TableDesc => Body::TableDesc,
        MultipartType::QueueDesc => {
            let (port, queue) = queue::read_stats_request(r)?;
            Body::QueueDesc { port, queue }
        }
        MultipartType::FlowMonitor => {
            Body::FlowMonitor(read_all(r, |r| layout::FLOW_MONITOR_REQUEST.read(r))?)
        }
        MultipartType::Experimenter => Body::Experimenter(experimenter::read(r)?),
        MultipartType::Unknown(_) => return Err(start.fault(Error::BadRequestBadMultipart)),
    };
    Ok(MultipartRequest { more: more && r.version.has_requests_of_parts(), body })
}

/// The statistics that are in Nicira's form or ONF's, as an experimenter's.
fn of_nicira(r: &mut Reader<'_>, number: MultipartType, is_request: bool) -> Option<MultipartType> {
    if number != MultipartType::Experimenter {
        return None;
    }
    nicira::read_stats_type(r).or_else(|| flow_monitor::read_head(r, is_request))
}

/// The one that a request for descriptions names, in versions where it may.
fn of_one<'a, T>(
    r: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> reader::ReadResult<T>,
) -> reader::ReadResult<Option<T>> {
    if r.version.has_desc_of_one() { read(r).map(Some) } else { Ok(None) }
}

pub(crate) fn request_type(body: &MultipartRequestBody) -> MultipartType {
    use MultipartRequestBody as Body;
    match body {
        Body::Desc => MultipartType::Desc,
        Body::Flow(_) => MultipartType::Flow,
        Body::Aggregate(_) => MultipartType::Aggregate,
        Body::Table => MultipartType::Table,
        Body::PortStats(_) => MultipartType::PortStats,
        Body::Queue { .. } => MultipartType::Queue,
        Body::Group(_) => MultipartType::Group,
        Body::GroupDesc | Body::OneGroupDesc(_) => MultipartType::GroupDesc,
        Body::GroupFeatures => MultipartType::GroupFeatures,
        Body::Meter(_) => MultipartType::Meter,
        Body::MeterConfig(_) => MultipartType::MeterConfig,
        Body::MeterFeatures => MultipartType::MeterFeatures,
        Body::TableFeatures(_) => MultipartType::TableFeatures,
        Body::PortDesc | Body::OnePortDesc(_) => MultipartType::PortDesc,
        Body::TableDesc => MultipartType::TableDesc,
        Body::QueueDesc { .. } => MultipartType::QueueDesc,
        Body::FlowMonitor(_) => MultipartType::FlowMonitor,
        Body::Experimenter(_) => MultipartType::Experimenter,
    }
}

pub(crate) fn write_request(
    w: &mut Writer<'_>,
    request: &MultipartRequest,
) -> writer::WriteResult<()> {
    use MultipartRequestBody as Body;
    w.require(w.version.has_requests_of_parts() || !request.more, "a request of several parts")?;
    let number = request_type(&request.body);
    if let Body::Flow(body) | Body::Aggregate(body) = &request.body
        && body.form == FlowForm::Nicira
        && w.version.has_nicira_flows()
    {
        write_header(w, MultipartType::Experimenter, request.more)?;
        nicira::write_stats_head(w, number);
        return nicira::write_stats_request(w, body);
    }
    if let Body::FlowMonitor(asked) = &request.body {
        write_monitor_header(w, request.more)?;
        return asked.iter().try_for_each(|one| layout::FLOW_MONITOR_REQUEST.write(w, one));
    }
    write_header(w, number, request.more)?;
    match &request.body {
        Body::Desc
        | Body::Table
        | Body::GroupFeatures
        | Body::MeterFeatures
        | Body::TableDesc
        | Body::FlowMonitor(_) => {}
        Body::GroupDesc if w.version.has_desc_of_one() => {
            group::write_id_request(w, GroupId::ALL);
        }
        Body::PortDesc if w.version.has_desc_of_one() => {
            port::write_stats_request(w, PortNo::ANY)?;
        }
        Body::GroupDesc | Body::PortDesc => {}
        Body::OneGroupDesc(id) => {
            w.require(w.version.has_desc_of_one(), "description of one group")?;
            group::write_id_request(w, *id);
        }
        Body::OnePortDesc(port) => {
            w.require(w.version.has_desc_of_one(), "description of one port")?;
            port::write_stats_request(w, *port)?;
        }
        Body::Flow(body) | Body::Aggregate(body) => layout::FLOW_STATS_REQUEST.write(w, body)?,
        Body::PortStats(port) => port::write_stats_request(w, *port)?,
        Body::Queue { port, queue } | Body::QueueDesc { port, queue } => {
            queue::write_stats_request(w, *port, *queue)?;
        }
        Body::Group(id) => group::write_id_request(w, *id),
        Body::Meter(id) | Body::MeterConfig(id) => meter::write_id_request(w, *id),
        Body::TableFeatures(tables) => {
            tables.iter().try_for_each(|table| table_features::write(w, table))?;
        }
        Body::Experimenter(body) => experimenter::write(w, body)?,
    }
    Ok(())
}

/// Reads all that is left in `r` as elements of one kind.
fn read_all<'a, T>(
    r: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> reader::ReadResult<T>,
) -> reader::ReadResult<Vec<T>> {
    let mut all = Vec::new();
    while !r.is_empty() {
        all.push(read(r)?);
    }
    Ok(all)
}

pub(crate) fn read_reply(r: &mut Reader<'_>) -> reader::ReadResult<MultipartReply> {
    use MultipartReplyBody as Body;
    let start = r.clone();
    let (number, more) = read_header(r)?;
    let of_nicira = of_nicira(r, number, false);
    let body = match of_nicira.unwrap_or(number) {
        MultipartType::Desc => Body::Desc(read_desc(r)?),
        MultipartType::Flow if of_nicira.is_some() => Body::Flow(read_all(r, nicira::read_stats)?),
        MultipartType::Flow => Body::Flow(read_all(r, |r| layout::FLOW_STATS.read(r))?),
        MultipartType::Aggregate => Body::Aggregate(layout::AGGREGATE.read(r)?),
        MultipartType::Table => Body::Table(read_all(r, |r| layout::TABLE_STATS.read(r))?),
        MultipartType::PortStats => Body::PortStats(read_all(r, |r| layout::PORT_STATS.read(r))?),
        MultipartType::Queue => Body::Queue(read_all(r, |r| layout::QUEUE_STATS.read(r))?),
        MultipartType::Group => Body::Group(read_all(r, group::read_stats)?),
        MultipartType::GroupDesc => Body::GroupDesc(read_all(r, |r| layout::GROUP_DESC.read(r))?),
        MultipartType::GroupFeatures => Body::GroupFeatures(group::read_features(r)?),
        MultipartType::Meter => Body::Meter(read_all(r, meter::read_stats)?),
        MultipartType::MeterConfig => Body::MeterConfig(read_all(r, meter::read_config)?),
        MultipartType::MeterFeatures => Body::MeterFeatures(layout::METER_FEATURES.read(r)?),
        MultipartType::TableFeatures => Body::TableFeatures(read_all(r, table_features::read)?),
        MultipartType::PortDesc => Body::PortDesc(read_all(r, |r| layout::PORT_DESC.read(r))?),
        MultipartType::TableDesc => Body::TableDesc(read_all(r, table::read_desc)?),
        MultipartType::QueueDesc => Body::QueueDesc(read_all(r, queue::read_desc)?),
        MultipartType::FlowMonitor => {
            Body::FlowMonitor(read_all(r, |r| layout::FLOW_UPDATE.read(r))?)
        }
        MultipartType::Experimenter => Body::Experimenter(experimenter::read(r)?),
        MultipartType::Unknown(_) => return Err(start.fault(Error::BadRequestBadMultipart)),
    };
    Ok(MultipartReply { more, body })
}

pub(crate) fn write_reply(w: &mut Writer<'_>, reply: &MultipartReply) -> writer::WriteResult<()> {
    write_reply_header(w, &reply.body, reply.more)?;
    elements(&reply.body, 0).try_for_each(|element| write_element(w, &element))
}

/// Writes the head of a reply in the form of the writer.
pub(crate) fn write_reply_header(
    w: &mut Writer<'_>,
    body: &MultipartReplyBody,
    more: bool,
) -> writer::WriteResult<()> {
    if body.kind() == MultipartType::FlowMonitor {
        return write_monitor_header(w, more);
    }
    if !nicira::has_reply(w, body) {
        return write_header(w, body.kind(), more);
    }
    write_header(w, MultipartType::Experimenter, more)?;
    nicira::write_stats_head(w, body.kind());
    Ok(())
}

/// Part of a reply's body; never split between two messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Element<'a> {
    Desc(&'a SwitchDesc),
    Flow(&'a FlowStats),
    Aggregate(&'a AggregateStats),
    Table(&'a TableStats),
    PortStats(&'a PortStats),
    Queue(&'a QueueStats),
    Group(&'a GroupStats),
    GroupDesc(&'a GroupDesc),
    GroupFeatures(&'a GroupFeatures),
    Meter(&'a MeterStats),
    MeterConfig(&'a MeterConfig),
    MeterFeatures(&'a MeterFeatures),
    TableFeatures(&'a TableFeatures),
    PortDesc(&'a PortDesc),
    TableDesc(&'a TableMod),
    QueueDesc(&'a PacketQueue),
    FlowMonitor(&'a FlowUpdate),
    Experimenter(&'a Experimenter),
}

fn rest<T>(list: &[T], from: usize) -> std::slice::Iter<'_, T> {
    list.get(from..).unwrap_or_default().iter()
}

/// Whether a reply is a list, which several frames may say.
pub(crate) fn is_list(body: &MultipartReplyBody) -> bool {
    use MultipartReplyBody as Body;
    match body {
        Body::Flow(_)
        | Body::Table(_)
        | Body::PortStats(_)
        | Body::Queue(_)
        | Body::Group(_)
        | Body::GroupDesc(_)
        | Body::Meter(_)
        | Body::MeterConfig(_)
        | Body::TableFeatures(_)
        | Body::PortDesc(_)
        | Body::TableDesc(_)
        | Body::QueueDesc(_)
        | Body::FlowMonitor(_) => true,
        Body::Desc(_)
        | Body::Aggregate(_)
        | Body::GroupFeatures(_)
        | Body::MeterFeatures(_)
        | Body::Experimenter(_) => false,
    }
}

/// The elements of a reply from the one numbered `from` on, in their order.
pub(crate) fn elements<'a>(
    body: &'a MultipartReplyBody,
    from: usize,
) -> Box<dyn Iterator<Item = Element<'a>> + 'a> {
    use MultipartReplyBody as Body;
    let once = |element| std::iter::once(element).skip(from);
    match body {
        Body::Desc(one) => Box::new(once(Element::Desc(one))),
        Body::Flow(list) => Box::new(rest(list, from).map(Element::Flow)),
        Body::Aggregate(one) => Box::new(once(Element::Aggregate(one))),
        Body::Table(list) => Box::new(rest(list, from).map(Element::Table)),
        Body::PortStats(list) => Box::new(rest(list, from).map(Element::PortStats)),
        Body::Queue(list) => Box::new(rest(list, from).map(Element::Queue)),
        Body::Group(list) => Box::new(rest(list, from).map(Element::Group)),
        Body::GroupDesc(list) => Box::new(rest(list, from).map(Element::GroupDesc)),
        Body::GroupFeatures(one) => Box::new(once(Element::GroupFeatures(one))),
        Body::Meter(list) => Box::new(rest(list, from).map(Element::Meter)),
        Body::MeterConfig(list) => Box::new(rest(list, from).map(Element::MeterConfig)),
        Body::MeterFeatures(one) => Box::new(once(Element::MeterFeatures(one))),
        Body::TableFeatures(list) => Box::new(rest(list, from).map(Element::TableFeatures)),
        Body::PortDesc(list) => Box::new(rest(list, from).map(Element::PortDesc)),
        Body::TableDesc(list) => Box::new(rest(list, from).map(Element::TableDesc)),
        Body::QueueDesc(list) => Box::new(rest(list, from).map(Element::QueueDesc)),
        Body::FlowMonitor(list) => Box::new(rest(list, from).map(Element::FlowMonitor)),
        Body::Experimenter(one) => Box::new(once(Element::Experimenter(one))),
    }
}

pub(crate) fn write_element(w: &mut Writer<'_>, element: &Element<'_>) -> writer::WriteResult<()> {
    match element {
        Element::Desc(desc) => write_desc(w, desc),
        Element::Flow(stats) if w.has_nicira_flows() => nicira::write_stats(w, stats)?,
        Element::Flow(stats) => layout::FLOW_STATS.write(w, stats)?,
        Element::Aggregate(stats) => layout::AGGREGATE.write(w, stats)?,
        Element::Table(stats) => layout::TABLE_STATS.write(w, stats)?,
        Element::PortStats(stats) => layout::PORT_STATS.write(w, stats)?,
        Element::Queue(stats) => layout::QUEUE_STATS.write(w, stats)?,
        Element::Group(stats) => group::write_stats(w, stats)?,
        Element::GroupDesc(desc) => layout::GROUP_DESC.write(w, desc)?,
        Element::GroupFeatures(features) => group::write_features(w, features),
        Element::Meter(stats) => meter::write_stats(w, stats)?,
        Element::MeterConfig(config) => meter::write_config(w, config)?,
        Element::MeterFeatures(features) => layout::METER_FEATURES.write(w, features)?,
        Element::TableFeatures(features) => table_features::write(w, features)?,
        Element::PortDesc(desc) => layout::PORT_DESC.write(w, desc)?,
        Element::TableDesc(table) => table::write_desc(w, table)?,
        Element::QueueDesc(queue) => queue::write_desc(w, queue)?,
        Element::FlowMonitor(update) => layout::FLOW_UPDATE.write(w, update)?,
        Element::Experimenter(body) => experimenter::write(w, body)?,
    }
    Ok(())
}

fn read_desc(r: &mut Reader<'_>) -> reader::ReadResult<SwitchDesc> {
    Ok(SwitchDesc {
        mfr_desc: r.text(DESC_LEN)?,
        hw_desc: r.text(DESC_LEN)?,
        sw_desc: r.text(DESC_LEN)?,
        serial_num: r.text(SERIAL_LEN)?,
        dp_desc: r.text(DESC_LEN)?,
    })
}

fn write_desc(w: &mut Writer<'_>, desc: &SwitchDesc) {
    w.text(&desc.mfr_desc, DESC_LEN);
    w.text(&desc.hw_desc, DESC_LEN);
    w.text(&desc.sw_desc, DESC_LEN);
    w.text(&desc.serial_num, SERIAL_LEN);
    w.text(&desc.dp_desc, DESC_LEN);
}
