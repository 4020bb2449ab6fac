//! String literals in the code of a crate.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprBinary, ExprLit, ExprMethodCall, ItemConst, Lit, LitStr, Macro, Pat};

use super::modules::Modules;

/// The texts of each file, without documentation.
pub fn collect(modules: &Modules) -> BTreeMap<String, Vec<String>> {
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for module in &modules.0 {
        let mut texts = Texts(Vec::new());
        module.items.iter().for_each(|item| texts.visit_item(item));
        by_file.entry(module.file.clone()).or_default().extend(texts.0);
    }
    by_file
}

/// The texts of each file that code compares others with: in patterns, in comparisons, in questions such as `starts_with`, and
/// as constants, which stand for them.
pub fn compared(modules: &Modules) -> BTreeMap<String, Vec<String>> {
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for module in &modules.0 {
        let mut compared = Compared(Texts(Vec::new()));
        module.items.iter().for_each(|item| compared.visit_item(item));
        by_file.entry(module.file.clone()).or_default().extend(compared.0.0);
    }
    by_file
}

/// Methods that ask whether a text is, or has, another.
const QUESTIONS: [&str; 8] =
    ["starts_with", "ends_with", "contains", "strip_prefix", "strip_suffix", "eq_ignore_ascii_case", "phase", "get"];

struct Compared(Texts);

impl<'a> Visit<'a> for Compared {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_pat(&mut self, pattern: &'a Pat) {
        if let Pat::Lit(ExprLit { lit: Lit::Str(text), .. }) = pattern {
            self.0.visit_lit_str(text);
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_expr_binary(&mut self, binary: &'a ExprBinary) {
        if matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_)) {
            [&binary.left, &binary.right].into_iter().for_each(|side| self.add(side));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if QUESTIONS.iter().any(|name| call.method == name) {
            // Also one of several: `[...].contains(&text)`.
            call.args.iter().for_each(|argument| self.add(argument));
            if call.method == "contains" && matches!(*call.receiver, Expr::Array(_)) {
                self.0.visit_expr(&call.receiver);
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_item_const(&mut self, item: &'a ItemConst) {
        self.add(&item.expr);
    }

    fn visit_macro(&mut self, code: &'a Macro) {
        if code.path.is_ident("matches") {
            self.0.visit_macro(code);
        }
    }
}

impl Compared {
    /// A text that stands alone, or in brackets or behind a `&`.
    fn add(&mut self, text: &Expr) {
        match text {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => self.0.visit_lit_str(text),
            Expr::Reference(reference) => self.add(&reference.expr),
            Expr::Paren(inner) => self.add(&inner.expr),
            _ => (),
        }
    }
}

struct Texts(Vec<String>);

impl Texts {
    /// A macro's arguments need not be Rust.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    self.0.extend(syn::parse_str::<LitStr>(&literal.to_string()).map(|text| text.value()));
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => (),
            }
        }
    }
}

impl<'a> Visit<'a> for Texts {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_lit_str(&mut self, text: &'a LitStr) {
        self.0.push(text.value());
    }

    fn visit_macro(&mut self, code: &'a Macro) {
        self.visit_tokens(code.tokens.clone());
        visit::visit_macro(self, code);
    }
}
