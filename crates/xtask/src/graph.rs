//! The crate graph: which crate may import which, and whether the manifests keep to it.
//!
//! The table below is the house plan in a form a program can check. It reads `cargo metadata`, so
//! it sees what cargo sees. It must never allow an arrow by default: a crate without a row, or an
//! arrow without an entry, fails.

mod draw;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tidy::Problem;

pub(crate) use draw::{markdown, text};

/// The places of a crate that may have `unsafe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsafe {
    /// `#![forbid(unsafe_code)]` stands in every root file.
    Forbid,
    /// Only below these folders or in these files, relative to the crate.
    Only(&'static [&'static str]),
}

/// One row of the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrateRow {
    /// The folder under `crates/`.
    pub(crate) name: &'static str,
    /// Height in the drawing; arrows only lead down.
    pub(crate) level: u8,
    /// The crate in a few words.
    pub(crate) is: &'static str,
    /// The crates it may import.
    pub(crate) may_import: &'static [&'static str],
    /// The places that may have `unsafe`.
    pub(crate) unsafe_code: Unsafe,
}

const fn row(
    name: &'static str,
    level: u8,
    unsafe_code: Unsafe,
    is: &'static str,
    may_import: &'static [&'static str],
) -> CrateRow {
    CrateRow { name, level, is, may_import, unsafe_code }
}

const FORBID: Unsafe = Unsafe::Forbid;

/// The plan, highest level first.
#[rustfmt::skip]
pub(crate) const CRATES: &[CrateRow] = &[
    row("cli", 6, FORBID, "arguments in, exit code out",
        &["lab", "switch", "controller", "rest", "ctl", "console", "channel", "network", "files",
            "metrics", "netdev", "openflow", "terminal"]),
    row("lab", 5, FORBID, "measures any OpenFlow switch as a black box",
        &[
            "openflow", "wire", "packet", "channel", "client", "control", "emulator", "netdev",
            "generator", "files", "conformance", "programs", "stats", "terminal",
        ]),
    row("python", 5, FORBID, "the Python package's compiled part: apps in Python",
        &["openflow", "wire", "packet", "channel", "controller", "rest"]),
    row("rest", 4, FORBID, "the controller over HTTP: Ryu's endpoints, with truthful answers",
        &["openflow", "wire", "controller", "web"]),
    row("ctl", 4, FORBID, "weir ctl: asks any OpenFlow switch, and ours by its control socket",
        &["openflow", "packet", "channel", "client", "control", "files", "terminal"]),
    row("conformance", 4, FORBID, "whether a switch does what the specification says",
        &["openflow", "packet", "cases", "programs"]),
    row("network", 4, FORBID, "hosts in namespaces and real switches, from a description",
        &["openflow", "packet", "netdev", "files", "programs", "terminal"]),
    row("console", 4, FORBID, "weir gen: Pktgen's words over the generator",
        &["openflow", "packet", "netdev", "generator", "control", "files", "metrics", "terminal"]),
    row("client", 3, FORBID, "an OpenFlow client, blocking and async: requests, lists, loads",
        &["openflow", "wire", "channel", "control"]),
    row("switch", 3, FORBID, "agent, workers, configuration, control socket",
        &["openflow", "wire", "packet", "channel", "control", "datapath", "netdev", "files",
            "metrics", "ovsdb"]),
    row("controller", 3, FORBID, "the App trait, its runtime, ready apps",
        &["openflow", "wire", "packet", "channel", "cluster", "files", "metrics", "web"]),
    row("emulator", 3, FORBID, "OpenFlow switches by the thousand, to load controllers with",
        &["openflow", "wire", "packet", "channel", "netdev"]),
    row("generator", 3, FORBID, "streams, pacing, probes, receiver",
        &["openflow", "packet", "netdev"]),
    row("programs", 3, FORBID, "programs that a run starts: processes, folders, locks, CPU shares",
        &["openflow", "netdev", "files"]),
    row("channel", 2, FORBID, "one OpenFlow connection, sans I/O, and its transports",
        &["openflow", "wire", "files"]),
    row("cluster", 2, FORBID, "which controller is master of which switch, decided in etcd",
        &["openflow", "files"]),
    row("datapath", 2, Unsafe::Only(&["src/fast/sys"]),
        "tables, actions, groups, meters, counters, trace",
        &["openflow", "packet"]),
    row("netdev", 2, Unsafe::Only(&["src/sys"]), "ports and the Linux facts around them",
        &["openflow", "packet", "files"]),
    row("wire", 1, FORBID, "codec: frame to message and back",
        &["openflow"]),
    row("packet", 1, Unsafe::Only(&["src/buf/memory"]),
        "headers, flow key, rewrite, build, buffers",
        &["openflow"]),
    row("testkit", 1, FORBID, "the format of vectors, a seeded generator; for tests only",
        &["cases"]),
    row("metrics", 1, FORBID, "the counts of a running program, for Prometheus",
        &["files", "web"]),
    row("stats", 0, FORBID, "statistics of repeated measurements: figures, comparisons",
        &[]),
    row("control", 0, FORBID, "the words of the control socket, and a blocking client of it",
        &[]),
    row("files", 0, Unsafe::Only(&["src/memory"]),
        "whole files, within a bound; /proc; the process's limits, memory and output",
        &[]),
    row("web", 0, FORBID, "serves HTTP within bounds, so that no client keeps the others out",
        &[]),
    row("ovsdb", 0, FORBID, "a client of Open vSwitch's database, without input and output",
        &[]),
    row("openflow", 0, FORBID, "the vocabulary: tables of rows and the text syntax",
        &[]),
    row("terminal", 0, FORBID, "tables and paragraphs that fit a terminal",
        &[]),
    row("cases", 0, FORBID, "what a switch must do: the cases, and their format",
        &[]),
    row("xtask", 0, FORBID, "tidy, test, fuzz; imported by nobody",
        &[]),
];

