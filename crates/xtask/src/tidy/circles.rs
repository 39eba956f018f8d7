//! Rules about files of one crate: none of them needs itself by way of others, and some parts must
//! not import certain others.
//!
//! Files that name each other in a circle can be read, tested and taken out only together. A module
//! and the modules below it are one thing in parts, so between them it does not matter. Imports and
//! qualified paths count, after re-exports; tests do not. It must never try to know types: a method
//! that another file gives to a type is no arrow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use syn::visit::{self, Visit};

use super::syntax::is_for_tests;
use super::{Problem, SourceFile};

/// Files whose own arrows are not counted, and folders whose inner arrows are not, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/datapath/src/fast/classifier/exact.rs", "a part of the search of a burst"),
    ("crates/datapath/src/fast/classifier/group.rs", "a group looks up in the table of masks"),
    ("crates/datapath/src/fast/forwarder/program.rs", "a program is made by its passes"),
    ("crates/datapath/src/fast/forwarder/tier/stations.rs", "a tier's program is compiled too"),
    ("crates/openflow/src/text/ports.rs", "the names of ports are read by every text"),
    ("crates/openflow/src/text/reply.rs", "the table of replies names the texts of their parts"),
    ("crates/packet/src/offload.rs", "a buffer carries its offload, which writes into the buffer"),
    ("crates/switch/src/agent/", "the connections of a bridge, and the state that they share"),
    ("crates/switch/src/assemble.rs", "the start makes all parts, also those that make more later"),
    ("crates/switch/src/control/answer.rs", "the table of commands names all that answer them"),
    ("crates/switch/src/worker/", "the parts of a shard, which one thread owns together"),
    ("crates/wire/src/error.rs", "an error has the header's numbers; reading a header may fail"),
    ("crates/wire/src/layout.rs", "the table of codecs names all that read it"),
];

/// Modules that must not import others of their crate: they are meant to be taken out, or tested,
/// without these.
const LAYERS: &[(&str, &[&str])] = &[
    ("crates/switch/src/worker", &["agent", "bridge", "control"]),
    ("crates/switch/src/upcall", &["agent", "bridge", "worker"]),
    ("crates/switch/src/bridge", &["agent", "control"]),
];

/// The most re-exports between a name and its definition.
const DEPTH_MAX: usize = 16;

/// A path below the root of the crate, or as a file writes it.
type Path = Vec<String>;

/// A module: the names it defines, those it imports, its wildcard imports, and the paths that it
/// names, with their lines.
#[derive(Default)]
struct Module {
    file: usize,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Path>,
    globs: Vec<Path>,
    named: Vec<(Path, usize)>,
}

/// The meaning of a path.
enum Target {
    Module(Path),
    File(usize),
}

/// The files of one crate, and its modules.
struct Crate<'f> {
    files: Vec<&'f SourceFile>,
    modules: BTreeMap<Path, Module>,
}

/// Lines of the arrows from file to file.
type Arrows = BTreeMap<usize, BTreeMap<usize, usize>>;

pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs") && module_of(file).is_some()) {
        crates.entry(file.in_crate().unwrap_or_default().0).or_default().push(file);
    }
    let problems = |files| {
        let read = Crate::read(files);
        let arrows = read.arrows();
        [read.layers(&arrows), read.circles(arrows)].concat()
    };
    crates.into_values().flat_map(problems).collect()
}

/// The path of the module that a file of a crate holds; none for tests and further programs.
fn module_of(file: &SourceFile) -> Option<Path> {
    let inner = file.in_crate()?.1.strip_prefix("src/")?.strip_suffix(".rs")?;
    if inner.starts_with("bin/") || inner.ends_with("tests") {
        return None;
    }
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    let is_root = inner == "lib" || inner == "main";
    Some(if is_root { Path::new() } else { inner.split('/').map(Into::into).collect() })
}

