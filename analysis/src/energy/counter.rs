//! The counter engine: turns raw readings of a cumulative energy counter into energy that never decreases.
//!
//! A counter may wrap at the end of its range, reset without a reason (driver reload, zone removed), repeat a stale
//! reading, jump, vanish, or miss more than one wrap. What is certain is counted; everything else is a gap, which is
//! neither zero nor negative and is kept separate from what was measured.

/// How long a counter may hold back energy before it shows all of it at once, which is not a jump.
const DELAYED_NS: u64 = 250_000_000;

/// Properties of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRules {
    /// Microjoules per unit of the raw value: 1 or 1000.
    pub unit_uj: u64,
    /// The largest raw value, after which the counter wraps to 0; `None` if it does not wrap, or this is unknown.
    pub max_value: Option<u64>,
    /// The most power that the component can use, in watts.
    pub most_watts: f64,
    /// The largest age of a value when it is read, in nanoseconds; `None` if unknown, in which case the value may be as old
    /// as the previous reading.
    pub oldest_ns: Option<u64>,
}

/// Why the energy between two readings is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapReason {
    /// The counter decreased, but not by a wrap.
    Reset,
    /// The counter jumped by more than the component can use.
    Jump,
    /// There was no reading for so long that the counter may have wrapped more than once.
    TooLong,
    /// The counter could not be read for a while.
    Absent,
    /// The machine was suspended. That time does not belong to the run.
    Suspended,
}

impl GapReason {
    /// Text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "the counter was reset",
            Self::Jump => "the counter jumped by more than the component can use",
            Self::TooLong => "the counter was not read for so long that it may have wrapped twice",
            Self::Absent => "the counter could not be read",
            Self::Suspended => "the machine was suspended",
        }
    }
}

/// The result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterAdvance {
    /// The first reading: counting begins here.
    First,
    /// The same value as before: nothing new is known.
    Stale,
    /// The clock did not advance: the reading is ignored.
    OutOfOrder,
    /// Microjoules since the previous reading.
    Energy(u64),
    /// The energy since the previous reading is unknown.
    Gap(GapReason),
}

/// The newest valid reading.
#[derive(Clone, Copy, Debug)]
struct LastReading {
    /// When this value was last read.
    t_ns: u64,
    /// When this value was first read.
    since_ns: u64,
    value: u64,
}

/// Follows one counter.
#[derive(Clone, Debug)]
pub struct CounterReader {
    rules: CounterRules,
    last: Option<LastReading>,
    /// Why the next reading must begin again, if it must.
    broken: Option<GapReason>,
}

impl CounterReader {
    /// A counter that has not been read yet.
    pub fn new(rules: CounterRules) -> Self {
        Self { rules, last: None, broken: None }
    }

    /// Its properties.
    pub fn rules(&self) -> &CounterRules {
        &self.rules
    }

    /// Changes its properties, from the next reading on.
    pub fn set_rules(&mut self, rules: CounterRules) {
        self.rules = rules;
    }

    /// When it was last read; `None` before the first reading.
    pub fn last_read_ns(&self) -> Option<u64> {
        self.last.map(|last| last.t_ns)
    }

    /// Notes that it could not be read, or that the machine was suspended: the next reading begins again.
    pub fn note_break(&mut self, reason: GapReason) {
        // A suspension also explains why there were no readings.
        if self.last.is_some() && self.broken != Some(GapReason::Suspended) {
            self.broken = Some(reason);
        }
    }

    /// Takes a reading.
    pub fn read(&mut self, t_ns: u64, value: u64) -> CounterAdvance {
        let Some(last) = self.last else {
            self.last = Some(LastReading { t_ns, since_ns: t_ns, value });
            return CounterAdvance::First;
        };
        if t_ns <= last.t_ns {
            return CounterAdvance::OutOfOrder;
        }
        let advance = match self.broken.take() {
            Some(reason) => CounterAdvance::Gap(reason),
            None => self.advance(&last, t_ns, value),
        };
        let since_ns = if advance == CounterAdvance::Stale { last.since_ns } else { t_ns };
        self.last = Some(LastReading { t_ns, since_ns, value });
        advance
    }

