//! One layer on a GPU: node-wise products by cuBLAS, and between them three kernels, for the aggregates, for the degree
//! scalers, and for bias with ReLU. Nothing edge-wise and no concatenation is made. The scalers are applied after the
//! product with the post weight, which is linear: one product of the aggregates with its three parts, stacked.

use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::PnaConv;
use crate::cuda::{Finished, add_scaled, fused_aggregates};
use gnntop_data::graph::{AGGREGATORS, Adjacency};

impl PnaConv {
    /// [`forward`](Self::forward) with the kernels of a GPU.
    pub(super) fn forward_on_device(&self, x: &Tensor, adjacency: &Arc<Adjacency>, relu: bool) -> Result<Tensor> {
        let input = x.dim(1)?;
        let columns = |weight: &Tensor, first: usize, count: usize| weight.narrow(1, first, count)?.contiguous();
        let product = |x: &Tensor, weight: &Tensor| x.matmul(&weight.t()?);
        let (pre, post) = (&self.pre.0, &self.post.0);
        let own = product(x, &columns(pre, 0, input)?)?.apply_op2(&self.pre.1, JUST_BIAS)?;
        let messages = product(x, &columns(pre, input, input)?)?;
        let aggregates = fused_aggregates(adjacency, &own, &messages)?;

        let width = AGGREGATORS * input;
        let thirds: Vec<Tensor> =
            (0..3).map(|third| post.narrow(1, input + third * width, width)).collect::<Result<_>>()?;
        let parts = product(&aggregates, &Tensor::cat(&thirds, 0)?)?;
        let mapped = product(x, &columns(post, 0, input)?)?;
        let hidden = add_scaled(adjacency, self.scalers.average_log_degree, &mapped, &parts, &self.post.1)?;
        product(&hidden, &self.lin.0)?.apply_op2(&self.lin.1, Finished { relu, mask: None })
    }
}

const JUST_BIAS: Finished = Finished { relu: false, mask: None };

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::multigraph::{distance, generator, random_tensor};
    use crate::cuda::tests::{gradient_of, graphs};
    use crate::kernels::Workspaces;
    use crate::models::Parameters;
    use crate::models::pna::DegreeScalers;

    #[test]
    fn a_layer_is_the_same_as_on_the_cpu() {
        if !is_possible() {
            return;
        }
        let mut rng = generator(61);
        for graph in graphs().into_iter().filter(|graph| graph.nodes() == graph.source_nodes() && graph.nodes() > 0) {
            for relu in [true, false] {
                let parameters = Parameters::new(1);
                let scalers = DegreeScalers { average_log_degree: 1.3 };
                let layer = PnaConv::new(5, 6, scalers, parameters.var_builder(DType::F64, &Device::Cpu)).unwrap();
                let x =
                    candle_core::Var::from_tensor(&random_tensor(&mut rng, &[graph.nodes(), 5], DType::F64)).unwrap();
                let upstream = random_tensor(&mut rng, &[graph.nodes(), 6], DType::F64);
                let expected = layer.forward(&x, &graph, &Workspaces::default(), relu).unwrap();
                let found = layer.forward_on_device(&x, &graph, relu).unwrap();
                assert!(distance(&found, &expected) < 1e-10);
                for variable in parameters.list().into_iter().map(|parameter| parameter.var).chain([x]) {
                    let [found, expected] = [&found, &expected].map(|out| gradient_of(out, &upstream, &variable));
                    assert!(distance(&found, &expected) < 1e-8 * (1.0 + graph.edges() as f64));
                }
            }
        }
    }
}
