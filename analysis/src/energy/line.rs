//! Energy over time: a line through knots that never decreases, in bounded memory.
//!
//! A knot is stored when a counter has changed, at the middle of the time in which it must have changed. Between knots the
//! line is straight. The energy of a range is the difference of the line at its two ends, rounded to whole microjoules
//! there, so adjacent ranges add up to the whole exactly.
//!
//! A [`PowerRange`] says how wrong a straight piece may be.

use std::ops::Range;

use super::counter::{CounterAdvance, CounterReader, GapReason};
use super::units::energy_uj;

/// Most knots of a line; beyond this, every second one of the older half is dropped.
const MAX_KNOTS: usize = 1 << 15;
/// Energy in a gap is imputed at the mean power of this long before it.
const IMPUTED_FROM_NS: u64 = 10_000_000_000;

/// A point of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knot {
    /// Time of `CLOCK_MONOTONIC`, in nanoseconds.
    pub t_ns: u64,
    /// The counter changed at most this long before or after `t_ns`.
    pub half_gap_ns: u64,
    /// Energy since the first knot, in microjoules.
    pub uj: u64,
    /// How much of that was imputed in gaps.
    pub imputed_uj: u64,
    /// Time in gaps since the first knot, excluding suspensions.
    pub gap_ns: u64,
}

/// Energy over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnergyLine {
    knots: Vec<Knot>,
    gaps: Vec<(GapReason, u64)>,
    is_thinned: bool,
}

impl EnergyLine {
    /// A line without a knot.
    pub fn new() -> Self {
        Self::default()
    }

    /// The knots, oldest first.
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// How often each kind of gap occurred.
    pub fn gaps(&self) -> &[(GapReason, u64)] {
        &self.gaps
    }

    /// Whether older knots are further apart than the counter's readings were.
    pub fn is_thinned(&self) -> bool {
        self.is_thinned
    }

    /// The time from the first knot to the newest; `None` with fewer than two.
    pub fn span(&self) -> Option<Range<u64>> {
        let (first, last) = (self.knots.first()?, self.knots.last()?);
        (first.t_ns < last.t_ns).then_some(first.t_ns..last.t_ns)
    }

    /// Energy from the first knot to the newest, in microjoules.
    pub fn total_uj(&self) -> u64 {
        self.knots.last().map_or(0, |knot| knot.uj)
    }

    /// The median time between two knots, in nanoseconds; `None` with fewer than two.
    pub fn period_ns(&self) -> Option<u64> {
        let newest = &self.knots[self.knots.len().saturating_sub(1024)..];
        let mut apart: Vec<u64> = newest.windows(2).map(|pair| pair[1].t_ns - pair[0].t_ns).collect();
        let middle = apart.len() / 2;
        if apart.is_empty() { None } else { Some(*apart.select_nth_unstable(middle).1) }
    }

    /// Adds a counter's reading.
    pub fn read(&mut self, counter: &mut CounterReader, t_ns: u64, value: u64) {
        let before_ns = counter.last_read_ns().unwrap_or(t_ns).min(t_ns);
        let oldest_ns = counter.rules().oldest_ns;
        match counter.read(t_ns, value) {
            // Only the first change shows how old the very first value is: `add` begins the line there.
            CounterAdvance::First if oldest_ns.is_none() => {}
            CounterAdvance::First => self.push(Knot { t_ns, ..Knot::default() }),
            CounterAdvance::Stale | CounterAdvance::OutOfOrder => {}
            CounterAdvance::Energy(uj) => {
                let gap_ns = (t_ns - before_ns).min(oldest_ns.unwrap_or(u64::MAX));
                self.add(t_ns - gap_ns.div_ceil(2), gap_ns.div_ceil(2), uj);
            }
            CounterAdvance::Gap(reason) => self.add_gap(t_ns, reason),
        }
    }

    /// Adds measured energy up to `t_ns`. The line begins at the first such time; earlier energy is not counted.
    pub fn add(&mut self, t_ns: u64, half_gap_ns: u64, uj: u64) {
        let Some(last) = self.knots.last().copied() else {
            return self.push(Knot { t_ns, half_gap_ns, ..Knot::default() });
        };
        self.push(Knot { t_ns, half_gap_ns, uj: last.uj.saturating_add(uj), ..last });
    }

