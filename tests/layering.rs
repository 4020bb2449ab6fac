//! What may know what: the rules of ARCHITECTURE.md, held.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate that `member` is built from, itself included.
fn crates_in(member: &str, more: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    let manifest = if ["gnntop-data", "gnntop-nn", "gnntop-workloads"].contains(&member) {
        "workloads/Cargo.toml"
    } else {
        "Cargo.toml"
    };
    command
        .args([
            "tree",
            "--manifest-path",
            manifest,
            "--package",
            member,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .args(more);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn assert_free_of(member: &str, more: &[&str], forbidden: &[&str]) {
    let crates = crates_in(member, more);
    assert!(crates.contains(member), "cargo tree lists {member} itself");
    for name in forbidden {
        let found = crates.iter().find(|found| *found == name || found.starts_with(&format!("{name}-")));
        assert_eq!(found, None, "{member} depends on {name}");
    }
}

#[test]
fn members_lack_forbidden_dependencies() {
    let screen = ["ratatui", "crossterm"];
    let heavy = ["ratatui", "crossterm", "candle", "tokio"];
    assert_free_of("gnntop-wire", &[], &["ratatui", "crossterm", "candle", "tokio", "libc", "rayon", "gnntop-sensors"]);
    assert_free_of("gnntop-history", &[], &[&heavy[..], &["libc", "rustix", "rayon", "gnntop-sensors"]].concat());
    assert_free_of("gnntop-sensors", &[], &heavy);
    assert_free_of("gnntop-sessions", &[], &[&heavy[..], &["gnntop-sensors"]].concat());
    assert_free_of("gnntop-probe", &["--all-features"], &heavy);
    assert_free_of("gnntop-python", &[], &["ratatui", "crossterm", "candle", "tokio", "pyo3"]);
    assert_free_of("gnntop-analysis", &[], &heavy);
    for member in ["gnntop-data", "gnntop-nn"] {
        assert_free_of(member, &[], &[&screen[..], &["clap", "gnntop-probe", "tokio"]].concat());
    }
    assert_free_of("gnntop-workloads", &[], &screen);
    assert_free_of("gnntop", &["--no-default-features"], &["candle", "gnntop-workloads", "gnntop-probe", "tokio"]);
}

/// All Rust files under `dir`.
fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The files of a module, without those that are only built for tests.
fn files_of(place: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let single = root.join(format!("{place}.rs"));
    let mut files = if root.join(place).is_dir() { rust_files(&root.join(place)) } else { vec![] };
    files.extend(single.is_file().then_some(single));
    assert!(!files.is_empty(), "{place} exists");
    files.retain(|file| !file.ends_with("tests.rs") && !file.ends_with("properties.rs"));
    files
}

fn assert_no_mention(place: &str, words: &[&str]) {
    // Modules that are only built for tests may look at everything.
    for file in files_of(place) {
        let text = fs::read_to_string(&file).unwrap();
        for word in words {
            assert!(!text.contains(word), "{} mentions {word}", file.display());
        }
    }
}

#[test]
fn only_the_screen_knows_the_terminal() {
    for folder in ["report", "import", "export", "study"] {
        assert_no_mention(&format!("src/{folder}"), &["ratatui", "crossterm", "crate::ui", "crate::app", "crate::cli"]);
    }
    assert_no_mention("src/app", &["ratatui", "crossterm", "termina::", "crate::ui", "crate::viewer", "crate::cli"]);
}

#[test]
fn drawing_code_has_no_side_effects() {
    let outside = ["std::fs", "std::io", "std::env", "std::process", "std::thread", "std::sync", "std::cell"];
    let clocks = ["Instant", "SystemTime"];
    let terminals = ["libc", "rustix", "crossterm", "termina::", "signal_hook"];
    let rooms = ["gnntop_analysis::source", "crate::viewer", "crate::cli"];
    assert_no_mention("src/ui", &[&outside[..], &clocks, &terminals, &rooms].concat());
}

#[test]
fn data_flows_one_way() {
    assert_no_mention("history/src", &["std::fs", "std::io", "std::thread", "std::time"]);
    let analysis = |folder: &str, words: &[&str]| assert_no_mention(&format!("analysis/src/{folder}"), words);
    analysis("energy", &["crate::store", "crate::findings", "crate::source"]);
    analysis("store", &["crate::findings", "crate::source", "crate::ranks"]);
    analysis("ranks", &["crate::findings", "crate::source"]);
    analysis("findings", &["crate::source"]);
    assert_no_mention("src/report", &["gnntop_analysis::source", "crate::study"]);
    assert_no_mention("src/study", &["gnntop_analysis::source", "std::process"]);
    assert_no_mention("src/viewer", &["crate::cli"]);
}

/// The modules of the command line that every system has.
fn commands_of_every_system() -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/mod.rs")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_everywhere = |pair: &[&str]| !pair[0].starts_with("#[cfg(");
    let names = lines.windows(2).filter(|pair| is_everywhere(pair)).filter_map(|pair| pair[1].strip_prefix("mod "));
    names.map(|name| format!("src/cli/{}", name.trim_end_matches(';'))).collect()
}

#[test]
fn what_differs_between_systems_has_one_place() {
    let commands = commands_of_every_system();
    assert!(commands.len() > 20 && !commands.contains(&"src/cli/run".to_owned()), "{commands:?}");
    let folders = ["app", "export", "import", "report", "runs_table", "study", "ui", "viewer"];
    let folders = folders.map(|folder| format!("src/{folder}"));
    for place in folders.into_iter().chain(commands) {
        for file in files_of(&place) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
            for line in code {
                for word in
                    ["std::os::", "rustix::", "libc::", "target_os", "cfg(unix)", "cfg(windows)", "\"/dev/", "\"/proc/"]
                {
                    assert!(!line.contains(word), "{}: src/platform is for this: {line}", file.display());
                }
            }
        }
    }
}

#[test]
fn source_files_have_at_most_400_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "src",
        "analysis/src",
        "wire/src",
        "history/src",
        "sensors/src",
        "sessions/src",
        "probe/src",
        "python/src",
        "workloads/data/src",
        "workloads/nn/src",
        "workloads/src",
    ] {
        let is_tests = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "tests");
        for file in rust_files(&root.join(folder)).into_iter().filter(|file| !is_tests(file)) {
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
            assert!(lines <= 400, "{} has {lines} lines before its tests", file.display());
        }
    }
}
