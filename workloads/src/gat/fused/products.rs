//! Products of rows with the layer's weight, in blocks of rows so that dropout of the features works on a block in the
//! cache.

use super::Layer;
use crate::kernels::{DropMask, Lanes, Matrix, MatrixMut, multiply, run_tasks};

/// Rows that a task takes. Fixed, so that no result depends on the number of threads.
pub(super) const ROWS: usize = 512;

impl<T: Lanes> Layer<T> {
    /// `out`, `[sources, columns]`, becomes `x`, `[sources, input]`, after its dropout, times the transpose of `weight`.
    pub(super) fn project(&self, x: &[T], weight: &[T], out: &mut [T]) {
        let (input, columns) = (self.input, self.columns());
        let weight = Matrix::new(weight, columns, input, input).transposed();
        let tasks = out.chunks_mut(ROWS * columns).zip(x.chunks(ROWS * input)).enumerate();
        run_tasks(tasks, |(block, (out, x))| {
            let rows = out.len() / columns;
            let product = |x: &[T], out: &mut [T]| {
                let x = Matrix::new(x, rows, input, input);
                multiply(MatrixMut::new(out, rows, columns, columns), false, x, weight);
            };
            match self.input_mask {
                None => product(x, out),
                Some(mask) => {
                    let mut dropped = self.take(x.len());
                    dropped.copy_from_slice(x);
                    apply(mask, block * ROWS * input, &mut dropped);
                    product(&dropped, out);
                }
            }
        });
    }

    /// Gradient of `x` from that of the projected features.
    pub(super) fn input_gradient(&self, projected: &[T], weight: &[T], out: &mut [T]) {
        let (input, columns) = (self.input, self.columns());
        let tasks = out.chunks_mut(ROWS * input).zip(projected.chunks(ROWS * columns)).enumerate();
        run_tasks(tasks, |(block, (out, projected))| {
            let rows = projected.len() / columns;
            let projected = Matrix::new(projected, rows, columns, columns);
            let weight = Matrix::new(weight, columns, input, input);
            multiply(MatrixMut::new(out, rows, input, input), false, projected, weight);
            if let Some(mask) = self.input_mask {
                apply(mask, block * ROWS * input, out);
            }
        });
    }
}

/// Drops values in place, the first of which has position `first`.
pub(super) fn apply<T: Lanes>(mask: DropMask, first: usize, values: &mut [T]) {
    struct Apply<'a, T> {
        mask: DropMask,
        first: u64,
        values: &'a mut [T],
    }
    impl<T: Lanes> pulp::NullaryFnOnce for Apply<'_, T> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            self.mask.apply(self.first, self.values);
        }
    }
    pulp::Arch::new().dispatch(Apply { mask, first: first as u64, values });
}
