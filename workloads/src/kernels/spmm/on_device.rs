//! g-SpMM on a GPU.

use candle_core::{Result, Tensor};

use super::{Holders, ReduceCopies, ReduceMessages, is_extreme};
use crate::cuda::{Backward, Edges, Memory, Messages, Operand, View, extreme_rows, of_copies, sum_rows};
use crate::kernels::message::{Direction, Extreme};
use crate::kernels::{Endpoint, Reduce};

/// The reduced messages, `[targets, columns]`.
fn reduced(edges: &Edges, reduce: Reduce, messages: &Messages<'_>, holders: &Holders) -> Result<Memory> {
    let extreme = match reduce {
        Reduce::Sum | Reduce::Mean => return sum_rows(edges, Direction::Incoming, messages, reduce == Reduce::Mean),
        Reduce::Max => Extreme::Max,
        Reduce::Min => Extreme::Min,
    };
    let (out, found) = extreme_rows(edges, messages, extreme)?;
    holders.1.set(found.into_tensor(edges.targets_times(messages.columns.total())));
    Ok(out)
}

/// The factors of a mean and the holders of an extremum, which a gradient needs.
struct Saved {
    scale: Option<Tensor>,
    holders: Option<Tensor>,
}

impl Saved {
    fn of(edges: &Edges, reduce: Reduce, holders: &Holders, like: &Tensor) -> Result<Self> {
        let scale = (reduce == Reduce::Mean).then(|| edges.inverse_degrees(like.dtype())).transpose()?;
        Ok(Self { scale, holders: is_extreme(reduce).then(|| holders.1.get()).transpose()? })
    }

    fn views(&self) -> Result<(Option<View<'_>>, Option<View<'_>>)> {
        Ok((self.scale.as_ref().map(View::of).transpose()?, self.holders.as_ref().map(View::of).transpose()?))
    }
}

impl ReduceCopies {
    pub(super) fn forward_on_device(&self, edges: &Edges, rows: View<'_>) -> Result<Memory> {
        let messages = Messages::copies(self.total, Operand { rows, at: self.at });
        reduced(edges, self.reduce, &messages, &self.holders)
    }

    pub(super) fn backward_on_device(&self, rows: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::of(&self.adjacency, rows.device())?;
        let saved = Saved::of(&edges, self.reduce, &self.holders, rows)?;
        of_copies(&edges, self.at, self.total, View::of(gradient)?, saved.views()?, rows.shape())
    }
}

impl ReduceMessages {
    fn messages_on_device<'a>(&self, lhs: View<'a>, rhs: View<'a>) -> Messages<'a> {
        Messages {
            op: self.op,
            columns: self.columns,
            lhs: Operand { rows: lhs, at: Endpoint::Source },
            rhs: Some(Operand { rows: rhs, at: Endpoint::Edge }),
            per_head: self.per_head,
            scale: None,
            holders: None,
        }
    }

    pub(super) fn forward_on_device(&self, edges: &Edges, lhs: View<'_>, rhs: View<'_>) -> Result<Memory> {
        reduced(edges, self.reduce, &self.messages_on_device(lhs, rhs), &self.holders)
    }

    /// Gradients of those operands that lead to a variable.
    pub(super) fn backward_on_device(
        &self,
        lhs: &Tensor,
        rhs: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::of(&self.adjacency, lhs.device())?;
        let saved = Saved::of(&edges, self.reduce, &self.holders, lhs)?;
        let (scale, holders) = saved.views()?;
        let scale = scale.map(|rows| Operand { rows, at: Endpoint::Destination });
        let messages = Messages { scale, holders, ..self.messages_on_device(View::of(lhs)?, View::of(rhs)?) };
        let gradient = Operand { rows: View::of(gradient)?, at: Endpoint::Destination };
        let backward = Backward { edges: &edges, messages, gradient };
        let of_lhs = lhs.track_op().then(|| backward.of_lhs(lhs.shape())).transpose()?;
        Ok((of_lhs, rhs.track_op().then(|| backward.of_rhs(rhs)).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;
    use crate::cuda::tests::multigraph::{generator, random_divisor, random_tensor};
    use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};
    use crate::kernels::spmm::broadcast;
    use crate::kernels::{EdgeOp, spmm};

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
                    let operation = ReduceCopies {
                        adjacency: graph.clone(),
                        reduce,
                        at,
                        total: dims.iter().product(),
                        holders: Holders::default(),
                    };
                    let edges = Edges::of(&graph, &Device::Cpu).unwrap();
                    let found = operation.forward_on_device(&edges, View::of(&rows).unwrap()).unwrap();
                    let what = format!("{reduce:?} of {dims:?} {dtype:?} at each {at}, {} edges", graph.edges());
                    assert_within(
                        tolerance(dtype, graph.edges()),
                        &found.into_tensor(expected.shape()),
                        &expected,
                        &what,
                    );
                    let back = operation.backward_on_device(&rows, &upstream).unwrap();
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
                        let (adjacency, holders) = (graph.clone(), Holders::default());
                        let operation = ReduceMessages { adjacency, op, reduce, columns, per_head, holders };
                        let edges = Edges::of(&graph, &Device::Cpu).unwrap();
                        let views = (View::of(&lhs).unwrap(), View::of(&rhs).unwrap());
                        let found = operation.forward_on_device(&edges, views.0, views.1).unwrap();
                        let what =
                            format!("{reduce:?} of {op:?} {left:?} {right:?} {dtype:?}, {} edges", graph.edges());
                        assert_within(
                            tolerance(dtype, graph.edges()),
                            &found.into_tensor(expected.shape()),
                            &expected,
                            &what,
                        );
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
        }
    }
}
