//! Where a node's four aggregates are, and columns of them in registers.

use gnntop_data::graph::AGGREGATORS;

/// Columns that are computed at once, in registers, and that one thread takes of a hub: a cache line of f32.
pub(super) const LANES: usize = 16;

/// Where the four sections are in a row of a wider matrix: `mean | min | max | std`, each `width` long, from column
/// `offset` of rows `stride` long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionLayout {
    /// Width of a message and of each section.
    pub width: usize,
    /// First column of the mean.
    pub offset: usize,
    /// Columns of a whole row, at least `offset + 4 width`.
    pub stride: usize,
}

impl SectionLayout {
    /// The four sections of one row.
    #[inline(always)]
    pub(super) fn sections<'a, T>(&self, row: &'a [T]) -> [&'a [T]; AGGREGATORS] {
        let (mean, rest) = row[self.offset..self.offset + AGGREGATORS * self.width].split_at(self.width);
        let (min, rest) = rest.split_at(self.width);
        let (max, std) = rest.split_at(self.width);
        [mean, min, max, std]
    }

    #[inline(always)]
    pub(super) fn sections_mut<'a, T>(&self, row: &'a mut [T]) -> [&'a mut [T]; AGGREGATORS] {
        let (mean, rest) = row[self.offset..self.offset + AGGREGATORS * self.width].split_at_mut(self.width);
        let (min, rest) = rest.split_at_mut(self.width);
        let (max, std) = rest.split_at_mut(self.width);
        [mean, min, max, std]
    }
}

/// `N` values from `start` on. Here and in the blocks, plain loops over arrays: `copy_from_slice` and the closures of
/// `map` and `from_fn` are compiled apart, without the vector instructions that the dispatch has chosen.
#[inline(always)]
pub(super) fn load<T: Copy + Default, const N: usize>(from: &[T], start: usize) -> [T; N] {
    let from = &from[start..start + N];
    let mut values = [T::default(); N];
    for lane in 0..N {
        values[lane] = from[lane];
    }
    values
}

#[inline(always)]
pub(super) fn store<T: Copy, const N: usize>(to: &mut [T], start: usize, values: [T; N]) {
    let to = &mut to[start..start + N];
    for lane in 0..N {
        to[lane] = values[lane];
    }
}
