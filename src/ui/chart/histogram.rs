//! How often something takes how long: a bar for each range of durations.
//!
//! ```text
//!  █
//!  █▇▅▃▂▁▁▁           ▁        ▁
//! 38 ms      64 ms           312 ms
//! ```

use crate::ui::chart::bars::{BarCell, BarStack};
use crate::ui::chart::labels::Labels;
use crate::ui::chart::step_chart::EIGHTHS;
use crate::ui::scene::Scene;
use crate::ui::sheet::Sheet;
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::Distribution;

/// Columns of the axis with its count.
const AXIS: u16 = 8;
/// From this ratio of the longest to the shortest on, ranges grow by a factor.
const WIDE: f64 = 8.0;

/// Draws the histogram of `all`. A range that holds anything shows, however little that is.
pub fn draw(sheet: &mut Sheet<'_>, all: &Distribution, scene: &Scene<'_>) {
    let columns = sheet.width().saturating_sub(AXIS + 1);
    let rows = sheet.height().saturating_sub(2);
    let (Some(min), Some(max)) = (all.min_ns(), all.max_ns()) else { return };
    if columns < 4 || rows == 0 {
        return;
    }
    let theme = scene.theme;
    let edges = edges(min, max, columns);
    let counts = all.counts(&edges);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    sheet.text_ending(0, AXIS - 1, 1, &count(most), theme.dim());
    (1..=rows).for_each(|y| sheet.cell(AXIS - 1, y, theme.glyph('│', '|'), theme.dim()));
    let mut stack = BarStack::default();
    for (x, n) in (AXIS..).zip(&counts) {
        for (row, cell) in (0..).zip(stack.cut([*n].into_iter(), most, rows)) {
            let c = match cell {
                BarCell::Empty => continue,
                BarCell::Split { eighths, .. } if !theme.ascii() => EIGHTHS[usize::from(*eighths) % 8],
                BarCell::Split { .. } => '_',
                BarCell::Full(_) => theme.glyph('█', '#'),
            };
            sheet.cell(x, rows - row, c, theme.series());
        }
    }
    draw_numbers(&mut sheet.rows(rows + 1, 0), &edges, (min, max), scene);
}

/// Writes the durations at both ends and in the middle.
fn draw_numbers(sheet: &mut Sheet<'_>, edges: &[u64], (min, max): (u64, u64), scene: &Scene<'_>) {
    let end = AXIS + edges.len() as u16 + 1;
    let mut labels = Labels::new(AXIS, sheet.width());
    labels.place_from(sheet, AXIS, &duration(min), scene.theme.dim());
    labels.place_ending(sheet, end, &duration(max), scene.theme.dim());
    let middle = edges.len() / 2;
    if let Some(edge) = edges.get(middle) {
        labels.place_around(sheet, AXIS + 1 + middle as u16, &duration(*edge), scene.theme.dim());
    }
}

/// The borders of `columns` ranges: equally long ones or, over a wide range, each longer by the same factor.
fn edges(min: u64, max: u64, columns: u16) -> Vec<u64> {
    let (low, high) = (min.max(1) as f64, max.max(2) as f64);
    let share = |at: u16| f64::from(at) / f64::from(columns);
    let edge = |at: u16| match high / low >= WIDE {
        true => low * (high / low).powf(share(at)),
        false => low + (high - low) * share(at),
    };
    (1..columns).map(|at| edge(at) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_rise_from_the_shortest_to_the_longest() {
        for (min, max) in [(0, 0), (0, 1), (5, 5), (1, u64::MAX), (40_000_000, 41_000_000), (u64::MAX, u64::MAX)] {
            for columns in [1, 2, 30, 400] {
                let edges = edges(min, max, columns);
                assert_eq!(edges.len(), usize::from(columns) - 1);
                assert!(edges.is_sorted(), "{min} {max} {columns}");
            }
        }
    }

    #[test]
    fn every_duration_is_in_a_range() {
        let mut all = Distribution::new();
        (1..1000).for_each(|n| all.record(n * n * 100));
        let counts = all.counts(&edges(100, 99_800_100, 30));
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (30, 999));
        assert!(counts[0] > 0 && counts[29] > 0);
    }
}
