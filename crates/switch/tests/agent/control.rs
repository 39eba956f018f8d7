//! The control socket and `weir ctl`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::harness::{DEADLINE, Switch, frame};

#[test]
fn flows_groups_and_meters_are_added_dumped_and_deleted() {
    let switch = Switch::start(2, "");
    let done = |arguments: &[&str]| switch.ctl(arguments);
    done(&["add-flow", "table=1,priority=10,tcp,tp_dst=80,actions=output:2"]);
    done(&["add-flow", "in_port=1,actions=output:2"]);
    assert!(done(&["dump-flows"]).contains("tcp,tp_dst=80 actions=output:2"));
    assert_eq!(done(&["dump-flows", "table=1"]).lines().count(), 2);
    done(&["mod-flows", "in_port=1,actions=drop"]);
    assert!(done(&["dump-flows", "table=0"]).contains("actions=drop"));
    done(&["add-group", "group_id=4,type=all,bucket=actions=output:1"]);
    assert!(done(&["dump-groups"]).contains("group_id=4,type=all"));
    done(&["add-meter", "meter=3,kbps,band=type=drop,rate=1000"]);
    assert!(done(&["dump-meters"]).contains("meter=3"));
    assert!(done(&["dump-tables"]).contains("active=1"));
    assert!(done(&["dump-ports"]).contains("rx pkts=0"));
    done(&["del-meters"]);
    done(&["del-groups", "group_id=4"]);
    for list in ["dump-meters", "dump-groups"] {
        assert_eq!(done(&[list]).lines().count(), 1, "{list}");
        assert_eq!(done(&["--json", list]), "");
    }
    done(&["del-flows"]);
    assert_eq!(done(&["dump-flows"]).lines().count(), 1);
    switch.stop();
}

#[test]
fn ports_and_fragments_are_set_and_packets_sent() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(2);
    let done = |arguments: &[&str]| switch.ctl(arguments);
    let hex = testkit::hex::digits(&frame(7));
    done(&["packet-out", "CONTROLLER", "output:2", &hex]);
    assert_eq!(host.receive(), frame(7));
    done(&["mod-port", "2", "down"]);
    assert!(done(&["show"]).contains("PORT_DOWN"));
    done(&["mod-port", "2", "up"]);
    assert!(!done(&["show"]).contains("PORT_DOWN"));
    done(&["set-frags", "drop"]);
    done(&["add-flow", "in_port=1,actions=output:2"]);
    assert!(done(&["dump-aggregate"]).contains("flow_count=1"));
    assert!(done(&["dump-aggregate", "in_port=2"]).contains("flow_count=0"));
    assert!(done(&["dump-desc"]).contains("Manufacturer: Weir"));
    done(&["add-group", "group_id=4,type=all,bucket=actions=output:1"]);
    done(&["mod-group", "group_id=4,type=all,bucket=actions=output:2"]);
    assert!(done(&["dump-groups"]).contains("actions=output:2"));
    done(&["add-meter", "meter=3,kbps,band=type=drop,rate=1000"]);
    done(&["mod-meter", "meter=3,kbps,band=type=drop,rate=2000"]);
    assert!(done(&["dump-meters"]).contains("rate=2000"));
    for command in ["dump-queues", "group-features", "meter-features", "dump-desc"] {
        assert!(!done(&[command]).is_empty());
        assert!(switch.records(&[command]).iter().all(serde_json::Value::is_object), "{command}");
    }
    for (arguments, why) in [
        (&["mod-port", "9", "down"][..], "there is no port 9"),
        (&["mod-port", "2", "sideways"], "setting: unknown"),
        (&["set-frags", "glue"], "unknown mode"),
        (&["packet-out", "1", "group:9", &hex], "the switch refuses it"),
        (&["packet-out", "1", "output:2", "zz"], "hex digits"),
    ] {
        let (_, err) = switch.ctl_fails(arguments);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    switch.stop();
}

