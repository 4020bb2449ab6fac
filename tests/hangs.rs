//! Deadlocks that really happen, in trainings on several ranks with real sessions: who holds the run up is named while it
//! hangs, and afterwards from what a killed run has left.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sessions::{Sessions, signal, spawn, wait_until};
use clap::Parser;
use gnntop_probe::{Name, phase, span, step};
use gnntop_workloads::data::loading::{Assemble, BatchId, LoaderObserver, LoaderSettings, Stage};
use gnntop_workloads::launch::{Launch, RankOptions, RunOptions};
use gnntop_workloads::train::{Silent, Summary, published_loader, wait_for_batch};
use serde_json::Value;

/// Longer than anything here takes on a machine that is not dead.
const OUTER_LIMIT: Duration = Duration::from_secs(120);

/// A training that hangs, killed at the latest with the test.
struct Hanging(Child);

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a viewer without a screen says who holds up the run of this name, kills the run, and checks that its session
/// and a recording of it say so too.
fn assert_named_live_and_later(sessions: &Sessions, training: Child, name: &str, words: &[&str]) {
    let mut training = Hanging(training);
    let begin = Instant::now();
    while report(sessions, name).is_none() {
        assert!(begin.elapsed() < OUTER_LIMIT, "nothing is published");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = live_hang_line(sessions, name);
    println!("live: {said}");
    words.iter().for_each(|words| assert!(said.contains(words), "no {words:?} in {said}"));
    training.0.kill().unwrap();
    training.0.wait().unwrap();
    let of_session = hang(&report(sessions, name).unwrap());
    assert_eq!(sessions.run(["record", name, "--last", "1h", "-o", "a.gnntop"]).code, Some(0));
    let of_recording = hang(&report(sessions, "a.gnntop").unwrap());
    let replayed = sessions.run(["replay", "a.gnntop", "--plain", "--speed", "20", "--interval", "100ms"]).out;
    let replayed = replayed.lines().find(|line| line.starts_with("hang: ")).expect("a replay says it too");
    for said in [&of_session, &of_recording, replayed] {
        words.iter().for_each(|words| assert!(said.contains(words), "no {words:?} in {said}"));
    }
}

/// The first line in which `gnntop attach --plain` says that the run hangs.
fn live_hang_line(sessions: &Sessions, name: &str) -> String {
    let mut viewer = spawn(&mut sessions.gnntop(["attach", name, "--plain", "--interval", "100ms"]));
    let lines = BufReader::new(viewer.stdout.take().unwrap()).lines();
    let begin = Instant::now();
    let said = lines.map(|line| line.unwrap()).find(|line| {
        assert!(begin.elapsed() < OUTER_LIMIT, "nobody says that the run hangs");
        line.starts_with("hang: ")
    });
    viewer.kill().unwrap();
    viewer.wait().unwrap();
    said.expect("the viewer ends before the run hangs")
}

fn report(sessions: &Sessions, of: &str) -> Option<Value> {
    let ran = sessions.run(["report", of, "--json"]);
    serde_json::from_str(&ran.out).ok().filter(|_| ran.code == Some(0))
}

/// What a report says of a hang.
fn hang(report: &Value) -> String {
    let found = report["findings"]["found"].as_array().unwrap();
    let finding = found.iter().find(|finding| finding["kind"] == "hang");
    finding.unwrap_or_else(|| panic!("no hang in {found:#?}"))["summary"].as_str().unwrap().to_owned()
}

#[test]
fn rank_stuck_in_its_work_is_named() {
    let sessions = Sessions::new();
    let small = ["--nodes", "600", "--edges", "6000", "--batch-size", "16", "--fanouts", "4,4", "--hidden", "8"];
    let train = ["train", "sage", "--ranks", "2", "--epochs", "1000", "--inject", "hang@at=60,rank=1,in=backward"];
    let training = spawn(&mut sessions.gnntop([&train[..], &small].concat()));
    let words = ["rank 1 has been in backward for", "at step 60; rank 0 waits for it in all-reduce"];
    assert_named_live_and_later(&sessions, training, "sage", &words);
}

#[test]
fn a_rank_that_leaves_out_an_all_reduce_is_named() {
    let sessions = Sessions::new();
    let small = ["--images", "8", "--batch-size", "2", "--blocks", "2", "--micro-batches", "2", "--epochs", "1000"];
    let train = ["train", "vig", "--split", "1,1", "--copies", "2", "--inject", "skip-all-reduce@at=12,rank=3"];
    let training = spawn(&mut sessions.gnntop([&train[..], &small].concat()));
    let words = ["rank 3 has waited in broadcast for", "at step 12; rank 1 waits for it in all-reduce"];
    assert_named_live_and_later(&sessions, training, "vig", &words);
}

#[test]
fn a_loader_that_blocks_is_named() {
    let sessions = Sessions::new();
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["--ignored", "--exact", "hangs::train_with_a_loader_that_blocks"]);
    own.env("GNNTOP_DIR", sessions.path()).env_remove("GNNTOP").stdin(Stdio::null());
    let words = [
        "rank 1 has waited for data for",
        "(its loader \"loader 0\" has been in sample for",
        "rank 0 waits for it in all-reduce",
    ];
    assert_named_live_and_later(&sessions, spawn(&mut own), "blocked", &words);
}

