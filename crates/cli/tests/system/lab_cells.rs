//! A campaign as single commands: `weir lab cells`, `cell` and `gather`, as an engine runs them.
//!
//! On memory ports, so that it needs no root. It must never look at how good a figure is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

const SCENARIO: &str = r#"
id = "probes"
title = "Probes"
question = "How long is the way through the hub?"
methods = ["probe"]
starts = 2
[settings]
forwarding = "controller"
version = "1.0"
[[axis]]
name = "length"
key = "duration_s"
values = [0.1, 0.2, 0.3]
"#;

fn weir(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("lab").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the weir binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that reads no input has ended before this is written.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it can be waited for")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of a campaign: two points of the axis that one start serves, twice.
fn cells(folder: &Path) -> Vec<String> {
    let file = folder.join("probes.toml");
    std::fs::write(&file, SCENARIO).expect("a file");
    let file = file.to_str().expect("a path");
    let only = "length=0.1,0.2";
    let output = weir(&["cells", file, "--testbed", "memory", "--only", only], "");
    assert!(output.status.success(), "{}", stderr_of(&output));
    // Nothing that a cell needs is left beside its line.
    std::fs::remove_file(file).expect("it is there");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

fn results(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("results.json")).expect("results");
    serde_json::from_str(&text).expect("JSON")
}

fn gather(folder: &Path, files: &[&str]) -> Output {
    let mut arguments = vec!["gather", "--out", folder.to_str().expect("a path")];
    arguments.extend(files);
    weir(&arguments, "")
}

/// Measures a line, which must come to a good end.
fn measure(cell: &str) -> String {
    let output = weir(&["cell", "--quiet"], cell);
    assert!(output.status.success(), "{}", stderr_of(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn value(line: &str) -> serde_json::Value {
    serde_json::from_str(line).expect("JSON")
}

#[test]
fn cells_measured_one_by_one_are_a_campaign() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = cells(folder.path());
    assert_eq!(cells.len(), 2, "a start each: {cells:?}");
    let measured: Vec<String> = cells.iter().map(|cell| measure(cell)).collect();
    let kinds: Vec<String> =
        measured[0].lines().map(|line| value(line)["line"].to_string()).collect();
    assert!(kinds.len() >= 6 && kinds[0] == "\"head\"" && kinds[1] == "\"trial\"", "{kinds:?}");
    let head = value(measured[0].lines().next().expect("a line"));
    let id = head["machine"]["id"].as_str().expect("an id");

    // The second cell failed first, was cut off then, and was measured elsewhere at last.
    let elsewhere = measured[1].replace(id, "ffffffff");
    let failed = measured[1].lines().filter(|line| !line.contains("\"line\":\"trial\""));
    let failed: Vec<String> = failed
        .map(|line| line.replace("\"error\":null", "\"error\":\"no path\"").replace(id, "e"))
        .collect();
    assert!(failed.last().expect("a line").contains("no path"), "{failed:?}");
    let failed = failed.join("\n");
    let run = value(measured[1].lines().next().expect("a line"))["run"].clone();
    let run = run.as_str().expect("a word");
    let failed = failed.replace(run, "0000");
    let torn = measured[1].replace(run, "1111");
    let torn = &torn[..torn.len() * 2 / 3];
    let mut files = Vec::new();
    let texts = [
        ("cells", cells.join("\n")),
        ("0", measured[0].clone()),
        ("failed", failed),
        ("torn", torn.to_owned()),
        ("1", elsewhere),
    ];
    for (name, text) in texts {
        let path = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, text).expect("a file");
        files.push(path.to_str().expect("a path").to_owned());
    }
    let all: Vec<&str> = files.iter().map(String::as_str).collect();
    let out = folder.path().join("all");
    let output = gather(&out, &all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    let found = results(&out);
    let points = found["scenarios"][0]["cells"].as_array().expect("cells");
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point["rows"][0]["samples"].as_array().expect("samples").len(), 2, "{point}");
        let trials = point["trials"].as_array().expect("trials").iter();
        let good = trials.filter(|trial| trial["error"].is_null());
        let at: Vec<(u64, &str)> = good
            .map(|trial| (trial["start"].as_u64(), trial["machine"].as_str()))
            .map(|(start, machine)| (start.expect("a start"), machine.expect("a machine")))
            .collect();
        assert_eq!(at, [(0, id), (1, "ffffffff")]);
        assert!(!point["commands"].as_array().expect("commands").is_empty());
    }
    assert_eq!(found["machines"].as_array().expect("machines").len(), 2);
    let notes = found["notes"].to_string();
    assert!(notes.contains("Measured on 2 machines") && notes.contains("cut off"), "{notes}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Measured on 2 machines"));

    let out = folder.path().join("some");
    let output = gather(&out, &[all[0], all[1], all[2]]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    let notes = results(&out)["notes"].to_string();
    assert!(notes.contains("cell 1 of 2: probes on weir, start 2: no path"), "{notes}");
    let output = gather(&folder.path().join("none"), &[all[0]]);
    assert!(!output.status.success() && stderr_of(&output).contains("weir lab cell"), "no results");
}

#[test]
fn a_line_that_cannot_be_measured_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = cells(folder.path());
    let cases = [
        ("{}", "weir lab cells"),
        (&cells[0].replace("\"dut\":\"weir\"", "\"dut\":\"none\""), "no switch under test"),
        (&cells[0].replace("\"weir\":\"", "\"weir\":\"9"), "use the same program"),
        (&cells[0].replace("\"start\":0", "\"start\":2"), "no such points or start"),
        (&cells[0].replace("question", "qestion"), "qestion"),
    ];
    for (line, what) in cases {
        let output = weir(&["cell", "--quiet"], line);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(stderr_of(&output).contains(what), "{what}: {}", stderr_of(&output));
    }
    // Lines of two campaigns are not mixed.
    let other = cells[1].replace("\"is_quick\":false", "\"is_quick\":true");
    let path = folder.path().join("mixed.jsonl");
    std::fs::write(&path, format!("{}\n{other}\n", cells[0])).expect("a file");
    let output = gather(folder.path(), &[path.to_str().expect("a path")]);
    assert!(!output.status.success() && stderr_of(&output).contains("another campaign"));
    std::fs::write(&path, "{\"line\":\"tri\n{}\n").expect("a file");
    let output = gather(folder.path(), &[path.to_str().expect("a path")]);
    assert!(
        !output.status.success() && stderr_of(&output).contains("line 1"),
        "{}",
        stderr_of(&output)
    );
}

