//! Lines of text and charts below the step bars, on the same columns: what the views of memory, hardware and energy are made
//! of. A view lists its lines; only those on the screen are drawn and only their series read.
//!
//! ```text
//! ▌steps  1 step a column ────────────────────────── 23.4 steps/s    the bars
//!         1,105                          ▲                 1,234
//! ─cpu  /proc/stat ───────────────────────────────────────────────   heading
//!  machine  1.97 of 2 cores, steal 2.0 %                     0.1 s   fact
//!  2 cores⣤⣤⣴⣶⣿⣿⣶⣶⣤⣤⣤⣤⣤⣤⣤⣤⣤⣶⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣶⣶⣶⣶⣤⣤⣤⣤⣤⣤   chart
//! ```

use ratatui::style::Style;

use crate::app::AXIS_WIDTH;
use crate::ui::chart::braille;
use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::steps;
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, first_scrolled, width};
use crate::wrap::wrapped;
use gnntop_analysis::energy::{ComponentEnergy, EnergyBook, EnergyScope};
use gnntop_analysis::figures::significant;
use gnntop_analysis::store::{Bin, CounterSeries, LoggedValue, Series, Signal, TimeColumns};

/// Columns of what a fact is about.
const ABOUT: u16 = 16;
/// Columns between a fact and what is at its right.
const RIGHT_SPACE: u16 = 2;
/// Most rows of a fact.
const MOST_ROWS: usize = 4;
/// Rows of the bars: title, labels, bars and numbers.
const BARS: std::ops::RangeInclusive<u16> = 4..=9;
/// Bodies with fewer rows have no bars.
const BARS_FROM: u16 = 10;