    fn advance(&self, last: &LastReading, t_ns: u64, value: u64) -> CounterAdvance {
        let dt_ns = t_ns - last.t_ns;
        if self.longest_ns().is_some_and(|longest_ns| dt_ns as f64 > longest_ns) {
            return CounterAdvance::Gap(GapReason::TooLong);
        }
        if value == last.value {
            return CounterAdvance::Stale;
        }
        let went_back = value < last.value;
        let units = if went_back { self.wrapped(last.value, value) } else { value.checked_sub(last.value) };
        // A value that is constant for a while and then shows everything at once is not a jump.
        let possible_ns = (t_ns - last.since_ns).saturating_add(DELAYED_NS);
        let possible_uj = self.rules.most_watts * possible_ns as f64 / 1e3;
        match units.and_then(|units| units.checked_mul(self.rules.unit_uj)) {
            Some(uj) if uj as f64 <= possible_uj => CounterAdvance::Energy(uj),
            _ if went_back => CounterAdvance::Gap(GapReason::Reset),
            _ => CounterAdvance::Gap(GapReason::Jump),
        }
    }

    /// Units counted if the counter wrapped once in between; `None` if it has no range, or a value is outside it.
    fn wrapped(&self, from: u64, to: u64) -> Option<u64> {
        let to_the_end = self.rules.max_value?.checked_sub(from)?;
        to_the_end.checked_add(1)?.checked_add(to)
    }

