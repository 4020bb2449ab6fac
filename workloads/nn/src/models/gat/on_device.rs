//! One layer on a GPU: products by cuBLAS, and around them kernels for the scores, for attention with the weighted sum,
//! bias, ELU and dropout in one pass over the edges, and for the way back in another. Nothing edge-wise is made.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{Result, Tensor, bail};

use super::dropouts::{Dropouts, Masks};
use super::{GatConv, SelfLoops, with_self_loops};
use crate::cuda::{Attended, Attending, ChainLayer, Edges, Gradients, Memory, View, attend, dropout};
use gnntop_data::graph::{Adjacency, Columns, DropMask};

/// One evaluation of a layer.
pub(crate) struct Layer {
    /// With the loops that count.
    adjacency: Arc<Adjacency>,
    columns: Columns,
    negative_slope: f64,
    /// Whether ELU follows.
    inner: bool,
    input_mask: Option<DropMask>,
    attention_mask: Option<DropMask>,
    output_mask: Option<DropMask>,
    /// `W`, `a_src`, `a_dst`.
    weights: [Tensor; 3],
    bias: Tensor,
    activations: Mutex<Option<Activations>>,
}

/// What the forward pass leaves for the backward one.
struct Activations {
    /// The features after their dropout.
    x: Tensor,
    projected: Tensor,
    attended: Attended,
}

/// The parameters that the kernels read, contiguous.
struct Vectors {
    bias: Tensor,
    source: Tensor,
    target: Tensor,
}

impl Layer {
    /// An `inner` layer is followed by ELU.
    pub(super) fn new(
        conv: &GatConv,
        adjacency: &Arc<Adjacency>,
        self_loops: SelfLoops,
        (inner, dropouts): (bool, Dropouts),
    ) -> Result<Self> {
        let Masks { input, attention, output } = dropouts.masks()?;
        Ok(Self {
            adjacency: match self_loops {
                SelfLoops::Replaced => with_self_loops(adjacency)?,
                SelfLoops::AsGiven => Arc::clone(adjacency),
            },
            columns: Columns { heads: conv.heads, width: conv.width },
            negative_slope: conv.negative_slope,
            inner,
            input_mask: input,
            attention_mask: attention,
            output_mask: output,
            weights: [conv.weight.clone(), conv.source.clone(), conv.target.clone()],
            bias: conv.bias.clone(),
            activations: Mutex::default(),
        })
    }

    fn vectors(&self) -> Result<Vectors> {
        let flat = |tensor: &Tensor| tensor.detach().contiguous();
        Ok(Vectors { bias: flat(&self.bias)?, source: flat(&self.weights[1])?, target: flat(&self.weights[2])? })
    }

