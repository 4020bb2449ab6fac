//! Labels in one row that never overlap: the first one gets the place. Epochs on the axis of the bars are labelled with them: each,
//! or every tenth where they would be too close.

use ratatui::style::Style;

use crate::ui::sheet::{Sheet, width};

/// The columns of a row that are still free.
pub struct Labels {
    taken: Vec<bool>,
    /// Labels begin here or further right.
    start: u16,
}

impl Labels {
    /// A free row from column `start` to before column `end`.
    pub fn new(start: u16, end: u16) -> Self {
        Self { taken: vec![false; usize::from(end)], start }
    }

    /// Writes a label in the first row of `sheet` with its middle at column `x`, moved in from the edges.
    pub fn place_around(&mut self, sheet: &mut Sheet<'_>, x: u16, text: &str, style: Style) -> bool {
        let width = width(text);
        let last = (self.taken.len() as u16).saturating_sub(width);
        self.place_from(sheet, x.saturating_sub(width / 2).min(last).max(self.start), text, style)
    }

    /// Writes a label that ends before column `end`, moved in from the edges.
    pub fn place_ending(&mut self, sheet: &mut Sheet<'_>, end: u16, text: &str, style: Style) -> bool {
        let end = end.max(self.start.saturating_add(width(text)));
        self.place_from(sheet, end.saturating_sub(width(text)), text, style)
    }

    /// Writes a label that begins at column `x`. Nothing is written where it would touch another one.
    pub fn place_from(&mut self, sheet: &mut Sheet<'_>, x: u16, text: &str, style: Style) -> bool {
        let (from, to) = (usize::from(x), usize::from(x.saturating_add(width(text))));
        // One free column on each side keeps labels apart.
        let around = from.saturating_sub(1)..(to + 1).min(self.taken.len());
        if x < self.start || to > self.taken.len() || self.taken[around].contains(&true) {
            return false;
        }
        self.taken[from..to].fill(true);
        sheet.text(x, 0, text, style);
        true
    }
}

/// Columns that an epoch must have on average for each to have a line...
const COLUMNS_A_LINE: u64 = 8;
/// ...and for each to have its number.
const COLUMNS_A_NUMBER: u64 = 12;

/// Epochs that begin in view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochBoundaries {
    /// Columns with the epoch that begins there.
    numbered: Vec<(u16, u64)>,
    lines: Vec<u16>,
}

impl EpochBoundaries {
    /// The boundaries among columns with their epochs, oldest first, in a chart of this many columns.
    pub fn new(columns: impl Iterator<Item = (u16, u64)>, width: usize) -> Self {
        let mut before = None;
        let mut begun: Vec<(u16, u64, u64)> = Vec::new();
        for (x, epoch) in columns {
            if let Some(before) = before.filter(|before| *before != epoch) {
                begun.push((x, before, epoch));
            }
            before = Some(epoch);
        }
        let are_apart = |n: usize, columns: u64| n as u64 * columns <= width as u64;
        // Of too many, those that begin a round number of epochs.
        let apart = (0..19).flat_map(|power| [1, 2, 5].map(|n| n * 10u64.pow(power)));
        let shown = |apart: u64| begun.iter().filter(move |(_, before, epoch)| before / apart != epoch / apart);
        let apart = apart.into_iter().find(|apart| are_apart(shown(*apart).count(), COLUMNS_A_NUMBER));
        let numbered = apart.map(|apart| shown(apart).map(|(x, _, epoch)| (*x, epoch - epoch % apart)).collect());
        // Where not each deserves a line, none does.
        let lines =
            if are_apart(begun.len(), COLUMNS_A_LINE) { begun.iter().map(|(x, ..)| *x).collect() } else { vec![] };
        Self { numbered: numbered.unwrap_or_default(), lines }
    }

    /// Columns with the epoch that begins there or, of several in a column, the roundest one.
    pub fn numbered(&self) -> impl Iterator<Item = (u16, u64)> {
        self.numbered.iter().copied()
    }

    /// Columns that deserve a line.
    pub fn lines(&self) -> impl Iterator<Item = u16> {
        self.lines.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::ui::sheet::Drawn;

    #[test]
    fn labels_keep_apart_and_inside() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
        let mut drawn = Drawn::default();
        let mut sheet = Sheet::new(&mut buffer, &mut drawn, Rect::new(0, 0, 20, 1));
        let mut labels = Labels::new(2, 20);
        assert!(labels.place_around(&mut sheet, 10, "abc", Style::new()));
        assert!(!labels.place_around(&mut sheet, 13, "xyz", Style::new()), "touches");
        assert!(labels.place_around(&mut sheet, 19, "end", Style::new()));
        assert!(labels.place_around(&mut sheet, 0, "go", Style::new()));
        assert!(!labels.place_from(&mut sheet, 19, "out", Style::new()));
        assert!(!labels.place_from(&mut sheet, 500, "out", Style::new()));
        assert!(!labels.place_ending(&mut sheet, 20, &"long ".repeat(40), Style::new()));
        assert_eq!(buffer, Buffer::with_lines(["  go     abc     end"]));
    }

    fn boundaries(epochs: impl Iterator<Item = u64>) -> EpochBoundaries {
        EpochBoundaries::new((8..).zip(epochs), 72)
    }

    #[test]
    fn few_epochs_are_all_shown() {
        let few = boundaries((0..72).map(|step| step / 24));
        assert_eq!(few.numbered().collect::<Vec<_>>(), [(32, 1), (56, 2)]);
        assert_eq!(few.lines().collect::<Vec<_>>(), [32, 56]);
    }

    #[test]
    fn where_each_step_is_an_epoch_some_have_a_number_and_none_a_line() {
        let many = boundaries(195..267);
        assert_eq!(many.numbered().collect::<Vec<_>>(), [(13, 200), (33, 220), (53, 240), (73, 260)]);
        assert_eq!(many.lines().count(), 0);
    }

    #[test]
    fn unordered_epochs_do_not_panic() {
        assert_eq!(boundaries(std::iter::empty()), EpochBoundaries::default());
        let wild = boundaries((0..72).map(|step| if step % 2 == 0 { u64::MAX } else { 0 }));
        assert!(wild.numbered().count() <= 9);
        assert_eq!(boundaries(std::iter::repeat_n(7, 72)).numbered().count(), 0);
    }
}
