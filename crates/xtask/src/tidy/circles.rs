//! A rule about files of one crate: none of them needs itself by way of others.
//!
//! Files that name each other in a circle can be read, tested and taken out only together. A module
//! and the modules below it are one thing in parts, so between them it does not matter. Imports and
//! qualified paths count, after re-exports; tests do not. It must never try to know types: a method
//! that another file gives to a type is no arrow.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::syntax::is_for_tests;
use super::{Problem, SourceFile};

/// Files whose own arrows are not counted, and folders whose inner arrows are not, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/datapath/src/fast/classifier/exact.rs", "a part of the search of a burst"),
    ("crates/datapath/src/fast/classifier/group.rs", "a group looks up in the table of masks"),
    ("crates/datapath/src/fast/forwarder/program.rs", "a program is made by its passes"),
    ("crates/datapath/src/fast/forwarder/tier/stations.rs", "a tier's program is compiled too"),
    ("crates/lab/src/", "methods, testbeds and agents are to be divided with the crate itself"),
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

/// The most re-exports between a name and its definition.
const DEPTH_MAX: usize = 16;

/// A path below the root of the crate.
type Path = Vec<String>;

/// A module: the names it defines, the names it imports, and its wildcard re-exports.
#[derive(Default)]
struct Module {
    file: usize,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Path>,
    globs: Vec<Path>,
}

/// A path that a file names, in one of its modules.
struct Named {
    file: usize,
    module: Path,
    path: Path,
    line: usize,
}

/// The meaning of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Module(Path),
    File(usize),
}

/// The modules of one crate and the paths that they name.
struct Modules<'f> {
    files: Vec<&'f SourceFile>,
    modules: BTreeMap<Path, Module>,
    named: Vec<Named>,
}

/// Lines of the arrows from file to file.
type Arrows = BTreeMap<usize, BTreeMap<usize, usize>>;

pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        let Some((name, inner)) = file.in_crate() else { continue };
        if module_of(inner).is_some() {
            crates.entry(name).or_default().push(file);
        }
    }
    crates.into_values().flat_map(|files| Modules::read(files).circles()).collect()
}

/// The path of the module that a file of a crate holds; none for tests and further programs.
fn module_of(inner: &str) -> Option<Path> {
    let inner = inner.strip_prefix("src/")?.strip_suffix(".rs")?;
    if inner.starts_with("bin/") || inner.ends_with("tests") {
        return None;
    }
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    let is_root = inner == "lib" || inner == "main";
    Some(if is_root { Path::new() } else { inner.split('/').map(Into::into).collect() })
}

impl<'f> Modules<'f> {
    /// Of a library and a program in one crate, the library.
    fn read(mut files: Vec<&'f SourceFile>) -> Self {
        if files.iter().any(|file| file.path.ends_with("/src/lib.rs")) {
            files.retain(|file| !file.path.ends_with("/src/main.rs"));
        }
        let mut read = Self { files, modules: BTreeMap::new(), named: Vec::new() };
        for (file, source) in read.files.clone().into_iter().enumerate() {
            let module = source.in_crate().and_then(|(_, inner)| module_of(inner));
            let tree = source.text.as_deref().and_then(|text| syn::parse_file(text).ok());
            if let (Some(module), Some(tree)) = (module, tree) {
                Reader { read: &mut read, file, module }.items(&tree.items);
            }
        }
        read
    }

    /// The file or module that `path` names when it stands in `module`; none outside of the crate.
    fn resolve(&self, module: &Path, path: &[String], depth: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Path::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            name => {
                let own = self.modules.get(module)?;
                let is_import = own.imports.get(name).is_some_and(|import| import[0] != *name);
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
                continue;
            }
            if self.modules.contains_key(&child(&at, name)) {
                at.push(name.clone());
                continue;
            }
            match self.name(&at, name, depth)? {
                Target::Module(module) => at = module,
                found @ Target::File(_) => return Some(found),
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
                && self.modules.get(&other).is_some_and(|other| other.has(name))
            {
                return self.name(&other, name, depth + 1);
            }
        }
        // A name that a macro makes.
        Some(Target::File(own.file))
    }

