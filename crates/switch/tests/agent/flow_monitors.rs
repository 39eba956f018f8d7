//! Flow monitors: Nicira's over 1.0, ONF's over 1.3, the version's own from 1.4 on.

use std::collections::BTreeMap;

use openflow::flow::{
    FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStats, FlowStatsRequest,
};
use openflow::flow_monitor::{
    FlowChange, FlowEvent, FlowMonitorCommand, FlowMonitorFlags as Flags, FlowMonitorRequest,
    FlowUpdate,
};
use openflow::message::{
    Experimenter, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{
    Action, Cookie, Error, Field, GroupId, Instruction, Match, Message, PortNo, TableId, Version,
    Xid,
};

use crate::harness::{Controller, Switch};

const ALL: &str = "protocols = \
    [\"OpenFlow10\", \"OpenFlow11\", \"OpenFlow12\", \"OpenFlow13\", \"OpenFlow14\", \
    \"OpenFlow15\"]\n";

fn monitor(monitor_id: u32, flags: Flags) -> FlowMonitorRequest {
    let command = FlowMonitorCommand::Add;
    FlowMonitorRequest { command, flags, ..FlowMonitorRequest::delete(monitor_id) }
}

fn whole() -> Flags {
    Flags::INITIAL | Flags::CHANGES | Flags::INSTRUCTIONS | Flags::NO_ABBREV
}

fn request(asked: Vec<FlowMonitorRequest>) -> Message {
    let body = MultipartRequestBody::FlowMonitor(asked);
    Message::MultipartRequest(MultipartRequest { more: false, body })
}

fn updates(message: Message) -> Vec<FlowUpdate> {
    let Message::MultipartReply(MultipartReply { body, .. }) = message else {
        panic!("{message:?}");
    };
    let MultipartReplyBody::FlowMonitor(updates) = body else { panic!("{body:?}") };
    updates
}

/// The entries that are there when a monitor begins.
fn begin(controller: &mut Controller, asked: Vec<FlowMonitorRequest>) -> Vec<FlowUpdate> {
    updates(controller.request(&request(asked)))
}

/// The next report.
fn next(controller: &mut Controller) -> Vec<FlowUpdate> {
    let (xid, message) = controller.next();
    assert_eq!(xid, Xid(0), "{message:?}");
    updates(message)
}

fn flow(command: FlowModCommand, port: u128, out: u32) -> Message {
    Message::FlowMod(FlowMod {
        cookie: Cookie(9),
        priority: 7,
        matching: Match::any().with(Field::InPort, port),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(out))])],
        ..FlowMod::new(command)
    })
}

fn change(event: FlowEvent, port: u128, out: u32) -> FlowUpdate {
    FlowUpdate::Change(FlowChange {
        event,
        reason: (event == FlowEvent::Removed).then_some(FlowRemovedReason::Delete),
        table_id: TableId(0),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        priority: 7,
        cookie: Cookie(9),
        matching: Match::any().with(Field::InPort, port),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(out))])],
    })
}

fn remove_all() -> Message {
    Message::FlowMod(FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) })
}

#[test]
fn every_change_is_reported_in_every_version() {
    use FlowModCommand::{Add, Modify};
    let switch = Switch::start(3, ALL);
    for &version in Version::ALL {
        let (mut watcher, mut other) =
            (switch.controller(version), switch.controller(Version::V1_3));
        other.send(&flow(Add, 1, 2));
        other.barrier();
        let initial =
            if version.has_flow_monitor() { FlowEvent::Initial } else { FlowEvent::Added };
        assert_eq!(begin(&mut watcher, vec![monitor(1, whole())]), [change(initial, 1, 2)]);
        other.send(&flow(Add, 2, 3));
        assert_eq!(next(&mut watcher), [change(FlowEvent::Added, 2, 3)], "{version}");
        // One that is there is replaced.
        other.send(&flow(Add, 1, 3));
        assert_eq!(next(&mut watcher), [change(FlowEvent::Added, 1, 3)]);
        // A modify that changes nothing is none.
        other.send(&flow(Modify, 1, 3));
        other.send(&flow(Modify, 1, 1));
        assert_eq!(next(&mut watcher), [change(FlowEvent::Modified, 1, 1)]);
        // One command is one report; the controller's own are as those of others.
        watcher.send(&remove_all());
        let gone = [change(FlowEvent::Removed, 1, 1), change(FlowEvent::Removed, 2, 3)];
        assert_eq!(next(&mut watcher), gone);
        watcher.barrier();
        drop(watcher);
        other.send(&flow(Add, 1, 2));
        other.send(&remove_all());
        other.barrier();
    }
    switch.stop();
}

