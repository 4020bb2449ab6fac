//! The step bars: a column a step, stacked by phase, the newest at the right.
//!
//! ```text
//! ▌steps  a column a step ──────────────────────── 23.4 steps/s · 3.0 k graphs/s    title
//!                                  312 ms                                           what was cut off
//!  60 ms┤                             ▲                 ┊                           bars
//!       │··············▄··············▓·················┊·····
//!  30 ms┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!       │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
//!        1,105                        ▲                 epoch 4              1,234   steps, epochs, cursor
//! ```
//!
//! Where several steps share a column, the bar is the median one and a line goes up to the worst.

use ratatui::style::{Color, Style};

use super::bars::{Cell, Stack};
use super::labels::Labels;
use super::scale;
use super::sheet::Sheet;
use super::theme::{PhaseLook, Theme};
use super::{OpenPhase, Scene, Title, curve};
use crate::app::{AXIS_WIDTH, Panel};
use crate::figures::{count, duration, quantity};
use crate::store::StepColumn;

/// Throughput is that of this last while.
const THROUGHPUT_WINDOW_NS: u64 = 2_000_000_000;
/// Rows that the percentiles need: title, values, a row of curve, names.
const LEAST_FOR_CURVE: u16 = 4;
/// Lower parts of a cell, by eighths.
pub const EIGHTHS: [char; 8] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// Draws the panel.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    if scene.app.shows_percentiles() && !scene.store.steps().is_empty() && sheet.height() >= LEAST_FOR_CURVE {
        return curve::draw(sheet, scene);
    }
    let titled = sheet.height() >= 3;
    if titled {
        draw_title(sheet, scene);
    }
    let chart = Chart::plan(sheet.width(), sheet.height() - u16::from(titled), scene);
    let mut sheet = sheet.rows(u16::from(titled), 0);
    if chart.columns.is_empty() && chart.open.is_none() {
        let y = sheet.height() / 2;
        sheet.text(2.min(sheet.width()), y, nothing_yet(scene), scene.theme.dim());
        return;
    }
    chart.draw(&mut sheet, scene);
}

fn nothing_yet(scene: &Scene<'_>) -> &'static str {
    if scene.store.session().info().is_none() { "waiting for data" } else { "no steps yet" }
}

fn draw_title(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let window = scene.app.window();
    let note = match window.per_column() {
        1 => "a column a step".to_owned(),
        n => format!("{} steps a column, line up to the worst", count(n)),
    };
    let right = match scene.app.window().cursor().and_then(|cursor| scene.store.steps().row(cursor)) {
        Some(row) => format!("step {} selected: {}", count(row.step().0), duration(row.period_ns())),
        None => throughput(scene),
    };
    Title { panel: Panel::Steps, name: "steps", note: &note, right: &right }.draw(sheet, scene);
}

/// What the run gets done; nothing while it hangs.
fn throughput(scene: &Scene<'_>) -> String {
    if scene.open_phase().is_some() {
        let last_ns = scene.store.steps().last().map(|row| row.end_ns());
        let since = last_ns.map(|last| duration(scene.store.now_ns().saturating_sub(last)));
        return since.map(|since| format!("no step for {since}")).unwrap_or_default();
    }
    let recent = scene.store.recent_throughput(THROUGHPUT_WINDOW_NS);
    let rates = [
        (recent.steps_per_s, "steps/s"),
        (
            recent.graphs_per_s.or(recent.seeds_per_s),
            if recent.graphs_per_s.is_some() { "graphs/s" } else { "seeds/s" },
        ),
        (recent.edges_per_s, "edges/s"),
    ];
    // The note on shared columns needs the room more.
    let shown = if scene.app.window().per_column() > 1 { &rates[..1] } else { &rates[..] };
    let texts: Vec<String> =
        shown.iter().filter_map(|(rate, unit)| Some(format!("{} {unit}", quantity((*rate)?)))).collect();
    texts.join(scene.theme.text(" · ", " | "))
}

/// Everything that the bars are drawn from.
struct Chart<'a> {
    columns: Vec<StepColumn<'a>>,
    open: Option<OpenPhase<'a>>,
    top_ns: u64,
    /// Columns of the axis; none in a narrow panel.
    axis: u16,
    /// Whether there is a row for what was cut off, and one for step numbers.
    has_labels: bool,
    has_numbers: bool,
    /// Rows of the bars.
    rows: u16,
    /// First column of the oldest bar.
    left: u16,
}

