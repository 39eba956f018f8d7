//! Answers of switches as values for Python: statistics, descriptions, settings.
//!
//! The names are the specification's, which are Ryu's too. Counters that the switch does not keep
//! are `None`.

use controller::role_name;
use openflow::Version;
use openflow::message::{ErrorMessage, MultipartReply, MultipartReplyBody};
use openflow::text::{format_actions, format_group, format_instructions, format_meter};
use pyo3::prelude::{Bound, Py, PyAny, PyClassInitializer, PyErr, PyResult, Python};
use pyo3::types::{PyBytes, PyList};

use crate::class::class;
use crate::errors::{Class, exception, refused};
use crate::matching::Match;
use crate::switch_message::{Message, Port, counted};

/// An answer that somebody waits for.
pub(crate) struct Answered {
    pub(crate) future: Py<PyAny>,
    pub(crate) outcome: Result<Answer, Failure>,
}

/// The content of an answer.
pub(crate) enum Answer {
    /// All is done.
    Done,
    /// A message of this version.
    Message(Version, openflow::Message),
    /// The answer to a multipart request, whole.
    Multipart(Version, MultipartReplyBody),
}

/// The reason why there is no answer.
pub(crate) enum Failure {
    NotConnected(String),
    QueueFull(String),
    Silent(String),
    NotEncodable(String),
    Refused { index: Option<usize>, version: Version, error: ErrorMessage },
    Other(String),
}

impl Failure {
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::NotConnected(what) => exception(py, Class::NotConnected, what),
            Self::QueueFull(what) => exception(py, Class::QueueFull, what),
            Self::Silent(what) => exception(py, Class::Silent, what),
            Self::NotEncodable(what) => exception(py, Class::Word, what),
            Self::Refused { index, version, error } => refused(py, *version, error, *index),
            Self::Other(what) => exception(py, Class::Weir, what),
        }
    }
}

class! {
    /// A flow entry with its counters.
    FlowStats(openflow::flow::FlowStats) |it| {
        /// The table that it is in.
        table_id: u8 = it.table_id.0;
        /// Its priority: of the entries that match a packet the highest is used.
        priority: u16 = it.priority;
        /// Its match.
        r#match: Match = Match { inner: it.matching.clone() };
        /// Its actions, or its instructions, as `weir ctl` writes them.
        actions: String = format_instructions(&it.instructions);
        /// The number that the controller has given it.
        cookie: u64 = it.cookie.0;
        /// Seconds without a packet after which it goes; 0 for never.
        idle_timeout: u16 = it.idle_timeout_s;
        /// Seconds after which it goes; 0 for never.
        hard_timeout: u16 = it.hard_timeout_s;
        /// The bits of `OFPFF_*` with which it was added.
        flags: u16 = it.flags.bits();
        /// Its importance, which OpenFlow 1.4 has; the text of a flow entry sets it.
        importance: u16 = it.importance;
        /// Packets that it has matched.
        packet_count: Option<u64> = counted(it.packet_count);
        /// Their bytes.
        byte_count: Option<u64> = counted(it.byte_count);
        /// Seconds since it was added.
        duration_s: f64 = seconds(it.duration_s, it.duration_ns);
    }
}

class! {
    /// Sums over flow entries.
    AggregateStats(openflow::flow::AggregateStats) |it| {
        /// Packets that they have matched.
        packet_count: Option<u64> = counted(it.packet_count);
        /// Their bytes.
        byte_count: Option<u64> = counted(it.byte_count);
        /// The number of the entries.
        flow_count: u32 = it.flow_count;
    }
}

class! {
    /// Counters of a table.
    TableStats(openflow::table::TableStats) |it| {
        /// Its number.
        table_id: u8 = it.table_id.0;
        /// Its name; empty since OpenFlow 1.3, which has it in the table features.
        name: &str = &it.name;
        /// Entries that it can have; 0 since OpenFlow 1.3, which has it in the table features.
        max_entries: u32 = it.max_entries;
        /// Entries that it has.
        active_count: u32 = it.active_count;
        /// Packets that were looked up in it.
        lookup_count: Option<u64> = counted(it.lookup_count);
        /// Packets of these that an entry has matched.
        matched_count: Option<u64> = counted(it.matched_count);
    }
}