/// Arrows that look tempting, with the reason why they must never exist, not even in tests.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("lab", "datapath", "the lab measures our switch as a process, like any vendor's box"),
    ("lab", "switch", "the lab measures our switch as a process, like any vendor's box"),
    ("datapath", "netdev", "forwarding is a function from a batch of packets to verdicts"),
    ("packet", "wire", "a packet generator does not know what a controller is"),
];

/// Arrows that only tests may draw. Every crate's tests may also import `testkit`.
const FOR_TESTS: &[(&str, &str)] = &[
    // A controller is tested against a simulated switch: connection, clock and datapath in memory.
    ("controller", "datapath"),
    // The switch's tests ask it as people do.
    ("switch", "ctl"),
    ("switch", "client"),
    // Every question of a check has to be a message that the codec writes.
    ("conformance", "wire"),
    // The test of the cluster is a controller of no cluster, too.
    ("cli", "client"),
];

/// Whether an arrow holds for the crate or only for its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `[dependencies]` or `[build-dependencies]`.
    Normal,
    /// `[dev-dependencies]`.
    Dev,
}

/// "`from` imports `to`", as a manifest says it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    /// Folder name of the importing crate.
    pub(crate) from: String,
    /// Folder name of the imported crate.
    pub(crate) to: String,
    /// Crate or tests only.
    pub(crate) kind: Kind,
    /// The manifest that says so, relative to the workspace.
    pub(crate) manifest: String,
}

/// Crates and arrows of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Folder names of the members.
    pub(crate) crates: BTreeSet<String>,
    /// All arrows between members.
    pub(crate) arrows: BTreeSet<Arrow>,
}

impl Graph {
    /// The graph in the output of `cargo metadata --no-deps`.
    pub(crate) fn from_metadata(metadata: &Value) -> Result<Self> {
        let root = metadata["workspace_root"].as_str().context("metadata: no workspace_root")?;
        let packages = metadata["packages"].as_array().context("metadata: no packages")?;
        let name_of = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        let members: BTreeSet<String> = packages.iter().map(name_of).collect();
        let mut graph = Self::default();
        for package in packages {
            let from = short(&name_of(package)).to_owned();
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                let to = name_of(dependency);
                let dev = dependency["kind"].as_str() == Some("dev");
                // A crate's tests may ask for its own features.
                let is_own = dev && short(&to) == from;
                if is_own || !members.contains(&to) {
                    continue;
                }
                graph.arrows.insert(Arrow {
                    from: from.clone(),
                    to: short(&to).to_owned(),
                    kind: if dev { Kind::Dev } else { Kind::Normal },
                    manifest: manifest.to_owned(),
                });
            }
            graph.crates.insert(from);
        }
        Ok(graph)
    }

    /// Whether an arrow for the crate itself leads from one to the other.
    pub(crate) fn imports(&self, from: &str, to: &str) -> bool {
        let is = |a: &Arrow| a.from == from && a.to == to && a.kind == Kind::Normal;
        self.arrows.iter().any(is)
    }

    /// Every crate without a row and every arrow that the plan does not allow.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for name in &self.crates {
            if plan_of(name).is_none() {
                let what = format!(
                    "crate `{name}` has no row in the plan; add it to CRATES in \
                     crates/xtask/src/graph.rs with its level and what it may import"
                );
                problems.push(Problem::error(&format!("crates/{name}/Cargo.toml"), 1, what));
            }
        }
        problems.extend(self.arrows.iter().filter_map(Arrow::problem));
        problems
    }
}

