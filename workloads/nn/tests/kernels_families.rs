//! The two kernel families against each other on random multigraphs and blocks, with a hub of 10^5 edges, in half
//! precision, on any number of threads, and with arguments that do not fit.

use std::sync::Arc;

use crate::multigraph::{
    adjacency, distance, generator, numbers, random_divisor, random_graph, random_tensor, with_gradients,
};
use candle_core::{DType, Device, Result, Tensor};
use gnntop_data::graph::{Adjacency, EdgeOp, Endpoint, Reduce};
use gnntop_nn::kernels::{KernelFamily, Operand, edge_softmax, gather, scatter, sddmm, spmm};
use proptest::prelude::*;
use rand::RngExt;

const REDUCTIONS: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];

/// Aggregation of both families, outputs and gradients, within `tolerance`.
fn families_agree(graph: &Arc<Adjacency>, x: &Tensor, weight: Option<&Tensor>, tolerance: f64, seed: u64) {
    let mut rng = generator(seed);
    let mut inputs = vec![x.clone()];
    inputs.extend(weight.cloned());
    let shape = [&[graph.nodes()], &x.dims()[1..]].concat();
    let upstream = random_tensor(&mut rng, &shape, x.dtype());
    for reduce in REDUCTIONS {
        let [scattered, multiplied] = [KernelFamily::Scatter, KernelFamily::Spmm].map(|family| {
            with_gradients(&inputs, Some(&upstream), |inputs| {
                family.aggregate(graph, reduce, &inputs[0], inputs.get(1))
            })
        });
        assert!(distance(&scattered.0, &multiplied.0) <= tolerance, "{reduce:?}");
        for (a, b) in scattered.1.iter().zip(&multiplied.1) {
            assert!(distance(a, b) <= tolerance, "gradient of {reduce:?}: {}", distance(a, b));
        }
    }
}

fn any_graph() -> impl Strategy<Value = Arc<Adjacency>> {
    (0usize..9, 0usize..6).prop_flat_map(|(targets, extra)| {
        let sources = targets + extra;
        let edge = (0..sources.max(1) as u32, 0..targets.max(1) as u32);
        proptest::collection::vec(edge, if targets == 0 { 0..1 } else { 0..40 })
            .prop_map(move |edges| adjacency(if targets == 0 { Vec::new() } else { edges }, sources, targets))
    })
}

proptest! {
    #[test]
    fn families_agree_on_any_graph(graph in any_graph(), width in 0usize..20, heads in 1usize..4, seed in any::<u64>()) {
        let mut rng = generator(seed);
        let x = random_tensor(&mut rng, &[graph.source_nodes(), width], DType::F64);
        families_agree(&graph, &x, None, 1e-12, seed);
        for dims in [vec![graph.edges()], vec![graph.edges(), 1]] {
            families_agree(&graph, &x, Some(&random_tensor(&mut rng, &dims, DType::F64)), 1e-12, seed);
        }
        let x = random_tensor(&mut rng, &[graph.source_nodes(), heads, width], DType::F64);
        for dims in [vec![graph.edges(), heads], vec![graph.edges(), heads, 1], vec![graph.edges(), heads, width]] {
            families_agree(&graph, &x, Some(&random_tensor(&mut rng, &dims, DType::F64)), 1e-12, seed);
        }
        let scores = [graph.source_nodes(), graph.nodes()].map(|nodes| random_tensor(&mut rng, &[nodes, heads], DType::F64));
        let upstream = random_tensor(&mut rng, &[graph.edges(), heads], DType::F64);
        let [scattered, fused] = [KernelFamily::Scatter, KernelFamily::Spmm].map(|family| {
            with_gradients(&scores, Some(&upstream), |scores| family.attention(&graph, &scores[0], &scores[1], 0.2))
        });
        prop_assert!(distance(&scattered.0, &fused.0) < 1e-12);
        prop_assert!(distance(&scattered.1[0], &fused.1[0]) < 1e-12 && distance(&scattered.1[1], &fused.1[1]) < 1e-12);
    }

    /// Every message computed on its own, then reduced edge by edge.
    #[test]
    fn spmm_is_what_it_says(graph in any_graph(), width in 1usize..20, which in 0usize..6, seed in any::<u64>()) {
        let mut rng = generator(seed);
        let op = [EdgeOp::CopyLhs, EdgeOp::CopyRhs, EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div][which];
        let x = random_tensor(&mut rng, &[graph.source_nodes(), width], DType::F64);
        let y = random_divisor(&mut rng, &[graph.edges(), width], DType::F64);
        let (lhs, rhs) = ((op != EdgeOp::CopyRhs).then_some(&x), (op != EdgeOp::CopyLhs).then_some(&y));
        let (left, right) = (numbers(&x), numbers(&y));
        for reduce in REDUCTIONS {
            let out = numbers(&spmm(&graph, op, reduce, lhs, rhs).unwrap());
            for (place, &got) in out.iter().enumerate() {
                let (target, column) = (place / width, place % width);
                let messages = graph.incoming(target).map(|edge| {
                    let (x, y) = (left[graph.sources()[edge] as usize * width + column], right[edge * width + column]);
                    match op {
                        EdgeOp::CopyLhs => x,
                        EdgeOp::CopyRhs => y,
                        EdgeOp::Add => x + y,
                        EdgeOp::Sub => x - y,
                        EdgeOp::Mul | EdgeOp::Dot => x * y,
                        EdgeOp::Div => x / y,
                    }
                });
                let expected = match reduce {
                    _ if graph.in_degree(target) == 0 => 0.0,
                    Reduce::Sum => messages.sum(),
                    Reduce::Mean => messages.sum::<f64>() / graph.in_degree(target) as f64,
                    Reduce::Max => messages.fold(f64::NEG_INFINITY, f64::max),
                    Reduce::Min => messages.fold(f64::INFINITY, f64::min),
                };
                prop_assert!((got - expected).abs() < 1e-12, "{op:?} {reduce:?}: {got} {expected}");
            }
        }
    }
}

