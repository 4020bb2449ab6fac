//! The softmax as candle operations, with their gradients.

use std::sync::Arc;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, WithDType, bail};

use super::backward::gradient_of_logits;
use super::forward::softmax_rows;
use super::logits::Logits;
use crate::cuda::{self, Edges, Memory, View};
use crate::kernels::Stored;
use crate::kernels::message::{Messages, sum_rows};
use crate::kernels::tensors::{
    check_rows, number_type, shape_of, slice, storage_of, tensor_of, trailing, with_slice, with_stored,
};
use gnntop_data::graph::{Adjacency, Direction, Endpoint};

/// Softmax of `logits`, `[edges, heads]` or `[edges]`, over the edges into each target, head by head. The maximum is
/// subtracted first, so that no finite logit overflows.
///
/// # Errors
/// `logits` does not have one row for each edge, is not a float, or is not in host memory.
pub fn edge_softmax(adjacency: &Arc<Adjacency>, logits: &Tensor) -> Result<Tensor> {
    check_rows(adjacency, logits, Endpoint::Edge, "logits of edge_softmax")?;
    let heads = trailing(logits).iter().product();
    logits.contiguous()?.apply_op1(EdgeSoftmax { adjacency: Arc::clone(adjacency), heads })
}

/// [`edge_softmax`] of `leaky_relu(source_score[u] + target_score[v])`, in one kernel.
pub(in crate::kernels) fn attention(
    adjacency: &Arc<Adjacency>,
    source_score: &Tensor,
    target_score: &Tensor,
    negative_slope: f64,
) -> Result<Tensor> {
    check_rows(adjacency, source_score, Endpoint::Source, "source_score of attention")?;
    check_rows(adjacency, target_score, Endpoint::Destination, "target_score of attention")?;
    let [source, target] = [source_score, target_score].map(|score| (trailing(score), score.dtype()));
    if source != target {
        bail!(
            "attention: rows of source_score {source:?} and target_score {target:?} must have the same shape and type"
        );
    }
    let heads = source.0.iter().product();
    let operation = Attention { adjacency: Arc::clone(adjacency), heads, negative_slope };
    source_score.contiguous()?.apply_op2(&target_score.contiguous()?, operation)
}

struct EdgeSoftmax {
    adjacency: Arc<Adjacency>,
    heads: usize,
}

/// On a GPU.
impl EdgeSoftmax {
    fn forward_on_device(&self, edges: &Edges, logits: View<'_>) -> Result<Memory> {
        cuda::softmax_rows(edges, self.heads, cuda::Logits::Given(logits))
    }

    fn backward_on_device(&self, logits: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Tensor> {
        let edges = Edges::new(&self.adjacency, logits.device())?;
        let (result, gradient, given) =
            (View::new(result)?, View::new(gradient)?, cuda::Logits::Given(View::new(logits)?));
        let (of_logits, _) = cuda::gradient_of_logits(&edges, self.heads, given, result, gradient)?;
        Ok(of_logits.into_tensor(logits.shape()))
    }
}

impl CustomOp1 for EdgeSoftmax {
    fn name(&self) -> &'static str {
        "edge-softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(storage), |T| {
            let logits = Logits::Given(slice::<T>(storage, layout)?);
            storage_of(softmax_rows(&self.adjacency, self.heads, logits))
        });
        Ok((out, layout.shape().clone()))
    }

    fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, storage)?;
        let out = self.forward_on_device(&edges, View::of_storage(storage, layout)?)?;
        out.into_storage(layout.shape().clone())
    }

    fn bwd(&self, logits: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        if logits.device().is_cuda() {
            return self.backward_on_device(logits, result, &gradient.contiguous()?).map(Some);
        }
        with_stored!(logits.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            let out = with_slice::<T, _>(result, |result| {
                // The logits play no part beside the result.
                let logits = Logits::Given(&[]);
                Ok(gradient_of_logits(&self.adjacency, self.heads, logits, (result, gradient)).0)
            })?;
            tensor_of(out, logits.shape().clone(), logits)
        }))
        .map(Some)
    }
}

