//! A part of the screen to write on. Whatever does not fit is left out: a panel may be given any size, and names of
//! any script and length, without reaching beyond its edges. A sheet learns where it shows what the mouse can point at, and which
//! of its lines are shown.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::theme::Theme;
use crate::app::{LineExtent, Target};

/// A rectangle of the screen. Positions count from its upper left corner.
pub struct Sheet<'a> {
    buffer: &'a mut Buffer,
    drawn: &'a mut Drawn,
    area: Rect,
}

impl<'a> Sheet<'a> {
    /// The part of `area` that is on the screen. What drawing finds out is added to `drawn`.
    pub fn new(buffer: &'a mut Buffer, drawn: &'a mut Drawn, area: Rect) -> Self {
        let area = area.intersection(buffer.area);
        Self { buffer, drawn, area }
    }

    /// Columns.
    pub fn width(&self) -> u16 {
        self.area.width
    }

    /// Rows.
    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// A part of this sheet.
    pub fn part(&mut self, x: u16, y: u16, width: u16, height: u16) -> Sheet<'_> {
        Sheet { area: self.area(x, y, width, height), buffer: self.buffer, drawn: self.drawn }
    }

    /// Lets the mouse point at `target` in a part of this sheet.
    pub fn offer(&mut self, x: u16, y: u16, width: u16, height: u16, target: Target) {
        let area = self.area(x, y, width, height);
        if !area.is_empty() {
            self.drawn.spots.push(Spot { area, target });
        }
    }

    /// Notes how far the lines of the view go.
    pub fn set_extent(&mut self, extent: LineExtent) {
        self.drawn.extent = Some(extent);
    }

    /// How far the lines of the view go, as far as it is drawn.
    pub fn extent(&self) -> Option<LineExtent> {
        self.drawn.extent
    }

    /// Notes how far the text about the selected line, of which `lines` do not fit into `rows`, can be scrolled.
    pub fn set_text_extent(&mut self, lines: usize, rows: u16) {
        let text = (lines.saturating_sub(usize::from(rows)), page(rows));
        self.drawn.extent = Some(LineExtent { text, ..self.drawn.extent.unwrap_or_default() });
    }

    /// Position of a part of this sheet on the screen.
    fn area(&self, x: u16, y: u16, width: u16, height: u16) -> Rect {
        let (x, y) = (x.min(self.area.width), y.min(self.area.height));
        let (width, height) = (width.min(self.area.width - x), height.min(self.area.height - y));
        Rect { x: self.area.x + x, y: self.area.y + y, width, height }
    }

    /// The rows from `y` on, all but the `bottom` last ones.
    pub fn rows(&mut self, y: u16, bottom: u16) -> Sheet<'_> {
        let height = self.height().saturating_sub(y).saturating_sub(bottom);
        self.part(0, y, self.width(), height)
    }

    /// Writes one character.
    pub fn cell(&mut self, x: u16, y: u16, c: char, style: Style) {
        if x < self.area.width && y < self.area.height && c.width() == Some(1) {
            let (x, y) = (self.area.x + x, self.area.y + y);
            if let Some(cell) = self.buffer.cell_mut((x, y)) {
                cell.set_char(c).set_style(style);
            }
        }
    }

    /// Writes text, cut off at the edge. Returns the column after it.
    pub fn text(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        self.text_within(x, y, self.area.width.saturating_sub(x), text, style)
    }

    /// Writes text, cut off after `width` columns. Returns the column after it.
    pub fn text_within(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let width = width.min(self.area.width - x);
        let (end, _) = self.buffer.set_stringn(self.area.x + x, self.area.y + y, text, usize::from(width), style);
        end - self.area.x
    }

    /// Writes text that ends before the column `end`. Text that would begin before `start` is cut off at its end.
    pub fn text_ending(&mut self, start: u16, end: u16, y: u16, text: &str, style: Style) {
        let room = end.saturating_sub(start);
        let x = end.saturating_sub(width(text).min(room));
        self.text_within(x, y, room, text, style);
    }

    /// Fills a row from column `x` on.
    pub fn fill_row(&mut self, x: u16, y: u16, c: char, style: Style) {
        (x..self.area.width).for_each(|x| self.cell(x, y, c, style));
    }
}

/// Columns that text takes, at most 65,535.
pub fn width(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// The text, or as much of its beginning as fits into `columns` with a sign that something is missing.
pub fn clip<'t>(text: &'t str, columns: u16, theme: &Theme) -> Cow<'t, str> {
    let columns = usize::from(columns);
    // Nothing is measured that could not fit anyway: names may be a megabyte long.
    let start: &str = text.char_indices().nth(columns * 4 + 4).map_or(text, |(at, _)| &text[..at]);
    if start.len() == text.len() && text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    let mut clipped: String = start.chars().take_while(fits).collect();
    if columns > 0 {
        clipped.push(theme.glyph('…', '~'));
    }
    Cow::Owned(clipped)
}

