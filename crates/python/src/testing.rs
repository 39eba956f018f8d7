//! A switch for tests of apps: events are made by hand, messages are kept, nothing is sent.
//!
//! It answers like a switch that does all it is asked for: a barrier is reached, lists are empty
//! but for the ports. `weir.testing` is the friendlier side.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use controller::{ControllerEvent, RoleReason, role_name};
use openflow::flow::{AggregateStats, FlowRemovedReason};
use openflow::group::GroupFeatures;
use openflow::message::{
    ControllerRole, ErrorMessage, Features, MultipartReplyBody, MultipartRequestBody,
    PacketInReason, Role, SwitchConfig, SwitchDesc,
};
use openflow::meter::MeterFeatures;
use openflow::port::{PortDesc, PortReason, PortState, PortStats};
use openflow::{BufferId, Cookie, DatapathId, Field, MacAddr, PortNo, TableId, Version, Xid};
use pyo3::prelude::{Bound, Py, PyAny, PyResult, Python, pyclass, pymethods};
use pyo3::types::PyDict;
use wire::EncodeError;

use crate::answer::{Answer, Failure};
use crate::errors::word;
use crate::event::{self, Handler};
use crate::lock::lock;
use crate::matching;
use crate::packet_in::PacketIn;
use crate::switch::Switch;
use crate::switch_message::{FlowRemoved, Message, PortStatus, RoleChange, SwitchError};
use crate::transport::{Connection, Question, Transport};

/// The generation id of a switch that has never been given one.
const NO_GENERATION: u64 = u64::MAX;

/// A future, and what it is to get.
type Waited = (Py<PyAny>, Result<Answer, Failure>);

/// A future, whether there is an answer, and the answer or the exception.
type Outcome = (Py<PyAny>, bool, Py<PyAny>);

/// Messages and questions that have been sent.
struct Kept {
    version: Version,
    sent: Mutex<Vec<openflow::Message>>,
    /// Futures with their answers, which the test's loop sets.
    answers: Mutex<Vec<Waited>>,
    /// The errors of the next questions.
    refusals: Mutex<VecDeque<openflow::Error>>,
    /// The role of the controller of the test.
    role: Mutex<Role>,
    /// Changes of it that the apps have not got yet.
    role_changes: Mutex<Vec<controller::RoleChange>>,
}

impl Transport for Kept {
    fn send(&self, to: &Arc<Connection>, message: openflow::Message) -> Result<(), EncodeError> {
        wire::encode(to.version, Xid(0), &message)?;
        if !to.is_over() {
            lock(&self.sent).push(message);
        }
        Ok(())
    }

    fn send_encoded(&self, to: &Arc<Connection>, bytes: &[u8]) {
        // One that is wrong would be refused by the switch.
        if let (false, Ok((_, _, message))) = (to.is_over(), wire::decode(bytes)) {
            lock(&self.sent).push(message);
        }
    }

    fn ask(&self, to: &Arc<Connection>, question: Question, future: Py<PyAny>) {
        let refusal = lock(&self.refusals).pop_front();
        let answer = match (to.is_over(), refusal) {
            (true, _) => Err(Failure::NotConnected(format!("switch {} is not connected", to.dpid))),
            (false, Some(error)) => Err(Failure::Refused {
                index: None,
                version: to.version,
                error: ErrorMessage::new(to.version, error, Vec::new()),
            }),
            (false, None) => Ok(self.answer(to, question)),
        };
        lock(&self.answers).push((future, answer));
    }
}

impl Kept {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others have an answer without a body")]
    fn answer(&self, to: &Connection, question: Question) -> Answer {
        match question {
            Question::Checked(messages) => {
                let n_tables = to.features.n_tables;
                let each = messages.into_iter();
                let each = each.flat_map(|message| message.in_each_table(to.version, n_tables));
                lock(&self.sent).extend(each);
                Answer::Done
            }
            Question::Multipart(body) => Answer::Multipart(to.version, reply(to, &body)),
            Question::One(message) => {
                let answer = match &message {
                    openflow::Message::EchoRequest(data) => {
                        openflow::Message::EchoReply(data.clone())
                    }
                    openflow::Message::RoleRequest(asked) => {
                        openflow::Message::RoleReply(self.take_role_request(*asked))
                    }
                    openflow::Message::GetConfigRequest => {
                        openflow::Message::GetConfigReply(SwitchConfig {
                            flags: 0,
                            miss_send_len: 0xffff,
                        })
                    }
                    _ => openflow::Message::BarrierReply,
                };
                lock(&self.sent).push(message);
                Answer::Message(to.version, answer)
            }
        }
    }
}

