//! Rules about Rust source: opening paragraph, length of functions, wildcard imports, silent arms,
//! `mod.rs`, features inside functions, stubs, switched-off lints.
//!
//! It reads the syntax tree, so that strings and comments cannot deceive it. It must never try to
//! know types: what needs types is the compiler's and clippy's to say.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::{Problem, SourceFile};

const FUNCTION_LINES: usize = 70;

/// Macros that stand for work not done.
const STUBS: &[&str] = &[concat!("to", "do"), concat!("un", "implemented")];

/// Lints that may not be switched off: what they find is dead.
const DEAD: &[&str] = &["dead_code", "unused", "unused_imports", "unused_variables"];

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let (Some(text), Some(parsed)) = (&file.text, file.parsed()) else { return Vec::new() };
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        let what = "open with a `//!` paragraph: what it is, why it exists, what it must never do";
        problems.push(Problem::error(&file.path, 1, what));
    }
    match parsed {
        Ok(tree) => {
            let mut rules = Rules { path: &file.path, problems, in_tests: 0, in_function: 0 };
            rules.visit_file(tree);
            problems = rules.problems;
            if file.path.ends_with("/mod.rs") {
                problems.extend(logic_in_mod_rs(&file.path, tree));
            }
        }
        Err(error) => {
            let what = format!("not Rust: {error}");
            problems.push(Problem::error(&file.path, error.span().start().line, what));
        }
    }
    problems
}

fn logic_in_mod_rs(path: &str, tree: &syn::File) -> Option<Problem> {
    let is_list = |item: &syn::Item| {
        matches!(item, syn::Item::Use(_))
            || matches!(item, syn::Item::Mod(module) if module.content.is_none())
    };
    let item = tree.items.iter().find(|item| !is_list(item))?;
    let what = "a mod.rs only lists modules; move this to a file named after it";
    Some(Problem::error(path, item.span().start().line, what))
}

struct Rules<'f> {
    path: &'f str,
    problems: Vec<Problem>,
    in_tests: usize,
    in_function: usize,
}

impl Rules<'_> {
    fn report(&mut self, span: Span, what: impl Into<String>) {
        self.problems.push(Problem::error(self.path, span.start().line, what));
    }

    fn function(&mut self, name: &syn::Ident, first: Span, block: &syn::Block) {
        let lines = block.span().end().line + 1 - first.start().line;
        if lines > FUNCTION_LINES {
            let what =
                format!("fn {name} has {lines} lines, at most {FUNCTION_LINES}; name its parts");
            self.report(first, what);
        }
    }

    /// Attributes of the function itself lie outside its body.
    fn body(&mut self, attributes: &[syn::Attribute], block: &syn::Block) {
        attributes.iter().for_each(|attribute| self.visit_attribute(attribute));
        self.in_function += 1;
        self.visit_block(block);
        self.in_function -= 1;
    }
}

impl<'ast> Visit<'ast> for Rules<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let tests = usize::from(is_for_tests(&item.attrs));
        self.in_tests += tests;
        visit::visit_item_mod(self, item);
        self.in_tests -= tests;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, item.sig.span(), &item.block);
        self.body(&item.attrs, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, item.sig.span(), &item.block);
        self.body(&item.attrs, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block);
            self.body(&item.attrs, block);
        }
    }

    /// The lint against silent arms does not see `_other =>` behind an `Option` or in a tuple.
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut bindings = Bindings { unused: Vec::new() };
        bindings.visit_pat(&arm.pat);
        for name in bindings.unused {
            let what =
                format!("`{name}` in an arm: name the variants, or write `_` where none are");
            self.report(name.span(), what);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let Some(star) = wildcard(&item.tree, self.in_tests > 0) {
            self.report(star, "wildcard import; name what is imported (`super::*` in tests only)");
        }
        visit::visit_item_use(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let path = attribute.path();
        let words = || words(&attribute.meta);
        let in_body = self.in_function > 0;
        if in_body && path.is_ident("cfg") && words().iter().any(|word| word == "feature") {
            let what = "#[cfg(feature)] inside a function; give each feature its own function";
            self.report(attribute.span(), what);
        }
        if path.is_ident("allow") && words().iter().any(|word| DEAD.contains(&word.as_str())) {
            self.report(attribute.span(), "dead code is deleted, not allowed");
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        if STUBS.contains(&name.as_str()) {
            self.report(call.span(), format!("{name}!: no stubs; write it or leave it out"));
        }
        let in_body = self.in_function > 0;
        if in_body && name == "cfg" && idents(call.tokens.clone()).iter().any(|w| w == "feature") {
            self.report(call.span(), "cfg!(feature) inside a function; split the function");
        }
        visit::visit_macro(self, call);
    }
}

/// The bindings of a pattern whose names say that they are not used.
struct Bindings<'ast> {
    unused: Vec<&'ast syn::Ident>,
}

