//! `weir gen run`, `flood`, `ping` and `capture` as processes: what they print, what they leave in
//! files, their exit codes, and Ctrl-C.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The two ends of a cable in memory.
const CABLE: [&str; 4] = ["--port", "memory:cable?end=a", "--port", "memory:cable?end=b"];

fn weir_gen(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("gen").args(arguments).stdin(Stdio::null());
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn output(arguments: &[&str]) -> Output {
    weir_gen(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON line on standard output of a run that ended with `code`.
fn report(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stdout)))
}

fn profile(folder: &Path, text: &str) -> String {
    let file = folder.join("profile.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_profile_is_sent_whole_and_every_frame_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = profile(
        folder.path(),
        "[[streams]]\nname = 'there'\nrate = '20kpps'\nmode = { burst = 1000 }\nsize = 128\n\
         [[streams]]\nname = 'back'\nport = 1\nrate = '10kpps'\nmode = { burst = 500 }\n",
    );
    let arguments = ["run", &file, "--json", "--quiet", "--max-loss", "0"];
    let report = report(&output(&[&arguments[..], &CABLE[..]].concat()), 0);
    assert_eq!((&report["interrupted"], &report["loss_percent"]), (&false.into(), &0.0.into()));
    let counts = |port: usize, side: &str| {
        let counts = &report["statistics"]["ports"][port][side];
        (counts["packets"].as_u64().unwrap(), counts["bytes"].as_u64().unwrap())
    };
    assert_eq!((counts(0, "tx"), counts(0, "rx")), ((1000, 128_000), (500, 32_000)));
    assert_eq!((counts(1, "tx"), counts(1, "rx")), ((500, 32_000), (1000, 128_000)));
    let streams = report["statistics"]["streams"].as_array().unwrap();
    let stated: Vec<(&str, u64, u64)> = streams
        .iter()
        .map(|stream| {
            let number = |value: &Value| value.as_u64().unwrap();
            let arrived = number(&stream["arrivals"][0]["report"]["received"]);
            let name = stream["name"].as_str().unwrap();
            (name, number(&stream["sent"]), arrived + number(&stream["lost"]))
        })
        .collect();
    assert_eq!(stated, [("there", 1000, 1000), ("back", 500, 500)]);
}

#[test]
fn more_loss_than_allowed_is_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[streams]]\nrate = '10kpps'\nmode = { burst = 100 }\n";
    let file = profile(folder.path(), text);
    let arguments = ["run", &file, "--json", "--quiet", "--drain", "0", "--port", "null:"];
    assert_eq!(report(&output(&arguments), 0)["loss_percent"], 100.0);
    let strict = output(&[&arguments[..], &["--max-loss", "0.1"]].concat());
    assert_eq!(report(&strict, 1)["loss_percent"], 100.0);
}

