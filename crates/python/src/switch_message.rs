//! Messages that a switch sends by itself, but for packet-ins: ports, entries that are gone,
//! refusals.

use openflow::message::ErrorMessage;
use openflow::port::{PortConfig, PortDesc, PortReason, PortState};
use openflow::text::format_reply;
use openflow::{Version, Xid};
use pyo3::prelude::{Bound, PyAny, PyResult, Python};
use pyo3::types::PyBytes;

use crate::class::class;
use crate::headers::Mac;
use crate::matching::Match;

class! {
    /// A port of a switch.
    Port(PortDesc) |it| {
        /// The port's number.
        number: u32 = it.port_no.0;
        /// Its name.
        name: &str = &it.name;
        /// Its Ethernet address.
        hw_addr: Mac = Mac(it.hw_addr.0);
        /// Whether packets can pass: it is not taken down and its link is up.
        is_up: bool = !it.config.contains(PortConfig::PORT_DOWN)
            && !it.state.contains(PortState::LINK_DOWN);
        /// Whether it is a port of its own, not one of the reserved ones such as `LOCAL`.
        is_physical: bool = it.port_no <= openflow::PortNo::MAX;
        /// Its settings: the bits of `OFPPC_*`.
        config: u32 = it.config.bits();
        /// Its state: the bits of `OFPPS_*`.
        state: u32 = it.state.bits();
        /// The current rate in kbit/s, where the version has it.
        speed_kbps: u32 = it.curr_speed_kbps;
    }
    repr |it| format!(
        "Port(number={}, name={:?}, is_up={})", it.inner.port_no, it.name(), it.is_up()
    );
}

class! {
    /// A port has come (``"add"``), gone (``"delete"``) or changed (``"modify"``).
    PortStatus(openflow::port::PortStatus) |it| {
        /// `"add"`, `"delete"` or `"modify"`.
        reason: &'static str = match it.reason {
            PortReason::Add => "add",
            PortReason::Delete => "delete",
            PortReason::Modify => "modify",
            PortReason::Unknown(_) => "unknown",
        };
        /// The port as it is now, or was before it went.
        port: Port = Port { inner: it.desc.clone() };
    }
}

class! {
    /// A flow entry is gone: ``"idle"``, ``"hard"``, ``"delete"`` or ``"group_delete"``.
    FlowRemoved(openflow::flow::FlowRemoved) |it| {
        /// `"idle"`, `"hard"`, `"delete"` or `"group_delete"`.
        reason: &'static str = it.reason.text();
        /// The entry's match.
        r#match: Match = Match { inner: it.matching.clone() };
        /// The entry's priority.
        priority: u16 = it.priority;
        /// The entry's cookie.
        cookie: u64 = it.cookie.0;
        /// The entry's table.
        table_id: u8 = it.table_id.0;
        /// Seconds that it lived.
        duration_s: f64 = f64::from(it.duration_s) + f64::from(it.duration_ns) / 1e9;
        /// Its idle timeout in seconds; 0 for none.
        idle_timeout: u16 = it.idle_timeout_s;
        /// Its hard timeout in seconds; 0 for none.
        hard_timeout: u16 = it.hard_timeout_s;
        /// Packets; `None` where they were not counted.
        packet_count: Option<u64> = counted(it.packet_count);
        /// Bytes; `None` where they were not counted.
        byte_count: Option<u64> = counted(it.byte_count);
    }
    repr |it| format!(
        "FlowRemoved(reason={:?}, match={:?})",
        it.reason(),
        openflow::text::format_match(&it.inner.matching)
    );
}

/// A count; all ones mean that there is none.
pub(crate) fn counted(count: u64) -> Option<u64> {
    (count != u64::MAX).then_some(count)
}

