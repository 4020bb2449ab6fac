//! `gnntop study` from its file to its report, with a tiny program in the place of a training.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::sessions::{Ran, Sessions, signal, spawn, wait_until};
use crate::terminal::Terminal;
use gnntop_probe::{Session, TrackRole, phase, span, step};

/// Publishes two epochs of `$STUDY_STEPS` steps in all.
#[test]
#[ignore = "is the program that the studies start"]
fn a_tiny_training() {
    let steps: u64 = std::env::var("STUDY_STEPS").unwrap().parse().unwrap();
    let session = Session::builder("tiny").start();
    let _track = session.track("main", TrackRole::Training);
    for at in 0..steps {
        let _step = step(at * 2 / steps);
        let _forward = span(&phase::FORWARD);
        sleep(Duration::from_millis(1));
    }
}

/// A study of the tiny training with 20 and 40 steps, and what else is given. `$2` is the number of steps.
fn write_study(sessions: &Sessions, script_before: &str, more: &str) {
    let this = std::env::current_exe().unwrap();
    let this = this.display();
    let script = format!(
        "{script_before} STUDY_STEPS=\"$2\" exec '{this}' --exact study::a_tiny_training --ignored --nocapture"
    );
    let text = format!("name = 'tiny'\ncommand = ['sh', '-c', '''{script}''', 'tiny']\n{more}");
    sessions.file("tiny.toml", text.as_bytes());
}

const SIZES: &str = "repeats = 2\nwarm-up-steps = 2\n[vary]\nsteps = [20, 40]\n
[[published]]\nwhat = 'time of an epoch'\nmeasure = 'epoch.work.p50'\nunit = 's'\nsource = 'nowhere'
values = { 'steps=20' = 1.0, 'steps=40' = 2.0 }\n";

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "gnntop")).collect();
    all.sort();
    all
}

fn study(sessions: &Sessions, more: &[&str]) -> Ran {
    sessions.run([&["study", "tiny.toml", "-o", "out"][..], more].concat())
}

