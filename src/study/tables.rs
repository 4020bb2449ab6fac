//! Tables of a study's report: a row a setting.

use super::measured::Measured;
use super::numbers::{Numbers, Unit, unit_of};
use crate::report::Document;
use gnntop_analysis::figures::{bytes, count, duration, percent, quantity};

/// Columns of the first table: what is measured, and its head.
pub(super) const TIMES: [(&str, &str); 10] = [
    ("steps per second", "steps/s"),
    ("period p50", "period p50"),
    ("period p90", "period p90"),
    ("period p99", "period p99"),
    ("work p50", "work p50"),
    ("between mean", "between steps"),
    ("gap mean", "gap"),
    ("epoch first", "first epoch"),
    ("epoch wall", "epoch, wall"),
    ("epoch work", "epoch, sum of work"),
];
pub(super) const BATCHES: [(&str, &str); 5] = [
    ("full batch p50", "period p50, full batches"),
    ("partial batch p50", "period p50, partial batches"),
    ("partial batches", "partial batches"),
    ("spikes", "spikes"),
    ("outliers", "work > 1.5 x median"),
];
pub(super) const MEMORY: [(&str, &str); 5] = [
    ("heap peak", "peak heap"),
    ("resident peak", "peak resident memory"),
    ("machine memory mean", "machine memory"),
    ("process cpu", "process cores"),
    ("gpu utilisation", "GPU"),
];
const ENERGY: [(&str, &str); 7] = [
    ("energy per step", "per step"),
    ("energy per epoch", "per epoch"),
    ("energy share cpu", "cpu"),
    ("energy share gpu", "gpu"),
    ("energy share memory", "memory"),
    ("carbon per step", "carbon per step"),
    ("carbon per epoch", "carbon per epoch"),
];
const RATIOS: [(&str, &str); 7] = [
    ("steps per second", "steps/s"),
    ("period p50", "period p50"),
    ("period p99", "period p99"),
    ("work p50", "work p50"),
    ("between mean", "between steps"),
    ("epoch wall", "epoch, wall"),
    ("heap peak", "heap"),
];

pub(super) fn settings(measured: &[Measured]) -> Vec<Vec<String>> {
    let row = |one: &Measured| {
        let runs = format!("{} of {}", one.runs.len(), one.planned);
        let (steps, left_out) = (cell("steps", one.median("steps")), count(one.setting.warm_up_steps));
        vec![one.setting.name.clone(), one.setting.words.join(" "), runs, steps, left_out]
    };
    let head = ["setting", "options", "runs", "steps per run", "skipped before"].map(str::to_owned).to_vec();
    std::iter::once(head).chain(measured.iter().map(row)).collect()
}

/// A table with a row a setting and these columns.
pub(super) fn columns<'a>(
    measured: impl IntoIterator<Item = &'a Measured>,
    columns: &[(&str, &str)],
) -> Vec<Vec<String>> {
    let head = std::iter::once("setting").chain(columns.iter().map(|(_, head)| *head)).map(str::to_owned).collect();
    let row = |one: &Measured| {
        let cells = columns.iter().map(|(measure, _)| cell(measure, one.median(measure)));
        std::iter::once(one.setting.name.clone()).chain(cells).collect()
    };
    std::iter::once(head).chain(measured.into_iter().map(row)).collect()
}

/// A number with its unit; a dash where there is none.
pub(super) fn cell(measure: &str, value: Option<f64>) -> String {
    let (Some(value), Some(unit)) = (value, unit_of(measure)) else { return "-".to_owned() };
    match unit {
        Unit::Time => duration(value.round() as u64),
        Unit::Share => percent(value),
        Unit::Count if value.fract() == 0.0 => count(value as u64),
        Unit::Count => quantity(value),
        Unit::Rate => format!("{}/s", quantity(value)),
        Unit::Bytes => bytes(value),
        Unit::Cores => format!("{} cores", quantity(value)),
        Unit::Energy => format!("{} J", quantity(value)),
        Unit::Carbon if value < 0.1 => format!("{} mg", quantity(value * 1e3)),
        Unit::Carbon => format!("{} g", quantity(value)),
        Unit::Number => quantity(value),
    }
}

