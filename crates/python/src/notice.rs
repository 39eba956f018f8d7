//! What a switch says by itself, but for packet-ins: ports, entries that are gone, refusals.

use openflow::message::ErrorMessage;
use openflow::port::{PortConfig, PortDesc, PortState};
use openflow::text::format_reply;
use openflow::{Version, Xid};
use pyo3::prelude::{Bound, PyAny, PyResult, Python, pyclass, pymethods};
use pyo3::types::PyBytes;

use crate::headers::Mac;
use crate::matching::Match;

/// A port of a switch.
#[pyclass(frozen, module = "weir")]
#[derive(Clone)]
pub(crate) struct Port {
    inner: PortDesc,
}

impl Port {
    pub(crate) fn new(inner: PortDesc) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Port {
    /// The port's number.
    #[getter]
    fn number(&self) -> u32 {
        self.inner.port_no.0
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its Ethernet address.
    #[getter]
    fn hw_addr(&self) -> Mac {
        Mac(self.inner.hw_addr.0)
    }

    /// Whether packets can pass: it is not taken down and its link is up.
    #[getter]
    fn is_up(&self) -> bool {
        !self.inner.config.contains(PortConfig::PORT_DOWN)
            && !self.inner.state.contains(PortState::LINK_DOWN)
    }

    /// Whether it is a port of its own, not one of the reserved ones such as `LOCAL`.
    #[getter]
    fn is_physical(&self) -> bool {
        self.inner.port_no <= openflow::PortNo::MAX
    }

    /// The bits of `OFPPC_*`.
    #[getter]
    fn config(&self) -> u32 {
        self.inner.config.bits()
    }

    /// The bits of `OFPPS_*`.
    #[getter]
    fn state(&self) -> u32 {
        self.inner.state.bits()
    }

    /// The current rate in kbit/s, where the version says it.
    #[getter]
    fn speed_kbps(&self) -> u32 {
        self.inner.curr_speed_kbps
    }

    fn __repr__(&self) -> String {
        let PortDesc { port_no, name, .. } = &self.inner;
        format!("Port(number={port_no}, name={name:?}, is_up={})", self.is_up())
    }
}

/// A port has come, gone or changed.
#[pyclass(frozen, module = "weir")]
pub(crate) struct PortStatus {
    pub(crate) inner: openflow::port::PortStatus,
}

#[pymethods]
impl PortStatus {
    /// `"add"`, `"delete"` or `"modify"`.
    #[getter]
    fn reason(&self) -> &'static str {
        use openflow::port::PortReason;
        match self.inner.reason {
            PortReason::Add => "add",
            PortReason::Delete => "delete",
            PortReason::Modify => "modify",
            PortReason::Unknown(_) => "unknown",
        }
    }

    /// The port as it is now, or was.
    #[getter]
    fn port(&self) -> Port {
        Port::new(self.inner.desc.clone())
    }

    fn __repr__(&self) -> String {
        format!("PortStatus(reason={:?}, port={})", self.reason(), self.port().__repr__())
    }
}

/// A flow entry is gone.
#[pyclass(frozen, module = "weir")]
pub(crate) struct FlowRemoved {
    pub(crate) inner: openflow::flow::FlowRemoved,
}

#[pymethods]
impl FlowRemoved {
    /// `"idle"`, `"hard"`, `"delete"` or `"group_delete"`.
    #[getter]
    fn reason(&self) -> &'static str {
        self.inner.reason.text()
    }

    /// The entry's match.
    #[getter(r#match)]
    fn matching(&self) -> Match {
        Match { inner: self.inner.matching.clone() }
    }

    /// The entry's priority.
    #[getter]
    fn priority(&self) -> u16 {
        self.inner.priority
    }

    /// The entry's cookie.
    #[getter]
    fn cookie(&self) -> u64 {
        self.inner.cookie.0
    }

    /// The entry's table.
    #[getter]
    fn table_id(&self) -> u8 {
        self.inner.table_id.0
    }

    /// Seconds that it lived.
    #[getter]
    fn duration_s(&self) -> f64 {
        f64::from(self.inner.duration_s) + f64::from(self.inner.duration_ns) / 1e9
    }

    /// Its idle timeout in seconds; 0 for none.
    #[getter]
    fn idle_timeout(&self) -> u16 {
        self.inner.idle_timeout_s
    }

    /// Its hard timeout in seconds; 0 for none.
    #[getter]
    fn hard_timeout(&self) -> u16 {
        self.inner.hard_timeout_s
    }

    /// Packets; `None` where they were not counted.
    #[getter]
    fn packet_count(&self) -> Option<u64> {
        counted(self.inner.packet_count)
    }

    /// Bytes; `None` where they were not counted.
    #[getter]
    fn byte_count(&self) -> Option<u64> {
        counted(self.inner.byte_count)
    }

    fn __repr__(&self) -> String {
        let matching = openflow::text::format_match(&self.inner.matching);
        format!("FlowRemoved(reason={:?}, match={matching:?})", self.reason())
    }
}

/// A count; all ones say that there is none.
pub(crate) fn counted(count: u64) -> Option<u64> {
    (count != u64::MAX).then_some(count)
}

