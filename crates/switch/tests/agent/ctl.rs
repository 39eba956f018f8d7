//! The commands of `weir ctl` that speak OpenFlow: each against a running switch, with bad input.

use std::fs;
use std::path::Path;
use std::thread;

use crate::harness::{Switch, ctl, ended_with, frame, until};

/// A file in the folder of the test.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The lines of an answer, each a JSON value.
fn values(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_of_flows_is_added_and_its_faults_are_reported_by_line() {
    let (switch, folder) = (Switch::start(2, ""), tempfile::tempdir().unwrap());
    let good = file(
        folder.path(),
        "good",
        "# two, and one that goes again\n\npriority=7,in_port=1,actions=output:2 # to the left\n\
         add priority=8,in_port=2,actions=output:1\nadd priority=9,ip,actions=drop\n\
         modify_strict priority=8,in_port=2,actions=drop\ndelete ip\n",
    );
    switch.ctl_ends(0, &["add-flows", &good]);
    let (out, _) = switch.ctl_ends(0, &["--json", "dump-flows", "--sort"]);
    let flows = values(&out);
    assert_eq!(flows.len(), 2, "{out}");
    assert_eq!((&flows[0]["priority"], &flows[1]["actions"]), (&7.into(), &"drop".into()));

    // What is not understood: nothing is sent.
    let bad = file(folder.path(), "bad", "actions=drop\npriority=1,colour=red,actions=drop\n");
    let (_, err) = switch.ctl_ends(1, &["add-flows", &bad]);
    let why = format!(
        "weir ctl: {bad}:2: column 12: unknown word `colour`\n  \
         priority=1,colour=red,actions=drop\n             ^\n"
    );
    assert_eq!(err, why);
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-flows"]).0.lines().count(), 2);

    // What the switch refuses: the others are carried out.
    let odd = file(
        folder.path(),
        "odd",
        "priority=1,actions=output:1\npriority=2,actions=group:9\npriority=3,actions=drop\n\
         table=255,actions=drop\n",
    );
    let (_, err) = switch.ctl_ends(1, &["add-flows", &odd]);
    assert!(
        err.contains(&format!(
            "{odd}:2: the switch refuses it: OFPBAC_BAD_OUT_GROUP ({})",
            openflow::Error::BadActionBadOutGroup.advice()
        )),
        "{err}"
    );
    assert!(
        err.contains(&format!("{odd}:4: the switch refuses it: OFPFMFC_BAD_TABLE_ID")),
        "{err}"
    );
    assert!(err.ends_with("\n2 of 4 refused\n"), "{err}");
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-flows"]).0.lines().count(), 4);
    let (_, err) = switch.ctl_ends(1, &["add-flows", "/nonexistent"]);
    assert!(err.contains("/nonexistent: cannot be read"), "{err}");
    switch.stop();
}

#[test]
fn faults_in_files_of_meters_and_groups_are_reported_by_line() {
    let (switch, folder) = (Switch::start(2, ""), tempfile::tempdir().unwrap());
    let band = "kbps,band=type=drop,rate=1000";
    let good = file(
        folder.path(),
        "meters",
        &format!("# two\nmeter=1,{band}\n\nmeter=2,{band} # the second\n"),
    );
    switch.ctl_ends(0, &["add-meters", &good]);
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-meters"]).0.lines().count(), 2);

    // What is not understood: nothing is sent.
    let bad = file(folder.path(), "bad", &format!("meter=3,{band}\nmeter=4,colour\n"));
    let (_, err) = switch.ctl_ends(1, &["add-meters", &bad]);
    assert!(err.contains(&format!("{bad}:2: column 9: unknown word `colour`")), "{err}");
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-meters"]).0.lines().count(), 2);

    // What the switch refuses: the others are carried out.
    let odd = file(folder.path(), "odd", &format!("meter=1,{band}\nmeter=5,{band}\n"));
    let (_, err) = switch.ctl_ends(1, &["add-meters", &odd]);
    assert!(
        err.contains(&format!("{odd}:1: the switch refuses it: OFPMMFC_METER_EXISTS")),
        "{err}"
    );
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-meters"]).0.lines().count(), 3);

    let groups = file(
        folder.path(),
        "groups",
        "group_id=1,type=all,bucket=output:1\ngroup_id=1,type=all,bucket=output:2\n",
    );
    let (_, err) = switch.ctl_ends(1, &["add-groups", &groups]);
    assert!(err.contains(&format!("{groups}:2: the switch refuses it: ")), "{err}");
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-groups"]).0.lines().count(), 1);
    switch.stop();
}

/// As `ovs-ofctl` takes them; the ports of a memory switch are called after their specs.
#[test]
fn ports_have_their_names_in_matches_and_actions() {
    let (switch, folder) = (Switch::start(2, ""), tempfile::tempdir().unwrap());
    let (out, _) = switch.ctl_ends(0, &["--json", "dump-ports-desc"]);
    let names: Vec<String> =
        values(&out).iter().map(|port| port["name"].as_str().unwrap().to_owned()).collect();
    let [one, two] = names.as_slice() else { panic!("{names:?}") };
    switch.ctl_ends(0, &["add-flow", &format!("priority=7,in_port={one},actions=output:{two}")]);
    let lines = format!("priority=8,in_port=\"{two}\",actions={one}\nactions=drop\n");
    switch.ctl_ends(0, &["add-flows", &file(folder.path(), "flows", &lines)]);
    let (out, _) = switch.ctl_ends(0, &["dump-flows", "--rsort"]);
    assert!(out.contains("priority=8,in_port=2 actions=output:1"), "{out}");
    assert!(out.contains("priority=7,in_port=1 actions=output:2"), "{out}");
    let named = [
        format!("priority=8,in_port={two} actions=output:{one}"),
        format!("priority=7,in_port={one} actions=output:{two}"),
    ];
    for arguments in [&["dump-flows", "--names"][..], &["dump-flows", "--names", "--sort"]] {
        let (out, _) = switch.ctl_ends(0, arguments);
        assert!(named.iter().all(|flow| out.contains(flow)), "{out}");
    }
    let (out, _) = switch.ctl_ends(0, &["dump-flows", "--names", "--no-names"]);
    assert!(out.contains("in_port=1 actions=output:2"), "{out}");
    let (out, _) =
        switch.ctl_ends(0, &["--json", "dump-flows", "--names", &format!("out_port={two}")]);
    assert_eq!(out.lines().count(), 1, "{out}");
    assert_eq!(values(&out)[0]["match"], "in_port=1", "values have numbers");
    let group = format!("group_id=1,type=all,bucket=output:{one},bucket={two}");
    switch.ctl_ends(0, &["add-group", &group]);
    let (out, _) = switch.ctl_ends(0, &["dump-groups", "--names"]);
    assert!(out.starts_with("OFPST_GROUP_DESC reply (OF1.3) (xid=0x"), "{out}");
    assert!(out.contains(&format!("type=all,bucket=actions=output:{one},bucket=")), "{out}");
    let (_, err) = switch.ctl_ends(1, &["add-flow", "actions=output:nobody"]);
    assert!(err.contains("`nobody` is not a port"), "{err}");
    switch.ctl_ends(0, &["del-flows", &format!("in_port={one}")]);
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-flows"]).0.lines().count(), 2);
    switch.stop();
}

#[test]
fn a_switch_that_cannot_list_its_ports_is_named() {
    let flow = "in_port=p1,actions=drop";
    let (code, _, err) = ctl(&["--control", "/nonexistent", "add-flow", flow]);
    assert_eq!(code, ended_with(3), "{err}");
    assert!(err.contains("`p1` is not a port"), "{err}");
    let why =
        "the switch could not be asked for its ports: no switch answers on the control socket";
    assert!(err.contains(why), "{err}");
    // What is no port is wrong whatever the switch says.
    let (code, _, err) = ctl(&["--control", "/nonexistent", "add-flow", "colour=1,actions=drop"]);
    assert!(code == ended_with(1) && !err.contains("asked for its ports"), "{err}");
}

#[test]
fn refusals_are_counted_beyond_those_that_are_listed() {
    let (switch, folder) = (Switch::start(1, ""), tempfile::tempdir().unwrap());
    let lines: String = (0..1_500).map(|n| format!("priority={n},actions=group:9\n")).collect();
    let flows = file(folder.path(), "flows", &(lines + "actions=drop\n"));
    let (_, err) = switch.ctl_ends(1, &["add-flows", &flows]);
    assert_eq!(err.matches("OFPBAC_BAD_OUT_GROUP").count(), 1_000);
    let total = "\n1500 of 1501 refused; the first 1000 are listed\n";
    assert!(err.ends_with(total), "{:?}", err.lines().last());
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-flows"]).0.lines().count(), 1);
    switch.stop();
}

#[test]
fn sets_of_flows_are_compared_and_replaced() {
    let (switch, other) = (Switch::start(2, ""), Switch::start(2, ""));
    let folder = tempfile::tempdir().unwrap();
    let wanted = file(
        folder.path(),
        "wanted",
        "priority=7,in_port=1,actions=output:2\ntcp,cookie=5,actions=mod_tp_dst:80,output:1\n",
    );
    switch.ctl_ends(0, &["add-flow", "priority=7,in_port=1,actions=output:1"]);
    switch.ctl_ends(0, &["add-flow", "table=3,arp,actions=drop"]);
    let (out, _) = switch.ctl_ends(2, &["diff-flows", &wanted]);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "+priority=7,in_port=1 actions=output:2",
            "+tcp cookie=0x5 actions=set_field:80->tcp_dst,output:1",
            "-priority=7,in_port=1 actions=output:1",
            "-table=3 arp actions=drop",
        ]
    );
    switch.ctl_ends(0, &["replace-flows", &wanted]);
    assert_eq!(switch.ctl_ends(0, &["diff-flows", &wanted]).0, "");
    // Flags are not compared, as by ovs-ofctl.
    let flagged = file(folder.path(), "flagged", "send_flow_rem,actions=drop\n");
    let plain = file(folder.path(), "plain", "actions=drop\n");
    assert_eq!(switch.ctl_ends(0, &["diff-flows", &flagged, &plain]).0, "");

    // Two files, two switches, and a switch that is not there.
    let empty = file(folder.path(), "empty", "");
    assert_eq!(switch.ctl_ends(2, &["diff-flows", &wanted, &empty]).0.lines().count(), 2);
    let place = |switch: &Switch| format!("unix:{}", switch.socket("of").display());
    let (one, two) = (place(&switch), place(&other));
    assert_eq!(switch.ctl_ends(2, &["diff-flows", &one, &two]).0.lines().count(), 2);
    other.ctl_ends(0, &["replace-flows", &wanted]);
    assert_eq!(switch.ctl_ends(0, &["diff-flows", &one, &two]).0, "");
    let (_, err) = switch.ctl_ends(3, &["diff-flows", &one, "unix:/nonexistent"]);
    assert!(err.contains("cannot connect to unix:/nonexistent"), "{err}");
    let (_, err) = switch.ctl_ends(1, &["diff-flows", &wanted, "/nonexistent"]);
    assert!(err.contains("cannot be read"), "{err}");
    let (_, err) = switch.ctl_ends(1, &["diff-flows", &one, "zzz:1"]);
    assert!(err.contains("is not an endpoint"), "{err}");

    // What is alike keeps its counters, unless all is added again.
    let deletes = file(folder.path(), "deletes", "delete ip\n");
    let (_, err) = switch.ctl_ends(1, &["replace-flows", &deletes]);
    assert!(err.contains("nothing but add"), "{err}");
    switch.ctl_ends(0, &["replace-flows", "--readd", &wanted]);
    switch.ctl_ends(0, &["replace-flows", &empty]);
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-flows"]).0, "");
    other.stop();
    switch.stop();
}

