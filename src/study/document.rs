//! The report of a study: its conclusions in words, published values and conclusions beside ours, then tables and figures, then
//! each setting by itself.

use super::measured::MeasuredSetting;
use super::pictures::{self, ratios};
use super::plan::Study;
use super::published::{Claim, Holds, Published, PublishedComparison, Subject};
use super::tables::{self, cell, times};
use crate::report::Document;
use gnntop_analysis::figures::count;

const WORDS: &str = "A period runs from the end of the previous step to the end of this one; a step begins at its own start. Its work is the period without the gap and without waiting for its batch, which is what a timer around a step measures. The rest is between steps; an epoch's wall time is the sum of both. The first epoch has its own column. The other epoch columns are medians over later epochs without skipped steps.";

/// The report. `failures` are what went wrong, one line each.
pub fn document(study: &Study, measured: &[MeasuredSetting], failures: &[String]) -> Document {
    let mut document = Document::with_title(format!("Study: {}", study.name));
    if !study.about.is_empty() {
        document.paragraph(study.about.clone());
    }
    document.table(tables::settings(measured));
    document.paragraph("Numbers are medians over a setting's runs, without warm-up steps.");
    if !failures.is_empty() {
        document.heading("Failed");
        document.list(failures.to_vec());
    }
    write_conclusions(&mut document, study, measured);
    numbers(&mut document, measured);
    pictures::figures(&mut document, study, measured);
    publications(&mut document, study, measured);
    for one in measured {
        if let Some(report) = &one.report {
            document.heading(format!("{}: its last run", one.setting.name));
            document.paragraph(format!("{}.", report.verdict));
            document.list(report.findings.found.iter().map(|finding| finding.summary.clone()).collect());
            document.pictures(report);
        }
    }
    document
}

/// All that is measured, a table a subject.
fn numbers(document: &mut Document, measured: &[MeasuredSetting]) {
    document.heading("Time");
    document.table(tables::columns(measured, &tables::named_columns(&tables::TIMES)));
    document.paragraph(WORDS);
    tables::spread(document, measured);
    document.heading("Shares of the wall time");
    document.table(tables::shares(measured));
    document.heading("Batches and spikes");
    document.table(tables::columns(measured, &tables::named_columns(&tables::BATCHES)));
    document.heading("Memory and processor");
    document.table(tables::columns(measured, &tables::named_columns(&tables::MEMORY)));
    tables::memory_by_phase(document, measured);
    tables::energy(document, measured);
    tables::program_counters(document, measured);
    tables::compare_with_first(document, measured);
}

/// Whether each published conclusion holds here, in a sentence each; nothing if none was published.
pub(super) fn write_conclusions(document: &mut Document, study: &Study, measured: &[MeasuredSetting]) {
    if !study.claims.is_empty() {
        document.heading("Whether the published conclusions hold here");
        document.list(study.claims.iter().map(|claim| judge_claim(claim, measured)).collect());
    }
    if !study.published.is_empty() {
        document.heading("Whether the published directions hold here");
        document.paragraph("Settings against the first one of each table, as ratios: more, less, or within 5 %.");
        let said = |one: &Published| format!("{}: {}", one.what, sentence(one, &compare_settings(one, measured)));
        document.list(study.published.iter().map(said).collect());
    }
}

/// A table and a figure for everything that was published.
pub(super) fn publications(document: &mut Document, study: &Study, measured: &[MeasuredSetting]) {
    for published in &study.published {
        let compared = compare_settings(published, measured);
        document.heading(format!("Published: {}", published.what));
        document.table(published_table(published, measured, &compared));
        document.chart(&ratios(published, &compared));
        document.paragraph(format!("Measured here: {}. Source: {}.", published.measure, published.source));
        document.paragraph(sentence(published, &compared));
    }
}

/// A published conclusion with what was measured here.
fn judge_claim(claim: &Claim, measured: &[MeasuredSetting]) -> String {
    let Claim { says, note, first, second, expected } = claim;
    let numbers = |subject: &Subject| {
        let one = measured.iter().find(|one| one.is_called(&subject.setting))?;
        Some((
            one.setting.name.as_str(),
            one.values(&subject.measure),
            cell(&subject.measure, one.median(&subject.measure)),
        ))
    };
    let verdict = match (numbers(first), numbers(second)) {
        (Some((first_name, firsts, a)), Some((second_name, seconds, b))) => match expected.holds(&firsts, &seconds) {
            Some(holds) => {
                let [first, second] = if first.measure == second.measure {
                    [(first_name, a), (second_name, b)].map(|(name, value)| format!("{value} with {name}"))
                } else {
                    [(first, first_name, a), (second, second_name, b)]
                        .map(|(subject, name, value)| format!("{value} {} with {name}", subject.measure))
                };
                format!("{}: {second} against {first}, expected {}", holds.words(), expected.word())
            }
            None => "undecided: it was not measured".to_owned(),
        },
        _ => "undecided: one of its settings was not run".to_owned(),
    };
    let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
    format!("\"{says}\" {verdict}{note}")
}

/// The settings that have a published value, each compared with the first of them. The first has no comparison.
fn compare_settings<'a>(
    published: &Published,
    measured: &'a [MeasuredSetting],
) -> Vec<(&'a MeasuredSetting, f64, Option<PublishedComparison>)> {
    let with_value = |one: &'a MeasuredSetting| Some((one, *published.values.get(&one.setting.like)?));
    let with_value: Vec<(&MeasuredSetting, f64)> = measured.iter().filter_map(with_value).collect();
    let Some(((first, reference), others)) = with_value.split_first() else { return Vec::new() };
    let own = first.values(&published.measure);
    let compare = |(one, value): &(&'a MeasuredSetting, f64)| {
        (*one, *value, PublishedComparison::new((*reference, *value), &own, &one.values(&published.measure)))
    };
    std::iter::once((*first, *reference, None)).chain(others.iter().map(compare)).collect()
}

fn published_table(
    published: &Published,
    measured: &[MeasuredSetting],
    compared: &[(&MeasuredSetting, f64, Option<PublishedComparison>)],
) -> Vec<Vec<String>> {
    let heads = ["setting", "as published", "published", "here", "published ratio", "ratio here", "direction"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for one in measured {
        let Some((_, value, comparison)) = compared.iter().find(|(of, _, _)| std::ptr::eq(*of, one)) else { continue };
        let ratio =
            |of: fn(&PublishedComparison) -> f64| comparison.as_ref().map_or_else(|| "-".to_owned(), |c| times(of(c)));
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

/// Whether a publication's direction holds here, in words.
fn sentence(published: &Published, compared: &[(&MeasuredSetting, f64, Option<PublishedComparison>)]) -> String {
    if published.is_placeholder {
        return "the published values are placeholders, so there is nothing to compare with".to_owned();
    }
    let decided: Vec<(&MeasuredSetting, PublishedComparison)> =
        compared.iter().filter_map(|(one, _, c)| Some((*one, (*c)?))).collect();
    if decided.is_empty() {
        return "undecided: fewer than two settings with a published value were measured".to_owned();
    }
    let named = |holds: Holds| {
        let those = decided.iter().filter(|(_, comparison)| comparison.holds == holds);
        let words = |(one, c): &(&MeasuredSetting, PublishedComparison)| {
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
