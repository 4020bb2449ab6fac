//! The words that people read: phrases that we do not use, and what to write instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gnntop::app::keys::Key;
use gnntop_analysis::findings::FindingKind;
use gnntop_fixtures::TrainingRun;

use crate::pictures::{app_of, press, screen};
use crate::sessions::Sessions;

/// Each with what to write instead. In lower case; found at the ends of words alone.
const UNWANTED: &[(&str, &str)] = &[
    ("in the place of", "instead of"),
    ("by the side of", "beside, or compared with"),
    ("is there already", "already exists"),
    ("that is there", "that exists"),
    ("that is none", "not a ..., or a stand-in for ..."),
    ("for want of", "because ... ran out, or without"),
    ("whatever becomes of", "whatever happens to"),
    ("told apart", "distinguished"),
    ("lies beside", "is beside"),
    ("lies behind", "is behind"),
    ("stands beside", "is beside"),
    ("stands at", "is at"),
    ("of which there is one", "the only"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("and told", "and reported"),
    ("does not tell", "does not report"),
    ("do not tell", "do not report"),
    ("anew", "again"),
    ("without a word", "unexpectedly"),
    ("what cannot be", "impossible values"),
    ("foretold", "predicted"),
    ("in good order", "normally"),
    ("by its own word", "that it reports"),
    ("whose word", "origin"),
    ("steps over", "skips"),
    ("hands over", "passes on"),
    ("told of", "reported"),
    ("a mark lies", "a mark is"),
    ("lies inside", "is inside"),
    ("lies in no", "is outside every"),
    ("stands first", "comes first"),
    ("stands still", "does not change"),
    ("made-up", "generated, or simulated"),
    ("which is its good right", "and may"),
    ("so many", "N, this many, or nothing"),
    ("so much", "N, this much, or nothing"),
    ("goes on", "continues, or keeps running"),
    ("for ever", "forever"),
    ("in the median", "median"),
    ("behind the @", "after @"),
    ("whoever", "the one that"),
    ("now and then", "from time to time"),
    ("comes late", "a late ..."),
    ("attaches late", "a late viewer"),
    ("stands above", "is above"),
    ("by its looks", "inferred"),
    ("befall", "apply to"),
    ("lies before", "comes before"),
    ("is taken to", "is assumed to"),
    ("that of the others", "the others'"),
    ("as far as the recordings say", "according to the recordings"),
    ("utilize", "use"),
    ("leverage", "use"),
    ("in order to", "to"),
    ("please note", "nothing"),
];

/// The code of the members.
const MEMBERS: &[&str] = &[
    "wire/src",
    "history/src",
    "sensors/src",
    "sessions/src",
    "probe/src",
    "python/src",
    "workloads/data/src",
    "workloads/nn/src",
    "workloads/src",
    "analysis/src",
];

#[test]
fn documents_use_the_usual_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"]
            .iter()
            .map(|name| root.join(name))
            .collect();
    documents.push(root.join("probe/README.md"));
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        documents.push(entry.unwrap().path());
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(documents.len() > 15, "{documents:?}");
    let found: Vec<_> = documents
        .iter()
        .flat_map(|path| unwanted(&path.display().to_string(), &fs::read_to_string(path).unwrap()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_page_of_findings_has_a_row_for_each_kind() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/findings.md")).unwrap();
    let (_, table) = page.split_once("| finding | when it is reported |").unwrap();
    let missing = FindingKind::ALL.iter().filter(|kind| !table.contains(&format!("\n| `{}` |", kind.id())));
    assert_eq!(missing.collect::<Vec<_>>(), [] as [&FindingKind; 0]);
}

#[test]
fn the_page_of_findings_names_a_file_that_shows_each_kind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/findings.md")).unwrap();
    let (_, table) = page.split_once("| finding | where it is shown |").unwrap();
    let is_shown = |kind: &&FindingKind| {
        let row = table.split_once(&format!("\n| {} | `", kind.id()));
        row.and_then(|(_, row)| row.split_once('`')).is_some_and(|(file, _)| root.join(file).exists())
    };
    let missing = FindingKind::ALL.iter().filter(|kind| !is_shown(kind));
    assert_eq!(missing.collect::<Vec<_>>(), [] as [&FindingKind; 0]);
}

#[test]
fn help_uses_the_usual_words() {
    let help = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gnntop")).args(arguments).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let all = help(&[]);
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Further lines of a description are indented more.
    let commands: Vec<_> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    let mut found = unwanted("gnntop --help", &all);
    for name in commands {
        found.extend(unwanted(&format!("gnntop {name} --help"), &help(&[name])));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn findings_reports_and_errors_use_the_usual_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [MEMBERS, &["src"]].concat();
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| rust_files(&root.join(folder))).collect();
    assert!(files.len() > 600, "{}", files.len());
    let read = |path: &PathBuf| strings(&fs::read_to_string(path).unwrap());
    let found: Vec<_> =
        files.iter().flat_map(|path| unwanted(&path.display().to_string(), &read(path).join("\n"))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_use_the_usual_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [MEMBERS, &["src", "build.rs"]].concat();
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| rust_files(&root.join(folder))).collect();
    assert!(files.len() > 600, "{}", files.len());
    let found: Vec<_> = files
        .iter()
        .flat_map(|path| unwanted(&path.display().to_string(), &comments(&fs::read_to_string(path).unwrap())))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_python_package_uses_the_usual_words() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/gnntop");
    let files = files_of(&package, "py");
    assert!(files.len() > 20, "{}", files.len());
    let found: Vec<_> = files
        .iter()
        .flat_map(|path| unwanted(&path.display().to_string(), &fs::read_to_string(path).unwrap()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_are_read_across_lines_and_without_code() {
    let code = "//! One\n//! two.\nlet a = \"no\"; // no\n    /// Three.\n    // Four.\n";
    assert_eq!(comments(code), "One two. Three. Four.");
}

#[test]
fn only_strings_outside_comments_and_tests_are_read() {
    let code = "/// \"no\"\nlet a = \"one \\\n    two\"; // \"no\"\nlet b = \"\\\"three\\\"\";\n#[cfg(test)]\nmod tests { \"no\" }";
    assert_eq!(strings(code), ["one two", "\\\"three\\\""]);
}

/// All Rust files under a directory that are not tests, or the file itself.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    match path.is_dir() {
        true => files_of(path, "rs"),
        false => vec![path.to_owned()],
    }
}

/// All files under `dir` with this extension that are not tests.
fn files_of(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    let files = paths.filter(|path| !is_test(path)).flat_map(|path| match path.is_dir() {
        true => files_of(&path, extension),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// The comments of a file that are on lines of their own, joined.
fn comments(code: &str) -> String {
    let comments = code.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    comments.map(|comment| comment.trim_start_matches(['/', '!']).trim()).collect::<Vec<_>>().join(" ")
}

/// The strings in a file's code before its tests, as people read them.
fn strings(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect();
    let (mut all, mut current) = (Vec::new(), None::<String>);
    let code = code.join("\n");
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match (&mut current, c) {
            (Some(text), '\\') => match chars.next() {
                // A line that goes on: the next one's indentation is not part of it.
                Some('\n') => chars = chars.as_str().trim_start().chars(),
                Some(next) => text.extend(['\\', next]),
                None => (),
            },
            (Some(_), '"') => all.extend(current.take()),
            (Some(text), c) => text.push(c),
            (None, '"') => current = Some(String::new()),
            (None, '\'') if chars.as_str().starts_with("\"'") => chars = chars.as_str()[2..].chars(),
            (None, _) => (),
        }
    }
    all
}

#[test]
fn phrases_are_found_as_whole_words_across_lines() {
    assert_eq!(unwanted("a", "Use it in the\n   place of b.").len(), 1);
    assert_eq!(unwanted("a", "the place of b, reinforced").len(), 0);
    assert_eq!(unwanted("a", "We utilized it; they utilize it").len(), 1);
}

/// Nouns that are counted.
const COUNTED: &[&str] = &[
    "steps",
    "epochs",
    "ranks",
    "events",
    "marks",
    "graphs",
    "seeds",
    "readings",
    "periods",
    "spans",
    "runs",
    "sessions",
    "stages",
    "copies",
    "rows",
    "times",
    "kernels",
    "micro-batches",
];

/// Where a text has one of a thing as if it were several, names no process by its number, or shows code for a name.
fn miscounted(name: &str, text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let noun = pair[1].trim_end_matches([',', ';', '.', ':', ')']);
        let is_wrong = pair[0].trim_start_matches('(') == "1" && COUNTED.contains(&noun);
        let is_nobody = pair[0].ends_with("pid") && noun == "0";
        (is_wrong || is_nobody).then(|| format!("{name}: {} {}", pair[0], pair[1]))
    });
    let code = ["phase(\"", "Phase(", "Some("].iter().filter(|code| text.contains(**code));
    pairs.chain(code.map(|code| format!("{name}: {code}"))).collect()
}

#[test]
fn singular_counts_use_singular_nouns() {
    let sessions = Sessions::new();
    sessions.file("t.csv", b"step,timestamp_s,step_ms,forward_ms,batch_size\n1,10.0,100,40,8\n");
    sessions.file("gc.csv", b"step,duration_ms\n1,7\n");
    sessions.file("one.gnntop", &TrainingRun { steps: 1, ..TrainingRun::default() }.bytes());
    let mut found = Vec::new();
    let mut commands: Vec<Vec<&str>> = vec![vec!["import", "csv", "t.csv", "-o", "t.gnntop", "--marks", "gc=gc.csv"]];
    for file in ["t.gnntop", "one.gnntop"] {
        commands.push(vec!["report", file]);
        commands.push(vec!["report", file, "--markdown"]);
        commands.push(vec!["report", file, "--html"]);
        commands.push(vec!["report", file, file]);
        commands.push(vec!["compare", file, file]);
        commands.push(vec!["check", file, "--max", "forward.p50=1s", "--max", "period.mean=1s"]);
        commands.push(vec!["check", file, "--max", "nothing.p50=1s"]);
        commands.push(vec!["replay", file, "--plain"]);
        commands.push(vec!["export", file, "--to", "csv", "-o", "t.out", "--force"]);
    }
    for command in commands {
        let ran = sessions.run(&command);
        found.extend(miscounted(&command.join(" "), &format!("{} {}", ran.out, ran.err)));
    }
    let mut app = app_of(&fs::read(sessions.path().join("t.gnntop")).unwrap());
    for digit in '1'..='9' {
        press(&mut app, &[Key::Char(digit)]);
        found.extend(miscounted(&format!("view {digit}"), &screen(&mut app, 120, 40)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(miscounted("a", "1 steps, (1 epochs) of pid 0").len(), 3);
}

/// The unwanted phrases in a text, with where they are and what to write instead.
fn unwanted(name: &str, text: &str) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let is_whole = |at: usize, phrase: &str| {
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        !is_letter(words[..at].chars().next_back()) && !is_letter(words[at + phrase.len()..].chars().next())
    };
    UNWANTED
        .iter()
        .filter_map(|(phrase, instead)| {
            let (at, _) = words.match_indices(phrase).find(|(at, _)| is_whole(*at, phrase))?;
            let around: String = words[at..].chars().take(60).collect();
            Some(format!("{name}: \"{around}...\": instead of \"{phrase}\" write: {instead}"))
        })
        .collect()
}