impl Kept {
    /// The role from now on; apps hear of it where it is another than before, as in a run.
    fn take_role_request(&self, asked: Role) -> Role {
        if asked.role == ControllerRole::NoChange {
            return *lock(&self.role);
        }
        let generation_id = Some(asked.generation_id);
        let reason = RoleReason::Requested;
        let change = controller::RoleChange { role: asked.role, generation_id, reason };
        self.change_role(change);
        *lock(&self.role)
    }

    fn change_role(&self, change: controller::RoleChange) {
        let generation_id = change.generation_id.unwrap_or(NO_GENERATION);
        let role = Role { role: change.role, generation_id };
        let before = std::mem::replace(&mut *lock(&self.role), role);
        if before.role != change.role {
            lock(&self.role_changes).push(change);
        }
    }
}

/// The answer of a switch without entries.
fn reply(to: &Connection, body: &MultipartRequestBody) -> MultipartReplyBody {
    match body {
        MultipartRequestBody::Desc => MultipartReplyBody::Desc(SwitchDesc::default()),
        MultipartRequestBody::Flow(_) => MultipartReplyBody::Flow(Vec::new()),
        MultipartRequestBody::Aggregate(_) => {
            MultipartReplyBody::Aggregate(AggregateStats::default())
        }
        MultipartRequestBody::Table => MultipartReplyBody::Table(Vec::new()),
        MultipartRequestBody::PortStats(_) => {
            let stats = |port: &PortNo| PortStats { port_no: *port, ..PortStats::default() };
            MultipartReplyBody::PortStats(to.ports().keys().map(stats).collect())
        }
        MultipartRequestBody::Queue { .. } => MultipartReplyBody::Queue(Vec::new()),
        MultipartRequestBody::Group(_) => MultipartReplyBody::Group(Vec::new()),
        MultipartRequestBody::GroupDesc | MultipartRequestBody::OneGroupDesc(_) => {
            MultipartReplyBody::GroupDesc(Vec::new())
        }
        MultipartRequestBody::GroupFeatures => {
            MultipartReplyBody::GroupFeatures(GroupFeatures::default())
        }
        MultipartRequestBody::Meter(_) => MultipartReplyBody::Meter(Vec::new()),
        MultipartRequestBody::MeterConfig(_) => MultipartReplyBody::MeterConfig(Vec::new()),
        MultipartRequestBody::MeterFeatures => {
            MultipartReplyBody::MeterFeatures(MeterFeatures::default())
        }
        MultipartRequestBody::TableFeatures(_) => MultipartReplyBody::TableFeatures(Vec::new()),
        MultipartRequestBody::PortDesc => {
            MultipartReplyBody::PortDesc(to.ports().values().cloned().collect())
        }
        MultipartRequestBody::OnePortDesc(port) => {
            MultipartReplyBody::PortDesc(to.ports().get(port).cloned().into_iter().collect())
        }
        MultipartRequestBody::TableDesc => MultipartReplyBody::TableDesc(Vec::new()),
        MultipartRequestBody::QueueDesc { .. } => MultipartReplyBody::QueueDesc(Vec::new()),
        MultipartRequestBody::FlowMonitor(_) => MultipartReplyBody::FlowMonitor(Vec::new()),
        MultipartRequestBody::Experimenter(own) => MultipartReplyBody::Experimenter(own.clone()),
    }
}

/// A switch without a network.
#[pyclass(frozen, module = "weir")]
pub(crate) struct TestSwitch {
    connection: Arc<Connection>,
    kept: Arc<Kept>,
    /// The object of the apps.
    #[pyo3(get)]
    sw: Py<Switch>,
}

fn port_desc(dpid: u64, number: u32) -> PortDesc {
    PortDesc {
        port_no: PortNo(number),
        hw_addr: MacAddr::from_u64(0x0200_0000_0000 | (dpid & 0xffff) << 16 | u64::from(number)),
        name: format!("s{dpid}-eth{number}"),
        ..PortDesc::default()
    }
}

