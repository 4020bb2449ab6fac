//! Products of rows with the layer's weight, in blocks of rows so that dropout of the features works on a block in the
//! cache.

use super::layer::Layer;
use crate::kernels::{Lanes, Matrix, MatrixMut, ROWS_AHEAD, Right, Selected, multiply_by, multiply_rows};
use gnntop_data::graph::DropMask;
use gnntop_data::tasks::run_tasks;

/// Rows that a task takes. Fixed, so that no result depends on the number of threads.
pub(super) const ROWS: usize = 96;

impl<T: Lanes> Layer<T> {
    /// `out`, `[sources, columns]`, becomes `x`, `[sources, input]`, after its dropout, times the transpose of `weight`.
    pub(super) fn project(&self, x: Selected<'_, T>, weight: &[T], out: &mut [T]) {
        let (input, columns) = (self.input, self.columns());
        let weight = &Right::new(Matrix::new(weight, columns, input, input).transposed(), self.precision);
        run_tasks(out.chunks_mut(ROWS * columns).enumerate(), |(block, out)| {
            let (first, rows) = (block * ROWS, out.len() / columns);
            let out = MatrixMut::new(out, rows, columns, columns);
            let mut copy = self.take(rows * input);
            match self.input_mask {
                None => multiply_rows(out, false, (x, first), weight, &mut copy),
                Some(mask) => {
                    pulp::Arch::new().dispatch(Drop { mask, first, from: x, to: &mut copy });
                    multiply_by(out, false, Matrix::new(&copy, rows, input, input), weight);
                }
            }
        });
    }

    /// Gradient of `x` from that of the projected features.
    pub(super) fn input_gradient(&self, projected: &[T], weight: &[T], out: &mut [T]) {
        let (input, columns) = (self.input, self.columns());
        let weight = &Right::new(Matrix::new(weight, columns, input, input), self.precision);
        let tasks = out.chunks_mut(ROWS * input).zip(projected.chunks(ROWS * columns)).enumerate();
        run_tasks(tasks, |(block, (out, projected))| {
            let rows = projected.len() / columns;
            let projected = Matrix::new(projected, rows, columns, columns);
            multiply_by(MatrixMut::new(out, rows, input, input), false, projected, weight);
            if let Some(mask) = self.input_mask {
                mask.apply((block * ROWS * input) as u64, out);
            }
        });
    }
}

/// Copies rows without the dropped values.
struct Drop<'a, T: Lanes> {
    mask: DropMask,
    /// The first of the rows.
    first: usize,
    from: Selected<'a, T>,
    to: &'a mut [T],
}

impl<T: Lanes> pulp::NullaryFnOnce for Drop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let width = self.from.width();
        for (row, to) in (self.first..).zip(self.to.chunks_exact_mut(width)) {
            self.from.prefetch(row + ROWS_AHEAD, 0, width);
            self.from.copy(row, 0..width, Some(self.mask), to);
        }
    }
}