/// The same, with the sign in the first half: names of spans often differ at their ends.
pub fn clip_inside<'t>(text: &'t str, columns: u16, theme: &Theme) -> Cow<'t, str> {
    let sides = columns.saturating_sub(1);
    if width(text) <= columns || sides < 8 {
        return clip(text, columns, theme);
    }
    let begin = clip(text, sides / 3 + 1, theme);
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= usize::from(sides - sides / 3)
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    Cow::Owned(begin.chars().chain(end.into_iter().rev()).collect())
}

/// A part of the screen that means something to the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where it is.
    pub area: Rect,
    /// What it is.
    pub target: Target,
}

/// What a drawing learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// What the mouse can point at, in the order in which it was drawn: later items are on top.
    pub spots: Vec<Spot>,
    /// How far the view's lines go; `None` if it has none.
    pub extent: Option<LineExtent>,
}

/// The first of `lines` lines to show in `rows` rows of a view scrolled to line `at`; the last rows are never left empty.
/// Notes how far the view can be scrolled.
pub fn first_scrolled(sheet: &mut Sheet<'_>, at: usize, lines: usize, rows: u16) -> usize {
    let last = lines.saturating_sub(usize::from(rows));
    sheet.set_extent(LineExtent { last, page: page(rows), ..LineExtent::default() });
    at.min(last)
}

/// The selected one of `lines` lines, where `at` was selected among perhaps more, and the first one to show in `rows` rows.
/// Notes how far the selection can be moved.
pub fn selected_and_first(sheet: &mut Sheet<'_>, at: usize, lines: usize, rows: u16) -> (usize, usize) {
    let last = lines.saturating_sub(1);
    sheet.set_extent(LineExtent { last, page: page(rows), ..LineExtent::default() });
    (at.min(last), first_shown(at, lines, rows))
}

/// The first of `lines` lines to show in `rows` rows, so that the line `at` is among them, if possible in the middle.
pub fn first_shown(at: usize, lines: usize, rows: u16) -> usize {
    let rows = usize::from(rows);
    at.min(lines.saturating_sub(1)).saturating_sub(rows / 2).min(lines.saturating_sub(rows))
}

/// A page has all rows but one, which shows where one was.
fn page(rows: u16) -> usize {
    usize::from(rows).saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::theme::ColorDepth;

    fn clipped(text: &str, columns: u16) -> String {
        clip(text, columns, &Theme::new(ColorDepth::None, false)).into_owned()
    }

    #[test]
    fn names_that_differ_at_their_ends_still_differ_once_clipped() {
        let theme = Theme::new(ColorDepth::None, false);
        let place = "wait for the device: item in train (train.py:41)";
        assert_eq!(clip_inside(place, 20, &theme), "wait f…(train.py:41)");
        assert_eq!((clip_inside(place, 60, &theme).as_ref(), clip_inside(place, 3, &theme).as_ref()), (place, "wa…"));
        for columns in 0..60 {
            assert!(width(&clip_inside("前向传播 of a layer, 前向传播 of another", columns, &theme)) <= columns);
        }
    }

    #[test]
    fn text_is_clipped_by_the_columns_it_takes() {
        assert_eq!(clipped("forward", 7), "forward");
        assert_eq!(clipped("forward", 6), "forwa…");
        assert_eq!(clipped("前向传播", 8), "前向传播");
        assert_eq!(clipped("前向传播", 7), "前向传…");
        assert_eq!(clipped("前向传播", 6), "前向…", "no half character");
        assert_eq!(clipped("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}", "accents take no room");
        assert_eq!(clipped("abc", 1), "…");
        assert_eq!(clipped("abc", 0), "");
    }

    #[test]
    fn a_megabyte_of_name_is_clipped_like_any_other() {
        assert_eq!(clipped(&"x".repeat(1 << 20), 5), "xxxx…");
        assert!(clipped(&"\u{301}".repeat(1 << 20), 5).len() < 200);
    }

    #[test]
    fn nothing_is_written_beyond_the_edges() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 3));
        let mut drawn = Drawn::default();
        let mut all = Sheet::new(&mut buffer, &mut drawn, Rect::new(0, 0, 100, 100));
        assert_eq!((all.width(), all.height()), (10, 3));
        let mut part = all.part(3, 1, 4, 1);
        part.text(2, 0, "wide text", Style::new());
        part.text(9, 0, "x", Style::new());
        part.text(0, 7, "x", Style::new());
        part.cell(4, 0, 'x', Style::new());
        part.text_ending(0, 2, 0, "abc", Style::new());
        part.part(50, 50, 50, 50).text(0, 0, "x", Style::new());
        assert_eq!(buffer, Buffer::with_lines(["          ", "   abwi   ", "          "]));
    }

    #[test]
    fn the_selected_line_is_shown_and_no_row_is_wasted() {
        for rows in 0..12u16 {
            for lines in 0..30 {
                for at in 0..40 {
                    let first = first_shown(at, lines, rows);
                    let shown = first..lines.min(first + usize::from(rows));
                    assert_eq!(shown.len(), lines.min(usize::from(rows)));
                    assert!(shown.is_empty() || shown.contains(&at.min(lines - 1)));
                }
            }
        }
    }
}
