//! The quick start of docs/switch.md, run as it is written; README and `--help` say the same.
//!
//! It runs in network and mount namespaces of its own, so that names such as `veth0` and `host0`
//! and the control socket are those of the text and meet nobody else's; all of it goes with the
//! process.

use std::path::Path;
use std::process::{Command, Stdio};

/// The commands between the marks in docs/switch.md.
fn commands() -> String {
    let text = include_str!("../../../../docs/switch.md");
    let (_, rest) = text.split_once("<!-- quick start: begin").unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn readme_and_help_have_the_commands_of_the_page() {
    let help =
        Command::new(env!("CARGO_BIN_EXE_weir")).args(["switch", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let readme = include_str!("../../../../README.md");
    let commands = commands();
    let lines: Vec<_> = commands.lines().map(str::trim).collect();
    assert!(lines.len() > 8, "{lines:?}");
    for (name, text) in [("README.md", readme), ("weir switch --help", &help)] {
        for line in lines.iter().filter(|line| !line.starts_with("weir ctl")) {
            let has = text.lines().any(|held| held.trim() == *line);
            assert!(has, "{name} lacks {line:?} of the quick start in docs/switch.md");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn the_quick_start_works_as_it_is_written() {
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let script = format!(
        "set -eu\nmount -t tmpfs none /run\nip link set lo up\n{}\nkill %1\nwait %1\n",
        commands()
    );
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["120", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
        .args(["bash", "-c", &script])
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output_text = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&output_text);
    assert!(output.status.success(), "{}: {output_text}", output.status);
    assert!(output_text.contains("3 received"), "{output_text}");
    assert!(output_text.contains("actions=NORMAL"), "{output_text}");
}
