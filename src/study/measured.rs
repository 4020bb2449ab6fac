//! The summary of a setting's runs.

use super::numbers::Numbers;
use super::plan::StudySetting;
use super::published::median;
use crate::report::Report;
use gnntop_analysis::catalogue::FigureId;

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
