//! Answers of switches as values for Python: statistics, descriptions, settings.
//!
//! The names are the specification's, which are Ryu's too. Counters that the switch does not keep
//! are `None`.

use openflow::Version;
use openflow::message::{ControllerRole, ErrorMessage, MultipartReply, MultipartReplyBody};
use openflow::text::{format_actions, format_group, format_instructions, format_meter};
use pyo3::prelude::{
    Bound, Py, PyAny, PyAnyMethods, PyClassInitializer, PyErr, PyResult, Python, pyclass, pymethods,
};
use pyo3::types::{PyBytes, PyList};

use crate::errors::{Class, exception, refused};
use crate::matching::Match;
use crate::notice::{Message, Port, counted};

/// An answer that somebody waits for.
pub(crate) struct Answered {
    pub(crate) future: Py<PyAny>,
    pub(crate) outcome: Result<Answer, Failure>,
}

/// What came.
pub(crate) enum Answer {
    /// All is done.
    Done,
    /// A message of this version.
    Message(Version, openflow::Message),
    /// The answer to a multipart request, whole.
    Multipart(Version, MultipartReplyBody),
}

/// Why nothing came.
pub(crate) enum Failure {
    NotConnected(String),
    QueueFull(String),
    Silent(String),
    Unsaid(String),
    Refused { index: Option<usize>, version: Version, error: ErrorMessage },
    Other(String),
}

impl Failure {
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::NotConnected(what) => exception(py, Class::NotConnected, what),
            Self::QueueFull(what) => exception(py, Class::QueueFull, what),
            Self::Silent(what) => exception(py, Class::Silent, what),
            Self::Unsaid(what) => exception(py, Class::Word, what),
            Self::Refused { index, version, error } => refused(py, *version, error, *index),
            Self::Other(what) => exception(py, Class::Weir, what),
        }
    }
}

