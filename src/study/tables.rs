//! Tables of a study's report: a row a setting.

use super::measured::{MeasuredSetting, Numbers};
use crate::report::{Document, Report};
use gnntop_analysis::catalogue::{FigureId, Statistic};
use gnntop_analysis::figures::{bytes, count, quantity};

/// Columns of the first table: what is measured, and its head.
pub(super) const TIMES: [(&str, &str); 10] = [
    ("steps.per_s", "steps/s"),
    ("period.p50", "period p50"),
    ("period.p90", "period p90"),
    ("period.p99", "period p99"),
    ("work.p50", "work p50"),
    ("between.mean", "between steps"),
    ("gap.mean", "gap"),
    ("epoch.first", "first epoch"),
    ("epoch.p50", "epoch, wall"),
    ("epoch.work.p50", "epoch, sum of work"),
];
pub(super) const BATCHES: [(&str, &str); 5] = [
    ("full_batch.p50", "period p50, full batches"),
    ("partial_batch.p50", "period p50, partial batches"),
    ("partial_batch.count", "partial batches"),
    ("finding.spike.count", "spikes"),
    ("outliers.count", "work > 1.5 x median"),
];
pub(super) const MEMORY: [(&str, &str); 5] = [
    ("heap.peak", "peak heap"),
    ("process.rss.peak", "peak resident memory"),
    ("machine.memory.used.mean", "machine memory"),
    ("process.cpu_time.per_s", "process cores"),
    ("gpu.busiest.util.mean", "GPU"),
];
const ENERGY: [(&str, &str); 7] = [
    ("energy.per_step", "per step"),
    ("energy.per_epoch", "per epoch"),
    ("energy.cpu.share", "cpu"),
    ("energy.gpu.share", "gpu"),
    ("energy.memory.share", "memory"),
    ("carbon.per_step", "carbon per step"),
    ("carbon.per_epoch", "carbon per epoch"),
];
const SPREAD: [(&str, &str); 3] =
    [("period.p50", "median period"), ("epoch.p50", "median epoch, wall"), ("heap.peak", "peak heap")];
const RATIOS: [(&str, &str); 7] = [
    ("steps.per_s", "steps/s"),
    ("period.p50", "period p50"),
    ("period.p99", "period p99"),
    ("work.p50", "work p50"),
    ("between.mean", "between steps"),
    ("epoch.p50", "epoch, wall"),
    ("heap.peak", "heap"),
];

pub(super) fn settings(measured: &[MeasuredSetting]) -> Vec<Vec<String>> {
    let row = |one: &MeasuredSetting| {
        let runs = format!("{} of {}", one.runs.len(), one.planned);
        let left_out = count(one.setting.warm_up_steps);
        vec![one.setting.name.clone(), one.setting.words.join(" "), runs, figure_cell(one, "steps.count"), left_out]
    };
    let head = ["setting", "options", "runs", "steps per run", "skipped before"].map(str::to_owned).to_vec();
    std::iter::once(head).chain(measured.iter().map(row)).collect()
}

/// A table with a row a setting and these columns: figures and their heads.
pub(super) fn columns<'a>(
    measured: impl IntoIterator<Item = &'a MeasuredSetting>,
    columns: &[(FigureId, &str)],
) -> Vec<Vec<String>> {
    let head = std::iter::once("setting").chain(columns.iter().map(|(_, head)| *head)).map(str::to_owned).collect();
    let row = |one: &MeasuredSetting| {
        let cells = columns.iter().map(|(figure, _)| cell(figure, one.median(figure)));
        std::iter::once(one.setting.name.clone()).chain(cells).collect()
    };
    std::iter::once(head).chain(measured.into_iter().map(row)).collect()
}

/// Columns by the names of their figures.
pub(super) fn named_columns<'a>(columns: &[(&str, &'a str)]) -> Vec<(FigureId, &'a str)> {
    columns.iter().filter_map(|(figure, head)| Some((figure.parse().ok()?, *head))).collect()
}

/// A number with its unit; a dash where there is none.
pub(super) fn cell(figure: &FigureId, value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| figure.unit().format(value))
}

fn figure_cell(one: &MeasuredSetting, figure: &str) -> String {
    figure.parse().map_or_else(|_| "-".to_owned(), |figure| cell(&figure, one.median(&figure)))
}

