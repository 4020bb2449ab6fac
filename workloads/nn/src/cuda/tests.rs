//! The GPU's kernels, run on the host, beside the CPU's: the same numbers up to the order of sums. Operations whose types
//! are private have their tests beside them.

#[path = "../../tests/multigraph/mod.rs"]
pub(crate) mod multigraph;

use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use multigraph::{distance, generator, numbers, random_graph, random_tensor};

use super::edges::{Staged, stage_edges};
use super::elements::column_sums;
use super::emulation::is_possible;
use super::{Finished, Rates, Slot, View, are_finite, dropout, fused_aggregates, gelu, neighbour_sum, update};
use crate::kernels::{self};
use crate::learn::{LabelledRows, cross_entropy};
use crate::models::vig::{self, Grid};
use gnntop_data::graph::SparseMatrix;
use gnntop_data::graph::{Adjacency, DropMask};

/// The number types of all kernels.
pub(crate) const TYPES: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];

/// How far results may differ, given the order of sums over this many edges and one more rounding.
pub(crate) fn tolerance(dtype: DType, edges: usize) -> f64 {
    match dtype {
        DType::F64 => 1e-11,
        DType::F32 if edges > 1000 => 1e-3,
        DType::F32 => 2e-5,
        DType::F16 => 4e-3,
        _ => 3e-2,
    }
}

/// Whether two tensors hold the same numbers, relative to their size where that is more than 1.
pub(crate) fn assert_near(found: &Tensor, expected: &Tensor, what: &str) {
    assert_within(tolerance(expected.dtype(), 0), found, expected, what);
}

pub(crate) fn assert_within(tolerance: f64, found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()), "{what}");
    for (place, (found, expected)) in numbers(found).into_iter().zip(numbers(expected)).enumerate() {
        let same =
            (found - expected).abs() <= tolerance * (1.0 + expected.abs()) || found.is_nan() && expected.is_nan();
        assert!(same, "{what}, element {place}: {found} instead of {expected}");
    }
}

/// The gradient of the sum of `out` times `upstream`; zeros where candle leaves out what has no elements.
pub(crate) fn gradient_of(out: &Tensor, upstream: &Tensor, var: &Var) -> Tensor {
    let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
    match gradients.get(var) {
        Some(gradient) => gradient.clone(),
        None => var.zeros_like().unwrap(),
    }
}

/// Whether two tensors are the same up to a part of their length, which bounds the effect of a cut at 0 on numbers
/// rounded to 16 bits.
pub(crate) fn assert_alike(found: &Tensor, expected: &Tensor, what: &str) {
    let (dtype, found, expected) =
        (found.dtype(), (found.dims(), numbers(found)), (expected.dims(), numbers(expected)));
    assert_eq!(found.0, expected.0, "{what}");
    let length = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|number| number * number).sum::<f64>().sqrt();
    let apart = length(&mut found.1.iter().zip(&expected.1).map(|(found, expected)| found - expected));
    let bound = match dtype {
        DType::F64 => 1e-11,
        DType::F32 => 1e-3,
        DType::F16 => 4e-2,
        _ => 2e-1,
    };
    let whole = length(&mut expected.1.iter().copied());
    assert!(apart <= bound * (whole + 0.1), "{what} in {dtype:?}: {apart} apart, of {whole}");
}

/// A model's result, and the gradients of its features and parameters for the sum of that times `upstream`.
pub(crate) fn all_gradients(out: &Tensor, upstream: &Tensor, vars: &[Var]) -> Vec<Tensor> {
    let upstream = upstream.to_dtype(out.dtype()).unwrap();
    let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
    let of_vars = vars.iter().map(|var| gradients.get(var).cloned().unwrap_or_else(|| var.zeros_like().unwrap()));
    std::iter::once(out.detach()).chain(of_vars).collect()
}

