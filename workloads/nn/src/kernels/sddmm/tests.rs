//! g-SDDMM with the kernels of a GPU, run on the host, beside those of the processor.

use candle_core::{Device, Var};

use super::*;
use crate::cuda::tests::multigraph::{generator, random_divisor, random_tensor};
use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};
use crate::cuda::{Edges, View};
use crate::kernels::{Operand as Rows, sddmm};
use gnntop_data::graph::Columns;

#[test]
fn edge_messages_agree_for_any_two_ends() {
    if !crate::cuda::emulation::is_possible() {
        return;
    }
    let mut rng = generator(31);
    let ends = [Endpoint::Source, Endpoint::Destination, Endpoint::Edge];
    let operators = [EdgeOp::Add, EdgeOp::Sub, EdgeOp::Mul, EdgeOp::Div, EdgeOp::Dot];
    for graph in graphs() {
        let cases = ends.iter().flat_map(|left| ends.map(|right| (*left, right)));
        for ((left, right), op) in cases.flat_map(|ends| operators.map(|op| (ends, op))) {
            let dtype = TYPES[(left as usize + right as usize + op as usize) % 4];
            let (heads, width) = if op == EdgeOp::Dot || op == EdgeOp::Mul { (2, 5) } else { (1, 40) };
            let rows = |at: Endpoint| [at.rows(&graph), heads, width];
            let lhs = Var::from_tensor(&random_tensor(&mut rng, &rows(left), dtype)).unwrap();
            let rhs = Var::from_tensor(&random_divisor(&mut rng, &rows(right), dtype)).unwrap();
            let operands = (Rows { rows: &lhs, at: left }, Rows { rows: &rhs, at: right });
            let expected = sddmm(&graph, op, operands.0, Some(operands.1)).unwrap();
            let upstream = random_tensor(&mut rng, expected.dims(), dtype);
            let columns = if op == EdgeOp::Dot { Columns { heads, width } } else { Columns::flat(heads * width) };
            let operation =
                EdgeOperation { op, columns, rhs: right, ..EdgeOperation::copies(&graph, left, heads * width, None) };
            let edges = Edges::new(&graph, &Device::Cpu).unwrap();
            let views = (View::new(&lhs).unwrap(), View::new(&rhs).unwrap());
            let found = operation.forward_on_device(&edges, views.0, Some(views.1)).unwrap();
            let what = format!("{op:?} of each {left} and {right} {dtype:?}, {} edges", graph.edges());
            assert_within(tolerance(dtype, graph.edges()), &found.into_tensor(expected.shape()), &expected, &what);
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

#[test]
fn gathered_rows_agree() {
    if !crate::cuda::emulation::is_possible() {
        return;
    }
    let mut rng = generator(32);
    for graph in graphs() {
        for (dtype, at) in
            TYPES.iter().flat_map(|dtype| [Endpoint::Source, Endpoint::Destination].map(|at| (*dtype, at)))
        {
            let rows = Var::from_tensor(&random_tensor(&mut rng, &[at.rows(&graph), 12], dtype)).unwrap();
            let expected = crate::kernels::gather(&graph, &rows, at).unwrap();
            let upstream = random_tensor(&mut rng, expected.dims(), dtype);
            let operation = EdgeOperation::copies(&graph, at, 12, None);
            let edges = Edges::new(&graph, &Device::Cpu).unwrap();
            let found = operation.forward_on_device(&edges, View::new(&rows).unwrap(), None).unwrap();
            assert_within(
                tolerance(dtype, graph.edges()),
                &found.into_tensor(expected.shape()),
                &expected,
                "gathered rows",
            );
            let back = operation.backward_on_device(&rows, None, &upstream).unwrap().0.unwrap();
            assert_within(
                tolerance(dtype, graph.edges()),
                &back,
                &gradient_of(&expected, &upstream, &rows),
                "gradient of gathered rows",
            );
        }
    }
}