#[test]
fn families_agree_on_a_hub_of_100_000_edges() {
    let mut rng = generator(1);
    let mut edges: Vec<(u32, u32)> = (0..100_000).map(|_| (rng.random_range(0..500), 7)).collect();
    edges.extend((0..100_000).map(|_| (3, rng.random_range(0..300))));
    let graph = adjacency(edges, 500, 300);
    assert!(graph.in_degree(7) >= 100_000 && graph.outgoing(3).len() >= 100_000);
    for (width, tolerance) in [(1, 1e-9), (19, 1e-9)] {
        let x = random_tensor(&mut rng, &[500, width], DType::F64);
        let weight = random_tensor(&mut rng, &[graph.edges()], DType::F64);
        families_agree(&graph, &x, Some(&weight), tolerance, 2);
    }
    let logits = random_tensor(&mut rng, &[graph.edges(), 2], DType::F32);
    let sums = numbers(&scatter(&graph, &edge_softmax(&graph, &logits).unwrap(), Reduce::Sum).unwrap());
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-3), "{sums:?}");
}

/// Half precision holds the operands and results only: against double precision on the same rounded inputs the error is
/// one rounding of the result (2^-8 of bf16, 2^-11 of f16) and that of f32 sums; a few gradients are rounded twice.
#[test]
fn half_types_add_up_in_f32() {
    let mut rng = generator(3);
    let graph = random_graph(&mut rng, 60, 40, 30);
    for (dtype, rounding) in [(DType::BF16, 2f64.powi(-8)), (DType::F16, 2f64.powi(-11))] {
        let half = |tensor: Tensor| tensor.to_dtype(dtype).unwrap();
        let x = half(random_tensor(&mut rng, &[60, 21], DType::F64));
        let (weight, y) = (random_divisor(&mut rng, &[graph.edges(), 1], DType::F64), [graph.edges(), 21]);
        let (weight, y) = (half(weight), half(random_divisor(&mut rng, &y, DType::F64)));
        let upstream = half(random_tensor(&mut rng, &[40, 21], DType::F64));
        let target = half(random_divisor(&mut rng, &[40, 21], DType::F64));
        let of_edges = half(random_tensor(&mut rng, &[graph.edges(), 21], DType::F64));
        for reduce in REDUCTIONS {
            for rhs in [&weight, &y] {
                for op in [EdgeOp::Add, EdgeOp::Mul, EdgeOp::Div] {
                    rounds_once(rounding, &[x.clone(), rhs.clone()], &upstream, |inputs| {
                        spmm(&graph, op, reduce, Some(&inputs[0]), Some(&inputs[1]))
                    });
                }
            }
            rounds_once(rounding, std::slice::from_ref(&x), &upstream, |inputs| {
                spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&inputs[0]), None)
            });
            rounds_once(rounding, std::slice::from_ref(&y), &upstream, |inputs| scatter(&graph, &inputs[0], reduce));
        }
        for op in [EdgeOp::Add, EdgeOp::Mul, EdgeOp::Div] {
            rounds_once(rounding, &[x.clone(), target.clone()], &of_edges, |inputs| {
                sddmm(&graph, op, Operand::source(&inputs[0]), Some(Operand::destination(&inputs[1])))
            });
        }
        rounds_once(rounding, std::slice::from_ref(&x), &of_edges, |inputs| {
            gather(&graph, &inputs[0], Endpoint::Source)
        });
        let softmax = |logits: &Tensor| edge_softmax(&graph, logits).unwrap();
        let exact = softmax(&of_edges.to_dtype(DType::F64).unwrap());
        assert!(distance(&softmax(&of_edges), &exact) <= rounding);
    }
}