    fn arrows(&self) -> Arrows {
        let path = |file: usize| self.files[file].in_crate().and_then(|(_, p)| module_of(p));
        let mut arrows = Arrows::new();
        for named in &self.named {
            let target = self.resolve(&named.module, &named.path, 0);
            let Some(Target::File(to)) = target else { continue };
            let (from, Some(own), Some(other)) = (named.file, path(named.file), path(to)) else {
                continue;
            };
            let (start, end) = (&self.files[from].path, &self.files[to].path);
            let is_allowed = |place: &str| {
                start.starts_with(place) && (end.starts_with(place) || !place.ends_with('/'))
            };
            let is_allowed = ALLOWED.iter().any(|(place, _)| is_allowed(place));
            if !is_allowed && !own.starts_with(&other) && !other.starts_with(&own) {
                arrows.entry(from).or_default().entry(to).or_insert(named.line);
            }
        }
        arrows
    }

    /// One problem for each set of files that reach each other, with a shortest way around.
    fn circles(&self) -> Vec<Problem> {
        let arrows = self.arrows();
        let mut problems = Vec::new();
        let mut done = BTreeSet::new();
        for &file in arrows.keys() {
            if done.contains(&file) {
                continue;
            }
            let Some(way) = way_around(&arrows, file) else { continue };
            let reach = reached(&arrows, file);
            let all = reach.into_iter().filter(|other| reached(&arrows, *other).contains(&file));
            let all: Vec<usize> = all.collect();
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

impl Module {
    fn has(&self, name: &str) -> bool {
        self.items.contains(name) || self.imports.contains_key(name)
    }
}

fn child(module: &[String], name: &str) -> Path {
    module.iter().cloned().chain([name.into()]).collect()
}

fn reached(arrows: &Arrows, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let next = arrows.get(&file).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|file| reached.insert(**file)));
    }
    reached
}

/// A shortest way from `file` back to it.
fn way_around(arrows: &Arrows, file: usize) -> Option<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![file]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let next = way.last().and_then(|last| arrows.get(last));
            for &to in next.into_iter().flat_map(BTreeMap::keys) {
                let way: Vec<usize> = way.iter().copied().chain([to]).collect();
                if to == file {
                    return Some(way);
                }
                if seen.insert(to) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

/// Reads the items of a file into its modules.
struct Reader<'r, 'f> {
    read: &'r mut Modules<'f>,
    file: usize,
    module: Path,
}

impl Reader<'_, '_> {
    fn items(&mut self, items: &[syn::Item]) {
        let file = self.file;
        self.read.modules.insert(self.module.clone(), Module { file, ..Module::default() });
        items.iter().for_each(|item| self.item(item));
    }

    fn own(&mut self) -> &mut Module {
        self.read.modules.entry(self.module.clone()).or_default()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the items of syn are not ours")]
    fn item(&mut self, item: &syn::Item) {
        let name = match item {
            syn::Item::Mod(module) => return self.inline(module),
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
        if let Some(name) = name {
            let name = name.to_string();
            self.own().items.insert(name);
        }
        if let syn::Item::Use(item) = item {
            self.imports(&item.tree, &mut Path::new());
        }
        self.visit_item(item);
    }

    fn inline(&mut self, module: &syn::ItemMod) {
        if let Some((_, items)) = module.content.as_ref().filter(|_| !is_for_tests(&module.attrs)) {
            self.module.push(module.ident.to_string());
            self.items(items);
            self.module.pop();
        }
    }

    /// Notes the names that a `use` binds in the module.
    fn imports(&mut self, tree: &syn::UseTree, before: &mut Path) {
        let (name, last) = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.imports(&path.tree, before);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.imports(item, before));
            }
            syn::UseTree::Glob(_) => return self.own().globs.push(before.clone()),
            syn::UseTree::Name(name) => (&name.ident, &name.ident),
            syn::UseTree::Rename(rename) => (&rename.rename, &rename.ident),
        };
        // `use a::{self}` binds `a`.
        let (mut bound, mut path) = (name.to_string(), before.clone());
        if last == "self" {
            bound = if name == "self" { before.last().cloned().unwrap_or_default() } else { bound };
        } else {
            path.push(last.to_string());
        }
        self.own().imports.insert(bound, path);
    }

    fn note(&mut self, path: Path, line: usize) {
        let (file, module) = (self.file, self.module.clone());
        self.read.named.push(Named { file, module, path, line });
    }

    fn used(&mut self, tree: &syn::UseTree, before: &mut Path) {
        let last = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.used(&path.tree, before);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.used(item, before));
            }
            syn::UseTree::Glob(_) => return,
            syn::UseTree::Name(name) => &name.ident,
            syn::UseTree::Rename(rename) => &rename.ident,
        };
        self.note(child(before, &last.to_string()), last.span().start().line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inline(item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.used(&item.tree, &mut Path::new());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first().filter(|_| path.segments.len() > 1) {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.note(names, first.ident.span().start().line);
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
}
