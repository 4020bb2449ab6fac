//! What a person looks for among the steps: the slowest ones in turn, and a range with what is found in it.

use std::cmp::Reverse;
use std::ops::Range;

use gnntop_analysis::findings::Judgement;
use gnntop_analysis::store::{StepMeasure, StepStatistics, StepTable, Store};

/// The steps that were looked for last.
#[derive(Clone, Debug, Default)]
pub(super) struct StepSearch {
    /// The slow step that was shown last.
    slow: Option<u64>,
    range: Option<RangeSummary>,
}

/// A range of steps, with what is found in it.
#[derive(Clone, Debug)]
pub struct RangeSummary {
    /// The steps.
    pub ordinals: Range<u64>,
    /// What bounds them, and what else is found in them, in a line.
    pub verdict: String,
    /// Their figures.
    pub statistics: StepStatistics,
}

impl StepSearch {
    /// The slowest step or, if the selected one was found so, the next slowest; with its place in that order, from 1.
    pub(super) fn next_slowest(
        &mut self,
        steps: &StepTable,
        measure: StepMeasure,
        selected: Option<u64>,
    ) -> Option<(u64, usize)> {
        let rows = steps.known_rows(0..steps.total()).filter(|row| !row.is_traced());
        let mut rows: Vec<(u64, u64)> = rows.filter_map(|row| Some((measure.value(&row)?, row.ordinal()))).collect();
        rows.sort_by_key(|(value, ordinal)| (Reverse(*value), *ordinal));
        let before = selected.filter(|at| self.slow == Some(*at));
        let before = before.and_then(|at| rows.iter().position(|(_, ordinal)| *ordinal == at));
        let at = before.map_or(0, |at| at + 1) % rows.len().max(1);
        self.slow = rows.get(at).map(|(_, ordinal)| *ordinal);
        Some((self.slow?, at + 1))
    }

    /// Looks at these steps.
    pub(super) fn judge(&mut self, store: &Store, ordinals: Range<u64>) {
        let verdict = Judgement::for_steps(store, ordinals.clone()).to_string();
        let statistics = store.steps().statistics(ordinals.clone());
        self.range = Some(RangeSummary { ordinals, verdict, statistics });
    }

    /// What is known of the selected range, if it was looked at.
    pub(super) fn summary(&self, selected: Option<Range<u64>>) -> Option<&RangeSummary> {
        self.range.as_ref().filter(|known| Some(&known.ordinals) == selected.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    fn store() -> Store {
        let spikes = vec![(70, "backward", 60 * MS), (40, "backward", 45 * MS)];
        let mut store = Store::new();
        each_item(&TrainingRun { steps: 100, spikes, ..TrainingRun::default() }.bytes(), |item| store.apply(item));
        store
    }

    #[test]
    fn slow_steps_come_in_turn_until_another_step_is_selected() {
        let (store, mut search) = (store(), StepSearch::default());
        let mut next = |selected| search.next_slowest(store.steps(), StepMeasure::Period, selected);
        let first = next(None).unwrap();
        assert_eq!(first, (69, 1));
        assert_eq!(next(Some(69)), Some((39, 2)));
        assert_eq!(next(Some(12)), Some((69, 1)), "another step was selected by hand");
        assert_eq!(StepSearch::default().next_slowest(Store::new().steps(), StepMeasure::Period, None), None);
    }

    #[test]
    fn range_keeps_its_verdict_while_it_is_selected() {
        let (store, mut search) = (store(), StepSearch::default());
        search.judge(&store, 10..90);
        let summary = search.summary(Some(10..90)).unwrap();
        assert!(summary.verdict.contains("-bound"), "{}", summary.verdict);
        assert!(search.summary(Some(10..91)).is_none() && search.summary(None).is_none());
    }
}