#[test]
fn a_study_records_every_run_and_reports_on_them() {
    let sessions = Sessions::new();
    write_study(&sessions, "", SIZES);
    let ran = study(&sessions, &["--html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("run 1 of 4: steps=20, repeat 1") && ran.err.contains(" left"), "{ran:?}");
    let out = sessions.path().join("out");
    let recordings = recordings(&out);
    assert_eq!(recordings.len(), 4);
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    for words in
        ["# Study: tiny", "| steps=20 | --steps 20 | 2 of 2 | 18 | 2 |", "| steps=40 | --steps 40 | 2 of 2 | 38 | 2 |"]
    {
        assert!(report.contains(words), "no {words:?} in\n{report}");
    }
    for heading in ["## Shares of the wall time", "## Against steps=20", "## Published: time of an epoch"] {
        assert!(report.contains(heading), "no {heading:?} in\n{report}");
    }
    assert!(report.contains("- time of an epoch: "), "{report}");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("<svg"));
}

const SHOWN: &str = "
[[claim]]\nsays = 'Twice the steps are twice the time'\nnote = 'they sleep'
first = { setting = 'steps=20', measure = 'epoch.p50' }\nsecond = { setting = 'steps=40', measure = 'epoch.p50' }
expect = 'more'
[[claim]]\nsays = 'Twice the steps are as many steps'
first = { setting = 'steps=20', measure = 'steps.count' }\nsecond = { setting = 'steps=40', measure = 'steps.count' }\nexpect = 'same'
[[claim]]\nsays = 'It learns'
first = { setting = 'steps=20', measure = 'counter.acc.last' }\nsecond = { setting = 'steps=40', measure = 'counter.acc.last' }
expect = 'more'
[[figure]]\nwhat = 'Epochs of both'\nmeasures = ['epoch.p50', 'epoch.work.p50']
[[figure]]\nwhat = 'Use of a GPU'\nmeasures = ['gpu.busiest.util.mean']\n";

#[test]
fn conclusions_are_judged_in_words_and_figures_are_drawn() {
    let sessions = Sessions::new();
    write_study(&sessions, "", &format!("{SIZES}{SHOWN}"));
    assert_eq!(study(&sessions, &["--html"]).code, Some(0));
    let read = |name: &str| fs::read_to_string(sessions.path().join("out").join(name)).unwrap();
    let (report, html) = (read("report.md"), read("report.html"));
    for words in [
        "expected more (they sleep)",
        "\"Twice the steps are as many steps\" does not hold: 38 with steps=40 against 18 with steps=20",
        "\"It learns\" undecided: it was not measured",
        "Not measured here: gpu.busiest.util.mean.",
        "## Epochs of both",
    ] {
        assert!(report.contains(words), "no {words:?} in\n{report}");
    }
    // On a busy machine the runs of both may take as long.
    let judged =
        ["holds: ", "unclear: the runs overlap: "].map(|how| format!("\"Twice the steps are twice the time\" {how}"));
    assert!(judged.iter().any(|words| report.contains(words)), "{report}");
    assert!(html.contains("<title>Epochs of both</title>") && !html.contains("<title>Use of a GPU</title>"));
    assert!(html.len() < 2_000_000 && html.matches("<script").count() <= 1);
}

#[test]
fn every_seed_reaches_the_program_and_every_setting_has_its_warm_up() {
    let sessions = Sessions::new();
    let more = "repeats = 2\nseeds = [5, 6]\nwarm-up-steps = 2\n[options]\nsteps = 10\n
                [[setting]]\nname = 'some'\n[[setting]]\nname = 'more'\nwarm-up-steps = 7\noptions = { long = true }\n";
    // The options are in the order of their names: --long, --steps 10, --seed 5.
    write_study(&sessions, "echo \"$@\" >> started; [ \"$1\" = --long ] && shift;", more);
    let ran = study(&sessions, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let started = fs::read_to_string(sessions.path().join("started")).unwrap();
    let expected = [
        "--steps 10 --seed 5",
        "--long --steps 10 --seed 5",
        "--long --steps 10 --seed 6",
        "--steps 10 --seed 6",
        "--steps 10 --seed 5",
        "--long --steps 10 --seed 5",
        "--long --steps 10 --seed 6",
        "--steps 10 --seed 6",
    ];
    assert_eq!(started.lines().collect::<Vec<&str>>(), expected);
    let report = fs::read_to_string(sessions.path().join("out/report.md")).unwrap();
    assert!(report.contains("| some | --steps 10 | 4 of 4 | 8 | 2 |"), "{report}");
    assert!(report.contains("| more | --long --steps 10 | 4 of 4 | 3 | 7 |"), "{report}");
}

#[test]
fn finished_runs_are_kept_and_cut_runs_repeated() {
    let sessions = Sessions::new();
    write_study(&sessions, "echo started >> started;", SIZES);
    assert_eq!(study(&sessions, &[]).code, Some(0));
    let starts = || fs::read_to_string(sessions.path().join("started")).unwrap().lines().count();
    assert_eq!(starts(), 4);
    let out = sessions.path().join("out");
    let all = recordings(&out);
    let kept = fs::read(&all[1]).unwrap();
    let mut cut = all[0].clone().into_os_string();
    cut.push(".part");
    fs::rename(&all[0], &cut).unwrap();
    let again = study(&sessions, &[]);
    assert!(again.code == Some(0) && again.err.contains("3 of 4 runs already exist"), "{again:?}");
    assert_eq!(starts(), 5);
    assert_eq!(recordings(&out), all);
    assert_eq!(fs::read(&all[1]).unwrap(), kept);
    assert!(!Path::new(&cut).exists());
}

#[test]
fn failing_run_is_reported_and_study_continues() {
    let sessions = Sessions::new();
    write_study(&sessions, "test \"$2\" = 20 && exit 9;", "[vary]\nsteps = [20, 40]\n");
    let ran = study(&sessions, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("run 1 of 2: steps=20: ended with exit code 9"), "{ran:?}");
    let out = sessions.path().join("out");
    assert_eq!(recordings(&out).len(), 1);
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("## Failed") && report.contains("| 0 of 1 |"), "{report}");
    assert!(report.contains("| steps=40 | --steps 40 | 1 of 1 | 40 | 0 |"), "{report}");
}

#[test]
fn run_beyond_time_limit_is_ended() {
    let sessions = Sessions::new();
    write_study(&sessions, "exec sleep 600;", "time-limit-s = 1\n[vary]\nsteps = [20]\n");
    let ran = study(&sessions, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("exceeded time-limit-s"), "{ran:?}");
    assert!(recordings(&sessions.path().join("out")).is_empty());
}

#[test]
fn interruption_ends_the_run_with_hint_to_continue() {
    let sessions = Sessions::new();
    write_study(&sessions, "test \"$2\" = 40 && touch ready && exec sleep 600;", SIZES);
    let child = spawn(&mut sessions.gnntop(["study", "tiny.toml", "-o", "out"]));
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "INT");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("interrupted after 1 of 4 runs"), "{ran:?}");
}

