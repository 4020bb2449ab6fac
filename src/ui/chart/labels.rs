//! Labels in one row that never overlap: the first one gets the place.

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

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::ui::drawn::Drawn;

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
}