/// Graphs for the kernels: blocks and whole ones, empty, and with hubs that are computed in parts.
pub(crate) fn graphs() -> Vec<Arc<Adjacency>> {
    let mut rng = generator(7);
    vec![
        random_graph(&mut rng, 31, 17, 0),
        random_graph(&mut rng, 24, 24, 2500),
        multigraph::adjacency(Vec::new(), 5, 3),
        multigraph::adjacency(Vec::new(), 0, 0),
    ]
}

fn var(tensor: &Tensor) -> Var {
    Var::from_tensor(tensor).unwrap()
}

#[test]
fn edges_that_were_put_together_ahead_are_used_once_and_not_after_a_change() {
    let graph = Adjacency::new(vec![0, 2, 3], vec![0, 1, 0]).unwrap();
    stage_edges(&graph);
    let first = super::Edges::new(&graph, &Device::Cpu).unwrap();
    assert!(graph.on_device().take_staged::<Staged>().is_none());
    assert!(Arc::ptr_eq(&first, &super::Edges::new(&graph, &Device::Cpu).unwrap()));
    let mut changed = graph.clone();
    stage_edges(&changed);
    changed.rebuild(&mut vec![0, 1], &mut vec![0], 1).unwrap();
    assert!(changed.on_device().take_staged::<Staged>().is_none());
    assert_eq!(super::Edges::new(&changed, &Device::Cpu).unwrap().targets_times(4), (1, 4));
}

#[test]
fn dropout_drops_the_same_positions() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(1);
    for dtype in TYPES {
        for length in [0, 1, 7, 64, 1028, 5003] {
            let x = random_tensor(&mut rng, &[length], dtype);
            for p in [0.25, 0.5, 1.0] {
                let mask = DropMask::new(p, 77).unwrap();
                let found = dropout(&Device::Cpu, View::new(&x).unwrap(), mask).unwrap().into_tensor(length);
                let expected = kernels::dropout(&x, p, 77).unwrap();
                assert_eq!(numbers(&found), numbers(&expected), "{dtype:?} {length} {p}");
            }
        }
    }
}

#[test]
fn a_part_of_a_tensor_is_read_from_its_start() {
    if !is_possible() {
        return;
    }
    let x = random_tensor(&mut generator(2), &[9, 6], DType::F32);
    let part = x.narrow(0, 4, 3).unwrap();
    let found = gelu(&Device::Cpu, View::new(&part).unwrap(), None).unwrap().into_tensor((3, 6));
    assert_near(&found, &vig::gelu(&part.contiguous().unwrap()).unwrap(), "gelu of a part");
    assert!(View::new(&x.t().unwrap()).is_err());
}

#[test]
fn gelu_and_its_slope_agree() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(3);
    for dtype in [DType::F32, DType::F64] {
        let x = var(&(random_tensor(&mut rng, &[333], dtype) * 4.0).unwrap());
        let upstream = random_tensor(&mut rng, &[333], dtype);
        let expected = vig::gelu(&x).unwrap();
        let view = View::new(&x).unwrap();
        let found = gelu(&Device::Cpu, view, None).unwrap().into_tensor(333);
        assert_near(&found, &expected, "gelu");
        let slope = gelu(&Device::Cpu, view, Some(View::new(&upstream).unwrap())).unwrap().into_tensor(333);
        assert_near(&slope, &gradient_of(&expected, &upstream, &x), "gradient of gelu");
    }
}