#[test]
fn mistakes_are_named_and_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &str, expected: &str| {
        let file = profile(folder.path(), words);
        let output = output(&["run", &file, "--port", "null:", "--duration", "1"]);
        let answer = self::text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {answer}");
        assert!(answer.contains(expected) && output.stdout.is_empty(), "{words}: {answer}");
    };
    refused("[[streams]]\nname = 'x'\nsize = 63", "64");
    refused("[[streams]]\nrat = '1pps'", "`rate`");
    refused("[[streams]]\nname = 'x'\nport = 1", "stream \"x\", port: 1");
    refused("[[streams]]\nname = 'x'\npacket = 'eth/ipx'", "ipv4");
    refused("", "missing field `streams`");
    refused("streams = []", "line 1, column 11");
    refused("[[streams]]\nname = 'x'\nself_start = false", "self_start: false");
    refused("[[streams]]\nname = \"\\u001b[31m\"", "control characters");
    let output = output(&["run", "no-such-file.toml", "--port", "null:"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no-such-file.toml"), "{}", text(&output.stderr));
}

#[test]
fn a_signal_ends_the_load_and_not_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = profile(folder.path(), "[[streams]]\nrate = '1kpps'\n");
    let arguments = ["run", &file, "--json"];
    let mut command = weir_gen(&[&arguments[..], &CABLE[..]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first line of progress: it sends.
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("sent"), "{line}");
    interrupt(&child);
    let report = report(&child.wait_with_output().unwrap(), 130);
    assert_eq!(report["interrupted"], true);
    assert!(report["statistics"]["ports"][0]["tx"]["packets"].as_u64().unwrap() > 0);
}

/// The defect of exit code 0 for Ctrl-C while frames in flight were waited for.
#[test]
fn a_signal_in_the_drain_ends_it_and_is_reported() {
    let arguments = ["flood", "--rate", "100pps", "--duration", "1.2", "--drain", "3600"];
    let mut command = weir_gen(&[&arguments[..], &CABLE[..]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("1 s"), "{line}");
    // All has left by now; where a stall held it back, the signal says 130 all the same.
    std::thread::sleep(std::time::Duration::from_secs(2));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{printed}");
    assert!(printed.contains("interrupted"), "{printed}");
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_flood_is_limited_by_its_rate_and_its_time() {
    let common = ["flood", "--port", "null:", "--duration", "0.2", "--json", "--quiet"];
    let most = report(&output(&common), 0);
    let sent = |report: &Value| report["statistics"]["ports"][0]["tx"]["packets"].as_u64().unwrap();
    assert!(sent(&most) > 0, "{most}");
    let slow = report(&output(&[&common[..], &["--rate", "1kpps"]].concat()), 0);
    assert_eq!(sent(&slow), 200, "{slow}");
}

#[test]
fn requests_that_the_port_does_not_take_are_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody takes frames at the other end.
    let port = format!("memory:{}?end=a&slots=4", folder.path().join("wire").display());
    let numbers = ["--count", "6", "--interval", "0", "--timeout", "0"];
    let hosts = ["--src", "10.0.0.1", "--dst-mac", "02:00:00:00:00:02", "10.0.0.2"];
    let command = [&["ping", "--port", &port][..], &numbers, &hosts].concat();
    let answer = report(&output(&[&command[..], &["--json"]].concat()), 1);
    assert_eq!((&answer["transmitted"], &answer["unsent"]), (&4.into(), &2.into()), "{answer}");
    let people = text(&output(&command).stdout);
    let summary = "4 packets transmitted, 2 unsent, 0 received, 100% packet loss";
    assert!(people.contains(summary), "{people}");
}

#[test]
fn a_capture_has_the_frames_that_the_filter_describes() {
    let folder = tempfile::tempdir().unwrap();
    let wire = folder.path().join("wire");
    let file = folder.path().join("echo.pcapng");
    let end = |end: &str| format!("memory:{}?end={end}", wire.display());
    let (a, b) = (end("a"), end("b"));
    let mut command = weir_gen(&[
        "capture",
        "--port",
        &b,
        "--filter",
        "icmp,nw_dst=10.0.0.2",
        "--bytes",
        "0=020000000002",
        "--count",
        "3",
        "--duration",
        "60",
        "--json",
    ]);
    command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("capturing on memory:"), "{line}");
    let ping = output(&[
        "ping",
        "--port",
        &a,
        "--src",
        "10.0.0.1",
        "--dst-mac",
        "02:00:00:00:00:02",
        "--count",
        "3",
        "--interval",
        "0",
        "--timeout",
        "0",
        "--json",
        "10.0.0.2",
    ]);
    let answer = report(&ping, 1);
    assert_eq!((&answer["transmitted"], &answer["received"]), (&3.into(), &0.into()));
    let answer = report(&child.wait_with_output().unwrap(), 0);
    assert_eq!((&answer["captured"], &answer["dropped"]), (&3.into(), &0.into()));
    let read = std::fs::read(&file).unwrap();
    // Each echo request is 98 bytes: 14, 20, 8 and 56.
    let is_echo = |window: &[u8]| window == [10, 0, 0, 1, 10, 0, 0, 2, 8, 0];
    assert_eq!(read.windows(10).filter(|window| is_echo(window)).count(), 3);
    let refused = output(&["capture", "--port", "null:", "--filter", "tcp,tp_dts=80", "x.pcap"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("column 5"), "{}", text(&refused.stderr));
}

#[test]
fn a_capture_ends_with_its_time_and_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.pcap");
    let name = file.to_str().unwrap();
    let done = output(&["capture", "--port", "null:", "--duration", "0.05", name]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).starts_with("0 frames captured"), "{}", text(&done.stdout));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 24);
    let full = output(&["flood", "--port", "pcap:/dev/full?write=true", "--duration", "1"]);
    let answer = text(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{answer}");
    assert_eq!(answer.matches("No space left").count(), 1, "{answer}");
    let replay = format!("pcap:{}", "contrib/generator/dns.pcap");
    let full = output(&["capture", "--port", &replay, "--duration", "0.2", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(text(&full.stderr).contains("/dev/full is not whole"), "{}", text(&full.stderr));
    assert!(text(&full.stdout).contains("10 received"), "{}", text(&full.stdout));
}

#[test]
fn a_port_answers_for_the_addresses_that_it_claims() {
    let folder = tempfile::tempdir().unwrap();
    let wire = folder.path().join("wire");
    let end = |end: &str| format!("memory:{}?end={end}", wire.display());
    let (a, b) = (end("a"), end("b"));
    let control = folder.path().join("gen.sock");
    let mut command = weir_gen(&["serve", "--port", &b, "--address", "0=10.0.0.2"]);
    command.args(["--address", "0=fd00::2", "--control"]).arg(&control);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "{line}");
    for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        let numbers = ["--count", "3", "--interval", "0.001", "--timeout", "30"];
        let command = ["ping", "--port", &a, "--src", src, "--json", dst];
        let answer = report(&output(&[&command[..], &numbers[..]].concat()), 0);
        assert_eq!(
            (&answer["transmitted"], &answer["received"]),
            (&3.into(), &3.into()),
            "{answer}"
        );
    }
    interrupt(&server);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!control.exists());
}

