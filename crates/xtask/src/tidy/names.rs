//! Rules about names: a public type name has one meaning in the workspace, a name shared inside a
//! crate has one meaning there, and a name of a truth value (`is_..`) belongs to a `bool`.
//!
//! The first rule looks at `pub` types of all libraries, the second at everything that its own file
//! lets others see. What may stand twice is in a list with the reason. It must never look at tests,
//! nor at names that a macro makes.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::syntax::is_for_tests;
use super::{Problem, SourceFile};

/// Public names that may stand in several crates, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("Error", "a library's own error, always written with its crate: `openflow::Error`"),
    ("Session", "of a controller with a switch; of a generator with its ports, as in TRex"),
];

/// Names that may stand in several files of a crate: crate, name, reason.
const SHARED_INSIDE: &[(&str, &str, &str)] = &[];

/// Beginnings of names that say yes or no.
const YES_OR_NO: &[&str] = &["is_", "has_", "was_", "can_", "should_"];

/// A type and where it is declared.
#[derive(Debug)]
struct Declared<'f> {
    name: String,
    path: &'f str,
    line: usize,
    is_public: bool,
}

pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut declared = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        let Some((_, inner)) = file.in_crate() else { continue };
        if !inner.starts_with("src/") || inner.ends_with("tests.rs") {
            continue;
        }
        let Some(tree) = file.tree() else { continue };
        let mut search = Search { path: &file.path, declared: Vec::new(), problems: Vec::new() };
        search.visit_file(tree);
        declared.extend(search.declared);
        problems.extend(search.problems);
    }
    problems.extend(over_the_workspace(&declared));
    problems.extend(inside_crates(&declared));
    problems
}

/// Public types of different crates that bear one name.
fn over_the_workspace(declared: &[Declared<'_>]) -> Vec<Problem> {
    let mut places: BTreeMap<&str, Vec<&Declared<'_>>> = BTreeMap::new();
    for one in declared.iter().filter(|one| one.is_public) {
        places.entry(&one.name).or_default().push(one);
    }
    places.retain(|name, places| {
        let first = crate_of(places[0].path);
        let is_shared = places.iter().any(|place| crate_of(place.path) != first);
        is_shared && !SHARED.iter().any(|(allowed, _)| allowed == name)
    });
    report(&places, "a public name has one meaning in the workspace")
}

/// Types of one crate that bear one name and are seen outside of their files.
fn inside_crates(declared: &[Declared<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut crates: BTreeMap<&str, BTreeMap<&str, Vec<&Declared<'_>>>> = BTreeMap::new();
    for one in declared {
        let names = crates.entry(crate_of(one.path)).or_default();
        names.entry(&one.name).or_default().push(one);
    }
    for (owner, mut places) in crates {
        places.retain(|name, places| {
            let is_it = |row: &&(&str, &str, &str)| row.0 == owner && row.1 == *name;
            places.len() > 1 && !SHARED_INSIDE.iter().any(|row| is_it(&row))
        });
        problems.extend(report(&places, "a name has one meaning in its crate"));
    }
    problems
}

/// One problem at each place but the first, which is named in it.
fn report(places: &BTreeMap<&str, Vec<&Declared<'_>>>, rule: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, places) in places {
        let Some((first, others)) = places.split_first() else { continue };
        for other in others {
            let what = format!("`{name}` stands in {}:{} too; {rule}", first.path, first.line);
            problems.push(Problem::error(other.path, other.line, what));
        }
    }
    problems
}

fn crate_of(path: &str) -> &str {
    path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or(path)
}

struct Search<'f> {
    path: &'f str,
    declared: Vec<Declared<'f>>,
    problems: Vec<Problem>,
}

impl Search<'_> {
    fn declare(&mut self, name: &Ident, visibility: &syn::Visibility) {
        let is_public = match visibility {
            syn::Visibility::Public(_) => true,
            syn::Visibility::Restricted(_) => false,
            syn::Visibility::Inherited => return,
        };
        let line = name.span().start().line;
        let name = name.to_string();
        self.declared.push(Declared { name, path: self.path, line, is_public });
    }

    /// Reports a name of a truth value whose type holds no `bool`.
    fn truth(&mut self, name: &Ident, kind: &dyn quote::ToTokens) {
        let text = name.to_string();
        let says_so = YES_OR_NO.iter().any(|beginning| text.starts_with(beginning));
        if says_so && !holds_bool(kind.to_token_stream()) {
            let what = format!("`{text}` is no bool; name the thing, not a yes or no");
            self.problems.push(Problem::error(self.path, name.span().start().line, what));
        }
    }

    fn signature(&mut self, signature: &syn::Signature) {
        if let syn::ReturnType::Type(_, kind) = &signature.output {
            self.truth(&signature.ident, kind);
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.declare(&item.ident, &item.vis);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.declare(&item.ident, &item.vis);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.declare(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.declare(&item.ident, &item.vis);
        visit::visit_item_type(self, item);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.truth(name, &field.ty);
        }
        visit::visit_field(self, field);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.signature(&item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.signature(&item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.signature(&item.sig);
        visit::visit_trait_item_fn(self, item);
    }
}

/// Whether a type is `bool`, `AtomicBool`, or holds one, as `Cell<bool>` does.
fn holds_bool(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "bool" || word == "AtomicBool",
        TokenTree::Group(group) => holds_bool(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_public_name_stands_in_one_crate() {
        let found = problems(&[
            ("crates/a/src/lib.rs", "pub struct Place;\npub enum Error {}\n"),
            ("crates/b/src/x.rs", "\npub enum Place {}\npub struct Error;\n"),
            ("crates/c/src/x.rs", "pub(crate) type Place = u8;\nstruct Q;\n"),
            ("crates/d/src/x.rs", "pub trait Q {}\n#[cfg(test)] mod t { pub struct Place; }\n"),
            ("crates/d/tests/x.rs", "pub struct Place;\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/b/src/x.rs:2: "), "{found:?}");
        let what = "`Place` stands in crates/a/src/lib.rs:1 too; a public name has one meaning";
        assert!(found[0].contains(what), "{found:?}");
    }

    #[test]
    fn a_name_that_others_see_stands_once_in_a_crate() {
        let found = problems(&[
            ("crates/a/src/x.rs", "pub(crate) struct Place;\nstruct Own;\n"),
            ("crates/a/src/y.rs", "pub(super) enum Place {}\npub(crate) struct Own;\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/y.rs:1: "), "{found:?}");
        assert!(found[0].contains("a name has one meaning in its crate"), "{found:?}");
    }

    #[test]
    fn yes_or_no_is_a_bool() {
        let found = problems(&[(
            "crates/a/src/x.rs",
            "struct A {\n is_settling: Cell<Settling>,\n is_on: Cell<bool>,\n has: u8,\n}\n\
             fn is_known() -> State { f() }\nfn has_room() -> Result<bool, E> { f() }\n\
             impl A { fn was_seen(&self) -> Option<u8> { None } }\n",
        )]);
        assert_eq!(found.len(), 3, "{found:?}");
        for (problem, (line, name)) in
            found.iter().zip([(2, "is_settling"), (6, "is_known"), (8, "was_seen")])
        {
            assert!(problem.starts_with(&format!("crates/a/src/x.rs:{line}: ")), "{problem}");
            assert!(problem.contains(&format!("`{name}` is no bool")), "{problem}");
        }
    }
}