#[test]
fn a_training_that_hangs_ends_at_the_second_interruption() {
    let sessions = Sessions::new();
    let small = ["--graphs", "200", "--batch-size", "32", "--layers", "2", "--hidden", "8", "--validation", "0"];
    let words = [&["train", "pna", "--epochs", "20", "--inject", "hang@at=3"][..], &small].concat();
    let mut training = Hanging(spawn(&mut sessions.gnntop(words)));
    let has_begun = || report(&sessions, "pna").is_some_and(|report| report["steps"]["total"] == 2);
    wait_until(has_begun);
    signal(&training.0, "INT");
    std::thread::sleep(Duration::from_millis(300));
    assert!(training.0.try_wait().unwrap().is_none(), "the first interruption waits for the end of the step");
    signal(&training.0, "INT");
    assert_eq!(training.0.wait().unwrap().code(), Some(130));
}

/// A training on two ranks, of which the second one's loader does not come back from batch 40.
#[test]
#[ignore = "hangs: another test starts it in a process of its own"]
fn train_with_a_loader_that_blocks() {
    static WAIT: Name = Name::reported(gnntop_probe::Reported::Wait);
    let Line { run, ranks } = Line::parse_from(["test", "--ranks", "2"]);
    let launch = Launch { name: "blocked", ranks: &ranks, run: &run, stages: 1, settings: &Vec::new() };
    let done = launch.run(&mut Silent, |rank, _| {
        let blocks_at = (rank.place().rank == 1).then_some(40);
        let settings = LoaderSettings { batch_size: 4, workers: 1, ..LoaderSettings::default() };
        let mut loader = published_loader(NumberBatches { blocks_at }, settings)?;
        loop {
            let _step = step(0);
            drop(wait_for_batch(&mut loader)?);
            {
                let _forward = span(&phase::FORWARD);
                std::thread::sleep(Duration::from_millis(10));
            }
            let _all_reduce = span(&phase::ALL_REDUCE);
            let _wait = span(&WAIT);
            rank.collective().barrier()?;
            if rank.agree_to_stop()? {
                return Ok(Summary::default());
            }
        }
    });
    done.unwrap();
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    ranks: RankOptions,
}

/// A set of numbers, whose loader may stay in one batch for ever.
#[derive(Clone)]
struct NumberBatches {
    blocks_at: Option<u64>,
}

impl Assemble for NumberBatches {
    const ITEMS: &'static str = "numbers";
    type Batch = Vec<u32>;
    type Error = Infallible;

    fn items(&self) -> usize {
        100_000
    }

    fn assemble(
        &mut self,
        members: &[u32],
        batch: BatchId,
        out: &mut Vec<u32>,
        observer: &dyn LoaderObserver,
    ) -> Result<(), Infallible> {
        observer.stage(Stage::Sample, &mut || {
            while self.blocks_at.is_some_and(|at| at <= batch.index) {
                std::thread::park();
            }
            out.clear();
            out.extend_from_slice(members);
        });
        Ok(())
    }
}
