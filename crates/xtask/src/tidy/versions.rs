//! Versions of the protocol are asked for what they have, never compared.
//!
//! `version == Version::V1_0` compiles silently when a version is added and may then be wrong;
//! `version.has_oxm()` is answered by the version's row. So a version is named in the tables of
//! `openflow` and in `wire`'s table of codecs, and as a value that is handed on; tests may name
//! what they like. It reads the syntax tree and never tries to know types.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::syntax::is_for_tests;
use super::{Problem, SourceFile};

const WHAT: &str = "a comparison with a version; ask for what it has (`version.has_oxm()`), by a \
                    row of openflow::version";

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/");
    let Some(tree) = file.tree().filter(|_| is_source) else { return Vec::new() };
    let mut found = Found { spans: Vec::new() };
    found.visit_file(tree);
    let lines = found.spans.iter().map(|span| span.start().line);
    lines.map(|line| Problem::error(&file.path, line, WHAT)).collect()
}

struct Found {
    spans: Vec<Span>,
}

/// Whether a path names one version: `Version::V1_0`, with or without what stands before it.
fn names_version(path: &syn::Path) -> bool {
    let mut last = path.segments.iter().rev();
    let variant = last.next().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let is_version = last.next().is_some_and(|segment| segment.ident == "Version");
    is_version && variant.starts_with("V1_")
}

fn is_version(expression: &syn::Expr) -> bool {
    if let syn::Expr::Reference(reference) = expression {
        return is_version(&reference.expr);
    }
    matches!(expression, syn::Expr::Path(path) if names_version(&path.path))
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let compares = matches!(
            binary.op,
            syn::BinOp::Eq(_)
                | syn::BinOp::Ne(_)
                | syn::BinOp::Lt(_)
                | syn::BinOp::Le(_)
                | syn::BinOp::Gt(_)
                | syn::BinOp::Ge(_)
        );
        if compares && (is_version(&binary.left) || is_version(&binary.right)) {
            self.spans.push(binary.span());
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "contains" && call.args.iter().any(is_version) {
            self.spans.push(call.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        if let syn::Pat::Path(path) = pattern
            && names_version(&path.path)
        {
            self.spans.push(path.span());
        }
        visit::visit_pat(self, pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::SourceFile;

    fn lines(text: &str) -> Vec<usize> {
        let file = SourceFile::new("crates/wire/src/flow.rs", text);
        check(&file).into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn comparisons_and_arms_are_found_and_values_are_not() {
        let text = "fn f(v: Version) {\n\
                    let _ = v == Version::V1_0;\n\
                    match v {\n\
                    openflow::Version::V1_3 => 1,\n\
                    _ => 2,\n\
                    };\n\
                    let _ = Some(Version::V1_3);\n\
                    let _ = all.contains(&Version::V1_0);\n\
                    }\n";
        assert_eq!(lines(text), [2, 4, 8]);
        let tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(lines(&tests), [0; 0]);
    }
}