    fn attending<'a>(&self, vectors: &'a Vectors) -> Result<Attending<'a>> {
        Ok(Attending {
            columns: self.columns,
            negative_slope: self.negative_slope,
            bias: View::of(&vectors.bias)?,
            source_vector: View::of(&vectors.source)?,
            target_vector: View::of(&vectors.target)?,
            attention: self.attention_mask,
            output: self.output_mask,
            elu: self.inner,
        })
    }

    fn dropped(&self, x: &Tensor) -> Result<Tensor> {
        match self.input_mask {
            Some(mask) => Ok(dropout(x.device(), View::of(x)?, mask)?.into_tensor(x.shape())),
            None => Ok(x.clone()),
        }
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
        (self.adjacency.nodes(), self.columns.total())
    }

    fn forward(&self, x: &Tensor) -> Result<Memory> {
        let edges = Edges::of(&self.adjacency, x.device())?;
        let x = self.dropped(x)?;
        let projected = x.matmul(&self.weights[0].detach().t()?)?;
        let vectors = self.vectors()?;
        let (out, attended) = attend(&edges, View::of(&projected)?, &self.attending(&vectors)?)?;
        *self.activations.lock().unwrap_or_else(PoisonError::into_inner) = Some(Activations { x, projected, attended });
        Ok(out)
    }

    fn backward(&self, _: &Tensor, _: Option<&Tensor>, gradient: &Tensor, with_input: bool) -> Result<Gradients> {
        let kept = self.activations.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Activations { x, projected, attended }) = kept else {
            bail!("gat: a layer ran backward before forward");
        };
        let edges = Edges::of(&self.adjacency, x.device())?;
        let vectors = self.vectors()?;
        let back = attended.back(&edges, View::of(&projected)?, &self.attending(&vectors)?, View::of(gradient)?)?;
        let like = |gradient: Tensor, parameter: &Tensor| gradient.reshape(parameter.shape());
        let weights = vec![
            back.rows.t()?.matmul(&x)?,
            like(back.source_vector, &self.weights[1])?,
            like(back.target_vector, &self.weights[2])?,
        ];
        let input = if with_input {
            // Dropout is linear: the gradient is dropped where the features were.
            Some(self.dropped(&back.rows.matmul(&self.weights[0].detach())?)?)
        } else {
            None
        };
        Ok(Gradients { input, weights, bias: back.bias })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::multigraph::{generator, random_tensor};
    use crate::cuda::tests::{TYPES, all_gradients, assert_alike, graphs};
    use crate::models::gat::{Gat, GatConfig};
    use crate::models::layered::forward_on_device;
    use crate::models::{NodeModel, Parameters, Pass};

    /// Result and gradients of features and parameters, on the device or with the plain form of the CPU.
    fn run(config: &GatConfig, graph: &Arc<Adjacency>, dtype: DType, pass: Pass, on_device: bool) -> Vec<Tensor> {
        let parameters = Parameters::new(3);
        let model = Gat::new(config, parameters.var_builder(dtype, &Device::Cpu)).unwrap();
        let mut rng = generator(81);
        for parameter in parameters.list().iter().filter(|parameter| parameter.name.ends_with("bias")) {
            // Initial biases are 0, which would hide them.
            let bias = random_tensor(&mut rng, parameter.var.dims(), DType::F64);
            parameter.var.set(&bias.to_dtype(dtype).unwrap()).unwrap();
        }
        let features = random_tensor(&mut rng, &[graph.source_nodes(), config.in_features], DType::F64);
        let features = Var::from_tensor(&features.to_dtype(dtype).unwrap()).unwrap();
        let columns = config.last_heads * config.classes;
        let upstream = random_tensor(&mut rng, &[graph.nodes(), columns], DType::F64);
        let layers = std::slice::from_ref(graph);
        let out = if on_device {
            forward_on_device(&model, &features, layers, pass, |_| ()).unwrap()
        } else {
            model.forward(&features, layers, pass).unwrap()
        };
        let vars: Vec<Var> = parameters.list().into_iter().map(|parameter| parameter.var).chain([features]).collect();
        all_gradients(&out, &upstream, &vars)
    }

    #[test]
    fn the_model_is_the_same_as_on_the_cpu() {
        if !is_possible() {
            return;
        }
        // Heads and widths for single columns and for packs of them, narrower and wider than a warp.
        let sizes = [(1, 8, 1, 3), (3, 5, 1, 4), (2, 4, 2, 35)];
        for graph in graphs().into_iter().filter(|graph| graph.nodes() > 0) {
            let layers = if graph.nodes() == graph.source_nodes() { 2 } else { 1 };
            // The emulation is slow: hubs are tried with one type.
            let is_quick = |dtype: DType| graph.edges() < 1000 || dtype == DType::F64;
            let cases = TYPES.iter().flat_map(|dtype| sizes.map(|size| (*dtype, size)));
            let cases = cases.filter(|case| is_quick(case.0));
            for ((dtype, (heads, hidden, last_heads, classes)), published) in
                cases.flat_map(|case| [GatConfig::pyg(), GatConfig::dgl()].map(|published| (case, published)))
            {
                let plain = true;
                let config =
                    GatConfig { in_features: 6, hidden, heads, last_heads, classes, layers, plain, ..published };
                let reference = if dtype == DType::F64 { dtype } else { DType::F32 };
                for pass in [Pass::Evaluate, Pass::Train { seed: 5 }] {
                    let expected = run(&config, &graph, reference, pass, false);
                    let found = run(&config, &graph, dtype, pass, true);
                    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        assert_eq!(found.dtype(), dtype);
                        let what = format!("{number} of {pass:?}, {layers} layers, {heads} heads of {hidden}");
                        assert_alike(found, expected, &what);
                    }
                }
            }
        }
    }
}
