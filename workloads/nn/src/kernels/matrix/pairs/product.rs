//! Products of whole matrices, panel by panel.

use std::arch::x86_64::*;
use std::cell::RefCell;

use super::rounded::{LANES, Line, arrange, join_row, round_row};
use crate::kernels::Values;
use crate::kernels::matrix::{Matrix, MatrixMut};

/// Rows and vectors of the sums that stay in registers: 24, beside a row of the right operand and a number of the left one.
const ROWS: usize = 6;
const VECTORS: usize = 4;
/// Columns of a panel.
const PANEL: usize = VECTORS * LANES;

/// Whether the processor has products of bf16, and the system saves its vectors.
pub(in crate::kernels::matrix) fn is_available() -> bool {
    is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512f")
}

/// The right operand of one or several products, rounded and arranged in panels of columns.
#[derive(Debug)]
pub(in crate::kernels::matrix) struct Packed {
    lines: Vec<Line>,
    inner: usize,
    columns: usize,
}

impl Packed {
    /// `matrix` is `[inner, columns]`.
    ///
    /// # Panics
    /// If products of bf16 are not [available](is_available).
    pub fn right(matrix: Matrix<'_, f32>) -> Self {
        assert!(is_available(), "the processor has no products of bf16");
        let (inner, columns) = (matrix.row_count(), matrix.column_count());
        let pairs = inner.div_ceil(2);
        let mut lines = vec![Line([0; LANES]); columns.div_ceil(LANES) * pairs];
        for (panel, lines) in lines.chunks_mut(VECTORS * pairs).enumerate() {
            arrange(matrix, panel * PANEL, lines.len() / pairs, lines);
        }
        Self { lines, inner, columns }
    }
}

thread_local! {
    /// The left operand in pairs, kept because fresh memory is expensive.
    static LEFT: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// `target = left x right`, or `target += left x right` where `accumulate`; `left` gives its rows. On the calling thread.
///
/// # Panics
/// If the shapes do not fit.
pub(in crate::kernels::matrix) fn multiply<'a>(
    mut target: MatrixMut<'_, f32>,
    accumulate: bool,
    left: impl Fn(usize) -> Values<'a, f32>,
    right: &Packed,
) {
    assert!(right.inner > 0 && target.column_count() == right.columns, "product and target differ in shape");
    let pairs = right.inner.div_ceil(2);
    LEFT.with_borrow_mut(|group| {
        group.resize(ROWS * pairs, 0);
        for first in (0..target.row_count()).step_by(ROWS) {
            let rows = ROWS.min(target.row_count() - first);
            for (row, pairs) in (first..first + rows).zip(group.chunks_exact_mut(pairs)) {
                match left(row) {
                    // SAFETY: there is a packed operand, so the instructions exist.
                    Values::Exact(row) => unsafe { round_row(row, pairs) },
                    Values::Rounded(row) => join_row(row, pairs),
                }
            }
            for (panel, right) in right.lines.chunks(VECTORS * pairs).enumerate() {
                let out = ProductTile { target: &mut target, first, rows, column: panel * PANEL, accumulate };
                // SAFETY: as above.
                unsafe {
                    match right.len() / pairs {
                        1 => out.multiply::<1>(group, right),
                        2 => out.multiply::<2>(group, right),
                        3 => out.multiply::<3>(group, right),
                        _ => out.multiply::<VECTORS>(group, right),
                    }
                }
            }
        }
    });
}

/// Some rows of some columns of a product.
struct ProductTile<'a, 'b> {
    target: &'a mut MatrixMut<'b, f32>,
    first: usize,
    rows: usize,
    column: usize,
    accumulate: bool,
}

