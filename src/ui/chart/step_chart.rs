//! Bars over steps: 1 step a column, or several, stacked by phase, the newest at the right.
//!
//! ```text
//!                                  312 ms               checkpoint                  what was cut off, names of marks
//!                          ◔          !                 ◆                  ◔        flags
//!  60 ms┤                             ▲                 ┊                           bars
//!       │··············▄··············▓·················┊·····
//!  30 ms┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!       │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
//!        1,105                ═══════▲═                 epoch 4              1,234   steps, epochs, cursor, range
//! ```
//!
//! Where several steps share a column, the bar is the median one and a line goes up to the worst.

use ratatui::style::{Color, Style};

use crate::app::{AXIS_WIDTH, Target};
use crate::ui::chart::bars::{BarCell, BarStack};
use crate::ui::chart::flags::Flags;
use crate::ui::chart::labels::{self, Labels};
use crate::ui::chart::scale::ChartScale;
use crate::ui::scene::{OpenPhase, Scene};
use crate::ui::sheet::Sheet;
use crate::ui::theme::{PhaseStyle, Theme};
use gnntop_analysis::figures::{count, duration};
use gnntop_analysis::store::{Phase, StepColumn, StepRow};

/// Lower parts of a cell, by eighths.
pub const EIGHTHS: [char; 8] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// Everything that the bars are drawn from.
pub struct StepChart<'a> {
    columns: Vec<Option<StepBar<'a>>>,
    open: Option<OpenPhase<'a>>,
    /// The time of a column, where all are equally long.
    ns_per_column: Option<u64>,
    scale: ChartScale,
    /// Columns of the axis; none in a narrow panel.
    axis: u16,
    /// Whether there is a row for what was cut off, and one for step numbers.
    has_labels: bool,
    has_numbers: bool,
    /// The row above the bars, if there is one.
    flags: Option<Flags<'a>>,
    /// Rows of the bars.
    rows: u16,
    /// First column of the oldest bar.
    left: u16,
}

/// A column with what is drawn of it: by the clock that is shown, a row is looked up once.
struct StepBar<'a> {
    column: StepColumn<'a>,
    /// What the step that took longest took, as steps are measured now.
    worst_ns: Option<u64>,
    /// The step in the middle by the clock that is shown, and what it took.
    median: Option<StepRow<'a>>,
    median_ns: Option<u64>,
}

impl<'a> StepBar<'a> {
    fn new(column: StepColumn<'a>, scene: &Scene<'a>) -> Self {
        let (phases, measure) = (scene.app.phases(), scene.app.window().measure());
        let median = phases.by_clock(column.median);
        // A device has no batches: the unit of work is from the host's row.
        let median_ns = median.and_then(|row| measure.scale(&column.median, row.period_ns()));
        let is_same = column.worst.ordinal() == column.median.ordinal();
        let worst_ns = if is_same { median_ns } else { phases.step_ns(column.worst) };
        Self { column, worst_ns, median, median_ns }
    }
}

impl<'a> StepChart<'a> {
    /// The chart of this size; with flags, the steps that deserve one are marked above their bars.
    pub fn plan(width: u16, height: u16, has_flags: bool, scene: &Scene<'a>) -> Self {
        let axis = if width >= 30 { AXIS_WIDTH } else { 0 };
        let (has_labels, has_numbers) = (height >= 4, height >= 3);
        let has_flags = has_flags && height >= 6;
        let rows = height - u16::from(has_labels) - u16::from(has_numbers) - u16::from(has_flags);
        let window = scene.app.window();
        let open = if window.newest().is_none() { scene.open_phase() } else { None };
        let room = (width - axis).saturating_sub(if open.is_some() { 2 } else { 0 });
        let columns = window.columns(scene.store.steps(), usize::from(room)).into_iter();
        let columns: Vec<_> = columns.map(|column| column.map(|column| StepBar::new(column, scene))).collect();
        let ns_per_column = window.ns_per_column(scene.store.steps(), u64::from(room));
        let mut lengths: Vec<u64> = columns.iter().flatten().filter_map(|bar| bar.worst_ns).collect();
        if columns.is_empty() {
            lengths.extend(open.iter().map(|open| open.ns));
        }
        let scale = if window.is_log() {
            lengths.extend(columns.iter().flatten().filter_map(|bar| bar.median_ns));
            ChartScale::logarithmic(&lengths)
        } else {
            ChartScale::linear(&mut lengths)
        };
        let left = axis + room - (columns.len() as u16).min(room);
        let mut chart =
            Self { columns, open, ns_per_column, scale, axis, has_labels, has_numbers, flags: None, rows, left };
        chart.flags = has_flags.then(|| Flags::new(chart.shown().map(|(x, bar)| (x, &bar.column)), scene));
        chart
    }

    /// What the signs above the bars mean; `None` if there is no room for them.
    pub fn legend(&self, theme: &Theme) -> Option<String> {
        self.flags.as_ref().map(|flags| flags.legend(theme))
    }

