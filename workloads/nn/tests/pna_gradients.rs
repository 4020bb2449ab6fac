//! The whole PNA layer and model in double precision on random multigraphs: outputs against a naive edge-by-edge
//! computation that makes every message and every concatenation, gradients against finite differences.

use std::sync::Arc;

use crate::finite_differences::Slopes;
use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::graph::{Adjacency, Batch, Graph};
use gnntop_nn::kernels::Workspaces;
use gnntop_nn::models::Parameters;
use gnntop_nn::models::pna::{DegreeScalers, DeviceBatch, Pna, PnaConfig, PnaConv};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const DELTA: f64 = 1.3;

/// (source, target) of a random multigraph. Node 0 is isolated, node 1 a hub in both directions, node 2 has nothing
/// but two loops; there are duplicates.
fn random_edges(rng: &mut StdRng, nodes: u32) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> =
        (0..2 * nodes).map(|_| (rng.random_range(3..nodes), rng.random_range(3..nodes))).collect();
    edges.extend((0..30).map(|_| (rng.random_range(3..nodes), 1)));
    edges.extend((0..30).map(|_| (1, rng.random_range(3..nodes))));
    edges.extend([(2, 2), (2, 2), (3, 4), (3, 4), (5, 5)]);
    edges
}

fn adjacency(nodes: usize, edges: &[(u32, u32)]) -> Arc<Adjacency> {
    let mut row_start = vec![0u32; nodes + 1];
    edges.iter().for_each(|edge| row_start[edge.1 as usize + 1] += 1);
    (1..=nodes).for_each(|row| row_start[row] += row_start[row - 1]);
    let mut sorted = edges.to_vec();
    sorted.sort_by_key(|edge| edge.1);
    Arc::new(Adjacency::new(row_start, sorted.into_iter().map(|edge| edge.0).collect()).unwrap())
}

