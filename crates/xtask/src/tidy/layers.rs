//! Rules about modules of one crate: which of them must not import which.
//!
//! Crates are kept apart by their manifests; this keeps the parts of a crate apart that are meant
//! to be taken out, or tested, without each other. Tests count too.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::{Problem, SourceFile};

/// A module of a crate, and the modules of that crate that it must not name.
struct Layer {
    package: &'static str,
    module: &'static str,
    forbidden: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { package: "switch", module: "worker", forbidden: &["agent", "bridge", "control"] },
    Layer { package: "switch", module: "upcall", forbidden: &["agent", "bridge", "worker"] },
    Layer { package: "switch", module: "bridge", forbidden: &["agent", "control"] },
];

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let Some((name, inner)) = file.in_crate() else { return Vec::new() };
    let layer = LAYERS.iter().find(|layer| {
        let rest = inner.strip_prefix("src/").and_then(|path| path.strip_prefix(layer.module));
        name == layer.package && rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    });
    let Some(layer) = layer else { return Vec::new() };
    let Some(Ok(tree)) = file.text.as_deref().map(syn::parse_file) else { return Vec::new() };
    let mut search = Search::default();
    search.visit_file(&tree);
    let found = search.found.iter().filter(|(_, module)| layer.forbidden.contains(&&**module));
    let problem = |(line, module): &(usize, String)| {
        let Layer { package, module: own, .. } = layer;
        let what = format!("`{package}::{own}` must not import `{package}::{module}`");
        Problem::error(&file.path, *line, what)
    };
    found.map(problem).collect()
}

/// The modules named directly below `crate`, with their lines.
#[derive(Default)]
struct Search {
    found: Vec<(usize, String)>,
}

impl Search {
    fn first_of(&mut self, tree: &syn::UseTree) {
        let name = match tree {
            syn::UseTree::Path(path) => &path.ident,
            syn::UseTree::Name(name) => &name.ident,
            syn::UseTree::Rename(rename) => &rename.ident,
            syn::UseTree::Group(group) => return group.items.iter().for_each(|i| self.first_of(i)),
            syn::UseTree::Glob(_) => return,
        };
        self.found.push((name.span().start().line, name.to_string()));
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(path) = &item.tree
            && path.ident == "crate"
        {
            self.first_of(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "crate")
            && let Some(module) = segments.next()
        {
            self.found.push((module.span().start().line, module.ident.to_string()));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile::new(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_worker_does_not_import_the_agent() {
        let path = "crates/switch/src/worker/ports.rs";
        let wrong = [
            "//! A.\nuse crate::agent::Agent;\n",
            "//! A.\nuse crate::{counters::Counter, agent};\n",
            "//! A.\nfn f() { crate::agent::f() }\n",
            "//! A.\nmod tests {\n use crate::agent::Agent;\n}\n",
        ];
        for text in wrong {
            let found = problems(path, text);
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].ends_with("`switch::worker` must not import `switch::agent`"));
        }
        assert!(problems(path, "//! A.\nuse crate::counters::Counter;\n").is_empty());
        assert!(problems("crates/switch/src/worker.rs", wrong[0]).len() == 1);
        assert!(problems("crates/switch/src/run.rs", wrong[0]).is_empty());
    }
}
