//! The published GAT on the real Cora: does it learn what it is known to learn?

use std::sync::Arc;

use candle_core::{Device, Tensor};
use gnntop_data::graph::Adjacency;
use gnntop_data::nodes::{self, NodeDataset};
use gnntop_nn::learn::{Accuracy, AdamSettings, LabelledRows, Learner, NodeInput};
use gnntop_nn::models::gat::{Gat, GatConfig};
use gnntop_nn::models::{NodeModel, Pass};
use gnntop_nn::subnormals::{Subnormals, set_subnormals};

use crate::shared::shared;

/// Test accuracy at the first epoch with the best validation accuracy, as PyTorch Geometric's `examples/gat.py`.
fn accuracy(dataset: &NodeDataset, seed: u64, epochs: u64) -> f64 {
    let width = dataset.features.width();
    let adam = AdamSettings { weight_decay: 5e-4, ..AdamSettings::default() };
    let mut trainer = Learner::<Gat>::new(&Device::Cpu, &GatConfig::cora(width, dataset.classes), adam, seed).unwrap();
    let rows = dataset.features.row_normalised().to_dense();
    let features = Tensor::from_vec(rows, (dataset.graph.nodes(), width), &Device::Cpu).unwrap();
    let graph = &dataset.graph;
    let layers = [Arc::new(Adjacency::new(graph.row_start().to_vec(), graph.sources().to_vec()).unwrap())];
    let labels_of = |nodes: &[u32]| nodes.iter().map(|&node| dataset.labels[node as usize]).collect::<Vec<_>>();
    let train = &dataset.split.train;
    let labelled = LabelledRows::new(train.iter().copied(), &labels_of(train)).unwrap();
    let input = NodeInput { features: (&features).into(), layers: &layers, labelled: &labelled };
    let judged = |logits: &Tensor, nodes: &[u32]| {
        let rows = logits.index_select(&Tensor::new(nodes, &Device::Cpu).unwrap(), 0).unwrap();
        Accuracy::new(&rows, &labels_of(nodes)).unwrap().share()
    };
    let (mut best, mut test) = (0.0, 0.0);
    for epoch in 0..epochs {
        let outcome = trainer.forward(&input, Pass::Train { seed: 1000 * seed + epoch }).unwrap();
        let gradients = outcome.loss.backward().unwrap();
        trainer.optimizer_step(&gradients, 0.005).unwrap();
        let logits = trainer.model().forward(&features, &layers, Pass::Evaluate).unwrap();
        let validation = judged(&logits, &dataset.split.validation);
        if validation > best {
            (best, test) = (validation, judged(&logits, &dataset.split.test));
        }
    }
    test
}

fn mean_accuracy(seeds: std::ops::Range<u64>, epochs: u64) -> f64 {
    let dataset = nodes::read(&shared("data/cora/cora.nodes.tsv")).unwrap();
    set_subnormals(Subnormals::Flush);
    let accuracies: Vec<f64> = seeds.map(|seed| accuracy(&dataset, seed, epochs)).collect();
    let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
    println!("test accuracy {:.2} % in the mean of {accuracies:?}", 100.0 * mean);
    set_subnormals(Subnormals::Keep);
    mean
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn a_short_run_learns_cora() {
    let mean = mean_accuracy(1..2, 30);
    // The largest class has 30 %.
    assert!(mean >= 0.7, "{mean}");
}

/// `cd workloads && cargo test -p gnntop-nn --release --test it gat_cora -- --ignored --nocapture`
#[test]
#[ignore = "ten trainings: a minute in an optimised build"]
fn ten_runs_reach_the_published_accuracy() {
    let mean = mean_accuracy(0..10, 200);
    assert!(mean >= 0.825, "{mean}");
}