struct Attention {
    adjacency: Arc<Adjacency>,
    heads: usize,
    negative_slope: f64,
}

impl Attention {
    fn logits<'a, T: Stored>(&self, source: &'a [T], target: &'a [T]) -> Logits<'a, T> {
        Logits::OfScores { source, target, negative_slope: T::Wide::from_f64(self.negative_slope) }
    }

    /// Gradients of the scores at the sources and at the targets.
    fn gradients<T: Stored>(&self, logits: Logits<'_, T>, result: &[T], gradient: &[T]) -> (Vec<T>, Vec<T>) {
        let (of_sums, of_targets) = gradient_of_logits(&self.adjacency, self.heads, logits, (result, gradient));
        let mut of_sources = vec![T::default(); self.adjacency.source_nodes() * self.heads];
        let copies = Messages::copies(self.heads, &of_sums, Endpoint::Edge);
        sum_rows(&self.adjacency, Direction::Outgoing, &copies, false, &mut of_sources);
        (of_sources, of_targets)
    }
}

/// The same on a GPU.
impl Attention {
    fn forward_on_device(&self, edges: &Edges, source: View<'_>, target: View<'_>) -> Result<Memory> {
        cuda::softmax_rows(
            edges,
            self.heads,
            cuda::Logits::OfScores { source, target, negative_slope: self.negative_slope },
        )
    }

    /// Gradients of the scores at the sources and at the targets.
    fn backward_on_device(
        &self,
        [source, target]: [&Tensor; 2],
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let edges = Edges::new(&self.adjacency, source.device())?;
        let negative_slope = self.negative_slope;
        let scores = cuda::Logits::OfScores { source: View::new(source)?, target: View::new(target)?, negative_slope };
        let (result, gradient) = (View::new(result)?, View::new(gradient)?);
        let (of_sums, of_targets) = cuda::gradient_of_logits(&edges, self.heads, scores, result, gradient)?;
        let of_sums = of_sums.into_tensor((self.adjacency.edges(), self.heads));
        let copies =
            cuda::Messages::copies(self.heads, cuda::Operand { rows: View::new(&of_sums)?, at: Endpoint::Edge });
        let of_sources = cuda::sum_rows(&edges, Direction::Outgoing, &copies, false)?;
        Ok((Some(of_sources.into_tensor(source.shape())), Some(of_targets.into_tensor(target.shape()))))
    }
}

impl CustomOp2 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        source: &CpuStorage,
        source_layout: &Layout,
        target: &CpuStorage,
        target_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(source), |T| {
            let logits = self.logits::<T>(slice(source, source_layout)?, slice(target, target_layout)?);
            storage_of(softmax_rows(&self.adjacency, self.heads, logits))
        });
        Ok((out, shape_of(self.adjacency.edges(), &source_layout.dims()[1..])))
    }

    fn cuda_fwd(
        &self,
        source: &CudaStorage,
        source_layout: &Layout,
        target: &CudaStorage,
        target_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let edges = Edges::of_storage(&self.adjacency, source)?;
        let (source, target) = (View::of_storage(source, source_layout)?, View::of_storage(target, target_layout)?);
        let out = self.forward_on_device(&edges, source, target)?;
        out.into_storage(shape_of(self.adjacency.edges(), &source_layout.dims()[1..]))
    }

    fn bwd(
        &self,
        source: &Tensor,
        target: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        if source.device().is_cuda() {
            return self.backward_on_device([source, target], result, &gradient.contiguous()?);
        }
        with_stored!(source.dtype(), |T| {
            let (of_source, of_target) = with_slice::<T, _>(gradient, |gradient| {
                with_slice::<T, _>(result, |result| {
                    with_slice::<T, _>(source, |source| {
                        with_slice::<T, _>(target, |target| {
                            Ok(self.gradients(self.logits(source, target), result, gradient))
                        })
                    })
                })
            })?;
            let of_source = tensor_of(of_source, source.shape().clone(), source)?;
            Ok((Some(of_source), Some(tensor_of(of_target, target.shape().clone(), target)?)))
        })
    }
}

#[cfg(test)]
mod tests;
