//! Bridges that come to a running switch and go from it: that other bridges notice nothing, what
//! controllers see, that nothing is left, and words that are wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use openflow::{Action, Field, Match, Message, PortNo, Version};

use crate::harness::{Controller, DEADLINE, Host, Switch, add_flow, frame, from_to};

fn names(switch: &Switch) -> Vec<String> {
    let listed = switch.records(&["list-bridges"]);
    listed.iter().map(|bridge| bridge["name"].as_str().unwrap().to_owned()).collect()
}

/// The option of a bridge that listens at the socket of this name.
fn listens(switch: &Switch, socket: &str) -> String {
    format!("listen=punix:{}", switch.socket(socket).display())
}

/// Joins two ports of a bridge, and forwards between them.
fn join(controller: &mut Controller, hosts: &mut [Host; 2]) {
    for (from, to) in [(1, 2), (2, 1)] {
        controller.send(&from_to(from, to));
    }
    controller.barrier();
    let [one, two] = hosts;
    one.send(&frame(1));
    assert_eq!(two.receive(), frame(1));
    two.send(&frame(2));
    assert_eq!(one.receive(), frame(2));
}

#[test]
fn a_bridge_comes_and_goes_while_another_forwards() {
    for workers in [1, 2] {
        let switch = Switch::start(2, &format!("workers = {workers}"));
        let (mut one, mut two) = (switch.host(1), switch.host(2));
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 2));
        controller.barrier();
        let ended = Arc::new(AtomicBool::new(false));
        let traffic = std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || {
                let mut frames = 0_u64;
                while !ended.load(Ordering::Relaxed) || frames < 64 {
                    one.send(&frame(frames as u8));
                    assert_eq!(two.receive(), frame(frames as u8));
                    frames += 1;
                }
                (frames, one, two)
            }
        });
        for round in 0..6 {
            let specs = ["a", "b"].map(|end| format!("memory:comes-{workers}-{}{end}", round % 2));
            let mut hosts = specs.each_ref().map(|spec| Host::open(&format!("{spec}?end=b")));
            let listen = listens(&switch, "other");
            let [first, second] = specs.each_ref().map(|spec| format!("port={spec}"));
            let options = [&*first, &second, &listen, "dpid=b2"];
            let added = switch.records(&[&["add-bridge", "other"], &options[..]].concat());
            assert_eq!(added[0]["dpid"].as_str(), Some("00000000000000b2"));
            assert_eq!(names(&switch), ["br0", "other"]);
            let mut its = switch.controller_at("other", Version::V1_3);
            join(&mut its, &mut hosts);
            assert_eq!(switch.counter_of("other", "datapath_outputs"), 2);
            let why = switch.ctl_ends(1, &["ports"]).1;
            assert!(why.contains("has 2 bridges; name one by --bridge: br0, other"), "{why}");
            switch.ctl(&["del-bridge", "other"]);
            // The end, and no port that goes before it.
            assert_eq!(its.closed(), Vec::<Vec<u8>>::new());
            assert!(!switch.socket("other").exists(), "nobody listens there");
            assert_eq!(names(&switch), ["br0"]);
            hosts[0].send(&frame(3));
            assert_eq!(hosts[1].received(), 0);
        }
        ended.store(true, Ordering::Relaxed);
        let (frames, _one, _two) = traffic.join().unwrap();
        assert_eq!(switch.counter("datapath_outputs"), frames);
        controller.barrier();
        switch.stop();
    }
}

/// Each worker may get a port of a bridge that comes without any; its entries are at all of them.
#[test]
fn a_bridge_that_comes_empty_takes_ports_later() {
    let switch = Switch::start(2, "workers = 2");
    let listen = listens(&switch, "later");
    switch.ctl(&["add-bridge", "later", "dpid=7", &listen]);
    let mut controller = switch.controller_at("later", Version::V1_3);
    controller.send(&from_to(1, 3));
    controller.barrier();
    let mut workers = Vec::new();
    let mut hosts: Vec<Host> = (1..=3)
        .map(|number| {
            let spec = format!("memory:comes-empty-{number}");
            let host = Host::open(&format!("{spec}?end=b"));
            let added = switch.records(&["add-port", "later", &spec]);
            workers.push(added[0]["worker"].as_u64().unwrap());
            assert!(matches!(controller.next().1, Message::PortStatus(_)));
            host
        })
        .collect();
    assert_eq!(workers, [0, 0, 1]);
    hosts[0].send(&frame(9));
    assert_eq!(hosts[2].receive(), frame(9), "from one worker to the other");
    switch.ctl(&["del-bridge", "later"]);
    switch.stop();
}

