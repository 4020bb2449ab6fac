//! Products into memory that the caller has.

use candle_core::{Result, bail};

use super::views::{Matrix, MatrixMut};
use super::{pairs, tiles};
use crate::kernels::{Element, ROWS_AHEAD, Selected, Values, Wide};

/// What matrix products of f32 numbers multiply; they add up in f32 in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatmulPrecision {
    /// The numbers themselves, or as many parts of bf16 as give their products the accuracy of f32.
    #[default]
    F32,
    /// The numbers rounded to bf16: 8 bits of mantissa, half the time.
    Bf16,
}

impl MatmulPrecision {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    /// # Errors
    /// This processor has no such products.
    pub fn check(self) -> Result<()> {
        if self == Self::Bf16 && !pairs::is_available() {
            bail!("this processor cannot multiply bf16 numbers, for which it needs AVX-512 BF16; multiply f32 numbers");
        }
        Ok(())
    }

    /// # Errors
    /// It is not the one that `form`, in words, always multiplies in.
    pub(crate) fn check_is_f32(self, form: &str) -> Result<()> {
        if self != Self::F32 {
            bail!("{form} has no products of {} numbers; multiply f32 numbers", self.name());
        }
        Ok(())
    }
}

/// The right operand of several products, arranged for them once where that makes them faster.
#[derive(Debug)]
pub struct Right<'a, T> {
    matrix: Matrix<'a, T>,
    packed: Packed,
}

/// How it is arranged.
#[derive(Debug)]
enum Packed {
    AsIs,
    Tiles(tiles::Packed),
    Pairs(pairs::Packed),
}

impl<'a, T: Element> Right<'a, T> {
    /// `[inner, columns]`. Products of f64 are in f64 in any case.
    ///
    /// # Panics
    /// If the processor has no products of that precision: see [`MatmulPrecision::check`].
    #[must_use]
    pub fn new(matrix: Matrix<'a, T>, precision: MatmulPrecision) -> Self {
        let singles = matrix.singles();
        let packed = match precision {
            MatmulPrecision::Bf16 => singles.map(pairs::Packed::right).map(Packed::Pairs),
            MatmulPrecision::F32 => {
                let pays = tiles::pays(matrix.rows, matrix.columns);
                singles.filter(|_| pays).map(tiles::Packed::right).map(Packed::Tiles)
            }
        };
        Self { matrix, packed: packed.unwrap_or(Packed::AsIs) }
    }
}

/// [`multiply`] by an operand that was arranged before.
///
/// # Panics
/// If the shapes do not fit, or the products are of bf16 and the rows of `left` are not next to each other.
pub fn multiply_by<T: Element>(
    mut target: MatrixMut<'_, T>,
    accumulate: bool,
    left: Matrix<'_, T>,
    right: &Right<'_, T>,
) {
    if let (Some(left), Some(target)) = (left.singles(), target.singles()) {
        match &right.packed {
            Packed::AsIs => {}
            Packed::Tiles(packed) => return tiles::multiply(target, accumulate, left, packed),
            Packed::Pairs(packed) => {
                return pairs::multiply(target, accumulate, |row| Values::Exact(left.row(row)), packed);
            }
        }
    }
    multiply(target, accumulate, left, right.matrix);
}

/// [`multiply_by`] for as many rows of a selection, from a number on, as `target` has. `copy` has room for them.
///
/// # Panics
/// If the shapes do not fit.
pub fn multiply_rows<T: Wide>(
    mut target: MatrixMut<'_, T>,
    accumulate: bool,
    (rows, first): (Selected<'_, T>, usize),
    right: &Right<'_, T>,
    copy: &mut [T],
) {
    if let Packed::Pairs(packed) = &right.packed
        && let Some(target) = target.singles()
    {
        let row = |row| {
            rows.prefetch(first + row + ROWS_AHEAD, 0, rows.width());
            rows.row(first + row).singles()
        };
        return pairs::multiply(target, accumulate, row, packed);
    }
    let (count, width) = (target.rows, rows.width());
    let left = Matrix::new(rows.block(first, &mut copy[..count * width]), count, width, width);
    multiply_by(target, accumulate, left, right);
}

/// `target = left x right`, or `target += left x right` where `accumulate`. Runs on the calling thread.
///
/// # Panics
/// If the shapes do not fit.
pub fn multiply<T: Element>(target: MatrixMut<'_, T>, accumulate: bool, left: Matrix<'_, T>, right: Matrix<'_, T>) {
    assert!(target.rows == left.rows && target.columns == right.columns, "product and target differ in shape");
    assert!(left.columns == right.rows, "inner dimensions differ");
    if target.rows == 0 || target.columns == 0 {
        return;
    }
    let one = T::from_f64(1.0);
    // SAFETY: the constructors checked that every element (row, column) of the three matrices is inside its slice,
    // transposing keeps that set, and the shapes were compared above, so gemm reads and writes in bounds. `target` is
    // borrowed uniquely, so it overlaps neither operand. Strides of a slice fit isize. All elements of `target` are
    // initialised, whether it is read or not.
    unsafe {
        gemm::gemm(
            target.rows,
            target.columns,
            left.columns,
            target.data.as_mut_ptr(),
            1,
            target.row_stride as isize,
            accumulate,
            left.data.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            one,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Adds the sum of each column of `rows`, `[any, sums.len()]` row-major, to `sums`.
pub fn add_column_sums<T: Element>(sums: &mut [T], rows: &[T]) {
    if sums.is_empty() {
        return;
    }
    for row in rows.chunks_exact(sums.len()) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_strided_parts_match_the_definition() {
        let left: Vec<f64> = (0..20).map(f64::from).collect();
        let right: Vec<f64> = (0..12).map(|value| f64::from(value) * 0.5 - 2.0).collect();
        let a = Matrix::new(&left, 4, 5, 5).columns(1..4);
        let b = Matrix::new(&right, 4, 3, 3).columns(0..3).transposed();
        let mut out = [1.0; 4 * 6];
        multiply(MatrixMut::new(&mut out[1..], 4, 4, 6), true, a, b);
        for row in 0..4 {
            for column in 0..4 {
                let dot: f64 = (0..3).map(|k| left[row * 5 + 1 + k] * right[column * 3 + k]).sum();
                assert_eq!(out[row * 6 + 1 + column], 1.0 + dot);
            }
            assert_eq!((out[row * 6], out[row * 6 + 5]), (1.0, 1.0));
        }
    }

    #[test]
    fn an_empty_inner_dimension_clears_or_keeps_the_target() {
        let mut out = vec![3.0f32; 4];
        let empty = Matrix::new(&[], 2, 0, 0);
        multiply(MatrixMut::new(&mut out, 2, 2, 2), true, empty, Matrix::new(&[], 0, 2, 2));
        assert_eq!(out, [3.0; 4]);
        multiply(MatrixMut::new(&mut out, 2, 2, 2), false, empty, Matrix::new(&[], 0, 2, 2));
        assert_eq!(out, [0.0; 4]);
    }
}