    /// After this long without a reading the counter may have wrapped twice, in nanoseconds.
    fn longest_ns(&self) -> Option<f64> {
        let range_uj = self.rules.max_value? as f64 * self.rules.unit_uj as f64;
        Some(range_uj * 1e3 / (2.0 * self.rules.most_watts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;
    /// A typical package, with a range of 262 kJ and at most 1 kW.
    const PACKAGE: CounterRules =
        CounterRules { unit_uj: 1, max_value: Some(262_143_328_850), most_watts: 1000.0, oldest_ns: None };

    fn read_all(rules: CounterRules, readings: &[(u64, u64)]) -> Vec<CounterAdvance> {
        let mut counter = CounterReader::new(rules);
        readings.iter().map(|&(t_ns, value)| counter.read(t_ns, value)).collect()
    }

    #[test]
    fn counter_wrap_counts_both_sides() {
        let max = PACKAGE.max_value.unwrap();
        let t = SECOND;
        assert_eq!(
            read_all(PACKAGE, &[(t, max - 9), (2 * t, 10)]),
            [CounterAdvance::First, CounterAdvance::Energy(20)]
        );
        assert_eq!(
            read_all(PACKAGE, &[(t, max), (2 * t, 0)]),
            [CounterAdvance::First, CounterAdvance::Energy(1)],
            "to exactly 0"
        );
        assert_eq!(
            read_all(PACKAGE, &[(t, max - 5), (2 * t, max)]),
            [CounterAdvance::First, CounterAdvance::Energy(5)],
            "at max"
        );
        let just_after = read_all(PACKAGE, &[(t, max - 100), (t + MS, max), (t + 2 * MS, 3), (t + 3 * MS, 7)]);
        assert_eq!(
            just_after[1..],
            [CounterAdvance::Energy(100), CounterAdvance::Energy(4), CounterAdvance::Energy(4)]
        );
        let dram = CounterRules { max_value: Some(65_712_999_613), most_watts: 300.0, ..PACKAGE };
        assert_eq!(read_all(dram, &[(t, 65_712_999_600), (2 * t, 86)])[1], CounterAdvance::Energy(100));
    }

    #[test]
    fn counter_decrease_without_wrap_is_gap() {
        let gap = |reason| CounterAdvance::Gap(reason);
        let second = |readings: &[(u64, u64)]| read_all(PACKAGE, readings)[1];
        assert_eq!(second(&[(SECOND, 500), (2 * SECOND, 499)]), gap(GapReason::Reset), "back by 1 uJ");
        assert_eq!(second(&[(SECOND, 130_000_000_000), (2 * SECOND, 0)]), gap(GapReason::Reset), "from mid-range");
        assert_eq!(second(&[(SECOND, 5), (2 * SECOND, 1_000_000_000_005)]), gap(GapReason::Jump));
        assert_eq!(second(&[(SECOND, 5), (200 * SECOND, 900)]), gap(GapReason::TooLong), "two wraps are possible");
        let gpu = CounterRules { unit_uj: 1000, max_value: None, most_watts: 2000.0, oldest_ns: None };
        assert_eq!(read_all(gpu, &[(SECOND, 90_000), (2 * SECOND, 3)])[1], gap(GapReason::Reset), "driver reload");
        assert_eq!(read_all(gpu, &[(SECOND, 90_000), (2 * SECOND, u64::MAX)])[1], gap(GapReason::Jump));
    }

    #[test]
    fn counter_continues_after_gap() {
        let mut counter = CounterReader::new(PACKAGE);
        counter.read(SECOND, 1000);
        counter.note_break(GapReason::Absent);
        assert_eq!(counter.read(2 * SECOND, 40), CounterAdvance::Gap(GapReason::Absent));
        assert_eq!(counter.read(3 * SECOND, 50), CounterAdvance::Energy(10));
        counter.note_break(GapReason::Suspended);
        counter.note_break(GapReason::Absent);
        assert_eq!(counter.read(4 * SECOND, 60), CounterAdvance::Gap(GapReason::Suspended));
    }

    #[test]
    fn stale_and_late_readings_are_ignored() {
        let readings = [(SECOND, 10), (2 * SECOND, 10), (2 * SECOND, 900), (SECOND, 4), (3 * SECOND, 30)];
        let found = read_all(PACKAGE, &readings);
        let (stale, late) = (CounterAdvance::Stale, CounterAdvance::OutOfOrder);
        assert_eq!(found, [CounterAdvance::First, stale, late, late, CounterAdvance::Energy(20)]);
    }

    #[test]
    fn delayed_energy_is_not_a_jump() {
        // A counter that changes every 100 ms, read every 20 ms: 40 J at once, which is 2 kW over 20 ms.
        let mut counter = CounterReader::new(PACKAGE);
        counter.read(SECOND, 0);
        for n in 1..5 {
            assert_eq!(counter.read(SECOND + n * 20 * MS, 0), CounterAdvance::Stale);
        }
        assert_eq!(counter.read(SECOND + 100 * MS, 40_000_000), CounterAdvance::Energy(40_000_000));
    }

    proptest! {
        /// Any monotone true energy modulo the range is recovered exactly if readings are frequent enough.
        #[test]
        fn counter_wraps_lose_no_energy(
            start in 0u64..65_712_999_614,
            steps in prop::collection::vec((1u64..30_000_000_000, 0.0f64..1.0), 1..60),
        ) {
            let rules = CounterRules { unit_uj: 1, max_value: Some(65_712_999_613), most_watts: 1000.0, oldest_ns: None };
            let range = 65_712_999_614u64;
            let mut counter = CounterReader::new(rules);
            let (mut t_ns, mut truth, mut counted) = (1u64, start, 0u64);
            counter.read(t_ns, truth % range);
            for (dt_ns, load) in steps {
                t_ns += dt_ns;
                let uj = (1000.0 * load * dt_ns as f64 / 1e3) as u64;
                truth += uj;
                match counter.read(t_ns, truth % range) {
                    CounterAdvance::Energy(uj) => counted += uj,
                    CounterAdvance::Stale => {}
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(counted, truth - start);
        }

        /// Whatever the readings, no more is counted than the component can use.
        #[test]
        fn counter_never_invents_energy(readings in prop::collection::vec((any::<u64>(), any::<u64>()), 0..60)) {
            let mut counter = CounterReader::new(PACKAGE);
            let mut last_ns = None::<u64>;
            for (t_ns, value) in readings {
                let advance = counter.read(t_ns, value);
                if let CounterAdvance::Energy(uj) = advance {
                    let ns = t_ns - last_ns.unwrap();
                    prop_assert!(uj as f64 <= 1000.0 * (ns as f64 + DELAYED_NS as f64) / 1e3);
                }
                if !matches!(advance, CounterAdvance::OutOfOrder | CounterAdvance::Stale) {
                    last_ns = Some(t_ns);
                }
            }
        }
    }
}
