//! Entries that packets teach: added by the agent, for all workers, while packets pass by caches.

use openflow::flow::{FlowRemovedReason, FlowStats};
use openflow::{Cookie, Field, Message, TableId, Version};

use crate::harness::{Controller, Host, Switch, until};

const SWITCHES: &str = "actions=learn(table=1,send_flow_rem,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],\
                        output:NXM_OF_IN_PORT[]),resubmit(,1)";

/// A frame from one station to another.
fn frame(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    frame
}

fn learnt(controller: &mut Controller) -> Vec<FlowStats> {
    let mut all = controller.flow_stats();
    all.retain(|flow| flow.table_id == TableId(1));
    all
}

/// Sends until an answer comes: an entry holds a moment after the packet that teaches it.
fn reaches(from: &mut Host, to: &mut Host, frame: &[u8]) {
    until("the frame arrives", || {
        from.send(frame);
        std::thread::sleep(std::time::Duration::from_millis(2));
        to.poll().map(|arrived| assert_eq!(arrived, frame))
    });
}

#[test]
fn stations_are_learnt_by_one_worker_and_known_to_the_other() {
    let switch = Switch::start(4, "workers = 2");
    let [mut a, _b, mut c, _d] = [1, 2, 3, 4].map(|port| switch.host(port));
    let mut controller = switch.controller(Version::V1_3);
    switch.ctl(&["add-flow", SWITCHES]);
    a.send(&frame(1, 3));
    until("the first station is learnt", || (learnt(&mut controller).len() == 1).then_some(()));
    reaches(&mut c, &mut a, &frame(3, 1));
    until("the second station is learnt", || (learnt(&mut controller).len() == 2).then_some(()));
    reaches(&mut a, &mut c, &frame(1, 3));
    let added = switch.counter("datapath_flows_added");
    for _ in 0..500 {
        a.send(&frame(1, 3));
        assert_eq!(c.receive(), frame(1, 3));
    }
    assert_eq!(switch.counter("datapath_flows_added"), added);

    switch.ctl(&["del-flows", "table=1"]);
    for _ in 0..2 {
        let removed = match controller.next() {
            (_, Message::FlowRemoved(removed)) => removed,
            other => panic!("{other:?}"),
        };
        assert_eq!((removed.table_id, removed.reason), (TableId(1), FlowRemovedReason::Delete));
    }
    // Both teach it again, though their packets were in the caches.
    a.send(&frame(1, 3));
    c.send(&frame(3, 1));
    until("both are learnt again", || (learnt(&mut controller).len() == 2).then_some(()));
    reaches(&mut a, &mut c, &frame(1, 3));
    switch.stop();
}

/// As a learnt entry, so a shortened one: the agent changes it, and both workers know it.
#[test]
fn the_end_of_a_connection_shortens_the_timeouts_of_its_entry() {
    const TCP: &str =
        "0800 4500 0034 0001 0000 4006 66b7 0a000001 0a000002 03e8 0050 00000001 00000001";
    let of = |flags: &str| {
        let rest = format!("5{flags} 03e8 0000 0000 77656972776569727765697277656972");
        testkit::hex::parse(&format!("020000000002 020000000001 {TCP} {rest}")).unwrap()
    };
    let switch = Switch::start(2, "workers = 2");
    let [mut a, mut b] = [1, 2].map(|port| switch.host(port));
    let mut controller = switch.controller(Version::V1_3);
    let timeouts = "fin_timeout(idle_timeout=100,hard_timeout=200)";
    switch.ctl(&["add-flow", &format!("tcp,idle_timeout=60,actions={timeouts},in_port")]);
    for host in [&mut a, &mut b] {
        for _ in 0..20 {
            host.send(&of("010"));
            assert_eq!(host.receive(), of("010"));
        }
    }
    let shown = |controller: &mut Controller| {
        let flow = controller.flow_stats().remove(0);
        (flow.idle_timeout_s, flow.hard_timeout_s)
    };
    assert_eq!(shown(&mut controller), (60, 0));
    for host in [&mut a, &mut b] {
        for flags in ["011", "014"] {
            host.send(&of(flags));
            assert_eq!(host.receive(), of(flags));
        }
    }
    until("it is shortened", || (shown(&mut controller) == (60, 200)).then_some(()));
    let dumped = switch.ctl(&["dump-flows"]);
    assert!(dumped.contains(timeouts), "{dumped}");
    switch.stop();
}

#[test]
fn learnt_entries_go_with_the_entry_that_teaches_them() {
    let switch = Switch::start(2, "workers = 2");
    let [mut a, b] = [1, 2].map(|port| switch.host(port));
    let mut controller = switch.controller(Version::V1_3);
    let teaches = "in_port=1,actions=learn(table=1,cookie=5,send_flow_rem,delete_learned,\
                   NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])";
    for _ in 0..2 {
        switch.ctl(&["add-flow", teaches]);
        switch.ctl(&["add-flow", "table=1,cookie=6,in_port=2,actions=output:1"]);
        until("the station is learnt", || {
            a.send(&frame(1, 2));
            std::thread::sleep(std::time::Duration::from_millis(2));
            (learnt(&mut controller).len() == 2).then_some(())
        });
        switch.ctl(&["del-flows", "table=0"]);
        match controller.next() {
            (_, Message::FlowRemoved(removed)) => assert_eq!(removed.cookie, Cookie(5)),
            other => panic!("{other:?}"),
        }
        let left = learnt(&mut controller);
        assert_eq!(left.iter().map(|flow| flow.cookie).collect::<Vec<_>>(), [Cookie(6)]);
    }
    switch.keep([a, b]);
    switch.stop();
}

/// A flood of addresses at a full table: entries stay as they are, the rest is refused and counted,
/// and the agent answers.
#[test]
fn a_full_table_learns_no_more() {
    let switch = Switch::start(2, "workers = 2");
    let [mut a, b] = [1, 2].map(|port| switch.host(port));
    let mut controller = switch.controller(Version::V1_3);
    switch.ctl_ends(0, &["mod-table-features", "1", "--max-entries", "3"]);
    switch.ctl(&["add-flow", &SWITCHES.replace("send_flow_rem,", "")]);
    for round in 0..20 {
        for from in 1..=200 {
            a.send(&frame(from, round));
        }
    }
    until("entries are refused", || {
        a.send(&frame(200, 201));
        (switch.counter("datapath_learns_refused") > 0).then_some(())
    });
    controller.barrier();
    assert_eq!(learnt(&mut controller).len(), 3);
    switch.ctl(&["del-flows", "table=1"]);
    until("another one is learnt", || {
        a.send(&frame(200, 201));
        let learnt = learnt(&mut controller);
        learnt
            .iter()
            .any(|flow| flow.matching.exact(Field::EthDst) == Some(0x0200_0000_00c8))
            .then_some(())
    });
    switch.keep([a, b]);
    switch.stop();
}