#[test]
fn bias_relu_and_dropout_in_one_agree_with_one_after_the_other() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(4);
    for dtype in TYPES {
        for (rows, width) in [(1, 1), (70, 16), (33, 7)] {
            let x = var(&random_tensor(&mut rng, &[rows, width], dtype));
            let bias = var(&random_tensor(&mut rng, &[width], dtype));
            let upstream = random_tensor(&mut rng, &[rows, width], dtype);
            for (relu, p) in [(false, 0.0), (true, 0.0), (true, 0.5), (false, 0.3)] {
                let mask = (p > 0.0).then(|| DropMask::new(p, 5).unwrap());
                let sum = x.broadcast_add(&bias).unwrap();
                // At exactly 0 candle's ReLU passes the gradient, ours and PyTorch's do not.
                let upstream = (&upstream * sum.ne(0.0).unwrap().to_dtype(dtype).unwrap()).unwrap();
                let active = if relu { sum.relu().unwrap() } else { sum };
                let expected = kernels::dropout(&active, p, 5).unwrap();
                let finished = Finished { relu, mask };
                let views = (View::new(&x).unwrap(), View::new(&bias).unwrap());
                let found = finished.apply(&Device::Cpu, views.0, views.1, None).unwrap().into_tensor((rows, width));
                assert_near(&found, &expected, "finished");
                let (of_x, of_bias) = finished.gradients(&x, &bias, &upstream).unwrap();
                assert_near(&of_x, &gradient_of(&expected, &upstream, &x), "gradient of x");
                let all = numbers(&gradient_of(&expected, &upstream, &x));
                for (column, found) in numbers(&of_bias).into_iter().enumerate() {
                    let sum: f64 = all.iter().skip(column).step_by(width).sum();
                    assert!(
                        (found - sum).abs() < tolerance(dtype, rows) * (2.0 + sum.abs()),
                        "bias {column}: {found} {sum}"
                    );
                }
            }
        }
    }
}

#[test]
fn columns_are_summed_in_parts() {
    if !is_possible() {
        return;
    }
    for (rows, columns) in [(0, 3), (1, 1), (31, 4), (32, 5), (20_000, 3)] {
        let x = random_tensor(&mut generator(5), &[rows, columns], DType::F64);
        let found = column_sums(&Device::Cpu, View::new(&x).unwrap(), columns).unwrap().into_tensor(columns);
        let expected = if rows == 0 { x.zeros_like().unwrap().sum(0).unwrap() } else { x.sum(0).unwrap() };
        assert!(distance(&found, &expected) < 1e-9, "{rows} {columns}");
    }
}

#[test]
fn neighbours_on_a_grid_agree() {
    if !is_possible() {
        return;
    }
    for (height, width, columns) in [(1, 1, 3), (4, 7, 2), (6, 3, 5)] {
        let grid = Grid { height, width };
        let x = random_tensor(&mut generator(6), &[3 * height * width, columns], DType::F64);
        let expected = vig::neighbour_sum(&x, grid, &kernels::Workspaces::default()).unwrap();
        let found = neighbour_sum(&Device::Cpu, View::new(&x).unwrap(), (height, width), columns).unwrap();
        assert_near(&found.into_tensor(x.shape()), &expected, "neighbour sum");
    }
}

#[test]
fn a_sparse_matrix_times_a_dense_one_agrees() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(8);
    let (rows, columns) = (40, 1300);
    // Row 0 is full, so that it is computed in parts; row 1 is empty.
    let dense = random_tensor(&mut rng, &[rows, columns], DType::F32);
    let keep = random_tensor(&mut rng, &[rows, columns], DType::F32).gt(0.7).unwrap().to_dtype(DType::F32).unwrap();
    let first = Tensor::ones((1, columns), DType::F32, &Device::Cpu).unwrap();
    let second = first.zeros_like().unwrap();
    let keep = Tensor::cat(&[&first, &second, &keep.narrow(0, 2, rows - 2).unwrap()], 0).unwrap();
    let matrix = Arc::new(SparseMatrix::from_dense(&(dense * keep).unwrap()).unwrap());
    for (dtype, width) in [(DType::F32, 16), (DType::F32, 5), (DType::BF16, 8)] {
        for p in [0.0, 0.5] {
            let weight = var(&random_tensor(&mut rng, &[width, columns], dtype));
            let upstream = random_tensor(&mut rng, &[rows, width], dtype);
            let expected = kernels::sparse_linear_dropout(&matrix, &weight, p, 3).unwrap();
            let mask = (p > 0.0).then(|| DropMask::new(p, 3).unwrap());
            let product = kernels::product_on_device(&matrix, &Device::Cpu, mask).unwrap();
            let transposed = weight.t().unwrap().contiguous().unwrap();
            let found = product.forward(View::new(&transposed).unwrap(), width).unwrap().into_tensor((rows, width));
            assert_near(&found, &expected, "sparse product");
            let back = product.backward(&upstream).unwrap().into_tensor((columns, width));
            let expected = gradient_of(&expected, &upstream, &weight);
            assert_near(&back.t().unwrap().contiguous().unwrap(), &expected, "gradient of the sparse product");
        }
    }
}