/// The defects of exit code 1 where 2 is documented, and of a port that was down and said nothing.
#[test]
fn wrong_usage_and_failed_ports_have_their_own_codes() {
    let profile = "contrib/generator/imix.toml";
    let code = |arguments: &[&str], says: &str| {
        let output = output(arguments);
        let errors = text(&output.stderr);
        assert!(errors.contains(says), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
        output.status.code()
    };
    let null = ["--port", "null:"];
    for (arguments, says) in [
        (&["flood"][..], "no port"),
        (&["serve", "--control", "gen.sock"][..], "no port"),
        (&[][..], "no port"),
        (&["flood", "--port", "memory:cable?end=c"][..], "end"),
        (&["ping", "--port", "memory:c?end=c", "--src", "10.0.0.1", "10.0.0.2"][..], "end"),
        (&["ping", "--port", "null:", "--src", "fd00::1", "10.0.0.2"][..], "two versions"),
        (&["ping", "--interval", "nan", "10.0.0.2"][..], "--interval"),
        (&["capture", "--port", "null:", "--duration", "nan", "x.pcap"][..], "--duration"),
        (&["serve", "--port", "null:", "--control", "/no/such/gen.sock"][..], "no folder /no/such"),
    ] {
        assert_eq!(code(arguments, says), Some(2), "{arguments:?}");
    }
    for (arguments, says) in [
        (["--cores", "99"], "core 99"),
        (["--duration", "nan"], "--duration"),
        (["--duration", "0"], "--duration"),
        (["--drain", "inf"], "--drain"),
        (["--mult", "nan"], "multiplier"),
    ] {
        let arguments = [&["run", profile][..], &null, &arguments].concat();
        assert_eq!(code(&arguments, says), Some(2), "{arguments:?}");
    }
    assert!(!Path::new("/no").exists());
    // The other end of the wire is not there.
    let down = ["flood", "--port", "memory:unplugged?end=a", "--duration", "1"];
    assert_eq!(code(&down, "is down"), Some(1));
}

/// The defects of captures that were emptied by a run that was to read them, and of two writers.
#[test]
fn files_that_overlap_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let dns = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/generator/dns.pcap");
    std::fs::copy(dns, path("x.pcap")).unwrap();
    let before = std::fs::read(path("x.pcap")).unwrap();
    std::fs::hard_link(path("x.pcap"), path("hard.pcap")).unwrap();
    std::os::unix::fs::symlink(path("x.pcap"), path("soft.pcap")).unwrap();
    let [x, hard, soft, new] =
        ["x", "hard", "soft", "new"].map(|name| path(&format!("{name}.pcap")));
    let capture = format!("[[streams]]\ncapture = {{ file = '{x}' }}\n");
    let profile = profile(folder.path(), &capture);
    std::fs::write(path("save.pkt"), format!("set 0 rate 10\nsave {hard}\n")).unwrap();
    let read = |file: &str| format!("pcap:{file}");
    let write = |file: &str| format!("pcap:{file}?write=true");
    let script = path("save.pkt");
    for (arguments, names) in [
        (vec!["capture", "--port", &read(&x), &hard], [read(&x), hard.clone()]),
        (vec!["capture", "--port", &read(&soft), &x], [read(&soft), x.clone()]),
        (vec!["flood", "--port", &write(&new), "--port", &write(&new)], [write(&new), write(&new)]),
        (vec!["flood", "--port", &write(&x), "--port", &read(&hard)], [write(&x), read(&hard)]),
        (vec!["run", &profile, "--port", &write(&soft)], [write(&soft), x.clone()]),
        (vec!["run", &profile, "--port", &write(&profile)], [write(&profile), profile.clone()]),
        (vec!["--file", &script, "--port", &read(&x)], [read(&x), hard.clone()]),
        (
            vec!["serve", "--control", &path("c"), "--port", &write(&x), "--port", &read(&x)],
            [write(&x), read(&x)],
        ),
    ] {
        let output = output(&arguments);
        let answer = text(&output.stderr);
        let code = if arguments[0] == "--file" { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {answer}");
        assert!(answer.contains("are the same file"), "{arguments:?}: {answer}");
        assert!(names.iter().all(|name| answer.contains(name)), "{arguments:?}: {answer}");
        assert_eq!(std::fs::read(&x).unwrap(), before, "{arguments:?}");
        assert!(!Path::new(&new).exists(), "{arguments:?}");
    }
    // The report would go into the middle of the capture.
    let report = std::fs::OpenOptions::new().append(true).open(&x).unwrap();
    let mut flood = weir_gen(&["flood", "--port", &write(&hard), "--json"]);
    let output = flood.stdout(report).output().unwrap();
    let answer = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{answer}");
    assert!(answer.contains("standard output") && answer.contains(&hard), "{answer}");
    assert_eq!(std::fs::read(&x).unwrap(), before);
}

/// The defect of a panic, exit code 101, where nobody reads standard error.
#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let code = |command: &str| {
        let script = format!("{{ \"$0\" {command}; echo $? > \"$1\"; }} 2>&1 >/dev/null | true");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("code");
        let status = Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_weir")])
            .arg(&file)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .status();
        assert!(status.unwrap().success());
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    };
    let wire = "--port 'memory:closed?end=a' --port 'memory:closed?end=b' --line-rate 1M";
    // Progress each second, trials, errors: more than a pipe has seen closed at the first write.
    assert_eq!(code("gen flood --port null: --rate 1kpps --duration 2.5"), "0");
    assert_eq!(
        code(&format!("gen rfc2544 {wire} --sizes 128 --trial 0.05 --precision 20 --grace 5")),
        "0"
    );
    assert_eq!(code("gen run no-such-file.toml --port null:"), "2");
    assert_eq!(code("gen --port null: < <(printf 'x\\n%.0s' 1 2 3)"), "1");
    assert_eq!(code("gen flood --port af_packet:nosuchdev --duration 1"), "1");
}

