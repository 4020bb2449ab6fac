//! What must be known of a whole table before its first step can be written: how many steps there are, whether their
//! numbers and time stamps rise, and which values are impossible. It is read once, and once more if its rows must be
//! put in order; nothing of a row is kept. Then each step gets its place on the recording's clock, after the one before.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use hdrhistogram::Histogram;

use super::anomalies::Anomalies;
use super::mapping::Role;
use super::outcome::ImportError;
use super::rows::{MeasuredStep, TableRows};
use super::writer::START_NS;
use gnntop_analysis::figures::{count, duration};

/// A time stamp that is at least this is one since 1970: 2001 and later.
const WALL_NS: f64 = 1e18;
/// Longer steps count as this long, eleven days, where the usual length is looked for.
const LONGEST_NS: u64 = 1_000_000_000_000_000;

/// A row at which something falls that should rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fall {
    pub(super) line: u64,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// A value that should rise from row to row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rising {
    last: Option<f64>,
    pub(super) falls: u64,
    pub(super) first_fall: Option<Fall>,
}

impl Rising {
    /// Takes the next value; `is_strict` where an equal one is a fall too.
    fn note(&mut self, value: f64, line: u64, is_strict: bool) {
        if let Some(last) = self.last
            && (value < last || is_strict && value == last)
        {
            self.falls += 1;
            self.first_fall = self.first_fall.or(Some(Fall { line, from: last, to: value }));
        }
        self.last = Some(value);
    }
}

/// How steps are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// By the table, plus this: steps are counted from 1 here.
    Own(u64),
    /// By their rows.
    Rows,
}

impl Numbering {
    /// The number of a step in the recording, of its row's number.
    pub(super) fn id(self, step: &MeasuredStep, row: u64) -> u64 {
        match self {
            Self::Own(more) => step.step.saturating_add(more),
            Self::Rows => row,
        }
    }
}

/// Everything about a table once it was read.
pub(super) struct Survey {
    pub(super) steps: u64,
    pub(super) numbers: Rising,
    pub(super) stamps: Rising,
    pub(super) epochs: Rising,
    /// Epochs with their steps.
    pairs: Rising,
    lowest_step: u64,
    highest_step: u64,
    has_numbers: bool,
    /// Whether steps are laid by their time stamps.
    pub(super) has_times: bool,
    /// Whether all stamps are full seconds.
    is_in_seconds: bool,
    /// Time stamp of the recording's start, in nanoseconds.
    zero_ns: f64,
    first_end_ns: f64,
    last_end_ns: f64,
    durations: Histogram<u64>,
    pub(super) odd: Anomalies,
    /// Identifies this table.
    pub(super) session_id: u128,
}

impl Survey {
    /// Reads all rows once, in the order that they have now.
    pub(super) fn read(rows: &TableRows<'_>, path: &Path) -> Result<Self, ImportError> {
        let mut halves = [0_u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            (salt, path).hash(&mut hasher);
            hasher
        });
        let mut found = Self::new(rows)?;
        rows.each(|step| {
            found.note(step);
            halves.iter_mut().for_each(|half| (step.step, step.duration_ns.to_bits()).hash(half));
            Ok(())
        })?;
        let [high, low] = halves.map(|half| u128::from(half.finish()));
        found.session_id = high << 64 | low;
        Ok(found)
    }

    fn new(rows: &TableRows<'_>) -> Result<Self, ImportError> {
        let durations =
            Histogram::new_with_max(LONGEST_NS, 3).map_err(|error| rows.table.useless(error.to_string()))?;
        Ok(Self {
            steps: 0,
            numbers: Rising::default(),
            stamps: Rising::default(),
            epochs: Rising::default(),
            pairs: Rising::default(),
            lowest_step: u64::MAX,
            highest_step: 0,
            has_numbers: rows.has(&Role::Step),
            has_times: rows.has(&Role::End) || rows.has(&Role::Start),
            is_in_seconds: true,
            zero_ns: 0.0,
            first_end_ns: 0.0,
            last_end_ns: 0.0,
            durations,
            odd: Anomalies::new(rows),
            session_id: 0,
        })
    }

    fn note(&mut self, step: &MeasuredStep) {
        let line = step.line;
        if let Some(end_ns) = step.end_ns {
            if self.steps == 0 {
                (self.first_end_ns, self.zero_ns) = (end_ns, end_ns - step.lead_ns());
            }
            self.odd.note(step, (self.steps > 0).then_some(end_ns - self.last_end_ns));
            self.stamps.note(end_ns, line, false);
            self.is_in_seconds &= end_ns % 1e9 == 0.0;
            self.last_end_ns = end_ns;
        } else {
            self.odd.note(step, None);
        }
        self.numbers.note(step.step as f64, line, true);
        self.epochs.note(step.epoch as f64, line, false);
        // Steps are at most 9e15, and epochs are few: as one number they need more digits than f64 has only in nonsense.
        self.pairs.note(step.epoch as f64 * 1e7 + step.step as f64, line, true);
        self.lowest_step = self.lowest_step.min(step.step);
        self.highest_step = self.highest_step.max(step.step);
        self.durations.saturating_record(step.duration_ns as u64);
        self.steps += 1;
    }

    /// What a step usually takes.
    pub(super) fn usual_ns(&self) -> f64 {
        self.durations.value_at_quantile(0.5) as f64
    }

    /// Time from the first step's end to the last one's, by their stamps.
    pub(super) fn elapsed_ns(&self) -> f64 {
        self.last_end_ns - self.first_end_ns
    }

    /// The recording's start by the time stamps; `None` if steps are not laid by them.
    pub(super) fn zero_ns(&self) -> Option<f64> {
        self.has_times.then_some(self.zero_ns)
    }

    /// Wall-clock time of the recording's start; 0 if unknown.
    pub(super) fn wall_ns(&self) -> u64 {
        if self.zero_ns > WALL_NS { self.zero_ns as u64 } else { 0 }
    }

    /// Steps from the beginning.
    pub(super) fn layout(&self) -> StepLayout {
        StepLayout::new(self.zero_ns())
    }

    /// How the steps are numbered.
    pub(super) fn numbering(&self) -> Numbering {
        match self.has_numbers && self.numbers.falls == 0 {
            true => Numbering::Own(u64::from(self.lowest_step == 0)),
            false => Numbering::Rows,
        }
    }

    /// Whether time stamps are too coarse to lay steps by them.
    pub(super) fn is_coarse(&self) -> bool {
        self.has_times && self.steps > 1 && self.is_in_seconds && self.usual_ns() < 5e8
    }
}

