//! Our dependencies, judged by `cargo deny` and `deny.toml`: licences, two versions of one crate,
//! sources other than the registry, and known advisories where a copy of their database lies.
//!
//! Nothing but the registry is asked. The advisory database is a git repository that no registry
//! has, so the step must never wait for it: without a copy it says that advisories were not judged.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Context, Tally};
use crate::{shell, tool};

const CARGO_DENY: tool::Tool = tool::Tool { name: "cargo-deny", version: "0.20.2" };

/// The subjects of every run.
const ALWAYS: &[&str] = &["licenses", "bans", "sources"];

/// Judges the dependencies of the workspace.
pub(super) fn run(context: &Context) -> Result<Tally> {
    let Some(program) = context.tool(&CARGO_DENY)? else {
        return Ok(Tally::left_out(CARGO_DENY.how_to_install()));
    };
    let mut tally = Tally::default();
    for subject in ALWAYS {
        tally.check(subject, check(context, &program, subject, &[]));
    }
    match advisories() {
        Some(copy) => {
            println!("advisories: from the copy in {}", copy.display());
            let checked = check(context, &program, "advisories", &["--disable-fetch"]);
            tally.check("advisories", checked);
        }
        None => tally.left_out.push(
            "advisories: no copy of the advisory database (`cargo deny fetch db` makes one)".into(),
        ),
    }
    Ok(tally)
}

fn check(context: &Context, program: &Path, subject: &str, options: &[&str]) -> Result<()> {
    let mut command = context.command(program);
    command.args(["--locked", "check"]).args(options).arg(subject);
    shell::run(&mut command)
}

/// The folder with copies of advisory databases that `deny.toml` names, when one is in it.
fn advisories() -> Option<PathBuf> {
    let copies = tool::cargo_home()?.join("advisory-dbs");
    let mut entries = std::fs::read_dir(&copies).ok()?;
    entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())).then_some(copies)
}
