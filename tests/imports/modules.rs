//! The tree of modules of a crate, with what each one names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, UseTree};

/// All modules of a crate; the first is its root.
pub struct Modules(pub Vec<Module>);

/// A module: a file, or a `mod name { ... }` within one.
pub struct Module {
    /// The file, by its path below the folder of the root file.
    pub file: String,
    /// The module around this one.
    pub parent: Option<usize>,
    /// What a path within this module may begin with.
    pub names: BTreeMap<String, Vec<Name>>,
    /// `use path::*`.
    pub globs: Vec<Vec<String>>,
    /// Its code, without the modules in it and without what only tests see.
    pub items: Vec<Item>,
}

/// What a name in a module stands for.
#[derive(Clone)]
pub enum Name {
    /// An item of this module.
    Defined,
    /// A module in it.
    Module(usize),
    /// What `use` brought in, from this path.
    Used(Vec<String>),
}

/// Reads the crate whose root file this is, and every file that its `mod` declarations lead to.
pub fn read(root_file: &Path) -> Modules {
    let mut modules = Modules(Vec::new());
    let top = root_file.parent().expect("a file has a folder").to_owned();
    modules.add_file(&top, root_file, &top, None);
    modules
}

impl Modules {
    /// Adds the module in `path`, whose child modules have their files in `children`.
    fn add_file(&mut self, top: &Path, path: &Path, children: &Path, parent: Option<usize>) -> usize {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let code = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = path.strip_prefix(top).unwrap_or(path).to_string_lossy().into_owned();
        self.add(top, &file, code.items, children, parent)
    }

    fn add(&mut self, top: &Path, file: &str, items: Vec<Item>, children: &Path, parent: Option<usize>) -> usize {
        let index = self.0.len();
        let (names, globs) = (BTreeMap::new(), Vec::new());
        self.0.push(Module { file: file.to_owned(), parent, names, globs, items: Vec::new() });
        for item in items.into_iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let child = match module.content {
                        Some((_, items)) => self.add(top, file, items, &children.join(&name), Some(index)),
                        None => {
                            let (path, below) = file_of(&name, path_attribute(&module.attrs), top, file, children);
                            self.add_file(top, &path, &below, Some(index))
                        }
                    };
                    self.name(index, &name, Name::Module(child));
                }
                item => {
                    self.note(index, &item);
                    self.0[index].items.push(item);
                }
            }
        }
        index
    }

    fn name(&mut self, module: usize, name: &str, what: Name) {
        self.0[module].names.entry(name.to_owned()).or_default().push(what);
    }

    /// Notes what this item adds to the names of its module.
    fn note(&mut self, module: usize, item: &Item) {
        if let Item::Use(item) = item {
            for (path, alias) in leaves(&item.tree) {
                match alias {
                    Some(alias) => self.name(module, &alias, Name::Used(path)),
                    None => self.0[module].globs.push(path),
                }
            }
        } else if let Some(name) = defined_name(item) {
            self.name(module, &name, Name::Defined);
        }
    }
}

/// Every path in a `use`, with the name it goes by; none for `*`.
pub fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    match tree {
        UseTree::Path(path) => {
            let below = leaves(&path.tree).into_iter();
            below.map(|(rest, alias)| ([vec![path.ident.to_string()], rest].concat(), alias)).collect()
        }
        UseTree::Name(name) if name.ident == "self" => vec![(vec![], Some("self".to_owned()))],
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], Some(name.ident.to_string()))],
        UseTree::Rename(name) if name.ident == "self" => vec![(vec![], Some(name.rename.to_string()))],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], Some(name.rename.to_string()))],
        UseTree::Glob(_) => vec![(vec![], None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
    .into_iter()
    .map(|(path, alias)| {
        // `use a::b::{self}` goes by the name `b`.
        let alias = if alias.as_deref() == Some("self") { path.last().cloned().or(alias) } else { alias };
        (path, alias)
    })
    .collect()
}

/// Where the module `name` of `file` lies, and where its own child modules lie.
fn file_of(name: &str, path: Option<String>, top: &Path, file: &str, children: &Path) -> (PathBuf, PathBuf) {
    if let Some(path) = path {
        let path = top.join(file).parent().expect("a file has a folder").join(path);
        let below = path.parent().expect("a file has a folder").to_owned();
        return (path, below);
    }
    let (flat, folder) = (children.join(format!("{name}.rs")), children.join(name));
    if flat.is_file() { (flat, folder) } else { (folder.join("mod.rs"), folder) }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        let value = &attribute.meta.require_name_value().ok()?.value;
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else { return None };
        Some(text.value())
    })
}

/// Whether only tests see what bears these attributes: `#[cfg(test)]`, `#[cfg(all(test, ...))]`.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else { return false };
        let text = list.tokens.to_string().replace(' ', "");
        text == "test" || text.starts_with("all(test,")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined_name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}
