//! Ports that come to a running switch and go from it: what controllers see, what becomes of
//! frames, that other ports keep their counts, and words that are wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::port::{PortReason, PortStats};
use openflow::{Action, Match, Message, PortNo, Version};

use crate::harness::{Controller, Host, Switch, add_flow, frame, from_to, until};

/// The next message, which must be the status of a port.
fn status(controller: &mut Controller) -> (PortReason, PortNo) {
    match controller.next() {
        (_, Message::PortStatus(status)) => (status.reason, status.desc.port_no),
        other => panic!("{other:?}"),
    }
}

fn port_stats(controller: &mut Controller) -> Vec<PortStats> {
    let body = MultipartRequestBody::PortStats(PortNo::ANY);
    match controller.multipart(body) {
        MultipartReplyBody::PortStats(all) => all,
        other => panic!("{other:?}"),
    }
}

fn packets(controller: &mut Controller, port: u32) -> (u64, u64) {
    let all = port_stats(controller);
    let found = all.iter().find(|stats| stats.port_no == PortNo(port)).unwrap();
    (found.rx_packets, found.tx_packets)
}

#[test]
fn a_port_comes_and_goes_while_others_forward() {
    for workers in [1, 3] {
        let switch = Switch::start(2, &format!("workers = {workers}"));
        let (mut one, mut two) = (switch.host(1), switch.host(2));
        let mut controller = switch.controller(Version::V1_3);
        controller.send(&from_to(1, 3));
        controller.send(&from_to(2, 1));
        controller.send(&from_to(3, 2));
        controller.barrier();
        one.send(&frame(0));
        until("no port 3 yet", || (switch.counter("drop_no_such_port") == 1).then_some(()));
        for round in 0..3_u8 {
            let name = format!("come-and-go-{workers}-{round}");
            let spec = format!("memory:{name}");
            let mut three = Host::open(&format!("{spec}?end=b"));
            let added = &switch.records(&["add-port", "br0", &spec])[0];
            assert_eq!(
                (added["port_no"].as_u64(), added["name"].as_str()),
                (Some(3), Some(&*name))
            );
            assert_eq!(status(&mut controller), (PortReason::Add, PortNo(3)));
            one.send(&frame(1));
            assert_eq!(three.receive(), frame(1));
            three.send(&frame(2));
            assert_eq!(two.receive(), frame(2));
            assert_eq!(packets(&mut controller, 3), (1, 1), "a new port counts from nothing");
            switch.ctl(&["del-port", "br0", if round == 0 { "3" } else { &name }]);
            assert_eq!(status(&mut controller), (PortReason::Delete, PortNo(3)));
            let dropped = switch.counter("drop_no_such_port");
            one.send(&frame(3));
            until("dropped", || (switch.counter("drop_no_such_port") > dropped).then_some(()));
            two.send(&frame(4));
            assert_eq!(one.receive(), frame(4));
            assert_eq!(three.received(), 0);
            let rounds = u64::from(round) + 1;
            assert_eq!(packets(&mut controller, 1), (1 + 2 * rounds, rounds));
            assert_eq!(port_stats(&mut controller).len(), 2);
        }
        switch.stop();
    }
}

/// Traffic of other ports goes on, in order and without loss, while a port comes and goes, at every
/// worker in turn.
#[test]
fn nothing_else_moves_under_traffic() {
    let switch = Switch::start(4, "workers = 2");
    let mut hosts: Vec<Host> = (1..=4).map(|port| switch.host(port)).collect();
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 3));
    controller.send(&from_to(4, 9));
    controller.barrier();
    let ended = Arc::new(AtomicBool::new(false));
    let (mut four, mut three) = (hosts.pop().unwrap(), hosts.pop().unwrap());
    let mut one = hosts.remove(0);
    let traffic = std::thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            let mut rounds = 0_u64;
            while !ended.load(Ordering::Relaxed) || rounds < 50 {
                // Frames to the port that comes and goes, by the other worker.
                for number in 0..16 {
                    four.send(&frame(200));
                    one.send(&frame(number));
                }
                for number in 0..16 {
                    assert_eq!(three.receive(), frame(number));
                }
                rounds += 1;
            }
            rounds
        }
    });
    let mut worker_of = Vec::new();
    for round in 0..60 {
        // The first two make a pair at the one worker, the third goes to the other.
        let _nine = Host::open(&format!("memory:moves-{round}-a?end=b"));
        for (number, name) in [(9, "a"), (10, "b"), (11, "c")] {
            let spec = format!("{number}=memory:moves-{round}-{name}");
            let added = switch.records(&["add-port", "br0", &spec]);
            worker_of.push(added[0]["worker"].as_u64().unwrap());
        }
        switch.ctl(&["del-port", "br0", "9"]);
        switch.ctl(&["del-port", "br0", "10"]);
        switch.ctl(&["del-port", "br0", "11"]);
    }
    ended.store(true, Ordering::Relaxed);
    let rounds = traffic.join().unwrap();
    assert!(worker_of.contains(&0) && worker_of.contains(&1), "{worker_of:?}");
    let ports = switch.records(&["ports"]);
    let places: Vec<(u64, u64)> = ports
        .iter()
        .map(|port| (port["port_no"].as_u64().unwrap(), port["worker"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(1, 0), (2, 0), (3, 1), (4, 1)]);
    until("each frame has left or is counted", || {
        let outputs = switch.counter("datapath_outputs");
        (outputs + switch.counter("datapath_drops") == rounds * 32).then_some(())
    });
    switch.stop();
}

