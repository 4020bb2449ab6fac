//! One quantity in one row: its name, its last seconds and its value. A missing value is a dash and the reason.

use crate::ui::chart::spark::{self, Columns};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip};

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
        let series = self.series.len() as u16;
        let (x, text, style) = match &self.value {
            Ok(value) if series > 0 => (values + series + 1, value.clone(), theme.plain()),
            Ok(value) => (values, value.clone(), theme.plain()),
            Err(reason) => (values, format!("{} {reason}", theme.text("—", "-")), theme.dim()),
        };
        if self.value.is_ok() {
            spark::draw(sheet, (values, 0), &self.series, self.full, theme);
        }
        let room = sheet.width().saturating_sub(x + 1);
        sheet.text_within(x, 0, room, &clip(&text, room, theme), style);
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