/// How far the runs of a setting differ, if there are several.
pub(super) fn spread(document: &mut Document, measured: &[Measured]) {
    let range = |one: &Measured, measure: &str| match one.range(measure) {
        Some((low, high)) => format!("{} to {}", cell(measure, Some(low)), cell(measure, Some(high))),
        None => "-".to_owned(),
    };
    let row = |one: &Measured| {
        let runs = count(one.runs.len() as u64);
        vec![
            one.setting.name.clone(),
            runs,
            range(one, "period p50"),
            range(one, "epoch wall"),
            range(one, "heap peak"),
        ]
    };
    let rows: Vec<Vec<String>> = measured.iter().filter(|one| one.runs.len() > 1).map(row).collect();
    if !rows.is_empty() {
        document.paragraph("From run to run:");
        let head = ["setting", "runs", "median period", "median epoch, wall", "peak heap"].map(str::to_owned).to_vec();
        document.table(std::iter::once(head).chain(rows).collect());
    }
}

/// The most bytes that were live while each phase ran, of each setting's last run; nothing if nothing counts them.
pub(super) fn memory_by_phase(document: &mut Document, measured: &[Measured]) {
    let mut phases: Vec<&str> = Vec::new();
    for phase in measured.iter().filter_map(|one| one.report.as_ref()).flat_map(|report| &report.memory.phases) {
        if !phases.contains(&phase.name.as_str()) {
            phases.push(&phase.name);
        }
    }
    if phases.is_empty() {
        return;
    }
    let row = |one: &Measured| {
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
pub(super) fn energy(document: &mut Document, measured: &[Measured]) {
    let label = |one: &Measured| one.runs.iter().find_map(Numbers::energy_label);
    if measured.iter().all(|one| label(one).is_none()) {
        return;
    }
    document.heading("Energy");
    let mut rows = columns(measured, &ENERGY);
    let labels = std::iter::once("label").chain(measured.iter().map(|one| label(one).unwrap_or("-")));
    rows.iter_mut().zip(labels).for_each(|(row, label)| row.push(label.to_owned()));
    document.table(rows);
    document.paragraph(
        "Modelled energy is time multiplied by an assumed power, so it adds nothing to the times. Shares are of the known energy.",
    );
}

/// The last values of the programs' own counters, such as accuracies; nothing if there are none.
pub(super) fn counted(document: &mut Document, measured: &[Measured]) {
    let mut names: Vec<String> = Vec::new();
    for name in measured.iter().flat_map(|one| &one.runs).flat_map(Numbers::counters) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        return;
    }
    document.heading("Last values of the programs' counters");
    let measures: Vec<String> = names.iter().map(|name| format!("last {name}")).collect();
    let pairs: Vec<(&str, &str)> = measures.iter().map(String::as_str).zip(names.iter().map(String::as_str)).collect();
    document.table(columns(measured, &pairs));
}

pub(super) fn shares(measured: &[Measured]) -> Vec<Vec<String>> {
    let mut phases: Vec<&str> = Vec::new();
    // In the order of the reports, which is that of the screen.
    let reported = measured.iter().filter_map(|one| one.report.as_ref()).flat_map(|report| &report.phases);
    let numbered = measured.iter().flat_map(|one| &one.runs).flat_map(Numbers::phases);
    for phase in
        reported.map(|line| line.name.as_str()).filter(|name| !matches!(*name, "period" | "step")).chain(numbered)
    {
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    let names: Vec<String> = phases.iter().map(|phase| format!("share {phase}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(phases).collect();
    columns(measured, &pairs)
}

pub(super) fn against_the_first(document: &mut Document, measured: &[Measured]) {
    let Some((first, others)) = measured.split_first().filter(|(_, others)| !others.is_empty()) else { return };
    document.heading(format!("Against {}", first.setting.name));
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once("setting").chain(RATIOS.iter().map(|(_, head)| *head)).map(str::to_owned).collect()];
    for one in others {
        let ratio = |measure: &str| {
            let ratio = one.median(measure)? / first.median(measure)?;
            ratio.is_finite().then(|| times(ratio))
        };
        let cells = RATIOS.iter().map(|(measure, _)| ratio(measure).unwrap_or_else(|| "-".to_owned()));
        rows.push(std::iter::once(one.setting.name.clone()).chain(cells).collect());
    }
    document.table(rows);
}

pub(super) fn times(ratio: f64) -> String {
    format!("x {}", quantity(ratio))
}
