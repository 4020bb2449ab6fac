//! How often each kind of finding was seen, and what it costs.

use crate::catalogue::context::Catalogue;
use crate::catalogue::measured::{AbsentFigure, FigureResult, FoundValue};
use crate::catalogue::row::{Names, Row};
use crate::catalogue::statistic::Statistic;
use crate::figures::FigureUnit;
use crate::findings::FindingKind;

pub(in crate::catalogue) const ROWS: &[Row] = &[Row {
    subject: "finding.KIND",
    about: "how often a kind of finding was seen, such as `finding.spike`, and the share of the wall time that it costs",
    names: Names::Own("spike", |_| FindingKind::ALL.iter().map(|kind| name(*kind)).collect()),
    statistics: |text| match kind(text) {
        Some(_) => vec![(Statistic::Count, FigureUnit::Count), (Statistic::Share, FigureUnit::Share)],
        None => Vec::new(),
    },
    get: |context, name, statistic| match kind(name) {
        Some(kind) => kind_figure(context, kind, statistic),
        None => AbsentFigure::because("there is no such finding"),
    },
}];

/// The kind's id with the underscores of all figures.
fn name(kind: FindingKind) -> String {
    kind.id().replace('-', "_")
}

fn kind(text: &str) -> Option<FindingKind> {
    FindingKind::ALL.iter().copied().find(|kind| name(*kind) == text)
}

fn kind_figure(context: &Catalogue<'_>, kind: FindingKind, statistic: Statistic) -> FigureResult {
    let findings = &context.judgement().findings;
    if let Some(undecided) = findings.not_enough.iter().find(|undecided| undecided.kind == kind) {
        return AbsentFigure::because(undecided.reason.clone());
    }
    let found = findings.found.iter().filter(|finding| finding.kind == kind);
    let value = match statistic {
        Statistic::Share => found.map(|finding| finding.share).reduce(|a, b| Some(a? + b?)).unwrap_or(Some(0.0)),
        _ => Some(found.map(|finding| finding.count).sum::<u64>() as f64),
    };
    FoundValue::from_everything(value, "its cost is not known")
}
