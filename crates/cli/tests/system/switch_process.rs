//! `weir switch` and `weir ctl` as programs: the ready line, exit codes, signals, and a restart
//! after a kill.

use super::process::{Running, signal, text, until, weir};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A switch that has said that it is ready.
fn started(dir: &Path) -> Child {
    let (control, listen) = (dir.join("ctl"), format!("punix:{}/of", dir.display()));
    let mut child = weir(&["switch", "--port", "null:a", "--listen", &listen, "--control"])
        .arg(control)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let ready = lines.map(Result::unwrap).find(|line| line.contains("ready"));
    assert!(ready.is_some(), "the switch ended before it was ready");
    child
}

fn ctl(dir: &Path, arguments: &[&str]) -> Output {
    weir(&["ctl", "--control"]).arg(dir.join("ctl")).args(arguments).output().unwrap()
}

#[test]
fn signals_end_the_switch_well_and_unlink_its_sockets() {
    for name in ["TERM", "INT"] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = started(dir.path());
        assert!(ctl(dir.path(), &["show"]).status.success());
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn completion_asks_the_switch_of_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    let control = dir.path().join("ctl");
    let words = ["--", "weir", "ctl", "--control", control.to_str().unwrap(), "--bridge", ""];
    let shell = [("_WEIR_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", "5"), ("_CLAP_IFS", "\n")];
    let no_text = OsStr::from_bytes(b"\xff");
    let output = weir(&words).arg(no_text).envs(shell).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    signal(&child, "TERM");
    child.wait().unwrap();
    assert!(text.lines().any(|word| word == "br0"), "{text}");
}

#[test]
fn numbers_of_the_command_line_begin_with_no_zero() {
    for (words, both) in [
        (&["switch", "--workers", "04"][..], "`04` begins with a zero: write 4"),
        (&["switch", "--vlan", "1=access:010"], "write 10, or 8 if it is octal"),
        (&["switch", "--queue", "01:1"], "`01` begins with a zero"),
        (&["switch", "--queue", "1:01"], "`01` begins with a zero"),
        (&["switch", "--rate", "1=0100M"], "write 100, or 64 if it is octal"),
        (&["switch", "--max-memory", "0512M"], "write 512, or 330 if it is octal"),
        (&["switch", "--control", "none", "--port", "null:a?queues=01"], "`01` begins with a zero"),
        (&["ctl", "--timeout", "05", "show"], "`05` begins with a zero"),
        (&["controller", "hub", "--shards", "02"], "`02` begins with a zero"),
        (
            &["gen", "ping", "--port", "null:a", "--src=10.0.0.2", "--size", "0100", "10.0.0.1"],
            "`0100` begins with a zero: write 100, or 64 if it is octal",
        ),
        (&["lab", "run", "--starts", "03", "none"], "`03` begins with a zero"),
    ] {
        let mut running = Running::start(&mut weir(words));
        running.says(both);
        let status = until("the end", || running.child.try_wait().unwrap());
        assert!(!status.success(), "{words:?}");
    }
}

#[test]
fn words_from_outside_obey_no_terminal() {
    for (words, shown) in [
        (&["ctl", "add-flow", "actions=a\u{1b}[31mb"][..], "`a\\u001b[31mb`"),
        (&["switch", "--x\u{1b}[31m\u{7}"], "--x"),
    ] {
        let output = weir(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let is_plain = !text.contains(|letter: char| letter.is_control() && letter != '\n');
        assert!(text.contains(shown) && is_plain && !text.ends_with("\n\n"), "{text:?}");
    }
}

/// Reads the log up to a line with this text.
fn until_logged(log: &mut impl BufRead, text: &str) {
    let mut printed = String::new();
    while !printed.contains(text) {
        assert_ne!(log.read_line(&mut printed).unwrap(), 0, "the switch has ended: {printed}");
    }
}

#[test]
fn sighup_reloads_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (toml, control) = (dir.path().join("toml"), dir.path().join("ctl"));
    let write = |rest: &str| {
        let control = format!("control = \"{}\"\n", control.display());
        std::fs::write(&toml, control + rest).unwrap();
    };
    write("port = [\"1=null:a\"]\n");
    let mut switch = weir(&["switch", "--config"]);
    let mut child = switch.arg(&toml).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    until_logged(&mut log, "ready");
    write("port = [\"1=null:a\", \"2=null:b\"]\n");
    signal(&child, "HUP");
    until_logged(&mut log, "port added: 2=null:b");
    write("port = [\"1=null:a\"]\ntables = 3\n");
    signal(&child, "HUP");
    until_logged(&mut log, "toml:3:10: tables: cannot change");
    let shown = String::from_utf8(ctl(dir.path(), &["ports"]).stdout).unwrap();
    assert_eq!(shown.lines().count(), 2, "{shown}");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The value of a line of `/proc/PID/status`.
fn status(child: &Child, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse().unwrap()
}

fn open_files(child: &Child) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count()
}