#[test]
fn cross_entropy_agrees_with_rows_that_repeat() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(9);
    for dtype in [DType::F32, DType::F64] {
        for classes in [3, 7, 41, 100] {
            let logits = var(&(random_tensor(&mut rng, &[20, classes], dtype) * 9.0).unwrap());
            let pairs = [(3, 1), (0, 2), (19, 0), (3, 1), (3, 2), (7, 0)];
            let labelled = LabelledRows::new(pairs.map(|pair| pair.0), &pairs.map(|pair| pair.1)).unwrap();
            let expected = cross_entropy(&logits, &labelled).unwrap();
            let labels = labelled.copied_to(&Device::Cpu).unwrap();
            let found = labels.mean_loss(View::new(&logits).unwrap(), (20, classes)).unwrap().into_tensor(());
            assert_near(&found, &expected, "cross-entropy");
            let upstream = Tensor::new(2.5f64, &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
            let back = labels.gradient(&logits, View::new(&upstream).unwrap()).unwrap();
            assert_near(&back, &gradient_of(&expected, &upstream, &logits), "gradient of cross-entropy");
            assert!(labels.mean_loss(View::new(&logits).unwrap(), (19, classes)).is_err());
            assert!(labels.mean_loss(View::new(&logits).unwrap(), (20, 2)).is_err());
        }
    }
}

/// Forward and backward of the fused aggregates with the CPU's kernels: they, the gradient of `own`, of `messages`.
fn aggregates_of(graph: &Adjacency, own: &Tensor, messages: &Tensor, upstream: &Tensor) -> [Vec<f64>; 3] {
    use kernels::{Aggregates, Saved, SectionLayout};
    let (nodes, width) = own.dims2().unwrap();
    let layout = SectionLayout { width, offset: 0, stride: 4 * width };
    let (own, messages, mut gradient) = (numbers(own), numbers(messages), numbers(upstream));
    let mut values = vec![0.0; nodes * 4 * width];
    for node in 0..nodes {
        values[node * 4 * width..][..width].copy_from_slice(&own[node * width..][..width]);
    }
    let (mut centre, mut holders) = (vec![0.0; nodes * width], vec![0; nodes * 2 * width]);
    let out = Aggregates { values: &mut values, centre: &mut centre, holders: &mut holders };
    kernels::aggregate(graph, layout, &messages, out);
    let (mut of_own, mut of_messages) = (vec![0.0; nodes * width], vec![0.0; nodes * width]);
    kernels::gradient_of_targets(graph, layout, 0..nodes, &values, &mut gradient, &mut of_own);
    let saved = Saved { messages: &messages, centre: &centre, holders: &holders, gradient: &gradient };
    kernels::gradient_of_messages(graph, layout, &saved, &mut of_messages);
    [values, of_own, of_messages]
}