/// What a chart shows.
#[derive(Clone, Copy)]
pub enum ChartSource<'a> {
    /// A signal: a gauge's values, a counter's increase per second.
    Signal(&'a Signal),
    /// A counter of the program's own.
    Counter(&'a CounterSeries),
    /// A value that the program logs: from the least that is shown, with signs where it is not finite and where it begins to
    /// diverge.
    Logged(LoggedValue<'a>),
    /// Values that hold for a while.
    Values(&'a Series<f64>),
    /// A cumulative counter: its increase per second.
    Rate(&'a Series<f64>),
    /// Power of a component, in watts.
    Power {
        /// Who knows.
        book: &'a EnergyBook,
        /// The component.
        component: &'a ComponentEnergy,
        /// The whole of it, or what the job used.
        scope: EnergyScope,
    },
}

impl ChartSource<'_> {
    /// What it was in each column.
    pub fn bins(&self, columns: &TimeColumns, now_ns: u64) -> Vec<Option<Bin>> {
        match self {
            Self::Signal(signal) => signal.columns(columns, now_ns),
            Self::Counter(counter) | Self::Logged(LoggedValue { counter, .. }) => counter.columns(columns, now_ns),
            Self::Values(series) => series.value_columns(columns, now_ns, None),
            Self::Rate(series) => series.rate_columns(columns, now_ns),
            Self::Power { book, component, scope } => {
                let column = |at: usize| {
                    let watts = book.watts(component, *scope, columns.start_ns(at)..columns.start_ns(at + 1))?;
                    Some(Bin { min: watts, mean: watts, max: watts })
                };
                (0..columns.count()).map(column).collect()
            }
        }
    }

    /// The mean in the column under the cursor, in the source's unit, per second where it counts.
    pub fn at_cursor(&self, axis: &TimeAxis, now_ns: u64) -> Option<f64> {
        let time = axis.cursor_time()?;
        let column = TimeColumns::from_edges(vec![time.start, time.end]);
        self.bins(&column, now_ns).first().copied().flatten().map(|bin| bin.mean)
    }
}

/// One row of a view.
pub enum StripRow<'a> {
    /// Begins a part.
    Heading {
        /// Its name.
        name: String,
        /// What to know to read it.
        note: String,
    },
    /// A value or why there is none.
    Fact {
        /// What it is about.
        about: String,
        /// The value, or the reason.
        value: Result<String, String>,
        /// The text at the right, such as its age or label.
        right: String,
    },
    /// A row of a chart.
    Chart {
        /// What it shows.
        source: ChartSource<'a>,
        /// The text left of its top row.
        label: Label,
        /// The value at its top; its own largest value in view where `None`.
        full: Option<f64>,
        /// Which of its rows, 0 at the bottom.
        row: u16,
        /// Its rows.
        rows: u16,
    },
    /// What did not fit into the row of a fact.
    More {
        /// The text.
        text: String,
        /// Whether it is a value, and no reason for the lack of one.
        is_known: bool,
    },
    /// What is wrong.
    Warning(String),
    /// How to read the lines above.
    Note(String),
    /// Free text.
    Text(String),
}

impl<'a> StripRow<'a> {
    /// A heading.
    pub fn heading(name: &str, note: &str) -> Self {
        Self::Heading { name: name.to_owned(), note: note.to_owned() }
    }

    /// A fact with nothing at its right.
    pub fn fact(about: &str, value: Result<String, String>) -> Self {
        Self::Fact { about: about.to_owned(), value, right: String::new() }
    }

    /// All rows of a chart, the label at its top one.
    pub fn chart(source: ChartSource<'a>, label: Label, full: Option<f64>, rows: u16) -> impl Iterator<Item = Self> {
        (0..rows).rev().map(move |row| Self::Chart { source, label: label.clone(), full, row, rows })
    }
}

/// The text left of a chart, in seven columns.
#[derive(Clone)]
pub enum Label {
    /// A word.
    Word(String),
    /// The value at the top of the chart, written like this.
    Top(fn(f64) -> String),
}

/// Draws the step bars and, below them, the lines from `first` on. `lines` is given the axis that all share.
pub fn draw<'a>(
    body: &mut Sheet<'_>,
    scene: &Scene<'a>,
    first: usize,
    lines: impl FnOnce(&TimeAxis) -> Vec<StripRow<'a>>,
) {
    let axis = TimeAxis::new(body.width(), scene);
    let bars = bar_rows(body.height(), scene);
    if bars > 0 {
        steps::draw(&mut body.part(0, 0, u16::MAX, bars), scene);
    }
    let lines: Vec<StripRow<'a>> = lines(&axis).into_iter().flat_map(|line| in_rows(line, body.width())).collect();
    let mut rest = body.rows(bars, 0);
    let rows = rest.height();
    let first = first_scrolled(&mut rest, first, lines.len(), rows);
    let mut memory = SeriesCache::default();
    for (y, line) in (0..rest.height()).zip(lines.iter().skip(first)) {
        draw_line(&mut rest.part(0, y, u16::MAX, 1), line, &axis, &mut memory, scene);
    }
    let below = lines.len().saturating_sub(first + usize::from(rows));
    if below > 0 && rows > 1 {
        let text = format!(" {} {below} more lines ", scene.theme.text("↓", "down:"));
        let y = rest.height() - 1;
        let start = rest.width().saturating_sub(width(&text));
        rest.text(start, y, &text, scene.theme.warning());
    }
}

/// Rows of the step bars in a body of this height.
pub fn bar_rows(height: u16, scene: &Scene<'_>) -> u16 {
    let has_bars = height >= BARS_FROM && !scene.store.steps().is_empty();
    if has_bars { (height / 4).clamp(*BARS.start(), *BARS.end()) } else { 0 }
}

/// A fact longer than its row continues in rows below: a reason is of use only as a whole.
fn in_rows<'a>(line: StripRow<'a>, screen: u16) -> Vec<StripRow<'a>> {
    let StripRow::Fact { about, value, right } = line else { return vec![line] };
    let (text, is_known) = match &value {
        Ok(text) => (text, true),
        Err(reason) => (reason, false),
    };
    let room = fact_end(screen, &right).saturating_sub(1 + ABOUT + 2).max(8);
    let mut rows = wrapped(text, usize::from(room)).into_iter().take(MOST_ROWS);
    let first = rows.next().unwrap_or_default();
    let value = if is_known { Ok(first) } else { Err(first) };
    let more = rows.map(|text| StripRow::More { text, is_known });
    std::iter::once(StripRow::Fact { about, value, right }).chain(more).collect()
}

/// The series of the chart drawn last: its rows follow each other.
#[derive(Default)]
struct SeriesCache {
    source: Option<usize>,
    halves: Vec<Option<Bin>>,
}

impl SeriesCache {
    fn halves(&mut self, source: &ChartSource<'_>, axis: &TimeAxis, scene: &Scene<'_>) -> &[Option<Bin>] {
        let key = match source {
            ChartSource::Signal(signal) => std::ptr::from_ref(*signal) as usize,
            ChartSource::Counter(counter) => std::ptr::from_ref(*counter) as usize,
            ChartSource::Logged(logged) => std::ptr::from_ref(logged.counter) as usize,
            ChartSource::Values(series) | ChartSource::Rate(series) => std::ptr::from_ref(*series) as usize,
            ChartSource::Power { component, .. } => std::ptr::from_ref(*component) as usize,
        };
        if self.source != Some(key) {
            self.halves = source.bins(&axis.columns.halved(), scene.store.now_ns());
            self.source = Some(key);
        }
        &self.halves
    }
}

