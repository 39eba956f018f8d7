//! A switch, as an app sees it: its facts, and the verbs that send.
//!
//! Verbs queue messages and give nothing back, but those that ask, which give a future of asyncio.
//! Those of `sw.checked` are the same verbs, whose future ends when the switch has done it, or with
//! the exception of its error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use controller::role_name;
use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::GroupModCommand;
use openflow::message::{
    ControllerRole, MultipartReply, MultipartReplyBody, MultipartRequestBody, PacketOut, Role,
    SwitchConfig,
};
use openflow::meter::MeterModCommand;
use openflow::port::{PortConfig, PortMod};
use openflow::text::{self, PortNames};
use openflow::translate;
use openflow::{Action, GroupId, Instruction, Message, MessageKind, MeterId, PortNo, QueueId, Xid};
use pyo3::prelude::{
    Bound, Py, PyAny, PyAnyMethods, PyDictMethods, PyErr, PyResult, PyStringMethods, Python,
    pyclass, pymethods,
};
use pyo3::types::{PyBytes, PyDict, PyString};
use wire::EncodeError;

use crate::errors::{Class, exception, word};
use crate::flow_words::{self, FlowWords, of_text, port_of};
use crate::packet_in::PacketIn;
use crate::switch_message::{FlowRemoved, Port, PortStatus, SwitchError};
use crate::transport::{Connection, Question};
use crate::words;

/// Ports in one part of an answer, which has at most 64 KiB.
const PORTS_A_PART: usize = 512;

/// Nothing; of a verb of `sw.checked` its future.
type Sent<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// The future of an answer.
type Asked<'py> = PyResult<Bound<'py, PyAny>>;

/// A switch by one of its connections.
#[pyclass(frozen, module = "weir")]
pub(crate) struct Switch {
    pub(crate) connection: Arc<Connection>,
    is_checked: bool,
    is_stopped: AtomicBool,
}

