//! Flow entries of OpenFlow 1.0 in Nicira's form: what the twelve-tuple cannot say, by a scripted
//! controller and by `ovs-ofctl` with its own choice of forms.

use std::process::Command;

use openflow::flow::{FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::message::{
    Experimenter, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    PacketInForm,
};
use openflow::{Cookie, Error, Field, Match, Message, TableId, Version, Xid};
use wire::Forms;

use crate::harness::{Controller, Switch};

use FlowModCommand::{Add, Delete, Modify};

/// Types of Nicira's requests.
const SET_FLOW_FORMAT: u32 = 12;
const FLOW_MOD_TABLE_ID: u32 = 15;

const NXM: Forms =
    Forms { has_table_ids: true, flows: FlowForm::Nicira, packet_ins: PacketInForm::Standard };

fn ask(exp_type: u32, body: &[u8]) -> Message {
    let data = [&exp_type.to_be_bytes()[..], body].concat();
    Message::Experimenter(Experimenter { experimenter: 0x2320, exp_type: 0, data })
}

fn written(xid: u32, message: &Message) -> Vec<u8> {
    let mut frame = Vec::new();
    wire::encode_in(&mut frame, NXM, Version::V1_0, Xid(xid), message).unwrap();
    frame
}

fn register(number: u128) -> Match {
    Match::any().with(Field::Reg0, number)
}

fn send(controller: &mut Controller, flow: FlowMod) {
    controller.raw(&written(9, &Message::FlowMod(flow)));
}

/// The reply to a request in Nicira's form, and its first bytes behind the header.
fn asked(
    controller: &mut Controller,
    body: impl Fn(FlowStatsRequest) -> MultipartRequestBody,
    filter: FlowStatsRequest,
) -> (Vec<u8>, MultipartReplyBody) {
    let body = body(FlowStatsRequest { form: FlowForm::Nicira, ..filter });
    let request = Message::MultipartRequest(MultipartRequest { more: false, body });
    controller.raw(&written(9, &request));
    let frame = loop {
        let frame = controller.frame().expect("the switch replies");
        if frame[1] != 0 && frame[1] != 2 {
            break frame;
        }
    };
    let (_, xid, message) = wire::decode(&frame).unwrap();
    let Message::MultipartReply(MultipartReply { body, more: false }) = message else {
        panic!("{message:?}");
    };
    assert_eq!(xid, Xid(9));
    (frame[8..24].to_vec(), body)
}

/// The head of statistics of Nicira's: type, flags, vendor, their type.
fn head(stats: u8) -> Vec<u8> {
    vec![0xff, 0xff, 0, 0, 0, 0, 0x23, 0x20, 0, 0, 0, stats, 0, 0, 0, 0]
}

/// The table, the cookie and the match of each entry that is found.
fn entries(controller: &mut Controller, filter: FlowStatsRequest) -> Vec<(u8, u64, Match)> {
    let (found, body) = asked(controller, MultipartRequestBody::Flow, filter);
    assert_eq!(found, head(0));
    let MultipartReplyBody::Flow(flows) = body else { panic!("{body:?}") };
    let mut flows: Vec<_> =
        flows.into_iter().map(|flow| (flow.table_id.0, flow.cookie.0, flow.matching)).collect();
    flows.sort_unstable();
    flows
}

#[test]
fn entries_are_selected_by_what_only_nicira_says() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_0);
    controller.send(&ask(FLOW_MOD_TABLE_ID, &[1, 0, 0, 0, 0, 0, 0, 0]));
    let add = FlowMod { cookie: Cookie(5), matching: register(1), ..FlowMod::new(Add) };
    send(&mut controller, add.clone());
    let in_third = FlowMod { table_id: TableId(3), cookie: Cookie(6), ..add.clone() };
    send(&mut controller, in_third);
    let all = FlowStatsRequest::all();
    let both = [(0, 5, register(1)), (3, 6, register(1))];
    assert_eq!(entries(&mut controller, all.clone()), both);
    // Requests are limited by table, match and cookie.
    let third = FlowStatsRequest { table_id: TableId(3), ..all.clone() };
    assert_eq!(entries(&mut controller, third), both[1..]);
    let fives = FlowStatsRequest { cookie: Cookie(5), cookie_mask: u64::MAX, ..all.clone() };
    assert_eq!(entries(&mut controller, fives.clone()), both[..1]);
    let others = FlowStatsRequest { matching: register(2), ..all.clone() };
    assert_eq!(entries(&mut controller, others), []);
    let (found, sums) = asked(&mut controller, MultipartRequestBody::Aggregate, fives);
    let MultipartReplyBody::Aggregate(sums) = sums else { panic!("{sums:?}") };
    assert_eq!((found, sums.flow_count), (head(1), 1));
    // The standard's form leaves out what it cannot say, and a request of it is answered in it.
    assert_eq!(controller.flow_stats(), []);
    // A modify looks for one cookie and gives another, and where it finds none it adds none.
    let every = FlowMod { table_id: TableId::ALL, ..FlowMod::new(Modify) };
    let recook = FlowMod {
        cookie: Cookie(6),
        cookie_mask: u64::MAX,
        new_cookie: Some(Cookie(7)),
        ..every.clone()
    };
    send(&mut controller, recook.clone());
    send(&mut controller, recook);
    assert_eq!(entries(&mut controller, all.clone()), [(0, 5, register(1)), (3, 7, register(1))]);
    let keep = FlowMod { cookie: Cookie::NONE, ..every };
    send(&mut controller, keep);
    assert_eq!(entries(&mut controller, all.clone()), [(0, 5, register(1)), (3, 7, register(1))]);
    // An add has no cookie to look for.
    let asks = FlowMod { cookie_mask: 1, ..FlowMod::new(Delete) };
    let mut bad = written(9, &Message::FlowMod(asks));
    bad[16 + 9] = Add.number();
    controller.raw(&bad);
    let (xid, answer) = controller.next();
    let Message::Error(error) = answer else { panic!("{answer:?}") };
    let numbers = Error::BadRequestNxmInvalid.numbers(Version::V1_0);
    assert_eq!((xid, error.error_type, error.code), (Xid(9), numbers.0, numbers.1));
    let delete = FlowMod { table_id: TableId::ALL, ..FlowMod::new(Delete) };
    send(&mut controller, FlowMod { cookie: Cookie(7), cookie_mask: u64::MAX, ..delete.clone() });
    assert_eq!(entries(&mut controller, all.clone()), [(0, 5, register(1))]);
    send(&mut controller, delete);
    assert_eq!(entries(&mut controller, all), []);
    switch.stop();
}

