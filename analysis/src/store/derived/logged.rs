//! What a program logs of its learning: its loss, and its other counters.

use crate::figures::{count, counted, significant, timecode};
use crate::store::contents::Store;
use crate::store::signals::course::{Course, DIVERGES_ABOVE, TimedValue};
use crate::store::signals::resample::TimeColumns;
use crate::store::signals::series::Point;
use crate::store::signals::signal::CounterSeries;
use crate::store::steps::step_row::StepRow;

/// The name of the losses that steps have of their own.
const LOSS: &str = "loss";
/// Parts of the names of losses that are not of the training.
const NOT_TRAINED: [&str; 3] = ["val", "eval", "test"];

/// A number that the program logs, or the loss of its steps.
#[derive(Clone, Copy, Debug)]
pub struct LoggedValue<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its values.
    pub counter: &'a CounterSeries,
}

impl<'a> LoggedValue<'a> {
    /// How the values went.
    pub fn course(&self) -> &'a Course {
        &self.counter.course
    }

    /// Whether it is a loss, by its name: it contains "loss".
    pub fn is_loss(&self) -> bool {
        is_loss(&self.name.to_ascii_lowercase())
    }

    /// The columns of time with a value that is not finite. Of the time whose values are no longer kept, only the first one.
    pub fn not_finite_columns(&self, columns: &TimeColumns) -> Vec<usize> {
        let range = columns.range();
        let kept = self.counter.series.points_from(range.start).take_while(|point| point.t_ns() < range.end);
        let bad = kept.filter(|point| point.value().is_some_and(|value| !value.is_finite())).map(Point::t_ns);
        let first = self.course().first_not_finite.map(|first| first.t_ns);
        let mut all: Vec<usize> = first.into_iter().chain(bad).filter_map(|t_ns| columns.column(t_ns)).collect();
        all.dedup();
        all
    }

    /// Since when it diverges; `None` if it does not, or is no loss.
    pub fn diverges_since(&self) -> Option<TimedValue> {
        self.course().diverges_since().filter(|_| self.is_loss())
    }
}

impl LoggedValue<'_> {
    /// From which step on values are not finite, how many are not, and the last good step; `None` as long as all are.
    pub fn describe_not_finite(&self, store: &Store) -> Option<String> {
        let course = self.course();
        let first = course.first_not_finite?;
        let good = course.last_good.map(|good| match store.step_before(good.t_ns) {
            Some(row) => format!("the last good step is {}, with {}", count(row.step().0), significant(good.value)),
            None => format!("the last number was {}", significant(good.value)),
        });
        let values = counted(course.not_finite, "value", "values");
        let good = good.unwrap_or_else(|| "no value before was a number".to_owned());
        Some(format!("{} {} ({values}); {good}", first.value, since_step(store, first)))
    }

    /// Since which step a loss diverges; `None` if it does not.
    pub fn describe_divergence(&self, store: &Store) -> Option<String> {
        let since = self.diverges_since()?;
        Some(format!("diverges: above {DIVERGES_ABOVE} times its least value {}", since_step(store, since)))
    }
}

/// Since which step, and when that was.
fn since_step(store: &Store, timed: TimedValue) -> String {
    let step = store.step_before(timed.t_ns).map(|row| format!("since step {}, ", count(row.step().0)));
    let begin_ns = store.first_ns().unwrap_or(timed.t_ns);
    format!("{}at {}", step.unwrap_or_default(), timecode(timed.t_ns.saturating_sub(begin_ns)))
}

