//! One quantity as lines of a view: what it is now, or was at the selected step, with its source and age, and its chart.

use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::strips::{ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use gnntop_analysis::figures::duration;
use gnntop_analysis::store::Signal;

/// A value that is not older than this is of now.
const NOW_NS: u64 = 1_000_000;

/// Everything that readings are made from.
pub struct Readings<'s, 'a> {
    /// What the screen is drawn from.
    pub scene: &'s Scene<'a>,
    /// The columns of the charts.
    pub axis: &'s TimeAxis,
}

/// A quantity to be read off a signal.
#[derive(Clone)]
pub struct Quantity<'q> {
    /// Its name.
    pub about: &'q str,
    /// The signal's name.
    pub signal: &'q str,
    /// The value at the top of its chart, in the signal's unit; its own largest one where `None`.
    pub full: Option<f64>,
    /// The text left of its chart.
    pub label: Label,
    /// Rows of the chart.
    pub rows: u16,
}

impl<'a> Readings<'_, 'a> {
    /// The signal with this name.
    pub fn signal(&self, name: &str) -> Option<&'a Signal> {
        self.scene.store.signals().find(name)
    }

    /// The value of a signal now, or at the selected step, in its unit; a counter's increase per second.
    pub fn value(&self, name: &str) -> Result<f64, String> {
        let reading = self.scene.store.hardware().reading(name).map_err(|absence| absence.to_string());
        match (self.axis.cursor, self.signal(name)) {
            (Some(_), Some(signal)) => ChartSource::Signal(signal)
                .at_cursor(self.axis, self.scene.store.now_ns())
                .ok_or_else(|| "not read at the selected step".to_owned()),
            _ => reading,
        }
    }

    /// Where a signal comes from, and how old its newest value is, if that is the one shown.
    pub fn provenance(&self, name: &str) -> String {
        let Some(signal) = self.signal(name) else { return String::new() };
        if self.axis.cursor.is_some() {
            return format!("{}, at the selected step", signal.source);
        }
        match signal.age_ns(self.scene.store.now_ns()) {
            Some(..NOW_NS) => format!("{}, now", signal.source),
            Some(age_ns) => format!("{}, {} old", signal.source, duration(age_ns)),
            None => signal.source.clone(),
        }
    }

    /// The lines of a quantity that not every device has; nothing if it is not published.
    pub fn optional(&self, quantity: &Quantity<'_>, say: impl FnOnce(f64) -> String) -> Vec<StripRow<'a>> {
        if self.signal(quantity.signal).is_some() { self.lines(quantity, say) } else { Vec::new() }
    }

    /// A fact and its chart; only the fact, with the reason, if there is no value.
    pub fn lines(&self, quantity: &Quantity<'_>, say: impl FnOnce(f64) -> String) -> Vec<StripRow<'a>> {
        let value = self.value(quantity.signal);
        let mut lines = vec![StripRow::Fact {
            about: quantity.about.to_owned(),
            value: value.map(say),
            right: self.provenance(quantity.signal),
        }];
        lines.extend(self.chart(quantity));
        lines
    }

    /// The chart alone; nothing if the signal was never read.
    pub fn chart(&self, quantity: &Quantity<'_>) -> Vec<StripRow<'a>> {
        let signal = self.signal(quantity.signal).filter(|signal| signal.series.summary().count > 0);
        let chart = |signal| {
            StripRow::chart(ChartSource::Signal(signal), quantity.label.clone(), quantity.full, quantity.rows).collect()
        };
        signal.map(chart).unwrap_or_default()
    }
}
