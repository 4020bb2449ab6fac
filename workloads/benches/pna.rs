//! The aggregation kernel and whole training steps of PNA, on molecule-like random graphs.
//!
//! `cd workloads && cargo bench --bench pna` runs all; add `-- default` or another part of a name to choose.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use candle_core::{DType, Device};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gnntop_data::graph::{Batch, Graph};
use gnntop_nn::kernels::{Aggregates, Saved, SectionLayout, aggregate, gradient_of_messages, gradient_of_targets};
use gnntop_nn::learn::{AdamSettings, Learner, TargetScale};
use gnntop_nn::models::pna::{DeviceBatch, Pna, PnaConfig};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};
use gnntop_workloads::trainers::pna::PnaTraining;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A tree of 14 atoms with at most 4 bonds each and one ring, both directions of each bond: PCQM4Mv2 has 13.9 atoms
/// and 28.7 directed edges per molecule.
fn molecule(rng: &mut StdRng) -> Graph {
    let nodes = 14u32;
    let mut bonds = vec![(0, 5)];
    let mut degree = [0u8; 14];
    for atom in 1..nodes {
        let parent = loop {
            let candidate = rng.random_range(atom.saturating_sub(3)..atom);
            if degree[candidate as usize] < 3 {
                break candidate;
            }
        };
        bonds.push((parent, atom));
        degree[parent as usize] += 1;
        degree[atom as usize] += 1;
    }
    let mut edges: Vec<(u32, u32)> = bonds.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    edges.sort_unstable();
    let features = (0..nodes * 9).map(|_| rng.random_range(0..8) as f32).collect();
    Graph { nodes: nodes as usize, features, edges, y: rng.random_range(2.0..8.0) }
}

fn batch(graphs: usize) -> DeviceBatch {
    let mut rng = StdRng::seed_from_u64(1);
    let graphs: Vec<Graph> = (0..graphs).map(|_| molecule(&mut rng)).collect();
    let mut batch = Batch::new();
    batch.assemble(&graphs.iter().collect::<Vec<_>>()).unwrap();
    DeviceBatch::new(&batch, DType::F32, &Device::Cpu).unwrap()
}

/// Forward and backward of the fused aggregation, in bytes that it has to move.
fn aggregation(criterion: &mut Criterion) {
    let batch = batch(512);
    let (adjacency, width) = (batch.adjacency(), 64);
    let layout = SectionLayout { width, offset: width, stride: 5 * width };
    let (nodes, edges) = (adjacency.nodes(), adjacency.edges());
    let messages: Vec<f32> = (0..nodes * width).map(|index| (index % 1009) as f32 * 1e-3).collect();
    let mut values = vec![0f32; nodes * layout.stride];
    let (mut centre, mut own) = (vec![0f32; nodes * width], vec![0f32; nodes * width]);
    let mut holders = vec![0; nodes * 2 * width];
    let mut gradient = vec![1f32; nodes * layout.stride];
    let mut group = criterion.benchmark_group("aggregate");
    // Reads one message per edge and t, writes four sections, the mean and two holders.
    group.throughput(Throughput::Bytes((4 * width * (edges + 8 * nodes)) as u64));
    group.bench_function("forward", |bencher| {
        bencher.iter(|| {
            let out = Aggregates { values: &mut values, centre: &mut centre, holders: &mut holders };
            aggregate(adjacency, layout, black_box(&messages), out);
        });
    });
    // Per edge four sections, the mean and two holders; per node the message and the gradient.
    group.throughput(Throughput::Bytes((4 * width * (7 * edges + 2 * nodes)) as u64));
    group.bench_function("backward", |bencher| {
        gradient_of_targets(adjacency, layout, 0..nodes, &values, &mut gradient, &mut own);
        bencher.iter(|| {
            let saved =
                Saved { messages: &messages, centre: &centre, holders: &holders, gradient: black_box(&gradient) };
            gradient_of_messages(adjacency, layout, &saved, &mut own);
        });
    });
    group.finish();
}

fn step(criterion: &mut Criterion, name: &str, config: &PnaConfig, training: &PnaTraining, subnormals: Subnormals) {
    let batch = batch(training.batch_graphs);
    let scale = TargetScale { mean: 5.0, deviation: 1.5 };
    let build = |vb| Pna::new(config, vb);
    let mut learner = Learner::build(&Device::Cpu, AdamSettings::default(), 1, build).unwrap();
    set_subnormals(subnormals);
    let mut group = criterion.benchmark_group("step");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(5));
    group.throughput(Throughput::Elements(training.batch_graphs as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let predictions = learner.model().forward(&batch).unwrap();
            let loss = scale.loss(&predictions, batch.targets()).unwrap();
            let gradients = loss.backward().unwrap();
            learner.optimizer_step(&gradients, training.learning_rate).unwrap();
        });
    });
    group.finish();
    set_subnormals(Subnormals::Flush);
}

fn steps(criterion: &mut Criterion) {
    step(criterion, "default", &PnaConfig::default(), &PnaTraining::default(), Subnormals::Flush);
    step(criterion, "study", &PnaConfig::study(), &PnaTraining::study(), Subnormals::Flush);
    step(criterion, "study-subnormals", &PnaConfig::study(), &PnaTraining::study(), Subnormals::Keep);
}

criterion_group!(benches, aggregation, steps);
criterion_main!(benches);