/// Has the switch carry out rounds of what leaves nothing behind, and looks that it is so.
fn leaves_nothing(child: &mut Child, round: impl Fn(usize)) {
    (0..8).for_each(&round);
    let before = (open_files(child), status(child, "Threads"), status(child, "VmRSS"));
    (8..40).for_each(&round);
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let after = (open_files(child), status(child, "Threads"), status(child, "VmRSS"));
        // A memory port has 4 MiB of rings, and a thread that closed one ends after a while.
        if after.0 <= before.0 && after.1 <= before.1 + 1 && after.2 <= before.2 + 16_384 {
            break;
        }
        assert!(Instant::now() < end, "files, threads, KiB: {before:?} before, {after:?} after");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn ports_that_come_and_go_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    leaves_nothing(&mut child, |number| {
        for spec in [format!("memory:leaves-nothing-{number}"), "null:x".to_owned()] {
            let added = ctl(dir.path(), &["add-port", "br0", &format!("7={spec}")]);
            assert!(added.status.success(), "{added:?}");
            assert!(ctl(dir.path(), &["set-port", "br0", "7", "--rate", "1G"]).status.success());
            assert!(ctl(dir.path(), &["del-port", "br0", "7"]).status.success());
        }
    });
}

#[test]
fn bridges_that_come_and_go_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    let listen = format!("listen=punix:{}", dir.path().join("listens").display());
    leaves_nothing(&mut child, |number| {
        let port = format!("port=memory:bridges-leave-nothing-{number}");
        let options = ["dpid=77", &port, "port=null:x", &listen];
        let standalone = ["controller=tcp:127.0.0.1:1", "fail-mode=standalone"];
        let added = ctl(dir.path(), &[&["add-bridge", "more"], &options[..], &standalone].concat());
        assert!(added.status.success(), "{added:?}");
        let added = ctl(dir.path(), &["--bridge", "more", "add-flow", "actions=2"]);
        assert!(added.status.success(), "{added:?}");
        let gone = ctl(dir.path(), &["del-bridge", "more"]);
        assert!(gone.status.success(), "{gone:?}");
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "its sockets are gone");
}

#[test]
fn a_reload_from_a_pipe_without_a_writer_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let toml = dir.path().join("toml");
    let control = dir.path().join("ctl");
    let config = format!("control = \"{}\"\nport = [\"1=null:a\"]\n", control.display());
    std::fs::write(&toml, &config).unwrap();
    let mut switch = Running::start(weir(&["switch", "--config"]).arg(&toml));
    switch.says("ready");
    let make_pipe = || {
        std::fs::remove_file(&toml).unwrap();
        assert!(Command::new("mkfifo").arg(&toml).status().unwrap().success());
    };
    make_pipe();
    let mut reload = weir(&["ctl", "--control"]);
    reload.arg(&control).arg("reload").stderr(Stdio::piped());
    let mut hangs = reload.spawn().unwrap();
    while hangs.try_wait().unwrap().is_none() {
        for command in [&["add-port", "br0", "2=null:b"][..], &["del-port", "br0", "2"]] {
            let output = ctl(dir.path(), command);
            assert!(output.status.success(), "{output:?}");
        }
    }
    let printed = text(&hangs.wait_with_output().unwrap());
    assert!(printed.contains("not opened within 3 s; is it a pipe"), "{printed}");
    let printed = text(&reload.output().unwrap());
    assert!(printed.contains("an earlier attempt to open it still hangs"), "{printed}");
    // It ends when somebody writes, and then the file can be read again.
    std::fs::write(&toml, "").unwrap();
    std::fs::remove_file(&toml).unwrap();
    std::fs::write(&toml, &config).unwrap();
    until("a reload", || reload.output().unwrap().status.success().then_some(()));
    make_pipe();
    let mut hangs = reload.spawn().unwrap();
    signal(&switch.child, "TERM");
    assert_eq!(switch.child.wait().unwrap().code(), Some(0));
    hangs.wait().unwrap();
}

