//! One metric as lines of a view: what it is now, or was at the selected step, with its source and age, and its chart.

use crate::ui::chart::time_axis::TimeAxis;
use crate::ui::panel::strips::{ChartSource, Label, StripRow};
use crate::ui::scene::Scene;
use gnntop_analysis::figures::duration;
use gnntop_analysis::store::Signal;
use gnntop_wire::Metric;

/// A value that is not older than this is of now.
const NOW_NS: u64 = 1_000_000;

/// Everything that readings are made from.
pub struct Readings<'s, 'a> {
    /// What the screen is drawn from.
    pub scene: &'s Scene<'a>,
    /// The columns of the charts.
    pub axis: &'s TimeAxis,
}

/// A metric and how it is shown.
#[derive(Clone)]
pub struct ShownMetric<'q> {
    /// What it is called here.
    pub about: &'q str,
    /// What is measured.
    pub metric: Metric,
    /// The value at the top of its chart, in the signal's unit; its own largest one where `None`.
    pub full: Option<f64>,
    /// The text left of its chart.
    pub label: Label,
    /// Rows of the chart.
    pub rows: u16,
}

impl<'a> Readings<'_, 'a> {
    /// The signal that measures this.
    pub fn signal(&self, metric: impl Into<Metric>) -> Option<&'a Signal> {
        self.scene.store.signals().find(metric)
    }

    /// The value of a signal now, or at the selected step, in its unit; a counter's increase per second.
    pub fn value(&self, metric: impl Into<Metric>) -> Result<f64, String> {
        let metric = metric.into();
        let reading = self.scene.store.hardware().reading(metric).map_err(|absence| absence.to_string());
        match (self.axis.cursor, self.signal(metric)) {
            (Some(_), Some(signal)) => ChartSource::Signal(signal)
                .at_cursor(self.axis, self.scene.store.now_ns())
                .ok_or_else(|| "not read at the selected step".to_owned()),
            _ => reading,
        }
    }

    /// Where a signal comes from, and how old its newest value is, if that is the one shown.
    pub fn provenance(&self, metric: Metric) -> String {
        let Some(signal) = self.signal(metric) else { return String::new() };
        if self.axis.cursor.is_some() {
            return format!("{}, at the selected step", signal.source);
        }
        match signal.age_ns(self.scene.store.now_ns()) {
            Some(..NOW_NS) => format!("{}, now", signal.source),
            Some(age_ns) => format!("{}, {} old", signal.source, duration(age_ns)),
            None => signal.source.to_string(),
        }
    }

    /// The lines of a metric that not every device has; nothing if it is not published.
    pub fn optional(&self, shown: &ShownMetric<'_>, say: impl FnOnce(f64) -> String) -> Vec<StripRow<'a>> {
        if self.signal(shown.metric).is_some() { self.lines(shown, say) } else { Vec::new() }
    }

    /// A fact and its chart; only the fact, with the reason, if there is no value.
    pub fn lines(&self, shown: &ShownMetric<'_>, say: impl FnOnce(f64) -> String) -> Vec<StripRow<'a>> {
        let value = self.value(shown.metric);
        let mut lines = vec![StripRow::Fact {
            about: shown.about.to_owned(),
            value: value.map(say),
            right: self.provenance(shown.metric),
        }];
        lines.extend(self.chart(shown));
        lines
    }

    /// The chart alone; nothing if the signal was never read.
    pub fn chart(&self, shown: &ShownMetric<'_>) -> Vec<StripRow<'a>> {
        let signal = self.signal(shown.metric).filter(|signal| signal.series.summary().count > 0);
        let chart = |signal| {
            StripRow::chart(ChartSource::Signal(signal), shown.label.clone(), shown.full, shown.rows).collect()
        };
        signal.map(chart).unwrap_or_default()
    }
}
