//! A campaign as single commands, as an engine runs them: `weir lab jobs`, `run --job`, `gather`.
//!
//! On memory ports, so that it needs no root. It must never look at how good a figure is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::lab_samples::results;

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

fn weir(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("lab").args(arguments).output().expect("the weir binary starts")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The arguments of a campaign: two points of the axis that one start serves, twice.
fn campaign(folder: &Path) -> Vec<String> {
    let file = folder.join("probes.toml");
    std::fs::write(&file, SCENARIO).expect("a file");
    let words = [file.to_str().expect("a path"), "--testbed", "memory", "--only", "length=0.1,0.2"];
    words.map(str::to_owned).to_vec()
}

#[test]
fn jobs_measured_one_by_one_are_a_campaign() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = campaign(folder.path());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let listed = weir(&[&["jobs"], arguments.as_slice()].concat());
    let listed = String::from_utf8(listed.stdout).expect("text");
    let job = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let jobs: Vec<_> = listed.lines().map(job).collect();
    assert_eq!(jobs.len(), 2, "a start each: {listed}");
    assert_eq!((&jobs[1]["job"], &jobs[1]["start"]), (&1.into(), &1.into()), "{listed}");
    assert_eq!(jobs[1]["at"].as_array().map(Vec::len), Some(2), "{listed}");
    let mut ledgers = Vec::new();
    for number in ["0", "1"] {
        let out = folder.path().join(number);
        ledgers.push(out.to_str().expect("a path").to_owned());
        let words = ["--job", number, "--quiet", "--out", &ledgers[ledgers.len() - 1]];
        let output = weir(&[&["run"], arguments.as_slice(), &words].concat());
        assert!(output.status.success(), "{}", stderr_of(&output));
        assert!(!out.join("report.html").exists(), "it is a part");
    }
    // The second one was measured elsewhere.
    let file = folder.path().join("1/trials.jsonl");
    let text = std::fs::read_to_string(&file).expect("a ledger");
    let head = job(text.lines().nth(1).expect("a line"));
    let id = head["machine"]["id"].as_str().expect("an id");
    std::fs::write(&file, text.replace(id, "ffffffff")).expect("a file");

    let out = folder.path().join("all");
    let gather = |files: &[&str]| {
        weir(&[&["gather", "--out", out.to_str().expect("a path")], files].concat())
    };
    let output = gather(&[&ledgers[1], &ledgers[0]]);
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
    assert!(notes.contains("Measured on 2 machines"), "{notes}");
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Measured on 2 machines"));

    let output = gather(&[&ledgers[0]]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    assert!(stderr_of(&output).contains("job 1 of 2: no result"), "{}", stderr_of(&output));
    for (files, what) in [
        ([ledgers[0].as_str(), "/nowhere"], "/nowhere: "),
        ([ledgers[0].as_str(), arguments[0]], "line 1"),
    ] {
        let output = gather(&files);
        assert!(!output.status.success() && stderr_of(&output).contains(what), "{what}");
    }
}

/// The script for Ray with a module in place of Ray: a job whose first measurement fails, and what
/// a second start of the script finds done.
#[test]
fn a_pool_measures_each_job_and_a_failed_one_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = campaign(folder.path());
    // A weir that notes its calls, and fails at the first job that it gets.
    let program = folder.path().join("weir-that-fails-once");
    let text = format!(
        "#!/bin/sh\necho \"$2\" >> {calls}\nif [ \"$2\" = run ] && [ ! -e {mark} ]; then\n\
         touch {mark}\necho broken >&2\nexit 1\nfi\nexec {weir} \"$@\"\n",
        calls = folder.path().join("calls").display(),
        mark = folder.path().join("mark").display(),
        weir = env!("CARGO_BIN_EXE_weir")
    );
    std::fs::write(&program, text).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = folder.path().join("out");
    let pool = |retries: &str| {
        let output = Command::new("python3")
            .arg("-B")
            .arg(here.join("../../contrib/lab/ray_campaign.py"))
            .args(["--retries", retries, "--weir"])
            .arg(&program)
            .arg("--out")
            .args([&out, Path::new("--")])
            .args(&arguments)
            .env("PYTHONPATH", here.join("tests/data/stand-in"))
            .stdin(Stdio::null())
            .output()
            .expect("this test needs python3");
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
        std::fs::remove_file(folder.path().join("calls")).expect("it is there");
        (output, calls.replace('\n', " "))
    };
    let (output, calls) = pool("0");
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    assert!(stderr_of(&output).contains("job 0 failed in 1 measurements: job 0: broken"));
    assert!(stderr_of(&output).contains("job 0 of 2: no result"), "{}", stderr_of(&output));
    assert_eq!(calls, "jobs run run gather ");
    // The second start measures what failed alone, and here with a measurement that fails.
    std::fs::remove_file(folder.path().join("mark")).expect("it is there");
    let (output, calls) = pool("1");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    assert_eq!(calls, "jobs run run gather ");
    let samples = &results(&out)["scenarios"][0]["cells"][0]["rows"][0]["samples"];
    assert_eq!(samples.as_array().expect("samples").len(), 2);
}
