//! g-SDDMM on a GPU.

use candle_core::{Result, Tensor};

use super::{CopyToEdges, EdgeMessages};
use crate::cuda::{Backward, Edges, Memory, Messages, Operand, View, collect, edge_rows};
use crate::kernels::{EdgeOp, Endpoint};

impl CopyToEdges {
    pub(super) fn forward_on_device(&self, edges: &Edges, rows: View<'_>) -> Result<Memory> {
        edge_rows(edges, &Messages::copies(self.total, Operand { rows, at: self.at }), false)
    }

    pub(super) fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::of(&self.adjacency, rows.device())?;
        let messages = Messages::copies(self.total, Operand { rows: View::of(gradient)?, at: Endpoint::Edge });
        Ok(collect(&edges, self.at, &messages)?.into_tensor(rows.shape()))
    }
}

impl EdgeMessages {
    fn messages_on_device<'a>(&self, lhs: View<'a>, rhs: View<'a>) -> Messages<'a> {
        Messages {
            op: self.op,
            columns: self.columns,
            lhs: Operand { rows: lhs, at: self.lhs },
            rhs: Some(Operand { rows: rhs, at: self.rhs }),
            per_head: false,
            scale: None,
            holders: None,
        }
    }

    pub(super) fn forward_on_device(&self, edges: &Edges, lhs: View<'_>, rhs: View<'_>) -> Result<Memory> {
        edge_rows(edges, &self.messages_on_device(lhs, rhs), self.op == EdgeOp::Dot)
    }

    /// Gradients of those operands that lead to a variable.
    pub(super) fn backward_on_device(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::of(&self.adjacency, lhs.device())?;
        let messages = self.messages_on_device(View::of(lhs)?, View::of(rhs)?);
        let gradient = Operand { rows: View::of(gradient)?, at: Endpoint::Edge };
        let backward = Backward { edges: &edges, messages, gradient };
        let of_lhs = lhs.track_op().then(|| backward.of_lhs(lhs.shape())).transpose()?;
        Ok((of_lhs, rhs.track_op().then(|| backward.of_rhs(rhs)).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::cuda::tests::multigraph::{generator, random_divisor, random_tensor};
    use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};
    use crate::kernels::{Columns, Operand as Rows, sddmm};

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
                let operation = EdgeMessages { adjacency: graph.clone(), op, columns, lhs: left, rhs: right };
                let edges = Edges::of(&graph, &Device::Cpu).unwrap();
                let views = (View::of(&lhs).unwrap(), View::of(&rhs).unwrap());
                let found = operation.forward_on_device(&edges, views.0, views.1).unwrap();
                let what = format!("{op:?} of each {left} and {right} {dtype:?}, {} edges", graph.edges());
                assert_within(tolerance(dtype, graph.edges()), &found.into_tensor(expected.shape()), &expected, &what);
                let (of_lhs, of_rhs) = operation.backward_on_device(&lhs, &rhs, &upstream).unwrap();
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
                let operation = CopyToEdges { adjacency: graph.clone(), at, total: 12 };
                let edges = Edges::of(&graph, &Device::Cpu).unwrap();
                let found = operation.forward_on_device(&edges, View::of(&rows).unwrap()).unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &found.into_tensor(expected.shape()),
                    &expected,
                    "gathered rows",
                );
                let back = operation.backward_on_device(&rows, &upstream).unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &back,
                    &gradient_of(&expected, &upstream, &rows),
                    "gradient of gathered rows",
                );
            }
        }
    }
}
