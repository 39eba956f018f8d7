//! Handles, timers, several apps and their bounds, in virtual time and without a network.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it asks for, whatever else there is"
)]

use controller::testing::{TestNetwork, TestSwitch};
use controller::{
    App, AppList, ControllerEvent, Handle, HandleError, HostEvent, LinkEvent, MessageBatch,
    Options, PacketIn, RoleChange, RoleReason, Switch, SwitchPort, TimerId, TopologyHost,
    TopologyLink,
};
use openflow::flow::{FlowMod, FlowModCommand, FlowRemoved, FlowRemovedReason};
use openflow::message::{
    ControllerRole, ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, PacketInReason, Role, RoleStatus, SwitchDesc,
};
use openflow::port::{PortDesc, PortReason, PortState, PortStatus};
use openflow::{
    Cookie, DatapathId, Error, Field, MacAddr, Match, Message, PortNo, TableId, Version, Xid,
};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Log = Arc<Mutex<Vec<String>>>;

/// Notes what happens to it; stops packet-ins when told to.
struct Noting {
    name: &'static str,
    log: Log,
    stops: bool,
    timer: Option<TimerId>,
}

impl Noting {
    fn new(name: &'static str, log: &Log) -> Self {
        Self { name, log: log.clone(), stops: false, timer: None }
    }

    fn note(&self, what: impl std::fmt::Display) {
        self.log.lock().unwrap().push(format!("{} {what}", self.name));
    }
}

impl App for Noting {
    fn started(&mut self, handle: &Handle) {
        self.note(format!("started with {}", handle.switches().len()));
    }

    fn switch_ready(&mut self, sw: &mut Switch) {
        self.note("ready");
        self.timer = Some(sw.set_timer(Duration::from_millis(250)));
        let cancelled = sw.set_timer(Duration::from_millis(100));
        sw.cancel_timer(cancelled);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        self.note(format!("packet {}", packet_in.data.len()));
        if self.stops {
            sw.stop();
        }
        sw.barrier();
    }

    fn message(&mut self, _: &mut Switch, _: Xid, message: &Message) {
        self.note(message.kind().row().name);
    }

    fn error(&mut self, _: &mut Switch, xid: Xid, _: &ErrorMessage) {
        self.note(format!("error {}", xid.0));
    }

    fn timer(&mut self, sw: &mut Switch, timer: TimerId) {
        assert_eq!(Some(timer), self.timer, "its own timer, and none that was cancelled");
        self.note(format!("timer at {}", sw.now().as_millis()));
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        let port = status.desc.port_no;
        let is_up = !sw.ports()[&port].state.contains(PortState::LINK_DOWN);
        self.note(format!("port {port} up {is_up}"));
    }

    fn flow_removed(&mut self, _: &mut Switch, removed: &FlowRemoved) {
        self.note(format!("removed {}", removed.cookie.0));
    }

    fn role_changed(&mut self, _: &mut Switch, change: &RoleChange) {
        let (role, reason) = (change.role_name(), change.reason.text());
        self.note(format!("role {role} {:?} {reason}", change.generation_id));
    }

    fn link(&mut self, event: &LinkEvent) {
        self.note(format!("{event:?}"));
    }

    fn host(&mut self, event: &HostEvent) {
        self.note(format!("host {event:?}"));
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.note(format!("down {}", dpid.0));
    }
}

fn two_apps(first_stops: bool) -> (AppList, Log) {
    let log = Log::default();
    let (one, two) = (log.clone(), log.clone());
    let first = move || Noting { stops: first_stops, ..Noting::new("one", &one) };
    (AppList::one(first).then(AppList::one(move || Noting::new("two", &two))), log)
}

