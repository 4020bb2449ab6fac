//! One layer on a GPU: products by cuBLAS, and between them one kernel over the edges each way. Where the mean comes
//! first, the kernel writes it beside the node's own row, so that one product makes both summands; where the product
//! comes first, the kernel adds own row and bias to the mean and finishes it. Nothing edge-wise is made.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::order::Order;
use super::{SageConfig, SageConv};
use crate::cuda::{
    ChainLayer, Edges, Finished, Gradients, Memory, SavedTensor, View, add_first, behind_relu, column_sums,
    gradient_of_mean_rows, mean_beside, mean_finish,
};
use crate::models::layered::Evaluation;
use gnntop_data::graph::{Adjacency, DropMask};

/// One evaluation of a layer.
pub(crate) struct Layer {
    adjacency: Arc<Adjacency>,
    order: Order,
    input: usize,
    output: usize,
    /// ReLU and dropout, after all layers but the last.
    finished: Finished,
    /// `W_l` and `W_r`.
    weights: [Tensor; 2],
    bias: Tensor,
    /// `mean | own`, `[targets, 2 input]`, where the mean comes first.
    joined: SavedTensor,
}

impl Layer {
    pub(super) fn new(conv: &SageConv, at: &Evaluation<'_, SageConfig>) -> Result<Self> {
        let mask = at.dropout().map(|(probability, seed)| DropMask::new(probability, seed)).transpose()?;
        Ok(Self {
            adjacency: Arc::clone(at.edges),
            order: Order::new(at.edges, conv.input, conv.output, at.with_input),
            input: conv.input,
            output: conv.output,
            finished: Finished { relu: at.is_inner, mask },
            weights: [conv.left.0.clone(), conv.right.clone()],
            bias: conv.left.1.clone(),
            joined: SavedTensor::default(),
        })
    }

    /// `W_l | W_r`, `[output, 2 input]`.
    fn both_weights(&self) -> Result<Tensor> {
        Tensor::cat(&[&self.weights[0].detach(), &self.weights[1].detach()], 1)
    }

    /// The rows of the targets.
    fn own_rows(&self, x: &Tensor) -> Result<Tensor> {
        x.narrow(0, 0, self.adjacency.nodes())
    }
}

impl ChainLayer for Layer {
    fn weights(&self) -> &[Tensor] {
        &self.weights
    }

    fn bias(&self) -> &Tensor {
        &self.bias
    }

    fn shape(&self) -> (usize, usize) {
        (self.adjacency.nodes(), self.output)
    }

    fn forward(&self, x: &Tensor) -> Result<Memory> {
        let edges = Edges::new(&self.adjacency, x.device())?;
        let bias = self.bias.detach();
        match self.order {
            Order::AggregateFirst => {
                let joined = mean_beside(&edges, View::new(x)?, self.input)?;
                let joined = joined.into_tensor((self.adjacency.nodes(), 2 * self.input));
                let product = joined.matmul(&self.both_weights()?.t()?)?;
                self.joined.set(joined);
                self.finished.apply(x.device(), View::new(&product)?, View::new(&bias)?, None)
            }
            Order::ProjectFirst => {
                let [left, right] = self.weights.each_ref().map(Tensor::detach);
                let projected = x.matmul(&left.t()?)?;
                let own = self.own_rows(x)?.matmul(&right.t()?)?;
                mean_finish(&edges, View::new(&projected)?, View::new(&own)?, View::new(&bias)?, self.finished)
            }
        }
    }

