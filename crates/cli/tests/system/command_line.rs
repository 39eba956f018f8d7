//! Command lines of all programs: output that cannot be written, and lines in the manner of
//! `ovs-ofctl`.

use std::fs::File;
use std::process::{Output, Stdio};

use crate::process::{Running, text, weir};

/// Lines of all programs that print.
const PRINTING: &[&str] = &[
    "--help",
    "-h",
    "--version",
    "version",
    "man",
    "man --flows",
    "completions bash",
    "ctl --help",
    "ctl dump-flows -h",
    "controller router --help",
    "switch --help",
    "lab list",
    "lab show groups",
    "lab run groups --dry",
    "lab jobs groups",
    "net --folder DIR list",
    "pki --dir DIR init",
    "gen run --help",
    "gen flood --port null: --duration 0.01",
];

fn of_line(line: &str, folder: &tempfile::TempDir) -> std::process::Command {
    let dir = folder.path().to_str().unwrap();
    let words: Vec<&str> =
        line.split(' ').map(|word| if word == "DIR" { dir } else { word }).collect();
    weir(&words)
}

#[test]
fn a_full_disk_is_an_error_and_a_gone_reader_is_none() {
    for line in PRINTING {
        let folder = tempfile::tempdir().unwrap();
        let full = File::create("/dev/full").unwrap();
        let output = of_line(line, &folder).stdout(full).output().unwrap();
        let errors = text(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
        assert!(errors.contains("standard output: No space left"), "{line}: {errors}");

        let folder = tempfile::tempdir().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = of_line(line, &folder).stdout(writer).output().unwrap();
        // As a shell reports the signal SIGPIPE.
        assert_eq!(output.status.code(), Some(141), "{line}: {}", text(&output));
        assert_eq!(text(&output), "", "{line}");
    }
}

#[test]
fn a_missing_file_is_named_once() {
    for line in ["lab run nosuch.toml", "net up nosuch.toml", "switch --config nosuch.toml"] {
        let output = weir(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
        let errors = text(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert_eq!(errors.matches("No such file").count(), 1, "{errors}");
        assert!(errors.contains("nosuch.toml: "), "{errors}");
    }
}

/// A switch without ports, of one bridge `br7`.
struct Switch {
    _running: Running,
    control: String,
    _folder: tempfile::TempDir,
}

impl Switch {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("s").to_str().unwrap().to_owned();
        let running = Running::start(&mut weir(&[
            "switch",
            "--name",
            "br7",
            "--control",
            &control,
            "--port",
            "1=null:a",
            "--fail-mode",
            "standalone",
        ]));
        running.says("ready");
        Self { _running: running, control, _folder: folder }
    }

    fn ctl(&self, line: &str) -> Output {
        let words: Vec<&str> =
            ["ctl", "--control", &self.control].into_iter().chain(line.split(' ')).collect();
        weir(&words).stdin(Stdio::null()).output().unwrap()
    }
}

#[test]
fn the_bridge_may_stand_first_as_with_ovs_ofctl() {
    let switch = Switch::start();
    for (line, code, expected) in [
        ("add-flow br7 priority=9,in_port=1,actions=drop", 0, ""),
        ("--no-stats dump-flows br7 priority=9", 1, "filter"),
        ("--no-stats dump-flows br7 in_port=1", 0, " priority=9,in_port=1 actions=drop\n"),
        ("dump-flows br7 --no-stats", 0, ", priority=0 actions=NORMAL\n"),
        ("--strict del-flows br7 priority=9,in_port=1", 0, ""),
        ("dump-aggregate br7", 0, "flow_count=1"),
        ("show br7", 0, "n_tables"),
        ("fdb/show br7", 0, " port  VLAN  MAC                Age\n"),
        ("dump-groups br7", 0, ""),
        ("dump-ports br7 1", 0, "port "),
        // A bridge that there is not changes nothing, and the answer names those that there are.
        ("del-flows br0", 1, "--bridge NAME names one of br7"),
        ("add-flow br0 in_port=1,actions=drop", 2, "--bridge NAME names one of br7"),
        ("dump-groups br0", 1, "  br0\n  ^"),
        ("dump-groups br0", 1, "--bridge NAME names one of br7"),
        ("--bundle mod-flows br7 in_port=77,actions=drop", 0, ""),
        ("snoop br7", 2, "weir ctl monitor"),
        ("dump-aggregate", 0, "flow_count=1"),
    ] {
        let output = switch.ctl(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output));
        assert!(text(&output).contains(expected), "{line}: {}", text(&output));
    }
}
