//! Matrices in borrowed slices, rows or columns apart by a stride.

use std::ops::Range;

use crate::kernels::Element;

/// A read-only matrix in a slice; columns may be strided, so that a transpose costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    pub(super) data: &'a [T],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
}

/// A matrix to write to, `[rows, columns]`, row-major with a row stride.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    pub(super) data: &'a mut [T],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_stride: usize,
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
    pub(in crate::kernels) fn row_count(&self) -> usize {
        self.rows
    }

    pub(in crate::kernels) fn column_count(&self) -> usize {
        self.columns
    }

    /// Whether the numbers of a row are next to each other.
    pub(in crate::kernels) fn is_by_row(&self) -> bool {
        self.column_stride == 1
    }

    /// A row of a matrix whose rows are next to each other.
    #[inline(always)]
    pub(in crate::kernels) fn row(&self, row: usize) -> &'a [T] {
        debug_assert!(self.column_stride == 1);
        &self.data[row * self.row_stride..][..self.columns]
    }
}

impl<'a, T: Element> Matrix<'a, T> {
    pub(super) fn singles(self) -> Option<Matrix<'a, f32>> {
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
    pub(in crate::kernels) fn row_count(&self) -> usize {
        self.rows
    }

    pub(in crate::kernels) fn column_count(&self) -> usize {
        self.columns
    }

    pub(in crate::kernels) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.row_stride..][..self.columns]
    }
}

impl<T: Element> MatrixMut<'_, T> {
    pub(super) fn singles(&mut self) -> Option<MatrixMut<'_, f32>> {
        let (rows, columns, row_stride) = (self.rows, self.columns, self.row_stride);
        T::singles_mut(self.data).map(|data| MatrixMut { data, rows, columns, row_stride })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "matrix exceeds its slice")]
    fn a_short_slice_is_refused() {
        let _ = Matrix::new(&[0.0f32; 5], 2, 3, 3);
    }
}
