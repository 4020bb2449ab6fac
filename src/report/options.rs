//! Options of a report.

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::ranks::Run;

/// Options of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Percentiles to give, from 0 to 100, in the order in which they are shown.
    pub percentiles: Vec<f64>,
    /// Steps at the start of the session to leave out.
    pub skip_steps: u64,
    /// Spans to list, those with the largest total first.
    pub top_spans: usize,
    /// Assumptions for energy and carbon.
    pub assumptions: Assumptions,
    /// Graphs or seeds a second of one rank alone, if measured in a separate run.
    pub one_rank_per_s: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        let percentiles = vec![50.0, 90.0, 99.0];
        Self { percentiles, skip_steps: 0, top_spans: 12, assumptions: Assumptions::default(), one_rank_per_s: None }
    }
}

impl Options {
    /// The figures of a run under these options.
    pub fn catalogue<'a>(&self, run: &'a Run) -> Catalogue<'a> {
        self.apply_to(Catalogue::with_run(run))
    }

    /// These figures under these options.
    pub fn apply_to<'a>(&self, figures: Catalogue<'a>) -> Catalogue<'a> {
        figures
            .with_skipped_steps(self.skip_steps)
            .with_percentiles(&self.percentiles)
            .with_assumptions(self.assumptions.clone())
            .with_one_rank_per_s(self.one_rank_per_s)
    }
}
