//! `cargo xtask tidy`: the house rules that a program can check.
//!
//! Every rule is a function from one file (or the list of files, or the crate graph) to problems;
//! each problem names file, line and the remedy. It must never change a file and never need more
//! than cargo and git.

mod circles;
mod crates;
mod files;
mod manifests;
mod names;
mod problem;
mod prose;
mod syntax;
mod tree;
mod versions;
mod words;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::graph::{self, Graph};
use crate::shell;

pub(crate) use files::SourceFile;
pub(crate) use problem::{Problem, Severity};

/// Checks the workspace at `root`; prints the crate graph and every problem.
///
/// # Errors
/// When a rule is broken, or cargo or git cannot be asked.
pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata = metadata(root)?;
    let graph = Graph::from_metadata(&metadata)?;
    let files = SourceFile::tracked(root)?;
    let problems = check(&metadata, &graph, &files)?;
    println!("{}", graph::text(&graph));
    for problem in &problems {
        println!("{problem}");
    }
    let errors = problems.iter().filter(|p| p.severity == Severity::Error).count();
    let warnings = problems.len() - errors;
    println!("tidy: {} files, {errors} problems, {warnings} warnings", files.len());
    if errors > 0 {
        bail!("{errors} problems; each line above names the place and the remedy");
    }
    Ok(())
}

/// Every problem of a workspace, sorted by place.
fn check(
    metadata: &serde_json::Value,
    graph: &Graph,
    files: &[SourceFile],
) -> Result<Vec<Problem>> {
    let mut problems = graph.check();
    problems.extend(circles::check(files));
    problems.extend(crates::check(files));
    problems.extend(manifests::check(metadata, files)?);
    problems.extend(tree::check(metadata, files)?);
    problems.extend(names::check(files));
    problems.extend(drawing(graph, files));
    for file in files {
        problems.extend(prose::check(file));
        problems.extend(syntax::check(file));
        problems.extend(versions::check(file));
        problems.extend(words::check(file));
    }
    problems.sort_by(|a, b| (&a.file, a.line, &a.what).cmp(&(&b.file, b.line, &b.what)));
    Ok(problems)
}

/// The graph of the workspace as cargo sees it.
///
/// # Errors
/// When cargo does not answer.
pub(crate) fn metadata(root: &Path) -> Result<serde_json::Value> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = shell::capture(shell::cargo().current_dir(root).args(arguments))?;
    serde_json::from_str(&output).context("reading the output of cargo metadata")
}

/// ARCHITECTURE.md shows the graph; a drawing that is out of date misleads.
fn drawing(graph: &Graph, files: &[SourceFile]) -> Option<Problem> {
    let file = files.iter().find(|file| file.path == "ARCHITECTURE.md")?;
    let text = file.text.as_deref()?;
    if text.contains(&graph::text(graph)) && text.contains(&graph::markdown(graph)) {
        return None;
    }
    let what = "the crate graph is out of date; run `cargo xtask docs`";
    Some(Problem::error(&file.path, 0, what))
}

#[cfg(test)]
mod tests {
    use super::{Graph, SourceFile, check, drawing, metadata};
    use crate::graph;

    /// A small workspace on disk: `wire` imports `netdev`, which the plan does not allow.
    #[test]
    fn a_wrong_arrow_in_a_real_workspace_fails() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let manifest = |name: &str, dependencies: &str| {
            format!(
                "[package]\nname = \"weir-{name}\"\nedition = \"2024\"\n[dependencies]\n\
                 {dependencies}"
            )
        };
        write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        write("crates/netdev/Cargo.toml", &manifest("netdev", ""));
        write("crates/netdev/src/lib.rs", "//! Ports.\n");
        let arrow = "netdev = { path = \"../netdev\", package = \"weir-netdev\" }\n";
        write("crates/wire/Cargo.toml", &manifest("wire", arrow));
        let lib = "//! Codec.\n#![forbid(unsafe_code)]\nuse netdev as _;\n";
        write("crates/wire/src/lib.rs", lib);
        let metadata = metadata(dir.path()).unwrap();
        let graph = Graph::from_metadata(&metadata).unwrap();
        let problems = check(&metadata, &graph, &[]).unwrap();
        let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("arrow wire -> netdev is not in the plan"), "{found:?}");
        assert!(found[0].starts_with("crates/wire/Cargo.toml"), "{found:?}");
    }

    #[test]
    fn the_drawing_in_the_architecture_must_be_current() {
        let mut graph = Graph::default();
        graph.crates.insert("openflow".into());
        let both = format!("x\n{}{}", graph::text(&graph), graph::markdown(&graph));
        let good = SourceFile::new("ARCHITECTURE.md", &both);
        assert!(drawing(&graph, &[good]).is_none());
        let old = SourceFile::new("ARCHITECTURE.md", "0  attic\n");
        assert!(drawing(&graph, &[old]).is_some());
    }
}