impl<'f> Crate<'f> {
    /// Of a library and a program in one crate, the library.
    fn read(mut files: Vec<&'f SourceFile>) -> Self {
        if files.iter().any(|file| file.path.ends_with("/src/lib.rs")) {
            files.retain(|file| !file.path.ends_with("/src/main.rs"));
        }
        let mut modules = BTreeMap::new();
        for (file, source) in files.iter().enumerate() {
            if let (Some(path), Some(tree)) = (module_of(source), source.tree()) {
                Reader { modules: &mut modules, file, path }.items(&tree.items);
            }
        }
        Self { files, modules }
    }

    /// The file or module that `path` names when it stands in `module`; none outside of the crate.
    fn resolve(&self, module: &Path, path: &[String], depth: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Path::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            name => {
                let import = self.modules.get(module)?.imports.get(name);
                let is_import = import.is_some_and(|import| import[0] != *name);
                if !is_import && !self.modules.contains_key(&child(module, name)) {
                    return None;
                }
                rest = path;
                module.clone()
            }
        };
        while let Some((name, after)) = rest.split_first() {
            rest = after;
            if name == "super" {
                at.pop();
            } else if self.modules.contains_key(&child(&at, name)) {
                at.push(name.clone());
            } else {
                match self.name(&at, name, depth)? {
                    Target::Module(module) => at = module,
                    found @ Target::File(_) => return Some(found),
                }
            }
        }
        Some(Target::Module(at))
    }

    /// The definition of a name in `module` that is no module below it.
    fn name(&self, module: &Path, name: &str, depth: usize) -> Option<Target> {
        let own = self.modules.get(module)?;
        if depth == DEPTH_MAX || own.items.contains(name) {
            return Some(Target::File(own.file));
        }
        if let Some(import) = own.imports.get(name) {
            return self.resolve(module, import, depth + 1);
        }
        for glob in &own.globs {
            if let Some(Target::Module(other)) = self.resolve(module, glob, depth + 1)
                && let Some(there) = self.modules.get(&other)
                && (there.items.contains(name) || there.imports.contains_key(name))
            {
                return self.name(&other, name, depth + 1);
            }
        }
        // A name that a macro makes.
        Some(Target::File(own.file))
    }

    /// The arrows between files of which none holds a module above that of the other.
    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, Module { file, named, .. }) in &self.modules {
            for (path, line) in named {
                let Some(Target::File(to)) = self.resolve(module, path, 0) else { continue };
                let (own, other) = (module_of(self.files[*file]), module_of(self.files[to]));
                let (own, other) = (own.unwrap_or_default(), other.unwrap_or_default());
                if !own.starts_with(&other) && !other.starts_with(&own) {
                    arrows.entry(*file).or_default().entry(to).or_insert(*line);
                }
            }
        }
        arrows
    }

    fn layers(&self, arrows: &Arrows) -> Vec<Problem> {
        let is_in = |file: usize, module: &str| {
            let rest = self.files[file].path.strip_prefix(module);
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        let mut problems = Vec::new();
        for (own, others) in LAYERS {
            let (folder, _) = own.rsplit_once('/').unwrap_or_default();
            let others: Vec<_> = others.iter().map(|other| format!("{folder}/{other}")).collect();
            for (from, ends) in arrows.iter().filter(|(from, _)| is_in(**from, own)) {
                let is_refused = |to: usize| others.iter().any(|other| is_in(to, other));
                for (to, line) in ends.iter().filter(|(to, _)| is_refused(**to)) {
                    let what = format!("`{own}` must not import {}", self.files[*to].path);
                    problems.push(Problem::error(&self.files[*from].path, *line, what));
                }
            }
        }
        problems
    }

    /// One problem for each set of files that reach each other, with a shortest way around.
    fn circles(&self, mut arrows: Arrows) -> Vec<Problem> {
        for (from, to) in &mut arrows {
            let start = &self.files[*from].path;
            to.retain(|to, _| {
                !ALLOWED.iter().any(|(place, _)| {
                    let is_inside = self.files[*to].path.starts_with(place);
                    start.starts_with(place) && (is_inside || !place.ends_with('/'))
                })
            });
        }
        let mut problems = Vec::new();
        let mut done = BTreeSet::new();
        for &file in arrows.keys() {
            let reach = reached(&arrows, file);
            if done.contains(&file) || !reach.contains_key(&file) {
                continue;
            }
            let mut way = vec![file, reach[&file]];
            while way.last() != Some(&file) {
                way.extend(way.last().map(|file| reach[file]));
            }
            way.reverse();
            let is_in = |other: &&usize| reached(&arrows, **other).contains_key(&file);
            let all: Vec<usize> = reach.keys().filter(is_in).copied().collect();
            let names: Vec<&str> = way.iter().map(|file| self.files[*file].path.as_str()).collect();
            let what = format!(
                "a circle of {} files, one way around it: {}; move what the lower file needs of \
                 the higher one to a file of its own",
                all.len(),
                names.join(" -> ")
            );
            problems.push(Problem::error(names[0], arrows[&way[0]][&way[1]], what));
            done.extend(all);
        }
        problems
    }
}

