//! Imports flow one way: no member of the workspace has a circle of files, or of rooms.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod identifiers;
mod imports;
mod quantities;
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};

use imports::{Circle, arrows, between_rooms, circles};

/// The folder of every member of both workspaces, with its name.
fn members() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut all, trainings) = (members_of(root), members_of(&root.join("workloads")));
    assert!(trainings.iter().any(|(name, _)| name == "workloads"), "{trainings:?}");
    all.extend(trainings);
    all
}

/// The members of the workspace in this folder, which is a member itself.
fn members_of(dir: &Path) -> Vec<(String, PathBuf)> {
    let manifest: toml::Table = fs::read_to_string(dir.join("Cargo.toml")).unwrap().parse().unwrap();
    let listed = manifest["workspace"]["members"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let mut all: Vec<_> = listed.map(|name| (name.to_owned(), dir.join(name))).collect();
    all.push((dir.file_name().unwrap().to_string_lossy().into_owned(), dir.to_owned()));
    all
}

fn list_circles(member: &str, found: &[Circle]) -> String {
    found.iter().map(|circle| format!("{member}: {circle}")).collect()
}

#[test]
fn no_member_has_a_circle_of_files() {
    let found: String =
        members().iter().map(|(name, dir)| list_circles(name, &circles(&arrows(&dir.join("src/lib.rs"))))).collect();
    assert!(found.is_empty(), "files import each other in a loop:\n{found}");
}

#[test]
fn no_member_has_a_circle_of_rooms() {
    let rooms = |dir: &Path| circles(&between_rooms(&arrows(&dir.join("src/lib.rs"))));
    let found: String = members().iter().map(|(name, dir)| list_circles(name, &rooms(dir))).collect();
    assert!(found.is_empty(), "rooms import each other in a loop:\n{found}");
}

/// The rooms of the member between stream and screen, each with those that stand below it.
const ANALYSIS: [(&str, &[&str]); 11] = [
    ("energy", &[]),
    ("figures", &[]),
    ("stream", &[]),
    ("source", &["figures", "stream"]),
    ("recorder", &["figures", "stream"]),
    ("store", &["energy", "figures", "stream"]),
    ("ranks", &["energy", "figures", "store", "stream"]),
    ("findings", &["figures", "ranks", "store"]),
    ("catalogue", &["energy", "figures", "findings", "ranks", "store"]),
    ("comparison", &["catalogue", "figures", "findings", "ranks", "store"]),
    ("many_runs", &["energy", "findings", "ranks", "source", "store"]),
];

#[test]
fn each_room_between_stream_and_screen_knows_only_those_below_it() {
    let rooms = between_rooms(&arrows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis/src/lib.rs")));
    assert!(rooms["findings"].contains_key("store"), "the arrows are seen: {rooms:?}");
    for (room, targets) in &rooms {
        let (_, below) = ANALYSIS.iter().find(|(name, _)| name == room).unwrap_or_else(|| panic!("{room} has a place"));
        for (target, names) in targets {
            assert!(below.contains(&target.as_str()), "{room} takes {names:?} from {target}");
        }
    }
}

/// A crate of these files.
fn crate_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn found_in(files: &[(&str, &str)]) -> Vec<String> {
    let dir = crate_of(files);
    circles(&arrows(&dir.path().join("lib.rs"))).iter().map(Circle::to_string).collect()
}

#[test]
fn circle_is_found_for_every_form_of_import() {
    let by_use = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::a::A; pub struct B;"),
    ];
    let by_path = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn a() { crate::b::b() }"),
        ("b.rs", "use crate::a; pub fn b() { a::a() }"),
    ];
    let in_a_macro = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn a() { vec![crate::b::b()]; }"),
        ("b.rs", "use crate::a::a; pub fn b() {}"),
    ];
    let by_glob = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::*; pub struct A(B);"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ];
    let through_a_face = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::C; pub struct A;"),
        ("b/mod.rs", "mod c; pub use c::C;"),
        ("b/c.rs", "use crate::a::A; pub struct C;"),
    ];
    let of_parent_and_child = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; use b::B; pub struct A;"),
        ("a/b.rs", "use super::A; pub struct B;"),
    ];
    for files in [&by_use[..], &by_path, &in_a_macro, &by_glob, &through_a_face, &of_parent_and_child] {
        let found = found_in(files);
        assert_eq!(found.len(), 1, "{files:?}: {found:?}");
        assert!(found[0].contains("a circle of 2: "), "{found:?}");
    }
}

#[test]
fn faces_tests_and_other_crates_are_no_circles() {
    let only_a_face = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::A; pub struct B;"),
    ];
    let only_in_tests = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ];
    let other_crates = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use b::B; use std::fmt; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ];
    let a_function_of_a_modules_name = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::{B, a};"),
        ("a.rs", "pub struct A; pub fn f() -> crate::A { g!(crate::A) }"),
        ("b.rs", "use crate::a::A; pub struct B; pub fn a() {}"),
    ];
    for files in [&only_a_face[..], &only_in_tests, &other_crates, &a_function_of_a_modules_name] {
        assert_eq!(found_in(files), Vec::<String>::new(), "{files:?}");
    }
}
