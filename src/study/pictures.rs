//! The figures of a study: bars of measures by setting, and published ratios beside ours.

use super::measured::MeasuredSetting;
use super::plan::{FigurePlan, Study};
use super::published::{Published, PublishedComparison};
use super::tables::{cell, columns, times};
use crate::report::{Bar, Chart, Document};
use gnntop_analysis::catalogue::FigureId;

/// Whether a figure shows this setting.
fn is_about(plan: &FigurePlan, one: &MeasuredSetting) -> bool {
    plan.settings.as_ref().is_none_or(|settings| settings.iter().any(|name| one.is_called(name)))
}

fn chart(plan: &FigurePlan, measured: &[&MeasuredSetting]) -> Chart {
    let bar = |one: &MeasuredSetting, measure: &FigureId| {
        let value = one.median(measure).filter(|value| *value >= 0.0)?;
        Some(Bar { value, range: one.range(measure)?, text: cell(measure, Some(value)) })
    };
    let group = |one: &&MeasuredSetting| {
        let bars = plan.measures.iter().map(|measure| bar(one, measure)).collect();
        (one.setting.name.clone(), bars)
    };
    Chart {
        title: plan.what.clone(),
        legend: plan.measures.iter().map(FigureId::to_string).collect(),
        groups: measured.iter().map(group).collect(),
        is_stacked: plan.is_stacked,
    }
}

/// The figures that the study asks for, each with its numbers as a table. One of which nothing was measured says so.
pub(super) fn figures(document: &mut Document, study: &Study, measured: &[MeasuredSetting]) {
    for plan in &study.figures {
        let about: Vec<&MeasuredSetting> = measured.iter().filter(|one| is_about(plan, one)).collect();
        document.heading(plan.what.clone());
        let known = |measure: &&FigureId| about.iter().any(|one| one.median(measure).is_some());
        let measures: Vec<&FigureId> = plan.measures.iter().filter(known).collect();
        if measures.is_empty() {
            let named: Vec<String> = plan.measures.iter().map(FigureId::to_string).collect();
            document.paragraph(format!("Not measured here: {}.", named.join(", ")));
            continue;
        }
        document.chart(&chart(plan, &about));
        let heads: Vec<String> = plan.measures.iter().map(FigureId::to_string).collect();
        let pairs: Vec<(FigureId, &str)> =
            plan.measures.iter().cloned().zip(heads.iter().map(String::as_str)).collect();
        document.table(columns(about.iter().copied(), &pairs));
        if let [some, ..] = plan.measures.iter().filter(|name| !known(name)).collect::<Vec<_>>().as_slice() {
            document.paragraph(format!("Not measured here: {some}."));
        }
    }
}

/// Ratios to the first setting, the published one beside ours.
pub(super) fn ratios(
    published: &Published,
    compared: &[(&MeasuredSetting, f64, Option<PublishedComparison>)],
) -> Chart {
    let bar = |value: f64| Some(Bar { value, range: (value, value), text: times(value) });
    let group = |(one, _, comparison): &(&MeasuredSetting, f64, Option<PublishedComparison>)| {
        let comparison = (*comparison)?;
        Some((one.setting.name.clone(), vec![bar(comparison.published_ratio), bar(comparison.own_ratio)]))
    };
    let first = compared.first().map_or("", |(one, _, _)| one.setting.name.as_str());
    let legend = if published.is_placeholder { "published placeholder" } else { "published" };
    Chart {
        title: format!("{}, as a multiple of {first}", published.what),
        legend: vec![legend.to_owned(), "here".to_owned()],
        groups: compared.iter().filter_map(group).collect(),
        is_stacked: false,
    }
}
