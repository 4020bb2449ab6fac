//! The real program on runs of several ranks: list, record, replay and report take all of their sessions.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gnntop_fixtures::{MS, ParallelRun, each_item};

use crate::sessions::{Published, Sessions, signal, spawn, wait_until};
use gnntop_analysis::ranks::Run;
use gnntop_probe::{NameKind, Place, Session, TrackRole, intern, span, step};

/// The sessions of a run, living.
fn publish(sessions: &Sessions, parallel: &ParallelRun) -> Vec<Published> {
    let live = |rank: u32| sessions.live(&format!("{}-rank{rank}", parallel.run), &parallel.session(rank));
    (0..parallel.ranks).map(live).collect()
}

fn run_of(bytes: &[u8]) -> Run {
    let mut run = Run::default();
    each_item(bytes, |item| run.apply(item));
    run
}

fn steps(run: &Run) -> Vec<(u32, u64)> {
    run.ranks().all().iter().map(|rank| (rank.place.rank, rank.store.steps().total())).collect()
}

#[test]
fn the_list_puts_the_ranks_of_a_run_together() {
    let sessions = Sessions::new();
    let _published = publish(&sessions, &ParallelRun { ranks: 3, ends: false, ..ParallelRun::default() });
    sessions.ended("older", &ParallelRun { run: "job-16", start: 5, ..ParallelRun::default() }.session(1));
    let ran = sessions.run(["list"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..4], ["job-17", "3", "ranks", "live"], "{}", ran.out);
    for rank in 0..3 {
        let line = &lines[2 + rank];
        assert_eq!(line[..5], ["rank", &format!("{rank},"), "sage", &format!("500{rank}"), "live"], "{}", ran.out);
    }
    assert_eq!(lines[5][..4], ["job-16", "2", "ranks", "ended"], "{}", ran.out);
    assert!(ran.out.lines().nth(5).unwrap().ends_with("1 of 2 ranks have published"), "{}", ran.out);
}

#[test]
fn a_run_is_recorded_whole_by_its_id_or_by_any_of_its_sessions() {
    let sessions = Sessions::new();
    let parallel = ParallelRun { ranks: 3, ..ParallelRun::default() };
    for rank in 0..3 {
        sessions.ended(&format!("rank{rank}"), &parallel.session(rank));
    }
    for (at, named) in ["job-17", "5001", "rank2", "sage"].into_iter().enumerate() {
        let file = format!("{at}.gnntop");
        let ran = sessions.run(["record", named, "-o", &file]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("events of 3 sessions"), "{ran:?}");
        let run = run_of(&fs::read(sessions.path().join(&file)).unwrap());
        assert_eq!(steps(&run), [(0, 60), (1, 60), (2, 60)], "{named}");
        assert!(run.notes().is_empty(), "{:?}", run.notes());
    }
    let ran = sessions.run(["record"]);
    ran.assert_refused("no live session");
    let ran = sessions.run(["record", "job-17"]);
    assert!(ran.err.starts_with("run-job-17.gnntop: "), "{ran:?}");
}

#[test]
fn late_rank_is_recorded() {
    let sessions = Sessions::new();
    let parallel = ParallelRun { ends: false, ..ParallelRun::default() };
    let mut zero = sessions.live("rank0", &parallel.session(0));
    let child = spawn(&mut sessions.gnntop(["record", "--last", "1h", "--duration", "1h", "-o", "a.gnntop"]));
    let path = sessions.path().join("a.gnntop");
    wait_until(|| fs::metadata(&path).is_ok_and(|meta| meta.len() > 0));
    let mut one = sessions.live("rank1", &parallel.session(1));
    wait_until(|| steps(&run_of(&fs::read(&path).unwrap())).len() == 2);
    zero.die();
    one.die();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(steps(&run_of(&fs::read(&path).unwrap())), [(0, 60), (1, 60)]);
}

/// Recordings of the ranks of a run, of which rank 1 is slow.
fn recordings(sessions: &Sessions) -> Vec<String> {
    let parallel = ParallelRun { slow: vec![(1, 0..100, "backward", 5 * MS)], ..ParallelRun::default() };
    let file = |rank: u32| {
        let name = format!("rank{rank}.gnntop");
        sessions.file(&name, &parallel.session(rank));
        name
    };
    (0..2).map(file).collect()
}