    /// Adds a gap up to `t_ns`. Its energy is imputed at the mean power before it; a suspension has none.
    pub fn add_gap(&mut self, t_ns: u64, reason: GapReason) {
        match self.gaps.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.gaps.push((reason, 1)),
        }
        let Some(last) = self.knots.last().copied() else { return self.push(Knot { t_ns, ..Knot::default() }) };
        let ns = t_ns.saturating_sub(last.t_ns);
        let is_suspension = reason == GapReason::Suspended;
        let imputed_uj = if is_suspension { 0 } else { energy_uj(self.watts_before(last.t_ns), ns) };
        self.push(Knot {
            t_ns,
            half_gap_ns: 0,
            uj: last.uj.saturating_add(imputed_uj),
            imputed_uj: last.imputed_uj.saturating_add(imputed_uj),
            gap_ns: last.gap_ns + if is_suspension { 0 } else { ns },
        });
    }

    fn push(&mut self, knot: Knot) {
        if self.knots.last().is_some_and(|last| last.t_ns >= knot.t_ns) {
            // Knots a nanosecond apart, or a reading whose middle is before a gap's end: the energy is kept.
            if let Some(last) = self.knots.last_mut() {
                *last = Knot { t_ns: last.t_ns, half_gap_ns: last.half_gap_ns.max(knot.half_gap_ns), ..knot };
            }
            return;
        }
        if self.knots.len() >= MAX_KNOTS {
            self.thin();
        }
        self.knots.push(knot);
    }

    /// Drops every second knot of the older half; the first one stays.
    fn thin(&mut self) {
        let half = self.knots.len() / 2;
        let mut index = 0;
        self.knots.retain(|_| {
            index += 1;
            index > half || index % 2 == 1
        });
        self.is_thinned = true;
    }

    /// Mean measured power of the ten seconds before `t_ns`; 0 if nothing was measured.
    fn watts_before(&self, t_ns: u64) -> f64 {
        let from_ns = t_ns.saturating_sub(IMPUTED_FROM_NS);
        let start = self.knots.partition_point(|knot| knot.t_ns < from_ns);
        let (Some(first), Some(last)) = (self.knots.get(start), self.knots.last()) else { return 0.0 };
        let measured_uj = (last.uj - first.uj) - (last.imputed_uj - first.imputed_uj);
        let measured_ns = (last.t_ns - first.t_ns).saturating_sub(last.gap_ns - first.gap_ns);
        if measured_ns == 0 { 0.0 } else { measured_uj as f64 * 1e3 / measured_ns as f64 }
    }

    /// Index of the last knot at or before `t_ns` that has a next one; `None` if the line has no piece.
    pub(super) fn piece(&self, t_ns: u64) -> Option<usize> {
        let last = self.knots.len().checked_sub(2)?;
        Some(self.knots.partition_point(|knot| knot.t_ns <= t_ns).saturating_sub(1).min(last))
    }

    /// Energy up to `t_ns`, in microjoules; constant before the first knot and after the newest.
    pub fn at(&self, t_ns: u64) -> u64 {
        self.interpolated(t_ns, |knot| knot.uj)
    }

    /// Energy over a range, in microjoules.
    pub fn between(&self, range: Range<u64>) -> u64 {
        self.at(range.end).saturating_sub(self.at(range.start))
    }

    /// How much of the energy over a range was imputed, in microjoules.
    pub fn imputed_between(&self, range: Range<u64>) -> u64 {
        let at = |t_ns| self.interpolated(t_ns, |knot| knot.imputed_uj);
        at(range.end).saturating_sub(at(range.start))
    }

    /// Share (0 to 1) of a range that is in gaps or outside the line.
    pub fn unknown_share(&self, range: Range<u64>) -> f64 {
        let ns = range.end.saturating_sub(range.start);
        let Some(span) = self.span().filter(|_| ns > 0) else { return 1.0 };
        let inside = range.start.max(span.start)..range.end.min(span.end).max(range.start.max(span.start));
        let at = |t_ns| self.interpolated(t_ns, |knot| knot.gap_ns);
        let gaps_ns = at(inside.end).saturating_sub(at(inside.start));
        let known_ns = (inside.end - inside.start).saturating_sub(gaps_ns).min(ns);
        1.0 - known_ns as f64 / ns as f64
    }

    /// Whether energy up to `t_ns` may still change with the next knot.
    pub fn is_provisional(&self, t_ns: u64) -> bool {
        self.knots.last().is_none_or(|last| last.t_ns < t_ns)
    }

    fn interpolated(&self, t_ns: u64, of: impl Fn(&Knot) -> u64) -> u64 {
        let Some(piece) = self.piece(t_ns) else { return self.knots.first().map_or(0, of) };
        let (a, b) = (&self.knots[piece], &self.knots[piece + 1]);
        let inside_ns = t_ns.clamp(a.t_ns, b.t_ns) - a.t_ns;
        let rise = u128::from(of(b).saturating_sub(of(a)));
        // At most `rise`, which is a u64.
        of(a) + (rise * u128::from(inside_ns) / u128::from(b.t_ns - a.t_ns)) as u64
    }
}