impl ProductTile<'_, '_> {
    /// `left` has [`ROWS`] rows of pairs, `right` has `N` lines for each pair.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn multiply<const N: usize>(self, left: &[u32], right: &[Line]) {
        let right = right.as_chunks::<N>().0;
        let pairs = right.len();
        assert!(left.len() == ROWS * pairs, "the operands differ in pairs");
        let mut sums = [[_mm512_setzero_ps(); N]; ROWS];
        for (index, lines) in right.iter().enumerate() {
            // SAFETY: a line has 64 bytes and is aligned to as many, and both types are 64 bytes of any content.
            let lines: [__m512bh; N] =
                lines.each_ref().map(|line| unsafe { std::mem::transmute(_mm512_load_si512(line.0.as_ptr().cast())) });
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: `index` is below `pairs`, and there are `ROWS` rows of them.
                let pair = unsafe { *left.get_unchecked(row * pairs + index) };
                // SAFETY: as above.
                let pair: __m512bh = unsafe { std::mem::transmute(_mm512_set1_epi32(pair.cast_signed())) };
                for (sum, &line) in sums.iter_mut().zip(&lines) {
                    *sum = _mm512_dpbf16_ps(*sum, pair, line);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate().take(self.rows) {
            let out = &mut self.target.row_mut(self.first + row)[self.column..];
            for (out, sum) in out.chunks_mut(LANES).zip(sums) {
                put(out, *sum, self.accumulate);
            }
        }
    }
}

/// Writes or adds as many sums as there is room for.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(out: &mut [f32], sum: __m512, accumulate: bool) {
    let mask = ((1u32 << out.len()) - 1) as u16;
    // SAFETY: the mask leaves out what is beyond the slice, which is neither read nor written.
    unsafe {
        let sum = if accumulate { _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, out.as_ptr())) } else { sum };
        _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, sum);
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn values(rng: &mut StdRng, count: usize) -> Vec<f32> {
        (0..count).map(|_| rng.random_range(-1.0..1.0f32) * 10f32.powi(rng.random_range(-3..3))).collect()
    }

    fn rounded(value: f32) -> f64 {
        f64::from(bf16::from_f32(value).to_f32())
    }

    #[test]
    fn products_are_those_of_the_rounded_numbers() {
        if !is_available() {
            println!("skipped: this processor has no products of bf16");
            return;
        }
        let mut rng = StdRng::seed_from_u64(3);
        for (rows, inner, columns) in [(1, 1, 1), (6, 2, 16), (7, 3, 17), (13, 65, 97), (20, 602, 128), (5, 33, 41)] {
            for (accumulate, transposed) in [(false, false), (false, true), (true, false), (true, true)] {
                let (left, right) = (values(&mut rng, rows * inner), values(&mut rng, inner * columns));
                let mut out = vec![1.0; rows * (columns + 3)];
                let right_operand = if transposed {
                    Matrix::new(&right, columns, inner, inner).transposed()
                } else {
                    Matrix::new(&right, inner, columns, columns)
                };
                let target = MatrixMut::new(&mut out, rows, columns, columns + 3);
                let left_rows = |row: usize| Values::Exact(&left[row * inner..][..inner]);
                multiply(target, accumulate, left_rows, &Packed::right(right_operand));
                for row in 0..rows {
                    for column in 0..columns {
                        let place = |k: usize| if transposed { column * inner + k } else { k * columns + column };
                        let terms = (0..inner).map(|k| rounded(left[row * inner + k]) * rounded(right[place(k)]));
                        let start = if accumulate { 1.0 } else { 0.0 };
                        let (sum, size) = terms.fold((start, 1.0), |(sum, size), term| (sum + term, size + term.abs()));
                        let difference = (f64::from(out[row * (columns + 3) + column]) - sum).abs();
                        assert!(difference <= size * 1e-6, "{rows} {inner} {columns}: {difference} of {size}");
                    }
                    assert_eq!(out[row * (columns + 3) + columns..][..3], [1.0; 3], "written beyond the row");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        if !is_available() {
            println!("skipped: this processor has no products of bf16");
            return;
        }
        let mut left = vec![1.0; 8 * 32];
        left[3 * 32 + 7] = f32::NAN;
        left[4 * 32] = f32::INFINITY;
        let (right, mut out) = (vec![0.5; 32 * 16], vec![0.0; 8 * 16]);
        let packed = Packed::right(Matrix::new(&right, 32, 16, 16));
        multiply(MatrixMut::new(&mut out, 8, 16, 16), false, |row| Values::Exact(&left[row * 32..][..32]), &packed);
        for (row, values) in out.chunks_exact(16).enumerate() {
            assert!(values.iter().all(|value| match row {
                3 => value.is_nan(),
                4 => *value == f32::INFINITY,
                _ => *value == 16.0,
            }));
        }
    }
}