impl<'ast> Visit<'ast> for Bindings<'ast> {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if pattern.ident.to_string().starts_with('_') {
            self.unused.push(&pattern.ident);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

/// Whether these attributes hold an item back from everything but tests.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is = |a: &syn::Attribute| {
        a.path().is_ident("cfg") && words(&a.meta).first().is_some_and(|word| word == "test")
    };
    attributes.iter().any(is)
}

/// The `*` of a wildcard import that is not allowed.
fn wildcard(tree: &syn::UseTree, in_tests: bool) -> Option<Span> {
    fn star(tree: &syn::UseTree, after_super: bool, in_tests: bool) -> Option<Span> {
        match tree {
            syn::UseTree::Path(path) => star(&path.tree, path.ident == "super", in_tests),
            syn::UseTree::Group(group) => {
                group.items.iter().find_map(|item| star(item, after_super, in_tests))
            }
            syn::UseTree::Glob(glob) => (!(after_super && in_tests)).then(|| glob.span()),
            syn::UseTree::Name(_) | syn::UseTree::Rename(_) => None,
        }
    }
    star(tree, false, in_tests)
}

/// The identifiers inside an attribute's brackets.
fn words(meta: &syn::Meta) -> Vec<String> {
    let syn::Meta::List(list) = meta else { return Vec::new() };
    idents(list.tokens.clone())
}

/// Every word of a token stream, those inside brackets too.
pub(super) fn idents(tokens: TokenStream) -> Vec<String> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) => vec![ident.to_string()],
            TokenTree::Group(group) => idents(group.stream()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION_LINES, STUBS, SourceFile, check};

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile::new(path, text)).iter().map(ToString::to_string).collect()
    }

    fn one(text: &str, expected: &str) {
        let found = problems("a.rs", &format!("//! A file.\n{text}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }

    fn none(text: &str) {
        let found = problems("a.rs", &format!("//! A file.\n{text}"));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_file_opens_with_its_paragraph() {
        assert!(problems("a.rs", "use a::b;\n")[0].starts_with("a.rs:1: open with"));
        none("use a::b;\n");
    }

    #[test]
    fn functions_have_an_end() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "g();\n".repeat(lines - 2));
        none(&function(FUNCTION_LINES));
        one(&function(FUNCTION_LINES + 1), "fn f has 71 lines, at most 70");
        let method = format!("impl A {{\n{}}}\n", function(FUNCTION_LINES + 1));
        one(&method, "a.rs:3: fn f has 71 lines");
    }

    #[test]
    fn wildcards_only_for_the_tests_own_file() {
        one("use a::b::*;\n", "a.rs:2: wildcard import");
        one("fn f() {\n use E::{A, B::*};\n}\n", "a.rs:3: wildcard import");
        one("use super::*;\n", "wildcard import");
        none("#[cfg(test)]\nmod tests {\n use super::*;\n}\n");
        one("#[cfg(test)]\nmod tests {\n use other::*;\n}\n", "wildcard import");
    }

    #[test]
    fn arms_name_nothing_that_is_not_used() {
        one("fn f() {\n match a {\n A::B => 1,\n _other => 2,\n };\n}\n", "a.rs:5: `_other`");
        one("fn f() {\n match a {\n (Some(_kind), A::B) => 1,\n _ => 2,\n };\n}\n", "`_kind`");
        none("fn f() {\n match a {\n A::B | A::C(_) => 1,\n other => g(other),\n };\n}\n");
        none("fn f(_other: u8) {\n let _guard = lock();\n}\n");
    }

    #[test]
    fn a_mod_rs_only_lists() {
        assert!(problems("x/mod.rs", "//! X.\nmod a;\npub use a::B;\n").is_empty());
        let found = problems("x/mod.rs", "//! X.\nmod a;\nfn f() {}\n");
        assert!(found[0].starts_with("x/mod.rs:3: a mod.rs only lists"), "{found:?}");
    }

    #[test]
    fn features_stay_out_of_functions() {
        none("#[cfg(feature = \"x\")]\nfn f() {}\n");
        one("fn f() {\n #[cfg(feature = \"x\")]\n g();\n}\n", "a.rs:3: #[cfg(feature)]");
        one("fn f() -> bool {\n cfg!(feature = \"x\")\n}\n", "cfg!(feature)");
        none("fn f() {\n #[cfg(unix)]\n g();\n}\n");
    }

    #[test]
    fn stubs_and_dead_code_are_found() {
        for stub in STUBS {
            one(&format!("fn f() {{ {stub}!() }}\n"), "no stubs");
        }
        none("fn f() { let t = \"text\"; }\n");
        one("#[allow(dead_code)]\nfn f() {}\n", "dead code is deleted");
        none("#[allow(clippy::unwrap_used)]\nfn f() {}\n");
    }

    #[test]
    fn text_that_is_not_rust_is_named_with_its_line() {
        one("fn f( {\n", "a.rs:2: not Rust");
    }
}
