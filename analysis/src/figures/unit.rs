//! What a number is a number of: how it is written for people, how a limit on it is read, and its symbol for machines.

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::text::{bytes, count, duration, percent, quantity, scaled};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FigureUnit {
    /// Nanoseconds.
    Time,
    /// A share from 0 to 1.
    Share,
    /// How many.
    Count,
    /// How many per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// CPU time per time, in cores.
    Cores,
    /// Joules.
    Energy,
    /// Watts.
    Power,
    /// Grams of CO2-equivalent.
    Carbon,
    /// Degrees Celsius.
    Temperature,
    /// Hertz.
    Frequency,
    /// A number that a program counts itself, without a unit.
    Number,
}

/// A text that is not a number of this unit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {}", unit.example())]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// The unit that it should have.
    pub unit: FigureUnit,
}

impl FigureUnit {
    /// The number for people, with its unit.
    pub fn format(self, value: f64) -> String {
        match self {
            Self::Time => duration(value.max(0.0).round() as u64),
            Self::Share => percent(value),
            Self::Count if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
            Self::Count | Self::Number => quantity(value),
            Self::Rate => format!("{}/s", quantity(value)),
            Self::Bytes => bytes(value),
            Self::BytesPerSecond => format!("{}/s", bytes(value)),
            Self::Carbon if value < 0.1 => format!("{} mg", quantity(value * 1e3)),
            Self::Carbon => format!("{} g", quantity(value)),
            Self::Frequency => format!("{}Hz", if value < 1000.0 { quantity(value) + " " } else { quantity(value) }),
            Self::Energy | Self::Power => scaled(value, self.symbol()),
            Self::Cores | Self::Temperature => {
                format!("{} {}", quantity(value), self.symbol())
            }
        }
    }

    /// The unit of the bare number for machines; empty for shares and counts.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Share | Self::Count | Self::Number => "",
            Self::Rate => "1/s",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes/s",
            Self::Cores => "cores",
            Self::Energy => "J",
            Self::Power => "W",
            Self::Carbon => "g CO2e",
            Self::Temperature => "°C",
            Self::Frequency => "Hz",
        }
    }

    /// A word for machines, where there is room for one: the symbol, or what has none.
    pub fn id(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Count => "count",
            Self::Number => "number",
            _ => self.symbol(),
        }
    }

    /// Reads a number with its unit as people type it: `12ms`, `5%`, `2GiB`.
    ///
    /// # Errors
    /// If it is no number, or its unit is missing or another one.
    pub fn parse(self, text: &str) -> Result<f64, UnitError> {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
        let (number, unit) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
        let factor = self.factors().iter().find(|(symbol, _)| *symbol == unit.trim()).map(|(_, factor)| factor);
        let value = number.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
        value.ok_or_else(|| UnitError { text: text.to_owned(), unit: self })
    }

    /// The symbols that a typed number may have, and how much of the unit each is.
    fn factors(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => {
                &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)]
            }
            Self::Share => &[("%", 0.01), ("", 1.0)],
            Self::Count | Self::Number => &[("", 1.0)],
            Self::Rate => &[("", 1.0), ("/s", 1.0)],
            Self::Bytes => &[
                ("", 1.0),
                ("B", 1.0),
                ("K", 1024.0),
                ("KiB", 1024.0),
                ("M", 1_048_576.0),
                ("MiB", 1_048_576.0),
                ("G", 1_073_741_824.0),
                ("GiB", 1_073_741_824.0),
            ],
            Self::BytesPerSecond => {
                &[("", 1.0), ("B/s", 1.0), ("KiB/s", 1024.0), ("MiB/s", 1_048_576.0), ("GiB/s", 1_073_741_824.0)]
            }
            Self::Cores => &[("", 1.0), ("cores", 1.0)],
            Self::Energy => &[("J", 1.0), ("mJ", 1e-3), ("kJ", 1e3), ("Wh", 3600.0), ("kWh", 3.6e6)],
            Self::Power => &[("W", 1.0), ("mW", 1e-3), ("kW", 1e3)],
            Self::Carbon => &[("g", 1.0), ("mg", 1e-3), ("kg", 1e3)],
            Self::Temperature => &[("°C", 1.0), ("C", 1.0)],
            Self::Frequency => &[("Hz", 1.0), ("MHz", 1e6), ("GHz", 1e9)],
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Time => "a duration such as 12ms",
            Self::Share => "a percentage such as 5%",
            Self::Count | Self::Number | Self::Rate => "a plain number",
            Self::Bytes => "a size such as 500M or 2GiB",
            Self::BytesPerSecond => "a rate such as 100MiB/s",
            Self::Cores => "a number of cores such as 1.5",
            Self::Energy => "an energy such as 1.5J or 2Wh",
            Self::Power => "a power such as 250W",
            Self::Carbon => "a mass such as 20mg or 1g",
            Self::Temperature => "a temperature such as 80C",
            Self::Frequency => "a frequency such as 1.2GHz",
        }
    }
}

impl Serialize for FigureUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_parse_accepts_own_suffixes_only() {
        let read = |unit: FigureUnit, text: &str| unit.parse(text).ok();
        assert_eq!((read(FigureUnit::Time, "12ms"), read(FigureUnit::Time, "0.03 s")), (Some(12e6), Some(30e6)));
        assert_eq!(
            (read(FigureUnit::Share, "5%"), read(FigureUnit::Bytes, "2GiB")),
            (Some(0.05), Some(2_147_483_648.0))
        );
        assert_eq!((read(FigureUnit::Energy, "2Wh"), read(FigureUnit::Number, "-1.5")), (Some(7200.0), Some(-1.5)));
        for (unit, text) in
            [(FigureUnit::Time, "1"), (FigureUnit::Time, "ms"), (FigureUnit::Share, "5ms"), (FigureUnit::Rate, "5%")]
        {
            assert_eq!(unit.parse(text), Err(UnitError { text: text.to_owned(), unit }));
        }
        assert_eq!(FigureUnit::Time.parse("1").unwrap_err().to_string(), "\"1\" is not a duration such as 12ms");
    }

    #[test]
    fn unit_format_writes_suffix() {
        assert_eq!(FigureUnit::Count.format(1200.0), "1,200");
        assert_eq!(FigureUnit::Carbon.format(0.05), "50 mg");
        assert_eq!(FigureUnit::Frequency.format(1.41e9), "1.41 GHz");
        assert_eq!(FigureUnit::Power.format(250.0), "250 W");
        assert_eq!(FigureUnit::BytesPerSecond.format(2048.0), "2.00 KiB/s");
    }
}
