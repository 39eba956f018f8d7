//! Rules about manifests: workspace lints on, no dependency that no file names.
//!
//! A dependency that nobody uses is an arrow in the graph that means nothing, and time in every
//! build. It must never guess: a dependency counts as used when its name stands anywhere in the
//! crate's sources as a word.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::prose::stands_in;
use super::{Problem, SourceFile};

pub(super) fn check(metadata: &Value, files: &[SourceFile]) -> Result<Vec<Problem>> {
    let root = metadata["workspace_root"].as_str().context("metadata: no workspace_root")?;
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        let Some(file) = files.iter().find(|file| file.path == manifest) else { continue };
        let text = file.text.as_deref().unwrap_or_default();
        if !text.contains("[lints]\nworkspace = true") {
            let what = "add `[lints]` with `workspace = true`";
            problems.push(Problem::error(manifest, 0, what));
        }
        let folder = manifest.strip_suffix("Cargo.toml").unwrap_or(manifest);
        let sources: Vec<&str> = files
            .iter()
            .filter(|file| file.is("rs") && file.path.starts_with(folder))
            .filter_map(|file| file.text.as_deref())
            .collect();
        for name in dependencies(package) {
            let word = name.replace('-', "_");
            if sources.iter().any(|source| stands_in(source, &word)) {
                continue;
            }
            let is_its_line = |line: &str| line.trim_start().starts_with(&name);
            let line = text.lines().position(is_its_line).map_or(0, |index| index + 1);
            let what = format!("dependency `{name}` is named by no source file; remove it");
            problems.push(Problem::error(manifest, line, what));
        }
    }
    Ok(problems)
}

/// The names under which a package's sources see its dependencies.
fn dependencies(package: &Value) -> Vec<String> {
    let list = package["dependencies"].as_array().into_iter().flatten();
    list.filter_map(|d| d["rename"].as_str().or_else(|| d["name"].as_str()))
        // The house's own crates are renamed in the workspace table: `weir-wire` is seen as `wire`.
        .map(|name| name.strip_prefix("weir-").unwrap_or(name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};
    use serde_json::json;

    fn problems(manifest: &str, source: &str) -> Vec<String> {
        let metadata = json!({"workspace_root": "/w", "packages": [{
            "name": "weir-wire", "manifest_path": "/w/crates/wire/Cargo.toml",
            "dependencies": [{"name": "weir-openflow"}, {"name": "serde-json"}],
        }]});
        let files = [
            SourceFile::new("crates/wire/Cargo.toml", manifest),
            SourceFile::new("crates/wire/src/lib.rs", source),
        ];
        check(&metadata, &files).unwrap().iter().map(ToString::to_string).collect()
    }

    const GOOD: &str = "[lints]\nworkspace = true\n[dependencies]\nserde-json = \"1\"\n";

    #[test]
    fn used_dependencies_pass() {
        let source = "use openflow::Match;\nfn f() { serde_json::to_string(1); }\n";
        assert!(problems(GOOD, source).is_empty());
    }

    #[test]
    fn unused_dependencies_are_named_with_their_line() {
        let found = problems(GOOD, "use openflow::Match;\nfn my_serde_json() {}\n");
        let expected = "crates/wire/Cargo.toml:4: dependency `serde-json` is named by no source \
                        file; remove it";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn the_lints_of_the_workspace_must_be_on() {
        let found = problems("[dependencies]\n", "use openflow::A;\nuse serde_json::B;\n");
        assert!(found[0].contains("add `[lints]`"), "{found:?}");
    }
}
