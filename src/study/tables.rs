//! The report of a study: a row a setting, ratios to the first one, and published values beside ours.

use crate::figures::{bytes, count, duration, percent, quantity};
use crate::report::{Document, Report};

use super::published::median;
use super::{Comparison, Holds, Numbers, Published, Setting, Study, Unit, unit_of};

/// What the recordings of a setting came to.
pub struct Measured {
    /// The setting.
    pub setting: Setting,
    /// How many runs were to be done.
    pub planned: usize,
    /// The numbers of those that are there.
    pub runs: Vec<Numbers>,
    /// The report of one of them, for figures.
    pub report: Option<Report>,
}

/// Columns of the first table: what is measured, and its head.
const TIMES: [(&str, &str); 10] = [
    ("steps per second", "steps/s"),
    ("step p50", "p50"),
    ("step p90", "p90"),
    ("step p99", "p99"),
    ("work p50", "work p50"),
    ("between mean", "between steps"),
    ("gap mean", "gap"),
    ("epoch first", "first epoch"),
    ("epoch wall", "epoch, wall"),
    ("epoch work", "epoch, sum of work"),
];
const BATCHES: [(&str, &str); 7] = [
    ("full batch p50", "full batch p50"),
    ("partial batch p50", "partial batch p50"),
    ("partial batches", "partial batches"),
    ("spikes", "spikes"),
    ("outliers", "work > 1.5 x median"),
    ("heap peak", "heap at most"),
    ("resident peak", "resident at most"),
];
const RATIOS: [(&str, &str); 7] = [
    ("steps per second", "steps/s"),
    ("step p50", "step p50"),
    ("step p99", "step p99"),
    ("work p50", "work p50"),
    ("between mean", "between steps"),
    ("epoch wall", "epoch, wall"),
    ("heap peak", "heap"),
];

const WORDS: &str = "A step runs from the end of the one before, as everywhere in gnntop. Its work is what remains \
    without the gap and without getting its batch: what timers around a step see. Between steps is the rest: an epoch's \
    wall time is the sum of both. The first epoch stands apart; the other columns on epochs are the median of the later \
    ones that have no step left out.";

impl Measured {
    /// The number of each run.
    fn values(&self, measure: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|numbers| numbers.get(measure)).collect()
    }

    fn median(&self, measure: &str) -> Option<f64> {
        median(&self.values(measure))
    }
}

/// The report. `failures` are what went wrong, one line each.
pub fn document(study: &Study, measured: &[Measured], failures: &[String]) -> Document {
    let mut document = Document::titled(format!("Study: {}", study.name));
    if !study.about.is_empty() {
        document.paragraph(study.about.clone());
    }
    document.table(settings(measured));
    let repeated = "Numbers are medians of a setting's runs.";
    document.paragraph(format!("{repeated} {} at the start of each are left out.", steps(study.warm_up_steps)));
    if !failures.is_empty() {
        document.heading("Failed");
        document.list(failures.to_vec());
    }
    document.heading("Time");
    document.table(columns(measured, &TIMES));
    document.paragraph(WORDS);
    spread(&mut document, measured);
    document.heading("Shares of the wall time");
    document.table(shares(measured));
    document.heading("Batches, spikes, memory");
    document.table(columns(measured, &BATCHES));
    ratios(&mut document, measured);
    publications(&mut document, study, measured);
    for one in measured {
        if let Some(report) = &one.report {
            document.heading(format!("{}: its last run", one.setting.name));
            document.paragraph(report.verdict.clone());
            document.figures(report);
        }
    }
    document
}

fn steps(count: u64) -> String {
    match count {
        0 => "No steps".to_owned(),
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    }
}

fn settings(measured: &[Measured]) -> Vec<Vec<String>> {
    let row = |one: &Measured| {
        let runs = format!("{} of {}", one.runs.len(), one.planned);
        vec![one.setting.name.clone(), one.setting.words.join(" "), runs, cell("steps", one.median("steps"))]
    };
    let head = ["setting", "options", "runs", "steps a run"].map(str::to_owned).to_vec();
    std::iter::once(head).chain(measured.iter().map(row)).collect()
}

/// A table with a row a setting and these columns.
fn columns(measured: &[Measured], columns: &[(&str, &str)]) -> Vec<Vec<String>> {
    let head = std::iter::once("setting").chain(columns.iter().map(|(_, head)| *head)).map(str::to_owned).collect();
    let row = |one: &Measured| {
        let cells = columns.iter().map(|(measure, _)| cell(measure, one.median(measure)));
        std::iter::once(one.setting.name.clone()).chain(cells).collect()
    };
    std::iter::once(head).chain(measured.iter().map(row)).collect()
}

/// A number with its unit; a dash where there is none.
fn cell(measure: &str, value: Option<f64>) -> String {
    let (Some(value), Some(unit)) = (value, unit_of(measure)) else { return "-".to_owned() };
    match unit {
        Unit::Time => duration(value.round() as u64),
        Unit::Share => percent(value),
        Unit::Count if value.fract() == 0.0 => count(value as u64),
        Unit::Count => quantity(value),
        Unit::Rate => format!("{}/s", quantity(value)),
        Unit::Bytes => bytes(value),
    }
}

