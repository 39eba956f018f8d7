//! `weir gen` as a program: a session of Pktgen's words over memory ports, with `weir switch
//! --forward io` between them, typed through a pipe.

use super::process::signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn weir() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weir"))
}

/// A child that is ended with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One end of a wire in memory.
fn port(dir: &Path, wire: usize, end: &str) -> String {
    format!("memory:{}?end={end}", dir.join(format!("wire{wire}")).display())
}

/// A switch that forwards each of two wires into the other.
fn switch(dir: &Path) -> Ended {
    let mut child = weir()
        .args(["switch", "--forward", "io", "--port", &format!("1={}", port(dir, 0, "b"))])
        .args(["--port", &format!("2={}", port(dir, 1, "b")), "--control"])
        .arg(dir.join("ctl"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let ready = lines.map(Result::unwrap).find(|line| line.contains("ready"));
    assert!(ready.is_some(), "the switch ended before it was ready");
    Ended(child)
}

/// A console over both wires, on a line of 10 Mbit/s so that a slow machine keeps up.
struct Typed {
    child: Ended,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Typed {
    fn start(dir: &Path) -> Self {
        let mut child = weir()
            .args(["gen", "--port", &port(dir, 0, "a"), "--port", &port(dir, 1, "a")])
            .args(["--line-rate", "10M"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child: Ended(child), input, output }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Asks for a page and reads it: up to the answer of a command behind it.
    fn page(&mut self, page: &str) -> String {
        self.type_line(&format!("page {page}"));
        self.type_line("help cls");
        let mut text = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the console ended: {text}");
            if line.contains("draw the screen anew") {
                return text.replace("Console\n", "");
            }
            text += &line;
        }
    }

    /// Asks for the page until it is as wished.
    fn page_until(&mut self, page: &str, mut is_wished: impl FnMut(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.page(page);
            if is_wished(&text) {
                return text;
            }
            assert!(Instant::now() < deadline, "not in time:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The end of the input, and what was said then.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.input.take());
        let mut printed = String::new();
        self.output.read_to_string(&mut printed).unwrap();
        let mut errors = String::new();
        self.child.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.0.wait().unwrap().code(), printed, errors)
    }
}

/// The numbers of a row of a page, behind its label.
fn numbers(page: &str, label: &str) -> Vec<f64> {
    let row = page.lines().find(|line| line.trim_start().starts_with(label));
    let row = row.unwrap_or_else(|| panic!("no {label:?}:\n{page}"));
    let values = row.trim_start()[label.len()..].split([' ', '/', ':']);
    values.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_session_of_the_testpmd_measurement_runs_as_typed() {
    let dir = tempfile::tempdir().unwrap();
    let _switch = switch(dir.path());
    let mut console = Typed::start(dir.path());
    console.type_line("set all rate 80");
    console.type_line("range all on");
    let range = console.page("range");
    assert!(range.contains("Port 1: range on, ip.proto tcp"), "{range}");
    assert!(range.contains("192.168.1.254"), "{range}");
    console.type_line("pkt.size start all 128");
    console.type_line("start all");
    // 80 % of 10 Mbit/s at layer 1, in frames of 128 bytes: 6,757 a second.
    let main = console.page_until("main", |page| numbers(page, "Total Rx Pkts")[0] > 2_000.0);
    assert_eq!(numbers(&main, "PktSize"), [128.0, 128.0]);
    assert!(main.contains("Forever /80%"), "{main}");
    console.type_line("stop all");
    let stats = console.page_until("stats", |page| {
        numbers(page, "Tx packets")
            == numbers(page, "Rx packets").into_iter().rev().collect::<Vec<_>>()
    });
    let (packets, bytes) = (numbers(&stats, "Tx packets"), numbers(&stats, "Tx bytes"));
    assert_eq!([packets[0] * 128.0, packets[1] * 128.0], bytes[..], "{stats}");
    // Single mode has a size of its own.
    for line in ["range all off", "set all size 64", "set all count 100", "clr", "start all"] {
        console.type_line(line);
    }
    console.page_until("stats", |page| numbers(page, "Rx packets") == [100.0, 100.0]);
    let (code, report, errors) = console.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(numbers(&report, "Tx bytes"), [6_400.0, 6_400.0]);
}

#[test]
fn the_rate_changes_while_ports_transmit() {
    let dir = tempfile::tempdir().unwrap();
    let _switch = switch(dir.path());
    let mut console = Typed::start(dir.path());
    for line in ["set all rate 10", "start all"] {
        console.type_line(line);
    }
    console.page_until("main", |page| numbers(page, "Total Rx Pkts")[0] > 100.0);
    console.type_line("set 0 rate 40");
    console.type_line("set 1 size 256");
    let main = console.page_until("main", |page| numbers(page, "MBits/s Rx")[2] == 4.0);
    assert!(main.contains("Forever /40%") && main.contains("Forever /10%"), "{main}");
    let (code, _, errors) = console.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}

#[test]
fn a_changed_rate_holds_once_when_the_same_port_changes_again() {
    let dir = tempfile::tempdir().unwrap();
    let _switch = switch(dir.path());
    let mut console = Typed::start(dir.path());
    for line in ["set all rate 10", "start all"] {
        console.type_line(line);
    }
    console.page_until("main", |page| numbers(page, "Total Rx Pkts")[0] > 100.0);
    for line in ["set 0 rate 40", "set 0 size 256", "set 0 rate 20", "range 0 on"] {
        console.type_line(line);
    }
    // 20 % of 10 Mbit/s at layer 1, in frames of 64 bytes: 2,976 a second. Rates are means of a
    // second: one that is on its way to another passes, and does not stay.
    let mut in_a_row = 0;
    console.page_until("main", |page| {
        let is_right = (2_800.0..3_150.0).contains(&numbers(page, "Pkts/s Rx")[1]);
        in_a_row = if is_right { in_a_row + 1 } else { 0 };
        in_a_row == 5
    });
    let (code, _, errors) = console.end();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}

#[test]
fn wrong_lines_are_reported_with_their_place_the_others_done() {
    let dir = tempfile::tempdir().unwrap();
    let mut console = Typed::start(dir.path());
    for line in ["set all rate 50", "set all rat 50", "start 7", "blink 0 on", "set 0 count 5"] {
        console.type_line(line);
    }
    let main = console.page("main");
    assert!(main.contains("5 /50%"), "{main}");
    let (code, _, errors) = console.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("line 2, column 9: \"rat\" cannot stand here"), "{errors}");
    assert!(errors.contains("line 3, column 7: there is no port 7"), "{errors}");
    assert!(errors.contains("line 4, column 1: blink is not done here"), "{errors}");
}

#[test]
fn a_line_that_is_no_text_is_reported_and_the_next_ones_done() {
    let dir = tempfile::tempdir().unwrap();
    let mut console = Typed::start(dir.path());
    let long = "#".repeat(100_000);
    let input = console.input.as_mut().unwrap();
    input.write_all(b"set all rate 50\nset all \xff 50\n").unwrap();
    writeln!(input, "{long}\nset 0 count 5").unwrap();
    let main = console.page("main");
    assert!(main.contains("5 /50%"), "{main}");
    let (code, _, errors) = console.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("line 2, column 9: this is no UTF-8"), "{errors}");
    assert!(errors.contains("line 3, column 65537: a line has at most 65536 bytes"), "{errors}");
}

#[test]
fn a_full_disk_or_a_reader_that_has_gone_ends_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept.pkt");
    let full = std::fs::File::create("/dev/full").unwrap();
    let mut gone = weir();
    let gone = gone.args(["gen", "--port", "null:"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    for (output, why, code) in [(Some(full), "No space left", 1), (None, "", 141)] {
        let is_gone = output.is_none();
        gone.stdout(output.map_or_else(Stdio::piped, Stdio::from));
        let mut child = Ended(gone.spawn().unwrap());
        if is_gone {
            drop(child.0.stdout.take());
        }
        // The input stays open: the console ends by itself.
        let input = child.0.stdin.as_mut().unwrap();
        writeln!(input, "help\nsave {}", kept.display()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let status = loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "{why}: the console goes on");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut printed = String::new();
        child.0.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!(status.code(), Some(code), "{printed}");
        assert!(printed.contains(why) && is_gone == printed.is_empty(), "{printed}");
        assert!(!kept.exists(), "{why}: the line after it was carried out");
    }
}

/// A console that carries a script out and ends.
fn with_script(dir: &Path, script: &str) -> (PathBuf, Output) {
    let file = dir.join("session.pkt");
    std::fs::write(&file, script).unwrap();
    let output = weir()
        .args(["gen", "--port", "null:a", "--port", "null:b", "--file"])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (file, output)
}

#[test]
fn a_script_with_an_error_in_line_40_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept.pkt");
    let head = format!("set all count 1000\nsave {}\nstart all\n", kept.display());
    let script = format!("{head}{}set all rate 800\n", "# nothing\n".repeat(36));
    let (file, output) = with_script(dir.path(), &script);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(&format!("{}:40: a line carries 100 %", file.display())), "{errors}");
    assert!(!kept.exists(), "line 2 was carried out");
}

#[test]
fn a_script_whose_ports_could_not_send_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept.pkt");
    for (last, reason) in [
        // An inner packet of ARP has no place in MPLS.
        ("mpls 0 on\ntype arp 0\nstart 0", "arp cannot stand behind mpls"),
        ("type ipv6 0\ngre_eth 0 on\nstart 0", "64 bytes: the headers"),
        ("set 0 rate 20Gbps\nstart 0", "Gbit/s at layer 1, and the line has 10.000000"),
        ("set 0 seqCnt 3\nstart 0\nset 0 rate 20Gbps", "and the line has 10.000000"),
        ("start 0\nmpls 0 on\ntype arp 0", "arp cannot stand behind mpls"),
        ("range 0 on\nstart 0\ndst.port start 0 900", "start 900 is not from min 0 to max 254"),
    ] {
        let script = format!("save {}\n{last}\n", kept.display());
        let (file, output) = with_script(dir.path(), &script);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{last}: {errors}");
        let line = last.lines().count() + 1;
        assert!(errors.contains(&format!("{}:{line}: port 0: ", file.display())), "{errors}");
        assert!(errors.contains(reason), "{last}: {errors}");
        assert!(!kept.exists(), "line 1 was carried out");
    }
    // What stands between two lines does not matter where the port does not send.
    let passing = "range 0 on\ndst.port start 0 900\ndst.port max 0 1000\nstart 0\nstop 0\n\
                   mpls 0 on\ntype arp 0\nmpls 0 off\nrange 0 off\nstart 0\n";
    let (_, output) = with_script(dir.path(), passing);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_saved_loads_again() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first.pkt"), dir.path().join("second.pkt"));
    let script = format!(
        "type ipv6 1\nvlan 0 on\nset 0 rate 1.5Mpps\nuser.pattern 0 two words\nrange 1 on\n\
         dst.port max 1 300\nset 0 seqCnt 2\nset 0 ttl 9\nsave {}\n",
        first.display()
    );
    let (_, output) = with_script(dir.path(), &script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = format!("load {}\nsave {}\n", first.display(), second.display());
    let (_, output) = with_script(dir.path(), &script);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&first).unwrap();
    assert!(text.contains("user.pattern 0 \"two words\"") && text.contains("1.5Mpps"), "{text}");
    assert_eq!(text, std::fs::read_to_string(&second).unwrap());
}

#[test]
fn a_signal_ends_the_run_with_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let _switch = switch(dir.path());
    let mut console = Typed::start(dir.path());
    console.type_line("start 0");
    console.page_until("main", |page| numbers(page, "Total Rx Pkts")[1] > 10.0);
    signal(&console.child.0, "INT");
    let input = console.input.take();
    let (code, report, _) = console.end();
    drop(input);
    assert_eq!(code, Some(130));
    assert!(numbers(&report, "Tx packets")[0] > 10.0, "{report}");
}

/// The session between two veth pairs, whose other ends a switch joins. `$1` is the program and
/// `$2` a folder.
const ON_VETH: &str = r#"
set -e
for pair in a b; do
  ip link add ${pair}0 type veth peer name ${pair}1
  for end in ${pair}0 ${pair}1; do
    echo 1 > /proc/sys/net/ipv6/conf/$end/disable_ipv6
    ip link set $end up
  done
done
"$1" switch --forward io --port 1=af_packet:a1 --port 2=af_packet:b1 --control "$2/ctl" \
  2> "$2/log" &
switch=$!
trap 'kill $switch; wait $switch' EXIT
until grep -q ready "$2/log"; do kill -0 $switch; sleep 0.1; done
"$1" gen --port af_packet:a0 --port af_packet:b0 --line-rate 10M <<'END'
set all rate 80
range all on
page range
pkt.size start all 128
set all count 3000
start all
END
"#;

#[test]
#[ignore = "needs root"]
fn the_same_session_runs_on_veth() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", ON_VETH, "bash", env!("CARGO_BIN_EXE_weir")])
        .arg(dir.path())
        .output()
        .unwrap();
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "needs root? {errors}");
    assert!(printed.contains("<Range Page>"), "{printed}");
    let stats = &printed[printed.find("<Stats Page>").unwrap()..];
    assert_eq!(numbers(stats, "Tx packets"), [3_000.0, 3_000.0]);
    assert_eq!(numbers(stats, "Tx bytes"), [384_000.0, 384_000.0]);
    // The kernel's rings may overflow where the machine stalls the switch.
    assert!(numbers(stats, "Rx packets").iter().all(|count| *count > 2_000.0), "{stats}");
}