#[test]
fn settings_of_a_new_port_hold() {
    let switch = Switch::start(1, "");
    let mut one = switch.host(1);
    let settings = ["--rate", "1G", "--queue", "1,min=30%", "--queue", "2", "--vlan", "access:7"];
    let mut two = Host::open("memory:set-up?end=b");
    switch.ctl(&[&["add-port", "br0", "memory:set-up"], &settings[..]].concat());
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo::NORMAL)]));
    controller.barrier();
    let queues = switch.ctl(&["queue-get-config", "2"]);
    assert!(queues.contains("queue 1") && queues.contains("queue 2"), "{queues}");
    let mut tagged = frame(1);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    one.send(&tagged);
    assert_eq!(two.receive()[..14], frame(1)[..14], "VLAN 7 leaves the access port untagged");
    // What was set goes with the port.
    switch.ctl(&["del-port", "br0", "2"]);
    let mut two = Host::open("memory:set-up-again?end=b");
    switch.ctl(&["add-port", "br0", "memory:set-up-again"]);
    one.send(&tagged);
    assert_eq!(two.receive(), tagged);
    assert!(!switch.ctl(&["queue-get-config", "2"]).contains("queue 1"));
    switch.stop();
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let switch = Switch::start(2, "");
    let before = switch.ctl(&["ports"]);
    let cases: &[(&[&str], &str)] = &[
        (&["add-port", "br0", "nul:x"], "unknown port kind \"nul\""),
        (&["add-port", "br0", "veth0"], "write kind:name"),
        (&["add-port", "br0", "1=null:x"], "port number 1 is taken"),
        (&["add-port", "br0", "0=null:x"], "port number \"0\" must be 1 to"),
        (&["add-port", "br0", "65281=null:x"], "highest that OpenFlow10 can say"),
        (&["add-port", "br0", "99999999999999999999=null:x"], "too large"),
        (&["add-port", "br1", "null:x"], "there is no bridge \"br1\": br0"),
        (&["add-port", "br0", "null:x?queues=nine"], "queues=\"nine\""),
        (&["add-port", "br0", "pcap:/no/such/file"], "/no/such/file"),
        (&["add-port", "br0", "null:x", "--rate", "fast"], "is no rate"),
        (&["add-port", "br0", "null:x", "--queue", "1"], "give it one"),
        (&["add-port", "br0", "null:x", "--queue", "1,min=x"], "is no queue"),
        (&["add-port", "br0", "null:x", "--vlan", "access:5000"], "vlan: "),
        (&["--bridge", "br7", "add-port", "br0", "null:x"], "are two; name one"),
        (&["del-port", "br0", "7"], "has no port \"7\"; it has: 1("),
        (&["del-port", "br0", ""], "has no port \"\""),
        (&["del-port", "br0", "4294967040"], "has no port"),
        (&["del-port", "br0", "LOCAL"], "has no port"),
    ];
    for (arguments, why) in cases {
        let (_, err) = switch.ctl_ends(1, arguments);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    let ports = switch.records(&["ports"]);
    let taken = ports[0]["spec"].as_str().unwrap();
    let (_, err) = switch.ctl_ends(1, &["add-port", "br0", taken]);
    assert!(err.contains("is the device of port 1 of bridge br0 already"), "{err}");
    assert_eq!(switch.ctl(&["ports"]), before);
    switch.assert_serves();
    switch.stop();
}

#[test]
fn ports_in_pairs_cannot_come_and_go() {
    let switch = Switch::wired(2, "forward = \"io\"");
    for command in [["add-port", "br0", "null:x"], ["del-port", "br0", "1"]] {
        let (_, err) = switch.ctl_ends(1, &command);
        assert!(err.contains("stand in pairs"), "{err}");
    }
    assert_eq!(switch.ctl(&["ports"]).lines().count(), 2);
    switch.stop();
}

