//! Study 3's ViG in a pipeline: how long a batch takes, beside the recurrence
//! `end[s][m] = max(end[s][m - 1], end[s - 1][m]) + c[s]` with the stages' measured times, and beside one stage that takes
//! the same micro-batches.
//!
//! `cd workloads && cargo bench --bench pipeline` runs two stages of one thread each, M = 8, under both schedules;
//! `-- --stages 4 --micro-batches 5 --images 40 --repeats 7 --threads 1 --published --recompute` changes that. Prints
//! medians over the repeats after one batch of warm-up. Stages need a core each: the first line says whether they have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::ops::Range;
use std::thread;
use std::time::Instant;

use candle_core::{Device, Tensor};
use gnntop_nn::models::vig::{Form, Mode, VigConfig};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};
use gnntop_workloads::launch::available_cores;
use gnntop_workloads::parallel::pipeline::{
    PassTimes, Pipeline, PipelineSettings, Schedule, balanced_parts, published_parts,
};
use gnntop_workloads::parallel::{Collective, ThreadRank, thread_ranks};
use gnntop_workloads::trainers::vig::{StageSettings, VigStage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn flag(name: &str) -> Option<usize> {
    std::env::args().position(|argument| argument == name)
}

fn number(name: &str, default: usize) -> usize {
    let Some(place) = flag(name) else { return default };
    let text = std::env::args().nth(place + 1).unwrap_or_default();
    text.parse().unwrap_or_else(|_| panic!("{name}: not a number: {text}"))
}

/// The settings of a run.
struct Setting {
    parts: Vec<Range<usize>>,
    schedule: Schedule,
    micro_batches: usize,
    recompute: bool,
    threads: usize,
    repeats: usize,
    pixels: Tensor,
    labels: Vec<u32>,
}

/// When a stage began and ended a batch, in seconds, and what its passes took.
type OnStage = (f64, f64, PassTimes);

fn stage(setting: &Setting, rank: &ThreadRank, clock: Instant) -> Vec<OnStage> {
    set_subnormals(Subnormals::Flush);
    let (number, stages, device) = (rank.rank(), setting.parts.len(), Device::Cpu);
    let (form, mode, parts) = (Form::Fused, Mode::Train, &setting.parts[..]);
    let settings =
        StageSettings { config: &VigConfig::study(), form, mode, parts, stage: number, seed: 1, device: &device };
    let mut model = VigStage::new(settings).unwrap();
    let settings = PipelineSettings {
        stage: number,
        stages,
        first_rank: 0,
        schedule: setting.schedule,
        recompute: setting.recompute,
        columns: 3,
        device,
    };
    let mut pipeline = Pipeline::new(settings, model.parameters().to_vec());
    let mut batch = || {
        model.set_batch((number == 0).then(|| setting.pixels.clone()), &setting.labels, setting.micro_batches);
        rank.barrier().unwrap();
        let begin = clock.elapsed().as_secs_f64();
        let times = pipeline.batch(&mut model, setting.micro_batches, rank).unwrap().times;
        (begin, clock.elapsed().as_secs_f64(), times)
    };
    batch();
    (0..setting.repeats).map(|_| batch()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Median makespan in seconds, after printing it beside the recurrence.
fn measure(setting: &Setting, label: &str) -> f64 {
    let ranks = thread_ranks(setting.parts.len(), setting.parts.len() * setting.threads <= available_cores());
    let clock = Instant::now();
    let on_stages: Vec<Vec<OnStage>> = thread::scope(|scope| {
        let start = |rank: ThreadRank| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(setting.threads).build().unwrap();
            scope.spawn(move || pool.install(|| stage(setting, &rank, clock)))
        };
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut makespans, mut expected, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 0..setting.repeats {
        let of = |pick: fn(&OnStage) -> f64| on_stages.iter().map(move |stage| pick(&stage[repeat]));
        let begin = of(|stage| stage.0).fold(f64::INFINITY, f64::min);
        let makespan = of(|stage| stage.1).fold(0.0, f64::max) - begin;
        let times: Vec<PassTimes> = on_stages.iter().map(|stage| stage[repeat].2).collect();
        let recurrence = setting.schedule.makespan_s(&times, setting.micro_batches);
        makespans.push(makespan);
        expected.push(recurrence);
        ratios.push(makespan / recurrence);
    }
    let makespan = median(makespans);
    println!(
        "{label:24} makespan {:8.1} ms, recurrence {:8.1} ms, ratio {:.3}",
        makespan * 1e3,
        median(expected) * 1e3,
        median(ratios)
    );
    for (number, stage) in on_stages.iter().enumerate() {
        let ms = |pick: fn(&PassTimes) -> f64| median(stage.iter().map(|batch| pick(&batch.2) * 1e3).collect());
        let (forward, backward) = (ms(|times| times.forward_s), ms(|times| times.backward_s));
        let blocks = setting.parts[number].len();
        println!(
            "    stage {number}: {blocks} blocks, forward {forward:6.2} + backward {backward:6.2} ms a micro-batch"
        );
    }
    makespan
}

fn main() {
    let (stages, micro_batches, images) = (number("--stages", 2), number("--micro-batches", 8), number("--images", 32));
    let (threads, repeats) = (number("--threads", 1), number("--repeats", 7).max(1));
    let blocks = VigConfig::study().blocks;
    let parts = if flag("--published").is_some() {
        published_parts()
    } else {
        balanced_parts(&vec![1.0; blocks], stages).unwrap()
    };
    let mut rng = StdRng::seed_from_u64(2);
    let nodes = images * VigConfig::study().grid.nodes();
    let pixels: Vec<f32> = (0..nodes * 3).map(|_| rng.random_range(0..=255u8) as f32 / 255.0).collect();
    let pixels = Tensor::from_vec(pixels, (nodes, 3), &Device::Cpu).unwrap();
    let labels: Vec<u32> = (0..images).map(|_| rng.random_range(0..10)).collect();
    let recompute = flag("--recompute").is_some();
    let setting = |parts: Vec<Range<usize>>, schedule| {
        let (pixels, labels) = (pixels.clone(), labels.clone());
        Setting { parts, schedule, micro_batches, recompute, threads, repeats, pixels, labels }
    };
    let cores = available_cores();
    let over = if parts.len() * threads > cores { ": oversubscribed, the stages take turns" } else { "" };
    println!(
        "{images} images, M = {micro_batches}, {} stages of {threads} threads on {cores} cores{over}",
        parts.len()
    );
    let whole: Vec<Range<usize>> = std::iter::once(0..blocks).collect();
    let control = measure(&setting(whole, Schedule::OneForwardOneBackward), "one stage (control)");
    for schedule in [Schedule::Gpipe, Schedule::OneForwardOneBackward] {
        let makespan = measure(&setting(parts.clone(), schedule), schedule.name());
        let (ideal_stages, ideal_micro) = (parts.len() as f64, micro_batches as f64);
        let ideal = ideal_stages * ideal_micro / (ideal_micro + ideal_stages - 1.0);
        println!("    speed-up over the control {:.2}; of equal stages it can be {ideal:.2}", control / makespan);
    }
}
