//! Stacked bars out of character cells: eighths of a row where a cell shows one or two phases.

/// What a cell of a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarCell {
    /// Nothing: the bar ends below.
    Empty,
    /// One phase fills it, or nearly.
    Full(usize),
    /// One phase up to this many eighths (1 to 7), and above it another one or nothing.
    Split {
        /// The phase below.
        lower: usize,
        /// Its eighths.
        eighths: u8,
        /// The phase above.
        upper: Option<usize>,
    },
}

/// Eighths in a row.
const EIGHTHS: u64 = 8;

/// Cuts stacked parts into the cells of a column, from the bottom up. The buffers live on from column to column.
#[derive(Debug, Default)]
pub struct BarStack {
    /// Upper end of each part in eighths of a row, with the part's index.
    ends: Vec<(usize, u64)>,
    cells: Vec<BarCell>,
}

impl BarStack {
    /// The cells of a bar of `rows` rows whose top is at `top_ns`; `parts` from the bottom up. What reaches beyond the
    /// top is cut off. A part that is not zero shows at the bottom of an otherwise empty bar.
    pub fn cut(&mut self, parts: impl Iterator<Item = u64>, top_ns: u64, rows: u16) -> &[BarCell] {
        let whole = u128::from(rows) * u128::from(EIGHTHS);
        let mut sum = 0u64;
        self.ends.clear();
        for (index, ns) in parts.enumerate() {
            sum = sum.saturating_add(ns);
            let end = (u128::from(sum) * whole + u128::from(top_ns) / 2) / u128::from(top_ns.max(1));
            let end = u64::try_from(end.min(whole)).unwrap_or(u64::MAX);
            let start = self.ends.last().map_or(0, |last| last.1);
            let visible = if ns > 0 && self.ends.is_empty() { end.max(1) } else { end };
            if visible > start && ns > 0 {
                self.ends.push((index, visible));
            }
        }
        self.cells.clear();
        self.cells.extend((0..u64::from(rows)).map(|row| cell(&self.ends, row * EIGHTHS)));
        &self.cells
    }
}

/// The cell that begins `from` eighths above the bottom.
fn cell(ends: &[(usize, u64)], from: u64) -> BarCell {
    let to = from + EIGHTHS;
    let first = ends.partition_point(|(_, end)| *end <= from);
    let mut start = from;
    // The two largest of the parts in this cell, each with its share.
    let (mut largest, mut second) = (None, None);
    for &(part, end) in &ends[first..] {
        let share = (part, end.min(to) - start);
        start += share.1;
        match largest {
            Some(best) if share.1 <= share_of(best) => second = larger(second, share),
            _ => (largest, second) = (Some(share), largest),
        }
        if end >= to {
            break;
        }
    }
    join(largest, second, to - start)
}

fn share_of(part: (usize, u64)) -> u64 {
    part.1
}

fn larger(a: Option<(usize, u64)>, b: (usize, u64)) -> Option<(usize, u64)> {
    if a.is_some_and(|a| a.1 >= b.1) { a } else { Some(b) }
}

/// A cell of at most two parts and `empty` eighths above them. Parts keep their order, which is that of their indices.
fn join(largest: Option<(usize, u64)>, second: Option<(usize, u64)>, empty: u64) -> BarCell {
    let Some((part, share)) = largest else { return BarCell::Empty };
    let eighths = |n: u64| n.clamp(1, EIGHTHS - 1) as u8;
    if empty > 0 {
        return BarCell::Split { lower: part, eighths: eighths(EIGHTHS - empty), upper: None };
    }
    match second {
        Some((other, least)) if least > 0 && share < EIGHTHS => {
            let (lower, upper, below) = if part < other { (part, other, share) } else { (other, part, least) };
            BarCell::Split { lower, eighths: eighths(below), upper: Some(upper) }
        }
        _ => BarCell::Full(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[u64], top: u64, rows: u16) -> Vec<BarCell> {
        BarStack::default().cut(parts.iter().copied(), top, rows).to_vec()
    }

    #[test]
    fn parts_are_stacked() {
        let cells = cut(&[8, 8, 4], 32, 4);
        assert_eq!(
            cells,
            [BarCell::Full(0), BarCell::Full(1), BarCell::Split { lower: 2, eighths: 4, upper: None }, BarCell::Empty]
        );
    }

    #[test]
    fn a_border_inside_a_cell_is_shown_to_an_eighth() {
        assert_eq!(cut(&[3, 13], 16, 2), [BarCell::Split { lower: 0, eighths: 3, upper: Some(1) }, BarCell::Full(1)]);
    }

    #[test]
    fn of_many_parts_in_a_cell_the_two_largest_are_shown_in_order() {
        assert_eq!(cut(&[3, 1, 4], 8, 1), [BarCell::Split { lower: 0, eighths: 3, upper: Some(2) }]);
        assert_eq!(cut(&[1, 4, 3], 8, 1), [BarCell::Split { lower: 1, eighths: 4, upper: Some(2) }]);
    }

    #[test]
    fn too_long_bar_is_cut_off_at_the_top() {
        assert_eq!(cut(&[u64::MAX, u64::MAX], 10, 2), [BarCell::Full(0), BarCell::Full(0)]);
    }

    #[test]
    fn tiny_part_is_visible_and_zero_is_not() {
        assert_eq!(cut(&[1, 0], u64::MAX, 1), [BarCell::Split { lower: 0, eighths: 1, upper: None }]);
        assert_eq!(cut(&[0, 0], 10, 1), [BarCell::Empty]);
        assert_eq!(cut(&[], 10, 1), [BarCell::Empty]);
        assert!(cut(&[5], 0, 3).len() == 3, "a top of zero is no division by zero");
        assert!(cut(&[5], 10, 0).is_empty());
    }

    #[test]
    fn cells_add_up_to_the_bar() {
        for ns in 0..200u64 {
            let eighths: u64 = cut(&[ns / 3, ns - ns / 3], 160, 20)
                .iter()
                .map(|cell| match cell {
                    BarCell::Empty => 0,
                    BarCell::Split { eighths, upper: None, .. } => u64::from(*eighths),
                    _ => 8,
                })
                .sum();
            assert_eq!(eighths, ns.min(160), "{ns}");
        }
    }
}