/// An observed range of power, and with it the least and the most possible energy up to a time, if power stays within it.
///
/// Inside a piece from `a` to `b` of energy `dE`, energy up to `t` is in `[max(Pmin (t - a), dE - Pmax (b - t)), min(Pmax
/// (t - a), dE - Pmin (b - t))]`, widened by the possible errors of the knots' times. Such bounds always hold, and are
/// about ten times too wide to be read as an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerRange {
    /// Low power, in watts: the first percentile, or the least observed.
    pub least_watts: f64,
    /// High power, in watts: the 99th percentile, or the limit of the device.
    pub most_watts: f64,
}

impl PowerRange {
    /// Least and most energy up to `t_ns`, in microjoules.
    pub(super) fn at(&self, line: &EnergyLine, t_ns: u64) -> (f64, f64) {
        let Some(piece) = line.piece(t_ns) else {
            let uj = line.at(t_ns) as f64;
            return (uj, uj);
        };
        let (a, b) = (&line.knots()[piece], &line.knots()[piece + 1]);
        self.inside(a, b, t_ns.clamp(a.t_ns, b.t_ns))
    }

    fn inside(&self, a: &Knot, b: &Knot, t_ns: u64) -> (f64, f64) {
        // A watt is a microjoule in a microsecond.
        let (after, before) = ((t_ns - a.t_ns) as f64 / 1e3, (b.t_ns - t_ns) as f64 / 1e3);
        let rise = (b.uj - a.uj) as f64;
        let low = (self.least_watts * after).max(rise - self.most_watts * before);
        let high = (self.most_watts * after).min(rise - self.least_watts * before);
        let slack = self.most_watts * a.half_gap_ns.max(b.half_gap_ns) as f64 / 1e3;
        // Errors in the knots' times may have swapped the two.
        let (low, high) = (low.min(high) - slack, low.max(high) + slack);
        (a.uj as f64 + low, a.uj as f64 + high)
    }