fn child(module: &[String], name: &str) -> Path {
    module.iter().cloned().chain([name.into()]).collect()
}

/// The files that arrows lead to from one, each with the file before it on a shortest way.
fn reached(arrows: &Arrows, from: usize) -> BTreeMap<usize, usize> {
    let mut reached = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(file) = open.pop_front() {
        for &next in arrows.get(&file).into_iter().flat_map(BTreeMap::keys) {
            reached.entry(next).or_insert_with(|| {
                open.push_back(next);
                file
            });
        }
    }
    reached
}

/// Reads the items of a file into its modules.
struct Reader<'r> {
    modules: &'r mut BTreeMap<Path, Module>,
    file: usize,
    path: Path,
}

impl Reader<'_> {
    fn items(&mut self, items: &[syn::Item]) {
        self.own().file = self.file;
        items.iter().for_each(|item| self.item(item));
    }

    fn own(&mut self) -> &mut Module {
        self.modules.entry(self.path.clone()).or_default()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the items of syn are not ours")]
    fn item(&mut self, item: &syn::Item) {
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.own().items.extend(name.map(ToString::to_string));
        if let syn::Item::Use(item) = item {
            self.used(&item.tree, Path::new(), true, !is_for_tests(&item.attrs));
        } else {
            self.visit_item(item);
        }
    }

    /// Keeps what a `use` binds in the module, if it stands there, and what it names.
    fn used(&mut self, tree: &syn::UseTree, before: Path, binds: bool, names: bool) {
        let (bound, last) = match tree {
            syn::UseTree::Path(path) => {
                let before = child(&before, &path.ident.to_string());
                return self.used(&path.tree, before, binds, names);
            }
            syn::UseTree::Group(group) => {
                let items = group.items.iter();
                return items.for_each(|item| self.used(item, before.clone(), binds, names));
            }
            syn::UseTree::Glob(_) => return self.own().globs.extend(binds.then_some(before)),
            syn::UseTree::Name(name) => (&name.ident, &name.ident),
            syn::UseTree::Rename(rename) => (&rename.rename, &rename.ident),
        };
        // `use a::{self}` binds `a`.
        let (mut bound, mut path) = (bound.to_string(), before);
        if last == "self" {
            bound = if bound == "self" { path.last().cloned().unwrap_or_default() } else { bound };
        } else {
            path.push(last.to_string());
        }
        if names {
            self.own().named.push((path.clone(), last.span().start().line));
        }
        if binds {
            self.own().imports.insert(bound, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if let Some((_, items)) = module.content.as_ref().filter(|_| !is_for_tests(&module.attrs)) {
            self.path.push(module.ident.to_string());
            self.items(items);
            self.path.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.used(&item.tree, Path::new(), false, !is_for_tests(&item.attrs));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first().filter(|_| path.segments.len() > 1) {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.own().named.push((names, first.ident.span().start().line));
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(path, text): &(&str, &str)| SourceFile::new(&format!("crates/a/src/{path}.rs"), text);
        let files: Vec<SourceFile> = files.iter().map(file).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_files_that_name_each_other_are_a_circle() {
        let found = circles(&[
            ("lib", "mod b;\nmod c;\n"),
            ("b", "\nuse crate::c::C;\npub struct B;\n"),
            ("c", "pub struct C;\nfn f() { crate::b::B::new() }\n"),
        ]);
        let expected = "crates/a/src/b.rs:2: a circle of 2 files, one way around it: \
                        crates/a/src/b.rs -> crates/a/src/c.rs -> crates/a/src/b.rs; move";
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }

    #[test]
    fn arrows_follow_re_exports() {
        // The name `D` comes out of `c/d.rs`, by way of `c` and of the root.
        let found = circles(&[
            ("lib", "mod b;\nmod c;\npub use c::{d, D as E};\n"),
            ("b", "use super::E;\npub(crate) struct B;\n"),
            ("c", "mod d;\npub use d::*;\n"),
            ("c/d", "pub struct D;\nfn f(_: crate::b::B) {}\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("crates/a/src/b.rs -> crates/a/src/c/d.rs -> "), "{found:?}");
        let by_module = circles(&[
            ("lib", "mod b;\nmod c;\n"),
            ("b", "use crate::c;\npub struct B;\nfn f() { c::g() }\n"),
            ("c", "use crate::b::{self};\npub fn g() { b::B }\n"),
        ]);
        assert_eq!(by_module.len(), 1, "{by_module:?}");
    }

    #[test]
    fn a_module_and_its_parts_are_one_thing() {
        let found = circles(&[
            ("lib", "mod b;\npub const A: u8 = 1;\nuse b::c::C;\n"),
            ("b", "pub mod c;\nuse c::C;\npub struct B;\n"),
            ("b/c", "use super::B;\nuse crate::A;\npub struct C;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn tests_and_other_crates_are_no_arrows() {
        let found = circles(&[
            ("lib", "mod b;\nmod c;\n"),
            ("b", "use std::b::C;\nuse crate::c::C;\npub struct B;\n"),
            ("c", "pub struct C;\n#[cfg(test)]\nmod tests {\n use crate::b::B;\n}\n"),
            ("c/tests", "use crate::b::B;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn each_circle_is_one_problem() {
        let found = circles(&[
            ("lib", "mod b;\nmod c;\nmod d;\nmod e;\nmod f;\n"),
            ("b", "use crate::c::C;\npub struct B;\n"),
            ("c", "use crate::d::D;\npub struct C;\n"),
            ("d", "use crate::{b::B, e::E};\npub struct D;\n"),
            ("e", "use crate::f::F;\npub struct E;\n"),
            ("f", "use crate::e::E;\npub struct F;\n"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("a circle of 3 files"), "{found:?}");
        assert!(found[1].contains("a circle of 2 files"), "{found:?}");
    }

    #[test]
    fn a_worker_does_not_import_the_agent() {
        let problems = |path: &str, text: &str| {
            let agent = SourceFile::new("crates/switch/src/agent/run.rs", "pub struct Agent;\n");
            let root = SourceFile::new("crates/switch/src/agent.rs", "pub use run::Agent;\n");
            check(&[SourceFile::new(path, text), root, agent])
        };
        let wrong = "use crate::agent::Agent;\n";
        let found = problems("crates/switch/src/worker/ports.rs", wrong);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.ends_with("must not import crates/switch/src/agent/run.rs"));
        assert_eq!(problems("crates/switch/src/worker.rs", wrong).len(), 1);
        assert_eq!(problems("crates/switch/src/run.rs", wrong).len(), 0);
        assert_eq!(problems("crates/switch/src/worker/ports.rs", "use crate::a::B;\n").len(), 0);
    }
}