class! {
    /// Counters of a port.
    PortStats(openflow::port::PortStats) |it| {
        /// Its number.
        port_no: u32 = it.port_no.0;
        /// Packets that it has received.
        rx_packets: Option<u64> = counted(it.rx_packets);
        /// Packets that it has sent.
        tx_packets: Option<u64> = counted(it.tx_packets);
        /// Bytes that it has received.
        rx_bytes: Option<u64> = counted(it.rx_bytes);
        /// Bytes that it has sent.
        tx_bytes: Option<u64> = counted(it.tx_bytes);
        /// Packets that it has received and dropped.
        rx_dropped: Option<u64> = counted(it.rx_dropped);
        /// Packets that were dropped in place of being sent.
        tx_dropped: Option<u64> = counted(it.tx_dropped);
        /// Receive errors, those below included.
        rx_errors: Option<u64> = counted(it.rx_errors);
        /// Send errors.
        tx_errors: Option<u64> = counted(it.tx_errors);
        /// Frames whose end was at no whole byte.
        rx_frame_err: Option<u64> = counted(it.rx_frame_err);
        /// Packets that came faster than they were taken.
        rx_over_err: Option<u64> = counted(it.rx_over_err);
        /// Packets whose checksum was wrong.
        rx_crc_err: Option<u64> = counted(it.rx_crc_err);
        /// Collisions on a shared medium.
        collisions: Option<u64> = counted(it.collisions);
        /// Seconds since the port was there; 0 in OpenFlow 1.0.
        duration_s: f64 = seconds(it.duration_s, it.duration_ns);
    }
}

class! {
    /// Counters of a queue.
    QueueStats(openflow::port::QueueStats) |it| {
        /// Its port.
        port_no: u32 = it.port_no.0;
        /// Its number.
        queue_id: u32 = it.queue_id.0;
        /// Packets that it has sent.
        tx_packets: Option<u64> = counted(it.tx_packets);
        /// Bytes that it has sent.
        tx_bytes: Option<u64> = counted(it.tx_bytes);
        /// Packets that were dropped since the queue was full.
        tx_errors: Option<u64> = counted(it.tx_errors);
    }
}

class! {
    /// Counters of a group's bucket, or of a meter's band.
    BucketStats((u64, u64)) |it| {
        /// Packets that it has processed.
        packet_count: Option<u64> = counted(it.0);
        /// Their bytes.
        byte_count: Option<u64> = counted(it.1);
    }
}

class! {
    /// Counters of a group.
    GroupStats(openflow::group::GroupStats) |it| {
        /// Its number.
        group_id: u32 = it.group_id.0;
        /// Flow entries and groups that use it.
        ref_count: u32 = it.ref_count;
        /// Packets that it has processed.
        packet_count: Option<u64> = counted(it.packet_count);
        /// Their bytes.
        byte_count: Option<u64> = counted(it.byte_count);
        /// Seconds since it was added.
        duration_s: f64 = seconds(it.duration_s, it.duration_ns);
        /// The counters of its buckets, in their order.
        buckets: Vec<BucketStats> =
            counts(it.buckets.iter().map(|b| (b.packet_count, b.byte_count)));
    }
}

class! {
    /// A group.
    GroupDesc(openflow::group::GroupDesc) |it| {
        /// Its number.
        group_id: u32 = it.group_id.0;
        /// `"all"`, `"select"`, `"indirect"` or `"fast_failover"`.
        r#type: &str = it.group_type.text();
        /// The actions of each bucket, as text.
        buckets: Vec<String> =
            it.buckets.iter().map(|bucket| format_actions(&bucket.actions)).collect();
        /// The group as `weir ctl` writes it.
        text: String = format_group(it);
    }
}

class! {
    /// Capabilities of groups.
    GroupFeatures(openflow::group::GroupFeatures) |it| {
        /// Bit n: groups of type n.
        types: u32 = it.types;
        /// Abilities: the bits of `OFPGFC_*`.
        capabilities: u32 = it.capabilities.bits();
        /// The most groups of each type, by the type's number.
        max_groups: Vec<u32> = it.max_groups.to_vec();
    }
}

class! {
    /// Counters of a meter.
    MeterStats(openflow::meter::MeterStats) |it| {
        /// Its number.
        meter_id: u32 = it.meter_id.0;
        /// Flow entries that use it.
        flow_count: u32 = it.flow_count;
        /// Packets that have come to it.
        packet_in_count: Option<u64> = counted(it.packet_in_count);
        /// Their bytes.
        byte_in_count: Option<u64> = counted(it.byte_in_count);
        /// Seconds since it was added.
        duration_s: f64 = seconds(it.duration_s, it.duration_ns);
        /// The counters of its bands, in their order.
        bands: Vec<BucketStats> = counts(it.bands.iter().map(|b| (b.packet_count, b.byte_count)));
    }
}

class! {
    /// A meter.
    MeterConfig(openflow::meter::MeterConfig) |it| {
        /// Its number.
        meter_id: u32 = it.meter_id.0;
        /// Its settings: the bits of `OFPMF_*`.
        flags: u16 = it.flags.bits();
        /// The meter as `weir ctl` writes it.
        text: String = format_meter(it);
    }
}

class! {
    /// Capabilities of meters.
    MeterFeatures(openflow::meter::MeterFeatures) |it| {
        /// The most meters.
        max_meter: u32 = it.max_meter;
        /// Bit n: bands of type n.
        band_types: u32 = it.band_types;
        /// Abilities: the bits of `OFPMF_*` that it takes.
        capabilities: u32 = it.capabilities;
        /// The most bands of a meter.
        max_bands: u8 = it.max_bands;
    }
}