/// How far the runs of a setting differ, if there are several.
pub(super) fn spread(document: &mut Document, measured: &[MeasuredSetting]) {
    let range = |one: &MeasuredSetting, (figure, _): &(FigureId, &str)| match one.range(figure) {
        Some((low, high)) => format!("{} to {}", cell(figure, Some(low)), cell(figure, Some(high))),
        None => "-".to_owned(),
    };
    let columns = named_columns(&SPREAD);
    let row = |one: &MeasuredSetting| {
        let cells = columns.iter().map(|column| range(one, column));
        [one.setting.name.clone(), count(one.runs.len() as u64)].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = measured.iter().filter(|one| one.runs.len() > 1).map(row).collect();
    if !rows.is_empty() {
        document.paragraph("From run to run:");
        let heads = ["setting", "runs"].into_iter().chain(columns.iter().map(|(_, head)| *head));
        document.table(std::iter::once(heads.map(str::to_owned).collect()).chain(rows).collect());
    }
}

/// The most bytes that were live while each phase ran, of each setting's last run; nothing if nothing counts them.
pub(super) fn memory_by_phase(document: &mut Document, measured: &[MeasuredSetting]) {
    let phases = reported_names(measured, |report| report.memory.phases.iter().map(|phase| phase.name.as_str()));
    if phases.is_empty() {
        return;
    }
    let row = |one: &MeasuredSetting| {
        let of = |name: &&str| {
            let phases = one.report.as_ref().map(|report| report.memory.phases.as_slice()).unwrap_or_default();
            let phase = phases.iter().find(|phase| phase.name == **name);
            phase.map_or_else(|| "-".to_owned(), |phase| bytes(phase.peak_live_bytes as f64))
        };
        std::iter::once(one.setting.name.clone()).chain(phases.iter().map(of)).collect::<Vec<String>>()
    };
    let head = std::iter::once("setting").chain(phases.iter().copied()).map(str::to_owned).collect();
    document.paragraph("Peak heap while each phase ran, in the last run:");
    document.table(std::iter::once(head).chain(measured.iter().map(row)).collect());
}

/// Energy with the origin of its numbers; nothing if none is known.
pub(super) fn energy(document: &mut Document, measured: &[MeasuredSetting]) {
    let label = |one: &MeasuredSetting| one.runs.iter().find_map(Numbers::energy_label);
    if measured.iter().all(|one| label(one).is_none()) {
        return;
    }
    document.heading("Energy");
    let mut rows = columns(measured, &named_columns(&ENERGY));
    let labels = std::iter::once("label").chain(measured.iter().map(|one| label(one).unwrap_or("-")));
    rows.iter_mut().zip(labels).for_each(|(row, label)| row.push(label.to_owned()));
    document.table(rows);
    document.paragraph(
        "Modelled energy is time multiplied by an assumed power, so it adds nothing to the times. Shares are of the known energy.",
    );
}

/// The last values of the programs' own counters, such as accuracies; nothing if there are none.
pub(super) fn program_counters(document: &mut Document, measured: &[MeasuredSetting]) {
    let counters = reported_names(measured, |report| report.counters.iter().map(|counter| counter.name.as_str()));
    if counters.is_empty() {
        return;
    }
    document.heading("Last values of the programs' counters");
    let last = |name| Some((format!("counter.\"{name}\".last").parse().ok()?, name));
    document.table(columns(measured, &counters.into_iter().filter_map(last).collect::<Vec<(FigureId, &str)>>()));
}

/// The share of each phase.
pub(super) fn shares(measured: &[MeasuredSetting]) -> Vec<Vec<String>> {
    let phases = reported_names(measured, |report| report.phases.iter().map(|line| line.name.as_str()));
    let phases = phases.into_iter().filter(|name| !matches!(*name, "period" | "step"));
    let pairs = phases.filter_map(|phase| Some((FigureId::for_phase(phase, Statistic::Share)?, phase)));
    columns(measured, &pairs.collect::<Vec<(FigureId, &str)>>())
}

/// The names that reports have, each once, in their order, which is that of the screen.
fn reported_names<'a, N: Iterator<Item = &'a str>>(
    measured: &'a [MeasuredSetting],
    of: impl Fn(&'a Report) -> N,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in measured.iter().filter_map(|one| one.report.as_ref()).flat_map(of) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

pub(super) fn compare_with_first(document: &mut Document, measured: &[MeasuredSetting]) {
    let Some((first, others)) = measured.split_first().filter(|(_, others)| !others.is_empty()) else { return };
    document.heading(format!("Against {}", first.setting.name));
    let ratios = named_columns(&RATIOS);
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once("setting").chain(RATIOS.iter().map(|(_, head)| *head)).map(str::to_owned).collect()];
    for one in others {
        let ratio = |figure: &FigureId| {
            let ratio = one.median(figure)? / first.median(figure)?;
            ratio.is_finite().then(|| times(ratio))
        };
        let cells = ratios.iter().map(|(figure, _)| ratio(figure).unwrap_or_else(|| "-".to_owned()));
        rows.push(std::iter::once(one.setting.name.clone()).chain(cells).collect());
    }
    document.table(rows);
}

pub(super) fn times(ratio: f64) -> String {
    format!("x {}", quantity(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_figure() {
        for columns in [&TIMES[..], &BATCHES, &MEMORY, &ENERGY, &SPREAD, &RATIOS] {
            assert_eq!(named_columns(columns).len(), columns.len(), "{columns:?}");
        }
    }
}
