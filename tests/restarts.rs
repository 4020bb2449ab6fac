//! The real program on a training that is killed and started again: one history, with what that cost.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::sessions::{Sessions, spawn, wait_until};
use gnntop_fixtures::{ParallelRun, each_item};
use gnntop_probe::{Launched, NameKind, Place, Session, TrackRole, intern, span, step};

const TRAINING: &str = "restarts::train_until_killed";

/// Steps that [`train_until_killed`] does on each of its ranks, unless it is killed before.
const STEPS: &str = "RESTARTS_STEPS";
/// Where it goes on.
const RESUMED: &str = "RESTARTS_RESUMED";
/// Ranks that it has, as threads.
const RANKS: &str = "RESTARTS_RANKS";

#[test]
#[ignore = "goes on until it is killed: another test starts it in a process of its own"]
fn train_until_killed() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let steps = number(STEPS).unwrap_or(u64::MAX);
    let ranks = number(RANKS).unwrap_or(1) as u32;
    let work = intern(NameKind::Span, "work");
    let train = |rank| {
        let mut builder = Session::builder("mine").sensors(None);
        if ranks > 1 {
            builder =
                builder.place(Place { run: Launched::from_env().run, rank, ranks, copies: ranks, ..Place::default() });
        }
        let session = builder.start();
        number(RESUMED).into_iter().for_each(|steps| session.resumed(steps));
        let _track = session.track("train", TrackRole::Training);
        for _ in 0..steps {
            let _step = step(0);
            let _work = span(work);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| (0..ranks).for_each(|rank| drop(scope.spawn(move || train(rank)))));
}

fn training(sessions: &Sessions, variables: &[(&str, &str)]) -> Command {
    let mut own = sessions.program(std::env::current_exe().unwrap().to_str().unwrap());
    for name in ["SLURM_JOB_ID", "SLURM_RESTART_COUNT", "TORCHELASTIC_RUN_ID", "GNNTOP_RUN"] {
        own.env_remove(name);
    }
    own.args(["--ignored", "--exact", TRAINING]).envs(variables.iter().copied());
    own
}

fn report(sessions: &Sessions, of: &str) -> serde_json::Value {
    let ran = sessions.run(["report", of, "--json"]);
    if ran.code == Some(0) { serde_json::from_str(&ran.out).unwrap() } else { serde_json::Value::Null }
}

