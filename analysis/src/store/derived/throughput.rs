//! How fast the run is now: rates over the steps of the last seconds.

use gnntop_wire::Reported;
use serde::Serialize;

use crate::store::contents::Store;
use crate::store::session::SessionState;
use crate::store::steps::statistics::{BatchTotals, StepStatistics};
use crate::store::steps::step_row::StepRow;

/// Nothing is being done after this many usual steps without one...
const STILL_STEPS: u64 = 10;
/// ...and this long.
const STILL_NS: u64 = 3_000_000_000;

/// Work per second over some steps. A rate is `None` if the program does not report the number behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Throughput {
    /// Steps a second.
    pub steps_per_s: Option<f64>,
    /// Graphs a second.
    pub graphs_per_s: Option<f64>,
    /// Nodes a second.
    pub nodes_per_s: Option<f64>,
    /// Directed edges a second.
    pub edges_per_s: Option<f64>,
    /// Seed nodes a second.
    pub seeds_per_s: Option<f64>,
}

impl StepStatistics {
    /// Work per second of all steps' wall time.
    pub fn throughput(&self) -> Throughput {
        let BatchTotals { graphs, nodes, edges, seeds } = self.batch();
        Throughput {
            steps_per_s: self.steps_per_s(),
            graphs_per_s: graphs.per_s(),
            nodes_per_s: nodes.per_s(),
            edges_per_s: edges.per_s(),
            seeds_per_s: seeds.per_s(),
        }
    }
}

impl Store {
    /// Rows of the step's batch, where the program's batches are no graphs.
    pub fn samples_of(&self, row: &StepRow<'_>) -> Option<u64> {
        self.counted_in(row, Reported::Samples)
    }

    /// Tokens of the step's batch, those included that only fill it up, where it is of texts.
    pub fn tokens_of(&self, row: &StepRow<'_>) -> Option<u64> {
        self.counted_in(row, Reported::Tokens)
    }

    fn counted_in(&self, row: &StepRow<'_>, what: Reported) -> Option<u64> {
        let (t_ns, counted) = self.counter_of(what)?.series.last_before(row.end_ns())?;
        (t_ns > row.period_start_ns()).then_some(counted as u64)
    }

    /// Such rows a second over the steps that ended within `window_ns` before [`Store::now_ns`], at least the last one; `None` where
    /// no step has any.
    pub fn recent_samples_per_s(&self, window_ns: u64) -> Option<f64> {
        let since = self.now_ns().saturating_sub(window_ns);
        let (mut samples, mut period_ns) = (0u64, 0u64);
        for row in self.steps().all().rev() {
            if period_ns > 0 && row.end_ns() < since {
                break;
            }
            samples = samples.saturating_add(self.samples_of(&row)?);
            period_ns = period_ns.saturating_add(row.period_ns());
        }
        (period_ns > 0).then(|| samples as f64 * 1e9 / period_ns as f64)
    }

    /// Work per second over the steps that ended within `window_ns` before [`Store::now_ns`], at least the last one; 0 once
    /// there has been none for ten usual steps, 3 s and the window, unless the program has ended.
    pub fn recent_throughput(&self, window_ns: u64) -> Throughput {
        let since = self.now_ns().saturating_sub(window_ns);
        let mut totals = BatchTotals::default();
        let (mut steps, mut period_ns) = (0u64, 0u64);
        for row in self.steps().all().rev() {
            if steps > 0 && row.end_ns() < since {
                break;
            }
            steps += 1;
            period_ns = period_ns.saturating_add(row.period_ns());
            totals.add(&row.batch(), row.period_ns());
        }
        let usual_ns = self.statistics().period().percentile(0.5).unwrap_or(0);
        let still_ns = usual_ns.saturating_mul(STILL_STEPS).max(STILL_NS).max(window_ns);
        let idle_ns = self.steps().last().map_or(0, |row| self.now_ns().saturating_sub(row.end_ns()));
        let goes_on = idle_ns < still_ns || matches!(self.session().state(), SessionState::Ended(_));
        let now = |rate: Option<f64>| rate.map(|rate| if goes_on { rate } else { 0.0 });
        Throughput {
            steps_per_s: now((period_ns > 0).then(|| steps as f64 * 1e9 / period_ns as f64)),
            graphs_per_s: now(totals.graphs.per_s()),
            nodes_per_s: now(totals.nodes.per_s()),
            edges_per_s: now(totals.edges.per_s()),
            seeds_per_s: now(totals.seeds.per_s()),
        }
    }
}
