//! How the values of a counter went: the first, the last and the extremes, with their times; whether they stopped being numbers,
//! and, for a loss, whether they diverged.
//!
//! A loss diverges while its values, ten or more in a row, are above four times its least smoothed value so far. Four times the
//! least is where the searches for a learning rate of fastai and Lightning stop. Smoothed is the mean of all values so far in
//! which each counts 0.98 times as much as the next, as there.

use gnntop_wire::past::Readings;

/// A loss above this many times its least value diverges.
pub(in crate::store) const DIVERGES_ABOVE: f64 = 4.0;
/// Weight of a value relative to the next.
const SMOOTHING: f64 = 0.98;
/// This many values in a row must be.
const IN_A_ROW: u64 = 10;
/// Larger values count as this, so that sums stay finite.
const LARGEST: f64 = 1e300;
/// The least smoothed value is known from this many values on: one alone may be small by chance.
const LEAST_FROM: u64 = 10;

/// A value and when the program gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedValue {
    /// When, in nanoseconds.
    pub t_ns: u64,
    /// The value.
    pub value: f64,
}

/// How values went. Always of the same size, however many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// The first number.
    pub first: Option<TimedValue>,
    /// The last number.
    pub last: Option<TimedValue>,
    /// The first of the least numbers.
    pub least: Option<TimedValue>,
    /// The first of the largest numbers.
    pub most: Option<TimedValue>,
    /// Values that were not finite.
    pub not_finite: u64,
    /// The first value that was not finite.
    pub first_not_finite: Option<TimedValue>,
    /// The last number before that; `None` as long as all values are finite.
    pub last_good: Option<TimedValue>,
    smoothed: Smoothed,
}

/// The least smoothed value, and the values that were far above it in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Smoothed {
    count: u64,
    sum: f64,
    weight: f64,
    least: Option<f64>,
    above: u64,
    above_since: Option<TimedValue>,
}

impl Course {
    /// Adds the next value.
    pub(in crate::store) fn push(&mut self, t_ns: u64, value: f64) {
        let timed = TimedValue { t_ns, value };
        if !value.is_finite() {
            self.not_finite = self.not_finite.saturating_add(1);
            if self.first_not_finite.is_none() {
                (self.first_not_finite, self.last_good) = (Some(timed), self.last);
            }
            return;
        }
        self.first.get_or_insert(timed);
        self.last = Some(timed);
        self.note_extreme(timed);
        self.smoothed.push(timed);
    }

    /// Adds figures over the values up to this time, of which no more is known.
    pub(in crate::store) fn push_past(&mut self, until_ns: u64, past: &Readings) {
        if past.count > 0 && past.is_sane() {
            for value in [past.min, past.max] {
                self.note_extreme(TimedValue { t_ns: until_ns, value });
            }
            self.last = Some(TimedValue { t_ns: past.last_ns.min(until_ns), value: past.last });
        }
    }

    /// Since when values diverge, if they are of a loss; `None` while they do not.
    pub fn diverges_since(&self) -> Option<TimedValue> {
        self.smoothed.above_since.filter(|_| self.smoothed.above >= IN_A_ROW)
    }

    fn note_extreme(&mut self, timed: TimedValue) {
        if self.least.is_none_or(|least| timed.value < least.value) {
            self.least = Some(timed);
        }
        if self.most.is_none_or(|most| timed.value > most.value) {
            self.most = Some(timed);
        }
    }
}

impl Smoothed {
    fn push(&mut self, timed: TimedValue) {
        let value = timed.value.clamp(-LARGEST, LARGEST);
        if self.least.is_some_and(|least| least > 0.0 && value > least * DIVERGES_ABOVE) {
            self.above = self.above.saturating_add(1);
            self.above_since.get_or_insert(timed);
        } else {
            (self.above, self.above_since) = (0, None);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum * SMOOTHING + value;
        self.weight = self.weight * SMOOTHING + 1.0;
        let smoothed = self.sum / self.weight;
        if self.count >= LEAST_FROM {
            self.least = Some(self.least.map_or(smoothed, |least| least.min(smoothed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn course(values: &[f64]) -> Course {
        let mut course = Course::default();
        (0..).zip(values).for_each(|(t_ns, value)| course.push(t_ns, *value));
        course
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![9 => -10.0..10.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY), 1 => any::<f64>()]
    }

    proptest! {
        #[test]
        fn course_agrees_with_all_values(values in prop::collection::vec(value(), 0..200)) {
            let found = course(&values);
            let all = || (0u64..).zip(&values).map(|(t_ns, value)| TimedValue { t_ns, value: *value });
            let finite: Vec<TimedValue> = all().filter(|timed| timed.value.is_finite()).collect();
            prop_assert_eq!((found.first, found.last), (finite.first().copied(), finite.last().copied()));
            let least = finite.iter().copied().reduce(|least, next| if next.value < least.value { next } else { least });
            let most = finite.iter().copied().reduce(|most, next| if next.value > most.value { next } else { most });
            prop_assert_eq!((found.least, found.most), (least, most));
            let bad = all().find(|timed| !timed.value.is_finite());
            prop_assert_eq!(found.first_not_finite.map(|bad| bad.t_ns), bad.map(|bad| bad.t_ns));
            prop_assert_eq!(found.not_finite as usize, values.len() - finite.len());
            let good = bad.and_then(|bad| finite.iter().copied().rfind(|timed| timed.t_ns < bad.t_ns));
            prop_assert_eq!(found.last_good, good);
        }

        #[test]
        fn constant_or_falling_values_do_not_diverge(start in 1e-6..1e6f64, factor in 0.5..1.0f64, count in 1..500usize) {
            let values: Vec<f64> = (0..count).map(|at| start * factor.powi(at as i32)).collect();
            prop_assert_eq!(course(&values).diverges_since(), None);
        }
    }

    #[test]
    fn rising_loss_diverges_until_it_falls_again() {
        let mut values = vec![1.0; 100];
        values.extend([50.0; 20]);
        assert_eq!(course(&values).diverges_since(), Some(TimedValue { t_ns: 100, value: 50.0 }));
        values.push(1.0);
        assert_eq!(course(&values).diverges_since(), None);
    }

    #[test]
    fn spikes_and_negative_values_do_not_diverge() {
        let mut values = vec![1.0; 100];
        values.extend([1e308; 9]);
        assert_eq!(course(&values).diverges_since(), None);
        values.iter_mut().for_each(|value| *value = -*value);
        assert_eq!(course(&values).diverges_since(), None);
    }
}
