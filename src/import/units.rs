//! Units of columns, as people write them.

use gnntop_wire::Unit;

/// What a column's number is multiplied by to give a raw value in a unit of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitScale {
    /// Its name.
    pub name: &'static str,
    /// The unit of the raw value.
    pub unit: Unit,
    /// Raw value of 1.
    pub factor: f64,
}

/// Units as people write them, and what they are called here.
const SCALES: [(&str, Unit, f64); 25] = [
    ("ns", Unit::Nanoseconds, 1.0),
    ("us", Unit::Nanoseconds, 1e3),
    ("ms", Unit::Nanoseconds, 1e6),
    ("s", Unit::Nanoseconds, 1e9),
    ("count", Unit::Count, 1.0),
    ("%", Unit::MilliPercent, 1e3),
    ("B", Unit::Bytes, 1.0),
    ("KiB", Unit::Bytes, 1024.0),
    ("KB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("MB", Unit::Bytes, 1_048_576.0),
    ("GiB", Unit::Bytes, 1_073_741_824.0),
    ("GB", Unit::Bytes, 1_073_741_824.0),
    ("mW", Unit::Milliwatts, 1.0),
    ("W", Unit::Milliwatts, 1e3),
    ("uJ", Unit::Microjoules, 1.0),
    ("mJ", Unit::Microjoules, 1e3),
    ("J", Unit::Microjoules, 1e6),
    ("Wh", Unit::Microjoules, 3.6e9),
    ("kWh", Unit::Microjoules, 3.6e12),
    ("MHz", Unit::Megahertz, 1.0),
    ("C", Unit::MilliCelsius, 1e3),
    ("bits", Unit::Bits, 1.0),
    ("pct", Unit::MilliPercent, 1e3),
    ("bytes", Unit::Bytes, 1.0),
];
/// Longer names of times.
const LONG: [(&str, &str); 10] = [
    ("µs", "us"),
    ("μs", "us"),
    ("usec", "us"),
    ("msec", "ms"),
    ("sec", "s"),
    ("secs", "s"),
    ("seconds", "s"),
    ("millis", "ms"),
    ("percent", "%"),
    ("milliseconds", "ms"),
];

impl UnitScale {
    /// The same for raw values in `unit`, where both units are of energy.
    pub(super) fn to(self, unit: Unit) -> Self {
        match (self.unit, unit) {
            (Unit::Microjoules, Unit::Millijoules) => Self { unit, factor: self.factor / 1e3, ..self },
            _ => self,
        }
    }

    /// The unit with this name; capitals make no difference.
    pub fn from_name(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let short = LONG.iter().find(|(long, _)| *long == lower).map_or(lower.as_str(), |(_, short)| short);
        let found = SCALES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(short));
        found.map(|(name, unit, factor)| Self { name, unit: *unit, factor: *factor })
    }

    /// By the end of a column's name: `step_ms`, `step (ms)`, `step[ms]`.
    pub fn from_column(column: &str) -> Option<Self> {
        Self::from_name(split_unit(column)?.1)
    }

    /// Whether it is a unit of time.
    pub(super) fn is_time(&self) -> bool {
        self.unit == Unit::Nanoseconds
    }
}

/// A column's name and its end, which may be a unit.
pub(super) fn split_unit(column: &str) -> Option<(&str, &str)> {
    let (stem, unit) = column.trim_end_matches([')', ']']).rsplit_once(['_', ' ', '(', '[', '.', '-'])?;
    Some((stem.trim_end_matches(['_', ' ', '(', '[', '.', '-']), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_read_from_column_name() {
        let of = |column: &str| UnitScale::from_column(column).map(|scale| scale.name);
        assert_eq!(
            ["step_ms", "batch_time(s)", "wait [us]", "fwd µs"].map(of),
            [Some("ms"), Some("s"), Some("us"), Some("us")]
        );
        assert_eq!(["step", "step_idx", "gpu_util_pct"].map(of), [None, None, Some("pct")]);
        assert_eq!(split_unit("batch time (s)"), Some(("batch time", "s")));
    }
}