impl Switch {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, is_checked: false, is_stopped: AtomicBool::new(false) }
    }

    fn names(&self) -> PortNames {
        let ports = self.connection.ports();
        PortNames::new(ports.values().map(|port| (&*port.name, port.port_no)))
    }

    /// A future of the loop that runs the apps.
    fn ask<'py>(&self, py: Python<'py>, question: Question) -> Asked<'py> {
        let asyncio = py.import("asyncio")?;
        let running = asyncio.call_method0("get_running_loop");
        let event_loop = running.or_else(|_| asyncio.call_method0("get_event_loop"))?;
        let future = event_loop.call_method0("create_future")?;
        self.connection.transport.ask(&self.connection, question, future.clone().unbind());
        Ok(future)
    }

    fn ask_one<'py>(&self, py: Python<'py>, message: Message) -> Asked<'py> {
        self.check(&message)?;
        self.ask(py, Question::One(message))
    }

    fn ask_for<'py>(&self, py: Python<'py>, body: MultipartRequestBody) -> Asked<'py> {
        self.ask(py, Question::Multipart(body))
    }

    /// Whether the version can encode it.
    fn check(&self, message: &Message) -> PyResult<()> {
        let encoded = wire::encode(self.connection.version, Xid(0), message);
        encoded.map(drop).map_err(|error| self.not_encodable(message.kind(), &error))
    }

    fn not_encodable(&self, kind: MessageKind, error: &EncodeError) -> PyErr {
        let (name, version) = (kind.row().name, self.connection.version);
        word(format!("{name}: {version} cannot say it: {error}"))
    }

    /// Queues messages, all or none; for `sw.checked` asks whether the switch takes them.
    fn send<'py>(&self, py: Python<'py>, messages: Vec<Message>) -> Sent<'py> {
        for message in &messages {
            self.check(message)?;
        }
        if self.is_checked {
            return self.ask(py, Question::Checked(messages)).map(Some);
        }
        messages.into_iter().try_for_each(|message| self.queue(message))?;
        Ok(None)
    }

    /// Queues one message, which is encoded once; for `sw.checked` asks whether the switch takes
    /// it.
    fn send_one<'py>(&self, py: Python<'py>, message: Message) -> Sent<'py> {
        if self.is_checked {
            return self.send(py, vec![message]);
        }
        self.queue(message)?;
        Ok(None)
    }

    fn queue(&self, message: Message) -> PyResult<()> {
        let to = &self.connection;
        if message.is_for_each_table(to.version) {
            let each = message.in_each_table(to.version, to.features.n_tables);
            return each.into_iter().try_for_each(|message| self.queue(message));
        }
        let kind = message.kind();
        let sent = to.transport.send(to, message);
        sent.map_err(|error| self.not_encodable(kind, &error))
    }

    /// A packet-out of a packet-in's packet: the one that the switch keeps, if it keeps it, else
    /// the bytes that it sent.
    fn out_of(
        &self,
        py: Python<'_>,
        packet: &PacketIn,
        actions: Vec<Action>,
    ) -> PyResult<PacketOut> {
        let packet_in = &packet.inner;
        let is_whole = packet_in.data.len() >= usize::from(packet_in.total_len);
        let Some(in_port) = packet_in.in_port() else {
            return Err(exception(py, Class::Weir, "the switch did not say where it came in"));
        };
        if packet_in.buffer_id.is_none() && !is_whole {
            let what = "the switch neither keeps the packet nor sent all of it";
            return Err(exception(py, Class::Weir, what));
        }
        let buffer_id = packet_in.buffer_id;
        let data = if buffer_id.is_some() { Vec::new() } else { packet_in.data.clone() };
        Ok(PacketOut { buffer_id, in_port, actions, data })
    }

    /// Actions for a packet, as the connection's version has them.
    fn translated(&self, actions: Vec<Action>) -> PyResult<Vec<Action>> {
        if actions.iter().all(|action| matches!(action, Action::Output { .. })) {
            return Ok(actions);
        }
        let any = openflow::Match::any();
        let translated = translate::actions_in(self.connection.version, &any, &actions);
        translated.map_err(|why| word(why.to_string()))
    }

    fn translate_instructions(&self, flow: &mut FlowMod) -> PyResult<()> {
        let is_plain = match &flow.instructions[..] {
            [Instruction::ApplyActions(list)] => {
                list.iter().all(|action| matches!(action, Action::Output { .. }))
            }
            other => other.is_empty(),
        };
        if !is_plain {
            let version = self.connection.version;
            let translated =
                translate::instructions_in(version, &flow.matching, &flow.instructions);
            flow.instructions = translated.map_err(|why| word(why.to_string()))?;
        }
        Ok(())
    }
}

#[pymethods]
impl Switch {
    /// Its datapath id.
    #[getter]
    fn dpid(&self) -> u64 {
        self.connection.dpid.0
    }