/// The script for Ray with a module in place of Ray: a cell whose first measurement fails, and what
/// a second start of the script finds done.
#[test]
fn a_pool_measures_each_cell_and_a_failed_one_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = folder.path().join("cells.jsonl");
    std::fs::write(&lines, cells(folder.path()).join("\n")).expect("a file");
    // A weir that notes its calls, and fails at the first cell that it gets.
    let program = folder.path().join("weir-that-fails-once");
    let text = format!(
        "#!/bin/sh\necho \"$2\" >> {calls}\nif [ \"$2\" = cell ] && [ ! -e {mark} ]; then\n\
         touch {mark}\necho broken >&2\nexit 1\nfi\nexec {weir} \"$@\"\n",
        calls = folder.path().join("calls").display(),
        mark = folder.path().join("mark").display(),
        weir = env!("CARGO_BIN_EXE_weir")
    );
    std::fs::write(&program, text).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let campaign = |retries: &str| {
        let output = Command::new("python3")
            .arg("-B")
            .arg(here.join("../../contrib/lab/ray_campaign.py"))
            .arg(&lines)
            .args(["--retries", retries, "--weir"])
            .arg(&program)
            .arg("--out")
            .arg(folder.path().join("out"))
            .env("PYTHONPATH", here.join("tests/data/stand-in"))
            .stdin(Stdio::null())
            .output()
            .expect("this test needs python3");
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
        std::fs::remove_file(folder.path().join("calls")).expect("it is there");
        (output, calls.replace('\n', " "))
    };
    let (output, calls) = campaign("0");
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    assert!(stderr_of(&output).contains("cell 0 failed in 1 measurements: cell 0: broken"));
    assert_eq!(calls, "cell cell gather ");
    let notes = results(&folder.path().join("out"))["notes"].to_string();
    assert!(notes.contains("cell 0 of 2"), "{notes}");
    // The second start measures what failed alone, and here with a measurement that fails.
    std::fs::remove_file(folder.path().join("mark")).expect("it is there");
    let (output, calls) = campaign("1");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    assert_eq!(calls, "cell cell gather ");
    let found = results(&folder.path().join("out"));
    let samples = &found["scenarios"][0]["cells"][0]["rows"][0]["samples"];
    assert_eq!(samples.as_array().expect("samples").len(), 2);
}

/// A program that does not outlive the test.
struct Running(Child);

impl Running {
    /// Ends it as Ctrl-C does; its exit code.
    fn interrupt(&mut self) -> Option<i32> {
        let pid = i32::try_from(self.0.id()).expect("a process id");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it still runs");
        self.0.wait().expect("it can be waited for").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where it has ended there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_shows_itself_in_a_browser_until_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("probes.toml"), folder.path().join("out"));
    // It lasts until the test ends it.
    std::fs::write(&file, SCENARIO.replace("0.1, 0.2, 0.3", "3600.0")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["lab", "run", "--testbed", "memory", "--quiet", "--serve=127.0.0.1:0", "--out"]);
    command.args([&out, &file]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = Running(command.spawn().expect("the weir binary starts"));
    let mut stderr = BufReader::new(run.0.stderr.take().expect("a pipe"));
    let mut printed = String::new();
    let address = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).expect("text"), 0, "{printed}");
        printed.push_str(&line);
        let rest = line.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        if let Some((address, _)) = rest {
            break address.to_owned();
        }
    };
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&address)?;
        write!(stream, "GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    // The page is there before the first line of the ledger.
    let begun = Instant::now();
    loop {
        let status = ask().expect("an answer while it runs");
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        if status.contains("\"standing\":\"running\"") {
            break;
        }
        assert!(status.contains("\"standing\":\"waiting\""), "{status}");
        assert!(begun.elapsed() < PATIENCE, "{status}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let code = run.interrupt();
    stderr.read_to_string(&mut printed).expect("text");
    assert_eq!(code, Some(130), "{printed}");
    assert!(ask().is_err(), "the page has ended with the run");
    assert!(out.join("trials.jsonl").is_file(), "{printed}");
}
