//! The documents: their links lead somewhere, the site has every page, and the commands that they show exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Those with a README's links, from the repository's root.
const OUTSIDE: &[&str] = &[
    "README.md",
    "AGENTS.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "llms.txt",
    "fuzz/README.md",
    "probe/README.md",
    "python/README.md",
];

/// The built-in trainings: what follows their names is theirs, and `trainings.rs` parses it.
const TRAININGS: &[&str] = &["pna", "gcn", "sage", "gat", "gin", "vig"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the pages in docs/.
fn pages() -> BTreeSet<String> {
    let names = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".md")).collect()
}

/// Every document, by its path.
fn documents() -> BTreeMap<PathBuf, String> {
    let docs = pages().into_iter().map(|page| format!("docs/{page}"));
    let all = OUTSIDE.iter().map(ToString::to_string).chain(docs).map(|name| root().join(name));
    all.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The lines of a document inside fences of this language, or outside of all.
fn lines<'a>(document: &'a str, language: Option<&str>) -> Vec<&'a str> {
    let mut fence = None;
    let mut found = Vec::new();
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(opened) => fence = if fence.is_none() { Some(opened) } else { None },
            None if fence == language => found.push(line),
            None => {}
        }
    }
    found
}

/// What links point to, of all links in the text.
fn links(document: &str) -> Vec<&str> {
    let text = lines(document, None);
    let parts = text.iter().flat_map(|line| line.split("](").skip(1));
    parts.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(document: &str) -> BTreeSet<String> {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let slug = |heading: &str| -> String {
        let lower = heading.trim().to_lowercase().replace(' ', "-");
        lower.chars().filter(|c| is_kept(*c)).collect()
    };
    let headings = lines(document, None).into_iter().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let documents = documents();
    assert!(documents.len() > 25, "{}", documents.len());
    let mut wrong = Vec::new();
    let mut followed = 0;
    for (path, text) in &documents {
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_anchor = || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
            if !target.exists() || (!anchor.is_empty() && !has_anchor()) {
                wrong.push(format!("{}: {link}", path.display()));
            }
            followed += 1;
        }
    }
    assert!(wrong.is_empty() && followed > 100, "of {followed} links:\n{}", wrong.join("\n"));
}

#[test]
fn the_site_has_every_page_once_and_links_to_nothing_outside() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed = links(&summary);
    let mut expected = pages();
    expected.remove("SUMMARY.md");
    assert_eq!(listed.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), expected);
    assert_eq!(listed.len(), expected.len(), "a page is listed twice");
    for page in &expected {
        let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
        let outside: Vec<_> = links(&text).into_iter().filter(|link| link.starts_with("..")).collect();
        assert!(outside.is_empty(), "docs/{page}: the site has no {outside:?}");
    }
}

#[test]
fn the_readme_is_short_and_begins_with_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 100, "{} lines", readme.lines().count());
    let (_, rest) = readme.split_once("```sh\n").unwrap();
    let commands = rest.split_once("```").unwrap().0.lines().map(|line| line.split('#').next().unwrap().trim());
    assert_eq!(commands.collect::<Vec<_>>(), ["cargo run --release -- run pna", "./check.sh"]);
}

#[test]
fn every_command_and_option_in_the_documents_exists() {
    let mut help = BTreeMap::new();
    let mut options = 0;
    for (path, text) in documents() {
        for line in lines(&text, Some("sh")) {
            let line = line.split(" #").next().unwrap();
            for (command, given) in line.split(['|', ';', '&']).filter_map(command_line) {
                let help = help.entry(command.clone()).or_insert_with(|| help_of(&command));
                for option in given {
                    let is_there =
                        help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option);
                    assert!(is_there, "{}: gnntop {command} has no {option}: {line}", path.display());
                    options += 1;
                }
            }
        }
    }
    assert!(options > 50 && help.len() > 15, "{options} options of {:?}", help.keys());
}

/// The command and the long options of a line with `gnntop COMMAND`, before a `--`. Those of trainings are left out.
fn command_line(line: &str) -> Option<(String, Vec<&str>)> {
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "gnntop").skip(1).collect();
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
    let names = if words.first() == Some(&"import") { 2 } else { 1 };
    let command: Vec<&str> = words.iter().take(names).take_while(is_name).copied().collect();
    let own = words[command.len()..].iter().take_while(|word| **word != "--" && !TRAININGS.contains(word));
    let options = own.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap());
    (!command.is_empty()).then(|| (command.join(" "), options.collect()))
}

fn help_of(command: &str) -> String {
    let mut gnntop = Command::new(env!("CARGO_BIN_EXE_gnntop"));
    let output = gnntop.args(command.split(' ')).arg("--help").output().unwrap();
    assert!(output.status.success(), "gnntop {command} --help: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_are_read_from_lines() {
    let read = |line| command_line(line).unwrap();
    assert_eq!(
        read("srun gnntop run --plain --record=a -- python t.py --epochs 3"),
        ("run".to_owned(), vec!["--plain", "--record"])
    );
    assert_eq!(read("gnntop run pna --steps 3"), ("run".to_owned(), vec![]));
    assert_eq!(read("A=$B/gnntop gnntop import csv a --step s").0, "import csv");
    assert_eq!((command_line("gnntop"), command_line("pip install x")), (None, None));
    let text = "a [b](c.md#d-e)\n```sh\n[no](no.md)\n```\n## D: `e`\n";
    assert_eq!((links(text), anchors(text)), (vec!["c.md#d-e"], BTreeSet::from(["d-e".to_owned()])));
}
