//! What a tracker has kept of a run: values by name, each with its time and step, and readings of hardware.

use std::collections::BTreeMap;

use crate::import::outcome::ImportSummary;

/// Values that are read at the most: 240 MB of memory, and as much again while they are put in order.
const MAX_POINTS: usize = 10_000_000;
/// Names that are kept apart.
const MAX_NAMES: usize = 4096;
/// Times before 2001 or after 2200 are none.
const WALL_NS: std::ops::Range<f64> = 1e18..7.2e18;
/// What the names of our own results begin with: `python/gnntop/hooks/figures.py`.
const OWN: &str = "gnntop/";
/// What libraries call the step beside the values, where the tracker's own step counts rows.
const STEP_NAMES: [&str; 3] = ["train/global_step", "trainer/global_step", "global_step"];

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Nanoseconds since 1970.
    pub(super) wall_ns: u64,
    pub(super) step: i64,
    pub(super) value: f64,
}

/// A run's history.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The run's name.
    pub(super) name: String,
    /// Values by name, in the order in which they were logged.
    pub(super) series: BTreeMap<String, Vec<Point>>,
    /// Readings of hardware, by the tracker's own names for them.
    pub(super) readings: BTreeMap<String, Vec<Point>>,
    points: usize,
    /// Values that found no room, or whose time is none.
    pub(super) left_out: u64,
    /// Entries that are no numbers, such as images.
    pub(super) other_entries: u64,
    pub(super) account: ImportSummary,
}

impl History {
    /// A history of a run with this name, without values.
    pub(super) fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Adds a value that was logged at this time, in nanoseconds since 1970. What `gnntop run --to` has written there is left
    /// out.
    pub(super) fn add(&mut self, name: &str, wall_ns: f64, step: i64, value: f64) {
        if name.starts_with(OWN) {
            return;
        }
        Self::add_to(&mut self.series, &mut self.points, &mut self.left_out, name, (wall_ns, step, value));
    }

    /// Adds a reading of hardware. One that is no finite number was not read.
    pub(super) fn add_reading(&mut self, name: &str, wall_ns: f64, value: f64) {
        if !value.is_finite() {
            self.other_entries += 1;
            return;
        }
        Self::add_to(&mut self.readings, &mut self.points, &mut self.left_out, name, (wall_ns, 0, value));
    }

    fn add_to(
        all: &mut BTreeMap<String, Vec<Point>>,
        points: &mut usize,
        left_out: &mut u64,
        name: &str,
        (wall_ns, step, value): (f64, i64, f64),
    ) {
        let is_new = !all.contains_key(name);
        if !WALL_NS.contains(&wall_ns) || *points >= MAX_POINTS || (is_new && all.len() >= MAX_NAMES) {
            *left_out += 1;
            return;
        }
        *points += 1;
        let point = Point { wall_ns: wall_ns as u64, step, value };
        if is_new {
            all.insert(name.to_owned(), vec![point]);
        } else if let Some(series) = all.get_mut(name) {
            series.push(point);
        }
    }

    /// Adds what was logged together: its numbers, at the step that one of them says, or else at this one.
    pub(super) fn add_row(&mut self, wall_ns: f64, step: i64, values: &[(String, f64)]) {
        let own = STEP_NAMES.iter().find_map(|name| values.iter().find(|(known, _)| known == name));
        let step = own.map_or(step, |(_, own)| *own as i64);
        for (name, value) in values {
            self.add(name, wall_ns, step, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_is_no_number_is_left_out_and_not_zero() {
        let mut history = History::default();
        for value in [f64::NAN, f64::INFINITY, 300.0] {
            history.add_reading("gpu.0.powerWatts", 2e18, value);
            history.add("loss", 2e18, 0, value);
        }
        let values: Vec<f64> = history.readings["gpu.0.powerWatts"].iter().map(|point| point.value).collect();
        assert_eq!((values, history.series["loss"].len(), history.other_entries), (vec![300.0], 3, 2));
    }
}
