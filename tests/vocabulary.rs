//! What a track carries, how long something took, where a session comes from: types say that. No reader asks how the text of
//! a track, a mark, an engine or a publisher is spelt.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gnntop_wire::{Engine, Fact, Mode, Reported, Sampling, phase};

use crate::imports::{compared, texts};
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
const OTHERWISE: [(&str, &str, &str); 1] = [("src", "cli/commands.rs", "nccl")];

/// The texts of wire's own tables: readers ask for the type, or for the constant.
fn vocabulary() -> Vec<String> {
    let reported = Reported::plain().map(Reported::text);
    let carrying = [Reported::MicroBatch(0), Reported::BlocksOfStage(0)].map(Reported::text);
    let phases = phase::KNOWN.into_iter();
    let sampling = Sampling::ALL.map(Sampling::text);
    let engines = [Engine::Threads, Engine::Mpi, Engine::Nccl, Engine::Gloo].map(|engine| engine.to_string());
    let texts = reported.chain(carrying).chain(phases).chain(sampling).map(str::to_owned);
    texts.chain(engines).chain(facts()).collect()
}

/// What facts are about, and the names of frameworks.
fn facts() -> Vec<String> {
    let text = String::new;
    let facts = [
        Fact::Framework("PyTorch".into()),
        Fact::Inferred { phase: text(), how: text() },
        Fact::Resumed { steps: 0 },
        Fact::NotRecorded { what: text(), amount: text() },
        Fact::Died { cause: text(), text: text() },
        Fact::NoStacks { why: text() },
        Fact::Mode(Mode::Inference),
        Fact::ComputeThreads(0),
        Fact::LoaderWorkers(0),
    ];
    let frameworks = ["PyTorch", "Python"].map(str::to_owned);
    facts.map(|fact| fact.key().title().to_owned()).into_iter().chain(frameworks).collect()
}

/// Where a word of the vocabulary means something else: colours and forms of commands, a file's columns, keys of our own.
const ANOTHER: [(&str, &str, &str); 0] = [];

/// Each member that reads streams, with its root file.
fn readers() -> Vec<(String, PathBuf)> {
    let named = members().into_iter().map(|(member, dir)| {
        // The program itself is called after its folder.
        let is_program = dir.join("build.rs").exists() && dir.join("src/cli").exists();
        (if is_program { "src".to_owned() } else { member }, dir.join("src/lib.rs"))
    });
    named.filter(|(member, _)| READERS.contains(&member.as_str())).collect()
}

/// Texts of these that `is_banned`, by file.
fn banned(member: &str, by_file: BTreeMap<String, Vec<String>>, is_banned: impl Fn(&str, &str) -> bool) -> String {
    let mut found = String::new();
    for (file, texts) in by_file.into_iter().filter(|(file, _)| !file.starts_with(MAY_SPELL)) {
        let told = texts.iter().filter(|text| is_banned(&file, text));
        told.for_each(|text| found += &format!("{member}: {file}: {text:?}\n"));
    }
    found
}

#[test]
fn no_reader_asks_how_a_text_is_spelt() {
    let mut found = String::new();
    for (member, root) in readers() {
        found += &banned(&member, texts(&root), |file, text| {
            ONCE_TOLD.contains(&text) && !OTHERWISE.contains(&(member.as_str(), file, text))
        });
    }
    assert!(found.is_empty(), "ask for a type of gnntop_wire instead:\n{found}");
}

#[test]
fn no_reader_compares_with_a_word_of_the_vocabulary() {
    let (words, mut found) = (vocabulary(), String::new());
    for (member, root) in readers() {
        found += &banned(&member, compared(&root), |file, text| {
            words.iter().any(|word| word == text) && !ANOTHER.contains(&(member.as_str(), file, text))
        });
    }
    assert!(found.is_empty(), "ask for a type of gnntop_wire instead:\n{found}");
}

#[test]
fn a_compared_word_is_seen_in_every_form() {
    let code = r#"
        const SAMPLES: &str = "samples";
        fn f(text: &str, store: &Store) -> bool {
            let is_it = text == "denormals" || ["wait", "reduce"].contains(&text) || matches!(text, "barrier" | "x");
            match text { "forward" => is_it, "stacks a second" if "blocks" != text => true, _ => store.phase("backward") }
                || text.strip_prefix("micro-batch ").is_some()
        }
        fn label() -> [&'static str; 2] { ["samples", "forward"] }
    "#;
    let dir = crate_of(&[("lib.rs", code)]);
    let words = vocabulary();
    let seen = compared(&dir.path().join("lib.rs")).remove("lib.rs").unwrap();
    assert_eq!(seen.iter().filter(|text| words.contains(text)).count(), 10, "{seen:?}");
}

#[test]
fn spelt_text_is_found() {
    let dir =
        crate_of(&[("lib.rs", "fn f(text: &str) -> bool { text.starts_with(\"stacks of \") || text == \"nccl\" }")]);
    let texts = texts(&dir.path().join("lib.rs")).remove("lib.rs").unwrap();
    assert_eq!(texts.iter().filter(|text| ONCE_TOLD.contains(&text.as_str())).count(), 2, "{texts:?}");
}
