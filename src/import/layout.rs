//! Where steps lie on the recording's clock: what must be known of a whole table before its first step can be written, and
//! then the steps one after the other, so that no table has to be held in memory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::error::ImportError;
use super::rows::{Measured, Rows};
use super::writer::START_NS;

/// What is known of a table once it was read.
pub(super) struct Survey {
    /// Steps.
    pub(super) steps: u64,
    /// Whether the table's own numbers rise from step to step, from 1 or more.
    pub(super) is_numbered: bool,
    /// Whether all steps have time stamps that rise.
    pub(super) has_times: bool,
    /// Time stamp of [`START_NS`], in nanoseconds.
    pub(super) zero_ns: f64,
    /// Wall-clock time of [`START_NS`]; 0 where it is not known.
    pub(super) wall_ns: u64,
    /// Tells this table from others.
    pub(super) session_id: u128,
    /// What a step usually takes; only where it was asked for.
    pub(super) usual_ns: f64,
}

impl Survey {
    /// Reads all rows once. Only for the usual duration, `with_usual`, something of each is kept.
    pub(super) fn of(rows: &Rows<'_>, path: &Path, with_usual: bool) -> Result<Self, ImportError> {
        let mut halves = [0_u8, 1].map(|salt| {
            let mut hasher = DefaultHasher::new();
            (salt, path).hash(&mut hasher);
            hasher
        });
        let mut found = Self {
            steps: 0,
            is_numbered: true,
            has_times: true,
            zero_ns: 0.0,
            wall_ns: 0,
            session_id: 0,
            usual_ns: 0.0,
        };
        let (mut last_step, mut last_end_ns, mut durations) = (0, f64::MIN, Vec::new());
        rows.each(|step| {
            found.is_numbered &= step.step > last_step;
            found.has_times &= step.end_ns.is_some_and(|end_ns| end_ns >= last_end_ns);
            (last_step, last_end_ns) = (step.step, step.end_ns.unwrap_or(f64::MAX));
            if found.steps == 0 {
                found.zero_ns = step.end_ns.unwrap_or(0.0) - step.lead_ns();
            }
            if with_usual {
                durations.push(step.duration_ns);
            }
            found.steps += 1;
            halves.iter_mut().for_each(|half| (step.step, step.duration_ns.to_bits()).hash(half));
            Ok(())
        })?;
        if !found.has_times {
            found.zero_ns = 0.0;
        }
        // Seconds since some start are no wall clock; the year 2001 is 1e18 ns.
        found.wall_ns = if found.zero_ns > 1e18 { found.zero_ns as u64 } else { 0 };
        let [high, low] = halves.map(|half| u128::from(half.finish()));
        found.session_id = high << 64 | low;
        let middle = durations.len() / 2;
        if middle < durations.len() {
            found.usual_ns = *durations.select_nth_unstable_by(middle, f64::total_cmp).1;
        }
        Ok(found)
    }

    /// Steps from the beginning.
    pub(super) fn layout(&self) -> Layout {
        Layout { has_times: self.has_times, zero_ns: self.zero_ns, t_ns: START_NS as f64 }
    }
}

/// Lays one step after the other.
pub(super) struct Layout {
    has_times: bool,
    zero_ns: f64,
    /// End of the step before.
    t_ns: f64,
}

impl Layout {
    /// Start and end of the next step.
    pub(super) fn lay(&mut self, step: &Measured) -> (u64, u64) {
        let earliest_ns = self.t_ns;
        let end_ns = match step.end_ns {
            Some(end_ns) if self.has_times => START_NS as f64 + end_ns - self.zero_ns,
            _ => earliest_ns + step.lead_ns(),
        };
        // Where a time stamp and a duration disagree, the step before keeps its end.
        let start_ns = (end_ns - step.duration_ns).max(earliest_ns).min(end_ns);
        self.t_ns = end_ns;
        (start_ns as u64, end_ns as u64)
    }
}
