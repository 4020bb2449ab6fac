//! Rows of a matrix as a layer reads them: as they lie, or where their numbers say, without a copy.

use std::ops::Range;

use gnntop_data::graph::DropMask;

use super::{Stored, Wide, prefetch_row};

/// Rows of a matrix, all of them in order or some by their numbers.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a, T: Wide> {
    values: Values<'a, T>,
    width: usize,
    numbers: Option<&'a [u32]>,
}

/// The numbers of a matrix, row after row.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a, T: Wide> {
    /// As they are.
    Exact(&'a [T]),
    /// As products of bf16 take them.
    Rounded(&'a [T::Rounded]),
}

impl<'a, T: Wide> Values<'a, T> {
    /// The same where `T` is f32; no numbers where it is another type.
    #[inline(always)]
    pub(crate) fn singles(self) -> Values<'a, f32> {
        match self {
            Self::Exact(values) => Values::Exact(T::singles(values).unwrap_or_default()),
            Self::Rounded(values) => Values::Rounded(T::halves(values).unwrap_or_default()),
        }
    }
}

impl<'a, T: Wide> Selected<'a, T> {
    /// All rows of `values`, `[rows, width]`, in order.
    #[must_use]
    pub fn all(values: &'a [T], width: usize) -> Self {
        Self { values: Values::Exact(values), width, numbers: None }
    }

    /// The rows of `values`, `[any, width]`, with these numbers.
    #[must_use]
    pub fn some(values: Values<'a, T>, width: usize, numbers: &'a [u32]) -> Self {
        Self { values, width, numbers: Some(numbers) }
    }

    /// The matrix that the rows are taken from, `[any, width]`.
    #[must_use]
    pub fn values(&self) -> Values<'a, T> {
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
    #[inline(always)]
    fn start(&self, row: usize) -> usize {
        self.numbers.map_or(row, |numbers| numbers[row] as usize) * self.width
    }

    /// One row.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, row: usize) -> Values<'a, T> {
        let start = self.start(row);
        match self.values {
            Values::Exact(values) => Values::Exact(&values[start..][..self.width]),
            Values::Rounded(values) => Values::Rounded(&values[start..][..self.width]),
        }
    }

    /// Asks for a part of a row, `count` elements from `column` on, if there is such a row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: usize, column: usize, count: usize) {
        if self.numbers.is_none_or(|numbers| row < numbers.len()) {
            let start = self.start(row) + column;
            match self.values {
                Values::Exact(values) => prefetch_row(values, start, count),
                Values::Rounded(values) => prefetch_row(values, start, count),
            }
        }
    }

    /// Copies some columns of a row to `to`, from which `mask`, whose values are numbered by rows, has dropped some.
    ///
    /// # Panics
    /// If there are no such columns, or `to` has another length.
    #[inline(always)]
    pub(crate) fn copy(&self, row: usize, columns: Range<usize>, mask: Option<DropMask>, to: &mut [T]) {
        let first = (row * self.width + columns.start) as u64;
        match (self.row(row), mask) {
            (Values::Exact(from), None) => to.copy_from_slice(&from[columns]),
            (Values::Exact(from), Some(mask)) => mask.copy(first, &from[columns], to),
            (Values::Rounded(from), mask) => {
                to.iter_mut().zip(&from[columns]).for_each(|(to, from)| *to = from.widen());
                if let Some(mask) = mask {
                    mask.apply(first, to);
                }
            }
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
        if let (None, Values::Exact(values)) = (self.numbers, self.values) {
            return &values[first * self.width..][..copy.len()];
        }
        for (row, to) in copy.chunks_exact_mut(self.width).enumerate() {
            self.prefetch(first + row + ROWS_AHEAD, 0, self.width);
            self.copy(first + row, 0..self.width, None, to);
        }
        copy
    }
}

/// Rows that are asked for before they are copied.
pub(crate) const ROWS_AHEAD: usize = 3;

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn rows_come_in_order_or_by_their_numbers() {
        let values: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let rounded: Vec<bf16> = values.iter().map(|&value| bf16::from_f32(value)).collect();
        let mut copy = [0.0; 6];
        let all = Selected::all(&values, 3);
        assert_eq!(all.block(1, &mut copy), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!(matches!(all.row(2), Values::Exact([6.0, 7.0, 8.0])));
        for values in [Values::Exact(&values[..]), Values::Rounded(&rounded)] {
            let some = Selected::some(values, 3, &[3, 0, 0, 2]);
            assert_eq!(some.block(2, &mut copy), [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]);
            some.copy(3, 1..3, None, &mut copy[..2]);
            assert_eq!(copy[..2], [7.0, 8.0]);
            some.prefetch(4, 0, 3);
        }
    }

    #[test]
    fn what_is_dropped_does_not_depend_on_how_the_numbers_are_held() {
        let values: Vec<f32> = (1..=64).map(|value| value as f32).collect();
        let rounded: Vec<bf16> = values.iter().map(|&value| bf16::from_f32(value)).collect();
        let mask = DropMask::new(0.5, 7).unwrap();
        let [exact, rounded] = [Values::Exact(&values[..]), Values::Rounded(&rounded)].map(|values| {
            let mut copy = [0.0; 20];
            Selected::some(values, 32, &[1, 0]).copy(1, 5..25, Some(mask), &mut copy);
            copy
        });
        assert_eq!(exact, rounded);
        assert!(exact.contains(&0.0) && exact.iter().any(|value| *value > 0.0));
    }
}
