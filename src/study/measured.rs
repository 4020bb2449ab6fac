//! The figures of a recording by name, and the summary of a setting's runs, so that they can be compared with published values.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::StudySetting;
use super::published::median;
use crate::report::{Options, Report};
use gnntop_analysis::catalogue::FigureId;
use gnntop_analysis::ranks::Run;

/// The summary of a setting's recordings.
pub struct MeasuredSetting {
    /// The setting.
    pub setting: StudySetting,
    /// How many runs were to be done.
    pub planned: usize,
    /// The numbers of those that are there.
    pub runs: Vec<Numbers>,
    /// The report of one of them, for figures.
    pub report: Option<Report>,
}

impl MeasuredSetting {
    /// The number of each run.
    pub(super) fn values(&self, figure: &FigureId) -> Vec<f64> {
        self.runs.iter().filter_map(|numbers| numbers.get(figure)).collect()
    }

    /// The median of the runs.
    pub(super) fn median(&self, figure: &FigureId) -> Option<f64> {
        median(&self.values(figure))
    }

    /// The smallest and the largest number of a run.
    pub(super) fn range(&self, figure: &FigureId) -> Option<(f64, f64)> {
        let values = self.values(figure);
        let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        Some((low, high))
    }

    /// Whether a claim about the setting of this name is about this one: names are those of the full size.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.setting.like == name
    }
}

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
        let catalogue = options.catalogue(run);
        let report = Report::new(&catalogue, options);
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