    /// Least and most energy between two times, in microjoules.
    pub(super) fn between(&self, line: &EnergyLine, start_ns: u64, end_ns: u64) -> (f64, f64) {
        let (start, end) = (self.at(line, start_ns), self.at(line, end_ns));
        (f64::max(0.0, end.0 - start.1), end.1 - start.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::energy::CounterRules;

    const SECOND: u64 = 1_000_000_000;
    const RULES: CounterRules =
        CounterRules { unit_uj: 1, max_value: Some(262_143_328_850), most_watts: 1000.0, oldest_ns: None };

    /// Adds readings like the store does; `None` is a read error.
    fn line(readings: impl IntoIterator<Item = (u64, Option<u64>)>) -> EnergyLine {
        let (mut counter, mut line) = (CounterReader::new(RULES), EnergyLine::new());
        for (t_ns, value) in readings {
            let Some(value) = value else {
                counter.note_break(GapReason::Absent);
                continue;
            };
            line.read(&mut counter, t_ns, value);
        }
        line
    }

    #[test]
    fn knot_is_in_middle_of_poll_gap() {
        let line = line([(0, Some(0)), (20, Some(0)), (40, Some(0)), (60, Some(5)), (80, Some(5)), (100, Some(9))]);
        let knots: Vec<_> = line.knots().iter().map(|knot| (knot.t_ns, knot.half_gap_ns, knot.uj)).collect();
        assert_eq!(knots, [(50, 10, 0), (90, 10, 4)], "the first change is the beginning");
        assert_eq!((line.at(0), line.at(50), line.at(70), line.at(90), line.at(500)), (0, 0, 2, 4, 4));
        assert!(line.is_provisional(91) && !line.is_provisional(90));
    }

    #[test]
    fn gap_is_imputed_with_previous_power_and_marked() {
        // 100 W, then ten seconds of absence, then 100 W.
        let reading = |s: u64| (s * SECOND, Some(s * 100_000_000));
        let away = line((0..=20).map(reading).chain([(25 * SECOND, None)]).chain((30..=40).map(reading)));
        let imputed_uj = away.imputed_between(0..40 * SECOND);
        assert!((imputed_uj as f64 / 1e6 - 1000.0).abs() < 60.0, "{imputed_uj}: 10 s, read in the middle of seconds");
        assert_eq!(away.gaps(), [(GapReason::Absent, 1)]);
        assert!(away.unknown_share(0..40 * SECOND) > 0.24);
        assert_eq!(away.unknown_share(50 * SECOND..60 * SECOND), 1.0);
    }

    #[test]
    fn suspension_has_no_energy_and_no_time() {
        let (mut counter, mut line) = (CounterReader::new(RULES), EnergyLine::new());
        for (t, value, suspended) in [(1, 0, false), (2, 50, false), (3, 9_000, true), (4, 9_060, false)] {
            if suspended {
                counter.note_break(GapReason::Suspended);
            }
            line.read(&mut counter, t * SECOND, value);
        }
        assert_eq!((line.total_uj(), line.imputed_between(0..u64::MAX)), (60, 0));
    }

    #[test]
    fn long_line_is_thinned_and_keeps_total() {
        let mut line = EnergyLine::new();
        for n in 0..200_000u64 {
            line.add(n * 100, 10, 7);
        }
        assert!(line.knots().len() <= MAX_KNOTS && line.is_thinned());
        assert_eq!(line.total_uj(), 199_999 * 7);
        assert_eq!(line.between(0..1_000_000), 70_000);
    }

    proptest! {
        /// Whatever a counter does, energy never decreases, and parts add up to the whole.
        #[test]
        fn energy_of_ranges_adds_up_and_is_not_negative(
            readings in prop::collection::vec((1u64..5_000_000_000, prop::option::weighted(0.9, any::<u64>())), 1..80),
            mut cuts in prop::collection::vec(0u64..200_000_000_000, 1..50),
        ) {
            let mut t_ns = 0;
            let small = |value: u64| if value.is_multiple_of(3) { value } else { value % 300_000_000_000 };
            let line = line(readings.into_iter().map(|(dt_ns, value)| {
                t_ns += dt_ns;
                (t_ns, value.map(small))
            }));
            for pair in line.knots().windows(2) {
                prop_assert!(pair[0].t_ns < pair[1].t_ns && pair[0].uj <= pair[1].uj);
                prop_assert!(pair[0].imputed_uj <= pair[1].imputed_uj && pair[1].imputed_uj <= pair[1].uj);
            }
            cuts.sort_unstable();
            let whole = line.between(cuts[0]..cuts[cuts.len() - 1]);
            let parts: u64 = cuts.windows(2).map(|pair| line.between(pair[0]..pair[1])).sum();
            prop_assert_eq!(parts, whole);
            let outer = line.between(0..cuts[0]) + parts + line.between(cuts[cuts.len() - 1]..u64::MAX);
            prop_assert_eq!(outer, line.total_uj());
        }
    }
}
