//! Training steps of study 1's GCN on a graph like Cora: where an epoch's time goes.
//!
//! `cd workloads && cargo bench -p gnntop-nn --bench gcn` prints medians with features without their zeros (fused) and with
//! all of them (operation by operation); `-- sparse` or `-- dense` chooses.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use gnntop_data::graph::{Adjacency, SparseMatrix};
use gnntop_data::nodes::NodeDataset;
use gnntop_data::nodes::generate::cora_like;
use gnntop_nn::kernels::KernelFamily;
use gnntop_nn::learn::{AdamSettings, LabelledRows, Learner, cross_entropy};
use gnntop_nn::models::gcn::{Computation, Gcn, GcnConfig, LoopedGraph, NodeFeatures};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};

/// Time of one step: forward, backward, optimizer.
type Step = [Duration; 3];

fn train(dataset: &NodeDataset, x: &NodeFeatures, steps: usize) -> Vec<Step> {
    let (graph, seeds) = (&dataset.graph, &dataset.split.train);
    let adjacency = Adjacency::new(graph.row_start().to_vec(), graph.sources().to_vec()).unwrap();
    let graph = LoopedGraph::new(&adjacency).unwrap().normalised(None, DType::F32, &Device::Cpu).unwrap();
    let labels: Vec<u32> = seeds.iter().map(|&node| dataset.labels[node as usize]).collect();
    let labelled = LabelledRows::new(seeds.iter().copied(), &labels).unwrap();
    let config = GcnConfig::study(dataset.features.width(), dataset.classes);
    let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
    let mut learner = Learner::build(&Device::Cpu, adam, 1, |vb| Gcn::new(&config, vb)).unwrap();
    let mut step = |seed: usize| {
        let pass = Computation { dropout_seed: Some(seed as u64), ..Computation::evaluation(KernelFamily::Spmm) };
        let begin = Instant::now();
        let loss = cross_entropy(&learner.model().forward(x, &graph, pass).unwrap(), &labelled).unwrap();
        let forward = begin.elapsed();
        let gradients = loss.backward().unwrap();
        let backward = begin.elapsed();
        learner.optimizer_step(&gradients, 0.01).unwrap();
        [forward, backward - forward, begin.elapsed() - backward]
    };
    (0..steps).map(&mut step).skip(steps / 10).collect()
}

fn report(name: &str, mut steps: Vec<Step>) {
    steps.sort_by_key(|step| step.iter().sum::<Duration>());
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let median = steps[steps.len() / 2];
    let [forward, backward, optimizer] = median.map(us);
    let total = us(median.iter().sum());
    println!("{name:7} {total:8.1} us = forward {forward:.1} + backward {backward:.1} + optimizer {optimizer:.1}");
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    set_subnormals(Subnormals::Flush);
    let dataset = cora_like(1);
    let (nodes, width) = (dataset.graph.nodes(), dataset.features.width());
    let dense = Tensor::from_vec(dataset.features.to_dense(), (nodes, width), &Device::Cpu).unwrap();
    if is_wanted("sparse") {
        let sparse = NodeFeatures::Sparse(Arc::new(SparseMatrix::from_dense(&dense).unwrap()));
        report("sparse", train(&dataset, &sparse, 3000));
    }
    if is_wanted("dense") {
        report("dense", train(&dataset, &NodeFeatures::Dense(dense), 200));
    }
}
