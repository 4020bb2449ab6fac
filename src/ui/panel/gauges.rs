//! Gauges: one quantity in one row, with its name, its last seconds and its value; a missing value is a dash and the reason. Those
//! of power, of what the program's allocator holds and of its loss are made here.

use crate::ui::chart::spark::{self, Columns};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use gnntop_analysis::energy::EnergyScope;
use gnntop_analysis::figures::{bytes, scaled};

/// Columns of a name and the space after it: a quarter of the cell, within these.
const NAME: std::ops::RangeInclusive<u16> = 9..=18;
/// Columns that a value may take beside a series.
const VALUE: u16 = 24;
/// Longest and shortest series.
const SPARK: std::ops::RangeInclusive<u16> = 4..=60;

/// One quantity.
pub struct Gauge {
    /// Its name.
    pub name: String,
    /// Its last seconds.
    pub series: Columns,
    /// What fills a bar of the series; its own largest value where `None`.
    pub full: Option<f64>,
    /// The value, or why there is none.
    pub value: Result<String, String>,
}

impl Gauge {
    /// Draws it into the sheet's first row.
    pub fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let theme = scene.theme;
        let values = 1 + name_width(sheet.width());
        sheet.text(1, 0, &clip(&self.name, values - 2, theme), theme.dim());
        let (text, style) = match &self.value {
            Ok(value) => (value.clone(), theme.plain()),
            Err(reason) => (format!("{} {reason}", theme.text("—", "-")), theme.dim()),
        };
        let series = self.shown_series(sheet.width().saturating_sub(values + 1), width(&text));
        spark::draw(sheet, (values, 0), series, self.full, theme);
        let x = if series.is_empty() { values } else { values + series.len() as u16 + 1 };
        let room = sheet.width().saturating_sub(x + 1);
        sheet.text_within(x, 0, room, &clip(&text, room, theme), style);
    }
}

impl Gauge {
    /// The newest part of the series for which there is room beside a text of this width: words come before pictures.
    fn shown_series(&self, room: u16, text: u16) -> &[Option<f64>] {
        let columns = room.saturating_sub(text.saturating_add(1));
        if self.value.is_err() || columns < *SPARK.start() {
            return &[];
        }
        &self.series[self.series.len().saturating_sub(usize::from(columns))..]
    }
}

/// Columns of the series in a cell of this width; none if there is no room for it.
pub fn series_width(cell: u16) -> u16 {
    let room = cell.saturating_sub(name_width(cell) + VALUE + 2).min(*SPARK.end());
    if room < *SPARK.start() { 0 } else { room }
}

/// Columns of the names in a cell of this width.
fn name_width(cell: u16) -> u16 {
    (cell / 4).clamp(*NAME.start(), *NAME.end())
}

/// Time of a column, and time over which power is averaged.
const SECOND_NS: u64 = 1_000_000_000;
/// Newest losses that are shown.
const LOSSES_MOST: usize = 4096;

/// Power of all known components over the last second, its scope and origin, and the energy of a mean step.
pub fn power(scene: &Scene<'_>, columns: u16) -> Gauge {
    let gauge = |series, value| Gauge { name: "power".to_owned(), series, full: None, value };
    let Some(told) = scene.app.energy() else { return gauge(Vec::new(), Err("not known yet".to_owned())) };
    let (book, scope) = (&told.book, told.figures.scope);
    let now = book.read_until(scope).map(|end_ns| end_ns.saturating_sub(SECOND_NS)..end_ns);
    let watts = now.and_then(|now| book.total_watts(scope, now));
    let (Some(watts), Some(all)) = (watts, told.figures.in_scope()) else {
        return gauge(Vec::new(), Err("no counter of energy or power, no load to model it by".to_owned()));
    };
    let newest = scene.store.now_ns() / SECOND_NS;
    let second = |at: u64| book.total_watts(scope, at * SECOND_NS..(at + 1) * SECOND_NS);
    let ages = (0..u64::from(columns)).rev();
    let series = ages.map(|age| newest.checked_sub(age).and_then(second)).collect();
    let whose = if scope == EnergyScope::Job { "job" } else { "devices" };
    let step = told.figures.step.map(|step| format!(", {} a step", scaled(step.joules, "J"))).unwrap_or_default();
    gauge(series, Ok(format!("{} {whose} {}{step}", scaled(watts, "W"), all.label.as_str())))
}

/// Bytes that the program's allocator holds; `None` if it does not report them.
pub fn live_memory(scene: &Scene<'_>, columns: u16) -> Option<Gauge> {
    let memory = scene.store.memory();
    let live = memory.live_bytes().last()?.value()?;
    let peak = memory.peak_bytes().map(|peak| format!(", peak {}", bytes(peak as f64))).unwrap_or_default();
    let points = memory.live_bytes().points().rev().filter_map(|point| Some((point.t_ns(), point.value()?)));
    let series = spark::value_columns(points, scene.store.now_ns(), columns);
    Some(Gauge { name: "heap".to_owned(), series, full: None, value: Ok(format!("{}{peak}", bytes(live))) })
}

/// The loss that the program last read or logged; `None` if it never did.
pub fn loss(scene: &Scene<'_>, columns: u16) -> Option<Gauge> {
    let loss = scene.store.loss()?;
    let values = &loss.counter.series;
    let last = values.last()?.value()?;
    let points = values.points().rev().take(LOSSES_MOST).filter_map(|point| Some((point.t_ns(), point.value()?)));
    let series = spark::value_columns(points, scene.store.now_ns(), columns);
    let first = scene.store.statistics().first_loss().or(loss.course().first.map(|first| first.value));
    let value = Ok(format!("{last:.4}, first {:.4}", first.unwrap_or(last)));
    Some(Gauge { name: loss.name.to_owned(), series, full: None, value })
}