fn take(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn add(priority: u16) -> Message {
    Message::FlowMod(FlowMod { priority, ..FlowMod::new(FlowModCommand::Add) })
}

fn empty() -> AppList {
    AppList::new(Vec::new)
}

#[test]
fn events_go_down_the_list_and_answers_to_who_asked() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    assert_eq!(take(&log), ["one started with 0", "two started with 0"]);
    let sw = network.add_switch(TestSwitch::new(1, 2));
    assert_eq!(take(&log), ["one ready", "two ready"]);
    network.packet_in(sw, 1, &[0; 60]);
    let barrier = "OFPT_BARRIER_REPLY";
    let expected =
        ["one packet 60", "two packet 60", &format!("one {barrier}"), &format!("two {barrier}")];
    assert_eq!(take(&log), expected, "each its own answer");
    assert_eq!(network.take_messages(sw), [Message::BarrierRequest, Message::BarrierRequest]);
    network.disconnect(sw);
    assert_eq!(take(&log), ["one down 1", "two down 1"]);
}

#[test]
fn an_app_may_keep_an_event_from_those_after_it() {
    let (apps, log) = two_apps(true);
    let mut network = TestNetwork::new(apps);
    let sw = network.add_switch(TestSwitch::new(1, 2));
    take(&log);
    network.packet_in(sw, 1, &[0; 60]);
    assert_eq!(take(&log), ["one packet 60", "one OFPT_BARRIER_REPLY"]);
}

#[test]
fn timers_come_once_to_the_app_that_set_them_unless_cancelled() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    network.add_switch(TestSwitch::new(1, 2));
    take(&log);
    network.advance(Duration::from_millis(249));
    assert!(take(&log).is_empty());
    network.advance(Duration::from_secs(5));
    assert_eq!(take(&log), ["one timer at 250", "two timer at 250"]);
}

#[test]
fn an_error_goes_to_the_app_that_sent_the_message() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let sw = network.add_switch(TestSwitch::new(1, 2));
    take(&log);
    let error = ErrorMessage::new(Version::V1_3, Error::FlowModTableFull, vec![]);
    network.send(sw, Xid(1 << 25 | 5), &Message::Error(error.clone()));
    assert_eq!(take(&log), [format!("two error {}", 1 << 25 | 5)]);
    network.send(sw, Xid(0), &Message::Error(error));
    assert_eq!(take(&log), ["one error 0", "two error 0"], "nobody knows whose it is");
}

#[test]
fn messages_sent_together_keep_order_and_apps_get_their_errors() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let handle = network.handle();
    let sw = network.add_switch(TestSwitch::new(1, 2));
    take(&log);
    let all: Vec<Message> = (0..5_000).map(add).collect();
    assert_eq!(handle.send_batch(sw, batch(Version::V1_3, &all)), Ok(()));
    network.advance(Duration::from_millis(10));
    assert!(network.take_messages(sw) == all, "all of them, in order");
    network.answer(sw, |message| match message {
        Message::FlowMod(entry) if entry.priority == 9 => Some(refusal(Error::FlowModTableFull)),
        _ => None,
    });
    assert_eq!(handle.send_batch(sw, batch(Version::V1_3, &all[..20])), Ok(()));
    network.advance(Duration::from_millis(10));
    let noted = take(&log);
    assert_eq!(noted.len(), 2, "each app hears of what nobody waits for: {noted:?}");
    assert!(noted[0].starts_with("one error ") && noted[1].starts_with("two error "), "{noted:?}");
    let gone = HandleError::NoSwitch(DatapathId(7));
    assert_eq!(handle.send_batch(DatapathId(7), batch(Version::V1_3, &all)), Err(gone));
    let other = handle.send_batch(sw, batch(Version::V1_0, &[Message::BarrierRequest]));
    assert!(matches!(other, Err(HandleError::NoSwitch(_))), "it speaks 1.3 now: {other:?}");
}

/// The messages as one batch.
fn batch(version: Version, messages: &[Message]) -> MessageBatch {
    let mut batch = MessageBatch::new(version);
    messages.iter().for_each(|message| batch.push(message).unwrap());
    batch
}

