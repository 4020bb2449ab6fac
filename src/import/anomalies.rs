//! What looks odd on the way through a table, in numbers and first lines.

use super::mapping::{Mapping, Role};
use super::rows::{MeasuredStep, TableRows};
use gnntop_analysis::figures::count;

/// Sums that differ by less than this share may be rounded.
pub(super) const ROUNDING: f64 = 0.02;
/// ...and single times by as much, in nanoseconds: time stamps often have three digits.
const ROUNDING_NS: f64 = 1.5e6;
/// Steps whose sum is this many times the time between the first and the last cannot be right.
pub(super) const IMPOSSIBLE: f64 = 2.0;
/// A time that increases in every row to more than this many times its first value may count since the start.
const MANY_TIMES: f64 = 5.0;
/// Rows in which something was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AffectedRows {
    pub(super) rows: u64,
    pub(super) first_line: u64,
}

impl AffectedRows {
    fn note(&mut self, line: u64) {
        if self.rows == 0 {
            self.first_line = line;
        }
        self.rows += 1;
    }

    /// `line 5`, or `line 5 and 3 more`.
    pub(super) fn describe(self) -> Option<String> {
        match self.rows {
            0 => None,
            1 => Some(format!("line {}", self.first_line)),
            rows => Some(format!("line {} and {} more", self.first_line, count(rows - 1))),
        }
    }
}

/// How the values of a column behave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ColumnBehaviour {
    first: Option<f64>,
    pub(super) last: Option<f64>,
    pub(super) last_line: u64,
    pub(super) readings: u64,
    pub(super) rises: u64,
    pub(super) falls: AffectedRows,
    pub(super) negative: AffectedRows,
}

impl ColumnBehaviour {
    fn note(&mut self, value: f64, line: u64) {
        self.readings += 1;
        if value < 0.0 {
            self.negative.note(line);
        }
        self.rises += u64::from(self.last.is_some_and(|last| value > last));
        if self.last.is_some_and(|last| value < last) {
            self.falls.note(line);
        }
        self.first = self.first.or(Some(value));
        (self.last, self.last_line) = (Some(value), line);
    }

    /// Whether it rises from each row to the next, to many times what it was at first.
    pub(super) fn only_rises(&self) -> bool {
        let many_times = self.first.zip(self.last).is_some_and(|(first, last)| last > MANY_TIMES * first);
        self.rises + 1 == self.readings && many_times
    }
}

/// What was seen on the way through a table.
pub(super) struct Anomalies {
    /// Steps that took longer than the time since the step before.
    pub(super) overlaps: AffectedRows,
    /// Steps with longer phases.
    pub(super) phases: AffectedRows,
    /// Of these, steps with phases of more than twice their length.
    pub(super) far_longer_phases: u64,
    /// The phases and the step, where it was seen first.
    pub(super) first_phases_ns: (f64, f64),
    /// What all steps but the first took, without and with the waits before them.
    pub(super) work_ns: f64,
    pub(super) lead_ns: f64,
    /// The longest time between two stamps, and its line.
    pub(super) longest_pause: (f64, u64),
    pub(super) values: Vec<ColumnBehaviour>,
    /// The waits before steps, and the phases inside them.
    pub(super) before: Vec<ColumnBehaviour>,
    pub(super) inside: Vec<ColumnBehaviour>,
    /// Columns that count since the start and fall within an epoch: the first of them.
    pub(super) falls: AffectedRows,
    pub(super) fallen: Option<usize>,
    last_epoch: u64,
}

impl Anomalies {
    pub(super) fn new(rows: &TableRows<'_>) -> Self {
        Self {
            overlaps: AffectedRows::default(),
            phases: AffectedRows::default(),
            far_longer_phases: 0,
            first_phases_ns: (0.0, 0.0),
            work_ns: 0.0,
            lead_ns: 0.0,
            longest_pause: (0.0, 0),
            values: vec![ColumnBehaviour::default(); rows.mappings().filter(|mapping| is_value(mapping)).count()],
            before: vec![
                ColumnBehaviour::default();
                rows.mappings().filter(|it| matches!(it.role, Role::Before(_))).count()
            ],
            inside: vec![ColumnBehaviour::default(); rows.phases().len()],
            falls: AffectedRows::default(),
            fallen: None,
            last_epoch: 0,
        }
    }

    /// Looks at a step that ended `since_ns` after the one before, by their time stamps.
    pub(super) fn note(&mut self, step: &MeasuredStep, since_ns: Option<f64>) {
        let line = step.line;
        if let Some(since_ns) = since_ns {
            self.work_ns += step.duration_ns;
            self.lead_ns += step.lead_ns();
            if step.duration_ns > since_ns * (1.0 + ROUNDING) + ROUNDING_NS {
                self.overlaps.note(line);
            }
            if since_ns > self.longest_pause.0 {
                self.longest_pause = (since_ns, line);
            }
        }
        let phases_ns: f64 = step.phase_ns.iter().sum();
        if phases_ns > step.duration_ns * (1.0 + ROUNDING) + 1e3 * step.phase_ns.len() as f64 {
            if self.phases.rows == 0 {
                self.first_phases_ns = (phases_ns, step.duration_ns);
            }
            self.phases.note(line);
            self.far_longer_phases += u64::from(phases_ns > IMPOSSIBLE * step.duration_ns);
        }
        let times = self.before.iter_mut().chain(&mut self.inside).zip(step.before_ns.iter().chain(&step.phase_ns));
        times.for_each(|(values, ns)| values.note(*ns, line));
        if step.cumulative.fallen.is_some() && step.epoch == self.last_epoch {
            self.fallen = self.fallen.or(step.cumulative.fallen);
            self.falls.note(line);
        }
        self.last_epoch = step.epoch;
        for (values, value) in self.values.iter_mut().zip(&step.values) {
            value.iter().for_each(|value| values.note(*value, line));
        }
    }
}

/// Whether a column has values outside of steps.
pub(super) fn is_value(mapping: &Mapping) -> bool {
    matches!(mapping.role, Role::Signal(_) | Role::Total(_) | Role::Cumulative(_) | Role::Counter(_))
}