    /// The time of a column, where all are equally long.
    pub fn ns_per_column(&self) -> Option<u64> {
        self.ns_per_column
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.columns.iter().all(Option::is_none)
    }

    /// Whether some steps are known only by the worst and the median of many.
    pub fn is_reduced(&self) -> bool {
        self.columns.iter().flatten().any(|bar| bar.column.is_reduced)
    }

    /// The most steps that share a column.
    pub fn most_steps(&self) -> u64 {
        self.columns.iter().flatten().map(|bar| bar.column.steps).max().unwrap_or(1)
    }

    /// Columns of the screen with their steps, the oldest first.
    fn shown(&self) -> impl DoubleEndedIterator<Item = (u16, &StepBar<'a>)> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(place, bar)| Some((self.left + place as u16, bar.as_ref()?)))
    }

    /// Draws the chart over the whole sheet.
    pub fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let first = u16::from(self.has_labels) + u16::from(self.flags.is_some());
        if self.axis > 0 {
            draw_axis(&mut sheet.part(0, first, self.axis, self.rows), &self.scale, scene.theme);
        }
        let mut stack = BarStack::default();
        let mut bars = sheet.rows(first, u16::from(self.has_numbers));
        self.draw_epochs(&mut bars, scene.theme);
        for (x, bar) in self.shown() {
            bars.offer(x, 0, 1, self.rows, Target::Step(bar.column.worst.ordinal()));
            self.draw_bar(&mut bars, x, bar, &mut stack, scene);
        }
        if let Some(open) = &self.open {
            self.draw_open(&mut bars, open, scene);
        }
        if self.has_labels {
            self.draw_labels(&mut sheet.part(0, 0, u16::MAX, 1), scene);
        }
        if let Some(flags) = &self.flags {
            flags.draw(&mut sheet.part(0, 1, u16::MAX, 1), scene.theme);
        }
        if self.has_numbers {
            let y = sheet.height() - 1;
            self.draw_numbers(&mut sheet.part(0, y, sheet.width(), 1), scene);
        }
    }

    /// Columns that begin an epoch, with its number.
    fn epochs(&self) -> labels::EpochBoundaries {
        labels::EpochBoundaries::new(self.shown().map(|(x, bar)| (x, bar.column.median.epoch())), self.columns.len())
    }

    fn draw_epochs(&self, sheet: &mut Sheet<'_>, theme: &Theme) {
        for x in self.epochs().lines() {
            (0..self.rows).for_each(|y| sheet.cell(x, y, theme.glyph('┊', ':'), theme.dim()));
        }
    }

    fn draw_bar(&self, sheet: &mut Sheet<'_>, x: u16, bar: &StepBar<'_>, stack: &mut BarStack, scene: &Scene<'_>) {
        let Some(worst_ns) = bar.worst_ns else {
            // Absent is not short.
            return sheet.cell(x, self.rows.saturating_sub(1), scene.theme.glyph('—', '-'), scene.theme.dim());
        };
        let mut height = 0;
        for (row, cell) in self.cut(bar, stack, scene).iter().enumerate() {
            if *cell != BarCell::Empty {
                let (c, style) = ink(*cell, &scene.phase_styles, scene.theme);
                height = row as u16 + 1;
                sheet.cell(x, self.rows - height, c, style);
            }
        }
        let reach = if bar.column.steps > 1 { self.scale.bar_rows(worst_ns, self.rows) } else { 0 };
        for row in height..reach {
            let c = if row + 1 == reach { scene.theme.glyph('╷', '.') } else { scene.theme.glyph('│', '|') };
            sheet.cell(x, self.rows - 1 - row, c, scene.theme.plain());
        }
        if worst_ns > self.scale.top_ns() {
            let style = if bar.column.steps > 1 { scene.theme.warning() } else { scene.theme.cut_off() };
            sheet.cell(x, 0, scene.theme.glyph('▲', '^'), style);
        }
    }

    /// The cells of a bar.
    fn cut<'s>(&self, bar: &StepBar<'_>, stack: &'s mut BarStack, scene: &Scene<'_>) -> &'s [BarCell] {
        let measure = scene.app.window().measure();
        let part = |phase: &Phase| measure.scale(&bar.column.median, bar.median?.phase_ns(phase.slot));
        let parts = scene.store.phases().iter().map(|phase| part(phase).unwrap_or(0));
        let top_ns = self.scale.linear_top_ns(bar.median_ns.unwrap_or(0), self.rows);
        stack.cut(parts, top_ns, self.rows)
    }

    /// A bar with stripes for what is not over yet.
    fn draw_open(&self, sheet: &mut Sheet<'_>, open: &OpenPhase<'_>, scene: &Scene<'_>) {
        let x = sheet.width().saturating_sub(1);
        let look = open.name.and_then(|name| scene.phase_style(name));
        let (fill, style) = match look {
            Some(look) => (look.fill, look.style()),
            None => (scene.theme.glyph('░', '#'), scene.theme.warning()),
        };
        for row in (0..self.scale.bar_rows(open.ns, self.rows)).step_by(2) {
            sheet.cell(x, self.rows - 1 - row, fill, style);
        }
        if open.ns > self.scale.top_ns() {
            sheet.cell(x, 0, scene.theme.glyph('▲', '^'), scene.theme.warning());
        }
    }

    /// Writes the values of bars that were cut off above them, the longest first, then the names of marks.
    fn draw_labels(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let mut labels = Labels::new(self.axis, sheet.width());
        if let Some(open) = &self.open {
            labels.place_ending(sheet, sheet.width(), &open.text(), scene.theme.warning());
        }
        let over = |(x, bar): (u16, &StepBar<'_>)| Some((bar.worst_ns.filter(|ns| *ns > self.scale.top_ns())?, x));
        let mut cut_off: Vec<(u64, u16)> = self.shown().filter_map(over).collect();
        cut_off.sort_unstable_by(|a, b| b.cmp(a));
        for (ns, x) in cut_off {
            labels.place_around(sheet, x, &duration(ns), scene.theme.warning());
        }
        if let Some(flags) = &self.flags {
            flags.draw_names(sheet, &mut labels, scene);
        }
    }

    /// Numbers or times at both ends, epochs where they begin, the selected range and the cursor.
    fn draw_numbers(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let theme = scene.theme;
        if let Some(range) = scene.app.window().range() {
            let is_in = |bar: &StepBar<'_>| bar.column.first < range.end && range.start < bar.column.ordinals().end;
            for (x, _) in self.shown().filter(|(_, bar)| is_in(bar)) {
                sheet.cell(x, 0, theme.glyph('═', '='), theme.accent());
            }
        }
        let mut labels = Labels::new(self.axis, sheet.width());
        if let Some(x) = self.cursor_column(scene) {
            labels.place_around(sheet, x, theme.text("▲", "^"), theme.accent());
        }
        if let Some((x, newest)) = self.shown().next_back() {
            let text = self.place_text(newest.column.ordinals().end - 1, scene);
            labels.place_ending(sheet, x + 1, &text, theme.dim());
        }
        for (x, epoch) in self.epochs().numbered() {
            labels.place_from(sheet, x, &format!("epoch {epoch}"), theme.dim());
        }
        if let Some((x, oldest)) = self.shown().next() {
            labels.place_from(sheet, x, &self.place_text(oldest.column.first, scene), theme.dim());
        }
    }

    /// The number of a step or, on an axis of time, when it ended.
    fn place_text(&self, ordinal: u64, scene: &Scene<'_>) -> String {
        let Some(row) = scene.store.steps().known_row(ordinal) else { return String::new() };
        if scene.app.window().is_by_time() {
            return duration(row.end_ns().saturating_sub(scene.store.first_ns().unwrap_or(0)));
        }
        let (known, step) = (row.ordinal(), row.step().0);
        match known == ordinal {
            true => count(step),
            // Of steps that are reduced few numbers are known; the program surely counts on between them.
            false => {
                let about = step.saturating_add(ordinal).saturating_sub(known);
                format!("{}{}", scene.theme.text("≈", "~"), count(about))
            }
        }
    }

    fn cursor_column(&self, scene: &Scene<'_>) -> Option<u16> {
        let cursor = scene.app.window().cursor()?;
        self.shown().filter(|(_, bar)| bar.column.ordinals().contains(&cursor)).map(|(x, _)| x).next_back()
    }
}