/// How far the runs of a setting lie apart, where there are several.
fn spread(document: &mut Document, measured: &[Measured]) {
    let line = |one: &Measured| {
        let mut values = one.values("step p50");
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let range = format!("{} to {}", cell("step p50", Some(low)), cell("step p50", Some(high)));
        (values.len() > 1).then(|| format!("{}: {range} in {} runs", one.setting.name, values.len()))
    };
    let lines: Vec<String> = measured.iter().filter_map(line).collect();
    if !lines.is_empty() {
        document.paragraph("The median step from run to run:");
        document.list(lines);
    }
}

fn shares(measured: &[Measured]) -> Vec<Vec<String>> {
    let mut phases: Vec<&str> = Vec::new();
    // In the order of the reports, which is that of the screen.
    let reported = measured.iter().filter_map(|one| one.report.as_ref()).flat_map(|report| &report.phases);
    let numbered = measured.iter().flat_map(|one| &one.runs).flat_map(Numbers::phases);
    for phase in reported.map(|line| line.name.as_str()).filter(|name| *name != "step").chain(numbered) {
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    let names: Vec<String> = phases.iter().map(|phase| format!("share {phase}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(phases).collect();
    columns(measured, &pairs)
}

fn ratios(document: &mut Document, measured: &[Measured]) {
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

fn times(ratio: f64) -> String {
    format!("x {}", quantity(ratio))
}

fn publications(document: &mut Document, study: &Study, measured: &[Measured]) {
    let mut said = Vec::new();
    for published in &study.published {
        let compared = compared(published, measured);
        document.heading(format!("Published: {}", published.what));
        document.table(published_table(published, measured, &compared));
        document.paragraph(format!("Measured here: {}. Source: {}.", published.measure, published.source));
        let sentence = sentence(published, &compared);
        document.paragraph(sentence.clone());
        said.push(format!("{}: {sentence}", published.what));
    }
    if !said.is_empty() {
        document.heading("Whether the published directions hold");
        document.paragraph("Settings against the first one of each table, as ratios: more, less, or within 5 %.");
        document.list(said);
    }
}

/// The settings that have a published value, each held against the first of them. The first has no comparison.
fn compared<'a>(published: &Published, measured: &'a [Measured]) -> Vec<(&'a Measured, f64, Option<Comparison>)> {
    let with_value = |one: &'a Measured| Some((one, *published.values.get(&one.setting.like)?));
    let with_value: Vec<(&Measured, f64)> = measured.iter().filter_map(with_value).collect();
    let Some(((first, reference), others)) = with_value.split_first() else { return Vec::new() };
    let own = first.values(&published.measure);
    let compare = |(one, value): &(&'a Measured, f64)| {
        (*one, *value, Comparison::of((*reference, *value), &own, &one.values(&published.measure)))
    };
    std::iter::once((*first, *reference, None)).chain(others.iter().map(compare)).collect()
}

fn published_table(
    published: &Published,
    measured: &[Measured],
    compared: &[(&Measured, f64, Option<Comparison>)],
) -> Vec<Vec<String>> {
    let heads = ["setting", "as published", "published", "here", "published ratio", "ratio here", "direction"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for one in measured {
        let Some((_, value, comparison)) = compared.iter().find(|(of, _, _)| std::ptr::eq(*of, one)) else { continue };
        let ratio = |of: fn(&Comparison) -> f64| comparison.as_ref().map_or_else(|| "-".to_owned(), |c| times(of(c)));
        let holds = comparison.filter(|_| !published.is_placeholder).map_or("-", |c| c.holds.words());
        rows.push(vec![
            one.setting.name.clone(),
            one.setting.like.clone(),
            format!("{} {}", plain(*value), published.unit),
            cell(&published.measure, one.median(&published.measure)),
            ratio(|c| c.published_ratio),
            ratio(|c| c.own_ratio),
            holds.to_owned(),
        ]);
    }
    rows
}

/// A published number in its own digits.
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e9 { count(value as u64) } else { value.to_string() }
}

/// What became of a publication's direction, in words.
fn sentence(published: &Published, compared: &[(&Measured, f64, Option<Comparison>)]) -> String {
    if published.is_placeholder {
        return "the published values are placeholders and no measurements: nothing can hold or fail".to_owned();
    }
    let decided: Vec<(&Measured, Comparison)> = compared.iter().filter_map(|(one, _, c)| Some((*one, (*c)?))).collect();
    if decided.is_empty() {
        return "not decided: fewer than two settings with a published value were measured".to_owned();
    }
    let named = |holds: Holds| {
        let those = decided.iter().filter(|(_, comparison)| comparison.holds == holds);
        let words = |(one, c): &(&Measured, Comparison)| {
            format!("{} ({} published, {} here)", one.setting.name, times(c.published_ratio), times(c.own_ratio))
        };
        those.map(words).collect::<Vec<String>>()
    };
    let (yes, no, unclear) = (named(Holds::Yes), named(Holds::No), named(Holds::Unclear));
    let mut parts = match (yes.len(), decided.len()) {
        (yes, all) if yes == all => vec!["the published direction holds for every setting".to_owned()],
        (0, _) => vec!["the published direction holds for no setting".to_owned()],
        (yes, all) => vec![format!("the published direction holds for {yes} of {all} settings")],
    };
    if yes.len() == decided.len() {
        parts.push(yes.join(", "));
    }
    if !no.is_empty() {
        parts.push(format!("not for {}", no.join(", ")));
    }
    if !unclear.is_empty() {
        parts.push(format!("unclear, because the runs overlap, for {}", unclear.join(", ")));
    }
    parts.join("; ")
}
