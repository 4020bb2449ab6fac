use std::sync::atomic::AtomicUsize;

use clap::Parser;

use super::*;
use crate::launch::Shard;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    ranks: RankOptions,
}

fn line(words: &[&str]) -> Arguments {
    Arguments::try_parse_from(std::iter::once(&"test").chain(words)).unwrap()
}

/// Notes what it receives; asks to stop after some number of steps.
#[derive(Default)]
struct WarningListener {
    lines: Vec<String>,
    steps: usize,
    stop_after: Option<usize>,
}

impl Observer for WarningListener {
    fn report_line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn step(&mut self, _report: &StepReport) {
        self.steps += 1;
    }

    fn should_stop(&mut self) -> bool {
        self.stop_after.is_some_and(|stop| self.steps >= stop)
    }
}

fn launch(
    words: &[&str],
    ear: &mut WarningListener,
    body: impl Fn(&Rank, &mut dyn Observer) -> Result<Summary, TrainError> + Sync,
) -> Result<Summary, TrainError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.gnntop");
    let Arguments { mut run, ranks } = line(words);
    run.record = Some(file);
    Launch { name: "test", ranks: &ranks, run: &run, stages: 1, settings: &Vec::new() }.run(ear, body)
}

fn report(steps: u64) -> StepReport {
    let (shape, time) = (gnntop_probe::BatchShape::default(), Duration::ZERO);
    StepReport { epoch: 0, epochs: 1, index: steps, batches: 9, loss: 0.5, shape, time }
}

#[test]
fn every_rank_runs_on_its_own_threads_and_the_first_speaks() {
    let (mut ear, ran) = (WarningListener::default(), AtomicUsize::new(0));
    let summary = launch(&["--ranks", "3", "--threads-per-rank", "2"], &mut ear, |rank, observer| {
        ran.fetch_add(1, Ordering::Relaxed);
        assert_eq!(rayon::current_num_threads(), 2);
        observer.report_line(&format!("rank {} of {}", rank.place().rank, rank.collective().ranks()));
        observer.step(&report(0));
        Ok(Summary { steps: u64::from(rank.place().rank) + 7, loss: None })
    });
    assert_eq!(summary.unwrap().steps, 7);
    assert_eq!((ran.load(Ordering::Relaxed), ear.steps), (3, 1));
    assert!(ear.lines[0].starts_with("3 ranks of 2 threads on "), "{:?}", ear.lines);
    assert_eq!(ear.lines[1], "rank 0 of 3");
}

#[test]
fn a_wish_to_stop_reaches_all_ranks_at_the_same_step() {
    let mut ear = WarningListener { stop_after: Some(1), ..WarningListener::default() };
    let steps = std::sync::Mutex::new(Vec::new());
    launch(&["--ranks", "2"], &mut ear, |rank, observer| {
        let mut done = 0;
        while !rank.agree_to_stop()? {
            done += 1;
            observer.step(&report(done));
        }
        steps.lock().unwrap().push(done);
        Ok(Summary::default())
    })
    .unwrap();
    let steps = steps.into_inner().unwrap();
    assert!(steps.len() == 2 && steps[0] == steps[1] && steps[0] >= 1, "{steps:?}");
}

#[test]
fn the_rank_that_failed_is_named_and_nobody_waits_for_it() {
    let error = launch(&["--ranks", "3"], &mut WarningListener::default(), |rank, _| {
        if rank.place().rank == 1 {
            return Err(TrainError::Unknown { name: "it".to_owned(), known: String::new() });
        }
        rank.collective().barrier()?;
        Ok(Summary::default())
    });
    let error = error.unwrap_err();
    assert!(
        matches!(&error, TrainError::Rank { rank: 1, error } if matches!(**error, TrainError::Unknown { .. })),
        "{error}"
    );
}