#[test]
fn a_report_has_a_line_for_each_rank_and_the_run_as_a_whole() {
    let sessions = Sessions::new();
    let files = recordings(&sessions);
    let together =
        [fs::read(sessions.path().join(&files[0])).unwrap(), fs::read(sessions.path().join(&files[1])).unwrap()];
    sessions.file("run.gnntop", &together.concat());
    let (apart, one) = (sessions.run(["report", &files[0], &files[1]]), sessions.run(["report", "run.gnntop"]));
    assert_eq!((apart.code, one.code), (Some(0), Some(0)), "{apart:?} {one:?}");
    assert_eq!(apart.out, one.out, "two files of one run are one report");
    for expected in [
        "run job-17: 2 of 2 ranks, engine threads",
        "skew in 60 steps: p50 5.00 ms, p90 5.00 ms, max 5.00 ms",
        "the rest is about rank 0",
        "\n  process          5000\n",
    ] {
        assert!(one.out.contains(expected), "no {expected:?} in {}", one.out);
    }
    let other = sessions.run(["report", "run.gnntop", "--rank", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&other.out).unwrap();
    assert_eq!(json["session"]["pid"], 5001);
    assert_eq!(json["run"]["rank_reported"], 1);
    assert_eq!(json["run"]["ranks"][1]["slowest_share"], 1.0);
    assert_eq!(json["run"]["ranks"][0]["wait_share"].as_f64().map(|share| (share * 1000.0).round()), Some(111.0));
    assert_eq!(json["run"]["skew_p50_ns"], 5 * MS);
    sessions.run(["report", "run.gnntop", "--rank", "2"]).assert_refused("has no rank 2: it has 0, 1");
    for form in ["--markdown", "--html", "--csv"] {
        let ran = sessions.run(["report", "run.gnntop", form]);
        assert!(ran.code == Some(0) && ran.out.contains("rank"), "{ran:?}");
    }
}

#[test]
fn the_efficiency_of_a_run_is_measured_by_one_rank_alone() {
    let sessions = Sessions::new();
    let alone = ParallelRun { ranks: 1, run: "job-16", ..ParallelRun::default() };
    sessions.file("one.gnntop", &alone.bytes());
    sessions.file("two.gnntop", &ParallelRun::default().bytes());
    let unknown = sessions.run(["report", "two.gnntop"]);
    assert!(unknown.out.contains("efficiency unknown: give a run of one rank"), "{unknown:?}");
    let known = sessions.run(["report", "two.gnntop", "--against", "one.gnntop", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&known.out).unwrap();
    // Steps of 40 ms for two beside 36 ms for one, which has nobody to exchange anything with.
    assert_eq!((json["run"]["efficiency"].as_f64().unwrap() * 100.0).round(), 90.0);
    let text = sessions.run(["report", "two.gnntop", "--against", "one.gnntop"]);
    assert!(text.out.contains("efficiency 90 % compared with the same number of single ranks"), "{text:?}");
    sessions.run(["report", "one.gnntop", "--against", "two.gnntop"]).assert_refused("is a run of 2 ranks");
}

#[test]
fn plain_lines_name_the_rank_of_a_run() {
    let sessions = Sessions::new();
    let files = recordings(&sessions);
    let bytes: Vec<u8> = files.iter().flat_map(|file| fs::read(sessions.path().join(file)).unwrap()).collect();
    sessions.file("run.gnntop", &bytes);
    let replay = ["replay", "run.gnntop", "--plain", "--speed", "100", "--interval", "100ms"];
    let ran = sessions.run(replay);
    assert!(ran.code == Some(0) && ran.out.contains("step 60"), "{ran:?}");
    assert!(ran.out.contains("this is rank 0 of 2, rank 1 slowest by 5.00 ms"), "{ran:?}");
    // The same through a pipe, as one machine's recorder sends it to another's screen.
    let recorded = sessions.run(["record", "run.gnntop", "-o", "-"]);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let piped =
        sessions.run_with(["replay", "-", "--plain", "--speed", "100", "--interval", "100ms"], &recorded.out_bytes);
    assert!(piped.out.contains("this is rank 0 of 2"), "{piped:?}");
}

/// What is said where ranks that went on beside each other come one after the other.
const IN_TURN: &str = "the ranks come through this pipe one after another";

#[test]
fn piped_recording_is_played_like_the_file() {
    let sessions = Sessions::new();
    let parallel = ParallelRun { steps: 400, ..ParallelRun::default() };
    // As `cat` puts recordings together.
    sessions.file("run.gnntop", &parallel.bytes());
    let words = |file| ["replay", file, "--plain", "--speed", "100", "--interval", "100ms"];
    let (piped, read) = (sessions.run_with(words("-"), &parallel.bytes()), sessions.run(words("run.gnntop")));
    for ran in [&piped, &read] {
        assert!(ran.code == Some(0) && !ran.err.contains(IN_TURN), "read at both places: {ran:?}");
        assert!(ran.out.contains("step 400") && ran.out.contains("this is rank 0 of 2"), "{ran:?}");
    }
    assert!(piped.out.contains("standard input"), "{piped:?}");
    let started_in_the_middle = sessions.run_with([&words("-")[..], &["--from", "15s"]].concat(), &parallel.bytes());
    assert!(started_in_the_middle.out.contains("step 400"), "{started_in_the_middle:?}");
}

#[test]
fn sequential_ranks_in_an_open_pipe_are_reported() {
    let sessions = Sessions::new();
    let parallel = ParallelRun { steps: 400, ..ParallelRun::default() };
    let mut command = sessions.gnntop(["replay", "-", "--plain", "--speed", "100", "--interval", "100ms"]);
    let mut replay = spawn(command.stdin(Stdio::piped()));
    let mut pipe = replay.stdin.take().unwrap();
    pipe.write_all(&parallel.session(0)).unwrap();
    let mut out = BufReader::new(replay.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut before = String::new();
    let stands = |line: String| std::mem::replace(&mut before, line.clone()) == line;
    assert!(out.by_ref().any(stands), "rank 0 is played as far as it goes while the pipe is open");
    pipe.write_all(&parallel.session(1)).unwrap();
    let mut err = BufReader::new(replay.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(err.any(|line| line.contains(IN_TURN)), "this rank comes too late");
    drop(pipe);
    assert!(out.any(|line| line.contains("step 400")) && replay.wait().unwrap().success(), "played in step in the end");
}

#[test]
fn two_runs_with_one_id_are_reported_by_every_command() {
    let sessions = Sessions::new();
    let one = ParallelRun { steps: 400, ends: false, ..ParallelRun::default() };
    let other = ParallelRun { start: 1, later_ns: 1_000_000_000, ..one.clone() };
    for (start, parallel) in [&one, &other].into_iter().enumerate() {
        for rank in 0..2 {
            sessions.ended(&format!("start{start}-rank{rank}"), &parallel.session(rank));
        }
    }
    let told = "TWO RUNS SHARE THE ID job-17: 2 ranks are claimed by two sessions";
    let attached = sessions.run(["attach", "job-17", "--plain"]);
    assert!(attached.err.contains(told), "{attached:?}");
    let report = sessions.run(["report", "job-17"]);
    assert!(report.out.contains(told), "{report:?}");
    assert_eq!(sessions.run(["record", "job-17", "-o", "a.gnntop"]).code, Some(0));
    assert!(sessions.run(["report", "a.gnntop"]).out.contains(told), "and the recording of all four is whole");
    assert_eq!(run_of(&fs::read(sessions.path().join("a.gnntop")).unwrap()).members().len(), 4);
}

/// A training of two ranks in a process of its own, which ends with its input.
struct Training(Child);

impl Training {
    /// Starts it under the id `job-17`; `work` is what its steps consist of.
    fn start(sessions: &Sessions, work: &str) -> Self {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["--ignored", "--exact", "runs::train_under_an_id"]).env("WORK", work);
        own.env("GNNTOP_DIR", sessions.path()).env_remove("GNNTOP").stdin(Stdio::piped());
        Self(spawn(&mut own))
    }

    /// Ends it in good order.
    fn end(&mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "goes on until its input ends: another test starts it in a process of its own"]
fn train_under_an_id() {
    let work = intern(NameKind::Span, &std::env::var("WORK").unwrap());
    let is_over = AtomicBool::new(false);
    let train = |rank| {
        let place = Place { run: "job-17".to_owned(), rank, ranks: 2, copy: rank, copies: 2, ..Place::default() };
        let session = Session::builder("mine").sensors(None).place(place).start();
        let _track = session.track("train", TrackRole::Training);
        while !is_over.load(Ordering::Relaxed) {
            let _step = step(0);
            let _work = span(work);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|rank| drop(scope.spawn(move || train(rank))));
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn two_trainings_with_one_id_are_reported_and_separated() {
    let sessions = Sessions::new();
    let mut first = Training::start(&sessions, "first work");
    wait_until(|| sessions.run(["report", "job-17"]).code == Some(0));
    let mut second = Training::start(&sessions, "second work");
    let told = "TWO RUNS SHARE THE ID";
    let both = "2 ranks are claimed by two sessions";
    wait_until(|| sessions.run(["report", "job-17"]).out.contains(both));
    let list = sessions.run(["list"]);
    let line = list.out.lines().find(|line| line.starts_with("job-17")).unwrap();
    assert!(line.contains(told) && line.contains(both) && list.out.lines().count() == 6, "{list:?}");
    let mut attach = spawn(&mut sessions.gnntop(["attach", "job-17", "--plain", "--interval", "100ms"]));
    let mut err = BufReader::new(attach.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(err.any(|line| line.contains(told) && line.contains(both)), "a live view says it");
    signal(&attach, "TERM");
    attach.wait().unwrap();
    first.end();
    second.end();
    assert_eq!(sessions.run(["record", "job-17", "-o", "a.gnntop"]).code, Some(0));
    for of in ["job-17", "a.gnntop"] {
        let report = sessions.run(["report", of]);
        assert!(report.out.contains(told) && !report.err.contains("damaged"), "{report:?}");
        let json: serde_json::Value = serde_json::from_str(&sessions.run(["report", of, "--json"]).out).unwrap();
        for rank in json["run"]["ranks"].as_array().unwrap() {
            assert_eq!(rank["pid"], second.0.id(), "the later start is shown: {json:#}");
        }
        assert!(!json.to_string().contains("first work"), "nothing of the other is mixed in: {json:#}");
        assert!(json.to_string().contains("second work"), "{json:#}");
    }
    let members = run_of(&fs::read(sessions.path().join("a.gnntop")).unwrap());
    assert_eq!(members.members().len(), 4, "both are recorded");
}

#[test]
fn other_commands_take_one_rank_and_say_which() {
    let sessions = Sessions::new();
    let files = recordings(&sessions);
    let bytes: Vec<u8> = files.iter().flat_map(|file| fs::read(sessions.path().join(file)).unwrap()).collect();
    sessions.file("run.gnntop", &bytes);
    let check = |rank: &str| sessions.run(["check", "run.gnntop", "--max", "backward.p50=22ms", "--rank", rank]);
    let (zero, one) = (check("0"), check("1"));
    assert_eq!((zero.code, one.code), (Some(0), Some(3)), "{zero:?} {one:?}");
    assert!(one.err.contains("run.gnntop: rank 1 of 2 of run job-17"), "{one:?}");
    let rows = |rank: &str| sessions.run(["export", "run.gnntop", "--to", "csv", "--rank", rank]).out.lines().count();
    let alone = sessions.run(["export", "rank1.gnntop", "--to", "csv"]).out.lines().count();
    assert!(alone > 100 && rows("1") == alone && rows("0") == alone, "{alone}");
    let compared = sessions.run(["compare", "run.gnntop", "run.gnntop", "--rank", "1"]);
    assert!(compared.code == Some(0) && compared.err.contains("rank 1 of 2"), "{compared:?}");
}
