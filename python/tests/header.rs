//! The C header: what it declares is what the library has, and a program of C runs with it. Skipped, and said, without a
//! C compiler.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use gnntop_wire::{Definition, Event, Fact, Item, StepId, StreamReader, TrackRole};

/// The library, which Cargo builds with this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|dir| dir.join("libgnntop_python.so"));
    places.into_iter().find(|path| path.exists()).unwrap()
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles the example; `None` without a compiler.
fn compiled(dir: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    compiled_from(&crate_dir().join("examples/loop.c"), dir, compiler, options)
}

fn compiled_from(source: &Path, dir: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let program = dir.join("program");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror"]).args(options).arg("-I").arg(crate_dir().join("include"));
    command.arg(source).args(["-x", "none"]).arg(library()).args(["-pthread", "-o"]).arg(&program);
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no {compiler}");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// All that the program publishes.
fn published(sessions: &Path) -> (Vec<Definition>, Vec<Event>) {
    let session = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let mut segments: Vec<PathBuf> = std::fs::read_dir(session).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let (mut reader, mut definitions, mut events) = (StreamReader::new(), Vec::new(), Vec::new());
    for segment in segments.iter().filter(|path| path.file_name().is_some_and(|name| name != "lock")) {
        reader.fill(&std::fs::read(segment).unwrap());
        while let Some(item) = reader.next() {
            match item {
                Item::Definitions(all) => definitions.extend(all),
                Item::Block(_, block) => events.extend(block),
                _ => {}
            }
        }
    }
    (definitions, events)
}

#[test]
fn a_loop_in_c_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled(dir.path(), "cc", &["-std=c99"]) else { return };
    let sessions = dir.path().join("sessions");
    let mut run = Command::new(program);
    run.arg("40").env("GNNTOP_DIR", &sessions).env_remove("GNNTOP");
    let output = run.env("LD_LIBRARY_PATH", library().parent().unwrap()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let (definitions, events) = published(&sessions);
    let is_training = |d: &Definition| matches!(d, Definition::Track { role: TrackRole::Training, .. });
    assert!(definitions.iter().any(is_training));
    assert!(definitions.contains(&Definition::Fact(Fact::Framework("none".into()))));
    let steps: Vec<_> =
        events.iter().filter_map(|event| if let Event::Step(s) = event { Some(s) } else { None }).collect();
    assert_eq!(steps.len(), 40);
    assert!(steps.iter().all(|step| step.batch.nodes == Some(64) && step.batch.graphs.is_none()));
    let spans = events.iter().filter_map(|event| if let Event::Span(s) = event { Some(s) } else { None });
    assert_eq!(spans.clone().count(), 4 * 40);
    assert!(spans.clone().all(|span| span.step != StepId::NONE));
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Counter(_))).count(), 40);
}

#[test]
fn work_of_a_loop_in_c_becomes_steps_and_phases() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled(dir.path(), "cc", &["-std=c99"]) else { return };
    let sessions = dir.path().join("sessions");
    let mut run = Command::new(program);
    run.args(["12", "work"]).env("GNNTOP_DIR", &sessions).env_remove("GNNTOP");
    assert!(run.env("LD_LIBRARY_PATH", library().parent().unwrap()).status().unwrap().success());
    let (definitions, events) = published(&sessions);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Step(_))).count(), 12);
    let id_of = |wanted: &str| {
        let found = definitions.iter().find_map(|definition| match definition {
            Definition::Name { id, text, .. } if text == wanted => Some(*id),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{wanted} was not recorded"))
    };
    let spans: Vec<_> =
        events.iter().filter_map(|event| if let Event::Span(span) = event { Some(span) } else { None }).collect();
    // Each evaluation is a phase, with its three forward passes inside.
    let counts =
        [("data wait", 33), ("forward", 24), ("loss", 24), ("backward", 24), ("optimizer", 12), ("validation", 12)];
    for (name, count) in counts {
        let id = id_of(name);
        assert_eq!(spans.iter().filter(|span| span.name == id).count(), count, "{name}");
    }
    assert!(spans.is_sorted_by_key(|span| span.end_ns), "recorded in the order of their ends: {spans:?}");
}

const MAIN_THREAD_ENDS: &str = r#"
#include <gnntop.h>
#include <pthread.h>
#include <stddef.h>

static void *train(void *unused) {
    gnntop_track("train", GNNTOP_TRAINING);
    for (int i = 0; i < 30; i++) gnntop_step();
    return unused;
}

int main(void) {
    pthread_t thread;
    gnntop_open("threads", "");
    pthread_create(&thread, NULL, train, NULL);
    pthread_exit(NULL);
}
"#;

/// As under `faketime`: in a program, a function of the C library's name takes its place.
const FROZEN_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <gnntop.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    time->tv_sec = 1577836800;
    time->tv_nsec = 0;
    return 0;
}