#[test]
fn clients_that_come_and_go_are_there_at_debug_level() {
    let dir = tempfile::tempdir().unwrap();
    let endpoint = format!("{}/of", dir.path().display());
    let listen = format!("punix:{endpoint}");
    let words = ["--log", "debug", "switch", "--control", "none", "--port", "null:a", "--listen"];
    let switch = Running::start(weir(&words).arg(listen));
    switch.says("ready");
    let asked = weir(&["ctl", "--switch"]).arg(format!("unix:{endpoint}")).arg("show").output();
    assert!(asked.unwrap().status.success());
    switch.says("disconnected");
    let lines = switch.lines();
    let about: Vec<_> = lines.iter().filter(|line| line.contains("connected")).collect();
    let is_fine = |line: &&String| line.contains("DEBUG") && line.contains("client=");
    assert!(about.len() == 2 && about.iter().all(is_fine), "{lines:?}");
}

/// Controllers that say hello and nothing more, as many as the kernel takes.
#[test]
fn idle_controllers_leave_descriptors_for_ctl() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let start = format!(
        "ulimit -n 160; exec \"$0\" switch --port null:a --control {place}/ctl \
         --listen punix:{place}/of"
    );
    let mut command = Command::new("sh");
    let switch = Running::start(command.args(["-c", &start, env!("CARGO_BIN_EXE_weir")]));
    switch.says("ready");
    let mut idle = Vec::new();
    for _ in 0..300 {
        let mut stream = UnixStream::connect(dir.path().join("of")).unwrap();
        // It may have been closed already.
        let _ = stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]);
        idle.push(stream);
    }
    for command in ["show", "dump-flows", "counters"] {
        let output = ctl(dir.path(), &[command]);
        assert!(output.status.success(), "{output:?}");
    }
    let added = ctl(dir.path(), &["add-port", "br0", "2=null:b"]);
    assert!(added.status.success(), "{added:?}");
}