/// Defines a record: a class in Python whose values are attributes.
macro_rules! record {
    ($(#[doc = $doc:literal])* $name:ident $python:literal {
        $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty,)+
    }) => {
        $(#[doc = $doc])*
        #[pyclass(frozen, get_all, module = "weir")]
        #[derive(Clone)]
        pub(crate) struct $name {
            $($(#[doc = $fdoc])* $field: $ty,)+
        }

        #[pymethods]
        impl $name {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let mut words = Vec::new();
                $({
                    let name = stringify!($field).trim_start_matches("r#");
                    words.push(format!("{name}={}", slf.getattr(name)?.repr()?));
                })+
                Ok(format!("{}({})", $python, words.join(", ")))
            }
        }
    };
}

record! {
    /// A flow entry with its counters.
    FlowStats "FlowStats" {
        /// Its table.
        table_id: u8,
        /// Its priority.
        priority: u16,
        /// Its match.
        r#match: Match,
        /// Its actions or instructions, as text.
        actions: String,
        /// Its cookie.
        cookie: u64,
        /// Its idle timeout in seconds; 0 for none.
        idle_timeout: u16,
        /// Its hard timeout in seconds; 0 for none.
        hard_timeout: u16,
        /// The bits of `OFPFF_*`.
        flags: u16,
        /// Packets.
        packet_count: Option<u64>,
        /// Bytes.
        byte_count: Option<u64>,
        /// Seconds that it has lived.
        duration_s: f64,
    }
}

record! {
    /// Sums over flow entries.
    AggregateStats "AggregateStats" {
        /// Packets.
        packet_count: Option<u64>,
        /// Bytes.
        byte_count: Option<u64>,
        /// Entries.
        flow_count: u32,
    }
}

record! {
    /// Counters of a table.
    TableStats "TableStats" {
        /// Which.
        table_id: u8,
        /// Its name; 1.0 only.
        name: String,
        /// Entries that it can have; 1.0 only.
        max_entries: u32,
        /// Entries.
        active_count: u32,
        /// Packets looked up.
        lookup_count: Option<u64>,
        /// Packets that an entry matched.
        matched_count: Option<u64>,
    }
}

record! {
    /// Counters of a port.
    PortStats "PortStats" {
        /// Which.
        port_no: u32,
        /// Packets received.
        rx_packets: Option<u64>,
        /// Packets sent.
        tx_packets: Option<u64>,
        /// Bytes received.
        rx_bytes: Option<u64>,
        /// Bytes sent.
        tx_bytes: Option<u64>,
        /// Received packets dropped.
        rx_dropped: Option<u64>,
        /// Packets dropped in place of being sent.
        tx_dropped: Option<u64>,
        /// Receive errors.
        rx_errors: Option<u64>,
        /// Send errors.
        tx_errors: Option<u64>,
        /// Frame alignment errors.
        rx_frame_err: Option<u64>,
        /// Overruns.
        rx_over_err: Option<u64>,
        /// Wrong checksums.
        rx_crc_err: Option<u64>,
        /// Collisions.
        collisions: Option<u64>,
        /// Seconds that the port has lived; 0 in 1.0.
        duration_s: f64,
    }
}

record! {
    /// Counters of a queue.
    QueueStats "QueueStats" {
        /// Its port.
        port_no: u32,
        /// Which.
        queue_id: u32,
        /// Packets sent.
        tx_packets: Option<u64>,
        /// Bytes sent.
        tx_bytes: Option<u64>,
        /// Packets dropped.
        tx_errors: Option<u64>,
    }
}

record! {
    /// Counters of a bucket.
    BucketStats "BucketStats" {
        /// Packets.
        packet_count: Option<u64>,
        /// Bytes.
        byte_count: Option<u64>,
    }
}

record! {
    /// Counters of a group.
    GroupStats "GroupStats" {
        /// Which.
        group_id: u32,
        /// Flow entries and groups that use it.
        ref_count: u32,
        /// Packets.
        packet_count: Option<u64>,
        /// Bytes.
        byte_count: Option<u64>,
        /// Seconds that it has lived.
        duration_s: f64,
        /// Its buckets.
        buckets: Vec<BucketStats>,
    }
}

record! {
    /// A group.
    GroupDesc "GroupDesc" {
        /// Which.
        group_id: u32,
        /// `"all"`, `"select"`, `"indirect"` or `"fast_failover"`.
        r#type: String,
        /// The actions of each bucket, as text.
        buckets: Vec<String>,
        /// The group as `weir ctl` writes it.
        text: String,
    }
}

record! {
    /// What groups can do.
    GroupFeatures "GroupFeatures" {
        /// Bit n: groups of type n.
        types: u32,
        /// The bits of `OFPGFC_*`.
        capabilities: u32,
        /// The most groups of each type.
        max_groups: Vec<u32>,
    }
}

record! {
    /// Counters of a meter.
    MeterStats "MeterStats" {
        /// Which.
        meter_id: u32,
        /// Flow entries that use it.
        flow_count: u32,
        /// Packets.
        packet_in_count: Option<u64>,
        /// Bytes.
        byte_in_count: Option<u64>,
        /// Seconds that it has lived.
        duration_s: f64,
        /// Its bands.
        bands: Vec<BucketStats>,
    }
}

record! {
    /// A meter.
    MeterConfig "MeterConfig" {
        /// Which.
        meter_id: u32,
        /// The bits of `OFPMF_*`.
        flags: u16,
        /// The meter as `weir ctl` writes it.
        text: String,
    }
}

record! {
    /// What meters can do.
    MeterFeatures "MeterFeatures" {
        /// The most meters.
        max_meter: u32,
        /// Bit n: bands of type n.
        band_types: u32,
        /// The bits of `OFPMF_*`.
        capabilities: u32,
        /// The most bands of a meter.
        max_bands: u8,
    }
}

record! {
    /// A switch's description.
    SwitchDesc "SwitchDesc" {
        /// Manufacturer.
        mfr_desc: String,
        /// Hardware.
        hw_desc: String,
        /// Software.
        sw_desc: String,
        /// Serial number.
        serial_num: String,
        /// The datapath, for people.
        dp_desc: String,
    }
}

record! {
    /// How a switch is set.
    SwitchConfig "SwitchConfig" {
        /// Fragments: 0 normal, 1 drop, 2 reassemble.
        flags: u16,
        /// Bytes of a buffered packet in a packet-in that no action asked for.
        miss_send_len: u16,
    }
}

record! {
    /// The role that a controller has at a switch.
    Role "Role" {
        /// `"equal"`, `"master"`, `"slave"` or `"nochange"`.
        role: String,
        /// The election's number; all ones before there was any.
        generation_id: u64,
    }
}

fn seconds(s: u32, ns: u32) -> f64 {
    f64::from(s) + f64::from(ns) / 1e9
}

impl From<openflow::flow::FlowStats> for FlowStats {
    fn from(flow: openflow::flow::FlowStats) -> Self {
        Self {
            table_id: flow.table_id.0,
            priority: flow.priority,
            actions: format_instructions(&flow.instructions),
            r#match: Match { inner: flow.matching },
            cookie: flow.cookie.0,
            idle_timeout: flow.idle_timeout_s,
            hard_timeout: flow.hard_timeout_s,
            flags: flow.flags.bits(),
            packet_count: counted(flow.packet_count),
            byte_count: counted(flow.byte_count),
            duration_s: seconds(flow.duration_s, flow.duration_ns),
        }
    }
}

impl From<openflow::table::TableStats> for TableStats {
    fn from(table: openflow::table::TableStats) -> Self {
        Self {
            table_id: table.table_id.0,
            name: table.name,
            max_entries: table.max_entries,
            active_count: table.active_count,
            lookup_count: counted(table.lookup_count),
            matched_count: counted(table.matched_count),
        }
    }
}

impl From<openflow::port::PortStats> for PortStats {
    fn from(port: openflow::port::PortStats) -> Self {
        Self {
            port_no: port.port_no.0,
            rx_packets: counted(port.rx_packets),
            tx_packets: counted(port.tx_packets),
            rx_bytes: counted(port.rx_bytes),
            tx_bytes: counted(port.tx_bytes),
            rx_dropped: counted(port.rx_dropped),
            tx_dropped: counted(port.tx_dropped),
            rx_errors: counted(port.rx_errors),
            tx_errors: counted(port.tx_errors),
            rx_frame_err: counted(port.rx_frame_err),
            rx_over_err: counted(port.rx_over_err),
            rx_crc_err: counted(port.rx_crc_err),
            collisions: counted(port.collisions),
            duration_s: seconds(port.duration_s, port.duration_ns),
        }
    }
}

impl From<openflow::port::QueueStats> for QueueStats {
    fn from(queue: openflow::port::QueueStats) -> Self {
        Self {
            port_no: queue.port_no.0,
            queue_id: queue.queue_id.0,
            tx_packets: counted(queue.tx_packets),
            tx_bytes: counted(queue.tx_bytes),
            tx_errors: counted(queue.tx_errors),
        }
    }
}

impl BucketStats {
    fn new(packets: u64, bytes: u64) -> Self {
        Self { packet_count: counted(packets), byte_count: counted(bytes) }
    }
}

impl From<openflow::group::GroupStats> for GroupStats {
    fn from(group: openflow::group::GroupStats) -> Self {
        let buckets = group.buckets.iter();
        Self {
            group_id: group.group_id.0,
            ref_count: group.ref_count,
            packet_count: counted(group.packet_count),
            byte_count: counted(group.byte_count),
            duration_s: seconds(group.duration_s, group.duration_ns),
            buckets: buckets.map(|b| BucketStats::new(b.packet_count, b.byte_count)).collect(),
        }
    }
}

impl From<openflow::group::GroupDesc> for GroupDesc {
    fn from(group: openflow::group::GroupDesc) -> Self {
        Self {
            group_id: group.group_id.0,
            r#type: group.group_type.text().to_owned(),
            buckets: group.buckets.iter().map(|bucket| format_actions(&bucket.actions)).collect(),
            text: format_group(&group),
        }
    }
}

impl From<openflow::meter::MeterStats> for MeterStats {
    fn from(meter: openflow::meter::MeterStats) -> Self {
        let bands = meter.bands.iter();
        Self {
            meter_id: meter.meter_id.0,
            flow_count: meter.flow_count,
            packet_in_count: counted(meter.packet_in_count),
            byte_in_count: counted(meter.byte_in_count),
            duration_s: seconds(meter.duration_s, meter.duration_ns),
            bands: bands.map(|b| BucketStats::new(b.packet_count, b.byte_count)).collect(),
        }
    }
}

impl From<openflow::meter::MeterConfig> for MeterConfig {
    fn from(meter: openflow::meter::MeterConfig) -> Self {
        Self { meter_id: meter.meter_id.0, flags: meter.flags.bits(), text: format_meter(&meter) }
    }
}

/// A list of records.
fn list<'py, R, T>(py: Python<'py>, items: Vec<T>) -> PyResult<Bound<'py, PyAny>>
where
    R: From<T> + pyo3::PyClass + Into<PyClassInitializer<R>>,
{
    let objects: PyResult<Vec<Py<R>>> =
        items.into_iter().map(|item| Py::new(py, R::from(item))).collect();
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
        openflow::Message::GetConfigReply(config) => {
            one(py, SwitchConfig { flags: config.flags, miss_send_len: config.miss_send_len })
        }
        openflow::Message::RoleReply(role) => {
            let generation_id = role.generation_id;
            one(py, Role { role: role_name(role.role).to_owned(), generation_id })
        }
        other => one(py, Message { version, xid: None, inner: other }),
    }
}