/// Output within one rounding and gradients within two of the double precision result.
#[track_caller]
fn rounds_once(rounding: f64, inputs: &[Tensor], upstream: &Tensor, function: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let double = |tensor: &Tensor| tensor.to_dtype(DType::F64).unwrap();
    let ours = with_gradients(inputs, Some(upstream), &function);
    let exact = with_gradients(&inputs.iter().map(double).collect::<Vec<_>>(), Some(&double(upstream)), &function);
    let caller = std::panic::Location::caller();
    let close = |ours: &Tensor, exact: &Tensor, roundings: f64| {
        assert_eq!(ours.dtype(), inputs[0].dtype());
        let allowed = |exact: f64| 1.01 * roundings * rounding * exact.abs() + 2e-5;
        let worst = numbers(ours).into_iter().zip(numbers(exact)).find(|(a, b)| (a - b).abs() > allowed(*b));
        assert_eq!(worst, None, "{:?} of {:?}, from {caller}", inputs[0].dtype(), ours.dims());
    };
    close(&ours.0, &exact.0, 1.0);
    ours.1.iter().zip(&exact.1).for_each(|(ours, exact)| close(ours, exact, 2.0));
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let mut rng = generator(4);
    let graph = random_graph(&mut rng, 900, 700, 9000);
    let x = random_tensor(&mut rng, &[900, 33], DType::F32);
    let weight = random_tensor(&mut rng, &[graph.edges()], DType::F32);
    let upstream = random_tensor(&mut rng, &[700, 33], DType::F32);
    let (row_start, source) = ((0..=700).map(|node| edges_before(&graph, node)).collect(), graph.sources().to_vec());
    let (row_start, source): (Vec<u32>, Vec<u32>) = (row_start, source);
    let results = [1, 2, 5].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let graph = Arc::new(Adjacency::bipartite(row_start.clone(), source.clone(), 900).unwrap());
            REDUCTIONS.map(|reduce| {
                let (out, gradients) = with_gradients(&[x.clone(), weight.clone()], Some(&upstream), |inputs| {
                    spmm(&graph, EdgeOp::Mul, reduce, Some(&inputs[0]), Some(&inputs[1]))
                });
                [numbers(&out), numbers(&gradients[0]), numbers(&gradients[1])]
            })
        })
    });
    assert!(results[0] == results[1] && results[0] == results[2]);
}

fn edges_before(graph: &Adjacency, node: usize) -> u32 {
    (0..node).map(|node| graph.in_degree(node) as u32).sum()
}

#[test]
fn nan_and_infinity_come_through() {
    let graph = adjacency(vec![(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (3, 2)], 4, 4);
    let nan = f32::NAN;
    let x = Tensor::new(&[[1f32], [nan], [3.0], [f32::NEG_INFINITY]], &Device::Cpu).unwrap();
    for reduce in REDUCTIONS {
        let out = spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&x), None).unwrap().flatten_all().unwrap();
        let out = out.to_vec1::<f32>().unwrap();
        assert!(out[0].is_nan(), "{reduce:?} lost a NaN");
        assert_eq!((out[2], out[3]), (f32::NEG_INFINITY, 0.0));
        assert!(out[1].is_finite());
    }
    let logits = Tensor::new(&[nan, 1.0, 2.0, 0.0, 0.0, 5.0], &Device::Cpu).unwrap();
    let out = edge_softmax(&graph, &logits).unwrap().to_vec1::<f32>().unwrap();
    assert!(out[..3].iter().all(|value| value.is_nan()));
    assert_eq!(out[3..], [0.5, 0.5, 1.0]);
}