    /// The version spoken with it, such as `"OpenFlow13"`.
    #[getter]
    fn version(&self) -> &'static str {
        self.connection.version.name()
    }

    /// Whether the connection is still there.
    #[getter]
    fn is_connected(&self) -> bool {
        !self.connection.is_over()
    }

    /// Its ports by number, as they are now.
    #[getter]
    fn ports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for port in self.connection.ports().values() {
            dict.set_item(port.port_no.0, Py::new(py, Port { inner: port.clone() })?)?;
        }
        Ok(dict)
    }

    /// Its flow tables.
    #[getter]
    fn n_tables(&self) -> u8 {
        self.connection.features.n_tables
    }

    /// Packets that it can keep.
    #[getter]
    fn n_buffers(&self) -> u32 {
        self.connection.features.n_buffers
    }

    /// The bits of `OFPC_*`.
    #[getter]
    fn capabilities(&self) -> u32 {
        self.connection.features.capabilities.bits()
    }

    /// The same verbs, but each gives a future that ends when the switch has done it, or with the
    /// exception of its error.
    #[getter]
    fn checked(&self) -> Self {
        let connection = Arc::clone(&self.connection);
        Self { connection, is_checked: true, is_stopped: AtomicBool::new(false) }
    }

    /// Keeps the event that is being handled from the apps behind this one.
    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn _take_stop(&self) -> bool {
        self.is_stopped.swap(false, Ordering::Relaxed)
    }

    /// Sends the packet of a packet-in to all ports but the one it came in by.
    fn flood<'py>(&self, py: Python<'py>, packet: &Bound<'py, PacketIn>) -> Sent<'py> {
        let actions = vec![Action::output(PortNo::FLOOD)];
        self.send_one(py, Message::PacketOut(self.out_of(py, packet.get(), actions)?))
    }

    /// Sends the packet of a packet-in to a port.
    fn forward<'py>(
        &self,
        py: Python<'py>,
        packet: &Bound<'py, PacketIn>,
        port: &Bound<'py, PyAny>,
    ) -> Sent<'py> {
        let actions = vec![Action::output(port_of(port)?)];
        self.send_one(py, Message::PacketOut(self.out_of(py, packet.get(), actions)?))
    }

    /// Sends a packet: that of a packet-in, or any bytes.
    #[pyo3(signature = (packet, *, actions, in_port=None))]
    fn packet_out<'py>(
        &self,
        py: Python<'py>,
        packet: &Bound<'py, PyAny>,
        actions: &Bound<'py, PyAny>,
        in_port: Option<&Bound<'py, PyAny>>,
    ) -> Sent<'py> {
        let actions = self.translated(words::actions(actions)?)?;
        let mut packet_out = match packet.cast::<PacketIn>() {
            Ok(packet) => self.out_of(py, packet.get(), actions)?,
            Err(_) => PacketOut {
                buffer_id: None,
                in_port: PortNo::CONTROLLER,
                actions,
                data: packet.extract()?,
            },
        };
        if let Some(port) = in_port {
            packet_out.in_port = port_of(port)?;
        }
        self.send_one(py, Message::PacketOut(packet_out))
    }

    /// Adds a flow entry, replacing one of equal match and priority.
    #[pyo3(signature = (flow=None, /, *, r#match=None, actions=None, priority=None, table_id=None,
        cookie=None, idle_timeout=None, hard_timeout=None, flags=None, buffer_id=None, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the words of a flow entry")]
    fn add_flow<'py>(
        &self,
        py: Python<'py>,
        flow: Option<&Bound<'py, PyAny>>,
        r#match: Option<&Bound<'py, PyAny>>,
        actions: Option<&Bound<'py, PyAny>>,
        priority: Option<u16>,
        table_id: Option<u8>,
        cookie: Option<u64>,
        idle_timeout: Option<u16>,
        hard_timeout: Option<u16>,
        flags: Option<&Bound<'py, PyAny>>,
        buffer_id: Option<&Bound<'py, PyAny>>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> Sent<'py> {
        let words = FlowWords {
            text: flow,
            matching: r#match,
            actions,
            priority,
            table_id,
            cookie,
            idle_timeout,
            hard_timeout,
            flags,
            buffer: buffer_id,
            fields,
            allowed: flow_words::ADD,
            ..FlowWords::default()
        };
        let mut flow = words.flow_mod(FlowModCommand::Add, || self.names())?;
        self.translate_instructions(&mut flow)?;
        self.send_one(py, Message::FlowMod(flow))
    }

    /// Adds flow entries, each a text.
    fn add_flows<'py>(&self, py: Python<'py>, flows: &Bound<'py, PyAny>) -> Sent<'py> {
        let names = self.names();
        let mut messages = Vec::new();
        for flow in flows.try_iter()? {
            let flow = flow?;
            let text = flow.cast::<PyString>()?.to_str()?;
            let mut flow = of_text(text, FlowModCommand::Add, false, &names)?;
            self.translate_instructions(&mut flow)?;
            messages.push(Message::FlowMod(flow));
        }
        self.send(py, messages)
    }

    /// Changes the instructions of the entries that the match covers; `strict`: of the one entry
    /// of equal match and priority.
    #[pyo3(signature = (flow=None, /, *, r#match=None, actions=None, priority=None, table_id=None,
        cookie=None, cookie_mask=None, strict=false, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the words of a flow entry")]
    fn modify_flows<'py>(
        &self,
        py: Python<'py>,
        flow: Option<&Bound<'py, PyAny>>,
        r#match: Option<&Bound<'py, PyAny>>,
        actions: Option<&Bound<'py, PyAny>>,
        priority: Option<u16>,
        table_id: Option<u8>,
        cookie: Option<u64>,
        cookie_mask: Option<u64>,
        strict: bool,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> Sent<'py> {
        let words = FlowWords {
            text: flow,
            matching: r#match,
            actions,
            priority,
            table_id,
            cookie,
            cookie_mask,
            fields,
            allowed: flow_words::MODIFY,
            ..FlowWords::default()
        };
        let command = if strict { FlowModCommand::ModifyStrict } else { FlowModCommand::Modify };
        let mut flow = words.flow_mod(command, || self.names())?;
        self.translate_instructions(&mut flow)?;
        self.send_one(py, Message::FlowMod(flow))
    }

    /// Deletes the entries that the match covers, in all tables if none is given; `strict`: the
    /// one entry of equal match and priority.
    #[pyo3(signature = (flow=None, /, *, r#match=None, priority=None, table_id=None, cookie=None,
        cookie_mask=None, out_port=None, out_group=None, strict=false, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the words of a flow entry")]
    fn delete_flows<'py>(
        &self,
        py: Python<'py>,
        flow: Option<&Bound<'py, PyAny>>,
        r#match: Option<&Bound<'py, PyAny>>,
        priority: Option<u16>,
        table_id: Option<u8>,
        cookie: Option<u64>,
        cookie_mask: Option<u64>,
        out_port: Option<&Bound<'py, PyAny>>,
        out_group: Option<u32>,
        strict: bool,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> Sent<'py> {
        if priority.is_some() && !strict {
            return Err(word("a delete looks at the priority with strict=True only"));
        }
        let words = FlowWords {
            text: flow,
            matching: r#match,
            priority,
            table_id,
            cookie,
            cookie_mask,
            out_port,
            out_group,
            fields,
            allowed: flow_words::DELETE,
            ..FlowWords::default()
        };
        let command = if strict { FlowModCommand::DeleteStrict } else { FlowModCommand::Delete };
        let flow = words.flow_mod(command, || self.names())?;
        self.send_one(py, Message::FlowMod(flow))
    }

    /// Deletes every flow entry, of any controller.
    fn clear_flows<'py>(&self, py: Python<'py>) -> Sent<'py> {
        self.send_one(py, Message::FlowMod(controller::delete_all()))
    }

    /// Makes packets that no flow entry matches come to the controller whole: by the table-miss
    /// entry of table 0 where the version has one.
    fn miss_to_controller<'py>(&self, py: Python<'py>) -> Sent<'py> {
        let mut messages = Vec::new();
        if self.connection.version.has_table_miss_entry() {
            let output = Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN_NO_BUFFER };
            let mut table_miss = FlowMod::new(FlowModCommand::Add);
            table_miss.priority = 0;
            table_miss.instructions = vec![Instruction::ApplyActions(vec![output])];
            messages.push(Message::FlowMod(table_miss));
        }
        self.send(py, messages)
    }

    /// Adds a group: `"group_id=1,type=select,bucket=output:1,bucket=output:2"`.
    fn add_group<'py>(&self, py: Python<'py>, group: &str) -> Sent<'py> {
        self.group(py, group, GroupModCommand::Add)
    }

    /// Changes a group.
    fn modify_group<'py>(&self, py: Python<'py>, group: &str) -> Sent<'py> {
        self.group(py, group, GroupModCommand::Modify)
    }

    /// Deletes a group, and the flow entries that use it; without a number all groups.
    #[pyo3(signature = (group_id=None))]
    fn delete_group<'py>(&self, py: Python<'py>, group_id: Option<u32>) -> Sent<'py> {
        let number = group_id.map_or("all".to_owned(), |id| id.to_string());
        self.group(py, &format!("group_id={number}"), GroupModCommand::Delete)
    }

    /// Adds a meter: `"meter=1,kbps,band=type=drop,rate=1000"`.
    fn add_meter<'py>(&self, py: Python<'py>, meter: &str) -> Sent<'py> {
        self.meter(py, meter, MeterModCommand::Add)
    }

    /// Changes a meter.
    fn modify_meter<'py>(&self, py: Python<'py>, meter: &str) -> Sent<'py> {
        self.meter(py, meter, MeterModCommand::Modify)
    }

    /// Deletes a meter, and the flow entries that use it; without a number all meters.
    #[pyo3(signature = (meter_id=None))]
    fn delete_meter<'py>(&self, py: Python<'py>, meter_id: Option<u32>) -> Sent<'py> {
        let number = meter_id.map_or("all".to_owned(), |id| id.to_string());
        self.meter(py, &format!("meter={number}"), MeterModCommand::Delete)
    }

    /// Takes a port up or down, or lets it flood or not.
    #[pyo3(signature = (port, *, up=None, flood=None, receive=None, forward=None, packet_in=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the settings of a port")]
    fn set_port<'py>(
        &self,
        py: Python<'py>,
        port: &Bound<'py, PyAny>,
        up: Option<bool>,
        flood: Option<bool>,
        receive: Option<bool>,
        forward: Option<bool>,
        packet_in: Option<bool>,
    ) -> Sent<'py> {
        let port_no = port_of(port)?;
        let ports = self.connection.ports();
        let Some(desc) = ports.get(&port_no) else {
            return Err(word(format!("switch {} has no port {port_no}", self.connection.dpid)));
        };
        let (mut config, mut mask) = (PortConfig::empty(), PortConfig::empty());
        for (wanted, bit) in [
            (up, PortConfig::PORT_DOWN),
            (flood, PortConfig::NO_FLOOD),
            (receive, PortConfig::NO_RECV),
            (forward, PortConfig::NO_FWD),
            (packet_in, PortConfig::NO_PACKET_IN),
        ] {
            if let Some(wanted) = wanted {
                mask |= bit;
                config.set(bit, !wanted);
            }
        }
        let (hw_addr, advertise) = (desc.hw_addr, openflow::port::PortFeatures::empty());
        let port_mod = PortMod { port_no, hw_addr, config, mask, advertise };
        self.send_one(py, Message::PortMod(port_mod))
    }

    /// Sets how fragments are treated (`"normal"`, `"drop"` or `"reassemble"`) and how many bytes
    /// of a packet come in a packet-in that no action asked for.
    #[pyo3(signature = (*, fragments="normal", miss_send_len=0xffff))]
    fn set_config<'py>(&self, py: Python<'py>, fragments: &str, miss_send_len: u16) -> Sent<'py> {
        let flags = match fragments {
            "normal" => 0,
            "drop" => 1,
            "reassemble" => 2,
            other => {
                let what = format!("fragments={other:?}: allowed are normal, drop, reassemble");
                return Err(word(what));
            }
        };
        self.send_one(py, Message::SetConfig(SwitchConfig { flags, miss_send_len }))
    }

    /// Waits until the switch has done what was sent to it before.
    fn barrier<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_one(py, Message::BarrierRequest)
    }

    /// Asks whether the switch is there; the bytes come back.
    #[pyo3(signature = (data=Vec::new()))]
    fn echo<'py>(&self, py: Python<'py>, data: Vec<u8>) -> Asked<'py> {
        self.ask_one(py, Message::EchoRequest(data))
    }

    /// The flow entries that the match covers, of all tables if none is given.
    #[pyo3(signature = (flow=None, /, *, r#match=None, table_id=None, cookie=None,
        cookie_mask=None, out_port=None, out_group=None, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the words of a filter")]
    fn flow_stats<'py>(
        &self,
        py: Python<'py>,
        flow: Option<&Bound<'py, PyAny>>,
        r#match: Option<&Bound<'py, PyAny>>,
        table_id: Option<u8>,
        cookie: Option<u64>,
        cookie_mask: Option<u64>,
        out_port: Option<&Bound<'py, PyAny>>,
        out_group: Option<u32>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> Asked<'py> {
        let words = FlowWords {
            text: flow,
            matching: r#match,
            table_id,
            cookie,
            cookie_mask,
            out_port,
            out_group,
            fields,
            allowed: flow_words::FILTER,
            ..FlowWords::default()
        };
        let filter = words.filter(|| self.names())?;
        self.ask_for(py, MultipartRequestBody::Flow(filter))
    }

    /// The sums over the flow entries that the match covers.
    #[pyo3(signature = (flow=None, /, *, r#match=None, table_id=None, cookie=None,
        cookie_mask=None, out_port=None, out_group=None, **fields))]
    #[expect(clippy::too_many_arguments, reason = "they are the words of a filter")]
    fn aggregate_stats<'py>(
        &self,
        py: Python<'py>,
        flow: Option<&Bound<'py, PyAny>>,
        r#match: Option<&Bound<'py, PyAny>>,
        table_id: Option<u8>,
        cookie: Option<u64>,
        cookie_mask: Option<u64>,
        out_port: Option<&Bound<'py, PyAny>>,
        out_group: Option<u32>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> Asked<'py> {
        let words = FlowWords {
            text: flow,
            matching: r#match,
            table_id,
            cookie,
            cookie_mask,
            out_port,
            out_group,
            fields,
            allowed: flow_words::FILTER,
            ..FlowWords::default()
        };
        let filter = words.filter(|| self.names())?;
        self.ask_for(py, MultipartRequestBody::Aggregate(filter))
    }

    /// Counters of all tables.
    fn table_stats<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::Table)
    }

    /// The features of the tables, as a message.
    fn table_features<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::TableFeatures(Vec::new()))
    }

    /// Counters of a port, or of all.
    #[pyo3(signature = (port=None))]
    fn port_stats<'py>(&self, py: Python<'py>, port: Option<&Bound<'py, PyAny>>) -> Asked<'py> {
        let port = port.map_or(Ok(PortNo::ANY), port_of)?;
        self.ask_for(py, MultipartRequestBody::PortStats(port))
    }

    /// The ports as the switch describes them.
    fn port_desc<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::PortDesc)
    }

    /// Counters of queues.
    #[pyo3(signature = (port=None, queue_id=None))]
    fn queue_stats<'py>(
        &self,
        py: Python<'py>,
        port: Option<&Bound<'py, PyAny>>,
        queue_id: Option<u32>,
    ) -> Asked<'py> {
        let port = port.map_or(Ok(PortNo::ANY), port_of)?;
        let queue = queue_id.map_or(QueueId::ALL, QueueId);
        self.ask_for(py, MultipartRequestBody::Queue { port, queue })
    }

    /// Counters of a group, or of all.
    #[pyo3(signature = (group_id=None))]
    fn group_stats<'py>(&self, py: Python<'py>, group_id: Option<u32>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::Group(group_id.map_or(GroupId::ALL, GroupId)))
    }

    /// All groups.
    fn group_desc<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::GroupDesc)
    }

    /// Capabilities of groups.
    fn group_features<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::GroupFeatures)
    }

    /// Counters of a meter, or of all.
    #[pyo3(signature = (meter_id=None))]
    fn meter_stats<'py>(&self, py: Python<'py>, meter_id: Option<u32>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::Meter(meter_id.map_or(MeterId::ALL, MeterId)))
    }

    /// A meter, or all.
    #[pyo3(signature = (meter_id=None))]
    fn meter_config<'py>(&self, py: Python<'py>, meter_id: Option<u32>) -> Asked<'py> {
        let meter = meter_id.map_or(MeterId::ALL, MeterId);
        self.ask_for(py, MultipartRequestBody::MeterConfig(meter))
    }

    /// Capabilities of meters.
    fn meter_features<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::MeterFeatures)
    }

    /// The switch's description.
    fn desc<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_for(py, MultipartRequestBody::Desc)
    }

    /// Settings of the switch.
    fn get_config<'py>(&self, py: Python<'py>) -> Asked<'py> {
        self.ask_one(py, Message::GetConfigRequest)
    }

    /// Asks for a role: `"nochange"`, `"equal"`, `"master"` or `"slave"`; gives the role that the
    /// controller has then.
    #[pyo3(signature = (role="nochange", generation_id=0))]
    fn role<'py>(&self, py: Python<'py>, role: &str, generation_id: u64) -> Asked<'py> {
        let known = ControllerRole::ALL.iter().find(|known| role_name(**known) == role);
        let Some(&role) = known else {
            let what = format!("role {role:?}: allowed are nochange, equal, master, slave");
            return Err(word(what));
        };
        self.ask_one(py, Message::RoleRequest(Role { role, generation_id }))
    }

    /// Sends a message as it is on the wire.
    fn _send(&self, bytes: &[u8]) -> PyResult<()> {
        let version = self.connection.version;
        let header = wire::MessageHeader::parse(bytes);
        let is_whole = header.is_some_and(|header| {
            header.known_version() == Some(version) && usize::from(header.length) == bytes.len()
        });
        if !is_whole {
            return Err(word(format!("these bytes are no whole message of {version}")));
        }
        self.connection.transport.send_encoded(&self.connection, bytes);
        Ok(())
    }

    /// An event's message as it is on the wire.
    fn _encode<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (xid, message) = if let Ok(event) = event.cast::<PacketIn>() {
            (Xid(0), Message::PacketIn(event.get().inner.clone()))
        } else if let Ok(event) = event.cast::<PortStatus>() {
            (Xid(0), Message::PortStatus(event.get().inner.clone()))
        } else if let Ok(event) = event.cast::<FlowRemoved>() {
            (Xid(0), Message::FlowRemoved(event.get().inner.clone()))
        } else if let Ok(event) = event.cast::<SwitchError>() {
            (event.get().xid, Message::Error(event.get().inner.clone()))
        } else {
            let event = event.cast::<crate::switch_message::Message>()?.get();
            (event.xid.unwrap_or(Xid(0)), event.inner.clone())
        };
        self.encoded(py, xid, &message)
    }

    /// The answers by which the switch has become ready, as they are on the wire: its features,
    /// and of OpenFlow 1.3 its ports, in parts.
    fn _greetings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let Connection { version, features, .. } = &*self.connection;
        let ports: Vec<_> = self.connection.ports().values().cloned().collect();
        let mut features = features.clone();
        let mut answers = Vec::new();
        if version.has_table_miss_entry() {
            let parts: Vec<_> = ports.chunks(PORTS_A_PART).collect();
            for (index, part) in parts.iter().enumerate() {
                let body = MultipartReplyBody::PortDesc(part.to_vec());
                let reply = MultipartReply { more: index + 1 < parts.len(), body };
                answers.push(self.encoded(py, Xid(0), &Message::MultipartReply(reply))?);
            }
        } else {
            features.ports = ports;
        }
        answers.insert(0, self.encoded(py, Xid(0), &Message::FeaturesReply(features))?);
        Ok(answers)
    }

    fn __repr__(&self) -> String {
        let Connection { dpid, version, .. } = &*self.connection;
        format!("Switch(dpid={dpid}, version={version})")
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| Arc::ptr_eq(&self.connection, &other.get().connection))
    }

    fn __hash__(&self) -> u64 {
        Arc::as_ptr(&self.connection) as u64
    }
}

impl Switch {
    fn encoded<'py>(
        &self,
        py: Python<'py>,
        xid: Xid,
        message: &Message,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = wire::encode(self.connection.version, xid, message);
        let bytes = bytes.map_err(|error| self.not_encodable(message.kind(), &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn group<'py>(&self, py: Python<'py>, group: &str, command: GroupModCommand) -> Sent<'py> {
        let parsed = self.names().parse_group_mod(group, command);
        let mut parsed = parsed.map_err(|error| word(words::bad("group", group, &error)))?;
        for bucket in &mut parsed.buckets {
            let translated = translate::bucket_in(self.connection.version, &bucket.actions);
            bucket.actions = translated.map_err(|why| word(why.to_string()))?;
        }
        self.send_one(py, Message::GroupMod(parsed))
    }

    fn meter<'py>(&self, py: Python<'py>, meter: &str, command: MeterModCommand) -> Sent<'py> {
        let parsed = text::parse_meter_mod(meter, command);
        let parsed = parsed.map_err(|error| word(words::bad("meter", meter, &error)))?;
        self.send_one(py, Message::MeterMod(parsed))
    }
}
