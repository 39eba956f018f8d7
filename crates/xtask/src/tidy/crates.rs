//! Rules about `unsafe`: every crate's root file forbids it, and where the plan allows it, it
//! stands only in the listed files.
//!
//! The plan is `graph::CRATES`. The compiler enforces the attribute; this file must never let the
//! attribute be forgotten.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::{Problem, SourceFile};
use crate::graph::{Unsafe, plan_of};

pub(super) fn check(files: &[SourceFile]) -> Vec<Problem> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Problem> {
    let Some((name, inner)) = file.in_crate() else { return Vec::new() };
    let Some(plan) = plan_of(name) else { return Vec::new() };
    let Some(tree) = file.tree() else { return Vec::new() };
    let is_root = inner == "src/lib.rs" || inner == "src/main.rs" || inner.starts_with("src/bin/");
    let mut problems = Vec::new();
    let allowed_here = match plan.unsafe_code {
        Unsafe::Forbid => {
            if is_root && !tree.attrs.iter().any(forbids_unsafe) {
                let what = "add `#![forbid(unsafe_code)]` below the opening paragraph";
                problems.push(Problem::error(&file.path, 1, what));
            }
            false
        }
        Unsafe::Only(places) => places.iter().any(|place| {
            inner.strip_prefix(place).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
        }),
    };
    if !allowed_here {
        let mut search = Search::default();
        search.visit_file(tree);
        problems.extend(search.found.iter().map(|span| {
            let what = match plan.unsafe_code {
                Unsafe::Forbid | Unsafe::Only([]) => {
                    format!("`unsafe` has no place in `{name}`; ask netdev for a safe function")
                }
                Unsafe::Only(places) => {
                    format!("`unsafe` in `{name}` stands only in {}", places.join(", "))
                }
            };
            Problem::error(&file.path, span.start().line, what)
        }));
    }
    problems
}

fn forbids_unsafe(attribute: &syn::Attribute) -> bool {
    let is_it = |list: &syn::MetaList| {
        list.path.is_ident("forbid") && list.tokens.to_string().contains("unsafe_code")
    };
    attribute.meta.require_list().is_ok_and(is_it)
}

#[derive(Default)]
struct Search {
    found: Vec<Span>,
}

impl<'ast> Visit<'ast> for Search {
    fn visit_expr_unsafe(&mut self, expr: &'ast syn::ExprUnsafe) {
        self.found.push(expr.unsafe_token.span());
        visit::visit_expr_unsafe(self, expr);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let syn::Safety::Unsafe(word) = &signature.safety {
            self.found.push(word.span());
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.found.extend(item.unsafety.as_ref().map(|u| u.span()));
        visit::visit_item_impl(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let lists = |list: &syn::MetaList| {
            (list.path.is_ident("allow") || list.path.is_ident("expect"))
                && list.tokens.to_string().contains("unsafe_code")
        };
        if attribute.meta.require_list().is_ok_and(lists) {
            self.found.push(attribute.span());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&[SourceFile::new(path, text)]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn roots_forbid_unsafe() {
        let found = problems("crates/wire/src/lib.rs", "//! Codec.\nmod a;\n");
        assert!(found[0].contains("add `#![forbid(unsafe_code)]`"), "{found:?}");
        let good = "//! Codec.\n#![forbid(unsafe_code)]\nmod a;\n";
        assert!(problems("crates/wire/src/lib.rs", good).is_empty());
        assert!(problems("crates/wire/src/a.rs", "//! A.\n").is_empty());
        assert!(problems("crates/netdev/src/lib.rs", "//! Ports.\n").is_empty());
    }

    #[test]
    fn unsafe_stands_only_where_the_plan_says() {
        let block = "//! A.\nfn f() {\n unsafe { g() }\n}\n";
        assert!(problems("crates/netdev/src/sys/poll.rs", block).is_empty());
        assert!(problems("crates/netdev/src/sys.rs", block).is_empty());
        let found = problems("crates/netdev/src/tap.rs", block);
        assert_eq!(
            found,
            ["crates/netdev/src/tap.rs:3: `unsafe` in `netdev` stands only in src/sys"]
        );
        for text in [block, "//! A.\nunsafe fn f() {}\n", "//! A.\nunsafe impl S for T {}\n"] {
            assert_eq!(problems("crates/packet/src/a.rs", text).len(), 1, "{text}");
        }
        let allow = "//! A.\n#![allow(unsafe_code)]\n";
        assert_eq!(problems("crates/packet/src/a.rs", allow).len(), 1);
    }
}