#[test]
fn a_removed_entry_is_reported_in_the_form_that_was_chosen() {
    let switch = Switch::start(1, "");
    let mut controller = switch.controller(Version::V1_0);
    let flags = FlowModFlags::SEND_FLOW_REM;
    let add = FlowMod { flags, matching: register(1), ..FlowMod::new(Add) };
    let delete = FlowMod { table_id: TableId::ALL, ..FlowMod::new(Delete) };
    controller.send(&ask(FLOW_MOD_TABLE_ID, &[1, 0, 0, 0, 0, 0, 0, 0]));
    controller.send(&ask(SET_FLOW_FORMAT, &[0, 0, 0, 2]));
    send(&mut controller, FlowMod { table_id: TableId(3), ..add.clone() });
    send(&mut controller, delete.clone());
    let (_, removed) = controller.next();
    let Message::FlowRemoved(gone) = removed else { panic!("{removed:?}") };
    assert_eq!((gone.matching, gone.table_id), (register(1), TableId(3)));
    // Forms that are unknown are refused and change nothing.
    controller.refused(&ask(SET_FLOW_FORMAT, &[0, 0, 0, 1]), Error::BadRequestEperm);
    controller.refused(&ask(SET_FLOW_FORMAT, &[0, 0, 2]), Error::BadRequestBadLen);
    send(&mut controller, add.clone());
    send(&mut controller, delete.clone());
    let (_, removed) = controller.next();
    assert!(matches!(removed, Message::FlowRemoved(_)), "{removed:?}");
    // In the standard's form there is no register, so that it cannot be reported.
    controller.send(&ask(SET_FLOW_FORMAT, &[0, 0, 0, 0]));
    send(&mut controller, add);
    send(&mut controller, FlowMod { flags, matching: Match::any(), ..FlowMod::new(Add) });
    send(&mut controller, delete);
    let (_, removed) = controller.next();
    let Message::FlowRemoved(gone) = removed else { panic!("{removed:?}") };
    assert_eq!(gone.matching, Match::any());
    assert!(switch.counter("unsayable") >= 1);
    switch.stop();
}

#[test]
#[ignore = "needs ovs-ofctl: cargo xtask test as root installs it"]
fn ovs_ofctl_uses_the_forms_that_it_finds() {
    let switch = Switch::start(2, "");
    let place = format!("unix:{}", switch.socket("of").display());
    let ofctl = |words: &str, text: &str| {
        let (before, command) = words.rsplit_once(' ').unwrap_or(("", words));
        let mut run = Command::new("ovs-ofctl");
        run.args(before.split(' ').filter(|word| !word.is_empty())).args([command, &place]);
        let out = run.args((!text.is_empty()).then_some(text)).output().unwrap();
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{words} {text}: {err}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    // Each command of a fresh connection, as scripts write them.
    ofctl("add-flow", "table=2,reg0=1,ipv6,ipv6_dst=2001:db8::/32,actions=output:2");
    ofctl(
        "add-flow",
        "cookie=5,in_port=1,vlan_tci=0x1000/0x1000,actions=load:7->NXM_NX_REG1[],exit",
    );
    ofctl("-F NXM+table_id add-flow", "table=1,cookie=6,tcp,metadata=5/0xf,tp_dst=80,actions=drop");
    assert!(ofctl("dump-flows", "").starts_with("NXST_FLOW reply"));
    let listed = |words: &str, text: &str| {
        let mut lines: Vec<String> = ofctl(words, text).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let list = "--no-stats dump-flows";
    assert_eq!(
        listed(list, ""),
        [
            " cookie=0x5, in_port=1,vlan_tci=0x1000/0x1000 actions=load:0x7->NXM_NX_REG1[],exit",
            " cookie=0x6, table=1, tcp,metadata=0x5/0xf,tp_dst=80 actions=drop",
            " table=2, ipv6,reg0=0x1,ipv6_dst=2001:db8::/32 actions=output:2",
        ]
    );
    assert_eq!(
        listed(list, "reg0=1"),
        [" table=2, ipv6,reg0=0x1,ipv6_dst=2001:db8::/32 actions=output:2"]
    );
    assert_eq!(listed(list, "cookie=6/-1").len(), 1);
    assert!(ofctl("dump-aggregate", "reg0=1").contains("flow_count=1"));
    ofctl("mod-flows", "cookie=6/-1,actions=output:1");
    assert_eq!(
        listed(list, "table=1"),
        [" cookie=0x6, table=1, tcp,metadata=0x5/0xf,tp_dst=80 actions=output:1"]
    );
    ofctl("del-flows", "cookie=6/-1");
    ofctl("--strict del-flows", "priority=32768,table=2,reg0=1,ipv6,ipv6_dst=2001:db8::/32");
    assert_eq!(listed(list, "").len(), 1);
    switch.stop();
}