/// Also the bridge that the switch began with, and the last one.
#[test]
fn any_bridge_may_go() {
    let switch = Switch::start(2, "");
    let _first = switch.controller(Version::V1_3);
    let listen = listens(&switch, "second");
    let specs = ["memory:second-a", "memory:second-b"];
    let mut hosts = specs.map(|spec| Host::open(&format!("{spec}?end=b")));
    let [a, b] = specs.map(|spec| format!("port={spec}"));
    switch.ctl(&["del-bridge", "br0"]);
    assert!(names(&switch).is_empty());
    let (_, why) = switch.ctl_ends(1, &["ports"]);
    assert!(why.contains("the switch has no bridge; add one by weir ctl add-bridge"), "{why}");
    switch.ctl(&["add-bridge", "second", &listen, &a, &b]);
    assert_eq!(names(&switch), ["second"]);
    let mut controller = switch.controller_at("second", Version::V1_3);
    join(&mut controller, &mut hosts);
    assert_eq!(switch.counter("datapath_outputs"), 2, "it is the only one");
    switch.stop();
}

/// Many entries, a connection that asks for all of them, and one of the control socket: all end.
#[test]
fn a_busy_bridge_goes_at_once() {
    let switch = Switch::start(2, "workers = 2");
    let listen = listens(&switch, "busy");
    for _ in 0..4 {
        switch.ctl(&["add-bridge", "busy", "dpid=9", &listen]);
        let mut controller = switch.controller_at("busy", Version::V1_3);
        for number in 0..5_000_u32 {
            let matching = Match::any().with(Field::InPort, (number + 1).into());
            controller.send(&add_flow(1, matching, vec![Action::output(PortNo(1))]));
        }
        controller.barrier();
        let body = openflow::message::MultipartRequestBody::PortStats(PortNo::ANY);
        let request = openflow::message::MultipartRequest { more: false, body };
        for _ in 0..64 {
            controller.send(&Message::MultipartRequest(request.clone()));
        }
        let begun = Instant::now();
        switch.ctl(&["del-bridge", "busy"]);
        assert!(begun.elapsed() < DEADLINE);
        // Whole messages, and the end.
        controller.closed().iter().for_each(|frame| drop(wire::decode(frame).unwrap()));
    }
    switch.assert_serves();
    switch.stop();
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let switch = Switch::start(2, "");
    let device = "memory:refused-bridge";
    switch.ctl(&["add-port", "br0", device]);
    let listen = listens(&switch, "of");
    let held = format!("port={device}");
    let before = (names(&switch), switch.ctl(&["ports"]));
    for (name, options, why) in [
        ("br0", &["dpid=5"][..], "there is a bridge of this name already"),
        ("x", &["dpid=a1"], "00000000000000a1 is the datapath id of bridge br0"),
        ("x", &[&held], "is the device of port 3 of bridge br0 already"),
        ("x", &["port=tap:t", "port=tap:t"], "t is another port's device already"),
        ("x", &["port=nul:x"], "unknown port kind \"nul\""),
        ("x", &["port=pcap:/no/such/file"], "/no/such/file"),
        ("x", &["port=memory:refused-other", "port=pcap:/no/such/file"], "/no/such"),
        ("x", &["port=null:q", "queue=1:1"], "give it one"),
        ("x", &[&listen], "the address is in use"),
        ("x", &["controller=ssl:192.0.2.1"], "TLS needs private-key"),
        ("x", &["forward=io", "port=null:x"], "comes with a new start only"),
        ("x", &["workers=2"], "workers is of the whole switch, not of a bridge"),
        ("x", &["config=f"], "config is of the whole switch, not of a bridge"),
        ("x", &["name=y"], "name=y and the bridge x are two"),
        ("x", &["tabels=2"], "unexpected argument '--tabels' found"),
        ("x", &["tables=0"], "must be 1 to 254"),
        ("x", &["help"], "unexpected argument '--help' found"),
        ("x", &["dpid"], "a value is required for '--dpid"),
        ("", &[], "a bridge needs a name"),
    ] {
        let words = [&["add-bridge", name], options].concat();
        let (out, err) = switch.ctl_ends(1, &words);
        assert!(err.contains(why) && out.is_empty(), "{words:?}: {out} {err}");
        assert_eq!((names(&switch), switch.ctl(&["ports"])), before, "{words:?}");
    }
    let (_, err) = switch.ctl_ends(1, &["del-bridge", "y"]);
    assert!(err.contains("there is no bridge \"y\": br0"), "{err}");
    // What was opened for those that were refused is free again.
    let _host = Host::open("memory:refused-other?end=b");
    switch.ctl(&["add-bridge", "x", "port=memory:refused-other"]);
    switch.assert_serves();
    switch.stop();
}

