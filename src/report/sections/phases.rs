//! The phases of a report, with the gap and the whole step.

use serde::Serialize;

use super::durations::{self, Durations};
use crate::report::document::Block;
use gnntop_analysis::catalogue::{Catalogue, Statistic, Subject};
use gnntop_analysis::figures::percent;
use gnntop_analysis::store::StepStatistics;

/// The subjects of phases, of the period and of the step by the host's clock.
pub(in crate::report) const SUBJECTS: [&str; 3] = ["NAME", "period", "step"];

const INTERVALS: &str = "The 95 % intervals of means (± mean) and of percentiles are in JSON and CSV. They assume independent \
                         steps and are too narrow if step times drift.";

/// A phase's time per step, over the steps that spend any in it; the gap's and the whole step's over all steps.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseLine {
    /// The phase's name, `gap`, `period` (the step with the gap before it: the phases and the gap add up to it) or `step`
    /// (from its own start).
    pub name: String,
    /// How it is inferred; absent of a phase that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inferred: Option<String>,
    /// Its durations.
    #[serde(flatten)]
    pub durations: Durations,
    /// Share (0 to 1) of the steps' wall time; `null` without a step.
    pub share: Option<f64>,
}

impl PhaseLine {
    /// The name as people read it: with a star where the phase is inferred.
    pub fn marked_name(&self) -> String {
        format!("{}{}", self.name, if self.inferred.is_some() { "*" } else { "" })
    }
}

/// The phases and the whole step, by the clock that the statistics are by; their subjects are those of phases, of the period
/// and of the step. A phase that takes no time is left out.
pub(in crate::report) fn phase_lines(
    figures: &Catalogue<'_>,
    statistics: &StepStatistics,
    [phase, period, step]: [&str; 3],
    percentages: &[f64],
) -> Vec<PhaseLine> {
    if statistics.steps() == 0 {
        return Vec::new();
    }
    let store = figures.store();
    let line = |name: &str, inferred: Option<&str>, subject: Subject<'_, '_>| PhaseLine {
        name: name.to_owned(),
        inferred: inferred.map(str::to_owned),
        durations: Durations::new(subject, percentages),
        share: subject.value(Statistic::Share),
    };
    // Where the program names no phases, all time is in none: that is no gap.
    let phases = store.phases().iter().filter(|_| store.phases().len() > 1);
    let phases = phases.filter(|shown| statistics.phase(shown.slot).is_some()).map(|shown| shown.text.as_str());
    let phases = phases.map(|name| line(name, store.session().inferred(name), figures.subject(phase, name)));
    let both =
        [("period", period), ("step", step)].map(|(name, subject)| line(name, None, figures.subject(subject, "")));
    phases.chain(both).collect()
}

/// The section; nothing without steps.
pub(in crate::report) fn blocks(phases: &[PhaseLine]) -> Vec<Block> {
    let lines = phases.iter().map(|line| (line.marked_name(), &line.durations, line.share));
    let Some(table) = durations::table("phase", lines) else { return Vec::new() };
    vec![Block::heading("Phases"), table, Block::Paragraph(INTERVALS.to_owned())]
}

/// The section on several recordings: a row for each statistic.
pub(in crate::report) fn comparison_blocks(of: &[(&str, &[PhaseLine])]) -> Vec<Block> {
    let mut names: Vec<&str> = Vec::new();
    for line in of.iter().flat_map(|(_, lines)| *lines) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    let head = ["phase", "statistic"].into_iter().chain(of.iter().map(|(name, _)| *name)).map(str::to_owned);
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for name in names {
        let cells = |(_, lines): &(&str, &[PhaseLine])| {
            let line = lines.iter().find(|line| line.name == name)?;
            let share = line.share.map_or_else(|| "-".to_owned(), percent);
            Some(line.durations.with_names().into_iter().chain([("share".to_owned(), share)]).collect::<Vec<_>>())
        };
        let cells: Vec<Option<Vec<(String, String)>>> = of.iter().map(cells).collect();
        let Some(statistics) = cells.iter().flatten().next() else { continue };
        for (at, (statistic, _)) in statistics.iter().enumerate() {
            let of_each =
                cells.iter().map(|cells| cells.as_ref().map_or_else(|| "-".to_owned(), |all| all[at].1.clone()));
            rows.push([name.to_owned(), statistic.clone()].into_iter().chain(of_each).collect());
        }
    }
    vec![Block::heading("Phases"), Block::table(rows)]
}