#[test]
#[ignore = "needs root"]
fn a_second_switch_on_the_same_device_is_refused() {
    super::controller_apps::run(
        r#"
        cable v0 v1
        weir switch --port 1=af_packet:v0 --control /run/a 2>/run/first & first=$!
        within 30 grep -q ready /run/first
        refused() { if timeout 60 "$@" 2>/run/refused; then return 1; fi; }
        refused weir switch --port 7=af_packet:v0 --control /run/b
        grep "port 7: af_packet:v0 is a port of another switch" /run/refused
        grep "process $first (weir switch --port" /run/refused
        # What does not forward may look.
        weir gen capture --port af_packet:v0 --duration 1 /run/some.pcap
        weir switch --port 1=af_packet:v1 --control /run/b 2>/run/second &
        within 30 grep -q ready /run/second
        refused weir ctl --control /run/b add-port br0 af_packet:v0
        grep "process $first (weir switch --port" /run/refused
        kill -KILL $first
        within 30 weir ctl --control /run/b add-port br0 af_packet:v0
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn a_switch_of_root_keeps_few_capabilities() {
    super::controller_apps::run(
        r#"
        cable v0 v1
        cable w0 w1
        weir switch --port 1=af_packet:v0 --control /run/a 2>/run/log & switch=$!
        within 30 grep -q ready /run/log
        # What comes later has what it needs.
        weir ctl --control /run/a add-port br0 2=af_packet:w0
        weir ctl --control /run/a add-port br0 3=tap:later
        weir ctl --control /run/a add-bridge more dpid=2 listen=ptcp:653 port=tap:more
        weir ctl --control /run/a --bridge br0 ports >/run/ports
        if grep -E "no kernel tier|cannot" /run/ports /run/log | grep -v "not tap"; then exit 1; fi
        # NET_RAW, NET_ADMIN, BPF, PERFMON, NET_BIND_SERVICE, SYS_NICE, DAC_OVERRIDE; SYS_ADMIN on
        # demand.
        for status in /proc/$switch/task/*/status; do
            [ "$(sed -n 's/^CapEff:	//p' $status)" = 000000c000803402 ]
            [ "$(sed -n 's/^CapPrm:	//p' $status)" = 000000c000a03402 ]
            [ "$(sed -n 's/^CapInh:	//p' $status)" = 0000000000000000 ]
            [ "$(sed -n 's/^NoNewPrivs:	//p' $status)" = 1 ]
        done
        # A device that moves away is the same port there.
        ip netns add there
        ip link set later netns there
        ip -n there link set later up
        is_up() {
            weir ctl --control /run/a --bridge br0 --json ports | grep later |
                grep -q '"link_up":true'
        }
        within 30 is_up
        "#,
    );
}

#[test]
fn sighup_without_a_file_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    signal(&child, "HUP");
    let mut log = BufReader::new(child.stderr.take().unwrap());
    until_logged(&mut log, "started without --config");
    assert!(ctl(dir.path(), &["show"]).status.success());
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "its sockets are gone");
}

#[test]
fn the_script_for_the_suites_passes_fail_mode_and_back_off_on() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/peers/weir-dut.sh");
    let asked = |variables: &[(&str, &str)]| {
        let mut command = Command::new("bash");
        command.arg(script).env("WEIR", "echo").envs(variables.iter().copied());
        let output = command.env_remove("DUT_DIR").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = asked(&[]);
    assert!(
        printed.contains("--fail-mode secure") && !printed.contains("--max-backoff"),
        "{printed}"
    );
    let printed = asked(&[("DUT_FAIL_MODE", "standalone"), ("DUT_MAX_BACKOFF", "0.5")]);
    assert!(
        printed.contains("--fail-mode standalone") && printed.contains("--max-backoff 0.5"),
        "{printed}"
    );
    let words: Vec<_> = printed.split_whitespace().chain(["--check-config"]).collect();
    assert!(weir(&words).output().unwrap().status.success(), "the switch takes them: {printed}");
}

#[test]
fn a_killed_switch_does_not_block_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(ctl(dir.path(), &["show"]).status.code(), Some(3));
    let mut child = started(dir.path());
    assert!(ctl(dir.path(), &["add-flow", "actions=drop"]).status.success());
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_second_switch_on_a_live_socket_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    let second = weir(&["switch", "--port", "null:a", "--control"])
        .arg(dir.path().join("ctl"))
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(text.contains("--control"), "{text}");
    assert!(ctl(dir.path(), &["show"]).status.success());
    signal(&child, "TERM");
    child.wait().unwrap();
}

#[test]
fn exit_codes_of_refusal_and_of_wrong_usage_differ() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path());
    assert_eq!(ctl(dir.path(), &["dump-flows"]).status.code(), Some(0));
    assert_eq!(ctl(dir.path(), &["add-flow", "colour=red"]).status.code(), Some(1));
    assert_eq!(ctl(dir.path(), &["fly"]).status.code(), Some(2));
    signal(&child, "TERM");
    child.wait().unwrap();
    for (arguments, code, reason) in [
        (&["switch", "--fail-mode", "alone"][..], 2, "secure, standalone"),
        (&["switch", "--port", "nul:x"], 2, "unknown port kind"),
        (&["switch", "--port", "1=null:a", "--port", "1=null:b"], 1, "given twice"),
        (&["switch", "--tables", "255"], 1, "1 to 254"),
        (&["switch", "--config", "/none/such.toml"], 1, "/none/such.toml: cannot be read"),
        (&["switch", "--port", "null:a", "--check-config"], 0, "configuration is fine"),
        (&["--log", "a=b=c", "version"], 2, "--log"),
        (&["switch", "--port", "tap:sixteen-bytes-xx", "--check-config"], 2, "1 to 15 bytes"),
    ] {
        let output = weir(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(reason), "{arguments:?}: {text}");
    }
}

#[test]
fn a_controller_without_a_common_version_stands_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let listen = format!("punix:{}/of", dir.path().display());
    let mut child = weir(&["switch", "--port", "null:a", "--protocols", "OpenFlow13", "--listen"])
        .arg(listen)
        .args(["--control", "none"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("ready")));
    for _ in 0..20 {
        let mut stream = UnixStream::connect(dir.path().join("of")).unwrap();
        stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        // Closing with bytes unread is a reset for some; both are an end.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let line = lines.find(|line| line.contains("WARN")).unwrap();
    assert!(line.contains("no common version") && line.contains("OpenFlow13"), "{line}");
    signal(&child, "TERM");
    assert_eq!(lines.filter(|line| line.contains("no common version")).count(), 0, "logged once");
    child.wait().unwrap();
}

#[test]
fn ctl_reads_standard_input_and_a_monitor_ends_well_by_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let mut switch = started(dir.path());
    let piped = |arguments: &[&str]| {
        let mut command = weir(&["ctl", "--control"]);
        command.arg(dir.path().join("ctl")).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for command in ["add-flow", "add-flows", "mod-flows", "replace-flows"] {
        let mut child = piped(&[command, "-"]);
        let text = b"priority=1,actions=output:1\n# and\npriority=2,actions=drop\n";
        child.stdin.take().unwrap().write_all(text).unwrap();
        assert!(child.wait().unwrap().success(), "{command}");
        let out = ctl(dir.path(), &["--json", "dump-flows"]).stdout;
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 2, "{command}");
    }
    let mut child = piped(&["add-flow", "-"]);
    child.stdin.take().unwrap().write_all(b"actions=drop\nactions=fly\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("standard input:2: column 9"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let groups: [(&[u8], &str, usize); 2] = [
        (b"group_id=1,type=all\ngroup_id=2,type=round\n", "standard input:2: column 17", 0),
        (
            b"group_id=1,type=all,bucket=group:9\n\ngroup_id=2,type=all\n",
            "standard input:1: the switch refuses it",
            1,
        ),
    ];
    for (text, why, count) in groups {
        let mut child = piped(&["mod-group", "--may-create", "-"]);
        child.stdin.take().unwrap().write_all(text).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(why) && output.status.code() == Some(1), "{text}");
        let out = ctl(dir.path(), &["--json", "dump-groups"]).stdout;
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), count, "{why}");
    }

    let mut monitor = piped(&["monitor"]);
    let out = monitor.stdout.take().unwrap();
    let first = std::thread::spawn(move || {
        let (mut lines, mut line) = (BufReader::new(out), String::new());
        lines.read_line(&mut line).unwrap();
        // What comes later needs somebody who reads, too.
        (lines, line)
    });
    // What is reported again and again is seen once the monitor has begun.
    while !first.is_finished() {
        let frame = "ffffffffffff02000000001188b50001";
        assert!(ctl(dir.path(), &["packet-out", "1", "controller", frame]).status.success());
    }
    let (_lines, line) = first.join().unwrap();
    assert!(line.starts_with("OFPT_"), "{line}");
    signal(&monitor, "INT");
    assert_eq!(monitor.wait().unwrap().code(), Some(0));
    signal(&switch, "TERM");
    assert_eq!(switch.wait().unwrap().code(), Some(0));
}
