//! Identifiers that nobody would search for: `told`, `look`, `of`. Rust programmers look for `new`, `from`, `parse`, `check`,
//! `poll`, `report`, `owner`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// What an identifier must not be, one a line: see the head of the file.
const BANNED: &str = include_str!("identifiers/banned.txt");

/// After which words a name is defined.
const DEFINES: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union"];

#[test]
fn no_definition_has_a_banned_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let banned: BTreeSet<&str> = BANNED.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert!(banned.len() > 100, "{}", banned.len());
    let files = rust_files(root);
    assert!(files.len() > 1000, "{}", files.len());
    let mut found = String::new();
    for file in files {
        let code = fs::read_to_string(&file).unwrap().parse().unwrap();
        for name in definitions(code).into_iter().filter(|name| banned.contains(name.as_str())) {
            found += &format!("{}: {name}\n", file.strip_prefix(root).unwrap().display());
        }
    }
    assert!(found.is_empty(), "choose a name that a Rust programmer would search for:\n{found}");
}

#[test]
fn definitions_are_found_in_macros_and_modules() {
    let code =
        "mod a { fn told<'a>() {} } each! { struct B; const C: u8 = 0; } impl B { fn r#of() {} } fn f(look: u8) {}";
    assert_eq!(definitions(code.parse().unwrap()), ["a", "told", "B", "C", "of", "f"]);
}

/// The names that this code defines.
fn definitions(code: TokenStream) -> Vec<String> {
    let (mut names, mut defines) = (Vec::new(), false);
    for token in code {
        match token {
            TokenTree::Ident(name) => {
                let name = name.to_string();
                if defines {
                    names.push(name.trim_start_matches("r#").to_owned());
                }
                defines = DEFINES.contains(&name.as_str());
            }
            TokenTree::Group(group) => {
                names.extend(definitions(group.stream()));
                defines = false;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => defines = false,
        }
    }
    names
}

/// All Rust files of the repository, built ones apart.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let kept = entries.filter(|path| path.file_name().is_some_and(|name| name != "target" && name != ".git"));
    kept.flat_map(|path| match path.is_dir() {
        true => rust_files(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") => vec![path],
        false => Vec::new(),
    })
    .collect()
}
