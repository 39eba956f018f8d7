//! Packets that wait for a controller, and go on as if they had never waited.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, Nanos, Out, Reference, Settings, Verdict};
use openflow::flow::FlowModCommand;
use openflow::message::{PacketIn, PacketOut};
use openflow::text::{parse_actions, parse_group_mod};
use openflow::{Error, Field, MacAddr, PortNo};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4};

use crate::support::with;

fn frame() -> PacketBuf {
    let ip = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 1, 1].into());
    let built = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1)).ipv4(ip);
    PacketBuf::from_slice(&built.udp(1, 2).fill_to(60).build())
}

/// Words about verdicts: ports, `wait` and the reason of a drop. Packets that wait are kept.
fn words(out: &mut Out, waiting: &mut Vec<PacketIn>) -> Vec<String> {
    let word = |verdict| match verdict {
        Verdict::Output { port, queue, .. } => {
            queue.map_or(port.0.to_string(), |queue| format!("{}q{}", port.0, queue.0))
        }
        Verdict::PacketIn { message, .. } if !message.continuation.is_empty() => {
            waiting.push(message);
            "wait".to_owned()
        }
        Verdict::PacketIn { message, .. } => message.reason.text().to_owned(),
        Verdict::Drop { reason } => reason.name().to_owned(),
        Verdict::Held => "held".to_owned(),
    };
    out.drain().map(word).collect()
}

/// Resumes packets until none waits, with `change`.
fn resume_all(
    datapath: &mut dyn Datapath,
    mut waiting: Vec<PacketIn>,
    change: fn(&mut PacketIn),
) -> String {
    let mut rounds = Vec::new();
    while let Some(mut paused) = waiting.pop() {
        change(&mut paused);
        let mut out = Out::new();
        datapath.resume(&paused, Nanos(1), &mut out).unwrap();
        rounds.push(words(&mut out, &mut waiting).join(" "));
    }
    rounds.join(" | ")
}

/// The verdicts of both datapaths about a frame from port 1, and about it when it is resumed.
fn both(group: &str, entries: &[&str], change: fn(&mut PacketIn)) -> String {
    let play = |mut datapath: Box<dyn Datapath>| {
        let (mut out, mut waiting) = (Out::new(), Vec::new());
        datapath.process(frame(), PortNo(1), Nanos(1), &mut out);
        let first = words(&mut out, &mut waiting).join(" ");
        format!("{first} | {}", resume_all(&mut *datapath, waiting, change))
    };
    let prepare = |mut datapath: Box<dyn Datapath>| {
        if !group.is_empty() {
            let command = openflow::group::GroupModCommand::Add;
            datapath.group_mod(&parse_group_mod(group, command).unwrap(), Nanos(0)).unwrap();
        }
        datapath
    };
    let config = DatapathConfig::default;
    let no_entries: [&str; 0] = [];
    let reference = prepare(Box::new(with(Reference::new(config()), 5, &no_entries)));
    let fast = prepare(Box::new(with(Fast::new(config(), 1), 5, &no_entries)));
    let add = |mut datapath: Box<dyn Datapath>| {
        for entry in entries {
            let flow = openflow::text::parse_flow_mod(entry, openflow::flow::FlowModCommand::Add);
            datapath.flow_mod(&flow.unwrap(), openflow::Version::V1_3, Nanos(0)).unwrap();
        }
        datapath
    };
    let expected = play(add(reference));
    assert_eq!(play(add(fast)), expected);
    expected
}

fn as_it_is(_: &mut PacketIn) {}

#[test]
fn the_list_the_tables_and_the_action_set_come_after_a_pause() {
    let entries = [
        "actions=output:2,set_queue:7,controller(pause),output:3,\
         write_actions(output:4),goto_table:1",
        "table=1,actions=output:5",
    ];
    assert_eq!(both("", &entries, as_it_is), "2 wait | 3q7 5q7 4q7");
}