class! {
    /// The switch refuses a message for whose answer nobody waits.
    SwitchError {
        pub(crate) version: Version,
        pub(crate) xid: Xid,
        pub(crate) inner: ErrorMessage,
    } |it| {
        /// The specification's name, such as `OFPFMFC_TABLE_FULL`; `"unknown"` for other numbers.
        name: &'static str = it.inner.error(it.version).map_or("unknown", openflow::Error::name);
        /// Why it is refused, and what to change; `""` for other numbers.
        advice: &'static str = it.inner.error(it.version).map_or("", openflow::Error::advice);
        /// The type's number.
        r#type: u16 = it.inner.error_type;
        /// The code's number.
        code: u16 = it.inner.code;
        /// The xid of the message that is refused.
        xid: u32 = it.xid.0;
        /// The beginning of that message.
        data: &[u8] = &it.inner.data;
    }
    repr |it| format!(
        "SwitchError(name={:?}, type={}, code={})", it.name(), it.inner.error_type, it.inner.code
    );
    methods "    def exception(self) -> Exception:
        \"\"\"The exception that this would be, had an app waited.\"\"\"\n" {
        /// The exception that this would be, had an app waited.
        fn exception<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
            let error = crate::errors::refused(py, self.version, &self.inner, None);
            error.into_value(py).into_bound(py).into_any()
        }
    }
}

class! {
    /// This controller's role at a switch is another than before.
    RoleChange(controller::RoleChange) |it| {
        /// `"equal"`, `"master"` or `"slave"`.
        role: &'static str = it.role_name();
        /// The generation id that the switch has; `None` where none was used.
        generation_id: Option<u64> = it.generation_id;
        /// `"requested"` where an app has asked for it, `"master_request"` where another
        /// controller has asked to be master; `"config"`, `"experimenter"` or `"unknown"` where a
        /// switch of OpenFlow 1.4 has sent such a reason.
        reason: &'static str = it.reason.text();
    }
    repr |it| format!("RoleChange(role={:?}, reason={:?})", it.role(), it.reason());
}

class! {
    /// A message in general: what a test was sent, and what a switch sends unasked.
    Message {
        pub(crate) version: Version,
        pub(crate) xid: Option<Xid>,
        pub(crate) inner: openflow::Message,
    } |it| {
        /// The specification's name, such as `OFPT_FLOW_MOD`.
        name: &'static str = it.inner.kind().row().name;
        /// The transaction number; `None` before it is sent.
        xid: Option<u32> = it.xid.map(|xid| xid.0);
        /// The match of a flow-mod.
        r#match: Option<Match> = flow_match(&it.inner);
        /// The actions or instructions of a flow-mod or packet-out, as text.
        actions: Option<String> = actions(&it.inner);
        /// The bytes of a packet-out's packet; empty where the switch keeps it.
        data: Option<&[u8]> = data(&it.inner);
    }
    repr |it| format!("Message({:?})", it.__str__());
    methods "    def encode(self) -> bytes:
        \"\"\"The message on the wire, with the xid zero where it has none.\"\"\"\n" {
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
                    let command = flow.command.text().to_lowercase();
                    format!("flow_mod {command} {}", format_flow_mod(flow))
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
    }
}

fn flow_match(message: &openflow::Message) -> Option<Match> {
    if let openflow::Message::FlowMod(flow) = message {
        Some(Match { inner: flow.matching.clone() })
    } else {
        None
    }
}

fn actions(message: &openflow::Message) -> Option<String> {
    use openflow::text::{format_actions, format_instructions};
    if let openflow::Message::FlowMod(flow) = message {
        Some(format_instructions(&flow.instructions))
    } else if let openflow::Message::PacketOut(out) = message {
        Some(format_actions(&out.actions))
    } else {
        None
    }
}

fn data(message: &openflow::Message) -> Option<&[u8]> {
    if let openflow::Message::PacketOut(out) = message {
        Some(&out.data)
    } else if let openflow::Message::EchoRequest(data) | openflow::Message::EchoReply(data) =
        message
    {
        Some(data)
    } else {
        None
    }
}
