//! Gradients of every graph kernel and operator against finite differences in double precision, on multigraphs and
//! bipartite blocks with self-loops, duplicates, isolated nodes and a hub that is computed in parts.

use crate::multigraph::{check_gradients, generator, random_divisor, random_graph, random_tensor};
use candle_core::{DType, Device, Tensor};
use gnntop_data::graph::{EdgeOp, Endpoint, Reduce};
use gnntop_nn::kernels::{KernelFamily, Operand, dropout, edge_softmax, gather, scatter, sddmm, spmm};

const REDUCTIONS: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];
const OPERATORS: [EdgeOp; 4] = [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div];
/// More edges than a node needs to be a hub.
const HUB: usize = 4100;

#[test]
fn spmm_copies() {
    let mut rng = generator(1);
    for (sources, targets, hub, width) in [(11, 11, 30, 7), (17, 9, 5, 1), (9, 9, HUB, 3)] {
        let graph = random_graph(&mut rng, sources, targets, hub);
        let x = random_tensor(&mut rng, &[sources as usize, width], DType::F64);
        let y = random_tensor(&mut rng, &[graph.edges(), width], DType::F64);
        for reduce in REDUCTIONS {
            check_gradients(&mut rng, std::slice::from_ref(&x), |x| {
                spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&x[0]), None)
            });
            check_gradients(&mut rng, std::slice::from_ref(&y), |y| {
                spmm(&graph, EdgeOp::CopyRhs, reduce, None, Some(&y[0]))
            });
        }
    }
}

#[test]
fn spmm_with_two_operands() {
    let mut rng = generator(2);
    // Rows without heads and rows of vectors, one value an edge, heads with a value each.
    let shapes: [(&[usize], &[usize]); 6] =
        [(&[5], &[5]), (&[19], &[1]), (&[3], &[]), (&[3, 4], &[3, 4]), (&[3, 4], &[3, 1]), (&[2, 17], &[2])];
    for (sources, targets, hub) in [(13, 13, 20), (20, 9, 3)] {
        let graph = random_graph(&mut rng, sources, targets, hub);
        for (left, right) in shapes {
            let x = random_tensor(&mut rng, &[&[sources as usize], left].concat(), DType::F64);
            let y = random_divisor(&mut rng, &[&[graph.edges()], right].concat(), DType::F64);
            for (op, reduce) in OPERATORS.iter().flat_map(|op| REDUCTIONS.map(|reduce| (*op, reduce))) {
                check_gradients(&mut rng, &[x.clone(), y.clone()], |inputs| {
                    spmm(&graph, op, reduce, Some(&inputs[0]), Some(&inputs[1]))
                });
            }
        }
    }
}

#[test]
fn sddmm_between_all_endpoints() {
    let mut rng = generator(3);
    let graph = random_graph(&mut rng, 14, 10, 12);
    let ends = [Endpoint::Source, Endpoint::Destination, Endpoint::Edge];
    let count = |at| match at {
        Endpoint::Source => graph.source_nodes(),
        Endpoint::Destination => graph.nodes(),
        Endpoint::Edge => graph.edges(),
    };
    for (left, right) in ends.iter().flat_map(|left| ends.map(|right| (*left, right))) {
        for trailing in [&[3usize] as &[usize], &[2, 9], &[]] {
            let x = random_tensor(&mut rng, &[&[count(left)], trailing].concat(), DType::F64);
            let y = random_divisor(&mut rng, &[&[count(right)], trailing].concat(), DType::F64);
            for op in [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div, EdgeOp::Dot] {
                check_gradients(&mut rng, &[x.clone(), y.clone()], |inputs| {
                    let right = Operand { rows: &inputs[1], at: right };
                    sddmm(&graph, op, Operand { rows: &inputs[0], at: left }, Some(right))
                });
            }
        }
    }
}

#[test]
fn gather_scatter_and_softmax() {
    let mut rng = generator(4);
    for (sources, targets, hub) in [(12, 12, 9), (18, 8, HUB)] {
        let graph = random_graph(&mut rng, sources, targets, hub);
        let x = random_tensor(&mut rng, &[sources as usize, 5], DType::F64);
        check_gradients(&mut rng, &[x], |x| gather(&graph, &x[0], Endpoint::Source));
        let x = random_tensor(&mut rng, &[targets as usize, 2, 3], DType::F64);
        check_gradients(&mut rng, &[x], |x| gather(&graph, &x[0], Endpoint::Destination));
        let messages = random_tensor(&mut rng, &[graph.edges(), 2, 2], DType::F64);
        for reduce in REDUCTIONS {
            check_gradients(&mut rng, std::slice::from_ref(&messages), |x| scatter(&graph, &x[0], reduce));
        }
        for shape in [vec![graph.edges()], vec![graph.edges(), 1], vec![graph.edges(), 3]] {
            let logits = (random_tensor(&mut rng, &shape, DType::F64) * 5.0).unwrap();
            check_gradients(&mut rng, &[logits], |logits| edge_softmax(&graph, &logits[0]));
        }
    }
}

#[test]
fn families() {
    let mut rng = generator(5);
    let graph = random_graph(&mut rng, 16, 11, 8);
    for family in [KernelFamily::Scatter, KernelFamily::Spmm] {
        let x = random_tensor(&mut rng, &[16, 2, 3], DType::F64);
        let weight = random_tensor(&mut rng, &[graph.edges(), 2], DType::F64);
        for reduce in REDUCTIONS {
            check_gradients(&mut rng, &[x.clone(), weight.clone()], |inputs| {
                family.aggregate(&graph, reduce, &inputs[0], Some(&inputs[1]))
            });
        }
        let scores = [16, 11].map(|nodes| random_tensor(&mut rng, &[nodes, 2], DType::F64));
        check_gradients(&mut rng, &scores, |scores| family.attention(&graph, &scores[0], &scores[1], 0.2));
    }
}

#[test]
fn dropping_out() {
    let mut rng = generator(6);
    let x = random_tensor(&mut rng, &[33, 21], DType::F64);
    check_gradients(&mut rng, &[x], |x| dropout(&x[0], 0.4, 77));
    let ones = Tensor::ones((3, 3), DType::F64, &Device::Cpu).unwrap();
    check_gradients(&mut rng, &[ones], |x| dropout(&x[0].t()?, 0.4, 77));
}
