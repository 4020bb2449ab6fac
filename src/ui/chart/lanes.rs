//! One track over time: its spans as boxes, nested ones below those around them. A phase is filled with its look, another
//! span is between brackets. A column that several boxes share shows what takes most of it and, where they are no
//! phases, how full it is.
//!
//! ```text
//! F forward░░░░░░░░░░░░░░░B backward██████████████████████O▚▚
//!  ├layer 0──────┤├layer 1┤
//! ```

use std::ops::Range;

use gnntop_wire::NameId;
use ratatui::style::{Color, Modifier, Style};

use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use crate::ui::theme::PhaseStyle;
use gnntop_analysis::store::Lane;

/// Boxes that cover less of a cell than this are drawn thin.
const THIN: f64 = 0.5;

/// The cells of one track: what takes most of each, by depth.
pub struct LaneCells {
    rows: Vec<Vec<Option<LaneCell>>>,
    range: Range<u64>,
    columns: usize,
}

/// How full a column is of spans too many to be seen, from hardly to all.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII_HEIGHTS: [char; 8] = ['_', '_', '.', '-', '=', '+', '*', '#'];
/// Names that are distinguished in a cell.
const NAMES: usize = 4;

/// What takes a cell.
#[derive(Clone, Copy)]
struct LaneCell {
    /// The names that take most of it, with their shares; unused places have none.
    names: [(NameId, f64); NAMES],
    /// The share that anything takes.
    share: f64,
    boxes: u32,
    /// Columns of the last box.
    from: usize,
    to: usize,
}

impl LaneCell {
    const NOTHING: Self = Self { names: [(NameId::NONE, 0.0); NAMES], share: 0.0, boxes: 0, from: 0, to: 0 };

    fn add(&mut self, name: NameId, share: f64, from: usize, to: usize) {
        let known = self.names.iter().position(|(known, has)| *known == name && *has > 0.0);
        let least = || (0..NAMES).min_by(|a, b| self.names[*a].1.total_cmp(&self.names[*b].1)).unwrap_or(0);
        match known {
            Some(at) => self.names[at].1 += share,
            None => {
                let at = least();
                if share > self.names[at].1 {
                    self.names[at] = (name, share);
                }
            }
        }
        // Boxes that touch in a cell: its one name is that of the box that takes most of it.
        if self.boxes == 0 || share >= self.share {
            (self.from, self.to) = (from, to);
        }
        self.share += share;
        self.boxes = self.boxes.saturating_add(1);
    }

    /// The name that takes most of it.
    fn name(&self) -> NameId {
        self.names.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(NameId::NONE, |most| most.0)
    }

    /// Whether it represents too many boxes to see any.
    fn is_crowd(&self) -> bool {
        self.boxes > 2 || (self.boxes == 2 && self.from == self.to)
    }

    /// Whether both cells are of the same box, or of crowds of the same name.
    fn is_same_box(&self, other: &Self) -> bool {
        let same_box = (self.from, self.to) == (other.from, other.to) || (self.is_crowd() && other.is_crowd());
        self.is_crowd() == other.is_crowd() && same_box && self.name() == other.name()
    }
}

impl LaneCells {
    /// The cells of a lane over a time in this many columns, with at most `depth` rows.
    pub fn new(lane: &Lane, range: Range<u64>, columns: usize, depth: usize) -> Self {
        let mut cells = Self { rows: Vec::new(), range: range.clone(), columns };
        if range.is_empty() || columns == 0 {
            return cells;
        }
        for (start_ns, end_ns, left) in lane.older(range.clone()).filter(|(_, _, left)| left.busy_ns > 0) {
            let busy = left.busy_ns as f64 / end_ns.saturating_sub(start_ns).max(1) as f64;
            cells.take(left.longest, start_ns..end_ns, 0, Some(busy));
        }
        lane.each_box(range, |inner, at| {
            if at < depth {
                cells.take(inner.name, inner.start_ns..inner.end_ns, at, None);
            }
        });
        cells
    }