#[test]
fn a_rank_that_panics_is_named_with_its_words() {
    let error = launch(&["--ranks", "3"], &mut WarningListener::default(), |rank, _| {
        assert!(rank.place().rank != 2, "the {} of rank 2", "order");
        rank.collective().all_reduce(&mut [0.0; 4])?;
        Ok(Summary::default())
    });
    assert_eq!(error.unwrap_err().with_causes(), "rank 2: it panicked: the order of rank 2");
}

#[test]
fn a_rank_that_leaves_out_a_meeting_ends_all_with_an_error_that_names_it() {
    let error = launch(&["--ranks", "2"], &mut WarningListener::default(), |rank, _| {
        for step in 0..3 {
            if step != 1 || rank.place().rank != 1 {
                rank.collective().all_reduce(&mut [0.0; 4])?;
            }
            rank.agree_to_stop()?;
        }
        Ok(Summary::default())
    });
    let error = error.unwrap_err().to_string();
    let words = "the ranks are out of step: rank 0 calls all-reduce of 4 values, rank 1 broadcast of 1 values";
    assert!(error.starts_with(words), "{error}");
}

#[test]
fn ranks_of_a_pipeline_are_numbered_copy_by_copy() {
    let folder = tempfile::tempdir().unwrap();
    let Arguments { mut run, ranks } = line(&["--ranks", "4"]);
    run.record = Some(folder.path().join("run.gnntop"));
    let places = std::sync::Mutex::new(Vec::new());
    Launch { name: "test", ranks: &ranks, run: &run, stages: 2, settings: &Vec::new() }
        .run(&mut WarningListener::default(), |rank, _| {
            places.lock().unwrap().push(rank.place().clone());
            Ok(Summary::default())
        })
        .unwrap();
    let mut places = places.into_inner().unwrap();
    places.sort_by_key(|place| place.rank);
    let at: Vec<_> = places.iter().map(|place| (place.copy, place.stage)).collect();
    assert_eq!(at, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let first = &places[0];
    assert!(first.run.starts_with("test-") && places.iter().all(|place| place.run == first.run));
    assert!(places.iter().all(|place| (place.copies, place.stages, place.host_ranks) == (2, 2, 4)));
    assert!(places.iter().all(|place| place.clock.is_none() && place.engine == gnntop_probe::Engine::Threads));
}

#[test]
fn more_threads_than_cores_are_said_to_be_so() {
    assert_eq!(line(&["--shard", "none"]).ranks.shard, Shard::None);
    let place = |host_ranks| Place { ranks: 4, threads: 1, host_ranks, host_cores: 2, ..Place::default() };
    assert!(describe(&place(4)).starts_with("4 ranks of 1 thread on 2 cores: oversubscribed"));
    assert!(describe(&place(2)).starts_with("4 ranks of 1 thread, 2 of them on 2 cores; "));
}

#[test]
fn nccl_is_for_gpus_and_for_programs_that_have_it() {
    let never = |_: &Rank, _: &mut dyn Observer| -> Result<Summary, TrainError> { unreachable!("no rank starts") };
    let told = |words: &[&str]| launch(words, &mut WarningListener::default(), never).unwrap_err().to_string();
    let error = told(&["--ranks", "2", "--engine", "nccl"]);
    assert_eq!(error, "--engine nccl needs GPUs; add --device cuda, or remove --engine");
    if !cfg!(feature = "nccl") {
        let error = told(&["--ranks", "2", "--engine", "nccl", "--device", "cuda"]);
        assert!(error.starts_with("NCCL failed: this program was built without it; see docs/cluster.md"), "{error}");
    }
}

#[test]
fn nccl_is_never_chosen_unasked_and_one_rank_of_it_is_not_alone() {
    let options = |words: &[&str]| line(words).ranks;
    assert_ne!(options(&["--ranks", "2", "--device", "cuda"]).engine(), Engine::Nccl);
    let one = options(&["--engine", "nccl"]);
    assert!(!one.is_alone() && one.processes_to_launch().unwrap().is_none());
}