int main(void) {
    gnntop_open("frozen", "");
    gnntop_track("train", GNNTOP_TRAINING);
    for (int i = 0; i < 30; i++) gnntop_step();
    gnntop_close();
    return 0;
}
"#;

/// Compiles a program and runs it to its end, which is a good one; `false` without a compiler.
fn ends_well(code: &str, dir: &Path) -> bool {
    let source = dir.join("program.c");
    std::fs::write(&source, code).unwrap();
    let Some(program) = compiled_from(&source, dir, "cc", &["-std=c99"]) else { return false };
    let mut run = Command::new("timeout");
    run.args(["-s", "KILL", "60"]).arg(program).env("GNNTOP_DIR", dir.join("sessions")).env_remove("GNNTOP");
    let status = run.env("LD_LIBRARY_PATH", library().parent().unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(0), "it never ended");
    true
}

#[test]
fn program_whose_main_thread_ends_first_ends_with_its_last_thread() {
    let dir = tempfile::tempdir().unwrap();
    if ends_well(MAIN_THREAD_ENDS, dir.path()) {
        let (_, events) = published(&dir.path().join("sessions"));
        assert_eq!(events.iter().filter(|event| matches!(event, Event::Step(_))).count(), 30);
    }
}

#[test]
fn program_whose_clock_is_frozen_is_not_published_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    ends_well(FROZEN_CLOCK, dir.path());
    assert!(!dir.path().join("sessions").exists());
}

#[test]
fn header_compiles_as_cpp() {
    let dir = tempfile::tempdir().unwrap();
    compiled(dir.path(), "c++", &["-x", "c++", "-std=c++11"]);
}

#[test]
fn library_turned_off_publishes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compiled(dir.path(), "cc", &[]) else { return };
    let sessions = dir.path().join("sessions");
    let mut run = Command::new(program);
    run.arg("3").env("GNNTOP_DIR", &sessions).env("GNNTOP", "0");
    assert!(run.env("LD_LIBRARY_PATH", library().parent().unwrap()).status().unwrap().success());
    assert!(!sessions.exists());
}

#[test]
fn library_exports_exactly_the_functions_of_the_header() {
    let header = std::fs::read_to_string(crate_dir().join("include/gnntop.h")).unwrap();
    let read = |file: &str| std::fs::read_to_string(crate_dir().join("src").join(file)).unwrap();
    let code = read("abi.rs") + &read("answers.rs") + &read("work_abi.rs") + &read("worker_abi.rs");
    let names = |text: &str, before: &str| -> Vec<String> {
        let after = text.split(before).skip(1);
        let mut names: Vec<String> = after.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())).collect();
        names.sort();
        names
    };
    let declared: Vec<&str> = header.lines().filter(|line| line.ends_with(");") && !line.starts_with(' ')).collect();
    assert_eq!(names(&declared.join("\n"), " gnntop_"), names(&code, "extern \"C\" fn gnntop_"));
}