/// Reads the table, and sorts its rows if that makes sense of them. `warnings` get what was out of order.
pub(super) fn read_in_order(
    rows: &mut TableRows<'_>,
    path: &Path,
    warnings: &mut Vec<String>,
) -> Result<Survey, ImportError> {
    let found = Survey::read(rows, path)?;
    if found.has_times && found.stamps.falls > 0 {
        let order = rows.order_by(|step| step.end_ns.unwrap_or_default().to_bits())?;
        rows.table.set_order(order);
        let sorted = Survey::read(rows, path)?;
        let is_reversed = found.stamps.falls + 1 == found.steps;
        let steps_rise = sorted.has_numbers && (sorted.numbers.falls == 0 || sorted.pairs.falls == 0);
        let is_one_run = steps_rise || is_reversed && !sorted.has_numbers;
        if !is_one_run {
            return Err(two_runs(rows, &found));
        }
        warnings.extend(found.stamps.first_fall.map(|fall| out_of_order(fall.line, "their time stamps")));
        return Ok(sorted);
    }
    if !found.has_times && found.has_numbers && found.pairs.falls > 0 && found.numbers.falls > 0 {
        let epoch = found.highest_step.saturating_add(1);
        let key = |step: &MeasuredStep| step.epoch.saturating_mul(epoch).saturating_add(step.step);
        let by_number = rows.order_by(|step| step.step)?;
        let order = if rows.table.has_equals(&by_number)? { rows.order_by(key)? } else { by_number };
        if rows.is_long() || !rows.table.has_equals(&order)? {
            rows.table.set_order(order);
            let sorted = Survey::read(rows, path)?;
            if sorted.numbers.falls == 0 || sorted.pairs.falls == 0 {
                warnings.extend(found.numbers.first_fall.map(|fall| out_of_order(fall.line, "their steps' numbers")));
                return Ok(sorted);
            }
        }
    }
    match found.epochs.first_fall {
        Some(fall) => Err(rows.table.useless(format!(
            "line {}: epochs go back from {} to {}: two runs in one table? Take one with --only COLUMN=VALUE, or split the table",
            fall.line, fall.from, fall.to
        ))),
        None => Ok(found),
    }
}

fn out_of_order(line: u64, by: &str) -> String {
    format!("line {line} is the first that is out of order: rows are taken in the order of {by}")
}

/// What to say of time stamps that go back where no order makes sense.
fn two_runs(rows: &TableRows<'_>, found: &Survey) -> ImportError {
    let Some(fall) = found.stamps.first_fall else { return rows.table.useless("time stamps go back") };
    let column = rows.column(&Role::End).or_else(|| rows.column(&Role::Start)).map_or("", |mapping| &mapping.column);
    let back = duration((fall.from - fall.to) as u64);
    let restart = found.numbers.first_fall.filter(|other| found.has_numbers && other.line == fall.line);
    let also = restart.map_or_else(String::new, |step| format!(", and steps start over at {}", count(step.to as u64)));
    let many = if found.stamps.falls > 1 {
        format!(", as in {} more rows", count(found.stamps.falls - 1))
    } else {
        String::new()
    };
    rows.table.useless(format!(
        "line {}: {column} goes back by {back}{also}{many}. If these are two runs, take one with --only COLUMN=VALUE or split the table; if the clock was set back, --ignore {column} places the steps one after the other",
        fall.line
    ))
}

/// Lays one step after the other.
pub(super) struct StepLayout {
    /// Time stamp of [`START_NS`]; `None` without time stamps.
    zero_ns: Option<f64>,
    /// End of the step before.
    t_ns: f64,
}

impl StepLayout {
    pub(super) fn new(zero_ns: Option<f64>) -> Self {
        Self { zero_ns, t_ns: START_NS as f64 }
    }

    /// Start and end of the next step.
    pub(super) fn place(&mut self, step: &MeasuredStep) -> (u64, u64) {
        let earliest_ns = self.t_ns;
        let end_ns = match (step.end_ns, self.zero_ns) {
            (Some(end_ns), Some(zero_ns)) => START_NS as f64 + end_ns - zero_ns,
            _ => earliest_ns + step.lead_ns(),
        };
        // Where a time stamp and a duration disagree, the step before keeps its end.
        let start_ns = (end_ns - step.duration_ns).max(earliest_ns).min(end_ns);
        self.t_ns = end_ns;
        (start_ns as u64, end_ns as u64)
    }
}
