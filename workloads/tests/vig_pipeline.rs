//! ViG in a pipeline against ViG in one piece: gradients, losses and running statistics, whatever the schedule.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor};
use gnntop_nn::learn::{LabelledRows, cross_entropy};
use gnntop_nn::models::vig::{Block, Form, Grid, Mode, RunningStatistics, Vig, VigConfig};
use gnntop_nn::models::{Parameter, Parameters};
use gnntop_workloads::parallel::pipeline::{Pipeline, PipelineSettings, Schedule, StageModel, given_parts};
use gnntop_workloads::parallel::{Collective, GradientSync, ThreadRank, thread_ranks};
use gnntop_workloads::trainers::vig::{StageSettings, VigStage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SMALL: VigConfig =
    VigConfig { grid: Grid { height: 5, width: 4 }, blocks: 4, hidden: 8, ffn: 10, head: 12, classes: 4 };
const SEED: u64 = 17;
const SCHEDULES: [Schedule; 2] = [Schedule::Gpipe, Schedule::OneForwardOneBackward];

/// What training on one batch gives, by the names of parameters and blocks.
#[derive(Debug, Default)]
struct Learnt {
    gradients: BTreeMap<String, Vec<f32>>,
    running: BTreeMap<usize, Vec<RunningStatistics>>,
    loss: f64,
    right: usize,
}

#[derive(Clone)]
struct Images {
    pixels: Tensor,
    labels: Vec<u32>,
}

fn images(count: usize) -> Images {
    let mut rng = StdRng::seed_from_u64(3);
    let nodes = count * SMALL.grid.nodes();
    let values: Vec<f32> = (0..nodes * 3).map(|_| rng.random_range(0.0..1.0)).collect();
    let pixels = Tensor::from_vec(values, (nodes, 3), &Device::Cpu).unwrap();
    Images { pixels, labels: (0..count).map(|image| (image * 7 % SMALL.classes) as u32).collect() }
}

impl Images {
    fn part(&self, images: Range<usize>) -> Self {
        let nodes = SMALL.grid.nodes();
        let pixels = self.pixels.narrow(0, images.start * nodes, images.len() * nodes).unwrap();
        Self { pixels, labels: self.labels[images].to_vec() }
    }
}

fn named(parameters: &[Parameter], gradients: &GradStore) -> BTreeMap<String, Vec<f32>> {
    let values = |parameter: &Parameter| {
        let gradient = gradients.get(&parameter.var)?;
        Some((parameter.name.clone(), gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap()))
    };
    parameters.iter().filter_map(values).collect()
}

fn running(blocks: &[Block], first: usize) -> BTreeMap<usize, Vec<RunningStatistics>> {
    let of_block = |block: &Block| block.norms().iter().map(|norm| norm.running()).collect();
    (first..).zip(blocks.iter().map(of_block)).collect()
}

/// The model in one piece, in as many micro-batches.
fn in_one_piece(images: &Images, form: Form, mode: Mode, micro_batches: usize) -> Learnt {
    let parameters = Parameters::new(SEED);
    let model = Vig::new(&SMALL, form, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    let count = images.labels.len();
    let mut learnt = Learnt::default();
    for micro_batch in 0..micro_batches {
        let at = |part: usize| count * part / micro_batches;
        let part = images.part(at(micro_batch)..at(micro_batch + 1));
        let labels = LabelledRows::new(0..part.labels.len() as u32, &part.labels).unwrap();
        let logits = model.forward(&part.pixels, mode).unwrap();
        let share = part.labels.len() as f64 / count as f64;
        let loss = (cross_entropy(&logits, &labels).unwrap() * share).unwrap();
        learnt.loss += f64::from(loss.to_scalar::<f32>().unwrap());
        for (name, values) in named(&parameters.list(), &loss.backward().unwrap()) {
            let sum = learnt.gradients.entry(name).or_insert_with(|| vec![0.0; values.len()]);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    learnt.running = running(model.blocks(), 0);
    learnt
}

/// How a pipeline is to work.
#[derive(Clone, Copy, Debug)]
struct How {
    form: Form,
    mode: Mode,
    schedule: Schedule,
    recompute: bool,
    micro_batches: usize,
}

/// One stage's part of one batch.
fn on_stage(rank: &dyn Collective, parts: &[Range<usize>], images: &Images, how: How) -> (Learnt, VigStage, GradStore) {
    let (stages, device) = (parts.len(), Device::Cpu);
    let stage = rank.rank() % stages;
    let (form, mode) = (how.form, how.mode);
    let settings = StageSettings { config: &SMALL, form, mode, parts, stage, seed: SEED, device: &device };
    let mut model = VigStage::new(settings).unwrap();
    model.set_batch((stage == 0).then(|| images.pixels.clone()), &images.labels, how.micro_batches);
    let settings = PipelineSettings {
        stage,
        stages,
        first_rank: rank.rank() - stage,
        schedule: how.schedule,
        recompute: how.recompute,
        columns: 3,
        device,
    };
    let mut pipeline = Pipeline::new(settings, model.parameters().to_vec());
    let outcome = pipeline.batch(&mut model, how.micro_batches, rank).unwrap();
    let learnt = Learnt {
        gradients: named(model.parameters(), &outcome.gradients),
        running: running(model.blocks(), parts[stage].start),
        loss: outcome.loss.unwrap_or_default(),
        right: model.accuracy().right,
    };
    (learnt, model, outcome.gradients)
}

fn on_ranks<T: Send>(ranks: usize, body: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let ranks = thread_ranks(ranks, false);
        let start = |rank: ThreadRank| {
            scope.spawn(move || {
                let result = body(&rank);
                // Who ends early is missed by those who still wait for each other. After a failure all are gone.
                let _ = rank.barrier();
                result
            })
        };
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// All stages of one copy together.
fn in_stages(counts: &[usize], images: &Images, how: How) -> Learnt {
    let parts = given_parts(counts, SMALL.blocks).unwrap();
    let mut all = Learnt::default();
    for learnt in on_ranks(parts.len(), |rank| on_stage(rank, &parts, images, how).0) {
        all.gradients.extend(learnt.gradients);
        all.running.extend(learnt.running);
        all.loss += learnt.loss;
        all.right += learnt.right;
    }
    all
}

/// Within 1e-5 of the largest value of each parameter's gradient.
fn assert_equal(ours: &Learnt, expected: &Learnt, what: &str) {
    assert!((ours.loss - expected.loss).abs() < 1e-5 * expected.loss, "{what}: {} {}", ours.loss, expected.loss);
    assert!(ours.gradients.keys().eq(expected.gradients.keys()), "{what}: other parameters");
    for (name, expected) in &expected.gradients {
        let scale = expected.iter().fold(1e-3_f32, |largest, value| largest.max(value.abs()));
        let ours = &ours.gradients[name];
        let off = ours.iter().zip(expected).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
        assert!(ours.len() == expected.len() && off <= 1e-5 * scale, "{what}: {name} is off by {off} of {scale}");
    }
}

fn assert_same_statistics(ours: &Learnt, expected: &Learnt, what: &str) {
    assert!(ours.running.keys().eq(expected.running.keys()));
    for (block, expected) in &expected.running {
        for (ours, expected) in ours.running[block].iter().zip(expected) {
            let pairs = ours.mean.iter().chain(&ours.variance).zip(expected.mean.iter().chain(&expected.variance));
            assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-6 * (1.0 + b.abs())), "{what}: block {block}");
            assert!(expected.mean.iter().any(|mean| *mean != 0.0));
        }
    }
}

#[test]
fn gradients_are_those_of_the_same_micro_batches_in_one_piece() {
    let images = images(5);
    for (form, splits) in [(Form::Fused, &[&[4][..], &[2, 2], &[3, 1], &[1, 1, 1, 1]][..]), (Form::Plain, &[&[1, 3]])] {
        for micro_batches in [1, 2, 5] {
            let expected = in_one_piece(&images, form, Mode::Train, micro_batches);
            for counts in splits {
                for (schedule, recompute) in SCHEDULES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
                    let how = How { form, mode: Mode::Train, schedule, recompute, micro_batches };
                    let ours = in_stages(counts, &images, how);
                    assert_equal(&ours, &expected, &format!("{counts:?} {how:?}"));
                    assert_same_statistics(&ours, &expected, &format!("{counts:?} {how:?}"));
                }
            }
        }
    }
}

#[test]
fn without_batch_statistics_they_are_those_of_the_whole_batch() {
    let images = images(5);
    let expected = in_one_piece(&images, Form::Fused, Mode::Eval, 1);
    for micro_batches in [1, 2, 5] {
        let how = How { form: Form::Fused, mode: Mode::Eval, schedule: SCHEDULES[1], recompute: false, micro_batches };
        assert_equal(&in_stages(&[2, 2], &images, how), &expected, &format!("{how:?}"));
    }
}

#[test]
fn two_copies_of_two_stages_are_one_copy_with_both_halves_of_the_batch() {
    let all = images(6);
    let expected = in_one_piece(&all, Form::Fused, Mode::Eval, 1);
    let parts = given_parts(&[2, 2], SMALL.blocks).unwrap();
    let how = How {
        form: Form::Fused,
        mode: Mode::Eval,
        schedule: Schedule::OneForwardOneBackward,
        recompute: false,
        micro_batches: 3,
    };
    let ranks = on_ranks(4, |rank| {
        let (copy, stage) = (rank.rank() / 2, rank.rank() % 2);
        let half = all.part(copy * 3..copy * 3 + 3);
        let (_, model, mut gradients) = on_stage(rank, &parts, &half, how);
        let copies = rank.split(2 + stage).unwrap();
        GradientSync::new(model.parameters().to_vec()).all_reduce(&mut gradients, &*copies).unwrap();
        named(model.parameters(), &gradients)
    });
    assert!(ranks[0] == ranks[2] && ranks[1] == ranks[3], "the copies differ");
    let gradients = ranks.into_iter().take(2).flatten().collect();
    assert_equal(&Learnt { gradients, loss: expected.loss, ..Learnt::default() }, &expected, "2 x 2");
}

#[test]
fn the_study_is_divided_without_loss() {
    let config = VigConfig::study();
    let count = |parts: &[Range<usize>]| -> usize {
        let stage = |stage: usize| {
            let stage = VigStage::new(fused(&config, parts, stage)).unwrap();
            stage.parameters().iter().map(|parameter| parameter.var.elem_count()).sum::<usize>()
        };
        (0..parts.len()).map(stage).sum()
    };
    assert_eq!(count(&given_parts(&[2, 2, 2, 2], 8).unwrap()), 1_120_410);
    // Four blocks are there twice.
    assert_eq!(count(&gnntop_workloads::parallel::pipeline::published_parts()), 1_120_410 + 4 * 138_258);
    assert!(VigStage::new(fused(&config, &[0..7, 7..9], 1)).is_err());
}

/// A stage of the fused form that is trained.
fn fused<'a>(config: &'a VigConfig, parts: &'a [Range<usize>], stage: usize) -> StageSettings<'a> {
    let (form, mode, seed, device) = (Form::Fused, Mode::Train, SEED, &Device::Cpu);
    StageSettings { config, form, mode, parts, stage, seed, device }
}

/// Fails where it should.
struct Failing {
    inner: VigStage,
    at: Option<usize>,
}

impl StageModel for Failing {
    fn input(&mut self, micro_batch: usize) -> candle_core::Result<Tensor> {
        self.inner.input(micro_batch)
    }

    fn forward(&mut self, micro_batch: usize, input: &Tensor) -> candle_core::Result<Tensor> {
        if self.at == Some(micro_batch) {
            candle_core::bail!("out of luck");
        }
        self.inner.forward(micro_batch, input)
    }

    fn forward_again(&mut self, micro_batch: usize, input: &Tensor) -> candle_core::Result<Tensor> {
        self.inner.forward_again(micro_batch, input)
    }
}

#[test]
fn a_stage_that_fails_is_named_to_all_others() {
    let (images, parts) = (images(4), given_parts(&[1, 1, 2], SMALL.blocks).unwrap());
    let told = on_ranks(3, |rank| {
        let stage = rank.rank();
        let mut inner = VigStage::new(fused(&SMALL, &parts, stage)).unwrap();
        inner.set_batch((stage == 0).then(|| images.pixels.clone()), &images.labels, 4);
        let settings = PipelineSettings {
            stage,
            stages: 3,
            first_rank: 0,
            schedule: Schedule::Gpipe,
            recompute: false,
            columns: 3,
            device: Device::Cpu,
        };
        let mut pipeline = Pipeline::new(settings, inner.parameters().to_vec());
        let mut model = Failing { inner, at: (stage == 1).then_some(2) };
        let error = pipeline.batch(&mut model, 4, rank).unwrap_err().to_string();
        // Errors of candle may come with a backtrace below.
        let error = error.lines().next().unwrap_or_default().to_owned();
        rank.leave(&format!("has failed: {error}"));
        error
    });
    assert!(told[1].starts_with("out of luck"), "{}", told[1]);
    assert!([0, 2].iter().all(|rank| told[*rank].starts_with("rank 1 has failed: out of luck")), "{told:?}");
}