#[pymethods]
impl TestSwitch {
    #[new]
    #[pyo3(signature = (dpid=1, *, ports=4, version="OpenFlow13"))]
    fn new(py: Python<'_>, dpid: u64, ports: u32, version: &str) -> PyResult<Self> {
        let version = Version::from_name(version).ok_or_else(|| {
            let names: Vec<_> = Version::ALL.iter().map(|version| version.name()).collect();
            word(format!("version {version:?}: allowed are {}", names.join(", ")))
        })?;
        let kept = Arc::new(Kept {
            version,
            sent: Mutex::default(),
            answers: Mutex::default(),
            refusals: Mutex::default(),
            role: Mutex::new(Role { role: ControllerRole::Equal, generation_id: NO_GENERATION }),
            role_changes: Mutex::default(),
        });
        let datapath_id = DatapathId(dpid);
        let features = Features { datapath_id, n_tables: 254, ..Features::default() };
        let ports: BTreeMap<PortNo, PortDesc> =
            (1..=ports).map(|number| (PortNo(number), port_desc(dpid, number))).collect();
        let transport: Arc<dyn Transport> = Arc::clone(&kept) as Arc<dyn Transport>;
        let connection = Arc::new(Connection::new(version, features, ports, transport));
        let sw = Py::new(py, Switch::new(Arc::clone(&connection)))?;
        Ok(Self { connection, kept, sw })
    }

    /// Takes the messages that were sent since the last call.
    fn take_sent(&self) -> Vec<Message> {
        let sent = std::mem::take(&mut *lock(&self.kept.sent));
        let version = self.kept.version;
        sent.into_iter().map(|inner| Message { version, xid: None, inner }).collect()
    }

    /// Takes the answers to the questions since the last call: future, whether there is an answer,
    /// and the answer or the exception.
    fn take_answers(&self, py: Python<'_>) -> PyResult<Vec<Outcome>> {
        let answers = std::mem::take(&mut *lock(&self.kept.answers));
        let answers = answers.into_iter().map(|(future, answer)| match answer {
            Ok(answer) => Ok((future, true, answer.into_object(py)?.unbind())),
            Err(failure) => Ok((future, false, failure.exception(py).into_value(py).into_any())),
        });
        answers.collect()
    }

    /// The next question is refused with this error.
    fn refuse_next(&self, name: &str) -> PyResult<()> {
        let error = openflow::Error::from_name(name)
            .ok_or_else(|| word(format!("no error {name:?}; see weir.errors")))?;
        lock(&self.kept.refusals).push_back(error);
        Ok(())
    }

    /// The connection is over.
    fn end(&self) {
        self.connection.end();
    }

    /// A packet-in.
    #[pyo3(signature = (data, in_port=1, *, reason="no_match", table_id=0, cookie=u64::MAX,
        buffer_id=None, total_len=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the parts of a packet-in")]
    fn packet_in(
        &self,
        data: Vec<u8>,
        in_port: u32,
        reason: &str,
        table_id: u8,
        cookie: u64,
        buffer_id: Option<u32>,
        total_len: Option<u16>,
    ) -> PyResult<PacketIn> {
        let known = PacketInReason::ALL.iter().find(|known| known.text() == reason);
        let reason = *known.ok_or_else(|| {
            let names: Vec<_> = PacketInReason::ALL.iter().map(|reason| reason.text()).collect();
            word(format!("reason {reason:?}: allowed are {}", names.join(", ")))
        })?;
        let len =
            u16::try_from(data.len()).map_err(|_| word("a packet has at most 65535 bytes"))?;
        Ok(PacketIn::new(openflow::message::PacketIn {
            buffer_id: buffer_id.map(BufferId),
            total_len: total_len.unwrap_or(len),
            reason,
            table_id: TableId(table_id),
            cookie: Cookie(cookie),
            matching: openflow::Match::any().with(Field::InPort, in_port.into()),
            data,
            userdata: Vec::new(),
            continuation: Vec::new(),
            controller_id: 0,
        }))
    }

    /// A port has come, gone or changed: `"add"`, `"delete"` or `"modify"`.
    #[pyo3(signature = (number, reason="modify", *, up=true))]
    fn port_status(&self, number: u32, reason: &str, up: bool) -> PyResult<PortStatus> {
        let reason = match reason {
            "add" => PortReason::Add,
            "delete" => PortReason::Delete,
            "modify" => PortReason::Modify,
            other => {
                let what = format!("reason {other:?}: allowed are add, delete, modify");
                return Err(word(what));
            }
        };
        let ports = self.connection.ports();
        let known = ports.get(&PortNo(number)).cloned();
        let mut desc = known.unwrap_or_else(|| port_desc(self.connection.dpid.0, number));
        desc.state.set(PortState::LINK_DOWN, !up);
        let inner = openflow::port::PortStatus { reason, desc };
        self.connection.take_port_status(&inner);
        Ok(PortStatus { inner })
    }