#[test]
fn a_connection_that_waits_ends_with_its_peer() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("gen.sock");
    let mut command = weir_gen(&["serve", "--port", "null:", "--control"]);
    let mut server = command.arg(&control).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "{line}");
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(&control).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let answer = |request: &str| {
        let mut line = String::new();
        BufReader::new(ask(request)).read_line(&mut line).unwrap();
        line
    };
    let stream = r#"{"command":"add-streams","ports":[0],"streams":[{"rate":"1pps"}]}"#;
    assert!(!answer(&format!("{stream}\n")).contains("refused"));
    assert!(!answer("{\"command\":\"start\"}\n").contains("refused"));
    let huge = answer("{\"command\":\"wait-on-traffic\",\"timeout\":1e9}\n");
    assert!(huge.contains("refused") && huge.contains("timeout"), "{huge}");
    // As many as there may be, and then as many again: those of the first have gone.
    let wait = "{\"command\":\"wait-on-traffic\",\"timeout\":86400}\n";
    for _ in 0..2 {
        drop((0..32).map(|_| ask(wait)).collect::<Vec<_>>());
        let begun = std::time::Instant::now();
        while answer("{\"command\":\"get-streams\"}\n").contains("open; end one") {
            assert!(begun.elapsed().as_secs() < 30, "the slots stay taken");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    let long = format!("{{\"command\":\"{}\"}}\n", "x".repeat(60_000));
    let echoed = answer(&long);
    assert!(echoed.contains("refused") && echoed.len() < 4_000, "{} bytes", echoed.len());
    interrupt(&server);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// The defects of ports that were named twice, not at all, or in two ways, and were taken.
#[test]
fn requests_that_say_too_little_or_too_much_are_refused() {
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("gen.sock");
    let serve = ["serve", "--port", "null:a", "--port", "null:b", "--end-with-input", "--control"];
    let mut command = weir_gen(&serve);
    command.arg(&control).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "{line}");
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(&control).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    for (request, says) in [
        (r#"{"command":"stop","ports":[]}"#, "none is named"),
        (r#"{"command":"stop","ports":[0,0]}"#, "0 is named twice"),
        (r#"{"command":"stop","ports":[2]}"#, "there are 2 ports"),
        (r#"{"command":"add-streams","ports":[0],"streams":[{"port":1}]}"#, "say it once"),
        (r#"{"command":"add-streams","streams":[{"port":2}]}"#, "there are 2 ports"),
        (r#"{"command":"add-streams","streams":[{"name":""}]}"#, "a name has"),
        (r#"{"command":"wait-on-traffic","timeout":1e300}"#, "timeout 1e300"),
    ] {
        let answer = ask(&format!("{request}\n"));
        assert!(answer.contains("refused") && answer.contains(says), "{request}: {answer}");
    }
    let unfinished = ask(r#"{"command":"stop"}"#);
    assert!(unfinished.contains("no end"), "{unfinished}");
    let taken = r#"{"command":"add-streams","ports":[1],"streams":[{"port":1}]}"#;
    assert!(ask(&format!("{taken}\n")).contains("stream-1"));
    let huge = ask("{\"command\":\"start\",\"mult\":1e300}\n");
    assert!(huge.contains("times 1e300") && huge.len() < 300, "{huge}");
    drop(server.stdin.take());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_ends_with_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("gen.sock");
    let mut command = weir_gen(&["serve", "--port", "null:", "--end-with-input", "--control"]);
    let mut server =
        command.arg(&control).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready") && control.exists(), "{line}");
    drop(server.stdin.take());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!control.exists());
}