impl Arrow {
    fn problem(&self) -> Option<Problem> {
        let Self { from, to, kind, manifest } = self;
        let is_this = |row: &(&str, &str)| row.0 == from && row.1 == to;
        if let Some((_, _, reason)) = FORBIDDEN.iter().find(|row| is_this(&(row.0, row.1))) {
            let what =
                format!("forbidden arrow {from} -> {to}: {reason}; remove `{to}` from {manifest}");
            return Some(Problem::error(manifest, 0, what));
        }
        let plan = plan_of(from)?;
        let for_tests = *kind == Kind::Dev
            && (to == "testkit" || FOR_TESTS.iter().any(|row| is_this(&(row.0, row.1))));
        if for_tests || plan.may_import.contains(&to.as_str()) {
            return None;
        }
        let may = match plan.may_import {
            [] => "no crate of the house".to_owned(),
            names => names.join(", "),
        };
        let section = match kind {
            Kind::Normal => "dependencies",
            Kind::Dev => "dev-dependencies",
        };
        let what = format!(
            "arrow {from} -> {to} is not in the plan: {from} may import {may}; remove `{to}` from \
             [{section}] of {manifest}"
        );
        Some(Problem::error(manifest, 0, what))
    }
}

/// The row of a crate.
pub(crate) fn plan_of(name: &str) -> Option<&'static CrateRow> {
    CRATES.iter().find(|row| row.name == name)
}

fn short(package: &str) -> &str {
    package.strip_prefix("weir-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::{CRATES, FORBIDDEN, Graph, plan_of};
    use serde_json::{Value, json};

    fn package(name: &str, dependencies: &[(&str, &str)]) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(to, kind)| match *kind {
                "normal" => json!({"name": to, "kind": null}),
                kind => json!({"name": to, "kind": kind}),
            })
            .collect();
        let folder = super::short(name);
        let manifest = format!("/w/crates/{folder}/Cargo.toml");
        json!({"name": name, "manifest_path": manifest, "dependencies": dependencies})
    }

    fn problems(packages: &[Value]) -> Vec<String> {
        let metadata = json!({"workspace_root": "/w", "packages": packages});
        let graph = Graph::from_metadata(&metadata).unwrap();
        graph.check().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_planned_arrows_pass() {
        let packages = [
            package("weir-openflow", &[("weir-testkit", "dev"), ("thiserror", "normal")]),
            package("weir-testkit", &[]),
            package("weir-wire", &[("weir-openflow", "normal")]),
            package("weir-packet", &[("weir-openflow", "normal")]),
            package("weir-datapath", &[("weir-packet", "normal")]),
            package("weir-controller", &[("weir-wire", "normal"), ("weir-datapath", "dev")]),
        ];
        assert_eq!(problems(&packages), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_arrow_names_both_crates_and_the_file() {
        let packages =
            [package("weir-wire", &[("weir-packet", "normal")]), package("weir-packet", &[])];
        let found = problems(&packages);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/wire/Cargo.toml"), "{found:?}");
        assert!(found[0].contains("arrow wire -> packet is not in the plan"), "{found:?}");
        assert!(found[0].contains("wire may import openflow"), "{found:?}");
    }

    #[test]
    fn forbidden_arrows_are_named_with_their_reason_even_in_tests() {
        for (from, to, reason) in FORBIDDEN {
            for kind in ["normal", "dev", "build"] {
                let (from, to) = (format!("weir-{from}"), format!("weir-{to}"));
                let found = problems(&[package(&from, &[(&to, kind)]), package(&to, &[])]);
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].contains("forbidden arrow"), "{found:?}");
                assert!(found[0].contains(reason), "{found:?}");
            }
        }
    }

    #[test]
    fn an_arrow_for_tests_only_does_not_pass_as_a_normal_one() {
        let packages =
            [package("weir-openflow", &[("weir-testkit", "normal")]), package("weir-testkit", &[])];
        assert_eq!(problems(&packages).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_fails() {
        let found = problems(&[package("weir-attic", &[])]);
        assert!(found[0].contains("crate `attic` has no row in the plan"), "{found:?}");
    }

    #[test]
    fn arrows_of_the_plan_lead_down_and_never_to_the_forbidden() {
        fn reaches(from: &str, to: &str) -> bool {
            let next = plan_of(from).unwrap().may_import;
            next.contains(&to) || next.iter().any(|step| reaches(step, to))
        }
        for row in CRATES {
            for to in row.may_import {
                assert!(plan_of(to).unwrap().level < row.level, "{} -> {to}", row.name);
            }
        }
        for (from, to, _) in FORBIDDEN {
            assert!(!reaches(from, to), "{from} reaches {to}");
        }
    }
}
