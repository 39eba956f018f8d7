//! The crates inside of a program: which they are, and on what terms.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::shell;

/// A crate inside of a program.
pub(super) struct Inside {
    name: String,
    version: String,
    /// An SPDX expression.
    licence: String,
    /// Its sources.
    folder: PathBuf,
    /// Whether it is one of ours.
    is_own: bool,
}

/// `cargo metadata`, with the graph of what this machine's target needs.
pub(super) fn metadata(root: &Path) -> Result<Value> {
    let mut cargo = shell::cargo();
    cargo.current_dir(root).args(["metadata", "--locked", "--format-version", "1"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    Ok(serde_json::from_str(&shell::capture(&mut cargo)?)?)
}

/// Our version.
pub(super) fn version(metadata: &Value) -> Result<String> {
    let packages = metadata["packages"].as_array().context("metadata: no packages")?;
    let own = packages.iter().find(|package| package["name"] == "weir-cli");
    Ok(own.and_then(|own| own["version"].as_str()).context("metadata: no weir-cli")?.to_owned())
}

/// The crates that are linked into `package`, itself too, by name, without those that only build
/// it.
pub(super) fn crates_of(metadata: &Value, package: &str) -> Result<Vec<Inside>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|one| (text(&one["id"]), one)).collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|one| (text(&one["id"]), one))
        .collect();
    let root = packages.values().find(|one| one["name"] == package);
    let mut open = vec![text(&root.with_context(|| format!("no package {package}"))?["id"])];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let dependencies = list(&nodes.get(&id).context("metadata: a node")?["deps"]);
        let is_linked =
            |one: &Value| list(&one["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        if seen.insert(id) {
            open.extend(
                dependencies.iter().filter(|one| is_linked(one)).map(|one| text(&one["pkg"])),
            );
        }
    }
    let mut inside = Vec::new();
    for id in seen {
        let one = packages.get(&id).context("metadata: a package")?;
        let manifest = PathBuf::from(text(&one["manifest_path"]));
        inside.push(Inside {
            name: text(&one["name"]),
            version: text(&one["version"]),
            licence: text(&one["license"]).replace('/', " OR "),
            folder: manifest.parent().context("metadata: a manifest")?.to_owned(),
            is_own: one["source"].is_null(),
        });
    }
    inside.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(inside)
}

/// The terms of the program and of every crate in it, each text once.
pub(super) fn licences(crates: &[Inside]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut page = String::from(
        "Weir: Copyright (c) 2026 the Weir developers. Licensed under the Apache License,\n\
         Version 2.0; on Debian systems its text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         The program has these crates inside:\n\n",
    );
    for one in crates.iter().filter(|one| !one.is_own) {
        writeln!(page, "  {} {}: {}", one.name, one.version, one.licence)?;
        for text in texts_of(&one.folder)? {
            texts.entry(text).or_default().push(one.name.clone());
        }
    }
    for (text, names) in texts {
        write!(page, "\n{}\n{}:\n\n{}\n", "-".repeat(72), names.join(", "), text.trim_end())?;
    }
    Ok(page)
}

/// The texts of the licences beside a crate's manifest. The text of Apache's licence is left out:
/// it is the same for all, and ours.
fn texts_of(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_licence =
            ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word));
        if !is_licence || !path.is_file() {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n");
        if !text.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION") {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// The crates as a bill of materials, CycloneDX 1.6 in JSON.
pub(super) fn cyclonedx(version: &str, crates: &[Inside]) -> Result<String> {
    let components: Vec<Value> = crates
        .iter()
        .filter(|one| !one.is_own)
        .map(|one| {
            let reference = format!("pkg:cargo/{}@{}", one.name, one.version);
            json!({
                "type": "library", "bom-ref": reference, "name": one.name, "version": one.version,
                "purl": reference, "licenses": [{"expression": one.licence}],
            })
        })
        .collect();
    let own = json!({
        "type": "application", "bom-ref": "weir", "name": "weir", "version": version,
        "licenses": [{"expression": "Apache-2.0"}],
    });
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": own}, "components": components,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::crates_of;

    #[test]
    fn crates_that_only_build_are_not_inside() {
        let package = |id: &str, source: Option<&str>| {
            json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "manifest_path": format!("/w/{id}/Cargo.toml"), "source": source})
        };
        let needs =
            |id: &str, kind: Option<&str>| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("ours", None), package("linked", Some("r")), package("cc", Some("r")),
            ],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [needs("linked", None), needs("cc", Some("build"))]},
                {"id": "linked", "deps": [needs("cc", Some("dev"))]},
                {"id": "cc", "deps": []},
            ]},
        });
        let inside = crates_of(&metadata, "ours").unwrap();
        let seen: Vec<_> = inside
            .iter()
            .map(|one| (one.name.as_str(), one.licence.as_str(), one.is_own))
            .collect();
        let licence = "MIT OR Apache-2.0";
        assert_eq!(seen, [("linked", licence, false), ("ours", licence, true)]);
        assert!(crates_of(&metadata, "absent").is_err());
    }
}
