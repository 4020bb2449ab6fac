//! Random multigraphs for the tests of the kernels, with everything that a graph may have, and finite differences.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var};
use gnntop_data::graph::Adjacency;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub fn generator(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// CSR by destination of (source, target) pairs.
pub fn adjacency(mut edges: Vec<(u32, u32)>, sources: usize, targets: usize) -> Arc<Adjacency> {
    edges.sort_by_key(|edge| edge.1);
    let mut row_start = vec![0u32; targets + 1];
    edges.iter().for_each(|edge| row_start[edge.1 as usize + 1] += 1);
    (1..=targets).for_each(|row| row_start[row] += row_start[row - 1]);
    Arc::new(Adjacency::bipartite(row_start, edges.into_iter().map(|edge| edge.0).collect(), sources).unwrap())
}

/// A multigraph or, where there are more sources than targets, a block: about 3 random edges a target, `hub` edges into
/// node 1 and out of node 2, self-loops (single, double, nothing else), duplicates, and isolated nodes at both ends.
pub fn random_graph(rng: &mut StdRng, sources: u32, targets: u32, hub: usize) -> Arc<Adjacency> {
    assert!(sources >= targets && targets >= 8);
    let (last_source, last_target) = (sources - 1, targets - 1);
    let mut edges = vec![(4, 4), (4, 4), (5, 6), (5, 6), (6, 5), (last_target - 1, last_target - 1)];
    for _ in 0..3 * targets {
        edges.push((rng.random_range(1..last_source), rng.random_range(1..last_target - 1)));
    }
    for _ in 0..hub {
        edges.push((rng.random_range(1..last_source), 1));
        edges.push((2, rng.random_range(1..last_target - 1)));
    }
    adjacency(edges, sources as usize, targets as usize)
}

pub fn random_tensor(rng: &mut StdRng, shape: &[usize], dtype: DType) -> Tensor {
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

/// Random numbers away from 0, to divide by.
pub fn random_divisor(rng: &mut StdRng, shape: &[usize], dtype: DType) -> Tensor {
    let mut value = || rng.random_range(0.5..1.5) * if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| value()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// Largest difference; NaN counts as infinite.
pub fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.dims(), b.dims());
    let differences = numbers(a).into_iter().zip(numbers(b)).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |worst, difference| if difference.is_nan() { f64::INFINITY } else { worst.max(difference) })
}

/// The output and the gradients of the sum of `output * upstream` with respect to every input.
pub fn with_gradients(
    inputs: &[Tensor],
    upstream: Option<&Tensor>,
    function: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> (Tensor, Vec<Tensor>) {
    let variables: Vec<Var> = inputs.iter().map(|input| Var::from_tensor(input).unwrap()).collect();
    let tensors: Vec<Tensor> = variables.iter().map(|variable| variable.as_tensor().clone()).collect();
    let out = function(&tensors).unwrap();
    let objective = match upstream {
        Some(upstream) => (&out * upstream).unwrap(),
        None => out.clone(),
    };
    let gradients = objective.sum_all().unwrap().backward().unwrap();
    // candle leaves an operand without elements, and one of a result without elements, out of the gradients.
    let gradient = |variable: &Var| match gradients.get(variable) {
        Some(gradient) => gradient.clone(),
        None if out.elem_count() * variable.elem_count() == 0 => variable.zeros_like().unwrap(),
        None => panic!("no gradient"),
    };
    (out.detach(), variables.iter().map(gradient).collect())
}

/// Compares every gradient of `function` with central differences along random directions and in single elements.
pub fn check_gradients(rng: &mut StdRng, inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Tensor>) {
    assert!(inputs.iter().all(|input| input.dtype() == DType::F64));
    let shape = function(inputs).unwrap().dims().to_vec();
    let upstream = random_tensor(rng, &shape, DType::F64);
    let (_, gradients) = with_gradients(inputs, Some(&upstream), &function);
    let objective = |inputs: &[Tensor]| -> f64 {
        let out = function(inputs).unwrap();
        (out * &upstream).unwrap().sum_all().unwrap().to_scalar().unwrap()
    };
    let step = 1e-6;
    for (which, gradient) in gradients.iter().enumerate() {
        assert_eq!(gradient.dims(), inputs[which].dims());
        for trial in 0..12 {
            let mut direction = numbers(&random_tensor(rng, gradient.dims(), DType::F64));
            if trial > 3 {
                let only = rng.random_range(0..direction.len());
                direction.iter_mut().enumerate().for_each(|(index, value)| *value = f64::from(index == only));
            }
            let along = Tensor::from_vec(direction, gradient.shape(), &Device::Cpu).unwrap();
            let moved = |step: f64| {
                let mut moved = inputs.to_vec();
                moved[which] = (&inputs[which] + (&along * step).unwrap()).unwrap();
                objective(&moved)
            };
            let slope = (moved(step) - moved(-step)) / (2.0 * step);
            let expected: f64 = (gradient * &along).unwrap().sum_all().unwrap().to_scalar().unwrap();
            let scale = 1.0 + expected.abs();
            assert!((slope - expected).abs() < 2e-6 * scale, "input {which}, trial {trial}: {slope} {expected}");
        }
    }
}
