//! Dense matrix products on borrowed slices.
//!
//! candle's `matmul` always makes a new tensor. The kernels need products that accumulate into a strided part of
//! a buffer they own, so this is a bounds-checked face of the gemm crate, the one that candle itself uses. Many products
//! by one large operand go through [`tiles`] where the processor has them.

use std::ops::Range;

use super::{Element, tiles};

/// A read-only matrix in a slice; columns may be strided, so that a transpose costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// A matrix to write to, `[rows, columns]`, row-major with a row stride.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

/// Elements that a row-major matrix spans in memory, from its first to its last.
fn span(rows: usize, columns: usize, row_stride: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * row_stride + columns }
}

impl<'a, T> Matrix<'a, T> {
    /// `[rows, columns]` at the start of `data`, rows `row_stride` elements apart.
    ///
    /// # Panics
    /// If `data` is too short.
    #[must_use]
    pub fn new(data: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(span(rows, columns, row_stride) <= data.len(), "matrix exceeds its slice");
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The columns `range` of a matrix that is not transposed.
    ///
    /// # Panics
    /// If the range exceeds the columns.
    #[must_use]
    pub fn columns(self, range: Range<usize>) -> Self {
        assert!(self.column_stride == 1 && range.end <= self.columns, "columns exceed the matrix");
        Self::new(self.data.get(range.start..).unwrap_or(&[]), self.rows, range.len(), self.row_stride)
    }

    /// The transpose, `[columns, rows]`, without a copy.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

impl<'a, T> Matrix<'a, T> {
    pub(super) fn row_count(&self) -> usize {
        self.rows
    }

    pub(super) fn column_count(&self) -> usize {
        self.columns
    }

    /// Whether the numbers of a row are next to each other.
    pub(super) fn is_by_row(&self) -> bool {
        self.column_stride == 1
    }

    /// A row of a matrix whose rows are next to each other.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [T] {
        debug_assert!(self.column_stride == 1);
        &self.data[row * self.row_stride..][..self.columns]
    }
}

impl<'a, T: Element> Matrix<'a, T> {
    fn singles(self) -> Option<Matrix<'a, f32>> {
        let Self { rows, columns, row_stride, column_stride, .. } = self;
        T::singles(self.data).map(|data| Matrix { data, rows, columns, row_stride, column_stride })
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// `[rows, columns]` at the start of `data`, rows `row_stride` elements apart.
    ///
    /// # Panics
    /// If `data` is too short or rows would overlap.
    #[must_use]
    pub fn new(data: &'a mut [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(columns <= row_stride || rows <= 1, "rows overlap");
        assert!(span(rows, columns, row_stride) <= data.len(), "matrix exceeds its slice");
        Self { data, rows, columns, row_stride }
    }
}

impl MatrixMut<'_, f32> {
    pub(super) fn row_count(&self) -> usize {
        self.rows
    }

    pub(super) fn column_count(&self) -> usize {
        self.columns
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.row_stride..][..self.columns]
    }
}

impl<T: Element> MatrixMut<'_, T> {
    fn singles(&mut self) -> Option<MatrixMut<'_, f32>> {
        let (rows, columns, row_stride) = (self.rows, self.columns, self.row_stride);
        T::singles_mut(self.data).map(|data| MatrixMut { data, rows, columns, row_stride })
    }
}

/// The right operand of several products, arranged for them once where that makes them faster.
#[derive(Debug)]
pub struct Right<'a, T> {
    matrix: Matrix<'a, T>,
    packed: Option<tiles::Packed>,
}

impl<'a, T: Element> Right<'a, T> {
    /// `[inner, columns]`.
    #[must_use]
    pub fn new(matrix: Matrix<'a, T>) -> Self {
        let pays = tiles::pays(matrix.rows, matrix.columns);
        let packed = matrix.singles().filter(|_| pays).map(tiles::Packed::right);
        Self { matrix, packed }
    }
}

/// [`multiply`] by an operand that was arranged before.
///
/// # Panics
/// If the shapes do not fit.
pub fn multiply_by<T: Element>(
    mut target: MatrixMut<'_, T>,
    accumulate: bool,
    left: Matrix<'_, T>,
    right: &Right<'_, T>,
) {
    if let (Some(packed), Some(left)) = (&right.packed, left.singles())
        && let Some(target) = target.singles()
    {
        return tiles::multiply(target, accumulate, left, packed);
    }
    multiply(target, accumulate, left, right.matrix);
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
    // SAFETY: the constructors checked that every element (row, column) of the three matrices lies inside its
    // slice, transposing keeps that set, and the shapes were compared above, so gemm reads and writes in bounds.
    // `target` is borrowed uniquely, so it overlaps neither operand. Strides of a slice fit isize. All elements of
    // `target` are initialised, whether it is read or not.
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

    #[test]
    #[should_panic(expected = "matrix exceeds its slice")]
    fn a_short_slice_is_refused() {
        let _ = Matrix::new(&[0.0f32; 5], 2, 3, 3);
    }
}