    /// A flow entry is gone.
    #[pyo3(signature = (r#match=None, *, reason="idle", priority=0x8000, cookie=0, table_id=0,
        packet_count=0, byte_count=0, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the parts of the message")]
    fn flow_removed(
        &self,
        r#match: Option<&Bound<'_, PyAny>>,
        reason: &str,
        priority: u16,
        cookie: u64,
        table_id: u8,
        packet_count: u64,
        byte_count: u64,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<FlowRemoved> {
        let known = FlowRemovedReason::ALL.iter().find(|known| known.text() == reason);
        let reason = *known.ok_or_else(|| {
            let names: Vec<_> = FlowRemovedReason::ALL.iter().map(|reason| reason.text()).collect();
            word(format!("reason {reason:?}: allowed are {}", names.join(", ")))
        })?;
        let inner = openflow::flow::FlowRemoved {
            cookie: Cookie(cookie),
            priority,
            reason,
            table_id: TableId(table_id),
            duration_s: 0,
            duration_ns: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            packet_count,
            byte_count,
            matching: matching::of(r#match, fields, "")?,
        };
        Ok(FlowRemoved { inner })
    }

    /// The role is another: `"equal"`, `"master"` or `"slave"`.
    #[pyo3(signature = (role, generation_id=None, *, reason="master_request"))]
    fn change_role(&self, role: &str, generation_id: Option<u64>, reason: &str) -> PyResult<()> {
        let roles = [ControllerRole::Equal, ControllerRole::Master, ControllerRole::Slave];
        let known = roles.into_iter().find(|known| role_name(*known) == role);
        let role = known
            .ok_or_else(|| word(format!("role {role:?}: allowed are equal, master, slave")))?;
        let reasons = [
            RoleReason::Requested,
            RoleReason::MasterRequest,
            RoleReason::Config,
            RoleReason::Experimenter,
        ];
        let known = reasons.into_iter().find(|known| known.text() == reason);
        let reason = known.ok_or_else(|| {
            let allowed = reasons.map(RoleReason::text).join(", ");
            word(format!("reason {reason:?}: allowed are {allowed}"))
        })?;
        self.kept.change_role(controller::RoleChange { role, generation_id, reason });
        Ok(())
    }

    /// The changes of the role since the last call.
    fn take_role_changes(&self) -> Vec<RoleChange> {
        let changes = std::mem::take(&mut *lock(&self.kept.role_changes));
        changes.into_iter().map(|inner| RoleChange { inner }).collect()
    }

    /// A message as it is on the wire, as the number of its event and the event's value; not one
    /// that a method above makes.
    fn message<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<(u8, Bound<'py, PyAny>)> {
        let (version, xid, inner) = wire::decode(data)
            .map_err(|error| word(format!("these bytes are no message: {error:?}")))?;
        let expected = self.connection.version;
        if version != expected {
            let what = format!("the message is of {version}, and the switch speaks {expected}");
            return Err(word(what));
        }
        let name = inner.kind().row().name;
        let event = ControllerEvent::of_message(self.connection.dpid, xid, inner);
        let has_method = matches!(
            event,
            ControllerEvent::PacketIn { .. }
                | ControllerEvent::PortStatus { .. }
                | ControllerEvent::FlowRemoved { .. }
                | ControllerEvent::Error { .. }
        );
        if has_method {
            let what = format!(
                "{name} has an event of its own: packet_in, port_status, flow_removed or error"
            );
            return Err(word(what));
        }
        Ok((Handler::of(&event) as u8, event::of_switch(py, &self.connection, event)?))
    }

    /// An error about a message for which nobody waits.
    fn error(&self, name: &str) -> PyResult<SwitchError> {
        let error = openflow::Error::from_name(name)
            .ok_or_else(|| word(format!("no error {name:?}; see weir.errors")))?;
        let version = self.connection.version;
        let inner = ErrorMessage::new(version, error, Vec::new());
        Ok(SwitchError { version, xid: Xid(1), inner })
    }
}
