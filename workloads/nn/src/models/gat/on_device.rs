//! One layer on a GPU: products by cuBLAS, and around them kernels for the scores, for attention with the weighted sum,
//! bias, ELU and dropout in one pass over the edges, and for the way back in another. Nothing edge-wise is made.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{Result, Tensor, bail};

use super::dropouts::Masks;
use super::{GatConfig, GatConv, SelfLoops, with_self_loops};
use crate::cuda::{Attended, Attending, ChainLayer, Edges, Gradients, Memory, View, attend, dropout};
use crate::models::layered::Evaluation;
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
    pub(super) fn new(conv: &GatConv, at: &Evaluation<'_, GatConfig>) -> Result<Self> {
        let Masks { input, attention, output } = at.masks()?;
        Ok(Self {
            adjacency: match at.config.self_loops {
                SelfLoops::Replaced => with_self_loops(at.edges)?,
                SelfLoops::AsGiven => Arc::clone(at.edges),
            },
            columns: Columns { heads: conv.heads, width: conv.width },
            negative_slope: conv.negative_slope,
            inner: at.is_inner,
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
            bias: View::new(&vectors.bias)?,
            source_vector: View::new(&vectors.source)?,
            target_vector: View::new(&vectors.target)?,
            attention: self.attention_mask,
            output: self.output_mask,
            elu: self.inner,
        })
    }

    fn dropped(&self, x: &Tensor) -> Result<Tensor> {
        match self.input_mask {
            Some(mask) => Ok(dropout(x.device(), View::new(x)?, mask)?.into_tensor(x.shape())),
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
        let edges = Edges::new(&self.adjacency, x.device())?;
        let x = self.dropped(x)?;
        let projected = x.matmul(&self.weights[0].detach().t()?)?;
        let vectors = self.vectors()?;
        let (out, attended) = attend(&edges, View::new(&projected)?, &self.attending(&vectors)?)?;
        *self.activations.lock().unwrap_or_else(PoisonError::into_inner) = Some(Activations { x, projected, attended });
        Ok(out)
    }

    fn backward(&self, _: &Tensor, _: Option<&Tensor>, gradient: &Tensor, with_input: bool) -> Result<Gradients> {
        let kept = self.activations.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Activations { x, projected, attended }) = kept else {
            bail!("gat: a layer ran backward before forward");
        };
        let edges = Edges::new(&self.adjacency, x.device())?;
        let vectors = self.vectors()?;
        let back = attended.back(&edges, View::new(&projected)?, &self.attending(&vectors)?, View::new(gradient)?)?;
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
    use candle_core::DType;

    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::{TYPES, assert_alike, graphs};
    use crate::models::Pass;
    use crate::models::layered::tests::run;

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
                let columns = last_heads * classes;
                let reference = if dtype == DType::F64 { dtype } else { DType::F32 };
                for pass in [Pass::Evaluate, Pass::Train { seed: 5 }] {
                    let expected = run::<GatConv, _>(&config, columns, &graph, (reference, pass, false));
                    let found = run::<GatConv, _>(&config, columns, &graph, (dtype, pass, true));
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
