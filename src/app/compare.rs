//! Another session beside the one shown, and how the two compare.

use std::time::Duration;

use gnntop_analysis::comparison::{Comparison, compare};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::Status;
use gnntop_analysis::store::Store;

/// Percentiles that the view shows besides the mean, if there is room.
const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];
/// Comparing takes tens of milliseconds, so it is repeated only when the number of steps has grown by this factor...
const MORE: f64 = 1.05;
/// ...or when there are new ones at all after this long.
const REST: Duration = Duration::from_secs(2);

/// A session to compare with.
#[derive(Default)]
pub struct ComparedSession {
    /// Its history. Its source writes it; the compare view reads the selected rank.
    pub run: Run,
    status: Status,
    comparison: Option<(Comparison, ComparedState)>,
}

/// What was compared, and when.
struct ComparedState {
    at: Duration,
    ranks: [Option<u32>; 2],
    steps: [u64; 2],
}

impl ComparedState {
    fn new(runs: [&Run; 2], now: Duration) -> Self {
        Self { at: now, ranks: runs.map(Run::rank), steps: runs.map(|run| run.store().steps().total()) }
    }

    /// Whether what is seen now is worth comparing again.
    fn is_outdated(&self, now: &Self) -> bool {
        let more = |(before, now): (&u64, &u64)| now < before || *now as f64 >= MORE * *before as f64 && now > before;
        let has_more = self.steps.iter().zip(&now.steps).any(more);
        let has_news = self.steps != now.steps && now.at >= self.at + REST;
        self.ranks != now.ranks || has_more || has_news
    }
}

impl ComparedSession {
    /// The history of the session, or of the rank, to compare with.
    pub fn store(&self) -> &Store {
        self.run.store()
    }

    /// The status of its source.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How the session that is shown, as A, compares with this one, as B; `None` before the view was shown.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref().map(|(comparison, _)| comparison)
    }

    /// Its source was asked.
    pub(super) fn set_status(&mut self, status: Status) {
        self.status = status;
    }

    /// Compares again if there is enough new data. Returns whether it did.
    pub(super) fn compare_with(&mut self, shown: &Run, now: Duration) -> bool {
        let seen = ComparedState::new([shown, &self.run], now);
        let is_new = self.comparison.as_ref().is_none_or(|(_, before)| before.is_outdated(&seen));
        if is_new {
            self.comparison = Some((compare(&[shown], &[&self.run], &PERCENTILES), seen));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{TrainingRun, each_item};

    #[test]
    fn comparison_is_repeated_after_enough_new_steps() {
        let run = |steps| {
            let mut run = Run::default();
            each_item(&TrainingRun { steps, ..TrainingRun::default() }.bytes(), |item| run.apply(item));
            run
        };
        let mut other = ComparedSession { run: run(50), ..ComparedSession::default() };
        let at = Duration::from_secs;
        assert!(other.compare_with(&run(100), at(0)), "at first");
        assert!(!other.compare_with(&run(100), at(9)), "nothing is new");
        assert!(!other.compare_with(&run(101), at(1)), "little is new");
        assert!(other.compare_with(&run(101), at(2)), "but it is old");
        assert!(other.compare_with(&run(110), at(3)), "much is new");
        assert!(other.compare_with(&run(20), at(3)), "after a jump back");
        assert_eq!(other.comparison().unwrap().sides[0].steps, 20);
    }
}
