//! The packages that people install, made of the program that the suites run, and used in a bare
//! Debian. With `--soak` all that is released is made, static programs and the wheel too: each is a
//! build of its own, of some ten minutes of a processor.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{Context, Extent, Tally, peers, suites};
use crate::dist::{self, DistOptions};
use crate::shell;

/// Program and the Debian package it comes from.
const PROGRAMS: &[(&str, &str)] = &[
    ("mmdebstrap", "mmdebstrap"),
    ("lintian", "lintian"),
    ("systemd-analyze", "systemd"),
    ("promtool", "prometheus"),
    ("rpm", "rpm"),
];

/// Makes the debs and the rpms, and lets `contrib/packaging/check.sh` judge the debs.
pub(super) fn run(context: &Context) -> Result<Tally> {
    if !context.is_root {
        return Ok(Tally::left_out("a Debian of its own needs root"));
    }
    let missing: Vec<_> =
        PROGRAMS.iter().filter(|(program, _)| !peers::installed(program)).collect();
    if !missing.is_empty() && context.install {
        peers::apt(context, &missing.iter().map(|(_, package)| *package).collect::<Vec<_>>())?;
    } else if let Some((program, package)) = missing.first() {
        return Ok(Tally::left_out(format!("{program} is missing (Debian's package {package})")));
    }
    let soaks = context.extent == Extent::Soak;
    let options = if soaks { DistOptions::released() } else { DistOptions::of(context.weir()) };
    let made = dist::run(&context.root, &options)?;
    let mut tally = check(context, &made)?;
    tally.check("the description of the images", dist::lint_image(&context.root));
    if !soaks {
        tally.left_out.push("static programs and the wheel of a release; --soak has them".into());
    }
    Ok(tally)
}

/// The judgement of `contrib/packaging/check.sh`.
fn check(context: &Context, packages: &[PathBuf]) -> Result<Tally> {
    let out = context.target().join("packages");
    let mut check = context.command(context.root.join("contrib/packaging/check.sh"));
    check.arg("-o").arg(&out).arg("-r").arg(context.cache().join("debian"));
    check.args(packages);
    let ended_well = shell::watch(&mut check, |_| {})?;
    let results = std::fs::read_to_string(out.join("results.jsonl"));
    let mut tally = suites::compare(&results.context("reading the results")?, "")?;
    tally.end(ended_well);
    Ok(tally)
}