#[test]
fn a_batch_never_has_what_its_version_cannot_say() {
    let mut batch = batch(Version::V1_0, &[add(1)]);
    let before = (batch.len(), batch.bytes());
    assert!(batch.push(&Message::PacketOut(too_long())).is_err());
    let groups = MultipartRequestBody::GroupDesc;
    let request = Message::MultipartRequest(MultipartRequest { more: false, body: groups });
    assert!(batch.push(&request).is_err(), "1.0 has no groups");
    assert_eq!((batch.len(), batch.bytes()), before);
}

/// A packet-out that no version can say.
fn too_long() -> openflow::message::PacketOut {
    let (in_port, actions, data) = (PortNo::CONTROLLER, vec![], vec![0; 70_000]);
    openflow::message::PacketOut { buffer_id: None, in_port, actions, data }
}

#[test]
fn raised_link_reaches_all_apps_and_watchers() {
    let (apps, log) = two_apps(true);
    let mut network = TestNetwork::new(apps);
    take(&log);
    let (handle, mut events) = (network.handle(), network.handle().events());
    let port = |dpid| SwitchPort { dpid: DatapathId(dpid), port: PortNo(1) };
    let event = LinkEvent::Up(TopologyLink { from: port(1), to: port(2) });
    handle.raise(ControllerEvent::Link(event)).unwrap();
    network.advance(Duration::ZERO);
    assert_eq!(take(&log), [format!("one {event:?}"), format!("two {event:?}")]);
    let seen = events.try_recv().unwrap().unwrap();
    assert!(matches!(&*seen, ControllerEvent::Link(link) if *link == event));
}

