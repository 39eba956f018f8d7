//! Wire mode, and the report about the workers.

use openflow::Version;

use crate::harness::{Switch, add_flow, frame, until};

fn swapped(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], &frame[12..]].concat()
}

#[test]
fn pairs_of_ports_are_wires() {
    for (mode, change) in
        [("io", (|frame| frame.to_vec()) as fn(&[u8]) -> Vec<u8>), ("macswap", swapped)]
    {
        for workers in [1, 2] {
            let toml = format!("forward = \"{mode}\"\nworkers = {workers}");
            let switch = Switch::wired(4, &toml);
            let mut hosts: Vec<_> = (1..=4).map(|port| switch.host(port)).collect();
            for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
                for number in 0..100 {
                    hosts[from].send(&frame(number));
                }
                for number in 0..100 {
                    assert_eq!(hosts[to].receive(), change(&frame(number)), "{mode}");
                }
            }
            let states = switch.records(&["workers"]);
            assert_eq!(states.len(), workers);
            let sum = |key: &str| states.iter().map(|s| s[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!((sum("packets"), sum("sent")), (400, 400));
            let ports: usize = states.iter().map(|s| s["ports"].as_array().unwrap().len()).sum();
            assert_eq!(ports, 4);
            switch.stop();
        }
    }
}

#[test]
fn a_worker_sleeps_when_it_may_and_wakes() {
    let switch = Switch::wired(2, "forward = \"io\"");
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    let sleeps = || {
        let state = &switch.records(&["workers"])[0];
        let number = |key: &str| state[key].as_u64().unwrap();
        // No time is counted twice.
        assert!(number("idle_ns") + number("asleep_ns") <= number("lived_ns"), "{state}");
        number("sleeps")
    };
    for number in 0..20 {
        let before = sleeps();
        until("the worker sleeps", || (sleeps() > before).then_some(()));
        a.send(&frame(number));
        assert_eq!(b.receive(), frame(number));
    }
    switch.stop();
}

#[test]
fn a_busy_worker_never_sleeps_and_still_hears_of_the_end() {
    let switch = Switch::start(2, "poll = \"busy\"");
    let mut controller = switch.controller(Version::V1_3);
    let flow =
        add_flow(1, openflow::Match::any(), vec![openflow::Action::output(openflow::PortNo(2))]);
    controller.send(&flow);
    controller.barrier();
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    a.send(&frame(1));
    assert_eq!(b.receive(), frame(1));
    assert_eq!(switch.records(&["workers"])[0]["sleeps"], 0);
    drop(controller);
    switch.stop();
}

#[test]
fn tables_are_not_asked_for_on_a_wire() {
    let switch = Switch::wired(2, "forward = \"mac\"");
    let out = switch.ctl(&["show"]);
    assert!(out.contains("forward:mac"), "{out}");
    let (_, err) = switch.ctl_fails(&["add-flow", "actions=drop"]);
    assert!(err.contains("no flow tables"), "{err}");
    let error = switch::parse_config("forward = \"io\"\nlisten = [\"punix:/x\"]").unwrap_err();
    assert!(error.to_string().contains("no controller can be had"), "{error}");
}

#[test]
fn caches_are_switched_and_change_nothing() {
    let switch = Switch::start(2, "caches = \"exact\"\nworkers = 2");
    let mut controller = switch.controller(Version::V1_3);
    let matching = openflow::Match::any().with(openflow::Field::EthDst, 0x0200_0000_0002);
    controller.send(&add_flow(1, matching, vec![openflow::Action::output(openflow::PortNo(2))]));
    controller.barrier();
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    for set in ["frame", "off", "key", "frame,key"] {
        let answers = switch.records(&["caches", set]);
        assert!(answers.len() == 2 && answers.iter().all(|it| it["in_use"] == set), "{answers:?}");
        for number in 0..50 {
            a.send(&frame(number));
            assert_eq!(b.receive(), frame(number));
        }
    }
    let (_, err) = switch.ctl_fails(&["caches", "all"]);
    assert!(err.contains("unknown cache"), "{err}");
    let out = switch.ctl(&["dump-flows"]);
    assert!(out.contains("n_packets=200"), "{out}");
    switch.stop();
}