fn random(rng: &mut StdRng, shape: (usize, usize)) -> Tensor {
    let values: Vec<f64> = (0..shape.0 * shape.1).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

fn affine(weight: &[Vec<f64>], bias: &[f64], x: &[f64]) -> Vec<f64> {
    let dot = |row: &Vec<f64>| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
    weight.iter().zip(bias).map(|(row, bias)| dot(row) + bias).collect()
}

/// Mean, min, max, std of the messages, column by column, as PyTorch Geometric defines them.
fn aggregates(messages: &[Vec<f64>], width: usize) -> Vec<f64> {
    if messages.is_empty() {
        return vec![0.0; 4 * width];
    }
    let count = messages.len() as f64;
    let column = |of: usize| messages.iter().map(move |message| message[of]);
    let mean: Vec<f64> = (0..width).map(|of| column(of).sum::<f64>() / count).collect();
    let min = (0..width).map(|of| column(of).fold(f64::INFINITY, f64::min));
    let max = (0..width).map(|of| column(of).fold(f64::NEG_INFINITY, f64::max));
    let std = (0..width).map(|of| {
        let variance = column(of).map(|m| m * m).sum::<f64>() / count - mean[of] * mean[of];
        let std = variance.max(1e-5).sqrt();
        if std <= 1e-5f64.sqrt() { 0.0 } else { std }
    });
    let mut all = mean.clone();
    all.extend(min.chain(max).chain(std));
    all
}

/// The layer from its definition; `parameters` in the order pre, post, lin, each weight and bias.
fn naive_layer(parameters: &[Tensor], x: &Tensor, edges: &[(u32, u32)]) -> Vec<Vec<f64>> {
    let matrix = |index: usize| parameters[index].to_vec2::<f64>().unwrap();
    let vector = |index: usize| parameters[index].to_vec1::<f64>().unwrap();
    let (pre, post, lin) = ((matrix(0), vector(1)), (matrix(2), vector(3)), (matrix(4), vector(5)));
    let x = x.to_vec2::<f64>().unwrap();
    let node = |(target, own): (usize, &Vec<f64>)| {
        let into: Vec<_> = edges.iter().filter(|edge| edge.1 as usize == target).collect();
        let message = |edge: &&(u32, u32)| affine(&pre.0, &pre.1, &[&own[..], &x[edge.0 as usize]].concat());
        let aggregates = aggregates(&into.iter().map(message).collect::<Vec<_>>(), own.len());
        let degree = into.len() as f64;
        let scaled = |scale: f64| aggregates.iter().map(move |value| value * scale).collect::<Vec<_>>();
        let amplified = scaled((degree + 1.0).ln() / DELTA);
        let attenuated = scaled(DELTA / (degree.max(1.0) + 1.0).ln());
        let all = [&own[..], &aggregates, &amplified, &attenuated].concat();
        affine(&lin.0, &lin.1, &affine(&post.0, &post.1, &all))
    };
    x.iter().enumerate().map(node).collect()
}

fn layer(input: usize, output: usize, seed: u64) -> (Parameters, PnaConv) {
    let parameters = Parameters::new(seed);
    let vb = parameters.var_builder(DType::F64, &Device::Cpu);
    let layer = PnaConv::new(input, output, DegreeScalers { average_log_degree: DELTA }, vb).unwrap();
    (parameters, layer)
}

#[test]
fn the_layer_agrees_with_its_definition_in_any_numbering() {
    let mut rng = StdRng::seed_from_u64(5);
    // 600 nodes are enough rows for several threads.
    for (nodes, input, output, relu) in [(12, 3, 5, false), (600, 9, 16, true), (600, 4, 1, false)] {
        let (parameters, layer) = layer(input, output, 11);
        let edges = random_edges(&mut rng, nodes as u32);
        let x = random(&mut rng, (nodes, input));
        let tensors: Vec<Tensor> = parameters.list().iter().map(|entry| entry.var.as_detached_tensor()).collect();
        let expected = naive_layer(&tensors, &x, &edges);
        let out = layer.forward(&x, &adjacency(nodes, &edges), &Workspaces::default(), relu).unwrap();
        for (expected, out) in expected.iter().flatten().zip(out.flatten_all().unwrap().to_vec1::<f64>().unwrap()) {
            let expected = if relu { expected.max(0.0) } else { *expected };
            assert!((expected - out).abs() < 1e-12, "{nodes} nodes: {out} instead of {expected}");
        }
    }
}

#[test]
fn the_plain_form_is_the_same_in_outputs_and_gradients() {
    let mut rng = StdRng::seed_from_u64(6);
    for (nodes, input, output, relu) in [(12, 3, 5, false), (300, 9, 16, true)] {
        let (parameters, layer) = layer(input, output, 12);
        let adjacency = adjacency(nodes, &random_edges(&mut rng, nodes as u32));
        let x = Var::from_tensor(&random(&mut rng, (nodes, input))).unwrap();
        let upstream = random(&mut rng, (nodes, output));
        let gradients = |out: &Tensor| (out * &upstream).unwrap().sum_all().unwrap().backward().unwrap();
        let fused = layer.forward(&x, &adjacency, &Workspaces::default(), relu).unwrap();
        let plain = layer.forward_plain(&x, &adjacency, relu).unwrap();
        assert_near(&fused, &plain, "output");
        let (fused, plain) = (gradients(&fused), gradients(&plain));
        assert_near(fused.get(&x).unwrap(), plain.get(&x).unwrap(), "x");
        for parameter in parameters.list() {
            let of = |gradients: &candle_core::backprop::GradStore| gradients.get(&parameter.var).unwrap().clone();
            assert_near(&of(&fused), &of(&plain), &parameter.name);
        }
    }
}

fn assert_near(a: &Tensor, b: &Tensor, what: &str) {
    let largest = |tensor: &Tensor| tensor.abs().unwrap().max_all().unwrap().to_scalar::<f64>().unwrap();
    let difference = largest(&(a - b).unwrap());
    assert!(difference <= 1e-9 * (1.0 + largest(b)), "{what}: off by {difference}");
}

#[test]
fn the_layer_gradients_agree_with_finite_differences() {
    let mut rng = StdRng::seed_from_u64(6);
    for (nodes, relu) in [(15, false), (300, true)] {
        let (parameters, layer) = layer(4, 3, 12);
        let adjacency = adjacency(nodes, &random_edges(&mut rng, nodes as u32));
        let x = Var::from_tensor(&random(&mut rng, (nodes, 4))).unwrap();
        let weights = random(&mut rng, (nodes, 3));
        let workspaces = Workspaces::default();
        let mut variables: Vec<Var> = parameters.list().into_iter().map(|entry| entry.var).collect();
        variables.push(x.clone());
        let objective = || {
            let out = layer.forward(&x, &adjacency, &workspaces, relu).unwrap();
            (out * &weights).unwrap().sum_all().unwrap()
        };
        Slopes::default().agree(&variables, objective, &mut rng);
    }
}

/// Three graphs: a lone node, a multigraph, a path; and the tensors of their batch.
fn small_batch(rng: &mut StdRng) -> DeviceBatch {
    let mut graph = |nodes: usize, edges: Vec<(u32, u32)>| {
        let features = (0..nodes * 9).map(|_| rng.random_range(-1.0f32..1.0)).collect();
        Graph { nodes, features, edges, y: 1.0 }
    };
    let lone = graph(1, vec![]);
    let path = graph(4, vec![(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]);
    let multi = graph(5, vec![(0, 0), (0, 1), (0, 1), (1, 0), (2, 1), (3, 1), (4, 3)]);
    let mut batch = Batch::new();
    batch.assemble(&[&lone, &multi, &path]).unwrap();
    DeviceBatch::new(&batch, DType::F64, &Device::Cpu).unwrap()
}

#[test]
fn the_model_gradients_agree_with_finite_differences() {
    let mut rng = StdRng::seed_from_u64(7);
    let batch = small_batch(&mut rng);
    let config = PnaConfig { hidden: 6, layers: 3, out_features: 2, ..PnaConfig::default() };
    let parameters = Parameters::new(3);
    let model = Pna::new(&config, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap();
    assert_eq!(parameters.values(), config.parameters());
    let weights = random(&mut rng, (3, 2));
    let objective = || (model.forward(&batch).unwrap() * &weights).unwrap().sum_all().unwrap();
    let variables: Vec<Var> = parameters.list().into_iter().map(|entry| entry.var).collect();
    Slopes::default().agree(&variables, objective, &mut rng);
}

#[test]
fn the_study_model_has_4096110_parameters_in_384_tensors() {
    let parameters = Parameters::new(0);
    let model = Pna::new(&PnaConfig::study(), parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
    assert_eq!(model.layers(), 64);
    assert_eq!(parameters.values(), 4_096_110);
    let list = parameters.list();
    assert_eq!(list.len(), 384);
    for entry in &list {
        let fan_in = match entry.var.dims() {
            [_, input] => *input,
            _ => continue,
        };
        let bound = 1.0 / (fan_in as f64).sqrt();
        let largest = entry.var.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(f64::from(largest) <= bound, "{}: {largest} > {bound}", entry.name);
    }
}

#[test]
fn every_layer_is_entered_and_left_in_order() {
    struct Guard<'a>(usize, &'a std::cell::RefCell<Vec<String>>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(format!("-{}", self.0));
        }
    }
    let config = PnaConfig { hidden: 4, layers: 3, ..PnaConfig::default() };
    let model = Pna::new(&config, Parameters::new(3).var_builder(DType::F64, &Device::Cpu)).unwrap();
    let log = std::cell::RefCell::new(Vec::new());
    let batch = small_batch(&mut StdRng::seed_from_u64(8));
    model
        .forward_with(&batch, |layer| {
            log.borrow_mut().push(format!("+{layer}"));
            Guard(layer, &log)
        })
        .unwrap();
    assert_eq!(log.into_inner(), ["+0", "-0", "+1", "-1", "+2", "-2"]);
}

#[test]
fn features_of_another_width_or_type_are_refused() {
    let (_, layer) = layer(4, 3, 1);
    let adjacency = adjacency(3, &[(0, 1)]);
    let workspaces = Workspaces::default();
    for wrong in [
        Tensor::zeros((3, 5), DType::F64, &Device::Cpu).unwrap(),
        Tensor::zeros((2, 4), DType::F64, &Device::Cpu).unwrap(),
        Tensor::zeros((3, 4), DType::F32, &Device::Cpu).unwrap(),
        Tensor::zeros((3, 4), DType::U32, &Device::Cpu).unwrap(),
    ] {
        assert!(layer.forward(&wrong, &adjacency, &workspaces, false).is_err(), "{wrong:?}");
    }
}