/// Waits for `go` in its run of 40 steps.
const WAITS: &str = "if [ \"$2\" = 40 ]; then touch ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; fi;";

#[test]
fn study_survives_hangup_and_locks_its_folder() {
    let sessions = Sessions::new();
    write_study(&sessions, WAITS, "[vary]\nsteps = [20, 40]\n");
    let folder = sessions.path().to_str().unwrap();
    let gnntop = Path::new(env!("CARGO_BIN_EXE_gnntop"));
    let words = ["study", "tiny.toml", "-o", "out"];
    let path = std::env::var("PATH").unwrap();
    let environment = [("GNNTOP_DIR", folder), ("XDG_CACHE_HOME", folder), ("PATH", &path)];
    let mut terminal = Terminal::start_in(sessions.path(), gnntop, &words, &environment);
    terminal.wait_for("run 2 of 2");
    wait_until(|| sessions.path().join("ready").exists());
    terminal.close();
    let other = study(&sessions, &[]);
    assert!(other.code == Some(1) && other.err.contains("a study is writing into out"), "{other:?}");
    sessions.file("go", b"");
    wait_until(|| sessions.path().join("out/report.md").exists());
    assert_eq!(recordings(&sessions.path().join("out")).len(), 2);
}

#[test]
fn study_ends_at_hangup_with_on_hangup_stop() {
    let sessions = Sessions::new();
    write_study(&sessions, WAITS, "[vary]\nsteps = [20, 40]\n");
    let mut command = sessions.gnntop(["study", "tiny.toml", "-o", "out", "--on-hangup", "stop"]);
    let child = spawn(&mut command);
    wait_until(|| sessions.path().join("ready").exists());
    signal(&child, "HUP");
    let ran = Ran::new(&child.wait_with_output().unwrap());
    assert!(ran.code == Some(129) && ran.err.contains("interrupted after 1 of 2 runs"), "{ran:?}");
}

#[test]
fn a_dry_run_lists_the_runs_and_starts_none() {
    let sessions = Sessions::new();
    write_study(&sessions, "touch started;", SIZES);
    let ran = study(&sessions, &["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let first: Vec<&str> = ran.out.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    let settings: Vec<&str> = first.iter().map(|line| &line[3..11]).collect();
    assert_eq!(settings, ["steps=20", "steps=40", "steps=40", "steps=20"], "interleaved, no setting always first");
    assert!(!sessions.path().join("started").exists() && !sessions.path().join("out").exists());
}

#[test]
fn mistake_in_file_is_reported_with_line() {
    let sessions = Sessions::new();
    sessions.file("tiny.toml", b"name = 'tiny'\nworkload = 'no-such'\n");
    let ran = study(&sessions, &[]);
    assert_eq!((ran.code, ran.err.lines().count()), (Some(2), 1), "{ran:?}");
    assert!(ran.err.contains("tiny.toml: line 2: "), "{ran:?}");
    assert!(!sessions.path().join("out").exists());
}
