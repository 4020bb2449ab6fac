//! Readings of a quantity over some time.

/// Figures over the readings of a signal or counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Readings {
    /// Number of readings.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their sum.
    pub sum: f64,
    /// The last.
    pub last: f64,
    /// When the last was read, in nanoseconds.
    pub last_ns: u64,
    /// Sum of the increases between neighbours: the total increase of a cumulative counter.
    pub increase: f64,
    /// Time between the neighbours that `increase` was summed over, in nanoseconds.
    pub increase_ns: u64,
}

impl Readings {
    /// Adds a reading; ignores NaN and infinities.
    pub fn add(&mut self, t_ns: u64, value: f64) {
        if !value.is_finite() {
            return;
        }
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        self.sum += value;
        (self.last, self.last_ns) = (value, t_ns);
    }

    /// Adds the increase of a counter since the reading before the last one added, which may be in the time before.
    pub fn add_increase(&mut self, increase: f64, ns: u64) {
        if increase.is_finite() {
            self.increase += increase;
            self.increase_ns = self.increase_ns.saturating_add(ns);
        }
    }

    /// Adds the readings of the time that follows.
    pub fn merge(&mut self, next: &Self) {
        if next.count == 0 {
            return;
        }
        if self.count == 0 {
            (self.min, self.max) = (next.min, next.max);
        }
        (self.min, self.max) = (self.min.min(next.min), self.max.max(next.max));
        self.count = self.count.saturating_add(next.count);
        self.sum += next.sum;
        (self.last, self.last_ns) = (next.last, next.last_ns);
        self.add_increase(next.increase, next.increase_ns);
    }

    /// Whether such readings are possible: all are numbers, and the last is between the extremes.
    pub fn is_sane(&self) -> bool {
        let numbers = [self.min, self.max, self.sum, self.last, self.increase];
        numbers.iter().all(|number| number.is_finite()) && (self.min..=self.max).contains(&self.last)
    }

    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_equals_adding_all() {
        let of = |all: &[(u64, f64)]| {
            let mut readings = Readings::default();
            all.iter().for_each(|(t_ns, value)| readings.add(*t_ns, *value));
            readings
        };
        let (some, next) = ([(1, 3.0), (2, -1.0)], [(3, f64::NAN), (4, 9.0)]);
        let mut merged = of(&some);
        merged.merge(&of(&next));
        merged.merge(&Readings::default());
        assert_eq!(merged, of(&[some, next].concat()));
        assert_eq!((merged.count, merged.min, merged.max, merged.last_ns), (3, -1.0, 9.0, 4));
    }
}