#[test]
fn the_fused_aggregates_agree() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(10);
    for graph in graphs().into_iter().filter(|graph| graph.nodes() == graph.source_nodes()) {
        for width in [1, 6, 33] {
            let [own, messages] = [0, 1].map(|_| random_tensor(&mut rng, &[graph.nodes(), width], DType::F64));
            let upstream = random_tensor(&mut rng, &[graph.nodes(), 4 * width], DType::F64);
            let edges = super::Edges::new(&graph, &Device::Cpu).unwrap();
            let views = (View::new(&own).unwrap(), View::new(&messages).unwrap());
            let (out, kept) = super::aggregate::aggregate(&edges, width, views.0, views.1).unwrap();
            let out = out.into_tensor(upstream.shape());
            let (aggregates, gradient) = (View::new(&out).unwrap(), View::new(&upstream).unwrap());
            let back = super::aggregate::Returned { messages: views.1, aggregates, gradient };
            let (of_own, of_messages) = super::aggregate::gradients(&edges, width, &kept, &back).unwrap();
            let shape = own.shape();
            let found = [out, of_own.into_tensor(shape), of_messages.into_tensor(shape)];
            for (found, expected) in found.iter().zip(aggregates_of(&graph, &own, &messages, &upstream)) {
                let expected = Tensor::from_vec(expected, found.shape(), &Device::Cpu).unwrap();
                assert!(distance(found, &expected) < 1e-10, "{} nodes, width {width}", graph.nodes());
            }
        }
    }
    let graph = &graphs()[1];
    let wrong = Tensor::zeros((3, 2), DType::F32, &Device::Cpu).unwrap();
    assert!(fused_aggregates(graph, &wrong, &wrong).is_err());
}

#[test]
fn adam_updates_all_parameters_at_once() {
    if !is_possible() {
        return;
    }
    let mut rng = generator(11);
    let tensor = |rng: &mut _, length: usize| random_tensor(rng, &[length], DType::F32);
    let lengths = [1, 5000, 64, 4096];
    let values: Vec<Tensor> = lengths.map(|length| tensor(&mut rng, length)).to_vec();
    let gradients: Vec<Tensor> = lengths.map(|length| tensor(&mut rng, length)).to_vec();
    let moments = lengths.map(|length| [tensor(&mut rng, length), tensor(&mut rng, length).abs().unwrap()]);
    let rates = Rates {
        beta1: 0.9,
        beta2: 0.99,
        one_minus_beta1: 0.1,
        one_minus_beta2: 0.01,
        epsilon: 1e-8,
        gradient_scale: 0.5,
        step_size: 0.1,
        root_correction: 0.7,
    };
    let decay = |slot: usize| if slot == 1 { 0.0 } else { 0.02 };
    let mut expected = Vec::new();
    for slot in 0..lengths.len() {
        let [value, gradient, mean, square] =
            [&values[slot], &gradients[slot], &moments[slot][0], &moments[slot][1]].map(numbers);
        for i in 0..lengths[slot] {
            let gradient = gradient[i] * 0.5 + decay(slot) * value[i];
            let (mean, square) = (0.9 * mean[i] + 0.1 * gradient, 0.99 * square[i] + 0.01 * gradient * gradient);
            expected.push(value[i] - 0.1 * mean / (square.sqrt() / 0.7 + 1e-8));
        }
    }
    let slots: Vec<Slot<'_>> = (0..lengths.len())
        .map(|slot| Slot {
            value: &values[slot],
            gradient: &gradients[slot],
            moments: &moments[slot],
            weight_decay: decay(slot) as f32,
        })
        .collect();
    update(&slots, rates).unwrap();
    let found: Vec<f64> = values.iter().flat_map(numbers).collect();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + b.abs())));
    assert!(are_finite(&slots).unwrap());
    let bad = Tensor::from_vec(vec![0.0f32, f32::INFINITY], 2, &Device::Cpu).unwrap();
    let (value, moments) = (tensor(&mut rng, 2), [tensor(&mut rng, 2), tensor(&mut rng, 2)]);
    let bad = Slot { value: &value, gradient: &bad, moments: &moments, weight_decay: 0.0 };
    assert!(!are_finite(&[slots[1], bad]).unwrap());
    update(&[], rates).unwrap();
}
