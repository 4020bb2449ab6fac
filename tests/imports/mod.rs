//! Which file of a crate takes names from which: `mod` gives the tree of modules, `use` and paths in the code give the
//! arrows. Re-exports are followed to the file that defines the item, so a `mod.rs` that hands names on is not blamed
//! for those who take them from it. Code that is only built for tests is left out.

mod arrows;
mod circles;
mod modules;
mod paths;
mod texts;

use std::collections::BTreeMap;
use std::path::Path;

pub use circles::{Circle, circles};

/// File -> file it takes names from -> those names. Files by their path below the folder of the crate's root file.
pub type Arrows = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The arrows between the files of the crate whose root file this is.
pub fn arrows(root_file: &Path) -> Arrows {
    arrows::between(&modules::read(root_file))
}

/// The string literals in the files of the crate whose root file this is.
pub fn texts(root_file: &Path) -> BTreeMap<String, Vec<String>> {
    texts::collect(&modules::read(root_file))
}

/// The string literals that the crate's code compares other texts with.
pub fn compared(root_file: &Path) -> BTreeMap<String, Vec<String>> {
    texts::compared(&modules::read(root_file))
}

/// The same arrows between the crate's first-level modules: `kernels/family.rs -> train/loss.rs` is `kernels -> train`.
/// The root file is left out: it only names the rooms.
pub fn between_rooms(arrows: &Arrows) -> Arrows {
    let room = |file: &str| file.split(['/', '.']).next().unwrap_or_default().to_owned();
    let mut rooms = Arrows::new();
    for (from, targets) in arrows.iter().filter(|(from, _)| !is_root(from)) {
        for (to, names) in targets.iter().filter(|(to, _)| !is_root(to) && room(to) != room(from)) {
            let all = rooms.entry(room(from)).or_default().entry(room(to)).or_default();
            all.extend(names.iter().map(|name| format!("{name} ({from} -> {to})")));
        }
    }
    rooms
}

fn is_root(file: &str) -> bool {
    matches!(file, "lib.rs" | "main.rs")
}
