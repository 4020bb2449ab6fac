//! A series as braille dots, two across and four up in a cell: filled up to the mean of each half column, with a
//! separate dot at the largest value if that stands out. Nothing is drawn where nothing is known; zero is the lowest
//! dot.

use ratatui::style::Style;

use crate::ui::sheet::Sheet;
use crate::ui::theme::Theme;
use gnntop_analysis::store::Bin;

/// Dots up a cell.
const DOTS: u16 = 4;
/// Braille bits of the left and the right half of a cell, from the bottom up.
const BITS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];
/// The empty braille cell.
const BLANK: u32 = 0x2800;
/// Heights in ASCII, from the lowest up.
const ASCII: [char; 8] = ['_', '_', '.', '-', '=', '+', '*', '#'];

/// One row of a chart of several rows.
#[derive(Clone, Copy, Debug)]
pub struct BrailleRow {
    /// Which row, 0 at the bottom.
    pub at: u16,
    /// Rows of the chart.
    pub rows: u16,
    /// The value at the bottom of the chart.
    pub low: f64,
    /// The value at the top of the chart.
    pub full: f64,
    /// Whether the scale is logarithmic, if all of it is above 0.
    pub is_log: bool,
}

impl BrailleRow {
    /// Dots of this row below and at a value: 1 to 4, 0 if the value is in a row below.
    fn dots(&self, value: f64) -> u16 {
        let all = (self.rows * DOTS).max(1);
        let level = 1 + (self.share(value) * f64::from(all - 1)).round() as u16;
        level.saturating_sub(self.at * DOTS)
    }

    /// Where a value is between the bottom of the chart, 0, and its top, 1.
    fn share(&self, value: f64) -> f64 {
        let (low, full, value) = match self.is_log && self.low > 0.0 {
            true => (self.low.ln(), self.full.ln(), value.max(self.low).ln()),
            false => (self.low, self.full, value),
        };
        // Halves, since the difference of two numbers may be larger than any.
        if full > low { ((value / 2.0 - low / 2.0) / (full / 2.0 - low / 2.0)).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Draws one row of a chart from column `x` of the sheet's first row on. `halves` has two entries a cell; `mark` is a cell
/// that is drawn in the style beside it.
pub fn draw(
    sheet: &mut Sheet<'_>,
    x: u16,
    halves: &[Option<Bin>],
    row: BrailleRow,
    mark: Option<(u16, Style)>,
    theme: &Theme,
) {
    for (at, pair) in (0u16..).zip(halves.chunks(2)) {
        let cell = if theme.ascii() { ascii(pair, row) } else { braille(pair, row) };
        let style = mark.filter(|(column, _)| *column == at).map_or(theme.series(), |(_, style)| style);
        if let Some(c) = cell {
            sheet.cell(x.saturating_add(at), 0, c, style);
        }
    }
}

fn braille(pair: &[Option<Bin>], row: BrailleRow) -> Option<char> {
    let mut bits = 0;
    for (column, bin) in BITS.iter().zip(pair) {
        let Some(bin) = bin else { continue };
        let filled = usize::from(row.dots(bin.mean).min(DOTS));
        column[..filled].iter().for_each(|bit| bits |= bit);
        let top = row.dots(bin.max);
        if (1..=DOTS).contains(&top) {
            bits |= column[usize::from(top) - 1];
        }
    }
    (bits > 0).then(|| char::from_u32(BLANK + bits)).flatten()
}

fn ascii(pair: &[Option<Bin>], row: BrailleRow) -> Option<char> {
    let mean = pair
        .iter()
        .flatten()
        .map(|bin| bin.mean)
        .fold(None, |most: Option<f64>, mean| Some(most.map_or(mean, |most| most.max(mean))))?;
    let level = row.share(mean) * f64::from(row.rows) - f64::from(row.at);
    let at = (level * 7.0).round();
    (at >= 1.0 || row.at == 0).then(|| ASCII[at.clamp(0.0, 7.0) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(mean: f64, max: f64) -> Option<Bin> {
        Some(Bin { min: 0.0, mean, max })
    }

    #[test]
    fn zero_is_a_dot_and_absent_is_none() {
        let row = BrailleRow { at: 0, rows: 1, low: 0.0, full: 10.0, is_log: false };
        assert_eq!(braille(&[bin(0.0, 0.0), None], row), Some('⡀'));
        assert_eq!(braille(&[None, bin(10.0, 10.0)], row), Some('⢸'));
        assert_eq!(braille(&[None, None], row), None);
        assert_eq!(ascii(&[None, None], row), None);
        assert_eq!((ascii(&[bin(0.0, 0.0)], row), ascii(&[bin(10.0, 10.0)], row)), (Some('_'), Some('#')));
    }

    #[test]
    fn peak_is_drawn_above_the_mean() {
        let rows: Vec<Option<char>> = (0..2)
            .map(|at| {
                braille(
                    &[bin(2.0, 10.0), bin(10.0, 10.0)],
                    BrailleRow { at, rows: 2, low: 0.0, full: 10.0, is_log: false },
                )
            })
            .collect();
        assert_eq!(rows, [Some('⣼'), Some('⢹')]);
    }

    #[test]
    fn logarithmic_scale_spreads_small_values() {
        let row = |is_log| BrailleRow { at: 0, rows: 1, low: 0.001, full: 1.0, is_log };
        assert_eq!((row(false).dots(0.01), row(true).dots(0.01), row(true).dots(0.1)), (1, 2, 3));
    }

    #[test]
    fn no_value_reaches_beyond_the_chart() {
        for value in [-5.0, 0.0, 1.0, 1e300, f64::MAX] {
            for full in [0.0, -1.0, 1e-300, 7.0] {
                let scales = [(0.0, false), (-f64::MAX, false), (1e-308, true), (-1.0, true)];
                for (at, (low, is_log)) in (0..3).flat_map(|at| scales.map(|scale| (at, scale))) {
                    let row = BrailleRow { at, rows: 3, low, full, is_log };
                    braille(&[bin(value, value), bin(value, value)], row);
                    ascii(&[bin(value, value)], row);
                    assert!(row.dots(value) <= 12);
                }
            }
        }
    }
}
