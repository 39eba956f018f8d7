//! `weir net` and `weir controller` as a user has them: a network is made, worked in, and gone.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const DEADLINE: Duration = Duration::from_secs(60);

const NETWORK: &str = r#"
link = [["s1", "h1"], ["s1", "h2"], ["s1", "s2"], ["s2:7", "h3"]]
[[switch]]
name = "s1"
[[switch]]
name = "s2"
dpid = "00ab"
protocols = ["OpenFlow10"]
[[host]]
name = "h1"
[[host]]
name = "h2"
[[host]]
name = "h3"
"#;

fn weir(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env("WEIR_NET_DIR", folder.join("nets")).stdin(Stdio::null());
    command
}

fn net(folder: &Path, words: &[&str]) -> Output {
    weir(folder).arg("net").args(words).output().unwrap()
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A program that ends with this value.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), lines, child }
    }

    /// A network that is made; the switches come when a controller listens.
    fn up(folder: &Path) -> (Self, Value) {
        let mut command = weir(folder);
        command.args(["net", "up", "--json", "--end-with-input"]).arg(folder.join("net.toml"));
        let mut running = Self::start(command);
        let made = running.line();
        assert!(!made.is_empty(), "needs root: nothing was made");
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(made["event"], "made");
        (running, made)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn ended(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < DEADLINE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as the end of its input does; the exit code.
    fn end(mut self) -> Option<i32> {
        self.input.take();
        self.ended()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hub(folder: &Path, made: &Value) -> Running {
    let mut command = weir(folder);
    let listen = format!("punix:{}", made["controller"].as_str().unwrap());
    command.args(["controller", "hub", "--listen", &listen]);
    Running::start(command)
}

/// Asks again until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root"]
fn a_network_is_made_worked_in_and_gone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("net.toml"), NETWORK).unwrap();
    let (mut running, made) = Running::up(at);
    let _hub = hub(at, &made);
    assert!(running.line().contains("ready"));
    until("all hosts reach each other", || {
        net(at, &["ping-all", "--timeout", "1"]).status.code() == Some(0)
    });

    let listed = net(at, &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["switches"][1]["dpid"], "00000000000000ab");
    assert_eq!(listed[0]["links"][3], serde_json::json!(["s2:7", "h3"]));
    let control = listed[0]["control"].as_str().unwrap();
    let shown = weir(at).args(["ctl", "--control", control, "--bridge", "s2", "show"]).output();
    assert!(text_of(&shown.unwrap()).contains("s2-7"));
    let people = text_of(&net(at, &["list"]));
    assert!(people.contains("10.0.0.3/24") && people.contains("s2:7"), "{people}");

    assert!(net(at, &["reset-stats"]).status.success());
    let sent = net(at, &["send-packets", "--source", "h1", "--dest", "h3", "--count", "20"]);
    assert_eq!(text_of(&sent), "h1 sent 20, h3 received 20\n");
    let packets = |host: &str, way: &str| {
        let stats = net(at, &["show-stats", host, "--json"]);
        let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
        let rows = stats[way].as_array().unwrap().clone();
        let is_it = |row: &&Value| row["protocol"] == "udp" && row["dst_port"] == 1;
        rows.iter().find(is_it).map_or(0, |row| row["packets"].as_u64().unwrap())
    };
    assert_eq!((packets("h1", "sent"), packets("h3", "received")), (20, 20));
    assert_eq!((packets("h1", "received"), packets("h2", "received")), (0, 0));
    assert!(text_of(&net(at, &["show-stats", "h3", "--rx"])).contains("10.0.0.1:1"));
    assert!(net(at, &["reset-stats", "h3"]).status.success());
    assert_eq!((packets("h1", "sent"), packets("h3", "received")), (20, 0));

    let down = net(at, &["port-down", "s2", "h3"]);
    assert_eq!(text_of(&down), "s2:7 is down\n");
    let lost = net(at, &["ping-all", "--timeout", "1", "--json"]);
    assert_eq!(lost.status.code(), Some(1));
    let lost: Value = serde_json::from_slice(&lost.stdout).unwrap();
    assert_eq!((lost["sent"].as_u64(), lost["received"].as_u64()), (Some(6), Some(2)), "{lost}");
    assert!(net(at, &["port-up", "s2:7", "h3"]).status.success());
    until("h3 is back", || net(at, &["ping-all", "--timeout", "1"]).status.code() == Some(0));

    let shell = net(at, &["shell", "h2", "--", "sh", "-c", "echo $WEIR_HOST; cat /proc/net/dev"]);
    let shell = text_of(&shell);
    assert!(shell.starts_with("h2\n") && shell.contains("eth0"), "{shell}");
    let code = net(at, &["shell", "h2", "--", "sh", "-c", "exit 7"]).status.code();
    assert_eq!(code, Some(7));

    for (words, text) in [
        (&["shell", "h9"][..], "there is no host \"h9\"; there is h1, h2, h3"),
        (&["port-down", "s1", "h3"], "s1:1 - h1"),
        (&["show-stats", "s1"], "there is no host \"s1\""),
        (&["reset-stats", "h1", "h7"], "there is no host \"h7\""),
        (&["send-packets", "--source", "h1", "--dest", "h1"], "cannot send to itself"),
        (&["ping-all", "--name", "other"], "no network \"other\" runs; there is net"),
    ] {
        let output = net(at, words);
        assert_eq!(output.status.code(), Some(1));
        assert!(text_of(&output).contains(text), "{words:?}: {}", text_of(&output));
    }
    assert_eq!(running.end(), Some(0));
    assert_eq!(text_of(&net(at, &["list"])), "no network runs\n");
    assert_eq!(text_of(&net(at, &["clean"])), "nothing was left behind\n");
}

#[test]
#[ignore = "needs root"]
fn two_networks_of_one_file_coexist_and_a_killed_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("net.toml"), NETWORK).unwrap();
    let (mut first, made) = Running::up(at);
    let _first_hub = hub(at, &made);
    let (mut second, made) = Running::up(at);
    assert_eq!(made["name"], "net-2");
    let _second_hub = hub(at, &made);
    assert!(first.line().contains("ready") && second.line().contains("ready"));
    let several = text_of(&net(at, &["ping-all"]));
    assert!(several.contains("several networks run: net, net-2; name one by --name"), "{several}");
    for name in ["net", "net-2"] {
        until("all hosts reach each other", || {
            net(at, &["ping-all", "--timeout", "1", "--name", name]).status.code() == Some(0)
        });
    }

    second.child.kill().unwrap();
    second.child.wait().unwrap();
    let socket = at.join("nets/net-2/switch.sock");
    assert!(socket.exists(), "a killed process removes nothing");
    until("the switches have gone with their keeper", || {
        std::os::unix::net::UnixStream::connect(&socket).is_err()
    });
    assert!(net(at, &["ping-all"]).status.success(), "the other one lives");
    assert_eq!(text_of(&net(at, &["clean"])), "removed: net-2\n");
    assert!(!socket.exists());

    // A third one that is ended by Ctrl-C takes everything down too.
    let (mut third, made) = Running::up(at);
    assert_eq!(made["name"], "net-2");
    let pid = rustix::process::Pid::from_child(&third.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(third.ended(), Some(0));
    assert!(!at.join("nets/net-2").exists());
    assert_eq!(first.end(), Some(0));
}

#[test]
fn what_cannot_be_made_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("bad.toml"), "link = [[\"s1\", \"h1\"]]\n[[switch]]\nname = \"s1\"\n")
        .unwrap();
    std::fs::write(at.join("none.toml"), "").unwrap();
    std::fs::write(at.join("odd.json"), "{\"switches\": []}").unwrap();
    for (file, text) in [
        ("bad.toml", "no switch or host \"h1\""),
        ("none.toml", "no switch"),
        ("odd.json", "unknown field `switches`"),
        ("missing.toml", "missing.toml: cannot be read"),
        ("-", "the network's description: EOF"),
    ] {
        let path = if file == "-" { file.into() } else { at.join(file) };
        let output = weir(at).args(["net", "up"]).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(text_of(&output).contains(text), "{file}: {}", text_of(&output));
    }
    for words in [&["ping-all"][..], &["shell", "h1"], &["port-down", "s1", "h1"]] {
        let output = net(at, words);
        assert_eq!(output.status.code(), Some(1));
        assert!(text_of(&output).contains("no network runs"), "{}", text_of(&output));
    }
    assert_eq!(net(at, &["ping-all", "--count", "0"]).status.code(), Some(2));
    assert!(!at.join("nets").exists(), "nothing is left of what was not made");
}