#[test]
fn any_switch_is_asked_over_its_own_endpoint() {
    let switch = Switch::start(2, "");
    let place = format!("unix:{}", switch.socket("of").display());
    let there = |arguments: &[&str]| ctl(&[&["--switch", &place], arguments].concat());
    for version in ["OpenFlow10", "OpenFlow13"] {
        for arguments in [
            &["add-flow", "in_port=1,actions=mod_dl_src:02:00:00:00:00:09,output:2"][..],
            &["dump-flows"],
            &["show"],
            &["probe"],
            &["dump-desc"],
            &["dump-tables"],
        ] {
            let (code, _, err) = there(&[&["-O", version], arguments].concat());
            assert_eq!(code, ended_with(0), "{version} {arguments:?}: {err}");
        }
    }
    let (_, out, _) = there(&["-O", "OpenFlow10", "dump-flows"]);
    assert!(out.starts_with("OFPST_FLOW reply (xid=0x2):\n"), "{out}");
    assert!(out.contains("in_port=1 actions=mod_dl_src:02:00:00:00:00:09,output:2"), "{out}");
    let (code, _, err) = there(&["workers"]);
    assert!(code == ended_with(1) && err.contains("ask our switch, by --control"), "{err}");
    let (code, _, err) = there(&["-O", "OpenFlow10", "dump-groups"]);
    assert!(code == ended_with(1) && err.contains("OpenFlow10 cannot say"), "{err}");
    let (code, _, err) = ctl(&["--switch", "tcp:127.0.0.1:1", "probe"]);
    assert!(code == ended_with(3) && err.contains("cannot connect to tcp:127.0.0.1:1"), "{err}");
    switch.stop();
}

