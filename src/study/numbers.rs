//! The summary of one recording: its figures by name, so that several runs of a setting can be combined and compared with
//! published values.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::{Options, Report};
use gnntop_analysis::catalogue::FigureId;
use gnntop_analysis::ranks::Run;

/// Figures of one recording. What was not measured is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    by_figure: BTreeMap<FigureId, f64>,
    /// Where the energy comes from, such as `modelled`.
    energy_label: Option<&'static str>,
}

impl Numbers {
    /// Every figure of a recording, those that are wanted beside, and its report with these options: without the steps
    /// that they leave out. Of a run of several ranks they are rank 0's. `None` if no step is left.
    pub fn new(run: &Run, options: &Options, wanted: &BTreeSet<&FigureId>) -> Option<(Self, Report)> {
        run.store().steps().rows(options.skip_steps..u64::MAX).next()?;
        let report = Report::for_run(run, options);
        let catalogue = options.catalogue(run).with_findings(report.findings.clone());
        let listed = catalogue.list().into_iter().map(|(id, measured)| (id, measured.value));
        let named = |id: &&FigureId| Some(((*id).clone(), catalogue.get(&catalogue.resolve(id).ok()?).ok()?.value));
        let by_figure = listed.chain(wanted.iter().filter_map(named)).collect();
        let energy_label = report.energy.in_scope().map(|joules| joules.label.as_str());
        Some((Self { by_figure, energy_label }, report))
    }

    /// The value of a figure.
    pub fn get(&self, figure: &FigureId) -> Option<f64> {
        self.by_figure.get(figure).copied()
    }

    /// Where the numbers on energy come from, such as `modelled`; `None` if there are none.
    pub fn energy_label(&self) -> Option<&'static str> {
        self.energy_label
    }
}
