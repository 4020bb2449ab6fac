//! Rows of a matrix as a layer reads them: as they lie, or where their numbers say, without a copy.

use super::prefetch_row;

/// Rows of a matrix, all of them in order or some by their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a, T> {
    values: &'a [T],
    width: usize,
    numbers: Option<&'a [u32]>,
}

impl<'a, T: Copy> Selected<'a, T> {
    /// All rows of `values`, `[rows, width]`, in order.
    #[must_use]
    pub fn all(values: &'a [T], width: usize) -> Self {
        Self { values, width, numbers: None }
    }

    /// The rows of `values`, `[any, width]`, with these numbers.
    #[must_use]
    pub fn some(values: &'a [T], width: usize, numbers: &'a [u32]) -> Self {
        Self { values, width, numbers: Some(numbers) }
    }

    /// The matrix that the rows are taken from, `[any, width]`.
    #[must_use]
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Elements of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of each row in [`values`](Self::values), where it is not its own.
    #[must_use]
    pub fn numbers(&self) -> Option<&'a [u32]> {
        self.numbers
    }

    /// Where a row starts in [`values`](Self::values).
    ///
    /// # Panics
    /// If there is no such number.
    #[inline(always)]
    pub(super) fn start(&self, row: usize) -> usize {
        self.numbers.map_or(row, |numbers| numbers[row] as usize) * self.width
    }

    /// One row.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.values[self.start(row)..][..self.width]
    }

    /// Asks for a part of a row, `count` elements from `column` on, if there is such a row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize, column: usize, count: usize) {
        if self.numbers.is_none_or(|numbers| row < numbers.len()) {
            prefetch_row(self.values, self.start(row) + column, count);
        }
    }

    /// The rows from `first` on as a slice, where they lie so; else copied to `copy`, which is full afterwards.
    ///
    /// # Panics
    /// If there are too few rows, or `copy` has a broken one.
    pub fn block<'b>(&self, first: usize, copy: &'b mut [T]) -> &'b [T]
    where
        'a: 'b,
    {
        if self.numbers.is_none() {
            return &self.values[first * self.width..][..copy.len()];
        }
        for (row, to) in copy.chunks_exact_mut(self.width).enumerate() {
            self.prefetch(first + row + ROWS_AHEAD, 0, self.width);
            to.copy_from_slice(self.row(first + row));
        }
        copy
    }
}

/// Rows that are asked for before they are copied.
pub(crate) const ROWS_AHEAD: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_order_or_by_their_numbers() {
        let values: Vec<u32> = (0..12).collect();
        let mut copy = [0; 6];
        let all = Selected::all(&values, 3);
        assert_eq!((all.row(2), all.block(1, &mut copy)), (&[6, 7, 8][..], &[3, 4, 5, 6, 7, 8][..]));
        let some = Selected::some(&values, 3, &[3, 0, 0, 2]);
        assert_eq!((some.row(3), some.row(1)), (&[6, 7, 8][..], &[0, 1, 2][..]));
        assert_eq!(some.block(2, &mut copy), [0, 1, 2, 6, 7, 8]);
        some.prefetch(4, 0, 3);
    }
}
