//! String literals in the code of a crate.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, LitStr, Macro};

use super::modules::Modules;

/// The texts of each file, without documentation.
pub fn of(modules: &Modules) -> BTreeMap<String, Vec<String>> {
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for module in &modules.0 {
        let mut texts = Texts(Vec::new());
        module.items.iter().for_each(|item| texts.visit_item(item));
        by_file.entry(module.file.clone()).or_default().extend(texts.0);
    }
    by_file
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
