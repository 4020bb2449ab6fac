//! Moments of a run as people type them: a step, a time since its start, a time of day or a date.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::quantities;
use gnntop_analysis::figures;
use gnntop_analysis::store::{StepRow, Store};
use gnntop_wire::StepId;

const DAY_NS: u64 = 86_400_000_000_000;

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TimeSpec {
    /// When the step with this number began.
    Step(u64),
    /// This long after the run's start.
    Since(Duration),
    /// The last time in the run that clocks showed this, in UTC.
    Clock(Time),
    /// This date and time.
    Date(Timestamp),
}

/// Reads `step 12000`, `90s` or `2h`, `14:10`, or `2026-11-17 14:10`, which is in UTC unless it names another time
/// zone.
pub(super) fn parse_time_spec(text: &str) -> Result<TimeSpec, String> {
    const HELP: &str = "give a step (`step 12000`), a time since the start (90s, 2h), a time of day (14:10) or a date and \
                        time (2026-11-17 14:10), in UTC";
    let text = text.trim();
    if let Some(step) = text.strip_prefix("step").or(text.strip_prefix('#')) {
        let number = step.trim_start_matches([' ', ':', '#']);
        return number.parse().map(TimeSpec::Step).map_err(|_| HELP.to_owned());
    }
    if let Ok(time) = quantities::parse_duration(text) {
        return Ok(TimeSpec::Since(time));
    }
    let text = text.strip_suffix("UTC").map_or_else(|| text.to_owned(), |text| text.trim_end().to_owned() + "Z");
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(TimeSpec::Date(time));
    }
    // A time alone comes last, since a date with a time is read as one, too.
    if let Some(date) = text.parse::<DateTime>().ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok()) {
        return Ok(TimeSpec::Date(date.timestamp()));
    }
    text.trim_end_matches('Z').parse::<Time>().map(TimeSpec::Clock).map_err(|_| HELP.to_owned())
}

impl TimeSpec {
    /// The number of the step, if it is given by one.
    pub(super) fn step(self) -> Option<u64> {
        match self {
            Self::Step(step) => Some(step),
            Self::Since(_) | Self::Clock(_) | Self::Date(_) => None,
        }
    }

    /// When it was, on the clock of the run; `None` if the run does not say. A step that is only known as one of a
    /// second or a minute is found to that precision.
    pub(super) fn resolve(self, store: &Store) -> Option<u64> {
        let first_ns = store.first_ns()?;
        match self {
            Self::Step(step) => step_start_ns(store, StepId(step)),
            Self::Since(time) => Some(first_ns.saturating_add(u64::try_from(time.as_nanos()).ok()?)),
            Self::Clock(time) => {
                let end_ns = store.session().wall_ns(store.now_ns())?;
                let nanos = u64::try_from(time.duration_since(Time::midnight()).as_nanos()).ok()?;
                let that_day_ns = (end_ns - end_ns % DAY_NS).saturating_add(nanos);
                let wall_ns = if that_day_ns > end_ns { that_day_ns.checked_sub(DAY_NS)? } else { that_day_ns };
                from_wall_ns(store, i128::from(wall_ns))
            }
            Self::Date(date) => from_wall_ns(store, date.as_nanosecond()),
        }
    }

    /// The moment in words, if it is this time of the run.
    pub(super) fn describe(self, store: &Store, t_ns: u64) -> String {
        match self {
            Self::Step(step) => format!("step {}", figures::count(step)),
            Self::Since(_) => format!("{} in", figures::elapsed(t_ns.saturating_sub(store.first_ns().unwrap_or(t_ns)))),
            Self::Clock(_) | Self::Date(_) => store.session().wall_ns(t_ns).map(figures::utc).unwrap_or_default(),
        }
    }
}

/// The end of the step before this one, or what is known that is nearest to it.
fn step_start_ns(store: &Store, step: StepId) -> Option<u64> {
    let steps = store.steps();
    if let Some(row) = steps.find_step(step) {
        return Some(row.period_start_ns());
    }
    let (mut low, mut high) = (0, steps.total());
    while low < high {
        let middle = low + (high - low) / 2;
        if steps.known_row(middle)?.step() < step { low = middle + 1 } else { high = middle }
    }
    // The first of all may be any number before it, the last none after it.
    let begins = |row: &StepRow<'_>| row.step() >= step && (low > 0 || row.step() == step);
    steps.known_row(low).filter(begins).map(|row| row.period_start_ns())
}

fn from_wall_ns(store: &Store, wall_ns: i128) -> Option<u64> {
    let now_ns = store.now_ns();
    let ago_ns = i128::from(store.session().wall_ns(now_ns)?) - wall_ns;
    // Before the clock began is before the run.
    Some(u64::try_from((i128::from(now_ns) - ago_ns).max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, SECOND, START_NS, START_WALL_NS, TrainingRun, each_item};

    use super::*;

    fn store() -> Store {
        let mut store = Store::default();
        each_item(&TrainingRun { steps: 3000, ..TrainingRun::default() }.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn time_specs_are_parsed() {
        let date = |ns: u64| Ok(TimeSpec::Date(Timestamp::from_nanosecond(i128::from(ns)).unwrap()));
        for text in ["step 120", "step:120", "#120", " step120 "] {
            assert_eq!(parse_time_spec(text), Ok(TimeSpec::Step(120)), "{text}");
        }
        assert_eq!(parse_time_spec("1h30m"), Ok(TimeSpec::Since(Duration::from_secs(5400))));
        assert_eq!(parse_time_spec("90"), Ok(TimeSpec::Since(Duration::from_secs(90))));
        assert_eq!(parse_time_spec("14:10"), Ok(TimeSpec::Clock(Time::constant(14, 10, 0, 0))));
        for text in ["2026-01-02 03:04:05", "2026-01-02T04:04:05+01:00", "2026-01-02 03:04:05 UTC"] {
            assert_eq!(parse_time_spec(text), date(START_WALL_NS), "{text}");
        }
        assert_eq!(parse_time_spec("2026-01-02"), date(START_WALL_NS - (3 * 3600 + 4 * 60 + 5) * SECOND));
        for wrong in ["", "step", "step x", "soon", "25:00", "2026-13-01 00:00"] {
            assert!(parse_time_spec(wrong).is_err_and(|help| help.contains("step 12000")), "{wrong}");
        }
    }

    #[test]
    fn all_forms_of_a_time_resolve_to_the_same() {
        let store = store();
        let row = store.steps().row(1500).unwrap();
        assert_eq!(TimeSpec::Step(row.step().0).resolve(&store), Some(row.period_start_ns()));
        let at = |text: &str| parse_time_spec(text).unwrap().resolve(&store);
        let minute_ns = START_NS + 55 * SECOND;
        assert_eq!(at("2026-01-02 03:05"), Some(minute_ns));
        assert_eq!(at("03:05"), Some(minute_ns));
        assert_eq!(at("03:05 UTC"), Some(minute_ns));
        let since = at("54900ms").unwrap() - store.first_ns().unwrap();
        assert_eq!(since, 54_900 * MS);
        assert_eq!(at("23:00"), Some(0), "that was the day before");
        assert_eq!((at("step 0"), at("step 3001"), at("1970-01-01 00:00")), (None, None, Some(0)));
        let words = |text: &str| parse_time_spec(text).unwrap().describe(&store, minute_ns);
        assert_eq!(words("03:05"), "2026-01-02 03:05:00 UTC");
        assert_eq!((words("step 1200"), words("1m")), ("step 1,200".to_owned(), "55s in".to_owned()));
    }
}
