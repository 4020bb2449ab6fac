//! What a track carries, how long something took, where a session comes from: types say that. No reader asks how the text of
//! a track, a mark, an engine or a publisher is spelt.

use crate::imports::texts;
use crate::{crate_of, members};

/// Members that read streams, and what may spell in them: imports, which read others' files.
const READERS: [&str; 3] = ["history", "analysis", "src"];
const MAY_SPELL: &str = "import/";

/// Texts by which something was once told. Each is now a role, an event, a field or a kind.
const ONCE_TOLD: [&str; 16] = [
    "deep trace",
    "stacks of ",
    ", sampled",
    "loader worker",
    "nccl",
    "stream",
    "threads",
    " (ms)",
    "other process: ",
    "other processes: ",
    "stacks a second",
    "gnntop import",
    "gnntop import csv",
    "gnntop import chrome",
    "column ",
    "kernels of the trace",
];

/// Where such a text means something else: a feature of the build.
const OTHERWISE: [(&str, &str, &str); 1] = [("src", "cli/version.rs", "nccl")];

#[test]
fn no_reader_asks_how_a_text_is_spelt() {
    let mut found = String::new();
    for (member, dir) in members() {
        // The program itself is called after its folder.
        let member =
            if dir.join("build.rs").exists() && dir.join("src/cli").exists() { "src".to_owned() } else { member };
        if !READERS.contains(&member.as_str()) {
            continue;
        }
        for (file, texts) in texts(&dir.join("src/lib.rs")) {
            let is_other = |text: &str| OTHERWISE.contains(&(member.as_str(), file.as_str(), text));
            let told = texts.iter().filter(|text| ONCE_TOLD.contains(&text.as_str()) && !is_other(text));
            if !file.starts_with(MAY_SPELL) {
                told.for_each(|text| found += &format!("{member}: {file}: {text:?}\n"));
            }
        }
    }
    assert!(found.is_empty(), "ask for a type of gnntop_wire instead:\n{found}");
}

#[test]
fn a_spelt_text_is_seen() {
    let dir =
        crate_of(&[("lib.rs", "fn f(text: &str) -> bool { text.starts_with(\"stacks of \") || text == \"nccl\" }")]);
    let texts = texts(&dir.path().join("lib.rs")).remove("lib.rs").unwrap();
    assert_eq!(texts.iter().filter(|text| ONCE_TOLD.contains(&text.as_str())).count(), 2, "{texts:?}");
}