    /// How many rows there is something for.
    pub fn depth(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing covers a cell of the outermost row.
    pub fn is_free(&self, at: usize) -> bool {
        self.rows.first().and_then(|row| row.get(at)).is_none_or(Option::is_none)
    }

    fn row(&mut self, depth: usize) -> &mut Vec<Option<LaneCell>> {
        if depth >= self.rows.len() {
            self.rows.resize(depth + 1, vec![None; self.columns]);
        }
        &mut self.rows[depth]
    }

    /// The column of a time, that of the nearest end for one outside.
    fn column(&self, t_ns: u64) -> usize {
        let span_ns = (self.range.end - self.range.start) as f64;
        let passed_ns = t_ns.saturating_sub(self.range.start) as f64;
        ((passed_ns * self.columns as f64 / span_ns) as usize).min(self.columns - 1)
    }

    /// Gives a box the cells that it takes more of than others; `busy` is the share of its time that it takes, all of it where
    /// `None`.
    fn take(&mut self, name: NameId, time: Range<u64>, depth: usize, busy: Option<f64>) {
        let (from, to) = (self.column(time.start), self.column(time.end.max(time.start + 1) - 1));
        let column_ns = ((self.range.end - self.range.start) as f64 / self.columns as f64).max(1.0);
        let since = |t_ns: u64| t_ns.saturating_sub(self.range.start) as f64;
        let (start, end) = (since(time.start), since(time.end));
        for (at, cell) in self.row(depth)[from..=to].iter_mut().enumerate() {
            let cell_start = (from + at) as f64 * column_ns;
            let ns = end.min(cell_start + column_ns) - start.max(cell_start);
            let share = busy.unwrap_or((ns / column_ns).clamp(0.0, 1.0));
            // A box without any length is one all the same.
            cell.get_or_insert(LaneCell::NOTHING).add(name, share.max(f64::MIN_POSITIVE), from, to);
        }
    }

    /// Draws one row of the lane into the sheet's first row.
    pub fn draw(&self, sheet: &mut Sheet<'_>, depth: usize, scene: &Scene<'_>) {
        let Some(row) = self.rows.get(depth) else { return };
        let mut at = 0;
        while at < row.len() {
            let Some(taken) = &row[at] else {
                at += 1;
                continue;
            };
            let same = |cell: &&Option<LaneCell>| cell.is_some_and(|other| other.is_same_box(taken));
            let cells = row[at..].iter().take_while(same).count();
            draw_box(sheet, at as u16, &row[at..at + cells], scene);
            at += cells;
        }
    }
}

/// Draws the cells that one box has to itself, or that crowds of the same name have.
fn draw_box(sheet: &mut Sheet<'_>, x: u16, cells: &[Option<LaneCell>], scene: &Scene<'_>) {
    let Some(Some(first)) = cells.first() else { return };
    let name = scene.store.name(first.name());
    let shares: Vec<f64> = cells.iter().flatten().map(|taken| taken.share).collect();
    match scene.phase_style(name) {
        Some(look) => draw_phase(sheet, x, &shares, (!first.is_crowd()).then_some(name), &look, scene),
        None if first.is_crowd() || cells.len() < 2 => {
            // How full each column is: its spans are too many or too short to be seen.
            let heights = if scene.theme.ascii() { &ASCII_HEIGHTS } else { &HEIGHTS };
            for (x, share) in (x..).zip(shares) {
                sheet.cell(x, 0, heights[(share.clamp(0.0, 1.0) * 7.0).round() as usize], scene.theme.series());
            }
        }
        None => draw_span(sheet, x, cells.len() as u16, name, scene),
    }
}

/// A phase: its fill, with letter and name where there is room; a crowd of them has no name.
fn draw_phase(sheet: &mut Sheet<'_>, x: u16, shares: &[f64], name: Option<&str>, look: &PhaseStyle, scene: &Scene<'_>) {
    let room = shares.len() as u16;
    for (x, share) in (x..).zip(shares.iter().copied()) {
        let thin = scene.theme.glyph('▏', '!');
        let (c, style) = if share >= THIN { (look.fill, look.style()) } else { (thin, Style::new().fg(look.color)) };
        sheet.cell(x, 0, c, style);
    }
    if room >= 2 {
        let full = name.map(|name| format!("{} {name}", look.letter)).filter(|full| room > width(full));
        let text = full.unwrap_or_else(|| look.letter.to_string());
        sheet.text_within(x, 0, room, &text, text_on_phase(look, scene));
    }
}

/// Another span: brackets, with its name between them where there is room.
fn draw_span(sheet: &mut Sheet<'_>, x: u16, room: u16, name: &str, scene: &Scene<'_>) {
    let theme = scene.theme;
    (x + 1..x + room - 1).for_each(|x| sheet.cell(x, 0, theme.glyph('─', '-'), theme.dim()));
    sheet.cell(x, 0, theme.glyph('├', '['), theme.dim());
    sheet.cell(x + room - 1, 0, theme.glyph('┤', ']'), theme.dim());
    if room >= 4 {
        sheet.text_within(x + 1, 0, room - 2, &clip(name, room - 2, theme), theme.plain());
    }
}

/// Text on a phase's colour.
fn text_on_phase(look: &PhaseStyle, scene: &Scene<'_>) -> Style {
    if scene.theme.has_color() {
        Style::new().fg(Color::Black).bg(look.color).add_modifier(Modifier::BOLD)
    } else {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
