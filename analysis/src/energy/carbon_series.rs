//! Carbon intensity over time, from a person's own file: each line gives a time and the figure from then on.
//!
//! ```text
//! time,g_per_kwh
//! 2026-11-21T10:00:00Z,31.5
//! 2026-11-21T11:00:00Z,28
//! ```
//!
//! Times are ISO 8601, in UTC unless stated otherwise, or seconds since 1970. The last figure holds for as long as the
//! previous one did, or for an hour. Times outside the file have no number.

use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use thiserror::Error;

use super::carbon::IntensityError;

const SECOND_NS: u64 = 1_000_000_000;
/// How long a single figure holds.
const HOUR_NS: u64 = 3600 * SECOND_NS;
/// Most lines of a file: every five minutes for two years.
const MAX_ROWS: usize = 250_000;

/// Grams of CO2-equivalent per kilowatt-hour over time.
#[derive(Clone, Debug, PartialEq)]
pub struct IntensitySeries {
    /// Its name, such as the file's.
    pub name: String,
    /// Start in nanoseconds since 1970, and the figure; ascending.
    rows: Vec<(u64, f64)>,
    end_ns: u64,
}

/// A file that is no carbon intensity over time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SeriesError {
    /// It is too long.
    #[error("{0}: more than {MAX_ROWS} lines")]
    TooLong(String),
    /// It has no figure at all.
    #[error("{0}: no line has a time and a figure")]
    Empty(String),
    /// The time of this line is no later than the one before.
    #[error("{0}:{1}: times must increase")]
    Order(String, usize),
    /// This line is something else.
    #[error("{0}:{1}: expected a time such as 2026-11-21T10:00:00Z, a comma, and grams per kilowatt-hour")]
    Malformed(String, usize),
}

impl IntensitySeries {
    /// Parses the lines of a file, the first of which may be a header.
    ///
    /// # Errors
    /// If a line is malformed, with its number; if there are none, or too many.
    pub fn parse(name: &str, text: &str) -> Result<Self, SeriesError> {
        let named = || name.to_owned();
        let mut rows: Vec<(u64, f64)> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let row = line.split_once(',').and_then(|(time, g)| Some((unix_ns(time.trim())?, grams(g.trim())?)));
            match row {
                Some(row) if rows.last().is_none_or(|last| last.0 < row.0) && rows.len() < MAX_ROWS => rows.push(row),
                Some(_) if rows.len() >= MAX_ROWS => return Err(SeriesError::TooLong(named())),
                Some(_) => return Err(SeriesError::Order(named(), at + 1)),
                None if at == 0 => (),
                None => return Err(SeriesError::Malformed(named(), at + 1)),
            }
        }
        let last_ns = rows.last().ok_or_else(|| SeriesError::Empty(named()))?.0;
        let held_ns = if rows.len() > 1 { last_ns - rows[rows.len() - 2].0 } else { HOUR_NS };
        Ok(Self { name: named(), rows, end_ns: last_ns.saturating_add(held_ns) })
    }

    /// The mean over a range in nanoseconds since 1970, weighted by `energy` of its parts; by time if there is no energy.
    ///
    /// # Errors
    /// If the file does not cover that range.
    pub fn weighted(&self, time: Range<u64>, energy: impl Fn(Range<u64>) -> f64) -> Result<f64, IntensityError> {
        if time.start < self.rows[0].0 || time.end > self.end_ns {
            return Err(IntensityError::NotCovered(self.name.clone()));
        }
        let first = self.rows.partition_point(|row| row.0 <= time.start).saturating_sub(1);
        let (mut by_energy, mut by_time) = ((0.0, 0.0), (0.0, 0.0));
        for (at, (from_ns, g)) in self.rows.iter().enumerate().skip(first).take_while(|(_, row)| row.0 < time.end) {
            let until_ns = self.rows.get(at + 1).map_or(self.end_ns, |next| next.0);
            let part = (*from_ns).max(time.start)..until_ns.min(time.end);
            let (weight, ns) = (energy(part.clone()).max(0.0), (part.end - part.start) as f64);
            by_energy = (by_energy.0 + weight * g, by_energy.1 + weight);
            by_time = (by_time.0 + ns * g, by_time.1 + ns);
        }
        let mean = |(sum, weight): (f64, f64)| if weight > 0.0 { sum / weight } else { self.rows[first].1 };
        Ok(if by_energy.1 > 0.0 { mean(by_energy) } else { mean(by_time) })
    }
}

fn grams(text: &str) -> Option<f64> {
    text.parse().ok().filter(|g| (0.0..=1e6).contains(g))
}

/// Nanoseconds since 1970 from `2026-11-21T10:00:00Z`, `2026-11-21 11:00+01:00`, or seconds.
fn unix_ns(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return (0.0..1e10).contains(&seconds).then_some((seconds * 1e9) as u64);
    }
    // A date alone does not say from what time a figure holds.
    text.find(['T', 't', ' '])?;
    let without_offset = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let time = text.parse::<Timestamp>().ok().or_else(without_offset)?;
    u64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_all_time_formats() {
        let at = |text| unix_ns(text).map(crate::figures::utc);
        for text in ["2026-11-21T10:00:00Z", "2026-11-21 10:00", "2026-11-21T11:00+01:00", "1795255200"] {
            assert_eq!(at(text).as_deref(), Some("2026-11-21 10:00:00 UTC"), "{text}");
        }
        assert_eq!(at("2024-02-29T23:59:59Z").as_deref(), Some("2024-02-29 23:59:59 UTC"));
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00Z",
            "2026-11-21",
            "2026-11-21T25:00Z",
            "-5",
            "1e300",
            "2026-11-21T10:00+x",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn weighted_mean_uses_energy_and_needs_full_coverage() {
        let series = IntensitySeries::parse("f.csv", "time,g_per_kwh\n0,100\n10,300\n\n20,50\n").unwrap();
        let s = |from: u64, to: u64| from * SECOND_NS..to * SECOND_NS;
        // Twice the power in the second part.
        let energy =
            |part: Range<u64>| (part.end - part.start) as f64 * if part.start >= 10 * SECOND_NS { 2.0 } else { 1.0 };
        assert_eq!(series.weighted(s(5, 15), energy), Ok((100.0 + 2.0 * 300.0) / 3.0));
        assert_eq!(series.weighted(s(5, 15), |_| 0.0), Ok(200.0), "by time");
        assert_eq!(series.weighted(s(22, 29), energy), Ok(50.0), "the last holds as long as the one before");
        assert_eq!(series.weighted(s(12, 12), energy), Ok(300.0));
        assert!(series.weighted(s(22, 31), energy).unwrap_err().to_string().contains("does not cover"));
        let late = IntensitySeries::parse("f.csv", "1000,7").unwrap();
        assert!(late.weighted(s(999, 1001), energy).is_err());
        assert_eq!(late.weighted(s(1000, 4600), energy), Ok(7.0), "an hour");
    }

    #[test]
    fn parse_error_names_line() {
        let told = |text| IntensitySeries::parse("f.csv", text).unwrap_err().to_string();
        assert!(told("time,g\n1,2\nx,3").starts_with("f.csv:3: expected a time"));
        assert!(told("1,2\n1,3").starts_with("f.csv:2: times must increase"));
        assert!(told("time,g\n").starts_with("f.csv: no line"));
        assert!(told("1,2\n3,-4").starts_with("f.csv:2: "));
    }
}