class! {
    /// A switch's description.
    SwitchDesc(openflow::message::SwitchDesc) |it| {
        /// Manufacturer.
        mfr_desc: &str = &it.mfr_desc;
        /// Hardware.
        hw_desc: &str = &it.hw_desc;
        /// Software.
        sw_desc: &str = &it.sw_desc;
        /// Serial number.
        serial_num: &str = &it.serial_num;
        /// The datapath, for people.
        dp_desc: &str = &it.dp_desc;
    }
}

class! {
    /// Settings of a switch.
    SwitchConfig(openflow::message::SwitchConfig) |it| {
        /// Fragments: 0 normal, 1 drop, 2 reassemble.
        flags: u16 = it.flags;
        /// Bytes of a buffered packet in a packet-in that no action asked for.
        miss_send_len: u16 = it.miss_send_len;
    }
}

class! {
    /// The role that a controller has at a switch.
    Role(openflow::message::Role) |it| {
        /// `"equal"`, `"master"`, `"slave"` or `"nochange"`.
        role: &str = role_name(it.role);
        /// The election's number; all ones before there was any.
        generation_id: u64 = it.generation_id;
    }
}

fn seconds(s: u32, ns: u32) -> f64 {
    f64::from(s) + f64::from(ns) / 1e9
}

fn counts(of: impl Iterator<Item = (u64, u64)>) -> Vec<BucketStats> {
    of.map(|inner| BucketStats { inner }).collect()
}

fn list<'py, T, R>(
    py: Python<'py>,
    items: Vec<T>,
    class: impl Fn(T) -> R,
) -> PyResult<Bound<'py, PyAny>>
where
    R: pyo3::PyClass + Into<PyClassInitializer<R>>,
{
    let objects: PyResult<Vec<Py<R>>> =
        items.into_iter().map(|item| Py::new(py, class(item))).collect();
    Ok(PyList::new(py, objects?)?.into_any())
}

fn one<R>(py: Python<'_>, record: R) -> PyResult<Bound<'_, PyAny>>
where
    R: pyo3::PyClass + Into<PyClassInitializer<R>>,
{
    Ok(Bound::new(py, record)?.into_any())
}

impl Answer {
    /// The answer for Python; `None` where all is done.
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Done => Ok(py.None().into_bound(py)),
            Self::Multipart(version, body) => multipart(py, version, body),
            Self::Message(version, message) => message_object(py, version, message),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are given as they are")]
fn message_object(
    py: Python<'_>,
    version: Version,
    message: openflow::Message,
) -> PyResult<Bound<'_, PyAny>> {
    match message {
        openflow::Message::BarrierReply => Ok(py.None().into_bound(py)),
        openflow::Message::MultipartReply(reply) => multipart(py, version, reply.body),
        openflow::Message::EchoReply(data) => Ok(PyBytes::new(py, &data).into_any()),
        openflow::Message::GetConfigReply(inner) => one(py, SwitchConfig { inner }),
        openflow::Message::RoleReply(inner) => one(py, Role { inner }),
        other => one(py, Message { version, xid: None, inner: other }),
    }
}

fn multipart(
    py: Python<'_>,
    version: Version,
    body: MultipartReplyBody,
) -> PyResult<Bound<'_, PyAny>> {
    match body {
        MultipartReplyBody::Desc(inner) => one(py, SwitchDesc { inner }),
        MultipartReplyBody::Flow(all) => list(py, all, |inner| FlowStats { inner }),
        MultipartReplyBody::Aggregate(inner) => one(py, AggregateStats { inner }),
        MultipartReplyBody::Table(all) => list(py, all, |inner| TableStats { inner }),
        MultipartReplyBody::PortStats(all) => list(py, all, |inner| PortStats { inner }),
        MultipartReplyBody::Queue(all) => list(py, all, |inner| QueueStats { inner }),
        MultipartReplyBody::Group(all) => list(py, all, |inner| GroupStats { inner }),
        MultipartReplyBody::GroupDesc(all) => list(py, all, |inner| GroupDesc { inner }),
        MultipartReplyBody::GroupFeatures(inner) => one(py, GroupFeatures { inner }),
        MultipartReplyBody::Meter(all) => list(py, all, |inner| MeterStats { inner }),
        MultipartReplyBody::MeterConfig(all) => list(py, all, |inner| MeterConfig { inner }),
        MultipartReplyBody::MeterFeatures(inner) => one(py, MeterFeatures { inner }),
        MultipartReplyBody::PortDesc(all) => list(py, all, |inner| Port { inner }),
        body @ (MultipartReplyBody::TableFeatures(_)
        | MultipartReplyBody::TableDesc(_)
        | MultipartReplyBody::QueueDesc(_)
        | MultipartReplyBody::FlowMonitor(_)
        | MultipartReplyBody::Experimenter(_)) => {
            let inner = openflow::Message::MultipartReply(MultipartReply { more: false, body });
            one(py, Message { version, xid: None, inner })
        }
    }
}