#[test]
fn what_resubmitted_goes_on_too() {
    let entries = [
        "actions=resubmit(,1),output:2,write_actions(output:5)",
        "table=1,actions=resubmit(3,2),output:3,goto_table:3",
        "table=2,in_port=3,actions=controller(pause),output:4,controller(pause)",
        "table=3,in_port=1,actions=resubmit:4",
        "table=3,in_port=4,actions=IN_PORT",
    ];
    assert_eq!(both("", &entries, as_it_is), "wait | 4 wait | 3 1 2 5");
}

#[test]
fn a_bucket_waits_alone() {
    let group = "group_id=1,type=all,bucket=resubmit(,1),bucket=output:5";
    let entries =
        ["actions=group:1,output:2", "table=1,actions=controller(pause),output:3,CONTROLLER"];
    assert_eq!(both(group, &entries, as_it_is), "wait 5 2 | 3 action");
}

#[test]
fn an_action_set_waits_where_it_resubmits() {
    let entries = [
        "actions=write_actions(set_queue:3,resubmit(,1))",
        "table=1,actions=controller(pause),output:3,CONTROLLER",
    ];
    assert_eq!(both("", &entries, as_it_is), "wait | 3q3 action_set");
}

#[test]
fn a_controller_may_change_packet_and_registers() {
    let entries = ["actions=load:2->NXM_NX_REG0[],controller(pause),output:NXM_NX_REG0[]"];
    let change = |paused: &mut PacketIn| {
        assert_eq!(paused.matching.exact(Field::Reg0), Some(2));
        paused.matching = paused.matching.clone().with(Field::Reg0, 3);
    };
    assert_eq!(both("", &entries, change), "wait | 3");
}

#[test]
fn a_packet_out_waits() {
    let config = DatapathConfig::default;
    let entries = ["actions=controller(pause),output:3"];
    let list = "output:2,controller(pause),TABLE,output:4,CONTROLLER";
    let packet_out = PacketOut {
        buffer_id: None,
        in_port: PortNo(1),
        actions: parse_actions(list).unwrap(),
        data: frame().bytes().to_vec(),
    };
    let datapaths: [Box<dyn Datapath>; 2] = [
        Box::new(with(Reference::new(config()), 5, &entries)),
        Box::new(with(Fast::new(config(), 1), 5, &entries)),
    ];
    for mut datapath in datapaths {
        let (mut out, mut waiting) = (Out::new(), Vec::new());
        datapath.packet_out(&packet_out, Nanos(1), &mut out).unwrap();
        assert_eq!(words(&mut out, &mut waiting).join(" "), "2 wait");
        let rounds = resume_all(&mut *datapath, waiting, as_it_is);
        assert_eq!(rounds, "wait 4 packet_out | 3");
    }
}

#[test]
fn a_meter_of_the_action_keeps_back_what_goes_up_only() {
    use openflow::meter::MeterModCommand;
    let meter = openflow::text::parse_meter_mod(
        "meter=1,pktps,burst,band=type=drop,rate=1,burst_size=1",
        MeterModCommand::Add,
    );
    let config = DatapathConfig::default;
    let none: [&str; 0] = [];
    let datapaths: [Box<dyn Datapath>; 2] = [
        Box::new(with(Reference::new(config()), 5, &none)),
        Box::new(with(Fast::new(config(), 1), 5, &none)),
    ];
    for mut datapath in datapaths {
        datapath.meter_mod(meter.as_ref().unwrap(), Nanos(0)).unwrap();
        let flow = "actions=controller(id=2,meter_id=1),output:2";
        let flow =
            openflow::text::parse_flow_mod(flow, openflow::flow::FlowModCommand::Add).unwrap();
        datapath.flow_mod(&flow, openflow::Version::V1_3, Nanos(0)).unwrap();
        for expected in ["action 2", "meter 2"] {
            let (mut out, mut waiting) = (Out::new(), Vec::new());
            datapath.process(frame(), PortNo(1), Nanos(1), &mut out);
            assert_eq!(words(&mut out, &mut waiting).join(" "), expected);
        }
    }
}