#[test]
fn wrong_arguments_are_refused() {
    let graph = adjacency(vec![(0, 0), (1, 0), (2, 1)], 3, 2);
    let tensor = |dims: &[usize]| Tensor::ones(dims, DType::F32, &Device::Cpu).unwrap();
    let (x, y, integers) = (tensor(&[3, 4]), tensor(&[3, 4]), Tensor::ones((3, 4), DType::U32, &Device::Cpu).unwrap());
    let (sum, wide) = (Reduce::Sum, x.to_dtype(DType::F64).unwrap());
    let with = |op, lhs: &Tensor, rhs: &Tensor| spmm(&graph, op, sum, Some(lhs), Some(rhs));
    let refused = [
        spmm(&graph, EdgeOp::CopyLhs, sum, None, Some(&y)),
        spmm(&graph, EdgeOp::CopyLhs, sum, Some(&x), Some(&y)),
        spmm(&graph, EdgeOp::CopyRhs, sum, Some(&x), None),
        spmm(&graph, EdgeOp::Mul, sum, Some(&x), None),
        with(EdgeOp::Dot, &x, &y),
        with(EdgeOp::Mul, &tensor(&[2, 4]), &y),
        with(EdgeOp::Mul, &x, &tensor(&[4, 4])),
        with(EdgeOp::Mul, &x, &tensor(&[3, 2])),
        with(EdgeOp::Mul, &tensor(&[3, 2, 4]), &tensor(&[3, 4])),
        with(EdgeOp::Mul, &wide, &y),
        with(EdgeOp::Mul, &integers, &integers),
        spmm(&graph, EdgeOp::CopyLhs, sum, Some(&Tensor::new(1f32, &Device::Cpu).unwrap()), None),
        scatter(&graph, &tensor(&[4, 4]), Reduce::Max),
        scatter(&graph, &integers, Reduce::Max),
        gather(&graph, &x, Endpoint::Destination),
        gather(&graph, &tensor(&[4]), Endpoint::Edge),
        edge_softmax(&graph, &tensor(&[2, 1])),
        sddmm(&graph, EdgeOp::Add, Operand::source(&x), None),
        sddmm(&graph, EdgeOp::CopyLhs, Operand::source(&x), Some(Operand::edge(&y))),
        sddmm(&graph, EdgeOp::CopyRhs, Operand::source(&x), Some(Operand::edge(&y))),
        sddmm(&graph, EdgeOp::Add, Operand::source(&x), Some(Operand::destination(&y))),
        sddmm(&graph, EdgeOp::Add, Operand::source(&x), Some(Operand::edge(&wide))),
        KernelFamily::Scatter.aggregate(&graph, sum, &x, Some(&tensor(&[3, 3]))),
        KernelFamily::Spmm.aggregate(&graph, sum, &x, Some(&tensor(&[3, 3]))),
        KernelFamily::Scatter.aggregate(&graph, sum, &x, Some(&tensor(&[1, 1]))),
        KernelFamily::Spmm.attention(&graph, &tensor(&[3, 2]), &tensor(&[3, 2]), 0.2),
    ];
    for (case, result) in refused.into_iter().enumerate() {
        assert!(result.is_err(), "case {case} was accepted");
    }
}

#[test]
fn strided_inputs_give_the_same() {
    let mut rng = generator(5);
    let graph = random_graph(&mut rng, 20, 12, 6);
    let x = random_tensor(&mut rng, &[9, 40], DType::F64);
    let strided = |x: &Tensor| x.narrow(1, 7, 20)?.t();
    let plain = |x: &Tensor| x.narrow(1, 7, 20)?.t()?.contiguous();
    let upstream = random_tensor(&mut rng, &[12, 9], DType::F64);
    for reduce in REDUCTIONS {
        let [a, b] = [strided as fn(&Tensor) -> Result<Tensor>, plain].map(|view| {
            with_gradients(std::slice::from_ref(&x), Some(&upstream), |x| {
                spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&view(&x[0])?), None)
            })
        });
        assert_eq!((distance(&a.0, &b.0), distance(&a.1[0], &b.1[0])), (0.0, 0.0));
    }
}
