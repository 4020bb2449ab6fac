//! Another order for the rows of a table, by what is in them. A row takes 16 bytes here, however long it is.

use super::lines::Place;

/// Bits of a line's number; the rest is for its first byte, of which there are at most 8 GiB.
const LINE_BITS: u32 = 31;

/// An order of rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Keys, and places of rows.
    rows: Vec<(u64, u64)>,
}

impl Order {
    /// For so many rows.
    pub(super) fn of(rows: u64) -> Self {
        Self { rows: Vec::with_capacity(rows as usize) }
    }

    /// Adds a row. Those with the same key stay in the order of the file.
    pub(super) fn add(&mut self, key: u64, place: Place) {
        self.rows.push((key, place.offset << LINE_BITS | place.line.min((1 << LINE_BITS) - 1)));
    }

    /// Puts the rows in order, in place.
    pub(super) fn sort(&mut self) {
        self.rows.sort_unstable();
    }

    /// Whether two rows have the same key.
    pub(super) fn has_equals(&self) -> bool {
        self.rows.windows(2).any(|pair| pair[0].0 == pair[1].0)
    }

    /// Where the rows are, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let place = |packed: u64| Place { line: packed & ((1 << LINE_BITS) - 1), offset: packed >> LINE_BITS };
        self.rows.iter().map(move |(_, packed)| place(*packed))
    }
}