#[test]
fn own_changes_are_abbreviated_and_a_monitor_ends() {
    use FlowModCommand::Add;
    let switch = Switch::start(3, ALL);
    for &version in Version::ALL {
        let mut watcher = switch.controller(version);
        assert_eq!(begin(&mut watcher, vec![monitor(5, Flags::CHANGES)]), []);
        let xid = watcher.send(&flow(Add, 1, 2));
        assert_eq!(next(&mut watcher), [FlowUpdate::Abbreviated(xid)], "{version}");
        let end = match (version.has_flow_monitor(), version.has_onf_flow_monitor()) {
            (true, _) => request(vec![FlowMonitorRequest::delete(5)]),
            (false, is_onf) => cancel(version, is_onf, 5),
        };
        watcher.send(&end);
        if version.has_flow_monitor() {
            assert_eq!(updates(watcher.next().1), []);
        }
        watcher.refused(&end, Error::FlowMonitorUnknownMonitor);
        watcher.send(&remove_all());
        watcher.barrier();
    }
    switch.stop();
}

/// `NXT_FLOW_MONITOR_CANCEL` or ONF's.
fn cancel(version: Version, is_onf: bool, id: u32) -> Message {
    let (experimenter, number): (u32, u32) =
        if is_onf { (0x4f4e_4600, 1870) } else { (0x2320, 21) };
    let is_numbered = version.has_experimenter_types();
    let data = if is_numbered {
        id.to_be_bytes().to_vec()
    } else {
        [number.to_be_bytes(), id.to_be_bytes()].concat()
    };
    let exp_type = if is_numbered { number } else { 0 };
    Message::Experimenter(Experimenter { experimenter, exp_type, data })
}

#[test]
fn monitors_choose_entries_and_wrong_requests_are_refused() {
    use FlowModCommand::{Add, Modify};
    let switch = Switch::start(3, ALL);
    let (mut watcher, mut other) =
        (switch.controller(Version::V1_4), switch.controller(Version::V1_3));
    other.send(&flow(Add, 1, 2));
    other.send(&flow(Add, 2, 2));
    other.barrier();
    let of_port = FlowMonitorRequest { out_port: PortNo(3), ..monitor(1, whole()) };
    let of_match = FlowMonitorRequest {
        matching: Match::any().with(Field::InPort, 2),
        ..monitor(2, Flags::INITIAL | Flags::REMOVED)
    };
    // No entry stands twice, and instructions are there where one of its monitors wants them.
    let found = begin(&mut watcher, vec![of_port, of_match]);
    let [FlowUpdate::Change(found)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.matching.exact(Field::InPort), found.instructions.len()), (Some(2), 0));
    // An entry that had an output to the port is reported too.
    for (out, is_reported) in [(3, true), (1, true), (2, false)] {
        other.send(&flow(Modify, 1, out));
        if is_reported {
            assert_eq!(next(&mut watcher), [change(FlowEvent::Modified, 1, out)]);
        }
    }
    other.barrier();
    watcher.barrier();
    let mut wrong = |asked: FlowMonitorRequest, error| {
        watcher.refused(&request(vec![monitor(9, whole()), asked]), error);
    };
    wrong(monitor(1, whole()), Error::FlowMonitorExists);
    wrong(FlowMonitorRequest::delete(7), Error::FlowMonitorUnknownMonitor);
    wrong(monitor(3, Flags::INITIAL), Error::FlowMonitorBadFlags);
    wrong(monitor(3, whole() | Flags::from_bits_retain(0x100)), Error::FlowMonitorBadFlags);
    let table = FlowMonitorRequest { table_id: TableId(254), ..monitor(3, whole()) };
    wrong(table, Error::FlowMonitorBadTable);
    let command = FlowMonitorCommand::Unknown(7);
    wrong(FlowMonitorRequest { command, ..monitor(3, whole()) }, Error::FlowMonitorBadCommand);
    // Nothing of them is left: the number is free.
    let group = FlowMonitorRequest { out_group: GroupId(5), ..monitor(9, whole()) };
    assert_eq!(begin(&mut watcher, vec![group]), []);
    switch.stop();
}