/// More ports than are all polled, and back: every one of them is served all the time.
#[test]
fn many_ports_are_served_whatever_their_number() {
    let switch = Switch::start(1, "");
    let mut one = switch.host(1);
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo(1))]));
    controller.barrier();
    let mut hosts = Vec::new();
    for number in 2..=20_u8 {
        let spec = format!("{number}=memory:many-{number}");
        hosts.push((number, Host::open(&format!("memory:many-{number}?end=b"))));
        switch.ctl(&["add-port", "br0", &spec]);
        for (number, host) in &mut hosts {
            host.send(&frame(*number));
            assert_eq!(one.receive(), frame(*number));
        }
    }
    while let Some((number, _)) = hosts.pop() {
        switch.ctl(&["del-port", "br0", &number.to_string()]);
        for (number, host) in &mut hosts {
            host.send(&frame(*number));
            assert_eq!(one.receive(), frame(*number));
        }
    }
    switch.stop();
}

#[test]
fn settings_and_numbers_change_while_frames_pass() {
    let switch = Switch::start(2, "");
    let (mut one, mut two) = (switch.host(1), switch.host(2));
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.barrier();
    // So slow that frames wait in the queue, then without a rate: they leave in order.
    switch.ctl(&["set-port", "br0", "2", "--rate", "1k", "--queue", "1,min=30%"]);
    assert!(switch.ctl(&["queue-get-config", "2"]).contains("queue 1"));
    for number in 0..9 {
        one.send(&frame(number));
    }
    until("all are forwarded", || (switch.counter("datapath_outputs") == 9).then_some(()));
    switch.ctl(&["set-port", "br0", "2", "--queue", "2", "--queue", "3"]);
    let queues = switch.ctl(&["queue-get-config", "2"]);
    assert!(queues.contains("queue 2") && !queues.contains("queue 1"), "{queues}");
    switch.ctl(&["set-port", "br0", "2", "--rate", "none", "--queue", "none"]);
    for number in 0..9 {
        assert_eq!(two.receive(), frame(number));
    }
    let name = switch.records(&["ports"])[1]["name"].clone();
    let words = ["set-port", "br0", name.as_str().unwrap(), "--number", "7"];
    let set = &switch.records(&words)[0];
    assert_eq!((set["port_no"].as_u64(), &set["name"]), (Some(7), &name));
    assert_eq!(status(&mut controller), (PortReason::Delete, PortNo(2)));
    assert_eq!(status(&mut controller), (PortReason::Add, PortNo(7)));
    controller.send(&from_to(1, 7));
    controller.barrier();
    one.send(&frame(77));
    assert_eq!(two.receive(), frame(77));
    for (arguments, why) in [
        (&["set-port", "br0", "7"][..], "nothing to set"),
        (&["set-port", "br0", "7", "--number", "1"], "is taken"),
        (&["set-port", "br0", "7", "--number", "0"], "must be 1 to"),
        (&["set-port", "br0", "7", "--rate", "many"], "is no rate"),
        (&["set-port", "br0", "8", "--rate", "1M"], "has no port \"8\""),
    ] {
        let (_, err) = switch.ctl_ends(1, arguments);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    switch.stop();
}

const FILE: &str = "control = \"FOLDER/ctl\"\nlisten = [\"punix:FOLDER/of\"]\ndpid = \"a1\"\n";

#[test]
fn a_reload_applies_the_changes_of_the_file_only() {
    let names = ["reload-a", "reload-b", "reload-c", "reload-d"];
    let mut hosts = names.map(|name| Host::open(&format!("memory:{name}?end=b")));
    let file = |ports: &str| format!("{FILE}port = [{ports}]\n");
    let switch = Switch::of_file(&file("\"1=memory:reload-a\", \"2=memory:reload-b\""));
    let mut controller = switch.controller(Version::V1_3);
    for (from, to) in [(1, 3), (3, 1), (2, 1)] {
        controller.send(&from_to(from, to));
    }
    controller.barrier();
    hosts[1].send(&frame(1));
    assert_eq!(hosts[0].receive(), frame(1));
    assert_eq!(switch.ctl(&["reload"]), "", "nothing has changed");
    // By hand, and so of no concern to the file.
    switch.ctl(&["add-port", "br0", "9=memory:reload-d"]);
    assert_eq!(status(&mut controller), (PortReason::Add, PortNo(9)));
    switch.rewrite(&(file("\"1=memory:reload-a\", \"3=memory:reload-c\"") + "rate = [\"1=1G\"]\n"));
    let out = switch.ctl(&["reload"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "bridge br0: port removed: 2",
            "bridge br0: port added: 3=memory:reload-c",
            "bridge br0: port set: 1",
        ]
    );
    assert_eq!(status(&mut controller), (PortReason::Delete, PortNo(2)));
    assert_eq!(status(&mut controller), (PortReason::Add, PortNo(3)));
    hosts[0].send(&frame(2));
    assert_eq!(hosts[2].receive(), frame(2));
    hosts[2].send(&frame(3));
    assert_eq!(hosts[0].receive(), frame(3));
    assert_eq!(packets(&mut controller, 1), (1, 2), "its counts have stayed");
    let numbers: Vec<u32> = port_stats(&mut controller).iter().map(|s| s.port_no.0).collect();
    assert_eq!(numbers, [1, 3, 9]);
    // The same device in another way, which its other end does not allow: it is as it was.
    switch.rewrite(&file("\"1=memory:reload-a\", \"3=memory:reload-c?slots=64\""));
    for _ in 0..2 {
        let (_, err) = switch.ctl_ends(1, &["reload"]);
        assert!(err.contains("its device is open as before, 3=memory:reload-c"), "{err}");
        assert_eq!(status(&mut controller), (PortReason::Delete, PortNo(3)));
        assert_eq!(status(&mut controller), (PortReason::Add, PortNo(3)));
        hosts[2].send(&frame(4));
        assert_eq!(hosts[0].receive(), frame(4));
    }
    switch.rewrite(&file("\"1=memory:reload-a\", \"4=memory:reload-c\""));
    let out = switch.ctl(&["--json", "reload"]);
    assert_eq!(out.lines().count(), 2, "{out}");
    switch.stop();
}

#[test]
fn a_reload_that_cannot_be_applied_changes_nothing() {
    let file = |rest: &str| format!("{FILE}{rest}\n");
    let switch = Switch::of_file(&file("port = [\"1=null:a\", \"2=null:b\"]"));
    switch.ctl(&["add-port", "br0", "9=memory:not-reloaded"]);
    let before = switch.ctl(&["ports"]);
    for (rest, why) in [
        ("port = [\"1=null:a\"]\ntables = 3", "toml:5:10: tables: cannot change while"),
        ("port = [\"1=null:a\"]\ntabels = 3", "toml:5:1: tabels: unknown key"),
        ("port = [\"3=null:c\", \"nul:x\"]", "toml:4:"),
        ("port = [\"9=null:c\"]", "port number 9 was given by weir ctl add-port"),
        (
            "port = [\"3=null:c\", \"4=memory:not-reloaded\"]",
            "is the device of port 9 of bridge br0 already",
        ),
        ("port = [\"3=null:c\", \"4=pcap:/no/such/file\"]", "/no/such/file"),
        ("port = [\"3=null:c\"]\nqueue = [\"3:1\"]", "give it one"),
        ("workers = 2", "toml:4:11: workers: cannot change"),
        ("port = [", "toml:4:"),
    ] {
        switch.rewrite(&file(rest));
        let (out, err) = switch.ctl_ends(1, &["reload"]);
        assert!(err.contains(why) && out.is_empty(), "{rest}: {out} {err}");
        assert_eq!(switch.ctl(&["ports"]), before, "{rest}");
    }
    std::fs::remove_file(switch.socket("toml")).unwrap();
    let (_, err) = switch.ctl_ends(1, &["reload"]);
    assert!(err.contains("toml: cannot be read"), "{err}");
    switch.assert_serves();
    switch.stop();
    let switch = Switch::start(1, "");
    let (_, err) = switch.ctl_ends(1, &["reload"]);
    assert!(err.contains("started without a file"), "{err}");
    switch.stop();
}

/// The old controller is left, and the new one is connected to.
#[test]
fn a_reload_changes_controllers() {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    let folder = tempfile::tempdir().unwrap();
    let paths = ["old", "new"].map(|name| folder.path().join(name));
    let [old, new] = paths.each_ref().map(|path| UnixListener::bind(path).unwrap());
    let file = |path: &std::path::Path| {
        format!("control = \"FOLDER/ctl\"\ncontroller = [\"unix:{}\"]\n", path.display())
    };
    let switch = Switch::of_file(&file(&paths[0]));
    let (mut stream, _) = old.accept().unwrap();
    switch.rewrite(&file(&paths[1]));
    assert_eq!(switch.ctl(&["reload"]).lines().count(), 2);
    let (_fresh, _) = new.accept().unwrap();
    stream.set_read_timeout(Some(crate::harness::DEADLINE)).unwrap();
    // A hello, and the end.
    stream.read_to_end(&mut Vec::new()).unwrap();
    let shown = switch.ctl(&["list-bridges"]);
    assert!(shown.contains("new") && !shown.contains("old"), "{shown}");
    switch.stop();
}