/// Draws an axis over the whole sheet.
pub fn draw_axis(sheet: &mut Sheet<'_>, scale: &ChartScale, theme: &Theme) {
    let (line, rows) = (sheet.width().saturating_sub(1), sheet.height());
    for y in 0..rows {
        sheet.cell(line, y, theme.glyph('│', '|'), theme.dim());
    }
    for (row, ns) in scale.ticks(rows) {
        let y = rows - 1 - row;
        sheet.text_ending(0, line, y, &duration(ns), theme.dim());
        sheet.cell(line, y, theme.glyph('┤', '+'), theme.dim());
    }
}

/// Character and style of a cell.
fn ink(cell: BarCell, looks: &[PhaseStyle], theme: &Theme) -> (char, Style) {
    let look = |index: usize| looks.get(index).copied().unwrap_or(PhaseStyle::UNKNOWN);
    match cell {
        BarCell::Empty => (' ', Style::new()),
        BarCell::Full(index) => (look(index).fill, look(index).style()),
        BarCell::Split { lower, eighths, upper } if theme.has_color() && !theme.ascii() => {
            let above = upper.map_or(Color::Reset, |index| look(index).color);
            (EIGHTHS[usize::from(eighths) % 8], Style::new().fg(look(lower).color).bg(above))
        }
        BarCell::Split { lower, eighths, .. } if eighths >= 4 => (look(lower).fill, Style::new()),
        BarCell::Split { upper: Some(upper), .. } => (look(upper).fill, look(upper).style()),
        BarCell::Split { lower, eighths, upper: None } => {
            let block = if theme.ascii() { '_' } else { EIGHTHS[usize::from(eighths) % 8] };
            (block, Style::new().fg(look(lower).color))
        }
    }
}