/// A flow-mod of an address.
fn numbered(command: FlowModCommand, number: u32, cookie: u64) -> Message {
    let matching = Match::any().with(Field::EthType, 0x800);
    let output = Action::output(PortNo(number % 7 + 1));
    Message::FlowMod(FlowMod {
        cookie: Cookie(cookie),
        matching: matching.with(Field::Ipv4Dst, u128::from(number)),
        instructions: vec![Instruction::ApplyActions(vec![output])],
        ..FlowMod::new(command)
    })
}

/// The statistics of all entries, which come in several parts.
fn all_flows(controller: &mut Controller) -> Vec<FlowStats> {
    let body = MultipartRequestBody::Flow(FlowStatsRequest::all());
    controller.send(&Message::MultipartRequest(MultipartRequest { more: false, body }));
    let mut all = Vec::new();
    loop {
        let Message::MultipartReply(MultipartReply { more, body }) = controller.next().1 else {
            panic!("another message than statistics");
        };
        let MultipartReplyBody::Flow(flows) = body else { panic!("{body:?}") };
        all.extend(flows);
        if !more {
            return all;
        }
    }
}

/// Reports, or the begin or end of a pause by a message of its own.
fn news_of(message: Message) -> Vec<FlowUpdate> {
    let Message::Experimenter(body) = message else { return updates(message) };
    let number = body.exp_type.max(u32::from(*body.data.get(3).unwrap_or(&0)));
    let is_begin = [22, 1871].contains(&number);
    assert!(is_begin || [23, 1872].contains(&number), "{number}");
    vec![if is_begin { FlowUpdate::Paused } else { FlowUpdate::Resumed }]
}

#[test]
fn a_slow_controller_is_paused_and_knows_all_in_the_end() {
    const FLOWS: u32 = 12_000;
    let switch = Switch::start(1, ALL);
    for &version in Version::ALL {
        let (mut watcher, mut other) =
            (switch.controller(version), switch.controller(Version::V1_3));
        begin(&mut watcher, vec![monitor(1, whole())]);
        for number in 0..FLOWS {
            other.send(&numbered(FlowModCommand::Add, number, 1));
        }
        // Some of those that are known and some that are not change, and some go.
        for number in (0..FLOWS).step_by(3) {
            other.send(&numbered(FlowModCommand::Add, number, 2));
        }
        // Counts that begin anew are no change.
        for number in (0..FLOWS).step_by(7) {
            let mut modify = numbered(FlowModCommand::Modify, number, 0);
            if let Message::FlowMod(body) = &mut modify {
                body.flags = FlowModFlags::RESET_COUNTS;
            }
            other.send(&modify);
        }
        for number in (0..FLOWS).step_by(5) {
            other.send(&numbered(FlowModCommand::Delete, number, 0));
        }
        other.barrier();
        let mut known = BTreeMap::new();
        let (mut pauses, mut is_paused) = (0, false);
        loop {
            let (xid, message) = watcher.next();
            assert_eq!(xid, Xid(0));
            for update in news_of(message) {
                match update {
                    FlowUpdate::Paused => {
                        assert!(!is_paused);
                        (pauses, is_paused) = (pauses + 1, true);
                    }
                    FlowUpdate::Resumed => {
                        assert!(is_paused);
                        is_paused = false;
                    }
                    FlowUpdate::Change(change) => {
                        let key = change.matching.exact(Field::Ipv4Dst).unwrap();
                        let value = (change.cookie, change.instructions);
                        let old = match change.event {
                            FlowEvent::Removed => known.remove(&key),
                            _ => known.insert(key, value),
                        };
                        // Nothing is changed or removed that was not added.
                        let is_new = change.event == FlowEvent::Added;
                        assert!(old.is_some() || is_new, "{key}: {:?}", change.event);
                    }
                    FlowUpdate::Abbreviated(_) => panic!("another's change"),
                }
            }
            let is_complete = known.len() == (FLOWS - FLOWS / 5) as usize;
            if is_complete && !is_paused && pauses > 0 {
                break;
            }
        }
        let there = all_flows(&mut other).into_iter().map(|flow| {
            (flow.matching.exact(Field::Ipv4Dst).unwrap(), (flow.cookie, flow.instructions))
        });
        assert!(there.collect::<BTreeMap<_, _>>() == known, "{version}");
        drop(watcher);
        other.send(&remove_all());
        other.barrier();
    }
    switch.stop();
}