impl<'a> Chart<'a> {
    fn plan(width: u16, height: u16, scene: &Scene<'a>) -> Self {
        let axis = if width >= 30 { AXIS_WIDTH } else { 0 };
        let (has_labels, has_numbers) = (height >= 4, height >= 3);
        let rows = height - u16::from(has_labels) - u16::from(has_numbers);
        let window = scene.app.window();
        let open = if window.newest().is_none() { scene.open_phase() } else { None };
        let room = (width - axis).saturating_sub(if open.is_some() { 2 } else { 0 });
        let steps = scene.store.steps();
        let columns = steps.newest_columns(window.newest(), window.per_column(), usize::from(room));
        let mut lengths: Vec<u64> = columns.iter().map(|column| column.worst.period_ns()).collect();
        if columns.is_empty() {
            lengths.extend(open.iter().map(|open| open.ns));
        }
        let left = axis + room - (columns.len() as u16).min(room);
        Self { columns, open, top_ns: scale::top_ns(&mut lengths), axis, has_labels, has_numbers, rows, left }
    }

    fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let first = u16::from(self.has_labels);
        if self.axis > 0 {
            draw_axis(&mut sheet.part(0, first, self.axis, self.rows), self.top_ns, scene.theme);
        }
        let mut stack = Stack::default();
        let mut bars = sheet.rows(first, u16::from(self.has_numbers));
        self.draw_epochs(&mut bars, scene.theme);
        for (x, column) in (self.left..).zip(&self.columns) {
            self.draw_bar(&mut bars, x, column, &mut stack, scene);
        }
        if let Some(open) = &self.open {
            self.draw_open(&mut bars, open, scene);
        }
        if self.has_labels {
            self.draw_cut_off(&mut sheet.part(0, 0, sheet.width(), 1), scene);
        }
        if self.has_numbers {
            let y = sheet.height() - 1;
            self.draw_numbers(&mut sheet.part(0, y, sheet.width(), 1), scene);
        }
    }

    /// Columns that begin an epoch, with its number.
    fn epochs(&self) -> impl Iterator<Item = (u16, u64)> {
        let pairs = self.columns.iter().zip(self.columns.iter().skip(1));
        (self.left + 1..).zip(pairs).filter_map(|(x, (before, column))| {
            let epoch = column.median.epoch();
            (before.median.epoch() != epoch).then_some((x, epoch))
        })
    }

    fn draw_epochs(&self, sheet: &mut Sheet<'_>, theme: &Theme) {
        for (x, _) in self.epochs() {
            (0..self.rows).for_each(|y| sheet.cell(x, y, theme.glyph('┊', ':'), theme.dim()));
        }
    }

    fn draw_bar(&self, sheet: &mut Sheet<'_>, x: u16, column: &StepColumn<'_>, stack: &mut Stack, scene: &Scene<'_>) {
        let parts = scene.store.phases().iter().map(|phase| column.median.phase_ns(phase.slot));
        let cells = stack.cut(parts, self.top_ns, self.rows);
        let mut height = 0;
        for (row, cell) in cells.iter().enumerate().filter(|(_, cell)| **cell != Cell::Empty) {
            let (c, style) = ink(*cell, &scene.looks, scene.theme);
            height = row as u16 + 1;
            sheet.cell(x, self.rows - height, c, style);
        }
        let worst_ns = column.worst.period_ns();
        let reach = if column.steps > 1 { self.rows_of(worst_ns) } else { 0 };
        for row in height..reach {
            let c = if row + 1 == reach { scene.theme.glyph('╷', '.') } else { scene.theme.glyph('│', '|') };
            sheet.cell(x, self.rows - 1 - row, c, scene.theme.plain());
        }
        if worst_ns > self.top_ns {
            let style = if column.steps > 1 { scene.theme.warning() } else { scene.theme.cut_off() };
            sheet.cell(x, 0, scene.theme.glyph('▲', '^'), style);
        }
    }

    /// Rows that a bar of this length reaches into.
    fn rows_of(&self, ns: u64) -> u16 {
        let rows = (u128::from(ns) * u128::from(self.rows)).div_ceil(u128::from(self.top_ns));
        u16::try_from(rows).unwrap_or(u16::MAX).min(self.rows)
    }

    /// A bar with stripes for what is not over yet.
    fn draw_open(&self, sheet: &mut Sheet<'_>, open: &OpenPhase<'_>, scene: &Scene<'_>) {
        let x = sheet.width().saturating_sub(1);
        let look = scene.look(open.name);
        let (fill, style) = match look {
            Some(look) => (look.fill, look.style()),
            None => (scene.theme.glyph('░', '#'), scene.theme.warning()),
        };
        for row in (0..self.rows_of(open.ns)).step_by(2) {
            sheet.cell(x, self.rows - 1 - row, fill, style);
        }
        if open.ns > self.top_ns {
            sheet.cell(x, 0, scene.theme.glyph('▲', '^'), scene.theme.warning());
        }
    }

    /// Writes the values of bars that were cut off above them, the longest first.
    fn draw_cut_off(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let mut labels = Labels::new(self.axis, sheet.width());
        if let Some(open) = &self.open {
            let text = format!("{} open for {}", open.name, duration(open.ns));
            labels.place_ending(sheet, sheet.width(), &text, scene.theme.warning());
        }
        let over = |(x, column): (u16, &StepColumn<'_>)| {
            let ns = column.worst.period_ns();
            (ns > self.top_ns).then_some((ns, x))
        };
        let mut cut_off: Vec<(u64, u16)> = (self.left..).zip(&self.columns).filter_map(over).collect();
        cut_off.sort_unstable_by(|a, b| b.cmp(a));
        for (ns, x) in cut_off {
            labels.place_around(sheet, x, &duration(ns), scene.theme.warning());
        }
    }

    /// Step numbers at both ends, epochs where they begin, and the cursor.
    fn draw_numbers(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let theme = scene.theme;
        let mut labels = Labels::new(self.axis, sheet.width());
        if let Some(x) = self.cursor_column(scene) {
            labels.place_around(sheet, x, theme.text("▲", "^"), theme.accent());
        }
        let number = |ordinal: u64| scene.store.steps().row(ordinal).map(|row| count(row.step().0)).unwrap_or_default();
        if let Some(newest) = self.columns.last() {
            let end = self.left + self.columns.len() as u16;
            labels.place_ending(sheet, end, &number(newest.first + newest.steps - 1), theme.dim());
        }
        for (x, epoch) in self.epochs() {
            labels.place_from(sheet, x, &format!("epoch {epoch}"), theme.dim());
        }
        if let Some(oldest) = self.columns.first() {
            labels.place_from(sheet, self.left, &number(oldest.first), theme.dim());
        }
    }

    fn cursor_column(&self, scene: &Scene<'_>) -> Option<u16> {
        let cursor = scene.app.window().cursor()?;
        let holds = |column: &StepColumn<'_>| (column.first..column.first + column.steps).contains(&cursor);
        let at = self.columns.iter().position(holds)?;
        Some(self.left + at as u16)
    }
}

