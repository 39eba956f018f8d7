//! Queues in messages: configuration and statistics (clauses 7.2.2, 7.3.6 and 7.3.5.8).

use openflow::message::QueueConfig;
use openflow::port::{PacketQueue, QueueProperty, QueueStats};
use openflow::{PortNo, QueueId, Version};

use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPQT_MIN_RATE`.
const MIN_RATE: u16 = 1;
/// `OFPQT_MAX_RATE`, from 1.2 on.
const MAX_RATE: u16 = 2;
/// `OFPQT_EXPERIMENTER`, from 1.2 on.
const EXPERIMENTER: u16 = 0xffff;

/// Bytes behind the port of a request for its queues: as many as the port's number has.
fn config_padding(version: Version) -> usize {
    if version.has_wide_ports() { 4 } else { 2 }
}

pub(crate) fn read_config_request(r: &mut Reader<'_>) -> reader::ReadResult<PortNo> {
    let port = r.port()?;
    r.skip(config_padding(r.version))?;
    Ok(port)
}

pub(crate) fn write_config_request(w: &mut Writer<'_>, port: PortNo) -> writer::WriteResult<()> {
    w.port(port)?;
    w.zeros(config_padding(w.version));
    Ok(())
}

pub(crate) fn read_config(r: &mut Reader<'_>) -> reader::ReadResult<QueueConfig> {
    let start = r.clone();
    let port = r.port()?;
    r.skip_padding(&start, 8)?;
    let mut queues = Vec::new();
    while !r.is_empty() {
        queues.push(read_queue(r, port)?);
    }
    Ok(QueueConfig { port, queues })
}

fn read_queue(r: &mut Reader<'_>, replied: PortNo) -> reader::ReadResult<PacketQueue> {
    let start = r.clone();
    let queue_id = QueueId(r.u32()?);
    let port = if r.version.has_queues_of_any_port() { r.port()? } else { replied };
    let len = usize::from(r.u16()?);
    let mut r = r.rest_of(&start, len)?;
    r.skip_padding(&start, 8)?;
    let mut properties = Vec::new();
    while !r.is_empty() {
        properties.push(read_property(&mut r)?);
    }
    Ok(PacketQueue { queue_id, port, properties })
}

fn read_property(r: &mut Reader<'_>) -> reader::ReadResult<QueueProperty> {
    let (number, _, mut body) = r.element()?;
    body.skip(4)?;
    match number {
        MIN_RATE => read_rate(&mut body).map(QueueProperty::MinRate),
        MAX_RATE if r.version.has_max_rate() => read_rate(&mut body).map(QueueProperty::MaxRate),
        EXPERIMENTER if r.version.has_max_rate() => {
            let experimenter = body.u32()?;
            body.skip(4)?;
            Ok(QueueProperty::Experimenter { experimenter, data: body.rest().to_vec() })
        }
        property => Ok(QueueProperty::Unknown { property, data: body.rest().to_vec() }),
    }
}

fn read_rate(r: &mut Reader<'_>) -> reader::ReadResult<u16> {
    let rate = r.u16()?;
    r.skip(6)?;
    r.finish()?;
    Ok(rate)
}

pub(crate) fn write_config(w: &mut Writer<'_>, config: &QueueConfig) -> writer::WriteResult<()> {
    let start = w.place();
    w.port(config.port)?;
    w.pad_from(start);
    for queue in &config.queues {
        write_queue(w, queue, config.port)?;
    }
    Ok(())
}

fn write_queue(
    w: &mut Writer<'_>,
    queue: &PacketQueue,
    replied: PortNo,
) -> writer::WriteResult<()> {
    let start = w.place();
    w.u32(queue.queue_id.0);
    if w.version.has_queues_of_any_port() {
        w.port(queue.port)?;
    } else {
        w.require(queue.port == replied, "queue of another port")?;
    }
    let len_at = w.place();
    w.u16(0);
    w.pad_from(start);
    for property in &queue.properties {
        write_property(w, property)?;
    }
    w.fill_len(len_at, start, "queue")
}

fn write_property(w: &mut Writer<'_>, property: &QueueProperty) -> writer::WriteResult<()> {
    let start = w.place();
    let since_v1_2 =
        matches!(property, QueueProperty::MaxRate(_) | QueueProperty::Experimenter { .. });
    w.require(w.version.has_max_rate() || !since_v1_2, "maximum rate of a queue")?;
    w.u16(match property {
        QueueProperty::MinRate(_) => MIN_RATE,
        QueueProperty::MaxRate(_) => MAX_RATE,
        QueueProperty::Experimenter { .. } => EXPERIMENTER,
        QueueProperty::Unknown { property, .. } => *property,
    });
    w.u16(0);
    w.zeros(4);
    match property {
        QueueProperty::MinRate(rate) | QueueProperty::MaxRate(rate) => {
            w.u16(*rate);
            w.zeros(6);
        }
        QueueProperty::Experimenter { experimenter, data } => {
            w.u32(*experimenter);
            w.zeros(4);
            w.bytes(data);
        }
        QueueProperty::Unknown { data, .. } => w.bytes(data),
    }
    w.fill_len(start + 2, start, "property of a queue")
}

/// Reads a queue's description of 1.4.
pub(crate) fn read_desc(r: &mut Reader<'_>) -> reader::ReadResult<PacketQueue> {
    let start = r.clone();
    let (port, queue_id) = (r.port()?, QueueId(r.u32()?));
    let len = usize::from(r.u16()?);
    let mut r = r.rest_of(&start, len)?;
    r.skip(6)?;
    let mut properties = Vec::new();
    property::read_all(&mut r, Unknown::LeftOut, |number, body| {
        properties.push(match number {
            property::MIN_RATE => QueueProperty::MinRate(read_rate_v1_4(body)?),
            property::MAX_RATE => QueueProperty::MaxRate(read_rate_v1_4(body)?),
            property::EXPERIMENTER => QueueProperty::Experimenter {
                experimenter: body.u32()?,
                data: body.rest().to_vec(),
            },
            property => QueueProperty::Unknown { property, data: body.rest().to_vec() },
        });
        Ok(true)
    })?;
    Ok(PacketQueue { queue_id, port, properties })
}

fn read_rate_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<u16> {
    let rate = r.u16()?;
    r.skip(2)?;
    Ok(rate)
}

pub(crate) fn write_desc(w: &mut Writer<'_>, queue: &PacketQueue) -> writer::WriteResult<()> {
    let start = w.place();
    w.port(queue.port)?;
    w.u32(queue.queue_id.0);
    w.zeros(8);
    for one in &queue.properties {
        match one {
            QueueProperty::MinRate(rate) => {
                property::write(w, property::MIN_RATE, |w| w.u32(u32::from(*rate) << 16))?;
            }
            QueueProperty::MaxRate(rate) => {
                property::write(w, property::MAX_RATE, |w| w.u32(u32::from(*rate) << 16))?;
            }
            QueueProperty::Experimenter { experimenter, data } => {
                property::write(w, property::EXPERIMENTER, |w| {
                    w.u32(*experimenter);
                    w.bytes(data);
                })?;
            }
            QueueProperty::Unknown { property, data } => {
                property::write(w, *property, |w| w.bytes(data))?;
            }
        }
    }
    w.fill_len(start + 8, start, "queue description")
}

pub(crate) fn read_stats_request(r: &mut Reader<'_>) -> reader::ReadResult<(PortNo, QueueId)> {
    let start = r.clone();
    let port = r.port()?;
    r.skip_padding(&start, 4)?;
    Ok((port, QueueId(r.u32()?)))
}

pub(crate) fn write_stats_request(
    w: &mut Writer<'_>,
    port: PortNo,
    queue: QueueId,
) -> writer::WriteResult<()> {
    let start = w.place();
    w.port(port)?;
    w.pad_to(start, 4);
    w.u32(queue.0);
    Ok(())
}

pub(crate) fn read_stats_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<QueueStats> {
    let (port_no, queue_id) = read_stats_request(r)?;
    Ok(QueueStats {
        port_no,
        queue_id,
        tx_bytes: r.u64()?,
        tx_packets: r.u64()?,
        tx_errors: r.u64()?,
        ..QueueStats::default()
    })
}

pub(crate) fn read_stats_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<QueueStats> {
    let counters = read_stats_v1_0(r)?;
    Ok(QueueStats { duration_s: r.u32()?, duration_ns: r.u32()?, ..counters })
}

/// Properties, which are of experimenters alone, are left out.
pub(crate) fn read_stats_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<QueueStats> {
    let mut r = r.sized("queue statistics")?;
    r.skip(6)?;
    let stats = read_stats_v1_3(&mut r)?;
    property::read_all(&mut r, Unknown::LeftOut, |_, _| Ok(false))?;
    Ok(stats)
}

pub(crate) fn write_stats_v1_4(w: &mut Writer<'_>, stats: &QueueStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(8);
    write_stats_v1_3(w, stats)?;
    w.fill_len(start, start, "queue statistics")
}

pub(crate) fn write_stats_v1_0(w: &mut Writer<'_>, stats: &QueueStats) -> writer::WriteResult<()> {
    write_stats_request(w, stats.port_no, stats.queue_id)?;
    w.u64(stats.tx_bytes);
    w.u64(stats.tx_packets);
    w.u64(stats.tx_errors);
    Ok(())
}

pub(crate) fn write_stats_v1_3(w: &mut Writer<'_>, stats: &QueueStats) -> writer::WriteResult<()> {
    write_stats_v1_0(w, stats)?;
    w.u32(stats.duration_s);
    w.u32(stats.duration_ns);
    Ok(())
}
