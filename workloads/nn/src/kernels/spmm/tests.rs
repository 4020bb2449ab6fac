//! g-SpMM with the kernels of a GPU, run on the host, beside those of the processor.

use candle_core::{DType, Device, Var};

use super::*;
use crate::cuda::tests::multigraph::{generator, random_divisor, random_tensor};
use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};
use crate::cuda::{Edges, View};
use crate::kernels::spmm;
use crate::kernels::spmm::broadcast;
use gnntop_data::graph::EdgeOp;

const REDUCTIONS: [Reduce; 4] = [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min];

#[test]
fn copies_agree() {
    if !crate::cuda::emulation::is_possible() {
        return;
    }
    let mut rng = generator(21);
    for graph in graphs() {
        let widths = [vec![1], vec![5], vec![2, 4], vec![136]];
        let cases = TYPES.iter().flat_map(|dtype| widths.clone().map(|dims| (*dtype, dims)));
        // The emulation is slow: hubs are tried with two of the types and one width.
        let is_quick = |(dtype, dims): &(DType, Vec<usize>)| {
            graph.edges() < 1000 || matches!(dtype, DType::F32 | DType::BF16) && dims[0] == 5
        };
        for (dtype, dims) in cases.filter(is_quick) {
            for (reduce, at) in
                REDUCTIONS.iter().flat_map(|reduce| [(*reduce, Endpoint::Source), (*reduce, Endpoint::Edge)])
            {
                let shape = |rows: usize| [&[rows], &dims[..]].concat();
                let rows = Var::from_tensor(&random_tensor(&mut rng, &shape(at.rows(&graph)), dtype)).unwrap();
                let upstream = random_tensor(&mut rng, &shape(graph.nodes()), dtype);
                let expected = match at {
                    Endpoint::Edge => spmm(&graph, EdgeOp::CopyRhs, reduce, None, Some(&rows)),
                    _ => spmm(&graph, EdgeOp::CopyLhs, reduce, Some(&rows), None),
                };
                let expected = expected.unwrap();
                let operation = EdgeOperation::copies(&graph, at, dims.iter().product(), Some(reduce));
                let edges = Edges::new(&graph, &Device::Cpu).unwrap();
                let found = operation.forward_on_device(&edges, View::new(&rows).unwrap(), None).unwrap();
                let what = format!("{reduce:?} of {dims:?} {dtype:?} at each {at}, {} edges", graph.edges());
                assert_within(tolerance(dtype, graph.edges()), &found.into_tensor(expected.shape()), &expected, &what);
                let back = operation.backward_on_device(&rows, None, &upstream).unwrap().0.unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &back,
                    &gradient_of(&expected, &upstream, &rows),
                    &format!("gradient of {what}"),
                );
            }
        }
    }
}

#[test]
fn messages_agree() {
    if !crate::cuda::emulation::is_possible() {
        return;
    }
    let mut rng = generator(22);
    let operators = [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div];
    // Dimensions of the rows on the left and on the right.
    let shapes: [(&[usize], &[usize]); 5] =
        [(&[5], &[5]), (&[8], &[1]), (&[3, 4], &[3]), (&[2, 3], &[2, 1]), (&[2, 3], &[2, 3])];
    for graph in graphs() {
        let (types, shapes) =
            if graph.edges() > 1000 { (&TYPES[..1], &shapes[1..3]) } else { (&TYPES[..], &shapes[..]) };
        for dtype in types.iter().copied() {
            for (op, (left, right)) in operators.iter().flat_map(|op| shapes.iter().map(|shape| (*op, *shape))) {
                for reduce in REDUCTIONS {
                    let shape = |rows: usize, dims: &[usize]| [&[rows], dims].concat();
                    let lhs = random_tensor(&mut rng, &shape(graph.source_nodes(), left), dtype);
                    let rhs = random_divisor(&mut rng, &shape(graph.edges(), right), dtype);
                    let [lhs, rhs] = [lhs, rhs].map(|tensor| Var::from_tensor(&tensor).unwrap());
                    let upstream = random_tensor(&mut rng, &shape(graph.nodes(), left), dtype);
                    let expected = spmm(&graph, op, reduce, Some(&lhs), Some(&rhs)).unwrap();
                    let (columns, per_head) = broadcast(&lhs, &rhs).unwrap();
                    let copies = EdgeOperation::copies(&graph, Endpoint::Source, 1, Some(reduce));
                    let operation = EdgeOperation { op, columns, rhs: Endpoint::Edge, per_head, ..copies };
                    let edges = Edges::new(&graph, &Device::Cpu).unwrap();
                    let views = (View::new(&lhs).unwrap(), View::new(&rhs).unwrap());
                    let found = operation.forward_on_device(&edges, views.0, Some(views.1)).unwrap();
                    let what = format!("{reduce:?} of {op:?} {left:?} {right:?} {dtype:?}, {} edges", graph.edges());
                    assert_within(
                        tolerance(dtype, graph.edges()),
                        &found.into_tensor(expected.shape()),
                        &expected,
                        &what,
                    );
                    let (of_lhs, of_rhs) = operation.backward_on_device(&lhs, Some(&rhs), &upstream).unwrap();
                    assert_within(
                        tolerance(dtype, graph.edges()),
                        &of_lhs.unwrap(),
                        &gradient_of(&expected, &upstream, &lhs),
                        &format!("lhs: {what}"),
                    );
                    assert_within(
                        tolerance(dtype, graph.edges()),
                        &of_rhs.unwrap(),
                        &gradient_of(&expected, &upstream, &rhs),
                        &format!("rhs: {what}"),
                    );
                }
            }
        }
    }
}