/// Starts it, and kills it once so many starts and steps are there.
fn run_and_kill(sessions: &Sessions, variables: &[(&str, &str)], run: &str, starts: u64, steps: u64) {
    let mut child = spawn(training(sessions, variables).stdout(Stdio::null()));
    wait_until(|| {
        let found = report(sessions, run);
        let count = found["restarts"]["count"].as_u64().map_or(1, |restarts| restarts + 1);
        let newest = found["restarts"]["starts"].as_array().and_then(|starts| starts.last()?["steps"].as_u64());
        count == starts && newest.or(found["steps"]["total"].as_u64()).unwrap_or(0) >= steps
    });
    kill(&mut child);
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_job_that_slurm_requeues_is_one_run() {
    let sessions = Sessions::new();
    run_and_kill(&sessions, &[("SLURM_JOB_ID", "71")], "71", 1, 20);
    let before = report(&sessions, "71")["steps"]["total"].as_u64().unwrap();
    let again = [("SLURM_JOB_ID", "71"), ("SLURM_RESTART_COUNT", "1"), (RESUMED, "5")];
    run_and_kill(&sessions, &again, "71", 2, 30);
    let found = report(&sessions, "71");
    let restarts = &found["restarts"];
    assert_eq!(
        (restarts["count"].as_u64(), restarts["starts"].as_array().unwrap().len()),
        (Some(1), 2),
        "{restarts:#}"
    );
    let [first, second] = [0, 1].map(|at| restarts["starts"][at]["steps"].as_u64().unwrap());
    assert!(first >= before && second >= 30);
    assert_eq!(found["steps"]["total"], first + second);
    assert_eq!(restarts["repeated_steps"], (first - 5).min(second));
    assert!(restarts["lost_ns"].as_u64() > restarts["starts"][1]["outage_ns"].as_u64(), "{restarts:#}");
    let text = sessions.run(["report", "71"]).out;
    assert!(text.contains("restarts (certain): restarted once") && text.contains("killed or crashed"), "{text}");
    for form in ["--markdown", "--html"] {
        assert!(sessions.run(["report", "71", form]).out.contains("Restarts"), "{form}");
    }
    let list = sessions.run(["list"]);
    let lines: Vec<Vec<&str>> = list.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((lines.len(), &lines[1][..4]), (3, &["71", "2", "starts", "ended"][..]), "{}", list.out);
    assert_eq!(lines[2][..2], ["newest,", "mine"], "{}", list.out);
}

#[test]
fn recording_of_restarted_run_has_every_start() {
    let sessions = Sessions::new();
    run_and_kill(&sessions, &[("GNNTOP_RUN", "night")], "night", 1, 20);
    run_and_kill(&sessions, &[("GNNTOP_RUN", "night")], "night", 2, 20);
    let live = report(&sessions, "night");
    assert_eq!(live["restarts"]["repeated_steps"], serde_json::Value::Null, "nobody said where it resumed");
    assert_eq!(sessions.run(["record", "night", "-o", "a.gnntop"]).code, Some(0));
    let recorded = report(&sessions, "a.gnntop");
    assert_eq!(recorded["restarts"], live["restarts"]);
    assert_eq!(recorded["steps"]["total"], live["steps"]["total"]);
    let attached = sessions.run(["attach", "night", "--plain"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    let mut run = gnntop_analysis::ranks::Run::default();
    each_item(&fs::read(sessions.path().join("a.gnntop")).unwrap(), |item| run.apply(item));
    assert_eq!((run.members().len(), run.store().attempts().count()), (1, 2));
}

#[test]
fn recordings_of_two_starts_make_one_report() {
    let sessions = Sessions::new();
    let [first, again] = [(0, 0), (1, 60)].map(|(number, later_s)| ParallelRun::restarted(number, later_s));
    sessions.file("a.gnntop", &first.session(0));
    sessions.file("b.gnntop", &again.session(0));
    let report = sessions.run(["report", "a.gnntop", "b.gnntop", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&found["restarts"]["count"], &found["steps"]["total"]), (&1.into(), &120.into()), "{report:?}");
}

#[test]
fn ranks_restarted_by_torchrun_continue() {
    let sessions = Sessions::new();
    let of = |restarts| [("TORCHELASTIC_RUN_ID", "exp"), ("TORCHELASTIC_RESTART_COUNT", restarts), (RANKS, "2")];
    run_and_kill(&sessions, &of("0"), "exp", 1, 20);
    run_and_kill(&sessions, &of("1"), "exp", 2, 20);
    let found = report(&sessions, "exp");
    assert_eq!(found["run"]["ranks"].as_array().unwrap().len(), 2, "{found:#}");
    assert_eq!(found["restarts"]["count"], 1);
    let list = sessions.run(["list"]);
    assert!(list.out.contains("2 starts") && list.out.lines().count() == 4, "{}", list.out);
}

/// What `gnntop run --plain` prints of a script that trains twice, with these variables set.
fn lines_of_two_trainings(variables: &str) -> String {
    let sessions = Sessions::new();
    let own = std::env::current_exe().unwrap();
    let script =
        format!("for start in 0 1; do {variables} {} --ignored --exact {TRAINING}; sleep 2; done; true", own.display());
    let mut run = sessions.gnntop(["run", "--plain", "--interval", "0.5", "--", "bash", "-c", &script]);
    let ran = run.env(STEPS, "300").output().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    let ends = out.lines().filter(|line| *line == "ended").count();
    let after_the_first = out.lines().skip_while(|line| *line != "ended").skip(1);
    assert!(after_the_first.filter(|line| line.contains(" steps/s, ")).count() > 1 && ends == 2, "{out}");
    out
}

#[test]
fn lines_continue_with_the_next_start() {
    lines_of_two_trainings("TORCHELASTIC_RUN_ID=plain TORCHELASTIC_RESTART_COUNT=$start");
}

#[test]
fn lines_continue_with_the_next_training_of_a_script() {
    let out = lines_of_two_trainings("");
    let named = out.lines().filter(|line| line.starts_with("mine (pid ")).collect::<Vec<_>>();
    assert!(named.len() == 2 && named[0] != named[1], "{out}");
    assert!(!out.lines().any(|line| line.contains("step 301, ")), "steps are those of each: {out}");
}

#[test]
fn run_id_option_names_the_run() {
    let sessions = Sessions::new();
    let own = std::env::current_exe().unwrap();
    for _ in 0..3 {
        let mut run = sessions.gnntop(["run", "--plain", "--run", "night", "--"]);
        run.arg(&own).args(["--ignored", "--exact", TRAINING]).env(STEPS, "20");
        let ran = run.output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    let found = report(&sessions, "night");
    assert_eq!((&found["restarts"]["count"], &found["steps"]["total"]), (&2.into(), &60.into()), "{found:#}");
    assert_eq!(sessions.run(["run", "--run", "", "--", "true"]).code, Some(2));
}

#[test]
fn programs_of_one_job_are_separate_runs() {
    let sessions = Sessions::new();
    for _ in 0..2 {
        let ran = training(&sessions, &[("SLURM_JOB_ID", "71"), (STEPS, "20")]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
    let list = sessions.run(["list"]);
    assert!(list.out.lines().count() == 3 && !list.out.contains("start"), "{}", list.out);
}
