//! What the code of each module names.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::Arrows;
use super::modules::{Modules, is_for_tests, leaves};

/// The arrows between the files of these modules.
pub fn between(modules: &Modules) -> Arrows {
    let mut arrows = Arrows::new();
    for index in 0..modules.0.len() {
        let mut named = PathVisitor::default();
        modules.0[index].items.iter().for_each(|item| named.visit_item(item));
        for path in named.0 {
            for file in modules.definers(index, &path) {
                let from = &modules.0[index].file;
                if file != *from {
                    let names = arrows.entry(from.clone()).or_default().entry(file).or_default();
                    let name = path.last().cloned().unwrap_or_default();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
    }
    arrows
}

/// Every path that some code names.
#[derive(Default)]
struct PathVisitor(Vec<Vec<String>>);

impl<'code> Visit<'code> for PathVisitor {
    fn visit_item_use(&mut self, item: &'code syn::ItemUse) {
        self.0.extend(leaves(&item.tree).into_iter().map(|(path, _)| path));
    }

    fn visit_path(&mut self, path: &'code syn::Path) {
        self.note(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'code syn::Macro) {
        self.note_tokens(call.tokens.clone());
    }

    fn visit_item_fn(&mut self, item: &'code syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'code syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    // `pub(in path)` takes nothing from there, and attributes are other people's.
    fn visit_vis_restricted(&mut self, _: &'code syn::VisRestricted) {}
    fn visit_attribute(&mut self, _: &'code syn::Attribute) {}
}

impl PathVisitor {
    /// A single lower-case word is a variable or a function of this file; what `use` brings in was noted there.
    fn note(&mut self, path: Vec<String>) {
        let is_type = |word: &String| word.starts_with(char::is_uppercase);
        if path.len() > 1 || path.first().is_some_and(is_type) {
            self.0.push(path);
        }
    }

    /// The paths within a macro call, whose tokens need not be Rust.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.note(std::mem::take(&mut path));
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                other => {
                    self.note(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(path);
    }
}
