//! Softmax over edges on a GPU.

use candle_core::{Result, Tensor};

use super::{Attention, EdgeSoftmax};
use crate::cuda::{Edges, Logits, Memory, Messages, Operand, View, gradient_of_logits, softmax_rows, sum_rows};
use crate::kernels::{Direction, Endpoint};

impl EdgeSoftmax {
    pub(super) fn forward_on_device(&self, edges: &Edges, logits: View<'_>) -> Result<Memory> {
        softmax_rows(edges, self.heads, Logits::Given(logits))
    }

    pub(super) fn backward_on_device(&self, logits: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::of(&self.adjacency, logits.device())?;
        let (result, gradient, given) = (View::of(result)?, View::of(gradient)?, Logits::Given(View::of(logits)?));
        let (of_logits, _) = gradient_of_logits(&edges, self.heads, given, result, gradient)?;
        Ok(of_logits.into_tensor(logits.shape()))
    }
}

impl Attention {
    pub(super) fn forward_on_device(&self, edges: &Edges, source: View<'_>, target: View<'_>) -> Result<Memory> {
        softmax_rows(edges, self.heads, Logits::OfScores { source, target, negative_slope: self.negative_slope })
    }

    /// Gradients of the scores at the sources and at the targets.
    pub(super) fn backward_on_device(
        &self,
        [source, target]: [&Tensor; 2],
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::of(&self.adjacency, source.device())?;
        let negative_slope = self.negative_slope;
        let scores = Logits::OfScores { source: View::of(source)?, target: View::of(target)?, negative_slope };
        let (result, gradient) = (View::of(result)?, View::of(gradient)?);
        let (of_sums, of_targets) = gradient_of_logits(&edges, self.heads, scores, result, gradient)?;
        let of_sums = of_sums.into_tensor((self.adjacency.edges(), self.heads));
        let copies = Messages::copies(self.heads, Operand { rows: View::of(&of_sums)?, at: Endpoint::Edge });
        let of_sources = sum_rows(&edges, Direction::Outgoing, &copies, false)?;
        Ok((Some(of_sources.into_tensor(source.shape())), Some(of_targets.into_tensor(target.shape()))))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};
    use crate::kernels::{edge_softmax, softmax};

    #[test]
    fn softmax_and_attention_agree() {
        if !crate::cuda::emulation::is_possible() {
            return;
        }
        let mut rng = generator(41);
        for graph in graphs() {
            for (dtype, heads) in TYPES.iter().flat_map(|dtype| [1, 3, 8].map(|heads| (*dtype, heads))) {
                let edges = Edges::of(&graph, &Device::Cpu).unwrap();
                let logits = (random_tensor(&mut rng, &[graph.edges(), heads], dtype) * 5.0).unwrap();
                let logits = Var::from_tensor(&logits).unwrap();
                let upstream = random_tensor(&mut rng, &[graph.edges(), heads], dtype);
                let expected = edge_softmax(&graph, &logits).unwrap();
                let operation = EdgeSoftmax { adjacency: graph.clone(), heads };
                let found = operation.forward_on_device(&edges, View::of(&logits).unwrap()).unwrap();
                let found = found.into_tensor(expected.shape());
                assert_within(tolerance(dtype, graph.edges()), &found, &expected, "softmax");
                let back = operation.backward_on_device(&logits, &expected, &upstream).unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &back,
                    &gradient_of(&expected, &upstream, &logits),
                    "gradient of softmax",
                );

                let [source, target] = [graph.source_nodes(), graph.nodes()]
                    .map(|nodes| Var::from_tensor(&random_tensor(&mut rng, &[nodes, heads], dtype)).unwrap());
                let expected = softmax::attention(&graph, &source, &target, 0.2).unwrap();
                let operation = Attention { adjacency: graph.clone(), heads, negative_slope: 0.2 };
                let views = (View::of(&source).unwrap(), View::of(&target).unwrap());
                let found = operation.forward_on_device(&edges, views.0, views.1).unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &found.into_tensor(expected.shape()),
                    &expected,
                    "attention",
                );
                let (of_source, of_target) =
                    operation.backward_on_device([&source, &target], &expected, &upstream).unwrap();
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &of_source.unwrap(),
                    &gradient_of(&expected, &upstream, &source),
                    "gradient of the sources' scores",
                );
                assert_within(
                    tolerance(dtype, graph.edges()),
                    &of_target.unwrap(),
                    &gradient_of(&expected, &upstream, &target),
                    "gradient of the targets' scores",
                );
            }
        }
    }
}