    fn backward(&self, x: &Tensor, result: Option<&Tensor>, gradient: &Tensor, with_input: bool) -> Result<Gradients> {
        let (edges, device) = (Edges::new(&self.adjacency, x.device())?, x.device());
        let (gradient, bias) = match result {
            Some(result) => {
                let factor = self.finished.mask.map_or(1.0, |mask| mask.factor());
                let (gradient, sums) =
                    behind_relu(device, View::new(result)?, View::new(gradient)?, self.output, factor)?;
                (gradient.into_tensor(self.shape()), sums)
            }
            None => (gradient.clone(), column_sums(device, View::new(gradient)?, self.output)?),
        };
        let bias = bias.into_tensor(self.output);
        let turned = gradient.t()?;
        let sources = (self.adjacency.source_nodes(), self.input);
        match self.order {
            Order::AggregateFirst => {
                let of_both = turned.matmul(&self.joined.get()?)?;
                let half = |first: usize| of_both.narrow(1, first, self.input)?.contiguous();
                let weights = vec![half(0)?, half(self.input)?];
                let input = if with_input {
                    let of_joined = gradient.matmul(&self.both_weights()?)?;
                    Some(gradient_of_mean_rows(&edges, View::new(&of_joined)?, self.input, true)?.into_tensor(sources))
                } else {
                    None
                };
                Ok(Gradients { input, weights, bias })
            }
            Order::ProjectFirst => {
                let of_projected = gradient_of_mean_rows(&edges, View::new(&gradient)?, self.output, false)?;
                let of_projected = of_projected.into_tensor((sources.0, self.output));
                let weights = vec![of_projected.t()?.matmul(x)?, turned.matmul(&self.own_rows(x)?)?];
                let input = if with_input {
                    let [left, right] = self.weights.each_ref().map(Tensor::detach);
                    let of_x = of_projected.matmul(&left)?;
                    add_first(&of_x, &gradient.matmul(&right)?)?;
                    Some(of_x)
                } else {
                    None
                };
                Ok(Gradients { input, weights, bias })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::multigraph::{self, generator, random_tensor};
    use crate::cuda::tests::{TYPES, assert_alike, graphs};
    use crate::models::layered::tests::run;
    use crate::models::sage::Sage;
    use crate::models::{NodeModel, Parameters, Pass};

    #[test]
    fn the_model_is_the_same_as_on_the_cpu() {
        if !is_possible() {
            return;
        }
        // Layers that take the mean first, and that project first; widths for all sizes of loads.
        let sizes = [(6, 8, 3), (20, 4, 4), (3, 7, 5)];
        for graph in graphs().into_iter().filter(|graph| graph.nodes() > 0) {
            let layers = if graph.nodes() == graph.source_nodes() { 2 } else { 1 };
            let cases = TYPES.iter().flat_map(|dtype| sizes.map(|size| (*dtype, size)));
            // The emulation is slow: hubs are tried with one type.
            let is_quick = |dtype: DType| graph.edges() < 1000 || dtype == DType::F64;
            for (dtype, (in_features, hidden, classes)) in cases.filter(|case| is_quick(case.0)) {
                let plain = SageConfig { in_features, hidden, classes, layers, plain: true, ..SageConfig::default() };
                let reference = if dtype == DType::F64 { dtype } else { DType::F32 };
                for pass in [Pass::Evaluate, Pass::Train { seed: 5 }] {
                    let expected = run::<SageConv, _>(&plain, classes, &graph, (reference, pass, false));
                    let found = run::<SageConv, _>(&plain, classes, &graph, (dtype, pass, true));
                    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        assert_eq!(found.dtype(), dtype);
                        let what = format!("{number} of {pass:?}, {layers} layers from {in_features}");
                        assert_alike(found, expected, &what);
                    }
                }
            }
        }
    }

    #[test]
    fn features_without_a_gradient_get_none() {
        if !is_possible() {
            return;
        }
        let graph = multigraph::random_graph(&mut generator(72), 12, 12, 0);
        let config = SageConfig { in_features: 4, hidden: 3, classes: 2, layers: 2, ..SageConfig::default() };
        let parameters = Parameters::new(3);
        let model = Sage::new(&config, parameters.var_builder(DType::F32, &Device::Cpu)).unwrap();
        let features = random_tensor(&mut generator(73), &[12, 4], DType::F32);
        let out = model.forward_on_device(&features, &[graph], Pass::Train { seed: 1 }, |_| ()).unwrap();
        let gradients = out.sum_all().unwrap().backward().unwrap();
        assert!(gradients.get(&features).is_none());
        assert!(parameters.list().iter().all(|parameter| gradients.get(&parameter.var).is_some()));
    }

    #[test]
    fn kernels_take_graphs_without_nodes() {
        if !is_possible() {
            return;
        }
        let graph = multigraph::adjacency(Vec::new(), 0, 0);
        let edges = Edges::new(&graph, &Device::Cpu).unwrap();
        let nothing = Tensor::zeros((0, 4), DType::F32, &Device::Cpu).unwrap();
        let view = View::new(&nothing).unwrap();
        assert_eq!(mean_beside(&edges, view, 4).unwrap().into_tensor((0, 8)).elem_count(), 0);
        assert_eq!(gradient_of_mean_rows(&edges, view, 4, true).unwrap().into_tensor((0, 4)).elem_count(), 0);
    }
}
