//! How far a run is on the way to its goal, and how long the rest takes.

use gnntop_wire::{Fact, Goal, GoalUnit};

use crate::store::{SessionState, Store};

/// Steps in the newer half of its time from which a run's pace is known.
const FEWEST_STEPS: u64 = 5;

/// A run's way to its goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// How far it is meant to go.
    pub goal: Goal,
    /// Who says so, for people.
    pub by: String,
    /// Steps of the run so far, with those before the checkpoint from which it resumed.
    pub steps: u64,
    /// Steps of the run at its goal; `None` if that is given in epochs and none is over yet.
    pub steps_at_goal: Option<u64>,
    /// What the rest takes, in nanoseconds, at the mean pace of the newer half of the time since the newest start. `None` where
    /// that is not known, the goal is reached, or the run is over.
    pub left_ns: Option<u64>,
}

impl RunProgress {
    /// The part that is done, 0 to 1.
    pub fn share(&self) -> Option<f64> {
        let all = self.steps_at_goal.filter(|all| *all > 0)?;
        Some((self.steps as f64 / all as f64).min(1.0))
    }
}

impl Store {
    /// How far the run is on the way to its goal; `None` if nobody says what that is, or there is no step yet.
    pub fn progress(&self) -> Option<RunProgress> {
        let (goal, by) = self.session().facts().values().find_map(|fact| match fact {
            Fact::Goal { goal, by } => Some((*goal, by.clone())),
            _ => None,
        })?;
        let before = self.attempts().first_ordinal();
        let newest = self.steps().last()?.step().0.saturating_sub(before);
        let steps = self.resumed_steps().unwrap_or(before).saturating_add(newest);
        let steps_at_goal = match goal.unit {
            GoalUnit::Steps => Some(goal.number),
            GoalUnit::Epochs => self.steps_of_epochs(goal.number),
        };
        let left = steps_at_goal.and_then(|all| all.checked_sub(steps)).filter(|left| *left > 0);
        let is_over = matches!(self.session().state(), SessionState::Ended(_) | SessionState::Gone);
        let left_ns = left.filter(|_| !is_over).and_then(|left| Some((left as f64 * self.recent_pace_ns()?) as u64));
        Some(RunProgress { goal, by, steps, steps_at_goal, left_ns })
    }

    fn resumed_steps(&self) -> Option<u64> {
        self.session().facts().values().find_map(|fact| match fact {
            Fact::Resumed { steps } => Some(*steps),
            _ => None,
        })
    }

    /// The steps of this many epochs, by those that are over; `None` if none is, or the run was started several times.
    fn steps_of_epochs(&self, epochs: u64) -> Option<u64> {
        let over = self.statistics().epochs().checked_sub(1).filter(|over| *over > 0)?;
        let (table, newest) = (self.steps(), self.statistics().last_epoch()?);
        if self.attempts().count() > 1 {
            return None;
        }
        let (mut low, mut high) = (0, table.total());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_before = table.known_row(middle).is_some_and(|row| row.epoch() != newest);
            if is_before { low = middle + 1 } else { high = middle }
        }
        let each = low as f64 / over as f64;
        (low > 0).then(|| ((each * epochs as f64).round() as u64).max(table.total()))
    }

    /// What a step takes, in nanoseconds, with all that is between steps.
    fn recent_pace_ns(&self) -> Option<f64> {
        let (table, now_ns) = (self.steps(), self.now_ns());
        let first_ns = table.known_row(self.attempts().first_ordinal())?.start_ns();
        let middle_ns = first_ns + now_ns.checked_sub(first_ns)? / 2;
        let before = table.ended_by(middle_ns).max(self.attempts().first_ordinal());
        let from_ns = before.checked_sub(1).and_then(|last| table.known_row(last)).map_or(first_ns, |row| row.end_ns());
        let steps = table.total().checked_sub(before).filter(|steps| *steps >= FEWEST_STEPS)?;
        Some(now_ns.saturating_sub(from_ns.max(first_ns)) as f64 / steps as f64)
    }
}

#[cfg(test)]
mod tests {
    use gnntop_fixtures::{MS, TrainingRun, each_item};
    use gnntop_wire::{Definition, put_definitions};

    use super::*;

    /// A run with these facts, of `TrainingRun`'s steps, that continues.
    fn progress(facts: &[Fact], run: &TrainingRun) -> Option<RunProgress> {
        let mut store = Store::default();
        each_item(&run.bytes(), |item| store.apply(item));
        let mut more = Vec::new();
        let facts: Vec<Definition> = facts.iter().cloned().map(Definition::Fact).collect();
        put_definitions(&mut more, &facts);
        each_item(&more, |item| store.apply(item));
        store.progress()
    }

    fn goal(text: &str) -> Fact {
        Fact::Goal { goal: text.parse().unwrap(), by: String::new() }
    }

    fn running() -> TrainingRun {
        let phases = vec![("forward", 10 * MS), ("backward", 20 * MS)];
        TrainingRun { steps: 100, epoch_steps: 40, phases, ends: false, ..TrainingRun::default() }
    }

    #[test]
    fn steps_left_take_as_long_as_the_newer_half() {
        assert_eq!(progress(&[], &running()), None, "nobody says how far it is meant to go");
        let found = progress(&[goal("300")], &running()).unwrap();
        assert_eq!((found.steps, found.steps_at_goal), (100, Some(300)));
        assert!((found.share().unwrap() - 1.0 / 3.0).abs() < 1e-9);
        let step_ns = found.left_ns.unwrap() as f64 / 200.0;
        assert!((30.0..36.0).contains(&(step_ns / MS as f64)), "{step_ns}");
        // Slow at first: only the newer half counts.
        let slow = (1..=10).map(|step| (step, "backward", 100 * MS)).collect();
        let found = progress(&[goal("300")], &TrainingRun { spikes: slow, ..running() }).unwrap();
        let later_ns = found.left_ns.unwrap() as f64 / 200.0;
        assert!((later_ns / step_ns - 1.0).abs() < 0.05, "{later_ns} {step_ns}");
    }

    #[test]
    fn steps_before_a_checkpoint_are_done() {
        let found = progress(&[goal("300"), Fact::Resumed { steps: 150 }], &running()).unwrap();
        assert_eq!((found.steps, found.steps_at_goal), (250, Some(300)));
    }

    #[test]
    fn epochs_are_as_long_as_those_that_are_over() {
        let found = progress(&[goal("5ep")], &running()).unwrap();
        assert_eq!((found.steps, found.steps_at_goal), (100, Some(200)), "two epochs of 40 are over");
        let first = TrainingRun { epoch_steps: 1000, ..running() };
        let found = progress(&[goal("5ep")], &first).unwrap();
        assert_eq!((found.steps_at_goal, found.share(), found.left_ns), (None, None, None));
    }

    #[test]
    fn nothing_is_left_of_a_run_that_is_over_or_at_its_goal() {
        let at_goal = progress(&[goal("90")], &running()).unwrap();
        assert_eq!((at_goal.share(), at_goal.left_ns), (Some(1.0), None));
        let ended = progress(&[goal("300")], &TrainingRun { ends: true, ..running() }).unwrap();
        assert_eq!((ended.steps, ended.left_ns), (100, None));
        let few = progress(&[goal("300")], &TrainingRun { steps: 4, ..running() }).unwrap();
        assert_eq!(few.left_ns, None, "no pace yet");
    }
}