/// The role's name in the specification.
pub(crate) fn role_name(role: ControllerRole) -> &'static str {
    match role {
        ControllerRole::NoChange => "nochange",
        ControllerRole::Equal => "equal",
        ControllerRole::Master => "master",
        ControllerRole::Slave => "slave",
        ControllerRole::Unknown(_) => "unknown",
    }
}

fn multipart(
    py: Python<'_>,
    version: Version,
    body: MultipartReplyBody,
) -> PyResult<Bound<'_, PyAny>> {
    match body {
        MultipartReplyBody::Desc(desc) => one(
            py,
            SwitchDesc {
                mfr_desc: desc.mfr_desc,
                hw_desc: desc.hw_desc,
                sw_desc: desc.sw_desc,
                serial_num: desc.serial_num,
                dp_desc: desc.dp_desc,
            },
        ),
        MultipartReplyBody::Flow(flows) => list::<FlowStats, _>(py, flows),
        MultipartReplyBody::Aggregate(sums) => one(
            py,
            AggregateStats {
                packet_count: counted(sums.packet_count),
                byte_count: counted(sums.byte_count),
                flow_count: sums.flow_count,
            },
        ),
        MultipartReplyBody::Table(tables) => list::<TableStats, _>(py, tables),
        MultipartReplyBody::PortStats(ports) => list::<PortStats, _>(py, ports),
        MultipartReplyBody::Queue(queues) => list::<QueueStats, _>(py, queues),
        MultipartReplyBody::Group(groups) => list::<GroupStats, _>(py, groups),
        MultipartReplyBody::GroupDesc(groups) => list::<GroupDesc, _>(py, groups),
        MultipartReplyBody::GroupFeatures(features) => one(
            py,
            GroupFeatures {
                types: features.types,
                capabilities: features.capabilities.bits(),
                max_groups: features.max_groups.to_vec(),
            },
        ),
        MultipartReplyBody::Meter(meters) => list::<MeterStats, _>(py, meters),
        MultipartReplyBody::MeterConfig(meters) => list::<MeterConfig, _>(py, meters),
        MultipartReplyBody::MeterFeatures(features) => one(
            py,
            MeterFeatures {
                max_meter: features.max_meter,
                band_types: features.band_types,
                capabilities: features.capabilities,
                max_bands: features.max_bands,
            },
        ),
        MultipartReplyBody::PortDesc(ports) => {
            let ports = ports.into_iter().map(|port| Py::new(py, Port::new(port)));
            Ok(PyList::new(py, ports.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        body @ (MultipartReplyBody::TableFeatures(_) | MultipartReplyBody::Experimenter(_)) => {
            let inner = openflow::Message::MultipartReply(MultipartReply { more: false, body });
            one(py, Message { version, xid: None, inner })
        }
    }
}