#[test]
fn the_control_socket_brings_no_controller() {
    let switch = Switch::start(1, "protocols = [\"OpenFlow10\"]");
    let up = switch.counter("channel_up");
    // Whatever controllers may speak.
    switch.ctl_ends(0, &["add-group", "group_id=1,type=all,bucket=output:1"]);
    assert!(switch.ctl_ends(0, &["dump-groups"]).0.contains("(OF1.3)"));
    assert_eq!(switch.counter("channel_up"), up);
    let (out, _) = switch.ctl_ends(0, &["show"]);
    assert!(!out.contains("controller"), "{out}");
    let (out, _) = switch.ctl_ends(0, &["--json", "get-async"]);
    assert_eq!(values(&out)[0]["packet_in"], serde_json::json!([0, 0]));
    switch.stop();
}

#[test]
fn what_comes_by_itself_is_printed() {
    let switch = Switch::start(2, "");
    let mut host = switch.host(1);
    switch.ctl_ends(0, &["add-flow", "actions=controller:20"]);
    let path = switch.socket("ctl").display().to_string();
    let monitor = |arguments: &'static [&'static str]| {
        let path = path.clone();
        thread::spawn(move || ctl(&[&["--control", &path], arguments].concat()))
    };
    let text = monitor(&["monitor", "--count", "1"]);
    let json = monitor(&["monitor", "--count", "1", "--json", "1000", "invalid_ttl"]);
    until("packet-ins are seen", || {
        host.send(&frame(1));
        (text.is_finished() && json.is_finished()).then_some(())
    });
    let (code, out, err) = text.join().unwrap();
    assert_eq!(code, ended_with(0), "{err}");
    let mut lines = out.lines();
    let head = "OFPT_PACKET_IN (OF1.3) (xid=0x0): cookie=0x0 total_len=60 in_port=1 (via action)";
    assert!(lines.next().unwrap().starts_with(head), "{out}");
    assert!(lines.next().unwrap().starts_with("vlan_tci=0x0000,dl_src=02:"), "{out}");
    let value = values(&json.join().unwrap().1).remove(0);
    assert_eq!((&value["type"], &value["in_port"]), (&"packet_in".into(), &1.into()), "{value}");
    // The number of bytes is the switch's from now on.
    assert!(switch.ctl_ends(0, &["get-config"]).0.contains("miss_send_len=1000"));

    // A port's change and a removed entry, sent to this connection alone.
    let news = monitor(&["monitor", "--count", "2"]);
    until("news are seen", || {
        switch.ctl_ends(0, &["mod-port", "2", "no-flood"]);
        switch.ctl_ends(0, &["add-flow", "arp,send_flow_rem,actions=drop"]);
        switch.ctl_ends(0, &["del-flows", "arp"]);
        news.is_finished().then_some(())
    });
    let (_, out, err) = news.join().unwrap();
    let known =
        |line: &str| line.starts_with("OFPT_PORT_STATUS") || line.starts_with("OFPT_FLOW_REM");
    assert_eq!(out.lines().filter(|line| known(line)).count(), 2, "{out} {err}");
    for (arguments, why) in [
        (&["monitor", "watch:cookie=1"][..], "by cookie"),
        (&["monitor", "sideways"], "unknown word `sideways`"),
    ] {
        assert!(switch.ctl_ends(1, arguments).1.contains(why));
    }
    let (_, err) = switch.ctl_ends(4, &["--timeout", "1", "monitor"]);
    assert!(err.contains("the time is over"), "{err}");
    switch.stop();
}