fn draw_line(sheet: &mut Sheet<'_>, line: &StripRow<'_>, axis: &TimeAxis, memory: &mut SeriesCache, scene: &Scene<'_>) {
    let theme = scene.theme;
    match line {
        StripRow::Heading { name, note } => {
            sheet.fill_row(0, 0, theme.glyph('─', '-'), theme.dim());
            let x = sheet.text(1, 0, &format!("{name} "), theme.strong());
            let room = sheet.width().saturating_sub(x + 3);
            if !note.is_empty() && room > 8 {
                sheet.text(x, 0, &format!(" {} ", clip(note, room, theme)), theme.dim());
            }
        }
        StripRow::Fact { about, value, right } => draw_fact(sheet, about, value, right, scene),
        StripRow::Chart { source, label, full, row, rows } => {
            let halves = memory.halves(source, axis, scene);
            let full = full.unwrap_or_else(|| halves.iter().flatten().map(|bin| bin.max).fold(0.0, f64::max));
            let label = match label {
                Label::Word(word) => word.clone(),
                Label::Top(write) => write(full),
            };
            if row + 1 == *rows {
                let is_long = width(&label) > AXIS_WIDTH - 1;
                let label = if is_long { label.replace(' ', "") } else { label };
                sheet.text_within(1, 0, AXIS_WIDTH - 1, &clip(&label, AXIS_WIDTH - 1, theme), theme.dim());
            }
            let mark = axis.cursor.map(|column| (column, theme.accent()));
            let mut shown = braille::BrailleRow { at: *row, rows: *rows, low: 0.0, full, is_log: false };
            if let ChartSource::Logged(_) = source {
                (shown.low, shown.full) = range(halves);
                shown.is_log = scene.app.window().is_log();
            }
            braille::draw(sheet, axis.left, halves, shown, mark, theme);
            if let ChartSource::Logged(logged) = source {
                draw_signs(sheet, logged, axis, &shown, scene);
            }
        }
        StripRow::More { text, is_known } => {
            let room = sheet.width().saturating_sub(ABOUT + 2);
            let style = if *is_known { theme.plain() } else { theme.dim() };
            sheet.text(ABOUT + if *is_known { 1 } else { 3 }, 0, &clip(text, room, theme), style);
        }
        StripRow::Warning(text) => {
            let room = sheet.width().saturating_sub(2);
            sheet.text(1, 0, &clip(text, room, theme), theme.warning());
        }
        StripRow::Note(text) => {
            let room = sheet.width().saturating_sub(ABOUT + 2);
            sheet.text(ABOUT + 1, 0, &clip(text, room, theme), theme.dim());
        }
        StripRow::Text(text) => {
            let room = sheet.width().saturating_sub(2);
            sheet.text(1, 0, &clip(text, room, theme), theme.plain());
        }
    }
}

/// The smallest and the largest value; 0 without any.
fn range(bins: &[Option<Bin>]) -> (f64, f64) {
    let all = bins.iter().flatten().map(|bin| (bin.min, bin.max));
    all.reduce(|(low, high), (min, max)| (low.min(min), high.max(max))).unwrap_or_default()
}

/// Adds what a chart of a logged value has beside its dots: the value at its bottom, and signs at its top.
fn draw_signs(
    sheet: &mut Sheet<'_>,
    logged: &LoggedValue<'_>,
    axis: &TimeAxis,
    row: &braille::BrailleRow,
    scene: &Scene<'_>,
) {
    let theme = scene.theme;
    if row.at == 0 && row.rows > 1 {
        sheet.text_within(1, 0, AXIS_WIDTH - 1, &clip(&significant(row.low), AXIS_WIDTH - 1, theme), theme.dim());
    }
    if row.at + 1 == row.rows {
        let diverges = logged.diverges_since().and_then(|since| axis.columns.column(since.t_ns));
        for at in logged.not_finite_columns(&axis.columns) {
            sheet.cell(axis.left.saturating_add(at as u16), 0, theme.glyph('×', 'x'), theme.alarm());
        }
        if let Some(at) = diverges {
            sheet.cell(axis.left.saturating_add(at as u16), 0, theme.glyph('▲', '^'), theme.alarm());
        }
    }
}

fn draw_fact(sheet: &mut Sheet<'_>, about: &str, value: &Result<String, String>, right: &str, scene: &Scene<'_>) {
    let theme = scene.theme;
    sheet.text_within(1, 0, ABOUT, &clip(about, ABOUT - 1, theme), theme.dim());
    let start = 1 + ABOUT;
    let end = fact_end(sheet.width(), right);
    let (text, style): (String, Style) = match value {
        Ok(value) => (value.clone(), theme.plain()),
        Err(reason) => (format!("{} {reason}", theme.text("—", "-")), theme.dim()),
    };
    sheet.text(start, 0, &clip(&text, end.saturating_sub(start), theme), style);
    let right_end = sheet.width().saturating_sub(1);
    if end < right_end {
        let room = right_end.saturating_sub(end + RIGHT_SPACE);
        sheet.text_ending(end, right_end, 0, &clip(right, room, theme), theme.dim());
    }
}

/// The column before which a fact ends, to leave room for what is at its right.
fn fact_end(screen: u16, right: &str) -> u16 {
    let room = if screen >= 60 { width(right).min(screen * 2 / 5) } else { 0 };
    screen.saturating_sub(1 + if room > 0 { room + RIGHT_SPACE } else { 0 })
}
