//! One name for a session or a recording, whatever the command.

use std::fs;

use crate::sessions::Sessions;
use gnntop_fixtures::TrainingRun;

fn run_of(name: &'static str) -> Vec<u8> {
    TrainingRun { name, ..TrainingRun::default() }.bytes()
}

/// Commands that read what is named `NAME`.
const READERS: [&[&str]; 8] = [
    &["attach", "NAME", "--plain"],
    &["report", "NAME"],
    &["check", "NAME", "--max", "step.p99=1h"],
    &["record", "NAME", "--last", "1h", "--force", "-o", "copy.gnntop"],
    &["export", "NAME", "--to", "csv"],
    &["replay", "NAME", "--plain", "--speed", "100"],
    &["compare", "NAME", "NAME"],
    &["check", "other.gnntop", "--baseline", "NAME", "--slower", "50%"],
];

fn with_name(reader: &[&str], name: &str) -> Vec<String> {
    reader.iter().map(|word| word.replace("NAME", name)).collect()
}

#[test]
fn script_in_its_own_folder_is_the_session_for_every_command() {
    let sessions = Sessions::new();
    sessions.ended("train.py-4711-5f3a90c2", &run_of("train.py"));
    sessions.file("train.py", b"import torch\n");
    sessions.file("other.gnntop", &run_of("train.py"));
    let names = ["train.py", "python train.py", "train.py-4711-5f3a90c2", "5f3a90c2", "trai"];
    for reader in READERS {
        for name in names {
            let ran = sessions.run(with_name(reader, name));
            assert!(ran.code == Some(0) || ran.code == Some(4), "{reader:?} of {name}: {ran:?}");
        }
        let ran = sessions.run(with_name(reader, "./train.py"));
        assert_eq!(ran.code, Some(1), "{reader:?}: {ran:?}");
        assert!(ran.err.contains("is a text file: not a recording"), "a path is a path: {ran:?}");
    }
    fs::remove_dir_all(sessions.path().join("train.py-4711-5f3a90c2")).unwrap();
    let ran = sessions.run(["report", "train.py"]);
    let words = "no session named train.py, and the file of this name is a text file: not a recording";
    assert!(ran.err.contains(words), "{ran:?}");
}

#[test]
fn recording_without_slash_or_ending_is_read() {
    let sessions = Sessions::new();
    sessions.file("kept", &run_of("pna"));
    for reader in &READERS[..7] {
        assert_eq!(sessions.run(with_name(reader, "kept")).code, Some(0), "{reader:?}");
    }
    let missing = sessions.run(["report", "none.gnntop"]);
    assert!(missing.err.contains("none.gnntop") && missing.err.contains("No such file"), "{missing:?}");
}

#[test]
fn where_two_fit_they_are_listed() {
    let sessions = Sessions::new();
    sessions.ended("train.py-4711-5f3a90c2", &run_of("train.py"));
    sessions.ended("trace.py-4712-5f3a90c3", &run_of("trace.py"));
    sessions.file("trace.py", &run_of("pna"));
    sessions.file("other.gnntop", &run_of("pna"));
    for reader in READERS {
        let ran = sessions.run(with_name(reader, "tra"));
        assert_eq!(ran.code, Some(1), "{reader:?}: {ran:?}");
        assert!(ran.err.contains("tra may be any of 2: "), "{reader:?}: {ran:?}");
        let ran = sessions.run(with_name(reader, "trace.py"));
        assert!(ran.err.contains("trace.py may be any of 2: trace.py (pid 4711), the file ./trace.py"), "{ran:?}");
    }
}

#[test]
fn stop_of_what_has_ended_says_so() {
    let sessions = Sessions::new();
    sessions.ended("train.py-4711-5f3a90c2", &run_of("train.py"));
    let ran = sessions.run(["stop", "train.py"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("train.py (pid 4711) has ended "), "{ran:?}");
    let ran = sessions.run(["stop", "trial.py"]);
    assert!(ran.err.contains("no running program trial.py"), "{ran:?}");
    let none = sessions.run(["list", "--live"]);
    assert!(none.err.contains("no live sessions in "), "{none:?}");
}

#[test]
fn usage_names_the_same_arguments_everywhere() {
    let sessions = Sessions::new();
    for command in ["attach", "report", "check", "record", "export", "serve", "trace", "replay"] {
        let help = sessions.run([command, "--help"]).out;
        assert!(help.contains("NAME|PID|FILE"), "{command}: {help}");
    }
}