#[test]
fn tables_are_shown_and_set() {
    let switch = Switch::start(1, "tables = 5");
    switch.ctl_ends(0, &["mod-table", "ALL", "controller"]);
    switch.ctl_ends(0, &["mod-table-features", "1", "--name", "acl", "--max-entries", "1"]);
    let (out, _) = switch.ctl_ends(0, &["--json", "dump-table-features"]);
    let tables = values(&out);
    assert_eq!((tables.len(), &tables[1]["name"]), (5, &"acl".into()));
    assert_eq!(tables[1]["max_entries"], 1);
    switch.ctl_ends(0, &["add-flow", "table=1,actions=drop"]);
    let (_, err) = switch.ctl_ends(1, &["add-flow", "table=1,ip,actions=drop"]);
    assert!(err.contains("OFPFMFC_TABLE_FULL"), "{err}");
    let (out, _) = switch.ctl_ends(0, &["dump-tables", "--used"]);
    assert!(out.contains("table 1:\n    active=1") && !out.contains("table 0"), "{out}");
    switch.ctl_ends(0, &["mod-table-features", "2", "--last"]);
    let (out, _) = switch.ctl_ends(0, &["--json", "dump-table-features"]);
    let tables = values(&out);
    let next = &tables[1]["properties"]["next tables (hit)"];
    assert_eq!((tables.len(), next), (3, &serde_json::json!(["2"])));
    let of_1_4 = |words: &[&'static str]| [&["-O", "OpenFlow14"], words].concat();
    switch.ctl_ends(0, &of_1_4(&["mod-table", "0", "evict"]));
    switch.ctl_ends(0, &of_1_4(&["mod-table", "0", "vacancy:20,80"]));
    let (out, _) = switch.ctl_ends(0, &of_1_4(&["dump-table-desc"]));
    let table = "table 0:\n   eviction=on eviction_flags=OTHER|IMPORTANCE|LIFETIME\n   vacancy=on \
                 vacancy_down=20% vacancy_up=80% vacancy=100%";
    assert!(out.contains(table), "{out}");
    for (arguments, why) in [
        (&["dump-table-features", "7"][..], "there is no table 7"),
        (&["mod-table-features", "7", "--name", "x"], "no table 7"),
        (&["mod-table-features", "0", "--max-entries", "4000000000"], "OFPTFFC_BAD_ARGUMENT"),
        (&["mod-table", "9", "drop"], "OFPTMFC_BAD_TABLE"),
        (&["-O", "OpenFlow14", "mod-table", "9", "evict"], "OFPTMFC_BAD_TABLE"),
        (&["mod-table", "0", "evict"], "need OpenFlow 1.4"),
        (&["mod-table", "x", "drop"], "table: column 1: `x` is not a number"),
        (&["dump-flows", "--sort=colour"], "cannot sort by"),
        (&["--json", "dump-flows", "--no-stats"], "--json has all values"),
        (&["dump-ports", "01"], "`01` begins with a zero: write 0x01 or 1"),
        (&["mod-port", "01", "down"], "`01` begins with a zero"),
        (&["queue-stats", "1", "05"], "`05` begins with a zero"),
        (&["monitor", "0128"], "`0128` begins with a zero"),
    ] {
        assert!(switch.ctl_ends(1, arguments).1.contains(why), "{arguments:?}");
    }
    switch.stop();
}

#[test]
fn groups_and_meters_are_shown_one_by_one() {
    let (switch, folder) = (Switch::start(2, ""), tempfile::tempdir().unwrap());
    let groups = file(
        folder.path(),
        "groups",
        "group_id=1,type=all,bucket=output:1\n# and\ngroup_id=2,type=indirect,bucket=output:2\n",
    );
    switch.ctl_ends(0, &["add-groups", &groups]);
    switch.ctl_ends(0, &["mod-group", "--may-create", "group_id=3,type=all,bucket=output:2"]);
    switch.ctl_ends(0, &["mod-group", "--may-create", "group_id=3,type=all,bucket=output:1"]);
    let (out, _) = switch.ctl_ends(0, &["dump-groups", "group_id=3"]);
    assert_eq!(out.lines().nth(1), Some(" group_id=3,type=all,bucket=actions=output:1"));
    assert_eq!(switch.ctl_ends(0, &["dump-groups"]).0.lines().count(), 4);
    assert_eq!(switch.ctl_ends(0, &["--json", "dump-group-stats", "2"]).0.lines().count(), 1);
    for meter in ["meter=1,kbps,band=type=drop,rate=1000", "meter=2,pktps,band=type=drop,rate=5"] {
        switch.ctl_ends(0, &["add-meter", meter]);
    }
    assert!(switch.ctl_ends(0, &["dump-meters", "2"]).0.contains("meter=2 pktps"));
    assert_eq!(switch.ctl_ends(0, &["--json", "meter-stats"]).0.lines().count(), 2);
    assert_eq!(switch.ctl_ends(0, &["--json", "meter-stats", "meter=1"]).0.lines().count(), 1);
    switch.ctl_ends(0, &["del-meter", "meter=1"]);
    let bad = file(folder.path(), "bad", "group_id=9,type=all\ngroup_id=8,type=round\n");
    for (arguments, why) in [
        (&["add-groups", &bad][..], "bad:2: column 17"),
        (&["add-groups", &groups], "groups:1: the switch refuses it: OFPGMFC_GROUP_EXISTS"),
        (&["dump-groups", "x"], "group: column 1"),
        (&["dump-meters", "1"], "OFPMMFC_UNKNOWN_METER"),
        (&["del-meters", "meter=x"], "meter: column 7"),
        (&["add-group", "group_id=4,type=all,bucket=mod_tp_dst:80"], "match tcp, udp or sctp"),
    ] {
        let (_, err) = switch.ctl_ends(1, arguments);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    switch.stop();
}

#[test]
fn settings_queues_and_echoes() {
    let queue = "queue = [\"1:5,min=30%,max=50%\"]\nrate = [\"1=100M\"]";
    let switch = Switch::start(2, queue);
    switch.ctl_ends(0, &["set-config", "--frags", "drop", "--miss-send-len", "99"]);
    let (out, _) = switch.ctl_ends(0, &["get-config"]);
    assert!(out.contains("frags=drop miss_send_len=99"), "{out}");
    switch.ctl_ends(0, &["set-frags", "reassemble"]);
    assert_eq!(switch.ctl_ends(0, &["get-frags"]).0, "reassemble\n");
    let (out, _) = switch.ctl_ends(0, &["queue-get-config", "1"]);
    assert!(out.contains("queue 5: min_rate:30.0% max_rate:50.0%"), "{out}");
    let (out, _) = switch.ctl_ends(0, &["--json", "queue-stats", "1", "5"]);
    assert_eq!(values(&out)[0]["queue_id"], 5);
    let (out, _) = switch.ctl_ends(0, &["-O", "OpenFlow10", "queue-get-config"]);
    assert_eq!(out.matches("OFPT_QUEUE_GET_CONFIG_REPLY").count(), 2, "{out}");
    switch.ctl_ends(0, &["probe"]);
    let (pings, _) = switch.ctl_ends(0, &["ping", "1000", "--count", "3"]);
    assert_eq!(pings.lines().filter(|line| line.ends_with(" us")).count(), 3, "{pings}");
    assert!(switch.ctl_ends(0, &["benchmark", "10", "20"]).0.contains("packets/s"));
    let (out, _) = switch.ctl_ends(0, &["dump-ports-desc", "2"]);
    assert!(out.contains("\n 2(") && !out.contains("\n 1("), "{out}");
    for (arguments, why) in [
        (&["set-config", "--frags", "glue"][..], "unknown mode"),
        (&["dump-ports-desc", "9"], "there is no port 9"),
        (&["dump-ports", "9"], "the switch refuses it"),
        (&["queue-stats", "1", "x"], "queue: column 1"),
        (&["ping", "70000"], "at most 65527 bytes"),
        (&["packet-out", "in_port=1,packet=00"], "actions= is missing"),
    ] {
        let (_, err) = switch.ctl_ends(1, arguments);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    switch.stop();
}