impl Store {
    /// What the program logs: losses first, those of the training before others; else in the order of appearance.
    pub fn logged_values(&self) -> Vec<LoggedValue<'_>> {
        let has_loss = self.step_loss.course != Course::default();
        let own = has_loss.then_some(LoggedValue { name: LOSS, counter: &self.step_loss });
        let counters = self.program_counters().map(|counter| LoggedValue { name: self.name(counter.name), counter });
        let mut all: Vec<LoggedValue<'_>> = own.into_iter().chain(counters).collect();
        all.sort_by_cached_key(|logged| rank(logged.name));
        all
    }

    /// The loss of the training, as steps have it or as the program logs it.
    pub fn loss(&self) -> Option<LoggedValue<'_>> {
        self.logged_values().into_iter().next().filter(LoggedValue::is_loss)
    }

    /// The kept losses of the training by step, as the program counts steps; of several of a step, the last one.
    pub fn losses_by_step(&self) -> Vec<(u64, f64)> {
        let own = self.steps().all().filter_map(|row| Some((row.step().0, row.loss()?)));
        let logged = self.loss().into_iter().flat_map(|loss| loss.counter.series.points());
        let logged = logged.filter_map(|point| Some((self.step_before(point.t_ns())?.step().0, point.value()?)));
        let mut all: Vec<(u64, f64)> = own.collect();
        if all.is_empty() {
            for (step, loss) in logged {
                match all.last_mut().filter(|(last, _)| *last == step) {
                    Some((_, last)) => *last = loss,
                    None => all.push((step, loss)),
                }
            }
        }
        all
    }

    /// The newest step that had ended at this time; of steps that are no longer kept one by one, the newest that is known.
    pub fn step_before(&self, t_ns: u64) -> Option<StepRow<'_>> {
        let steps = self.steps();
        match steps.row_at(t_ns) {
            Some(row) if row.end_ns() <= t_ns => Some(row),
            Some(row) => steps.known_row(row.ordinal().checked_sub(1)?).filter(|row| row.end_ns() <= t_ns),
            None => steps.known_rows(0..steps.discarded()).filter(|row| row.end_ns() <= t_ns).last(),
        }
    }
}

fn is_loss(name: &str) -> bool {
    name.contains(LOSS)
}

/// The place of a name among others; names of one place stay in their order.
fn rank(name: &str) -> u8 {
    let name = name.to_ascii_lowercase();
    match () {
        () if name == LOSS => 0,
        () if is_loss(&name) && !NOT_TRAINED.iter().any(|part| name.contains(part)) => 1,
        () if is_loss(&name) => 2,
        () => 3,
    }
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};
    use gnntop_wire::{BatchShape, Event, Step, StepId, TrackId, TrackRole};

    use super::*;

    fn stream() -> (StreamBuilder, TrackId) {
        let mut stream = StreamBuilder::new("logs");
        let track = stream.track(TrackRole::Training, "train");
        (stream, track)
    }

    fn store(stream: StreamBuilder) -> Store {
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn losses_of_the_training_come_first() {
        let (mut stream, track) = stream();
        for name in ["queue", "eval_loss", "accuracy", "train/Loss", "device memory used"] {
            stream.counter(track, name, START_NS, 1.0);
        }
        let store = store(stream);
        let names: Vec<&str> = store.logged_values().iter().map(|logged| logged.name).collect();
        assert_eq!(names, ["train/Loss", "eval_loss", "queue", "accuracy"]);
        assert_eq!(store.loss().unwrap().name, "train/Loss");
    }

    #[test]
    fn value_is_of_the_newest_step_that_had_ended() {
        let (mut stream, track) = stream();
        for step in 1..=9 {
            let start_ns = START_NS + step * 10 * MS;
            stream.step(track, step, start_ns, start_ns + 10 * MS);
            let value = if step < 5 { 1.0 / step as f64 } else { f64::NAN };
            stream.counter(track, "loss", start_ns + 11 * MS, value);
        }
        let store = store(stream);
        let course = *store.loss().unwrap().course();
        let step = |timed: Option<TimedValue>| store.step_before(timed.unwrap().t_ns).unwrap().step().0;
        assert_eq!((step(course.last_good), step(course.first_not_finite), course.not_finite), (4, 5, 5));
        assert_eq!((step(course.least), course.least.unwrap().value), (4, 0.25));
        assert!(store.step_before(START_NS).is_none());
        let steps: Vec<u64> = store.losses_by_step().iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, (1..=9).collect::<Vec<u64>>());
    }

    #[test]
    fn losses_of_steps_are_logged() {
        let (mut stream, track) = stream();
        for step in 1..=3 {
            let (start_ns, end_ns) = (START_NS + step * MS, START_NS + (step + 1) * MS);
            let loss = Some(step as f64);
            let step = StepId(step);
            let batch = BatchShape::default();
            stream.event(
                track,
                Event::Step(Step { step, epoch: 0, start_ns, end_ns, batch, loss, usage: None, is_traced: false }),
            );
        }
        let store = store(stream);
        let loss = store.loss().unwrap();
        assert_eq!((loss.name, loss.course().last.unwrap().value, loss.counter.series.len()), ("loss", 3.0, 3));
    }
}
