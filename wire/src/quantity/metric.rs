//! A quantity of one instance, such as the power of GPU 0, and its text.

use std::fmt;
use std::str::FromStr;

use super::Quantity;
use crate::signal::{SignalKind, Unit};

/// What stands for the instance in a quantity's text.
const NUMBER: &str = "N";

/// A quantity of one instance. As text it is `process.rss` or `gpu.0.power`; parsing undoes this exactly.
///
/// ```
/// use gnntop_wire::{Metric, Quantity};
///
/// let power: Metric = "gpu.3.power".parse().unwrap();
/// assert_eq!((power.quantity(), power.instance()), (Quantity::GpuPower, 3));
/// assert_eq!(Metric::from(Quantity::ProcessRss).to_string(), "process.rss");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric {
    pub(super) quantity: Quantity,
    /// 0 unless the quantity's scope is numbered.
    pub(super) instance: u32,
}

impl Metric {
    /// What is measured.
    pub const fn quantity(self) -> Quantity {
        self.quantity
    }

    /// The number of the core, package or GPU that it is measured of; 0 for all that have no number.
    pub const fn instance(self) -> u32 {
        self.instance
    }
}

impl From<Quantity> for Metric {
    /// The quantity of the only instance, or of the first.
    fn from(quantity: Quantity) -> Self {
        quantity.with_instance(0)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.quantity.text().split('.').enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            match part {
                NUMBER => write!(f, "{}", self.instance)?,
                part => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// A text that is not a metric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMetric;

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing measured has this name")
    }
}

impl std::error::Error for UnknownMetric {}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let found = Quantity::ALL.iter().find_map(|quantity| quantity.parse(text));
        found.ok_or(UnknownMetric)
    }
}

impl Quantity {
    /// The metric, if `text` is one of this quantity.
    fn parse(self, text: &str) -> Option<Metric> {
        let mut instance = 0;
        let mut parts = text.split('.');
        for known in self.text().split('.') {
            let part = parts.next()?;
            if known == NUMBER {
                instance = part.parse().ok()?;
            } else if known != part {
                return None;
            }
        }
        let metric = Metric { quantity: self, instance };
        // Signs and leading zeros are not written.
        (parts.next().is_none() && metric.to_string() == text).then_some(metric)
    }
}

/// What a signal measures: a metric, or something that this version does not know by more than its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnyMetric {
    /// A quantity of the table.
    Known(Metric),
    /// A quantity of a newer version, a foreign publisher, or a column of an imported table. It can be drawn; nothing is
    /// concluded from it.
    Other {
        /// Its name, for people.
        name: String,
        /// The unit of its raw values.
        unit: Unit,
        /// Gauge or cumulative counter.
        kind: SignalKind,
    },
}

impl AnyMetric {
    /// The metric, if it is known.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            Self::Known(metric) => Some(*metric),
            Self::Other { .. } => None,
        }
    }

    /// The unit of raw values.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Known(metric) => metric.quantity.unit(),
            Self::Other { unit, .. } => *unit,
        }
    }

    /// Gauge or cumulative counter.
    pub fn kind(&self) -> SignalKind {
        match self {
            Self::Known(metric) => metric.quantity.kind(),
            Self::Other { kind, .. } => *kind,
        }
    }

    /// The metric with this name if its unit and kind are the same, otherwise an unknown one.
    pub fn from_name(name: String, unit: Unit, kind: SignalKind) -> Self {
        let known = name.parse().ok().map(Self::Known);
        known.filter(|known| (known.unit(), known.kind()) == (unit, kind)).unwrap_or(Self::Other { name, unit, kind })
    }
}

impl From<Metric> for AnyMetric {
    fn from(metric: Metric) -> Self {
        Self::Known(metric)
    }
}

impl From<Quantity> for AnyMetric {
    fn from(quantity: Quantity) -> Self {
        Self::Known(quantity.into())
    }
}

impl fmt::Display for AnyMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(metric) => metric.fmt(f),
            Self::Other { name, .. } => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_metric_is_parsed_from_its_text(slot in 0..Quantity::ALL.len(), instance: u32) {
            let metric = Quantity::ALL[slot].with_instance(instance);
            prop_assert_eq!(metric.to_string().parse(), Ok(metric));
        }

        #[test]
        fn metric_text_round_trip(slot in 0..Quantity::ALL.len(), instance in "[+-]?[0-9]{0,11}N?") {
            let text = Quantity::ALL[slot].text().replace(NUMBER, &instance);
            if let Ok(metric) = text.parse::<Metric>() {
                prop_assert_eq!(metric.to_string(), text);
            }
        }
    }

    #[test]
    fn quantity_texts_and_codes_are_unique_and_round_trip() {
        let texts: HashSet<&str> = Quantity::ALL.iter().map(|quantity| quantity.text()).collect();
        assert_eq!(texts.len(), Quantity::ALL.len());
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::from_code(quantity.code()), Some(*quantity));
            assert_eq!(quantity.text().parse::<Metric>().is_ok(), !quantity.scope().is_numbered(), "{quantity:?}");
            let numbers = quantity.text().split('.').filter(|part| *part == NUMBER).count();
            assert_eq!(numbers, usize::from(quantity.scope().is_numbered()), "{quantity:?}");
        }
        assert_eq!((Quantity::from_code(0), Quantity::from_code(u64::MAX)), (None, None));
    }

    #[test]
    fn parse_similar_text_is_unknown() {
        for text in ["", ".", "process", "process.rss.", "gpu.power", "gpu..power", "gpu.N.power", "gpu.01.power"] {
            assert_eq!(text.parse::<Metric>(), Err(UnknownMetric), "{text}");
        }
    }

    #[test]
    fn from_name_with_other_unit_is_other_metric() {
        let named = |name: &str, unit| AnyMetric::from_name(name.to_owned(), unit, SignalKind::Gauge);
        assert_eq!(named("gpu.1.power", Unit::Milliwatts), Quantity::GpuPower.with_instance(1).into());
        let watts = named("gpu.1.power", Unit::Count);
        assert_eq!((watts.metric(), watts.unit(), watts.to_string()), (None, Unit::Count, "gpu.1.power".to_owned()));
    }
}
