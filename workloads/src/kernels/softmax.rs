//! Softmax over the edges into each target, the attention weights of graph attention layers.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::ranges::{run_tasks, split_rows};
use super::stored::Wide;
use super::tensors::{check_rows, number_type, slice, storage_of, tensor_of, trailing, with_slice, with_stored};
use super::{Adjacency, Endpoint, Stored};

/// Softmax of `logits`, `[edges, heads]` or `[edges]`, over the edges into each target, head by head. The maximum is
/// subtracted first, so that no finite logit overflows.
///
/// # Errors
/// `logits` does not have one row for each edge, is no float, or is not in host memory.
pub fn edge_softmax(adjacency: &Arc<Adjacency>, logits: &Tensor) -> Result<Tensor> {
    check_rows(adjacency, logits, Endpoint::Edge, "logits of edge_softmax")?;
    let heads = trailing(logits).iter().product();
    logits.contiguous()?.apply_op1(EdgeSoftmax { adjacency: Arc::clone(adjacency), heads })
}

struct EdgeSoftmax {
    adjacency: Arc<Adjacency>,
    heads: usize,
}

impl EdgeSoftmax {
    fn forward<T: Stored>(&self, logits: &[T]) -> Vec<T> {
        let mut out = vec![T::default(); logits.len()];
        self.for_targets(&mut out, |rows, place| {
            let logits = &logits[place];
            pulp::Arch::new().dispatch(Softmax { logits, heads: self.heads, rows });
        });
        out
    }

    fn backward<T: Stored>(&self, result: &[T], gradient: &[T]) -> Vec<T> {
        let mut out = vec![T::default(); gradient.len()];
        self.for_targets(&mut out, |rows, place| {
            let (result, gradient) = (&result[place.clone()], &gradient[place]);
            pulp::Arch::new().dispatch(SoftmaxGradient { result, gradient, heads: self.heads, rows });
        });
        out
    }

    /// Calls `work` with the rows of the edges into each target that has any, and their place in all of `out`.
    fn for_targets<T: Stored>(&self, out: &mut [T], work: impl Fn(&mut [T], Range<usize>) + Sync) {
        if self.heads == 0 {
            return;
        }
        let (starts, targets) = (self.adjacency.target_starts(), self.adjacency.target_ranges());
        let start = |target: usize| starts[target] as usize;
        let edges: Vec<Range<usize>> = targets.iter().map(|range| start(range.start)..start(range.end)).collect();
        run_tasks(targets.iter().zip(split_rows(out, &edges, self.heads)), |(targets, mut rows)| {
            for target in targets.clone() {
                let place = start(target) * self.heads..start(target + 1) * self.heads;
                let (own, rest) = rows.split_at_mut(place.len());
                rows = rest;
                if !own.is_empty() {
                    work(own, place);
                }
            }
        });
    }
}

struct Softmax<'a, T> {
    logits: &'a [T],
    heads: usize,
    rows: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for Softmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let heads = self.heads;
        for head in 0..heads {
            let mut highest = self.logits[head].widen();
            for logit in self.logits[head..].iter().step_by(heads) {
                let logit = logit.widen();
                highest = if logit > highest { logit } else { highest };
            }
            let mut sum = T::Wide::default();
            for (to, logit) in
                self.rows[head..].iter_mut().step_by(heads).zip(self.logits[head..].iter().step_by(heads))
            {
                let exponential = (logit.widen() - highest).exponential();
                sum += exponential;
                *to = T::narrow(exponential);
            }
            for to in self.rows[head..].iter_mut().step_by(heads) {
                *to = T::narrow(to.widen() / sum);
            }
        }
    }
}

/// `s * g - s * sum(s * g)`
struct SoftmaxGradient<'a, T> {
    result: &'a [T],
    gradient: &'a [T],
    heads: usize,
    rows: &'a mut [T],
}

impl<T: Stored> pulp::NullaryFnOnce for SoftmaxGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let heads = self.heads;
        for head in 0..heads {
            let pairs = || self.result[head..].iter().step_by(heads).zip(self.gradient[head..].iter().step_by(heads));
            let mut sum = T::Wide::default();
            for (result, gradient) in pairs() {
                sum += result.widen() * gradient.widen();
            }
            for (to, (result, gradient)) in self.rows[head..].iter_mut().step_by(heads).zip(pairs()) {
                *to = T::narrow(result.widen() * (gradient.widen() - sum));
            }
        }
    }
}

impl CustomOp1 for EdgeSoftmax {
    fn name(&self) -> &'static str {
        "edge-softmax"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = with_stored!(number_type(storage), |T| storage_of(self.forward::<T>(slice(storage, layout)?)));
        Ok((out, layout.shape().clone()))
    }

    fn bwd(&self, logits: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        with_stored!(logits.dtype(), |T| with_slice::<T, _>(gradient, |gradient| {
            let out = with_slice(result, |result| Ok(self.backward(result, gradient)))?;
            tensor_of(out, logits.shape().clone(), logits)
        }))
        .map(Some)
    }
}