#[test]
fn what_is_refused_says_why_with_exit_code_1() {
    let switch = Switch::start(1, "tables = 3");
    for (arguments, why) in [
        (&["add-flow", "in_port=1"][..], "actions"),
        (&["add-flow", "colour=red,actions=drop"], "colour"),
        (&["add-flow", "table=9,actions=drop"], "OFPFMFC_BAD_TABLE_ID"),
        (&["dump-flows", "table=x"], "flow: column"),
        (&["add-group", "group_id=1,type=round,bucket=output:1"], "group: column"),
        (&["trace", "1", "abc"], "half a byte"),
        (&["trace", "1", "colour=red"], "frame: column"),
    ] {
        let (out, err) = switch.ctl_fails(arguments);
        assert!(out.is_empty(), "{arguments:?}");
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
}

#[test]
fn values_are_json_one_a_line() {
    let switch = Switch::start(1, "");
    switch.ctl(&["add-flow", "priority=7,actions=drop"]);
    for command in ["show", "dump-flows", "dump-ports", "counters"] {
        switch.records(&[command]);
    }
    let flow = &switch.records(&["dump-flows"])[0];
    assert_eq!((flow["priority"].as_u64(), flow["actions"].as_str()), (Some(7), Some("drop")));
}

#[test]
fn a_trace_says_where_a_packet_would_go_and_counts_nothing() {
    let switch = Switch::start(2, "");
    switch.ctl(&["add-flow", "in_port=1,actions=output:2"]);
    let hex = testkit::hex::digits(&frame(0));
    let desc = &switch.records(&["dump-ports-desc"])[0];
    let name = desc["name"].as_str().unwrap();
    let with_name = format!("in_port={name},tcp,nw_dst=10.0.0.1,tp_dst=80");
    let packet = "tcp,nw_dst=10.0.0.1,tp_dst=80";
    for (words, start) in [
        (&["trace", "1", &hex][..], "packet: in_port=1,"),
        (&["trace", name, &hex], "packet: in_port=1,"),
        (&["trace", "in_port=1", &hex], "packet: in_port=1,"),
        (&["trace", "1", packet], "packet: in_port=1,tcp,vlan_tci=0x0000,dl_src="),
        (&["trace", name, packet], "packet: in_port=1,tcp,vlan_tci=0x0000,dl_src="),
        (&["trace", &with_name], "packet: in_port=1,tcp,vlan_tci=0x0000,dl_src="),
    ] {
        let out = switch.ctl(words);
        assert!(
            out.starts_with(start) && out.contains("\noutput 2: unchanged"),
            "{words:?}: {out}"
        );
    }
    let value = &switch.records(&["trace", "1", &hex])[0];
    assert_eq!(value["verdicts"][0], format!("output 2: {hex}"));
    assert_eq!(value["frame"], *hex);
    let out = switch.ctl(&["dump-flows"]);
    assert!(out.contains("n_packets=0"), "{out}");
}

#[test]
fn a_trace_shows_what_changed_and_whether_a_drop_is_meant() {
    let switch = Switch::start(2, "");
    for entry in [
        "priority=3,in_port=1,tcp,actions=set_field:8080->tcp_dst,output:2",
        "priority=3,in_port=1,udp,actions=drop",
        "priority=3,in_port=1,icmp,actions=mod_nw_tos:4",
        "priority=3,in_port=1,sctp,actions=clear_actions",
    ] {
        switch.ctl(&["add-flow", entry]);
    }
    let meant = "drop no_output: The last entry sends it nowhere: the drop is meant.";
    for (packet, end) in [
        ("tcp,tp_dst=80", "tp_dst=8080,"),
        ("udp", meant),
        ("sctp", meant),
        ("icmp", "drop no_output: Its entries and its action set sent it nowhere."),
        ("arp", "drop no_match: No entry of a table matched"),
    ] {
        let out = switch.ctl(&["trace", &format!("in_port=1,{packet}")]);
        assert!(out.lines().last().unwrap().contains(end), "{packet}: {out}");
    }
    for (words, why) in [
        (&["trace", "tcp"][..], "write in_port=PORT in front of it"),
        (&["trace", "nosuch", "tcp"], "in_port: column 1"),
    ] {
        let (_, err) = switch.ctl_fails(words);
        assert!(err.contains(why), "{words:?}: {err}");
    }
}

#[test]
fn counters_are_those_that_count_each_with_its_meaning() {
    let switch = Switch::start(1, "");
    switch.ctl(&["add-flow", "actions=drop"]);
    let out = switch.ctl(&["counters"]);
    let line = out.lines().find(|line| line.starts_with("datapath_flows_added")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("1"));
    assert!(line.ends_with("Flow entries added."), "{line}");
    let counts = |text: &str| -> Vec<u64> {
        let count = |line: &str| line.split_whitespace().nth(1).unwrap().parse().unwrap();
        text.lines().skip(1).map(count).collect()
    };
    assert!(counts(&out).iter().all(|count| *count > 0), "{out}");
    let all = switch.ctl(&["counters", "--all"]);
    assert!(counts(&all).contains(&0) && counts(&all).len() > counts(&out).len(), "{all}");
    let records = switch.records(&["counters"]);
    assert_eq!(records.len(), counts(&all).len());
    assert!(records.iter().all(|record| record["help"].as_str().is_some_and(|it| !it.is_empty())));
    // The wait is ended by --timeout, whose exit code is 4.
    let (out, _) = switch.ctl_ends(4, &["--timeout", "3", "counters", "--watch"]);
    assert!(out.contains("per second") && out.contains("control_request"), "{out}");
}

#[test]
fn nobody_there_is_reported_with_exit_code_1() {
    let switch = Switch::start(1, "");
    std::fs::remove_file(switch.socket("ctl")).unwrap();
    let (_, err) = switch.ctl_fails(&["show"]);
    assert!(err.contains("no switch answers"), "{err}");
    assert!(err.contains("start weir switch, or name the socket of another by --control"), "{err}");
}

#[test]
fn one_connection_too_many_is_refused_with_the_reason() {
    let switch = Switch::start(1, "");
    let path = switch.socket("ctl");
    let held: Vec<_> = (0..32).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let (_, err) = switch.ctl_fails(&["show"]);
    assert!(err.contains("32 control connections are open"), "{err}");
    drop(held);
}

#[test]
fn hostile_lines_harm_nothing() {
    let switch = Switch::start(1, "");
    let path = switch.socket("ctl");
    let connect = || {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream
    };
    let nested = "[".repeat(100_000);
    for line in ["", "{", "null", "\u{0}\u{1}", "{\"command\":\"fly\"}", &nested] {
        let mut stream = connect();
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("refused"), "{line:.20}: {answer}");
    }
    let mut stream = connect();
    stream.write_all(&[0xff, 0xfe, b'\n']).unwrap();
    // A line without end: the switch closes, and writing fails at some point.
    let mut endless = connect();
    let chunk = vec![b'a'; 1 << 16];
    let refused = (0..1_000).any(|_| endless.write_all(&chunk).is_err());
    assert!(refused, "the switch took 64 MB of one line");
    // More connections than are served, all silent.
    let silent: Vec<UnixStream> = (0..100).map(|_| connect()).collect();
    drop(silent);
    crate::harness::until("the socket is free again", || switch.can_ctl(&["show"]).then_some(()));
    switch.assert_serves();
}
