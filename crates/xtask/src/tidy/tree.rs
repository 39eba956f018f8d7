//! Dead files: a Rust file of a crate that no `mod` leads to is compiled by nobody.
//!
//! Starts at the targets that cargo knows (libraries, binaries, tests, examples) and follows `mod`
//! items, and the words of a macro among the items, such as `kinds! { tap, pcap }`, which may
//! declare a file each. It must never take a word inside a function for a module.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::syntax::idents;
use super::{Problem, SourceFile};

pub(super) fn check(metadata: &Value, files: &[SourceFile]) -> Result<Vec<Problem>> {
    let root = metadata["workspace_root"].as_str().context("metadata: no workspace_root")?;
    let sources: BTreeMap<&str, &SourceFile> = files
        .iter()
        .filter(|file| file.is("rs") && file.in_crate().is_some())
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut reached = BTreeSet::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|p| p["targets"].as_array().into_iter().flatten());
    for target in targets {
        let path = target["src_path"].as_str().unwrap_or_default();
        let path = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
        let (folder, _) = split(path);
        follow(path, folder, &sources, &mut reached);
    }
    let dead = |path: &&&str| !reached.contains(**path);
    let problem = |path: &&str| {
        let what = "no `mod` leads to this file; declare it or delete it";
        Problem::error(path, 1, what)
    };
    Ok(sources.keys().filter(dead).map(problem).collect())
}

/// Marks `path` and the modules it declares, which lie in `folder`.
fn follow<'f>(
    path: &str,
    folder: &str,
    sources: &BTreeMap<&'f str, &'f SourceFile>,
    reached: &mut BTreeSet<&'f str>,
) {
    let Some((key, file)) = sources.get_key_value(path) else { return };
    if !reached.insert(*key) {
        return;
    }
    let Some(tree) = file.tree() else { return };
    follow_items(path, folder, &tree.items, sources, reached);
}

fn follow_items<'f>(
    path: &str,
    folder: &str,
    items: &[syn::Item],
    sources: &BTreeMap<&'f str, &'f SourceFile>,
    reached: &mut BTreeSet<&'f str>,
) {
    for item in items {
        if let syn::Item::Macro(call) = item {
            for word in idents(call.mac.tokens.clone()) {
                follow(
                    &format!("{folder}/{word}.rs"),
                    &format!("{folder}/{word}"),
                    sources,
                    reached,
                );
            }
        }
        let syn::Item::Mod(module) = item else { continue };
        let inner = format!("{folder}/{}", module.ident);
        if let Some((_, items)) = &module.content {
            follow_items(path, &inner, items, sources, reached);
        } else if let Some(named) = path_attribute(&module.attrs) {
            let file = resolve(path, &named);
            let (below, _) = split(&file);
            follow(&file, below, sources, reached);
        } else {
            follow(&format!("{inner}.rs"), &inner, sources, reached);
            follow(&format!("{inner}/mod.rs"), &inner, sources, reached);
        }
    }
}

/// The value of `#[path = "..."]`.
fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else {
            return None;
        };
        pair.path.is_ident("path").then(|| text.value())
    })
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The path, from the root of the workspace, of what the file `from` names by `target`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};
    use serde_json::json;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let metadata = json!({"workspace_root": "/w", "packages": [{"targets": [
            {"src_path": "/w/crates/a/src/lib.rs"}, {"src_path": "/w/crates/a/tests/t.rs"},
        ]}]});
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        check(&metadata, &files).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_mod_leads_to_is_alive() {
        let files = [
            ("crates/a/src/k.rs", "kinds! { x, y }"),
            ("crates/a/src/k/x.rs", ""),
            (
                "crates/a/src/lib.rs",
                "mod k; mod b; mod c { mod d; } #[path = \"odd/name.rs\"] mod e;",
            ),
            ("crates/a/src/b.rs", "#[cfg(test)] mod tests;"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/c/d.rs", ""),
            ("crates/a/src/odd/name.rs", ""),
            ("crates/a/tests/t.rs", "mod common;"),
            ("crates/a/tests/common/mod.rs", "mod host;"),
            ("crates/a/tests/common/host.rs", ""),
        ];
        assert!(dead(&files).is_empty(), "{:?}", dead(&files));
    }

    #[test]
    fn what_no_mod_leads_to_is_dead() {
        let files = [("crates/a/src/lib.rs", "// mod b;"), ("crates/a/src/b.rs", "")];
        let expected = "crates/a/src/b.rs:1: no `mod` leads to this file; declare it or delete it";
        assert_eq!(dead(&files), [expected]);
    }
}