#[test]
fn more_left_than_a_packet_in_has_room_for_is_no_wait() {
    let left = |outputs: usize| vec!["output:2"; outputs].join(",");
    // An output has 7 bytes, an entry 14, the rest 27.
    for (outputs, expected) in [(2_332, "wait"), (2_333, "continuation_too_long")] {
        let entries = [
            format!("actions=resubmit(,1),{}", left(outputs / 2)),
            format!("table=1,actions=controller(pause),{}", left(outputs - outputs / 2)),
        ];
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let seen = both("", &entries, as_it_is);
        assert_eq!(seen.split(" |").next(), Some(expected));
    }
    // Of many long lists the first ones alone are too long.
    let lists: Vec<String> = (0..100)
        .map(|table| format!("table={table},actions=resubmit(,{}),{}", table + 1, left(1_000)))
        .chain(["table=100,actions=controller(pause),output:3".to_owned()])
        .collect();
    let entries: Vec<&str> = lists.iter().map(String::as_str).collect();
    assert_eq!(both("", &entries, as_it_is), "continuation_too_long | ");
}

#[test]
fn each_controller_that_a_used_up_ttl_goes_to_is_an_action() {
    let ids = |count: usize| vec!["7"; count].join(",");
    let settings = Settings { invalid_ttl_to_controller: true, ..Settings::default() };
    for (count, expected) in [(4_094, 16 * 4_094), (4_095, 1)] {
        let bucket = format!("bucket=dec_ttl({})", ids(count));
        let group = format!("group_id=1,type=all,{}", vec![bucket; 16].join(","));
        let group = parse_group_mod(&group, openflow::group::GroupModCommand::Add).unwrap();
        let none: [&str; 0] = [];
        let datapaths: [Box<dyn Datapath>; 2] = [
            Box::new(with(Reference::new(DatapathConfig::default()), 2, &none)),
            Box::new(with(Fast::new(DatapathConfig::default(), 1), 2, &none)),
        ];
        for mut datapath in datapaths {
            datapath.set_settings(settings);
            datapath.group_mod(&group, Nanos(0)).unwrap();
            let flow = "ip,actions=mod_nw_ttl:1,group:1";
            let flow = openflow::text::parse_flow_mod(flow, FlowModCommand::Add).unwrap();
            datapath.flow_mod(&flow, openflow::Version::V1_3, Nanos(0)).unwrap();
            let mut out = Out::new();
            datapath.process(frame(), PortNo(1), Nanos(1), &mut out);
            let words = words(&mut out, &mut Vec::new());
            assert_eq!(words.len(), expected);
            let word = if expected == 1 { "too_many_actions" } else { "invalid_ttl" };
            assert!(words.iter().all(|one| one == word), "{words:?}");
        }
    }
}

#[test]
fn what_is_no_continuation_is_refused() {
    let config = DatapathConfig::default;
    let entries = ["actions=controller(pause),output:3"];
    let datapaths: [Box<dyn Datapath>; 2] = [
        Box::new(with(Reference::new(config()), 5, &entries)),
        Box::new(with(Fast::new(config(), 1), 5, &entries)),
    ];
    for mut datapath in datapaths {
        let (mut out, mut waiting) = (Out::new(), Vec::new());
        datapath.process(frame(), PortNo(1), Nanos(1), &mut out);
        words(&mut out, &mut waiting);
        let good = waiting.pop().unwrap();
        for at in 0..good.continuation.len() {
            let mut bad = good.clone();
            bad.continuation[at] ^= 0x10;
            assert_eq!(datapath.resume(&bad, Nanos(1), &mut out), Err(Error::ResumeStale));
        }
        let short = PacketIn { data: vec![0; 13], ..good.clone() };
        assert_eq!(datapath.resume(&short, Nanos(1), &mut out), Err(Error::BadRequestBadPacket));
        let matching = good.matching.clone().with(Field::InPort, 0xffff_fff9);
        let nowhere = PacketIn { matching, ..good.clone() };
        assert_eq!(datapath.resume(&nowhere, Nanos(1), &mut out), Err(Error::BadRequestBadPort));
        assert!(out.is_empty());
        // As often as it likes.
        for _ in 0..2 {
            datapath.resume(&good, Nanos(1), &mut out).unwrap();
            assert_eq!(words(&mut out, &mut waiting), ["3"]);
        }
    }
}
