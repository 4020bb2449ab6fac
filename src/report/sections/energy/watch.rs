//! Energy of a running session, computed again and again at a bounded cost.

use std::time::{Duration, Instant};

use super::figures::Energy;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::{Assumptions, EnergyBook};
use gnntop_analysis::ranks::{Run, RunEnergy};
use gnntop_analysis::store::Store;

/// Between two looks this many times as long as the last one took: at most 1 % of a core.
const REST: u32 = 99;
/// A look is no use more often than this: a person reads figures, not their flicker.
const SHORTEST_REST: Duration = Duration::from_secs(1);

/// Energy of a session at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergySnapshot {
    /// The figures of the run, its epochs and its mean step.
    pub figures: Energy,
    /// To ask for other times.
    pub book: EnergyBook,
    /// Of all ranks together, where the session is one of several.
    pub ranks: Option<RunEnergy>,
}

impl EnergySnapshot {
    /// Energy of what the store holds. Takes milliseconds.
    pub fn new(store: &Store, assumptions: &Assumptions) -> Self {
        let figures = Catalogue::new(store).with_assumptions(assumptions.clone());
        Self { figures: Energy::new(&figures), book: figures.into_energy(), ranks: None }
    }

    /// Energy of the selected session of a run, and of all its ranks together.
    pub fn for_run(run: &Run, assumptions: &Assumptions) -> Self {
        let ranks = run.is_parallel().then(|| RunEnergy::new(&run.ranks(), assumptions));
        Self { ranks, ..Self::new(run.store(), assumptions) }
    }
}

/// Keeps a session's energy figures about a second old, for at most 1 % of a core.
#[derive(Debug, Default)]
pub struct EnergyWatch {
    assumptions: Assumptions,
    /// The run's revision at the last look.
    revision: Option<(Option<u32>, u64)>,
    next: Option<Instant>,
}

impl EnergyWatch {
    /// One without figures yet.
    pub fn new(assumptions: Assumptions) -> Self {
        Self { assumptions, revision: None, next: None }
    }

    /// One of another session under the same assumptions.
    #[must_use]
    pub fn for_next_session(&self) -> Self {
        Self::new(self.assumptions.clone())
    }

    /// Tells it again if there is anything new and it is time.
    pub fn update(&mut self, run: &Run) -> Option<EnergySnapshot> {
        let begin = Instant::now();
        if self.revision == Some(run.revision()) || self.next.is_some_and(|next| begin < next) {
            return None;
        }
        let told = self.refresh(run);
        self.next = Some(Instant::now() + (begin.elapsed() * REST).max(SHORTEST_REST));
        Some(told)
    }

    /// Tells it at once, whatever it costs: after a jump in a recording.
    pub fn refresh(&mut self, run: &Run) -> EnergySnapshot {
        self.revision = Some(run.revision());
        EnergySnapshot::for_run(run, &self.assumptions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{TrainingRun, each_item};

    #[test]
    fn watch_updates_on_news_and_rests_between() {
        let mut run = Run::default();
        let given = Assumptions { cpu_watts: Some(10.0), ram_watts: Some(2.0), ..Assumptions::default() };
        let mut watch = EnergyWatch::new(given.clone());
        assert!(watch.update(&run).is_some(), "at first");
        assert!(watch.update(&run).is_none(), "nothing new");
        each_item(&TrainingRun::default().bytes(), |item| run.apply(item));
        watch.next = Some(Instant::now() + Duration::from_secs(3600));
        assert!(watch.update(&run).is_none(), "it rests");
        let told = watch.refresh(&run);
        assert_eq!(told, EnergySnapshot::new(run.store(), &given), "but not after a jump");
        assert!(told.figures.in_scope().is_some_and(|joules| joules.joules > 0.0), "{told:?}");
        watch.next = None;
        assert!(watch.update(&run).is_none(), "that was all there is");
        assert!(watch.for_next_session().update(&run).is_some_and(|again| again == told), "another session's");
    }
}