#[test]
fn a_reload_adds_and_removes_bridges_of_the_file_only() {
    let table = |name: &str, dpid: u32, rest: &str| {
        format!(
            "[[bridge]]\nname = \"{name}\"\ndpid = \"{dpid}\"\n\
             listen = [\"punix:FOLDER/{name}\"]\n{rest}\n"
        )
    };
    let file = |tables: &[String]| format!("control = \"FOLDER/ctl\"\n{}", tables.concat());
    let a = table("a", 1, "port = [\"memory:reloaded-a\", \"memory:reloaded-b\"]");
    let c = table(
        "c",
        3,
        "port = [\"memory:reloaded-c\", \"memory:reloaded-d\"]\nvlan = [\"1=trunk\"]",
    );
    let mut hosts = ["a", "b"].map(|end| Host::open(&format!("memory:reloaded-{end}?end=b")));
    let mut others = ["c", "d"].map(|end| Host::open(&format!("memory:reloaded-{end}?end=b")));
    let switch = Switch::of_file(&file(&[a.clone(), table("b", 2, "")]));
    switch.ctl(&["add-bridge", "own", "dpid=9"]);
    let mut stays = switch.controller_at("a", Version::V1_3);
    join(&mut stays, &mut hosts);
    let mut goes = switch.controller_at("b", Version::V1_3);
    switch.rewrite(&file(&[c.clone(), a.clone()]));
    let out = switch.ctl(&["reload"]);
    assert_eq!(out.lines().collect::<Vec<_>>(), ["bridge b: removed", "bridge c: added"]);
    assert!(goes.closed().is_empty());
    assert_eq!(names(&switch), ["a", "own", "c"]);
    join(&mut stays, &mut hosts);
    assert_eq!(switch.counter_of("a", "datapath_outputs"), 4, "its counts have stayed");
    join(&mut switch.controller_at("c", Version::V1_3), &mut others);
    assert_eq!(switch.ctl(&["reload"]), "");
    let before = switch.ctl(&["list-bridges"]);
    let wire = "[[bridge]]\nname = \"d\"\ndpid = \"5\"\nforward = \"io\"\n".to_owned();
    for (tables, why) in [
        (&[a.clone(), table("own", 5, "")][..], "bridge own: there is a bridge of this name"),
        (&[a.clone(), table("d", 1, "")], "1 is bridge a's too"),
        (&[a.clone(), table("d", 9, "")], "9 is the datapath id of bridge own"),
        (&[a.clone(), table("d", 5, "port = [\"memory:reloaded-a\"]")], "is bridge a's too"),
        (&[a.clone(), wire], "forward: a bridge without tables"),
        (&[a.clone(), table("d", 5, ""), table("e", 6, "port = [\"pcap:/no/file\"]")], "/no/file"),
    ] {
        switch.rewrite(&file(tables));
        let (out, err) = switch.ctl_ends(1, &["reload"]);
        assert!(err.contains(why) && out.is_empty(), "{tables:?}: {out} {err}");
        assert!(!switch.socket("d").exists(), "{why}");
        assert_eq!(switch.ctl(&["list-bridges"]), before, "{why}");
    }
    // One that was taken away by hand: it goes from the file without a word, or stays away.
    switch.ctl(&["del-bridge", "c"]);
    switch.rewrite(&file(&[a.clone(), c.clone()]));
    assert_eq!(switch.ctl(&["reload"]), "");
    assert_eq!(names(&switch), ["a", "own"]);
    switch.rewrite(&file(&[a]));
    assert_eq!(switch.ctl(&["reload"]), "");
    switch.rewrite(&file(&[c]));
    let out = switch.ctl(&["reload"]);
    assert_eq!(out.lines().collect::<Vec<_>>(), ["bridge a: removed", "bridge c: added"]);
    switch.stop();
}
