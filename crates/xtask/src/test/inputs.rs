//! Whether what a step depends on has changed since it last passed here.
//!
//! A key is made of all files that git would track below the step's crates, what these import, and
//! its paths; the key of the last success lies in the target folder. It must never leave a step out
//! in continuous integration, nor one that was asked for by name.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::step::{Inputs, Step};
use crate::graph::Graph;
use crate::shell;
use crate::tidy::{self, SourceFile};

/// Files on which every build depends, and the programs that run the steps.
const EVERYWHERE: &[&str] =
    &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/", "crates/xtask/"];

/// The files of the workspace, for the keys of steps.
pub(super) struct Tree {
    root: PathBuf,
    folder: PathBuf,
    files: Vec<SourceFile>,
    graph: Graph,
    commit: String,
}

impl Tree {
    /// The work tree as it is; keys lie below `target`.
    ///
    /// # Errors
    /// When git or cargo does not answer.
    pub(super) fn read(root: &Path, target: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(root).args(["describe", "--always", "--dirty"]);
        Ok(Self {
            root: root.to_path_buf(),
            folder: target.join("passed"),
            files: SourceFile::tracked(root)?,
            graph: Graph::from_metadata(&tidy::metadata(root)?)?,
            commit: shell::capture(&mut git)?.trim().to_owned(),
        })
    }

    /// The commit at which the step passed with the same inputs; none where it has to run.
    pub(super) fn unchanged_since(&self, step: &Step) -> Option<String> {
        let key = self.key(step.inputs?).ok()?;
        let kept = std::fs::read_to_string(self.folder.join(step.name)).ok()?;
        let (kept, commit) = kept.trim().split_once(' ')?;
        (kept == key).then(|| commit.to_owned())
    }

    /// Keeps that the step has passed with these inputs.
    ///
    /// # Errors
    /// When the key cannot be made or written.
    pub(super) fn keep(&self, step: &Step) -> Result<()> {
        let Some(inputs) = step.inputs else { return Ok(()) };
        std::fs::create_dir_all(&self.folder).context("making the folder of the keys")?;
        let line = format!("{} {}\n", self.key(inputs)?, self.commit);
        std::fs::write(self.folder.join(step.name), line).context("writing a key")
    }

    fn key(&self, inputs: Inputs) -> Result<String> {
        let folders: Vec<String> =
            self.imported(inputs.crates).iter().map(|name| format!("crates/{name}/")).collect();
        let mut beginnings: Vec<&str> = folders.iter().map(String::as_str).collect();
        beginnings.extend(EVERYWHERE.iter().chain(inputs.paths));
        let mut hash = DefaultHasher::new();
        for file in &self.files {
            if !beginnings.iter().any(|beginning| file.path.starts_with(beginning)) {
                continue;
            }
            file.path.hash(&mut hash);
            match &file.text {
                Some(text) => text.hash(&mut hash),
                None => std::fs::read(self.root.join(&file.path))
                    .with_context(|| format!("reading {}", file.path))?
                    .hash(&mut hash),
            }
        }
        Ok(format!("{:016x}", hash.finish()))
    }

    /// The crates and all that they, and their tests, import.
    fn imported(&self, crates: &[&str]) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = crates.iter().map(|name| (*name).to_owned()).collect();
        loop {
            let arrows = self.graph.arrows.iter().filter(|arrow| found.contains(&arrow.from));
            let more: BTreeSet<String> =
                arrows.map(|arrow| arrow.to.clone()).filter(|to| !found.contains(to)).collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;
    use crate::graph::Graph;
    use crate::test::step::named;
    use crate::tidy::SourceFile;
    use serde_json::json;

    fn tree(folder: &std::path::Path, text: &str) -> Tree {
        let metadata = json!({"workspace_root": "/w", "packages": [
            {"name": "weir-datapath", "manifest_path": "/w/crates/datapath/Cargo.toml",
             "dependencies": [{"name": "weir-packet", "kind": null}]},
            {"name": "weir-packet", "manifest_path": "/w/crates/packet/Cargo.toml",
             "dependencies": []},
            {"name": "weir-lab", "manifest_path": "/w/crates/lab/Cargo.toml", "dependencies": []},
        ]});
        Tree {
            root: folder.into(),
            folder: folder.join("passed"),
            files: ["crates/datapath/src/a.rs", "crates/packet/src/b.rs", "crates/lab/src/c.rs"]
                .iter()
                .map(|path| SourceFile::new(path, if path.contains(text) { "new" } else { "" }))
                .collect(),
            graph: Graph::from_metadata(&metadata).unwrap(),
            commit: "abc1234".into(),
        }
    }

    #[test]
    fn a_step_runs_when_what_it_imports_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let model = named("model").unwrap();
        let at_first = tree(folder.path(), "nothing");
        assert_eq!(at_first.unchanged_since(model), None, "it has never passed");
        at_first.keep(model).unwrap();
        assert_eq!(at_first.unchanged_since(model).as_deref(), Some("abc1234"));
        assert!(tree(folder.path(), "crates/lab").unchanged_since(model).is_some());
        assert!(tree(folder.path(), "crates/datapath").unchanged_since(model).is_none());
        assert!(tree(folder.path(), "crates/packet").unchanged_since(model).is_none());
        let clippy = named("clippy").unwrap();
        at_first.keep(clippy).unwrap();
        assert_eq!(at_first.unchanged_since(clippy), None, "it depends on everything");
    }
}
