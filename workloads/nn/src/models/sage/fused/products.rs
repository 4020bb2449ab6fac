//! Products of rows with weights, with what follows them while the result is in the cache.

use super::layer::Layer;
use crate::kernels::{Lanes, Matrix, MatrixMut, Right, Selected, multiply_rows};
use gnntop_data::graph::DropMask;
use gnntop_data::tasks::run_tasks;

/// Rows that a task takes. Fixed, so that no result depends on the number of threads.
pub(super) const ROWS: usize = 192;

/// One summand of a product: `rows`, `[any, input]`, times the transpose of `weight`, `[output, input]`.
#[derive(Clone, Copy)]
pub(super) struct Projection<'a, T: Lanes> {
    pub(super) rows: Selected<'a, T>,
    pub(super) weight: &'a [T],
}

/// What follows the sum: plus `bias`, then ReLU, then dropout.
#[derive(Clone, Copy)]
pub(super) struct Epilogue<'a, T> {
    pub(super) bias: &'a [T],
    pub(super) relu: bool,
    pub(super) mask: Option<DropMask>,
}

impl<T> Default for Epilogue<'_, T> {
    fn default() -> Self {
        Self { bias: &[], relu: false, mask: None }
    }
}

impl<T: Lanes> Layer<T> {
    pub(super) fn epilogue<'a>(&self, bias: &'a [T]) -> Epilogue<'a, T> {
        Epilogue { bias, relu: self.inner, mask: self.mask }
    }

    /// `out`, `[rows, output]`, becomes the sum of the products, added to its content if `accumulate`, with the epilogue
    /// applied.
    pub(super) fn project(
        &self,
        out: &mut [T],
        summands: &[Projection<'_, T>],
        accumulate: bool,
        epilogue: Epilogue<'_, T>,
    ) {
        let (input, output) = (self.input, self.output);
        let weights = summands.iter().map(|summand| Matrix::new(summand.weight, output, input, input));
        let weights: Vec<_> = weights.map(|weight| Right::new(weight.transposed(), self.precision)).collect();
        run_tasks(out.chunks_mut(ROWS * output).enumerate(), |(block, out)| {
            let (first, rows) = (block * ROWS, out.len() / output);
            let mut copy = self.take(rows * input);
            for (index, (summand, weight)) in summands.iter().zip(&weights).enumerate() {
                let out = MatrixMut::new(out, rows, output, output);
                multiply_rows(out, accumulate || index > 0, (summand.rows, first), weight, &mut copy);
            }
            pulp::Arch::new().dispatch(Finish { epilogue, output, first: (first * output) as u64, out });
        });
    }
}

/// Applies an epilogue to rows, the first value of which has position `first` in the whole result.
struct Finish<'a, T> {
    epilogue: Epilogue<'a, T>,
    output: usize,
    first: u64,
    out: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Epilogue { bias, relu, mask } = self.epilogue;
        for row in self.out.chunks_exact_mut(self.output) {
            for (value, &bias) in row.iter_mut().zip(bias) {
                *value += bias;
            }
        }
        if relu {
            // Written so that NaN stays NaN.
            self.out.iter_mut().for_each(|value| *value = if *value < T::zero() { T::zero() } else { *value });
        }
        if let Some(mask) = mask {
            mask.apply(self.first, self.out);
        }
    }
}