/// Draws an axis over the whole sheet, up to `top_ns`.
pub fn draw_axis(sheet: &mut Sheet<'_>, top_ns: u64, theme: &Theme) {
    let (line, rows) = (sheet.width().saturating_sub(1), sheet.height());
    for y in 0..rows {
        sheet.cell(line, y, theme.glyph('│', '|'), theme.dim());
    }
    for (row, ns) in scale::ticks(top_ns, rows) {
        let y = rows - 1 - row;
        sheet.text_ending(0, line, y, &duration(ns), theme.dim());
        sheet.cell(line, y, theme.glyph('┤', '+'), theme.dim());
    }
}

/// Character and style of a cell.
fn ink(cell: Cell, looks: &[PhaseLook], theme: &Theme) -> (char, Style) {
    let look = |index: usize| looks.get(index).copied().unwrap_or(PhaseLook::UNKNOWN);
    match cell {
        Cell::Empty => (' ', Style::new()),
        Cell::Full(index) => (look(index).fill, look(index).style()),
        Cell::Split { lower, eighths, upper } if theme.has_color() && !theme.ascii() => {
            let above = upper.map_or(Color::Reset, |index| look(index).color);
            (EIGHTHS[usize::from(eighths) % 8], Style::new().fg(look(lower).color).bg(above))
        }
        Cell::Split { lower, eighths, .. } if eighths >= 4 => (look(lower).fill, Style::new()),
        Cell::Split { upper: Some(upper), .. } => (look(upper).fill, look(upper).style()),
        Cell::Split { lower, eighths, upper: None } => {
            let block = if theme.ascii() { '_' } else { EIGHTHS[usize::from(eighths) % 8] };
            (block, Style::new().fg(look(lower).color))
        }
    }
}