/// The switch refuses a message for whose answer nobody waits.
#[pyclass(frozen, module = "weir")]
pub(crate) struct SwitchError {
    version: Version,
    xid: Xid,
    inner: ErrorMessage,
}

impl SwitchError {
    pub(crate) fn new(version: Version, xid: Xid, inner: ErrorMessage) -> Self {
        Self { version, xid, inner }
    }
}

#[pymethods]
impl SwitchError {
    /// The specification's name, such as `OFPFMFC_TABLE_FULL`; `"unknown"` for other numbers.
    #[getter]
    fn name(&self) -> &'static str {
        self.inner.error(self.version).map_or("unknown", openflow::Error::name)
    }

    /// The type's number.
    #[getter(r#type)]
    fn error_type(&self) -> u16 {
        self.inner.error_type
    }

    /// The code's number.
    #[getter]
    fn code(&self) -> u16 {
        self.inner.code
    }

    /// The xid of the message that is refused.
    #[getter]
    fn xid(&self) -> u32 {
        self.xid.0
    }

    /// The beginning of that message.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.data)
    }

    /// The exception that this would be, had somebody waited.
    fn exception<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        let error = crate::errors::refused(py, self.version, &self.inner, None);
        error.into_value(py).into_bound(py).into_any()
    }

    fn __repr__(&self) -> String {
        let (kind, code) = (self.inner.error_type, self.inner.code);
        format!("SwitchError(name={:?}, type={kind}, code={code})", self.name())
    }
}

/// This controller's role at a switch is another than before.
#[pyclass(frozen, module = "weir")]
pub(crate) struct RoleChange {
    pub(crate) inner: controller::RoleChange,
}

#[pymethods]
impl RoleChange {
    /// `"equal"`, `"master"` or `"slave"`.
    #[getter]
    fn role(&self) -> &'static str {
        self.inner.role_name()
    }

    /// The generation id that the switch has; `None` where none was used.
    #[getter]
    fn generation_id(&self) -> Option<u64> {
        self.inner.generation_id
    }

    /// `"requested"` where an app has asked for it, `"master_request"` where another controller has
    /// asked to be master.
    #[getter]
    fn reason(&self) -> &'static str {
        self.inner.reason.text()
    }

    fn __repr__(&self) -> String {
        format!("RoleChange(role={:?}, reason={:?})", self.role(), self.reason())
    }
}

/// A message in general: what a test has been sent, and what a switch says unasked.
#[pyclass(frozen, module = "weir")]
pub(crate) struct Message {
    pub(crate) version: Version,
    pub(crate) xid: Option<Xid>,
    pub(crate) inner: openflow::Message,
}

#[pymethods]
impl Message {
    /// The specification's name, such as `OFPT_FLOW_MOD`.
    #[getter]
    fn name(&self) -> &'static str {
        self.inner.kind().row().name
    }

    /// The transaction number; `None` before it is sent.
    #[getter]
    fn xid(&self) -> Option<u32> {
        self.xid.map(|xid| xid.0)
    }

    /// The match of a flow-mod; of a packet-out, what it says of the packet.
    #[getter(r#match)]
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others have none")]
    fn matching(&self) -> Option<Match> {
        match &self.inner {
            openflow::Message::FlowMod(flow) => Some(Match { inner: flow.matching.clone() }),
            _ => None,
        }
    }

    /// The actions or instructions of a flow-mod or packet-out, as text.
    #[getter]
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others have none")]
    fn actions(&self) -> Option<String> {
        match &self.inner {
            openflow::Message::FlowMod(flow) => {
                Some(openflow::text::format_instructions(&flow.instructions))
            }
            openflow::Message::PacketOut(out) => Some(openflow::text::format_actions(&out.actions)),
            _ => None,
        }
    }

    /// The bytes of a packet-out's packet; empty where the switch keeps it.
    #[getter]
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others have none")]
    fn data<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match &self.inner {
            openflow::Message::PacketOut(out) => Some(PyBytes::new(py, &out.data)),
            openflow::Message::EchoRequest(data) | openflow::Message::EchoReply(data) => {
                Some(PyBytes::new(py, data))
            }
            _ => None,
        }
    }

    /// The message on the wire, with the xid zero where it has none.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = wire::encode(self.version, self.xid.unwrap_or(Xid(0)), &self.inner);
        let bytes = bytes.map_err(|error| crate::errors::word(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The message as text.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are printed as they are")]
    fn __str__(&self) -> String {
        use openflow::text::{format_actions, format_flow_mod};
        match &self.inner {
            openflow::Message::FlowMod(flow) => {
                format!("flow_mod {} {}", flow.command.text().to_lowercase(), format_flow_mod(flow))
            }
            openflow::Message::PacketOut(out) => {
                let data = match out.buffer_id {
                    Some(id) => format!("buffer_id={}", id.0),
                    None => format!("{} bytes", out.data.len()),
                };
                let actions = format_actions(&out.actions);
                format!("packet_out in_port={},{data},actions={actions}", out.in_port)
            }
            other => format_reply(self.version, self.xid.unwrap_or(Xid(0)), other)
                .unwrap_or_else(|| format!("{} {other:?}", self.name())),
        }
    }

    fn __repr__(&self) -> String {
        format!("Message({:?})", self.__str__())
    }
}