#[test]
fn a_handle_sees_switches_and_asks_them() {
    let mut network = TestNetwork::new(empty());
    let (handle, mut events) = (network.handle(), network.handle().events_but_packet_ins());
    let sw = network.add_switch(TestSwitch::new(7, 3));
    let old = network.add_switch(TestSwitch::new(8, 1).with_version(Version::V1_0));
    let dpids: Vec<u64> = handle.switches().iter().map(|switch| switch.dpid.0).collect();
    assert_eq!(dpids, [7, 8]);
    let info = handle.switch(sw).unwrap();
    assert_eq!(
        (info.version, info.ports.len(), &*info.peer),
        (Version::V1_3, 3, "test:0000000000000007")
    );
    network.answer(sw, |message| {
        let Message::MultipartRequest(MultipartRequest { body, .. }) = message else { return None };
        let body = match body {
            MultipartRequestBody::Desc => {
                let sw_desc = "one of many".into();
                MultipartReplyBody::Desc(SwitchDesc { sw_desc, ..SwitchDesc::default() })
            }
            MultipartRequestBody::Table => return Some(refusal(Error::BadRequestBadMultipart)),
            _ => return None,
        };
        Some(Message::MultipartReply(MultipartReply { more: false, body }))
    });
    let desc = network.block_on(handle.multipart(sw, MultipartRequestBody::Desc)).unwrap();
    assert!(matches!(desc, MultipartReplyBody::Desc(desc) if desc.sw_desc == "one of many"));
    let refused = network.block_on(handle.multipart(sw, MultipartRequestBody::Table));
    let Err(HandleError::Refused { index: 0, error, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(error.error(Version::V1_3), Some(Error::BadRequestBadMultipart));
    assert!(refused.unwrap_err().to_string().contains("OFPBRC_BAD_MULTIPART"));
    network.block_on(handle.barrier(old)).unwrap();
    network.set_port_up(sw, 2, false);
    network.disconnect(old);
    assert!(handle.switch(old).is_none());
    assert_eq!(network.block_on(handle.barrier(old)), Err(HandleError::NoSwitch(old)));
    let mut seen = Vec::new();
    while let Some(event) = events.try_recv().unwrap() {
        seen.push(match &*event {
            ControllerEvent::SwitchReady(info) => format!("ready {}", info.dpid.0),
            ControllerEvent::SwitchDown(dpid) => format!("down {}", dpid.0),
            ControllerEvent::PortStatus { status, .. } => format!("port {}", status.desc.port_no),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["ready 7", "ready 8", "port 2", "down 8"]);
}

fn refusal(error: Error) -> Message {
    Message::Error(ErrorMessage::new(Version::V1_3, error, vec![]))
}

#[test]
fn unencodable_or_unanswerable_messages_are_errors_at_once() {
    let mut network = TestNetwork::new(empty());
    let handle = network.handle();
    let old = network.add_switch(TestSwitch::new(8, 1).with_version(Version::V1_0));
    let request = MultipartRequestBody::GroupFeatures;
    let unsaid = network.block_on(handle.multipart(old, request));
    assert!(matches!(unsaid, Err(HandleError::NotEncodable { index: 0, .. })), "{unsaid:?}");
    let group = Message::MultipartRequest(MultipartRequest {
        more: false,
        body: MultipartRequestBody::GroupDesc,
    });
    let unsaid = network.block_on(handle.apply(old, vec![add(1), group]));
    assert!(matches!(unsaid, Err(HandleError::NotEncodable { index: 1, .. })), "{unsaid:?}");
    assert!(network.take_messages(old).is_empty(), "nothing was sent");
    assert_eq!(
        network.block_on(handle.request(old, add(1))),
        Err(HandleError::NoReply("OFPT_FLOW_MOD"))
    );
}

#[test]
fn apply_gives_the_first_refusal_and_its_place_over_batches() {
    let mut network = TestNetwork::new(empty());
    let handle = network.handle();
    let sw = network.add_switch(TestSwitch::new(1, 1));
    let all: Vec<Message> = (0..40_000).map(|number| add(number as u16)).collect();
    network.block_on(handle.apply(sw, all.clone())).unwrap();
    let got = network.take_messages(sw);
    let flow_mods: Vec<Message> =
        got.into_iter().filter(|message| matches!(message, Message::FlowMod(_))).collect();
    assert!(flow_mods == all, "all of them, in order");
    assert_eq!(network.stats().flow_mods, 40_000);
    network.answer(sw, |message| match message {
        Message::FlowMod(entry) if matches!(entry.priority, 30_007 | 30_100 | 39_000) => {
            Some(refusal(Error::FlowModTableFull))
        }
        _ => None,
    });
    let refused = network.block_on(handle.apply(sw, all));
    assert!(matches!(refused, Err(HandleError::Refused { index: 30_007, .. })), "{refused:?}");
    assert_eq!(network.block_on(handle.apply(sw, vec![])), Ok(()), "a barrier alone");
}

/// The tables of the deletes among the messages that the switch has got.
fn deleted_in(messages: &[Message]) -> Vec<u8> {
    let tables = messages.iter().filter_map(|message| match message {
        Message::FlowMod(entry) if entry.command == FlowModCommand::Delete => {
            Some(entry.table_id.0)
        }
        _ => None,
    });
    tables.collect()
}

#[test]
fn a_delete_of_all_tables_over_1_1_is_one_for_each() {
    let mut network = TestNetwork::new(AppList::one(|| controller::apps::Hub));
    let handle = network.handle();
    let delete = || Message::FlowMod(controller::delete_all());
    let each: Vec<u8> = (0..254).collect();
    for (dpid, version, tables) in
        [(1, Version::V1_1, &*each), (2, Version::V1_2, &[255]), (3, Version::V1_3, &[255])]
    {
        let sw = network.add_switch(TestSwitch::new(dpid, 1).with_version(version));
        assert_eq!(deleted_in(&network.take_messages(sw)), tables, "{version}: of an app");
        handle.send(sw, delete()).unwrap();
        network.advance(Duration::ZERO);
        assert_eq!(deleted_in(&network.take_messages(sw)), tables, "{version}: sent");
        network.block_on(handle.apply(sw, vec![add(1), delete(), add(2)])).unwrap();
        let got = network.take_messages(sw);
        assert_eq!(deleted_in(&got), tables, "{version}: applied");
        let added = got.iter().filter(|message| matches!(message, Message::FlowMod(_))).count();
        assert_eq!(added, tables.len() + 2, "{version}");
    }
    // A refusal has the place of the message in the caller's list.
    let sw = DatapathId(1);
    network.answer(sw, |message| match message {
        Message::FlowMod(entry) if entry.priority == 7 => Some(refusal(Error::FlowModTableFull)),
        _ => None,
    });
    let refused = network.block_on(handle.apply(sw, vec![add(1), delete(), add(7), add(2)]));
    assert!(matches!(refused, Err(HandleError::Refused { index: 2, .. })), "{refused:?}");
}

#[test]
fn an_answer_without_a_last_part_is_given_up() {
    let mut network = TestNetwork::new(empty());
    let handle = network.handle();
    let sw = network.add_switch(TestSwitch::new(1, 1));
    network.answer(sw, move |message| {
        let body = MultipartReplyBody::PortDesc(vec![PortDesc::default(); 900]);
        let part = Message::MultipartReply(MultipartReply { more: true, body });
        matches!(message, Message::MultipartRequest(_)).then_some(part)
    });
    let silent = network.block_on(handle.multipart(sw, MultipartRequestBody::PortDesc));
    assert_eq!(silent, Err(HandleError::Silent(Duration::from_secs(10))));
    assert_eq!(network.stats().unanswered, 1);
}

#[test]
fn switch_that_never_answers_costs_its_bound_and_has_its_error() {
    let mut network = TestNetwork::new(empty());
    let handle = network.handle();
    let silent = network.add_switch(TestSwitch::new(1, 1));
    let other = network.add_switch(TestSwitch::new(2, 1));
    // A request that the simulated switch does not answer by itself.
    let ask = || handle.request(silent, Message::GetConfigRequest);
    let late = network.block_on(ask());
    assert_eq!(late, Err(HandleError::Silent(Duration::from_secs(10))));
    let mut full = 0;
    let mut waiting = Vec::new();
    for _ in 0..2_000 {
        let mut request = Box::pin(ask());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(request.as_mut().poll(&mut context).is_pending());
        waiting.push(request);
    }
    network.advance(Duration::ZERO);
    network.block_on(handle.barrier(other)).unwrap();
    network.advance(Duration::from_secs(30));
    for request in waiting {
        match network.block_on(request) {
            Err(HandleError::Full(dpid)) if dpid == silent => full += 1,
            Err(HandleError::Silent(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(full, 2_000 - 1_024);
}

#[test]
fn reconnected_switch_ends_waits_for_the_old_connection() {
    let mut network = TestNetwork::new(empty());
    let handle = network.handle();
    let sw = network.add_switch(TestSwitch::new(1, 1));
    let mut waiting = Box::pin(handle.request(sw, Message::GetConfigRequest));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    network.advance(Duration::ZERO);
    network.add_switch(TestSwitch::new(1, 2));
    assert_eq!(network.block_on(waiting), Err(HandleError::NoSwitch(sw)));
    assert_eq!(handle.switch(sw).unwrap().ports.len(), 2);
    assert_eq!(network.stats().switches, 1);
}

/// The answer to the next request for a role, which also decides whether a flow-mod is refused.
#[derive(Clone, Copy)]
struct RoleOfSwitch {
    role: ControllerRole,
    generation_id: u64,
}

/// A switch as 1.3 has it: it gives its role when it is asked, and refuses slaves.
fn switch_with_roles(network: &mut TestNetwork, dpid: u64) -> Arc<Mutex<RoleOfSwitch>> {
    let sw = network.add_switch(TestSwitch::new(dpid, 2));
    let began = RoleOfSwitch { role: ControllerRole::Equal, generation_id: u64::MAX };
    let ours = Arc::new(Mutex::new(began));
    let switch = Arc::clone(&ours);
    network.answer(sw, move |message| {
        let mut ours = switch.lock().unwrap();
        match message {
            Message::RoleRequest(asked) => {
                let is_stale = ours.generation_id != u64::MAX
                    && asked.generation_id < ours.generation_id
                    && asked.role != ControllerRole::NoChange;
                if is_stale {
                    return Some(refusal(Error::RoleRequestStale));
                }
                if asked.role != ControllerRole::NoChange {
                    *ours = RoleOfSwitch { role: asked.role, generation_id: asked.generation_id };
                }
                let RoleOfSwitch { role, generation_id } = *ours;
                Some(Message::RoleReply(Role { role, generation_id }))
            }
            Message::FlowMod(_) if ours.role == ControllerRole::Slave => {
                Some(refusal(Error::BadRequestIsSlave))
            }
            _ => None,
        }
    });
    ours
}

fn ask_for(role: ControllerRole, generation_id: u64) -> Message {
    Message::RoleRequest(Role { role, generation_id })
}

#[test]
fn role_asked_for_is_reported_once_to_all_apps() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let ours = switch_with_roles(&mut network, 1);
    let (handle, dpid) = (network.handle(), DatapathId(1));
    let mut events = handle.events_but_packet_ins();
    take(&log);
    for _ in 0..2 {
        network.block_on(handle.request(dpid, ask_for(ControllerRole::Master, 5))).unwrap();
    }
    let master = "role master Some(5) requested";
    assert_eq!(take(&log), [format!("one {master}"), format!("two {master}")]);
    let seen = events.try_recv().unwrap().unwrap();
    assert!(matches!(&*seen, ControllerEvent::RoleChanged { dpid: seen, change }
        if (*seen, change.role) == (dpid, ControllerRole::Master)));
    // Only a question, whose answer is no news.
    network.block_on(handle.request(dpid, ask_for(ControllerRole::NoChange, 0))).unwrap();
    assert!(take(&log).is_empty());
    assert_eq!(ours.lock().unwrap().role, ControllerRole::Master);
}

#[test]
fn replaced_master_learns_of_it_when_the_switch_refuses_it() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let ours = switch_with_roles(&mut network, 1);
    let (handle, dpid) = (network.handle(), DatapathId(1));
    network.block_on(handle.request(dpid, ask_for(ControllerRole::Master, 5))).unwrap();
    take(&log);
    *ours.lock().unwrap() = RoleOfSwitch { role: ControllerRole::Slave, generation_id: 9 };
    for _ in 0..2 {
        let refused = network.block_on(handle.apply(dpid, vec![add(1)]));
        assert!(matches!(refused, Err(HandleError::Refused { index: 0, .. })), "{refused:?}");
        network.advance(Duration::ZERO);
    }
    let slave = "role slave Some(9) master_request";
    assert_eq!(take(&log), [format!("one {slave}"), format!("two {slave}")], "once");
    let asked = network.take_messages(dpid);
    let asked = asked.iter().filter(|sent| matches!(sent, Message::RoleRequest(_)));
    assert_eq!(asked.count(), 2, "for the role of master, and once for what it is");
}

#[test]
fn replaced_master_of_1_4_learns_of_it_at_once() {
    use openflow::message::RoleReason as Sent;
    for (reason, text) in [
        (Sent::MasterRequest, "master_request"),
        (Sent::Config, "config"),
        (Sent::Experimenter, "experimenter"),
        (Sent::Unknown(9), "unknown"),
    ] {
        replace_master(reason, text);
    }
}

fn replace_master(reason: openflow::message::RoleReason, text: &str) {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let dpid = network.add_switch(TestSwitch::new(1, 2).with_version(Version::V1_4));
    network.take_messages(dpid);
    take(&log);
    let role = Role { role: ControllerRole::Slave, generation_id: 9 };
    let status = RoleStatus { role, reason };
    network.send(dpid, Xid(0), &Message::RoleStatus(status));
    let (name, slave) = ("OFPT_ROLE_STATUS", format!("role slave Some(9) {text}"));
    let mut noted = take(&log);
    noted.sort_unstable();
    let expected = ["one", "two"].map(|app| [format!("{app} {name}"), format!("{app} {slave}")]);
    assert_eq!(noted, expected.concat());
    assert!(network.take_messages(dpid).is_empty(), "nothing is asked");
}

#[test]
fn a_stale_generation_is_a_question_and_no_answer() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let ours = switch_with_roles(&mut network, 1);
    let (handle, dpid) = (network.handle(), DatapathId(1));
    network.block_on(handle.request(dpid, ask_for(ControllerRole::Master, 5))).unwrap();
    take(&log);
    let stale = || handle.request(dpid, ask_for(ControllerRole::Master, 4));
    assert!(network.block_on(stale()).is_err());
    network.advance(Duration::ZERO);
    assert!(take(&log).is_empty(), "it is master as before, whatever it asked for");
    *ours.lock().unwrap() = RoleOfSwitch { role: ControllerRole::Slave, generation_id: 9 };
    assert!(network.block_on(stale()).is_err());
    network.advance(Duration::ZERO);
    let slave = "role slave Some(9) master_request";
    assert_eq!(take(&log), [format!("one {slave}"), format!("two {slave}")]);
}

#[test]
fn a_switch_of_1_0_is_never_asked_for_a_role() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let old = network.add_switch(TestSwitch::new(8, 1).with_version(Version::V1_0));
    network.take_messages(old);
    take(&log);
    let error = Error::BadRequestIsSlave;
    let error = Message::Error(ErrorMessage::new(Version::V1_0, error, vec![]));
    network.send(old, Xid(1), &error);
    assert!(network.take_messages(old).is_empty());
    assert_eq!(take(&log), ["one error 1"], "of its own message, and no role");
}

/// An event of each kind, and the beginning of what an app of the test notes of it.
fn one_of_each_kind(handle: &Handle, dpid: DatapathId) -> Vec<(ControllerEvent, &'static str)> {
    let at = SwitchPort { dpid, port: PortNo(2) };
    let host = TopologyHost { mac: MacAddr([2; 6]), vlan: None, ipv4: vec![], ipv6: vec![], at };
    let down = PortDesc { state: PortState::LINK_DOWN, ..handle_port(handle, dpid, 2) };
    let link = TopologyLink { from: at, to: SwitchPort { port: PortNo(1), ..at } };
    let change = RoleChange {
        role: ControllerRole::Slave,
        generation_id: Some(3),
        reason: RoleReason::MasterRequest,
    };
    let error = ErrorMessage::new(Version::V1_3, Error::FlowModTableFull, vec![]);
    let packet_in = PacketIn {
        buffer_id: None,
        total_len: 61,
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(0),
        matching: Match::any().with(Field::InPort, 2),
        data: vec![7; 61],
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    };
    let status = PortStatus { reason: PortReason::Modify, desc: down };
    let (xid, removed, message) = (Xid(0), removed(), Message::BarrierReply);
    vec![
        (ControllerEvent::PacketIn { dpid, packet_in }, "packet 61"),
        (ControllerEvent::PortStatus { dpid, status }, "port 2 up false"),
        (ControllerEvent::FlowRemoved { dpid, removed }, "removed 77"),
        (ControllerEvent::Error { dpid, xid, error }, "error 0"),
        (ControllerEvent::Message { dpid, xid, message }, "OFPT_BARRIER_REPLY"),
        (ControllerEvent::RoleChanged { dpid, change }, "role slave Some(3) master_request"),
        (ControllerEvent::SwitchDown(dpid), "down 1"),
        (ControllerEvent::SwitchReady(handle.switch(dpid).unwrap()), "ready"),
        (ControllerEvent::Link(LinkEvent::Up(link)), "Up(TopologyLink"),
        (ControllerEvent::Host(HostEvent::Up(host)), "host Up(TopologyHost"),
    ]
}

#[test]
fn every_kind_of_event_can_be_raised() {
    let (apps, log) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let dpid = network.add_switch(TestSwitch::new(1, 2));
    network.advance(Duration::from_millis(300));
    take(&log);
    let handle = network.handle();
    let mut events = handle.events();
    for (event, expected) in one_of_each_kind(&handle, dpid) {
        handle.raise(event).unwrap();
        network.advance(Duration::ZERO);
        let (noted, seen) = (take(&log), events.try_recv().unwrap().unwrap());
        assert_eq!(noted.len() % 2, 0, "both apps are told: {noted:?} of {seen:?}");
        let noted = noted[0].strip_prefix("one ").unwrap();
        assert!(noted.starts_with(expected), "{noted:?} of {seen:?}");
        // The apps of this test ask for a barrier at a packet, which is answered.
        let answers = if matches!(*seen, ControllerEvent::PacketIn { .. }) { 2 } else { 0 };
        for _ in 0..answers {
            let answer = events.try_recv().unwrap().unwrap();
            assert!(matches!(*answer, ControllerEvent::Message { .. }), "{answer:?}");
        }
        assert!(events.try_recv().unwrap().is_none(), "watchers are told once");
    }
    assert!(handle.switch(dpid).unwrap().ports[&PortNo(2)].state == PortState::LINK_DOWN);
    assert_eq!(network.stats().switches, 1, "it was told as gone, and stayed");
}

#[test]
fn the_last_change_of_many_ports_is_shown_in_time() {
    let (apps, _) = two_apps(false);
    let mut network = TestNetwork::new(apps);
    let dpid = network.add_switch(TestSwitch::new(1, 1_023));
    let handle = network.handle();
    for port in 1_024..1_030 {
        let desc = PortDesc { port_no: PortNo(port), ..handle_port(&handle, dpid, 1) };
        let status = PortStatus { reason: PortReason::Add, desc };
        network.send(dpid, Xid(0), &Message::PortStatus(status));
    }
    network.advance(Duration::ZERO);
    network.set_port_up(dpid, 7, false);
    // Before the tick of a second.
    network.advance(Duration::from_millis(600));
    assert_eq!(handle_port(&handle, dpid, 7).state, PortState::LINK_DOWN);
}

fn handle_port(handle: &Handle, dpid: DatapathId, port: u32) -> PortDesc {
    handle.switch(dpid).unwrap().ports[&PortNo(port)].clone()
}

fn removed() -> FlowRemoved {
    FlowRemoved {
        cookie: Cookie(77),
        priority: 1,
        reason: FlowRemovedReason::IdleTimeout,
        table_id: TableId(0),
        duration_s: 0,
        duration_ns: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packet_count: 0,
        byte_count: 0,
        matching: Match::any(),
    }
}

#[test]
fn what_cannot_be_raised_is_an_error_and_a_full_queue_is_one() {
    let mut network = TestNetwork::with_options(
        &empty(),
        Options { queue_max_bytes: 1_000, ..Options::default() },
    );
    let dpid = network.add_switch(TestSwitch::new(1, 1));
    let handle = network.handle();
    let nobody = ControllerEvent::SwitchDown(DatapathId(9));
    assert_eq!(handle.raise(nobody), Err(HandleError::NoSwitch(DatapathId(9))));
    let message = Message::PacketOut(too_long());
    let unsaid = handle.raise(ControllerEvent::Message { dpid, xid: Xid(0), message });
    assert!(matches!(unsaid, Err(HandleError::NotEncodable { .. })), "{unsaid:?}");
    let full = (0..1_000).find_map(|_| handle.raise(ControllerEvent::SwitchDown(dpid)).err());
    assert_eq!(full, Some(HandleError::Full(dpid)), "events have the bound of the queue");
}
